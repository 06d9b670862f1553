"""At most k rows of a person get through, whatever the batches, the files and the memory."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import Budget, Ledger, Query, Schema, SchemaError
from chicle.codecs import Codec
from chicle.privacy import TestNoise
from chicle.sources import open_source, people, read_records
from chicle.sources.table_files import write_table
from tests.schemas import Raw

Rows = list[tuple[int, int]]

rows_of_people = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), max_size=60)
MAKE: dict[str, Any] = {
    "integers": lambda ids: pa.array(ids, pa.int64()),
    "bytes": lambda ids: pa.array(ids, pa.uint8()),
    "texts": lambda ids: pa.array([f"p{i}" for i in ids], pa.string()),
    "categories": lambda ids: pa.array([f"p{i}" for i in ids], pa.string()).dictionary_encode(),
    "numbers": lambda ids: pa.array([i / 2 for i in ids], pa.float64()),
    "dates": lambda ids: pa.array(ids, pa.int32()).cast(pa.date32()),
}


def schema_of(k: int) -> Schema:
    return Schema({"x": 4}, person="pid", max_records_per_person=k)


def table_of(rows: Rows, kind: str = "integers") -> pa.Table:
    return pa.table({"x": pa.array([x for _, x in rows], pa.uint8()), "pid": MAKE[kind]([who for who, _ in rows])})


def oracle(rows: Rows, k: int) -> list[int]:
    met: Counter[int] = Counter()
    kept = []
    for who, x in rows:
        met[who] += 1
        if met[who] <= k:
            kept.append(x)
    return kept


def cut(table: pa.Table, borders: list[int]) -> list[pa.Table]:
    ends = [0, *sorted(min(border, len(table)) for border in borders), len(table)]
    return [table.slice(a, b - a) for a, b in pairwise(ends)]


@given(
    rows=rows_of_people,
    k=st.integers(1, 4),
    kind=st.sampled_from(sorted(MAKE)),
    borders=st.lists(st.integers(0, 60), max_size=6),
    persons=st.sampled_from([1, 2, 100]),
    again=st.booleans(),
)
def test_no_more_than_k_rows_get_through_whatever_the_batches(
    *, rows: Rows, k: int, kind: str, borders: list[int], persons: int, again: bool
) -> None:
    schema, batches = schema_of(k), cut(table_of(rows, kind), borders)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(people.People.__init__, "__defaults__", (persons,))
        opened = open_source(batches if again else iter(batches), schema, in_memory=0)
        read = opened.countable(Codec(schema))
        expected = np.bincount(oracle(rows, k), minlength=4)
        np.testing.assert_array_equal(chicle.count(read, [("x",)])[0], expected)
        if again:  # another pass keeps the same rows, in order
            assert opened.reduce(Raw(), ["x"]).column("x").to_pylist() == oracle(rows, k)


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize("in_memory", [0, 2**28])
def test_persons_are_followed_across_files(tmp_path: Path, ending: str, in_memory: int) -> None:
    rng = np.random.default_rng(0)
    rows: Rows = list(zip(rng.integers(0, 50, 900).tolist(), rng.integers(0, 4, 900).tolist(), strict=True))
    for i, part in enumerate(cut(table_of(rows, "texts"), [100, 100, 500])):
        write_table(part if i % 2 else part.select(["pid", "x"]), tmp_path / f"{i}.{ending}")
    schema = schema_of(3)
    read = open_source(str(tmp_path / "*"), schema, in_memory=in_memory).countable(Codec(schema))
    expected = np.bincount(oracle(rows, 3), minlength=4)
    np.testing.assert_array_equal(chicle.count(read, [("x",)])[0], expected)
    assert expected.sum() <= 150


@given(rows=rows_of_people, k=st.integers(1, 3), who=st.integers(0, 6), size=st.integers(1, 20))
def test_a_person_moves_nobody_elses_rows_in_a_stream(rows: Rows, k: int, who: int, size: int) -> None:
    schema = schema_of(k)

    def counts(rows: Rows) -> Any:
        batches = cut(table_of(rows), list(range(0, len(rows), size)))
        return chicle.count(open_source(batches, schema, in_memory=0).countable(Codec(schema)), [("x",)])[0]

    difference = counts(rows) - counts([row for row in rows if row[0] != who])
    assert (difference >= 0).all()
    assert difference.sum() <= k
    assert difference.tolist() == np.bincount(oracle([row for row in rows if row[0] == who], k), minlength=4).tolist()


def test_a_release_of_a_stream_is_that_of_the_table() -> None:
    rng = np.random.default_rng(1)
    rows: Rows = list(zip(rng.integers(0, 400, 3_000).tolist(), rng.integers(0, 4, 3_000).tolist(), strict=True))
    schema, table = schema_of(2), table_of(rows, "texts")
    released = []
    for given_table in (table, open_source(cut(table, [7, 1_000, 2_000]), schema, in_memory=0)):
        ledger = Ledger(Budget(epsilon=1, delta=1e-6), noise=TestNoise(0))
        release = chicle.Independent(epsilon=1, delta=1e-6).fit(given_table, schema, ledger=ledger).release_
        assert release.notes[-1] == "Protects every person: of each value of 'pid' at most 2 rows were kept."
        by_purpose = {entry.event.purpose: entry.event.sensitivity for entry in release.ledger.entries}
        assert by_purpose == {"rows a person": 1, "1-way": 2}
        released.append(release.measurements[0].values.tolist())
    assert released[0] == released[1]


def test_another_order_of_persons_is_noticed() -> None:
    rows: Rows = [(0, 1), (1, 2), (0, 3), (2, 0)]
    batches = [table_of(rows)]
    schema = schema_of(1)
    stream = open_source(lambda: batches, schema, in_memory=0).countable(Codec(schema))
    np.testing.assert_array_equal(chicle.count(stream, [("x",)])[0], [1, 1, 1, 0])
    for changed in (rows[::-1], rows[:-1], [*rows, (0, 0)], [(0, 1), (0, 2), (1, 3), (2, 0)]):
        batches[:] = [table_of(changed)]
        # The 1-ways are known from the first pass; a group is not.
        with pytest.raises(SchemaError, match="other rows, or in another order"):
            chicle.count(stream, [Query((), where={"x": 1})])
    batches[:] = [table_of(rows)]
    assert chicle.count(stream, [Query((), where={"x": 1})])[0] == 1


def test_another_order_is_noticed_while_persons_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With more persons than memory holds, which rows are kept takes several passes: each must meet the same rows."""
    monkeypatch.setattr(people.People.__init__, "__defaults__", (1,))
    rows: Rows = [(0, 1), (0, 2), (1, 3), (1, 0), (2, 0), (2, 1)]
    schema, passes = schema_of(1), 0

    def batches() -> list[pa.Table]:
        nonlocal passes
        passes += 1
        return [table_of(rows[::-1] if passes == 3 else rows)]  # the first tells the columns

    with pytest.raises(SchemaError, match="other rows, or in another order"):
        open_source(batches, schema, in_memory=0).countable(Codec(schema))


def test_a_person_is_written_alike_everywhere() -> None:
    rows: Rows = [(0, 1), (1, 2)]
    schema = schema_of(1)
    for one, other in [("texts", "integers"), ("integers", "numbers"), ("dates", "texts")]:
        with pytest.raises(SchemaError, match="a person must have the same id everywhere"):
            open_source([table_of(rows, one), table_of(rows, other)], schema).countable(Codec(schema))
    for one, other in [("texts", "categories"), ("integers", "bytes")]:
        opened = open_source([table_of(rows, one), table_of(rows, other)], schema)
        assert len(opened.records(Codec(schema))) == 2
    for wrong, said in [([None, 1], "has missing values"), ([[1], [2]], "holds no plain values")]:
        with pytest.raises(SchemaError, match=f"column 'pid' {said}"):
            read_records(pa.table({"x": [0, 1], "pid": wrong}), schema)


def test_a_source_is_fitted_by_the_schema_that_it_was_opened_with() -> None:
    table = table_of([(0, 1)] * 5)
    opened = open_source(table.drop_columns(["pid"]), Schema({"x": 4}))
    for other in (schema_of(1), Schema({"x": 4}, max_records_per_person=2)):
        for read in (opened.records, opened.countable):
            with pytest.raises(SchemaError, match="another `person` or `max_records`"):
                read(Codec(other))


def test_nothing_of_a_person_shows() -> None:
    schema = schema_of(1)
    opened = open_source([table_of([(47_114_711, 1)] * 9)], schema, in_memory=0)
    stream = opened.countable(Codec(schema))
    assert "47114711" not in repr(stream) + repr(opened) + str(vars(opened)["_people"])
