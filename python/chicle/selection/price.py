"""One price for precision: which pairs to measure, at which level and with how much noise, all at once.

A table with noise s costs ``1 / s^2`` of the budget B, at a price in records of error for each unit. Every pair alone
takes the s that minimises its expected error plus its cost, or nothing, if that is cheaper. The price at which all of
them together spend B is found by bisection: the choice then minimises the total expected error that B can buy (the
Lagrangian relaxation of that problem is exact but for the last pair).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Errors", "choose", "find_price", "grid"]


class Errors(Protocol):
    """What tables would change: `chicle.selection.expected_error.Prospects`, and whatever else has these two."""

    @property
    def unmeasured(self) -> npt.NDArray[np.float64]:
        """Error of each clique if nothing is measured of it."""

    @property
    def best(self) -> npt.NDArray[np.float64]:
        """Error of each clique at each noise."""


_STEPS, _RATIO = 40, 1.25

# All of the budget for one table, squared and inverted, is not more than the budget.
_ROUNDING = 1 + 1e-12


def grid(budget: float) -> npt.NDArray[np.float64]:
    """Return the noises to choose from: from all of the budget for one table down, each a quarter larger."""
    noises: npt.NDArray[np.float64] = budget**-0.5 * _RATIO ** np.arange(_STEPS)
    return noises


def choose(prospects: Errors, sigmas: npt.NDArray[np.float64], price: float) -> npt.NDArray[np.int64]:
    """Return the position of each clique's noise in the grid, or -1 where it is better not measured."""
    total = prospects.best + price / sigmas**2
    place = total.argmin(axis=1)
    worth = total[np.arange(len(total)), place] < prospects.unmeasured
    return np.where(worth, place, -1)


def find_price(prospects: Errors, sigmas: npt.NDArray[np.float64], budget: float) -> float:
    """Return the lowest price at which the cliques together do not ask for more than the budget."""
    low, high = -12.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        places = choose(prospects, sigmas, 10.0**middle)
        spent = (1 / sigmas[places[places >= 0]] ** 2).sum()
        low, high = (middle, high) if spent > budget * _ROUNDING else (low, middle)
    return float(10.0**high)
