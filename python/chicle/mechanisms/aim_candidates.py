"""The candidates of a round of AIM on a graphical model ([A] line 13): public, since they follow from releases alone.

A clique is a candidate if its noisy table could be worth measuring on some data, and the junction tree with it stays
below the round's part of `max_size`. A workload may have a hundred thousand cliques, and computing the size of a tree
takes a tenth of a millisecond, so sizes are computed again only when the tree has grown by a fifth. Until then the old
sizes are used. One may be too small by now, so `Candidates.fit` checks the clique that was chosen (`release_choice`
explains why the choice is then one among those that fit).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chicle.domain import Clique, Domain
from chicle.measurements.measurement import Measurement, estimate_total
from chicle.models.pgm import jt_size, jt_sizes
from chicle.query import QueryLike

__all__ = ["Candidates", "Openings", "penalty"]

_MEAN_ABS = math.sqrt(2 / math.pi)
_GROWN = 1.2  # growth of the tree after which sizes are computed again


@dataclass(frozen=True)
class Candidates:
    """The candidates of one round.

    Attributes
    ----------
    cliques
        The cliques that fitted when sizes were last computed.
    held
        The cliques that the model holds.
    limit
        Most bytes of the junction tree.
    domain
        The attributes.
    threads
        How many threads to use; all there are, if ``None``.
    """

    cliques: list[Clique]
    held: frozenset[Clique]
    limit: float
    domain: Domain
    threads: int | None = None

    def fit(self, cliques: Sequence[Clique]) -> list[bool]:
        """Return, for each clique, whether the tree with it stays within its limit now."""
        sizes = jt_sizes(cliques, self.domain, held=self.held, threads=self.threads)
        return [size <= self.limit for size in sizes]


@dataclass
class Openings:
    """The candidates of one round after the other.

    Attributes
    ----------
    cells
        All cliques that may ever be chosen, with their cells; 1-ways included.
    domain
        The attributes.
    max_size
        Most bytes of the junction tree at the end.
    zeros
        Cliques of structural zeros: the model holds them too.
    threads
        How many threads to use; all there are, if ``None``.
    """

    cells: Mapping[Clique, int]
    domain: Domain
    max_size: int
    zeros: frozenset[Clique] = frozenset()
    threads: int | None = None
    _sizes: dict[Clique, int] = field(default_factory=dict, repr=False)
    _then: int = field(default=0, repr=False)
    _largest: int = field(default=0, repr=False)

    def after(self, measured: Sequence[Measurement], sigma: float, part: float) -> Candidates:
        """Return the candidates after some measurements.

        Parameters
        ----------
        measured
            The measurements so far: those of the last call, and more.
        sigma
            The noise that the next table will have.
        part
            The part of `max_size` that the model may take.
        """
        held = frozenset(one.clique for one in measured) | self.zeros
        now = jt_size(held, self.domain)
        self._largest = max(self._largest, now)
        limit = max(part * self.max_size, self._largest)  # cliques that do not enlarge the model stay open
        if now > _GROWN * self._then:
            self._then = now
            self._sizes.clear()
        most = 2 * max(estimate_total(measured), 1) / (_MEAN_ABS * sigma)
        worth = [clique for clique, cells in self.cells.items() if cells <= most]
        unknown = [clique for clique in worth if clique not in self._sizes]
        sizes = jt_sizes(unknown, self.domain, held=held, threads=self.threads)
        self._sizes.update(zip(unknown, sizes, strict=True))
        fitting = [clique for clique in worth if self._sizes[clique] <= limit]
        # Where nothing is worth it, the smallest table does the least harm.
        return Candidates(fitting or [min(self.cells, key=self.domain.cells)], held, limit, self.domain, self.threads)


def penalty(clique: QueryLike, sigma: float, domain: Domain) -> float:
    """Return the L1 error that noise alone gives to a table ([A] equation 1)."""
    return _MEAN_ABS * sigma * (domain.cells(clique) if isinstance(clique, tuple) else clique.cells(domain))
