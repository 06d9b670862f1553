"""Columns of integers, with a code for each or in bins."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from chicle.codes import Codes, code_dtype
from chicle.columns.base import Mask, Report
from chicle.columns.drafted_edges import EDGES_READ, drafted_edges, geometric_edges
from chicle.columns.drafting import MOST_VALUES, Draft, RawColumn, and_missing
from chicle.columns.inside import Floats, pick
from chicle.columns.numeric import (
    LOOK_UP,
    MOST_BINS,
    between,
    bounds_of,
    check_bounds,
    check_outside,
    numbers_in,
    numbers_of,
    take_bounds,
    typed_integers,
    whole,
)
from chicle.columns.private_bins import Binned, PrivateBins, private_bins
from chicle.columns.registry import register_column
from chicle.columns.ruler import MOST_CELLS, DecimalRuler
from chicle.domain import MAX_CARDINALITY
from chicle.errors import SchemaError

__all__ = ["Integer"]


@register_column
@dataclass(frozen=True, kw_only=True)
class Integer(Binned):
    """A column of integers from `min` to `max`.

    Parameters
    ----------
    min, max
        The bounds, both included. A list of edges as `bins` implies them.
    bins
        ``"each"``: a code for every integer. A number: that many bins of nearly equal width. A list of edges: each
        begins a bin, which ends before the next; the last edge is included. An edge listed twice is a bin of that
        integer alone. ``"private"`` or ``{"private": 20}``: at most 32 or 20 bins, discovered with budget
        (`chicle.discovery`).
    outside
        The rule for integers outside the bounds: ``"refuse"``, or ``"clamp"`` to the nearest bound.

    Examples
    --------
    >>> Integer(min=17, max=90).cardinality
    74
    >>> Integer(bins=[0, 1, 18, 65, 120], outside="clamp").cardinality
    4
    """

    type = "integer"
    also = ("int",)
    draft_order = 50

    min: int | None = None
    max: int | None = None
    bins: str | int | Sequence[int] | Mapping[str, int] | PrivateBins = "each"
    outside: str = "refuse"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", private_bins(self.bins))
        if not isinstance(self.bins, str) and isinstance(self.bins, Iterable):
            edges = tuple(whole("an edge of bins", edge) for edge in self.bins)
            take_bounds(self, edges)
        super().__post_init__()

    @property
    def low(self) -> int:
        """The lower bound."""
        return cast("int", self.min)

    @property
    def high(self) -> int:
        """The upper bound."""
        return cast("int", self.max)

    @cached_property
    def starts(self) -> npt.NDArray[np.int64]:
        """The first integer of each bin, and the one after the last."""
        if isinstance(self.bins, tuple):
            alone = [edge == before for before, edge in pairwise(self.bins[:-1])]
            return np.array([*self.bins[:-1], self.high + 1], dtype=np.int64) + np.array([0, *alone, 0], dtype=np.int64)
        values, bins = self.high - self.low + 1, 1 if self.undiscovered else self.size
        return np.array([self.low + i * values // bins for i in range(bins + 1)], dtype=np.int64)

    @property
    def size(self) -> int:
        """The number of bins."""
        if isinstance(self.bins, tuple):
            return len(self.bins) - 1
        if isinstance(self.bins, PrivateBins):
            return self.bins.most
        return self.high - self.low + 1 if isinstance(self.bins, str) else cast("int", self.bins)

    def start_of(self, value: object, *, after: bool) -> int:
        """Return an integer, or the next one."""
        return whole("a bound", value) + after

    @property
    def ordered(self) -> bool:
        """Numbers have an order."""
        return True

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """The integers, where each has a code."""
        return tuple(range(self.low, self.high + 1)) if self.size == self.high - self.low + 1 <= LOOK_UP else None

    @property
    def amounts(self) -> npt.NDArray[np.float64] | None:
        """The integers, or the middles of bins."""
        if self.labels is not None:
            return super().amounts
        return np.asarray((self.starts[:-1] + self.starts[1:] - 1) / 2, dtype=np.float64)

    @property
    def arrow_type(self) -> pa.DataType | None:
        """Integers."""
        return pa.int64()

    @classmethod
    def draft(cls, raw: RawColumn) -> Draft | None:
        """Propose a code for each integer of a short range, else bins."""
        if raw.numbers is None or raw.bounds is None or not raw.whole:
            return None
        low, high = raw.bounds
        if low == 0 and raw.skewed:
            edges = tuple(int(edge) for edge in geometric_edges(high))
            return Draft(
                cls(bins=edges, outside="clamp", missing=raw.missing),
                and_missing("its upper bound", raw.missing),
                ("it looks like a count: bins grow with it, and zero has its own",),
            )
        if high - low < MOST_VALUES:
            made = cls(min=int(low), max=int(high), outside="clamp", missing=raw.missing)
            return Draft(made, and_missing("bounds", raw.missing))
        edges = tuple(int(edge) for edge in drafted_edges(raw.numbers, 1.0))
        return Draft(cls(bins=edges, outside="clamp", missing=raw.missing), and_missing(EDGES_READ, raw.missing))

    def _texts(self) -> list[str] | None:
        known = super()._texts()
        return [between(first, end - 1) for first, end in pairwise(self.starts.tolist())] if known is None else known

    def _check(self) -> None:
        low, high = bounds_of(self)
        object.__setattr__(self, "min", whole("min", low))
        object.__setattr__(self, "max", whole("max", high))
        if low > high:
            raise SchemaError(f"min {low} is above max {high}; swap them")
        check_outside(self.outside)
        if isinstance(self.bins, tuple):
            if not (np.diff(self.starts) > 0).all():
                raise SchemaError("bins has a bin without any integer; leave an edge out")
        elif isinstance(self.bins, PrivateBins):
            if self.bins.most > high - low:  # a short range takes fewer bins, or a code for each integer
                object.__setattr__(self, "bins", PrivateBins(high - low) if high - low > 1 else "each")
        else:
            self._check_number(high - low + 1)

    def _check_number(self, values: int) -> None:
        if self.bins == "each":
            if values > MAX_CARDINALITY:
                raise SchemaError("bins: each makes too many codes for these bounds; give a number of bins")
            return
        if isinstance(self.bins, (str, bool)) or not hasattr(self.bins, "__index__"):
            raise SchemaError(
                f'bins must be "each", a number of bins or a list of edges, or "private", not {self.bins!r}'
            )
        bins = operator.index(cast("int", self.bins))
        object.__setattr__(self, "bins", bins)
        if not 1 <= bins <= values:
            raise SchemaError(f"bins must be from 1 to {values}, the number of integers from min to max, not {bins}")
        if bins > MOST_BINS:
            raise SchemaError(f"bins must be at most {MOST_BINS}, not {bins}; give fewer, or edges")

    @property
    def ruler(self) -> DecimalRuler:
        """All integers or, in a wide range, the multiples of a power of ten and the gaps between them."""
        first, last = self._cells_of(np.array([self.low, self.high], dtype=np.int64)).tolist()
        return DecimalRuler(first, last + 1, 1 if self._unit == 1 else 2)

    def discovered(self, starts: npt.NDArray[np.int64]) -> Integer:
        """Return the column with bins that begin at these cells."""
        if self._unit > 1:
            starts = starts // 2 * self._unit + starts % 2
        return replace(self, bins=(self.low, *starts[1:].tolist(), self.high))

    @property
    def _bins(self) -> object:
        return self.bins

    @property
    def _unit(self) -> int:
        unit = 1
        while self.high // unit - self.low // unit > MOST_CELLS:
            unit *= 10
        return unit

    def _cells_of(self, raw: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        if self._unit == 1:
            return raw
        return np.asarray(raw // self._unit * 2 + (raw % self._unit != 0))

    @property
    def span(self) -> tuple[float, float] | None:
        """The bounds."""
        return float(self.low), float(self.high)

    def numbers(self, values: pa.ChunkedArray, report: Report) -> npt.NDArray[np.float64]:
        """Return the integers themselves, inside the bounds."""
        return self._numbers(values, report, self._clamped)

    def _cells(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[np.int64]:
        return self._cells_of(self._clamped(values, absent, report).astype(np.int64, copy=False))

    def _clamped(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[Any]:
        """Return integers inside the bounds."""
        raw = numbers_of(values, absent, self.low, report, "declare it as categorical, with its values in `values`")
        if raw.dtype.kind == "f":
            if (raw != np.floor(raw)).any():
                report("has a number with a fraction", "declare it as number, or round it first")
            # Bounds as floats may be slightly wider than the integers; the integers are clamped below.
            low, high = float(self.low), float(self.high)
            check_bounds(raw, low, high, self.outside, report)
            raw = np.floor(np.clip(raw, low, min(high, np.nextafter(2.0**63, 0)))).astype(np.int64)
        else:
            check_bounds(raw, self.low, self.high, self.outside, report)
        if raw.size and (raw.min() < self.low or raw.max() > self.high):
            if raw.dtype == np.uint64:
                raw = np.minimum(raw, np.uint64(2**63 - 1))
            raw = np.clip(raw.astype(np.int64, copy=False), self.low, self.high)
        return raw

    def _typed(self, values: pa.Array) -> pa.Array:
        """Return texts that all are numbers as numbers."""
        return numbers_in(values)

    def _codes(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[Any]:
        raw = self._clamped(values, absent, report)
        values = self.high - self.low + 1
        if values > MAX_CARDINALITY:
            return np.searchsorted(self.starts[1:-1], raw, side="right")
        # Unsigned arithmetic in the codes' own width: the final result is right even if steps wrap around.
        width = code_dtype(values)
        offsets = raw.astype(width, copy=False)
        if self.low:
            offsets = offsets - width.type(self.low % 2 ** (8 * width.itemsize))
        if self.size == values:
            return offsets
        if values <= LOOK_UP:
            code_of = np.repeat(np.arange(self.size, dtype=code_dtype(self.size)), np.diff(self.starts))
            return np.asarray(code_of[offsets])
        return np.searchsorted(self.starts[1:-1] - self.low, offsets, side="right")

    def _inside(self, codes: Codes, absent: Mask | None, dtype: pa.DataType | None, inside: Floats) -> pa.Array:
        if self.size == self.high - self.low + 1:
            drawn = codes.astype(np.int64) + self.low
        else:
            drawn = pick(self.starts[codes], self.starts[1:][codes], inside)
        return typed_integers(drawn, absent, dtype, self.low, self.high)
