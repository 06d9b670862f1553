"""Columns whose values are listed: categorical, ordinal, boolean."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from chicle.codes import Codes, code_dtype, look_up
from chicle.columns.base import Column, Mask, Report, arrow_kind, is_text, is_unicode, numpy_dtype
from chicle.columns.drafting import Draft, RawColumn, and_missing
from chicle.columns.marks import trimmed
from chicle.columns.numeric import numbers_in
from chicle.columns.registry import register_column
from chicle.errors import SchemaError

__all__ = ["MOST_TEXTS", "Boolean", "Categorical", "Ordinal", "labelled", "listed", "places", "value_key"]

MOST_TEXTS = 64  # different texts that a draft lists
_BRACKET = re.compile(
    r"[\[(]?(?P<below><=?|below |under |up to )?(?P<above>>=?|above |over )?[$€£]?(?P<low>\d[\d,]*(\.\d+)?)"
    r"(?P<open> ?\+| and over| or more| and older)?(( ?[-–,:;] ?| to )[$€£]?(?P<high>\d[\d,]*(\.\d+)?))?[\])]?[a-z ]*",  # noqa: RUF001
    re.IGNORECASE,
)
_QUOTE = 'quote text in YAML ("1" is text, 1 is a number)'


@register_column
@dataclass(frozen=True, kw_only=True)
class Categorical(Column):
    """A column whose values are listed; their order means nothing.

    Parameters
    ----------
    values
        The values: all texts, all integers, all numbers or all booleans.
    other
        The label for all values that are not listed. By default, such values are errors.

    Examples
    --------
    >>> Categorical(values=["red", "green"], missing=True).cardinality
    3
    >>> Categorical(values=["red", "green"], other="another colour").labels
    ('red', 'green', 'another colour')
    """

    type = "categorical"
    also: ClassVar[tuple[str, ...]] = ("string", "str", "text", "category", "enum")
    draft_order = 45

    values: Sequence[Any]
    other: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", listed("values", self.values))
        super().__post_init__()

    @property
    def size(self) -> int:
        """The number of listed values, including `other`."""
        return len(self._labels)

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """The values in the order of their codes."""
        return self._labels

    @property
    def declared_values(self) -> tuple[Any, ...]:
        """The listed values."""
        return tuple(self.values)

    @classmethod
    def draft(cls, raw: RawColumn) -> Draft | None:
        """Propose the list of all texts, or of all integers that are codes, if there are few."""
        few = raw.distinct if raw.codes else raw.words
        if few is None or not 1 <= len(few) <= MOST_TEXTS:
            return None
        made = cls(values=tuple(sorted(few.to_pylist())), missing=raw.missing)
        remarks = ("its integers look like codes, so they have no order",) if raw.codes else ()
        return Draft(made, and_missing("all values", raw.missing), remarks)

    @cached_property
    def _labels(self) -> tuple[Any, ...]:
        if self.other is None or self.other in self.values:
            return tuple(self.values)
        return listed("values with other", [*self.values, self.other])

    def _check(self) -> None:
        if self.other is not None and self.ordered:
            raise SchemaError("other has no place in an order; list it among `values`, or declare a categorical")
        _ = self._labels

    def _typed(self, values: pa.Array) -> pa.Array:
        """Return texts that all are numbers as numbers, if the listed values are numbers."""
        return values if isinstance(self._labels[0], (str, bool)) else numbers_in(values)

    def _codes(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[Any]:
        if pa.types.is_null(values.type):
            return np.zeros(len(values), np.int32)
        if pa.types.is_dictionary(values.type):
            if values.dictionary.null_count or pa.types.is_null(values.dictionary.type):
                return self._codes(values.dictionary_decode(), absent, report)
            of_category = np.append(self._lookup(values.dictionary, report), 0)
            indices = values.indices.fill_null(len(values.dictionary)) if values.null_count else values.indices
            if of_category.min() >= 0:
                return look_up(of_category.astype(code_dtype(self.cardinality)), indices)
            # Categories without rows need not be declared.
            codes: npt.NDArray[Any] = of_category[indices.to_numpy()]
        else:
            codes = self._lookup(values, report)
        unknown = codes < 0 if absent is None else (codes < 0) & ~absent
        if self.other is not None:
            return np.where(unknown, self._labels.index(self.other), codes)
        if unknown.any():
            kind = arrow_kind(values.type)
            one = {"text": "a text", "booleans": "a boolean", "integers": "an integer"}.get(kind, "a value")
            report(
                f"has {one} that is not one of the {self.size} declared values",
                "add it to `values`, or replace it in the table first",
            )
        return codes

    def _lookup(self, values: pa.Array, report: Report) -> npt.NDArray[Any]:
        """Return the position of each value in the list, or -1."""
        labels, kind = pa.array(self._labels), arrow_kind(values.type)
        own = arrow_kind(labels.type)
        numeric = ("integers", "numbers", "decimals")
        if own != kind and not (own in numeric and kind in numeric):
            report(f"holds {kind}, but its declared values are {own}", f"list values as the table has them; {_QUOTE}")
            return np.zeros(len(values), np.int32)
        if own == kind == "integers":
            if values.type == pa.uint64():
                values = pc.min_element_wise(values, pa.scalar(2**63 - 1, pa.uint64()))
            values, labels = values.cast(pa.int64()), labels.cast(pa.int64())
        elif own in numeric:
            # Adding zero makes -0.0 equal to 0.0.
            values, labels = (pc.add(numbers.cast(pa.float64(), safe=False), 0.0) for numbers in (values, labels))
        else:
            labels = labels.cast(values.type)
        found: npt.NDArray[Any] = pc.index_in(values, labels).fill_null(-1).to_numpy(zero_copy_only=False)
        if own == "text" and (found < 0).any():
            bare = pc.index_in(trimmed(values), labels).fill_null(-1)
            found = np.where(found < 0, bare.to_numpy(zero_copy_only=False), found)
        return found

    def _values(
        self, codes: Codes, absent: Mask | None, dtype: pa.DataType | None, rng: np.random.Generator
    ) -> pa.Array:
        del rng
        return labelled(codes, absent, self._labels, dtype)


@register_column
class Ordinal(Categorical):
    """A column whose values are listed from the least to the greatest.

    Examples
    --------
    >>> Ordinal(values=["low", "middle", "high"]).ordered
    True
    """

    type = "ordinal"
    also: ClassVar[tuple[str, ...]] = ("ordered", "ranked")
    draft_order = 44

    @property
    def ordered(self) -> bool:
        """Listed values are in order."""
        return True

    @classmethod
    def draft(cls, raw: RawColumn) -> Draft | None:
        """Propose the order of brackets, such as ``[40-50)`` or ``65+``. Only a person knows other orders."""
        if raw.words is None or not 2 < len(raw.words) <= MOST_TEXTS:
            return None
        starts = {text: _start(text) for text in raw.words.to_pylist()}
        if None in starts.values() or len(set(starts.values())) < len(starts):
            return None
        values = tuple(sorted(starts, key=lambda text: starts[text] or (0.0, 0.0)))
        return Draft(
            cls(values=values, missing=raw.missing),
            and_missing("all values", raw.missing),
            ("its values look like brackets of numbers, so they are in order",),
        )

    @property
    def starts(self) -> npt.NDArray[Any] | None:
        """Positions in the list."""
        return np.arange(self.size + 1)

    def start_of(self, value: object, *, after: bool) -> int:
        """Return the position of a value in the list, or the next one."""
        if value not in self.values:
            raise SchemaError(f"{value!r} is not one of its values")
        return self.values.index(value) + after


@register_column
@dataclass(frozen=True, kw_only=True)
class Boolean(Column):
    """A column of true and false; 0 and 1 are accepted.

    Examples
    --------
    >>> Boolean().labels
    (False, True)
    """

    type = "boolean"
    also = ("bool",)
    draft_order = 10

    @property
    def size(self) -> int:
        """True and false."""
        return 2

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """False is 0, true is 1."""
        return (False, True)

    @classmethod
    def draft(cls, raw: RawColumn) -> Draft | None:
        """Propose booleans if the table has booleans."""
        return Draft(cls(missing=raw.missing), and_missing("", raw.missing)) if raw.kind == "booleans" else None

    def _check(self) -> None:
        pass

    def _typed(self, values: pa.Array) -> pa.Array:
        """Return texts that all are true, false, 0 or 1 as booleans."""
        if not is_text(values.type):
            return values
        try:
            plain = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
            return trimmed(plain).cast(pa.bool_())
        except pa.ArrowInvalid:
            return values

    def _codes(self, values: pa.Array, absent: Mask | None, report: Report) -> npt.NDArray[Any]:
        kind = arrow_kind(values.type)
        if kind not in ("booleans", "integers", "numbers"):
            if not pa.types.is_null(values.type):
                report(f"holds {kind}, not booleans", "declare it as categorical and list its values")
            return np.zeros(len(values), np.uint8)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        raw = values.fill_null(numpy_dtype(values.type).type(0)).to_numpy(zero_copy_only=False)
        if raw.dtype == np.bool_:
            return np.asarray(raw.view(np.uint8))
        other = (raw != 0) & (raw != 1)
        if absent is not None:
            other &= ~absent
        if other.any():
            report("has a number other than 0 and 1", "declare it as integer, or as categorical with its values listed")
        return np.asarray(raw == 1)

    def _values(
        self, codes: Codes, absent: Mask | None, dtype: pa.DataType | None, rng: np.random.Generator
    ) -> pa.Array:
        del rng
        return labelled(codes, absent, (False, True), dtype)


def _start(text: str) -> tuple[float, float] | None:
    """Return where a bracket of numbers such as ``[40-50)``, ``<30`` or ``65+`` begins; None for other texts."""
    found = _BRACKET.fullmatch(text.strip())
    if found is None:
        return None
    low, high = (None if part is None else float(part.replace(",", "")) for part in (found["low"], found["high"]))
    if found["below"]:
        return (-math.inf, low or 0.0)
    if high is None and not (found["above"] or found["open"]):
        return None
    return (low or 0.0, math.inf if high is None else high)


def listed(name: str, values: object) -> tuple[Any, ...]:
    """Return listed values as a tuple; they must be of one kind and differ."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise SchemaError(f"{name} must be a list, not {values!r}")
    items = tuple(item.item() if isinstance(item, np.generic) else item for item in values)
    if not items:
        raise SchemaError(f"{name} is empty; list at least one")
    for item in items:
        _check_value(name, item)
    kinds = {type(item) for item in items}
    if kinds == {int, float}:
        items = tuple(float(item) for item in items)
    elif len(kinds) > 1:
        said = " and ".join(sorted({str: "text", bool: "booleans"}.get(kind, "numbers") for kind in kinds))
        raise SchemaError(f"{name} mixes {said}; {_QUOTE}")
    if len(set(items)) < len(items):
        twice = next(item for item, times in Counter(items).items() if times > 1)
        raise SchemaError(f"{name} lists {twice!r} twice; list each once")
    return items


def places(labels: Iterable[Any]) -> dict[tuple[bool, Any], int]:
    """Return the position of each value in a list, by a key that distinguishes true from 1.

    Examples
    --------
    >>> places(["f", "m"])[value_key("m")]
    1
    """
    return {value_key(label): place for place, label in enumerate(labels)}


def value_key(value: object) -> tuple[bool, object]:
    """Return a key that distinguishes true from 1."""
    return isinstance(value, bool), value


def _check_value(name: str, item: object) -> None:
    if item is None:
        raise SchemaError(f"{name} lists a missing value; write `missing: true` instead (or quote the text)")
    if type(item) not in (str, int, float, bool):
        raise SchemaError(f"{name} must be texts, numbers or booleans, not a {type(item).__name__}; {_QUOTE}")
    if isinstance(item, str) and not is_unicode(item):
        raise SchemaError(f"{name} must be Unicode, not {item!r}")
    if isinstance(item, float) and not math.isfinite(item):
        raise SchemaError(f"{name} must be finite numbers, not {item!r}; write `missing: true` for NaN")
    if type(item) is int and not -(2**63) <= item < 2**63:
        raise SchemaError(f"{name} must be integers of 64 bits, not {item!r}")


def labelled(codes: Codes, absent: Mask | None, labels: tuple[Any, ...], dtype: pa.DataType | None) -> pa.Array:
    """Return the label of each code, in an Arrow type if it can hold all labels. A dictionary type lists them all."""
    own = pa.array(labels)
    indices = pa.array(codes, mask=absent)
    try:
        if dtype is not None and pa.types.is_dictionary(dtype):
            wide = pa.int32() if len(labels) > np.iinfo(numpy_dtype(dtype.index_type)).max else dtype.index_type
            listed = own if pa.types.is_null(dtype.value_type) else own.cast(dtype.value_type)
            return pa.DictionaryArray.from_arrays(indices.cast(wide), listed, ordered=dtype.ordered)
        if dtype is not None and not pa.types.is_null(dtype):
            own = own.cast(dtype)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass
    return own.take(indices)
