"""Distances between the marginals of two tables.

Shares are compared, never counts: tables may differ in length. With p and q the shares of the real and of another
table's rows in the cells of a clique,

- total variation distance: sum |p - q| / 2, from 0 to 1;
- L1 distance ([P] 6.1, the mean over all pairs): twice that;
- NIST density ([D18] 5.1): 10^6 (1 - s/2), s the mean L1 distance of 300 random triples;
- largest error ([G] 2, the maximum over all 3-way queries): max |p - q|.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb

import numpy as np
import numpy.typing as npt

from chicle.evaluation.contest import Contest
from chicle.evaluation.marginals import Marginals
from chicle.evaluation.result import Score

__all__ = ["Distances", "density_scores", "marginal_scores"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances of several tables from a real one: row t of each array is table t, column i is clique i."""

    tvd: Floats
    largest: Floats

    @classmethod
    def empty(cls, tables: int, cliques: int) -> Distances:
        """Return arrays for the distances of a number of tables and cliques."""
        return cls(np.zeros((tables, cliques)), np.zeros((tables, cliques)))

    def note(self, marginals: Marginals) -> None:
        """Store the distances of one clique; the first table of the marginals is the real one."""
        real, *others = marginals.counts
        shares = real / real.sum()
        for t, counts in enumerate(others):
            off = np.abs(shares - counts / counts.sum())
            self.tvd[t, marginals.position] = off.sum() / 2
            self.largest[t, marginals.position] = off.max()


def marginal_scores(contest: Contest, found: Mapping[int, Distances]) -> list[Score]:
    """Return the mean distances by size, [P]'s mean L1 distance of pairs, and [G]'s largest of the widest cliques."""
    scores = []
    for size, distances in found.items():
        fields = {"note": _sampled(contest, size, distances)}
        title = f"mean {size}-way total variation distance"
        scores.append(contest.score(f"tvd_{size}", title, distances.tvd.mean(axis=1), **fields))
    widest = max(found)
    if widest >= 2:
        pairs = 2 * found[2].tvd.mean(axis=1)
        scores.append(contest.score("l1_2", "mean 2-way L1 distance", pairs, source="[P] 6.1"))
    largest = found[widest].largest.max(axis=1)
    scores.append(contest.score(f"max_{widest}", f"largest error of a {widest}-way cell", largest, source="[G] 2"))
    return scores


def density_scores(contest: Contest, found: Mapping[int, Distances]) -> list[Score]:
    """Return the NIST density score: 10^6 (1 - s/2), s the mean L1 distance of random 3-ways; [D18] 5.1."""
    widest = max(found)
    values = 1e6 * (1 - found[widest].tvd.mean(axis=1))
    note = "" if widest == 3 else f"of {widest}-ways: the table has no more attributes"
    fields = {"better": "high", "unit": "score", "source": "[D18] 5.1", "note": note}
    return [contest.score("nist_density", "NIST density", values, **fields)]


def _sampled(contest: Contest, size: int, distances: Distances) -> str:
    some, of = distances.tvd.shape[1], comb(len(contest.real.domain), size)
    return f"{some:,} of {of:,} drawn at random" if some < of else ""
