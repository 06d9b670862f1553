import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import chicle
from chicle import Domain, DomainError, InfeasibleError, Measurement, ParameterError, Records
from chicle.models.gum import DECAYS, Gum, onto_total
from chicle.models.mcf import mcf
from tests.strategies import cliques_of, records

FIGURE_3 = Records(
    {"income": [1, 1, 1, 1, 1], "gender": [0, 0, 0, 0, 1], "age": [0, 1, 1, 0, 2]}, {"income": 2, "gender": 2, "age": 3}
)


def targets_of(table: Records, cliques: list[tuple[str, ...]]) -> list[Measurement]:
    return [Measurement(c, v, 1.0) for c, v in zip(cliques, chicle.count(table, cliques), strict=True)]


def rows(table: Records) -> list[tuple[int, ...]]:
    return list(zip(*(table[name].tolist() for name in table), strict=True))


def same(a: Records, b: Records) -> bool:
    return all(np.array_equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("seed", range(20))
def test_figure_3_of_the_paper(seed: int) -> None:
    """With alpha 2 (so beta 0.5), two of four high-earning men go: one for a copy of v5, one keeps its age."""
    target = Measurement(("income", "gender"), np.array([[0, 0], [1, 4]]), 1.0)
    after = chicle.gum([target], FIGURE_3.domain, start=FIGURE_3, passes=1, alpha=2.0, duplicate=0.5, seed=seed)
    assert chicle.count(after, [target.clique])[0].tolist() == [[0, 0], [2, 3]]
    women = sorted(age for _, gender, age in rows(after) if gender == 1)
    men = sorted(age for _, gender, age in rows(after) if gender == 0)
    assert women in ([0, 2, 2], [1, 2, 2]), "v5, its copy, and a man rewritten with his age kept"
    kept = women[0]
    assert all(age in (0, 1) for age in men)
    assert men.count(kept) <= 1


def test_figure_2_of_the_paper() -> None:
    """From (0.3, 0.3, 0.4) to (0.5, 0.2, 0.3): a third of the adults and a quarter of the elderly become teenagers."""
    domain = {"age": 3, "row": 100}
    start = Records({"age": [0] * 30 + [1] * 30 + [2] * 40, "row": np.arange(100)}, domain)
    after = mcf([Measurement(("age",), np.array([50, 20, 30]), 1.0)], domain, start=start, passes=1, seed=0)
    moved = [(int(a), int(b)) for a, b in zip(start["age"], after["age"], strict=True) if a != b]
    assert sorted(moved) == [(1, 0)] * 10 + [(2, 0)] * 10
    assert np.array_equal(after["row"], start["row"]), "nothing else is touched"


@given(st.data(), records(max_rows=60))
def test_a_flow_changes_as_few_attributes_as_an_assignment(data: st.DataObject, table: Records) -> None:
    clique = data.draw(st.lists(st.sampled_from(list(table.domain)), min_size=1, max_size=3, unique=True).map(tuple))
    if table.domain.cells(clique) > 2**16:
        return
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    wanted = Records({name: table[name][rng.permutation(len(table))] for name in table}, table.domain)
    (target,) = targets_of(wanted, [clique])
    after = mcf([target], table.domain, start=table, passes=1, seed=1)
    np.testing.assert_array_equal(chicle.count(after, [clique])[0], target.values)
    before, goal = (np.stack([t[name].astype(int) for name in clique], axis=1) for t in (table, wanted))
    costs = (before[:, None, :] != goal[None, :, :]).sum(axis=2)
    cheapest = costs[linear_sum_assignment(costs)].sum()
    assert sum(int((after[name] != table[name]).sum()) for name in table) == cheapest


@given(st.data(), records(), st.sampled_from(["published", "tuned"]), st.integers(0, 5))
def test_records_stay_records(data: st.DataObject, table: Records, variant: Any, passes: int) -> None:
    cliques = data.draw(cliques_of(table.domain).filter(bool))
    other = {name: np.roll(table[name], i) for i, name in enumerate(table)}
    update = Gum(targets_of(table, cliques), table.domain, start=Records(other, table.domain), variant=variant, seed=3)
    after = update.run(passes).records()
    assert len(after) == len(table)
    assert len(update.trace) == passes + 1
    counts = chicle.count(after, cliques)
    errors = [
        np.abs(made - target.values).sum() / max(len(table), 1)
        for made, target in zip(counts, targets_of(table, cliques), strict=True)
    ]
    assert update.trace[-1] == pytest.approx(float(np.mean(errors)), abs=1e-9), "the trace ends with the true error"


@pytest.fixture(scope="module")
def people() -> tuple[Records, list[Measurement]]:
    census = chicle.datasets.census(20_000, d=12)
    return census, targets_of(census, chicle.pairs(census.domain))


@pytest.mark.parametrize("variant", ["published", "tuned"])
@pytest.mark.parametrize("order", ["worst-first", "strongest-first", "random", "given"])
def test_the_result_is_the_same_for_any_number_of_threads(
    people: tuple[Records, list[Measurement]], variant: Any, order: Any
) -> None:
    _, targets = people
    domain = people[0].domain
    make = [Gum(targets, domain, 5_000, variant=variant, order=order, seed=7, threads=t).run(3) for t in (1, 2, 8)]
    one, two, eight = (run.records() for run in make)
    assert make[0].trace == make[1].trace == make[2].trace
    assert same(one, two)
    assert same(one, eight)
    assert not same(one, chicle.gum(targets, domain, 5_000, variant=variant, order=order, seed=8, passes=3))


@pytest.mark.parametrize(("others", "limit"), [(1, 0.01), (30, 0.03)], ids=["a star", "all pairs"])
def test_many_targets_of_an_attribute_do_not_undo_each_other(others: int, limit: float) -> None:
    """All follow one hidden value; rewriting whichever attribute of a pair leaves errors of .35 and .11."""
    rng = np.random.default_rng(0)
    n, d = 10_000, 30
    follows = rng.random((n, d)) < np.linspace(0.3, 0.9, d)
    codes = np.where(follows, rng.integers(4, size=(n, 1)), rng.integers(4, size=(n, d)))
    table = Records({f"x{i}": codes[:, i] for i in range(d)}, {f"x{i}": 4 for i in range(d)})
    hubs = list(table.domain)[-others:]
    targets = targets_of(table, [pair for pair in chicle.pairs(table.domain) if pair[1] in hubs])
    assert Gum(targets, table.domain, variant="tuned", seed=0).run(10).trace[-1] < limit


@pytest.mark.parametrize("decay", DECAYS)
def test_every_decay_comes_closer(people: tuple[Records, list[Measurement]], decay: Any) -> None:
    census, targets = people
    update = Gum(targets, census.domain, decay=decay, seed=0).run(11)
    assert update.trace[-1] < 0.6 * update.trace[0]
    factors = [DECAYS[decay](t) for t in range(101)]
    assert factors[0] == 1
    assert all(a >= b for a, b in pairwise(factors))
    assert decay == "constant" or factors[100] == pytest.approx(0.84**5, abs=0.01)


def test_progress_and_going_on(people: tuple[Records, list[Measurement]]) -> None:
    census, targets = people
    told: list[tuple[int, float]] = []
    update = Gum(targets, census.domain, 3_000, seed=0)
    update.run(2, progress=lambda number, error: told.append((number, error)))
    update.run(1, progress=lambda number, error: told.append((number, error)))
    assert told == list(enumerate(update.trace[:-1], start=1))
    assert same(update.records(), chicle.gum(targets, census.domain, 3_000, seed=0, passes=3))
    assert update.errors.mean() == pytest.approx(update.trace[-1])


def test_ctrl_c_between_passes_leaves_whole_records(people: tuple[Records, list[Measurement]]) -> None:
    census, targets = people
    update = Gum(targets, census.domain, 3_000, seed=0)

    def stop(number: int, _: float) -> None:
        if number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        update.run(100, progress=stop)
    assert len(update.trace) == 3
    assert len(update.records()) == 3_000


def test_the_start_is_left_alone(people: tuple[Records, list[Measurement]]) -> None:
    census, targets = people
    start = chicle.datasets.census(500, d=12, seed=5)
    before = rows(start)
    after = chicle.gum(targets, census.domain, start=start, passes=2, seed=0)
    assert rows(start) == before
    assert len(after) == 500
    assert rows(after) != before


@pytest.mark.parametrize("make", [chicle.gum, mcf])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_tiny_tables(make: Callable[..., Records], n: int) -> None:
    domain = {"a": 3, "constant": 1, "b": 70_000}
    targets = [
        Measurement(("a", "constant"), np.array([[0.0], [5.0], [0.0]]), 1.0),
        Measurement(("b",), np.eye(1, 70_000, 69_999)[0], 1.0),
        Measurement((), np.array(5.0), 1.0),
    ]
    table = make(targets, domain, n, passes=3, seed=0)
    assert rows(table) == [(1, 0, 69_999)] * n


def test_one_attribute() -> None:
    table = chicle.gum([Measurement(("a",), np.array([3.5, 0.5, 6.0]), 1.0)], {"a": 3}, seed=0, passes=3)
    counts = chicle.count(table, [("a",)])[0]
    assert counts.sum() == 10
    np.testing.assert_allclose(counts, [3.5, 0.5, 6.0], atol=1)


def test_targets_are_clipped_and_scaled() -> None:
    assert onto_total(np.array([-5.0, 1.0, 3.0]), 8).tolist() == [0, 2, 6]
    assert onto_total(np.array([-5.0, 0.0]), 8).tolist() == [4, 4]
    assert onto_total(np.array([2.0**53, 2.0**53]), 8).tolist() == [4, 4]
    uneven = [Measurement(("a",), np.array([-7, 30, 10]), 1.0), Measurement(("b",), np.array([100, 300]), 1.0)]
    counts = chicle.count(chicle.gum(uneven, {"a": 3, "b": 2}, 80, passes=5, seed=0), [("a",), ("b",)])
    assert [c.tolist() for c in counts] == [[0, 60, 20], [20, 60]]


def test_n_is_the_total_of_the_targets() -> None:
    values = [Measurement(("a",), np.array([60, 40]), 10.0), Measurement(("a",), np.array([100, 100]), 1.0)]
    assert len(chicle.gum(values, {"a": 2}, passes=0)) == 199, "by inverse variance"
    assert len(chicle.gum([*values, Measurement(("a",), np.array([5, 2]), 0.0)], {"a": 2}, passes=0)) == 7, "exact wins"


A = Measurement(("a",), np.array([1.0, 2.0]), 1.0)
AB = Domain({"a": 2, "b": 2})


@pytest.mark.parametrize("make", [chicle.gum, mcf])
@pytest.mark.parametrize(
    ("targets", "domain", "options", "error", "rule"),
    [
        ([], {"a": 2}, {}, DomainError, "no measurements"),
        (A, {"a": 2}, {}, DomainError, "list of Measurements"),
        ([A], {"a": 3}, {}, DomainError, r"\('a',\) has another number of cells.*2 along 'a', which has 3"),
        ([A], {"z": 2}, {}, DomainError, "'a' is not an attribute"),
        ([A], AB, {}, DomainError, "'b' is in no target"),
        ([Measurement(("a",), np.array([1.0, np.nan]), 1.0)], {"a": 2}, {}, DomainError, "no finite count"),
        ([Measurement(("a",), np.array([1.0, -np.inf]), 1.0)], {"a": 2}, {}, DomainError, "no finite count"),
        ([Measurement(("a",), np.array([1.0, 2.0]), -1.0)], {"a": 2}, {}, DomainError, "sigma"),
        ([A], {"a": 2}, {"n": -1}, ParameterError, "n must be"),
        ([A], {"a": 2}, {"n": 2**31}, InfeasibleError, "n is above"),
        ([Measurement(("a",), np.array([1e308, 1e308]), 1.0)], {"a": 2}, {}, DomainError, "no finite count"),
        ([Measurement(("a",), np.array([2.0**52, 2.0**52]), 1.0)], {"a": 2}, {}, InfeasibleError, "n is above"),
        ([A], {"a": 2}, {"n": 4, "start": Records({"a": [0]}, {"a": 2})}, ParameterError, "start has another number"),
        ([A], {"a": 2}, {"start": Records({"b": [0]}, {"b": 2})}, DomainError, "start must have the same domain"),
        ([A], {"a": 2}, {"passes": -1}, ParameterError, "passes"),
        ([A], {"a": 2}, {"seed": -1}, ParameterError, "seed"),
        ([A], {"a": 2}, {"threads": 0}, ParameterError, "threads"),
        ([A], {"a": 2}, {"order": "best"}, ParameterError, "order"),
    ],
)
def test_bad_input_is_named(*, make: Any, targets: Any, domain: Any, options: Any, error: Any, rule: str) -> None:
    with pytest.raises(error, match=rule):
        make(targets, domain, **options)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("variant", "best"), ("alpha", 0), ("alpha", float("nan")), ("decay", "fast"), ("duplicate", 1.5),
        ("duplicate", []), ("growth", "slow"), ("removal", "all"), ("pairing", "none"),
    ],
)  # fmt: skip
def test_bad_options_are_named(name: str, value: Any) -> None:
    options: dict[str, Any] = {name: value}
    with pytest.raises(ParameterError, match=name):
        chicle.gum([A], {"a": 2}, **options)


def test_a_flow_over_a_huge_table_is_refused() -> None:
    huge = Measurement(("a", "b"), np.broadcast_to(np.array(1.0), (3_000, 3_000)).copy(), 1.0)
    with pytest.raises(InfeasibleError, match="9000000 cells"):
        mcf([huge], {"a": 3_000, "b": 3_000}, 10)


def test_pairs_of_adult(shared_data: Path) -> None:
    folder = shared_data / "adult"
    adult = Records(pq.read_table(folder / "data.parquet"), json.loads((folder / "domain.json").read_text("utf-8")))
    targets = targets_of(adult, chicle.pairs(adult.domain))
    published = Gum(targets, adult.domain, seed=0).run(22)
    tuned = Gum(targets, adult.domain, variant="tuned", seed=0).run(22)
    assert min(published.trace) < 0.04
    assert min(tuned.trace) < 0.018, "after 22 of 100 passes"
