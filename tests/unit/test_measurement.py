"""Noisy tables: margins, spreading, means and checks against loops over cells, and measurements as arrays."""

import math
import pickle
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chicle import Domain, DomainError, Measurement, PrivacyError
from chicle.measurements.arrays import measurements_from_arrays, measurements_to_arrays
from chicle.measurements.measurement import (
    average_repeats,
    best_margins,
    best_one_ways,
    check_all,
    estimate_total,
    total_sigma,
)
from chicle.query import Functional

SIZES = {"a": 4, "b": 3, "c": 2, "d": 1}
DOMAIN = Domain(SIZES)


@st.composite
def measurements(draw: st.DrawFn, buckets: bool = True) -> Measurement:
    """A measurement of any clique of the domain, in buckets or not."""
    clique = tuple(draw(st.lists(st.sampled_from(list(SIZES)), max_size=4, unique=True)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    seen = {}
    for name in clique:
        if buckets and draw(st.booleans()):
            # Every bucket has a code, so that the table has as many cells as the buckets say.
            codes = rng.integers(draw(st.integers(1, 3)), size=SIZES[name])
            seen[name] = np.unique(codes, return_inverse=True)[1].astype(np.uint32)
    shape = tuple(int(seen[name].max()) + 1 if name in seen else SIZES[name] for name in clique)
    values: Any = rng.integers(-9, 99, shape) if draw(st.booleans()) else rng.normal(40, 30, shape)
    return Measurement(clique, values, draw(st.floats(0.5, 50)), buckets=seen)


# --- Margins ---------------------------------------------------------------------------------------------------------


def cells(one: Measurement) -> list[tuple[int, ...]]:
    return list(product(*map(range, one.values.shape)))


@given(measurements(), st.data())
def test_a_margin_is_the_sum_of_its_cells_in_any_order(one: Measurement, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(one.clique), unique=True)) if one.clique else []
    names = tuple(data.draw(st.permutations(chosen)))
    margin = one.margin(names)
    axes = [one.clique.index(name) for name in names]
    naive: npt.NDArray[Any] = np.zeros([one.values.shape[axis] for axis in axes])
    summed = np.zeros_like(naive)
    for cell in cells(one):
        naive[tuple(cell[axis] for axis in axes)] += one.values[cell]
        summed[tuple(cell[axis] for axis in axes)] += 1
    np.testing.assert_allclose(margin.values, naive, atol=1e-9)
    assert margin.values.dtype == one.values.dtype, "counts stay counts"
    np.testing.assert_allclose(one.sigma * np.sqrt(summed), margin.sigma)
    assert margin.clique == names
    assert set(margin.buckets) == set(one.buckets) & set(names)
    assert margin.protected is one.protected
    assert margin.query.shape(DOMAIN) == margin.values.shape


def test_a_margin_keeps_the_mark_of_test_noise() -> None:
    marked = Measurement(("a", "c"), np.zeros((4, 2)), 1.0, protected=False)
    assert not marked.margin(("c",)).protected
    assert not marked.checked(DOMAIN).protected
    assert not Measurement.mean([marked, marked]).protected


@given(measurements())
def test_spreading_gives_each_code_its_part_of_a_bucket(one: Measurement) -> None:
    spread = one.spread(DOMAIN)
    assert spread.shape == DOMAIN.shape(one.clique)
    seen = {name: one.buckets.get(name, np.arange(SIZES[name])) for name in one.clique}
    for codes in product(*(range(SIZES[name]) for name in one.clique)):
        bucket = tuple(int(seen[name][code]) for name, code in zip(one.clique, codes, strict=True))
        share = math.prod(1 / np.sum(seen[name] == at) for name, at in zip(one.clique, bucket, strict=True))
        assert spread[codes] == pytest.approx(one.values[bucket] * share)
    assert spread.sum() == pytest.approx(float(one.values.sum()), abs=1e-9)


def test_what_does_not_fit_cannot_be_spread() -> None:
    with pytest.raises(DomainError, match="does not fit the domain along 'a'"):
        Measurement(("a",), np.zeros(3), 1.0).spread(DOMAIN)


# --- Means -----------------------------------------------------------------------------------------------------------


@given(measurements(), st.lists(st.floats(0.1, 100), min_size=1, max_size=4), st.integers(0, 2**32))
def test_a_mean_weighs_by_inverse_variance(one: Measurement, sigmas: list[float], seed: int) -> None:
    rng = np.random.default_rng(seed)
    several = [
        Measurement(one.clique, rng.normal(10, 20, one.values.shape), sigma, buckets=one.buckets) for sigma in sigmas
    ]
    mean = Measurement.mean(several)
    weights = np.array([sigma**-2 for sigma in sigmas])
    naive = sum(weight * each.values for weight, each in zip(weights, several, strict=True)) / weights.sum()
    np.testing.assert_allclose(mean.values, naive, rtol=1e-9, atol=1e-9)
    assert mean.sigma == pytest.approx(weights.sum() ** -0.5)
    assert mean.query.key == one.query.key


def test_only_the_same_query_has_a_mean() -> None:
    halves = np.array([0, 0, 1, 1])
    whole, turned = Measurement(("b", "c"), np.zeros((3, 2)), 1.0), Measurement(("c", "b"), np.zeros((2, 3)), 1.0)
    coarse = Measurement(("a",), np.zeros(2), 1.0, buckets={"a": halves})
    other = Measurement(("a",), np.zeros(2), 1.0, buckets={"a": 1 - halves})
    for pair in ([whole, turned], [coarse, other]):
        with pytest.raises(DomainError, match="the same query"):
            Measurement.mean(pair)
    same = Measurement(("a",), np.ones(2), 1.0, buckets={"a": halves.astype(np.uint8)})
    assert Measurement.mean([coarse, same]).values.tolist() == [0.5, 0.5]


@given(st.lists(measurements(), max_size=6), st.data())
def test_repeats_are_averaged_where_the_first_of_them_stood(given: list[Measurement], data: st.DataObject) -> None:
    repeated = [*given, *data.draw(st.lists(st.sampled_from(given), max_size=4))] if given else []
    found = average_repeats(repeated)
    keys = list(dict.fromkeys(one.query.key for one in repeated))
    assert [one.query.key for one in found] == keys
    for one, key in zip(found, keys, strict=True):
        same = [each for each in repeated if each.query.key == key]
        expected = Measurement.mean(same)
        assert one.sigma == pytest.approx(expected.sigma)
        np.testing.assert_allclose(one.values, expected.values)
        if len(same) == 1:
            assert one is same[0], "left alone"


@given(st.lists(measurements(), max_size=5), st.integers(0, 3))
def test_the_best_margins_are_the_most_precise(given: list[Measurement], order: int) -> None:
    found = best_margins(given, DOMAIN, order)
    wanted = {names for one in given for names in combinations(DOMAIN.clique(one.clique), order)}
    assert set(found) == wanted
    for names, table in found.items():
        holding = [one for one in given if set(names) <= set(one.clique)]
        # The variance of a code's count, if a bucket's is shared out: all noise, over the codes.
        best = min(one.sigma**2 * one.values.size for one in holding)
        allowed = [one for one in holding if one.sigma**2 * one.values.size <= best * (1 + 1e-12)]
        assert any(np.allclose(table, one.margin(names).spread(DOMAIN)) for one in allowed)
        assert table.shape == DOMAIN.shape(names)


def test_best_one_ways() -> None:
    rough, fine = Measurement(("a",), np.arange(2), 5.0), Measurement(("a",), np.arange(2), 2.0)
    coarse = Measurement(("a",), np.arange(1), 1.0, buckets={"a": np.zeros(2, dtype=int)})
    pair = Measurement(("a", "b"), np.zeros((2, 1)), 0.5)
    other = Measurement(("b",), np.arange(1), 3.0)
    found = best_one_ways([rough, pair, other, coarse, fine], {"b": 1, "a": 2})
    assert list(found) == ["b", "a"]
    assert found["a"] is fine
    with pytest.raises(DomainError, match="'b' has no 1-way measurement"):
        best_one_ways([rough, pair], {"a": 2, "b": 1})


@given(st.lists(measurements(), min_size=1, max_size=5))
def test_the_total_is_a_mean_by_inverse_variance(given: list[Measurement]) -> None:
    precisions = [1 / (one.values.size * one.sigma**2) for one in given]
    mean = sum(p * float(one.values.sum()) for p, one in zip(precisions, given, strict=True)) / sum(precisions)
    assert abs(estimate_total(given) - max(mean, 0)) <= 0.5 + 1e-6
    assert total_sigma(given) == pytest.approx(sum(precisions) ** -0.5)


def test_no_measurement_tells_no_total() -> None:
    with pytest.raises(PrivacyError, match="there are none"):
        estimate_total([])


# --- Checks ----------------------------------------------------------------------------------------------------------


@given(measurements())
def test_what_fits_is_taken_as_it_is(one: Measurement) -> None:
    checked = one.checked(DOMAIN)
    assert checked.values.dtype == np.float64
    np.testing.assert_array_equal(checked.values, one.values)
    assert (checked.clique, checked.sigma, checked.query.key) == (one.clique, one.sigma, one.query.key)
    assert all(codes.dtype == np.uint32 for codes in checked.buckets.values())
    if one.buckets:
        with pytest.raises(DomainError, match="in buckets; only descent takes those"):
            one.checked(DOMAIN, buckets=False)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        (Measurement(("z",), np.zeros(2), 1.0), "'z' is not an attribute"),
        (Measurement(("a", "a"), np.zeros((4, 4)), 1.0), "names an attribute twice"),
        (Measurement(("a",), np.zeros((4, 1)), 1.0), r"\('a',\) has 2 axes"),
        (Measurement(("b", "a"), np.zeros((4, 3)), 1.0), "4 along 'b', which has 3 values"),
        (Measurement(("a",), np.array(["1"] * 4), 1.0), "dtype"),
        (Measurement(("a",), np.ones(4, dtype=bool), 1.0), "dtype bool"),
        (Measurement(("a",), np.array([1.0, 2.0, 3.0, np.nan]), 1.0), "no finite count"),
        (Measurement(("a",), np.array([1.0, 2.0, 3.0, -(2.0**53) - 2]), 1.0), "no finite count"),
        (Measurement(("a",), np.zeros(4), 0.0), "sigma 0.0"),
        (Measurement(("a",), np.zeros(4), -1.0), "sigma -1.0"),
        (Measurement(("a",), np.zeros(4), 1e61), "sigma 1e.61"),
        (Measurement(("a",), np.zeros(4), 1e-61), "sigma 1e-61"),
        (Measurement(("a",), np.zeros(4), math.nan), "sigma nan"),
        (Measurement(("a",), np.zeros(2), 1.0, buckets={"b": np.zeros(3, dtype=int)}), "buckets of 'b'.*no such"),
        (Measurement(("a",), np.zeros(2), 1.0, buckets={"a": np.zeros(3, dtype=int)}), "one integer .* 4 codes"),
        (Measurement(("a",), np.zeros(2), 1.0, buckets={"a": np.arange(4)}), r"bucket outside 0\.\.1"),
        (Measurement(("a",), np.zeros(4), 1.0, where={"b": 0}), "of a group or a functional"),
        (Measurement(("a",), np.zeros(1), 1.0, functional=Functional(np.ones((1, 4), dtype=int))), "a functional"),
    ],
)
def test_what_does_not_fit_is_named(given: Measurement, rule: str) -> None:
    with pytest.raises(DomainError, match=rule):
        given.checked(DOMAIN)
    with pytest.raises(DomainError, match=rule):
        check_all([given], DOMAIN)


def test_exact_counts_have_no_noise_where_they_may() -> None:
    exact = Measurement(("a",), np.zeros(4), 0.0)
    assert exact.checked(DOMAIN, exact=True).sigma == 0
    assert check_all([exact], DOMAIN, exact=True)[0].sigma == 0
    with pytest.raises(DomainError, match="sigma"):
        Measurement(("a",), np.zeros(4), -0.5).checked(DOMAIN, exact=True)


def test_a_list_of_measurements_is_a_list_of_measurements() -> None:
    good = Measurement(("a",), np.zeros(4), 1.0)
    wrong: list[Any] = [good, [good, "a"], [("a",)]]
    for one in wrong:
        with pytest.raises(DomainError, match="list of Measurements"):
            check_all(one, DOMAIN)
    with pytest.raises(DomainError, match="no measurements"):
        check_all([], DOMAIN)


def test_measurements_cannot_be_changed() -> None:
    one = Measurement(("a",), np.zeros(4), 1.0, buckets={"a": np.arange(4)})
    with pytest.raises(ValueError, match="read-only"):
        one.values[0] = 1
    with pytest.raises(TypeError):
        one.buckets["a"] = np.zeros(4)  # type: ignore[index]


@given(measurements())
def test_measurements_can_be_pickled(one: Measurement) -> None:
    again = pickle.loads(pickle.dumps(one))  # noqa: S301
    np.testing.assert_array_equal(again.values, one.values)
    assert (again.query.key, again.sigma, again.protected) == (one.query.key, one.sigma, one.protected)


# --- Arrays ----------------------------------------------------------------------------------------------------------


@given(st.lists(measurements(), max_size=6))
def test_measurements_as_arrays_and_back(given: list[Measurement]) -> None:
    arrays = measurements_to_arrays(given, DOMAIN)
    assert all(array.dtype in (np.int64, np.float64, np.uint32) for array in arrays.values()), "what a file takes"
    again = measurements_from_arrays(arrays, DOMAIN)
    assert len(again) == len(given)
    for mine, theirs in zip(again, given, strict=True):
        assert (mine.query.key, mine.sigma) == (theirs.query.key, theirs.sigma)
        np.testing.assert_array_equal(mine.values, theirs.values)


HALVES = np.array([0, 0, 1, 1], dtype=np.uint32)


def arrays() -> dict[str, npt.NDArray[Any]]:
    some = [
        Measurement(("a", "c"), np.arange(4.0).reshape(2, 2), 2.0, buckets={"a": HALVES}),
        Measurement((), np.array(7.0), 1.0),
        Measurement(("b",), np.arange(3.0), 3.0),
        Measurement(("a",), np.arange(2.0), 3.0, buckets={"a": HALVES}),
    ]
    return measurements_to_arrays(some, DOMAIN)


def test_the_same_buckets_are_written_once() -> None:
    assert [name for name in arrays() if name.startswith("buckets")] == ["buckets-0"]


@pytest.mark.parametrize(
    "damage",
    [
        {"orders": np.array([2, 0, 1])},
        {"orders": np.array([2, 1, 1, 1])},
        {"attributes": np.array([0, 2, 1])},
        {"attributes": np.array([0, 2, 1, 9])},
        {"attributes": np.array([0, 0, 1, 0])},
        {"attributes": np.array([0, 2, -3, 0])},
        {"shapes": np.array([2, 2, 4, 2])},
        {"shapes": np.array([2, 3, 3, 2])},
        {"seen": np.array([-1, -1, -1, 0])},
        {"seen": np.array([1, -1, -1, 0])},
        {"sigmas": np.array([2.0, 1.0, 3.0])},
        {"sigmas": np.array([2.0, 1.0, 3.0, math.nan])},
        {"values": np.arange(9.0)},
        {"values": np.arange(11.0)},
        {"values": np.full(10, math.inf)},
        {"buckets-0": np.array([0, 0, 1], dtype=np.uint32)},
        {"buckets-0": np.array([0, 0, 2, 2], dtype=np.uint32)},
    ],
    ids=str,
)
def test_damaged_arrays_are_refused(damage: dict[str, npt.NDArray[Any]]) -> None:
    """With one of the errors that the reader of a file turns into a message."""
    assert len(measurements_from_arrays(arrays(), DOMAIN)) == 4
    with pytest.raises((DomainError, LookupError, ValueError)):
        measurements_from_arrays({**arrays(), **damage}, DOMAIN)
