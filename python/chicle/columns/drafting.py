"""The raw values from which a column type drafts a declaration: **not private**.

Registered types are asked in the order of their `draft_order`, and the first proposal is taken. Its comment tells the
reviewer what was read from the data.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from chicle.columns.base import arrow_kind, is_text
from chicle.columns.formats import Written, as_texts, how_written, parsed
from chicle.columns.marks import NO_VALUE, is_mark, likely_numbers, trimmed

if TYPE_CHECKING:
    from chicle.columns.base import Column

__all__ = ["MOST_VALUES", "Draft", "RawColumn", "and_missing"]

MOST_VALUES = 256  # integers in a range that get a code each; values of an open column
_WORDS = 3.0  # of a free text, on average
_FEW = 20  # rows that are too few to see that texts are free
MOST_CODES = 64  # different integers that may be codes of categories
_CODES = re.compile(
    r"(^|_)(ids?|codes?|types?|kind|class|category|cat|status|source|disposition|group|sex|gender|race|region)($|_)",
    re.IGNORECASE,
)
_MOST_COUNT = 1000  # larger numbers are amounts
_MOST_EXACT = 2**53  # up to here floats hold every integer


@dataclass(frozen=True)
class Draft:
    """A proposed column, and a comment on what was read from the data.

    Attributes
    ----------
    column
        The proposal.
    comment
        What was read, for the reviewer.
    remarks
        Further sentences for the reviewer.
    """

    column: Column
    comment: str
    remarks: tuple[str, ...] = ()


class RawColumn:
    """The values of one column of a table, prepared for drafts.

    Texts are trimmed. Marks of missing values are left out. Texts that all are numbers, booleans or dates are read as
    such, as the column type that suits them will read them.

    Parameters
    ----------
    values
        The column.
    name
        Its name, which says whether integers are codes or counts.

    Attributes
    ----------
    present
        The values that are not missing, without Arrow's dictionary; for floats, the finite ones.
    missing
        The declaration of missing values: False, True, or the marks that mean missing.
    marks
        All values that look like marks of missing values.
    kind
        Their kind, in a word of `chicle.columns.base.arrow_kind`; ``"nothing but missing values"`` for a column without
        values.
    texts
        The different texts, also if they are numbers or dates; None where the column holds something else.
    written
        How its values write dates; None where they are no dates, or written as 2024-12-31.

    Examples
    --------
    >>> raw = RawColumn(pa.chunked_array([[31, None, 4]]))
    >>> raw.kind, raw.missing, raw.numbers.tolist(), raw.texts
    ('integers', True, [31.0, 4.0], None)
    >>> raw = RawColumn(pa.chunked_array([["31", "?", " 4", "-9"]]))
    >>> raw.kind, raw.missing, raw.numbers.tolist()
    ('integers', ('?', -9), [31.0, 4.0])
    """

    def __init__(self, values: pa.ChunkedArray, name: str = "") -> None:
        self.name = name
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        present = values.drop_null()
        if pa.types.is_floating(present.type):
            present = present.filter(pc.is_finite(present))
        met: list[Any] = []
        self.texts: pa.Array | None = None
        if is_text(present.type):
            texts, met = _without_texts(trimmed(present))
            self.texts = texts.unique()
            present = _read(texts, self.texts)
        if arrow_kind(present.type) in ("integers", "numbers"):
            present, numbers = _without_numbers(present)
            met += numbers
        self.present: pa.ChunkedArray = present
        self.marks: tuple[Any, ...] = tuple(met)
        self.missing: bool | tuple[Any, ...] = tuple(mark for mark in met if mark not in NO_VALUE) or (
            len(present) < len(values)
        )
        self.kind = arrow_kind(present.type if len(present) else pa.null())
        self.written = self._written()

    @cached_property
    def distinct(self) -> pa.Array:
        """The different values."""
        return self._counted.field("values")

    @cached_property
    def counts(self) -> pa.Array:
        """The number of rows of each different value."""
        return self._counted.field("counts")

    @cached_property
    def _counted(self) -> pa.StructArray:
        return self.present.value_counts()

    @cached_property
    def numbers(self) -> npt.NDArray[np.float64] | None:
        """The numbers as floats; None where the column holds something else."""
        if self.kind not in ("integers", "numbers", "decimals"):
            return None
        floats: npt.NDArray[np.float64] = self.present.cast(pa.float64(), safe=False).to_numpy()
        return floats

    @cached_property
    def bounds(self) -> tuple[float, float] | None:
        """The least and the greatest number; None if there are no numbers, or if they are too far apart for a float."""
        if self.numbers is None:
            return None
        low, high = float(self.numbers.min()), float(self.numbers.max())
        return (low, high) if math.isfinite(high - low) else None

    @cached_property
    def whole(self) -> bool:
        """Whether all numbers are integers, of any type, that floats hold exactly."""
        if self.numbers is None or self.bounds is None or max(-self.bounds[0], self.bounds[1]) >= _MOST_EXACT:
            return False
        return bool((self.numbers == np.floor(self.numbers)).all())

    @cached_property
    def times(self) -> pa.Array | None:
        """The dates or datetimes, also if they are written as texts or numbers; None if it holds something else."""
        if self.kind in ("dates", "datetimes"):
            return self.present.combine_chunks()
        if self.written is not None:
            fine = any("hh" in one for one in self.written.formats)
            return parsed(as_texts(self.distinct), self.written.formats, pa.timestamp("us") if fine else pa.date32())
        return _iso_times(self.distinct) if self.kind == "text" else None

    @property
    def formats(self) -> tuple[str, ...] | None:
        """The formats to declare for its dates; None where they are written as 2024-12-31."""
        return None if self.written is None else self.written.formats

    def _written(self) -> Written | None:
        if self.kind == "text":
            return None if _iso_times(self.distinct) is not None else how_written(self.distinct, self.counts)
        if self.kind == "integers" and _DATED.search(self.name):
            return how_written(self.distinct.cast(pa.string()), self.counts)
        return None

    @cached_property
    def span(self) -> tuple[Any, Any] | None:
        """The first and the last date or datetime; None if there is none, or if one is outside the years 1 to 9999."""
        if self.times is None:
            return None
        try:
            low, high = (value.as_py() for value in pc.min_max(self.times).values())
        except (OverflowError, ValueError):
            return None
        return low, high

    @cached_property
    def rounded(self) -> bool:
        """Whether most integers are multiples of ten that are not evenly spaced, as amounts are and ids are not."""
        if self.numbers is None or not self.whole:
            return False
        steps = np.diff(np.unique(self.numbers))
        return bool((self.numbers % 10 == 0).mean() > 0.8 and len(steps) and steps.min() < steps.max())

    @cached_property
    def decimals(self) -> int | None:
        """How many decimals numbers are rounded to; None where that is more than six."""
        if self.numbers is None:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            return next((d for d in range(7) if np.array_equal(np.round(self.numbers, d), self.numbers)), None)

    @cached_property
    def skewed(self) -> bool:
        """Whether most integers are far below the greatest one, as those of counts are."""
        if self.numbers is None or not self.whole or not 10 < self.numbers.max() <= _MOST_COUNT:
            return False
        return bool(np.quantile(self.numbers, 0.75) <= self.numbers.max() / 5)

    @cached_property
    def codes(self) -> bool:
        """Whether integers look like codes of categories: by their name, or because frequent ones have gaps between."""
        if self.kind != "integers" or self.numbers is None or not self.whole or self.written is not None:
            return False
        if not 2 <= len(self.distinct) <= MOST_CODES or self.numbers.min() < 0:
            return False
        if _CODES.search(self.name) is not None or (len(self.distinct) <= 12 and set(self.marks) & {99, 999, 9999}):
            return True
        values, rows = np.unique(self.numbers, return_counts=True)
        often = values[rows > len(self.numbers) / 100]
        few = len(self.numbers) > _FEW and len(values) <= 12 and values[0] > 0
        return bool(few and len(often) > 2 and np.diff(often).max() > 1)

    @cached_property
    def free_text(self) -> bool:
        """Whether it looks like sentences: texts of several words, most of which occur once."""
        if self.words is None or not len(self.words):
            return False
        words = pc.mean(pc.count_substring(self.words, " ")).as_py()
        return bool(words >= _WORDS - 1 and 2 * len(self.words) > len(self.present) and len(self.present) > _FEW)

    @property
    def words(self) -> pa.Array | None:
        """The different texts that are neither numbers nor dates; None where the column holds something else."""
        return self.distinct if self.kind == "text" and self.times is None else None


def and_missing(read: str, missing: bool | tuple[Any, ...]) -> str:
    """Return a comment on what was read from the data, and on missing values if there are any.

    Examples
    --------
    >>> and_missing("bounds", True), and_missing("", False)
    ('bounds and that values are missing', 'its type')
    """
    return " and ".join(part for part in (read, "that values are missing" if missing else "") if part) or "its type"


_NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"
_WHOLE = r"^[+-]?\d+$"
_LEADING_ZERO = r"^[+-]?0\d"
_TRUTH = ("true", "false", "True", "False", "TRUE", "FALSE")
_DATED = re.compile(r"date|datum|fecha|(^|_)dob($|_)", re.IGNORECASE)


def _without_texts(texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, list[Any]]:
    """Return texts without those that look like marks of missing values, and these."""
    distinct = texts.unique()
    numeric = pc.match_substring_regex(distinct, _NUMBER)
    words = [text for text in distinct.filter(pc.invert(numeric)).to_pylist() if not is_mark(text)]
    marks = [text for text in distinct.filter(pc.invert(numeric)).to_pylist() if is_mark(text)]
    if len(words) >= (pc.sum(numeric).as_py() or 0) > 0:
        # Numbers are marks only beside other texts: -9 in a column of dates, not in one of codes.
        marks += [text for text in distinct.filter(numeric).to_pylist() if is_mark(text)]
    return texts.filter(pc.invert(pc.is_in(texts, pa.array(marks, distinct.type)))) if marks else texts, marks


def _read(texts: pa.ChunkedArray, distinct: pa.Array) -> pa.ChunkedArray:
    """Return texts as integers, floats or booleans if all are such."""
    if not len(distinct):
        return texts
    if pc.all(pc.is_in(distinct, pa.array(_TRUTH, distinct.type))).as_py():
        return texts.cast(pa.bool_())
    if not _all_match(distinct, _NUMBER) or pc.any(pc.match_substring_regex(distinct, _LEADING_ZERO)).as_py():
        return texts
    try:
        return texts.cast(pa.int64() if _all_match(distinct, _WHOLE) else pa.float64())
    except pa.ArrowInvalid:  # more than 64 bits
        return texts


def _all_match(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _without_numbers(numbers: pa.ChunkedArray) -> tuple[pa.ChunkedArray, list[Any]]:
    """Return numbers without those that look like marks of missing values, and these."""
    distinct = numbers.unique()
    marks = likely_numbers(np.sort(distinct.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)))
    if not marks:
        return numbers, []
    found = pc.is_in(numbers.cast(pa.float64(), safe=False), pa.array(marks, pa.float64()))
    return numbers.filter(pc.invert(found)), [int(mark) for mark in marks]


def _iso_times(texts: pa.Array) -> pa.Array | None:
    for dtype in (pa.date32(), pa.timestamp("us")):
        try:
            return texts.cast(dtype)
        except pa.ArrowInvalid:  # noqa: PERF203 - two turns
            continue
    return None
