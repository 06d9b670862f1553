from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import pytest

import chicle
from chicle import (
    Budget,
    Desk,
    Domain,
    Ledger,
    Measurement,
    ParameterError,
    Prism,
    PrismOptions,
    Query,
    Records,
    Schema,
)
from chicle.measurements.contrasts import CONTRASTS
from chicle.measurements.merges import merge_rare
from chicle.privacy import GaussianEvent, TestNoise
from chicle.query import check_buckets
from chicle.selection.expected_error import MAX_CELLS
from chicle.selection.sets import _MAX_CELLS, _SMALL

BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-9}
DOMAIN = {"a": 2, "b": 3, "c": 60, "d": 4, "e": 25, "f": 2, "g": 1}


def records_of(rows: int = 4_000, domain: dict[str, int] | None = None, seed: int = 0, k: int = 1) -> Records:
    """Attributes that depend on each other, so that something is chosen."""
    domain = DOMAIN if domain is None else domain
    rng = np.random.default_rng(seed)
    common = rng.random(rows)
    columns = {
        name: np.minimum((np.abs(common - rng.normal(0, 0.15, rows)) * size).astype(int), size - 1)
        for name, size in domain.items()
    }
    return Records(columns, domain, max_records_per_person=k)


def uniform(domain: dict[str, int], rows: int) -> Records:
    rng = np.random.default_rng(rows)
    return Records({name: rng.integers(size, size=rows) for name, size in domain.items()}, domain)


def distance(real: Records, made: Records, clique: tuple[str, ...]) -> float:
    """Which part of the records is in another cell."""
    (x,), (y,) = (chicle.count(table, [clique]) for table in (real, made))
    return float(np.abs(x / len(real) - y / len(made)).sum() / 2)


# --- Plan ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 1_000, 10**9])
@pytest.mark.parametrize("options", [None, PrismOptions(one_ways=0.3, counting=0.1, selection=0.5)])
@pytest.mark.parametrize("domain", [DOMAIN, {"a": 7}, {"a": 1, "b": 1}])
def test_the_plan_adds_up(n: int, options: PrismOptions | None, domain: dict[str, int]) -> None:
    synth = Prism(**BUDGET, options=options)
    plan = synth.plan(Schema.from_cardinalities(domain), n)
    assert sum(step.rho for step in plan.steps) == pytest.approx(Budget(**BUDGET).rho)
    assert all(step.rho > 0 for step in plan.steps)
    assert [step.of for step in plan.steps[1 : len(domain) + 1]] == list(domain)
    assert plan.mechanism == "Prism"


def test_the_plan_knows_what_n_changes() -> None:
    """With more records pairs can use more of the budget."""
    schema = Schema.from_cardinalities(dict.fromkeys("abcdefgh", 30))
    shares = []
    for n in (100, 10_000, 1_000_000):
        steps = Prism(**BUDGET).plan(schema, n).steps
        shares.append(sum(step.rho for step in steps if step.release == "1-way"))
    assert shares[0] > shares[1] > shares[2]
    fixed = Prism(**BUDGET, options=PrismOptions(one_ways=0.2))
    few, many = (fixed.plan(schema, n).steps for n in (10, 10**8))
    assert [step.rho for step in few] == [step.rho for step in many]
    errors = [(a.error, b.error) for a, b in zip(few, many, strict=True) if a.error is not None and b.error is not None]
    assert len(errors) == len(schema.domain) + 1, "each 1-way, and the pairs together"
    assert all(1 >= a > b > 0 for a, b in errors)


def test_a_plan_leaves_no_trace() -> None:
    synth = Prism(**BUDGET)
    shown = repr(synth)
    assert str(synth.plan(DOMAIN, 5)) != str(synth.plan(DOMAIN))
    assert str(synth.plan(DOMAIN)) == str(Prism(**BUDGET).plan(DOMAIN, 100_000))
    assert repr(synth) == shown
    for n in (-1, 1.5, True):
        with pytest.raises(ParameterError, match="n must be"):
            synth.plan(DOMAIN, n)  # type: ignore[arg-type]


def test_a_fit_spends_as_planned_for_the_number_it_was_told() -> None:
    table = records_of()
    synth = Prism(**BUDGET).fit(table)
    told = max(int(synth.release_.measurements[0].values), 0)
    steps = Prism(**BUDGET).plan(Schema(table.domain), told).steps
    for step, event in zip(steps[: 1 + len(DOMAIN)], synth.ledger_.events, strict=False):
        assert isinstance(event, GaussianEvent)
        assert event.sigma == pytest.approx(step.sigma)
    marginals = [event.rho("gdp") for event in synth.ledger_.events if event.purpose == "marginal"]
    assert sum(marginals) == pytest.approx(steps[-1].rho)


# --- Options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        *({name: value} for name in ("counting", "selection", "one_ways") for value in (0, 1, -0.1, 1.5, float("nan"))),
        *(
            {name: value}
            for name in ("theta", "triple_bonus", "triple_error", "threshold", "significance")
            for value in (-0.1, float("nan"), float("inf"))
        ),
        {"sizes": (1,)},
        {"sizes": (10, 2.5)},
        {"order": 1},
        {"order": 5},
        {"order": 2.0},
        {"sweeps": 0},
        {"start": "best"},
        {"replicate": 0},
        {"replicate": 1.5},
    ],
    ids=str,
)
def test_bad_options_are_refused_by_name(given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(ParameterError, match="size" if name == "sizes" else name):
        PrismOptions(**given)


def test_options_are_options() -> None:
    synth = Prism(**BUDGET, options={"order": 2})  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="PrismOptions, not a dict"):
        synth.plan(Schema.from_cardinalities(DOMAIN))
    with pytest.raises(ParameterError, match="PrismOptions, not a dict"):
        synth.fit(records_of(10))


SWITCHES = [
    {"counting": 0.01},
    {"one_ways": 0.2},
    {"selection": 0.3},
    {"theta": 0.0},
    {"theta": 20.0},
    {"sizes": ()},
    {"sizes": (7,)},
    {"order": 2},
    {"order": 3},
    {"triple_bonus": 0.0},
    {"triple_error": 0.0},
    {"triple_error": 5.0},
    {"absorb": False},
    {"low_rank": False},
    {"pull": 0.0},
    {"absorb": False, "low_rank": False, "pull": 0.0},
    {"sweeps": 1},
    {"sweeps": 20},
    {"threshold": 0.0},
    {"threshold": 1.0},
    {"significance": 0.0},
    {"significance": 1.0},
    {"start": "independent"},
    {"start": "tree"},
    {"replicate": 1},
    {"replicate": 7},
]


@pytest.mark.parametrize("given", SWITCHES, ids=str)
def test_every_switch_runs_and_spends_the_budget(given: dict[str, Any]) -> None:
    table = records_of()
    schema = Schema.from_cardinalities(DOMAIN, ordinal=["c", "e"])
    synth = Prism(epsilon=3, delta=1e-9, options=PrismOptions(**given)).fit(table, schema)
    rho = synth.ledger_.budget.rho
    assert rho * (1 - 1e-9) <= synth.ledger_.spent <= rho
    made = synth.sample(2_001, seed=0)
    assert len(made) == 2_001
    assert distance(table, made, ("a", "d")) < 0.2
    assert len(synth.trace_) <= given.get("sweeps", 12) + 1
    order = given.get("order", 4)
    cliques = [event.clique for event in synth.ledger_.events if event.purpose == "marginal"]
    assert cliques
    for clique in cliques:
        assert clique is not None
        assert 2 <= len(clique) <= order
        assert len(set(clique)) == len(clique)
        if len(clique) > 2:
            assert all(DOMAIN[name] <= _SMALL for name in clique)
            assert prod(DOMAIN[name] for name in clique) <= _MAX_CELLS


def test_tables_hold_no_more_cells_than_levels_allow() -> None:
    domain = {"a": 300, "b": 300, "c": 2}
    table = records_of(30_000, domain)
    schema = Schema.from_cardinalities(domain, ordinal=["a"])
    for epsilon in (0.5, 50.0):
        for measurement in Prism(epsilon=epsilon, delta=1e-9, allow_weak=True).fit(table, schema).release_.measurements:
            assert measurement.values.size <= MAX_CELLS


# --- What is released ------------------------------------------------------------------------------------------------


def count_in_buckets(table: Records, measurement: Measurement) -> Any:
    if not measurement.clique:
        return np.array(len(table))
    counts = np.zeros(measurement.values.shape, dtype=np.int64)
    columns = [
        np.asarray(measurement.buckets[name])[table[name]] if name in measurement.buckets else table[name]
        for name in measurement.clique
    ]
    np.add.at(counts, tuple(columns), 1)
    return counts


@pytest.mark.parametrize("ordinal", [[], ["c", "e"], list(DOMAIN)])
@pytest.mark.parametrize("options", [None, PrismOptions(theta=200.0), PrismOptions(order=2, sizes=(12, 3))])
def test_measurements_are_over_the_domain_of_the_schema(ordinal: list[str], options: PrismOptions | None) -> None:
    """With a budget that nobody should have, they are the counts of the table, in their buckets."""
    table = records_of()
    budget: dict[str, Any] = {"rho": 1e5}
    options = replace(options or PrismOptions(), first_stage=1.0)
    synth = Prism(**budget, allow_weak=True, options=options)
    schema = Schema.from_cardinalities(DOMAIN, ordinal=ordinal)
    synth.fit(table, schema, ledger=Ledger(Budget(**budget), noise=TestNoise(0)))
    measurements = synth.release_.measurements
    assert measurements[0].clique == ()
    assert [one_way.clique for one_way in measurements[1 : 1 + len(DOMAIN)]] == [(name,) for name in DOMAIN]
    assert len(measurements) > 1 + len(DOMAIN)
    for measurement in measurements:
        assert measurement.sigma < 0.2
        check_buckets(measurement.clique, measurement.buckets, table.domain)
        for axis, name in enumerate(measurement.clique):
            if name not in measurement.buckets:
                assert measurement.values.shape[axis] == DOMAIN[name]
        exact = count_in_buckets(table, measurement)
        assert (measurement.values != exact).mean() < 0.01
        assert np.abs(measurement.values - exact).max() <= 1
    assert abs(synth.release_.total - len(table)) <= 1
    assert all_is_kept(synth)


@pytest.mark.parametrize("ordinal", [[], ["c", "e"]])
def test_noisy_measurements_are_near_the_counts_of_their_buckets(ordinal: list[str]) -> None:
    table = records_of()
    schema = Schema.from_cardinalities(DOMAIN, ordinal=ordinal)
    synth = Prism(**BUDGET).fit(table, schema)
    coarse = 0
    for measurement in synth.release_.measurements:
        off = (measurement.values - count_in_buckets(table, measurement)) / measurement.sigma
        assert np.abs(off).max() < 6.5
        coarse += bool(measurement.buckets)
    assert coarse, "or the test says nothing"


def test_other_parts_take_the_measurements() -> None:
    """They name their buckets, so whoever takes buckets can make records of them."""
    table = records_of()
    release = Prism(epsilon=5, delta=1e-9).fit(table, Schema.from_cardinalities(DOMAIN, ordinal=["c", "e"])).release_
    measurements = [measurement for measurement in release.tables if measurement.clique]
    made = chicle.descend(measurements, table.domain, 3_000, seed=0)
    assert distance(table, made, ("a", "d")) < 0.1


def all_is_kept(synth: Prism) -> bool:
    """Whether every release but the scores is among the measurements, in order."""
    counted = [(event.clique, event.values) for event in synth.ledger_.events if event.clique is not None]
    return counted == [(kept.clique, kept.values.size) for kept in synth.release_.measurements]


@pytest.mark.parametrize("rows", [0, 50])
def test_too_few_records_for_pairs_are_said_to_be(rows: int) -> None:
    """The rest of the budget goes to the 1-ways."""
    budget: dict[str, Any] = {"epsilon": 0.05, "delta": 1e-9}
    synth = Prism(**budget).fit(uniform(DOMAIN, rows), ledger=Ledger(Budget(**budget), noise=TestNoise(1)))
    note, _promise = synth.release_.notes
    assert "independent" in note
    assert note in repr(synth.release_)
    assert synth.ledger_.spent == pytest.approx(synth.ledger_.budget.rho)
    cliques = [event.clique for event in synth.ledger_.events]
    assert cliques == [(), *((name,) for name in DOMAIN), *((name,) for name in DOMAIN)]
    assert all_is_kept(synth)
    assert len(synth.sample(30, seed=0)) == 30


def test_where_nothing_stands_out_1_ways_are_as_good_as_those_of_independent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chicle.mechanisms.prism.choose_sets", lambda *_, **__: [])
    table = records_of()
    synth = Prism(**BUDGET).fit(table)
    assert "stands out" in synth.release_.notes[0]
    assert all_is_kept(synth)
    assert synth.ledger_.spent == pytest.approx(synth.ledger_.budget.rho)
    for name in DOMAIN:
        first, second = (kept for kept in synth.release_.measurements if kept.clique == (name,))
        both = Measurement.mean([first, second])
        precision = 1 / first.sigma**2 + 1 / second.sigma**2
        assert both.sigma == pytest.approx(precision**-0.5)
        expected = (first.values / first.sigma**2 + second.values / second.sigma**2) / precision
        np.testing.assert_allclose(both.values, expected)


def test_dependence_is_kept() -> None:
    """All pairs come nearer than independent attributes would."""
    table = records_of(20_000)
    schema = Schema.from_cardinalities(DOMAIN, ordinal=["c", "e"])
    ours = Prism(epsilon=3, delta=1e-9).fit(table, schema).sample(20_000, seed=0)
    theirs = chicle.Independent(epsilon=3, delta=1e-9).fit(table, schema).sample(20_000, seed=0)
    for clique in combinations([name for name in DOMAIN if DOMAIN[name] > 1], 2):
        assert distance(table, ours, clique) < 0.5 * distance(table, theirs, clique)


@pytest.mark.parametrize("replicate", [1, 4])
def test_records_are_the_same_for_any_number_of_threads(replicate: int) -> None:
    table = records_of(3_000)
    schema = Schema.from_cardinalities(DOMAIN, ordinal=["c"])
    made = []
    for threads in (1, 2, 8):
        synth = Prism(**BUDGET, threads=threads, options=PrismOptions(replicate=replicate))
        synth.fit(table, schema, ledger=Ledger(Budget(**BUDGET), noise=TestNoise(4)))
        made.append((synth.ledger_.events, synth.sample(2_500, seed=9)))
    for events, records in made[1:]:
        assert events == made[0][0]
        for name in DOMAIN:
            np.testing.assert_array_equal(records[name], made[0][1][name])


def test_progress_is_told() -> None:
    told: list[tuple[int, float]] = []
    synth = Prism(**BUDGET, progress=lambda number, error: told.append((number, error))).fit(records_of(2_000))
    synth.sample(seed=0)
    assert [number for number, _ in told] == list(range(1, len(told) + 1))
    assert [error for _, error in told] == synth.trace_
    assert all(error >= 0 for _, error in told)


# --- Any table -------------------------------------------------------------------------------------------------------


TABLES: dict[str, Callable[[], Records]] = {
    "binary": lambda: records_of(3_000, dict.fromkeys("abcdefgh", 2)),
    "one value of 100,000": lambda: uniform({"a": 100_000}, 3_000),
    "100,000 values and others": lambda: uniform({"a": 100_000, "b": 3, "c": 2, "d": 2}, 3_000),
    "constant": lambda: Records({"a": np.zeros(3_000, dtype=int), "b": np.full(3_000, 4)}, {"a": 3, "b": 9}),
    "nobody": lambda: uniform(DOMAIN, 0),
    "somebody": lambda: uniform(DOMAIN, 1),
    "a hundred": lambda: records_of(100),
    "one attribute": lambda: uniform({"a": 9}, 500),
    "one value": lambda: uniform({"a": 1}, 500),
    "one value everywhere": lambda: uniform(dict.fromkeys("abcd", 1), 500),
    "two attributes": lambda: records_of(500, {"a": 5, "b": 6}),
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(("k", "ordered"), [(1, False), (3, True)])
def test_any_table_will_do(table: str, epsilon: float, k: int, ordered: bool) -> None:
    records = TABLES[table]()
    schema = Schema.from_cardinalities(
        records.domain, ordinal=records.domain if ordered else (), max_records_per_person=k
    )
    synth = Prism(epsilon=epsilon, delta=1e-9, allow_weak=True).fit(records, schema)
    rho = synth.ledger_.budget.rho
    assert rho * (1 - 1e-9) <= synth.ledger_.spent <= rho
    for event in synth.ledger_.events:
        assert isinstance(event, GaussianEvent)
        whole = event.clique is not None and not event.purpose.startswith(CONTRASTS)
        assert not whole or event.l2_sensitivity == k
    for n in (0, 1, 40):
        made = synth.sample(n, seed=2)
        assert len(made) == n
        assert made.domain == records.domain
    for measurement in synth.release_.measurements:
        check_buckets(measurement.clique, measurement.buckets, records.domain)


def test_a_large_budget_gives_the_table_back() -> None:
    table = records_of(3_000, {"a": 4, "b": 3, "c": 2})
    made = Prism(epsilon=100, delta=1e-9, allow_weak=True).fit(table).sample(3_000, seed=0)
    for clique in [("a",), ("a", "b"), ("a", "c"), ("b", "c"), ("a", "b", "c")]:
        assert distance(table, made, clique) < 0.02
    constant = TABLES["constant"]()
    made = Prism(epsilon=100, delta=1e-9, allow_weak=True).fit(constant).sample(500, seed=0)
    assert (made["a"] == 0).all()
    assert (made["b"] == 4).all()


def test_the_domain_is_the_schemas_whatever_was_merged() -> None:
    """Merged values come back: none of 40 that together have half of the records is lost."""
    rng = np.random.default_rng(0)
    codes = np.where(rng.random(4_000) < 0.5, 0, rng.integers(1, 41, 4_000))
    domain = Domain({"a": 41, "b": 2})
    table = Records({"a": codes, "b": rng.integers(2, size=4_000)}, domain)
    made = Prism(epsilon=0.3, delta=1e-9).fit(table).sample(4_000, seed=0)
    assert (made["a"] > 0).mean() == pytest.approx(0.5, abs=0.15)
    assert np.unique(made["a"]).size > 15


@pytest.mark.parametrize("ordinal", [[], ["c", "e"]])
def test_buckets_of_merged_values_are_buckets_of_the_schemas_values(ordinal: list[str]) -> None:
    """Counting merged values in buckets is counting the values in what the transcript says."""
    table = records_of()
    desk = Desk(table, Ledger(Budget(rho=1e9), noise=TestNoise(0)))
    one_ways = desk.measure([(name,) for name in DOMAIN], sigma=0.01)
    noisy = [replace(one_way, sigma=50.0) for one_way in one_ways]
    merge = merge_rare(noisy, table.domain, ordinal=ordinal, vanish=False)
    buckets = {name: np.arange(merge.domain[name]) // 3 for name in ("c", "d")}
    assert merge.domain["e"] < DOMAIN["e"]
    (counted,) = desk.merged(merge).measure([Query(("c", "d", "e", "f"), buckets)], sigma=0.01)
    shown = desk.transcript.measurements[-1]
    assert set(shown.buckets) == {"c", "d", "e"}
    np.testing.assert_array_equal(counted.values, count_in_buckets(table, shown))
