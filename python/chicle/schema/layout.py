"""The wide row of linked tables: one row for each parent, with its children in slots, so that it is one person's row.

Its attributes are the parent's columns, the number of children, and each child column in each slot. The first children
have a slot each. Where a parent may have more, two further slots, ``before`` and ``later``, hold one of the later
children, drawn at random, and the one before it: all later children are made from these by a chain.

Everything here is declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise, product

import numpy as np

from chicle.codes import Codes
from chicle.domain import Domain
from chicle.presence import Presence
from chicle.schema.constraints import Constraint
from chicle.workload import Workload

__all__ = ["BEFORE", "LATER", "Layout", "Weights"]

BEFORE, LATER = "before", "later"


@dataclass(frozen=True)
class Weights:
    """How much pairs of attributes of a wide row matter; they take the place of a split of the budget.

    Those of children are shared out among slots: each further one has `fewer` times the weight of the one before, for
    fewer parents have so many children. It is a public guess; the slots of later children stand for all of these.
    """

    parents: float = 2.0
    within: float = 2.0
    across: float = 1.0
    consecutive: float = 1.0
    others: float = 0.4
    fewer: float = 0.7


@dataclass(frozen=True)
class Layout:
    """Where the columns of two linked tables are in the wide row.

    Attributes
    ----------
    parent, child
        The names of the tables.
    parents, children
        Their modelled columns.
    least, most
        How many children a parent has.
    wide
        How many of them have a slot of their own.

    Examples
    --------
    >>> layout = Layout("patients", "visits", ("sex",), ("ward",), least=0, most=9, wide=2)
    >>> layout.slots
    {'1': 0, '2': 1, 'before': 2, 'later': 2}
    >>> layout.name("later", "ward")
    'visits[later].ward'
    """

    parent: str
    child: str
    parents: tuple[str, ...]
    children: tuple[str, ...]
    least: int
    most: int
    wide: int

    @property
    def number(self) -> str:
        """The attribute of the number of children."""
        return f"number of {self.child}"

    @property
    def chained(self) -> bool:
        """Whether later children are made by a chain."""
        return self.most > self.wide

    @cached_property
    def slots(self) -> dict[str, int]:
        """The label of each slot, and the number of children that must be exceeded for it to be there."""
        own = {str(place + 1): place for place in range(self.wide)}
        return {**own, **({BEFORE: self.wide, LATER: self.wide} if self.chained else {})}

    def name(self, label: str, column: str) -> str:
        """Return the attribute of a child column in a slot."""
        return f"{self.child}[{label}].{column}"

    def slot(self, label: str) -> list[str]:
        """Return the attributes of a slot."""
        return [self.name(label, column) for column in self.children]

    def slot_of(self, name: str) -> str | None:
        """Return the label of the slot of an attribute; None for those of the parent, and for the number."""
        return next((label for label in self.slots if name in self.slot(label)), None)

    @cached_property
    def presence(self) -> Presence:
        """Which attributes are there when."""
        thresholds = {name: place for label, place in self.slots.items() for name in self.slot(label)}
        return Presence(self.number, self.least, thresholds)

    def workload(self, weights: Weights = Weights()) -> Workload:  # noqa: B008 - frozen
        """Return the pairs that matter, and how much."""
        own = (*self.parents, self.number)
        found = dict.fromkeys(combinations(own, 2), weights.parents)
        shares = {label: weights.fewer**place for label, place in self.slots.items()}
        if self.chained:  # they stand for all later children
            shares.update(dict.fromkeys((BEFORE, LATER), weights.fewer**self.wide / (1 - weights.fewer)))
        first, *others = shares.values()
        every, further = first + sum(others), sum(others) or 1.0
        for label, share in shares.items():
            slot = self.slot(label)
            found.update(dict.fromkeys(combinations(slot, 2), weights.within * share / every))
            found.update(dict.fromkeys(product(own, slot), weights.across * share / every))
        for one, other in combinations(shares, 2):
            follows = (one, other) in self._consecutive
            if not follows and LATER in (one, other):
                continue  # the chain knows only of the child before
            weight = (weights.consecutive if follows else weights.others) * shares[other] / further
            found.update(dict.fromkeys(product(self.slot(one), self.slot(other)), weight))
        return Workload(found)

    @cached_property
    def _consecutive(self) -> set[tuple[str, str]]:
        own = [str(place + 1) for place in range(self.wide)]
        return {*pairwise(own), *([(BEFORE, LATER)] if self.chained else [])}

    def zeros(self, domain: Domain) -> Iterator[Constraint]:
        """Yield the constraints that follow from who is there; the tables of a fit satisfy them by construction."""
        optional = [name for name in self.presence.thresholds if self.presence.optional(name)]
        for first, second in combinations([self.number, *optional], 2):
            kinds = [self._kinds(name, domain) for name in (first, second)]
            sizes = {first: int(kinds[0].max()) + 1, second: int(kinds[1].max()) + 1}
            allowed = np.ones(tuple(sizes.values()), dtype=np.bool_)
            for place, code in product(range(sizes[first]), range(sizes[second])):
                allowed[place, code] = self._together(first, place, second, code)
            if not allowed.all():
                yield Constraint((first, second), tuple(kinds), allowed, {"presence": self.child}, keep=True)

    def within(self, constraints: Sequence[Constraint]) -> Iterator[Constraint]:
        """Yield the constraints of the child table in each slot; they hold for nobody."""
        for one, (label, threshold) in product(constraints, self.slots.items()):
            if len(one.columns) > 3:
                continue  # what follows from them is set to zero only in plain tables
            classes: list[Codes] = list(one.classes)
            allowed = one.allowed
            if threshold >= self.least:
                classes = [np.append(kinds, kinds.max() + 1).astype(np.uint32) for kinds in classes]
                allowed = np.pad(allowed, [(0, 1)] * allowed.ndim, constant_values=True)
            names = tuple(self.name(label, column) for column in one.columns)
            yield Constraint(names, tuple(classes), allowed, one.declaration, keep=True)

    def _kinds(self, name: str, domain: Domain) -> Codes:
        """Return the number of children of each code of the number, and whether each code of a slot is nobody."""
        codes = np.arange(domain[name])
        return (codes if name == self.number else codes == domain[name] - 1).astype(np.uint8)

    def _together(self, first: str, place: int, second: str, code: int) -> bool:
        thresholds = self.presence.thresholds
        if first == self.number:
            return (self.least + place > thresholds[second]) is not bool(code)
        if thresholds[first] == thresholds[second]:
            return place == code
        early, late = (place, code) if thresholds[first] < thresholds[second] else (code, place)
        return not early or bool(late)
