"""Section 4.3 of [P] in plain numpy, as `chicle.project` does it: oracle of the tests, peer of the benchmark."""

from collections.abc import Iterable, Sequence
from math import prod, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle import Clique, Measurement

Table = npt.NDArray[np.float64]
Margins = dict[frozenset[str], list[Table]]


def shared_sets(cliques: Iterable[Clique]) -> list[frozenset[str]]:
    """All intersections of two or more cliques, and the empty set, small ones first."""
    seen: list[frozenset[str]] = []
    sets = {frozenset[str]()}
    for clique in map(frozenset, cliques):
        sets |= {other & clique for other in (*sets, *seen)}
        seen.append(clique)
    return sorted(sets, key=lambda s: (len(s), sorted(s)))


def kept_shape(clique: Clique, table: Table, kept: frozenset[str]) -> tuple[int, ...]:
    return tuple(size if name in kept else 1 for name, size in zip(clique, table.shape, strict=True))


def margin(clique: Clique, table: Table, kept: frozenset[str]) -> Table:
    """The margin with axes by name, so that those of different cliques compare."""
    summed: Table = table.sum(axis=tuple(i for i, name in enumerate(clique) if name not in kept))
    names = [name for name in clique if name in kept]
    by_name: Table = summed.transpose(sorted(range(len(names)), key=names.__getitem__))
    return by_name


def spread(clique: Clique, table: Table, kept: frozenset[str], values: Table) -> Table:
    """Margin values, axes by name, over the cells that count towards each: ready to be added to the table."""
    names = sorted(kept)
    ordered = values.transpose([names.index(name) for name in clique if name in kept])
    group = table.size / max(values.size, 1)
    return ordered.reshape(kept_shape(clique, table, kept)) / group


class Sharing:
    """Who shares what, and with which weights."""

    def __init__(self, measurements: Sequence[Measurement]) -> None:
        self.cliques = [m.clique for m in measurements]
        self.precisions = [1 / m.sigma**2 for m in measurements]
        self.sets = shared_sets(self.cliques)
        self.members = [[i for i, clique in enumerate(self.cliques) if kept <= set(clique)] for kept in self.sets]

    def total(self, tables: Sequence[Table]) -> float:
        weights = [p / t.size for p, t in zip(self.precisions, tables, strict=True)]
        return float(np.average([t.sum() for t in tables], weights=weights))

    def agree(self, tables: Sequence[Table], total: float) -> list[Table]:
        """One pass over the shared sets, small ones first: average, and spread each table's correction evenly."""
        agreed = list(tables)
        for kept, members in zip(self.sets, self.members, strict=True):
            margins = [margin(self.cliques[i], agreed[i], kept) for i in members]
            weights = np.array([self.precisions[i] / agreed[i].size for i in members])
            mean: Any = sum(w * m for w, m in zip(weights / weights.sum(), margins, strict=True))
            if not kept:
                mean = np.asarray(total)
            for i, implied in zip(members, margins, strict=True):
                agreed[i] = agreed[i] + spread(self.cliques[i], agreed[i], kept, np.asarray(mean - implied))
        return agreed

    def disagreement(self, tables: Sequence[Table], agreed: Sequence[Table], total: float) -> float:
        """How far margins are from those they should have: the worst sum of absolute differences, over the total."""
        worst = 0.0
        for kept, members in zip(self.sets, self.members, strict=True):
            for i in members:
                missing = margin(self.cliques[i], agreed[i] - tables[i], kept)
                worst = max(worst, float(np.abs(missing).sum()))
        return worst / max(total, 1.0)


def norm_sub(table: Table, total: float) -> Table:
    """The nearest non-negative table of this total."""
    falling = np.sort(table, axis=None)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, table.size + 1)
    level = excess[np.flatnonzero(falling > excess)[-1]] if total > 0 else np.inf
    return np.maximum(table - level, 0.0)


def project(
    measurements: Sequence[Measurement], *, rule: str, tolerance: float = 1e-6, max_sweeps: int = 3_000
) -> tuple[list[Table], int]:
    """Project by ``"norm-sub"`` (alternate) or ``"least-squares"`` (the dual, with momentum); also count sweeps."""
    sharing = Sharing(measurements)
    measured = [np.asarray(m.values, dtype=np.float64) for m in measurements]
    total = max(sharing.total(measured), 0.0)
    lifted = sharing.agree(measured, total)
    last, momentum = lifted, (1 + sqrt(5)) / 2  # the first step has been taken
    for sweep in range(1, max_sweeps + 1):
        tables = [norm_sub(table, total) for table in lifted]
        agreed = sharing.agree(tables, total)
        if sharing.disagreement(tables, agreed, total) <= tolerance:
            return tables, sweep
        if rule == "norm-sub":
            lifted = agreed
            continue
        steps = [a - t for a, t in zip(agreed, tables, strict=True)]
        reached = [z + s for z, s in zip(lifted, steps, strict=True)]
        pieces = zip(sharing.precisions, steps, reached, last, strict=True)
        if sum(p * float((s * (r - b)).sum()) for p, s, r, b in pieces) < 0:
            momentum = 1.0
        following = (1 + sqrt(1 + 4 * momentum**2)) / 2
        ahead = (momentum - 1) / following
        lifted = [r + ahead * (r - b) for r, b in zip(reached, last, strict=True)]
        last, momentum = reached, following
    return tables, max_sweeps


def incidence(cliques: Sequence[Clique], domain: dict[str, int]) -> tuple[Table, Table]:
    """Linear rows, for dense solvers: differences of shared margins that must vanish, and the total of the first table.

    Columns are the cells of all tables, one after the other.
    """
    sizes = [prod(domain[name] for name in clique) for clique in cliques]
    starts = np.cumsum([0, *sizes])
    rows: list[Table] = []
    for i, first in enumerate(cliques):
        for j in range(i):
            kept = frozenset(first) & frozenset(cliques[j])
            for cell in range(prod(domain[name] for name in kept)):
                row = np.zeros(starts[-1])
                for k, sign in ((i, 1.0), (j, -1.0)):
                    unit = np.zeros(tuple(domain[name] for name in sorted(kept)))
                    unit.flat[cell] = sign
                    shape = tuple(domain[name] for name in cliques[k])
                    table = np.zeros(shape)
                    group = table.size / unit.size
                    row[starts[k] : starts[k + 1]] = np.broadcast_to(
                        spread(cliques[k], table, kept, unit) * group, shape
                    ).reshape(-1)
                rows.append(row)
    total = np.zeros((1, starts[-1]))
    total[0, : sizes[0]] = 1.0
    return np.array(rows).reshape(-1, starts[-1]), total
