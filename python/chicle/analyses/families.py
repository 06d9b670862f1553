"""Families of regressions: the mean of the outcome given the linear predictor, and how far residuals may go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["IDENTITY", "LOG", "LOGIT", "Family", "Floats"]

Floats: TypeAlias = npt.NDArray[np.floating[Any]]

_STEEPEST = 30.0


@dataclass(frozen=True)
class Family:
    """A generalised linear model with its canonical link: the score of a row is its features times its residual.

    Attributes
    ----------
    name
        ``"linear"``, ``"logit"`` or ``"poisson"``.
    """

    name: str

    @property
    def least_reach(self) -> float:
        """The least bound of residuals, where a synthetic table has hardly any."""
        return 1.0 if self.name == "poisson" else 0.05

    def mean(self, predictor: Floats) -> Floats:
        """Return the expected outcome."""
        if self.name == "linear":
            return predictor
        bounded = np.clip(predictor, -_STEEPEST, _STEEPEST)
        return np.exp(bounded) if self.name == "poisson" else 1 / (1 + np.exp(-bounded))

    def slope(self, predictor: Floats) -> Floats:
        """Return how fast the expected outcome grows with the predictor."""
        if self.name == "linear":
            return np.ones_like(predictor)
        mean = self.mean(predictor)
        return mean if self.name == "poisson" else mean * (1 - mean)


IDENTITY, LOGIT, LOG = Family("linear"), Family("logit"), Family("poisson")
