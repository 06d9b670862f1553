"""Parallel composition: a ledger for each of several groups of rows that share no row, all for the price of one.

The whole price is debited at once, before anything is counted. Each group then has a ledger of its own, which can
spend no more than that price. PRIVACY.md proves that this is safe also for a person whose k rows are in several groups:
what x of k rows move is at most x/k of what all k rows move, in one group, so the costs of a person's groups add up to
at most the price.
"""

from __future__ import annotations

import math
from itertools import repeat

from chicle._checks import integer
from chicle.domain import Clique
from chicle.errors import PrivacyError
from chicle.privacy.budget import Budget
from chicle.privacy.events import ParallelEvent
from chicle.privacy.ledger import Ledger

__all__ = ["parallel_ledgers"]


def parallel_ledgers(ledger: Ledger, *, rho: float, groups: int, clique: Clique, purpose: str) -> list[Ledger]:
    """Debit rho once; return a ledger of that rho for each group of rows. The groups must share no row.

    Parameters
    ----------
    ledger
        The ledger that pays.
    rho
        The most that the releases about any one group may cost.
    groups
        How many groups there are; public.
    clique
        The attributes whose values form the groups.
    purpose
        The name of these releases in the ledger.
    """
    if not isinstance(ledger, Ledger):
        raise PrivacyError(f"a fit is paid for by a chicle.Ledger, not a {type(ledger).__name__}")
    rho *= 1 - 2.0**-40  # what is left of a budget is rounded
    event = ParallelEvent(purpose=purpose, values=integer("groups", groups, 1), clique=clique, most=rho)
    ledger.debit([event])
    budget = Budget(mu=math.sqrt(2 * rho)) if ledger.budget.accounting == "gdp" else Budget(rho=rho)
    if budget.rho > rho:  # by the last digit of the root
        budget = Budget(mu=math.nextafter(math.sqrt(2 * rho), 0.0))
    return [Ledger(budget, noise=noise) for noise in repeat(ledger.noise, groups)]
