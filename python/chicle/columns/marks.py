"""Marks of missing values: texts that always mean missing, and those that a declaration lists.

`NO_VALUE` are the texts that pandas reads as missing. They are missing in every column that does not list them as
values, so that a file and a frame of it agree. Other marks, such as ``?`` or -9, are declared: ``missing: ["?", -9]``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["NO_VALUE", "is_mark", "likely_numbers", "trimmed", "without_marks"]

NO_VALUE = ("", "#N/A", "#NA", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")
"""Texts that mean missing wherever they are not declared as values."""

_FEW_CODES = 16  # different numbers that are codes rather than amounts
_LIKELY = re.compile(r"[?.*-]+|na|none|nil|\(?(unknown|missing|not available)\)?|unk|-?9+|-[178]", re.IGNORECASE)


def is_mark(text: str) -> bool:
    """Return whether a text probably marks a missing value; a draft proposes it. Numbers do only beside other texts."""
    return text in NO_VALUE or _LIKELY.fullmatch(text) is not None


def without_marks(values: pa.Array, marks: Sequence[Any], labels: Sequence[str] = ()) -> pa.Array:
    """Return values with null for those that are marks; marks of another kind than the values are ignored.

    Texts are compared without spaces around them, but a text that is one of the labels as it stands is no mark.

    Examples
    --------
    >>> without_marks(pa.array(["1", "?", None]), ["?", -9]).to_pylist()
    ['1', None, None]
    >>> without_marks(pa.array([1, -9]), ["?", -9]).to_pylist()
    [1, None]
    """
    if pa.types.is_dictionary(values.type):
        there = without_marks(values.dictionary, marks, labels)
        if there.null_count == values.dictionary.null_count:
            return values
        return pa.DictionaryArray.from_arrays(values.indices, there).dictionary_decode()
    texts = values
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        texts = trimmed(values)
        wanted = pa.array([str(mark) for mark in marks], values.type)
    elif pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        wanted = _as_type([mark for mark in marks if not isinstance(mark, str)], values.type)
    else:
        return values
    found = pc.is_in(texts, wanted) if len(wanted) else None
    if found is not None and texts is not values and labels:
        found = pc.and_(found, pc.invert(pc.is_in(values, pa.array(labels, values.type))))
    return values if found is None or not pc.any(found).as_py() else pc.if_else(found, None, values)


def trimmed(texts: Any) -> Any:  # noqa: ANN401 - an array, chunked or not
    """Return texts without spaces around them; texts that are not UTF-8, which others report, unchanged."""
    try:
        return pc.utf8_trim_whitespace(texts)
    except pa.ArrowInvalid:
        return texts


def likely_numbers(values: npt.NDArray[np.float64]) -> tuple[float, ...]:
    """Return the numbers, among different ones in rising order, that probably mark missing values.

    They are -9, -99 and so on (also -1, -7, -8) below numbers that are never negative; 99, 999 and so on above a few
    others, or far above many. A top code, such as 99999 above incomes to 40000, stays.

    Examples
    --------
    >>> likely_numbers(np.array([-9.0, 0.0, 1.0, 4.0])), likely_numbers(np.array([1.0, 2.0, 3.0, 99.0]))
    ((-9.0,), (99.0,))
    >>> likely_numbers(np.array([17.0, 45.0, 90.0, 99.0]))
    ()
    """
    plain = values[(values >= 0) & ~_nines(values)]
    if not len(plain):
        return ()
    low = values[values < 0]
    marks = low.tolist() if len(low) and all(_is_low_mark(value) for value in low.tolist()) else []
    high = values[(values > 0) & _nines(values)]
    rest = values[~np.isin(values, high)]
    far = 2 if len(rest) <= _FEW_CODES else 5
    marks += [value for value in high.tolist() if value > far * rest.max() + 10]
    return tuple(marks)


def _nines(values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    return np.isin(values, [10.0**digits - 1 for digits in range(2, 10)])


def _is_low_mark(value: float) -> bool:
    return value in (-1.0, -7.0, -8.0) or (value < 0 and set(f"{-value:.0f}") == {"9"} and value == round(value))


def _as_type(numbers: list[Any], dtype: pa.DataType) -> pa.Array:
    kept = []
    for number in numbers:
        try:
            kept.append(pa.scalar(number, dtype))
        except (pa.ArrowException, OverflowError, TypeError):  # noqa: PERF203 - a few turns
            continue
    return pa.array([one.as_py() for one in kept], dtype)
