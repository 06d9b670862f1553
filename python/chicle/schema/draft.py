"""A first draft of a schema, read from the data: **not private**, for a person to review.

Before a fit may use the draft, a person replaces everything that came from the data (bounds, lists of values, edges) by
public knowledge, and says in ``source:`` where that stands. Column types draft themselves
(`chicle.columns.drafting`); this module asks them, finds whose rows they are, and flags what needs a look.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chicle.columns import TYPES, Column, Date, Draft, Drop, Identifier, RawColumn
from chicle.columns.base import is_text
from chicle.errors import SchemaError
from chicle.schema.flags import FEW, Flags, Rare, RowsAPerson
from chicle.schema.persons import is_for_persons, rows_a_person
from chicle.schema.schema import Schema
from chicle.schema.sources import DATA, needs_source

__all__ = ["draft_columns"]

_MOST_APART = 2_000  # days between dates that follow each other


def draft_columns(table: Mapping[str, pa.ChunkedArray], name: str | None = None) -> Schema:
    """Propose a schema for the columns of a table, with the name of the data; see `chicle.draft_schema`."""
    if not any(len(values) for values in table.values()):
        raise SchemaError("the table has no rows to draft a schema from; write it by hand, from public knowledge")
    raw = {column: RawColumn(values, column) for column, values in table.items()}
    persons = {column: found for column, one in raw.items() if (found := rows_a_person(one)) is not None}
    person = max(persons, key=lambda column: (is_for_persons(column), persons[column].persons), default=None)
    drafts = {column: _draft(one, persons.get(column), chosen=column == person) for column, one in raw.items()}
    orders = _orders({column: draft.column for column, draft in drafts.items()}, table)
    whose = None if person is None else table[person]
    rare = {column: _rare(drafts[column].column, values, whose) for column, values in table.items()}
    flags = {
        column: _flags(raw[column], drafts[column], persons.get(column), orders.get(column), rare[column])
        for column in table
    }
    columns = {column: _with_source(drafts[column].column, flags[column]) for column in table}
    return Schema(
        columns,
        max_records_per_person=1 if person is None else persons[person].max_records,
        person=person,
        reviewed=False,
        flags=flags,
        data={**({} if name is None else {"name": name}), "drafted": dt.date.today().isoformat()},  # noqa: DTZ011
    )


def _draft(raw: RawColumn, person: RowsAPerson | None, *, chosen: bool) -> Draft:
    """Return the column of the first type that suits these values."""
    if person is not None and chosen:
        return Draft(Identifier(), "its type")
    if person is not None:
        return Draft(Drop(), "its type", remarks=("it is dropped: as an identifier, each row would get a new one",))
    types = sorted(TYPES.values(), key=lambda one: one.draft_order)
    return next(draft for one in types if (draft := one.draft(raw)) is not None)


def _flags(
    raw: RawColumn, draft: Draft, person: RowsAPerson | None, order: str | None, rare: tuple[Rare, ...]
) -> Flags:
    column = draft.column
    return Flags(
        read=draft.comment,
        needs_source=needs_source(column),
        identifier=column.type == "identifier",
        person=person,
        rare=rare,
        missing_marks=raw.marks if column.modelled else (),
        formats=() if raw.written is None else raw.written.formats,
        ambiguous="" if raw.written is None else raw.written.ambiguous,
        free_text=column.type == "drop" and raw.free_text,
        remarks=(*draft.remarks, *([] if order is None else [order])),
    )


def _orders(columns: Mapping[str, Column], table: Mapping[str, pa.ChunkedArray]) -> dict[str, str]:
    """Return a remark for each date that is never before another one."""
    dates = {name: _days(column.plain(table[name])) for name, column in columns.items() if isinstance(column, Date)}
    found: dict[str, str] = {}
    for name, own in dates.items():
        for other, before in dates.items():
            if name == other or own is None or before is None or name in found or other in found:
                continue
            least, most = (int(days or 0) for days in pc.min_max(pc.subtract(own, before)).as_py().values())
            if 0 <= least <= most <= _MOST_APART and most > 0:
                found[name] = (
                    f"it is never before {other!r}: `after: {other}, by: {{min: 0, max: {most}}}` in place of bounds "
                    "and bins keeps that"
                )
    return found


def _days(values: pa.ChunkedArray) -> pa.Array | None:
    try:
        return values.combine_chunks().cast(pa.date32(), safe=False).cast(pa.int32()).cast(pa.int64())
    except pa.ArrowException:
        return None


def _rare(column: Column, values: pa.ChunkedArray, persons: pa.ChunkedArray | None) -> tuple[Rare, ...]:
    """Return the labels and extremes of a draft that few rows, or rows of few persons, have."""
    if not needs_source(column):
        return ()
    plain = column.plain(values)
    plain = plain.cast(plain.type.value_type) if pa.types.is_dictionary(plain.type) else plain
    plain = pc.utf8_trim_whitespace(plain) if is_text(plain.type) else plain
    rows = pa.table({"value": plain, "whose": np.arange(len(plain)) if persons is None else persons})
    listed = column.declared_values
    if listed:
        rows = rows.filter(pc.is_valid(rows["value"])).group_by("value").aggregate([("whose", "count_distinct")])
        few = set(rows.filter(pc.less_equal(rows["whose_count_distinct"], FEW))["value"].to_pylist())
        return tuple(Rare("values", value) for value in listed if value in few)
    found = []
    for key in ("min", "max"):
        if (bound := getattr(column, key, None)) is not None:
            at_end = rows.filter(pc.equal(rows["value"], pc.min_max(rows["value"])[key]))
            found += [Rare(key, bound)] if pc.count_distinct(at_end["whose"]).as_py() <= FEW else []
    return tuple(found)


def _with_source(column: Column, flags: Flags) -> Column:
    return replace(column, source=DATA) if flags.needs_source else column
