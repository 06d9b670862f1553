"""What a round of AIM on a graphical model may choose from ([A] line 13): public, for it follows from releases alone.

A clique is a candidate where its noisy table could be worth measuring on some data, and with it the junction tree stays
below the round's part of `max_size`. A workload may have a hundred thousand cliques, and the size of a tree takes a
tenth of a millisecond, so sizes of all are worked out when the tree has grown by half since they last were. In between
the old ones stand, hardly ever too large, and `Candidates.fit` tells of a clique that was chosen whether it fits now
(`release_choice` explains why that makes the choice one among those that fit).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chicle.domain import Clique, Domain
from chicle.generate.pgm import jt_size, jt_sizes
from chicle.measure import Measurement, estimate_total

__all__ = ["Candidates", "Openings", "penalty"]

_MEAN_ABS = math.sqrt(2 / math.pi)
_GROWN = 1.5  # by which factor a tree has grown when sizes are worked out again


@dataclass(frozen=True)
class Candidates:
    """What one round may choose from.

    Attributes
    ----------
    cliques
        Those that fitted when sizes were last worked out.
    held
        What the model holds.
    limit
        Bytes of the junction tree, at most.
    domain
        The attributes.
    """

    cliques: list[Clique]
    held: frozenset[Clique]
    limit: float
    domain: Domain

    def fit(self, cliques: Sequence[Clique]) -> list[bool]:
        """Return with which of some cliques the tree stays within its limit now."""
        return [size <= self.limit for size in jt_sizes(cliques, self.domain, held=self.held)]


@dataclass
class Openings:
    """The candidates of one round after the other.

    Attributes
    ----------
    cells
        All cliques that may ever be chosen, with their cells; each attribute's own among them.
    domain
        The attributes.
    max_size
        Bytes of the junction tree at the end, at most.
    zeros
        Cliques of structural zeros: the model holds them too.
    """

    cells: Mapping[Clique, int]
    domain: Domain
    max_size: int
    zeros: frozenset[Clique] = frozenset()
    _sizes: dict[Clique, int] = field(default_factory=dict, repr=False)
    _fresh: set[Clique] = field(default_factory=set, repr=False)
    _then: float = 0.0

    def after(self, measured: Sequence[Measurement], sigma: float, part: float) -> Candidates:
        """Return what may be chosen after some measurements.

        Parameters
        ----------
        measured
            What was released so far: all that the last call had, and more.
        sigma
            The noise that the next table will have.
        part
            Which part of `max_size` the model may take.
        """
        held = frozenset(one.clique for one in measured) | self.zeros
        now = jt_size(held, self.domain)
        limit = max(part * self.max_size, now)  # what does not make the model larger is always open
        if now > _GROWN * self._then:
            self._then = now
            self._fresh.clear()
        most = 2 * max(estimate_total(measured), 1) / (_MEAN_ABS * sigma)
        worth = [
            clique for clique, cells in self.cells.items() if cells <= most and self._sizes.get(clique, 0) <= limit
        ]
        unknown = [clique for clique in worth if clique not in self._fresh]
        self._sizes.update(zip(unknown, jt_sizes(unknown, self.domain, held=held), strict=True))
        self._fresh.update(unknown)
        fitting = [clique for clique in worth if self._sizes[clique] <= limit]
        # Where nothing is worth it, the smallest table does the least harm.
        return Candidates(fitting or [min(self.cells, key=self.domain.cells)], held, limit, self.domain)


def penalty(clique: Clique, sigma: float, domain: Domain) -> float:
    """Return the L1 error that noise alone gives to a table ([A] equation 1)."""
    return _MEAN_ABS * sigma * domain.cells(clique)
