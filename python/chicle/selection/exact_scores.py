"""NOT PRIVATE: exact scores, for experiments on how much noise harms selection."""

from __future__ import annotations

from collections.abc import Iterable

from chicle._checks import MEMORY_LIMIT
from chicle.counting.countable import UNITS, Countable
from chicle.domain import pairs as all_pairs
from chicle.measurements.scores import Scores

__all__ = ["exact_indif"]


def exact_indif(
    records: Countable,
    *,
    pairs: Iterable[Iterable[str]] | None = None,
    threads: int | None = None,
    memory_limit: int = MEMORY_LIMIT,
) -> Scores:
    """NOT PRIVATE: return the exact published InDif scores, for experiments on how much noise harms selection.

    Examples
    --------
    >>> import chicle
    >>> exact_indif(chicle.datasets.census(2_000, d=4))
    NOT PRIVATE: scores of 6 cliques, sigma 0 records
    """
    domain = records.domain
    named = all_pairs(domain) if pairs is None else [domain.clique(pair) for pair in pairs]
    exact = records.dependence(named, threads=threads, memory_limit=memory_limit)
    return Scores(tuple(named), exact / UNITS, 0.0, protected=False)
