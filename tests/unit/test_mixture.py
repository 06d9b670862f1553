"""Mixtures of products: what they learn of tables and of cells, alone and in the rounds of GEM and RAP."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import chicle
from chicle import Domain, DomainError, Ledger, Measurement, ParameterError, Query, Records
from chicle.evaluation.answers import answer_errors
from chicle.models import MixtureModel, mixture
from chicle.privacy import TestNoise
from tests.public_tables import columns_of

DOMAIN = Domain({"a": 4, "b": 3, "c": 2, "d": 5})


def correlated(n: int, seed: int, domain: Domain = DOMAIN) -> Records:
    rng = np.random.default_rng(seed)
    common = rng.random(n)
    rows = {
        name: np.minimum((common**2 + rng.normal(0, 0.1, n)).clip(0) * size, size - 1).astype(int)
        for name, size in domain.items()
    }
    return Records(rows, domain)


TABLE = correlated(4_000, 0)
TRIPLES = list(combinations(DOMAIN, 3))


def quietly(synth: Any, public: Records | None = None) -> Any:
    """Return a mechanism fitted to the table with the noise of a seed: the errors of a test stay what they are."""
    return synth.fit(TABLE, public=public, ledger=Ledger(synth.budget, noise=TestNoise(2)))


def exact(*queries: Any) -> list[Measurement]:
    asked = [one if isinstance(one, Query) else Query(one) for one in queries]
    return [
        Measurement(one.clique, counts, 1.0, where=one.where)
        for one, counts in zip(asked, TABLE.count(asked), strict=True)
    ]


@pytest.mark.parametrize(("link", "rate"), [("softmax", 0.1), ("projected", 0.02), ("network", 0.01)])
def test_exact_tables_are_learnt(link: Any, rate: float) -> None:
    model = MixtureModel(link=link, rate=rate, components=200, steps=400, embedding=16, hidden=32)
    model.fit(exact((), *TRIPLES), DOMAIN)
    for clique, counts in zip(TRIPLES, TABLE.count(TRIPLES), strict=True):
        (table,) = model.expect([clique])
        assert np.abs(table - counts).max() / len(TABLE) < 0.02, link


def test_single_cells_are_learnt_and_the_rest_stays_a_distribution() -> None:
    cells = [Query((), where={"a": i, "c": j, "d": 0}) for i in range(4) for j in range(2)]
    model = None
    for _ in range(15):  # each goes down to half the smoothed largest error
        later = MixtureModel(components=200, loss="worst", rate=0.05, steps=300)
        model = later.fit(exact((), *cells), DOMAIN, start=model)
    assert model is not None
    (table,) = model.expect([("a", "c", "d")])
    (counts,) = TABLE.count([("a", "c", "d")])
    assert np.abs(table[:, :, 0] - counts[:, :, 0]).max() / len(TABLE) < 0.03
    assert table.sum() == pytest.approx(len(TABLE))


def test_a_fit_goes_on_from_the_one_before_and_leaves_its_answers() -> None:
    first = MixtureModel(components=100, steps=0).fit(exact(()), DOMAIN)
    begun = first.expect(TRIPLES)
    fresh = MixtureModel(components=100, steps=30).fit(exact((), *TRIPLES), DOMAIN)
    second = MixtureModel(components=100, steps=30).fit(exact((), *TRIPLES), DOMAIN, start=first)
    for mine, theirs in zip(second.expect(TRIPLES), fresh.expect(TRIPLES), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    third = MixtureModel(components=100, steps=100).fit(exact((), *TRIPLES), DOMAIN, start=second)

    def error(model: MixtureModel) -> float:
        answers: dict[chicle.Clique, Any] = {
            clique: table / model.total for clique, table in zip(TRIPLES, model.expect(TRIPLES), strict=True)
        }
        return answer_errors(TABLE, answers)["mean"]

    assert error(third) < error(second) < error(first)
    for mine, theirs in zip(first.expect(TRIPLES), begun, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_the_average_of_parameters_is_used_in_the_end() -> None:
    def fit(before: MixtureModel | None, average: Any, steps: int) -> MixtureModel:
        model = MixtureModel(components=50, steps=steps, average=average)
        return model.fit(exact((), *TRIPLES), DOMAIN, start=before)

    kept = fit(fit(None, "keep", 5), "keep", 50)
    used = fit(kept, "use", 0)
    assert any((x != y).any() for x, y in zip(used.expect(TRIPLES), kept.expect(TRIPLES), strict=True))
    again = fit(fit(fit(None, "keep", 5), "no", 50), "use", 0)
    assert any((x != y).any() for x, y in zip(used.expect(TRIPLES), again.expect(TRIPLES), strict=True))


def test_answers_do_not_depend_on_how_many_are_given_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model = MixtureModel(components=50, steps=20).fit(exact((), *TRIPLES), DOMAIN)
    whole = model.expect(TRIPLES)
    monkeypatch.setattr(mixture, "_AT_ONCE", 50)
    for mine, theirs in zip(model.expect(TRIPLES), whole, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_attributes_of_many_values_get_fewer_components() -> None:
    domain = Domain({"a": 100_000, "b": 2})
    model = MixtureModel(steps=0).fit([Measurement((), np.array(50), 1.0)], domain)
    assert model._shares.shape[1] == 2**20 // 100_002
    network = MixtureModel(steps=0, link="network").fit([Measurement((), np.array(50), 1.0)], domain)
    assert network._trainer.parameters().size < 2**22 + 4 * 100_002
    assert len(model.records(70, seed=1)) == 70


@pytest.mark.parametrize(
    "given",
    [
        {"link": "linear"},
        {"loss": "l2"},
        {"average": True},
        {"components": 0},
        {"steps": -1},
        {"rate": 0},
        {"hidden": 0},
    ],
)
def test_wrong_parameters_are_named(given: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(given))):
        MixtureModel(**given)


def test_what_a_mixture_cannot_be_fitted_to_is_refused() -> None:
    with pytest.raises(DomainError, match="whole tables, and single cells"):
        MixtureModel(components=5).fit([*exact(()), Measurement(("a",), np.zeros(4), 1.0, where={"b": 0})], DOMAIN)
    with pytest.raises(DomainError, match="a group of 'b' must be one of its codes"):
        MixtureModel(components=5).fit([*exact(()), Measurement((), np.array(3), 1.0, where={"b": 3})], DOMAIN)
    model = MixtureModel(components=5).fit(exact(("a",)), DOMAIN)
    for bad in (np.zeros(3, np.uint32), np.full(70, 0xBF800000, np.uint32), np.zeros(0, np.uint32)):
        with pytest.raises(DomainError, match="do not fit the attributes"):
            MixtureModel(components=5).restore({**model.state(), "probabilities": bad}, DOMAIN)


# --- GEM and RAP -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "given", "most"),
    [
        (chicle.GEM, {}, 0.02),
        (chicle.GEM, {"per": "query", "rounds": 40}, 0.06),
        (chicle.GEM, {"published": True, "rounds": 12, "components": 30}, 0.25),
        (chicle.RAP, {}, 0.02),
        (chicle.RAP, {"per": "query", "rounds": 5}, 0.06),
        (chicle.RAP, {"published": True, "rounds": 5}, 0.09),
    ],
)
def test_rounds_come_near_the_workload(make: Any, given: dict[str, Any], most: float) -> None:
    """At a budget at which noise hardly matters; independent attributes are .17 off."""
    synth = make(epsilon=20, delta=1e-9, allow_weak=True, workload=TRIPLES, **{"components": 200, **given})
    found = answer_errors(TABLE, quietly(synth).answers_)
    assert found["max"] < most


def test_public_answers_are_where_gem_begins() -> None:
    public = correlated(3_000, 5)
    for table in (public, columns_of(public, ["a", "b", "d"])):
        given: dict[str, Any] = {"epsilon": 1, "delta": 1e-9, "workload": TRIPLES, "rounds": 1, "components": 200}
        alone, helped = (quietly(chicle.GEM(**given, per="query"), rows) for rows in (None, table))
        clique = ("a", "b", "d")
        real = TABLE.count([clique])[0] / len(TABLE)
        assert np.abs(helped.answers_[clique] - real).max() < np.abs(alone.answers_[clique] - real).max() / 2
        assert "public data are used" in helped.release_.notes[0]
    with pytest.raises(ParameterError, match="no clique of the workload"):
        chicle.GEM(rho=1, workload=TRIPLES).fit(TABLE, public=columns_of(public, ["a", "b"]))


def test_weights_on_public_rows_stop_at_their_best_mixture_and_gem_does_not() -> None:
    """Nobody in the public table has one value of "a": no weights on its rows can give it to anybody."""
    kept = TABLE["a"] != 1
    public = Records({name: TABLE[name][kept] for name in DOMAIN}, DOMAIN)
    shares = {clique: table / len(TABLE) for clique, table in zip(TRIPLES, TABLE.count(TRIPLES), strict=True)}
    best = max(float(share[1].max()) for clique, share in shares.items() if "a" in clique)
    given: dict[str, Any] = {"epsilon": 20, "delta": 1e-9, "allow_weak": True, "workload": TRIPLES}
    forms: list[dict[str, Any]] = [{}, {"published": True}]
    for form in forms:
        stuck = quietly(chicle.PMWPub(**given, **form), public).answers_
        assert answer_errors(TABLE, stuck)["max"] >= best > 0.05
        assert all(stuck[clique][1].max() == 0 for clique in stuck if clique[0] == "a")
    free = quietly(chicle.GEM(**given, components=200), public)
    assert answer_errors(TABLE, free.answers_)["max"] < best / 4


def test_a_large_workload_is_answered_in_bounded_memory() -> None:
    """Half a million cells: 8 bytes each for the answers, and as many for scores and counts."""
    domain = Domain({f"x{i}": 24 for i in range(8)})
    workload = list(combinations(domain, 3))[:37]
    assert sum(map(domain.cells, workload)) > 500_000
    table = correlated(5_000, 1, domain)
    synth = chicle.GEM(epsilon=1, delta=1e-9, workload=workload, rounds=1, components=20, per="query").fit(table)
    assert sum(answers.size for answers in synth.answers_.values()) > 500_000
    assert synth.plan(domain).cost.memory < 2**30
