"""How far released tables bear out what public data say, and the estimates that follow.

A table of noisy counts y is compared with R, the counts of independent attributes, and with R + D, the counts that
public rows suggest. The slope of y - R on D is 1 if the public data are right, and 0 if they say nothing of the private
rows. It is estimated three times:

- from all tables, with a standard error that allows for differences between tables. If the slope does not exceed
  `LEAST` by two standard errors, public data are not used.
- from the tables of each attribute, by the same rule. A scrambled column is not used for pairs that nobody measured.
- from each table, drawn towards the slope of all tables as far as noise explains the difference (random effects).

The expected counts are e = R + w D. The squares of y - e beyond noise tell how far the truth is from e: their mean over
cells of about the same e is V. The best linear estimate of a cell is ``e + V / (V + sigma^2) (y - e)``. It is averaged
with the mechanism's own estimate, which uses what the tables say of each other.

If the steward vouches for the public data (`trusted`), slopes are drawn towards 1 and nothing is refused; released
tables still correct what they can see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from chicle.domain import Clique

__all__ = ["LEAST", "OWN", "Belief", "Estimate", "Seen", "believe"]

Floats = npt.NDArray[np.float64]

LEAST = 0.25
"""The slope that must be exceeded by two standard errors for public data to be used."""

_CLEARLY = 2
OWN = 0.4
"""The variance of a mechanism's own estimate of a table, in units of the noise: what its denoising leaves."""

_FEW = 2  # tables from which a spread of slopes can be seen
_SPREAD = 0.1  # variance of slopes, where it cannot be seen
_SMALL = 1e-4  # and its least value
_TELLING = 4.0  # a table whose slope has an error of at most one half tells of the spread
_MOST_WEIGHT = 100.0
_FACTORS = (0.1, 20.0)


@dataclass(frozen=True, eq=False)
class Seen:
    """A released table beside what is expected of it, in counts.

    Attributes
    ----------
    clique
        Its attributes.
    noisy, variance
        The noisy counts, and the variance of their noise.
    own
        What the mechanism makes of them.
    independent, deviation
        The counts of independent attributes, and how far public rows are from them.
    """

    clique: Clique
    noisy: Floats
    variance: float
    own: Floats
    independent: Floats
    deviation: Floats

    @property
    def agreement(self) -> float:
        """The product of both deviations from independence, in units of the noise."""
        return float(((self.noisy - self.independent) * self.deviation).sum()) / self.variance

    @property
    def information(self) -> float:
        """The precision of the slope that this table alone gives."""
        return float(np.square(self.deviation).sum()) / self.variance


@dataclass(frozen=True)
class Estimate:
    """Estimated counts, and the standard deviation of their errors."""

    values: Floats
    sigma: float


@dataclass(frozen=True, eq=False)
class Belief:
    """How far public data are believed.

    Attributes
    ----------
    slope, error
        The slope of all released tables on what public data say, and its standard error.
    tables
        How many released tables it comes from.
    trusted
        Whether the steward vouches for the data.
    of_attribute
        The slope and its error of each attribute's tables.
    drift
        For octaves of expected counts, how far the truth is from them: a variance.
    sampling
        How many private rows a public one stands for: the variance that sampling leaves for each expected row, where no
        released table tells of more.
    """

    slope: float
    error: float
    tables: int
    trusted: bool
    of_attribute: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    drift: Mapping[int, float] = field(default_factory=dict)
    sampling: float = 1.0

    @property
    def used(self) -> bool:
        """Whether public data are used."""
        return self.trusted or _clear(self.slope, self.error)

    def weight(self, clique: Clique) -> float:
        """Return how far a table is believed that nothing was measured of: as the least believed of its attributes."""
        if self.trusted:
            return 1.0
        slopes = [self.of_attribute.get(name, (0.0, np.inf)) for name in clique]
        return min(max(min(slope, 1.0), 0.0) if _clear(slope, error) else 0.0 for slope, error in slopes)

    def variance(self, expected: Floats) -> Floats:
        """Return how far the truth is from expected counts, as a variance for each."""
        if not self.drift:
            return 1.0 + self.sampling * expected
        known = np.array(sorted(self.drift), dtype=np.float64)
        values = np.array([self.drift[int(octave)] for octave in known])
        at = np.searchsorted((known[1:] + known[:-1]) / 2, _octave(expected), side="right")
        return np.asarray(values[at])

    def __str__(self) -> str:
        if not self.tables:
            return "no table of several attributes was released to judge it by" + (", but it is trusted" * self.trusted)
        found = f"{self.tables} released tables follow it with slope {self.slope:.2f}, standard error {self.error:.2g}"
        if self.trusted:
            return f"{found}; it is trusted"
        rule = f"{self.slope - _CLEARLY * self.error:.2f} is {'at least' if self.used else 'below'} {LEAST}"
        return f"{found}: {rule}, so it is {'used' if self.used else 'not used'}"


def believe(seen: Sequence[Seen], *, trusted: bool, sampling: float = 1.0) -> tuple[Belief, list[Estimate]]:
    """Return how far public data are believed, and the estimates of the released tables that follow.

    Parameters
    ----------
    seen
        The released tables of attributes that are public too.
    trusted
        Whether the steward vouches for the public data.
    sampling
        How many private rows a public one stands for.
    """
    slope, error = _slope(seen)
    names = {name for one in seen for name in one.clique}
    of_attribute = {name: _slope([one for one in seen if name in one.clique]) for name in sorted(names)}
    centre = 1.0 if trusted else slope
    spread = _spread_of_slopes(seen, centre)
    weights = [
        float(np.clip((one.agreement + centre / spread) / (one.information + 1 / spread), 0.0, 1.0)) for one in seen
    ]
    expected = [
        np.maximum(one.independent + weight * one.deviation, 0.0) for one, weight in zip(seen, weights, strict=True)
    ]
    belief = Belief(slope, error, len(seen), trusted, of_attribute, _drift(seen, expected), sampling)
    if not belief.used:
        return belief, []
    return belief, [_estimate(one, table, belief) for one, table in zip(seen, expected, strict=True)]


def _clear(slope: float, error: float) -> bool:
    return slope - _CLEARLY * error >= LEAST


def _slope(seen: Sequence[Seen]) -> tuple[float, float]:
    information = sum(one.information for one in seen)
    if not information > 0:
        return 0.0, float("inf")
    slope = sum(one.agreement for one in seen) / information
    # Tables whose slopes differ count as clusters: the sandwich estimate, with its correction for few of them.
    off = sum((one.agreement - slope * one.information) ** 2 for one in seen) * len(seen) / max(len(seen) - 1, 1)
    return slope, max(float(information**-0.5), float(off**0.5) / information)


def _spread_of_slopes(seen: Sequence[Seen], centre: float) -> float:
    """Return the variance of slopes between tables beyond that of their errors (random effects)."""
    known = [one for one in seen if one.information > _TELLING]
    if len(known) <= _FEW:
        return _SPREAD
    information = np.array([one.information for one in known])
    slopes = np.clip([one.agreement / one.information for one in known], -1.0, 2.0)
    weights = np.minimum(information, _MOST_WEIGHT)
    return max(float(np.average((slopes - centre) ** 2 - 1 / information, weights=weights)), _SMALL)


def _octave(expected: Floats) -> Floats:
    return np.floor(np.log2(np.maximum(expected, 1e-3)))


def _drift(seen: Sequence[Seen], expected: Sequence[Floats]) -> dict[int, float]:
    """Return the variance of the truth around expected counts, by octaves of them; at least half its own error."""
    if not seen:
        return {}
    octaves = np.concatenate([_octave(table).reshape(-1) for table in expected]).astype(np.int64)
    noise = np.concatenate([np.full(one.noisy.size, one.variance) for one in seen])
    squares = np.concatenate([np.square(one.noisy - e).reshape(-1) for one, e in zip(seen, expected, strict=True)])
    weights, places = noise**-2.0, octaves - octaves.min()
    total = np.bincount(places, weights)
    means = np.bincount(places, weights * (squares - noise)) / np.maximum(total, 1e-300)
    found = {}
    for place in np.flatnonzero(total):
        found[int(place + octaves.min())] = max(float(means[place]), 0.5 * float(np.sqrt(2 / total[place])))
    return found


def _estimate(one: Seen, expected: Floats, belief: Belief) -> Estimate:
    drift = belief.variance(expected)
    excess = float((np.square(one.noisy - expected) - one.variance).sum())
    whole, noise = float(drift.sum()), 2 * expected.size * one.variance**2
    # How much farther this table is off than others, as a factor of mean and variance 1 beforehand.
    drift = drift * np.clip((excess * whole / noise + 1) / (whole**2 / noise + 1), *_FACTORS)
    kept = drift / (drift + one.variance)
    posterior, variance = expected + kept * (one.noisy - expected), kept * one.variance
    own = OWN * one.variance
    values = (own * posterior + variance * one.own) / (own + variance)
    return Estimate(values, float(np.sqrt((own * variance / (own + variance)).mean())))
