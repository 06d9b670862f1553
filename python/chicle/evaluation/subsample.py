"""How many rows of the real table would give the same workload error: [A] Appendix C.

Draw K rows of the real table with replacement. A cell with the share p of the rows then deviates by ([A] Theorem 7)

    E|p - k/K| = (2/K) s C(K, s) p^s (1 - p)^(K - s + 1),  s = ceil(K p).

The sum over cells and cliques falls as K grows, so bisection finds the K of a given error. K / N is the fraction: 0.2
says that the table is as wrong as a random fifth of the data. Cells of equal count deviate equally, so a sum costs
O(number of different counts).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from chicle.evaluation.marginals import Marginals

__all__ = ["Subsampling", "mean_deviation"]

_MOST = 2**50
_SMALL = 16

Floats = npt.NDArray[np.float64]


def mean_deviation(shares: Floats, draws: int) -> Floats:
    """Return E|p - k/K| for a binomial k of K draws, for every share p; [A] Lemma 2.

    Examples
    --------
    >>> mean_deviation(np.array([0.5, 1.0]), 2).round(12).tolist()
    [0.25, 0.0]
    """
    s = np.ceil(draws * shares)
    inside = (shares > 0) & (shares < 1) & (s <= draws)
    p, s = shares[inside], s[inside]
    log_ways = _log_factorial(np.array(float(draws))) - _log_factorial(s) - _log_factorial(draws - s)
    log_chance = s * np.log(p) + (draws - s + 1) * np.log1p(-p)
    result = np.zeros(len(shares))
    result[inside] = 2 / draws * s * np.exp(log_ways + log_chance)
    return result


@dataclass(eq=False)
class Subsampling:
    """The expected workload error of a subsample, as a function of its size.

    Parameters
    ----------
    rows
        How many rows the real table has.
    weights
        The weight of each clique.
    """

    rows: int
    weights: Sequence[float]
    _cells: dict[int, float] = field(default_factory=dict)

    def note(self, marginals: Marginals) -> None:
        """Add the cells of one clique of the real table, the first of the marginals."""
        counts = marginals.counts[0]
        counts, times = np.unique(counts[counts > 0], return_counts=True)  # an empty cell stays empty
        weight = self.weights[marginals.position]
        for count, cells in zip(counts.tolist(), times.tolist(), strict=True):
            self._cells[count] = self._cells.get(count, 0.0) + weight * cells

    def error(self, draws: int) -> float:
        """Return the expected workload error of `draws` rows drawn with replacement."""
        shares = np.array(list(self._cells), dtype=np.float64) / self.rows
        weights = np.array(list(self._cells.values()))
        return float(weights @ mean_deviation(shares, draws)) / len(self.weights)

    def fraction(self, error: float) -> float:
        """Return the least K / N whose expected error is at most `error`; infinite if there is none."""
        if error <= 0:
            return float("inf")
        low, high = 0, 1
        while self.error(high) > error:
            low, high = high, 2 * high
            if high > _MOST:
                return float("inf")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.error(middle) <= error else (middle, high)
        return high / self.rows


def _log_factorial(values: Floats) -> Floats:
    """Return log(n!), by Stirling's series where it is accurate to the last digits."""
    table = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, _SMALL)))])
    n = np.maximum(values, 1.0)
    series = 1 / (12 * n) - 1 / (360 * n**3) + 1 / (1260 * n**5) - 1 / (1680 * n**7)
    large = n * np.log(n) - n + np.log(2 * np.pi * n) / 2 + series
    small = table[np.minimum(values, _SMALL - 1).astype(np.int64)]
    result: Floats = np.where(values < _SMALL, small, large)
    return result
