"""Whether a ledger paid for the tables of partitions that were fitted by themselves: for the check of a file."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from chicle.domain import Clique, Domain
from chicle.measurements.measurement import Measurement
from chicle.privacy.events import ParallelEvent
from chicle.privacy.guarantee import Guarantee

__all__ = ["not_paid_as_groups"]

_ROUNDING = 1 + 1e-9


def not_paid_as_groups(
    measurements: Sequence[Measurement], ledger: Guarantee, k: int, domain: Domain
) -> list[Measurement]:
    """Return the measurements but those of groups that cost no more than was paid for all groups together.

    Parameters
    ----------
    measurements
        All measurements of a release.
    ledger
        What paid for them.
    k
        How many rows one person may have.
    domain
        The attributes.
    """
    paid: dict[Clique, float] = defaultdict(float)
    for event in (entry.event for entry in ledger.entries):
        if isinstance(event, ParallelEvent) and event.clique is not None:
            paid[event.clique] += event.most
    groups: dict[Any, list[Measurement]] = defaultdict(list)
    rest = []
    for one in measurements:
        formed = next((clique for clique in paid if one.where and set(clique) <= set(one.where)), None)
        if formed is None:
            rest.append(one)
        else:
            groups[formed, tuple(one.where[name] for name in formed)].append(one)
    for (formed, _), some in groups.items():
        costs = [(one.query.checked(domain).l2_sensitivity(k) / one.sigma) ** 2 / 2 for one in some]
        if math.fsum(costs) > paid[formed] * _ROUNDING:
            rest += some
    return rest
