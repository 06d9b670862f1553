"""The raw values from which a column type drafts a declaration: **not private**.

Registered types are asked in the order of their `draft_order`, and the first proposal is taken. Its comment tells the
reviewer what was read from the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from chicle.columns.base import arrow_kind

if TYPE_CHECKING:
    from chicle.columns.base import Column

__all__ = ["MOST_VALUES", "Draft", "RawColumn", "and_missing"]

MOST_VALUES = 256  # integers in a range that get a code each; values of an open column
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
    """

    column: Column
    comment: str


class RawColumn:
    """The values of one column of a table, prepared for drafts.

    Parameters
    ----------
    values
        The column.

    Attributes
    ----------
    present
        The values that are not missing, without Arrow's dictionary; for floats, the finite ones.
    missing
        Whether there are other values.
    kind
        Their kind, in a word of `chicle.columns.base.arrow_kind`; ``"nothing but missing values"`` for a column without
        values.

    Examples
    --------
    >>> raw = RawColumn(pa.chunked_array([[31, None, 4]]))
    >>> raw.kind, raw.missing, raw.numbers.tolist(), raw.texts
    ('integers', True, [31.0, 4.0], None)
    """

    def __init__(self, values: pa.ChunkedArray) -> None:
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        present = values.drop_null()
        if pa.types.is_floating(present.type):
            present = present.filter(pc.is_finite(present))
        self.present: pa.ChunkedArray = present
        self.missing = len(present) < len(values)
        self.kind = arrow_kind(present.type if len(present) else pa.null())

    @cached_property
    def distinct(self) -> pa.Array:
        """The different values."""
        return self.present.unique()

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
        """The dates or datetimes, also if they are written as texts; None where the column holds something else."""
        if self.kind in ("dates", "datetimes"):
            return self.present.combine_chunks()
        if self.kind != "text":
            return None
        for dtype in (pa.date32(), pa.timestamp("us")):
            try:
                return self.distinct.cast(dtype)
            except pa.ArrowInvalid:  # noqa: PERF203 - two turns
                continue
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
    def texts(self) -> pa.Array | None:
        """The different texts; None where the column holds something else, or where all of them are dates."""
        return self.distinct if self.kind == "text" and self.times is None else None


def and_missing(read: str, missing: bool) -> str:
    """Return a comment on what was read from the data, and on missing values if there are any.

    Examples
    --------
    >>> and_missing("bounds", True), and_missing("", False)
    ('bounds and that values are missing', 'its type')
    """
    return " and ".join(part for part in (read, "that values are missing" if missing else "") if part) or "its type"
