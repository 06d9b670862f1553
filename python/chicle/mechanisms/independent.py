"""The first baseline: noisy 1-way marginals, attributes independent. Whatever loses to it has a defect to explain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chicle.counting.records import Countable, Records
from chicle.domain import Domain
from chicle.errors import ParameterError
from chicle.measurements.measurement import Measurement, best_one_ways
from chicle.mechanisms.base import Mechanism
from chicle.models.independent import independent
from chicle.plans import Plan, one_way_steps, rough_cost
from chicle.privacy.budget import Budget
from chicle.privacy.ledger import Ledger
from chicle.releases.release import Generator, Note, Release, generator_of
from chicle.schema import Schema

__all__ = ["Independent", "IndependentRecords"]


@dataclass(kw_only=True, eq=False, repr=False)
class Independent(Mechanism):
    """Measure every 1-way marginal, with shares ~ cells^(2/3), and draw the attributes independently.

    Takes the parameters of every mechanism.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(5_000, d=6)
    >>> table = chicle.Independent(epsilon=1, delta=1e-9).fit(census).sample(100, seed=0)
    >>> len(table), list(table) == list(census.domain)
    (100, True)
    """

    def _plan(self, schema: Schema, budget: Budget, n: int) -> Plan:
        steps = one_way_steps(schema.domain, budget.rho, schema.max_records_per_person, n)
        return Plan("Independent", budget, steps, n, rough_cost(schema.domain, n, per_pair=0))

    def _fit(self, records: Countable, schema: Schema, rho: float, ledger: Ledger) -> Release:
        measurements = self._measure(records, [(name,) for name in schema.domain], rho, ledger, "1-way")
        return Release(schema, tuple(measurements), ledger, "Independent")


@dataclass(frozen=True, eq=False)
class IndependentRecords(Generator):
    """Attributes drawn independently of each other, each by its most precise 1-way."""

    one_ways: Sequence[Measurement]
    domain: Domain

    def records(self, n: int, seed: int | None, *, note: Note, threads: int | None = None) -> Records:
        """Draw `n` records; there are no passes to note."""
        del note, threads
        return independent(self.one_ways, self.domain, n, seed=seed)


@generator_of("Independent")
def _generator(schema: Schema, measurements: Sequence[Measurement], options: Mapping[str, Any]) -> Generator:
    if options:
        raise ParameterError("the Independent mechanism has no options")
    best_one_ways(measurements, schema.domain)
    return IndependentRecords(measurements, schema.domain)
