"""What a round of AIM on a graphical model may choose from ([A] line 13): public, for it follows from releases alone.

A clique is a candidate where its noisy table could be worth measuring on some data, and with it the junction tree stays
below the round's part of `max_size`. A workload may have a hundred thousand cliques, and the size of a tree takes a
tenth of a millisecond, so they are forgotten only when the tree has grown by a fifth. In between the old sizes stand;
where one is too small by now, `Candidates.fit` tells so of the clique that was chosen (`release_choice` explains why
that makes the choice one among those that fit).
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
_GROWN = 1.2  # by which factor a tree has grown when sizes are worked out again


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
    threads
        How many threads to use; all there are, if ``None``.
    """

    cliques: list[Clique]
    held: frozenset[Clique]
    limit: float
    domain: Domain
    threads: int | None = None

    def fit(self, cliques: Sequence[Clique]) -> list[bool]:
        """Return with which of some cliques the tree stays within its limit now."""
        sizes = jt_sizes(cliques, self.domain, held=self.held, threads=self.threads)
        return [size <= self.limit for size in sizes]


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
        self._largest = max(self._largest, now)
        limit = max(part * self.max_size, self._largest)  # what does not make the model larger is open
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
