"""The accounting of a ledger once more, by other means than `chicle.privacy.accounting`.

Costs are recomputed from events: sensitivity, noise, candidates. Then a promised (epsilon, delta) is confirmed in two
ways: in decimal arithmetic of some sixty digits, with the normal distribution from its power series, and by Google's
dp-accounting, where it is installed. Neither shares code with the library's own accounting.

Costs are compared up to `SLACK`, a relative 1e-9, which is far above rounding and far below anything that matters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, getcontext, localcontext
from statistics import NormalDist

from chicle.privacy.events import (
    DiscoveryEvent,
    Event,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    PureEvent,
)

__all__ = ["SLACK", "cost_of", "delta_of", "discovered_by", "epsilon_by_dp_accounting", "pure_epsilon_of"]

SLACK = 1e-9


def cost_of(event: Event, accounting: str) -> float:
    """Return the rho of an event: mu^2 / 2 where the accounting is Gaussian DP, else the rho of zCDP."""
    if isinstance(event, (GaussianEvent, DiscoveryEvent)):
        return (event.l2_sensitivity / event.sigma) ** 2 / 2
    if isinstance(event, ParallelEvent):
        return event.most
    if isinstance(event, PureEvent):
        return 0.0
    if isinstance(event, LaplaceEvent):
        epsilon = event.l1_sensitivity / event.scale
        return _pure_mu(epsilon) ** 2 / 2 if accounting == "gdp" else epsilon**2 / 2
    if isinstance(event, ExponentialEvent):
        return _pure_mu(event.epsilon / 2) ** 2 / 2 if accounting == "gdp" else event.epsilon**2 / 8
    raise TypeError(type(event).__name__)


def _pure_mu(epsilon: float) -> float:
    """Return the mu at which the trade-off curve of Gaussian DP passes the kink of epsilon-DP."""
    if epsilon < 1e-4:
        return epsilon * math.sqrt(math.pi / 2)  # to a relative epsilon^2
    return -2 * NormalDist().inv_cdf(1 / (1 + math.exp(epsilon)))


def pure_epsilon_of(events: Sequence[Event]) -> float:
    """Return the epsilon that pure releases took, beside rho."""
    return math.fsum(event.l1_sensitivity / event.scale for event in events if isinstance(event, PureEvent))


def discovered_by(events: Sequence[Event]) -> float:
    """Return the probability that discoveries release a value which only one person has, at most."""
    total = 0.0
    for event in events:
        if isinstance(event, DiscoveryEvent):
            rows = event.l2_sensitivity
            one = math.erfc((event.threshold - rows - 0.5) / event.sigma / math.sqrt(2)) / 2
            each = rows * math.erfc((event.threshold - 1.5) / event.sigma / math.sqrt(2)) / 2
            total += max(one, each)
    return total


def delta_of(epsilon: float, rho: float, accounting: str) -> float:
    """Return the delta at which so much rho keeps epsilon, in decimal arithmetic."""
    if rho <= 0:
        return 0.0
    if accounting == "gdp":
        return _gaussian_delta(epsilon, math.sqrt(2 * rho))
    if accounting == "zcdp-basic":
        return math.exp(-((max(epsilon - rho, 0.0)) ** 2) / (4 * rho))
    return _zcdp_delta(epsilon, rho)


def _gaussian_delta(epsilon: float, mu: float) -> float:
    """Return Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2)."""
    with localcontext() as context:
        context.prec = 60 + int((epsilon / mu + mu) ** 2 / 2)
        e, m = Decimal(epsilon), Decimal(mu)
        return float(_below(m / 2 - e / m) - e.exp() * _below(-e / m - m / 2))


def _below(x: Decimal) -> Decimal:
    """Return the probability that a normal deviate is below x, by the power series of its distribution."""
    if x > 0:
        return 1 - _below(-x)
    term, total, n = -x, -x, 0
    while abs(term) > Decimal(10) ** -(_precision() + 2):
        n += 1
        term *= x * x / (2 * n + 1)
        total += term
    density = (-x * x / 2).exp() / (2 * _pi()).sqrt()
    return Decimal(1) / 2 - density * total


def _precision() -> int:
    return getcontext().prec


def _pi() -> Decimal:
    """Return pi to the precision in force (Machin)."""

    def arctan(n: int) -> Decimal:
        power, total, k, square = Decimal(1) / n, Decimal(0), 0, n * n
        while power > Decimal(10) ** -(_precision() + 3):
            total += power / (2 * k + 1) * (-1) ** k
            power, k = power / square, k + 1
        return total

    return 4 * (4 * arctan(5) - arctan(239))


def _zcdp_delta(epsilon: float, rho: float) -> float:
    """Return exp((a-1)(a rho - eps)) / (a-1) (1 - 1/a)^a at the best order a ([A] Proposition 4); any a is valid."""

    def log_delta(log_x: float) -> float:
        x = math.exp(log_x)
        return x * ((1 + x) * rho - epsilon) - (1 + x) * math.log1p(1 / x) - log_x

    low, high = -30.0, math.log1p((1 + epsilon) / rho) + 5
    while high - low > 1e-9:
        first, second = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, second) if log_delta(first) < log_delta(second) else (first, high)
    return math.exp(min(log_delta((low + high) / 2), 0.0))


def epsilon_by_dp_accounting(delta: float, events: Sequence[Event], accounting: str) -> float | None:
    """Return the epsilon that dp-accounting gives for these events at delta; None where it is not installed.

    Gaussian noise composes to one Gaussian mechanism, of which dp-accounting has the exact curve. For zCDP its Renyi
    accountant composes and converts. Choices and Laplace noise count as the ledger counts them (`cost_of`): there only
    composition and conversion are dp-accounting's.
    """
    try:
        import dp_accounting  # noqa: PLC0415 - it is optional
        from dp_accounting.rdp import RdpAccountant  # noqa: PLC0415
    except ImportError:
        return None
    costs = [cost_of(event, accounting) for event in events]
    if not (rho := math.fsum(costs)):
        return 0.0
    if accounting == "gdp":
        return float(dp_accounting.get_epsilon_gaussian(1 / math.sqrt(2 * rho), delta))
    best = math.sqrt(-math.log(delta) / rho)
    accountant = RdpAccountant([1 + best * 10 ** (i / 500) for i in range(-500, 500)])
    for cost in costs:
        accountant.compose(dp_accounting.ZCDpEvent(cost))
    return float(accountant.get_epsilon(delta))
