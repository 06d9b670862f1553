"""How strong a budget is, in words, and which budgets are too weak to be used by mistake.

An epsilon above 10 or a delta of 1/(10 n) and more need an explicit `allow_weak`: at that delta, publishing the row of
one person in ten tables would keep the promise. The number of rows n is private, so before a fit delta is compared with
the number that the schema declares (``data: {rows: ...}``), or else with 10,000. After the fit the reports compare it
with the released estimate of n, which is post-processing. Comparing with n itself would tell on which side of
1/(10 delta) it lies.
"""

from __future__ import annotations

import math

from chicle.errors import PrivacyError
from chicle.privacy.budget import Budget

__all__ = ["ROWS_ASSUMED", "check_strength", "in_words", "weakness"]

ROWS_ASSUMED = 10_000
"""The number of rows with which delta is compared before a fit, where the schema declares none."""

_MOST_EPSILON = 10.0
_AT_DELTA = 1e-9  # the delta at which budgets that name none are put into words
_JUDGED_AT = 1e-6  # the delta at which they are judged


def in_words(budget: Budget) -> str:
    """Return what a budget means for one person, in words.

    Examples
    --------
    >>> in_words(Budget(epsilon=1, delta=1e-9))
    "an attacker's odds about one person change by at most a factor of 2.7, except with probability 4.5e-08"
    """
    epsilon = _epsilon(budget, _AT_DELTA)
    factor = math.exp(min(epsilon, 700.0))
    said = f"{factor:.2g}" if 2 <= factor < 100 else f"{factor:.3g}" if factor < 1_000 else f"{factor:,.0f}"
    said = f"{factor:.1e}" if factor >= 1e6 else said
    exception = _exception(budget, epsilon)
    except_for = f", except with probability {_rounded_up(exception)}" if exception else ""
    return f"an attacker's odds about one person change by at most a factor of {said}{except_for}"


def weakness(budget: Budget, rows: int | None, *, declared: bool = True) -> list[str]:
    """Return a sentence for each way in which a budget is weak for a table of so many rows; empty if it is not.

    Examples
    --------
    >>> weakness(Budget(epsilon=1, delta=1e-4), 100_000)
    ['delta 0.0001 is not below 1/(10 n), which is 1e-06 for 100,000 rows']
    """
    found = []
    epsilon = _epsilon(budget, _JUDGED_AT)
    if epsilon > _MOST_EPSILON:
        found.append(f"epsilon {epsilon:.4g} is above {_MOST_EPSILON:g}, which hardly limits what an attacker learns")
    rows_known = ROWS_ASSUMED if rows is None else max(rows, 1)
    if budget.delta is not None and budget.delta >= 1 / (10 * rows_known):
        about = "" if declared else "about "
        whose = f"{about}{rows_known:,} rows" if rows is not None else f"{ROWS_ASSUMED:,} rows, as assumed"
        found.append(f"delta {budget.delta:g} is not below 1/(10 n), which is {1 / (10 * rows_known):.2g} for {whose}")
    return found


def check_strength(budget: Budget, rows: int | None, *, allowed: bool) -> None:
    """Raise a PrivacyError for a weak budget, unless it is allowed; `rows` is the declared number of rows.

    Examples
    --------
    >>> check_strength(Budget(epsilon=20, delta=1e-9), None, allowed=False)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    chicle.errors.PrivacyError: epsilon 20 is above 10, which hardly limits what an attacker learns; ...
    """
    found = weakness(budget, rows)
    if not found or allowed:
        return
    unknown = rows is None and any(one.startswith("delta") for one in found)
    declare = ", declare about how many rows there are (`data: {rows: ...}` in the schema)" if unknown else ""
    raise PrivacyError(
        f"{' and '.join(found)}; give a smaller one{declare}, or say allow_weak=True (--allow-weak): nothing was spent"
    )


def _exception(budget: Budget, epsilon: float) -> float:
    """Return how likely it is that odds change by more than a factor of e^epsilon: more than delta.

    (epsilon, delta)-DP does not bound that probability by delta. What is spent does: under Gaussian DP the privacy loss
    is normal with mean mu^2 / 2 and variance mu^2 = 2 rho; under zCDP its moments are those of such a loss at most, and
    Markov's inequality bounds its tails. Values that only one person has may be discovered beside that.
    """
    rho, beside = budget.rho, budget.discovery or 0.0
    if not rho:  # pure: no exception
        return beside
    epsilon -= budget.pure or 0.0  # pure releases add this much to any privacy loss, and no more
    if budget.accounting == "gdp":
        mu = math.sqrt(2 * rho)
        tails = (0.5 * math.erfc((epsilon - way * rho) / (mu * math.sqrt(2))) for way in (1, -1))
        return min(math.fsum(tails) + beside, 1.0)
    return min(2 * math.exp(-((epsilon - rho) ** 2) / (4 * rho)) + beside, 1.0) if epsilon > rho else 1.0


def _rounded_up(probability: float) -> str:
    """Return a probability with two digits, rounded up."""
    if not 0 < probability < 1:
        return f"{probability:g}"
    unit = 10.0 ** (math.floor(math.log10(probability)) - 1)
    return f"{min(math.ceil(probability / unit * (1 - 1e-12)) * unit, 1.0):.2g}"


def _epsilon(budget: Budget, delta: float) -> float:
    """Return the promised epsilon, or that of a budget without delta."""
    if budget.epsilon is not None:
        return budget.epsilon
    return budget.epsilon_at(delta + (budget.discovery or 0.0))
