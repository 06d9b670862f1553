"""Where the declarations of a draft are publicly known: ``source:`` of each column.

A draft writes ``source: data`` for every column of which it read values, bounds or edges. A schema is reviewed only
when each of them names a public source instead, such as ``source: "questionnaire 2019, item 4"``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from chicle.columns import Column
from chicle.columns.declare import unknown
from chicle.errors import SchemaError

__all__ = ["DATA", "check_sources", "needs_source", "with_sources"]

DATA = "data"
"""The source of what only the private table says."""

_CHOSEN = {"type", "missing", "source", "coarse", "outside", "format", "decimals", "other", "most"}
"""Keys of declarations that are choices, not knowledge about the table."""

_SHOWN = 4


def check_sources(columns: Mapping[str, Column], *, drafted: bool) -> None:
    """Raise a SchemaError if a column still says ``source: data`` or, in a schema that was drafted, lacks a source."""
    lacking = [name for name, column in columns.items() if _lacks(column, drafted=drafted)]
    if not lacking:
        return
    named = ", ".join(map(repr, lacking[:_SHOWN])) + (f" and {len(lacking) - _SHOWN} more" * (len(lacking) > _SHOWN))
    some = f"column {named} has" if len(lacking) == 1 else f"columns {named} have"
    raise SchemaError(
        f"{some} no public source for what the draft read from the data; replace `source: data` by where it stands, "
        'such as `source: "questionnaire 2019, item 4"`, or call mark_reviewed(source=...)'
    )


def needs_source(column: Column) -> bool:
    """Return whether a declaration has values, bounds or edges, which a draft reads from the data.

    Examples
    --------
    >>> from chicle.columns import Boolean, Integer
    >>> needs_source(Integer(min=0, max=120)), needs_source(Boolean(missing=True))
    (True, False)
    """
    return column.modelled and not column.to_dict().keys() <= _CHOSEN


def with_sources(columns: Mapping[str, Column], source: str | Mapping[str, str] | None) -> dict[str, Column]:
    """Return the columns with sources in place of ``data``: one text for all, or one for each column."""
    if source is None:
        return dict(columns)
    if isinstance(source, str):
        return {
            name: replace(column, source=source) if column.source == DATA else column
            for name, column in columns.items()
        }
    for name in source:
        if name not in columns:
            raise SchemaError(f"source names {name!r}, which is not a column; {unknown(name, columns)}")
    return {
        name: replace(column, source=source[name]) if name in source else column for name, column in columns.items()
    }


def _lacks(column: Column, *, drafted: bool) -> bool:
    if column.source is not None:
        return column.source.strip().lower() == DATA
    return drafted and needs_source(column)
