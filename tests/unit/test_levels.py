from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chicle.selection.levels import SIZES, levels

counts_of = st.lists(st.one_of(st.floats(0, 1000), st.just(0.0)), min_size=1, max_size=120).map(np.array)
any_sizes = st.lists(st.integers(2, 40), max_size=4)


def naive_lost(counts: Any, buckets: Any) -> float:
    """Draw a record, then a code of its bucket in proportion: how likely is another code?"""
    total, lost = counts.sum(), 0.0
    for code, count in enumerate(counts):
        bucket = counts[buckets == buckets[code]].sum()
        lost += count / total * (1 - count / bucket) if count > 0 else 0.0
    return float(lost)


@given(counts_of, any_sizes, st.booleans())
def test_buckets_hold_every_code_and_all_records(counts: Any, sizes: list[int], ordinal: bool) -> None:
    found = levels(counts, ordinal=ordinal, sizes=sizes)
    assert len(found) == 1 + sum(size < counts.size for size in sizes)
    assert found[0].buckets is None
    assert found[0].lost == 0
    np.testing.assert_array_equal(found[0].counts, counts)
    for level, size in zip(found[1:], [size for size in sizes if size < counts.size], strict=True):
        assert level.buckets is not None
        assert level.buckets.shape == counts.shape
        assert level.size <= size
        assert set(level.buckets.tolist()) == set(range(level.size)), "no bucket without a code"
        for bucket in range(level.size):
            assert level.counts[bucket] == pytest.approx(counts[level.buckets == bucket].sum())
        if counts.sum() > 0:
            assert level.lost == pytest.approx(naive_lost(counts, level.buckets), abs=1e-9)
        assert 0 <= level.lost < 1


@given(counts_of, any_sizes)
def test_ordinal_buckets_are_intervals_of_about_equal_mass(counts: Any, sizes: list[int]) -> None:
    for level in levels(counts, ordinal=True, sizes=sizes)[1:]:
        assert level.buckets is not None
        assert (np.diff(level.buckets.astype(int)) >= 0).all()
    # A code is in the slot of its middle, so a bucket may exceed a slot by half a code at either end.
    for size in (size for size in sizes if size < counts.size):
        level = levels(counts, ordinal=True, sizes=[size])[1]
        assert level.counts.max() <= counts.sum() / size + counts.max() + 1e-9


@given(counts_of, any_sizes)
def test_nominal_buckets_are_the_most_frequent_codes_and_the_rest(counts: Any, sizes: list[int]) -> None:
    for size in (size for size in sizes if size < counts.size):
        level = levels(counts, ordinal=False, sizes=[size])[1]
        assert level.buckets is not None
        assert level.size == size
        alone = np.flatnonzero(level.buckets < size - 1)
        others = np.flatnonzero(level.buckets == size - 1)
        assert alone.size == size - 1
        assert np.unique(level.buckets[alone]).size == size - 1
        assert counts[alone].min() >= counts[others].max()


def test_an_even_attribute_is_cut_evenly() -> None:
    level = levels(np.full(100, 7.0), ordinal=True, sizes=[10])[1]
    assert level.counts.tolist() == [70.0] * 10
    assert level.lost == pytest.approx(0.9)


@pytest.mark.parametrize("size", [1, 2, 5, 6, 10, 11, 20, 21])
def test_only_coarser_levels_are_made(size: int) -> None:
    found = levels(np.ones(size), ordinal=False)
    assert [level.size for level in found] == [size, *(cells for cells in SIZES if cells < size)]


@pytest.mark.parametrize("ordinal", [True, False])
def test_nothing_counted(ordinal: bool) -> None:
    for level in levels(np.zeros(30), ordinal=ordinal):
        assert level.lost == 0
        assert level.counts.sum() == 0
