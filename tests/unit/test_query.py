"""What may be asked of a table, and that whoever counts rows answers the same."""

import pickle
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chicle import Counter, Domain, DomainError, ParameterError, Query, Records
from chicle.counting.countable import View
from chicle.query import Functional, Maps, as_query, one_ways
from tests.countables import GROUPED, KINDS

DOMAIN = Domain({"age": 6, "sex": 2, "job": 4})


# --- Functionals -----------------------------------------------------------------------------------------------------


@given(st.integers(1, 4), st.lists(st.integers(1, 4), min_size=0, max_size=3), st.integers(1, 5), st.integers(0, 2**32))
def test_a_functional_is_a_weighted_sum_with_a_tight_sensitivity(
    answers: int, shape: list[int], k: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.integers(-9, 10, (answers, *shape))
    functional = Functional(weights)
    table = rng.integers(0, 50, tuple(shape))
    naive = [int((weights[i] * table).sum()) for i in range(answers)]
    assert functional(table).tolist() == naive
    assert functional.answers == answers
    # A person with k rows adds k cells, some of them the same: all of them in the worst cell attain the bound.
    moves = [np.linalg.norm([k * row[cell] for row in weights]) for cell in product(*map(range, shape))]
    assert functional.l2_sensitivity(k) - 1 < max(moves) <= functional.l2_sensitivity(k) + 1e-9
    assert Query(("age",), functional=functional).l2_sensitivity(k) == functional.l2_sensitivity(k)
    assert Query(("age",)).l2_sensitivity(k) == k


def test_a_functional_without_weight_tells_nothing_and_costs_nothing() -> None:
    assert Functional(np.zeros((2, 3), dtype=int)).l2_sensitivity(4) == 0


def test_the_weights_of_a_functional_are_integers_that_nobody_changes() -> None:
    for wrong in (np.array([[0.5]]), np.array(1), np.array([["x"]]), np.array([[True]])):
        with pytest.raises(ParameterError, match="array of integers, a row for each answer"):
            Functional(wrong)
    given = np.array([[1, 2]])
    functional = Functional(given)
    given[0, 0] = 100
    assert functional(np.array([1, 1])).tolist() == [3]
    with pytest.raises(ValueError, match="read-only"):
        functional.weights[0, 0] = 5


# --- Checks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "rule"),
    [
        (Query(("age", "nobody")), "'nobody' is not an attribute"),
        (Query(("age", "age")), "names an attribute twice"),
        (Query(("sex",), {"age": np.zeros(6, dtype=int)}), "buckets of 'age'.*no such attribute"),
        (Query(("age",), {"age": np.zeros(5, dtype=int)}), "buckets of 'age' must have one integer .* 6 codes"),
        (Query(("age",), {"age": np.zeros(6)}), "buckets of 'age' must have one integer"),
        (Query(("age",), {"age": np.array([0, 0, 0, 0, 0, -1])}), "buckets of 'age' must have one integer from 0 on"),
        (Query(("age",), {"age": np.array([0, 0, 0, 0, 0, 2**32])}), "buckets of 'age' has a bucket of 2\\^32"),
        (Query(("age",), where={"nobody": 0}), "'nobody' is not an attribute"),
        (Query(("age",), where={"age": 0}), "cannot also fix 'age'"),
        (Query(("age",), where={"sex": 2}), "a group of 'sex' must be one of its codes, 0 to 1, not 2"),
        (Query(("age",), where={"sex": -1}), "a group of 'sex'"),
        (Query(("age",), where={"sex": True}), "a group of 'sex'"),
        (Query(("age",), where={"sex": 0.0}), "a group of 'sex'"),  # type: ignore[dict-item]
        (Query(("age",), functional=Functional(np.ones((1, 5), dtype=int))), r"shape \(5,\); the table has \(6,\)"),
        (
            Query(("age",), {"age": np.arange(6) // 2}, functional=Functional(np.ones((1, 6), dtype=int))),
            r"functional of \('age',\) has weights of shape \(6,\); the table has \(3,\)",
        ),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_what_does_not_fit_is_named(kind: str, query: Query, rule: str) -> None:
    with pytest.raises(DomainError, match=rule):
        query.checked(DOMAIN)
    table = Records({name: [0, 1] for name in DOMAIN}, DOMAIN)
    with pytest.raises(DomainError, match=rule):
        KINDS[kind](table).count([query])


def test_a_string_is_no_clique() -> None:
    with pytest.raises(DomainError, match=r"write \('age',\)"):
        as_query("age")
    assert as_query(["age", "sex"]).clique == ("age", "sex")


def test_shapes_cells_and_what_is_plain() -> None:
    halves = {"age": np.array([0, 0, 0, 1, 1, 1])}
    plain, coarse, group = Query(("job", "age")), Query(("job", "age"), halves), Query(("job",), where={"sex": 1})
    functional = Query(("job", "age"), halves, functional=Functional(np.ones((3, 4, 2), dtype=int)))
    assert [query.shape(DOMAIN) for query in (plain, coarse, group, functional)] == [(4, 6), (4, 2), (4,), (3,)]
    assert [query.cells(DOMAIN) for query in (plain, coarse, group, functional)] == [24, 8, 4, 3]
    assert functional.table_shape(DOMAIN) == (4, 2)
    assert [query.plain for query in (plain, coarse, group, functional)] == [True, False, False, False]
    assert (Query(()).shape(DOMAIN), Query(()).cells(DOMAIN)) == ((), 1)
    assert one_ways(DOMAIN) == [("age",), ("sex",), ("job",)]


def test_a_key_says_whether_two_queries_ask_the_same() -> None:
    halves: list[Any] = [np.array([0, 0, 0, 1, 1, 1], dtype=dtype) for dtype in (np.uint8, np.uint32, np.int64)]
    same = [Query(("age", "sex"), {"age": each}).key for each in [*halves, halves[0].tolist()]]
    assert len(set(same)) == 1, "whatever the type of its buckets"
    weights = [Functional(np.array(given)) for given in ([[1, 0]], [[0, 1]], [[1], [0]])]
    others = [
        Query(("age", "sex")),
        Query(("sex", "age")),
        Query(("sex", "age"), {"age": halves[0]}),
        Query(("age", "sex"), {"sex": np.array([0, 0])}),
        Query(("age",), where={"sex": 0}),
        Query(("age",), where={"sex": 1}),
        *(Query(("sex",), functional=each) for each in weights),
    ]
    assert len({same[0], *(query.key for query in others)}) == len(others) + 1


def test_queries_cannot_be_changed_and_can_be_pickled() -> None:
    query = Query(("age",), {"age": np.arange(6) // 2}, {"sex": 1}, Functional(np.array([[1, 0, 2]])))
    again = pickle.loads(pickle.dumps(query))  # noqa: S301
    assert again.key == query.key
    for mapping in (query.buckets, query.where):
        with pytest.raises(TypeError):
            mapping["job"] = 0  # type: ignore[index]


# --- Views -----------------------------------------------------------------------------------------------------------


def test_a_query_goes_through_a_view() -> None:
    maps: Maps = {"grown up": ("age", np.array([0, 0, 1, 1, 1, 1])), "gender": ("sex", None), "work": ("job", None)}
    behind = Query(("work", "grown up"), where={"gender": 1}).through(maps)
    assert (behind.clique, dict(behind.where)) == (("job", "age"), {"sex": 1})
    assert {name: codes.tolist() for name, codes in behind.buckets.items()} == {"age": [0, 0, 1, 1, 1, 1]}
    turned = Query(("grown up", "work"), {"grown up": np.array([1, 0]), "work": np.array([0, 0, 1, 1])}).through(maps)
    assert {name: codes.tolist() for name, codes in turned.buckets.items()} == {
        "age": [1, 1, 0, 0, 0, 0],
        "job": [0, 0, 1, 1],
    }
    with pytest.raises(DomainError, match="maps the codes of 'grown up'"):
        Query(("work",), where={"grown up": 1}).through(maps)
    with pytest.raises(DomainError, match="the same attribute of its rows twice"):
        Query(("grown up", "age")).through({**maps, "age": ("age", None)})


@given(st.integers(0, 2**32))
def test_through_one_view_and_another_is_through_both(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first: Maps = {"b": ("a", rng.integers(5, size=9)), "y": ("x", None)}
    second: Maps = {"c": ("b", rng.integers(3, size=5)), "z": ("y", rng.permutation(4))}
    both: Maps = {"c": ("a", second["c"][1][first["b"][1]]), "z": ("x", second["z"][1])}  # type: ignore[index]
    query = Query(("z", "c"), {"c": np.array([1, 0, 0])})
    apart, at_once = query.through(second).through(first), query.through(both)
    assert apart.key == at_once.key


@given(st.integers(0, 2**32), st.booleans())
def test_codes_of_a_view_that_no_row_can_have_are_empty_cells(seed: int, functional: bool) -> None:
    """Also the last ones, which the rows behind know nothing of."""
    rng = np.random.default_rng(seed)
    table = Records({"a": rng.integers(4, size=30), "b": rng.integers(3, size=30)}, {"a": 4, "b": 3})
    codes = rng.integers(5, size=4)
    view = View(table, {"c": ("a", codes), "b": ("b", None)}, Domain({"c": 7, "b": 3}))
    naive = np.zeros((7, 3), dtype=np.int64)
    np.add.at(naive, (codes[table["a"]], table["b"]), 1)
    weights = Functional(rng.integers(-3, 4, (2, 7, 3)))
    (counts,) = view.count([Query(("c", "b"), functional=weights if functional else None)])
    np.testing.assert_array_equal(counts, weights(naive) if functional else naive)
    seen = rng.permutation(7)
    (turned,) = view.count([Query(("b", "c"), {"c": seen})])
    np.testing.assert_array_equal(turned[:, seen], naive.T)


# --- Counting --------------------------------------------------------------------------------------------------------


@dataclass
class Case:
    """A table, and queries of it."""

    table: Records
    queries: list[Query]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    domain = Domain({f"a{i}": size for i, size in enumerate(sizes)})
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = draw(st.integers(0, 40))
    table = Records({name: rng.integers(size, size=rows) for name, size in domain.items()}, domain)
    queries = []
    for _ in range(draw(st.integers(1, 4))):
        grouping = draw(st.lists(st.sampled_from(list(domain)[::2]), max_size=2, unique=True))
        rest = [name for name in domain if name not in grouping]
        clique = tuple(draw(st.lists(st.sampled_from(rest), max_size=3, unique=True))) if rest else ()
        where = {name: int(rng.integers(domain[name])) for name in grouping}
        buckets = {name: rng.integers(3, size=domain[name]) for name in clique if draw(st.booleans())}
        query = Query(clique, buckets, where)
        if draw(st.booleans()):
            weights = rng.integers(-5, 6, (draw(st.integers(1, 3)), *query.table_shape(domain)))
            query = Query(clique, buckets, where, Functional(weights))
        queries.append(query)
    return Case(table, queries)


def naive(table: Records, query: Query) -> npt.NDArray[Any]:
    counts = np.zeros(query.table_shape(table.domain), dtype=np.int64)
    for row in range(len(table)):
        codes = {name: int(table[name][row]) for name in table.domain}
        if any(codes[name] != code for name, code in query.where.items()):
            continue
        counts[tuple(int(query.buckets[n][codes[n]]) if n in query.buckets else codes[n] for n in query.clique)] += 1
    if query.functional is None:
        return counts
    return np.array([(weights * counts).sum() for weights in query.functional.weights])


@pytest.mark.parametrize("kind", GROUPED)
@given(cases())
def test_every_countable_answers_as_a_loop_over_rows(kind: str, case: Case) -> None:
    for mine, query in zip(KINDS[kind](case.table).count(case.queries), case.queries, strict=True):
        assert mine.dtype == np.int64
        assert mine.shape == query.shape(case.table.domain)
        np.testing.assert_array_equal(mine, naive(case.table, query))


@given(cases(), st.integers(0, 40))
def test_counters_add_up_and_can_be_pickled(case: Case, at: int) -> None:
    domain = case.table.domain
    parts = [
        Counter(domain, case.queries).update(Records({n: case.table[n][rows] for n in domain}, domain))
        for rows in (slice(at), slice(at, None))
    ]
    merged = pickle.loads(pickle.dumps(parts[0])).merge(parts[1])  # noqa: S301
    for mine, query in zip(merged.result(), case.queries, strict=True):
        np.testing.assert_array_equal(mine, naive(case.table, query))
