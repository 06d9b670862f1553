"""Encoded rows, private or synthetic: one array of codes for each attribute, checked once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from chicle.domain import Domain
from chicle.errors import DomainError, ParameterError

__all__ = ["Codes", "Records", "code_dtype"]

Codes: TypeAlias = npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]


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
        if isinstance(max_records_per_person, bool) or not isinstance(max_records_per_person, (int, np.integer)):
            raise ParameterError("max_records_per_person must be an integer")
        if max_records_per_person < 1:
            raise ParameterError("max_records_per_person must be at least 1")
        self._max_records_per_person = int(max_records_per_person)
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

    def __repr__(self) -> str:
        return f"Records over {self._domain!r}"


def _column_names(columns: Any) -> list[str]:  # noqa: ANN401
    # pyarrow has column_names; pandas and polars have columns; mappings have their keys.
    names = getattr(columns, "column_names", None)
    if names is None:
        names = getattr(columns, "columns", None)
    if names is None:
        if not isinstance(columns, Mapping):
            raise DomainError(
                f"columns must be a mapping from name to codes or a data frame, not a {type(columns).__name__}"
            )
        names = columns
    return list(names)


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
    given = np.ma.asanyarray(column) if isinstance(column, np.ma.MaskedArray) else np.asarray(column)
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        raise DomainError(f"column {name!r} has masked values; give missing values a code of their own")
    codes = np.asarray(given)
    if codes.ndim != 1:
        raise DomainError(f"column {name!r} has {codes.ndim} dimensions; a column of codes has one")
    if codes.size == 0:
        codes = codes.astype(np.uint8)
    if codes.dtype.kind not in "uib":
        raise DomainError(
            f"column {name!r} has dtype {codes.dtype}; codes are integers 0..{cardinality - 1}. "
            "Encode its values first (a column with missing values may arrive as float or object)"
        )
    dtype = code_dtype(cardinality)
    cannot_overflow = codes.dtype == dtype and cardinality > np.iinfo(dtype).max
    if codes.size and not cannot_overflow and (codes.max() >= cardinality or codes.min() < 0):
        raise DomainError(f"column {name!r} has a code outside its domain 0..{cardinality - 1}")
    checked = np.ascontiguousarray(codes, dtype=dtype).view()
    checked.flags.writeable = False
    return checked
