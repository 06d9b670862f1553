"""Replicates of a synthetic table, and what statistics of them say about the uncertainty of an estimate.

A statistic of a synthetic table errs in three ways: the people are a sample, the tables have noise, and records fit
them only so well. A replicate goes through all three again. The rows of the synthetic table are resampled; every table
of the release is measured on them, with the same cliques, buckets, sigmas and merges; a model of the same class is
fitted to these, and makes records. Choices are kept, not made again. This is post-processing: nothing is spent, and the
noise of a replicate protects nobody and need not.

A replicate is biased twice: once as the table is, and once more in being made of the table. So `pool` centres on the
table, not on the mean of the replicates. With theta the estimate from the table, bias the mean of the replicates'
estimates less theta, and boot their standard deviation, the centre is ``theta - bias / 2`` and the squared standard
error ``boot^2 + (bias / 2)^2``, with Student's t of m - 1 degrees of freedom.

Rubin's rules do not apply. They are for draws from a posterior, whose mean is the estimate and whose spread between
draws is what imputation adds to a known sampling variance. Replicates are not such draws: each repeats the whole way
from people to records, so their spread is the whole variance, and their mean is off by the bias of that way.

The table and its replicates follow the measurements more closely than `Release.sample` does
(`Model.less_smoothed`): shrinkage towards a model makes better tables, but a bias that no replicate shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from chicle._checks import check_seed, integer, number
from chicle.counting.records import Records
from chicle.errors import ParameterError
from chicle.measurements.contrasts import Contrasts, contrast_weights, contrasts_of
from chicle.measurements.desk import Progress
from chicle.measurements.measurement import Measurement
from chicle.measurements.transcript import Entry, Transcript
from chicle.models.base import Model
from chicle.releases.conditional import Drawn, modelled
from chicle.releases.contents import IMPORTED
from chicle.releases.imported import model_of_tables
from chicle.sources import decode_table

if TYPE_CHECKING:
    from chicle.releases.release import Release

__all__ = ["Draws", "Pooled", "pool", "replicate", "student_half"]

Floats = npt.NDArray[np.float64]

_DRAWS = 0xD3A35
_COVERED = "covered: means, quantiles, cells, standard deviations, differences of groups, of columns one table holds"
_NOT_COVERED = (
    "not covered: coefficients of models, and whatever depends on columns that no measured table holds together"
)


class Draws(Sequence[Any]):
    """A synthetic table, and replicates of it: ``draws[0]`` is the table. Each is made when it is first asked for.

    Only the codes are kept; values are decoded each time.

    Attributes
    ----------
    m
        The number of replicates.
    """

    def __init__(
        self, release: Release, m: int, seed: int | None, *, threads: int | None, progress: Progress | None
    ) -> None:
        self.m = integer("m", m, 2)
        self._release, self._threads, self._progress = release, threads, progress
        self._seed = check_seed(seed)
        self._made: dict[int, Drawn] = {}

    @property
    def table(self) -> Any:  # noqa: ANN401 - the kind of table that was fitted
        """The synthetic table."""
        return self[0]

    @property
    def replicates(self) -> Iterator[Any]:
        """The replicates, one after the other."""
        return (self[i] for i in range(1, len(self)))

    def covers(self, *columns: str) -> bool:
        """Return whether a measured table holds these columns together, so that their statistics can be pooled.

        Dependence that nobody measured is lost in the table, and again in its replicates: they do not show the bias.

        Parameters
        ----------
        columns
            The columns that a statistic depends on.
        """
        modelled("covers", columns, self._release.schema)
        return any(set(columns) <= set(one.clique) for one in self._release.of_columns)

    def __len__(self) -> int:
        return self.m + 1

    @overload
    def __getitem__(self, place: int) -> Any: ...  # noqa: ANN401 - the kind of table that was fitted
    @overload
    def __getitem__(self, place: slice) -> list[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        """Return the table, 0, or a replicate, from 1 on."""
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(f"there are the table and {self.m} replicates")
        drawn = self._drawn(place % len(self))
        rng = np.random.default_rng([self._seed, _DRAWS, place % len(self), 1])
        return decode_table(drawn.records, self._release.codec, self._release.form, rng=rng)

    def _drawn(self, place: int) -> Drawn:
        if place not in self._made:
            rng = np.random.default_rng([self._seed, _DRAWS, place])
            seed = int(rng.integers(2**63))
            release = self._release if place == 0 else replicate(self._release, self._drawn(0).records, rng)
            fitted = replace(release, model=_refitted(release, self._threads))
            self._made[place] = fitted.draw(None, seed, threads=self._threads)
            if self._progress is not None:
                self._progress(place + 1, 1 - (place + 1) / len(self))
        return self._made[place]

    def __repr__(self) -> str:
        return f"Draws: a table and {self.m} replicates of it"


def replicate(release: Release, records: Records, rng: np.random.Generator) -> Release:
    """Return a release with every table measured again on resampled synthetic rows; its model is not refitted.

    Parameters
    ----------
    release
        The release.
    records
        Synthetic records over the columns.
    rng
        Resamples rows and draws noise, which need protect nobody.
    """
    rows = rng.integers(max(len(records), 1), size=len(records))
    if release.persons is not None and len(records):  # a person's rows come and go together, at most all alike
        rows = rows[release.persons.assign(len(records), rng)]
    again = Records({name: records[name][rows] for name in records}, records.domain)
    inner = release.codec.recode(again)

    def measured(one: Measurement, on: Records) -> Measurement:
        (exact,) = on.count([one.query])
        noise = np.rint(rng.normal(0.0, one.sigma, np.shape(exact))).astype(np.int64)
        return replace(one, values=np.asarray(exact) + noise)

    def contrasted(one: Contrasts) -> Contrasts:
        (exact,) = inner.count([one.clique])
        noise = np.rint(rng.normal(0.0, one.sigma * contrast_weights(exact.shape)))
        return replace(one, values=contrasts_of(exact) + noise.astype(np.int64))

    def again_of(one: Entry) -> Entry:
        if isinstance(one, Contrasts):
            return contrasted(one)
        return measured(one, inner) if isinstance(one, Measurement) else one

    entries = [again_of(one) for one in release.transcript.entries]
    fine = tuple(measured(one, again) for one in release.fine_one_ways)
    return replace(release, transcript=Transcript(entries, list(release.notes)), fine_one_ways=fine)


def _refitted(release: Release, threads: int | None) -> Model:
    """Return a model of the measurements of a release that follows them closely; merges are those of its model."""
    codec, model = release.codec, release.model
    tables = codec.without_zeros(release.transcript.tables(codec.domain))
    if release.mechanism == IMPORTED:
        return model_of_tables(tables, codec.domain, release.parameters["generator"], codec.amounts)
    counts = [one for one in tables if one.whole]
    return model.less_smoothed().fit(counts, codec.domain, merge=model.merge, amounts=codec.amounts, threads=threads)


@dataclass(frozen=True, eq=False)
class Pooled:
    """An estimate from a synthetic table and its replicates.

    Attributes
    ----------
    estimate
        The estimate from the table, less half the bias that its replicates show.
    standard_error
        Its standard error, for sampling, noise and bias.
    degrees
        Degrees of freedom.
    """

    estimate: Any
    standard_error: Any
    degrees: int

    def interval(self, confidence: float = 0.95) -> tuple[Any, Any]:
        """Return the ends of the confidence interval: two numbers, or two arrays for several estimates."""
        if not 0 < number("confidence", confidence) < 1:
            raise ParameterError(f"confidence must be between 0 and 1, not {confidence!r}")
        half = student_half(confidence, self.degrees) * self.standard_error
        return self.estimate - half, self.estimate + half

    def __repr__(self) -> str:
        low, high = self.interval()
        said = [np.array2string(np.asarray(x), precision=6) for x in (self.estimate, self.standard_error, low, high)]
        return (
            f"estimate {said[0]}, standard error {said[1]}, 95 % interval {said[2]} to {said[3]}; {_COVERED}; "
            f"{_NOT_COVERED}"
        )


def student_half(confidence: float, degrees: int) -> float:
    """Return the t that Student's distribution stays within, on both sides of 0, with a probability.

    By bisection of the closed form for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).

    Examples
    --------
    >>> round(student_half(0.95, 19), 4), round(student_half(0.95, 4), 4)
    (2.093, 2.7764)
    """

    def inside(t: float) -> float:
        angle = math.atan2(t, math.sqrt(degrees))
        odd = degrees % 2
        term, total = (math.cos(angle), 0.0) if odd else (1.0, 0.0)
        for i in range(odd, degrees - 1, 2):
            total += term
            term *= (i + 1) / (i + 2) * math.cos(angle) ** 2
        total *= math.sin(angle)
        return (angle + total) * 2 / math.pi if odd else total

    low, high = 0.0, 1.0
    while inside(high) < confidence and high < 1e12:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle) < confidence else (low, middle)
    return high


def pool(
    estimates: npt.ArrayLike, variances: npt.ArrayLike | None = None, *, table: npt.ArrayLike | None = None
) -> Pooled:
    """Return an estimate with a standard error, from a statistic of the table and of its replicates.

    It holds for means, quantiles, shares of cells, standard deviations and differences of groups, of columns that a
    measured table holds together (`Draws.covers`), not for coefficients of models: declare those (docs/inference.md).
    `pool` cannot tell what it is given.

    Parameters
    ----------
    estimates
        The statistic of each of `Release.draws`: of the table first, then of the replicates; or of the replicates
        alone, where `table` is given. Rows of several statistics are fine.
    variances
        Their usual sampling variances, if you have them: the standard error is at least that of the table.
    table
        The statistic of the table.

    Examples
    --------
    >>> pooled = pool([10.0, 10.5, 9.5, 11.0, 10.0, 9.0])
    >>> low, high = pooled.interval(0.95)
    >>> pooled.estimate, round(low, 2), round(high, 2)
    (10.0, 7.81, 12.19)
    """
    given = np.asarray(estimates, dtype=np.float64)
    if given.ndim < 1:
        raise ParameterError("estimates must be a list: of the table, then of each replicate")
    spare = 0 if table is not None else 1
    replicates = given[spare:]
    if len(replicates) < 2:
        raise ParameterError(f"an interval needs at least 2 replicates; there are {len(replicates)}")
    first = given[0] if table is None else np.asarray(table, dtype=np.float64)
    if np.shape(first) != replicates.shape[1:] or not (np.isfinite(given).all() and np.isfinite(first).all()):
        raise ParameterError("estimates must be finite numbers, as many for the table as for each replicate")
    bias = replicates.mean(axis=0) - first
    boot = replicates.var(axis=0, ddof=1)
    if variances is not None:
        own = np.asarray(variances, dtype=np.float64)
        if own.shape != given.shape or not (own >= 0).all():
            raise ParameterError("variances must be numbers of at least 0, one for each of the estimates")
        # Of the table where it is among them; else the smallest, which no replicate's noise made large.
        boot = np.maximum(boot, own[0] if table is None else own.min(axis=0))
    error = np.sqrt(boot + (bias / 2) ** 2)
    centre = first - bias / 2
    scalar = np.ndim(centre) == 0
    return Pooled(float(centre) if scalar else centre, float(error) if scalar else error, len(replicates) - 1)
