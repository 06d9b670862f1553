"""Noisy sums over rows of a bounded vector that each row gives by itself: what declared analyses buy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle.errors import ParameterError

__all__ = ["RowSums"]


@dataclass(frozen=True, eq=False)
class RowSums:
    """Noisy sums that were bought for a declared analysis.

    Attributes
    ----------
    of
        The analysis, in words.
    kind
        ``"score"`` or ``"products"``; see `chicle.analyses.sums`.
    values
        Noisy sums, in integer units.
    sigma
        Standard deviation of the noise of each sum, in the same units.
    at
        The coefficients of the features at which a score was taken: public when it was bought. Zeros for products.
    units
        What one unit of each sum is, as a score or as a product of features.
    protected
        Whether a ledger paid for them with real noise.
    """

    of: str
    kind: str
    values: npt.NDArray[np.int64]
    sigma: float
    at: npt.NDArray[np.floating[Any]]
    units: npt.NDArray[np.floating[Any]]
    protected: bool = True

    def __post_init__(self) -> None:
        if not self.values.shape == self.at.shape == self.units.shape or self.values.ndim != 1:
            raise ParameterError("sums of rows need as many coefficients and units as values")
        for array in (self.values, self.at, self.units):
            array.flags.writeable = False

    @property
    def estimates(self) -> npt.NDArray[np.floating[Any]]:
        """The sums of the features: unbiased, but for rounding."""
        return self.values * self.units

    def __repr__(self) -> str:
        mark = "" if self.protected else "NOT PRIVATE: "
        return f"{mark}RowSums, {self.kind} of {self.of!r}: {self.values.size} values, sigma {self.sigma:.4g}"
