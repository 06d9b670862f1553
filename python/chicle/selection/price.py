"""One price for precision decides which pairs to measure, at which level and with how much noise.

A table with noise s uses ``1 / s^2`` of the budget B; the price of a unit is in records of error. Each pair takes the s
that minimises its expected error plus its price, or stays unmeasured if that is cheaper. Bisection finds the price at
which all pairs spend B. This choice minimises the total expected error for B (the Lagrangian relaxation of the problem,
exact but for the last pair).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Errors", "choose", "find_price", "grid"]


class Errors(Protocol):
    """Expected errors of cliques, such as `chicle.selection.expected_error.Prospects`."""

    @property
    def unmeasured(self) -> npt.NDArray[np.float64]:
        """Error of each clique if it is not measured."""

    @property
    def best(self) -> npt.NDArray[np.float64]:
        """Error of each clique at each noise."""


_STEPS, _RATIO = 40, 1.25

# Through rounding, 1 / sigma^2 of the first noise in the grid may exceed the budget a little.
_ROUNDING = 1 + 1e-12


def grid(budget: float) -> npt.NDArray[np.float64]:
    """Return the noises to choose from: the first spends all of the budget on one table, each next is 25 % larger."""
    noises: npt.NDArray[np.float64] = budget**-0.5 * _RATIO ** np.arange(_STEPS)
    return noises


def choose(prospects: Errors, sigmas: npt.NDArray[np.float64], price: float) -> npt.NDArray[np.int64]:
    """Return the position of each clique's noise in the grid, or -1 if it is better left unmeasured."""
    total = prospects.best + price / sigmas**2
    place = total.argmin(axis=1)
    worth = total[np.arange(len(total)), place] < prospects.unmeasured
    return np.where(worth, place, -1)


def find_price(prospects: Errors, sigmas: npt.NDArray[np.float64], budget: float) -> float:
    """Return the lowest price at which all cliques ask for no more than the budget."""
    low, high = -12.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        places = choose(prospects, sigmas, 10.0**middle)
        spent = (1 / sigmas[places[places >= 0]] ** 2).sum()
        low, high = (middle, high) if spent > budget * _ROUNDING else (low, middle)
    return float(10.0**high)
