"""PrivMRF: a graph chosen by R-scores under a size limit, then marginals inside it, round by round.

Cai, Lei, Wei and Xiao, "Data Synthesis via Differentially Private Markov Random Fields", VLDB 2021; the strongest
peer of AIM in [A]. The graph is fixed before any of its tables is measured, so all candidates fit its junction tree:

1. 1-ways, and one noisy vector of R-scores: how far each pair is from independence. Ours are InDif against the released
   1-ways, with the sensitivity of one row; the paper's compare with exact 1-ways.
2. The graph: pairs by falling score, as long as the junction tree of the graph stays below `max_size`, and as long as a
   score is above its noise.
3. Candidates: cliques of the graph, of at most `order` attributes, that are *theta-useful*: on average a cell has at
   least theta times the noise of a table. Each round chooses, by the exponential mechanism, the one that the model gets
   most wrong, measures it and refits the graphical model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from chicle._checks import integer, number
from chicle.domain import Clique, Domain
from chicle.errors import ParameterError
from chicle.measurements.desk import Desk
from chicle.measurements.measurement import Measurement, estimate_total
from chicle.measurements.scores import Scores
from chicle.mechanisms.base import Mechanism, parts_of, register_mechanism
from chicle.mechanisms.rounds import Chooser, EqualRounds, Pick, Round, rounds
from chicle.mechanisms.stages import Setting, Stages, one_way_stage, score_stage, selected_stage
from chicle.models.base import Model
from chicle.models.independent import IndependentModel
from chicle.models.pgm import GraphicalModel, jt_size, pairs_with_room
from chicle.privacy.budget import calibrate

__all__ = ["PrivMRF", "graph"]

_ALONE = "no pair stands out from the noise, or none is worth its cost: attributes are independent"
_STANDS_OUT = 2  # standard deviations of a score, beyond what noise in the 1-ways makes of independent attributes
_TOLERANCE = 1e-3  # of a round's fit: the next round starts from it


@register_mechanism
@dataclass(kw_only=True, eq=False, repr=False)
class PrivMRF(Mechanism):
    """Choose a graph of attributes by noisy scores, measure marginals inside it; records by the graphical model.

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting, discovery, threads, progress
        As for every mechanism.
    rounds
        How many marginals are measured; by default twice as many as there are attributes.
    shares
        Parts of the budget for 1-ways, R-scores and rounds.
    alpha
        The part of a round's rho for its table; the choice gets the rest.
    order
        Most attributes of a marginal.
    theta
        A marginal is useful if a cell has theta times the noise on average.
    max_size
        Most bytes of the junction tree.
    iterations
        Most steps of refitting the model in a round; ten times as many at the end.

    Examples
    --------
    >>> import chicle
    >>> synth = chicle.PrivMRF(epsilon=1, delta=1e-9).fit(chicle.datasets.census(5_000, d=6))
    >>> table = synth.sample(seed=0)
    """

    rounds: int | None = None
    shares: tuple[float, float, float] = (0.1, 0.1, 0.8)
    alpha: float = 0.9
    order: int = 4
    theta: float = 4.0
    max_size: int = 16 * 2**20
    iterations: int = 100

    per_pair = 5.0

    def check(self, domain: Domain) -> None:
        """Raise for parameters that cannot be used."""
        self._rounds(domain)
        integer("order", self.order, 2)
        integer("max_size", self.max_size, 8)
        number("theta", self.theta)
        if not 0 < number("alpha", self.alpha) < 1:
            raise ParameterError(f"alpha must lie between 0 and 1, not {self.alpha!r}")
        GraphicalModel(iterations=integer("iterations", self.iterations, 1))

    def stages(self, setting: Setting) -> Stages:
        """Split the budget between 1-ways, R-scores, choices and tables."""
        first, second, third = parts_of(setting.rho, self.shares)
        if not (pairs := pairs_with_room(setting.domain)):
            return Stages.of(one_way_stage(setting, setting.rho))
        return Stages.of(
            one_way_stage(setting, first),
            score_stage(second, len(pairs), "R-scores"),
            selected_stage(setting, self.alpha * third, "marginals of the graph"),
            score_stage((1 - self.alpha) * third, self._rounds(setting.domain), "choices"),
        )

    def run(self, desk: Desk) -> Model:
        """Measure 1-ways and R-scores, make the graph, measure marginals inside it."""
        stages = self.stages(Setting.at(desk))
        measured = desk.measure_one_ways(rho=stages.rho("1-way"))
        if "marginal" not in stages:
            return self.learn(IndependentModel(), desk)
        scoring, _ = (stage.rho for stage in stages.all if stage.name == "selection")
        scores = desk.score(pairs_with_room(desk.domain), desk.independence(), rho=scoring)
        total = max(estimate_total(measured), 1)
        edges = graph(scores, measured, desk.domain, self.max_size)
        number = self._rounds(desk.domain)
        tables = stages.rho("marginal")
        sigma = calibrate(tables / number, l2_sensitivity=desk.k)
        candidates = self._candidates(edges, desk.domain, total / (self.theta * sigma))
        if not candidates:
            desk.measure_one_ways(rho=desk.left)
            desk.note(_ALONE)
            return self.learn(IndependentModel(), desk)
        schedule = EqualRounds(min(number, len(candidates)), desk.left - tables, tables)
        run = _InGraph(candidates)
        rounds(desk, self._fitted_to(desk, None), run, schedule, lambda before: self._fitted_to(desk, before))
        return self.learn(GraphicalModel(iterations=10 * self.iterations), desk)

    def _rounds(self, domain: Domain) -> int:
        return 2 * len(domain) if self.rounds is None else integer("rounds", self.rounds, 1)

    def _fitted_to(self, desk: Desk, before: GraphicalModel | None) -> GraphicalModel:
        """Return the model of all measurements so far, fitted as closely as a choice needs."""
        model = GraphicalModel(iterations=self.iterations, tolerance=_TOLERANCE)
        return model.fit(desk.transcript.measurements, desk.domain, start=before, threads=self.threads)

    def _candidates(self, edges: Sequence[Clique], domain: Domain, most: float) -> list[Clique]:
        """Return the cliques of a graph with at most so many cells, small ones first."""
        joined = set(edges)
        found = layer = [edge for edge in edges if domain.cells(edge) <= most]
        for _ in range(2, self.order):
            grown: dict[Clique, None] = {}
            for clique in layer:
                for name in domain:
                    larger = domain.clique({*clique, name})
                    useful = len(larger) > len(clique) and domain.cells(larger) <= most
                    if useful and joined.issuperset(combinations(larger, 2)):
                        grown[larger] = None
            layer = list(grown)
            found = found + layer
        return found


@dataclass
class _InGraph(Chooser[GraphicalModel]):
    """One clique a round, by its L1 distance from the model and the exponential mechanism; each clique once."""

    candidates: Sequence[Clique]

    def choose(self, desk: Desk, model: GraphicalModel, now: Round) -> list[Pick]:
        """Return a clique that was not measured before."""
        chosen = {choice.query for choice in desk.transcript.choices}
        left = [clique for clique in self.candidates if clique not in chosen]
        return [Pick(desk.choose(left, desk.expect(model), rho=now.choosing).clique)]


def graph(scores: Scores, one_ways: Sequence[Measurement], domain: Domain, max_size: int) -> list[Clique]:
    """Return the pairs of the graph, from released scores alone.

    Parameters
    ----------
    scores
        Noisy R-scores of pairs.
    one_ways
        The noisy 1-ways that they compare with: independent attributes score what their noise makes of them.
    domain
        The attributes.
    max_size
        Most bytes of the junction tree.
    """
    noise = {one.clique[0]: math.sqrt(2 / math.pi) * one.sigma * one.values.size for one in one_ways}
    values = dict(zip(scores.cliques, np.asarray(scores.values).tolist(), strict=True))
    kept: list[Clique] = []
    for pair in scores.highest_first():
        if values[pair] <= sum(noise[name] for name in pair) + _STANDS_OUT * scores.sigma:
            continue
        if jt_size([*kept, pair], domain) <= max_size:
            kept.append(pair)
    return kept
