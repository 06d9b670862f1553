"""Generate the columns of a synthetic table from records: decoded codes, determined columns and fresh identifiers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from chicle.columns import Column, Identifier, SyntheticRows
from chicle.counting.records import Records

__all__ = ["columns_of", "with_person"]


def with_person(columns: Mapping[str, Column], person: str | None) -> dict[str, Column]:
    """Return the columns of a table; a person column that is not declared comes first, as an identifier."""
    return dict(columns) if person is None or person in columns else {person: Identifier(), **columns}


def columns_of(
    columns: Mapping[str, Column],
    records: Records,
    types: Mapping[str, pa.DataType | None],
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
        The Arrow types of columns, where given.
    rng
        Draws numbers and dates inside their bins.
    rows, total
        The positions of these rows in the table, and its number of rows: identifiers count over all of it.
    """
    codes = {name: records[name] for name in records}
    some = SyntheticRows(codes=codes, columns=columns, numbers=rows, total=total, rng=rng)
    made = {name: column.make(name, some, types.get(name)) for name, column in columns.items()}
    return {name: values for name, values in made.items() if values is not None}
