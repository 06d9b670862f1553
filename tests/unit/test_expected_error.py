from itertools import combinations
from math import hypot, inf, pi, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chicle.selection.expected_error import MAX_CELLS, Prospects, expected_errors, noise_error, steady
from chicle.selection.levels import Level, levels

# The constants of the header: what survives of noise, how empty a cell must be, what buckets hide.
SURVIVES, EMPTY, HIDES = 0.7, 0.7, 1.5
ORDINAL, POWER = 1.2, -0.7
Q = sqrt(2 / pi)

# Cells of a class are taken as its middle: a quarter of an octave off at most, half that under a root.
CLASS, ROOT = 2**0.25 * (1 + 1e-9), 2**0.125 * (1 + 1e-9)


def noise_of(a: Level, b: Level, total: float, sigma: float) -> float:
    """Noise that survives shrinkage, cell by cell."""
    cells = [x * y / total for x in a.counts for y in b.counts]
    return SURVIVES * float(sum(Q * sigma * m / (m + EMPTY * sigma) for m in cells))


def sampling_of(a: Level, b: Level, total: float) -> float:
    return float(sum(min(Q * sqrt(x * y / total), 2 * x * y / total) for x in a.counts for y in b.counts))


def hidden(level: Level, ordinal: bool) -> float:
    if level.buckets is None:
        return 0.0
    return ORDINAL * level.size**POWER * level.lost if ordinal else level.lost


def naive(
    a: Level, b: Level, *, finest: float, ordinal: tuple[bool, bool], distance: float, total: float, sigma: float
) -> float:
    """Error of a pair measured at one level of each attribute."""
    inside = max(finest**2 - sampling_of(a, b, total) ** 2, 0.0)
    rho = min(1.0, hidden(a, ordinal[0]) ** 2 + hidden(b, ordinal[1]) ** 2)
    left = min(min(inside, distance**2) + rho * max(distance**2 - finest**2, 0.0), distance**2)
    return HIDES * sqrt(left + inside) + noise_of(a, b, total, sigma)


def attributes_of(shares: list[Any], total: float, ordinal: list[bool], sizes: Any = ()) -> list[list[Level]]:
    return [levels(share * total, ordinal=order, sizes=sizes) for share, order in zip(shares, ordinal, strict=True)]


@st.composite
def some_shares(draw: st.DrawFn, least: int = 2, most: int = 12) -> Any:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    weights = rng.dirichlet(np.full(draw(st.integers(least, most)), draw(st.sampled_from([0.2, 1.0, 50.0]))))
    weights[rng.random(weights.size) < draw(st.sampled_from([0.0, 0.3]))] = 0
    return weights / weights.sum() if weights.sum() > 0 else np.full(weights.size, 1 / weights.size)


@given(st.data(), st.floats(1, 1e6), st.floats(0.1, 1e4))
def test_classes_are_never_further_off_than_their_width(data: st.DataObject, total: float, sigma: float) -> None:
    shares = data.draw(st.lists(some_shares(), min_size=2, max_size=4))
    attributes = attributes_of(shares, total, [False] * len(shares))
    number = len(shares) * (len(shares) - 1) // 2
    found = expected_errors(attributes, [False] * len(shares), np.zeros(number), total, np.array([sigma, 2 * sigma]))
    assert found.pairs.tolist() == [list(pair) for pair in combinations(range(len(shares)), 2)]
    assert (found.level == 0).all(), "there is no other"
    np.testing.assert_array_equal(found.best, found.fine)
    for p, (i, j) in enumerate(found.pairs):
        a, b = attributes[i][0], attributes[j][0]
        for s, each in enumerate((sigma, 2 * sigma)):
            exact = noise_of(a, b, total, each)
            assert exact / CLASS <= found.fine[p, s] <= exact * CLASS
        exact = sampling_of(a, b, total)
        assert exact / ROOT <= found.unmeasured[p] <= exact * CLASS


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_sum_over_cells_within_a_few_percent(seed: int) -> None:
    rng = np.random.default_rng(seed)
    total = float(rng.choice([500, 20_000, 300_000]))
    ordinal = [True, False, True, False]
    shares = [rng.dirichlet(np.full(size, 0.8)) for size in rng.integers(40, 90, 4)]
    attributes = attributes_of(shares, total, ordinal, (20, 10, 5))
    distances = rng.uniform(-0.1, 1.0, 6) * total
    sigmas = np.array([1.0, 10.0, 100.0])
    found = expected_errors(attributes, ordinal, distances, total, sigmas)
    for p, (i, j) in enumerate(combinations(range(4), 2)):
        finest = sampling_of(attributes[i][0], attributes[j][0], total)
        distance = max(float(distances[p]), 0.0)
        assert found.unmeasured[p] == pytest.approx(hypot(distance, finest), rel=0.04)
        assert found.structure[p] == pytest.approx(distances[p] - finest, abs=0.04 * finest)
        for s, sigma in enumerate(sigmas):
            exact = {
                (x, y): naive(
                    a, b, finest=finest, ordinal=(ordinal[i], ordinal[j]), distance=distance, total=total, sigma=sigma
                )
                for x, a in enumerate(attributes[i])
                for y, b in enumerate(attributes[j])
            }
            assert found.best[p, s] == pytest.approx(min(exact.values()), rel=0.05)
            assert exact[tuple(found.level[p, s])] <= min(exact.values()) * 1.06, "a level as good as the best"
            assert found.fine[p, s] == pytest.approx(
                noise_of(attributes[i][0], attributes[j][0], total, sigma), rel=0.04
            )


@given(st.data(), st.floats(1, 1e6), st.floats(-0.2, 2))
def test_more_noise_is_never_better(data: st.DataObject, total: float, distance: float) -> None:
    shares = [data.draw(some_shares(2, 60)) for _ in range(2)]
    ordinal = data.draw(st.lists(st.booleans(), min_size=2, max_size=2))
    attributes = attributes_of(shares, total, ordinal, (20, 10, 5))
    sigmas = np.geomspace(0.01, 1e6, 30)
    found = expected_errors(attributes, ordinal, np.array([distance * total]), total, sigmas)
    for errors in (found.best[0], found.fine[0]):
        assert (np.diff(errors) >= -1e-9 * errors[1:]).all()
        assert (errors >= 0).all()
    assert (found.best <= found.fine).all(), "full resolution is one of the choices"


def prospects(distance: float, ordinal: bool = True, cells: int = 100, **limits: int) -> Prospects:
    attributes = attributes_of([np.full(cells, 1 / cells)] * 2, 1e5, [ordinal] * 2, (20, 10, 5))
    return expected_errors(attributes, [ordinal] * 2, np.array([distance]), 1e5, np.geomspace(0.01, 1e3, 20), **limits)


def test_levels_fall_as_noise_rises() -> None:
    found = prospects(5e4)
    cells = np.array([100, 20, 10, 5])[found.level[0]].prod(axis=1)
    assert cells[0] == 10_000, "hardly any noise: as fine as can be"
    assert cells[-1] == 25
    assert (np.diff(cells) <= 0).all()


def test_a_nominal_attribute_loses_more_in_buckets() -> None:
    """Of 100 values alike, four alone and 96 together tell hardly anything."""
    assert (prospects(5e4, ordinal=True).best <= prospects(5e4, ordinal=False).best).all()
    assert (prospects(5e4, ordinal=True).best < 0.95 * prospects(5e4, ordinal=False).best).any()


def test_what_is_far_from_independence_is_worse_to_leave_out() -> None:
    distances = np.linspace(0, 1e5, 9)
    unmeasured = [float(prospects(distance).unmeasured[0]) for distance in distances]
    assert (np.diff(unmeasured) > 0).all()
    assert prospects(-500).unmeasured[0] == unmeasured[0], "a negative distance is noise"


def test_tables_with_too_many_cells_are_not_considered() -> None:
    assert (prospects(5e4, max_cells=9_999).level[0].any(axis=1)).all()
    assert (prospects(5e4, max_cells=10_000).level[0, 0] == 0).all()
    small = prospects(5e4, max_cells=25)
    assert (small.level == 3).all()
    none = prospects(5e4, max_cells=24)
    assert (none.best == inf).all()
    assert np.isfinite(none.unmeasured).all()
    assert np.isfinite(none.fine).all()
    assert (prospects(5e4, cells=200).level[0].any(axis=1)).all(), f"more than {MAX_CELLS} by default"


def test_nothing_to_know() -> None:
    one = levels(np.array([50.0]), ordinal=False)
    many = levels(np.full(40, 50 / 40), ordinal=True)
    found = expected_errors([one, many, one], [False, True, False], np.full(3, 1e6), 50.0, np.array([1.0, 1e9]))
    assert (found.best == inf).all(), "an attribute of one value depends on nothing, whatever a noisy distance says"
    assert np.isfinite(found.unmeasured).all()
    lone = expected_errors([one], [False], np.empty(0), 50.0, np.array([1.0]))
    assert lone.pairs.shape == (0, 2)
    assert lone.best.shape == (0, 1)


def test_extreme_shares_do_not_overflow() -> None:
    shares = np.array([1.0, 1e-300, 0.0])
    attribute = levels(shares * 1e9, ordinal=False)
    found = expected_errors([attribute, attribute], [False, False], np.array([1.0]), 1e9, np.array([1e-3, 1e12]))
    assert np.isfinite(found.best).all()
    assert np.isfinite(found.unmeasured).all()


# --- Scores and 1-ways -----------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-1e4, 1e5), min_size=1, max_size=40).map(np.array), st.floats(0, 1e5))
def test_steady_distances_keep_their_mean_and_their_order(distances: Any, sigma: float) -> None:
    drawn = steady(distances, sigma)
    assert drawn.mean() == pytest.approx(distances.mean(), abs=1e-6)
    assert (np.diff(drawn[np.argsort(distances, kind="stable")]) >= -1e-6).all()
    assert (np.abs(drawn - drawn.mean()) <= np.abs(distances - distances.mean()) + 1e-6).all()
    np.testing.assert_allclose(steady(distances, 0.0), distances, atol=1e-6)
    np.testing.assert_allclose(steady(distances, 1e6), distances.mean(), atol=1e-6)


@pytest.mark.parametrize("spread", [0.0, 30.0, 100.0, 1_000.0])
def test_steady_distances_are_nearer_to_the_truth(spread: float) -> None:
    rng = np.random.default_rng(int(spread))
    truth = 500 + spread * rng.standard_normal(400)
    noisy = truth + 100 * rng.standard_normal(400)
    error, raw = (float(np.mean((each - truth) ** 2)) for each in (steady(noisy, 100.0), noisy))
    assert error < 1.01 * raw
    assert error == pytest.approx(1e4 * spread**2 / (spread**2 + 1e4), rel=0.25, abs=600)


@given(some_shares(1, 30), st.floats(1, 1e6), st.floats(0.01, 1e5))
def test_noise_on_a_1_way_cell_by_cell(shares: Any, total: float, sigma: float) -> None:
    counts = shares * total
    naive_sum = sum(Q * sigma * m / (m + EMPTY * sigma) for m in counts)
    assert noise_error(counts, sigma) == pytest.approx(naive_sum)
    assert noise_error(counts, sigma) <= noise_error(counts, 2 * sigma) * (1 + 1e-9)
