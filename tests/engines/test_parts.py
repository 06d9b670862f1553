"""What engines run on parts of a table, without an engine: the same counts however rows are split and merged."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chicle
from chicle import Budget, Ledger, Records, Schema, SchemaError
from chicle.codecs import Codec
from chicle.counting.counts import Counts
from chicle.counting.digest import Digest
from chicle.counting.wire import pack, unpack
from chicle.privacy import TestNoise
from chicle.sources import open_source, read_records
from chicle.sources.engines import parts as engine
from chicle.sources.engines.parts import Bytes, EngineSource, Parts, RowStep, Step
from chicle.sources.frames import Form, arrow_columns
from tests.schemas import tables
from tests.unit.test_sources import SCHEMA, parts, people, same


class Lists(Parts):
    """Parts that are lists in this process; each step runs twice, as in an engine that tries again."""

    def __init__(self, make: Callable[[], list[list[bytes]]]) -> None:
        self.make, self.kept = make, False

    def then(self, step: Step) -> Parts:
        def run() -> list[list[bytes]]:
            twice = [[list(step(iter(part))) for part in self.make()] for _ in range(2)]
            return twice[1]

        return Lists(run)

    def joined(self, number: int) -> Parts:
        assert number >= 1
        return Lists(lambda: [[one for part in self.make()[i::number] for one in part] for i in range(number)])

    def keep(self) -> None:
        self.kept = True

    def drop(self) -> None:
        self.kept = False

    def collect(self) -> list[Bytes]:
        return [one for part in self.make() for one in part]


class Listed(EngineSource):
    """A table in parts in this process."""

    def __init__(self, tables: Sequence[pa.Table], schema: Schema) -> None:
        super().__init__(schema)
        self.tables = list(tables)
        self.made: list[Lists] = []

    @property
    def form(self) -> Form:
        return Form.of(self.tables[0], arrow_columns(self.tables[0]))

    def _rows(self, columns: Sequence[str], step: RowStep) -> Parts:
        def run() -> list[list[bytes]]:
            return [list(step(iter([arrow_columns(table.select(columns))]))) for table in self.tables]

        self.made.append(Lists(run))
        return self.made[-1]

    @staticmethod
    def _dump(task: Any) -> bytes:
        return pickle.dumps(task)


@given(st.lists(st.integers(0, 2**62) | st.integers(0, 300), max_size=50))
def test_packed_counts_are_the_counts(counts: list[int]) -> None:
    flat = np.array(counts, dtype=np.int64)
    np.testing.assert_array_equal(unpack(pack(flat)), flat)


def test_a_pickled_counter_is_small() -> None:
    census = chicle.datasets.census(20_000, d=30)
    counter = chicle.Counter(census.domain, chicle.pairs(census.domain)).update(census)
    cells = sum(table.size for table in counter.result())
    data = pickle.dumps(counter)
    assert len(data) < cells  # eight times that as they are in memory
    again = pickle.loads(data)  # noqa: S301 - our own
    again.merge(counter).merge(pickle.loads(data)).update(census)  # noqa: S301
    for one, other in zip(again.result(), counter.result(), strict=True):
        np.testing.assert_array_equal(one, 4 * other)


@given(drawn=tables(), borders=st.lists(st.integers(0, 30), max_size=6), fan_in=st.integers(2, 5))
@settings(max_examples=12)
def test_any_table_in_any_parts(
    drawn: tuple[dict[str, Any], dict[str, list[Any]]], borders: list[int], fan_in: int
) -> None:
    declared, values = drawn
    schema = Schema(declared)
    table = pa.table(arrow_columns(values))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "FAN_IN", fan_in)
        patch.setattr(engine, "_BLOCK", 10)
        same(Listed(parts(table, borders), schema).countable(Codec(schema)), read_records(table, schema))


def test_a_fit_is_that_of_one_table() -> None:
    table = people(900)
    released = []
    source = Listed(parts(table, [100, 100, 101, 700]), SCHEMA)
    for given_table in (table, source):
        ledger = Ledger(Budget(epsilon=2, delta=1e-6), noise=TestNoise(3))
        released.append(chicle.Prism(epsilon=2, delta=1e-6).fit(given_table, SCHEMA, ledger=ledger).release_)
    for one, other in zip(released[0].measurements, released[1].measurements, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
    assert [made.kept for made in source.made] == [False], "the codes are dropped in the end"


def test_problems_are_data_and_the_same_in_any_order() -> None:
    good, bad = people(10), people(5).set_column(0, "age", pa.array([1, 2, 3, 4, 777]))
    for split in ([good, bad, good], [bad, good]):
        source = Listed(split, SCHEMA)
        with pytest.raises(SchemaError, match=r"'age' has a number outside its bounds") as raised:
            chicle.Independent(epsilon=1, delta=1e-6).fit(source, SCHEMA)
        assert "777" not in str(raised.value)
        assert not source.made[-1].kept


def test_rows_stay_where_they_are() -> None:
    with pytest.raises(SchemaError, match="take a sample of it there"):
        Listed([people(5)], SCHEMA).records(Codec(SCHEMA))


def test_persons_that_are_not_limited_are_refused() -> None:
    schema = Schema({"left": {"type": "boolean"}}, person="id")
    source = Listed([pa.table({"left": [True], "id": [1]})], schema)
    with pytest.raises(SchemaError, match="does not limit the rows of a person"):
        chicle.Independent(epsilon=1, delta=1e-6).fit(source, schema)


def swapped(table: pa.Table) -> pa.Table:
    """Return a table with the same values in each column, two of them in other rows."""
    age = table["age"].to_pylist()
    last = max(range(len(age)), key=lambda row: abs(age[row] - age[0]))
    age[0], age[last] = age[last], age[0]
    return table.set_column(0, "age", pa.array(age))


CHANGES: dict[str, Callable[[pa.Table], pa.Table]] = {
    "other values": lambda table: pa.concat_tables([table.slice(1), table.slice(3, 1)]),
    "fewer rows": lambda table: table.slice(1),
    "values that changed places": swapped,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", ["batches", "engine"])
def test_a_table_that_changes_between_passes_stops_the_fit(change: str, kind: str) -> None:
    """With the ledger true: what was released before is spent, and nothing more."""
    table = people(500)
    now = [table]

    def batches() -> Iterator[pa.Table]:
        yield from now

    class Changing(chicle.Mechanism):
        def stages(self, setting: Any) -> Any:
            del setting
            return chicle.mechanisms.stages.Stages.of()

        def run(self, desk: Any) -> Any:
            desk.measure_one_ways(rho=desk.left / 2)
            desk.measure([tuple(desk.domain)[:3], tuple(desk.domain)[1:]], rho=desk.left / 4)
            now[0] = source.tables[0] = CHANGES[change](table)
            desk.measure([("age", "job"), ("left", "pay")], rho=desk.left)

    source = Listed([table], SCHEMA)
    given_table = source if kind == "engine" else open_source(batches, SCHEMA, in_memory=0)
    ledger = Ledger(Budget(rho=1))
    with pytest.raises(SchemaError, match="the table had other rows when it was read again"):
        Changing(rho=1).fit(given_table, SCHEMA, ledger=ledger)
    assert ledger.spent == pytest.approx(0.625)
    same(open_source(table, SCHEMA).countable(Codec(SCHEMA)), read_records(table, SCHEMA))


def test_a_digest_says_nothing() -> None:
    digest = Digest().add(Records({"a": [0, 1]}, {"a": 2}))
    assert repr(digest).startswith("<chicle.counting.digest.Digest object")
    assert "key" not in repr(Counts(chicle.Counter({"a": 2}, [()]), digest))
