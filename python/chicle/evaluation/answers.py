"""Errors of single answers ([G] section 2): every cell of a workload is a query, answered by a share of the rows.

The error of a cell is |p - q|, with p and q the shares of the real and of the other table's rows in it. [G] reports the
largest and the mean over all cells; the median tells whether few cells carry the mean. Cells that both tables leave
empty count too.

Errors are not kept: each is counted in one of 2^19 bins by the leading bits of its float, which are in the order of the
numbers. So the median is exact to a relative 2^-11, in four megabytes, for a workload of any size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chicle.counting.records import Records
from chicle.domain import Clique
from chicle.errors import DomainError
from chicle.evaluation.contest import Contest
from chicle.evaluation.marginals import Marginals
from chicle.evaluation.result import Score

__all__ = ["AnswerErrors", "answer_errors", "answer_scores"]

_DROPPED = 12  # bits of a float32 that a bin leaves out
_BINS = 2**19  # for all floats from 0 to infinity


@dataclass(frozen=True, eq=False)
class AnswerErrors:
    """The errors of all cells of a workload in several tables: row t of each array is table t."""

    largest: npt.NDArray[np.float64]
    total: npt.NDArray[np.float64]
    bins: npt.NDArray[np.int64]
    cells: npt.NDArray[np.int64]

    @classmethod
    def empty(cls, tables: int) -> AnswerErrors:
        """Return errors of no cells yet."""
        bins = np.zeros((tables, _BINS), dtype=np.int64)
        return cls(np.zeros(tables), np.zeros(tables), bins, np.zeros(tables, dtype=np.int64))

    def add(self, table: int, errors: npt.NDArray[np.float64], cells: int) -> None:
        """Take the errors of a clique of so many cells; cells that are not given have no error."""
        self.largest[table] = max(self.largest[table], float(errors.max(initial=0.0)))
        self.total[table] += float(errors.sum())
        found, counts = np.unique(errors.astype(np.float32).view(np.uint32) >> _DROPPED, return_counts=True)
        self.bins[table, found] += counts
        self.bins[table, 0] += cells - errors.size
        self.cells[table] += cells

    def note(self, marginals: Marginals) -> None:
        """Take the errors of one clique; the first table of the marginals is the real one."""
        real, *others = marginals.counts
        shares, cells = real / max(real.sum(), 1), math.prod(marginals.shape)
        for t, counts in enumerate(others):
            self.add(t, np.abs(shares - counts / max(counts.sum(), 1)), cells)

    @property
    def mean(self) -> npt.NDArray[np.float64]:
        """The mean error of a cell in each table."""
        return self.total / np.maximum(self.cells, 1)

    @property
    def median(self) -> npt.NDArray[np.float64]:
        """The median error of a cell in each table."""
        places = [int(np.searchsorted(np.cumsum(row), -(-int(row.sum()) // 2))) for row in self.bins]
        lower = (np.array(places, dtype=np.uint32) << _DROPPED).view(np.float32)
        return lower.astype(np.float64)


def answer_errors(
    real: Records, answers: Mapping[Clique, npt.NDArray[np.float64]], *, threads: int | None = None
) -> dict[str, float]:
    """NOT PRIVATE: return the max, mean and median error of answers, such as a mechanism's `answers_`.

    Parameters
    ----------
    real
        The real table.
    answers
        For each clique the shares of the rows in its cells.
    threads
        How many threads to use; all there are, if ``None``.

    Examples
    --------
    >>> import chicle
    >>> table = chicle.Records({"a": [0, 0, 1, 1]}, {"a": 2})
    >>> answer_errors(table, {("a",): np.array([0.75, 0.25])})["max"]
    0.25
    """
    found = AnswerErrors.empty(1)
    for clique, table in answers.items():
        (counts,) = real.count([clique], threads=threads)
        if counts.shape != table.shape:
            raise DomainError(f"the answers of {clique!r} have shape {table.shape}; its cells have {counts.shape}")
        found.add(0, np.abs(counts / max(len(real), 1) - table).reshape(-1), counts.size)
    return {"max": float(found.largest[0]), "mean": float(found.mean[0]), "median": float(found.median[0])}


def answer_scores(contest: Contest, found: AnswerErrors) -> list[Score]:
    """Return the largest, mean and median error of all cells of a workload."""
    what = f"error of a cell of the workload ({int(found.cells[0]):,} cells)"
    return [
        contest.score("workload_max", f"largest {what}", found.largest.tolist(), source="[G] 2"),
        contest.score("workload_mean", "mean error of a cell of the workload", found.mean.tolist(), source="[G] 5"),
        contest.score("workload_median", "median error of a cell of the workload", found.median.tolist()),
    ]
