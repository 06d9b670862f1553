"""Choices of single cells, and of tables by their largest cell: sensitivity and odds by enumerating neighbours."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from chicle import Budget, BudgetExceeded, Clique, Desk, DomainError, InfeasibleError, Ledger, ParameterError, Query
from chicle.counting.countable import UNITS, Countable
from chicle.domain import Domain
from chicle.measurements.cells import Cells, deviations, largest
from chicle.privacy import ExponentialEvent, TestNoise, calibrate_choice
from chicle.query import QueryLike, as_query
from tests.privacy.test_choices import all_tables, expected
from tests.privacy.test_noise import SIGNIFICANCE
from tests.privacy.test_scores import Rows, neighbours, table_of

DOMAIN = {"a": 2, "b": 2, "c": 3}
CLIQUES: list[Clique] = [("a",), ("c", "a"), ("a", "b", "c")]
TOTAL = 2 + 6 + 12
GIVEN: dict[str, Any] = {"threads": None, "memory_limit": 2**30}

Ints = npt.NDArray[np.int64]


def off(rows: Rows, k: int = 1) -> Ints:
    return deviations(table_of(rows, DOMAIN, k), CLIQUES, expected, **GIVEN)


def test_a_cell_is_a_query_and_back() -> None:
    cells = Cells(CLIQUES, Domain(DOMAIN))
    table = table_of(((0, 0, 0), (1, 1, 2), (1, 0, 2)), DOMAIN)
    counted = np.concatenate([counts.ravel() for counts in table.count(CLIQUES)])
    assert len(cells) == TOTAL
    for place in range(TOTAL):
        query = cells.query(place)
        assert cells.place(query) == place
        assert cells.place(Query((), where=dict(reversed(list(query.where.items()))))) == place
        assert table.count([query])[0] == counted[place]
    gone = [cells.query(place) for place in (0, 7, 19)]
    assert cells.others(gone).tolist() == [i for i in range(TOTAL) if i not in (0, 7, 19)]
    with pytest.raises(DomainError, match="in none of the cliques"):
        cells.place(Query((), where={"b": 0}))
    with pytest.raises(ParameterError, match="occurs twice"):
        Cells([("a", "b"), ("b", "a")], Domain(DOMAIN))
    with pytest.raises(InfeasibleError, match="measure whole tables"):
        Cells([("a", "b")], Domain({"a": 2**15, "b": 2**15}))


def test_deviations_are_those_of_the_counts() -> None:
    rows: Rows = ((0, 0, 0), (1, 1, 2), (1, 0, 2))
    counts = table_of(rows, DOMAIN).count(CLIQUES)
    tables = [count - np.rint(model * UNITS) / UNITS for count, model in zip(counts, expected(CLIQUES), strict=True)]
    np.testing.assert_array_equal(off(rows) / UNITS, np.concatenate([table.ravel() for table in tables]))
    most = largest(table_of(rows, DOMAIN), CLIQUES, expected, **GIVEN)
    np.testing.assert_array_equal(most / UNITS, [np.abs(table).max() for table in tables])


@pytest.mark.parametrize("k", [1, 2])
def test_a_person_moves_a_cell_and_the_largest_cell_by_at_most_k(k: int) -> None:
    """Every neighbour of every table of at most three rows; some neighbour attains the bound, in every cell."""
    cells = {rows: off(rows) for rows in all_tables(3)}
    tops = {rows: largest(table_of(rows, DOMAIN), CLIQUES, expected, **GIVEN) for rows in all_tables(3)}
    moves = np.array([np.abs(cells[x] - cells[y]) for x, y in neighbours(cells, k)])
    assert moves.max(axis=0).tolist() == [k * UNITS] * TOTAL
    above = np.array([np.abs(tops[x] - tops[y]) for x, y in neighbours(tops, k)])
    assert above.max() == k * UNITS


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("signed", [False, True])
def test_the_odds_of_a_cell_stay_within_epsilon(k: int, signed: bool) -> None:
    epsilon, chances = 0.8, {}
    for rows in all_tables(3):
        scores = np.concatenate([off(rows), -off(rows)]) if signed else np.abs(off(rows))
        odds = np.exp((scores - scores.max()) * epsilon / (2 * k * UNITS))
        chances[rows] = odds / odds.sum()
    ratios = [np.log(chances[x] / chances[y]) for x, y in neighbours(chances, k)]
    widest = max(float(ratio.max() - ratio.min()) for ratio in ratios)
    assert epsilon / 4 < widest <= epsilon * (1 + 1e-9)


class Spy(TestNoise):
    """Keeps what choices are drawn from."""

    seen: list[tuple[Any, float]]

    def choose(self, gaps: npt.NDArray[np.uint64], scale: float) -> int:
        self.seen = [*getattr(self, "seen", []), (gaps, scale)]
        return super().choose(gaps, scale)


ROWS: Rows = ((0, 0, 0), (1, 1, 2), (1, 1, 2), (0, 1, 1))


@pytest.mark.parametrize("signed", [False, True])
def test_cells_are_drawn_from_their_deviations(signed: bool) -> None:
    noise = Spy(2)
    ledger = Ledger(Budget(rho=1), noise=noise)
    desk = Desk(table_of(ROWS, DOMAIN, 3), ledger)
    gone = Cells(CLIQUES, desk.domain).query(4)
    choices = desk.choose_cells(CLIQUES, expected, rho=0.5, number=3, repeats=False, signed=signed, without=[gone])
    left = np.delete(off(ROWS, 3), 4)
    scores = np.stack([left, -left], axis=1).ravel() if signed else np.abs(left)
    (gaps, scale), *_ = noise.seen
    np.testing.assert_array_equal(gaps, (scores.max() - scores).astype(np.uint64))
    epsilon = calibrate_choice(0.5 / 3, accounting="zcdp")
    assert scale == pytest.approx(2 * 3 * UNITS / epsilon)
    signs = 2 if signed else 1
    assert [len(gaps) for gaps, _ in noise.seen] == [19 * signs, 18 * signs, 17 * signs]
    assert len({as_query(choice.query).key for choice in choices}) == 3
    assert all((choice.sign != 0) is signed for choice in choices)
    assert gone.key not in {as_query(choice.query).key for choice in choices}
    assert desk.transcript.choices == tuple(choices)
    assert ledger.events == tuple(
        ExponentialEvent(purpose="choice of a cell", epsilon=epsilon, values=many * signs) for many in (19, 18, 17)
    )
    assert 0.5 * (1 - 1e-9) <= ledger.spent <= 0.5


@pytest.mark.parametrize("signed", [False, True])
def test_cells_follow_their_probabilities(signed: bool) -> None:
    """Through the whole of `Desk.choose_cells`, with its signs."""
    table, epsilon, draws = table_of(ROWS, DOMAIN, 2), 2.0, 4_000
    exact = off(ROWS, 2) / UNITS
    scores = np.stack([exact, -exact], axis=1) if signed else np.abs(exact)[:, None]
    odds = np.exp(epsilon * scores / (2 * 2))
    cells = Cells(CLIQUES, table.domain)
    desk = Desk(table, Ledger(Budget(rho=1e6), noise=TestNoise(5)))
    found = np.zeros(odds.shape)
    for choice in desk.choose_cells(CLIQUES, expected, epsilon=epsilon, number=draws, signed=signed):
        found[cells.place(as_query(choice.query)), int(choice.sign < 0)] += 1
        assert (choice.sign in (-1, 1)) is signed
    assert stats.chisquare(found.ravel(), (draws * odds / odds.sum()).ravel()).pvalue > SIGNIFICANCE


def test_a_table_is_chosen_by_its_largest_cell() -> None:
    noise = Spy(1)
    desk = Desk(table_of(ROWS, DOMAIN, 2), Ledger(Budget(rho=1), noise=noise))
    desk.choose(CLIQUES, expected, epsilon=0.5, distance="max")
    most = largest(table_of(ROWS, DOMAIN), CLIQUES, expected, **GIVEN)
    ((gaps, scale),) = noise.seen
    np.testing.assert_allclose(gaps / scale, (most.max() - most) * 0.5 / (2 * 2 * UNITS))


def test_bad_input_costs_nothing() -> None:
    ledger = Ledger(Budget(rho=0.01))
    desk = Desk(table_of(((0, 0, 0),), DOMAIN), ledger)

    def bad(value: float) -> Any:
        return lambda cliques: [table * 0 + value for table in expected(cliques)]

    for value in (-1.0, math.nan, math.inf, 2.0**40):
        with pytest.raises(ParameterError, match="from 0 to 2\\^35"):
            desk.choose_cells(CLIQUES, bad(value), epsilon=0.1)
        with pytest.raises(ParameterError, match="from 0 to 2\\^35"):
            desk.choose(CLIQUES, bad(value), epsilon=0.1, distance="max")
    with pytest.raises(ParameterError, match="distance must be one of"):
        desk.choose(CLIQUES, expected, epsilon=0.1, distance="l2")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="needs either rho or epsilon"):
        desk.choose_cells(CLIQUES, expected)
    with pytest.raises(ParameterError, match="number must be"):
        desk.choose_cells(CLIQUES, expected, rho=0.001, number=0)
    with pytest.raises(ParameterError, match="20 cells to choose from, too few for 21 choices"):
        desk.choose_cells(CLIQUES, expected, epsilon=1e-5, number=21, repeats=False)
    every = [Cells(CLIQUES, desk.domain).query(place) for place in range(TOTAL)]
    with pytest.raises(ParameterError, match="too few"):
        desk.choose_cells(CLIQUES, expected, epsilon=0.1, without=every)
    with pytest.raises(BudgetExceeded):
        desk.choose_cells(CLIQUES, expected, epsilon=0.2, number=3)
    assert not ledger.events
    assert len(desk.transcript) == 0


def test_tables_are_compared_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many cells are compared at a time, the deviations are the same; and each group is asked for once."""
    asked: list[int] = []

    def counts(queries: Sequence[QueryLike]) -> list[Any]:
        asked.append(len(queries))
        return expected(queries)

    table: Countable = table_of(ROWS, DOMAIN)
    once = deviations(table, CLIQUES, counts, **GIVEN)
    monkeypatch.setattr("chicle.measurements.cells._AT_ONCE", 8)
    np.testing.assert_array_equal(deviations(table, CLIQUES, counts, **GIVEN), once)
    assert asked == [3, 2, 1]
