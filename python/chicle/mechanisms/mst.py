"""MST (McKenna, Miklau and Sheldon 2021): 1-ways, a tree of the strongest pairs, and the graphical model of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chicle._checks import integer, number
from chicle.counting.counter import MEMORY_LIMIT
from chicle.counting.records import Countable
from chicle.domain import Clique, Domain, pairs
from chicle.errors import DomainError
from chicle.measurements.measurement import Measurement
from chicle.measurements.merges import compress, over_compressed, over_original
from chicle.mechanisms.base import Mechanism, in_parts
from chicle.mechanisms.model_records import ModelRecords
from chicle.models.start import spanning_forest
from chicle.plans import Plan, Step, one_way_steps, pair_errors, rough_cost
from chicle.privacy.budget import Budget
from chicle.privacy.ledger import Ledger
from chicle.releases.release import Generator, Release, generator_of, singles_of
from chicle.schema import Schema
from chicle.selection import indif

__all__ = ["MST", "compressed_model", "pairs_with_room"]

_BYTES = 400  # that the model of a tree takes for each measured cell, at most


@dataclass(kw_only=True, eq=False, repr=False)
class MST(Mechanism):
    """Measure 1-ways and the pairs of a spanning tree; records follow the graphical model of them.

    The tree is chosen by noisy scores: how far each pair's counts are from the product of the released 1-ways, as
    integers with Gaussian noise (`chicle.selection.indif`). The paper draws its edges one by one by the exponential
    mechanism; under exact Gaussian accounting one noisy vector of scores costs less.

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting, discovery, threads, progress
        As for every mechanism.
    shares
        Parts of the budget for the 1-ways, for selection and for the pairs of the tree. Within the first and the last,
        a marginal of c cells gets a share ~ c^(2/3).
    theta
        Values whose noisy count is below this many sigmas are merged.
    iterations
        Most steps of fitting the model.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(5_000, d=6)
    >>> synth = chicle.MST(epsilon=1, delta=1e-9).fit(census)
    >>> [len(measured.clique) for measured in synth.release_.measurements]
    [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2]
    >>> table = synth.sample(seed=0)
    """

    shares: tuple[float, float, float] = (1 / 3, 1 / 3, 1 / 3)
    theta: float = 3.0
    iterations: int = 1_000

    def _check(self, schema: Schema) -> None:
        self._generation()
        self._parts(1.0, schema.domain)

    def _plan(self, schema: Schema, budget: Budget, n: int) -> Plan:
        domain, k = schema.domain, schema.max_records_per_person
        first, second, third = self._parts(budget.rho, domain)
        steps = one_way_steps(domain, first, k, n)
        if number := len(pairs_with_room(domain)):
            steps.append(Step(release="selection", of=f"{number:,} pairs", values=number, rho=second))
            # A tree has fewer pairs than this spreads the budget over, so that noise is less than said.
            least, most = pair_errors(domain, third, k, n) or (None, None)
            steps.append(Step(release="marginal", of="the pairs of a tree", rho=third, error=most, least_error=least))
        return Plan("MST", budget, steps, n, rough_cost(domain, n, per_pair=5))

    def _fit(self, records: Countable, schema: Schema, rho: float, ledger: Ledger) -> Release:
        options = self._generation()
        domain = schema.domain
        first, second, third = self._parts(rho, domain)
        one_ways = self._measure(records, [(name,) for name in domain], first, ledger, "1-way")
        if not (candidates := pairs_with_room(domain)):
            return Release(schema, tuple(one_ways), ledger, "MST", options)
        compression = compress(one_ways, domain, theta=self.theta)
        coded = compression.encode(records)
        scores = indif(coded, ledger, rho=second, one_ways=compression.one_ways, pairs=candidates, threads=self.threads)
        strongest_first = sorted(range(len(candidates)), key=lambda i: -scores.values[i])
        tree = spanning_forest([candidates[i] for i in strongest_first])
        measured = self._measure(coded, tree, third, ledger)
        released = [over_original(table, compression) for table in measured]
        return Release(schema, (*one_ways, *released), ledger, "MST", options)

    def _generation(self) -> dict[str, Any]:
        """Return all that records depend on but measurements."""
        return {"theta": number("theta", self.theta), "iterations": integer("iterations", self.iterations, 1)}

    def _parts(self, rho: float, domain: Domain) -> tuple[float, float, float]:
        """Return the rho of the 1-ways, of selection and of the tree."""
        parts = in_parts(rho, self.shares)
        return parts if pairs_with_room(domain) else (rho, 0.0, 0.0)


def pairs_with_room(domain: Domain, memory: int = MEMORY_LIMIT) -> list[Clique]:
    """Return the pairs of which a tree has room in memory, whichever are chosen."""
    most = memory // (_BYTES * len(domain))
    return [pair for pair in pairs(domain) if domain.cells(pair) <= most]


@generator_of("MST")
def compressed_model(schema: Schema, measurements: Sequence[Measurement], told: Mapping[str, Any]) -> Generator:
    """Return what makes records of 1-ways and of tables over the values that these leave."""
    one_ways, rest = singles_of(schema, measurements)
    compression = compress(one_ways, schema.domain, theta=told["theta"])
    measured = [over_compressed(table, compression) for table in rest]
    for table in measured:
        if table.coarsening:
            raise DomainError(f"the measurement of {table.clique!r} is coarser than the values that are kept")
    return ModelRecords([*compression.one_ways, *measured], compression.domain, told["iterations"], compression)
