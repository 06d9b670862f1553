"""Private releases of integer values: check, record, then draw. The noise is exact, so the values must be integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from chicle._checks import integer
from chicle.errors import PrivacyError
from chicle.privacy.ledger import DiscoveryEvent, ExponentialEvent, GaussianEvent, LaplaceEvent, Ledger
from chicle.privacy.noise import MAX_SCALE, MIN_SCALE

__all__ = ["exponential", "gaussian", "laplace", "release_choice", "release_frequent", "release_gaussian"]


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


def exponential(
    scores: npt.ArrayLike, *, sensitivity: int, epsilon: float, ledger: Ledger, purpose: str = "choice"
) -> int:
    """Choose one of several by the exponential mechanism, exactly: the position of a high score.

    The probability of each is proportional to ``exp(epsilon * score / (2 * sensitivity))`` ([A] Definition 6).
    Neighbours: add or remove one person. The caller states by how much that moves any one score.

    Examples
    --------
    >>> from chicle.privacy import Budget, Ledger, calibrate_choice
    >>> ledger = Ledger(Budget(epsilon=1, delta=1e-9))
    >>> epsilon = calibrate_choice(ledger.remaining, accounting="gdp")
    >>> exponential([0, 5_000, 100], sensitivity=1, epsilon=epsilon, ledger=ledger)
    1
    """
    exact = _integers(scores).ravel()
    event = ExponentialEvent(purpose=purpose, epsilon=epsilon, values=exact.size)
    return release_choice(exact, sensitivity, event, ledger)


def release_choice(
    scores: npt.NDArray[np.int64],
    sensitivity: int,
    event: ExponentialEvent,
    ledger: Ledger,
    keeps: Callable[[Sequence[int]], Sequence[bool]] | None = None,
) -> int:
    """Release the position of a high score, as its event says.

    Where the scale is larger than the sampler takes, scores lose binary digits: both tables' scores are rounded down
    alike, and differ by no more than the sensitivity, rounded up.

    `keeps` tells of positions whether they keep a public rule; then the choice is the exponential mechanism among those
    that do, of which there must be one. It is dear to ask of all: a choice among all is drawn, and taken if it keeps
    the rule; if not, it is forgotten and another is drawn among those that do. With the chances p of a choice among
    all, p(F) of them for those that keep the rule, position i of those comes out with
    ``p_i + (1 - p(F)) p_i / p(F) = p_i / p(F)``,
    just as it would with the same scores and scale if only those had been asked about.
    """
    if scores.size != event.values or not scores.size:
        raise PrivacyError("a choice needs a score for each of its candidates, and at least one candidate")
    sensitivity = integer("sensitivity", sensitivity, 1)
    while (scale := _choice_scale(sensitivity, event.epsilon)) > MAX_SCALE:
        if sensitivity == 1:
            raise PrivacyError(f"epsilon {event.epsilon:.3g} is too small for an exact choice; nothing was spent")
        scores, sensitivity = scores >> 1, -(-sensitivity // 2)
    ledger.debit([event])
    chosen = _choose(scores, scale, ledger)
    if keeps is None or keeps([chosen])[0]:
        return chosen
    kept = np.flatnonzero(keeps(range(scores.size)))
    if not kept.size:
        raise PrivacyError("a choice needs a candidate that keeps its rule")
    return int(kept[_choose(scores[kept], scale, ledger)])


def _choose(scores: npt.NDArray[np.int64], scale: float, ledger: Ledger) -> int:
    return ledger.noise.choose((scores.max() - scores).astype(np.uint64), scale)


def _choice_scale(sensitivity: int, epsilon: float) -> float:
    """Return by how much scores must differ for the odds to be e to 1, rounded up."""
    return max(math.nextafter(2 * sensitivity / epsilon, math.inf), MIN_SCALE)


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
