"""Contrasts: sensitivity by enumerating neighbours, independent noise of the right size, what the ledger is told."""

import math
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

import chicle
from chicle import Budget, BudgetExceeded, Desk, DomainError, Ledger, PrivacyError, Records
from chicle.measurements.contrasts import contrast_sensitivity, contrast_weights, contrasts_of
from chicle.measurements.merges import Merge
from chicle.privacy import GaussianEvent, TestNoise
from chicle.privacy.primitives import release_gaussian

DOMAIN = {"a": 2, "b": 3, "c": 4}
CLIQUES = [("a",), ("b",), ("c",), ("a", "b"), ("b", "c"), ("a", "b", "c")]
CELLS = list(product(*map(range, DOMAIN.values())))


def table_of(rows: Any, k: int = 1) -> Records:
    columns = np.array(rows, dtype=np.int64).reshape(-1, len(DOMAIN)).T
    return Records(dict(zip(DOMAIN, columns, strict=True)), DOMAIN, max_records_per_person=k)


def naive_contrasts(counts: Any) -> Any:
    """The oracle: the matrix of Helmert's contrasts of each axis, multiplied out."""
    found = np.asarray(counts, dtype=np.int64)
    for axis, size in enumerate(counts.shape):
        matrix = np.zeros((size - 1, size), dtype=np.int64)
        for j in range(1, size):
            matrix[j - 1, :j], matrix[j - 1, j] = 1, -j
        found = np.moveaxis(np.tensordot(matrix, found, axes=(1, axis)), 0, axis)
    return found


@pytest.mark.parametrize("shape", [(2,), (7,), (3, 4), (2, 2, 5), (2, 3, 2, 2)], ids=str)
def test_contrasts_are_those_of_the_matrix(shape: tuple[int, ...]) -> None:
    counts = np.random.default_rng(0).integers(0, 1_000, shape)
    np.testing.assert_array_equal(contrasts_of(counts), naive_contrasts(counts))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_sensitivity_is_exact(k: int) -> None:
    """Every person of up to k rows, added to several tables: weighted contrasts move as far as is said, never more."""
    rng = np.random.default_rng(k)
    persons = [p for rows in range(1, k + 1) for p in combinations_with_replacement(CELLS, rows)]
    for rows in (0, 1, 5):
        table = [CELLS[i] for i in rng.integers(len(CELLS), size=rows)]
        before = [contrasts_of(counts) for counts in table_of(table).count(CLIQUES)]
        largest = np.zeros(len(CLIQUES))
        for person in persons if k < 3 or rows == 0 else persons[::7]:
            after = [contrasts_of(counts) for counts in table_of([*table, *person]).count(CLIQUES)]
            weights = [contrast_weights(counts.shape) for counts in table_of([]).count(CLIQUES)]
            moves = [np.linalg.norm((y - x) / w) for x, y, w in zip(before, after, weights, strict=True)]
            largest = np.maximum(largest, moves)
        stated = [contrast_sensitivity([DOMAIN[name] for name in clique], k) for clique in CLIQUES]
        assert (largest <= stated).all()
        if rows == 0:
            np.testing.assert_allclose(largest, stated, rtol=1e-12)


def test_the_sensitivity_is_at_least_k_and_that_of_the_projection() -> None:
    for shape in ((2,), (2, 2, 2), (100_000,), (3, 5)):
        square = contrast_sensitivity(shape, 2) ** 2
        assert square >= 4 * (1 - 1e-12)
        projected = 4 * math.prod(1 - 1 / size for size in shape)
        assert square == pytest.approx(projected * 2 ** len(shape), rel=1e-12)


def test_the_ledger_is_told_what_is_released() -> None:
    ledger = Ledger(Budget(rho=1))
    desk = Desk(table_of(CELLS, k=3), ledger)
    desk.measure_contrasts(CLIQUES, rho=0.6, shares=[1 / 6] * 6)
    assert ledger.spent == pytest.approx(0.6)
    for event, clique, one in zip(ledger.events, CLIQUES, desk.transcript.contrasts, strict=True):
        assert isinstance(event, GaussianEvent)
        shape = [DOMAIN[name] for name in clique]
        assert (event.clique, event.values) == (clique, math.prod(size - 1 for size in shape))
        assert event.l2_sensitivity == contrast_sensitivity(shape, 3)
        assert event.sigma == one.sigma
        assert event.rho("gdp") == pytest.approx(0.1)
        assert one.protected


def test_noise_has_its_size_and_is_independent() -> None:
    """Standardised by its weights, the noise is white; every bound is over seven standard errors from its value."""
    shape, draws = (4, 5), 4_000
    weights = contrast_weights(shape)
    event = GaussianEvent(purpose="contrasts", l2_sensitivity=2.0, sigma=40.0, values=weights.size)
    ledger = Ledger(Budget(rho=1e9))
    zeros = [np.zeros(weights.shape, dtype=np.int64)] * draws
    drawn = np.stack(release_gaussian(zeros, [event] * draws, ledger, weights=[weights] * draws))
    white = (drawn / weights / event.sigma).reshape(draws, -1)
    assert np.abs(white.mean(axis=0)).max() < 7 / math.sqrt(draws)
    off = white.T @ white / draws - np.eye(weights.size)
    assert np.abs(np.diag(off)).max() < 7 * math.sqrt(2 / draws)
    assert np.abs(off - np.diag(np.diag(off))).max() < 7 / math.sqrt(draws)


def test_neighbours_with_the_same_noise_differ_as_their_contrasts_do() -> None:
    rows, newcomer = CELLS[:9], CELLS[17]
    released, exact = [], []
    for table in (table_of(rows), table_of([*rows, newcomer])):
        desk = Desk(table, Ledger(Budget(rho=1), noise=TestNoise(3)))
        made = desk.measure_contrasts(CLIQUES, rho=0.5, shares=[1 / 6] * 6)
        assert not any(one.protected for one in made)
        released.append([one.values for one in made])
        exact.append([naive_contrasts(counts) for counts in table.count(CLIQUES)])
    for mine, theirs, before, after in zip(*released, *exact, strict=True):
        np.testing.assert_array_equal(theirs - mine, after - before)


def test_what_is_refused_costs_nothing() -> None:
    ledger = Ledger(Budget(rho=1))
    table = Records({"a": [0, 1], "one": [0, 0]}, {"a": 2, "one": 1})
    desk = Desk(table, ledger)
    wrong: list[tuple[Any, list[float], type[Exception]]] = [
        ([()], [1.0], DomainError),
        ([("one",)], [1.0], DomainError),
        ([("a", "one")], [1.0], DomainError),
        ([("nobody",)], [1.0], DomainError),
        ([("a",)], [0.5, 0.5], PrivacyError),
        ([("a",)], [1.5], PrivacyError),
    ]
    for cliques, shares, error in wrong:
        with pytest.raises(error):
            desk.measure_contrasts(cliques, rho=0.5, shares=shares)
    with pytest.raises(BudgetExceeded, match="nothing was spent"):
        desk.measure_contrasts([("a",)], rho=2.0, shares=[1.0])
    merged = desk.merged(Merge(desk.domain))
    with pytest.raises(DomainError, match="before a merge"):
        merged.measure_contrasts([("a",)], rho=0.5, shares=[1.0])
    event = GaussianEvent(purpose="contrasts", l2_sensitivity=1.0, sigma=4.0, values=1)
    with pytest.raises(PrivacyError, match="weight"):
        release_gaussian([np.zeros(1, np.int64)], [event], ledger, weights=[np.ones(2)])
    assert not ledger.events
    assert desk.measure_contrasts([], rho=0.5, shares=[]) == []


def test_a_file_whose_ledger_did_not_pay_is_refused(tmp_path: Any) -> None:
    release = chicle.Residual(epsilon=1, delta=1e-9).fit(chicle.datasets.census(500, d=3)).release_
    entries = release.transcript.entries
    assert len(release.transcript.contrasts) == 6
    object.__setattr__(entries[-1], "sigma", entries[-1].sigma * 1.5)  # type: ignore[union-attr]
    release.save(tmp_path / "more.chicle")
    with pytest.raises(chicle.ChicleError, match="contrasts"):
        chicle.load(tmp_path / "more.chicle")
