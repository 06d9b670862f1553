"""`Desk.score` by any public model and `Desk.choose`: sensitivity and odds by enumerating neighbours."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp
from scipy import stats

import chicle
from chicle import (
    Budget,
    BudgetExceeded,
    ChicleError,
    Clique,
    Desk,
    DomainError,
    InfeasibleError,
    Ledger,
    ParameterError,
    PrivacyError,
    Records,
)
from chicle.counting.countable import UNITS, Cached, Countable, View
from chicle.measurements.scores import WEIGHTS, Choice, whole_weights
from chicle.privacy import ExponentialEvent, GaussianEvent, TestNoise, accounting, calibrate_choice, exponential
from chicle.privacy.noise import MAX_SCALE
from chicle.privacy.primitives import release_choice
from chicle.query import Functional, Query, QueryLike, as_query
from tests.privacy.test_noise import SIGNIFICANCE
from tests.privacy.test_scores import Rows, neighbours, table_of
from tests.strategies import naive_count, records

Floats = npt.NDArray[np.float64]
DOMAIN = {"a": 2, "b": 2, "c": 3}
CLIQUES: list[Clique] = [("a",), ("c", "a"), ("a", "b", "c")]


def expected(queries: Sequence[QueryLike], seed: int = 0) -> list[Floats]:
    """Any tables will do: whatever the model, the sensitivity is the same."""
    cliques = [as_query(asked).clique for asked in queries]
    return [
        np.random.default_rng([seed, *map(ord, "".join(clique))]).exponential(
            size=tuple(DOMAIN[name] for name in clique)
        )
        for clique in cliques
    ]


def distances(table: Countable, cliques: Sequence[Clique], tables: Sequence[Floats], threads: int | None = None) -> Any:
    """The exact distances, in units, from a table for each clique."""
    known = dict(zip(cliques, tables, strict=True))
    return table.distances(cliques, lambda some: [known[as_query(asked).clique] for asked in some], threads=threads)


def all_tables(most: int) -> list[Rows]:
    from itertools import combinations_with_replacement, product

    cells = list(product(*(range(size) for size in DOMAIN.values())))
    return [rows for size in range(most + 1) for rows in combinations_with_replacement(cells, size)]


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_person_moves_a_distance_by_exactly_k(k: int, seed: int) -> None:
    scores = {rows: distances(table_of(rows, DOMAIN), CLIQUES, expected(CLIQUES, seed)) for rows in all_tables(3)}
    moves = [np.abs(scores[x] - scores[y]) for x, y in neighbours(scores, k)]
    assert np.max(moves, axis=0).tolist() == [k * UNITS] * len(CLIQUES)
    ledger = Ledger(Budget(rho=1))
    Desk(table_of(((0, 0, 0),), DOMAIN, k), ledger).score(CLIQUES, expected, rho=0.5)
    (event,) = ledger.events
    assert isinstance(event, GaussianEvent)
    most = max(float(np.linalg.norm(move)) for move in moves)
    assert most <= event.l2_sensitivity == pytest.approx(most, rel=1e-4)
    assert 0.5 * (1 - 1e-9) <= ledger.spent <= 0.5


@pytest.mark.parametrize("k", [1, 2])
def test_the_odds_of_a_choice_stay_within_its_epsilon(k: int) -> None:
    """The exact probabilities, for every pair of neighbours: and log ratios lie in an interval of length epsilon."""
    epsilon, weights, penalties = 0.8, [3.0, 2.0, 1.0], [0.5, 1.0, 2.0]
    whole = whole_weights(weights)
    cost = (np.array(penalties) * UNITS).astype(np.int64)
    scale = 2 * int(whole.max()) * k * UNITS / epsilon
    chances = {}
    for rows in all_tables(3):
        scores = whole * (distances(table_of(rows, DOMAIN), CLIQUES, expected(CLIQUES)) - cost)
        odds = np.exp((scores - scores.max()) / scale)
        chances[rows] = odds / odds.sum()
    widest = 0.0
    for x, y in neighbours(chances, k):
        ratios = np.log(chances[x] / chances[y])
        widest = max(widest, float(ratios.max() - ratios.min()))
    assert epsilon / 4 < widest <= epsilon * (1 + 1e-9)


class Spy(TestNoise):
    """Keeps what a choice is drawn from."""

    def choose(self, gaps: npt.NDArray[np.uint64], scale: float) -> int:
        self.seen = gaps, scale
        return super().choose(gaps, scale)


def test_a_choice_is_drawn_from_the_scores_that_the_paper_gives() -> None:
    table = table_of(((0, 0, 0), (1, 1, 2), (1, 1, 2)), DOMAIN, 3)
    noise = Spy(1)
    ledger = Ledger(Budget(rho=1), noise=noise)
    weights, penalties = [2.0, 4.0, 1.0], [0.25, 1.0, 3.5]
    choice = Desk(table, ledger).choose(CLIQUES, expected, epsilon=0.5, weights=weights, penalties=penalties)
    assert isinstance(choice, Choice)
    assert choice.clique in CLIQUES
    assert (choice.epsilon, choice.among) == (0.5, 3)
    off = [
        float(np.abs(counts - np.rint(UNITS * model) / UNITS).sum())
        for counts, model in zip(chicle.count(table, CLIQUES), expected(CLIQUES), strict=True)
    ]
    scores = np.array([w * WEIGHTS / 4 * (d - p) for w, d, p in zip(weights, off, penalties, strict=True)])
    gaps, scale = noise.seen
    np.testing.assert_allclose(gaps / UNITS, scores.max() - scores, atol=1e-3)
    assert scale / UNITS == pytest.approx(2 * 3 * WEIGHTS / 0.5)
    (event,) = ledger.events
    assert event == ExponentialEvent(purpose="choice of a marginal", epsilon=0.5, values=3)


def test_a_choice_follows_its_probabilities() -> None:
    scores, draws = [10, 7, 0, 9], 20_000
    noise, budget = TestNoise(3), Budget(rho=1)
    found = [exponential(scores, sensitivity=2, epsilon=1.0, ledger=Ledger(budget, noise=noise)) for _ in range(draws)]
    odds = np.exp(np.array(scores) / 4)
    assert stats.chisquare(np.bincount(found), draws * odds / odds.sum()).pvalue > SIGNIFICANCE


def test_a_choice_with_a_rule_is_one_among_those_that_keep_it() -> None:
    """Also where what breaks the rule scores most, and the rule is asked of all only where one choice broke it."""
    scores, keep, draws = np.array([10, 17, 0, 9, 16]), [True, False, True, True, False], 20_000
    event = ExponentialEvent(purpose="test", epsilon=1.0, values=5)
    noise, asked = TestNoise(4), list[int]()

    def keeps(places: Sequence[int]) -> list[bool]:
        asked.append(len(places))
        return [keep[place] for place in places]

    found = [release_choice(scores, 2, event, Ledger(Budget(rho=1), noise=noise), keeps) for _ in range(draws)]
    odds = np.exp(scores / 4) * keep
    assert set(found) == {0, 2, 3}
    assert (
        stats.chisquare(np.bincount(found, minlength=5)[keep], (draws * odds / odds.sum())[keep]).pvalue > SIGNIFICANCE
    )
    assert set(asked) == {1, 5}
    assert asked.count(1) == draws
    ledger = Ledger(Budget(rho=1))
    release_choice(scores, 2, event, ledger, keeps)
    assert ledger.events == (event,), "two draws are one release"
    with pytest.raises(PrivacyError, match="a candidate that keeps its rule"):
        release_choice(scores, 2, event, ledger, lambda places: [False] * len(places))


def test_only_a_clique_that_keeps_the_rule_is_chosen() -> None:
    table = table_of(((0, 0, 0), (1, 1, 2), (1, 1, 2)), DOMAIN, 1)
    for fitting in CLIQUES:
        choice = Desk(table, Ledger(Budget(rho=1))).choose(
            CLIQUES,
            expected,
            epsilon=0.1,
            keeps=lambda cliques: [clique == fitting for clique in cliques],  # noqa: B023 - asked here and now
        )
        assert choice.clique == fitting


def test_a_choice_follows_the_probabilities_of_its_scores() -> None:
    """Through the whole of `Desk.choose`: counts, weights, penalties, and the cached counts of later choices."""
    table = table_of(((0, 0, 0), (1, 1, 2), (1, 1, 2)) * 3, DOMAIN, 2)
    epsilon, weights, penalties, draws = 1.5, [1.0, 0.5, 0.25], [3.0, 2.0, 1.0], 6_000
    off = distances(table, CLIQUES, expected(CLIQUES)) / UNITS
    odds = np.exp(epsilon * np.array(weights) * (off - penalties) / (2 * 2))
    noise = TestNoise(5)
    found = []
    for _ in range(draws // 10):
        desk = Desk(table, Ledger(Budget(rho=1e6), noise=noise))
        for _ in range(10):
            choice = desk.choose(CLIQUES, expected, epsilon=epsilon, weights=weights, penalties=penalties)
            found.append(CLIQUES.index(choice.clique))
    assert stats.chisquare(np.bincount(found), draws * odds / odds.sum()).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("how", ["gdp", "zcdp"])
def test_a_choice_costs_the_rho_that_was_asked_for(how: Any) -> None:
    ledger = Ledger(Budget(epsilon=5, delta=1e-9, accounting=how))
    desk, rho = Desk(table_of(((0, 0, 0),), DOMAIN), ledger), ledger.remaining / 3
    choice = desk.choose(CLIQUES, expected, rho=rho)
    assert rho * (1 - 1e-9) <= ledger.spent <= rho
    assert choice.epsilon == calibrate_choice(rho, accounting=how)
    assert desk.transcript.choices == (choice,)


@pytest.mark.parametrize("sign", [1, -1])
def test_penalties_beyond_any_distance_overflow_nothing(sign: int) -> None:
    noise = Spy(0)
    table = table_of(((0, 0, 0),) * 9, DOMAIN)
    desk = Desk(table, Ledger(Budget(rho=1e6), noise=noise))
    choice = desk.choose(CLIQUES, expected, epsilon=9.0, penalties=[0.0, sign * 1e300, 0.0])
    gaps, _ = noise.seen
    assert gaps.max() < 2**62
    assert (choice.clique == CLIQUES[1]) is (sign < 0)


@pytest.mark.parametrize("sensitivity", [1, 3, 2**40 + 1, 2**60])
def test_scores_lose_digits_where_the_scale_is_too_large(sensitivity: int) -> None:
    noise = Spy(0)
    ledger = Ledger(Budget(rho=1), noise=noise)
    exponential([2**61, 0, -(2**61)], sensitivity=sensitivity, epsilon=1e-4, ledger=ledger)
    gaps, scale = noise.seen
    assert scale <= MAX_SCALE
    assert gaps[1] / scale <= 2**61 * 1e-4 / (2 * sensitivity) * (1 + 1e-9), "no more certain than it should be"


def quantile(p: Any) -> Any:
    return -mp.sqrt(2) * mp.erfinv(1 - 2 * p)


@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 0.3, 1.0, 4.0, 20.0])
def test_no_interval_of_log_ratios_is_worse_than_the_symmetric_one(epsilon: float) -> None:
    """`choice_mu` against the largest mu over all intervals, in high precision."""
    with mp.workdps(40):
        largest = mp.mpf(0)
        for part in np.linspace(0.01, 0.99, 99):
            t = mp.mpf(float(part)) * epsilon
            q = (1 - mp.exp(t - epsilon)) / (mp.exp(t) - mp.exp(t - epsilon))
            largest = max(largest, quantile(mp.exp(t) * q) - quantile(q))
        middle = 2 * quantile(1 / (1 + mp.exp(-mp.mpf(epsilon) / 2)))
        assert largest <= middle * (1 + mp.mpf(10) ** -25)
        found = accounting.choice_mu(epsilon=epsilon)
        assert middle <= found <= middle * (1 + mp.mpf(10) ** -8)
    assert accounting.choice_epsilon(mu=found) == pytest.approx(epsilon, rel=1e-8)


@pytest.mark.parametrize("how", ["gdp", "zcdp", "zcdp-basic"])
@given(rho=st.floats(1e-12, 50))
def test_a_calibrated_choice_costs_no_more_than_it_may(how: Any, rho: float) -> None:
    epsilon = calibrate_choice(rho, accounting=how)
    cost = ExponentialEvent(purpose="choice", epsilon=epsilon, values=2).rho(how)
    assert rho * (1 - 1e-9) <= cost <= rho


@given(records(), st.integers(0, 5))
def test_distances_are_those_of_the_counts(table: Records, seed: int) -> None:
    names = list(table.domain)
    cliques: list[Clique] = [(), *((name,) for name in names), *combinations(reversed(names), 2)]
    cliques = [clique for clique in cliques if table.domain.cells(clique) < 10_000]
    rng = np.random.default_rng(seed)
    references = [rng.integers(0, 5, table.domain.shape(clique)) / 4 for clique in cliques]
    off = [
        round(float(np.abs(naive_count(table, clique) - reference).sum()) * UNITS)
        for clique, reference in zip(cliques, references, strict=True)
    ]
    assert distances(table, cliques, references).tolist() == off
    # And where rows are not at hand, so that tables are counted first.
    elsewhere = View(table, {name: (name, None) for name in names}, table.domain)
    assert distances(elsewhere, cliques, references).tolist() == off
    # And where counts are kept: none, some, all.
    for room, base in ((1, table), (400, table), (400, elsewhere), (2**28, elsewhere)):
        kept = Cached(base, room).keep(cliques).keep(cliques)
        assert 8 * sum(table.domain.cells(clique) for clique in kept.kept) <= room
        assert (len(kept.kept) == len(cliques)) or room < 2**28
        assert distances(kept, cliques, references).tolist() == off
        for clique, counts in zip(cliques, chicle.count(kept, cliques), strict=True):
            np.testing.assert_array_equal(counts, naive_count(table, clique))


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_threads_change_nothing(threads: int) -> None:
    census = chicle.datasets.census(5_000, d=7)
    triples = [triple for triple in combinations(census.domain, 3) if census.domain.cells(triple) < 50_000]
    even = [np.full(census.domain.shape(t), 5_000 / census.domain.cells(t)) for t in triples]
    one = distances(census, triples, even, 1)
    np.testing.assert_array_equal(distances(census, triples, even, threads), one)


def test_bad_input_costs_nothing() -> None:
    table = table_of(((0, 0, 0),), DOMAIN)
    ledger = Ledger(Budget(rho=0.01))
    desk = Desk(table, ledger)
    with pytest.raises(ParameterError, match="at least one clique"):
        desk.choose([], expected, epsilon=0.1)
    for short in ({"weights": [1.0]}, {"penalties": [0.0]}):
        with pytest.raises(ParameterError, match="a weight and a penalty"):
            desk.choose(CLIQUES, expected, epsilon=0.1, **short)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="not negative"):
        desk.choose(CLIQUES, lambda cliques: [-t for t in expected(cliques)], epsilon=0.1)
    with pytest.raises(DomainError, match="need as many expected tables"):
        desk.score(CLIQUES, lambda cliques: expected(cliques)[:1], rho=0.001)
    with pytest.raises(DomainError, match="for each of its cells"):
        desk.score([("a", "c")], lambda cliques: [table.T for table in expected(cliques)], rho=0.001)
    with pytest.raises(DomainError, match="leave the functional"):
        desk.score([Query(("a",), functional=Functional(np.ones((1, DOMAIN["a"]), int)))], expected, rho=0.001)
    with pytest.raises(BudgetExceeded):
        desk.choose(CLIQUES, expected, epsilon=9.0)
    with pytest.raises(BudgetExceeded):
        desk.choose(CLIQUES, expected, rho=0.02)
    costs: list[dict[str, Any]] = [{}, {"rho": 0.001, "epsilon": 0.1}]
    for cost in costs:
        with pytest.raises(ParameterError, match="needs either rho or epsilon"):
            desk.choose(CLIQUES, expected, **cost)
    costs = [{"rho": 0.0}, {"rho": math.nan}, {"epsilon": 0.0}, {"epsilon": math.inf}, {"epsilon": "1"}]
    for cost in costs:
        with pytest.raises(PrivacyError):
            desk.choose(CLIQUES, expected, **cost)
    with pytest.raises(InfeasibleError):
        Desk(table, ledger).score(CLIQUES, expected, rho=0.001, memory_limit=8)
    with pytest.raises(ChicleError):
        desk.choose([("a", "z")], expected, epsilon=0.1)
    for wrong in (0, 1.5, "1", math.nan):
        with pytest.raises(ParameterError, match="sensitivity"):
            exponential([1, 2], sensitivity=wrong, epsilon=0.1, ledger=ledger)  # type: ignore[arg-type]
    with pytest.raises(PrivacyError, match="too small for an exact choice"):
        exponential([1, 2], sensitivity=7, epsilon=1e-14, ledger=ledger)
    for weight in (math.inf, math.nan):
        with pytest.raises(ParameterError, match="finite"):
            desk.choose(CLIQUES, expected, epsilon=0.1, weights=[1.0, weight, 1.0])
        with pytest.raises(ParameterError, match="finite"):
            desk.choose(CLIQUES, expected, epsilon=0.1, penalties=[1.0, weight, 1.0])
    with pytest.raises(PrivacyError, match="at least one candidate"):
        exponential(np.empty(0, dtype=int), sensitivity=1, epsilon=0.1, ledger=ledger)
    assert not ledger.events
    assert len(desk.transcript) == 0
    assert desk.score([], expected, rho=0.001).cliques == ()
    assert math.isclose(ledger.spent, 0)
