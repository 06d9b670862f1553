"""The source: a private table as its owner gives it, on this machine or another.

Counting and discovery read raw private columns through `Source.reduce` only. So no row of a person above `max_records`
gets past it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from chicle.codecs import Codec
from chicle.counting.countable import Countable
from chicle.counting.counts import Counts
from chicle.counting.records import Records
from chicle.errors import SchemaError
from chicle.schema import Schema
from chicle.sources.frames import Form
from chicle.sources.tasks import Collect, Count, FirstPass, Task

__all__ = ["IN_MEMORY", "Source"]

IN_MEMORY = 2**28
"""Bytes of codes that are kept in memory by default."""

_Task = TypeVar("_Task", bound=Task[Any])


class Source(ABC):
    """A private table that can be read; `chicle.sources.open_source` makes one from a table of any kind.

    A source implements `reduce`, which goes over its rows. All other methods use it.

    Parameters
    ----------
    schema
        The schema, which declares the person column and the maximum number of rows of a person.
    room
        Bytes of codes, mostly one for each value, that may be kept in memory; larger tables are read again for each
        pass.
    threads
        How many threads count; ``None`` uses all.
    """

    coded: bool = False
    """Whether it was given as codes, which have no person column."""

    once: bool = False
    """Whether it can be read only once."""

    limits_persons: bool = False
    """Whether `reduce` leaves out the rows of a person above the declared maximum. If not, a `person` is refused."""

    def __init__(self, schema: Schema, *, room: float = IN_MEMORY, threads: int | None = None) -> None:
        self._unit = schema.person, schema.max_records_per_person, schema.keep
        self._room, self._threads = room, threads

    @property
    @abstractmethod
    def form(self) -> Form:
        """The form of a synthetic table of this source."""

    @abstractmethod
    def reduce(self, task: _Task, columns: Sequence[str]) -> _Task:
        """Give a task all rows, without those of a person above the declared maximum; return the finished task.

        Parameters
        ----------
        task
            The work on the rows.
        columns
            The columns that it reads, at least one.
        """

    @property
    def promise(self) -> str:
        """The privacy unit of a fit on this source: the rows of a person, and whether they are limited or assumed.

        Examples
        --------
        >>> from chicle.sources import open_source
        >>> schema = Schema({"smoker": {"type": "boolean"}}, person="patient")
        >>> open_source({"smoker": [True, False], "patient": [1, 2]}, schema).promise
        "Protects every person: of each value of 'patient' at most one row was kept."
        """
        person, k, keep = self._unit
        rows, kept = ("one row", "was kept") if k == 1 else (f"{k} rows", "were kept")
        if person is None:
            return f"Protects a person with {rows} at most: an assumption, for no column tells whose row it is."
        if self.coded:
            return f"Protects a person with {rows} at most: an assumption, for records do not tell whose row it is."
        how = ", at random" if keep == "random" else ""
        return f"Protects every person: of each value of {person!r} at most {rows} {kept}{how}."

    def person_rows(self, cells: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
        """Return how many persons have how many rows, before any limit: private; None if it cannot be told.

        Parameters
        ----------
        cells
            The least number of rows of each cell, from 1 on.
        """
        del cells
        return None

    def close(self) -> None:  # noqa: B027 - most sources keep nothing
        """Drop what was kept for further passes, on this machine or others; by default nothing is. A fit ends with it.

        The source can be read again.
        """

    def check_unit(self, schema: Schema) -> None:
        """Raise unless a schema has the same person column and maximum as the source."""
        if (schema.person, schema.max_records_per_person, schema.keep) != self._unit:
            raise SchemaError(
                "the source was opened with a schema of another `person` or `max_records`; open it with this one"
            )
        if schema.person is not None and not (self.limits_persons or self.coded):
            raise SchemaError(
                f"this source does not limit the rows of a person, but the schema names {schema.person!r} as the "
                "person; limit them first and leave `person` out, or give a frame or files"
            )

    def records(self, codec: Codec) -> Records:
        """Return the whole table as records over the schema's domain; a value that does not fit is an error."""
        self.check_unit(codec.schema)
        names = list(codec.schema.domain)
        return self.reduce(Collect(codec, names), names).records()

    def countable(self, codec: Codec) -> Countable:
        """Return the table as a countable over the codec's `base`: records if they fit in memory, else passes.

        All rows are checked, also against constraints and combinations.
        """
        self.check_unit(codec.schema)
        first = self.reduce(FirstPass(codec, self._room, self._threads), list(codec.schema.domain))

        def again(counts: Counts) -> Counts:
            task = Count(codec, counts)
            return self.reduce(task, task.columns).counts

        return first.countable(again)
