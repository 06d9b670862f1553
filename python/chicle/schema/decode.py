"""The columns of a synthetic table, made of records: decoded, filled in where determined, fresh where identifiers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from chicle.columns import Column, Determined, Drop, Identifier
from chicle.counting.records import Records

__all__ = ["columns_of", "with_person"]


def with_person(columns: Mapping[str, Column], person: str | None) -> dict[str, Column]:
    """Return the columns of a table; whose row it is comes first, as an identifier, where it is not declared."""
    return dict(columns) if person is None or person in columns else {person: Identifier(), **columns}


def columns_of(
    columns: Mapping[str, Column],
    records: Records,
    types: Mapping[str, pa.DataType],
    rng: np.random.Generator,
    *,
    rows: range,
    total: int,
) -> dict[str, pa.Array]:
    """Return the columns of a synthetic table, or of some of its rows.

    Parameters
    ----------
    columns
        The declared columns of the table.
    records
        The synthetic records of these rows.
    types
        The type of each column, where one is given.
    rng
        Draws numbers and dates inside their bins.
    rows, total
        Which rows of the table these are, and how many it has: identifiers are fresh over all.
    """
    there = {name: column for name, column in columns.items() if not isinstance(column, Drop)}
    made = {}
    for name, column in there.items():
        dtype = types.get(name)
        if isinstance(column, Identifier):
            made[name] = column.fresh(rows, total, dtype)
        elif isinstance(column, Determined):
            source = column.determined_by
            made[name] = column.fill(columns[source], records[source], dtype)
        else:
            made[name] = column.decode(records[name], dtype, rng)
    return made
