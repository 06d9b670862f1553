"""Records by descent towards denoised tables: how Prism, and AIM over records, generate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from chicle._checks import check_seed, integer, number
from chicle.counting.records import Records
from chicle.denoising.tables import PULL, denoise
from chicle.errors import DomainError, ParameterError
from chicle.measurements.arrays import measurements_from_arrays, measurements_to_arrays
from chicle.measurements.desk import Progress
from chicle.measurements.measurement import Measurement, average_repeats, check_all, estimate_total
from chicle.models.base import CountedModel, Model, State, register_model
from chicle.models.descent import POLISH, Descent, NamedStart, Start

__all__ = ["DenoisedModel"]

# Most look-ups of a sweep, one for each record and attribute of a table: a few seconds' work. Above it, records are
# repeated.
_WORK = 2_000_000_000


@register_model("denoised")
@dataclass(kw_only=True, eq=False)
class DenoisedModel(CountedModel):
    """Tables that correct each other, and records by residual descent towards them.

    Attributes
    ----------
    absorb, low_rank
        Whether margins are absorbed into 1-ways, and whether tables share directions.
    pull
        How much of the way to its shrunk value each cell goes; 0 for no shrinkage.
    start
        Where descent starts: ``"mixed"``, ``"tree"`` or ``"independent"``.
    sweeps
        Most sweeps of descent; it stops earlier once a sweep lowers the loss by less than a tenth.
    threshold
        The gain that a move must have, as a share of its cost.
    significance
        By how many standard deviations of the noise a move's gain must stand out.
    replicate
        Descent runs on n over this many records, which are then repeated and refined by one more sweep. By default 1,
        2 or 4, so that a sweep takes seconds.
    polish
        How hard the moments of ordinal attributes pull after the last sweep; see `chicle.descend`.
    """

    absorb: bool = True
    low_rank: bool = True
    pull: float = PULL
    start: NamedStart = "mixed"
    sweeps: int = 12
    threshold: float = 0.3
    significance: float = 0.35
    replicate: int | None = None
    polish: float = POLISH

    def __post_init__(self) -> None:
        for name in ("pull", "threshold", "significance", "polish"):
            number(name, getattr(self, name))
        if self.start not in get_args(NamedStart):
            raise ParameterError(f"start must be one of {get_args(NamedStart)}, not {self.start!r}")
        integer("sweeps", self.sweeps, 1)
        if self.replicate is not None:
            integer("replicate", self.replicate, 1)

    def less_smoothed(self) -> DenoisedModel:
        """Return a model without shrinkage, whose records also follow what noise might explain."""
        return replace(self, pull=0.0, significance=0.0, sweeps=20)

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
        singles, tables = self.read(measurements)
        self._targets = self.denoise(singles, tables)

    def read(self, measurements: list[Measurement]) -> tuple[list[Measurement], list[Measurement]]:
        """Return the 1-ways over `domain`, and all larger tables over the merged domain; learn the total."""
        check_all(measurements, self.domain)
        singles = average_repeats(one for one in measurements if len(one.clique) == 1 and not one.buckets)
        singles.sort(key=lambda one: self.domain.position(one.clique[0]))
        if [one.clique for one in singles] != [(name,) for name in self.domain]:
            raise DomainError("a denoised model takes one 1-way of each attribute, in the order of the domain")
        sizes = [one for one in measurements if not one.clique]
        tables = [one for one in measurements if len(one.clique) > 1]
        if any(len(one.clique) == 1 and one.buckets for one in measurements):
            raise DomainError("a denoised model takes no 1-way in buckets; use a DescentModel")
        self._total = max(estimate_total([*sizes, *singles]), 1)
        return singles, [self.merge.over(table) for table in tables]

    def denoise(
        self, singles: list[Measurement], tables: list[Measurement], margins: list[Measurement] | None = None
    ) -> list[Measurement]:
        """Return the targets of descent: 1-ways and tables that correct each other; 1-ways absorb `margins`."""
        return denoise(
            singles,
            average_repeats(tables),
            self.merge,
            self._total,
            absorbing=self.absorb,
            sharing=self.low_rank,
            pull=self.pull,
            margins=margins,
        )

    def records(
        self, n: int, seed: int | None = None, *, threads: int | None = None, progress: Progress | None = None
    ) -> Records:
        """Make `n` records."""
        _ = self.domain
        n = integer("n", n, 0)
        first, second = np.random.default_rng(check_seed(seed)).integers(2**63, size=2).tolist()
        return self.merge.split(self.draw_records(n, first, threads=threads, progress=progress), second)

    def first_records(self, n: int, rng: np.random.Generator) -> Start:
        """Return where a descent of `n` records starts."""
        del n, rng
        return self.start

    def _copies(self, n: int) -> int:
        work = n * sum(len(target.clique) for target in self._targets)
        return 1 if work <= _WORK else 2 if work <= 2 * _WORK else 4

    def draw_records(self, n: int, seed: int | None, *, threads: int | None, progress: Progress | None) -> Records:
        """Make records over the merged domain."""
        domain = self.merge.domain
        copies = self.replicate or self._copies(n)
        size = -(-n // copies)
        rng = np.random.default_rng(seed)

        def begin(rows: int | None, start: Start) -> Descent:
            return Descent(
                self._targets,
                domain,
                rows,
                start=start,
                threshold=self.threshold,
                significance=self.significance,
                seed=int(rng.integers(2**63)),
                threads=threads,
            )

        def sweep(descent: Descent, turn: int) -> None:
            error = descent.sweep()
            if progress is not None:
                progress(turn, error)

        descent = begin(size, self.first_records(size, rng))
        last = descent.loss
        for turn in range(1, self.sweeps + 1):
            sweep(descent, turn)
            loss = descent.loss
            if descent.moves[-1] * 2000 < size or (turn >= 2 and loss > 0.9 * last):
                break
            last = loss
        if copies == 1:
            descent.polish(self.amounts, self.polish)
        made = descent.finish()
        if n == 0:
            return made
        # Shuffled, since blocks of records move alike: the position of a record must carry no information.
        rows = rng.permutation(np.arange(n) % size)
        made = Records({name: made[name][rows] for name in made}, domain)
        if copies == 1:
            return made
        descent = begin(None, made)
        sweep(descent, turn + 1)
        descent.polish(self.amounts, self.polish)
        return descent.finish()

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was learnt, as arrays."""
        return measurements_to_arrays(self._targets, self.merge.domain)

    def from_arrays(self, state: State) -> None:
        """Take on what was learnt; nothing is fitted."""
        self._targets = measurements_from_arrays(state, self.merge.domain)
