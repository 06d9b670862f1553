"""Encoded rows, private or synthetic: one array of codes for each attribute, checked once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from chicle._checks import integer
from chicle.domain import Domain
from chicle.errors import DomainError

__all__ = ["Codes", "Records", "code_dtype"]

Codes: TypeAlias = npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]


# The kind of a dtype, without its width: that of text is the length of somebody's value.
_KINDS = {"f": "floats", "c": "complex numbers", "U": "text", "T": "text", "S": "bytes", "M": "dates", "m": "durations"}


def code_dtype(cardinality: int) -> np.dtype[Any]:
    """Return the smallest unsigned type that holds the codes of an attribute."""
    return np.dtype(np.uint8 if cardinality <= 2**8 else np.uint16 if cardinality <= 2**16 else np.uint32)


class Records:
    """Validated columns of codes over a domain.

    A column that already is a contiguous array of the smallest unsigned type for its attribute is used where it lies,
    without a copy; do not write to it afterwards. Any other integer column is checked and converted.

    Parameters
    ----------
    columns
        Mapping from attribute name to codes ``0..cardinality-1``, or a pandas, polars or pyarrow table of them.
    domain
        The attributes, in order. There must be just one column for each.
    max_records_per_person
        How many of these rows one person may have: the ``k`` of every sensitivity. Whoever builds the records vouches
        for it; with the default of 1 each row is a person of its own.

    Examples
    --------
    >>> records = Records({"age": [31, 4, 77], "sex": [1, 0, 1]}, {"age": 100, "sex": 2})
    >>> records["sex"]
    array([1, 0, 1], dtype=uint8)
    >>> records
    Records over Domain(age: 100, sex: 2)
    """

    __slots__ = ("_columns", "_domain", "_length", "_max_records_per_person")

    def __init__(
        self,
        columns: Mapping[str, npt.ArrayLike] | Any,  # noqa: ANN401 - any data frame, without importing them all
        domain: Mapping[str, int],
        *,
        max_records_per_person: int = 1,
    ) -> None:
        self._domain = domain if isinstance(domain, Domain) else Domain(domain)
        self._max_records_per_person = integer("max_records_per_person", max_records_per_person, 1, 2**31)
        _check_names(_column_names(columns), self._domain)
        self._columns = {name: _codes(name, columns[name], size) for name, size in self._domain.items()}
        first, *others = self._columns
        self._length = len(self._columns[first])
        for name in others:
            if len(self._columns[name]) != self._length:
                raise DomainError(
                    f"columns {first!r} and {name!r} differ in length; each must have a code for every row"
                )

    @property
    def domain(self) -> Domain:
        """The attributes and their cardinalities."""
        return self._domain

    @property
    def max_records_per_person(self) -> int:
        """How many of these rows one person may have."""
        return self._max_records_per_person

    def __getitem__(self, name: str) -> Codes:
        """Return the codes of one attribute, as a read-only array."""
        if name not in self._domain:
            self._domain.check((name,))
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._domain)

    def __len__(self) -> int:
        """Return the number of rows, which is private where the records are."""
        return self._length

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._columns, dict(self._domain), self._max_records_per_person)

    def __repr__(self) -> str:
        return f"Records over {self._domain!r}"


def _restore(columns: dict[str, Codes], domain: dict[str, int], max_records_per_person: int) -> Records:
    return Records(columns, domain, max_records_per_person=max_records_per_person)


def _column_names(columns: Any) -> list[str]:  # noqa: ANN401
    if isinstance(columns, Mapping):
        return list(columns)
    # pyarrow has column_names; pandas and polars have columns. Asked of the type: a frame may have a column so called.
    for attribute in ("column_names", "columns"):
        if hasattr(type(columns), attribute):
            return list(getattr(columns, attribute))
    raise DomainError(f"columns must be a mapping from name to codes or a data frame, not a {type(columns).__name__}")


def _check_names(names: list[str], domain: Domain) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DomainError(f"column {twice!r} is there twice; names must differ")
    for name in domain:
        if name not in names:
            raise DomainError(f"there is no column for attribute {name!r}; the domain lists it")
    for name in names:
        if name not in domain:
            raise DomainError(f"column {name!r} is not in the domain; drop it or declare its cardinality")


def _codes(name: str, column: object, cardinality: int) -> Codes:
    if np.ma.is_masked(column):
        raise DomainError(f"column {name!r} has masked values; give missing values a code of their own")
    try:
        codes = np.asarray(column)
    except (TypeError, ValueError):
        # numpy's own message tells the number of rows, which is private.
        raise DomainError(f"column {name!r} is not an array of codes; give one integer for each row") from None
    if codes.ndim != 1:
        raise DomainError(f"column {name!r} has {codes.ndim} dimensions; a column of codes has one")
    if codes.size == 0:
        codes = codes.astype(np.uint8)
    if codes.dtype.kind not in "uib":
        raise DomainError(
            f"column {name!r} holds {_KINDS.get(codes.dtype.kind, 'objects')}; codes are integers "
            f"0..{cardinality - 1}. "
            "Encode its values first (a column with missing values may arrive as float or object)"
        )
    dtype = code_dtype(cardinality)
    cannot_overflow = codes.dtype == dtype and cardinality > np.iinfo(dtype).max
    if codes.size and not cannot_overflow and (codes.max() >= cardinality or codes.min() < 0):
        raise DomainError(f"column {name!r} has a code outside its domain 0..{cardinality - 1}")
    checked = np.require(codes, dtype, ["C", "A"]).view()
    checked.flags.writeable = False
    return checked
