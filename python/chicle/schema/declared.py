"""Checks of a schema's declaration: names, columns, and how columns depend on each other.

A declaration is public, so these errors may quote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chicle.columns import Column, column_from_dict
from chicle.columns.base import is_unicode
from chicle.errors import SchemaError

__all__ = ["check_among", "check_person", "columns_from", "described", "max_records_from", "with_order"]


def columns_from(columns: Mapping[str, Column | Mapping[str, Any] | int]) -> dict[str, Column]:
    """Return the columns of a declaration.

    Examples
    --------
    >>> columns_from({"sex": 2, "smoker": {"type": "boolean"}})["sex"].cardinality
    2
    """
    if not isinstance(columns, Mapping):
        raise SchemaError(f"columns must be a mapping from name to declaration, not a {type(columns).__name__}")
    return {_name(name): _declared(name, declaration) for name, declaration in columns.items()}


def with_order(columns: dict[str, Column], ordinal: Iterable[str]) -> dict[str, Column]:
    """Return the columns; the coded columns named in `ordinal` get an order."""
    if isinstance(ordinal, str):
        raise SchemaError(f"ordinal is a list of attribute names, not a string; write [{ordinal!r}]")
    ordered: dict[str, Column] = {}
    for name in sorted(frozenset(ordinal)):
        if name not in columns:
            raise SchemaError(f"ordinal names {name!r}, which is not an attribute of this schema")
        column = columns[name].with_order()
        if column is None:
            raise SchemaError(f"ordinal names {name!r}, which is not coded; its type decides whether it has an order")
        ordered[name] = column
    return {**columns, **ordered}


def max_records_from(value: object) -> int:
    """Return the declared maximum of rows a person."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SchemaError(f"max_records must be an integer of at least 1, not {value!r}")
    return value


def check_person(person: object, columns: Mapping[str, Column]) -> None:
    """Raise a SchemaError unless this can be the person column: one that is not modelled, or None."""
    if person is None:
        return
    if not isinstance(person, str) or not person:
        raise SchemaError(f"person must be the name of a column, not {person!r}")
    if person in columns and not columns[person].may_be_person:
        raise SchemaError(
            f"column {person!r}: it is the person column, which is never modelled; "
            "declare it as identifier or drop, or not at all"
        )


def check_among(columns: Mapping[str, Column]) -> None:
    """Raise a SchemaError unless every column fits the others."""
    for name, column in columns.items():
        try:
            column.check_among(columns)
        except SchemaError as error:  # noqa: PERF203 - a few turns
            raise SchemaError(f"column {name!r}: {error}") from None


def described(column: Column) -> str:
    """Return a short description of a column."""
    most = "up to " if column.undiscovered else ""
    codes = f", {most}{column.cardinality} codes" if column.modelled else ""
    by = f" by {column.follows!r}" if column.follows is not None else ""
    coarse = ", coarse in joint tables" if column.coarse is not None else ""
    return f"{column.type}{by}{codes}{' with missing' if column.missing else ''}{coarse}"


def _name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise SchemaError(f"a column's name must be a text, not {name!r}; quote it")
    if not is_unicode(name):
        raise SchemaError(f"a column's name must be Unicode, not {name!r}; rename it")
    return name


def _declared(name: str, declaration: Column | Mapping[str, Any] | int) -> Column:
    if isinstance(declaration, Column):
        return declaration
    if isinstance(declaration, int) and not isinstance(declaration, bool):
        return column_from_dict(name, {"type": "coded", "values": declaration})
    return column_from_dict(name, declaration)
