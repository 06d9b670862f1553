"""The rounds of AIM over records: the model is the synthetic table itself, so there is no junction tree and no cap.

1. The number of records and 1-ways (`mechanisms.ground`); values that do not stand out are merged.
2. The first round scores all pairs of the workload's closure against the product of the 1-ways, and takes, by one
   price, the sets, levels and noises that lower the expected error of the workload most (`select.sets`, as Prism does).
3. Further rounds score cliques of any order of the closure against the counts of the current synthetic table, and buy
   by one price those whose distance exceeds what noise would leave. Several are measured in a round, so a few rounds
   do; where scores of so many cliques would be mostly noise, the first round is the only one.
4. Records by descent towards all tables, denoised (`mechanisms.denoised`).

Scores are integers with Gaussian noise, and so are tables: the whole mechanism is exactly mu-GDP. The synthetic table
of a round is made from releases with a seed that is no secret, so whoever has the release can make it again.

A clique weighs as much as the cliques of the workload that hold it: their tables are all wrong where it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle.counting.counter import count
from chicle.counting.records import Records
from chicle.denoising import denoise
from chicle.domain import Clique, Domain
from chicle.measurements.measurement import Measurement, measure
from chicle.measurements.merges import Compression, over_compressed, over_original
from chicle.mechanisms.denoised import DenoisedRecords, together
from chicle.mechanisms.ground import Ground
from chicle.mechanisms.prism_options import PrismOptions
from chicle.privacy.ledger import Ledger
from chicle.selection import Scores, distances, indif
from chicle.selection.expected_error import MAX_CELLS, NoiseClasses, steady
from chicle.selection.price import choose, find_price, grid
from chicle.selection.sets import Packing, choose_sets
from chicle.workload import Workload

__all__ = ["RecordRounds", "candidates", "expected_counts", "reference_records"]

Floats = npt.NDArray[np.float64]

_SEED = 0xA1
_LATER = 0.3  # share of all rounds after the first
_CLEAR = 0.01  # of the records: further rounds want scores with less noise than that
_MOST = 50_000  # cliques that a round scores


@dataclass
class RecordRounds:
    """AIM's rounds over records.

    Attributes
    ----------
    ground
        The first releases.
    workload
        What matters, over the attributes that the ground has.
    options
        Prism's switches.
    rounds
        How many to take; None for as many as help.
    tables, scores
        What was released so far, over the original domain and over the compressed one.
    measured_before
        How many tables there were when each of the scores was released.
    """

    ground: Ground
    workload: Workload
    options: PrismOptions
    rounds: int | None = None
    threads: int | None = None
    tables: list[Measurement] = field(default_factory=list)
    scores: list[Scores] = field(default_factory=list)
    measured_before: list[int] = field(default_factory=list)

    def run(self, ledger: Ledger) -> bool:
        """Spend what the ground left; False, and nothing of the tables' share is spent, if no pair is worth a table."""
        coverage = self.workload.coverage()
        pairs = [pair for pair in self.ground.pairs if pair in coverage]
        if not pairs:
            return False
        later = candidates(self.ground.coded.domain, self.workload)
        shares = self._shares(len(later))
        rest = self.ground.parts.rest
        if not self._first(pairs, [coverage[pair] for pair in pairs], rest * shares[0], ledger):
            return False
        for share in shares[1:]:
            self._next(later, np.array([coverage[clique] for clique in later]), rest * share, ledger)
        return True

    @property
    def selection(self) -> float:
        """Which part of a round's budget goes to its scores."""
        return self.options.selection

    def told(self) -> list[dict[str, Any]]:
        """Return the scores as plain data, with attributes by their positions."""
        position = self.ground.schema.domain.position
        return [
            {
                "cliques": [[position(name) for name in clique] for clique in scores.cliques],
                "values": scores.values.tolist(),
                "sigma": scores.sigma,
                "after": after,
            }
            for scores, after in zip(self.scores, self.measured_before, strict=True)
        ]

    def _shares(self, number: int) -> list[float]:
        """Return the part of each round; `number` cliques are scored in every round but the first."""
        rounds = self.rounds
        if rounds is None:
            sigma = self.ground.parts.sigma(self.ground.parts.rest * _LATER * self.selection) * math.sqrt(
                max(number, 1)
            )
            rounds = 2 if number and sigma < _CLEAR * self.ground.total else 1
        return [1.0] if rounds == 1 or not number else [1 - _LATER, *[_LATER / (rounds - 1)] * (rounds - 1)]

    def _first(self, pairs: Sequence[Clique], weights: Sequence[float], rho: float, ledger: Ledger) -> bool:
        ground, options = self.ground, self.options
        scored, measured = rho * self.selection, rho * (1 - self.selection)
        one_ways = ground.compression.one_ways
        scores = indif(ground.coded, ledger, rho=scored, one_ways=one_ways, pairs=pairs, threads=self.threads)
        self._keep(scores)
        triples = self._triples()
        sets = choose_sets(
            steady(scores.values, scores.sigma),
            pairs,
            ground.resolutions,
            ground.coded.domain,
            ordinal=ground.schema.ordinal,
            total=ground.total,
            budget=2 * measured / ground.k**2,
            weights=np.array(weights),
            caution=options.caution,
            packing=Packing(options.order, options.triple_bonus * triples, options.triple_error * triples),
            threads=self.threads,
        )
        if sets:
            self.tables += ground.measure_sets(sets, measured, ledger, threads=self.threads)
        return bool(sets)

    def _triples(self) -> float:
        """Return which part of all triples the workload asks for: what covering one is worth on average."""
        asked = sum(len(clique) == 3 for clique in self.workload.closure())
        return asked / max(math.comb(len(self.ground.schema.domain), 3), 1)

    def _keep(self, scores: Scores) -> None:
        self.scores.append(scores)
        self.measured_before.append(len(self.tables))

    def _next(self, cliques: Sequence[Clique], weights: Floats, rho: float, ledger: Ledger) -> None:
        ground = self.ground
        scored, measured = rho * self.selection, rho * (1 - self.selection)
        made = reference_records(
            ground.one_ways, self.tables, ground.compression, ground.total, self.options, threads=self.threads
        )
        sigmas = grid(2 * measured / ground.k**2)
        noise = NoiseClasses(sigmas)
        left: list[Floats] = []

        def expect(some: Sequence[Clique]) -> list[Floats]:
            tables = expected_counts(made, some, ground.total, self.threads)
            left.extend(noise.errors(table) for table in tables)
            return tables

        scores = distances(ground.coded, cliques, expect, ledger, rho=scored, threads=self.threads)
        self._keep(scores)
        now = np.empty(len(cliques))
        orders = np.array([len(clique) for clique in cliques])
        for order in set(orders.tolist()):
            same = orders == order
            now[same] = np.maximum(steady(scores.values[same], scores.sigma), 0.0)
        found = _Errors(weights * now, weights[:, None] * np.array(left))
        places = choose(found, sigmas, find_price(found, sigmas, 2 * measured / ground.k**2))
        chosen = np.flatnonzero(places >= 0)
        if chosen.size:
            named = [cliques[i] for i in chosen.tolist()]
            seen: list[dict[str, npt.ArrayLike]] = [{}] * len(named)
            precision = 1 / sigmas[places[chosen]] ** 2
        else:
            # Nothing stands out from the table: what was measured before gets better.
            before = [over_compressed(table, ground.compression) for table in self.tables]
            named, seen = [table.clique for table in before], [dict(table.coarsening) for table in before]
            precision = np.array([1 / table.sigma**2 for table in before])
        noises = [ground.parts.sigma(measured * share) for share in precision / precision.sum()]
        tables = measure(ground.coded, named, noises, ledger, coarsening=seen, threads=self.threads)
        self.tables += [over_original(table, ground.compression) for table in tables]


@dataclass(frozen=True, eq=False)
class _Errors:
    """What `select.price` chooses by."""

    unmeasured: Floats
    best: Floats


def candidates(domain: Domain, workload: Workload) -> list[Clique]:
    """Return what is scored after the first round: cliques of the closure that tell of several attributes, small first.

    Parameters
    ----------
    domain
        The attributes, with the values that are left of them.
    workload
        What matters.
    """
    found: list[Clique] = []
    for order, cliques in groupby(workload.closure(), len):
        telling = [c for c in cliques if order > 1 and min(domain.shape(c)) > 1 and domain.cells(c) <= MAX_CELLS]
        # Where not all of an order can be scored, some from everywhere are.
        room = min(_MOST - len(found), len(telling))
        found += [telling[i * len(telling) // room] for i in range(room)]
    return found


def reference_records(
    one_ways: Sequence[Measurement],
    tables: Sequence[Measurement],
    compression: Compression,
    total: int,
    options: PrismOptions,
    *,
    threads: int | None = None,
) -> Records:
    """Return the synthetic table, over the compressed domain, that a round compares with: releases alone make it."""
    targets = denoise(
        one_ways,
        together([over_compressed(table, compression) for table in tables]),
        compression,
        total,
        absorbing=options.absorb,
        sharing=options.low_rank,
        pull=options.pull,
    )
    return DenoisedRecords(targets, compression, options).compressed(total, _SEED, note=_unheard, threads=threads)


def expected_counts(made: Records, cliques: Sequence[Clique], total: int, threads: int | None) -> list[Floats]:
    """Return the counts of a synthetic table, as if it had as many records as there are."""
    scale = total / max(len(made), 1)
    return [table.astype(np.float64) * scale for table in count(made, cliques, threads)]


def _unheard(number: int, error: float) -> None:
    """Take note of nothing."""
