"""The base of all columns: codes for its values, a code for missing, and the way back.

A column is declared, never read from the data. Values that do not fit the declaration are reported to a `Report`, which
gets the broken rule and the fix, never a value.

A column implements everything about its type: reading it from a file, labelling its values, discovering what is not
declared, generating it in a synthetic table. A new type is one class, registered with `chicle.columns.column`; nothing
else in the package names it. `Column` has defaults for everything that a type may leave out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from chicle.codes import Codes, code_dtype
from chicle.columns.marks import NO_VALUE, without_marks
from chicle.errors import ChicleError, SchemaError

if TYPE_CHECKING:
    from chicle.columns.discovery import BinEdges, FrequentValues
    from chicle.columns.drafting import Draft, RawColumn

__all__ = [
    "Column",
    "Mask",
    "Report",
    "SyntheticRows",
    "Unmodelled",
    "arrow_kind",
    "is_text",
    "is_unicode",
    "numpy_dtype",
    "refuse",
]

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
    counts
        How many rows of the table have each code of a column, where that is known.
    made
        The columns that were generated before this one: all that it is `beside`.
    person, persons
        The person column, and the person of each of these rows, where persons have several rows.
    """

    codes: Mapping[str, Codes]
    columns: Mapping[str, Column]
    numbers: range
    total: int
    rng: np.random.Generator
    counts: Mapping[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    made: Mapping[str, pa.Array] = field(default_factory=dict)
    person: str | None = None
    persons: npt.NDArray[np.int64] | None = None


@dataclass(frozen=True, kw_only=True)
class Column(ABC):
    """Base of all columns.

    Parameters
    ----------
    missing
        Whether missing is a value of its own, with the last code. If not, a missing value is an error. A list of marks,
        such as ``["?", -9]``, makes these missing as well.
    source
        Where the declaration is publicly known, such as ``"questionnaire 2019, item 4"``. A draft writes ``data``.
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

    missing: bool | Sequence[Any] = False
    coarse: Any = None
    source: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "missing", _declared_missing(self.missing))
        if self.source is not None and (not isinstance(self.source, str) or not self.source.strip()):
            raise SchemaError(f"source must say where this is publicly known, as a text, not {self.source!r}")
        self._check()

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of codes for values, without missing."""

    @property
    def cardinality(self) -> int:
        """The number of codes."""
        return self.size + bool(self.missing)

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
    def span(self) -> tuple[float, float] | None:
        """The least and the greatest number that a value can be; None if values are not numbers."""
        amounts = None if self.labels is None or self.undiscovered else self.amounts
        return None if amounts is None or not amounts.size else (float(amounts.min()), float(amounts.max()))

    def numbers(self, values: pa.ChunkedArray, report: Report) -> npt.NDArray[np.float64]:
        """Return values as numbers inside the `span`, NaN where missing; by default the amounts of their codes."""
        amounts = self.amounts
        assert amounts is not None  # noqa: S101 - the callers' case
        return np.append(amounts, np.nan)[np.minimum(self.encode(values, report), len(amounts))]

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

    @property
    def beside(self) -> tuple[str, ...]:
        """The names of columns from which it is encoded, compared or generated, apart from itself."""
        return () if self.follows is None else (self.follows,)

    def values_in(self, name: str, batch: Mapping[str, pa.ChunkedArray], report: Report) -> pa.ChunkedArray:
        """Return the values that `encode` takes, from the columns of a batch; by default its own."""
        del report
        return batch[name]

    def compare(  # noqa: B027 - most columns have nothing to compare
        self, name: str, table: Mapping[str, pa.ChunkedArray], columns: Mapping[str, Column], report: Report
    ) -> None:
        """Report if values differ from those that the columns `beside` it determine; by default never."""

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
    def reads_texts(self) -> bool:
        """Whether a file without types is read as text, from which the column reads its own values."""
        return isinstance(self.missing, tuple)

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
        present, absent = self._without_absent(codes)
        return self._values(present, absent, dtype, rng)

    def make(self, name: str, rows: SyntheticRows, dtype: pa.DataType | None) -> pa.Array | None:
        """Return this column of a synthetic table, in the given Arrow type if possible; None to leave it out."""
        return self.decode(rows.codes[name], dtype, rows.rng)

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as plain data, without defaults."""
        plain: dict[str, Any] = {"type": self.type}
        for each in fields(self):
            value = getattr(self, each.name)
            if each.default is MISSING or value != each.default:
                plain[each.name] = _plain(value)
        for last in ("missing", "source"):
            if last in plain:
                plain[last] = plain.pop(last)
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

    def _typed(self, values: pa.Array) -> pa.Array:
        """Return values in the column's own type, if they are texts that all can be read as such; else unchanged."""
        return values

    def plain(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return values without marks of missing values, in the column's own type if all can be read as such."""
        return pa.chunked_array([self._unmarked(values.combine_chunks())])

    def _read(self, values: pa.Array) -> pa.Array:
        """Return values as `_codes` takes them: without marks of missing values, in the column's own type."""
        return self._unmarked(values)

    def _unmarked(self, values: pa.Array) -> pa.Array:
        return self._typed(without_marks(values, self._marks, self._labels_as_texts))

    @cached_property
    def _labels_as_texts(self) -> tuple[str, ...]:
        """The declared values that are texts."""
        return tuple(value for value in self.declared_values if isinstance(value, str))

    @cached_property
    def _marks(self) -> tuple[Any, ...]:
        """The values that mean missing."""
        listed = self.missing if isinstance(self.missing, tuple) else ()
        return (*listed, *(text for text in NO_VALUE if text not in self._labels_as_texts))

    def _present(self, values: pa.Array, report: Report) -> tuple[pa.Array, Mask | None]:
        """Return values, and a mask of missing ones; None if there are none."""
        if pa.types.is_dictionary(values.type) and pa.types.is_null(values.type.value_type):
            values = pa.nulls(len(values))
        values = self._read(values)
        absent = _absent(values)
        if absent is not None and not self.missing:
            report("has missing values", "write `missing: true` to make missing a value of its own, or fill them first")
        return values, absent

    def _without_absent(self, codes: Codes) -> tuple[Codes, Mask | None]:
        """Return codes with some value's code in place of missing, and a mask of missing ones."""
        absent = codes == self.size if self.missing else None
        if absent is not None and absent.any():
            codes = np.where(absent, 0, codes).astype(code_dtype(self.cardinality))
        return codes, absent

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


def numpy_dtype(dtype: pa.DataType) -> np.dtype[Any]:
    """Return the numpy type of an Arrow type of numbers or booleans; Arrow's own function needs pandas."""
    made: np.dtype[Any] = pa.array([], dtype).to_numpy(zero_copy_only=False).dtype
    return made


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


def _declared_missing(given: object) -> bool | tuple[Any, ...]:
    if isinstance(given, bool):
        return given
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise SchemaError(f'missing must be true, false or a list of marks such as ["?", -9], not {given!r}')
    for mark in given:
        if isinstance(mark, bool) or not isinstance(mark, (str, int, float)):
            raise SchemaError(f"missing lists {mark!r}; a mark is a text or a number")
    return tuple(given)


def _plain(value: object) -> Any:  # noqa: ANN401 - data for YAML and JSON
    if hasattr(value, "to_plain"):
        return value.to_plain()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else value
