"""Ordered columns as an analyst sees them: mean, SD, quantiles, the share of zeros and the earth mover's distance.

A marginal can be close in total variation while a few far rows double the SD. Numbers stand for their bins (the middle
of each), dates and ordered labels for the positions of their codes; missing values are left out.

- Earth mover's distance: the sum over the axis of |F - G|, with F and G the cumulative shares: by how much each row
  moves on average. It is divided by the real SD, so that columns can be compared.
- The error of a mean is relative to the real mean if no value is negative, else to the real SD.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from chicle.columns import Column
from chicle.columns.times import Dated
from chicle.evaluation.contest import Contest
from chicle.evaluation.result import Amounts, AmountSummary, Score

__all__ = ["amount_scores", "amounts_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def amounts_of(contest: Contest) -> tuple[Amounts, ...]:
    """Return how each ordered column came out, in domain order; those of one value are left out."""
    found = []
    for name in contest.real.domain:
        column = contest.schema.columns[name]
        if not column.ordered or column.size < 2:
            continue
        places, coded = _places(column)
        counts = [
            np.bincount(one[name], minlength=column.size)[: column.size] for one in (contest.real, *contest.others)
        ]
        if not all(each.sum() for each in counts):
            continue
        real, *others = counts
        sizes = summary(real, places, real), *(summary(each, places, real) for each in others)
        found.append(Amounts(name, coded, bool(places[0] >= 0), *sizes))
    return tuple(found)


def summary(counts: Ints, places: Floats, real: Ints) -> AmountSummary:
    """Return the figures of one table; the earth mover's distance is from the real one.

    Examples
    --------
    >>> found = summary(np.array([8, 0, 2]), np.array([0.0, 1.0, 2.0]), np.array([8, 2, 0]))
    >>> found.mean, found.zeros, round(found.emd, 3)
    (0.4, 0.8, 0.5)
    """
    shares, truth = counts / counts.sum(), real / real.sum()
    mean = float(shares @ places)
    below = np.cumsum(shares)
    median, high, far = (float(places[np.searchsorted(below, part - 1e-12)]) for part in (0.5, 0.9, 0.99))
    spread = _sd(truth, places)
    moved = float(np.abs(np.cumsum(shares - truth)[:-1]) @ np.diff(places))
    return AmountSummary(
        mean=mean,
        sd=_sd(shares, places),
        median=median,
        q90=high,
        q99=far,
        zeros=float(shares[places == 0].sum()),
        emd=moved / spread if spread > 0 else (0.0 if moved == 0 else math.inf),
    )


def amount_scores(contest: Contest, found: Sequence[Amounts]) -> list[Score]:
    """Return the mean earth mover's distance, and the largest errors of a mean and of an SD; none without amounts."""
    scores = []
    if found:
        values = [float(np.mean([getattr(one, table).emd for one in found])) for table in _TABLES]
        scores.append(contest.score("emd", "mean earth mover's distance (in SDs)", values))
    numbers = [one for one in found if not one.coded]
    for key, title in (("mean_error", "largest error of a mean"), ("sd_error", "largest error of an SD")):
        if not numbers:
            continue
        errors: Mapping[str, list[float]] = {
            table: [one.errors(table)[key == "sd_error"] for one in numbers] for table in _TABLES
        }
        worst = numbers[int(np.argmax(errors["made"]))].name
        scores.append(
            contest.score(key, title, [max(errors[table]) for table in _TABLES], unit="share", note=f"of {worst!r}")
        )
    return scores


_TABLES = ("made", "floor", "independent")


def _places(column: Column) -> tuple[Floats, bool]:
    """Return the number that each code stands for, and whether it is only the position of the code."""
    amounts = None if isinstance(column, Dated) else column.amounts
    return (np.arange(float(column.size)), True) if amounts is None else (amounts, False)


def _sd(shares: Floats, places: Floats) -> float:
    return math.sqrt(max(float(shares @ (places - shares @ places) ** 2), 0.0))
