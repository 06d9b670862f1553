"""What may be declared of a schema's columns: their names, declarations and how they hang together.

All of it is public, so the errors here may quote what was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chicle.columns import Coded, Column, Determined, Drop, Identifier, column_from_dict
from chicle.columns.base import is_unicode
from chicle.columns.declare import unknown
from chicle.errors import SchemaError

__all__ = ["check_determined", "check_person", "columns_from", "described", "max_records_from", "with_order"]


def columns_from(columns: Mapping[str, Column | Mapping[str, Any] | int]) -> dict[str, Column]:
    """Return the columns of a declaration.

    Examples
    --------
    >>> columns_from({"sex": 2, "smoker": {"type": "boolean"}})["sex"].cardinality
    2
    """
    if not isinstance(columns, Mapping):
        raise SchemaError(f"columns must be a mapping from name to declaration, not a {type(columns).__name__}")
    return {_name(name): _declared(name, told) for name, told in columns.items()}


def with_order(columns: dict[str, Column], ordinal: Iterable[str]) -> dict[str, Column]:
    """Return the columns, the coded ones among them that are named here with an order."""
    if isinstance(ordinal, str):
        raise SchemaError(f"ordinal is a list of attribute names, not a string; write [{ordinal!r}]")
    ordered: dict[str, Column] = {}
    for name in sorted(frozenset(ordinal)):
        if name not in columns:
            raise SchemaError(f"ordinal names {name!r}, which is not an attribute of this schema")
        column = columns[name]
        if not isinstance(column, Coded):
            raise SchemaError(f"ordinal names {name!r}, which is not coded; declare its own order by its type")
        ordered[name] = Coded(values=column.values, ordinal=True, missing=column.missing)
    return {**columns, **ordered}


def max_records_from(value: object) -> int:
    """Return how many rows one person may have, as a file says it."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SchemaError(f"max_records must be an integer of at least 1, not {value!r}")
    return value


def check_person(person: object, columns: Mapping[str, Column]) -> None:
    """Raise a SchemaError unless this can tell whose row it is: a column that is not modelled, or none."""
    if person is None:
        return
    if not isinstance(person, str) or not person:
        raise SchemaError(f"person must be the name of a column, not {person!r}")
    if not isinstance(columns.get(person, Identifier()), (Drop, Identifier)):
        raise SchemaError(
            f"column {person!r}: it is the person column, which is never modelled; "
            "declare it as identifier or drop, or not at all"
        )


def check_determined(columns: Mapping[str, Column]) -> None:
    """Raise a SchemaError unless every determined column follows from a modelled one."""
    for name, column in columns.items():
        if isinstance(column, Determined):
            source = columns.get(column.determined_by)
            if source is None or not source.modelled:
                raise SchemaError(
                    f"column {name!r}: determined_by names {column.determined_by!r}, which is no modelled column; "
                    f"{unknown(column.determined_by, [n for n, c in columns.items() if c.modelled])}"
                )
            try:
                column.check_source(source)
            except SchemaError as error:
                raise SchemaError(f"column {name!r}: {error}") from None


def described(column: Column) -> str:
    """Return what a column is, in a few words."""
    most = "up to " if column.undiscovered else ""
    codes = f", {most}{column.cardinality} codes" if column.modelled else ""
    by = f" by {column.determined_by!r}" if isinstance(column, Determined) else ""
    coarse = ", coarse in joint work" if column.coarse is not None else ""
    return f"{column.type}{by}{codes}{', missing is one' if column.missing else ''}{coarse}"


def _name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise SchemaError(f"a column's name must be a text, not {name!r}; quote it")
    if not is_unicode(name):
        raise SchemaError(f"a column's name must be Unicode, not {name!r}; rename it")
    return name


def _declared(name: str, told: Column | Mapping[str, Any] | int) -> Column:
    if isinstance(told, Column):
        return told
    if isinstance(told, int) and not isinstance(told, bool):
        return column_from_dict(name, {"type": "coded", "values": told})
    return column_from_dict(name, told)
