"""How DPSyn splits its epsilon: the three regimes of [D20], and Laplace or Gaussian noise by the crossover of [D18].

All functions take public numbers only, and one that was released: the noisy number of records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from chicle.errors import ParameterError

__all__ = ["Asked", "Split", "laplace_has_less_noise", "laplace_shares", "needs_count", "split_2020"]

Asked = Literal["auto", "public", "one-way", "two-way"]


@dataclass(frozen=True)
class Split:
    """What each part of a run may spend, in epsilon.

    Attributes
    ----------
    regime
        ``"public"``, ``"one-way"`` or ``"two-way"``.
    count
        For the number of records.
    sizes
        For the sizes of partitions.
    rest
        For 1-ways or pairs.
    """

    regime: Literal["public", "one-way", "two-way"]
    count: float
    sizes: float
    rest: float


def needs_count(epsilon: float, k: int, asked: Asked = "auto") -> bool:
    """Return whether the number of records decides the regime: not below epsilon_2 = k/35 ([D20]).

    Examples
    --------
    >>> needs_count(0.1, 7), needs_count(0.3, 7)
    (False, True)
    """
    if asked not in get_args(Asked):
        raise ParameterError(f"regime must be one of {get_args(Asked)}, not {asked!r}")
    return asked in ("one-way", "two-way") or (asked == "auto" and epsilon >= k / 35)


def split_2020(epsilon: float, k: int, n: float | None, *, partitioned: bool = True, asked: Asked = "auto") -> Split:
    """Return the regime of [D20] and its split, by the thresholds of the paper.

    With theta = k rows of a person: epsilon_0 = theta/1400 buys the number of records N; epsilon_1 = theta/50 is the
    least for sizes, epsilon_3 = theta/25 the most; tau_1 = 1500 theta/N is the least for 1-ways, tau_2 = 6 tau_1 for
    pairs. The published program computes x with tau_1 in the two-way regime too; we follow the text, which says tau_2.

    Parameters
    ----------
    epsilon
        What may be spent.
    k
        How many rows one person may have.
    n
        The noisy number of records; None if `needs_count` says that it is not asked for.
    partitioned
        Whether sizes of partitions are bought; else 1-ways or pairs get their part.
    asked
        A regime, which is taken whatever the thresholds say; it gets at least half of epsilon beside the count.

    Examples
    --------
    >>> split_2020(0.1, 7, None)
    Split(regime='public', count=0.0, sizes=0.1, rest=0.0)
    >>> split_2020(0.19, 7, 344_497.0).regime, split_2020(0.5, 7, 344_497.0).regime
    ('public', 'two-way')
    >>> split = split_2020(0.3, 7, 350_000.0)
    >>> split.regime, round(split.count, 4), round(split.sizes, 4), round(split.rest, 4)
    ('one-way', 0.005, 0.2025, 0.0925)
    """
    if n is None or not needs_count(epsilon, k, asked):
        return Split("public", 0.0, epsilon, 0.0)
    count, low, high = k / 1400, k / 50, k / 25
    if not partitioned:
        low = high = 0.0
    tau_1 = 1500 * k / max(n, 1.0)
    tau_2 = 6 * tau_1
    regime = asked
    if asked == "auto":
        regime = (
            "public" if epsilon < count + low + tau_1 else "one-way" if epsilon < count + low + tau_2 else "two-way"
        )
    count = min(count, epsilon / 2)
    if regime == "public":
        return Split("public", count, epsilon - count, 0.0)
    least = tau_1 if regime == "one-way" else tau_2
    # A regime that is asked for may have too little for both: x is never below 0 where the thresholds decide.
    x = max(epsilon - count - low - least, 0.0)
    sizes = min(high, low + x / 2)
    if asked != "auto":
        sizes = min(sizes, (epsilon - count) / 2)
    return Split("one-way" if regime == "one-way" else "two-way", count, sizes, epsilon - count - sizes)


def laplace_shares(cells: Sequence[int], weights: Sequence[float] | None) -> list[float]:
    """Return the share of epsilon of each table.

    A weight is a precision: the variance of a table's Laplace noise is ``2 (k / epsilon_i)^2``, so it is ~ 1 / w_i at
    ``epsilon_i ~ sqrt(w_i)``, as it is with Gaussian noise at ``rho_i ~ w_i``. Without weights, the expected L1 error
    of all tables, ``sum c_i k / epsilon_i`` for c_i cells, is least at ``epsilon_i ~ sqrt(c_i)``.

    Examples
    --------
    >>> laplace_shares([1, 9], None), laplace_shares([4, 16], [9.0, 1.0])
    ([0.25, 0.75], [0.75, 0.25])
    """
    # In logarithms, since the cells of a clique may be more than a float holds.
    logs = np.array([math.log(one) for one in (cells if weights is None else weights)])
    roots = np.exp((logs - logs.max(initial=0.0)) / 2)
    shares: list[float] = (roots / roots.sum()).tolist()
    return shares


def laplace_has_less_noise(
    cells: Sequence[int], laplace: Sequence[float], gaussian: Sequence[float], *, epsilon: float, mu: float
) -> bool:
    """Return whether tables have less noise with pure epsilon than with mu of Gaussian DP ([D18] 2.5 and figure 2).

    Compared is the sum over tables of cells times the standard deviation, ``sqrt(2) / (epsilon l_i)`` and
    ``1 / (mu sqrt(g_i))``, with the shares l of epsilon and g of rho. For m equal tables Laplace wins below
    ``m = epsilon^2 / (2 mu^2)``: 15 at epsilon 1 and delta 1e-9 with exact accounting of the Gaussian noise.

    Examples
    --------
    >>> from chicle.privacy import Budget
    >>> mu = (2 * Budget(epsilon=1, delta=1e-9).rho) ** 0.5
    >>> [laplace_has_less_noise([9] * m, [1 / m] * m, [1 / m] * m, epsilon=1, mu=mu) for m in (15, 16)]
    [True, False]
    """
    logs = np.array([math.log(one) for one in cells])
    sizes = np.exp(logs - logs.max(initial=0.0))
    with_laplace = math.sqrt(2) / epsilon * float((sizes / np.asarray(laplace)).sum())
    with_gaussian = float((sizes / np.sqrt(np.asarray(gaussian))).sum()) / mu
    return with_laplace < with_gaussian
