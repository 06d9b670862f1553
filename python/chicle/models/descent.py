"""Residual descent: records that fit measurements in weighted least squares, by the Rust kernel `descent`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from chicle import _core
from chicle._checks import MEMORY_LIMIT, check_seed, check_size, integer, memory_bytes, threads_or_all
from chicle.counting.records import Records
from chicle.domain import Domain
from chicle.errors import DomainError, ParameterError
from chicle.measurements.arrays import measurements_from_arrays, measurements_to_arrays
from chicle.measurements.desk import Progress
from chicle.measurements.measurement import Measurement, check_all, estimate_total
from chicle.models.base import CountedModel, Model, State, register_model
from chicle.models.draws import draw_independent, draw_mixed, draw_tree

__all__ = ["Descent", "DescentModel", "descend"]

NamedStart: TypeAlias = Literal["independent", "tree", "mixed"]
Start: TypeAlias = NamedStart | Records

_STARTS = {"independent": draw_independent, "tree": draw_tree, "mixed": draw_mixed}


def descend(
    measurements: Sequence[Measurement],
    domain: Mapping[str, int],
    n: int | None = None,
    *,
    start: Start | None = None,
    sweeps: int = 10,
    threshold: float = 1.0,
    significance: float = 0.0,
    tolerance: float = 0.03,
    seed: int | None = None,
    threads: int | None = None,
    memory_limit: int = MEMORY_LIMIT,
    progress: Callable[[int, float], None] | None = None,
) -> Records:
    """Make records whose marginals fit the measurements.

    Each measurement weighs by ``1 / sigma**2``. Records move one attribute at a time, to the value that lowers the
    weighted squared error most, until hardly anything changes. The measurements may be noisy, negative and inconsistent
    with each other; the records never are.

    Parameters
    ----------
    measurements
        Of cliques of any size, at any resolution (`Measurement.buckets`). Fractional and negative values are fine,
        and exact counts too (with any equal sigma).
    domain
        The attributes.
    n
        Number of records; by default the estimate from the measurements. With another number the measurements are
        scaled to it.
    start
        ``"tree"`` (the default), ``"independent"`` or ``"mixed"``, half of each, see `chicle.models.draws`; or
        records to start from, which are not changed.
    sweeps
        Most sweeps over all attributes. Noisy measurements need few (about 3), exact ones more.
    threshold
        A record moves where the gain exceeds `threshold` times the cost of the move. At 1 every move lowers the
        weighted squared error; lower values also accept moves that raise it a little, and mix faster.
    significance
        A record moves only where the gain also exceeds this many standard deviations of the noise in it, so that
        records do not follow the noise of the measurements. 0 for exact counts.
    tolerance
        Stop once a sweep lowers the mean error by less than this share of it.
    seed
        Fixes the records.
    threads
        How many threads to use; all there are, if ``None``. The records do not depend on it.
    memory_limit
        Most bytes that the tables may take; above it, an `InfeasibleError` says the size.
    progress
        Called after each sweep with its number, from 1 on, and the mean error: L1 distance over n, as `Descent.trace`.

    Examples
    --------
    >>> import numpy as np
    >>> domain = {"age": 3, "sex": 2}
    >>> measured = [Measurement(("age", "sex"), np.array([[400, 198], [0, 2], [0, 200]]), 1.0)]
    >>> records = descend(measured, domain, n=800, seed=0)
    >>> np.bincount(2 * records["age"] + records["sex"], minlength=6)
    array([400, 198,   0,   2,   0, 200])
    """
    integer("sweeps", sweeps, 0)
    if not 0 <= tolerance < 1:
        raise ParameterError(f"tolerance must be from 0 to below 1, not {tolerance!r}")
    descent = Descent(
        measurements,
        domain,
        n,
        start=start,
        threshold=threshold,
        significance=significance,
        seed=seed,
        threads=threads,
        memory_limit=memory_limit,
    )
    for number in range(1, sweeps + 1):
        before = descent.trace[-1]
        error = descent.sweep()
        if progress is not None:
            progress(number, error)
        if error >= (1 - tolerance) * before:
            break
    return descent.finish()


class Descent:
    """Residual descent, sweep by sweep: `descend` for callers that stop or look in between.

    Parameters
    ----------
    measurements, domain, n, start, threshold, significance, seed, threads, memory_limit
        As for `descend`.

    Attributes
    ----------
    trace
        The mean over the measurements of the L1 distance between the records' counts and the (scaled) values, divided
        by the number of records: at the start, and after each sweep.
    moves
        How often a record changed a value, in each sweep.

    Examples
    --------
    >>> import numpy as np
    >>> measured = [Measurement(("a", "b"), np.array([[3, 0], [0, 3]]), 1.0)]
    >>> descent = Descent(measured, {"a": 2, "b": 2}, start="independent")
    >>> descent.sweep()
    0.0
    >>> descent.records["a"] == descent.records["b"]
    array([ True,  True,  True,  True,  True,  True])
    """

    def __init__(
        self,
        measurements: Sequence[Measurement],
        domain: Mapping[str, int],
        n: int | None = None,
        *,
        start: Start | None = None,
        threshold: float = 1.0,
        significance: float = 0.0,
        seed: int | None = None,
        threads: int | None = None,
        memory_limit: int = MEMORY_LIMIT,
    ) -> None:
        self._domain = Domain.of(domain)
        check_size(n)
        memory_bytes(memory_limit)
        self._threshold = _at_least_0("threshold", threshold)
        _at_least_0("significance", significance)
        seed = check_seed(seed)
        targets = check_all(measurements, self._domain)
        estimate = estimate_total(measurements)
        first = self._start(measurements, n, start, seed=seed, threads=threads)
        scale = len(first) / estimate if estimate > 0 and len(first) > 0 else 1.0
        used = [target for target in targets if target.clique]
        finest = min((target.sigma for target in used), default=1.0)
        self._noise = significance * finest * scale
        self._kernel = _core.Descent(
            [first[name] for name in self._domain],
            list(self._domain),
            list(self._domain.values()),
            [
                (target.axes(self._domain.positions), target.floats * scale, (finest / target.sigma) ** 2)
                for target in used
            ],
            seed,
            memory_limit,
            threads_or_all(threads),
        )
        self.trace: list[float] = [self._kernel.fit()[0]]
        self.moves: list[int] = []

    def sweep(self) -> float:
        """Visit every attribute of every record once; return the mean error."""
        self.moves.append(self._kernel.sweep(self._threshold, self._noise))
        self.trace.append(self._kernel.fit()[0])
        return self.trace[-1]

    @property
    def loss(self) -> float:
        """The objective: the weighted sum of squared differences; the largest weight is 1."""
        return self._kernel.fit()[1]

    @property
    def records(self) -> Records:
        """The records as they are now."""
        return Records(dict(zip(self._domain, self._kernel.columns(), strict=True)), self._domain)

    def finish(self) -> Records:
        """Return the records without a copy; the descent is over."""
        columns = self._kernel.finish()
        if not columns:
            raise ParameterError("this descent is finished and its records were returned; keep them, or start another")
        return Records(dict(zip(self._domain, columns, strict=True)), self._domain)

    def _start(
        self,
        measurements: Sequence[Measurement],
        n: int | None,
        start: Start | None,
        *,
        seed: int,
        threads: int | None,
    ) -> Records:
        if isinstance(start, Records):
            if start.domain != self._domain:
                raise DomainError("the records to start from must have the same domain: attributes, sizes and order")
            if n is not None and n != len(start):
                raise ParameterError("start has another number of records than n; leave n out, or give as many records")
            return start
        if start is not None and start not in _STARTS:
            known = ", ".join(map(repr, _STARTS))
            raise ParameterError(f"start must be one of {known}, or Records, not {start!r}")
        draw = _STARTS[start or "tree"]
        return draw(measurements, self._domain, n, seed=seed, threads=threads)


def _at_least_0(name: str, value: float) -> float:
    if not (np.isfinite(value) and value >= 0):
        raise ParameterError(f"{name} must be a number of at least 0, not {value!r}")
    return float(value)


@register_model("descent")
@dataclass(kw_only=True, eq=False)
class DescentModel(CountedModel):
    """Records by residual descent towards the measurements as they are.

    Attributes
    ----------
    sweeps
        Most sweeps. Beyond three, records come closer to the noisy tables but no closer to the true one.

    Examples
    --------
    >>> domain = Domain({"age": 3, "sex": 2})
    >>> measured = [Measurement(("age", "sex"), np.array([[400, 198], [0, 2], [0, 200]]), 1.0)]
    >>> model = DescentModel().fit(measured, domain)
    >>> model.expect([("age",)])
    [array([598.,   2., 200.])]
    """

    sweeps: int = 3

    def __post_init__(self) -> None:
        integer("sweeps", self.sweeps, 0)

    def fit_tables(
        self,
        measurements: list[Measurement],
        *,
        start: Model | None,
        threads: int | None,
        progress: Progress | None,
    ) -> None:
        """Learn from measurements over `domain`."""
        del start, threads, progress
        self._targets = check_all([self.merge.over(one) for one in measurements], self.merge.domain)

    def draw_records(self, n: int, seed: int | None, *, threads: int | None, progress: Progress | None) -> Records:
        """Make records over the merged domain."""
        domain = self.merge.domain
        return descend(self._targets, domain, n, sweeps=self.sweeps, seed=seed, threads=threads, progress=progress)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was learnt, as arrays."""
        return measurements_to_arrays(self._targets, self.merge.domain)

    def from_arrays(self, state: State) -> None:
        """Take on what was learnt; nothing is fitted."""
        self._targets = measurements_from_arrays(state, self.merge.domain)
