"""MWEM+PGM ([A] Algorithm 1): round by round, measure the table that the model gets most wrong, and refit the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chicle._checks import integer, number
from chicle.counting.counter import MEMORY_LIMIT, Counted
from chicle.counting.records import Countable
from chicle.domain import Clique, Domain
from chicle.errors import InfeasibleError, ParameterError
from chicle.measurements.measurement import Measurement, estimate_total, measure
from chicle.mechanisms.base import Mechanism
from chicle.mechanisms.model_records import ModelRecords
from chicle.models.pgm import Pgm, jt_size, jt_sizes
from chicle.plans import Plan, Step, noise_errors, rough_cost
from chicle.privacy.budget import Budget, calibrate, calibrate_choice
from chicle.privacy.ledger import Ledger
from chicle.releases.release import Generator, Release, generator_of
from chicle.schema import Schema
from chicle.selection import choose_worst
from chicle.workload import Workload

__all__ = ["MWEM"]

_COUNTING = 0.001  # of rho, for the number of records
_ROUND_STEPS = 100  # of refitting the model before a choice: it goes on from the round before
# Nanoseconds that a round takes for each cell of its candidates, and for each record and candidate; by hand, on Adult.
_PER_CELL, _PER_RECORD = 150, 1
_COPIES = 20  # of the junction tree that fitting and asking the model take at most, seen on Adult
_BYTES = 8  # of a cell of the junction tree
_BYTES_MEASURED = 300  # that a model takes for each measured cell, at most, beside its junction tree


@dataclass(kw_only=True, eq=False, repr=False)
class MWEM(Mechanism):
    """MWEM+PGM: begin with a uniform model; in each round measure a clique of the workload that it gets wrong.

    A round chooses by the exponential mechanism with the score ``|M_r - model_r|_1 - n_r`` of [A] Algorithm 1, where
    n_r is the number of cells; measures what it chose with Gaussian noise; and refits the graphical model. Only cliques
    of the workload itself are measured. An attribute that no chosen clique has comes out even, as published: a note
    says so.

    Three things differ from the paper. It knows the number of records; here that is private, and a thousandth of the
    budget is spent on it. It lets the model grow without limit; here cliques that would take its junction tree above
    `max_size` are no candidates, and neither are tables of more cells than twice the records, whose scores are
    negative on any data. Measurements are weighted by ``1 / sigma^2``; all are equal but that of the number.

    As [A] section 3 says, it does not adapt to the budget: the rounds are fixed, and the score weighs cells and not the
    noise on them. With little budget it is worse than independent attributes: their 2-way error on Adult at epsilon 0.2
    is .091, its own .151, and .124 with a workload of all pairs.

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting, discovery, threads, progress
        As for every mechanism.
    workload
        What matters: a `chicle.Workload`, or cliques; all of three attributes by default. Of weights only 0 matters.
        Each round compares all of them with the model, which takes long where attributes are many.
    rounds
        How many tables are measured; as many as there are attributes by default.
    alpha
        Which part of a round's budget its table gets, and its choice the rest. [A] Algorithm 1 has 0.5; choices need
        less than that: on Adult at epsilon 1 the 2-way error is .084 with it, .069 as it is here, .079 of Independent.
    max_size
        Most bytes of the model's junction tree.
    iterations
        Most steps of fitting the model in the end.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(5_000, d=6)
    >>> synth = chicle.MWEM(epsilon=1, delta=1e-9, rounds=4).fit(census)
    >>> [len(measured.clique) for measured in synth.release_.measurements]
    [0, 3, 3, 3, 3]
    >>> table = synth.sample(seed=0)
    """

    workload: Workload | Mapping[Clique, float] | Iterable[Iterable[str]] | None = None
    rounds: int | None = None
    alpha: float = 0.9
    max_size: int = 80_000_000
    iterations: int = 1_000

    def __post_init__(self) -> None:
        # A plan and a fit both read it.
        if isinstance(self.workload, Iterator):
            self.workload = list(self.workload)

    def _check(self, schema: Schema) -> None:
        self._generation()
        alpha = number("alpha", self.alpha)
        if not 0 < alpha < 1:
            raise ParameterError(f"alpha must lie between 0 and 1, not {self.alpha!r}")
        self._candidates(schema.domain)

    def _plan(self, schema: Schema, budget: Budget, n: int) -> Plan:
        domain, k = schema.domain, schema.max_records_per_person
        candidates, rounds = self._candidates(domain), self._rounds(domain)
        counting, tables, choices = self._parts(budget.rho)
        sigma = calibrate(tables / rounds, l2_sensitivity=k)
        cells = [float(domain.cells(clique)) for clique in _worth(candidates, domain, n)]
        cost = rough_cost(domain, n, per_pair=5)
        choosing = rounds * (_PER_CELL * sum(cells) + _PER_RECORD * n * len(cells)) * 1e-9
        least, most = noise_errors([min(cells), max(cells)], [sigma] * 2, n)
        told = "1 choice" if rounds == 1 else f"{rounds:,} choices"
        steps = [
            Step(
                release="records",
                of="their number",
                values=1,
                rho=counting,
                sigma=calibrate(counting, l2_sensitivity=k),
            ),
            Step(release="selection", of=f"{told} among {len(candidates):,} cliques", rho=choices),
            Step(release="marginal", of="the chosen cliques", rho=tables, error=most, least_error=least),
        ]
        model = _COPIES * min(self.max_size, _BYTES * domain.cells(domain))
        return Plan(
            "MWEM", budget, steps, n, replace(cost, seconds=cost.seconds + choosing, memory=cost.memory + model)
        )

    def _fit(self, records: Countable, schema: Schema, rho: float, ledger: Ledger) -> Release:
        domain, k = schema.domain, schema.max_records_per_person
        candidates, rounds = self._candidates(domain), self._rounds(domain)
        counting, tables, choices = self._parts(rho)
        sigma = calibrate(tables / rounds, l2_sensitivity=k)
        epsilon = calibrate_choice(choices / rounds, accounting=ledger.budget.accounting)
        measured = measure(
            records,
            [()],
            calibrate(counting, l2_sensitivity=k),
            ledger,
            purpose="number of records",
            threads=self.threads,
        )
        model: Pgm | None = None
        counted = Counted(records)
        for _ in range(rounds):
            model = _model(measured, domain, self.max_size, model, self.threads).fit(_ROUND_STEPS)
            fitting = self._fitting(candidates, measured, domain)
            chosen = choose_worst(
                counted.keep(fitting, self.threads),
                fitting,
                model.marginals,
                ledger,
                epsilon=epsilon,
                weights=[1.0] * len(fitting),
                penalties=[domain.cells(clique) for clique in fitting],
                threads=self.threads,
            )
            measured += measure(counted, [fitting[chosen]], sigma, ledger, threads=self.threads)
        told = {name for table in measured for name in table.clique}
        notes = tuple(
            f"{name!r} is in no measured marginal: its values come evenly" for name in domain if name not in told
        )
        return Release(schema, tuple(measured), ledger, "MWEM", self._generation(), notes)

    def _generation(self) -> dict[str, Any]:
        """Return all that records depend on but measurements."""
        return {
            "iterations": integer("iterations", self.iterations, 1),
            "max_size": integer("max_size", self.max_size, _BYTES),
        }

    def _parts(self, rho: float) -> tuple[float, float, float]:
        """Return the rho of the number of records, of all tables and of all choices."""
        counting = _COUNTING * rho
        tables = self.alpha * (rho - counting)
        return counting, tables, rho - counting - tables

    def _rounds(self, domain: Domain) -> int:
        return len(domain) if self.rounds is None else integer("rounds", self.rounds, 1)

    def _candidates(self, domain: Domain) -> list[Clique]:
        """Return the cliques of the workload that a model has room for, each alone."""
        given = Workload.all_kway(domain, 3) if self.workload is None else Workload.of(self.workload).over(domain)
        cliques = [clique for clique, weight in given.items() if weight > 0]
        most = min(self.max_size // _BYTES, MEMORY_LIMIT // (_BYTES_MEASURED * self._rounds(domain)))
        small = [clique for clique in cliques if domain.cells(clique) <= most]
        if fitting := self._fitting(small, [], domain):
            return fitting
        least = min(cliques, key=domain.cells)
        raise InfeasibleError(
            f"no clique of the workload can be measured: the smallest, {least!r}, has {domain.cells(least):,} cells "
            f"and takes a junction tree of {jt_size([least], domain):.3g} bytes, above max_size {self.max_size:.3g} or "
            "what memory holds in so many rounds; give a workload of smaller cliques, fewer rounds, or raise max_size"
        )

    def _fitting(self, cliques: Sequence[Clique], measured: Sequence[Measurement], domain: Domain) -> list[Clique]:
        """Return which cliques leave the junction tree below its limit, and could be worth measuring on some data."""
        held = {table.clique for table in measured}
        sizes = jt_sizes(cliques, domain, held=held, threads=self.threads)
        fitting = [c for c, size in zip(cliques, sizes, strict=True) if size <= self.max_size or c in held]
        return _worth(fitting, domain, estimate_total(measured)) if measured else fitting


def _worth(cliques: Sequence[Clique], domain: Domain, n: int) -> list[Clique]:
    """Return cliques whose score may be above 0 with n records; where there is none, the one of fewest cells."""
    small = [clique for clique in cliques if domain.cells(clique) < 2 * max(n, 1)]
    return small or [min(cliques, key=domain.cells)]


def _model(
    measured: Sequence[Measurement], domain: Domain, max_size: int, start: Pgm | None, threads: int | None
) -> Pgm:
    return Pgm(measured, domain, start=start, threads=threads, memory_limit=_memory_limit(max_size))


def _memory_limit(max_size: int) -> int:
    return 2 * max_size + MEMORY_LIMIT


@generator_of("MWEM")
def _generator(schema: Schema, measurements: Sequence[Measurement], told: Mapping[str, Any]) -> Generator:
    return ModelRecords(measurements, schema.domain, told["iterations"], memory_limit=_memory_limit(told["max_size"]))
