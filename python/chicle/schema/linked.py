"""The schema of linked tables: parents, and children that name their parent, under one budget.

It is the schema of the wide row (`chicle.schema.layout`), which has one row for each parent with all its children: one
row a person. So a fit, a plan, a ledger and a release need to know nothing else about it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise, product
from types import MappingProxyType
from typing import Any

import numpy as np

from chicle._text import percent
from chicle.columns import Column, Identifier, Integer
from chicle.columns.declare import unknown
from chicle.columns.slot import Slot
from chicle.domain import Clique
from chicle.errors import SchemaError
from chicle.presence import Presence
from chicle.schema.constraints import Constraint
from chicle.schema.families import FamilyRule, family_rules
from chicle.schema.layout import Layout, Weights
from chicle.schema.schema import Schema
from chicle.schema.tables import Child, Parent, tables_from
from chicle.workload import Workload

__all__ = ["LinkedSchema"]

_KEYS = ("chicle", "reviewed", "data", "tables", "constraints")


class LinkedSchema(Schema):
    """The declared columns of two linked tables, and how their rows belong together.

    Parameters
    ----------
    tables
        For each table its declaration: the parents have a `key` and `columns`; the children have a `parent`, their
        `key` (the column with the key of their parent), an `order`, `max_per_parent` and `columns`.
    constraints
        Rules across both tables: see `chicle.schema.families`. Those inside a table stand with the table.
    reviewed, data
        As for `Schema`.

    Examples
    --------
    >>> schema = LinkedSchema({
    ...     "patients": {"key": "id", "columns": {"sex": {"type": "categorical", "values": ["f", "m"]}}},
    ...     "visits": {"parent": "patients", "key": "id", "max_per_parent": 2, "columns": {"ward": 3}},
    ... })
    >>> schema.domain
    Domain(sex: 2, number of visits: 3, visits[1].ward: 4, visits[2].ward: 4)
    """

    def __init__(
        self,
        tables: Mapping[str, Any],
        *,
        constraints: Iterable[Mapping[str, Any]] | None = None,
        reviewed: bool = True,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        self.parent, self.child = tables_from(tables)
        self._declared = [dict(one) for one in constraints or []]
        self._tables = {one.name: _alone(one, reviewed=reviewed) for one in (self.parent, self.child)}
        own, theirs = (self._tables[one.name] for one in (self.parent, self.child))
        _check_parts(self.parent, own)
        _check_parts(self.child, theirs)
        self.rules: tuple[FamilyRule, ...] = family_rules(self._declared, self.child.name, theirs.columns)
        self.layout = Layout(
            self.parent.name,
            self.child.name,
            tuple(own.domain),
            tuple(theirs.domain),
            self.child.least,
            self.child.most,
            self.child.wide,
        )
        super().__init__(_wide_columns(self.layout, own, theirs), reviewed=reviewed, data=data)
        self._constraints = (
            *own.constraints,
            *self.layout.within(theirs.constraints),
            *self.layout.zeros(self.domain),
            *self._never_later(),
        )

    @classmethod
    def from_dict(cls, declaration: Mapping[str, Any]) -> LinkedSchema:
        """Return the schema of a declaration in plain data with `tables:`, as `to_dict` gives it."""
        for key in declaration:
            if key not in _KEYS:
                raise SchemaError(f"a schema of linked tables has no {key!r}; {unknown(str(key), _KEYS)}")
        constraints = declaration.get("constraints")
        if constraints is not None and (
            isinstance(constraints, (str, Mapping)) or not isinstance(constraints, Iterable)
        ):
            raise SchemaError(f"constraints must be a list, not {constraints!r}")
        return cls(
            declaration["tables"],
            constraints=constraints,
            reviewed=declaration.get("reviewed", True),
            data=declaration.get("data"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain data, for YAML and JSON."""
        plain: dict[str, Any] = {"chicle": 1, "reviewed": self.reviewed}
        if self._data:
            plain["data"] = dict(self._data)
        plain["tables"] = {}
        for one in (self.parent, self.child):
            told = self._tables[one.name].to_dict()
            columns = {name: told["columns"][name] for name in one.columns}
            inner = {"constraints": told["constraints"]} if "constraints" in told else {}
            plain["tables"][one.name] = {**one.to_plain(), "columns": columns, **inner}
        return {**plain, **({"constraints": self._declared} if self._declared else {})}

    @property
    def tables(self) -> Mapping[str, Schema]:
        """The schema of each table alone; its key is an identifier."""
        return MappingProxyType(self._tables)

    @property
    def parts(self) -> tuple[()]:
        """None: rows are repaired table by table, when wide rows are taken apart."""
        return ()

    @property
    def presence(self) -> Presence:
        """Which attributes of the wide row are there when."""
        return self.layout.presence

    @property
    def workload(self) -> Workload:
        """The pairs of attributes of the wide row that matter, and how much."""
        return self.layout.workload()

    @property
    def notes(self) -> tuple[str, ...]:
        """How a row of the wide table is made."""
        layout = self.layout
        slots = f"the first {layout.wide} have a slot each" if layout.chained else "each in a slot of its own"
        later = ", and one of the later ones a further slot, from which all later ones are made" * layout.chained
        return (
            (
                f"One record is a row of {layout.parent!r} with all its rows of {layout.child!r}, at most {layout.most}"
                f"; {slots}{later}. So every release has sensitivity 1, for both tables."
            ),
        )

    def split(self, one_ways: Mapping[str, float], *, weighed: bool) -> tuple[str, ...]:
        """Return how a budget is split between both tables, and why, for a plan.

        Parameters
        ----------
        one_ways
            For each attribute the share of the budget that its 1-way gets.
        weighed
            Whether the mechanism weighs pairs as `workload` says.
        """
        layout, weights = self.layout, Weights()
        parent, child = repr(layout.parent), repr(layout.child)
        slots = set(layout.presence.thresholds)
        shares = [
            math.fsum(one_ways[name] for name in one_ways if (name in slots) is inside) for inside in (False, True)
        ]
        singles = (
            f"1-ways of {parent} and of the number of {child} get {percent(shares[0])} of the budget, those of {child} "
            f"{percent(shares[1])}; tables of several columns get the rest, as the data say. "
        )
        why = "There is no fixed split between both tables, because a release of either has sensitivity 1"
        if not weighed:
            return (f"{singles if one_ways else ''}{why}, and this mechanism treats all columns of wide rows alike.",)
        parts = {"parents": 0.0, "within": 0.0, "across": 0.0, "between": 0.0}
        for pair, weight in self.workload.items():
            labels = [layout.slot_of(name) for name in pair]
            inside = sum(label is not None for label in labels)
            parts[("parents", "across", "within" if labels[0] == labels[1] else "between")[inside]] += weight
        of_all = {name: percent(part / math.fsum(parts.values())) for name, part in parts.items()}
        return (
            (
                f"{singles}{why}; weights of pairs take its place: {weights.parents:g} inside {parent}, "
                f"{weights.within:g} inside one of {child}, {weights.across:g} between both, {weights.consecutive:g} "
                f"between one of {child} and the next, {weights.others:g} between others; each further slot counts "
                f"{weights.fewer:g} times as much as the one before, for fewer have so many. So {of_all['parents']} of "
                f"all weight is inside {parent}, {of_all['within']} inside {child}, {of_all['across']} between both, "
                f"and {of_all['between']} between several of {child}."
            ),
        )

    @property
    def assumption(self) -> None:
        """None: the key of the parents tells whose row each is."""

    def _never_later(self) -> Iterator[Constraint]:
        """Yield what follows from rules about the last child for the wide row's attributes."""
        layout, own = self.layout, [str(place + 1) for place in range(self.layout.wide)]
        following = {**dict(pairwise(own)), **({"before": "later"} if layout.chained else {})}
        for rule in (one for one in self.rules if one.kind == "last" and len(one.masks) == 1):
            ((column, mask),) = rule.masks.items()
            for label, after in following.items():
                name, other = layout.name(label, column), layout.name(after, layout.children[0])
                if layout.slots[after] < layout.least:
                    continue
                ends = np.append(mask, False)[: self.domain[name]].astype(np.uint8)
                there = (np.arange(self.domain[other]) < self.domain[other] - 1).astype(np.uint8)
                allowed = np.array([[True, True], [True, False]])
                yield Constraint((name, other), (ends, there), allowed, rule.declaration, keep=True)

    def _but(self, columns: Mapping[str, Column], *, reviewed: bool, partition: Clique | None = None) -> LinkedSchema:
        del columns, partition
        told = self.to_dict()
        return LinkedSchema(told["tables"], constraints=self._declared, reviewed=reviewed, data=self._data or None)

    @property
    def _title(self) -> str:
        child = self.child
        return (
            f"Schema of linked tables: each of {self.parent.name!r} has {child.least} to {child.most} of "
            f"{child.name!r}, by {child.key!r}"
        )

    def _described(self, most: int) -> str:
        described = {name: table._described(most) for name, table in self._tables.items()}  # noqa: SLF001
        tables = [f"{name}: {text}" for name, text in described.items()]
        return "\n".join([self._title, *tables, *(f"  never violated: {rule}" for rule in self.rules)])


def _alone(table: Parent | Child, *, reviewed: bool) -> Schema:
    """Return the schema of one table; errors name it."""
    try:
        return Schema(_with_key(table), constraints=table.constraints, reviewed=reviewed)
    except SchemaError as error:
        raise SchemaError(f"table {table.name!r}: {error}") from None


def _with_key(table: Parent | Child) -> dict[str, Any]:
    """Return the columns of a table; a key that is not declared comes first, as an identifier."""
    return dict(table.columns) if table.key in table.columns else {table.key: Identifier(), **table.columns}


def _wide_columns(layout: Layout, parent: Schema, child: Schema) -> dict[str, Column]:
    number = Integer(min=layout.least, max=layout.most)
    slots = {
        layout.name(label, name): Slot(of=child.columns[name], optional=threshold >= layout.least)
        for (label, threshold), name in product(layout.slots.items(), layout.children)
    }
    made = {**parent.columns, layout.number: number, **slots}
    for name in (layout.number, *slots):
        if name in parent.columns:
            raise SchemaError(
                f"table {layout.parent!r}, column {name!r}: this name is needed for the wide row; rename it"
            )
    return made


def _check_parts(table: Parent | Child, schema: Schema) -> None:
    """Raise for what linked tables cannot declare yet."""
    at = f"table {table.name!r}, column"
    for name in schema.undiscovered:
        raise SchemaError(f"{at} {name!r}: linked tables have no values or bins that are discovered; declare them")
    for name, column in schema.columns.items():
        if isinstance(table, Child) and column.coarse is not None:
            raise SchemaError(f"{at} {name!r}: `coarse` is for tables without a parent; give the column fewer bins")
    key = schema.columns[table.key]
    if key.modelled or not key.read:
        raise SchemaError(f"{at} {table.key!r}: it is the key, which is never modelled; declare it as identifier")
    if isinstance(table, Child) and table.order is not None:
        order = schema.columns.get(table.order)
        if order is None:
            raise SchemaError(
                f"{at} {table.order!r}: it is the `order`, but not a declared column; "
                f"{unknown(table.order, list(schema.columns))}"
            )
        if not (order.modelled and order.ordered) and not isinstance(order, Identifier):
            raise SchemaError(
                f"{at} {table.order!r}: it is the `order`, but its type {order.type!r} has none; name a column of "
                "numbers, dates or ordered values, or an identifier"
            )
        if order.beside:
            raise SchemaError(f"{at} {table.order!r}: it is the `order`, so it cannot follow {order.beside[0]!r}")
