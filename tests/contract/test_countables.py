"""One suite over every kind of countable: the same rows give the same counts and distances, however they are held."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chicle import Domain, DomainError, InfeasibleError, ParameterError, Query, Records
from chicle.counting.countable import UNITS, Cached, Countable, Independence, View
from chicle.counting.counts import Counts
from chicle.query import QueryLike, one_ways
from tests.countables import GROUPED, KINDS, finer, passes

SIZES = {"a": 3, "b": 4, "c": 2, "d": 5, "e": 1}
DOMAIN = Domain(SIZES)
PAIRS = list(combinations(DOMAIN, 2))
CLIQUES: list[tuple[str, ...]] = [(), *one_ways(DOMAIN), *PAIRS, ("d", "a"), ("c", "b", "a"), ("a", "b", "c", "d")]


def table_of(rows: int = 500, seed: int = 0, k: int = 3) -> Records:
    rng = np.random.default_rng(seed)
    common = rng.random(rows)
    columns = {name: ((common + rng.random(rows)) / 2 * size).astype(int) for name, size in SIZES.items()}
    return Records(columns, DOMAIN, max_records_per_person=k)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def countable(kind: str) -> Countable:
    return KINDS[kind](table_of())


def shares() -> dict[str, npt.NDArray[np.float64]]:
    rng = np.random.default_rng(3)
    return {name: rng.dirichlet(np.ones(size)) for name, size in SIZES.items()}


def expected(queries: Sequence[QueryLike]) -> list[npt.NDArray[np.float64]]:
    """Return any public tables: some cells above the counts, some below."""
    tables = []
    for asked in queries:
        query = asked if isinstance(asked, Query) else Query(asked)
        rng = np.random.default_rng(len(query.clique) + 7 * sum(map(ord, "".join(query.clique))))
        shape = query.table_shape(DOMAIN)
        tables.append(rng.exponential(500 / math.prod(shape), shape))
    return tables


def naive(table: Records, asked: QueryLike, expect: npt.NDArray[np.float64]) -> float:
    """Return the L1 distance in records."""
    query = asked if isinstance(asked, Query) else Query(asked)
    kept = np.ones(len(table), dtype=bool)
    for name, code in query.where.items():
        kept &= table[name] == code
    counts = np.zeros(query.table_shape(DOMAIN))
    each = {name: np.asarray(query.buckets.get(name, np.arange(SIZES[name]))) for name in query.clique}
    np.add.at(counts, tuple(each[name][table[name][kept]] for name in query.clique), 1)
    if not query.clique:
        counts = np.array(kept.sum())
    return float(np.abs(counts - expect).sum())


def close(mine: Any, theirs: Any, cells: Sequence[int]) -> None:
    """Check distances in units against those in records: each cell is rounded once or twice."""
    for unit, record, size in zip(mine.tolist(), theirs, cells, strict=True):
        assert abs(unit - record * UNITS) <= 2 * size + 1e-6 * abs(unit)


# --- Counts ----------------------------------------------------------------------------------------------------------


def test_what_a_countable_says_of_itself(countable: Countable) -> None:
    assert countable.domain == DOMAIN
    assert countable.max_records_per_person == 3
    assert "500" not in repr(countable), "the number of rows is private"


@pytest.mark.parametrize("rows", [0, 1, 2, 500])
def test_counts_are_those_of_records(kind: str, rows: int) -> None:
    table = table_of(rows)
    found = KINDS[kind](table).count(CLIQUES)
    for clique, mine, theirs in zip(CLIQUES, found, table.count(CLIQUES), strict=True):
        assert mine.dtype == np.int64
        assert mine.shape == DOMAIN.shape(clique)
        np.testing.assert_array_equal(mine, theirs)
    assert KINDS[kind](table).count([]) == []


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_threads_change_nothing(countable: Countable, threads: int) -> None:
    queries: list[QueryLike] = [*CLIQUES, Query(("d", "b"), {"d": np.array([0, 1, 0, 1, 2])})]
    table = table_of()
    for mine, theirs in zip(countable.count(queries, threads=threads), table.count(queries), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    independence = Independence(shares(), 480.0)
    for expect in (independence, expected):
        np.testing.assert_array_equal(
            countable.distances(PAIRS, expect, threads=threads), table.distances(PAIRS, expect, threads=1)
        )
    np.testing.assert_array_equal(countable.dependence(PAIRS, threads=threads), table.dependence(PAIRS, threads=1))


def test_bad_threads_and_too_little_memory_are_refused(countable: Countable) -> None:
    with pytest.raises(ParameterError, match="threads"):
        countable.count([("a", "b", "d")], threads=0)
    with pytest.raises(InfeasibleError):
        countable.count([("a", "b", "d")], memory_limit=64)


# --- Distances -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 1, 500])
def test_distances_from_independence_are_those_of_records(kind: str, rows: int) -> None:
    table, independence = table_of(rows), Independence(shares(), rows * 0.97)
    mine = KINDS[kind](table).distances(PAIRS, independence)
    assert mine.dtype == np.int64
    np.testing.assert_array_equal(mine, table.distances(PAIRS, independence))
    close(mine, map(naive, [table] * len(PAIRS), PAIRS, independence(PAIRS)), [DOMAIN.cells(pair) for pair in PAIRS])


@pytest.mark.parametrize("rows", [0, 1, 500])
def test_distances_from_any_tables_are_those_of_records(kind: str, rows: int) -> None:
    table, cliques = table_of(rows), CLIQUES
    mine = KINDS[kind](table).distances(cliques, expected)
    np.testing.assert_array_equal(mine, table.distances(cliques, expected))
    theirs = map(naive, [table] * len(cliques), cliques, expected(cliques))
    close(mine, theirs, [DOMAIN.cells(clique) for clique in cliques])
    assert KINDS[kind](table).distances([], expected).tolist() == []


def test_distances_in_buckets(countable: Countable) -> None:
    queries: list[QueryLike] = [
        Query(("d", "b"), {"d": np.array([0, 1, 0, 1, 2])}),
        Query(("b",), {"b": np.array([1, 1, 0, 0])}),
        ("a", "b"),
        Query(("c", "a")),
    ]
    for expect in (expected, Independence(shares(), 480.0)):
        mine = countable.distances(queries, expect)
        np.testing.assert_array_equal(mine, table_of().distances(queries, expect))
        theirs = map(naive, [table_of()] * len(queries), queries, expect(queries))
        close(mine, theirs, [Query(("d", "b")).cells(DOMAIN)] * len(queries))


@pytest.mark.parametrize("name", GROUPED)
def test_distances_of_a_group(name: str) -> None:
    """Independence expects of a group its share of the records."""
    queries: list[QueryLike] = [Query(("b",), where={"a": 1}), Query(("d", "b"), where={"a": 2, "c": 0}), ("b", "d")]
    table = table_of()
    for expect in (expected, Independence(shares(), 480.0)):
        mine = KINDS[name](table).distances(queries, expect)
        theirs = [naive(table, asked, one) for asked, one in zip(queries, expect(queries), strict=True)]
        close(mine, theirs, [20] * 3)
    (alone,) = Independence(shares(), 480.0)([Query(("b",), where={"a": 1})])
    np.testing.assert_allclose(alone, 480 * shares()["a"][1] * shares()["b"])


def test_mixed_orders_under_independence(countable: Countable) -> None:
    """Pairs beside other cliques go another way through the kernels; the distance stays the same but for rounding."""
    independence, table = Independence(shares(), 480.0), table_of()
    mine = countable.distances(CLIQUES, independence)
    theirs = map(naive, [table] * len(CLIQUES), CLIQUES, independence(CLIQUES))
    close(mine, theirs, [DOMAIN.cells(clique) for clique in CLIQUES])


@pytest.mark.parametrize("rows", [0, 1, 500])
def test_dependence_is_the_distance_from_the_pairs_own_margins(kind: str, rows: int) -> None:
    table = table_of(rows)
    mine = KINDS[kind](table).dependence(PAIRS)
    np.testing.assert_array_equal(mine, table.dependence(PAIRS))
    theirs = []
    for counts in table.count(PAIRS):
        product = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / max(rows, 1)
        theirs.append(float(np.abs(counts - product).sum()))
    close(mine, theirs, [DOMAIN.cells(pair) for pair in PAIRS])


@given(st.integers(0, 2**32), st.integers(0, 60))
def test_one_person_moves_a_distance_by_no_more_than_its_rows(seed: int, rows: int) -> None:
    """For each kind: the sensitivity that scores are paid for."""
    table = table_of(rows + 3, seed % 1000)
    fewer = Records({name: table[name][3:] for name in DOMAIN}, DOMAIN, max_records_per_person=3)
    for make in KINDS.values():
        with_them, without = (make(one).distances(CLIQUES, expected) for one in (table, fewer))
        assert np.abs(with_them - without).max() <= 3 * UNITS


# --- Views -----------------------------------------------------------------------------------------------------------


def test_views_of_every_kind_compose(countable: Countable) -> None:
    first = {"x": ("d", np.array([2, 0, 1, 0, 2])), "y": ("b", None), "z": ("a", np.array([1, 0, 1]))}
    second = {"u": ("x", np.array([1, 1, 0])), "v": ("y", np.array([0, 0, 1, 2])), "w": ("z", None)}
    middle, last = Domain({"x": 3, "y": 4, "z": 2}), Domain({"u": 2, "v": 3, "w": 2})
    table = table_of()
    columns = {
        "u": second["u"][1][first["x"][1][table["d"]]],  # type: ignore[index]
        "v": second["v"][1][table["b"]],  # type: ignore[index]
        "w": first["z"][1][table["a"]],  # type: ignore[index]
    }
    made = Records(columns, last)
    view = countable.view(first, middle).view(second, last)
    assert (view.domain, view.max_records_per_person) == (last, 3)
    cliques: list[tuple[str, ...]] = [(), ("u",), ("v", "u"), ("w", "u", "v")]
    for mine, theirs in zip(view.count(cliques), made.count(cliques), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    pairs = list(combinations(last, 2))
    np.testing.assert_array_equal(view.dependence(pairs), made.dependence(pairs))
    halves = {name: np.full(size, 1 / size) for name, size in last.items()}
    independence = Independence(halves, 500.0)
    np.testing.assert_array_equal(view.distances(pairs, independence), made.distances(pairs, independence))


def test_one_attribute_may_be_seen_twice(countable: Countable) -> None:
    maps = {"coarse": ("d", np.array([0, 0, 1, 1, 1])), "fine": ("d", None), "b": ("b", None)}
    view = countable.view(maps, Domain({"coarse": 2, "fine": 5, "b": 4}))
    counts = table_of().count([("d", "b")])[0]
    (coarse,), (fine,) = view.count([("coarse", "b")]), view.count([("fine", "b")])
    np.testing.assert_array_equal(fine, counts)
    np.testing.assert_array_equal(coarse, [counts[:2].sum(axis=0), counts[2:].sum(axis=0)])


def test_a_map_of_records_has_a_code_for_each_code() -> None:
    for codes in ([0, 1], [0, 1, 0, 1], [0, 1, 2], [0, 1, -1]):
        with pytest.raises(DomainError, match="the map of 'x' needs a code below 2 for each code of 'a'"):
            table_of().view({"x": ("a", np.array(codes))}, Domain({"x": 2}))


def test_columns_that_do_not_change_are_not_copied() -> None:
    table = table_of()
    view = table.view({"x": ("a", None), "b": ("b", np.array([1, 0, 0, 0], dtype=np.uint8))}, Domain({"x": 3, "b": 2}))
    assert np.shares_memory(view["x"], table["a"])
    assert view["b"].dtype == np.uint8


# --- What is kept ----------------------------------------------------------------------------------------------------


class Counting(View):
    """A view that notes what is counted behind it."""

    __slots__ = ("asked",)

    def __init__(self, table: Records) -> None:
        base, maps = finer(table)
        super().__init__(base, maps, table.domain)
        self.asked: list[QueryLike] = []

    def count(self, queries: Sequence[QueryLike], **given: Any) -> list[Any]:
        self.asked += queries
        return super().count(queries, **given)


def test_kept_counts_are_not_counted_again_and_cannot_be_changed() -> None:
    rows = Counting(table_of())
    cached = Cached(rows).keep([("a", "b"), ("c",)])
    assert cached.kept == {("a", "b"), ("c",)}
    assert sorted(map(str, rows.asked)) == sorted(map(str, [("a", "b"), ("c",)]))
    rows.asked.clear()
    (pair,) = cached.keep([("c",), ("a", "b")]).count([("a", "b")])
    (plain,) = cached.count([Query(("a", "b"))])
    assert rows.asked == []
    np.testing.assert_array_equal(pair, plain)
    with pytest.raises(ValueError, match="read-only"):
        pair[0, 0] = 7
    cached.count([("a", "b"), ("b", "a"), Query(("a", "b"), {"a": np.array([0, 0, 1])})])
    assert len(rows.asked) == 2


def test_there_is_room_for_the_smallest_first() -> None:
    cached = Cached(table_of(), room=8 * (2 + 12)).keep([("a", "b", "d"), ("a", "b"), ("c",), ("b", "d")])
    assert cached.kept == {("c",), ("a", "b")}
    for mine, theirs in zip(cached.count(CLIQUES), table_of().count(CLIQUES), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_1_ways_and_the_number_of_records_take_no_pass() -> None:
    table = table_of()
    countable = passes(table)
    read = []

    def noted(counts: Counts) -> Counts:
        read.append([asked.clique if isinstance(asked, Query) else asked for asked in counts.counter.queries])
        return passes_read(counts)

    passes_read = countable._read
    countable._read = noted
    coarse = Query(("d",), {"d": np.array([0, 0, 1, 1, 0])})
    queries: list[QueryLike] = [(), ("d",), coarse, Query(("a",))]
    found = countable.count(queries)
    assert read == []
    for mine, theirs in zip(found, table.count(queries), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    countable.count([("a",), ("a", "b"), Query(("b",), where={"a": 1})])
    assert read == [[("a", "b"), ("b",)]], "one pass for all others"
