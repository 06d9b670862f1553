"""Prism (PRIvate Synthesis from Multi-resolution marginals): chicle's own mechanism, and its default.

1. A sliver of budget tells the number of records; from it follows the share of the 1-ways (`select.share`).
2. 1-ways, shares ~ cells^(2/3); values that do not stand out from noise are merged (`compress`). If they are too noisy
   for anything else to help, the rest of the budget is theirs too.
3. Every attribute also at up to 20, 10 and 5 buckets (`select.levels`).
4. A little buys the distance of every pair from independence (`select.indif`).
5. Expected errors (`select.expected_error`) and one price for precision (`select.price`) say which pairs to measure, at
   which level and with how much noise.
6. Small attributes are packed into sets of three and four (the kernel `pack`).
7. Measure; then let the tables correct each other (`denoise`): margins into 1-ways, directions shared between tables,
   each cell towards what is expected.
8. Records by residual descent, half of them from a tree of pairs and half from independence; a record moves only where
   its gain stands out from noise.

Steps 1, 2, 4 and 7 release something, through the ledger. Everything else is computed from what was released.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from chicle.counting.records import Countable
from chicle.domain import Clique
from chicle.errors import ParameterError
from chicle.measurements.measurement import Measurement
from chicle.mechanisms.base import Mechanism
from chicle.mechanisms.denoised import denoised_records
from chicle.mechanisms.ground import NO_PAIR, TOO_NOISY, Ground, Parts, lay_ground
from chicle.mechanisms.prism_options import PrismOptions
from chicle.plans import Plan, Step, one_way_steps, pair_errors, rough_cost
from chicle.privacy.budget import Budget
from chicle.privacy.ledger import Ledger
from chicle.releases.release import Generator, Release, generator_of
from chicle.schema import Schema
from chicle.selection import indif
from chicle.selection.expected_error import steady
from chicle.selection.sets import Packing, choose_sets

__all__ = ["Prism", "PrismOptions"]


@dataclass(kw_only=True, eq=False, repr=False)
class Prism(Mechanism):
    """Marginals at several resolutions, chosen by one price; tables that correct each other; records by descent.

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting, discovery, threads, progress
        As for every mechanism.
    options
        The switches of its steps.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(5_000, d=6)
    >>> synth = chicle.Prism(epsilon=1, delta=1e-9).fit(census)
    >>> table = synth.sample(seed=0)
    >>> synth.ledger_.epsilon() <= 1
    True
    """

    options: PrismOptions | None = None

    def _check(self, schema: Schema) -> None:
        del schema
        self._options()

    def _plan(self, schema: Schema, budget: Budget, n: int) -> Plan:
        """Split the budget as for `n` records; a fit asks the data for their number, privately."""
        domain, k = schema.domain, schema.max_records_per_person
        parts = Parts(self._options(), budget.rho, domain, n, k)
        sigma = parts.sigma(parts.counting)
        steps = [
            Step(release="records", of="their number", values=1, rho=parts.counting, sigma=sigma),
            *one_way_steps(domain, parts.one_ways, k, n),
        ]
        if parts.selection > 0:
            number = len(domain) * (len(domain) - 1) // 2
            least, most = pair_errors(domain, parts.tables, k, n) or (None, None)
            steps += [
                Step(release="selection", of=f"{number:,} pairs", values=number, rho=parts.selection),
                Step(release="marginal", of="the chosen sets", rho=parts.tables, error=most, least_error=least),
            ]
        return Plan("Prism", budget, steps, n, rough_cost(domain, n, per_pair=18))

    def _options(self) -> PrismOptions:
        if self.options is None:
            return PrismOptions()
        if not isinstance(self.options, PrismOptions):
            raise ParameterError(f"options must be PrismOptions, not a {type(self.options).__name__}")
        return self.options

    def _fit(self, records: Countable, schema: Schema, rho: float, ledger: Ledger) -> Release:
        options = self._options()
        ground = lay_ground(self._measure, records, schema, rho, ledger=ledger, options=options, threads=self.threads)
        if ground.too_noisy:
            return self._independent(records, ground, ground.parts.rest, ledger, TOO_NOISY)
        if not ground.pairs:
            return self._independent(records, ground, ground.parts.rest, ledger, NO_PAIR)
        scores = indif(
            ground.coded,
            ledger,
            rho=ground.parts.selection,
            one_ways=ground.compression.one_ways,
            pairs=ground.pairs,
            threads=self.threads,
        )
        sets = choose_sets(
            steady(scores.values, scores.sigma),
            ground.pairs,
            ground.resolutions,
            ground.coded.domain,
            ordinal=schema.ordinal,
            total=ground.total,
            budget=2 * ground.parts.tables / ground.k**2,
            caution=options.caution,
            packing=Packing(options.order, options.triple_bonus, options.triple_error),
            threads=self.threads,
        )
        if not sets:
            return self._independent(records, ground, ground.parts.tables, ledger, NO_PAIR)
        tables = ground.measure_sets(sets, ground.parts.tables, ledger, threads=self.threads)
        return Release(schema, (*ground.measured, *tables), ledger, "Prism", asdict(options))

    def _independent(self, records: Countable, ground: Ground, rest: float, ledger: Ledger, why: str) -> Release:
        """Give the rest of the budget to the 1-ways."""
        schema = ground.schema
        singles: list[Clique] = [(name,) for name in schema.domain]
        again = self._measure(records, singles, rest, ledger, "1-way") if rest > 0 else []
        notes = (why,) if len(singles) > 1 else ()
        return Release(schema, (*ground.measured, *again), ledger, "Prism", asdict(self._options()), notes)


@generator_of("Prism")
def _generator(schema: Schema, measurements: Sequence[Measurement], told: Mapping[str, Any]) -> Generator:
    return denoised_records(schema, measurements, PrismOptions(**{**told, "sizes": tuple(told["sizes"])}))
