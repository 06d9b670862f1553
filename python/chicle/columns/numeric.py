"""Shared code of numeric columns: declared bounds and edges, and conversion from and to Arrow arrays."""

from __future__ import annotations

import math
import operator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from chicle.columns.base import Mask, Report, arrow_kind, is_text, numpy_dtype
from chicle.columns.marks import trimmed
from chicle.columns.private_bins import Binned
from chicle.errors import SchemaError

__all__ = [
    "LOOK_UP",
    "MOST_BINS",
    "between",
    "bounds_of",
    "check_bounds",
    "check_outside",
    "decimals",
    "numbers_in",
    "numbers_of",
    "real",
    "take_bounds",
    "typed_integers",
    "whole",
]

MOST_BINS = 2**24
LOOK_UP = 2**16  # ranges of at most this many integers use a look-up table, wider ones a binary search


def whole(name: str, value: object) -> int:
    """Return a declared integer as an int; it must fit 64 bits. 5.0 is accepted as 5."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise SchemaError(f"{name} must be an integer, not {value!r}")
    number = operator.index(value)
    if not -(2**63) <= number < 2**63 - 1:
        raise SchemaError(f"{name} must be an integer of 64 bits, not {number}")
    return number


def check_outside(outside: object) -> None:
    """Raise unless this is a known rule for values outside the bounds."""
    if outside not in ("refuse", "clamp"):
        raise SchemaError(f'outside must be "refuse" or "clamp", not {outside!r}')


def real(name: str, value: object) -> float:
    """Return a declared number as a finite float."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise SchemaError(f"{name} must be a number, not {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    if not math.isfinite(number):
        raise SchemaError(f"{name} must be finite and fit a float, not {number}")
    return number


def take_bounds(column: Binned, edges: tuple[Any, ...]) -> None:
    """Take min and max from a list of edges; if they are declared too, they must agree."""
    if len(edges) < 2:
        raise SchemaError("bins must list at least two edges")
    if any(a > b for a, b in pairwise(edges)) or any(a == b for a, b in zip(edges, edges[2:], strict=False)):
        raise SchemaError("bins must list its edges in rising order; an edge may occur twice, for that value alone")
    for name, edge in (("min", edges[0]), ("max", edges[-1])):
        declared = getattr(column, name)
        if declared is not None and declared != edge:
            raise SchemaError(f"{name} is {declared!r} but the edges of bins give {edge!r}; leave {name} out")
        object.__setattr__(column, name, edge)
    object.__setattr__(column, "bins", edges)


def bounds_of(column: Binned) -> tuple[Any, Any]:
    """Return min and max, which must be declared."""
    found = []
    for name in ("min", "max"):
        found.append(getattr(column, name))
        if found[-1] is None:
            raise SchemaError(f"{name} is not declared; bounds must be public knowledge, so write `{name}: ...`")
    return found[0], found[1]


def between(first: object, last: object) -> str:
    """Return the bounds of a bin as a label.

    Examples
    --------
    >>> between(0, 24), between(7, 7)
    ('0 to 24', '7')
    """
    return str(first) if first == last else f"{first} to {last}"


def numbers_in(values: pa.Array) -> pa.Array:
    """Return texts as integers or floats, if all are; other values unchanged.

    Examples
    --------
    >>> numbers_in(pa.array(["1", " 2", None])).to_pylist(), numbers_in(pa.array(["1", "two"])).to_pylist()
    ([1, 2, None], ['1', 'two'])
    """
    if not is_text(values.type):
        return values
    plain = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
    plain = trimmed(plain)
    for dtype in (pa.int64(), pa.float64()):
        try:
            return plain.cast(dtype)
        except pa.ArrowInvalid:  # noqa: PERF203 - two turns
            continue
    return values


def numbers_of(values: pa.Array, absent: Mask | None, fill: float, report: Report, fix: str) -> npt.NDArray[Any]:
    """Return numbers as an array, with a harmless value for absent ones."""
    kind = arrow_kind(values.type)
    if kind not in ("integers", "numbers", "decimals"):
        if not pa.types.is_null(values.type):
            report(f"holds {kind}, not numbers", fix)
        return np.full(len(values), fill)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_decimal(values.type):
        # Through text, because Arrow's own cast is off by a bit for many digits.
        values = values.cast(pa.string()).cast(pa.float64())
    if absent is None:
        return np.asarray(values.to_numpy(zero_copy_only=False))
    if kind == "integers":
        limits = np.iinfo(numpy_dtype(values.type))
        harmless = int(min(max(fill, limits.min), limits.max))
        return np.asarray(values.fill_null(harmless).to_numpy(zero_copy_only=False))
    return np.where(absent, fill, values.to_numpy(zero_copy_only=False))


def check_bounds(raw: npt.NDArray[Any], low: float, high: float, outside: str, report: Report) -> None:
    """Report numbers outside the bounds, unless they are clamped."""
    if outside == "refuse" and raw.size and (raw.min().item() < low or raw.max().item() > high):
        report("has a number outside its bounds", "widen `min` and `max`, or write `outside: clamp`")


def typed_integers(
    drawn: npt.NDArray[Any], absent: Mask | None, dtype: pa.DataType | None, low: int, high: int
) -> pa.Array:
    """Return integers in an Arrow type if it holds all from `low` to `high`, else in 64 bits."""
    if dtype is not None and pa.types.is_integer(dtype):
        limits = np.iinfo(numpy_dtype(dtype))
        if limits.min <= low and high <= limits.max:
            return pa.array(drawn.astype(numpy_dtype(dtype), copy=False), mask=absent)
    array = pa.array(drawn.astype(np.int64, copy=False), mask=absent)
    if dtype is not None and pa.types.is_floating(dtype):
        exact = max(-low, high) <= 2 ** (np.finfo(numpy_dtype(dtype)).nmant + 1)
        return array.cast(dtype if exact else pa.float64(), safe=False)
    if dtype is not None and pa.types.is_dictionary(dtype) and pa.types.is_integer(dtype.value_type):
        return typed_integers(drawn, absent, dtype.value_type, low, high).dictionary_encode()
    if dtype is None or not pa.types.is_decimal(dtype) or dtype.scale < 0:
        return array
    fits = max(-low, high) < 10 ** (dtype.precision - dtype.scale)
    return decimals(drawn.astype(np.int64, copy=False), 0, absent, dtype) if fits else array


def decimals(units: npt.NDArray[np.int64], scale: int, absent: Mask | None, dtype: pa.DataType) -> pa.Array:
    """Return integers, in units of the last of `scale` decimals, in a decimal type."""
    words = np.stack([units, units >> 63], axis=1)  # two's complement in 128 bits
    valid = None if absent is None else pa.array(~absent).buffers()[1]
    made = pa.Array.from_buffers(pa.decimal128(38, scale), len(units), [valid, pa.py_buffer(words)])
    return made.cast(dtype)
