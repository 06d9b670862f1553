"""Join children to their parents, put them in order, and give each its place: 0 for the first child of its parent.

Whatever is decided about a child depends on the rows of its own parent only: its place, and whether it is one of the
children that are kept. So adding or removing one parent with all its children changes no other wide row.

Cost: one hash look-up for each child, and one sort of the children.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from chicle.columns.base import arrow_kind
from chicle.errors import SchemaError

__all__ = ["Joined", "join", "sortable"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Joined:
    """Children in the order of their parents' rows, and inside each parent in their own order. Private.

    Attributes
    ----------
    rows
        The row of each child in its table; children without a parent are left out.
    parent
        The row of its parent.
    place
        Its place among the children of its parent, from 0 on.
    numbers
        How many children each parent has, before any limit.
    orphans
        How many children have no parent.
    """

    rows: Integers
    parent: Integers
    place: Integers
    numbers: Integers
    orphans: int


def join(
    parent_key: pa.ChunkedArray,
    child_key: pa.ChunkedArray,
    order: npt.NDArray[np.generic] | None = None,
    *,
    tables: tuple[str, str] = ("parents", "children"),
    keys: tuple[str, str] = ("key", "key"),
) -> Joined:
    """Return children with their parents and places.

    Parameters
    ----------
    parent_key, child_key
        The keys of both tables; those of the parents must differ.
    order
        A number for each child, by which the children of a parent are in order; equal ones stay in the order of rows.
    tables, keys
        The names of both tables and keys, for errors.

    Examples
    --------
    >>> joined = join(pa.chunked_array([[7, 5]]), pa.chunked_array([[5, 7, 9, 5]]), np.array([3, 1, 1, 2]))
    >>> joined.rows.tolist(), joined.parent.tolist(), joined.place.tolist(), joined.orphans
    ([1, 3, 0], [0, 1, 1], [0, 0, 1], 1)
    """
    known = _plain(parent_key, tables[0], keys[0])
    wanted = _plain(child_key, tables[1], keys[1])
    if pa.types.is_null(known.type):  # a table without rows
        known = known.cast(pa.int64() if pa.types.is_null(wanted.type) else wanted.type)
    if pa.types.is_null(wanted.type):
        wanted = wanted.cast(known.type)
    if known.type != wanted.type:
        raise SchemaError(
            f"table {tables[1]!r}, column {keys[1]!r} holds {arrow_kind(wanted.type)}, but the key {keys[0]!r} of "
            f"{tables[0]!r} holds {arrow_kind(known.type)}; give both columns one type"
        )
    if pc.count_distinct(known).as_py() < len(known):
        raise SchemaError(
            f"table {tables[0]!r}, column {keys[0]!r}: a key occurs in several rows, but each row is one person; keep "
            "one row for each key, or name the column that identifies them"
        )
    found = pc.fill_null(pc.index_in(wanted, value_set=known), -1).to_numpy(zero_copy_only=False).astype(np.int64)
    rows = np.flatnonzero(found >= 0)
    parent = found[rows]
    places = np.lexsort((parent,) if order is None else (order[rows], parent))
    rows, parent = rows[places], parent[places]
    numbers = np.bincount(parent, minlength=len(known))
    begins = np.cumsum(numbers) - numbers
    return Joined(rows, parent, np.arange(len(rows)) - begins[parent], numbers, len(found) - len(rows))


def sortable(values: pa.ChunkedArray) -> npt.NDArray[np.generic]:
    """Return numbers in the order of some values; missing ones come last.

    Examples
    --------
    >>> sortable(pa.chunked_array([["b", None, "a"]])).tolist()
    [1, 2, 0]
    """
    array = values.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_integer(array.type) and not array.null_count:
        return np.asarray(array.to_numpy(zero_copy_only=False))
    if pa.types.is_null(array.type):
        return np.zeros(len(array), dtype=np.int64)
    coded = array.dictionary_encode()
    rank = np.empty(len(coded.dictionary) + 1, dtype=np.int64)
    rank[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(len(coded.dictionary))
    rank[-1] = len(coded.dictionary)
    places = pc.fill_null(coded.indices, len(coded.dictionary)).to_numpy(zero_copy_only=False)
    return np.asarray(rank[places])


def _plain(key: pa.ChunkedArray, table: str, name: str) -> pa.Array:
    """Return keys in a type in which equal ones are equal."""
    array = pa.chunked_array([chunk for chunk in key.chunks if len(chunk)], key.type).combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pc.any(pc.is_null(array, nan_is_null=True)).as_py():
        raise SchemaError(
            f"table {table!r}, column {name!r} has missing values, but it is the key; fill or drop those rows first"
        )
    if pa.types.is_floating(array.type):
        try:
            return array.cast(pa.int64())
        except pa.ArrowInvalid:
            raise SchemaError(
                f"table {table!r}, column {name!r} holds numbers that are not whole, but it is the key; make it "
                "integers or text"
            ) from None
    if pa.types.is_integer(array.type) and array.type != pa.uint64():
        return array.cast(pa.int64())
    if arrow_kind(array.type) == "text":
        return array.cast(pa.large_string())
    return array
