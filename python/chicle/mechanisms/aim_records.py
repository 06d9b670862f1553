"""The rounds of AIM over records: the model is the synthetic table itself, without a junction tree or a size limit.

1. The number of records and 1-ways (`mechanisms.basis`); values that do not stand out are merged.
2. The first round scores all pairs of the workload's closure against the product of the 1-ways, and takes, by one
   price, the sets, levels and noises that lower the expected error of the workload most, as Prism does
   (`selection.sets`).
3. Further rounds score cliques of any order of the closure against the counts of the current synthetic table, and buy
   by one price those whose distance exceeds the error that noise would leave. Several are measured in a round, so few
   rounds suffice. Where the scores would be mostly noise, the first round is the only one.
4. Records by descent towards all tables, denoised (`models.denoised`).

Scores are integers with Gaussian noise, and so are tables: the whole mechanism is exactly mu-GDP. The synthetic table
of a round is made from releases with a public seed, so anyone who has the release can make it again.

The weight of a clique is the total weight of the workload's cliques that hold it: an error in it is in all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from chicle.domain import Clique, Domain
from chicle.measurements.desk import Desk
from chicle.mechanisms.basis import Basis
from chicle.mechanisms.prism_options import PrismOptions
from chicle.mechanisms.rounds import Chooser, Pick, Round, Schedule
from chicle.models.base import Model
from chicle.privacy.budget import calibrate
from chicle.query import Query, QueryLike
from chicle.selection.expected_error import MAX_CELLS, NoiseClasses, steady
from chicle.selection.price import choose, find_price, grid
from chicle.selection.sets import Packing, as_queries, choose_sets
from chicle.workload import Workload

__all__ = ["RecordRun", "UnequalRounds", "candidates"]

Floats = npt.NDArray[np.float64]

_LATER = 0.3  # share of all rounds after the first
_CLEAR = 0.01  # of the records: most noise of scores in further rounds
_MOST = 50_000  # cliques that a round scores


@dataclass
class UnequalRounds(Schedule):
    """A known share of the budget for each round; scores get the same part of each.

    Attributes
    ----------
    rho
        What all rounds may spend.
    shares
        The share of each round.
    selection
        The part of a round's budget for its scores.
    """

    rho: float
    shares: Sequence[float]
    selection: float
    done: int = 0

    def next(self, desk: Desk) -> Round:
        """Return the next round."""
        del desk
        rho = self.rho * self.shares[self.done]
        self.done += 1
        return Round(self.done, rho * self.selection, rho * (1 - self.selection), last=self.done == len(self.shares))


@dataclass
class RecordRun(Chooser[Model]):
    """Many cliques a round, by noisy scores: the first round against independence, the others against records.

    Attributes
    ----------
    basis
        The first releases.
    workload
        What matters.
    options
        Prism's switches.
    rounds
        How many rounds; None for one or two, as the budget allows.
    pairs
        The pairs of the workload's closure, which the first round scores.
    """

    basis: Basis
    workload: Workload
    options: PrismOptions
    rounds: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        self._coverage = self.workload.coverage()
        self._later = candidates(self.basis.merged.domain, self.workload)
        self.pairs = [pair for pair in self.basis.pairs if pair in self._coverage]

    def schedule(self) -> UnequalRounds:
        """Return what each round may spend."""
        rest, selection = self.basis.split.rest, self.options.selection
        rounds, number = self.rounds, len(self._later)
        if rounds is None:
            sigma = calibrate(rest * _LATER * selection, l2_sensitivity=self.basis.desk.k) * math.sqrt(max(number, 1))
            rounds = 2 if number and sigma < _CLEAR * self.basis.total else 1
        shares = [1.0] if rounds == 1 or not number else [1 - _LATER, *[_LATER / (rounds - 1)] * (rounds - 1)]
        return UnequalRounds(rest, shares, selection)

    def choose(self, desk: Desk, model: Model, now: Round) -> list[Pick]:
        """Choose the cliques that are worth their price."""
        return self._first(desk, now) if now.number == 1 else self._next(desk, model, now)

    def _first(self, desk: Desk, now: Round) -> list[Pick]:
        basis, options = self.basis, self.options
        pairs = self.pairs
        scores = desk.score(pairs, desk.independence(), rho=now.choosing)
        triples = self._triples()
        sets = choose_sets(
            steady(scores.values, scores.sigma),
            pairs,
            basis.resolutions,
            desk.domain,
            ordinal=desk.ordinal,
            total=basis.total,
            budget=2 * now.measuring / desk.k**2,
            weights=np.array([self._coverage[pair] for pair in pairs]),
            caution=options.caution,
            packing=Packing(options.order, options.triple_bonus * triples, options.triple_error * triples),
            threads=self.threads,
        )
        asked = sum(chosen.precision for chosen in sets)
        queries = as_queries(sets, desk.domain, basis.resolutions)
        return [Pick(query, chosen.precision / asked) for query, chosen in zip(queries, sets, strict=True)]

    def _triples(self) -> float:
        """Return the share of all triples that the workload asks for: the mean worth of covering one."""
        asked = sum(len(clique) == 3 for clique in self.workload.closure())
        return asked / max(math.comb(len(self.basis.desk.domain), 3), 1)

    def _next(self, desk: Desk, model: Model, now: Round) -> list[Pick]:
        cliques = self._later
        weights = np.array([self._coverage[clique] for clique in cliques])
        sigmas = grid(2 * now.measuring / desk.k**2)
        noise = NoiseClasses(sigmas)
        left: list[Floats] = []
        expected = desk.expect(model)

        def expect(some: Sequence[QueryLike]) -> Sequence[Floats]:
            tables = expected(some)
            left.extend(noise.errors(table) for table in tables)
            return tables

        scores = desk.score(cliques, expect, rho=now.choosing)
        distances = np.empty(len(cliques))
        orders = np.array([len(clique) for clique in cliques])
        for order in set(orders.tolist()):
            same = orders == order
            distances[same] = np.maximum(steady(scores.values[same], scores.sigma), 0.0)
        found = _Errors(weights * distances, weights[:, None] * np.array(left))
        places = choose(found, sigmas, find_price(found, sigmas, 2 * now.measuring / desk.k**2))
        chosen = np.flatnonzero(places >= 0)
        if chosen.size:
            queries: list[QueryLike] = [cliques[i] for i in chosen.tolist()]
            precision = 1 / sigmas[places[chosen]] ** 2
        else:
            # No clique stands out: the earlier tables are measured again.
            tables = [one for one in desk.transcript.measurements if len(one.clique) > 1]
            merged = [self.basis.merge.over(table) for table in tables]
            queries = [Query(table.clique, table.buckets) for table in merged]
            precision = np.array([1 / table.sigma**2 for table in tables])
        shares = precision / precision.sum()
        return [Pick(query, share) for query, share in zip(queries, shares.tolist(), strict=True)]


@dataclass(frozen=True, eq=False)
class _Errors:
    """The errors by which `selection.price` chooses."""

    unmeasured: Floats
    best: Floats


def candidates(domain: Domain, workload: Workload) -> list[Clique]:
    """Return the cliques to score after the first round: those of several attributes in the closure, small first.

    Parameters
    ----------
    domain
        The attributes, with merged values.
    workload
        What matters.
    """
    found: list[Clique] = []
    for order, cliques in groupby(workload.closure(), len):
        joint = [c for c in cliques if order > 1 and min(domain.shape(c)) > 1 and domain.cells(c) <= MAX_CELLS]
        # Where not all cliques of an order can be scored, evenly spaced ones are.
        room = min(_MOST - len(found), len(joint))
        found += [joint[i * len(joint) // room] for i in range(room)]
    return found
