"""Paying a fit in two currencies: epsilon for Laplace noise, rho for Gaussian noise ([D20] composes them so).

Laplace releases come first. As long as nothing has cost rho, the ledger can set more epsilon aside for them, also by
what earlier Laplace releases said (PRIVACY.md, "Epsilon beside rho"). Where that cannot be (a budget in rho or mu, a
ledger that paid for something in rho before, analyses that need rho after), every release gets Gaussian noise, and the
same part of rho that it would have had of epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence

from chicle.measurements.desk import Desk
from chicle.measurements.measurement import Measurement
from chicle.privacy.budget import Budget
from chicle.query import Query

__all__ = ["Paying"]

_DELTA = 1e-9  # at which a budget in rho or mu is read as an epsilon
_ALL = 1 - 2.0**-40  # all of epsilon, but for rounding


class Paying:
    """What a fit pays at a desk.

    Parameters
    ----------
    desk
        The desk, before anything is released at it.
    budget
        What the fit may spend.

    Attributes
    ----------
    epsilon
        What the fit may spend, in epsilon; of a budget in rho or mu, what that is at delta 1e-9.
    pure
        Whether Laplace releases are paid in epsilon.
    """

    def __init__(self, desk: Desk, budget: Budget) -> None:
        self._budget, self._rho, self._spent = budget, desk.left, 0.0
        self.epsilon = budget.epsilon_at(_DELTA) if budget.epsilon is None else budget.epsilon
        self.pure = desk.can_set_aside(budget)

    def laplace(
        self, desk: Desk, queries: Sequence[Query], epsilon: float, shares: Sequence[float], purpose: str
    ) -> list[Measurement]:
        """Release answers with Laplace noise that cost epsilon in all; or Gaussian, at the same part of rho."""
        if not self.pure:
            rho = min(self._rho * epsilon / self.epsilon, desk.left)
            return desk.measure(queries, rho=rho, shares=shares, purpose=purpose)
        self._spent += epsilon
        if self._spent >= self.epsilon * _ALL:
            self._spent = self.epsilon  # nothing is left for rho: the fit is pure
        desk.set_aside(self._spent, self._budget)
        left = self._spent - desk.pure
        return [
            desk.measure_pure(query, epsilon=left * share * _ALL, purpose=purpose)
            for query, share in zip(queries, shares, strict=True)
        ]
