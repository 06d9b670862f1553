"""The privacy of a release from elsewhere: what somebody else states. chicle added no noise and spent nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NoReturn

from chicle.errors import PrivacyError
from chicle.privacy.budget import Budget
from chicle.privacy.ledger import Event, Ledger

__all__ = ["StatedLedger"]


class StatedLedger(Ledger):
    """A claim in words in the place of a ledger; nothing can be spent on it, and nothing can be added up.

    Parameters
    ----------
    claim
        What is promised to whom, and by whom: chicle passes it on and can not check it.

    Examples
    --------
    >>> StatedLedger("(1, 1e-6)-DP for one household, by the bureau, report 12")
    stated elsewhere, not by chicle: (1, 1e-6)-DP for one household, by the bureau, report 12
    """

    def __init__(self, claim: str) -> None:
        if not isinstance(claim, str) or not claim.strip():
            raise PrivacyError(
                "claim must say in words which privacy these marginals have and who says so; chicle can not know it"
            )
        super().__init__(Budget(rho=1.0))
        self.claim = " ".join(claim.split())

    def __reduce__(self) -> tuple[type[StatedLedger], tuple[str]]:
        """Pickle the claim."""
        return StatedLedger, (self.claim,)

    @property
    def budget(self) -> Budget:
        """There is none."""
        self._refuse()

    @property
    def spent(self) -> float:
        """Nothing is known of it."""
        self._refuse()

    @property
    def remaining(self) -> float:
        """Nothing is left to spend."""
        return 0.0

    def check(self, events: Iterable[Event]) -> None:
        """Refuse: nothing can be paid for."""
        del events
        self._refuse()

    def debit(self, events: Iterable[Event]) -> None:
        """Refuse: nothing can be paid for."""
        del events
        self._refuse()

    def epsilon(self, delta: float | None = None) -> float:
        """Refuse: only the claim tells."""
        del delta
        self._refuse()

    def to_json(self) -> str:
        """Return the claim as JSON."""
        return json.dumps({"claim": self.claim})

    def __repr__(self) -> str:
        return f"stated elsewhere, not by chicle: {self.claim}"

    def _refuse(self) -> NoReturn:
        raise PrivacyError(
            f"this release was made elsewhere and has no ledger of chicle; it is said to be: {self.claim}"
        )
