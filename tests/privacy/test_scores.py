"""`Desk.score` and `Desk.dependence`: sensitivity by enumerating neighbours, noise and cost as the theorems say."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import chicle
from chicle import (
    Budget,
    BudgetExceeded,
    Clique,
    Desk,
    DomainError,
    InfeasibleError,
    Ledger,
    Measurement,
    Query,
    Records,
)
from chicle.counting.countable import UNITS, Independence
from chicle.errors import ParameterError, PrivacyError
from chicle.measurements.measurement import estimate_total, onto_simplex
from chicle.measurements.scores import Scores, independence, vector_sensitivity
from chicle.privacy import GaussianEvent, TestNoise, calibrate
from chicle.selection.dense_marg import dense_marg
from chicle.selection.exact_scores import exact_indif
from tests.privacy.test_noise import SIGNIFICANCE
from tests.strategies import naive_count, records

Rows = tuple[tuple[int, ...], ...]
FORMS = ["released", "published"]


def table_of(rows: Rows, domain: dict[str, int], k: int = 1) -> Records:
    columns = np.array(rows, dtype=np.int64).reshape(len(rows), len(domain)).T
    return Records(dict(zip(domain, columns, strict=True)), domain, max_records_per_person=k)


def released(domain: dict[str, int], seed: int = 0) -> list[Measurement]:
    """Any integers will do: whatever was released, the sensitivity is the same."""
    rng = np.random.default_rng(seed)
    return [Measurement((name,), rng.integers(-1, 4, size), 1.0) for name, size in domain.items()]


def scored(
    table: Records, ledger: Ledger, form: str, one_ways: list[Measurement], *, rho: float, **options: Any
) -> Scores:
    """The scores of all pairs: from the product of released 1-ways, or as published from that of exact margins."""
    desk, pairs = Desk(table, ledger), chicle.pairs(table.domain)
    if form == "published":
        return desk.dependence(pairs, rho=rho, **options)
    return desk.score(pairs, independence(one_ways, table.domain), rho=rho, **options)


def exact_units(table: Records, one_ways: list[Measurement] | None, pairs: list[Clique] | None = None) -> Any:
    """The exact scores, in units."""
    pairs = chicle.pairs(table.domain) if pairs is None else pairs
    if one_ways is None:
        return table.dependence(pairs)
    return table.distances(pairs, independence(one_ways, table.domain))


def all_scores(domain: dict[str, int], most: int, one_ways: list[Measurement] | None) -> dict[Rows, Any]:
    """The exact scores, in units, of every table of at most so many rows."""
    cells = list(product(*(range(size) for size in domain.values())))
    scores = {}
    for size in range(most + 1):
        for rows in combinations_with_replacement(cells, size):
            scores[rows] = exact_units(table_of(rows, domain), one_ways)
    return scores


def neighbours(scores: dict[Rows, Any], k: int) -> Iterator[tuple[Rows, Rows]]:
    """Every two tables of which the larger has one person, of 1 to k rows, more."""
    for rows in scores:
        for size in range(1, min(k, len(rows)) + 1):
            for kept in set(combinations(rows, len(rows) - size)):
                yield kept, rows


@pytest.mark.parametrize("k", [1, 2, 3])
def test_lemma_4_a_person_moves_the_published_score_by_less_than_4k(k: int) -> None:
    scores = all_scores({"a": 2, "b": 3}, 7, None)
    most: dict[int, int] = {}
    for fewer, more in neighbours(scores, k):
        change = abs(int(scores[more][0]) - int(scores[fewer][0]))
        assert change <= 4 * k * UNITS
        if len(more) - len(fewer) == k:
            most[len(fewer)] = max(most.get(len(fewer), 0), change)
    # Attained as the header says, up to a unit of rounding: no constant below 4k would do for all n.
    for n in range(1, 8 - k):
        assert most[n] >= 4 * k * n * UNITS // (n + k) - 1


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_person_moves_the_released_score_by_exactly_k(k: int, seed: int) -> None:
    domain = {"a": 2, "b": 3}
    scores = all_scores(domain, 5, released(domain, seed))
    changes = {abs(int(scores[x][0]) - int(scores[y][0])) for x, y in neighbours(scores, k)}
    assert max(changes) == k * UNITS


@pytest.mark.parametrize("form", FORMS)
def test_the_vector_moves_by_at_most_what_the_event_says(form: str) -> None:
    domain = {"a": 2, "b": 2, "c": 2}
    one_ways = released(domain)
    scores = all_scores(domain, 4, one_ways if form == "released" else None)
    for k in (1, 2):
        most = max(float(np.linalg.norm(scores[x] - scores[y])) for x, y in neighbours(scores, k))
        ledger = Ledger(Budget(rho=1))
        table = table_of(((0, 0, 0),), domain, k)
        found = scored(table, ledger, form, one_ways, rho=0.5)
        (event,) = ledger.events
        assert isinstance(event, GaussianEvent)
        assert (event.values, event.clique) == (3, None)
        assert most <= event.l2_sensitivity
        if form == "released":
            assert event.l2_sensitivity == pytest.approx(sqrt(3) * k * UNITS, rel=1e-5)
            assert most == pytest.approx(event.l2_sensitivity, rel=1e-5), "and somebody attains it"
        assert event.l2_sensitivity >= sqrt(3) * k * UNITS
        assert found.sigma == event.sigma / UNITS
        assert ledger.spent == pytest.approx(0.5)
        assert ledger.spent <= 0.5


@pytest.mark.parametrize(("form", "variance"), [("published", 8), ("released", 0.5)])
@pytest.mark.parametrize("k", [1, 3])
def test_theorem_5_the_noise_has_variance_8_m_over_rho(form: str, variance: float, k: int) -> None:
    domain = dict.fromkeys("abcdefgh", 3)
    table = table_of(((0,) * 8,), domain, k)
    scores = scored(table, Ledger(Budget(rho=1)), form, released(domain), rho=0.25)
    assert len(scores.cliques) == 28
    assert scores.sigma**2 == pytest.approx(variance * 28 * k**2 / 0.25, rel=1e-6)


def test_theorem_6_a_marginal_moves_by_one_and_needs_half_the_inverse_of_rho() -> None:
    """The sensitivity is enumerated in test_desk_measure.py; this is what it costs."""
    for rho in (1e-3, 0.1, 2.0):
        assert calibrate(rho) ** 2 == pytest.approx(1 / (2 * rho))
        assert GaussianEvent(purpose="", l2_sensitivity=1, sigma=calibrate(rho), values=1).rho("zcdp") <= rho


def naive_published(table: Records, pair: Clique) -> Fraction:
    counts, n = naive_count(table, pair), len(table)
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    cells = product(range(len(rows)), range(len(columns)))
    return sum((abs(counts[i, j] - Fraction(int(rows[i] * columns[j]), n)) for i, j in cells), Fraction(0))


@given(records(max_rows=60), st.sampled_from([None, 1, 2, 8]))
def test_exact_scores_match_the_definition(table: Records, threads: int | None) -> None:
    pairs = [pair for pair in chicle.pairs(table.domain) if table.domain.cells(pair) <= 2000]
    scores = exact_indif(table, pairs=pairs, threads=threads)
    assert scores.cliques == tuple(pairs)
    for pair, value in zip(pairs, scores.values, strict=True):
        exact = naive_published(table, pair) if len(table) else Fraction(0)
        assert 0 <= exact - Fraction(value) < Fraction(1, UNITS)


@given(records(max_rows=60), st.integers(0, 2**32))
def test_released_scores_compare_with_the_released_product(table: Records, seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = {name: rng.integers(-20, 60, size) for name, size in table.domain.items()}
    one_ways = [Measurement((name,), values, 5.0) for name, values in counts.items()]
    pairs = [pair for pair in chicle.pairs(table.domain) if table.domain.cells(pair) <= 2000]
    n = estimate_total(one_ways)
    exact = exact_units(table, one_ways, pairs)
    for (a, b), units in zip(pairs, exact, strict=True):
        product_of_shares = np.outer(*(onto_simplex(counts[name], max(n, 1)) / max(n, 1) for name in (a, b)))
        score = float(np.abs(naive_count(table, (a, b)) - n * product_of_shares).sum())
        # Each cell of the reference is rounded to units.
        assert units / UNITS == pytest.approx(score, abs=(product_of_shares.size + 1) / UNITS)


def test_figure_1_of_the_paper() -> None:
    """Two genders, three ages: 0.08 of the records are where independence would not have them."""
    table = [[10, 10, 20], [10, 20, 30]]
    rows = tuple((i, j) for i in range(2) for j in range(3) for _ in range(table[i][j]))
    scores = exact_indif(table_of(rows, {"gender": 2, "age": 3}))
    assert scores.values[0] == pytest.approx(0.08 * 100, abs=1 / UNITS)


@pytest.mark.parametrize("form", FORMS)
def test_neighbours_with_the_same_noise_differ_as_their_scores_do(form: str) -> None:
    census = chicle.datasets.census(3_000, d=8)
    fewer = Records({name: census[name][1:] for name in census}, census.domain)
    one_ways = Desk(census, Ledger(Budget(rho=1e9))).measure([(name,) for name in census], sigma=3.0)
    noisy, exact = [], []
    for table in (census, fewer):
        ledger = Ledger(Budget(rho=10), noise=TestNoise(7))
        noisy.append(scored(table, ledger, form, one_ways, rho=0.1).values)
        exact.append(exact_units(table, one_ways if form == "released" else None) / UNITS)
    np.testing.assert_array_equal(noisy[0] - noisy[1], exact[0] - exact[1])
    assert 0 < np.abs(noisy[0] - noisy[1]).max() <= {"released": 1, "published": 4}[form]


def test_the_noise_has_its_sigma() -> None:
    census = chicle.datasets.census(2_000, d=40)
    exact = exact_indif(census)
    ledger = Ledger(Budget(rho=1))
    scores = scored(census, ledger, "published", [], rho=0.2)
    assert scores.protected
    assert scores.cliques == exact.cliques
    assert stats.kstest((scores.values - exact.values) / scores.sigma, "norm").pvalue > SIGNIFICANCE


@pytest.mark.parametrize("form", FORMS)
def test_a_refusal_spends_nothing(form: str) -> None:
    table = table_of(((0, 0),), {"a": 2, "b": 3})
    one_ways = released(dict(table.domain))
    ledger = Ledger(Budget(rho=0.1))
    with pytest.raises(BudgetExceeded):
        scored(table, ledger, form, one_ways, rho=0.2)
    with pytest.raises(PrivacyError, match="rho must be"):
        scored(table, ledger, form, one_ways, rho=0.0)
    with pytest.raises(InfeasibleError, match=r"\(a, b\).*48 bytes"):
        scored(table, ledger, form, one_ways, rho=0.05, memory_limit=47)
    with pytest.raises(ParameterError, match="memory_limit"):
        scored(table, ledger, form, one_ways, rho=0.05, memory_limit=0)
    assert ledger.events == ()


@pytest.mark.parametrize(
    ("pairs", "threads", "error", "rule"),
    [
        ("ab", None, DomainError, "not a string"),
        (["ab"], None, DomainError, "not a string"),
        ([("a", "z")], None, DomainError, "'z' is not an attribute"),
        ([("a", "a")], None, DomainError, "twice"),
        ([("a", "b"), ("a", "b")], None, DomainError, "occurs twice"),
        ([("a", "b"), ("b", "a")], None, DomainError, "occurs twice"),
        ([("a", "b")], 0, ParameterError, "threads"),
    ],
)
def test_bad_pairs_are_refused(pairs: Any, threads: int | None, error: type[Exception], rule: str) -> None:
    table = table_of(((0, 0),), {"a": 2, "b": 3})
    ledger = Ledger(Budget(rho=1))
    desk = Desk(table, ledger, threads=threads)
    with pytest.raises(error, match=rule):
        desk.score(pairs, independence(released(dict(table.domain)), table.domain), rho=0.1)
    with pytest.raises(error, match=f"{rule}|score of pairs"):
        desk.dependence(pairs, rho=0.1)
    assert ledger.events == ()
    assert len(desk.transcript) == 0


def test_only_pairs_have_a_published_score() -> None:
    ledger = Ledger(Budget(rho=1))
    desk = Desk(table_of(((0, 0),), {"a": 2, "b": 3}), ledger)
    for wrong in (("a",), ()):
        with pytest.raises(DomainError, match="score of pairs"):
            desk.dependence([wrong], rho=0.1)
    assert ledger.events == ()


@pytest.mark.parametrize(
    ("one_ways", "error", "rule"),
    [
        ([], ParameterError, "measure them first"),
        (released({"a": 2}), DomainError, "'b' has no 1-way measurement"),
        (released({"a": 2, "b": 4}), DomainError, "another number of cells than the domain says: 4 along 'b'"),
        (
            [*released({"a": 2}), Measurement(("b",), np.array([1.0, np.nan, 2.0]), 1.0)],
            DomainError,
            r"\('b',\) has a value that is no finite count",
        ),
        (
            [*released({"a": 2}), Measurement(("b",), np.array([1, 2, 3]), 0.0)],
            DomainError,
            r"\('b',\) has sigma 0.0; it must be above 0 and finite",
        ),
        (
            [Measurement((n,), np.full(s, 2**36), 1.0) for n, s in (("a", 2), ("b", 3))],
            ParameterError,
            r"2\^35 records",
        ),
    ],
)
def test_independence_is_made_of_whole_released_1_ways(
    one_ways: list[Measurement], error: type[Exception], rule: str
) -> None:
    with pytest.raises(error, match=rule):
        independence(one_ways, chicle.Domain({"a": 2, "b": 3}))


@pytest.mark.parametrize("shares", [{"a": 2}, {"a": 2, "b": 4}, {"a": 2, "b": 2}])
def test_an_expectation_that_does_not_fit_costs_nothing(shares: dict[str, int]) -> None:
    ledger = Ledger(Budget(rho=1))
    wrong = Independence({name: np.full(size, 1 / size) for name, size in shares.items()}, 9.0)
    with pytest.raises((chicle.ChicleError, KeyError)):
        Desk(table_of(((0, 0),), {"a": 2, "b": 3}), ledger).score([("a", "b")], wrong, rho=0.1)
    assert ledger.events == ()


def test_a_desk_knows_independence_by_what_it_has_measured() -> None:
    table = chicle.datasets.census(500, d=3)
    desk = Desk(table, Ledger(Budget(rho=10)))
    with pytest.raises(DomainError, match="no 1-way measurement"):
        desk.independence()
    first = desk.measure([(name,) for name in table], sigma=9.0)
    second = desk.measure([(name,) for name in table], sigma=3.0)
    spent = desk.spent
    found, expected = desk.independence(), independence(second, table.domain)
    assert desk.spent == spent, "free"
    assert found.total == expected.total == estimate_total(second) != estimate_total(first)
    for name in table:
        np.testing.assert_array_equal(found.shares[name], expected.shares[name])


def test_independence_of_a_group_is_its_share() -> None:
    expect = Independence({"a": np.array([0.5, 0.5]), "b": np.array([0.1, 0.2, 0.7])}, 100.0)
    (whole, group, number, coarse) = expect(
        [
            ("b", "a"),
            Query(("a",), where={"b": 1}),
            Query((), where={"b": 2}),
            Query(("b",), {"b": np.array([0, 1, 0])}),
        ]
    )
    np.testing.assert_allclose(group, whole[1])
    np.testing.assert_allclose(number, 70.0)
    np.testing.assert_allclose(coarse, [80.0, 20.0])


@pytest.mark.parametrize("records", [1, 3, 12])
@pytest.mark.parametrize("scores", [1, 2, 3, 28, 10**6])
def test_the_sensitivity_of_a_vector_is_rounded_up_and_no_smaller_integer_would_do(records: int, scores: int) -> None:
    found, square = vector_sensitivity(records, scores), scores * (records * UNITS) ** 2
    assert (found - 1) ** 2 < square <= found**2


def test_edges() -> None:
    one = Records({"a": [0, 1]}, {"a": 2})
    ledger = Ledger(Budget(rho=1))
    for form in FORMS:
        assert scored(one, ledger, form, released({"a": 2}), rho=0.1).cliques == ()
    assert ledger.events == (), "no score, no cost"
    for rows in ((), ((0, 0),)):
        table = table_of(rows, {"a": 1, "b": 70_000})
        assert exact_indif(table).values.tolist() == [0.0]
        flat = [Measurement(("a",), np.array([0]), 1.0), Measurement(("b",), np.zeros(70_000, dtype=np.int64), 1.0)]
        assert exact_units(table, flat).tolist() == [len(rows) * UNITS]


def test_exact_scores_say_what_they_are_and_are_not_taken_silently() -> None:
    table = table_of(((0, 0), (1, 1)) * 500, {"a": 2, "b": 2})
    scores = exact_indif(table)
    assert exact_indif.__doc__ is not None
    assert exact_indif.__doc__.startswith("NOT PRIVATE")
    assert repr(scores).startswith("NOT PRIVATE")
    assert not scores.protected
    with pytest.raises(PrivacyError, match="not protected by noise"):
        dense_marg(scores, table.domain, rho=1.0)
    assert dense_marg(scores, table.domain, rho=1.0, allow_unprotected=True) == [("a", "b")]
    with pytest.raises(PrivacyError, match="not protected by noise"):
        dense_marg(
            scored(table, Ledger(Budget(rho=1), noise=TestNoise(0)), "published", [], rho=1.0), table.domain, rho=1.0
        )


def test_scores_are_as_many_as_pairs_and_cannot_be_changed() -> None:
    with pytest.raises(ParameterError, match="1 cliques need as many scores"):
        Scores((("a", "b"),), np.zeros(2), 1.0, protected=True)
    scores = Scores((("a", "b"),), np.zeros(1), 1.0, protected=True)
    with pytest.raises(ValueError, match="read-only"):
        scores.values[0] = 1.0


def test_dependent_pairs_score_above_independent_ones() -> None:
    census = chicle.datasets.census(20_000, d=20)
    one_ways = Desk(census, Ledger(Budget(rho=1e3))).measure([(name,) for name in census], sigma=1.0)
    ours = scored(census, Ledger(Budget(rho=1e3)), "released", one_ways, rho=1e3)
    exact = exact_indif(census)
    # With precise 1-ways both forms tell the same: the reference then is nearly the exact product.
    assert np.abs(ours.values - exact.values).max() < 0.02 * 20_000
    assert set(np.argsort(exact.values)[-20:]) <= set(np.argsort(ours.values)[-25:])
