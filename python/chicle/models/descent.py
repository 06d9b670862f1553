"""Residual descent: records that fit measurements in weighted least squares, by the Rust kernel `descent`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
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

__all__ = ["POLISH", "Descent", "DescentModel", "descend"]

NamedStart: TypeAlias = Literal["independent", "tree", "mixed"]
Start: TypeAlias = NamedStart | Records

POLISH = 0.3
"""How hard moments pull after descent, by default: more lowers no bias further and costs the tables."""

_POLISHES = 2  # each visits a quarter of the records; more lower the bias little, and cost time

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
    frozen: Collection[str] = (),
    amounts: Mapping[str, npt.ArrayLike] | None = None,
    polish: float = POLISH,
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
        ``"tree"`` (the default), ``"independent"`` or ``"mixed"``, half of each, see `chicle.models.draws`; each
        attribute then moves once towards its tables with those before it. Or records to start from, which are not
        changed.
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
    frozen
        Attributes that stay as they are in the records to start from.
    amounts
        The number that each code of an ordinal attribute stands for; not a number for missing. After the last sweep
        these attributes are visited again, so that means, correlations and slopes fit too (`Descent.polish`).
    polish
        How hard they are pulled; 0 for not at all.
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
    _at_least_0("polish", polish)
    if not 0 <= tolerance < 1:
        raise ParameterError(f"tolerance must be from 0 to below 1, not {tolerance!r}")
    descent = Descent(
        measurements,
        domain,
        n,
        start=start,
        threshold=threshold,
        significance=significance,
        frozen=frozen,
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
    if amounts and sweeps:
        descent.polish(amounts, polish)
    return descent.finish()


class Descent:
    """Residual descent, sweep by sweep: `descend` for callers that stop or look in between.

    Parameters
    ----------
    measurements, domain, n, start, threshold, significance, frozen, seed, threads, memory_limit
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
        frozen: Collection[str] = (),
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
        self._sigma, self._noise = finest * scale, significance * finest * scale
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
            # A drawn start is only a first guess: its attributes are placed one after the other.
            None if isinstance(start, Records) else (self._threshold, self._noise),
        )
        if frozen:
            if not isinstance(start, Records):
                raise ParameterError("frozen attributes need records to start from; give them as `start`")
            self._kernel.freeze([self._domain.position(name) for name in self._domain.check(frozen)])
        self.trace: list[float] = [self._kernel.fit()[0]]
        self.moves: list[int] = []

    def sweep(self) -> float:
        """Visit every attribute of every record once; return the mean error."""
        self.moves.append(self._kernel.sweep(self._threshold, self._noise))
        self.trace.append(self._kernel.fit()[0])
        return self.trace[-1]

    def polish(self, amounts: Mapping[str, npt.ArrayLike], strength: float = POLISH) -> int:
        """Visit ordinal attributes again, so that moments fit too; return how often a record changed a value.

        Descent stalls with residuals that are tiny in each cell but have a trend along an order. They bias means,
        correlations and slopes. Here a move also counts by how much nearer it takes the first moments of each table.

        Parameters
        ----------
        amounts
            The number that each code of an ordinal attribute stands for; not a number for missing.
        strength
            How hard a moment that is off by one standard error pulls, in units of what a move must gain.
        """
        numbers = {name: np.asarray(codes, dtype=np.float64) for name, codes in amounts.items()}
        for name, codes in numbers.items():
            self._domain.check((name,))
            if codes.shape != (self._domain[name],):
                raise DomainError(f"amounts of {name!r} must have a number for each of its {self._domain[name]} codes")
        pull = _at_least_0("strength", strength)
        if not pull:
            return 0
        given = [numbers.get(name) for name in self._domain]
        once = (given, pull, self._sigma, self._threshold, self._noise)
        return sum(self._kernel.polish(*once) for _ in range(_POLISHES))

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
    polish
        How hard the moments of ordinal attributes pull after the last sweep; see `descend`.

    Examples
    --------
    >>> domain = Domain({"age": 3, "sex": 2})
    >>> measured = [Measurement(("age", "sex"), np.array([[400, 198], [0, 2], [0, 200]]), 1.0)]
    >>> model = DescentModel().fit(measured, domain)
    >>> model.expect([("age",)])
    [array([598.,   2., 200.])]
    """

    sweeps: int = 3
    polish: float = POLISH

    def __post_init__(self) -> None:
        integer("sweeps", self.sweeps, 0)
        _at_least_0("polish", self.polish)

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
        return descend(
            self._targets,
            domain,
            n,
            sweeps=self.sweeps,
            amounts=self.amounts,
            polish=self.polish,
            seed=seed,
            threads=threads,
            progress=progress,
        )

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was learnt, as arrays."""
        return measurements_to_arrays(self._targets, self.merge.domain)

    def from_arrays(self, state: State) -> None:
        """Take on what was learnt; nothing is fitted."""
        self._targets = measurements_from_arrays(state, self.merge.domain)
