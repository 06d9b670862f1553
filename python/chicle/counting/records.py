"""Encoded rows, private or synthetic: one array of codes for each attribute, checked once.

`Countable` is what measuring and selecting ask of private rows: that they can be counted. `Records` are in memory;
rows of a source larger than that are read anew for each pass (`chicle.sources.stream`). `Recoded` sees either of them
by look-up tables, batch by batch, so that no second copy of the rows is made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from chicle._checks import integer
from chicle.domain import Clique, Domain
from chicle.errors import DomainError

__all__ = ["Codes", "Countable", "Recoded", "Recoding", "Records", "Rows", "code_dtype", "look_up"]

Codes: TypeAlias = npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]

Recoding: TypeAlias = Mapping[str, tuple[str, Codes | None]]
"""For each new attribute the old one that it is made of, and the new code of each old one, where they differ."""

_BATCH_ROWS = 2**18  # in memory, of which a part is recoded at a time

# The kind of a dtype, without its width: that of text is the length of somebody's value.
_KINDS = {"f": "floats", "c": "complex numbers", "U": "text", "T": "text", "S": "bytes", "M": "dates", "m": "durations"}


def code_dtype(cardinality: int) -> np.dtype[Any]:
    """Return the smallest unsigned type that holds the codes of an attribute."""
    return np.dtype(np.uint8 if cardinality <= 2**8 else np.uint16 if cardinality <= 2**16 else np.uint32)


def look_up(table: Codes, codes: Codes | pa.Array) -> Codes:
    """Return what a table has for each code, all of which it must have; in a quarter of the time that numpy takes."""
    found: Codes = pc.take(pa.array(table), pa.array(codes), boundscheck=False).to_numpy()
    return found


class Countable(ABC):
    """Rows that can be counted, exactly and therefore privately."""

    __slots__ = ()

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The attributes and their cardinalities."""

    @property
    @abstractmethod
    def max_records_per_person(self) -> int:
        """How many of these rows one person may have."""

    @abstractmethod
    def batches(self, names: Sequence[str]) -> Generator[Records, None, None]:
        """Give all rows, batch by batch; only these attributes."""

    @abstractmethod
    def recode(self, columns: Recoding, domain: Domain) -> Countable:
        """Return the same rows with other attributes, each row and attribute by itself."""

    def known(self, clique: Clique) -> npt.NDArray[np.int64] | None:
        """Return the counts of a clique if they are at hand; `None` where rows must be counted."""
        del clique
        return None


Rows = TypeVar("Rows", bound=Countable)
"""Records as records, and what is read in passes as such."""


class Records(Countable):
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

    def batches(self, names: Sequence[str]) -> Generator[Records, None, None]:
        """Give all records as one batch; only these attributes."""
        yield self._part(names, slice(None))

    def recode(self, columns: Recoding, domain: Domain) -> Records:
        """Return the same records with other attributes; those that do not change are not copied."""
        made = {
            name: self[old] if codes is None else look_up(codes, self[old]) for name, (old, codes) in columns.items()
        }
        return _unchecked(made, domain, self._length, self._max_records_per_person)

    def pieces(self, rows: int) -> Generator[Records, None, None]:
        """Give the records in pieces of so many rows, without copies; one without rows if there are none."""
        for begin in range(0, max(self._length, 1), rows):
            yield self._part(list(self._domain), slice(begin, begin + rows))

    def _part(self, names: Sequence[str], rows: slice) -> Records:
        domain = Domain({name: self._domain[name] for name in names})
        columns = {name: self._columns[name][rows] for name in names}
        return _unchecked(columns, domain, len(range(self._length)[rows]), self._max_records_per_person)

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


class Recoded(Countable):
    """Rows seen by look-up tables, recoded while they are counted.

    Parameters
    ----------
    base
        The rows.
    columns, domain
        The attributes as they are seen.
    """

    __slots__ = ("_base", "_columns", "_domain")

    def __init__(self, base: Countable, columns: Recoding, domain: Domain) -> None:
        self._base, self._columns, self._domain = base, dict(columns), domain

    @property
    def domain(self) -> Domain:
        """The attributes as they are seen."""
        return self._domain

    @property
    def max_records_per_person(self) -> int:
        """How many of these rows one person may have."""
        return self._base.max_records_per_person

    def batches(self, names: Sequence[str]) -> Generator[Records, None, None]:
        """Give all rows, recoded batch by batch."""
        columns = {name: self._columns[name] for name in names}
        domain = Domain({name: self._domain[name] for name in names})
        needed = list(dict.fromkeys(old for old, _ in columns.values()))
        for batch in self._base.batches(needed):
            for piece in batch.pieces(_BATCH_ROWS):
                yield piece.recode(columns, domain)

    def recode(self, columns: Recoding, domain: Domain) -> Recoded:
        """Return the same rows with other attributes, by look-up tables that do both at once."""
        through = {}
        for name, (middle, codes) in columns.items():
            old, before = self._columns[middle]
            through[name] = (old, before if codes is None else codes if before is None else codes[before])
        return Recoded(self._base, through, domain)

    def known(self, clique: Clique) -> npt.NDArray[np.int64] | None:
        """Return the counts of a clique of one attribute at most, from those of the rows as they were."""
        if not clique:
            return self._base.known(())
        if len(clique) > 1:
            return None
        (name,) = clique
        old, codes = self._columns[name]
        counts = self._base.known((old,))
        if counts is None or codes is None:
            return counts
        summed = np.zeros(self._domain[name], dtype=np.int64)
        np.add.at(summed, codes, counts)
        return summed

    def __repr__(self) -> str:
        return f"Recoded rows over {self._domain!r}"


def _unchecked(columns: dict[str, Codes], domain: Domain, length: int, max_records_per_person: int) -> Records:
    """Return records of columns that are known to be right."""
    records = Records.__new__(Records)
    for codes in columns.values():
        codes.flags.writeable = False
    records._columns, records._domain = columns, domain  # noqa: SLF001 - a second way to make them
    records._length, records._max_records_per_person = length, max_records_per_person  # noqa: SLF001
    return records


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
