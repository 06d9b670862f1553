"""The base of all columns: codes for its values, a code for missing, and the way back.

A column is declared, never read from the data. Values that do not fit the declaration are reported to a `Report`, which
gets the broken rule and the fix, never a value.

A column implements everything about its type: reading it from a file, labelling its values, discovering what is not
declared, generating it in a synthetic table. A new type is one class, registered with `chicle.columns.column`; nothing
else in the package names it. `Column` has defaults for everything that a type may leave out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from chicle.codes import Codes, code_dtype
from chicle.errors import ChicleError, SchemaError

if TYPE_CHECKING:
    from chicle.columns.discovery import BinEdges, FrequentValues
    from chicle.columns.drafting import Draft, RawColumn

__all__ = ["Column", "Mask", "Report", "SyntheticRows", "Unmodelled", "arrow_kind", "is_text", "is_unicode", "refuse"]

Report: TypeAlias = Callable[[str, str], None]
"""Called with the rule that a column breaks and the fix. It raises, or collects them."""

Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class SyntheticRows:
    """Some rows of a synthetic table, from which its columns are generated.

    Attributes
    ----------
    codes
        The codes of each modelled column in these rows.
    columns
        All declared columns of the table.
    numbers, total
        The positions of these rows in the table, and its number of rows.
    rng
        Draws numbers and dates inside their bins.
    """

    codes: Mapping[str, Codes]
    columns: Mapping[str, Column]
    numbers: range
    total: int
    rng: np.random.Generator


@dataclass(frozen=True, kw_only=True)
class Column(ABC):
    """Base of all columns.

    Parameters
    ----------
    missing
        Whether missing is a value of its own, with the last code. If not, a missing value is an error.
    coarse
        Groups of codes for the joint tables; a separate 1-way splits them again. See `chicle.columns.coarse`.
    """

    type: ClassVar[str]
    """The name of the type in declarations."""
    also: ClassVar[tuple[str, ...]] = ()
    """Other names that people write for it. They are errors, and the message suggests the type."""
    implied_by: ClassVar[str | None] = None
    """A key that implies the type, so that a declaration may leave `type` out."""
    draft_order: ClassVar[int] = 0
    """Types with a lower number are asked for a draft first; those of the package have numbers above 0."""
    modelled: ClassVar[bool] = True
    """Whether it has codes, so that releases measure it."""
    read: ClassVar[bool] = True
    """Whether its values are read. If not, nothing in them can fail."""
    may_be_person: ClassVar[bool] = False
    """Whether it may be the column that identifies persons."""

    missing: bool = False
    coarse: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.missing, bool):
            raise SchemaError(f"missing must be true or false, not {self.missing!r}")
        self._check()

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of codes for values, without missing."""

    @property
    def cardinality(self) -> int:
        """The number of codes."""
        return self.size + self.missing

    @property
    def ordered(self) -> bool:
        """Whether adjacent codes are adjacent values."""
        return False

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """The value of each code; None where codes stand for bins."""
        return None

    @property
    def texts(self) -> list[str]:
        """A label of each code, for readers: its value, the bounds of its bin, or ``missing``."""
        known = self._texts()
        if known is None:
            return [str(code) for code in range(self.cardinality)]
        return [*known, "missing"][: self.cardinality]

    @property
    def amounts(self) -> npt.NDArray[np.float64] | None:
        """The number that each code stands for, without missing; for a bin, its middle. None if values are not numbers.

        By default the labels as numbers, or the codes themselves where there are no labels.
        """
        try:
            return np.array([float(label) for label in (range(self.size) if self.labels is None else self.labels)])
        except (TypeError, ValueError):
            return None

    @property
    def holds_codes(self) -> bool:
        """Whether the values in a table are the codes themselves."""
        return False

    def with_order(self) -> Column | None:
        """Return the same column with ordered codes; None where the type itself decides about the order."""
        return None

    @property
    def follows(self) -> str | None:
        """The name of the column that determines this one, or None."""
        return None

    def check_among(self, columns: Mapping[str, Column]) -> None:
        """Raise a SchemaError unless the declaration fits those of the other columns."""
        del columns

    def compare(self, values: pa.ChunkedArray, source: Column, given: pa.ChunkedArray, report: Report) -> None:
        """Report if values differ from those that the `source` column determines."""
        raise NotImplementedError

    @classmethod
    def draft(cls, raw: RawColumn) -> Draft | None:
        """Return a column of this type for raw values: NOT PRIVATE, to be reviewed. None if it does not suit them.

        By default, a type is never proposed.
        """
        del raw
        return None

    @property
    def declared_values(self) -> tuple[Any, ...]:
        """The values that the declaration lists, if any."""
        return ()

    @property
    def arrow_type(self) -> pa.DataType | None:
        """The Arrow type with which to read a file that has no types; None leaves it to the reader.

        By default text or integers, if the declaration lists nothing else.
        """
        values = self.declared_values
        if values and all(isinstance(value, str) for value in values):
            return pa.string()
        if values and all(type(value) is int for value in values):
            return pa.int64()
        return None

    @property
    def discovery(self) -> FrequentValues | BinEdges | None:
        """What a fit must discover with budget before it can encode the column; None where everything is declared."""
        return None

    @property
    def undiscovered(self) -> bool:
        """Whether values or bins are yet to be discovered; until then, `size` is an upper bound."""
        return self.discovery is not None

    def examine(self, values: pa.ChunkedArray, report: Report) -> None:
        """Report values that do not fit."""
        self.encode(values, report)

    @property
    def starts(self) -> npt.NDArray[Any] | None:
        """The start of each code's values, and the end of the last; None where values have no order."""
        return None

    def start_of(self, value: object, *, after: bool) -> Any:  # noqa: ANN401 - an integer or a float, as `starts` has
        """Return the start of a value or, if `after`, of the values above it."""
        raise NotImplementedError

    def said_start(self, start: Any) -> str:  # noqa: ANN401
        """Return one of the `starts` as a declaration would write it."""
        return str(start)

    def unit_starts(self, unit: str) -> npt.NDArray[Any] | None:
        """Return the starts of units such as ``year`` within the bounds; None where values have no units."""
        del unit
        return None

    def encode(self, values: pa.ChunkedArray, report: Report) -> Codes:
        """Return the codes of a column. Values that do not fit get any code, if the report does not raise."""
        if self.undiscovered:
            report("cannot be encoded yet: its values or bins are discovered by a fit", "call `fit`, or declare them")
        dtype = code_dtype(self.cardinality)
        try:
            parts = [self._encode_chunk(chunk, report, dtype) for chunk in values.chunks]
        except ChicleError:
            raise
        except Exception as error:  # noqa: BLE001 - its message may quote a value
            kind = type(error).__name__
            report(f"cannot be encoded: its type {self.type!r} raised a {kind}", "correct the type, or the table")
            parts = [np.zeros(len(values), dtype)]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype), *parts])

    def decode(self, codes: Codes, dtype: pa.DataType | None, rng: np.random.Generator) -> pa.Array:
        """Return values of codes, in the given Arrow type if it can hold them all, else in the column's own type."""
        absent = codes == self.size if self.missing else None
        if absent is not None and absent.any():
            codes = np.where(absent, 0, codes).astype(code_dtype(self.cardinality))
        return self._values(codes, absent, dtype, rng)

    def make(self, name: str, rows: SyntheticRows, dtype: pa.DataType | None) -> pa.Array | None:
        """Return this column of a synthetic table, in the given Arrow type if possible; None to leave it out."""
        return self.decode(rows.codes[name], dtype, rows.rng)

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as plain data, without defaults."""
        plain: dict[str, Any] = {"type": self.type}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.default is MISSING or value != field.default:
                plain[field.name] = _plain(value)
        return plain

    @abstractmethod
    def _check(self) -> None:
        """Raise a SchemaError unless the declaration is valid."""

    @abstractmethod
    def _codes(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[Any]:
        """Return integer codes ``0..size-1``; any integer for absent values."""

    @abstractmethod
    def _values(
        self, codes: Codes, absent: Mask | None, dtype: pa.DataType | None, rng: np.random.Generator
    ) -> pa.Array:
        """Return values of codes ``0..size-1``; null for absent values."""

    def _texts(self) -> list[str] | None:
        """Return a label of each value, without missing; None where values have no labels."""
        return None if self.labels is None else [str(label) for label in self.labels]

    def _present(self, values: pa.Array, report: Report) -> tuple[pa.Array, Mask | None]:
        """Return values, and a mask of missing ones; None if there are none."""
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
    """A column that is not modelled: it has no codes, and no release measures it."""

    modelled = False

    @property
    def size(self) -> int:
        """No value has a code."""
        return 0

    def _check(self) -> None:
        pass

    def _codes(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[Any]:
        raise NotImplementedError

    def _values(
        self, codes: Codes, absent: Mask | None, dtype: pa.DataType | None, rng: np.random.Generator
    ) -> pa.Array:
        raise NotImplementedError

    @abstractmethod
    def make(self, name: str, rows: SyntheticRows, dtype: pa.DataType | None) -> pa.Array | None:
        """Return this column of a synthetic table; None to leave it out."""


def refuse(name: str) -> Report:
    """Return a report that raises at the first broken rule of a column."""

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
    """Return the kind of an Arrow type's values, in a word."""
    if pa.types.is_dictionary(dtype):
        return arrow_kind(dtype.value_type)
    return next((kind for test, kind in _KINDS if test(dtype)), "values of another kind")


def is_text(dtype: pa.DataType) -> bool:
    """Whether an Arrow type holds text."""
    return arrow_kind(dtype) == "text"


def is_unicode(text: str) -> bool:
    """Whether a text can be written to a file or held by Arrow: half of a surrogate pair cannot."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _absent(values: pa.Array) -> Mask | None:
    """Return a mask of missing values, including NaN; None if there are none."""
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
