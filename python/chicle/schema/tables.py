"""The declaration of linked tables: which is the parent, which the child, and how their rows are joined.

A declaration is public, so these errors may quote it. They name the table and what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chicle.columns.declare import unknown
from chicle.errors import SchemaError

__all__ = ["Child", "Parent", "tables_from"]

_PARENT = ("key", "columns", "constraints")
_CHILD = ("parent", "key", "order", "max_per_parent", "min_per_parent", "wide", "columns", "constraints")
_WIDE, _ALL_WIDE = 4, 5
_MOST = 250  # children of a parent: each code of their number has a cell of its own


@dataclass(frozen=True, kw_only=True)
class Parent:
    """The table whose rows have children.

    Attributes
    ----------
    name
        The name of the table.
    key
        The column that identifies its rows.
    columns, constraints
        As for `Schema`.
    """

    name: str
    key: str
    columns: Mapping[str, Any]
    constraints: list[Any] = field(default_factory=list)

    def to_plain(self) -> dict[str, Any]:
        """Return what is declared beside columns and constraints."""
        return {"key": self.key}


@dataclass(frozen=True, kw_only=True)
class Child:
    """The table whose rows each belong to a row of another table.

    Attributes
    ----------
    name, parent
        The name of the table, and of the other.
    key
        The column with the key of the parent.
    order
        The column by which the children of a parent are in order; the order of the table's rows, if None.
    least, most
        How many children a parent has; of more, the first in order are kept.
    wide
        How many children have a slot of their own; later ones are made by a chain.
    columns, constraints
        As for `Schema`.
    """

    name: str
    parent: str
    key: str
    order: str | None
    least: int
    most: int
    wide: int
    columns: Mapping[str, Any]
    constraints: list[Any] = field(default_factory=list)

    def to_plain(self) -> dict[str, Any]:
        """Return what is declared beside columns and constraints."""
        order = {} if self.order is None else {"order": self.order}
        least = {"min_per_parent": self.least} if self.least else {}
        wide = {} if self.wide == default_wide(self.most) else {"wide": self.wide}
        return {"parent": self.parent, "key": self.key, **order, "max_per_parent": self.most, **least, **wide}


def default_wide(most: int) -> int:
    """Return how many children have a slot of their own, if that is not declared."""
    return most if most <= _ALL_WIDE else _WIDE


def tables_from(tables: object) -> tuple[Parent, Child]:
    """Return the parent and the child of a declaration.

    Examples
    --------
    >>> tables_from({"a": {"key": "id", "columns": {"x": 2}}, "b": {"parent": "c", "key": "id", "columns": {"y": 2}}})
    Traceback (most recent call last):
    chicle.errors.SchemaError: table 'b': its parent 'c' is not declared; it has 'a', 'b'
    """
    if not isinstance(tables, Mapping) or not tables:
        raise SchemaError(f"tables must be a mapping from name to declaration, not {tables!r}")
    for name, one in tables.items():
        if not isinstance(name, str) or not name or any(mark in name for mark in "/\\") or name.startswith("."):
            raise SchemaError(f"a table's name must be a plain word, not {name!r}: it may become the name of a file")
        if not isinstance(one, Mapping):
            raise SchemaError(
                f"table {name!r}: its declaration must be a mapping with `key:` and `columns:`, not {one!r}"
            )
    _check_links(tables)
    children = [name for name, one in tables.items() if "parent" in one]
    roots = [name for name in tables if name not in children]
    if len(roots) != 1 or len(children) != 1:
        raise SchemaError(
            f"linked tables are one parent and one child; {', '.join(map(repr, tables))} are {len(roots)} without a "
            f"parent and {len(children)} with one. Fit the other tables apart, or join them first"
        )
    return _parent(roots[0], tables[roots[0]]), _child(children[0], tables[children[0]])


def _check_links(tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise unless every parent is declared, no table is its own ancestor, and no chain has more than two tables."""
    for name, one in tables.items():
        if "parent" in one and one["parent"] not in tables:
            there = ", ".join(map(repr, tables))
            raise SchemaError(f"table {name!r}: its parent {one['parent']!r} is not declared; it has {there}")
    for name in tables:
        met = [name]
        while "parent" in tables[met[-1]]:
            met.append(tables[met[-1]]["parent"])
            if met[-1] in met[:-1]:
                raise SchemaError(f"table {name!r}: {' -> '.join(map(repr, met))} is a cycle; one table has no parent")
        if len(met) > 2:
            raise SchemaError(
                f"table {name!r}: {' -> '.join(map(repr, met))} is a chain of {len(met)} tables; linked tables are a "
                "parent and a child. Join two of the tables first"
            )


def _parent(name: str, given: Mapping[str, Any]) -> Parent:
    _check_keys(name, given, _PARENT)
    return Parent(name=name, key=_key(name, given), columns=_columns(name, given), constraints=_listed(name, given))


def _child(name: str, given: Mapping[str, Any]) -> Child:
    _check_keys(name, given, _CHILD)
    if "max_per_parent" not in given:
        raise SchemaError(
            f"table {name!r}: write `max_per_parent:`, the most rows of one of {given['parent']!r} to keep"
        )
    most = _number(name, given, "max_per_parent", 1, _MOST)
    least = _number(name, given, "min_per_parent", 0, most) if "min_per_parent" in given else 0
    wide = _number(name, given, "wide", max(least, 1), most) if "wide" in given else max(default_wide(most), least)
    order = given.get("order")
    if order is not None and (not isinstance(order, str) or not order):
        raise SchemaError(f"table {name!r}: order must be the name of a column, not {order!r}")
    return Child(
        name=name,
        parent=given["parent"],
        key=_key(name, given),
        order=order,
        least=least,
        most=most,
        wide=wide,
        columns=_columns(name, given),
        constraints=_listed(name, given),
    )


def _check_keys(name: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in given:
        if key not in known:
            raise SchemaError(f"table {name!r} has no {key!r}; {unknown(str(key), known)}")


def _key(name: str, given: Mapping[str, Any]) -> str:
    key = given.get("key")
    if not isinstance(key, str) or not key:
        other = f" of {given['parent']!r}" if "parent" in given else ""
        raise SchemaError(f"table {name!r}: write `key:`, the column that has the key{other}")
    return key


def _columns(name: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    columns = given.get("columns")
    if not isinstance(columns, Mapping) or not columns:
        raise SchemaError(f"table {name!r} declares no columns; write `columns:` and a line for each")
    return columns


def _listed(name: str, given: Mapping[str, Any]) -> list[Any]:
    constraints = given.get("constraints", [])
    if not isinstance(constraints, (list, tuple)):
        raise SchemaError(f"table {name!r}: constraints must be a list, not {constraints!r}")
    return list(constraints)


def _number(name: str, given: Mapping[str, Any], key: str, low: int, high: int) -> int:
    value = given[key]
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise SchemaError(f"table {name!r}: {key} must be an integer from {low} to {high}, not {value!r}")
    return value
