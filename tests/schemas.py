"""Declarations of columns, and values that fit them, for property tests."""

import datetime as dt
from math import prod
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

from chicle import Records, Schema, SchemaError
from chicle.codecs import Codec
from chicle.columns import Column, column_from_dict
from chicle.sources import Task, decode_table, open_source, read_records
from chicle.sources.frames import Form
from chicle.sources.tasks import Columns

Drawn = tuple[dict[str, Any], list[Any]]

texts = st.text("abcÄ 01?'#:{}\n\"", max_size=5) | st.sampled_from(
    ["no", "null", "~", "06", "1e5", "2020-01-01", "true"]
)
outside = st.sampled_from(["refuse", "clamp"])
ZONES = ["UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe"]


@st.composite
def listed(draw: st.DrawFn, kind: str) -> tuple[dict[str, Any], st.SearchStrategy[Any]]:
    items: st.SearchStrategy[Any] = draw(st.sampled_from([texts, st.integers(-(2**63), 2**63 - 1), st.just(True)]))
    values = draw(st.lists(items, min_size=1, max_size=8, unique=True))
    return {"type": kind, "values": values}, st.sampled_from(values)


@st.composite
def integers(draw: st.DrawFn) -> tuple[dict[str, Any], st.SearchStrategy[Any]]:
    low = draw(st.integers(-1000, 1000) | st.integers(-(2**62), 2**62))
    width = draw(st.integers(0, 300) | st.integers(70_000, 10**6))
    told: dict[str, Any] = {"type": "integer", "min": low, "max": low + width, "outside": draw(outside)}
    how = draw(st.sampled_from(["each", "count", "edges"]))
    if how == "count" or width > 300:
        told["bins"] = draw(st.integers(1, min(width + 1, 300)))
    if how == "edges" and width:
        edges = sorted(draw(st.sets(st.integers(low, low + width), min_size=2, max_size=6)))
        told = {"type": "integer", "bins": [*edges, *edges[-1:]], "outside": told["outside"]}
        low, width = edges[0], edges[-1] - edges[0]
    wider = 0 if told["outside"] == "refuse" else 2**30
    return told, st.integers(low - wider, low + width + wider) | st.integers(low, low + width)


@st.composite
def numbers(draw: st.DrawFn) -> tuple[dict[str, Any], st.SearchStrategy[Any]]:
    rule = draw(outside)
    points = st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda x: round(x, 3))
    edges = sorted(draw(st.sets(points, min_size=2, max_size=6)))
    twice = draw(st.sets(st.sampled_from(edges)))
    told = {"type": "number", "bins": sorted([*edges, *twice]), "outside": rule}
    wider = {} if rule == "clamp" else {"min_value": edges[0], "max_value": edges[-1]}
    values = st.floats(**wider, allow_nan=False) | st.sampled_from(edges)  # type: ignore[arg-type]
    return told, values


@st.composite
def dates(draw: st.DrawFn) -> tuple[dict[str, Any], st.SearchStrategy[Any]]:
    low = draw(st.dates(dt.date(1900, 1, 1), dt.date(2050, 1, 1)))
    high = low + dt.timedelta(days=draw(st.integers(0, 3_000)))
    bins = draw(st.sampled_from(["1 days", "7 days", "100 days", "day", "week", "month", "quarter", "year"]))
    rule = draw(outside)
    told = {"type": "date", "min": str(low), "max": str(high), "bins": bins, "outside": rule}
    values = st.dates(low, high) if rule == "refuse" else st.dates(dt.date(1800, 1, 1), dt.date(2200, 1, 1))
    return told, values


@st.composite
def datetimes(draw: st.DrawFn) -> tuple[dict[str, Any], st.SearchStrategy[Any]]:
    low = draw(st.datetimes(dt.datetime(1975, 1, 1), dt.datetime(2030, 1, 1)))  # noqa: DTZ001
    high = low + dt.timedelta(seconds=draw(st.integers(1, 10**7)))
    bins = draw(st.sampled_from(["30 minutes", "6 hours", "1 days", "day", "week", "month", "quarter", "year"]))
    told = {"type": "datetime", "min": low.isoformat(), "max": high.isoformat(), "bins": bins, "outside": "clamp"}
    values = st.datetimes(low - dt.timedelta(days=1), high + dt.timedelta(days=1))
    zone = draw(st.none() | st.sampled_from(ZONES))
    if zone is None:
        return told, values
    # As an instant and back: a time that clocks skip has no instant of its own.
    there = ZoneInfo(zone)
    real = values.map(lambda v: v.replace(tzinfo=there).astimezone(dt.timezone.utc).astimezone(there))
    return {**told, "timezone": zone}, real


@st.composite
def columns(draw: st.DrawFn, rows: int) -> Drawn:
    """Draw a declaration and as many values that fit it."""
    told, values = draw(
        st.one_of(
            listed("categorical"),
            listed("ordinal"),
            st.just(({"type": "boolean"}, st.booleans())),
            st.integers(1, 300).map(lambda k: ({"type": "coded", "values": k}, st.integers(0, k - 1))),
            integers(),
            numbers(),
            dates(),
            datetimes(),
        )
    )
    if draw(st.booleans()):
        told, values = {**told, "missing": True}, values | st.none()
    return told, draw(st.lists(values, min_size=rows, max_size=rows))


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Draw declarations of columns by name, and values of a table that fits them."""
    rows = draw(st.integers(0, 8))
    names = draw(st.lists(texts.filter(bool), min_size=1, max_size=4, unique=True))
    drawn = {name: draw(columns(rows)) for name in names}
    return {name: told for name, (told, _) in drawn.items()}, {name: values for name, (_, values) in drawn.items()}


# --- What is declared of several columns ------------------------------------------------------------------------------


@st.composite
def coarse(draw: st.DrawFn, told: dict[str, Any]) -> dict[str, Any]:
    """Draw a coarse version of a declared column, or the column as it is."""
    column = column_from_dict("c", told)
    if draw(st.booleans()) or column.size > 10_000:
        return told
    if column.ordered:
        return {**told, "coarse": draw(st.integers(1, column.size))}
    if column.labels is None:
        return told
    group_of = [draw(st.integers(0, 2)) for _ in column.labels]
    groups = {
        f"group {g}": [label for label, of in zip(column.labels, group_of, strict=True) if of == g]
        for g in dict.fromkeys(group_of)
    }
    return {**told, "coarse": groups}


@st.composite
def selections(draw: st.DrawFn, column: Column) -> tuple[Any, set[int]]:
    """Draw what a declaration may say of some values of a column, and the codes that it means."""
    size, starts = column.size, column.starts
    everything = set(range(column.cardinality))
    if column.missing and draw(st.integers(0, 5)) == 0:
        said: Any = None
        meant = {size}
    elif starts is not None and (column.labels is None or draw(st.booleans())):
        first = draw(st.integers(0, size - 1))
        end = draw(st.integers(first + 1, size))
        said, meant = {}, set(range(first, end))
        if first or draw(st.booleans()):
            said["from"] = _bound(column, starts[first])
        if end < size:
            said["below"] = _bound(column, starts[end])
        said = said or {"from": _bound(column, starts[0])}
    elif column.labels is not None:
        meant = draw(st.sets(st.integers(0, size - 1), min_size=1, max_size=4))
        said = [column.labels[code] for code in sorted(meant)]
        said = said[0] if len(said) == 1 and draw(st.booleans()) else said
    else:
        said, meant = {"not": None} if column.missing else {"not": []}, set(range(size))
    if draw(st.booleans()) and meant < everything:
        return {"not": said}, everything - meant
    return said, meant


def _bound(column: Column, start: Any) -> Any:
    if column.type == "ordinal":
        return column.labels[start]  # type: ignore[index]
    return column.said_start(start) if column.type in ("date", "datetime") else start.item()


Codes = tuple[int, ...]
Rule = tuple[tuple[str, ...], Any]
"""Columns, and a function that tells of their codes whether a row may have them."""


@st.composite
def constraints(draw: st.DrawFn, columns: dict[str, Column]) -> tuple[dict[str, Any], Rule]:
    """Draw a constraint, and what it means."""
    names = draw(st.lists(st.sampled_from(sorted(columns)), min_size=2, max_size=min(3, len(columns)), unique=True))
    kind = draw(st.sampled_from(["forbid", "if", "allow"]))
    if kind == "allow":
        rows = draw(st.lists(st.tuples(*(selections(columns[name]) for name in names)), min_size=1, max_size=4))
        combinations = [[said for said, _ in row] for row in rows]

        def allowed(codes: Codes) -> bool:
            return any(all(code in meant for code, (_, meant) in zip(codes, row, strict=True)) for row in rows)

        return {"allow": names, "combinations": combinations}, (tuple(names), allowed)
    chosen = {name: draw(selections(columns[name])) for name in names}
    split = len(names) if kind == "forbid" else draw(st.integers(1, len(names) - 1))

    def satisfied(codes: Codes) -> bool:
        inside = [code in chosen[name][1] for name, code in zip(names, codes, strict=True)]
        return not all(inside[:split]) or (split < len(names) and all(inside[split:]))

    said = {name: told for name, (told, _) in chosen.items()}
    if kind == "forbid":
        return {"forbid": said}, (tuple(names), satisfied)
    told = {"if": {name: said[name] for name in names[:split]}, "then": {name: said[name] for name in names[split:]}}
    return told, (tuple(names), satisfied)


@st.composite
def joint(draw: st.DrawFn) -> tuple[Schema, dict[str, list[Any]], list[Rule]]:
    """Draw a schema with coarse and combined columns and constraints, a table that fits it, and what it says."""
    declared, rows = draw(tables().filter(lambda drawn: len(drawn[0]) > 1))
    told = {name: draw(coarse(one)) for name, one in declared.items()}
    columns = {name: column_from_dict(name, one) for name, one in told.items()}
    assume(all(column.size <= 10_000 and column.type != "datetime" for column in columns.values()))
    drawn = draw(st.lists(constraints(columns), max_size=3))
    rules = [rule for _, rule in drawn]
    combine: dict[str, Any] = {}
    if draw(st.booleans()):
        names = draw(st.lists(st.sampled_from(sorted(told)), min_size=2, max_size=3, unique=True))
        assume(prod(columns[name].cardinality for name in names) <= 10**6)
        combine["both"] = {"columns": names}
        if draw(st.booleans()):
            listed = draw(st.lists(st.tuples(*(selections(columns[name]) for name in names)), min_size=1, max_size=4))
            combine["both"]["combinations"] = [[said for said, _ in row] for row in listed]

            def in_list(codes: Codes) -> bool:
                return any(all(c in meant for c, (_, meant) in zip(codes, row, strict=True)) for row in listed)

            rules.append((tuple(names), in_list))
    try:
        schema = Schema(told, combine=combine, constraints=[said for said, _ in drawn])
    except SchemaError as error:
        assume(not any(text in str(error) for text in ("no row satisfies", "no combination is left")))
        raise
    records = read_records(table_of(declared, rows), schema)
    kept = [
        i
        for i in range(len(records))
        if all(allowed(tuple(int(records[name][i]) for name in names)) for names, allowed in rules)
    ]
    return schema, {name: [values[i] for i in kept] for name, values in rows.items()}, rules


TYPES: dict[str, Any] = {"number": pa.float64(), "boolean": pa.bool_(), "coded": pa.int64(), "integer": pa.int64()}


def arrow(told: dict[str, Any], values: list[Any]) -> pa.Array:
    kind = told["type"]
    if kind == "date":
        return pa.array(values, pa.date32())
    if kind == "datetime":
        return pa.array(values, pa.timestamp("us", told.get("timezone")))
    return pa.array(values, TYPES.get(kind) or pa.array(told["values"]).type)


def table_of(declared: dict[str, Any], rows: dict[str, list[Any]]) -> pa.Table:
    return pa.table({name: arrow(declared[name], rows[name]) for name in declared})


def read(table: Any, schema: Schema) -> tuple[Records, Form]:
    """Return a table as records, and the form in which such a table is given back."""
    opened = open_source(table, schema)
    return opened.records(Codec(schema)), opened.form


def table_again(table: Any, schema: Schema) -> Any:
    """Return a table that was encoded, and decoded to one of the same form."""
    records, form = read(table, schema)
    return decode_table(records, Codec(schema), form)


class Raw(Task[Columns]):
    """Keep all columns as they come."""

    def __init__(self) -> None:
        self.batches: list[Columns] = []

    def prepare(self, batch: Columns) -> Columns:
        return batch

    def add(self, prepared: Columns) -> None:
        self.batches.append(prepared)

    def merge(self, other: "Raw") -> None:
        self.batches += other.batches

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column of all rows."""
        chunks = [chunk for batch in self.batches for chunk in batch[name].chunks]
        return pa.chunked_array(chunks, chunks[0].type if chunks else pa.int64())
