"""Columns of real numbers, in bins. Synthetic values are drawn inside their bin, in the table's own type."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from chicle.codes import Codes
from chicle.columns.base import Mask, Report, numpy_dtype
from chicle.columns.drafted_edges import EDGES_READ, decimal_edges
from chicle.columns.drafting import Draft, RawColumn, and_missing
from chicle.columns.inside import Floats, pick
from chicle.columns.numeric import (
    MOST_BINS,
    between,
    bounds_of,
    check_bounds,
    check_outside,
    decimals,
    numbers_in,
    numbers_of,
    real,
    take_bounds,
    typed_integers,
    whole,
)
from chicle.columns.private_bins import Binned, PrivateBins, private_bins
from chicle.columns.registry import register_column
from chicle.columns.ruler import MOST_CELLS, DecimalRuler
from chicle.errors import SchemaError

__all__ = ["Number"]


@register_column
@dataclass(frozen=True, kw_only=True)
class Number(Binned):
    """A column of real numbers from `min` to `max`.

    Parameters
    ----------
    min, max
        The bounds, both included. A list of edges as `bins` implies them.
    bins
        A number of bins of equal width, or a list of edges: each begins a bin, which ends before the next; the last
        edge is included. An edge listed twice is a bin of that number alone, for example of frequent zeros.
        ``"private"`` or ``{"private": 20}``: at most 32 or 20 bins, discovered with budget (`chicle.discovery`).
    outside
        The rule for numbers outside the bounds: ``"refuse"``, or ``"clamp"`` to the nearest bound.
    decimals
        How many decimals synthetic numbers have: 1 for 36.6; -2 for hundreds. As many as the type has, if ``None``.

    Examples
    --------
    >>> Number(min=0, max=1, bins=20).cardinality
    20
    >>> Number(bins=[0, 0, 10, 100]).cardinality
    3
    """

    type = "number"
    also = ("float", "double", "real", "numeric")
    draft_order = 60

    min: float | None = None
    max: float | None = None
    bins: str | int | Sequence[float] | Mapping[str, int] | PrivateBins | None = None
    outside: str = "refuse"
    decimals: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", private_bins(self.bins))
        if not isinstance(self.bins, str) and isinstance(self.bins, Iterable):
            edges = tuple(real("an edge of bins", edge) for edge in self.bins)
            take_bounds(self, edges)
        super().__post_init__()

    @property
    def low(self) -> float:
        """The lower bound."""
        return cast("float", self.min)

    @property
    def high(self) -> float:
        """The upper bound."""
        return cast("float", self.max)

    @cached_property
    def edges(self) -> npt.NDArray[np.float64]:
        """The starts of bins, and the end of the last."""
        if isinstance(self.bins, tuple):
            edges = np.array(self.bins)
            alone = np.append(np.diff(edges[:-1], prepend=-np.inf) == 0, [False])
            return np.where(alone, np.nextafter(edges, np.inf), edges)
        return np.linspace(self.low, self.high, 2 if self.undiscovered else self.size + 1)

    @property
    def starts(self) -> npt.NDArray[Any] | None:
        """The least number of each bin, and the first above the last."""
        return np.append(self.edges[:-1], np.nextafter(self.high, np.inf))

    def start_of(self, value: object, *, after: bool) -> float:
        """Return a number, or the next float."""
        number = real("a bound", value)
        return float(np.nextafter(number, np.inf)) if after else number

    @property
    def size(self) -> int:
        """The number of bins."""
        if isinstance(self.bins, PrivateBins):
            return self.bins.most
        return len(self.bins) - 1 if isinstance(self.bins, tuple) else cast("int", self.bins)

    @property
    def ordered(self) -> bool:
        """Numbers have an order."""
        return True

    @property
    def amounts(self) -> npt.NDArray[np.float64] | None:
        """The middles of bins."""
        return np.asarray((self.edges[:-1] + self.edges[1:]) / 2, dtype=np.float64)

    @property
    def arrow_type(self) -> pa.DataType | None:
        """Floats."""
        return pa.float64()

    @classmethod
    def draft(cls, raw: RawColumn) -> Draft | None:
        """Propose bins of numbers."""
        if raw.numbers is None or raw.bounds is None or raw.kind == "integers":
            return None
        edges = decimal_edges(raw.numbers, raw.decimals)
        return Draft(
            cls(bins=edges, outside="clamp", decimals=raw.decimals, missing=raw.missing),
            and_missing(EDGES_READ, raw.missing),
        )

    def _texts(self) -> list[str] | None:
        return [between(f"{first:.6g}", f"{end:.6g}") for first, end in pairwise(self.edges.tolist())]

    def _check(self) -> None:
        low, high = (real(name, bound) for name, bound in zip(("min", "max"), bounds_of(self), strict=True))
        object.__setattr__(self, "min", low)
        object.__setattr__(self, "max", high)
        if low > high or (low == high and not isinstance(self.bins, tuple)):
            raise SchemaError(f"min {low} must be below max {high}")
        if not math.isfinite(high - low):
            raise SchemaError("min and max are too far apart for a float; narrow them")
        check_outside(self.outside)
        if self.decimals is not None:
            object.__setattr__(self, "decimals", whole("decimals", self.decimals))
            if not -15 <= self.decimals <= 15:
                raise SchemaError(f"decimals must be from -15 to 15, not {self.decimals}")
        if isinstance(self.bins, (tuple, PrivateBins)):
            return
        if self.bins is None or isinstance(self.bins, bool) or not hasattr(self.bins, "__index__"):
            raise SchemaError(
                f'bins must be a number of bins, a list of edges or "private", such as `bins: 32`, not {self.bins!r}'
            )
        bins = operator.index(cast("int", self.bins))
        object.__setattr__(self, "bins", bins)
        if not 1 <= bins <= MOST_BINS:
            raise SchemaError(f"bins must be from 1 to {MOST_BINS}, not {bins}")
        if not (np.diff(self.edges) > 0).all():
            raise SchemaError("bins are too many for these bounds; give fewer")

    @property
    def ruler(self) -> DecimalRuler:
        """Numbers of a few digits, and the gaps between them."""
        first, last = self._cells_of(np.array([self.low, self.high])).tolist()
        return DecimalRuler(first, last + 1, 2)

    def discovered(self, starts: npt.NDArray[np.int64]) -> Number:
        """Return the column with bins that begin at these cells; the gap after a single number begins just above it."""
        return replace(self, bins=(self.low, *self._rounded(starts[1:] // 2).tolist(), self.high))

    @property
    def _bins(self) -> object:
        return self.bins

    @cached_property
    def _digits(self) -> int:
        """The number of decimals of the ruler; negative for tens, hundreds and so on."""
        most = max(-self.low, self.high)
        digits = min(math.floor(math.log10(MOST_CELLS) - math.log10(self.high - self.low)), 300)
        while most * 10.0**digits >= 2**50:
            digits -= 1
        return digits

    def _rounded(self, units: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return numbers of that many digits, each as the nearest float."""
        scale = 10.0 ** abs(self._digits)
        return np.asarray(units / scale if self._digits >= 0 else units * scale, dtype=np.float64)

    def _cells_of(self, raw: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        scale = 10.0 ** abs(self._digits)
        units = np.floor(raw * scale if self._digits >= 0 else raw / scale).astype(np.int64)
        units += self._rounded(units + 1) <= raw
        units -= self._rounded(units) > raw
        return np.asarray(2 * units + (self._rounded(units) != raw))

    @property
    def span(self) -> tuple[float, float] | None:
        """The bounds."""
        return self.low, self.high

    def numbers(self, values: pa.ChunkedArray, report: Report) -> npt.NDArray[np.float64]:
        """Return the numbers themselves, inside the bounds."""
        return np.clip(self._numbers(values, report, self._floats), self.low, self.high)

    def _cells(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[np.int64]:
        return self._cells_of(np.clip(self._floats(values, absent, report), self.low, self.high))

    def _typed(self, values: pa.Array) -> pa.Array:
        """Return texts that all are numbers as numbers."""
        return numbers_in(values)

    def _codes(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[Any]:
        return np.searchsorted(self.edges[1:-1], self._floats(values, absent, report), side="right")

    def _floats(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[np.float64]:
        fix = "turn it into numbers first, or declare it as categorical"
        raw = numbers_of(values, absent, self.low, report, fix)
        # Bounds in the float type of the table: 0.1 in 32 bits is above 0.1 in 64 bits.
        with np.errstate(over="ignore"):
            low, high = (float(raw.dtype.type(b)) if raw.dtype.kind == "f" else b for b in (self.low, self.high))
        low, high = (held if math.isfinite(held) else b for held, b in ((low, self.low), (high, self.high)))
        check_bounds(raw, low, high, self.outside, report)
        return raw.astype(np.float64, copy=False)

    def _inside(self, codes: Codes, absent: Mask | None, dtype: pa.DataType | None, inside: Floats) -> pa.Array:
        if dtype is not None and pa.types.is_integer(dtype) and self._has_integers():
            return self._whole_values(codes, absent, dtype, inside)
        if dtype is not None and pa.types.is_decimal(dtype):
            units = self._units(dtype)
            if units is not None:
                return decimals(_between(units[0], codes, inside), units[1], absent, dtype)
        low, high = self.edges[:-1][codes], self.edges[1:][codes]
        drawn = low + inside * (high - low)
        last = codes == self.size - 1
        wanted = numpy_dtype(dtype).type if dtype is not None and pa.types.is_floating(dtype) else np.float64
        if max(-self.low, self.high) > float(np.finfo(wanted).max):
            wanted = np.float64
        least, most = _inside(low, wanted, up=True), _inside(high, wanted, up=False)
        most = np.where((most.astype(np.float64) >= high) & ~last, np.nextafter(most, wanted(-np.inf)), most)
        made = np.clip(drawn.astype(wanted), least, np.maximum(least, most))
        if self.decimals is not None:
            made = self._round(made, least, most)
        return pa.array(made, mask=absent)

    def _round(self, made: npt.NDArray[Any], least: npt.NDArray[Any], most: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return numbers of the declared decimals: the next lower one in the bin, else the next higher, else as is."""
        digits = cast("int", self.decimals)
        scale = 10.0 ** abs(digits)
        floats = made.astype(np.float64)
        units = np.floor(floats * scale if digits >= 0 else floats / scale)
        for each in (units + 1, units):
            near = (each / scale if digits >= 0 else each * scale).astype(made.dtype)
            made = np.where((near >= least) & (near <= most), near, made)
        return made

    def _has_integers(self) -> bool:
        return math.ceil(self.low) <= math.floor(self.high) and max(-self.low, self.high) <= 2**62

    def _whole_values(self, codes: Codes, absent: Mask | None, dtype: pa.DataType, inside: Floats) -> pa.Array:
        """Return integers, for a table of integers: inside the bin if it has any, else inside the bounds."""
        floor, ceiling = math.ceil(self.low), math.floor(self.high)
        edges = np.append(np.ceil(self.edges[:-1]).astype(np.int64), ceiling + 1)
        return typed_integers(_between(edges, codes, inside), absent, dtype, floor, ceiling)

    def _units(self, dtype: pa.DataType) -> tuple[npt.NDArray[np.int64], int] | None:
        """Return the edges in units of a decimal type's last digit, and the scale; None if it cannot hold them."""
        most = Fraction(max(-self.low, self.high))
        if dtype.scale < 0 or most >= 10 ** (dtype.precision - dtype.scale):
            return None
        # Floats hold at most 53 bits: further digits are zeros.
        digits = 22 if self.decimals is None else max(self.decimals, 0)
        scale = next((s for s in range(min(dtype.scale, digits), -1, -1) if most * 10**s < 2**52), None)
        if scale is None:
            return None
        edges = _first_units(np.append(self.edges[:-1], np.nextafter(self.high, np.inf)), scale)
        return (edges, scale) if edges[0] < edges[-1] else None


def _between(edges: npt.NDArray[np.int64], codes: Codes, inside: Floats) -> npt.NDArray[np.int64]:
    """Return integers from an edge to before the next; if there are none, the nearest integer within all edges."""
    least, end = edges[:-1][codes], edges[1:][codes]
    return np.clip(pick(least, np.maximum(end, least + 1), inside), edges[0], edges[-1] - 1)


def _first_units(edges: npt.NDArray[np.float64], scale: int) -> npt.NDArray[np.int64]:
    """Return the least decimal that, as a float, is at or above each edge, in units of its last digit."""
    units = np.rint(edges * 10.0**scale).astype(np.int64) - 1
    for _ in range(2):
        units += units / 10.0**scale < edges
    return units


def _inside(edges: npt.NDArray[Any], wanted: Any, *, up: bool) -> npt.NDArray[Any]:  # noqa: ANN401 - a float type
    """Return edges in a float type, rounded towards the inside of the bin."""
    rounded: npt.NDArray[Any] = edges.astype(wanted)
    back = rounded.astype(np.float64)
    wrong = back < edges if up else back > edges
    return np.where(wrong, np.nextafter(rounded, wanted(np.inf if up else -np.inf)), rounded)
