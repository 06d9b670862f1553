"""Encoded rows, private or synthetic: one array of codes for each attribute, checked once, in memory."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle import _core
from chicle._checks import MEMORY_LIMIT, integer, memory_bytes, threads_or_all
from chicle._pandas import data_frame
from chicle.codes import Codes, code_dtype, look_up
from chicle.counting.countable import Countable, Expect, Independence, flat_expected, groups
from chicle.counting.kernel_queries import KernelQueries
from chicle.domain import Clique, Domain
from chicle.errors import DomainError
from chicle.query import Maps, Query, QueryLike

__all__ = ["Records", "count"]

# The kind of a dtype without its width: the width of text is the length of somebody's value.
_KINDS = {"f": "floats", "c": "complex numbers", "U": "text", "T": "text", "S": "bytes", "M": "dates", "m": "durations"}


class Records(Countable):
    """Validated columns of codes over a domain.

    A column that already is a contiguous array of the smallest unsigned type for its attribute is used
    without a copy; do not write to it afterwards. Any other integer column is checked and converted.

    Parameters
    ----------
    columns
        Mapping from attribute name to codes ``0..cardinality-1``, or a pandas, polars or pyarrow table of them.
    domain
        The attributes, in order. There must be just one column for each.
    max_records_per_person
        How many of these rows one person may have: the ``k`` of every sensitivity. The caller vouches for
        it. With the default of 1, each row is another person.

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
        self._domain = Domain.of(domain)
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

    def count(
        self, queries: Sequence[QueryLike], *, threads: int | None = None, memory_limit: int = MEMORY_LIMIT
    ) -> list[npt.NDArray[np.int64]]:
        """Count all queries in one call of the kernel `count`."""
        wanted = KernelQueries(self._domain, queries)
        limit, threads = memory_bytes(memory_limit), threads_or_all(threads)
        codes = [self._columns[name] for name in wanted.attributes]
        return wanted.answers(_core.count(codes, *wanted.arguments(), limit, threads))

    def distances(
        self,
        queries: Sequence[QueryLike],
        expect: Expect,
        *,
        threads: int | None = None,
        memory_limit: int = MEMORY_LIMIT,
    ) -> npt.NDArray[np.int64]:
        """Compare each table as soon as it is counted, by the kernels `score`: the tables never exist all at once."""
        if any(isinstance(one, Query) and (one.where or one.functional is not None) for one in queries):
            return super().distances(queries, expect, threads=threads, memory_limit=memory_limit)
        threads, limit = threads_or_all(threads), memory_bytes(memory_limit)
        pairs = [one for one in queries if isinstance(one, tuple) and len(one) == 2]
        if isinstance(expect, Independence) and len(pairs) == len(queries):
            return self._indif(pairs, expect, threads, limit)
        found = [np.empty(0, dtype=np.int64)]
        for group in groups(queries, self._domain):
            wanted = KernelQueries(self._domain, group)
            codes = [self._columns[name] for name in wanted.attributes]
            expected = flat_expected(group, expect, self._domain)
            found.append(_core.distances(codes, *wanted.arguments(), expected, limit, threads))
        return np.concatenate(found)

    def dependence(
        self, pairs: Sequence[Clique], *, threads: int | None = None, memory_limit: int = MEMORY_LIMIT
    ) -> npt.NDArray[np.int64]:
        """Compare each pair with its own margins, by the kernels `score`."""
        return self._indif(pairs, None, threads_or_all(threads), memory_bytes(memory_limit))

    def _indif(
        self, pairs: Sequence[Clique], expect: Independence | None, threads: int | None, limit: int
    ) -> npt.NDArray[np.int64]:
        wanted = KernelQueries(self._domain, pairs)
        codes = [self._columns[name] for name in wanted.attributes]
        names, sizes, places = wanted.arguments()
        shares, total = (None, 0.0) if expect is None else ([expect.shares[name] for name in names], expect.total)
        return _core.indif(codes, names, sizes, places, shares, total, limit, threads)

    def view(self, maps: Maps, domain: Domain) -> Records:
        """Return the same records with other attributes; columns that do not change are not copied."""
        made = {}
        for name, (old, codes) in maps.items():
            made[name] = self[old]
            if codes is not None:
                # The look-up itself checks nothing.
                if len(codes) != self._domain[old] or codes.min() < 0 or codes.max() >= domain[name]:
                    raise DomainError(f"the map of {name!r} needs a code below {domain[name]} for each code of {old!r}")
                made[name] = look_up(codes.astype(code_dtype(domain[name]), copy=False), self[old])
        return _unchecked(made, domain, self._length, self._max_records_per_person)

    def parts(self, names: Clique) -> Sequence[Records]:
        """Return the records of each joint value of some attributes, without these: sorted once, then cut."""
        shape = self._domain.shape(names)
        places = np.zeros(self._length, dtype=np.int64)
        for name, size in zip(names, shape, strict=True):
            places = places * size + self._columns[name]
        order = np.argsort(places, kind="stable")
        ends = np.cumsum(np.bincount(places, minlength=math.prod(shape)))
        kept = Domain({name: size for name, size in self._domain.items() if name not in names})
        columns = {name: self._columns[name][order] for name in kept}
        whole = _unchecked(columns, kept, self._length, self._max_records_per_person)
        starts = [0, *ends[:-1].tolist()]
        cuts = zip(starts, ends.tolist(), strict=True)
        return [whole._part(list(kept), slice(begin, end)) for begin, end in cuts]  # noqa: SLF001 - its own class

    def pieces(self, rows: int) -> Generator[Records, None, None]:
        """Yield the records in pieces of `rows` rows, without copies; one empty piece if there are no records."""
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
        """Return the number of rows, which is private if the records are."""
        return self._length

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._columns, dict(self._domain), self._max_records_per_person)

    def to_pandas(self) -> Any:  # noqa: ANN401 - pandas is no dependency
        """Return the codes as a pandas data frame: a column for each attribute."""
        return data_frame({name: self[name] for name in self._domain})

    def __repr__(self) -> str:
        return f"Records over {self._domain!r}"


def count(
    records: Countable,
    cliques: Iterable[QueryLike | Iterable[str]],
    threads: int | None = None,
    *,
    memory_limit: int = MEMORY_LIMIT,
) -> list[npt.NDArray[np.int64]]:
    """Count the records in every cell of every clique, exactly.

    All cliques are counted in one call: blocks of attributes that hold many of them are counted once and summed, so all
    pairs of a wide table cost a fraction of counting each alone. The result does not depend on the number of threads.

    Parameters
    ----------
    records
        The records to count.
    cliques
        Tuples of attribute names, of any length, or `chicle.Query`; ``()`` gives the number of records.
    threads
        How many threads to use; all there are, if ``None``.
    memory_limit
        The most bytes that all counts may take; above it, an `InfeasibleError` gives the size.

    Returns
    -------
    One array for each clique, its axes in the order in which the clique names its attributes.

    Examples
    --------
    >>> records = Records({"age": [2, 0, 2], "sex": [1, 0, 0]}, {"age": 3, "sex": 2})
    >>> age_by_sex, total = count(records, [("age", "sex"), ()])
    >>> age_by_sex
    array([[1, 0],
           [0, 0],
           [1, 1]])
    >>> int(total)
    3
    """
    if isinstance(cliques, str):
        raise DomainError("cliques must be a list of tuples of attribute names, not a string")
    asked = [clique if isinstance(clique, Query) else records.domain.check(clique) for clique in cliques]
    return records.count(asked, threads=threads, memory_limit=memory_limit)


def _unchecked(columns: dict[str, Codes], domain: Domain, length: int, max_records_per_person: int) -> Records:
    """Return records of columns that need no check."""
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
    # pyarrow has column_names; pandas and polars have columns. Ask the type: a frame may have a column of that name.
    for attribute in ("column_names", "columns"):
        if hasattr(type(columns), attribute):
            return list(getattr(columns, attribute))
    raise DomainError(f"columns must be a mapping from name to codes or a data frame, not a {type(columns).__name__}")


def _check_names(names: list[str], domain: Domain) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DomainError(f"column {twice!r} occurs twice; names must differ")
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
        # numpy's own message gives the number of rows, which is private.
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
