"""What a ledger holds for a fit that runs, and the sums that never fall below the truth."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from chicle.privacy.events import Event

__all__ = ["Hold", "Paid", "total_up"]

Paid = tuple[Event, float]
"""An event and its cost in rho."""


@dataclass
class Hold:
    """What is held for one fit: rho, delta and pure epsilon, what they are for, and what was drawn of them."""

    title: str
    rho: float
    delta: float
    pure: float = 0.0
    drawn: list[Paid] = field(default_factory=list)

    @property
    def left(self) -> tuple[float, float, float]:
        """The rho, the delta and the pure epsilon that were not drawn, rounded up."""
        return (
            _rest_up(self.rho, (cost for _, cost in self.drawn)),
            _rest_up(self.delta, (event.delta for event, _ in self.drawn)),
            _rest_up(self.pure, (event.pure for event, _ in self.drawn)),
        )


def _rest_up(held: float, drawn: Iterable[float]) -> float:
    return _up(max(math.fsum((held, *(-one for one in drawn))), 0.0))


def total_up(costs: Iterable[float]) -> float:
    """Return a sum, rounded up."""
    return _up(math.fsum(costs))


def _up(total: float) -> float:
    return math.nextafter(total, math.inf) if total else 0.0
