"""DualQuery and FEM ([G] section 3): records that are best responses to chosen queries; no query is measured.

A query is a cell of the workload, and so is its negation: a record should lie in the cell, or should not. Both
mechanisms choose by the exponential mechanism what the records so far get wrong, with its sign (`Desk.choose_cells`),
and add records that do well on what was chosen. Records are made of choices alone, so they cost nothing.

The score of a cell is ``+-(count - n share)``: the private count, less what n records like those so far would have in
it. Here n is the released number of records, a constant, so one person moves a score by at most k, whatever n is.

- **DualQuery** keeps weights ``exp(+-eta t (count / n - share))`` over queries after t rounds, draws s queries from
  them, and adds the record that answers these best. A draw is an exponential mechanism of ``epsilon = 2 eta t k / n``,
  so round t costs ``s (2 eta t k / n)^2 / 8`` of rho. The first one, with even weights, costs nothing.
- **FEM** (follow the perturbed leader) adds s records a round, each the best response to all queries chosen so far,
  less random costs of codes, which protect nobody. Then it chooses one query that these s records get wrong.

[G] replaces a person and takes n as public; chicle adds or removes one and buys n with a part of the budget.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle._checks import integer, number
from chicle.domain import Domain
from chicle.errors import ParameterError
from chicle.measurements.cells import Cells
from chicle.measurements.desk import Desk
from chicle.measurements.measurement import estimate_total
from chicle.measurements.scores import Choice
from chicle.mechanisms.base import register_mechanism
from chicle.mechanisms.query_release import COUNTING, Per, QueryRelease
from chicle.mechanisms.stages import Setting, Stage, Stages, count_stage
from chicle.models.responses import STARTS, best_responses, joined
from chicle.models.reweighted import WeightedRowsModel
from chicle.plans import Cost
from chicle.query import QueryLike, as_query

__all__ = ["FEM", "BestResponse", "DualQuery"]

_SEED = 0xB357  # of starts and costs: public, so that anyone can make the records again from the choices
_MOST_ROUNDS = 10_000
_LOG = 20.0  # log(1 / delta), for a budget without a delta
_PER_CELL = 15  # nanoseconds of a choice for each cell of the workload, measured on Adult


@dataclass(kw_only=True, eq=False, repr=False)
class BestResponse(QueryRelease):
    """Base of DualQuery and FEM: the number of records is measured, then queries are chosen, and nothing else.

    Parameters
    ----------
    starts
        How many coordinate ascents look for each record.
    """

    starts: int = STARTS

    @abstractmethod
    def spread(self, setting: Setting, rho: float) -> tuple[list[float], int]:
        """Return the rho of each round that chooses, and how many choices it makes."""

    @abstractmethod
    def make(self, desk: Desk, spent: Sequence[float], choices: int, n: int) -> list[Any]:
        """Spend what `spread` said on choices; return the records, in parts."""

    @property
    def choosing(self) -> float:
        """The share of the budget that is spent on choices: all of it."""
        return 1.0

    @property
    def unit(self) -> Per:
        """What a round chooses: single queries."""
        if self.per not in (None, "query"):
            raise ParameterError(f"{type(self).__name__} chooses single queries; leave out per={self.per!r}")
        return "query"

    def check(self, domain: Domain) -> None:
        """Raise for parameters that cannot be used."""
        super().check(domain)
        integer("starts", self.starts, 1)
        if self.rounds is not None:
            integer("rounds", self.rounds, 2, _MOST_ROUNDS)

    def stages(self, setting: Setting) -> Stages:
        """Split the budget between the number of records and choices."""
        first = COUNTING * setting.rho
        spent, choices = self.spread(setting, setting.rho - first)
        number = len(spent) * choices
        cliques = self.cliques(setting.domain)
        many = "1 choice" if number == 1 else f"{number:,} choices"
        of = f"{many} among the cells of {len(cliques):,} cliques, and their negations"
        return Stages.of(count_stage(first), Stage(name="selection", rho=setting.rho - first, of=of))

    def cost(self, setting: Setting) -> Cost:
        """Return about how long a fit and a sample take, and how much memory."""
        spent, choices = self.spread(setting, setting.rho)
        cells = sum(map(setting.domain.cells, self.cliques(setting.domain)))
        cost = super().cost(setting)
        seconds = _PER_CELL * 1e-9 * cells * len(spent) * (choices + 2)
        return replace(cost, seconds=cost.seconds + seconds, memory=cost.memory + 64 * cells)

    def run(self, desk: Desk) -> WeightedRowsModel:
        """Measure the number of records, then choose queries and add records."""
        stages = self.stages(Setting.at(desk))
        desk.measure([()], rho=stages.rho("records"), purpose="number of records")
        n = max(estimate_total(desk.transcript.measurements), 1)
        spent, choices = self.spread(replace(Setting.at(desk), n=n), stages.rho("selection"))
        made = joined(self.make(desk, spent, choices, n), desk.domain)
        return self.learn(WeightedRowsModel(rows=made), desk)

    def respond(self, chosen: Sequence[Choice], desk: Desk, turn: int, records: int = 1, scale: float = 0.0) -> Any:  # noqa: ANN401
        """Return records that lie in the cells of positive choices and not in those of negative ones."""
        cells, signs = [as_query(one.query).where for one in chosen], [one.sign for one in chosen]
        seed = int(np.random.default_rng([_SEED, turn]).integers(2**63))
        return best_responses(
            cells,
            signs,
            desk.domain,
            number_of_records=records,
            scale=scale,
            starts=self.starts,
            seed=seed,
            threads=desk.threads,
        )


@register_mechanism
@dataclass(kw_only=True, eq=False, repr=False)
class DualQuery(BestResponse):
    """DualQuery: each record is the best response to queries drawn from weights that grow where records are wrong.

    Its records are few, about ``(6 n^2 rho / (s eta^2 k^2))^(1/3)``, so it is the coarsest of the mechanisms of [G].

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting, discovery, threads, progress
        As for every mechanism.
    workload, starts
        As for every mechanism of query release; how many coordinate ascents look for each record.
    rounds
        How many records are made; by default as many as `eta` pays for. `eta` then follows from the budget.
    eta
        How fast weights grow. It is raised a little, so that a whole number of rounds spends the budget.
    samples
        s, how many queries are drawn in a round.
    per, published
        There is one form, which chooses single queries.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(5_000, d=4)
    >>> synth = chicle.DualQuery(epsilon=1, delta=1e-9, samples=20).fit(census)
    >>> table = synth.sample(seed=0)
    """

    eta: float = 2.0
    samples: int = 50

    def check(self, domain: Domain) -> None:
        """Raise for parameters that cannot be used."""
        super().check(domain)
        integer("samples", self.samples, 1, _MOST_ROUNDS)
        if not number("eta", self.eta):
            raise ParameterError("eta must be above 0")

    def spread(self, setting: Setting, rho: float) -> tuple[list[float], int]:
        """Return the rho of each round: in proportion to t^2, as the sensitivity of the weights grows with t."""
        if self.rounds is not None:
            total = self.rounds
        else:
            one = self.samples * (2 * self.eta * setting.k / max(setting.n, 1)) ** 2 / 8
            total = 2
            while total < _MOST_ROUNDS and one * total * (total + 1) * (2 * total + 1) / 6 <= rho:
                total += 1
        squares = [float(t * t) for t in range(1, total)]
        whole = math.fsum(squares)
        return [rho * square / whole for square in squares], self.samples

    def make(self, desk: Desk, spent: Sequence[float], choices: int, n: int) -> list[Any]:
        """Draw queries and respond, round by round; the first queries are drawn evenly, from public randomness."""
        domain, cliques = desk.domain, self.cliques(desk.domain)
        made = [self.respond(_any_cells(cliques, domain, choices), desk, 0)]
        for turn, rho in enumerate(spent, 1):
            drawn = desk.choose_cells(cliques, _scaled(joined(made, domain), n), rho=rho, number=choices, signed=True)
            made.append(self.respond(drawn, desk, turn))
            if desk.progress is not None:
                desk.progress(turn, 1 - turn / len(spent))
        return made


@register_mechanism
@dataclass(kw_only=True, eq=False, repr=False)
class FEM(BestResponse):
    """FEM: records follow the perturbed leader, the queries that the records before them got wrong.

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting, discovery, threads, progress
        As for every mechanism.
    workload, starts
        As for every mechanism of query release; how many coordinate ascents look for each record.
    rounds
        T, how many rounds add records; by default as many as the paper's choices of ``c sqrt(epsilon)`` would pay for,
        about ``sqrt(rho / log(1 / delta)) / c^2``. Each choice costs a (T - 1)-th of the budget.
    c
        Decides on the number of rounds.
    scale
        The mean of the random cost of a code is this times sqrt(T).
    samples
        s, how many records a round adds.
    published
        Whether a choice costs what the paper pays, ``(c sqrt(epsilon))^2 / 2``: four times what it costs by Proposition
        2 of [A]. Then three quarters of the budget are left.
    per
        There is one form, which chooses single queries.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(5_000, d=4)
    >>> synth = chicle.FEM(epsilon=1, delta=1e-9, rounds=10).fit(census)
    >>> table = synth.sample(seed=0)
    """

    starts: int = 8
    c: float = 0.008
    scale: float = 0.16
    samples: int = 50

    def check(self, domain: Domain) -> None:
        """Raise for parameters that cannot be used."""
        super().check(domain)
        integer("samples", self.samples, 1, _MOST_ROUNDS)
        number("scale", self.scale)
        if not number("c", self.c):
            raise ParameterError("c must be above 0")

    def spread(self, setting: Setting, rho: float) -> tuple[list[float], int]:
        """Return the rho of each round, all the same."""
        del setting
        delta = self.delta
        log = _LOG if delta is None else math.log(1 / delta)
        total = self.rounds or min(max(int(math.sqrt(rho / log) / self.c**2), 2), _MOST_ROUNDS)
        each = rho / (total - 1)
        return [each / 4 if self.published else each] * (total - 1), 1

    def make(self, desk: Desk, spent: Sequence[float], choices: int, n: int) -> list[Any]:
        """Add records and choose a query that they get wrong, round by round; after the last records none is chosen."""
        cliques = self.cliques(desk.domain)
        scale = self.scale * math.sqrt(len(spent) + 1)
        chosen: list[Choice] = []
        made = [self.respond(chosen, desk, 0, self.samples, scale)]
        for turn, rho in enumerate(spent, 1):
            chosen += desk.choose_cells(cliques, _scaled(made[-1], n), rho=rho, number=choices, signed=True)
            made.append(self.respond(chosen, desk, turn, self.samples, scale))
            if desk.progress is not None:
                desk.progress(turn, 1 - turn / len(spent))
        return made


def _scaled(records: Any, n: int) -> Callable[[Sequence[QueryLike]], list[npt.NDArray[np.float64]]]:  # noqa: ANN401
    """Return what is expected of n records if they are like these."""
    scale = n / len(records)
    return lambda queries: [table * scale for table in records.count(queries)]


def _any_cells(cliques: Sequence[tuple[str, ...]], domain: Domain, choices: int) -> list[Choice]:
    """Return cells and signs that are drawn evenly, from public randomness."""
    rng = np.random.default_rng(_SEED)
    cells = Cells(cliques, domain)
    places, signs = rng.integers(len(cells), size=choices), rng.choice([-1, 1], size=choices)
    return [Choice(cells.query(int(p)), 0.0, len(cells), sign=int(sign)) for p, sign in zip(places, signs, strict=True)]
