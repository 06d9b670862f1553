"""Columns that are not modelled: dropped, replaced by fresh ids, or filled in from another column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chicle.codes import Codes
from chicle.columns.base import Column, Report, SyntheticRows, Unmodelled, is_text, numpy_dtype
from chicle.columns.categorical import MOST_TEXTS, labelled, listed, value_key
from chicle.columns.declare import unknown
from chicle.columns.drafting import Draft, RawColumn
from chicle.columns.registry import register_column
from chicle.errors import SchemaError

__all__ = ["Determined", "Drop", "Identifier"]

_MOST_CASES = 10**6
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
        return Draft(cls(), f"that {_why_dropped(raw)}")

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
        """Propose ids if every text or every integer occurs once."""
        rows = len(raw.present)
        if rows <= _FEW or len(raw.distinct) < rows or raw.free_text:
            return None
        if raw.words is None and (raw.numbers is None or not raw.whole or raw.times is not None or raw.rounded):
            return None
        return Draft(cls(), "that every value occurs once")

    def make(self, name: str, rows: SyntheticRows, dtype: pa.DataType | None) -> pa.Array | None:
        """Return the ids of these rows, or of their persons."""
        if rows.persons is not None and name == rows.person:
            return self.numbered(pa.array(rows.persons + 1), rows.total, dtype)
        return self.fresh(rows.numbers, rows.total, dtype)

    def fresh(self, rows: range, of: int, dtype: pa.DataType | None) -> pa.Array:
        """Return fresh ids for some rows of a table: texts of equal length if the table has texts, else integers."""
        return self.numbered(pa.array(np.arange(rows.start + 1, rows.stop + 1)), of, dtype)

    def numbered(self, ids: pa.Array, of: int, dtype: pa.DataType | None) -> pa.Array:
        """Return numbers up to `of` as ids: in the type of the table, if it is text or a number."""
        if dtype is not None and pa.types.is_dictionary(dtype):
            return self.numbered(ids, of, dtype.value_type).dictionary_encode()
        if dtype is not None and pa.types.is_floating(dtype) and of < 2 ** np.finfo(dtype.to_pandas_dtype()).nmant:
            return ids.cast(dtype)
        if dtype is not None and is_text(dtype):
            # One longer than the largest, so that all have one length and none begins with a zero: programs that read
            # the ids of a text file as integers get the same ids.
            return pc.add(ids, 10 ** len(str(of))).cast(
                pa.large_string() if pa.types.is_large_string(dtype) else pa.string()
            )
        if dtype is not None and pa.types.is_integer(dtype) and of <= np.iinfo(numpy_dtype(dtype)).max:
            return ids.cast(dtype)
        return ids


@register_column
@dataclass(frozen=True, kw_only=True)
class Determined(Unmodelled):
    """A column that is a function of another: not modelled, but filled in afterwards, so always consistent.

    Parameters
    ----------
    determined_by
        The other column, or a list of several. Each of their codes must stand for one value.
    map
        For each value of the other column, the value of this one: a mapping, or a list of pairs. A missing value maps
        to missing, unless the map has it. For several columns, a list of ``[[value, value], value]``; combinations that
        are not listed map to missing.

    Examples
    --------
    >>> state = Determined(determined_by="city", map={"Lyon": "France", "Nice": "France", "Bonn": "Germany"})
    >>> state.to_dict()["map"]
    {'Lyon': 'France', 'Nice': 'France', 'Bonn': 'Germany'}
    """

    type = "determined"
    implied_by = "determined_by"

    determined_by: Any
    map: Any

    def __post_init__(self) -> None:
        names = [self.determined_by] if isinstance(self.determined_by, str) else self.determined_by
        if not isinstance(names, Sequence) or not names or not all(isinstance(name, str) for name in names):
            raise SchemaError(f"determined_by must be the name of a column, or a list of names, not {names!r}")
        if not isinstance(self.determined_by, str):
            object.__setattr__(self, "determined_by", tuple(names))
        object.__setattr__(self, "map", _as_pairs(self.map, 0 if isinstance(self.determined_by, str) else len(names)))
        super().__post_init__()

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as plain data; a map of texts as a mapping, any other as pairs."""
        plain = super().to_dict()
        if all(isinstance(key, str) for key, _ in self.map):
            plain["map"] = dict(self.map)
        return plain

    @property
    def follows(self) -> str | None:
        """The other column; the first of several."""
        return self.beside[0]

    @property
    def beside(self) -> tuple[str, ...]:
        """The other columns."""
        return (self.determined_by,) if isinstance(self.determined_by, str) else tuple(self.determined_by)

    @property
    def _said(self) -> str:
        return " and ".join(map(repr, self.beside))

    @property
    def declared_values(self) -> tuple[Any, ...]:
        """The values of the map."""
        return tuple(value for _, value in self.map)

    def check_among(self, columns: Mapping[str, Column]) -> None:
        """Raise unless the other columns are modelled and the map has their values."""
        for name in self.beside:
            source = columns.get(name)
            if source is None or not source.modelled:
                modelled = [known for known, one in columns.items() if one.modelled]
                raise SchemaError(
                    f"determined_by names {name!r}, which is not a modelled column; {unknown(name, modelled)}"
                )
            self._check_source(name, source)
        if not isinstance(self.determined_by, str) and prod(columns[n].cardinality for n in self.beside) > _MOST_CASES:
            raise SchemaError(f"{self._said} have more than {_MOST_CASES:,} combinations; declare fewer values")

    def compare(
        self, name: str, table: Mapping[str, pa.ChunkedArray], columns: Mapping[str, Column], report: Report
    ) -> None:
        """Report values that differ from the map of the other columns' values."""
        there = table[name].combine_chunks()
        if pa.types.is_dictionary(there.type):
            there = there.cast(there.type.value_type)
        codes = {
            other: columns[other].encode(columns[other].values_in(other, table, _silent), _silent)
            for other in self.beside
        }
        made = self.fill(columns, codes, there.type)
        if made.type == there.type:
            same = pc.or_(pc.fill_null(pc.equal(made, there), False), pc.and_(pc.is_null(made), pc.is_null(there)))
            if bool(pc.all(same).as_py()) or not len(there):
                return
        report(
            f"has a value that its map does not give for {self._said}",
            "correct the map or the table; the synthetic table follows the map",
        )

    def make(self, name: str, rows: SyntheticRows, dtype: pa.DataType | None) -> pa.Array | None:
        """Return the map of the other column's codes."""
        del name
        return self.fill(rows.columns, rows.codes, dtype)

    def _check_source(self, name: str, source: Column) -> None:
        """Raise unless the map has every value of the other column, and no other; of several, unless it has them."""
        labels = source.labels
        if labels is None and source.undiscovered:
            raise SchemaError(
                f"determined_by names {name!r}, whose values are yet to be discovered; a map needs them listed"
            )
        if labels is None:
            raise SchemaError(
                f"determined_by names {name!r}, whose codes are bins; "
                "it must be a column that has a code for each value"
            )
        place = None if isinstance(self.determined_by, str) else self.beside.index(name)
        keys = [key if place is None else key[place] for key, _ in self.map]
        known = {value_key(key) for key in keys}
        for label in labels if place is None else ():
            if value_key(label) not in known:
                raise SchemaError(f"map lacks {label!r} of {name!r}; add it")
        known -= {value_key(label) for label in labels} | {value_key(None)}
        if known:
            key = next(key for key in keys if value_key(key) in known)
            raise SchemaError(f"map has {key!r}, which is not a value of {name!r}; leave it out")

    def fill(self, columns: Mapping[str, Column], codes: Mapping[str, Codes], dtype: pa.DataType | None) -> pa.Array:
        """Return the values that the codes of the other columns determine; missing for combinations without one."""
        sources = [columns[name] for name in self.beside]
        several = not isinstance(self.determined_by, str)
        table = {_key(key if several else (key,)): value for key, value in self.map}
        labels = [(*(source.labels or ()), None)[: source.cardinality] for source in sources]
        becomes = [table.get(_key(case)) for case in product(*labels)]
        place_of = np.ravel_multi_index(
            [codes[name].astype(np.int64) for name in self.beside], [source.cardinality for source in sources]
        )
        values = tuple(dict.fromkeys(value for _, value in self.map if value is not None))
        place = {value: i for i, value in enumerate(values)}
        indices = np.array([-1 if value is None else place[value] for value in becomes], dtype=np.int32)[place_of]
        absent = indices < 0
        return labelled(np.maximum(indices, 0).astype(np.uint32), absent if absent.any() else None, values, dtype)


def _why_dropped(raw: RawColumn) -> str:
    reasons = {
        "it has no values": not len(raw.present),
        "its numbers are too far apart for bins": raw.numbers is not None and raw.bounds is None,
        "its integers are very large, so it may be an identifier": raw.numbers is not None,
        "it has times outside the years 1 to 9999": raw.times is not None,
        "it has sentences, which may name people, so it is dropped": raw.free_text,
        f"it has more than {MOST_TEXTS} different texts, and most occur once, so it is dropped; "
        "to keep it, group them and list the groups": raw.words is not None,
    }
    return next((why for why, holds in reasons.items() if holds), f"it holds {raw.kind}, which cannot be modelled")


def _key(case: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(value_key(value) for value in case)


def _silent(_rule: str, _fix: str) -> None:
    """Ignore what another column reports itself."""


def _as_pairs(given: object, several: int) -> tuple[tuple[Any, Any], ...]:
    rule = "map must be a mapping from a value of the other column to the value of this one, or a list of such pairs"
    items = given.items() if isinstance(given, Mapping) else given
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise SchemaError(f"{rule}, not {given!r}")
    pairs = tuple(tuple(pair) if isinstance(pair, (tuple, list)) else () for pair in items)
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise SchemaError(rule)
    if several:
        if any(not isinstance(key, (tuple, list)) or len(key) != several for key, _ in pairs):
            raise SchemaError(f"map must be a list of pairs, each with {several} values and the value of this column")
        pairs = tuple((tuple(key), value) for key, value in pairs)
    if len({_key(key if several else (key,)) for key, _ in pairs}) < len(pairs):
        raise SchemaError("map has a value twice; map each value once")
    values = [value for _, value in pairs if value is not None]
    listed("the values of map", dict.fromkeys(values))
    if any(isinstance(value, float) for value in values):
        pairs = tuple((key, None if value is None else float(value)) for key, value in pairs)
    return pairs
