"""Distances between the marginals of two tables.

Shares are compared, never counts: tables may differ in length. With p and q the shares of the real and of another
table's rows in the cells of a clique,

- total variation distance: sum |p - q| / 2, from 0 to 1;
- L1 distance ([P] 6.1, the mean over all pairs): twice that;
- largest difference ([G] 2, the maximum over all 3-way queries): max |p - q|;
- workload error ([A] Definition 2): (1/k) sum_i c_i |p_i - q_i|_1 over k cliques of weights c_i.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chicle.domain import Clique
from chicle.evaluate.marginals import Marginals, marginals_of
from chicle.records import Records

__all__ = ["Distances", "distances"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances of several tables from a real one: row t of each array is table t, column i is clique i."""

    tvd: Floats
    largest: Floats

    @classmethod
    def empty(cls, tables: int, cliques: int) -> Distances:
        """Return room for the distances of so many tables and cliques."""
        return cls(np.zeros((tables, cliques)), np.zeros((tables, cliques)))

    def note(self, marginals: Marginals) -> None:
        """Keep the distances of one clique; the first table of the marginals is the real one."""
        real, *others = marginals.counts
        shares = real / real.sum()
        for t, counts in enumerate(others):
            off = np.abs(shares - counts / counts.sum())
            self.tvd[t, marginals.position] = off.sum() / 2
            self.largest[t, marginals.position] = off.max()


def distances(real: Records, others: Sequence[Records], cliques: Sequence[Clique], threads: int | None) -> Distances:
    """Return the distances of other tables from the real one, for every clique."""
    found = Distances.empty(len(others), len(cliques))
    for marginals in marginals_of([real, *others], cliques, threads):
        found.note(marginals)
    return found
