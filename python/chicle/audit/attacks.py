"""Attacks: statistics that tell a table with the canary from one without, and the best threshold for them.

Each attack is made from one half of the fits (`train`) and judged on the other half, so that a lower bound which it
gives holds whatever the attack is. Four attacks look at different evidence; the one that does best in training is used.

- ``tables``: the log-likelihood ratio of all noisy tables; nothing is learned.
- ``words``: choices, the schema, notes. Each word tells as much as it was more frequent in one of the worlds.
- ``numbers``: everything that is a number, by a linear discriminant with the covariance of all of them. It finds noise
  that cancels between two tables, noise that is not there, and scores.
- ``all``: the sum of the first two, and of the third over whatever is no table.

Cost: that of one covariance matrix of at most some hundred numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chicle.audit.bounds import Errors
from chicle.audit.evidence import Evidence

__all__ = ["Attack", "Test", "train"]

Floats = npt.NDArray[np.float64]
Attack = Callable[[Evidence], Floats]

_THRESHOLDS = 128
_MOST_NUMBERS = 300
_THERE = 0.9  # share of fits in which a number must be there
_RIDGE = 1e-9  # of a number's own variance: noise that cancels down to this share of it is found
_FITS_A_NUMBER = 4  # fewer fits for each number leave its covariance to luck
_OTHER = ("score ", "sum ", "fine ", "persons ", "rows", "canary ")


@dataclass(frozen=True)
class Test:
    """A test: above the threshold, an attack says that the canary is in the table."""

    __test__ = False  # pytest: this is no test class

    name: str
    attack: Attack
    threshold: float

    def errors(self, without: Evidence, with_canary: Evidence, luck: float) -> Errors:
        """Return bounds on both errors, from fits that the test has not seen."""
        return Errors.of(self.attack(without) > self.threshold, self.attack(with_canary) <= self.threshold, luck)


def train(without: Evidence, with_canary: Evidence, luck: float) -> Test:
    """Return the test that bounds mu best on these fits."""
    best: tuple[float, Test] | None = None
    for name, attack in _attacks(without, with_canary).items():
        low, high = np.sort(attack(without)), np.sort(attack(with_canary))
        for threshold in _thresholds(low, high):
            alpha = 1 - np.searchsorted(low, threshold, side="right") / low.size
            beta = np.searchsorted(high, threshold, side="right") / high.size
            found = Errors(_about(alpha, low.size, luck), _about(beta, high.size, luck)).mu()
            if best is None or found > best[0]:
                best = found, Test(name, attack, float(threshold))
    assert best is not None  # noqa: S101 - there are several attacks
    return best[1]


def _attacks(without: Evidence, with_canary: Evidence) -> dict[str, Attack]:
    words = _words(without, with_canary)
    beside = _numbers(without, with_canary, lambda name: name.startswith(_OTHER))
    return {
        "tables": lambda seen: seen.ratios,
        "words": words,
        "numbers": _numbers(without, with_canary, lambda _: True),
        "all": lambda seen: seen.ratios + words(seen) + beside(seen),
    }


def _words(without: Evidence, with_canary: Evidence) -> Attack:
    """Return the sum of the log ratios of how often each word was said; a word that was never heard tells nothing."""
    told: dict[str, tuple[npt.NDArray[np.int64], Floats]] = {}
    for name in sorted(without.words.keys() | with_canary.words.keys()):
        heard = [side.words.get(name, np.zeros(side.fits, np.int64)) for side in (without, with_canary)]
        known = np.unique(np.concatenate(heard))
        often = [np.bincount(np.searchsorted(known, one), minlength=known.size) + 1.0 for one in heard]
        told[name] = known, np.log(often[1] / often[1].sum()) - np.log(often[0] / often[0].sum())

    def attack(seen: Evidence) -> Floats:
        total = np.zeros(seen.fits)
        for name, (known, ratios) in told.items():
            words = seen.words.get(name, np.zeros(seen.fits, np.int64))
            places = np.minimum(np.searchsorted(known, words), known.size - 1)
            total += np.where(known[places] == words, ratios[places], 0.0)
        return total

    return attack


def _numbers(without: Evidence, with_canary: Evidence, wanted: Callable[[str], bool]) -> Attack:
    """Return the linear discriminant of numbers, on the scale of a log-likelihood ratio of normal deviates."""
    names = [
        name
        for name in without.numbers.keys() & with_canary.numbers.keys()
        if wanted(name) and min(np.isfinite(side.numbers[name]).mean() for side in (without, with_canary)) >= _THERE
    ]
    names = sorted(names)[:_MOST_NUMBERS]
    if not names:
        return lambda seen: np.zeros(seen.fits)
    middle = np.array([np.nanmean(np.concatenate([s.numbers[n] for s in (without, with_canary)])) for n in names])
    scale = np.array([np.nanstd(np.concatenate([s.numbers[n] for s in (without, with_canary)])) for n in names])
    scale[scale == 0] = 1.0

    def standard(seen: Evidence) -> Floats:
        rows = np.stack([seen.numbers.get(name, np.full(seen.fits, np.nan)) for name in names], axis=1)
        scaled: Floats = np.nan_to_num((rows - middle) / scale)
        return scaled

    low, high = standard(without), standard(with_canary)
    centred = np.concatenate([low - low.mean(axis=0), high - high.mean(axis=0)])
    covariance = centred.T @ centred / len(centred)
    if len(centred) < _FITS_A_NUMBER * len(names):
        covariance = np.diag(np.diag(covariance))
    weights = np.linalg.solve(covariance + _RIDGE * np.eye(len(names)), high.mean(axis=0) - low.mean(axis=0))
    level = float(weights @ (low.mean(axis=0) + high.mean(axis=0)) / 2)
    return lambda seen: standard(seen) @ weights - level


def _thresholds(low: Floats, high: Floats) -> Floats:
    """Return values between those of a statistic, evenly over their ranks, and the middle of the widest gap."""
    values = np.unique(np.concatenate([low, high]))
    if values.size < 2:
        return values
    between = (values[1:] + values[:-1]) / 2
    places = np.linspace(0, between.size - 1, _THRESHOLDS).astype(int)
    chosen: Floats = between[np.unique(np.append(places, np.argmax(np.diff(values))))]
    return chosen


def _about(share: float, runs: int, luck: float) -> float:
    """Return about the upper bound that `at_most` would give (Wilson): good enough to choose by."""
    z = math.sqrt(-2 * math.log(luck))
    return min(
        1.0,
        (share + z * z / (2 * runs) + z * math.sqrt(share * (1 - share) / runs + z * z / (4 * runs**2)))
        / (1 + z * z / runs),
    )
