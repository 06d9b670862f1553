"""Private releases of integer values: check, record, then draw. The noise is exact, so the values must be integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from chicle.errors import PrivacyError
from chicle.privacy.ledger import DiscoveryEvent, GaussianEvent, LaplaceEvent, Ledger

__all__ = ["gaussian", "laplace", "release_frequent", "release_gaussian"]


def gaussian(
    values: npt.ArrayLike,
    *,
    l2_sensitivity: float,
    sigma: float,
    ledger: Ledger,
    purpose: str = "values",
) -> npt.NDArray[np.int64]:
    """Release integers with exactly rounded Gaussian noise; costs ``rho = l2_sensitivity^2 / (2 sigma^2)``.

    Neighbours: add or remove one person. The caller states by how much that moves the values in L2.

    Examples
    --------
    >>> from chicle.privacy import Budget, Ledger, calibrate
    >>> ledger = Ledger(Budget(epsilon=1, delta=1e-9))
    >>> sigma = calibrate(ledger.remaining / 4)
    >>> noisy = gaussian([120, 340], l2_sensitivity=1, sigma=sigma, ledger=ledger)
    >>> noisy.dtype, len(ledger.events)
    (dtype('int64'), 1)
    """
    exact = _integers(values)
    event = GaussianEvent(purpose=purpose, l2_sensitivity=l2_sensitivity, sigma=sigma, values=exact.size)
    (noisy,) = release_gaussian([exact], [event], ledger)
    return noisy


def laplace(
    values: npt.ArrayLike,
    *,
    l1_sensitivity: float,
    scale: float,
    ledger: Ledger,
    purpose: str = "values",
) -> npt.NDArray[np.int64]:
    """Release integers with exact discrete Laplace noise, which is ``l1_sensitivity / scale``-DP.

    Neighbours: add or remove one person. The caller states by how much that moves the values in L1.
    """
    exact = _integers(values)
    event = LaplaceEvent(purpose=purpose, l1_sensitivity=l1_sensitivity, scale=scale, values=exact.size)
    ledger.debit([event])
    return (exact.ravel() + ledger.noise.discrete_laplace([scale], [exact.size])).reshape(exact.shape)


def release_gaussian(
    values: Sequence[npt.NDArray[np.int64]], events: Sequence[GaussianEvent], ledger: Ledger
) -> list[npt.NDArray[np.int64]]:
    """Release several arrays, each as its event says, paid for together and drawn in one go."""
    if [array.size for array in values] != [event.values for event in events]:
        raise PrivacyError("each array needs an event that tells its size")
    ledger.debit(events)
    noise = ledger.noise.rounded_gaussian([event.sigma for event in events], [array.size for array in values])
    ends = np.cumsum([array.size for array in values])
    parts = np.split(noise, ends[:-1]) if len(values) else []
    return [(array.ravel() + part).reshape(array.shape) for array, part in zip(values, parts, strict=True)]


def release_frequent(counts: npt.NDArray[np.int64], event: DiscoveryEvent, ledger: Ledger) -> npt.NDArray[np.intp]:
    """Release which of the values that somebody has are frequent: their places, the most frequent first.

    Neighbours: add or remove one person, who has at most ``k = event.l2_sensitivity`` rows.
    Sensitivity: the counts of values that others have too move by at most k in L2. Values that nobody else has are
    there in one of the two tables only; that any of them reaches the threshold has probability at most `event.delta`.
    How many values there are is private too, so nothing is returned of those below the threshold.
    """
    ledger.debit([event])
    noisy = counts + ledger.noise.rounded_gaussian([event.sigma], [counts.size])
    ranked = np.argsort(-noisy, kind="stable")[: event.values]
    return ranked[noisy[ranked] >= event.threshold]


def _integers(values: npt.ArrayLike) -> npt.NDArray[np.int64]:
    array = np.asarray(values)
    if array.dtype.kind not in "ui":
        raise PrivacyError(
            f"values have dtype {array.dtype}; exact noise is for integers. Round them, or count in smaller units, "
            "before stating their sensitivity"
        )
    if array.size and (int(array.max()) >= 2**62 or int(array.min()) <= -(2**62)):
        raise PrivacyError("values reach beyond 2^62; noise could overflow")
    return array.astype(np.int64)
