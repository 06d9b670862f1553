"""Polars lazy frames, DuckDB relations and Dask frames are the same table as their rows."""

import importlib.util
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import chicle
from chicle import ArtefactError, Budget, Ledger, Records, Schema, SchemaError
from chicle.codecs import Codec
from chicle.counting.passes import Passes
from chicle.privacy import TestNoise
from chicle.sources import check_table, open_source, read_records
from tests.unit.test_sources import SCHEMA, people, same

with_dask = pytest.mark.skipif(importlib.util.find_spec("dask") is None, reason="dask is not installed")


def relation(table: pa.Table) -> Any:
    return duckdb.connect().from_arrow(table)


def dask_frame(table: pa.Table, number: int = 3) -> Any:
    dask = pytest.importorskip("dask.dataframe")
    return dask.from_pandas(table.to_pandas(), npartitions=number)


KINDS: dict[str, Callable[[pa.Table], Any]] = {
    "lazy": lambda table: pl.DataFrame(table).lazy(),
    "relation": relation,
    "dask": dask_frame,
}
each = pytest.mark.parametrize("kind", ["lazy", "relation", pytest.param("dask", marks=with_dask)])


@each
@pytest.mark.parametrize("rows", [700, 0])
def test_they_are_the_same_table(kind: str, rows: int) -> None:
    table = people(rows)
    opened = open_source(KINDS[kind](table), SCHEMA, in_memory=0)
    found = opened.countable(Codec(SCHEMA))
    assert isinstance(found, Passes) or rows == 0
    same(found, read_records(table, SCHEMA))
    assert opened.form.kind == {"lazy": "polars", "relation": "pyarrow", "dask": "pandas"}[kind]


@each
def test_a_fit_with_discovery_is_that_of_the_table(kind: str) -> None:
    table = people(2_000)
    columns: dict[str, Any] = {
        **SCHEMA.columns,
        "age": {"type": "integer", "min": 0, "max": 99, "bins": {"private": 8}},
    }
    schema = Schema({**columns, "job": {"type": "open", "missing": True}})
    released = []
    for given in (table, KINDS[kind](table)):
        ledger = Ledger(Budget(epsilon=2, delta=1e-6, discovery=1e-7), noise=TestNoise(3))
        released.append(chicle.Prism(epsilon=2, delta=1e-6).fit(given, schema, ledger=ledger).release_)
    assert released[0].schema == released[1].schema
    for one, other in zip(released[0].measurements, released[1].measurements, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
    assert list(released[1].sample(5, seed=0).columns if kind != "relation" else schema.columns) == list(schema.columns)


@each
def test_what_does_not_fit_is_refused(kind: str) -> None:
    table = people(50)
    with pytest.raises(SchemaError, match="'pay' is declared but not in the table"):
        open_source(KINDS[kind](table.drop_columns(["pay"])), SCHEMA)
    wrong = table.set_column(0, "age", pa.array([*range(49), 777]))
    with pytest.raises(SchemaError, match="'age' has a number outside its bounds") as raised:
        open_source(KINDS[kind](wrong), SCHEMA).countable(Codec(SCHEMA))
    assert "777" not in str(raised.value)


@pytest.mark.parametrize("kind", ["lazy", "relation"])
def test_persons_are_limited_and_tables_checked(kind: str) -> None:
    schema = Schema({"left": {"type": "boolean"}}, person="id", max_records_per_person=2)
    table = pa.table({"left": [True] * 5, "id": [1, 1, 1, 2, 1], "note": [None] * 5})
    dropping = Schema({"left": {"type": "boolean"}, "note": {"type": "drop"}}, person="id", max_records_per_person=2)
    found = open_source(KINDS[kind](table), dropping, in_memory=0).countable(Codec(dropping))
    assert int(found.count([()])[0]) == 3
    assert "column 'note' is not declared" in str(check_table(KINDS[kind](table), schema))


@with_dask
def test_dask_refuses_persons_and_keeps_rows() -> None:
    schema = Schema({"left": {"type": "boolean"}}, person="id")
    frame = dask_frame(pa.table({"left": [True, False], "id": [1, 1]}))
    with pytest.raises(SchemaError, match="does not limit the rows of a person"):
        chicle.Independent(epsilon=1, delta=1e-6).fit(frame, schema)
    with pytest.raises(SchemaError, match="take a sample of it there"):
        read_records(dask_frame(people(10)), SCHEMA)


def fails(frame: Any) -> Any:
    raise RuntimeError(f"the age of row 0 is {frame['age'].iloc[0]}")


@with_dask
def test_an_error_in_the_frame_quotes_nothing() -> None:
    frame = dask_frame(people(30))
    broken = frame.map_partitions(fails, meta=frame._meta)
    with pytest.raises(ArtefactError, match="Dask stopped with RuntimeError in the frame itself"):
        chicle.Independent(epsilon=1, delta=1e-6).fit(broken, SCHEMA)


@pytest.mark.parametrize("kind", ["lazy", "relation"])
def test_an_error_in_the_query_quotes_nothing(kind: str) -> None:
    table = pa.table({"left": ["true", "maybe 777"]})
    schema = Schema({"left": {"type": "boolean"}})
    asked = (
        pl.DataFrame(table).lazy().select(pl.col("left").cast(pl.Int64) > 0)
        if kind == "lazy"
        else relation(table).project('"left"::boolean AS "left"')
    )
    with pytest.raises(SchemaError, match=r"raises \w+; (call|run)|raises an error while it runs") as raised:
        open_source(asked, schema).countable(Codec(schema))
    assert "777" not in str(raised.value)


def test_lazy_frames_have_no_rows_of_their_own() -> None:
    assert isinstance(open_source(KINDS["lazy"](people(5)), SCHEMA).countable(Codec(SCHEMA)), Records)
