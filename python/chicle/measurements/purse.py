"""The purse of a desk: what a mechanism may spend of a ledger, until its fit is over."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from chicle.errors import BudgetExceeded, PrivacyError
from chicle.privacy.events import Event
from chicle.privacy.ledger import Ledger

__all__ = ["Purse"]

_ROUNDING = 2.0**-40  # share of a budget by which the sum of its parts may exceed it


@dataclass
class Purse:
    """What a mechanism may spend of a ledger, until its desk is closed."""

    ledger: Ledger
    rho: float
    begun: float
    closed: bool = False
    begun_pure: float = 0.0

    @property
    def left(self) -> float:
        """The rho that may still be spent."""
        return self.rho - (self.ledger.spent - self.begun)

    def paying(self, rho: float) -> Ledger:
        """Return the ledger, if this much of it may still be spent here."""
        if self.closed:
            raise PrivacyError("this desk is closed: its fit is over; nothing was spent")
        if not rho <= self.left + _ROUNDING * self.rho:
            raise BudgetExceeded(
                f"rho {rho:.6g} is asked for, but only {self.left:.6g} is left here; nothing was spent"
            )
        return self.ledger

    def check(self, events: Sequence[Event]) -> None:
        """Raise `BudgetExceeded` unless these events can be paid for, here and in the ledger; nothing is spent."""
        if self.closed:
            raise PrivacyError("this desk is closed: its fit is over; nothing was spent")
        self.ledger.check(events)
        cost = math.fsum(event.rho(self.ledger.budget.accounting) for event in events)
        if not cost <= self.left + _ROUNDING * self.rho:
            raise BudgetExceeded(
                f"this release costs rho {cost:.6g}, but only {self.left:.6g} of the {self.rho:.6g} for this "
                "desk is left; nothing was spent"
            )
