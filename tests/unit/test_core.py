"""What crosses the seam to the kernels: axes in buckets, targets, and the errors of what does not fit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chicle import _core
from chicle.errors import DomainError, InfeasibleError

NAMES = ["a", "b", "c"]
SIZES = [5, 300, 2]
LIMIT = 2**30

Axes = list[tuple[int, npt.NDArray[np.uint32] | None]]


def columns(records: int, seed: int = 0) -> list[npt.NDArray[np.integer]]:
    rng = np.random.default_rng(seed)
    dtypes = [np.uint8, np.uint16, np.uint8]
    return [rng.integers(size, size=records).astype(dtype) for size, dtype in zip(SIZES, dtypes, strict=True)]


def oracle(codes: list[npt.NDArray[np.integer]], axes: Axes) -> npt.NDArray[np.int64]:
    seen = [codes[i] if buckets is None else buckets[codes[i]] for i, buckets in axes]
    shape = [SIZES[i] if buckets is None else int(buckets.max()) + 1 for i, buckets in axes]
    if not axes:
        return np.array([len(codes[0])])
    table = np.zeros(shape, dtype=np.int64)
    np.add.at(table, tuple(seen), 1)
    return table.reshape(-1)


def buckets(*of: int) -> npt.NDArray[np.uint32]:
    return np.array(of, dtype=np.uint32)


@st.composite
def queries(draw: st.DrawFn) -> list[Axes]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    # Two ways to see each attribute in buckets, so that queries share arrays.
    ways = [[None, *(rng.integers(most, size=size).astype(np.uint32) for most in (3, 400))] for size in SIZES]
    axis = st.tuples(st.integers(0, 2), st.integers(0, 2))
    chosen = draw(st.lists(st.lists(axis, max_size=3, unique=True), max_size=6))
    every = [[(i, ways[i][way]) for i, way in one] for one in chosen]
    return [axes for axes in every if np.prod([SIZES[i] if w is None else int(w.max()) + 1 for i, w in axes]) < 2**20]


@given(queries(), st.integers(0, 3000), st.sampled_from([1, 2, 8]))
def test_counts_in_buckets_are_those_of_recoded_columns(asked: list[Axes], records: int, threads: int) -> None:
    codes = columns(records)
    expected = [oracle(codes, axes) for axes in asked]
    tables = _core.count(codes, NAMES, SIZES, asked, LIMIT, threads)
    assert [table.tolist() for table in tables] == [table.tolist() for table in expected]
    counter = _core.Counter(NAMES, SIZES, asked, LIMIT, threads)
    counter.update([column[: records // 3] for column in codes])
    counter.update([column[records // 3 :] for column in codes])
    assert [table.tolist() for table in counter.result()] == [table.tolist() for table in expected]


def test_counts_of_many_pieces_and_buckets_are_exact() -> None:
    rng = np.random.default_rng(3)
    codes = columns(600_000)
    coarse = [rng.integers(9, size=size).astype(np.uint32) for size in SIZES]
    asked: list[Axes] = [
        [(0, coarse[0]), (1, coarse[1])],
        [(1, None), (2, coarse[2])],
        [(1, coarse[1]), (1, None)],
        [(1, coarse[1].copy()), (0, None), (2, None)],
        [],
    ]
    for threads in (1, 2, 8):
        tables = _core.count(codes, NAMES, SIZES, asked, LIMIT, threads)
        for axes, table in zip(asked, tables, strict=True):
            assert (table == oracle(codes, axes)).all()


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ([(3, None)], "no attribute number 3"),
        ([(0, buckets(0, 1))], 'attribute "a".* 5 codes'),
        ([(0, buckets(0, 1, 2, 3, 2**32 - 1))], 'attribute "a"'),
        ([(2, None), (2, None)], 'attribute "c" is on two axes'),
        ([(2, buckets(0, 0)), (2, buckets(0, 0))], 'attribute "c" is on two axes'),
    ],
)
def test_axes_that_do_not_fit_are_refused_by_name(axes: Axes, message: str) -> None:
    with pytest.raises(DomainError, match=message):
        _core.count(columns(10), NAMES, SIZES, [axes], LIMIT)
    with pytest.raises(DomainError, match=message):
        _core.Counter(NAMES, SIZES, [axes], LIMIT)


def test_a_table_of_too_many_buckets_is_refused_by_name() -> None:
    with pytest.raises(InfeasibleError, match=r"clique \(c, a\): its table of 5000000005 cells"):
        _core.count(columns(10), NAMES, SIZES, [[(2, buckets(0, 1_000_000_000)), (0, None)]], 2**62)


def test_targets_take_the_sizes_of_their_values() -> None:
    codes = columns(100)
    axes: Axes = [(0, buckets(0, 0, 1, 1, 1))]
    for cells in (2, 4):  # the last two buckets stay empty
        target = (axes, np.zeros(cells), 1.0)
        assert _core.Descent(codes, NAMES, SIZES, [target], 0, LIMIT).fit()[0] == 1.0
    with pytest.raises(DomainError, match='attribute "a"'):
        _core.Descent(codes, NAMES, SIZES, [(axes, np.zeros(1), 1.0)], 0, LIMIT)
    with pytest.raises(DomainError, match="7 values for a table of 10 cells"):
        _core.Descent(codes, NAMES, SIZES, [([(0, None), (2, None)], np.zeros(7), 1.0)], 0, LIMIT)


def test_kernels_refuse_axes_that_they_do_not_take() -> None:
    codes = columns(100)
    coarse = ([(0, buckets(0, 0, 1, 1, 1))], np.full(2, 50.0), 1.0)
    with pytest.raises(DomainError, match='attribute "a" is in buckets'):
        _core.Gum(codes, NAMES, SIZES, [coarse], [0, 1, 2], 0)
    with pytest.raises(DomainError, match='attribute "a" is in buckets'):
        _core.Projection(NAMES, SIZES, [coarse], "norm-sub", LIMIT)
    twice = ([(0, buckets(0, 0, 1, 1, 1)), (0, None)], np.zeros((2, 5)), 1.0)
    with pytest.raises(DomainError, match='attribute "a" is on two axes'):
        _core.Descent(codes, NAMES, SIZES, [twice], 0, LIMIT)
    with pytest.raises(DomainError, match='attribute "a" is on two axes'):
        _core.Pgm(NAMES, SIZES, [twice], [], 100.0, None, LIMIT)


def test_a_model_answers_in_buckets() -> None:
    values = np.arange(10.0).reshape(5, 2)
    target = ([(0, None), (2, None)], values, 1.0)
    model = _core.Pgm(NAMES, SIZES, [target], [], values.sum(), None, LIMIT)
    model.steps(200)
    fine, coarse = model.marginals([[(2, None), (0, None)], [(2, None), (0, buckets(1, 0, 0, 3, 3))]])
    fine = fine.reshape(2, 5)
    assert np.allclose(fine, values.T, atol=1e-3)
    assert np.allclose(
        coarse.reshape(2, 4), np.stack([fine[:, [1, 2]].sum(1), fine[:, 0], [0, 0], fine[:, 3:].sum(1)], 1)
    )


def test_scores_in_buckets_are_those_of_the_counts() -> None:
    codes = columns(5000)
    pair: Axes = [(1, (np.arange(300) // 31).astype(np.uint32)), (0, buckets(0, 1, 1, 2, 2))]
    (table,) = _core.count(codes, NAMES, SIZES, [pair], LIMIT)
    sizes = [3, 10, 2]
    expected = _core.indif_of_counts([table], sizes, [[(1, None), (0, None)]], 5000, None, 0.0)
    assert _core.indif(codes, NAMES, SIZES, [pair], None, 0.0, LIMIT).tolist() == expected.tolist()
    shares = [np.full(size, 1 / size) for size in sizes]
    expected = _core.indif_of_counts([table], sizes, [[(1, None), (0, None)]], 5000, shares, 4990.0)
    assert _core.indif(codes, NAMES, SIZES, [pair], shares, 4990.0, LIMIT).tolist() == expected.tolist()
    reference = np.full(30, 5000 / 30)
    expected = _core.distances_of_counts([table], [reference], 5000)
    assert _core.distances(codes, NAMES, SIZES, [pair], [reference], LIMIT).tolist() == expected.tolist()
