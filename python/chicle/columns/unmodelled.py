"""Columns that are not modelled: dropped, replaced by fresh ids, or filled in from another column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chicle.codes import Codes
from chicle.columns.base import Column, Report, SyntheticRows, Unmodelled, is_text
from chicle.columns.categorical import MOST_TEXTS, labelled, listed, value_key
from chicle.columns.declare import unknown
from chicle.columns.drafting import MOST_VALUES, Draft, RawColumn
from chicle.columns.registry import register_column
from chicle.errors import SchemaError

__all__ = ["Determined", "Drop", "Identifier"]

_FEW = 20  # rows that are too few to see that values are unique


@register_column
@dataclass(frozen=True, kw_only=True)
class Drop(Unmodelled):
    """A column that is left out: neither modelled nor in the synthetic table."""

    type = "drop"
    also = ("ignore", "skip")
    draft_order = 90
    read = False
    may_be_person = True

    @classmethod
    def draft(cls, raw: RawColumn) -> Draft | None:
        """Propose to drop a column that no other type suits, and say why."""
        return Draft(cls(), _why_dropped(raw))

    def make(self, name: str, rows: SyntheticRows, dtype: pa.DataType | None) -> pa.Array | None:
        """Return nothing."""
        del name, rows, dtype
        return None


@register_column
@dataclass(frozen=True, kw_only=True)
class Identifier(Unmodelled):
    """A column of ids: never modelled. The synthetic table has fresh ids, 1, 2, 3 and so on."""

    type = "identifier"
    also = ("id", "key")
    draft_order = 40
    may_be_person = True

    @classmethod
    def draft(cls, raw: RawColumn) -> Draft | None:
        """Propose ids if every text, or every integer of a range with few gaps, occurs once."""
        rows = len(raw.present)
        if rows <= _FEW:
            return None
        if raw.texts is not None and len(raw.texts) == rows:
            return Draft(cls(), "every value occurs once, so it looks like an identifier")
        if raw.numbers is None or raw.bounds is None or not raw.whole:
            return None
        low, high = raw.bounds
        if not MOST_VALUES <= high - low < 2 * rows or len(np.unique(raw.numbers)) < rows:
            return None
        return Draft(cls(), "every integer occurs once and few are left out, so it looks like an identifier")

    def make(self, name: str, rows: SyntheticRows, dtype: pa.DataType | None) -> pa.Array | None:
        """Return the ids of these rows."""
        del name
        return self.fresh(rows.numbers, rows.total, dtype)

    def fresh(self, rows: range, of: int, dtype: pa.DataType | None) -> pa.Array:
        """Return fresh ids for some rows of a table: texts of equal length if the table has texts, else integers."""
        ids = pa.array(np.arange(rows.start + 1, rows.stop + 1))
        if dtype is not None and is_text(dtype):
            text = pa.large_string() if pa.types.is_large_string(dtype) else pa.string()
            return pc.utf8_lpad(ids.cast(text), width=len(str(of)), padding="0")
        if dtype is not None and pa.types.is_integer(dtype) and of <= np.iinfo(dtype.to_pandas_dtype()).max:
            return ids.cast(dtype)
        return ids


@register_column
@dataclass(frozen=True, kw_only=True)
class Determined(Unmodelled):
    """A column that is a function of another: not modelled, but filled in afterwards, so always consistent.

    Parameters
    ----------
    determined_by
        The other column. Each of its codes must stand for one value.
    map
        For each value of the other column, the value of this one: a mapping, or a list of pairs. A missing value maps
        to missing, unless the map has it.

    Examples
    --------
    >>> state = Determined(determined_by="city", map={"Lyon": "France", "Nice": "France", "Bonn": "Germany"})
    >>> state.to_dict()["map"]
    {'Lyon': 'France', 'Nice': 'France', 'Bonn': 'Germany'}
    """

    type = "determined"
    implied_by = "determined_by"

    determined_by: str
    map: Any

    def __post_init__(self) -> None:
        if not isinstance(self.determined_by, str):
            raise SchemaError(f"determined_by must be the name of a column, not {self.determined_by!r}")
        object.__setattr__(self, "map", _as_pairs(self.map))
        super().__post_init__()

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as plain data; a map of texts as a mapping, any other as pairs."""
        plain = super().to_dict()
        if all(isinstance(key, str) for key, _ in self.map):
            plain["map"] = dict(self.map)
        return plain

    @property
    def follows(self) -> str | None:
        """The other column."""
        return self.determined_by

    @property
    def declared_values(self) -> tuple[Any, ...]:
        """The values of the map."""
        return tuple(value for _, value in self.map)

    def check_among(self, columns: Mapping[str, Column]) -> None:
        """Raise unless the other column is modelled and the map has exactly its values."""
        source = columns.get(self.determined_by)
        if source is None or not source.modelled:
            raise SchemaError(
                f"determined_by names {self.determined_by!r}, which is not a modelled column; "
                f"{unknown(self.determined_by, [name for name, one in columns.items() if one.modelled])}"
            )
        self._check_source(source)

    def compare(self, values: pa.ChunkedArray, source: Column, given: pa.ChunkedArray, report: Report) -> None:
        """Report values that differ from the map of the other column's values."""
        there = values.combine_chunks()
        if pa.types.is_dictionary(there.type):
            there = there.cast(there.type.value_type)
        made = self.fill(source, source.encode(given, lambda _rule, _fix: None), there.type)
        if made.type == there.type:
            same = pc.or_(pc.fill_null(pc.equal(made, there), False), pc.and_(pc.is_null(made), pc.is_null(there)))
            if bool(pc.all(same).as_py()) or not len(there):
                return
        report(
            f"has a value that its map does not give for {self.determined_by!r}",
            "correct the map or the table; the synthetic table follows the map",
        )

    def make(self, name: str, rows: SyntheticRows, dtype: pa.DataType | None) -> pa.Array | None:
        """Return the map of the other column's codes."""
        del name
        return self.fill(rows.columns[self.determined_by], rows.codes[self.determined_by], dtype)

    def _check_source(self, source: Column) -> None:
        """Raise unless the map has every value of the other column, and no other."""
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
                raise SchemaError(f"map lacks {label!r} of {self.determined_by!r}; add it")
        known -= {value_key(label) for label in labels} | {value_key(None)}
        if known:
            key = next(key for key, _ in self.map if value_key(key) in known)
            raise SchemaError(f"map has {key!r}, which is not a value of {self.determined_by!r}; leave it out")

    def fill(self, source: Column, codes: Codes, dtype: pa.DataType | None) -> pa.Array:
        """Return the values that the codes of the other column determine."""
        table = {value_key(key): value for key, value in self.map}
        becomes = [table.get(value_key(label)) for label in (*(source.labels or ()), None)][: source.cardinality]
        values = tuple(dict.fromkeys(value for _, value in self.map if value is not None))
        place = {value: i for i, value in enumerate(values)}
        indices = np.array([-1 if value is None else place[value] for value in becomes], dtype=np.int32)[codes]
        absent = indices < 0
        return labelled(np.maximum(indices, 0).astype(np.uint32), absent if absent.any() else None, values, dtype)


def _why_dropped(raw: RawColumn) -> str:
    if not len(raw.present):
        return "it has no values"
    if raw.numbers is not None and raw.bounds is None:
        return "its numbers are too far apart for bins"
    if raw.numbers is not None:
        return "its integers are very large, so it may be an identifier"
    if raw.times is not None:
        return "it has times outside the years 1 to 9999"
    if raw.texts is not None:
        return (
            f"it has more than {MOST_TEXTS} different texts, and most occur once, so it is dropped; "
            "to keep it, group them and list the groups"
        )
    return f"it holds {raw.kind}, which cannot be modelled"


def _as_pairs(given: object) -> tuple[tuple[Any, Any], ...]:
    rule = "map must be a mapping from a value of the other column to the value of this one, or a list of such pairs"
    items = given.items() if isinstance(given, Mapping) else given
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise SchemaError(f"{rule}, not {given!r}")
    pairs = tuple(tuple(pair) if isinstance(pair, (tuple, list)) else () for pair in items)
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise SchemaError(rule)
    if len({value_key(key) for key, _ in pairs}) < len(pairs):
        raise SchemaError("map has a value twice; map each value once")
    values = [value for _, value in pairs if value is not None]
    listed("the values of map", dict.fromkeys(values))
    if any(isinstance(value, float) for value in values):
        pairs = tuple((key, None if value is None else float(value)) for key, value in pairs)
    return pairs
