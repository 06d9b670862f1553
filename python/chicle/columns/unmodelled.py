"""Columns that no release knows of: dropped, re-made as fresh ids, or filled in from another column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chicle.columns.base import Column, Unmodelled, is_text
from chicle.columns.categorical import labelled, listed, value_key
from chicle.counting.records import Codes
from chicle.errors import SchemaError

__all__ = ["Determined", "Drop", "Identifier"]


@dataclass(frozen=True, kw_only=True)
class Drop(Unmodelled):
    """A column that is left out: neither modelled nor in the synthetic table."""

    type = "drop"


@dataclass(frozen=True, kw_only=True)
class Identifier(Unmodelled):
    """A column of ids: never modelled; the synthetic table has fresh ones, 1, 2, 3 and so on."""

    type = "identifier"

    def fresh(self, rows: range, of: int, dtype: pa.DataType | None) -> pa.Array:
        """Return fresh ids for some of so many rows: texts of equal length where the table has texts, else integers."""
        ids = pa.array(np.arange(rows.start + 1, rows.stop + 1))
        if dtype is not None and is_text(dtype):
            text = pa.large_string() if pa.types.is_large_string(dtype) else pa.string()
            return pc.utf8_lpad(ids.cast(text), width=len(str(of)), padding="0")
        if dtype is not None and pa.types.is_integer(dtype) and of <= np.iinfo(dtype.to_pandas_dtype()).max:
            return ids.cast(dtype)
        return ids


@dataclass(frozen=True, kw_only=True)
class Determined(Unmodelled):
    """A column that is a function of another: not modelled, filled in afterwards, always consistent.

    Parameters
    ----------
    determined_by
        The other column. Each of its codes must stand for one value.
    map
        For each value of the other column, the value of this one: a mapping, or a list of pairs. What is missing there
        is missing here, unless the map says otherwise.

    Examples
    --------
    >>> state = Determined(determined_by="city", map={"Lyon": "France", "Nice": "France", "Bonn": "Germany"})
    >>> state.to_dict()["map"]
    {'Lyon': 'France', 'Nice': 'France', 'Bonn': 'Germany'}
    """

    type = "determined"

    determined_by: str
    map: Any

    def __post_init__(self) -> None:
        if not isinstance(self.determined_by, str):
            raise SchemaError(f"determined_by must be the name of a column, not {self.determined_by!r}")
        object.__setattr__(self, "map", _as_pairs(self.map))
        super().__post_init__()

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as plain data; a map of texts as a mapping, any other as pairs."""
        told = super().to_dict()
        if all(isinstance(key, str) for key, _ in self.map):
            told["map"] = dict(self.map)
        return told

    def check_source(self, source: Column) -> None:
        """Raise unless the map says what becomes of every value of the other column, and of nothing else."""
        labels = source.labels
        if labels is None and source.undiscovered:
            raise SchemaError(
                f"determined_by names {self.determined_by!r}, whose values are yet to be discovered; "
                "a map needs them listed"
            )
        if labels is None:
            raise SchemaError(
                f"determined_by names {self.determined_by!r}, whose codes are bins; "
                "it must be a column that has a code for each value"
            )
        known = {value_key(key) for key, _ in self.map}
        for label in labels:
            if value_key(label) not in known:
                raise SchemaError(f"map does not say what {label!r} of {self.determined_by!r} becomes; add it")
        known -= {value_key(label) for label in labels} | {value_key(None)}
        if known:
            key = next(key for key, _ in self.map if value_key(key) in known)
            raise SchemaError(f"map has {key!r}, which is no value of {self.determined_by!r}; leave it out")

    def fill(self, source: Column, codes: Codes, dtype: pa.DataType | None) -> pa.Array:
        """Return what the codes of the other column determine."""
        table = {value_key(key): value for key, value in self.map}
        becomes = [table.get(value_key(label)) for label in (*(source.labels or ()), None)][: source.cardinality]
        values = tuple(dict.fromkeys(value for _, value in self.map if value is not None))
        place = {value: i for i, value in enumerate(values)}
        indices = np.array([-1 if value is None else place[value] for value in becomes], dtype=np.int32)[codes]
        absent = indices < 0
        return labelled(np.maximum(indices, 0).astype(np.uint32), absent if absent.any() else None, values, dtype)


def _as_pairs(given: object) -> tuple[tuple[Any, Any], ...]:
    rule = "map must be a mapping from a value of the other column to the value of this one, or a list of such pairs"
    items = given.items() if isinstance(given, Mapping) else given
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise SchemaError(f"{rule}, not {given!r}")
    pairs = tuple(tuple(pair) if isinstance(pair, (tuple, list)) else () for pair in items)
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise SchemaError(rule)
    if len({value_key(key) for key, _ in pairs}) < len(pairs):
        raise SchemaError("map says twice what one value becomes; say it once")
    values = [value for _, value in pairs if value is not None]
    listed("the values of map", dict.fromkeys(values))
    if any(isinstance(value, float) for value in values):
        pairs = tuple((key, None if value is None else float(value)) for key, value in pairs)
    return pairs
