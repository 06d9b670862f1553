"""Whether a ledger paid for the tables of partitions that were fitted by themselves: for the check of a file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from chicle.domain import Domain
from chicle.errors import ArtefactError
from chicle.measurements.measurement import Measurement
from chicle.privacy.events import ParallelEvent
from chicle.privacy.guarantee import Guarantee

__all__ = ["check_groups_paid"]

_ROUNDING = 1 + 1e-9


def check_groups_paid(
    measurements: Sequence[Measurement], ledger: Guarantee, k: int, domain: Domain
) -> list[Measurement]:
    """Return the measurements that are not of groups paid for together; raise unless these cost no more than was paid.

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
    paid: dict[frozenset[str], float] = defaultdict(float)
    for event in (entry.event for entry in ledger.entries):
        if isinstance(event, ParallelEvent) and event.clique is not None:
            paid[frozenset(event.clique)] += event.most
    costs: dict[tuple[tuple[str, int], ...], float] = defaultdict(float)
    rest = []
    for one in measurements:
        if not one.where or frozenset(one.where) not in paid:
            rest.append(one)
            continue
        sensitivity = one.query.checked(domain).l2_sensitivity(k)
        costs[tuple(sorted(one.where.items()))] += sensitivity**2 / (2 * one.sigma**2)
    for group, cost in costs.items():
        if cost > paid[frozenset(name for name, _ in group)] * _ROUNDING:
            raise ArtefactError(f"its measurements of the group {dict(group)} are not in its ledger")
    return rest
