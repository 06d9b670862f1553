"""The primitives: releases of private integers, each debited to a ledger before its noise is drawn.

Noise is exact, so values must be integers. Every primitive gets its noise from `_pay`, which debits first: nothing can
be released without being paid for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from chicle._checks import integer
from chicle.errors import PrivacyError
from chicle.privacy.events import DiscoveryEvent, Event, ExponentialEvent, GaussianEvent, LaplaceEvent, PureEvent
from chicle.privacy.ledger import Ledger
from chicle.privacy.noise import MAX_SCALE, MIN_SCALE, SystemNoise, check_scale

__all__ = [
    "exponential",
    "gaussian",
    "laplace",
    "release_choice",
    "release_frequent",
    "release_gaussian",
    "release_pure",
]


def gaussian(
    values: npt.ArrayLike,
    *,
    l2_sensitivity: float,
    sigma: float,
    ledger: Ledger,
    purpose: str = "values",
) -> npt.NDArray[np.int64]:
    """Release integers with exactly rounded Gaussian noise; costs ``rho = l2_sensitivity^2 / (2 sigma^2)``.

    Neighbours: add or remove one person. The caller states how far that can move the values, in L2.

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

    Neighbours: add or remove one person. The caller states how far that can move the values, in L1.
    """
    exact = _integers(values)
    event = LaplaceEvent(purpose=purpose, l1_sensitivity=l1_sensitivity, scale=scale, values=exact.size)
    noise = _pay([event], ledger)
    return (exact.ravel() + noise.discrete_laplace([scale], [exact.size])).reshape(exact.shape)


def exponential(
    scores: npt.ArrayLike, *, sensitivity: int, epsilon: float, ledger: Ledger, purpose: str = "choice"
) -> int:
    """Choose a candidate of high score by the exponential mechanism, and return its position.

    The probability of each candidate is exactly proportional to ``exp(epsilon * score / (2 * sensitivity))`` ([A]
    Definition 6).
    Neighbours: add or remove one person. The caller states how far that can move any one score.

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
    """Release the position of a high score by the exponential mechanism, at the epsilon of its event.

    If the scale is larger than the sampler accepts, scores are halved and rounded down until it is not. This is safe:
    the scores of both neighbours are rounded alike, so they still differ by at most the halved sensitivity, rounded up.

    Parameters
    ----------
    scores
        One integer score for each candidate.
    sensitivity
        How far one person can move any one score.
    event
        The choice, as the ledger will record it.
    ledger
        What pays.
    keeps
        A public rule: whether each of the given positions is allowed. Only an allowed candidate is released, and at
        least one must be allowed. Asking about every candidate can be slow. So a candidate is first drawn among all; if
        it is allowed, it is released. Otherwise it is discarded, and another is drawn among the allowed ones. If the
        first draw has probabilities p, and the allowed candidates A have p(A) in total, then an allowed candidate i is
        released with probability ``p_i + (1 - p(A)) p_i / p(A) = p_i / p(A)``: exactly the exponential mechanism among
        the allowed candidates.
    """
    if scores.size != event.values or not scores.size:
        raise PrivacyError("a choice needs a score for each of its candidates, and at least one candidate")
    sensitivity = integer("sensitivity", sensitivity, 1)
    while (scale := _choice_scale(sensitivity, event.epsilon)) > MAX_SCALE:
        if sensitivity == 1:
            raise PrivacyError(f"epsilon {event.epsilon:.3g} is too small for an exact choice; nothing was spent")
        scores, sensitivity = scores >> 1, -(-sensitivity // 2)
    noise = _pay([event], ledger)
    drawn = _choose(scores, scale, noise)
    if keeps is None or keeps([drawn])[0]:
        return drawn
    allowed = np.flatnonzero(keeps(range(scores.size)))
    if not allowed.size:
        raise PrivacyError("a choice needs a candidate that keeps its rule")
    return int(allowed[_choose(scores[allowed], scale, noise)])


def _choose(scores: npt.NDArray[np.int64], scale: float, noise: SystemNoise) -> int:
    return noise.choose((scores.max() - scores).astype(np.uint64), scale)


def _choice_scale(sensitivity: int, epsilon: float) -> float:
    """Return the difference of scores at which the odds are e to 1, rounded up."""
    return max(math.nextafter(2 * sensitivity / epsilon, math.inf), MIN_SCALE)


def release_gaussian(
    values: Sequence[npt.NDArray[np.int64]],
    events: Sequence[GaussianEvent],
    ledger: Ledger,
    *,
    weights: Sequence[npt.NDArray[np.float64]] | None = None,
) -> list[npt.NDArray[np.int64]]:
    """Release several arrays with the Gaussian noise of their events: one debit for all, one draw for all.

    With weights, each value has noise of its event's sigma times its weight, and the sensitivity of the event is that
    of the values divided by their weights.
    """
    sizes = [array.size for array in values]
    if sizes != [event.values for event in events]:
        raise PrivacyError("each array needs an event of its size")
    if weights is not None:
        if [array.shape for array in values] != [array.shape for array in weights]:
            raise PrivacyError("each value needs a weight")
        sigmas = [event.sigma * array.ravel() for event, array in zip(events, weights, strict=True)]
        each = np.concatenate(sigmas) if sigmas else np.empty(0)
        for sigma in (each.min(initial=1.0), each.max(initial=1.0)):
            check_scale("sigma", float(sigma))
        drawn = _pay(events, ledger).rounded_gaussian(each.tolist(), [1] * each.size)
        parts = np.split(drawn, np.cumsum(sizes)[:-1]) if len(values) else []
        return [(array.ravel() + part).reshape(array.shape) for array, part in zip(values, parts, strict=True)]
    noise = _pay(events, ledger).rounded_gaussian([event.sigma for event in events], sizes)
    parts = np.split(noise, np.cumsum(sizes)[:-1]) if len(values) else []
    return [(array.ravel() + part).reshape(array.shape) for array, part in zip(values, parts, strict=True)]


def release_pure(values: npt.NDArray[np.int64], event: PureEvent, ledger: Ledger) -> npt.NDArray[np.int64]:
    """Release an array with the exact discrete Laplace noise of its event, which costs epsilon and no rho."""
    if values.size != event.values:
        raise PrivacyError("an array needs an event of its size")
    noise = _pay([event], ledger)
    return (values.ravel() + noise.discrete_laplace([event.scale], [values.size])).reshape(values.shape)


def release_frequent(counts: npt.NDArray[np.int64], event: DiscoveryEvent, ledger: Ledger) -> npt.NDArray[np.intp]:
    """Release which values are frequent: their positions, most frequent first.

    Neighbours: add or remove one person, who has at most ``k = event.l2_sensitivity`` rows.
    Sensitivity: the counts of values that others have too move by at most k in L2. Values that only this person has
    occur in one of the two tables only; that any of them reaches the threshold has probability at most `event.delta`.
    How many values there are is private too, so nothing is returned about those below the threshold.
    """
    noisy = counts + _pay([event], ledger).rounded_gaussian([event.sigma], [counts.size])
    ranked = np.argsort(-noisy, kind="stable")[: event.values]
    return ranked[noisy[ranked] >= event.threshold]


def _pay(events: Sequence[Event], ledger: Ledger) -> SystemNoise:
    """Debit events, then return the noise that they pay for: the one way from private values to noise."""
    if not isinstance(ledger, Ledger):
        raise PrivacyError(f"a release is paid for by a chicle.Ledger, not a {type(ledger).__name__}")
    ledger.debit(events)
    return ledger.noise


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
