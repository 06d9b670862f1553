"""Columns of numbers, cut into bins: integer, number; and coded, integers that already are codes."""

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

from chicle.columns.base import Column, Mask, Report, arrow_kind
from chicle.columns.private_bins import Binned, PrivateBins, private_bins
from chicle.columns.ruler import MOST_CELLS, DecimalRuler
from chicle.domain import MAX_CARDINALITY
from chicle.errors import SchemaError
from chicle.records import Codes, code_dtype

__all__ = ["Coded", "Integer", "Number", "check_outside", "whole"]

_MOST_BINS = 2**24
_TABLE = 2**16  # ranges of up to so many integers are looked up in a table, wider ones searched for


@dataclass(frozen=True, kw_only=True)
class Integer(Binned):
    """A column of integers from `min` to `max`.

    Parameters
    ----------
    min, max
        The bounds, both included; a list of edges as `bins` brings its own.
    bins
        ``"each"``: a code for every integer. A number: so many bins of nearly equal width. A list of edges: a bin from
        each edge to before the next; the last edge is included. An edge listed twice is a bin of that integer alone.
        ``"private"`` or ``{"private": 20}``: at most so many bins, discovered with budget (`chicle.discover`).
    outside
        What becomes of integers outside the bounds: ``"refuse"`` or ``"clamp"``, which takes the nearest bound.

    Examples
    --------
    >>> Integer(min=17, max=90).cardinality
    74
    >>> Integer(bins=[0, 1, 18, 65, 120], outside="clamp").cardinality
    4
    """

    type = "integer"

    min: int | None = None
    max: int | None = None
    bins: str | int | Sequence[int] | Mapping[str, int] | PrivateBins = "each"
    outside: str = "refuse"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", private_bins(self.bins))
        if not isinstance(self.bins, str) and isinstance(self.bins, Iterable):
            edges = tuple(whole("an edge of bins", edge) for edge in self.bins)
            _take_bounds(self, edges)
        super().__post_init__()

    @property
    def low(self) -> int:
        """The lower bound, once it is checked."""
        return cast("int", self.min)

    @property
    def high(self) -> int:
        """The upper bound, once it is checked."""
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
        """How many bins there are."""
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
        return tuple(range(self.low, self.high + 1)) if self.size == self.high - self.low + 1 <= _TABLE else None

    def _check(self) -> None:
        low, high = _bounds(self)
        object.__setattr__(self, "min", whole("min", low))
        object.__setattr__(self, "max", whole("max", high))
        if low > high:
            raise SchemaError(f"min {low} is above max {high}; swap them")
        check_outside(self.outside)
        if isinstance(self.bins, tuple):
            if not (np.diff(self.starts) > 0).all():
                raise SchemaError("bins has a bin without any integer; leave an edge out")
        elif isinstance(self.bins, PrivateBins):
            if self.bins.most > high - low:
                raise SchemaError("bins are as many as the integers from min to max, or more; write `bins: each`")
        else:
            self._check_number(high - low + 1)

    def _check_number(self, values: int) -> None:
        if self.bins == "each":
            if values > MAX_CARDINALITY:
                raise SchemaError("bins: each makes too many codes of these bounds; give a number of bins")
            return
        if isinstance(self.bins, (str, bool)) or not hasattr(self.bins, "__index__"):
            raise SchemaError(
                f'bins must be "each", a number of bins or a list of edges, or "private", not {self.bins!r}'
            )
        bins = operator.index(cast("int", self.bins))
        object.__setattr__(self, "bins", bins)
        if not 1 <= bins <= values:
            raise SchemaError(f"bins must be from 1 to {values}, the number of integers from min to max, not {bins}")
        if bins > _MOST_BINS:
            raise SchemaError(f"bins must be at most {_MOST_BINS}, not {bins}; give fewer, or edges")

    @property
    def ruler(self) -> DecimalRuler:
        """Integers, or every tenth, hundredth and so on of them and what lies between."""
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

    def _cells(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[np.int64]:
        return self._cells_of(self._clamped(values, absent, report).astype(np.int64, copy=False))

    def _clamped(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[Any]:
        """Return integers inside the bounds."""
        raw = _numbers(values, absent, self.low, report, "declare it as categorical, with its values in `values`")
        if raw.dtype.kind == "f":
            if (raw != np.floor(raw)).any():
                report("has a number with a fraction", "declare it as number, or round it first")
            # Bounds as floats may be a little wider than the integers; the clamp of integers takes care of that.
            low, high = float(self.low), float(self.high)
            _check_bounds(raw, low, high, self.outside, report)
            raw = np.floor(np.clip(raw, low, min(high, np.nextafter(2.0**63, 0)))).astype(np.int64)
        else:
            _check_bounds(raw, self.low, self.high, self.outside, report)
        if raw.size and (raw.min() < self.low or raw.max() > self.high):
            if raw.dtype == np.uint64:
                raw = np.minimum(raw, np.uint64(2**63 - 1))
            raw = np.clip(raw.astype(np.int64, copy=False), self.low, self.high)
        return raw

    def _codes(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[Any]:
        raw = self._clamped(values, absent, report)
        values = self.high - self.low + 1
        if values > MAX_CARDINALITY:
            return np.searchsorted(self.starts[1:-1], raw, side="right")
        # Arithmetic of the codes' own width: what wraps around on the way is right in the end.
        width = code_dtype(values)
        offsets = raw.astype(width, copy=False)
        if self.low:
            offsets = offsets - width.type(self.low % 2 ** (8 * width.itemsize))
        if self.size == values:
            return offsets
        if values <= _TABLE:
            code_of = np.repeat(np.arange(self.size, dtype=code_dtype(self.size)), np.diff(self.starts))
            return np.asarray(code_of[offsets])
        return np.searchsorted(self.starts[1:-1] - self.low, offsets, side="right")

    def _values(
        self, codes: Codes, absent: Mask | None, dtype: pa.DataType | None, rng: np.random.Generator
    ) -> pa.Array:
        if self.size == self.high - self.low + 1:
            drawn = codes.astype(np.int64) + self.low
        else:
            drawn = rng.integers(self.starts[codes], self.starts[1:][codes])
        return _typed_integers(drawn, absent, dtype, self.low, self.high)


@dataclass(frozen=True, kw_only=True)
class Number(Binned):
    """A column of real numbers from `min` to `max`.

    Parameters
    ----------
    min, max
        The bounds, both included; a list of edges as `bins` brings its own.
    bins
        A number of bins of equal width, or a list of edges: a bin from each edge to before the next; the last edge is
        included. An edge listed twice is a bin of that number alone: the zeros, say, of which there are many.
        ``"private"`` or ``{"private": 20}``: at most so many bins, discovered with budget (`chicle.discover`).
    outside
        What becomes of numbers outside the bounds: ``"refuse"`` or ``"clamp"``, which takes the nearest bound.

    Examples
    --------
    >>> Number(min=0, max=1, bins=20).cardinality
    20
    >>> Number(bins=[0, 0, 10, 100]).cardinality
    3
    """

    type = "number"

    min: float | None = None
    max: float | None = None
    bins: str | int | Sequence[float] | Mapping[str, int] | PrivateBins | None = None
    outside: str = "refuse"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bins", private_bins(self.bins))
        if not isinstance(self.bins, str) and isinstance(self.bins, Iterable):
            edges = tuple(_real("an edge of bins", edge) for edge in self.bins)
            _take_bounds(self, edges)
        super().__post_init__()

    @property
    def low(self) -> float:
        """The lower bound, once it is checked."""
        return cast("float", self.min)

    @property
    def high(self) -> float:
        """The upper bound, once it is checked."""
        return cast("float", self.max)

    @cached_property
    def edges(self) -> npt.NDArray[np.float64]:
        """Where bins begin, and where the last ends."""
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
        number = _real("a bound", value)
        return float(np.nextafter(number, np.inf)) if after else number

    @property
    def size(self) -> int:
        """How many bins there are."""
        if isinstance(self.bins, PrivateBins):
            return self.bins.most
        return len(self.bins) - 1 if isinstance(self.bins, tuple) else cast("int", self.bins)

    @property
    def ordered(self) -> bool:
        """Numbers have an order."""
        return True

    def _check(self) -> None:
        low, high = (_real(name, bound) for name, bound in zip(("min", "max"), _bounds(self), strict=True))
        object.__setattr__(self, "min", low)
        object.__setattr__(self, "max", high)
        if low > high or (low == high and not isinstance(self.bins, tuple)):
            raise SchemaError(f"min {low} must be below max {high}")
        if not math.isfinite(high - low):
            raise SchemaError("min and max are too far apart for a float; narrow them")
        check_outside(self.outside)
        if isinstance(self.bins, (tuple, PrivateBins)):
            return
        if self.bins is None or isinstance(self.bins, bool) or not hasattr(self.bins, "__index__"):
            raise SchemaError(
                f'bins must be a number of bins, a list of edges or "private", such as `bins: 32`, not {self.bins!r}'
            )
        bins = operator.index(cast("int", self.bins))
        object.__setattr__(self, "bins", bins)
        if not 1 <= bins <= _MOST_BINS:
            raise SchemaError(f"bins must be from 1 to {_MOST_BINS}, not {bins}")
        if not (np.diff(self.edges) > 0).all():
            raise SchemaError("bins are too many for these bounds; give fewer")

    @property
    def ruler(self) -> DecimalRuler:
        """Numbers of a few digits, and what lies between."""
        first, last = self._cells_of(np.array([self.low, self.high])).tolist()
        return DecimalRuler(first, last + 1, 2)

    def discovered(self, starts: npt.NDArray[np.int64]) -> Number:
        """Return the column with bins that begin at these cells; what follows a number alone follows it at once."""
        return replace(self, bins=(self.low, *self._rounded(starts[1:] // 2).tolist(), self.high))

    @property
    def _bins(self) -> object:
        return self.bins

    @cached_property
    def _digits(self) -> int:
        """How many digits after the point the ruler has; fewer than none for tens, hundreds and so on."""
        most = max(-self.low, self.high)
        digits = min(math.floor(math.log10(MOST_CELLS) - math.log10(self.high - self.low)), 300)
        while most * 10.0**digits >= 2**50:
            digits -= 1
        return digits

    def _rounded(self, units: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return numbers of so many digits, each the float nearest to it."""
        scale = 10.0 ** abs(self._digits)
        return np.asarray(units / scale if self._digits >= 0 else units * scale, dtype=np.float64)

    def _cells_of(self, raw: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        scale = 10.0 ** abs(self._digits)
        units = np.floor(raw * scale if self._digits >= 0 else raw / scale).astype(np.int64)
        units += self._rounded(units + 1) <= raw
        units -= self._rounded(units) > raw
        return np.asarray(2 * units + (self._rounded(units) != raw))

    def _cells(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[np.int64]:
        return self._cells_of(np.clip(self._floats(values, absent, report), self.low, self.high))

    def _codes(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[Any]:
        return np.searchsorted(self.edges[1:-1], self._floats(values, absent, report), side="right")

    def _floats(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[np.float64]:
        fix = "turn it into numbers first, or declare it as categorical"
        raw = _numbers(values, absent, self.low, report, fix)
        # A bound as the table would hold it: 0.1 of 32 bits is above that of 64.
        with np.errstate(over="ignore"):
            low, high = (float(raw.dtype.type(b)) if raw.dtype.kind == "f" else b for b in (self.low, self.high))
        low, high = (held if math.isfinite(held) else b for held, b in ((low, self.low), (high, self.high)))
        _check_bounds(raw, low, high, self.outside, report)
        return raw.astype(np.float64, copy=False)

    def _values(
        self, codes: Codes, absent: Mask | None, dtype: pa.DataType | None, rng: np.random.Generator
    ) -> pa.Array:
        if dtype is not None and pa.types.is_integer(dtype) and self._has_integers():
            return self._whole_values(codes, absent, dtype, rng)
        if dtype is not None and pa.types.is_decimal(dtype):
            units = self._units(dtype)
            if units is not None:
                return _decimals(_between(units[0], codes, rng), units[1], absent, dtype)
        low, high = self.edges[:-1][codes], self.edges[1:][codes]
        drawn = low + rng.random(len(codes)) * (high - low)
        last = codes == self.size - 1
        wanted = dtype.to_pandas_dtype() if dtype is not None and pa.types.is_floating(dtype) else np.float64
        if max(-self.low, self.high) > float(np.finfo(wanted).max):
            wanted = np.float64
        least, most = _inside(low, wanted, up=True), _inside(high, wanted, up=False)
        most = np.where((most.astype(np.float64) >= high) & ~last, np.nextafter(most, wanted(-np.inf)), most)
        made = np.clip(drawn.astype(wanted), least, np.maximum(least, most))
        return pa.array(made, mask=absent)

    def _has_integers(self) -> bool:
        return math.ceil(self.low) <= math.floor(self.high) and max(-self.low, self.high) <= 2**62

    def _whole_values(
        self, codes: Codes, absent: Mask | None, dtype: pa.DataType, rng: np.random.Generator
    ) -> pa.Array:
        """Return integers, for a table whose numbers are: inside the bin where it has any, else inside the bounds."""
        floor, ceiling = math.ceil(self.low), math.floor(self.high)
        edges = np.append(np.ceil(self.edges[:-1]).astype(np.int64), ceiling + 1)
        return _typed_integers(_between(edges, codes, rng), absent, dtype, floor, ceiling)

    def _units(self, dtype: pa.DataType) -> tuple[npt.NDArray[np.int64], int] | None:
        """Return the edges for a type of decimals, in units of so many digits; None if it can not hold the bounds."""
        most = Fraction(max(-self.low, self.high))
        if dtype.scale < 0 or most >= 10 ** (dtype.precision - dtype.scale):
            return None
        # Floats hold no more than 53 bits: further digits are zeros.
        scale = next((s for s in range(min(dtype.scale, 22), -1, -1) if most * 10**s < 2**52), None)
        if scale is None:
            return None
        edges = _first_units(np.append(self.edges[:-1], np.nextafter(self.high, np.inf)), scale)
        return (edges, scale) if edges[0] < edges[-1] else None


@dataclass(frozen=True, kw_only=True)
class Coded(Column):
    """A column that holds codes ``0..cardinality-1`` already.

    Parameters
    ----------
    values
        How many codes there are, missing apart.
    ordinal
        Whether neighbouring codes are neighbouring values.

    Examples
    --------
    >>> Coded(values=7, missing=True).cardinality
    8
    """

    type = "coded"

    values: int
    ordinal: bool = False

    @property
    def size(self) -> int:
        """How many codes the table may hold."""
        return self.values

    @property
    def ordered(self) -> bool:
        """As declared."""
        return self.ordinal

    @property
    def starts(self) -> npt.NDArray[Any] | None:
        """The codes themselves."""
        return np.arange(self.values + 1)

    def start_of(self, value: object, *, after: bool) -> int:
        """Return a code, or the next one."""
        return whole("a bound", value) + after

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """The codes themselves."""
        return tuple(range(self.values)) if self.values <= _TABLE else None

    def _check(self) -> None:
        if isinstance(self.values, bool) or not hasattr(self.values, "__index__"):
            raise SchemaError(f"values must be a number of codes, not {self.values!r}; list values as `categorical`")
        object.__setattr__(self, "values", operator.index(self.values))
        if not 1 <= self.values <= MAX_CARDINALITY - self.missing:
            raise SchemaError(f"values must be from 1 to {MAX_CARDINALITY - self.missing}, not {self.values}")
        if not isinstance(self.ordinal, bool):
            raise SchemaError(f"ordinal must be true or false, not {self.ordinal!r}")

    def _codes(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[Any]:
        raw = _numbers(values, absent, 0, report, "declare it as categorical and list its values")
        outside = raw.size and (raw.min() < 0 or raw.max() >= self.values)
        if outside or (raw.dtype.kind == "f" and (raw != np.floor(raw)).any()):
            report(f"has a value that is no code 0..{self.values - 1}", "declare as many `values` as there are codes")
            return np.zeros(len(raw), np.uint8)
        return raw

    def _values(
        self, codes: Codes, absent: Mask | None, dtype: pa.DataType | None, rng: np.random.Generator
    ) -> pa.Array:
        del rng
        return _typed_integers(codes, absent, dtype, 0, self.values - 1)


def whole(name: str, value: object) -> int:
    """Return a declared integer as an int, if it has 64 bits; 5.0 will do for 5."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise SchemaError(f"{name} must be an integer, not {value!r}")
    number = operator.index(value)
    if not -(2**63) <= number < 2**63 - 1:
        raise SchemaError(f"{name} must be an integer of 64 bits, not {number}")
    return number


def check_outside(outside: object) -> None:
    """Raise unless it is said what becomes of values outside the bounds."""
    if outside not in ("refuse", "clamp"):
        raise SchemaError(f'outside must be "refuse" or "clamp", not {outside!r}')


def _real(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise SchemaError(f"{name} must be a number, not {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    if not math.isfinite(number):
        raise SchemaError(f"{name} must be finite and fit a float, not {number}")
    return number


def _take_bounds(column: Integer | Number, edges: tuple[Any, ...]) -> None:
    """Take min and max from a list of edges; where they are declared too, they must agree."""
    if len(edges) < 2:
        raise SchemaError("bins must list at least two edges")
    if any(a > b for a, b in pairwise(edges)) or any(a == b for a, b in zip(edges, edges[2:], strict=False)):
        raise SchemaError("bins must list its edges in rising order, each once, or twice for a bin of that value alone")
    for name, edge in (("min", edges[0]), ("max", edges[-1])):
        declared = getattr(column, name)
        if declared is not None and declared != edge:
            raise SchemaError(f"{name} is {declared!r} but the edges of bins give {edge!r}; leave {name} out")
        object.__setattr__(column, name, edge)
    object.__setattr__(column, "bins", edges)


def _bounds(column: Integer | Number) -> tuple[Any, Any]:
    for name in ("min", "max"):
        if getattr(column, name) is None:
            raise SchemaError(f"{name} is not declared; bounds must be public knowledge, so write `{name}: ...`")
    return column.min, column.max


def _numbers(values: pa.Array, absent: Mask | None, fill: float, report: Report, fix: str) -> npt.NDArray[Any]:
    """Return numbers as an array, with a harmless one where they are absent."""
    kind = arrow_kind(values.type)
    if kind not in ("integers", "numbers", "decimals"):
        if not pa.types.is_null(values.type):
            report(f"holds {kind}, not numbers", fix)
        return np.full(len(values), fill)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_decimal(values.type):
        # By way of text, for Arrow's own way is off by a bit where there are many digits.
        values = values.cast(pa.string()).cast(pa.float64())
    if absent is None:
        return np.asarray(values.to_numpy(zero_copy_only=False))
    if kind == "integers":
        limits = np.iinfo(values.type.to_pandas_dtype())
        harmless = int(min(max(fill, limits.min), limits.max))
        return np.asarray(values.fill_null(harmless).to_numpy(zero_copy_only=False))
    return np.where(absent, fill, values.to_numpy(zero_copy_only=False))


def _check_bounds(raw: npt.NDArray[Any], low: float, high: float, outside: str, report: Report) -> None:
    if outside == "refuse" and raw.size and (raw.min().item() < low or raw.max().item() > high):
        report("has a number outside its bounds", "widen `min` and `max`, or write `outside: clamp`")


def _typed_integers(
    drawn: npt.NDArray[Any], absent: Mask | None, dtype: pa.DataType | None, low: int, high: int
) -> pa.Array:
    """Return integers of an Arrow type, if all from `low` to `high` fit into it, else of 64 bits."""
    if dtype is not None and pa.types.is_integer(dtype):
        limits = np.iinfo(dtype.to_pandas_dtype())
        if limits.min <= low and high <= limits.max:
            return pa.array(drawn.astype(dtype.to_pandas_dtype(), copy=False), mask=absent)
    array = pa.array(drawn.astype(np.int64, copy=False), mask=absent)
    if dtype is not None and pa.types.is_floating(dtype):
        exact = max(-low, high) <= 2 ** (np.finfo(dtype.to_pandas_dtype()).nmant + 1)
        return array.cast(dtype if exact else pa.float64(), safe=False)
    if dtype is not None and pa.types.is_dictionary(dtype) and pa.types.is_integer(dtype.value_type):
        return _typed_integers(drawn, absent, dtype.value_type, low, high).dictionary_encode()
    if dtype is None or not pa.types.is_decimal(dtype) or dtype.scale < 0:
        return array
    fits = max(-low, high) < 10 ** (dtype.precision - dtype.scale)
    return _decimals(drawn.astype(np.int64, copy=False), 0, absent, dtype) if fits else array


def _between(edges: npt.NDArray[np.int64], codes: Codes, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return integers from an edge to before the next; where there are none, the nearest that the edges enclose."""
    least, end = edges[:-1][codes], edges[1:][codes]
    return np.clip(rng.integers(least, np.maximum(end, least + 1)), edges[0], edges[-1] - 1)


def _first_units(edges: npt.NDArray[np.float64], scale: int) -> npt.NDArray[np.int64]:
    """Return the first decimal that, as a float, is not below each edge, in units of its last digit."""
    units = np.rint(edges * 10.0**scale).astype(np.int64) - 1
    for _ in range(2):
        units += units / 10.0**scale < edges
    return units


def _decimals(units: npt.NDArray[np.int64], scale: int, absent: Mask | None, dtype: pa.DataType) -> pa.Array:
    """Return integers, in units of the last of `scale` digits after the point, as decimals of a type."""
    words = np.stack([units, units >> 63], axis=1)  # two's complement of 128 bits
    valid = None if absent is None else pa.array(~absent).buffers()[1]
    made = pa.Array.from_buffers(pa.decimal128(38, scale), len(units), [valid, pa.py_buffer(words)])
    return made.cast(dtype)


def _inside(edges: npt.NDArray[Any], wanted: Any, *, up: bool) -> npt.NDArray[Any]:  # noqa: ANN401 - a float type
    """Return edges as floats of a type, rounded towards the inside of the bin."""
    rounded: npt.NDArray[Any] = edges.astype(wanted)
    back = rounded.astype(np.float64)
    wrong = back < edges if up else back > edges
    return np.where(wrong, np.nextafter(rounded, wanted(np.inf if up else -np.inf)), rounded)
