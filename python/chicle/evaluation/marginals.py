"""Marginals of several tables over the same cells, a batch of cliques at a time.

Cliques of few cells are counted at once by the Rust kernels. Tables of more than `DENSE` cells would be nearly empty:
these cliques are counted by sorting the rows, in O(rows log rows) time for any domain. Both ways are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Protocol

import numpy as np
import numpy.typing as npt

from chicle.counting.records import Records, count
from chicle.domain import Clique, Domain

__all__ = ["Marginals", "Observer", "cliques_of", "observe"]

DENSE = 2**21
_BATCH = 2**22  # cells counted at once
_MOST = 2**63 - 1

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Marginals:
    """Counts of one clique in several tables over the same cells.

    Attributes
    ----------
    position, clique
        The clique, and its position among the counted cliques.
    counts
        For each table its counts, flat.
    codes
        For each attribute the codes of the cells; None if the table has every cell, in order.
    shape
        The cardinalities of the clique.
    """

    position: int
    clique: Clique
    counts: list[Ints]
    codes: tuple[Ints, ...] | None
    shape: tuple[int, ...]

    def occupied(self, table: int) -> tuple[Ints, tuple[Ints, ...]]:
        """Return the counts of a table's non-empty cells, and the codes of these cells."""
        counts = self.counts[table]
        where = np.flatnonzero(counts)
        if self.codes is None:
            return counts[where], tuple(np.unravel_index(where, self.shape))
        return counts[where], tuple(codes[where] for codes in self.codes)


def cliques_of(domain: Domain, size: int, most: int | None, rng: np.random.Generator) -> list[Clique]:
    """Return all cliques of a size, or `most` of them drawn without repetition, in domain order."""
    total = comb(len(domain), size)
    if most is None or total <= most:
        return list(combinations(domain, size))
    names = list(domain)
    drawn: set[tuple[int, ...]] = set()
    if total <= 4 * most:
        everything = list(combinations(range(len(names)), size))
        drawn.update(everything[i] for i in rng.choice(total, most, replace=False))
    while len(drawn) < most:
        drawn.add(tuple(sorted(int(i) for i in rng.choice(len(names), size, replace=False))))
    return [tuple(names[i] for i in places) for places in sorted(drawn)]


class Observer(Protocol):
    """Receives every clique once, with its counts in every table."""

    def note(self, marginals: Marginals) -> None:
        """Take what is needed from one clique; its counts are not kept."""


def observe(tables: Sequence[Records], cliques: Sequence[Clique], threads: int | None, *observers: Observer) -> None:
    """Count every clique in every table and pass the counts to each observer."""
    for marginals in _marginals(tables, cliques, threads):
        for observer in observers:
            observer.note(marginals)


def _marginals(tables: Sequence[Records], cliques: Sequence[Clique], threads: int | None) -> Iterator[Marginals]:
    domain = tables[0].domain
    batch: list[int] = []
    cells = 0
    for i, clique in enumerate(cliques):
        size = domain.cells(clique)
        if size > DENSE:
            yield _sorted(tables, i, clique)
            continue
        if batch and cells + size > _BATCH:
            yield from _counted(tables, cliques, batch, threads)
            batch, cells = [], 0
        batch.append(i)
        cells += size
    if batch:
        yield from _counted(tables, cliques, batch, threads)


def _counted(
    tables: Sequence[Records], cliques: Sequence[Clique], batch: list[int], threads: int | None
) -> Iterator[Marginals]:
    counted = [count(table, [cliques[i] for i in batch], threads) for table in tables]
    for i, counts in zip(batch, zip(*counted, strict=True), strict=True):
        yield Marginals(i, cliques[i], [c.reshape(-1) for c in counts], None, counts[0].shape)


def _sorted(tables: Sequence[Records], position: int, clique: Clique) -> Marginals:
    """Count the cells that any of the tables occupies, by sorting."""
    domain = tables[0].domain
    columns = [np.concatenate([table[name] for table in tables]).astype(np.int64) for name in clique]
    joint, room = columns[0], domain[clique[0]]
    for name, column in zip(clique[1:], columns[1:], strict=True):
        if room * domain[name] > _MOST:
            # Renumber the cells that occur, so that the product does not overflow.
            known, joint = np.unique(joint, return_inverse=True)
            room = len(known)
        joint = joint * domain[name] + column
        room *= domain[name]
    _, first, cell = np.unique(joint, return_index=True, return_inverse=True)
    ends = np.cumsum([len(table) for table in tables])[:-1]
    counts = [np.bincount(part, minlength=len(first)) for part in np.split(cell, ends)]
    return Marginals(position, clique, counts, tuple(column[first] for column in columns), domain.shape(clique))
