"""Lower bounds on privacy loss, from how often a test of one table against its neighbour is wrong.

A test that says "the person is in the table" has two errors: alpha, where the person is not, and beta, where the person
is. A mechanism that keeps its promise bounds them from below, for every test. So errors that are too small refute the
promise, and how small they are bounds the true loss from below:

- mu of Gaussian DP: at least ``q(1 - alpha) + q(1 - beta)``, q the quantiles of a standard normal deviate (Dong, Roth
  and Su 2022). This is tight where noise is Gaussian, so it needs the fewest runs.
- epsilon at some delta: at least ``log((1 - delta - beta) / alpha)``, or the same with the errors exchanged (Kairouz,
  Oh and Viswanath 2015).

Errors are counted, so we take the upper end of their confidence intervals (Clopper and Pearson 1934, exact for every
number of runs). `one_run` bounds epsilon from a single fit with many canaries (Steinke, Nasr and Jagielski 2023).

None of this uses the accounting of `chicle.privacy`, except `Promise.epsilon`, which prints a promise at some delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from chicle.privacy import accounting

__all__ = ["Errors", "Promise", "at_most", "one_run_epsilon"]

Floats = npt.NDArray[np.float64]

_NORMAL = NormalDist()
_LEAST = 1e-300  # so that quantiles and logarithms are finite


@cache
def _log_choose(runs: int) -> Floats:
    """Return log(runs over i) for i from 0 to runs."""
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, runs + 1)))])
    chosen: Floats = logs[-1] - logs - logs[::-1]
    return chosen


def at_most(wrong: int, runs: int, luck: float) -> float:
    """Return an upper bound on a probability that is too small with probability `luck` at most (Clopper-Pearson).

    It is the largest probability at which so few events in so many runs happen with probability `luck`.

    Parameters
    ----------
    wrong, runs
        Events and independent runs.
    luck
        The probability that the bound fails.

    Examples
    --------
    >>> round(at_most(0, 1_000, 1e-9), 4), round(at_most(500, 1_000, 1e-9), 2)
    (0.0205, 0.59)
    """
    if wrong >= runs:
        return 1.0
    chosen = _log_choose(runs)[: wrong + 1]
    events = np.arange(wrong + 1)
    low, high = wrong / runs, 1.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        terms = chosen + events * math.log(max(middle, _LEAST)) + (runs - events) * math.log1p(-middle)
        top = terms.max()
        if top + math.log(np.exp(terms - top).sum()) > math.log(luck):
            low = middle
        else:
            high = middle
        if middle in (low, high) and high - low < 1e-15:
            break
    return high


@dataclass(frozen=True)
class Errors:
    """Upper bounds on both errors of a test: alpha without the person, beta with the person."""

    alpha: float
    beta: float

    @classmethod
    def of(cls, said: npt.NDArray[np.bool_], missed: npt.NDArray[np.bool_], luck: float) -> Errors:
        """Return the bounds of runs in which the test was wrong or not; both hold except with probability `luck`."""
        return cls(
            at_most(int(said.sum()), said.size, luck / 2),
            at_most(int(missed.sum()), missed.size, luck / 2),
        )

    def mu(self, delta: float = 0.0) -> float:
        """Return the least mu of Gaussian DP that allows these errors, beside an exception of probability delta."""
        right = (1 - self.alpha - delta, 1 - self.beta - delta)
        return max(0.0, sum(_NORMAL.inv_cdf(min(max(one, _LEAST), 1 - 1e-16)) for one in right))

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon that allows these errors at some delta."""
        pairs = ((self.alpha, self.beta), (self.beta, self.alpha))
        return max(0.0, *(math.log(max(1 - delta - b, _LEAST) / max(a, _LEAST)) for a, b in pairs))


@dataclass(frozen=True)
class Promise:
    """What ledgers say was spent: mu of Gaussian DP or rho of zCDP, and the delta that discovery took.

    Attributes
    ----------
    gaussian
        Whether the ledger accounts in Gaussian DP.
    rho
        What was spent: ``mu^2 / 2``, or the rho of zCDP.
    discovered
        The delta of discovered values.
    """

    gaussian: bool
    rho: float
    discovered: float = 0.0

    @property
    def mu(self) -> float:
        """The mu that was spent; rho of zCDP in the same unit, which is what Gaussian noise of that cost has."""
        return math.sqrt(2 * self.rho)

    def epsilon(self, delta: float) -> float:
        """Return the epsilon that is promised at some delta."""
        rest = delta - self.discovered
        if rest <= 0:
            return math.inf
        if self.rho <= 0:
            return 0.0
        if self.gaussian:
            return accounting.gdp_epsilon(mu=self.mu, delta=rest)
        return accounting.zcdp_epsilon(rho=self.rho, delta=rest)

    def allows(self, errors: Errors) -> bool:
        """Return whether a mechanism that keeps the promise can have errors this small."""
        if self.gaussian:
            return errors.mu(self.discovered) <= self.mu
        worst = ((errors.alpha, errors.beta), (errors.beta, errors.alpha))
        for epsilon in np.linspace(0.0, 8 * self.mu + self.rho, 200):
            delta = accounting.zcdp_delta(epsilon=float(epsilon), rho=self.rho) + self.discovered
            if any(1 - b > math.exp(epsilon) * a + delta for a, b in worst):
                return False
        return True


def one_run_epsilon(right: int, guesses: int, canaries: int, *, delta: float, luck: float) -> float:
    """Return a lower bound on epsilon at delta, from guesses about many independent canaries in one fit.

    Each canary is in the table or not, by a fair coin. Under (epsilon, delta)-DP, the probability of so many right
    guesses is at most that of a binomial with ``p = e^eps / (1 + e^eps)``, plus ``2 canaries delta`` times the largest
    ``P(right - i <= binomial < right) / i`` over i (Steinke, Nasr and Jagielski 2023, Theorem 5.2).

    Parameters
    ----------
    right, guesses, canaries
        How many guesses were right, how many were made, and how many canaries there were.
    delta
        The delta at which epsilon is bounded.
    luck
        The probability that the bound fails.

    Examples
    --------
    >>> one_run_epsilon(50, 100, 1_000, delta=0.0, luck=1e-3)
    0.0
    >>> round(one_run_epsilon(100, 100, 1_000, delta=0.0, luck=1e-3), 2)
    2.64
    """
    low, high = 0.0, 30.0
    if _chance(right, guesses, canaries, low, delta) > luck:
        return 0.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        if _chance(right, guesses, canaries, middle, delta) <= luck:
            low = middle
        else:
            high = middle
    return low


def _chance(right: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """Return an upper bound on the probability of so many right guesses under (epsilon, delta)-DP."""
    log_right, log_wrong = -math.log1p(math.exp(-epsilon)), -math.log1p(math.exp(epsilon))
    events = np.arange(guesses + 1)
    probability = np.exp(_log_choose(guesses) + events * log_right + (guesses - events) * log_wrong)
    below = np.cumsum(probability[:right][::-1])  # P(right - i <= binomial < right), for i from 1
    exception = float((below / np.arange(1, right + 1)).max(initial=0.0))
    return float(probability[right:].sum()) + 2 * canaries * delta * exception
