"""Checks of a schema's declaration: names, columns, and how columns depend on each other.

A declaration is public, so these errors may quote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chicle.columns import Column, column_from_dict
from chicle.columns.base import is_unicode
from chicle.columns.declare import unknown
from chicle.domain import Clique, Domain
from chicle.errors import SchemaError
from chicle.schema.persons import is_for_persons, is_id_of_persons

__all__ = [
    "check_among",
    "check_person",
    "columns_from",
    "data_from",
    "described",
    "max_records_from",
    "partition_from",
    "unlimited",
    "with_order",
]

_DATA = ("name", "date", "rows", "drafted")


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


def max_records_from(value: object) -> tuple[int, str]:
    """Return the declared maximum of rows a person, and which of them are kept.

    Examples
    --------
    >>> max_records_from(3), max_records_from({"most": 3, "keep": "random"})
    ((3, 'first'), (3, 'random'))
    """
    keep: object = "first"
    if isinstance(value, Mapping):
        given = dict(value)
        if set(given) - {"most", "keep"} or "most" not in given:
            raise SchemaError(f"max_records must be a number or such as {{most: 3, keep: random}}, not {value!r}")
        value, keep = given["most"], given.get("keep", "first")
    if keep not in ("first", "random"):
        raise SchemaError(f'keep must be "first" or "random", not {keep!r}')
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SchemaError(f"max_records must be an integer of at least 1, not {value!r}")
    return value, str(keep)


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


def data_from(given: object) -> dict[str, str]:
    """Return the name and date of the data, as texts."""
    if not isinstance(given, Mapping):
        raise SchemaError(f"data is a mapping such as {{name: encounters, date: 2024}}, not {given!r}")
    for key, value in given.items():
        if key not in _DATA:
            raise SchemaError(f"data has no {key!r}; {unknown(str(key), _DATA)}")
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise SchemaError(f"data: {key} must be a text, not {value!r}")
        if key == "rows" and (not str(value).isdigit() or int(value) < 1):
            raise SchemaError(f"data: rows must be a number of rows from 1 on, not {value!r}")
    return {key: str(value) for key, value in given.items()}


def unlimited(columns: Mapping[str, Column], k: int) -> str | None:
    """Return what a reader must be told where no column is declared to identify persons but one may; else None."""
    ids = [name for name, column in columns.items() if column.may_be_person and is_for_persons(name)]
    ids += [name for name in columns if is_id_of_persons(name)]
    ids += [name for name, column in columns.items() if column.type == "identifier"]
    if not ids:
        return None
    rows = "one row a person" if k == 1 else f"at most {k} rows a person"
    return (
        f"{rows} is an ASSUMPTION: the schema names no `person`, so nothing enforces it, although {ids[0]!r} holds "
        f"ids; if it identifies persons, write `person: {ids[0]}`"
    )


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


def partition_from(given: object, domain: Domain) -> Clique:
    """Return the declared columns of the partition; columns that are not modelled are an error."""
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [None]
    if not all(isinstance(name, str) for name in names):
        raise SchemaError("partition: must be a list of columns, such as [state]")
    for name in map(str, names):
        if name not in domain:
            raise SchemaError(f"partition: the schema models no column {name!r}; name a modelled column")
    if len(set(names)) < len(names):
        raise SchemaError("partition: a column occurs twice; name each once")
    return tuple(map(str, names))
