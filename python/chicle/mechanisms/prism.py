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

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args

import numpy as np

from chicle._checks import check_seed, integer
from chicle.compress import Compression, compress, over_compressed, over_original
from chicle.consistency import onto_simplex
from chicle.denoise import denoise
from chicle.denoise.tables import PULL
from chicle.discover import Discovery
from chicle.domain import Clique, Domain
from chicle.domain import pairs as all_pairs
from chicle.errors import DomainError, ParameterError
from chicle.generate.descent import Descent, NamedStart, Start
from chicle.marginals import MEMORY_LIMIT
from chicle.measure import Measurement, estimate_total, measure
from chicle.mechanisms.base import Mechanism
from chicle.mechanisms.independent import IndependentRecords
from chicle.plan import Plan, Step, one_way_steps, pair_errors, rough_cost
from chicle.privacy.budget import Accounting, Budget, calibrate
from chicle.privacy.ledger import Ledger
from chicle.records import Countable, Records
from chicle.release import Generator, Note, Release, generator_of, singles_of
from chicle.schema import Schema
from chicle.select import indif
from chicle.select.expected_error import CAUTION, noise_error, steady
from chicle.select.levels import SIZES, levels
from chicle.select.sets import ChosenSet, Packing, as_cliques, choose_sets
from chicle.select.share import one_way_share

__all__ = ["Prism", "PrismOptions"]

# Where the 1-ways are wrong by more than this share of the records, pairs measured with the rest of the budget do not
# make up for what it would do for the 1-ways: on five tables the errors of both cross between .09 and .15.
_TOO_NOISY = 0.1

# Most attributes of cells that a sweep may have to look up, over all records: a few seconds' work. Above it records are
# repeated.
_WORK = 2_000_000_000
_INDEPENDENT = ("the 1-ways are too noisy for pairs to tell more: attributes are independent",)


@dataclass(frozen=True, kw_only=True)
class PrismOptions:
    """The steps of Prism, each with a switch: what an ablation turns off one by one.

    Attributes
    ----------
    counting
        Share of the budget for the number of records.
    one_ways
        Share of the 1-ways; by default the rule of `chicle.select.share`.
    selection
        Share of what is then left for the scores of pairs.
    theta
        Values below this many sigmas are merged.
    sizes
        Buckets of the levels; ``()`` for none.
    caution
        How many times what a coarse table hides is counted against it.
    order
        Most attributes of a set: 4, 3, or 2 for no packing.
    triple_bonus, triple_error
        What a covered triple is worth while pairs are packed, and how wrong one is that nothing covers, as parts of the
        mean distance of pairs of small attributes from independence; ``triple_error=0`` covers none on purpose.
    absorb, low_rank
        Whether margins are absorbed into 1-ways, and whether tables share directions.
    pull
        How much of the way to its shrunk value each cell goes; 0 for no shrinkage.
    start
        Where descent starts: ``"mixed"``, ``"tree"`` or ``"independent"``.
    sweeps
        Most sweeps of descent; it stops before where a sweep lowers the loss by less than a tenth.
    threshold
        How much of its cost a move must gain.
    significance
        By how many standard deviations a move's gain must stand out from noise.
    replicate
        Descent runs on n over this many records, which are then repeated and refined by one more sweep: less time for
        a little more sampling error in larger cliques. By default 1, 2 or 4, so that a sweep takes seconds.
    """

    counting: float = 0.001
    one_ways: float | None = None
    selection: float = 0.02
    theta: float = 3.0
    sizes: tuple[int, ...] = SIZES
    caution: float = CAUTION
    order: int = 4
    triple_bonus: float = 0.2
    triple_error: float = 0.3
    absorb: bool = True
    low_rank: bool = True
    pull: float = PULL
    start: NamedStart = "mixed"
    sweeps: int = 12
    threshold: float = 0.3
    significance: float = 0.35
    replicate: int | None = None

    def __post_init__(self) -> None:
        for name in ("counting", "selection", "one_ways"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise ParameterError(f"{name} must be a share between 0 and 1, not {value!r}")
        for name in ("theta", "caution", "pull", "triple_bonus", "triple_error", "threshold", "significance"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ParameterError(f"{name} must be finite and at least 0, not {getattr(self, name)!r}")
        if not isinstance(self.sizes, tuple):
            raise ParameterError(f"sizes must be a tuple of numbers of buckets, not {self.sizes!r}")
        for size in self.sizes:
            integer("a level's size", size, 2)
        integer("order", self.order, 2, 4)
        if self.start not in get_args(NamedStart):
            raise ParameterError(f"start must be one of {get_args(NamedStart)}, not {self.start!r}")
        integer("sweeps", self.sweeps, 1)
        if self.replicate is not None:
            integer("replicate", self.replicate, 1)


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

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        mu: float | None = None,
        accounting: Accounting | None = None,
        discovery: Discovery | None = None,
        options: PrismOptions | None = None,
        threads: int | None = None,
        progress: Callable[[int, float], None] | None = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            mu=mu,
            accounting=accounting,
            discovery=discovery,
            threads=threads,
            progress=progress,
        )
        self.options = options

    def _check(self, schema: Schema) -> None:
        del schema
        self._options()

    def _plan(self, schema: Schema, budget: Budget, n: int) -> Plan:
        """Split the budget as for `n` records; a fit asks the data for their number, privately."""
        domain, k = schema.domain, schema.max_records_per_person
        parts = _Parts(self._options(), budget.rho, domain, n, k)
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
        domain, k = schema.domain, schema.max_records_per_person
        counting = rho * options.counting
        sigma = calibrate(counting, l2_sensitivity=k)
        (size,) = measure(records, [()], sigma, ledger, purpose="number of records", threads=self.threads)
        parts = _Parts(options, rho, domain, float(size.values), k)
        singles: list[Clique] = [(name,) for name in domain]
        one_ways = self._measure(records, singles, parts.one_ways, ledger, "1-way")
        total = max(estimate_total([size, *one_ways]), 1)
        if _one_way_error(one_ways, total) > _TOO_NOISY:
            rest = parts.selection + parts.tables
            again = self._measure(records, singles, rest, ledger, "1-way") if rest > 0 else []
            notes: tuple[str, ...] = _INDEPENDENT if len(domain) > 1 else ()
            measured = (size, *one_ways, *again)
            return Release(schema, measured, ledger, "Prism", asdict(options), notes)
        compression = compress(one_ways, domain, theta=options.theta, ordinal=schema.ordinal, vanish=False)
        coded = compression.encode(records)
        resolutions = [
            levels(
                onto_simplex(one_way.values, total), ordinal=one_way.clique[0] in schema.ordinal, sizes=options.sizes
            )
            for one_way in compression.one_ways
        ]
        sets: list[ChosenSet] = []
        rest = parts.selection + parts.tables
        # Pairs too large to count are not scored, rather than found out after the 1-ways have been paid for.
        pairs = [
            pair
            for pair in all_pairs(coded.domain)
            if min(coded.domain.shape(pair)) > 1 and 8 * coded.domain.cells(pair) <= MEMORY_LIMIT
        ]
        if pairs:
            rest = parts.tables
            scores = indif(
                coded,
                ledger,
                rho=parts.selection,
                one_ways=compression.one_ways,
                pairs=pairs,
                threads=self.threads,
            )
            sets = choose_sets(
                steady(scores.values, scores.sigma),
                pairs,
                resolutions,
                coded.domain,
                ordinal=schema.ordinal,
                total=total,
                budget=2 * parts.tables / k**2,
                caution=options.caution,
                packing=Packing(options.order, options.triple_bonus, options.triple_error),
                threads=self.threads,
            )
        if not sets:
            again = self._measure(records, singles, rest, ledger, "1-way") if rest > 0 else []
            notes = ("no pair of attributes stands out: attributes are independent",) if len(domain) > 1 else ()
            measured = (size, *one_ways, *again)
            return Release(schema, measured, ledger, "Prism", asdict(options), notes)
        cliques, coarsening = as_cliques(sets, compression.domain, resolutions)
        asked = sum(chosen.precision for chosen in sets)
        sigmas = [parts.sigma(parts.tables * chosen.precision / asked) for chosen in sets]
        tables = measure(coded, cliques, sigmas, ledger, coarsening=coarsening, threads=self.threads)
        released = [over_original(table, compression) for table in tables]
        return Release(schema, (size, *one_ways, *released), ledger, "Prism", asdict(options))


class _Parts:
    """How the budget is split."""

    def __init__(self, options: PrismOptions, rho: float, domain: Domain, n: float, k: int) -> None:
        self._k = k
        self.counting = rho * options.counting
        rest = rho - self.counting
        share = options.one_ways
        if share is None or len(domain) < 2:
            share = one_way_share(domain, n, math.sqrt(2 * rho) / k)
        self.one_ways = rest * share
        rest -= self.one_ways
        self.selection = rest * options.selection if len(domain) > 1 else 0.0
        self.tables = rest - self.selection

    def sigma(self, rho: float) -> float:
        return calibrate(rho, l2_sensitivity=self._k)


def _one_way_error(one_ways: Sequence[Measurement], total: float) -> float:
    """Return the mean expected L1 error of the 1-ways, as a share of the records, by `select.expected_error`."""
    errors = []
    for one_way in one_ways:
        counts = onto_simplex(one_way.values, total)
        errors.append(noise_error(counts, one_way.sigma) / total)
    return float(np.mean(errors))


def _mean(first: Measurement, second: Measurement) -> Measurement:
    """Return both measurements of one attribute as one, by inverse variance."""
    weight = second.sigma**2 / (first.sigma**2 + second.sigma**2)
    values = weight * first.values + (1 - weight) * second.values
    return replace(first, values=values, sigma=math.sqrt(weight) * first.sigma)


@dataclass(frozen=True, eq=False)
class _PrismRecords(Generator):
    """Records by residual descent towards denoised tables, over the compressed domain."""

    targets: Sequence[Measurement]
    compression: Compression
    options: PrismOptions

    def records(self, n: int, seed: int | None, *, note: Note, threads: int | None = None) -> Records:
        first, second = np.random.default_rng(check_seed(seed)).integers(2**63, size=2).tolist()
        made = self._descend(n, first, note, threads)
        return self.compression.decode(made, second)

    def _copies(self, n: int) -> int:
        work = n * sum(len(target.clique) for target in self.targets)
        return 1 if work <= _WORK else 2 if work <= 2 * _WORK else 4

    def _descend(self, n: int, seed: int, note: Note, threads: int | None) -> Records:
        options, domain = self.options, self.compression.domain
        copies = options.replicate or self._copies(n)
        size = -(-n // copies)
        rng = np.random.default_rng(seed)

        def begin(number: int | None, start: Start) -> Descent:
            return Descent(
                self.targets,
                domain,
                number,
                start=start,
                threshold=options.threshold,
                significance=options.significance,
                seed=int(rng.integers(2**63)),
                threads=threads,
            )

        descent = begin(size, options.start)
        last = descent.loss
        for number in range(1, options.sweeps + 1):
            note(number, descent.sweep())
            loss = descent.loss
            if descent.moves[-1] * 2000 < size or (number >= 2 and loss > 0.9 * last):
                break
            last = loss
        made = descent.records
        if n == 0:
            return made
        # In any order: blocks of records are moved alike, and neighbours should tell nothing of each other.
        rows = rng.permutation(np.arange(n) % size)
        made = Records({name: made[name][rows] for name in made}, domain)
        if copies == 1:
            return made
        descent = begin(None, made)
        note(number + 1, descent.sweep())
        return descent.finish()


@generator_of("Prism")
def _generator(schema: Schema, measurements: Sequence[Measurement], told: Mapping[str, Any]) -> Generator:
    options = PrismOptions(**{**told, "sizes": tuple(told["sizes"])})
    domain = schema.domain
    size = measurements[0]
    if size.clique != ():
        raise DomainError("the first measurement of Prism is the number of records")
    one_ways, rest = singles_of(schema, measurements[1:])
    if all(len(measurement.clique) == 1 for measurement in rest):
        # Only the 1-ways could be told: this is the Independent mechanism, with as little noise.
        if not rest:
            return IndependentRecords(one_ways, domain)
        again, none = singles_of(schema, rest)
        if none:
            raise DomainError("Prism measures every attribute twice at most")
        best = [_mean(first, second) for first, second in zip(one_ways, again, strict=True)]
        return IndependentRecords(best, domain)
    compression = compress(one_ways, domain, theta=options.theta, ordinal=schema.ordinal, vanish=False)
    targets = denoise(
        one_ways,
        [over_compressed(table, compression) for table in rest],
        compression,
        max(estimate_total([size, *one_ways]), 1),
        absorbing=options.absorb,
        sharing=options.low_rank,
        pull=options.pull,
    )
    return _PrismRecords(targets, compression, options)
