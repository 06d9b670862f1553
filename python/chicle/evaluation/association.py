"""How strongly two attributes depend on each other, from the counts of their pair.

Cramér's V is sqrt((sum o^2 / (r c) - 1) / (min(R, C) - 1)): chi-squared, scaled to 0..1. Here o is the share of a
cell, r and c are the shares of its row and column, and R and C are the numbers of non-empty rows and columns.
Pearson's correlation is that of the codes of two ordinal attributes, without the rows where either is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chicle.evaluation.contest import Contest
from chicle.evaluation.marginals import Marginals
from chicle.evaluation.result import Score
from chicle.schema import Schema

__all__ = ["Associations", "association_scores", "cramers_v", "pearson"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def cramers_v(counts: Ints, a: Ints, b: Ints) -> float:
    """Return Cramér's V of two attributes, from the counts and codes of the non-empty cells.

    Examples
    --------
    >>> two, zero, one = (np.array(values) for values in ([5, 5], [0, 1], [1, 0]))
    >>> float(cramers_v(two, zero, one))
    1.0
    """
    rows, columns = np.bincount(a, counts), np.bincount(b, counts)
    least = min(np.count_nonzero(rows), np.count_nonzero(columns))
    if least < 2:
        return float("nan")
    phi = (counts * counts / (rows[a] * columns[b])).sum() - 1
    return float(np.sqrt(min(max(phi / (least - 1), 0.0), 1.0)))


def pearson(counts: Ints, a: Ints, b: Ints) -> float:
    """Return the correlation of two attributes' codes, from the counts and codes of the cells.

    Examples
    --------
    >>> round(pearson(np.array([1, 1, 1]), np.array([0, 1, 2]), np.array([4, 2, 0])), 12)
    -1.0
    """
    total = counts.sum()
    if not total:
        return float("nan")
    x, y = a - (a * counts).sum() / total, b - (b * counts).sum() / total
    spread = np.sqrt((counts * x * x).sum() * (counts * y * y).sum())
    return float(np.clip((counts * x * y).sum() / spread, -1, 1)) if spread > 0 else float("nan")


@dataclass(frozen=True, eq=False)
class Associations:
    """Both measures for several tables: row t of each array is table t, column i is pair i; NaN if undefined."""

    cramers_v: Floats
    pearson: Floats
    _sizes: Mapping[str, int]

    @classmethod
    def empty(cls, tables: int, pairs: int, schema: Schema) -> Associations:
        """Return arrays for a number of tables and pairs; Pearson's is for the schema's ordinal attributes."""
        sizes = {name: schema.columns[name].size for name in schema.ordinal}
        return cls(np.full((tables, pairs), np.nan), np.full((tables, pairs), np.nan), sizes)

    def note(self, marginals: Marginals) -> None:
        """Store the association of one pair in every table."""
        ordered = all(name in self._sizes for name in marginals.clique)
        for t in range(len(marginals.counts)):
            counts, (a, b) = marginals.occupied(t)
            self.cramers_v[t, marginals.position] = cramers_v(counts, a, b)
            if ordered:
                here = (a < self._sizes[marginals.clique[0]]) & (b < self._sizes[marginals.clique[1]])
                self.pearson[t, marginals.position] = pearson(counts[here], a[here], b[here])


def association_scores(contest: Contest, association: Associations) -> list[Score]:
    """Return the mean differences from the real table's associations, over the pairs where every table has one."""
    scores = []
    for key, title, values in (
        ("cramers_v", "mean difference of Cramér's V", association.cramers_v),
        ("pearson", "mean difference of Pearson's correlation", association.pearson),
    ):
        off = np.abs(values[1:] - values[0])
        known = np.isfinite(off).all(axis=0)
        if known.any():
            scores.append(contest.score(key, title, off[:, known].mean(axis=1)))
    return scores
