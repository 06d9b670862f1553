"""One suite over every family of models: what was learnt can be asked, drawn from, saved and restored."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import chicle
from chicle import Domain, DomainError, Measurement, Model, NotFittedError, ParameterError, Query, Records
from chicle.measurements.merges import Merge, merge_groups, merge_rare
from chicle.mechanisms.base import BY_NAME, Mechanism, register_mechanism
from chicle.mechanisms.stages import Setting, Stages, one_way_stage
from chicle.models import (
    ComposedModel,
    DenoisedModel,
    DescentModel,
    DPSynModel,
    EvidenceModel,
    ExplicitModel,
    GraphicalModel,
    IndependentModel,
    InteractionModel,
    MixtureModel,
    WeightedRowsModel,
    model_of,
    register_model,
)
from chicle.models import base as families
from chicle.query import Functional, QueryLike, one_ways
from chicle.releases import unmeasured
from tests.public_tables import columns_of

DOMAIN = Domain({"a": 12, "b": 3, "c": 2, "d": 5, "e": 1})
ALL: list[tuple[str, ...]] = [*one_ways(DOMAIN), *combinations(DOMAIN, 2)]
SEEDS = (0, 1, 2**63)

_PUBLIC = np.random.default_rng(8)
PUBLIC = Records({name: _PUBLIC.integers(size, size=2_000) for name, size in DOMAIN.items()}, DOMAIN)

MODELS: dict[str, Callable[[], Model]] = {
    "independent": IndependentModel,
    "descent": DescentModel,
    "denoised": DenoisedModel,
    "denoised, replicated": lambda: DenoisedModel(replicate=3, sweeps=2),
    "denoised, plain": lambda: DenoisedModel(absorb=False, low_rank=False, pull=0.0, start="tree"),
    "interactions": lambda: InteractionModel(first=1),
    "interactions, replicated": lambda: InteractionModel(first=2, replicate=2, refinement=0.0, refining=1),
    "dpsyn": lambda: DPSynModel(passes=3),
    "dpsyn, descent": lambda: DPSynModel(generator="descent", passes=3),
    "composed, gum": lambda: ComposedModel(kernel="gum", options={"passes": 4}),
    "composed, descent": lambda: ComposedModel(kernel="descent"),
    "composed, mcf": lambda: ComposedModel(kernel="mcf", options={"passes": 2}),
    "composed, whole": lambda: ComposedModel(kernel="gum", options={"passes": 2}, separate=False, append=False),
    "graphical": GraphicalModel,
    "explicit": lambda: ExplicitModel(tolerance=1.0),
    "mixture": lambda: MixtureModel(components=200, steps=150),
    "mixture, projected": lambda: MixtureModel(components=200, link="projected", rate=0.02),
    "mixture, network": lambda: MixtureModel(components=100, link="network", rate=0.003, embedding=16, hidden=32),
    "evidence": lambda: EvidenceModel(public=PUBLIC),
    "evidence, trusted": lambda: EvidenceModel(
        public=columns_of(PUBLIC, ["a", "b", "d"]), role="trusted", own="graphical", parameters={"iterations": 50}
    ),
    "weighted rows": lambda: WeightedRowsModel(rows=PUBLIC, tolerance=1.0),
}


def measured(seed: int = 0) -> list[Measurement]:
    """Noisy 1-ways and some pairs of attributes that depend on each other; some values are rare."""
    rng = np.random.default_rng(seed)
    common = rng.random(3_000)
    rows = {
        name: np.minimum((common**2 + rng.normal(0, 0.1, 3_000)).clip(0) * size, size - 1).astype(int)
        for name, size in DOMAIN.items()
    }
    rows["a"] = np.where(np.isin(rows["a"], (4, 7)), 5, rows["a"])
    table = Records(rows, DOMAIN)
    cliques = [*one_ways(DOMAIN), ("a", "b"), ("b", "c"), ("d", "a"), ("b", "c", "d")]
    return [
        Measurement(clique, counts + np.rint(rng.normal(0, 20, counts.shape)).astype(int), 20.0)
        for clique, counts in zip(cliques, table.count(cliques), strict=True)
    ]


def merge_of(kind: str) -> Merge | None:
    ones = measured()[: len(DOMAIN)]
    if kind == "rare":
        return merge_rare(ones, DOMAIN, ordinal=["d"], theta=8.0, vanish=False)
    if kind == "vanished":
        return merge_rare(ones, DOMAIN, theta=3.0)
    if kind == "groups":
        return merge_groups(ones, DOMAIN, {name: np.arange(size) // 2 for name, size in DOMAIN.items()})
    return None


MERGES = ["none", "rare", "vanished", "groups"]


@pytest.fixture(params=MODELS, scope="module")
def make(request: pytest.FixtureRequest) -> Callable[[], Model]:
    return MODELS[request.param]


@pytest.fixture(params=MERGES, scope="module")
def merge(request: pytest.FixtureRequest) -> Merge | None:
    return merge_of(request.param)


@pytest.fixture(scope="module")
def fitted(make: Callable[[], Model], merge: Merge | None) -> Model:
    model = make()
    assert model.fit(measured(), DOMAIN, merge=merge) is model
    return model


def same(one: Records, other: Records) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in DOMAIN)


def sums(table: npt.NDArray[Any], query: Query) -> npt.NDArray[Any]:
    """Return a table with the codes of each bucket summed, by a loop."""
    summed = np.zeros(query.table_shape(DOMAIN))
    for cell in np.ndindex(table.shape):
        at = tuple(
            int(query.buckets[n][i]) if n in query.buckets else i for n, i in zip(query.clique, cell, strict=True)
        )
        summed[at] += table[cell]
    return summed


def test_merges_of_this_test_merge() -> None:
    """Or the suite says nothing of them."""
    for kind in MERGES[1:]:
        merge = merge_of(kind)
        assert merge is not None
        assert merge.changes
    vanished = merge_of("vanished")
    assert vanished is not None
    assert any(change.vanish for change in vanished.changes.values())


# --- Fit and expect --------------------------------------------------------------------------------------------------


def test_what_a_fit_leaves(fitted: Model, merge: Merge | None) -> None:
    assert fitted.domain == DOMAIN
    assert fitted.merge.domain == (DOMAIN if merge is None else merge.domain)
    assert 2_500 < fitted.total < 3_500
    assert model_of(fitted.family) is type(fitted)


def test_expected_tables_have_shape_and_total(fitted: Model) -> None:
    for clique, table in zip(ALL, fitted.expect(ALL), strict=True):
        assert table.dtype == np.float64
        assert table.shape == DOMAIN.shape(clique)
        assert (table >= 0).all()
        assert table.sum() == pytest.approx(fitted.total, rel=1e-6)
    (number,) = fitted.expect([()])
    assert number.shape == ()
    assert float(number) == pytest.approx(fitted.total)
    assert fitted.expect([]) == []


def test_a_turned_clique_gives_the_turned_table(fitted: Model) -> None:
    (pair,), (turned,) = fitted.expect([("a", "d")]), fitted.expect([("d", "a")])
    np.testing.assert_allclose(turned, pair.T, rtol=1e-9, atol=1e-9)


def test_margins_of_a_pair_are_its_1_ways(fitted: Model) -> None:
    (pair,), (one,) = fitted.expect([("b", "d")]), fitted.expect([("d",)])
    np.testing.assert_allclose(pair.sum(axis=0), one, rtol=1e-6, atol=1e-6)


def test_expectations_are_near_what_was_measured(fitted: Model) -> None:
    """A weak check that holds for all: the shares of the values that are told apart."""
    for one in measured()[: len(DOMAIN)]:
        (table,) = fitted.expect([one.clique], merged=True)
        values = np.maximum(fitted.merge.over(one).values, 0)
        assert np.abs(table / fitted.total - values / values.sum()).sum() / 2 < 0.08


def test_tables_may_have_been_measured_over_merged_values(
    make: Callable[[], Model], merge: Merge | None, fitted: Model
) -> None:
    """As a transcript has them: in the buckets of what was merged."""
    if merge is None:
        return
    tables = measured()
    for i, one in enumerate(tables):
        if len(one.clique) > 1:
            over = merge.over(one)
            tables[i] = Measurement(one.clique, over.values, over.sigma, buckets=merge.behind(over.query).buckets)
    other = make().fit(tables, DOMAIN, merge=merge)
    for clique in (("a",), ("a", "b"), ("d", "a")):
        mine, theirs = (model.expect([clique])[0] / model.total for model in (other, fitted))
        assert np.abs(mine - theirs).sum() / 2 < 0.05


def test_structural_zeros_are_part_of_the_state() -> None:
    zeros: Any = {("a", "b"): np.add.outer(np.arange(12), np.arange(3)) % 4 == 0}
    model = GraphicalModel(zeros=zeros).fit(measured(), DOMAIN)
    again = GraphicalModel(**model.params()).restore(model.state(), DOMAIN)
    for one in (model, again, pickle.loads(pickle.dumps(model))):  # noqa: S301
        (table,) = one.expect([("a", "b")])
        assert (table[zeros["a", "b"]] == 0).all()
        assert table.sum() == pytest.approx(model.total)
        (counts,) = one.records(2_000, 3).count([("a", "b")])
        assert (counts[zeros["a", "b"]] == 0).all()


def test_buckets_are_sums(fitted: Model) -> None:
    rng = np.random.default_rng(0)
    for clique in (("a",), ("a", "b"), ("d", "a"), ("c", "d"), ("e", "a")):
        for names in [subset for size in range(1, len(clique) + 1) for subset in combinations(clique, size)]:
            query = Query(clique, {name: rng.integers(3, size=DOMAIN[name]) for name in names})
            (table,), (coarse,) = fitted.expect([clique]), fitted.expect([query])
            assert coarse.shape == query.shape(DOMAIN)
            np.testing.assert_allclose(coarse, sums(table, query), rtol=1e-6, atol=1e-6)


def test_buckets_of_merged_values(fitted: Model) -> None:
    """Also where a bucket holds just what is merged."""
    codes = {name: fitted.merge.codes(name) for name in ("a", "d")}
    query = Query(("a", "d"), codes)
    (table,), (coarse,) = fitted.expect([("a", "d")]), fitted.expect([query])
    (inner,) = fitted.expect([("a", "d")], merged=True)
    np.testing.assert_allclose(coarse, sums(table, query), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(coarse, inner, rtol=1e-6, atol=1e-6)


def test_groups_are_slices(fitted: Model) -> None:
    (joint,) = fitted.expect([("a", "b", "d")])
    halves = {"d": np.array([0, 1, 1, 0, 1])}
    queries: list[QueryLike] = [
        Query(("b",), where={"a": 4}),
        Query(("d", "b"), where={"a": 0}),
        Query((), where={"b": 1, "d": 2}),
        Query(("d",), halves, where={"a": 11, "b": 2}),
        ("b",),
    ]
    group, turned, number, coarse, plain = fitted.expect(queries)
    near = partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-6)
    near(group, joint[4].sum(axis=1))
    near(turned, joint[0].T)
    near(number, joint[:, 1, 2].sum())
    near(coarse, [joint[11, 2, [0, 3]].sum(), joint[11, 2, [1, 2, 4]].sum()])
    near(plain, joint.sum(axis=(0, 2)))


def test_functionals_are_weighted_sums(fitted: Model) -> None:
    rng = np.random.default_rng(1)
    weights = rng.integers(-5, 6, (3, 12, 3))
    (table,), (answers,) = (
        fitted.expect([("a", "b")]),
        fitted.expect([Query(("a", "b"), functional=Functional(weights))]),
    )
    np.testing.assert_allclose(answers, [(each * table).sum() for each in weights], rtol=1e-6, atol=1e-6)
    mean = Functional(np.arange(5)[None])
    (slice_,), (grouped,) = (
        fitted.expect([Query(("d",), where={"c": 1}, functional=functional)]) for functional in (None, mean)
    )
    assert grouped.shape == (1,)
    assert grouped[0] == pytest.approx((np.arange(5) * slice_).sum())


def test_queries_of_merged_values(fitted: Model) -> None:
    inside = fitted.merge.domain
    halves = np.arange(inside["a"]) % 2
    table, coarse, group, answers = fitted.expect(
        [
            ("b", "a"),
            Query(("b", "a"), {"a": halves}),
            Query(("b",), where={"a": 0}),
            Query(("b",), functional=Functional(np.ones((1, inside["b"]), dtype=int))),
        ],
        merged=True,
    )
    assert table.shape == (inside["b"], inside["a"])
    np.testing.assert_allclose(coarse[:, 0], table[:, halves == 0].sum(axis=1), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(group, table[:, 0], rtol=1e-6, atol=1e-6)
    assert answers[0] == pytest.approx(fitted.total)


def test_what_cannot_be_asked_is_named(fitted: Model) -> None:
    wrong: list[tuple[Any, str]] = [
        (("nobody",), "'nobody' is not an attribute"),
        (("a", "a"), "twice"),
        ("a", "not a string"),
        (Query(("a",), {"a": np.zeros(3, dtype=int)}), "buckets of 'a'"),
        (Query(("a",), where={"b": 3}), "a group of 'b'"),
    ]
    for asked, rule in wrong:
        for merged in (False, True):
            with pytest.raises(DomainError, match=rule):
                fitted.expect([asked], merged=merged)


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_threads_change_no_expectation(fitted: Model, threads: int) -> None:
    for mine, theirs in zip(fitted.expect(ALL, threads=threads), fitted.expect(ALL), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_threads_change_no_fit(make: Callable[[], Model], merge: Merge | None, fitted: Model, threads: int) -> None:
    other = make().fit(measured(), DOMAIN, merge=merge, threads=threads)
    for mine, theirs in zip(other.expect(ALL, threads=threads), fitted.expect(ALL), strict=True):
        np.testing.assert_array_equal(mine, theirs)


# --- Records ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2, 700])
def test_records_are_as_many_as_asked_for_and_the_seed_decides(fitted: Model, n: int) -> None:
    for seed in SEEDS:
        made = fitted.records(n, seed)
        assert isinstance(made, Records)
        assert (len(made), made.domain) == (n, DOMAIN)
        assert all(codes.max(initial=0) < DOMAIN[name] for name, codes in ((name, made[name]) for name in DOMAIN))
        for threads in (1, 2, 8):
            assert same(made, fitted.records(n, seed, threads=threads))
    if n > 2:
        assert not same(fitted.records(n, 0), fitted.records(n, 1))
    assert len(fitted.records(n)) == n


def test_records_follow_the_expectation(fitted: Model) -> None:
    n = 4_000
    made = fitted.records(n, 7)
    for clique in (("a",), ("b",), ("d",), ("a", "b")):
        (counts,), (table,) = made.count([clique]), fitted.expect([clique])
        assert np.abs(counts / n - table / fitted.total).sum() / 2 < 0.08


def test_nothing_is_made_of_values_that_vanished(make: Callable[[], Model]) -> None:
    merge = merge_of("vanished")
    assert merge is not None
    model = make().fit(measured(), DOMAIN, merge=merge)
    made = model.records(3_000, 1)
    for name, change in merge.changes.items():
        (table,) = model.expect([(name,)])
        gone = np.flatnonzero(change.shares == 0)
        assert not np.isin(made[name], gone).any()
        assert (table[gone] == 0).all()


@pytest.mark.parametrize("n", [-1, 2.5, True, "9", None])
def test_what_is_no_number_of_records(fitted: Model, n: Any) -> None:
    with pytest.raises(ParameterError, match="n must be"):
        fitted.records(n, 0)


def test_a_bad_seed_is_named(fitted: Model) -> None:
    with pytest.raises(ParameterError, match="seed"):
        fitted.records(5, -1)


# --- State -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def never_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a load must not fit")

    for family in {type(make()) for make in MODELS.values()}:
        monkeypatch.setattr(family, "fit_tables", refuse)
        monkeypatch.setattr(family, "fit", refuse)
    monkeypatch.setattr(chicle.models.pgm.Pgm, "step", refuse)


def check_same(one: Model, other: Model) -> None:
    assert (one.domain, one.total, one.merge.domain) == (other.domain, other.total, other.merge.domain)
    for mine, theirs in zip(one.expect(ALL), other.expect(ALL), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    for n in (1, 500):
        assert same(one.records(n, 5), other.records(n, 5))


@pytest.mark.usefixtures("never_fits")
def test_a_restored_model_is_the_same_and_nothing_is_fitted(fitted: Model) -> None:
    state = fitted.state()
    assert all(array.dtype in (np.int64, np.float64, np.uint32, np.uint8) for array in state.values()), "for a file"
    again = model_of(fitted.family)(**fitted.params())
    assert again.restore(state, DOMAIN) is again
    check_same(again, fitted)
    assert again.state().keys() == state.keys()
    for name, array in again.state().items():
        np.testing.assert_array_equal(array, state[name])


@pytest.mark.usefixtures("never_fits")
def test_a_pickled_model_is_the_same(fitted: Model) -> None:
    check_same(pickle.loads(pickle.dumps(fitted)), fitted)  # noqa: S301


def test_a_model_that_is_not_fitted_can_be_pickled(make: Callable[[], Model]) -> None:
    again = pickle.loads(pickle.dumps(make()))  # noqa: S301
    assert again.params() == make().params()
    with pytest.raises(NotFittedError):
        _ = again.total


def test_parameters_are_plain_data(make: Callable[[], Model]) -> None:
    def plain(value: object) -> bool:
        if isinstance(value, dict):
            return all(isinstance(name, str) and plain(item) for name, item in value.items())
        if isinstance(value, (list, tuple)):
            return all(map(plain, value))
        return value is None or isinstance(value, (bool, int, float, str))

    assert plain(make().params())


def test_a_model_restored_or_fitted_anew_forgets_what_it_was(make: Callable[[], Model], fitted: Model) -> None:
    other = make().fit(measured(seed=4), DOMAIN)
    other.expect(ALL)
    check_same(other.restore(fitted.state(), DOMAIN), fitted)
    other = make().fit(measured(seed=4), DOMAIN)
    other.expect(ALL)
    check_same(other.fit(measured(), DOMAIN, merge=fitted.merge), fitted)


def test_nothing_is_known_before_a_fit(make: Callable[[], Model]) -> None:
    model = make()
    asking: list[Callable[[], object]] = [
        lambda: model.expect([("a",)]),
        lambda: model.expect([("a",)], merged=True),
        lambda: model.records(5, 0),
        model.state,
        lambda: model.domain,
        lambda: model.merge,
        lambda: model.total,
    ]
    for ask in asking:
        with pytest.raises(NotFittedError, match=r"is not fitted yet; call fit\(measurements, domain\) first"):
            ask()


def test_a_state_of_another_domain_is_refused(fitted: Model) -> None:
    state = fitted.state()
    with pytest.raises((DomainError, LookupError, ValueError)):
        model_of(fitted.family)(**fitted.params()).restore(state, Domain({**DOMAIN, "b": 4}))
    for name in state:
        if not name.removeprefix("own-").startswith(("merge-", "zeros-")):
            rest = {other: array for other, array in state.items() if other != name}
            with pytest.raises((DomainError, LookupError, ValueError)):
                model_of(fitted.family)(**fitted.params()).restore(rest, DOMAIN)


def test_measurements_that_do_not_fit_are_refused(make: Callable[[], Model]) -> None:
    good = measured()
    wrong = [
        [Measurement(("nobody",), np.zeros(12), 1.0), *good[1:]],
        [Measurement(("a",), np.zeros(5), 1.0), *good[1:]],
        [Measurement(("a",), np.full(12, 1e300), 1.0), *good[1:]],
    ]
    if make is not IndependentModel:  # which hears 1-ways alone
        wrong += [
            [*good[:-1], Measurement(("a", "nobody"), np.zeros((12, 2)), 1.0)],
            [*good[:-1], Measurement(("a", "b"), np.zeros((12, 2)), 1.0)],
            [*good[:-1], Measurement(("a", "b"), np.full((12, 3), 1e300), 1.0)],
        ]
    for given in wrong:
        with pytest.raises(DomainError):
            make().fit(given, DOMAIN)


# --- Families --------------------------------------------------------------------------------------------------------


def test_an_unknown_family_is_named() -> None:
    with pytest.raises(ParameterError, match=r"there is no model family 'magic'; known are .*denoised"):
        model_of("magic")


@pytest.fixture
def own_families(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    monkeypatch.setattr(families, "_FAMILIES", dict(families._FAMILIES))
    monkeypatch.setattr(unmeasured, "_MECHANISMS", dict(unmeasured._MECHANISMS))
    monkeypatch.setattr("chicle.mechanisms.base.BY_NAME", dict(BY_NAME))


@pytest.mark.usefixtures("own_families")
def test_a_users_own_model_saves_and_loads_in_a_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @register_model("test: most frequent")
    @dataclass(kw_only=True, eq=False)
    class MostFrequent(Model):
        """Every record has the most frequent value of each attribute; or the least frequent."""

        least: bool = False

        def fit_tables(self, measurements: list[Measurement], **_: Any) -> None:
            best = {one.clique[0]: self.merge.over(one).values for one in measurements if len(one.clique) == 1}
            find = np.argmin if self.least else np.argmax
            self._row = np.array([int(find(best[name])) for name in self.merge.domain])

        def expect_tables(self, queries: Any, **_: Any) -> list[Any]:
            return [table * float(self.total) for table in self.draw_records(1, 0).count(queries)]

        def draw_records(self, n: int, seed: int | None, **_: Any) -> Records:
            del seed
            columns = {name: np.full(n, code) for name, code in zip(self.merge.domain, self._row, strict=True)}
            return Records(columns, self.merge.domain)

        def to_arrays(self) -> dict[str, Any]:
            return {"row": self._row}

        def from_arrays(self, state: Any) -> None:
            self._row = state["row"]

    @register_mechanism
    class MostFrequentValues(Mechanism):
        """Measure 1-ways, and learn what is most frequent."""

        least: bool = False

        def stages(self, setting: Setting) -> Stages:
            return Stages.of(one_way_stage(setting, setting.rho))

        def run(self, desk: chicle.Desk) -> Model:
            desk.measure_one_ways(rho=desk.left / 2)
            merged = desk.merged(merge_rare(desk.one_ways(), desk.domain, vanish=False))
            desk.measure_one_ways(rho=desk.left)
            return self.learn(MostFrequent(least=self.least), merged)

    census = chicle.datasets.census(3_000, d=5)
    given: dict[str, Any] = {"least": True}
    synth = MostFrequentValues(epsilon=1, delta=1e-9, **given).fit(census)
    assert synth.ledger_.spent == pytest.approx(synth.ledger_.budget.rho, rel=1e-9)
    synth.release_.save(tmp_path / "own.chicle")
    monkeypatch.setattr(MostFrequent, "fit_tables", None)
    again = chicle.load(tmp_path / "own.chicle")
    assert isinstance(again.model, MostFrequent)
    assert again.model.least is True
    assert (again.mechanism, again.parameters) == ("MostFrequentValues", {"least": True})
    assert again.transcript.merge is not None
    for n in (0, 40):
        mine, theirs = synth.sample(n, seed=2), again.sample(n, seed=2)
        assert all(np.array_equal(mine[name], theirs[name]) for name in census.domain)
    for mine_, theirs_ in zip(*(m.expect([("SEX", "AGE")]) for m in (synth.release_.model, again.model)), strict=True):
        np.testing.assert_array_equal(mine_, theirs_)
    families._FAMILIES.pop("test: most frequent")
    with pytest.raises(chicle.ArtefactError, match=r"no model family 'test: most frequent'.*Import the package"):
        chicle.load(tmp_path / "own.chicle")
