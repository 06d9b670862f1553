"""Take synthetic wide rows apart: parents, and children in order.

1. The number of children decides who is there. A slot that says nobody although a child is there takes the child of a
   row that is like it in what tells most: the child before, the number, the parent (`deck`). A single column that says
   nobody takes a value from a row of the same number, with the same value in the child before. Values of children that
   are not there are left out.
2. Children beyond the slots are made one after the other: each takes all its columns from a row whose child ``before``
   is like the one before it, with parents that are alike as far as possible.
3. Rows that break a constraint of their own table are repaired; children are put in order.
4. Values that only the last child of a family may have change places with those of its last child. Families that still
   break a rule across both tables take the children of a random family that does not, of the same number and with
   parents that are alike as far as possible.

It uses synthetic rows and declarations only, so it is post-processing and costs no budget. It works on whole arrays.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle.codecs.repair import mend
from chicle.codes import Codes, code_dtype
from chicle.counting.records import Records
from chicle.errors import InfeasibleError
from chicle.linked.deck import donors, strongest_first
from chicle.schema.layout import BEFORE, LATER
from chicle.schema.linked import LinkedSchema

__all__ = ["Families", "narrow"]

Integers = npt.NDArray[np.int64]
AnyCodes = npt.NDArray[Any]

_KEYS = 6  # columns by which later children and families are alike
_TRIES = 3


@dataclass(frozen=True, eq=False)
class Families:
    """Parents, and their children.

    Attributes
    ----------
    parents, children
        The records of both tables.
    parent
        The row of each child's parent; children of a parent stand together, in order.
    """

    parents: Records
    children: Records
    parent: Integers


def narrow(schema: LinkedSchema, wide: Records, rng: np.random.Generator, kept: Collection[str] = ()) -> Families:
    """Return the parents and children of synthetic wide rows.

    Parameters
    ----------
    schema
        The schema of both tables.
    wide
        Records over its domain.
    rng
        Draws donors.
    kept
        Columns of the parents that stay as they are.
    """
    layout = schema.layout
    own, theirs = schema.tables[layout.parent], schema.tables[layout.child]
    parents = Records({name: wide[name] for name in layout.parents}, own.domain)
    parents = mend(parents, own.parts, rng, kept)
    number = wide[layout.number].astype(np.int64) + layout.least
    slots = _filled(schema, wide, parents, number, rng)
    codes, parent = _stacked(schema, wide, slots, parents, number=number, rng=rng)
    children = mend(Records(codes, theirs.domain), theirs.parts, rng)
    children = _in_order(schema, children, parent)
    if not schema.rules:
        return Families(parents, children, parent)
    children = _ended(schema, children, parent, rng)
    for _ in range(_TRIES):
        children = _in_order(schema, children, parent)  # a repair may have changed the order
        broken = _broken(schema, children, parent, len(wide))
        if not broken.any():
            return Families(parents, children, parent)
        children, parent = _replaced(schema, parents, children, parent, broken=broken, rng=rng)
    raise InfeasibleError(
        "the constraints leave no synthetic family that satisfies all of them; draw more rows, or drop a constraint"
    )


def _in_order(schema: LinkedSchema, children: Records, parent: Integers) -> Records:
    """Return children with those of a parent in the order of the order column, where it is modelled."""
    order = schema.child.order
    if order is None or order not in children.domain:
        return children
    rows = np.lexsort((children[order], parent))
    return Records({name: children[name][rows] for name in children}, children.domain)


def _filled(
    schema: LinkedSchema, wide: Records, parents: Records, number: Integers, rng: np.random.Generator
) -> dict[str, dict[str, Codes]]:
    """Return the codes of each slot; where its child is there, no column says nobody."""
    layout = schema.layout
    slots: dict[str, dict[str, Codes]] = {}
    before: Mapping[str, Codes] = {}
    for label, threshold in layout.slots.items():
        before = {} if label == BEFORE else before
        slot = {column: wide[layout.name(label, column)].copy() for column in layout.children}
        known: dict[str, AnyCodes] = {f"before.{column}": codes for column, codes in before.items()}
        known.update({"number": number, **{f"parent.{name}": parents[name] for name in parents}})
        slots[label] = before = _without_gaps(schema, slot, known, number > threshold, rng)
    return slots


def _without_gaps(
    schema: LinkedSchema,
    slot: dict[str, Codes],
    known: Mapping[str, AnyCodes],
    there: npt.NDArray[np.bool_],
    rng: np.random.Generator,
) -> dict[str, Codes]:
    """Return the columns of a slot in which children that are there have a value of each.

    A child without any value takes those of another; one without some takes each from a child with similar others.
    """
    domain = schema.tables[schema.layout.child].domain
    gone = {column: there & (codes >= domain[column]) for column, codes in slot.items()}
    whole = np.flatnonzero(there & ~np.logical_or.reduce(list(gone.values())))
    nothing = np.flatnonzero(np.logical_and.reduce(list(gone.values())))
    if len(nothing) and len(whole):
        names = strongest_first(_taken(known, whole), _taken(slot, whole), rng)[:_KEYS]
        rows = donors([known[name][nothing] for name in names], [known[name][whole] for name in names], rng)
        for codes in slot.values():
            codes[nothing] = codes[whole[rows]]
    for column, codes in slot.items():
        gaps = codes >= domain[column]
        lacks, has = np.flatnonzero(there & gaps), np.flatnonzero(there & ~gaps)
        if len(lacks) and len(has):
            others = [slot[other] for other in slot if other != column]
            alike = [known["number"], *([known[f"before.{column}"]] if f"before.{column}" in known else []), *others]
            codes[lacks] = codes[has[donors([one[lacks] for one in alike], [one[has] for one in alike], rng)]]
        elif len(lacks):
            codes[lacks] = rng.integers(domain[column], size=len(lacks))
    return slot


def _taken(columns: Mapping[str, AnyCodes], rows: Integers) -> dict[str, AnyCodes]:
    return {name: codes[rows] for name, codes in columns.items()}


def _stacked(
    schema: LinkedSchema,
    wide: Records,
    slots: Mapping[str, Mapping[str, Codes]],
    parents: Records,
    *,
    number: Integers,
    rng: np.random.Generator,
) -> tuple[dict[str, Codes], Integers]:
    """Return all children, those of a parent together and in the order of slots, and the row of each one's parent."""
    layout, domain = schema.layout, schema.tables[schema.layout.child].domain
    begins = np.cumsum(number) - number
    parent = np.repeat(np.arange(len(number)), number)
    made = {column: np.empty(len(parent), dtype=code_dtype(domain[column])) for column in layout.children}
    for place in range(layout.wide):
        whose = np.flatnonzero(number > place)
        for column in layout.children:
            made[column][begins[whose] + place] = slots[str(place + 1)][column][whose]
    if layout.chained:
        _chain(schema, wide, slots, parents, number=number, made=made, begins=begins, rng=rng)
    return made, parent


def _whole(schema: LinkedSchema, wide: Records, there: npt.NDArray[np.bool_]) -> Integers:
    """Return the rows in which a later child and the one before it lack nothing; if there are none, all with both."""
    layout, domain = schema.layout, schema.tables[schema.layout.child].domain
    lacks = [wide[layout.name(label, name)] >= size for label in (BEFORE, LATER) for name, size in domain.items()]
    whole = there & ~np.logical_or.reduce(lacks)
    return np.flatnonzero(whole if whole.any() else there)


def _chain(
    schema: LinkedSchema,
    wide: Records,
    slots: Mapping[str, Mapping[str, Codes]],
    parents: Records,
    *,
    number: Integers,
    made: Mapping[str, Codes],
    begins: Integers,
    rng: np.random.Generator,
) -> None:
    """Make the children beyond the slots, one place after the other, each from the child before it."""
    layout = schema.layout
    pool = _whole(schema, wide, number > layout.wide)
    if not len(pool):
        return
    known: dict[str, AnyCodes] = {f"before.{column}": codes[pool] for column, codes in slots[BEFORE].items()}
    known.update({"number": number[pool], **{f"parent.{name}": parents[name][pool] for name in parents}})
    later = _taken(slots[LATER], pool)
    names = strongest_first(known, later, rng)[:_KEYS]
    for place in range(layout.wide, layout.most):
        whose = np.flatnonzero(number > place)
        if not len(whose):
            break
        at = begins[whose] + place
        wanted: dict[str, AnyCodes] = {f"before.{column}": made[column][at - 1] for column in layout.children}
        wanted.update({f"parent.{name}": parents[name][whose] for name in layout.parents})
        wanted["number"] = number[whose]
        rows = donors([wanted[name] for name in names], [known[name] for name in names], rng)
        for column in layout.children:
            made[column][at] = later[column][rows]


def _ended(schema: LinkedSchema, children: Records, parent: Integers, rng: np.random.Generator) -> Records:
    """Return children in which values that end a family stand in its last child, as far as one move can do that."""
    codes = {name: children[name].copy() for name in children}
    ends = np.flatnonzero(np.diff(parent, append=-1))
    last = ends[np.searchsorted(ends, np.arange(len(parent)))]
    moved = False
    for rule in (one for one in schema.rules if one.kind == "last"):
        met = np.flatnonzero(rule.meets(codes))
        met = met[np.unique(parent[met], return_index=True)[1]]  # the first of each family
        met = met[met != last[met]]
        for name in rule.masks:
            codes[name][met], codes[name][last[met]] = codes[name][last[met]], codes[name][met]
        moved |= len(met) > 0
    made = Records(codes, children.domain)
    return mend(made, schema.tables[schema.layout.child].parts, rng) if moved else children


def _broken(schema: LinkedSchema, children: Records, parent: Integers, families: int) -> npt.NDArray[np.bool_]:
    codes, found = {name: children[name] for name in children}, np.zeros(families, dtype=np.bool_)
    for rule in schema.rules:
        found |= rule.broken(codes, parent, families)
    return found


def _replaced(
    schema: LinkedSchema,
    parents: Records,
    children: Records,
    parent: Integers,
    *,
    broken: npt.NDArray[np.bool_],
    rng: np.random.Generator,
) -> tuple[Records, Integers]:
    """Return children in which broken families have the children of others; without any other, with values changed."""
    number = np.bincount(parent, minlength=len(broken))
    bad, good = np.flatnonzero(broken), np.flatnonzero(~broken & (number > 0))
    if not len(good):
        return _changed(schema, children, parent, rng), parent
    names = list(parents)[:_KEYS]
    alike: list[AnyCodes] = [number, *(parents[name] for name in names)]
    source = np.arange(len(broken))
    source[bad] = good[donors([one[bad] for one in alike], [one[good] for one in alike], rng)]
    begins, sizes = np.cumsum(number) - number, number[source]
    family = np.repeat(np.arange(len(broken)), sizes)
    rows = begins[source][family] + np.arange(len(family)) - (np.cumsum(sizes) - sizes)[family]
    return Records({name: children[name][rows] for name in children}, children.domain), family


def _changed(schema: LinkedSchema, children: Records, parent: Integers, rng: np.random.Generator) -> Records:
    """Return children whose values are changed so that the rules hold: where no family can be an example."""
    codes = {name: children[name].copy() for name in children}
    for rule in schema.rules:
        if rule.kind == "some":
            first = np.flatnonzero(np.diff(parent, prepend=-1))
            rows = first[rule.broken(codes, parent, int(parent.max(initial=-1)) + 1)[parent[first]]]
            for name, mask in rule.masks.items():
                codes[name][rows] = rng.choice(np.flatnonzero(mask), size=len(rows))
        else:
            name, mask = next((name, mask) for name, mask in rule.masks.items() if not mask.all())
            rows = np.flatnonzero(rule.meets(codes) & np.append(parent[1:] == parent[:-1], False))
            codes[name][rows] = rng.choice(np.flatnonzero(~mask), size=len(rows))
    return mend(Records(codes, children.domain), schema.tables[schema.layout.child].parts, rng)
