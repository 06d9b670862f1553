"""With which noise the sizes of partitions are bought, decided before any data is seen.

Gaussian noise costs rho; Laplace noise costs a part of epsilon that the budget sets aside when the ledger is opened
(`chicle.Budget(pure=...)`). A sliver of rho is enough where partitions are large, or where all their tables help. At
small budgets most of the budget would go into the sizes: there Laplace noise is up to four times smaller, and it is
chosen if more rho is then left for everything else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from chicle.domain import Domain
from chicle.partition.declared import Partition
from chicle.privacy.budget import Budget, budget_shares

__all__ = ["SIZES", "SizesBudget", "sizes_budget"]

SIZES = 0.01
"""The share of rho that buys the sizes of partitions where nothing more is needed."""

_GOAL = 0.05  # of the mean size of a partition: the deviation of noise to aim at
_MOST = 0.7  # of the budget
_MOST_TRUSTED = 0.95  # of epsilon, where public rows tell the rest
_OTHERS = 0.4  # share of rho that tables by partition get at least about; their sums are sizes too


@dataclass(frozen=True)
class SizesBudget:
    """What buys the sizes.

    Attributes
    ----------
    share
        The share of rho, for Gaussian noise; 0 if there is pure epsilon.
    pure
        The epsilon, for Laplace noise; 0 for Gaussian noise.
    """

    share: float = SIZES
    pure: float = 0.0

    def apply(self, budget: Budget) -> Budget:
        """Return a budget that sets the pure epsilon aside."""
        aside = self.pure and budget.epsilon is not None
        return Budget(**{**budget.promise(), "pure": self.pure}) if aside else budget


def sizes_budget(
    partition: Partition,
    domain: Domain,
    budget: Budget,
    *,
    k: int,
    rows: int | None,
    pure_left: float | None = None,
    trusted: bool = False,
) -> SizesBudget:
    """Return with which noise to buy the sizes; nothing here depends on the data.

    Parameters
    ----------
    partition
        What forms partitions.
    domain
        The attributes.
    budget
        What a fit may spend.
    k
        How many rows one person may have.
    rows
        About how many rows there are, where that is declared.
    pure_left
        What is left of the pure epsilon of the ledger that pays, if it is open already: nothing else can be used then.
    trusted
        Whether there are public rows that are vouched for: sizes are what they cannot tell.

    Examples
    --------
    >>> domain, budget = Domain({"county": 240, "age": 20, "sex": 2}), Budget(epsilon=0.1, delta=1e-10)
    >>> round(sizes_budget(Partition(("county",)), domain, budget, k=7, rows=340_000).pure, 4)
    0.07
    >>> sizes_budget(Partition(("county",)), domain, budget, k=1, rows=34_000_000)
    SizesBudget(share=0.01, pure=0.0)
    """
    if pure_left is not None:
        return SizesBudget(0.0, pure_left) if pure_left > 0 else SizesBudget()
    if partition.pure is not None:
        pure = partition.pure * (budget.epsilon or 0.0)
        return SizesBudget(0.0, pure) if pure else SizesBudget()
    if rows is None or budget.epsilon is None:
        return SizesBudget()
    rest = list(partition.rest(domain).values())
    shares = budget_shares(rest)
    precision = SIZES + _OTHERS * math.fsum(share / size for share, size in zip(shares, rest, strict=True))
    goal = _GOAL * rows / domain.cells(partition.names)
    if k / math.sqrt(2 * budget.rho * precision) <= goal:
        return SizesBudget()
    share = min(max(k**2 / (2 * budget.rho * goal**2), SIZES), 1.0)
    pure = min(math.sqrt(2) * k / goal, (_MOST_TRUSTED if trusted else _MOST) * budget.epsilon)
    left = Budget(**{**budget.promise(), "pure": pure}).rho
    if share > _MOST or left > (1 - share) * budget.rho:
        return SizesBudget(0.0, pure)
    return SizesBudget(share)
