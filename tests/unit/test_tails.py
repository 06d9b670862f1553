"""Tails of ordered attributes: empty ones stay empty, heavy ones stay heavy, and as few records as possible move."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import Records, Schema, SchemaError
from chicle.columns import Integer, Number
from chicle.columns.base import refuse
from chicle.columns.inside import fractions, pick
from chicle.denoising.tails import steady_tails
from chicle.releases.settling import settle


def visits(rng: np.random.Generator, n: int) -> np.ndarray:
    """Counts, nine in ten of them 0, with a tail to about 40."""
    return rng.poisson(rng.gamma(0.12, 0.2 / 0.12, n)).clip(0, 150)


@given(
    counts=st.lists(st.integers(0, 500), min_size=1, max_size=40),
    sigma=st.floats(0.0, 80.0),
    total=st.integers(0, 10_000),
    seed=st.integers(0, 99),
)
def test_counts_have_their_total_and_are_not_negative(counts: list[int], sigma: float, total: int, seed: int) -> None:
    noisy = np.array(counts) + sigma * np.random.default_rng(seed).standard_normal(len(counts))
    made = steady_tails(noisy, np.full(len(counts), sigma**2), np.arange(len(counts) + 1.0), total)
    assert (made >= 0).all()
    assert made.sum() == pytest.approx(total, rel=1e-6, abs=1e-6)


def test_without_noise_nothing_changes() -> None:
    counts = np.array([900.0, 30, 0, 5, 1, 0, 0, 40])
    np.testing.assert_allclose(steady_tails(counts, np.full(8, 1e-6), np.arange(9.0), 976.0), counts, atol=0.01)


@pytest.mark.parametrize("mirrored", [False, True])
def test_the_spread_of_a_count_survives_bounds_far_too_high(*, mirrored: bool) -> None:
    """Mean and SD of the estimate, over seeds; clipping at zero misses them by 100 % and more."""
    values = visits(np.random.default_rng(1), 100_000)
    truth, places = np.bincount(values, minlength=151).astype(float), np.arange(151.0)
    for seed in range(8):
        noisy = truth + np.random.default_rng(seed).normal(0, 27, 151)
        if mirrored:  # a lower tail is an upper tail seen from the other end
            made = steady_tails(noisy[::-1], np.full(151, 27.0**2), np.arange(152.0), 1e5)[::-1]
        else:
            made = steady_tails(noisy, np.full(151, 27.0**2), np.arange(152.0), 1e5)
        shares = made / made.sum()
        mean = shares @ places
        assert mean == pytest.approx(values.mean(), rel=0.12)
        assert np.sqrt(shares @ places**2 - mean**2) == pytest.approx(values.std(), rel=0.25)
        clipped = np.maximum(noisy, 0) / np.maximum(noisy, 0).sum()
        assert clipped @ places > 1.5 * values.mean()
        assert np.abs(shares - truth / 1e5).sum() < np.abs(clipped - truth / 1e5).sum()


@pytest.mark.parametrize("declared", [True, False])
def test_a_top_code_stays(*, declared: bool) -> None:
    """365 days: a spike at the end of an empty tail, in a bin of its own or not."""
    truth = np.append(1000 * 0.8 ** np.arange(60), np.zeros(306))
    truth[365] = 400
    starts = np.arange(367.0)
    if declared:  # 60 to 364 are one bin
        truth, starts = np.append(truth[:60], [0.0, 400.0]), np.append(np.arange(61.0), [365.0, 366.0])
    noisy = truth + 15 * np.random.default_rng(2).standard_normal(len(truth))
    made = steady_tails(noisy, np.full(len(truth), 225.0), starts, truth.sum())
    assert made[-1] == pytest.approx(400, abs=60)
    assert made[60:-1].sum() < 30


@given(
    codes=st.lists(st.integers(0, 5), max_size=60),
    wanted=st.lists(st.floats(0, 10), min_size=5, max_size=5),
    seed=st.integers(0, 9),
)
def test_as_few_records_move_as_possible(codes: list[int], wanted: list[float], seed: int) -> None:
    """Code 5 is missing: it stays."""
    records = Records({"x": np.array(codes, np.uint8), "y": np.zeros(len(codes), np.uint8)}, {"x": 6, "y": 2})
    goal = np.array(wanted)
    made = settle(records, {"x": goal}, np.random.default_rng(seed))
    before, after = (np.bincount(each["x"], minlength=6) for each in (records, made))
    assert before[5] == after[5]
    if goal.sum() > 0 and before[:5].sum() > 0:
        assert (np.abs(after[:5] - goal / goal.sum() * before[:5].sum()) < 1 + 1e-6).all()
        moved = (records["x"] != made["x"]).sum()
        assert moved == np.maximum(after - before, 0).sum()
    else:
        assert (records["x"] == made["x"]).all()


@pytest.mark.parametrize("mechanism", ["Prism", "MST", "Independent"])
def test_every_mechanism_keeps_the_spread_of_counts(mechanism: str) -> None:
    rng = np.random.default_rng(3)
    n = 40_000
    columns = {"visits": visits(rng, n), "sex": rng.integers(0, 2, n), "ward": rng.integers(0, 6, n)}
    schema = Schema({"visits": {"type": "integer", "min": 0, "max": 150}, "sex": 2, "ward": 6})
    release = getattr(chicle, mechanism)(epsilon=1, delta=1e-9, threads=1).fit(columns, schema).release_
    made = np.asarray(release.sample(seed=0)["visits"])
    assert made.mean() == pytest.approx(columns["visits"].mean(), rel=0.3)
    assert made.std() == pytest.approx(columns["visits"].std(), rel=0.5)
    assert (made == 0).mean() == pytest.approx((columns["visits"] == 0).mean(), abs=0.01)


def test_values_inside_a_wide_bin_follow_its_neighbours() -> None:
    """A Pareto tail in bins that double: the mean inside the last bin is far below its middle."""
    amounts = 100 * (1 - np.random.default_rng(4).random(200_000)) ** (-1 / 2.5)
    column = Number(bins=[100, 200, 400, 800, 1_600, 100_000], outside="clamp")
    codes = column.encode(pa.chunked_array([amounts]), refuse("x"))
    rng = np.random.default_rng(5)
    counts = np.bincount(codes, minlength=5)
    last = fractions(np.full(20_000, 4), np.asarray(column.starts), counts, rng) * 98_400 + 1_600
    assert last.mean() == pytest.approx(amounts[amounts > 1_600].mean(), rel=0.35)
    assert 10 * last.mean() < (100_000 + 1_600) / 2


@given(low=st.integers(-(2**62), 2**62), width=st.integers(1, 2**61), inside=st.floats(0, 1, exclude_max=True))
def test_integers_inside_a_bin_stay_inside(low: int, width: int, inside: float) -> None:
    (made,) = pick(np.array([low]), np.array([low + width]), np.array([inside])).tolist()
    assert low <= made < low + width


@pytest.mark.parametrize("digits", [2, 1, 0, -1])
def test_declared_decimals(digits: int) -> None:
    column = Number(min=0, max=1_000, bins=64, decimals=digits)
    codes = np.random.default_rng(6).integers(0, 64, 2_000).astype(np.uint8)
    made = column.decode(codes, pa.float64(), np.random.default_rng(7)).to_numpy()
    assert (column.encode(pa.chunked_array([made]), refuse("x")) == codes).all()
    np.testing.assert_array_equal(made, np.round(made, digits))


def test_decimals_a_bin_does_not_have_are_not_forced() -> None:
    column = Number(bins=[0.0, 0.25, 0.5], decimals=0)
    made = column.decode(np.array([0, 1], np.uint8), None, np.random.default_rng(0)).to_numpy()
    assert made[0] == 0
    assert 0.25 <= made[1] <= 0.5
    with pytest.raises(SchemaError, match="decimals must be from -15 to 15"):
        Number(min=0, max=1, bins=2, decimals=99)
    assert Number(min=0, max=1, bins=2, decimals=1).to_dict()["decimals"] == 1
    assert "decimals" not in Integer(min=0, max=1).to_dict()
