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
8. Records by residual descent from independent ones, stopped before they fit the noise.

Steps 1, 2, 4 and 7 release something, through the ledger. Everything else is computed from what was released.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle import _core
from chicle._checks import integer, threads_or_all
from chicle.compress import Compression, compress
from chicle.denoise import absorb, low_rank, shrink
from chicle.denoise.low_rank import Deviation
from chicle.domain import Clique, Domain
from chicle.domain import pairs as all_pairs
from chicle.errors import ParameterError
from chicle.generate.descent import Descent
from chicle.generate.independent import independent
from chicle.generate.start import check_seed
from chicle.generate.targets import onto_simplex
from chicle.measure import Coarsening, Measurement, estimate_total, measure
from chicle.mechanisms.base import Mechanism, as_schema
from chicle.plan import Plan, Step
from chicle.privacy.budget import Accounting, Budget, calibrate
from chicle.privacy.ledger import Ledger
from chicle.records import Records
from chicle.release import Release
from chicle.schema import Schema
from chicle.select import budget_shares, indif
from chicle.select.expected_error import Prospects, expected_errors, noise_error, steady
from chicle.select.levels import SIZES, Level, levels
from chicle.select.price import choose, find_price, grid
from chicle.select.share import one_way_share

__all__ = ["Prism", "PrismOptions"]

Floats = npt.NDArray[np.float64]

_SMALL = 4
_MAX_CELLS = 64
_ROUNDS = 3

# Where the 1-ways are wrong by more than this share of the records, pairs measured with the rest of the budget do not
# make up for what it would do for the 1-ways: on five tables the errors of both cross between .09 and .15.
_TOO_NOISY = 0.1


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
    order
        Most attributes of a set: 4, 3, or 2 for no packing.
    triple_bonus, triple_error
        What a covered triple is worth while pairs are packed, and how wrong one is that nothing covers, both in terms of how
        far pairs of small attributes are from independence, on average; ``triple_error=0`` covers none on purpose.
    absorb, low_rank, shrink
        The three parts of denoising.
    sweeps
        Most sweeps of descent; the last one takes only moves that lower the loss.
    threshold
        How much of its cost a move must gain before that.
    replicate
        Descent runs on n over this many records, which are then repeated and refined by one more sweep: less time for
        a little more sampling error in larger cliques. By default 2 from 100,000 records on, 4 from a million on.
    """

    counting: float = 0.001
    one_ways: float | None = None
    selection: float = 0.02
    theta: float = 3.0
    sizes: tuple[int, ...] = SIZES
    order: int = 4
    triple_bonus: float = 0.2
    triple_error: float = 0.3
    absorb: bool = True
    low_rank: bool = True
    shrink: bool = True
    sweeps: int = 6
    threshold: float = 0.3
    replicate: int | None = None

    def __post_init__(self) -> None:
        for name in ("counting", "selection", "one_ways"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise ParameterError(f"{name} must be a share between 0 and 1, not {value!r}")
        for name in ("theta", "triple_bonus", "triple_error", "threshold"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ParameterError(f"{name} must be finite and at least 0, not {getattr(self, name)!r}")
        for size in self.sizes:
            integer("a level's size", size, 2)
        integer("order", self.order, 2, 4)
        integer("sweeps", self.sweeps, 1)
        if self.replicate is not None:
            integer("replicate", self.replicate, 1)


@dataclass(frozen=True)
class _Set:
    """Attributes to measure together: their positions, their levels, and the precision they ask for."""

    attributes: tuple[int, ...]
    levels: tuple[int, ...]
    precision: float


class Prism(Mechanism):
    """Marginals at several resolutions, chosen by one price; tables that correct each other; records by descent.

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting, threads, progress
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
        options: PrismOptions | None = None,
        threads: int | None = None,
        progress: Callable[[int, float], None] | None = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon, delta=delta, rho=rho, mu=mu, accounting=accounting, threads=threads, progress=progress
        )
        self.options = options

    def plan(self, schema: Schema, n: int = 100_000) -> Plan:
        """Return what a fit will release, if the table has about `n` records; a fit asks the data, privately."""
        return self._plan(as_schema(schema), self.budget, integer("n", n, 0))

    def _plan(self, schema: Schema, budget: Budget, n: int = 100_000) -> Plan:
        options = self._options()
        domain, k = schema.domain, schema.max_records_per_person
        parts = _Parts(options, budget.rho, domain, n, k)
        steps = [Step(release="records", of="their number", values=1, rho=parts.counting, sigma=parts.sigma(parts.counting))]
        for name, share in zip(domain, budget_shares([(name,) for name in domain], domain), strict=True):
            rho = parts.one_ways * share
            steps.append(Step(release="1-way", of=name, values=domain[name], rho=rho, sigma=parts.sigma(rho)))
        if parts.selection > 0:
            number = len(domain) * (len(domain) - 1) // 2
            steps.append(Step(release="selection", of=f"{number:,} pairs", values=number, rho=parts.selection))
            steps.append(Step(release="marginal", of="the chosen sets", rho=parts.tables))
        return Plan("Prism", budget, steps)

    def _options(self) -> PrismOptions:
        if self.options is None:
            return PrismOptions()
        if not isinstance(self.options, PrismOptions):
            raise ParameterError(f"options must be PrismOptions, not a {type(self.options).__name__}")
        return self.options

    def _fit(self, records: Records, schema: Schema, rho: float, ledger: Ledger, kind: str) -> Release:
        options = self._options()
        domain, k = schema.domain, schema.max_records_per_person
        counting = rho * options.counting
        sigma = calibrate(counting, l2_sensitivity=k)
        (size,) = measure(records, [()], sigma, ledger, purpose="number of records", threads=self.threads)
        parts = _Parts(options, rho, domain, float(size.values), k)
        singles: list[Clique] = [(name,) for name in domain]
        sigmas = [parts.sigma(parts.one_ways * share) for share in budget_shares(singles, domain)]
        one_ways = measure(records, singles, sigmas, ledger, purpose="1-way", threads=self.threads)
        total = max(estimate_total([size, *one_ways]), 1)
        if _one_way_error(one_ways, total) > _TOO_NOISY:
            notes = ("the 1-ways are too noisy for pairs to tell more: attributes are independent",)
            return self._independent(records, schema, (size, *one_ways), parts, parts.selection + parts.tables, ledger, kind, notes)
        compression = compress(one_ways, domain, theta=options.theta, ordinal=schema.ordinal, vanish=False)
        coded = compression.encode(records)
        resolutions = _resolutions(compression, total, schema.ordinal, options.sizes)
        sets: list[_Set] = []
        if parts.selection > 0:
            scores = indif(coded, ledger, rho=parts.selection, one_ways=compression.one_ways, threads=self.threads)
            distances = steady(scores.values, scores.sigma)
            sets = self._choose(distances, resolutions, schema, compression.domain, total, 2 * parts.tables / k**2)
        if not sets:
            notes = ("no pair of attributes stands out: attributes are independent",)
            return self._independent(records, schema, (size, *one_ways), parts, parts.tables, ledger, kind, notes)
        cliques, coarsening = _cliques(sets, compression.domain, resolutions)
        asked = sum(chosen.precision for chosen in sets)
        sigmas = [parts.sigma(parts.tables * chosen.precision / asked) for chosen in sets]
        tables = measure(coded, cliques, sigmas, ledger, coarsening=coarsening, threads=self.threads)
        targets = _denoise(one_ways, tables, compression, total, options)

        def generate(n: int, seed: int | None, trace: list[float]) -> Records:
            made = self._records(targets, compression.domain, n, seed, trace)
            return compression.decode(made, seed)

        released = [_over_schema(table, compression) for table in tables]
        return Release(schema, (size, *one_ways, *released), ledger, generate, kind)

    def _independent(
        self,
        records: Records,
        schema: Schema,
        measured: tuple[Measurement, ...],
        parts: _Parts,
        rho: float,
        ledger: Ledger,
        kind: str,
        notes: tuple[str, ...],
    ) -> Release:
        """Spend what is left on the 1-ways: then Prism is the Independent mechanism, with as little noise."""
        domain, one_ways = schema.domain, measured[1:]
        best = list(one_ways)
        if rho > 0:
            cliques = [one_way.clique for one_way in one_ways]
            sigmas = [parts.sigma(rho * share) for share in budget_shares(cliques, domain)]
            again = measure(records, cliques, sigmas, ledger, purpose="1-way", threads=self.threads)
            best = [_mean(first, second) for first, second in zip(one_ways, again, strict=True)]
            measured = (*measured, *again)

        def generate(n: int, seed: int | None, _trace: list[float]) -> Records:
            return independent(best, domain, n, seed=seed)

        return Release(schema, measured, ledger, generate, kind, notes)

    def _choose(
        self,
        distances: Floats,
        resolutions: Sequence[Sequence[Level]],
        schema: Schema,
        domain: Domain,
        total: float,
        budget: float,
    ) -> list[_Set]:
        """Return the sets to measure, and the precision of each, by expected errors at one price."""
        options = self._options()
        sigmas = grid(budget)
        ordinal = [name in schema.ordinal for name in domain]
        prospects = expected_errors(resolutions, ordinal, distances, total, sigmas)
        price = find_price(prospects, sigmas, budget)
        sets: list[_Set] = []
        for _ in range(_ROUNDS):
            places = choose(prospects, sigmas, price)
            sets = _pack(prospects, places, sigmas, domain, price, options, self.threads)
            spent = sum(chosen.precision for chosen in sets)
            if options.order == 2 or not sets or abs(spent / budget - 1) < 0.05:
                break
            # What is spent goes as price^(-2/3).
            price *= (spent / budget) ** 1.5
        return sets

    def _records(
        self, targets: Sequence[Measurement], domain: Domain, n: int, seed: int | None, trace: list[float]
    ) -> Records:
        options = self._options()
        copies = options.replicate or (4 if n >= 1_000_000 else 2 if n >= 100_000 else 1)
        rng = np.random.default_rng(check_seed(seed))
        descent = Descent(
            targets, domain, -(-n // copies), start="independent", threshold=options.threshold,
            seed=int(rng.integers(2**63)), threads=self.threads,
        )
        scale = len(descent.records) / max(estimate_total(targets), 1)
        enough = 0.2 * (scale * min(target.sigma for target in targets)) ** 2 * sum(t.values.size for t in targets)
        last, final = descent.loss, False
        for number in range(1, options.sweeps + 1):
            self._note(descent.sweep(1.0 if final else None), trace)
            if final or descent.moves[-1] * 2000 < len(descent.records):
                break
            loss = descent.loss
            final = number >= 2 and (loss < enough or loss > 0.9 * last or number + 1 >= options.sweeps)
            last = loss
        made = descent.records
        if copies == 1 or n == 0:
            return made
        rows = rng.permutation(np.arange(n) % len(made))
        repeated = Records({name: made[name][rows] for name in made}, domain)
        descent = Descent(
            targets, domain, start=repeated, threshold=options.threshold, seed=int(rng.integers(2**63)),
            threads=self.threads,
        )
        self._note(descent.sweep(), trace)
        return descent.records

    def _note(self, error: float, trace: list[float]) -> None:
        trace.append(error)
        if self.progress is not None:
            self.progress(len(trace), error)


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


def _resolutions(
    compression: Compression, total: float, ordinal: frozenset[str], sizes: Sequence[int]
) -> list[list[Level]]:
    return [
        levels(onto_simplex(one_way.values, total), ordinal=one_way.clique[0] in ordinal, sizes=sizes)
        for one_way in compression.one_ways
    ]


def _pack(
    prospects: Prospects,
    places: npt.NDArray[np.int64],
    sigmas: Floats,
    domain: Domain,
    price: float,
    options: PrismOptions,
    threads: int | None,
) -> list[_Set]:
    """Return the chosen pairs as sets, those of small attributes packed into larger ones."""
    sizes = np.array(list(domain.values()))
    small = np.flatnonzero((sizes > 1) & (sizes <= _SMALL))
    rank = np.full(len(sizes), -1)
    rank[small] = np.arange(small.size)
    packs = options.order > 2 and small.size > 2
    inside = (rank[prospects.pairs] >= 0).all(axis=1) & packs
    precision = 1 / sigmas**2
    sets = [
        _Set(tuple(pair.tolist()), tuple(prospects.level[p, place].tolist()), float(precision[place]))
        for p, (pair, place) in enumerate(zip(prospects.pairs, places, strict=True))
        if place >= 0 and not inside[p]
    ]
    if not packs:
        return sets
    triples = math.comb(len(sizes), 3) / len(prospects.pairs)
    among = np.flatnonzero(inside)
    interaction = max(float(prospects.structure[among].mean()), 0.0)
    chosen = among[places[among] >= 0]
    packed = _core.pack(
        sizes[small].tolist(),
        sigmas,
        np.ascontiguousarray(prospects.fine[among]).reshape(-1),
        np.ascontiguousarray(prospects.unmeasured[among]),
        [(rank[prospects.pairs[p]].tolist(), int(places[p])) for p in chosen],
        price,
        options.order,
        _MAX_CELLS,
        options.triple_bonus * interaction / triples,
        options.triple_error * interaction,
        1 / triples if options.triple_error > 0 else 0.0,
        0,
        threads_or_all(threads),
    )
    for attributes, place in packed:
        sets.append(_Set(tuple(small[attributes].tolist()), (0,) * len(attributes), float(precision[place])))
    return sets


def _cliques(
    sets: Sequence[_Set], domain: Domain, resolutions: Sequence[Sequence[Level]]
) -> tuple[list[Clique], list[Coarsening]]:
    names = list(domain)
    cliques: list[Clique] = []
    coarsening: list[Coarsening] = []
    for chosen in sets:
        cliques.append(tuple(names[i] for i in chosen.attributes))
        seen = {names[i]: resolutions[i][level].buckets for i, level in zip(chosen.attributes, chosen.levels, strict=True)}
        coarsening.append({name: buckets for name, buckets in seen.items() if buckets is not None})
    return cliques, coarsening


def _over_schema(table: Measurement, compression: Compression) -> Measurement:
    """Return a table over the compressed domain as one over the schema's, in buckets where values were merged."""
    seen: dict[str, npt.ArrayLike] = {}
    for name in table.clique:
        codes = compression.codes(name)
        buckets = table.coarsening.get(name)
        if buckets is not None or compression.domain[name] != compression.original[name]:
            seen[name] = codes if buckets is None else np.asarray(buckets)[codes]
    return replace(table, coarsening=seen)


def _denoise(
    one_ways: Sequence[Measurement],
    tables: Sequence[Measurement],
    compression: Compression,
    total: float,
    options: PrismOptions,
) -> list[Measurement]:
    """Return targets for descent: 1-ways and tables after all of them have been heard."""
    domain = compression.domain
    singles: list[Measurement] = []
    for one_way, coded in zip(one_ways, compression.one_ways, strict=True):
        (name,) = one_way.clique
        merged = np.bincount(compression.codes(name), minlength=domain[name])
        values, variances = coded.values.astype(np.float64), merged * one_way.sigma**2
        if options.absorb:
            values, variances = absorb(name, values, variances, tables)
        sigma = math.sqrt(float(variances.sum()) / merged.sum())
        singles.append(replace(coded, values=onto_simplex(values, total), sigma=sigma))
    shares = {single.clique[0]: single.values / total for single in singles}
    found = [_expect(table, shares, total) for table in tables]
    return [*singles, *_shrunk(found, options)]


@dataclass(frozen=True, eq=False)
class _Expected:
    """A table with what independence expects of it; a pair's noisy values have the expected margins."""

    table: Measurement
    values: Floats
    expected: Floats
    variance: float


def _expect(table: Measurement, shares: dict[str, Floats], total: float) -> _Expected:
    axes = []
    for name in table.clique:
        buckets = table.coarsening.get(name)
        axes.append(shares[name] if buckets is None else np.bincount(np.asarray(buckets), weights=shares[name]))
    expected = total * reduce(np.multiply.outer, axes)
    values, variance = table.values.astype(np.float64), table.sigma**2
    if values.ndim == 2:
        off = values - expected
        rows, columns = off.shape
        values = expected + off - off.mean(axis=1, keepdims=True) - off.mean(axis=0, keepdims=True) + off.mean()
        variance *= (rows - 1) * (columns - 1) / (rows * columns)
    return _Expected(table, values, expected, variance)


def _shrunk(found: Sequence[_Expected], options: PrismOptions) -> list[Measurement]:
    pairs = [i for i, one in enumerate(found) if one.values.ndim == 2 and min(one.values.shape) > 1]
    signal: dict[int, Floats] = {}
    if options.low_rank and pairs:
        deviations = [
            Deviation(_axes(found[i].table), found[i].values - found[i].expected, found[i].table.sigma) for i in pairs
        ]
        signal = dict(zip(pairs, low_rank(deviations), strict=True))
    targets = []
    for i, one in enumerate(found):
        values = one.values
        if i in signal:
            centre = one.expected + signal[i]
            key = 0.7 * np.maximum(centre, 0.0) + 0.3 * one.expected
            if options.shrink:
                values = shrink(values, centre, one.table.sigma**2, key=key)
        elif options.shrink and one.variance > 0:
            values = shrink(values, one.expected, one.variance)
        targets.append(replace(one.table, values=values))
    return targets


def _axes(table: Measurement) -> tuple[Any, Any]:
    first, second = ((name, np.asarray(table.coarsening.get(name, ())).tobytes()) for name in table.clique)
    return first, second
