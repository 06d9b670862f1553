"""Partitions that were fitted by themselves: what each cost, recomputed from the transcript, and what was paid once."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from chicle.dossier.oracle import SLACK, cost_of
from chicle.measurements.measurement import Measurement
from chicle.measurements.scores import Choice, Scores
from chicle.privacy.events import ExponentialEvent, ParallelEvent
from chicle.query import QueryLike, as_query
from chicle.releases.release import Release

__all__ = ["check_groups", "of_a_group"]


def of_a_group(release: Release) -> Callable[[QueryLike], bool]:
    """Return whether a query is about one of the groups that were paid once."""
    formed = _formed(release)

    def inside(query: QueryLike) -> bool:
        where = set(as_query(query).where)
        return any(set(names) <= where for names in formed)

    return inside


def check_groups(release: Release) -> str | None:
    """Return which group cost more than was paid for all of them, or nothing; None if there are no groups."""
    formed = _formed(release)
    if not formed:
        return None
    accounting = release.ledger.budget.accounting if release.ledger.budget is not None else "gdp"
    k, costs = release.schema.max_records_per_person, defaultdict[Any, list[float]](list)
    for entry in release.transcript.entries:
        cost = _cost(entry, k, accounting)
        if cost is None:
            continue
        query, rho = cost
        for names in formed:
            if set(names) <= set(query.where):
                costs[names, tuple(query.where[name] for name in names)].append(rho)
                break
    for (names, codes), paid in costs.items():
        if math.fsum(paid) > formed[names] * (1 + SLACK):
            return f"{dict(zip(names, codes, strict=True))} cost rho {math.fsum(paid):.6g} of {formed[names]:.6g}"
    return ""


def _formed(release: Release) -> dict[tuple[str, ...], float]:
    """Return the attributes that form groups, with what each group may cost."""
    formed: dict[tuple[str, ...], float] = defaultdict(float)
    for entry in release.ledger.entries:
        if isinstance(entry.event, ParallelEvent) and entry.event.clique is not None:
            formed[entry.event.clique] += entry.event.most
    return dict(formed)


def _cost(entry: object, k: int, accounting: str) -> tuple[Any, float] | None:
    """Return what an entry of a transcript is about, and what it cost for a person of k rows."""
    if isinstance(entry, Measurement):
        longest = 1.0 if entry.functional is None else entry.functional.l2_sensitivity(1)
        return entry.query, (k * longest / entry.sigma) ** 2 / 2
    if isinstance(entry, Scores):
        reach = k * math.sqrt(len(entry.queries)) * (4 if entry.reference == "margins" else 1)
        return as_query(entry.queries[0]), (reach / entry.sigma) ** 2 / 2
    if isinstance(entry, Choice):
        event = ExponentialEvent(purpose="choice", epsilon=entry.epsilon, values=entry.among)
        return as_query(entry.query), cost_of(event, accounting)
    return None
