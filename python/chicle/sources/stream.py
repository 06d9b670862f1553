"""Rows that are read anew for each pass: what is larger than memory is counted batch by batch.

The first pass encodes everything, so whatever does not fit the schema is found before anything is spent, and counts the
1-ways, which are kept, as private as the rows: measuring them takes no pass of its own.
Cost: a pass for each list of cliques; memory of a few batches and of the counts.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from chicle.counting.counter import Counter
from chicle.counting.records import Countable, Recoded, Recoding, Records
from chicle.domain import Clique, Domain
from chicle.errors import SchemaError

__all__ = ["Stream", "join"]


class Stream(Countable):
    """Private rows of a source, encoded whenever they are counted.

    Parameters
    ----------
    read
        Gives batches of records with these attributes; the same rows each time.
    domain, max_records_per_person
        As for `Records`.
    counted
        What the first pass has counted: the number of records, then a 1-way of each attribute.
    """

    __slots__ = ("_counted", "_domain", "_max_records_per_person", "_read")

    def __init__(
        self,
        read: Callable[[Sequence[str]], Generator[Records, None, None]],
        domain: Domain,
        max_records_per_person: int,
        counted: Mapping[Clique, npt.NDArray[np.int64]],
    ) -> None:
        self._read = read
        self._domain = domain
        self._max_records_per_person = max_records_per_person
        self._counted = dict(counted)

    @classmethod
    def first(cls, domain: Domain, threads: int | None) -> Counter:
        """Return what counts the first pass."""
        return Counter(domain, [(), *((name,) for name in domain)], threads)

    @property
    def domain(self) -> Domain:
        """The attributes and their cardinalities."""
        return self._domain

    @property
    def max_records_per_person(self) -> int:
        """How many of these rows one person may have."""
        return self._max_records_per_person

    def batches(self, names: Sequence[str]) -> Generator[Records, None, None]:
        """Read and encode all rows, batch by batch; only these attributes."""
        rows = 0
        for batch in self._read(names):
            rows += len(batch)
            yield batch
        if rows != int(self._counted[()]):
            raise SchemaError("the table had another number of rows when it was read again; close what writes to it")

    def recode(self, columns: Recoding, domain: Domain) -> Recoded:
        """Return the same rows with other attributes, recoded whenever they are counted."""
        return Recoded(self, columns, domain)

    def known(self, clique: Clique) -> npt.NDArray[np.int64] | None:
        """Return the number of records, or a 1-way: the first pass has counted them."""
        return self._counted.get(clique)

    def __repr__(self) -> str:
        return f"Stream over {self._domain!r}"


def join(batches: list[Records], domain: Domain, max_records_per_person: int) -> Records:
    """Return batches as one; each column of theirs is let go of once it is copied, and the list emptied."""
    if len(batches) == 1:
        return Records(
            {name: batches[0][name] for name in domain}, domain, max_records_per_person=max_records_per_person
        )
    parts = [{name: batch[name] for name in domain} for batch in batches]
    if not parts:  # a file that only names columns
        parts = [{name: np.empty(0, dtype=np.uint8) for name in domain}]
    batches.clear()
    columns = {name: np.concatenate([part.pop(name) for part in parts]) for name in domain}
    return Records(columns, domain, max_records_per_person=max_records_per_person)
