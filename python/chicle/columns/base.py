"""What every column has in common: codes for its values, a code for missing, and the way back.

A column is declared, never read off the data. Whatever does not fit the declaration is reported to a `Report`, which
names the rule and the fix and never sees a value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from chicle.counting.records import Codes, code_dtype
from chicle.errors import SchemaError

__all__ = ["Column", "Mask", "Report", "Unmodelled", "arrow_kind", "is_text", "is_unicode", "refuse"]

Report: TypeAlias = Callable[[str, str], None]
"""Told the rule that a column breaks and the fix; raises, or keeps it for a list."""

Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Column(ABC):
    """Base of all columns.

    Parameters
    ----------
    missing
        Whether missing is a value of its own, with the last code. Where it is not, a missing value is an error.
    coarse
        Which codes are one in the joint work; what tells them apart is a 1-way of its own. See `chicle.columns.coarse`.
    """

    type: ClassVar[str]
    modelled: ClassVar[bool] = True

    missing: bool = False
    coarse: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.missing, bool):
            raise SchemaError(f"missing must be true or false, not {self.missing!r}")
        self._check()

    @property
    @abstractmethod
    def size(self) -> int:
        """How many codes there are for values, missing apart."""

    @property
    def cardinality(self) -> int:
        """How many codes there are."""
        return self.size + self.missing

    @property
    def ordered(self) -> bool:
        """Whether neighbouring codes are neighbouring values."""
        return False

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """The value of each code, where a code stands for one value: None where it stands for a bin."""
        return None

    @property
    def undiscovered(self) -> bool:
        """Whether values or bins are still to be discovered; until then `size` is the most there may be."""
        return False

    def examine(self, values: pa.ChunkedArray, report: Report) -> None:
        """Report what of a column does not fit."""
        self.encode(values, report)

    @property
    def starts(self) -> npt.NDArray[Any] | None:
        """Where the values of each code begin, and where those of the last end; None where values have no order."""
        return None

    def start_of(self, value: object, *, after: bool) -> Any:  # noqa: ANN401 - an integer or a float, as `starts` has
        """Return where the values from this one on begin or, if `after`, those that follow it."""
        raise NotImplementedError

    def said_start(self, start: Any) -> str:  # noqa: ANN401
        """Return one of the `starts` as a declaration would say it."""
        return str(start)

    def encode(self, values: pa.ChunkedArray, report: Report) -> Codes:
        """Return the codes of a column; where something does not fit and the report does not raise, any code."""
        if self.undiscovered:
            report("is not encoded yet: its values or bins are discovered by a fit", "call `fit`, or declare them")
        dtype = code_dtype(self.cardinality)
        parts = [self._encode_chunk(chunk, report, dtype) for chunk in values.chunks]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype), *parts])

    def decode(self, codes: Codes, dtype: pa.DataType | None, rng: np.random.Generator) -> pa.Array:
        """Return values of these codes, of an Arrow type if it can hold them all, else of the column's own."""
        absent = codes == self.size if self.missing else None
        if absent is not None and absent.any():
            codes = np.where(absent, 0, codes).astype(code_dtype(self.cardinality))
        return self._values(codes, absent, dtype, rng)

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as plain data, without what is the default."""
        told: dict[str, Any] = {"type": self.type}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.default is MISSING or value != field.default:
                told[field.name] = _plain(value)
        return told

    @abstractmethod
    def _check(self) -> None:
        """Raise a SchemaError unless the declaration makes sense."""

    @abstractmethod
    def _codes(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[Any]:
        """Return integer codes ``0..size-1``; any integer where a value is absent."""

    @abstractmethod
    def _values(
        self, codes: Codes, absent: Mask | None, dtype: pa.DataType | None, rng: np.random.Generator
    ) -> pa.Array:
        """Return values of codes ``0..size-1``, and null where absent."""

    def _present(self, values: pa.Array, report: Report) -> tuple[pa.Array, Mask | None]:
        """Return values, and where they are missing; None if nowhere."""
        if pa.types.is_dictionary(values.type) and pa.types.is_null(values.type.value_type):
            values = pa.nulls(len(values))
        absent = _absent(values)
        if absent is not None and not self.missing:
            report("has missing values", "write `missing: true` to make missing a value of its own, or fill them first")
        return values, absent

    def _encode_chunk(self, values: pa.Array, report: Report, dtype: np.dtype[Any]) -> Codes:
        values, absent = self._present(values, report)
        codes = self._codes(values, absent, report)
        if absent is None:
            return codes.astype(dtype, copy=False)
        codes = codes.astype(dtype)
        codes[absent] = self.size if self.missing else 0
        return codes


class Unmodelled(Column):
    """A column that is not modelled: it has no codes and takes no part in any release."""

    modelled = False

    @property
    def size(self) -> int:
        """None of its values has a code."""
        return 0

    def _check(self) -> None:
        pass

    def _codes(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[Any]:
        raise NotImplementedError

    def _values(
        self, codes: Codes, absent: Mask | None, dtype: pa.DataType | None, rng: np.random.Generator
    ) -> pa.Array:
        raise NotImplementedError


def refuse(name: str) -> Report:
    """Return a report that raises at the first thing that does not fit a column."""

    def report(rule: str, fix: str) -> None:
        raise SchemaError(f"column {name!r} {rule}; {fix}") from None

    return report


_KINDS: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_boolean, "booleans"),
    (pa.types.is_integer, "integers"),
    (pa.types.is_floating, "numbers"),
    (pa.types.is_decimal, "decimals"),
    (pa.types.is_string, "text"),
    (pa.types.is_large_string, "text"),
    (pa.types.is_date, "dates"),
    (pa.types.is_timestamp, "datetimes"),
    (pa.types.is_time, "times of day"),
    (pa.types.is_duration, "durations"),
    (pa.types.is_null, "nothing but missing values"),
)


def arrow_kind(dtype: pa.DataType) -> str:
    """Return what values of an Arrow type are, in a word."""
    if pa.types.is_dictionary(dtype):
        return arrow_kind(dtype.value_type)
    return next((kind for test, kind in _KINDS if test(dtype)), "values of another kind")


def is_text(dtype: pa.DataType) -> bool:
    """Whether an Arrow type holds text."""
    return arrow_kind(dtype) == "text"


def is_unicode(text: str) -> bool:
    """Whether a text can be written to a file or held by Arrow: half of a surrogate pair can not."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _absent(values: pa.Array) -> Mask | None:
    """Return where values are missing, NaN among them; None if nowhere."""
    if pa.types.is_dictionary(values.type) and (
        pa.types.is_floating(values.type.value_type) or values.dictionary.null_count
    ):
        values = values.dictionary_decode()
    if pa.types.is_floating(values.type):
        absent = np.isnan(values.to_numpy(zero_copy_only=False))
        return absent if absent.any() else None
    if not values.null_count:
        return None
    mask: Mask = pc.is_null(values).to_numpy(zero_copy_only=False)
    return mask


def _plain(value: object) -> Any:  # noqa: ANN401 - data for YAML and JSON
    if hasattr(value, "to_plain"):
        return value.to_plain()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else value
