import multiprocessing
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import Counter, Domain, DomainError, InfeasibleError, ParameterError, Records
from tests.interrupt import interrupt
from tests.strategies import cliques_of, naive_count, records


@given(st.data(), records(), st.sampled_from([None, 1, 2, 8]))
def test_counts_match_the_oracle(data: st.DataObject, table: Records, threads: int | None) -> None:
    cliques = data.draw(cliques_of(table.domain))
    counts = chicle.count(table, cliques, threads=threads)
    assert len(counts) == len(cliques)
    for clique, marginal in zip(cliques, counts, strict=True):
        assert marginal.dtype == np.int64
        np.testing.assert_array_equal(marginal, naive_count(table, clique))


@given(st.data(), records(), st.integers(1, 100))
def test_batches_match_the_whole(data: st.DataObject, table: Records, size: int) -> None:
    cliques = data.draw(cliques_of(table.domain))
    parts = [Counter(table.domain, cliques, threads) for threads in (None, 1)]
    for i, start in enumerate(range(0, len(table), size)):
        rows = slice(start, start + size)
        parts[i % 2].update(Records({name: table[name][rows] for name in table}, table.domain))
    whole, other = parts
    whole.merge(pickle.loads(pickle.dumps(other)))  # noqa: S301 - our own bytes
    for clique, marginal in zip(cliques, whole.result(), strict=True):
        np.testing.assert_array_equal(marginal, naive_count(table, clique))


def test_all_pairs_of_a_census_agree_with_numpy_for_any_number_of_threads() -> None:
    census = chicle.datasets.census(60_000, d=30)
    pairs = chicle.pairs(census.domain)
    one, two, eight = (chicle.count(census, pairs, threads=threads) for threads in (1, 2, 8))
    for (a, b), x, y, z in zip(pairs, one, two, eight, strict=True):
        cell = census[a].astype(np.int64) * census.domain[b] + census[b]
        expected = np.bincount(cell, minlength=x.size).reshape(x.shape)
        for counts in (x, y, z):
            np.testing.assert_array_equal(counts, expected)


def test_axes_follow_the_names() -> None:
    table = Records({"a": [0, 0, 1], "b": [2, 2, 0]}, {"a": 2, "b": 3})
    ab, ba, none = chicle.count(table, [("a", "b"), ("b", "a"), ()])
    assert ab.tolist() == [[0, 0, 2], [1, 0, 0]]
    assert ba.tolist() == ab.T.tolist()
    assert none.shape == ()
    assert int(none) == 3


def test_columns_are_not_needed_to_be_contiguous() -> None:
    square = np.arange(8, dtype=np.uint8).reshape(4, 2) % 3
    table = Records({"a": square[:, 0], "b": square[:, 1]}, {"a": 3, "b": 3})
    np.testing.assert_array_equal(chicle.count(table, [("a", "b")])[0], naive_count(table, ("a", "b")))


@pytest.mark.parametrize(
    ("cliques", "rule"),
    [
        ("ab", "list of tuples"),
        (["a"], r"write \('a',\)"),
        ([("a", "z")], "'z' is not an attribute"),
        ([("a", "a")], "names an attribute twice"),
    ],
)
def test_bad_cliques_are_refused(cliques: Any, rule: str) -> None:
    table = Records({"a": [0], "b": [0]}, {"a": 2, "b": 3})
    with pytest.raises(DomainError, match=rule):
        chicle.count(table, cliques)
    with pytest.raises(DomainError, match=rule):
        Counter(table.domain, cliques)


def test_a_huge_table_is_refused_with_its_size() -> None:
    domain = Domain(dict.fromkeys("abcdefghij", 50_000))
    table = Records({name: [0] for name in domain}, domain)
    with pytest.raises(InfeasibleError, match=r"\(a, b\).* 2500000000 cells .* 20000400000 bytes"):
        chicle.count(table, [("a",), ("a", "b")])
    with pytest.raises(InfeasibleError, match="memory_limit"):
        Counter(domain, [tuple(domain)])
    with pytest.raises(InfeasibleError, match=r"\(b\)"):
        chicle.count(table, [("a",), ("b",)], memory_limit=600_000)


def test_cliques_may_be_any_iterable_and_none_is_fine() -> None:
    table = Records({"a": [0], "b": [2]}, {"a": 2, "b": 3})
    assert chicle.count(table, []) == []
    assert chicle.count(table, (["b"] for _ in range(1)))[0].tolist() == [0, 0, 1]
    with pytest.raises(DomainError, match="at most 32 axes"):
        chicle.count(
            Records({f"a{i}": [0] for i in range(40)}, {f"a{i}": 1 for i in range(40)}), [[f"a{i}" for i in range(40)]]
        )


def test_numpy_numbers_will_do() -> None:
    table = Records({"a": [0, 1]}, {"a": np.int64(2)})  # type: ignore[dict-item]
    assert chicle.count(table, [("a",)], threads=np.int64(2), memory_limit=np.int64(1000))[0].tolist() == [1, 1]  # type: ignore[arg-type]


def test_a_counter_may_be_shared_by_threads() -> None:
    census = chicle.datasets.census(300_000, d=6)
    cliques = chicle.pairs(census.domain)
    counter, other = Counter(census.domain, cliques, 2), Counter(census.domain, cliques, 2)

    def work(i: int) -> None:
        if i % 3 == 2:
            (counter if i % 2 else other).merge(other if i % 2 else counter)
        (counter if i % 2 else other).update(census)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(12), timeout=120))
    for a, b in zip(counter.result(), Counter(census.domain, cliques).merge(counter).result(), strict=True):
        np.testing.assert_array_equal(a, b)
    before = counter.result()
    for a, b in zip(before, counter.merge(counter).result(), strict=True):
        np.testing.assert_array_equal(2 * a, b)


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2", 2**64])
def test_threads_are_a_positive_number(threads: Any) -> None:
    with pytest.raises(ParameterError, match="threads"):
        chicle.count(Records({"a": [0]}, {"a": 2}), [("a",)], threads=threads)


@pytest.mark.parametrize("limit", [0, -1, 2.5, 2**64])
def test_the_memory_limit_is_a_positive_number(limit: Any) -> None:
    with pytest.raises(ParameterError, match="memory_limit"):
        chicle.count(Records({"a": [0]}, {"a": 2}), [("a",)], memory_limit=limit)


def test_a_column_changed_behind_our_back_is_seen() -> None:
    codes = np.zeros(100, dtype=np.uint8)
    table = Records({"a": codes}, {"a": 2})
    codes[50] = 7
    with pytest.raises(DomainError, match='attribute "a": a code is outside its domain'):
        chicle.count(table, [("a",)])


def test_counters_refuse_what_is_not_theirs() -> None:
    counter = Counter({"a": 2, "b": 3}, [("a",)])
    with pytest.raises(DomainError, match="own domain"):
        counter.update(Records({"a": [0]}, {"a": 2}))
    with pytest.raises(DomainError, match="same domain and queries"):
        counter.merge(Counter({"a": 2, "b": 3}, [("b",)]))
    assert counter.result()[0].tolist() == [0, 0]


def test_a_counter_goes_on_after_a_result() -> None:
    counter = Counter({"a": 2}, [("a",), ()])
    batch = Records({"a": [0, 1, 1]}, {"a": 2})
    counter.update(batch)
    before = counter.result()
    counter.update(batch)
    assert [table.tolist() for table in before] == [[1, 2], 3]
    assert [table.tolist() for table in counter.result()] == [[2, 4], 6]


def _count_in_child() -> list[int]:
    table = Records({"a": np.arange(200_000) % 7}, {"a": 7})
    counts: list[int] = chicle.count(table, [("a",)], threads=2)[0].tolist()
    return counts


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_counts_too() -> None:
    expected = _count_in_child()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_count_in_child).get(timeout=60) == expected


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
def test_ctrl_c_stops_a_long_count(tmp_path: Path) -> None:
    prepare = """
        import chicle, numpy as np
        rng = np.random.default_rng(0)
        names = [f"a{i}" for i in range(60)]
        table = chicle.Records({name: rng.integers(200, size=400_000) for name in names}, dict.fromkeys(names, 200))
    """
    assert interrupt(tmp_path, prepare, "chicle.count(table, chicle.pairs(table.domain))") == "stopped\n"


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
def test_after_ctrl_c_a_counter_is_whole_or_says_that_it_is_not(tmp_path: Path) -> None:
    """Ctrl-C may fall into a pass or between two; never may counts be wrong, or the interrupt come up again."""
    prepare = """
        import chicle
        table = chicle.datasets.census(2_000_000, d=40)
        counter = chicle.Counter(table.domain, [(), *chicle.pairs(table.domain)])

        def state():
            try:
                total, *pairs = counter.result()
            except chicle.ChicleError as error:
                return "start a new one" in str(error)
            return total % 2_000_000 == 0 and all(pair.sum() == total for pair in pairs)
    """
    assert interrupt(tmp_path, prepare, "counter.update(table)", "state()") == "True\n"
