"""DPSyn: what it measures, how it splits its budget, fields and columns, partitions, files."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import chicle
from chicle import Domain, Measurement, PublicData, Records, Schema
from chicle.denoising.rake import rake_table
from chicle.errors import ChicleError, DomainError, ParameterError
from chicle.mechanisms.dpsyn_marginals import marginals_of, random_views
from chicle.mechanisms.dpsyn_split import laplace_has_less_noise, laplace_shares, needs_count, split_2020
from chicle.models.dpsyn import processed_sizes
from chicle.models.layout import Layout, seen_combinations
from chicle.releases.bounds import error_bounds, noise_quantile

BUDGET: dict[str, Any] = {"epsilon": 5.0, "delta": 1e-9}

# --- How epsilon is split ---------------------------------------------------------------------------------------------


@given(
    epsilon=st.floats(1e-3, 100),
    k=st.integers(1, 20),
    n=st.floats(-1e3, 1e8),
    asked=st.sampled_from(["auto", "public", "one-way", "two-way"]),
    partitioned=st.booleans(),
)
def test_a_split_spends_epsilon_and_no_more(epsilon: float, k: int, n: float, asked: Any, partitioned: bool) -> None:
    counted = n if needs_count(epsilon, k, asked) else None
    split = split_2020(epsilon, k, counted, asked=asked, partitioned=partitioned)
    assert split.count + split.sizes + split.rest == pytest.approx(epsilon)
    assert min(split.count, split.sizes, split.rest) >= 0
    assert (split.count > 0) == (counted is not None)
    assert asked in ("auto", split.regime)
    if split.regime != "public":
        assert split.rest > 0
        assert (split.sizes > 0) == partitioned


def test_the_thresholds_of_the_paper() -> None:
    """By hand, for theta = 7 and N = 350,000: tau_1 = .03, tau_2 = .18, epsilon_0 = .005, epsilon_1 = .14."""
    n, tiny = 350_000.0, 1e-9
    assert not needs_count(0.2 - tiny, 7)
    assert needs_count(0.2, 7)
    assert split_2020(0.2, 7, n).regime == "one-way", "0.005 + 0.14 + 0.03 is below 0.2"
    assert split_2020(0.325 - tiny, 7, n).regime == "one-way"
    assert split_2020(0.325 + tiny, 7, n).regime == "two-way"
    assert split_2020(0.205, 7, 200_000.0).regime == "one-way", "tau_1 is 0.0525"
    assert split_2020(0.205, 7, 100_000.0).regime == "public", "tau_1 is 0.105"
    one = split_2020(0.3, 7, n)
    assert one.sizes == pytest.approx(0.14 + (0.3 - 0.005 - 0.14 - 0.03) / 2)
    two = split_2020(0.5, 7, n)
    assert two.sizes == pytest.approx(0.14 + (0.5 - 0.005 - 0.14 - 0.18) / 2), "x is with tau_2, as the text says"
    assert split_2020(10.0, 7, n).sizes == pytest.approx(7 / 25)
    assert split_2020(0.4, 7, 1_000.0, asked="two-way").sizes == pytest.approx(0.14), "the least, where pairs want more"
    assert split_2020(0.2, 7, 1_000.0, asked="two-way").sizes == pytest.approx(0.195 / 2), "but no more than half"


@pytest.mark.parametrize(("delta", "gdp"), [(1e-9, 15), (1e-12, 21)])
def test_the_crossover_of_equal_marginals(delta: float, gdp: int) -> None:
    mu = math.sqrt(2 * chicle.Budget(epsilon=1, delta=delta).rho)
    assert gdp == math.floor(1 / (2 * mu * mu)), "sqrt(2) m / epsilon against sqrt(m) / mu"
    for m in (gdp, gdp + 1):
        shares = [1 / m] * m
        assert laplace_has_less_noise([50] * m, shares, shares, epsilon=1, mu=mu) is (m == gdp)


@given(weights=st.lists(st.floats(0.01, 100), min_size=1, max_size=6))
def test_a_weight_is_a_precision_with_either_noise(weights: list[float]) -> None:
    shares = np.array(laplace_shares([5] * len(weights), weights))
    variance = 1 / shares**2
    np.testing.assert_allclose(variance * weights, (variance * weights)[0])
    assert shares.sum() == pytest.approx(1)


# --- Fields -----------------------------------------------------------------------------------------------------------

COLUMNS = Domain({"sex": 2, "mar": 3, "age": 5, "in": 4, "out": 5, "home": 5, "zip": 6, "area": 3})
PATTERN = "what is missing of in"


def layout() -> Layout:
    return Layout(
        COLUMNS,
        joint={("sex", "mar"): np.array([[0, 0], [0, 2], [1, 0], [1, 1]])},
        synchronous=[("in", "out", "home")],
        mapped={"zip": "age"},
        without=("area",),
    )


def rows_of(seed: int, rows: int = 300) -> Records:
    """Rows that the fields can tell: allowed combinations, one clock, a map of ages."""
    rng = np.random.default_rng(seed)
    both = np.array([[0, 0], [0, 2], [1, 0], [1, 1]])[rng.integers(0, 4, rows)]
    clock, gone = rng.integers(0, 4, rows), rng.random((2, rows)) < [[0.3], [0.6]]
    age = rng.integers(0, 5, rows)
    return Records(
        {
            "sex": both[:, 0],
            "mar": both[:, 1],
            "age": age,
            "in": clock,
            "out": np.where(gone[0], 4, clock),
            "home": np.where(gone[1], 4, clock),
            "zip": (age * 2) % 6,
            "area": rng.integers(0, 3, rows),
        },
        COLUMNS,
    )


def test_fields_and_back() -> None:
    fields, rows = layout(), rows_of(0)
    assert dict(fields.domain) == {"sex & mar": 4, "age": 5, "in": 4, PATTERN: 4}
    seen = fields.see(rows)
    assert len(seen) == len(rows)
    back = fields.split(seen, {"zip": np.array([0, 2, 4, 0, 2])})
    for name in COLUMNS:
        if name != "area":
            np.testing.assert_array_equal(back[name], rows[name], name)
    odd = Records({**{name: rows[name] for name in COLUMNS}, "mar": np.full(len(rows), 2)}, COLUMNS)
    assert len(fields.see(odd)) == (rows["sex"] == 0).sum(), "rows of other combinations are left out"


@pytest.mark.parametrize(
    "clique", [("age",), ("sex & mar", "age"), ("age", PATTERN), ("sex & mar", PATTERN), (PATTERN,)]
)
def test_tables_of_columns_are_tables_of_fields(clique: tuple[str, ...]) -> None:
    """Counting a field's query over columns, then picking its cells, equals counting rows of fields."""
    fields, rows = layout(), rows_of(1)
    query = fields.query(clique)
    (counted,) = rows.count([query])
    table = fields.table(Measurement(query.clique, counted, 2.0, buckets=query.buckets))
    assert table is not None
    assert table.clique == clique
    assert table.sigma == 2
    np.testing.assert_array_equal(table.values, fields.see(rows).count([clique])[0])


def test_tables_of_no_fields() -> None:
    fields, rows = layout(), rows_of(1)
    for clique in [("sex",), ("sex", "age"), ("out",), ("area",), ("zip",), ("zip", "age"), ()]:
        assert fields.table(Measurement(clique, rows.count([clique])[0], 1.0)) is None


def test_a_map_is_learnt_from_a_noisy_table() -> None:
    fields = layout()
    table = np.zeros((5, 6))
    table[[0, 1, 2, 3], [5, 0, 3, 3]] = 400
    table[4, 2] = 20  # below three sigmas: the most frequent value instead
    noisy = table + np.random.default_rng(0).normal(0, 10, table.shape).clip(-25, 25)
    for clique, values in ((("age", "zip"), noisy), (("zip", "age"), noisy.T)):
        learnt = fields.maps([Measurement(clique, values, 10.0)])
        assert learnt["zip"].tolist() == [5, 0, 3, 3, 3]


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"synchronous": [("in", "age", "sex")]}, "as many, or one more"),
        ({"synchronous": [("in",)]}, "fewer than two"),
        ({"joint": {("sex", "mar"): np.zeros((1, 2))}, "mapped": {"sex": "age"}}, "named twice"),
        ({"mapped": {"zip": "age", "age": "in"}}, "follows another column"),
        ({"mapped": {"zip": "zip"}}, "zip"),
        ({"mapped": {"zip": "area"}, "without": ("area",)}, "no column of the table"),
        ({"mapped": {"zip": "nowhere"}}, "not an attribute"),
    ],
    ids=str,
)
def test_layouts_that_are_none(given: Any, what: str) -> None:
    with pytest.raises(ChicleError, match=what):
        Layout(COLUMNS, **given)


# --- Marginals --------------------------------------------------------------------------------------------------------


def test_marginals_inside_groups() -> None:
    plain = Layout(Domain(dict.fromkeys("abcdef", 3)))
    groups = [["a", "c"], ["b", "d"]]
    assert marginals_of(plain, marginals=None, views=None, groups=groups)[0] == [("a", "c"), ("b", "d"), ("e", "f")]
    cliques, weights = marginals_of(plain, marginals={("c", "a"): 3.0, ("f",): 1.0}, views=None, groups=groups)
    assert (cliques, weights) == ([("a", "c"), ("f",)], [0.75, 0.25])
    cases: list[tuple[dict[str, Any], str]] = [
        ({"marginals": [("a", "b")], "groups": groups}, "two groups"),
        ({"marginals": None, "groups": [["a", "b"], ["b", "c"]]}, "in two of them"),
        ({"marginals": None, "groups": "ab"}, "list of lists"),
        ({"marginals": [("a", "b")], "groups": [], "views": (3, 3)}, "not both"),
    ]
    for wrong, what in cases:
        with pytest.raises(ChicleError, match=what):
            marginals_of(plain, **{"views": None, **wrong})


@given(number=st.integers(1, 12), order=st.integers(2, 5), wide=st.booleans())
def test_random_views(number: int, order: int, wide: bool) -> None:
    domain = Domain({name: 400 if wide and name == "a" else 4 for name in "abcdefgh"})
    views = random_views(domain, [list("abcd"), list("efgh")], number, order)
    assert views == random_views(domain, [list("abcd"), list("efgh")], number, order)
    assert len(set(views)) == len(views) <= number
    for view in views:
        assert 2 <= len(view) <= order
        assert set(view) <= set("abcd") or set(view) <= set("efgh")
        assert domain.cells(view) <= 100_000


# --- Tables -----------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32))
def test_raking_gives_margins_and_keeps_odds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.random((3, 4)) + 0.1
    margins = [m / m.sum() * 50 for m in (rng.random(3) + 0.1, rng.random(4) + 0.1)]
    raked = rake_table(table, margins)
    np.testing.assert_allclose(raked.sum(axis=1), margins[0], atol=1e-4)
    np.testing.assert_allclose(raked.sum(axis=0), margins[1], atol=1e-4)
    odds = [t[0, 0] * t[1, 1] / (t[0, 1] * t[1, 0]) for t in (table, raked)]
    assert odds[0] == pytest.approx(odds[1])


def test_raking_empty_slices() -> None:
    raked = rake_table(np.array([[4.0, 4.0], [0.0, 0.0]]), [np.array([5.0, 5.0]), np.array([2.0, 8.0])])
    np.testing.assert_allclose(raked.sum(axis=1), [5, 5], atol=1e-4)
    np.testing.assert_allclose(raked.sum(axis=0), [2, 8], atol=1e-4)
    assert (raked > 0).all()
    kept = rake_table(np.array([[4.0, 0.0], [2.0, 2.0]]), [np.array([5.0, 5.0]), np.array([7.0, 3.0])])
    np.testing.assert_allclose(kept, [[5, 0], [2, 3]], atol=1e-4)
    np.testing.assert_array_equal(rake_table(np.ones((2, 2)), [np.zeros(2), np.zeros(2)]), 0)
    np.testing.assert_allclose(rake_table(np.zeros((2, 2)), [np.array([1.0, 3.0]), np.array([2.0, 2.0])]).sum(), 4)


def test_sizes_are_raised_then_rounded() -> None:
    assert processed_sizes(np.array([-5.0, 0.0, 120.0, 149.0, 151.0]), 120, 100).tolist() == [100, 100, 100, 100, 200]
    assert processed_sizes(np.array([7.4, 7.6]), 0, 1).tolist() == [7, 8]


# --- Whole runs -------------------------------------------------------------------------------------------------------


def test_columns_come_back_as_they_were() -> None:
    """Synchronous columns agree where they are there, a mapped one follows, combinations are those of public rows."""
    private, public = rows_of(2, 4_000), rows_of(3, 800)
    synth = chicle.DPSyn(
        **BUDGET, synchronous=[["in", "out", "home"]], mapped={"zip": "age"}, joint=[["sex", "mar"]], rare=0
    )
    made = synth.fit(private, public=public).sample(2_000, seed=0)
    for name in ("out", "home"):
        there = made[name] < 4
        np.testing.assert_array_equal(made[name][there], made["in"][there])
        assert abs(there.mean() - (private[name] < 4).mean()) < 0.1
    np.testing.assert_array_equal(made["zip"], (made["age"].astype(int) * 2) % 6)
    pairs = seen_combinations(made, ("sex", "mar")).tolist()
    assert pairs == [[0, 0], [0, 2], [1, 0], [1, 1]]


def test_groups_are_made_apart() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 5_000)
    columns = {"a": a, "b": (a + (rng.random(5_000) < 0.1)) % 3, "c": a, "d": (a + (rng.random(5_000) < 0.1)) % 3}
    real = Records(columns, dict.fromkeys(columns, 3))
    made = chicle.DPSyn(**BUDGET, groups=[["a", "b"]], rare=0).fit(real).sample(seed=0)
    same = {pair: float((made[pair[0]] == made[pair[1]]).mean()) for pair in chicle.pairs(real.domain)}
    assert same["a", "b"] > 0.8
    assert same["c", "d"] > 0.8
    assert all(share < 0.45 for pair, share in same.items() if pair not in (("a", "b"), ("c", "d")))


def test_rare_values_are_merged_below_the_published_threshold() -> None:
    counts = np.array([3000, 700, 500, 0, 900])
    real = Records({"a": np.repeat(np.arange(5), counts), "b": np.zeros(counts.sum(), int)}, {"a": 5, "b": 2})
    for rare, left in ((800, 3), (0, 4)):
        synth = chicle.DPSyn(**BUDGET, marginals=[("a", "b")], rare=rare).fit(real)
        assert synth.release_.model.merge.domain["a"] in (left, left + 1 if rare == 0 else left)
    assert {one.clique for one in synth.release_.measurements} == {("a",), ("b",), ("a", "b")}


def partitioned(regime: Any, **given: Any) -> tuple[chicle.DPSyn, Records, Records]:
    private, public = rows_of(4, 6_000), rows_of(5, 900)
    table = PublicData(public, role="trusted", columns=[name for name in COLUMNS if name != "area"])
    synth = chicle.DPSyn(
        **BUDGET, partition=["area"], regime=regime, joint=[["sex", "mar"]], floor=50, round_to=100, **given
    )
    return synth.fit(private, public=table), private, public


@pytest.mark.parametrize("generator", ["gum", "descent"])
@pytest.mark.parametrize("regime", ["public", "one-way", "two-way"])
def test_partitions_of_every_regime(regime: Any, generator: Any, tmp_path: Path) -> None:
    synth, private, _ = partitioned(regime, generator=generator)
    made = synth.sample(seed=0)
    sizes, real = (np.bincount(table["area"], minlength=3) for table in (made, private))
    # Noise of scale 25 (epsilon_3 is .04) and rounding to 100: beyond 800 less than once in 10^10 runs.
    assert np.abs(sizes - real).max() < 800
    assert f"The {regime} regime" in synth.release_.notes[0] + synth.release_.notes[1]
    synth.release_.save(tmp_path / "x.chicle")
    again = chicle.load(tmp_path / "x.chicle").sample(seed=0)
    for name in COLUMNS:
        np.testing.assert_array_equal(again[name], made[name])
    assert json.dumps(synth.release_.parameters)
    first, eight = (synth.release_.sample(700, seed=3, threads=threads) for threads in (1, 8))
    for name in COLUMNS:
        np.testing.assert_array_equal(first[name], eight[name])


def test_partitions_are_named_in_one_of_three_places() -> None:
    private = rows_of(4, 2_000)
    schema = Schema(COLUMNS).partitioned(["area"])
    made = [
        chicle.DPSyn(**BUDGET, partition="area").fit(private),
        chicle.DPSyn(**BUDGET).fit(private, partition=["area"]),
        chicle.DPSyn(**BUDGET).fit(private, schema),
    ]
    for synth in made:
        assert synth.release_.partition == ("area",)
        assert list(synth.release_.model.params()["partition"]) == ["area"]
        assert [event.purpose for event in synth.ledger_.events][:2] == ["number of records", "sizes"]
    assert made[1].partition == (), "a fit leaves its parameters"
    assert "partitions" in str(chicle.DPSyn(**BUDGET).plan(schema, 2_000))
    with pytest.raises(ParameterError, match="given twice"):
        chicle.DPSyn(**BUDGET, partition="area").fit(private, partition="sex")


def test_one_way_changes_public_rows_to_the_private_one_ways() -> None:
    private, public = rows_of(4, 6_000), rows_of(5, 900)
    lean = Records({**{name: private[name] for name in COLUMNS}, "age": np.minimum(private["age"], 1)}, COLUMNS)
    table = PublicData(public, role="trusted")
    made = chicle.DPSyn(**BUDGET, regime="one-way").fit(lean, public=table).sample(seed=0)
    assert (made["age"] <= 1).mean() > 0.95
    assert (public["age"] <= 1).mean() < 0.5


def test_without_rows_or_columns() -> None:
    for rows in (0, 1):
        real = Records({"a": np.zeros(rows, int), "b": np.zeros(rows, int)}, {"a": 3, "b": 1})
        more: dict[str, Any]
        for more in ({}, {"partition": "a"}, {"mapped": {"b": "a"}}, {"views": (2, 2)}):
            assert len(chicle.DPSyn(**BUDGET, **more).fit(real).sample(12, seed=0)) == 12


@pytest.mark.parametrize("cells", [1, 2, 5, 40])
def test_bounds_hold_for_laplace_noise(cells: int) -> None:
    """The L1 norm of Laplace noise on m cells is a gamma deviate; Gaussian bounds fall short for one cell."""
    for risk in (0.2, 0.05, 0.001):
        size = stats.gamma(a=cells, scale=math.sqrt(0.5))
        sigmas = np.full(cells, 1e6)
        assert size.sf(noise_quantile(sigmas, risk, laplace=True) / 1e6) <= risk * 1.05
    assert stats.gamma(a=1, scale=math.sqrt(0.5)).sf(noise_quantile(np.array([1e6]), 0.05) / 1e6) > 0.05


def test_a_release_says_that_its_noise_is_laplace() -> None:
    census = chicle.datasets.census(2_000, d=3)
    release = chicle.DPSyn(epsilon=1, delta=1e-9, noise="laplace", rare=0).fit(census).release_
    (bound,) = release.error_bounds([("SEX",)])
    used = error_bounds(release.measurements, release.domain, [("SEX",)], laplace=True)[0]
    assert bound.estimate_error == used.estimate_error
    assert used.estimate_error > error_bounds(release.measurements, release.domain, [("SEX",)])[0].estimate_error


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"regime": "three-way"}, "regime"),
        ({"noise": "uniform"}, "noise"),
        ({"one_ways": 0}, "one_ways"),
        ({"rare": -1}, "rare"),
        ({"floor": -1}, "floor"),
        ({"round_to": 0}, "round_to"),
        ({"passes": -1}, "passes"),
        ({"generator": "magic"}, "generator"),
        ({"partition": "nowhere"}, "nowhere"),
        ({"partition": list(COLUMNS)}, "leaves no column"),
        ({"regime": "public"}, "public table"),
        ({"joint": [["sex", "mar"]]}, "public table"),
        ({"marginals": {("sex",): -1.0}}, "weight"),
        ({"views": (0, 3)}, "views"),
        ({"groups": [["nowhere"]]}, "nowhere"),
        ({"mapped": {"zip": "zip"}}, "zip"),
    ],
    ids=str,
)
def test_what_is_wrong_costs_nothing(wrong: Any, what: str) -> None:
    ledger = chicle.Ledger(chicle.Budget(**BUDGET))
    with pytest.raises(ChicleError, match=what):
        chicle.DPSyn(**BUDGET, **wrong).fit(rows_of(0), ledger=ledger)
    assert not ledger.events
    assert ledger.budget.pure is None


def test_public_tables_that_do_not_do() -> None:
    some = PublicData(rows_of(1), role="trusted", columns=["sex", "mar"])
    with pytest.raises(ParameterError, match="have no 'age'"):
        chicle.DPSyn(**BUDGET).fit(rows_of(0), public=some)
    with pytest.raises(ParameterError, match="role="):
        chicle.DPSyn(**BUDGET, regime="one-way").fit(rows_of(0), public=rows_of(1))
    with pytest.raises(DomainError):
        chicle.DPSyn(**BUDGET, marginals=[("sex", "nowhere")]).fit(rows_of(0), public=rows_of(1))


@pytest.mark.parametrize("kind", ["all rows equal", "one row", "sorted", "uniform"])
@pytest.mark.parametrize("regime", ["auto", "public", "one-way", "two-way"])
def test_hostile_public_tables_break_nothing(kind: str, regime: Any) -> None:
    rng = np.random.default_rng(3)
    rows = 1 if kind == "one row" else 400
    columns = {name: rng.integers(size, size=rows) for name, size in COLUMNS.items()}
    if kind == "all rows equal":
        columns = {name: np.full(rows, size - 1) for name, size in COLUMNS.items()}
    if kind == "sorted":
        columns = {name: np.sort(codes) for name, codes in columns.items()}
    public = PublicData(Records(columns, COLUMNS), role="trusted")
    synth = chicle.DPSyn(**BUDGET, regime=regime, partition="area", joint=[["sex", "mar"]], floor=10, round_to=10)
    made = synth.fit(rows_of(0), public=public).sample(400, seed=0)
    assert len(made) == 400
    assert made.domain == COLUMNS


def test_a_plan_says_what_is_bought() -> None:
    schema = Schema.from_cardinalities(COLUMNS)
    told = str(chicle.DPSyn(epsilon=1, delta=1e-9, partition="area", noise="laplace").plan(schema))
    assert "partitions" in told
    assert "Laplace noise" in told
