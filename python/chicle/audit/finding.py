"""A finding: what was promised, and what was proved to be lost."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["DELTA", "LUCK", "Finding"]

LUCK = 1e-9
"""The probability that an audit of a correct mechanism says that its promise is broken."""

DELTA = 0.01
"""The delta at which epsilons are shown: a large one, because counted errors do not show what is rare."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What an audit of one case found.

    Attributes
    ----------
    case, about
        What was audited.
    bug
        The bug that was planted, if one was.
    fits
        How many fits there were, of both tables together.
    mu, epsilon
        What the ledgers say was spent: mu of Gaussian DP, and epsilon at `DELTA`.
    least_mu, least_epsilon
        Lower bounds on what was really lost, both at the confidence of `LUCK`.
    by
        The attack that found most.
    broken
        Whether the promise is refuted.
    """

    case: str
    about: str
    bug: str | None
    fits: int
    mu: float
    epsilon: float
    least_mu: float
    least_epsilon: float
    by: str
    broken: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        return asdict(self)
