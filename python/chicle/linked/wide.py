"""Wide rows: one record for each parent, with its children in slots."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from chicle.codes import Codes, code_dtype
from chicle.counting.records import Records
from chicle.errors import SchemaError
from chicle.linked.join import Joined
from chicle.schema.layout import BEFORE, LATER
from chicle.schema.linked import LinkedSchema

__all__ = ["widen"]


def widen(
    schema: LinkedSchema,
    parents: Mapping[str, Codes],
    children: Mapping[str, Codes],
    joined: Joined,
    lot: int | None = None,
) -> Records:
    """Return the wide rows of parents and their children.

    A parent's row depends on the parent and its children only. Where there are more children than slots, the later one
    that has the slot is drawn by lot, each with the same chance, from the system's generator: it is no secret which.

    Parameters
    ----------
    schema
        The schema of both tables.
    parents, children
        The codes of the modelled columns of each table.
    joined
        Which child belongs where.
    lot
        Fixes the lot, for tests.
    """
    layout = schema.layout
    number = np.minimum(joined.numbers, layout.most)
    if len(number) and number.min() < layout.least:
        raise SchemaError(
            f"table {layout.parent!r} has a row with fewer than {layout.least} rows of {layout.child!r}; lower "
            "`min_per_parent`, or leave such rows out"
        )
    kept = joined.place < layout.most
    check_families(schema, {name: codes[joined.rows] for name, codes in children.items()}, joined.parent, len(number))
    rows, parent, place = joined.rows[kept], joined.parent[kept], joined.place[kept]
    dtype = code_dtype(schema.domain[layout.number])
    wide: dict[str, Codes] = {**parents, layout.number: (number - layout.least).astype(dtype)}
    for label, (some, whose) in _holders(schema, rows, parent, place=place, number=number, lot=lot).items():
        for column in layout.children:
            name = layout.name(label, column)
            size = schema.domain[name]
            codes = np.full(len(number), size - 1, dtype=code_dtype(size))
            codes[whose] = children[column][some]
            wide[name] = codes
    return Records({name: wide[name] for name in schema.domain}, schema.domain)


def check_families(
    schema: LinkedSchema, codes: Mapping[str, Codes], parent: npt.NDArray[np.int64], families: int
) -> None:
    """Raise a SchemaError if a family, with all its children, breaks a rule across the tables."""
    for rule in schema.rules:
        if rule.broken(codes, parent, families).any():
            raise SchemaError(
                f"table {schema.layout.child!r} has rows that violate {rule}; correct the table or the constraint"
            )


def _holders(
    schema: LinkedSchema,
    rows: npt.NDArray[np.int64],
    parent: npt.NDArray[np.int64],
    *,
    place: npt.NDArray[np.int64],
    number: npt.NDArray[np.int64],
    lot: int | None,
) -> dict[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Return for each slot the rows of the children in it, and the rows of their parents."""
    layout, found = schema.layout, {}
    for wide in range(layout.wide):
        here = place == wide
        found[str(wide + 1)] = rows[here], parent[here]
    if layout.chained:
        rng = np.random.default_rng(secrets.randbits(128) if lot is None else lot)
        drawn = layout.wide + (rng.random(len(number)) * np.maximum(number - layout.wide, 0)).astype(np.int64)
        here = (place == drawn[parent]) & (number[parent] > layout.wide)
        # Children of a parent stand together, so the one before is in the row before.
        at = np.flatnonzero(here)
        found[BEFORE] = rows[at - 1], parent[at]
        found[LATER] = rows[at], parent[at]
    return found
