"""The rounds of AIM on a graphical model, as published: [A] Algorithms 2 to 4.

1. 1-ways of all attributes, with the noise of the first round ([A] Algorithm 2): attributes in no clique of the
   workload would otherwise be uniform.
2. Round by round: choose a clique of the workload's closure by the exponential mechanism, with the score of [A]
   equation 1; measure it; refit the model. A clique is a candidate only if the junction tree with it stays below its
   share of `max_size`, and if measuring it could help on some data: a noisy table with an error above twice the number
   of records never helps.
3. Where a measurement has hardly moved the model, rounds get four times the budget ([A] Algorithm 3). The last round
   gets all that is left, so the whole budget is spent.

The whole is a sequence of exponential and Gaussian mechanisms whose parameters depend on earlier releases only. [A]
accounts in zCDP; here the ledger's currency decides, and what a round may spend is split 1:9 between choice and table.
Measurements are weighted by ``1 / sigma^2``, as in maximum likelihood; [A] prints 1/sigma.

Values that follow from the releases alone are recomputed when they are needed: `ModelRun.replay` gives the model before
every round, for the bounds of [A] Theorem 4 (`unmeasured_by_choices`). The score of a clique that was not chosen is
hardly above that of the chosen one. In round t, with the weights w, penalties p, distances d of all candidates C and
the chosen one c, and ``s = 2 Delta / epsilon``, where Delta is the largest weight times the k rows of a person,

    w_r (d_r - p_r)  <=  w_c (d_c - p_c) + s (log |C| + x)        with probability 1 - e^-x,

and d_c is at most the noisy table's distance plus ``y sigma sqrt(cells)`` with probability ``1 - e^(-y^2/2)``. The risk
is divided evenly between the two. Each clique is bounded by one round, the last in which it was a candidate; the
smallest bound of several rounds would not have the claimed coverage.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from chicle.domain import Clique, Domain
from chicle.measurements.desk import Desk, Zeros
from chicle.measurements.measurement import Measurement
from chicle.measurements.scores import Choice, whole_weights
from chicle.mechanisms.aim_candidates import Openings, penalty
from chicle.mechanisms.rounds import Chooser, Pick, Round, Schedule
from chicle.models.pgm import GraphicalModel
from chicle.privacy.budget import calibrate
from chicle.releases.bounds import Distance
from chicle.workload import Workload

__all__ = ["AnnealedRounds", "ModelRun", "unmeasured_by_choices"]

_TOLERANCE = 1e-3  # of a round's fit: the next round starts from it


@dataclass
class AnnealedRounds(Schedule):
    """Rounds whose budget is quadrupled after one that has hardly moved the model ([A] Algorithm 3).

    Attributes
    ----------
    share
        The rho of the next round.
    alpha
        The part of it for the table; the choice gets the rest.
    domain, k
        The attributes, and how many rows one person may have.
    """

    share: float
    alpha: float
    domain: Domain
    k: int
    done: int = 0

    def next(self, desk: Desk) -> Round:
        """Return the next round; the last gets all that is left."""
        self.done += 1
        if last := desk.left <= 2 * self.share:
            self.share = desk.left
        return Round(self.done, (1 - self.alpha) * self.share, self.alpha * self.share, last=last)

    def moved(self, picks: Sequence[Pick], distance: float) -> None:
        """Anneal where the model has moved by no more than noise explains."""
        sigma = calibrate(self.alpha * self.share, l2_sensitivity=self.k)
        if distance <= sum(penalty(pick.query, sigma, self.domain) for pick in picks):
            self.share *= 4


@dataclass
class ModelRun(Chooser[GraphicalModel]):
    """One clique a round, by the exponential mechanism with the score of [A] equation 1.

    Attributes
    ----------
    domain, workload
        The attributes, and what matters.
    max_size
        Most bytes of the junction tree at the end.
    iterations
        Most steps of refitting the model in a round.
    rho
        The budget of the whole mechanism: the model may grow in proportion to the part that is spent.
    zeros
        Structural zeros.
    """

    domain: Domain
    workload: Workload
    max_size: int
    iterations: int
    rho: float = 1.0
    zeros: Zeros = field(default_factory=dict)
    threads: int | None = None

    def __post_init__(self) -> None:
        singles: dict[Clique, None] = dict.fromkeys((name,) for name in self.domain)
        closure = [clique for clique in self.workload.closure() if clique not in singles]
        cliques = [*singles, *closure]
        self._weights = dict(zip(cliques, map(self.workload.relevance, cliques), strict=True))
        self._cells = {clique: self.domain.cells(clique) for clique in cliques}
        self._openings = self.openings()

    def choose(self, desk: Desk, model: GraphicalModel, now: Round) -> list[Pick]:
        """Choose one clique."""
        sigma = calibrate(now.measuring, l2_sensitivity=desk.k)
        share = now.choosing + now.measuring
        part = 1.0 if now.last else min(1.0, (desk.spent + share) / self.rho)
        candidates = self._openings.after(desk.transcript.measurements, sigma, part)
        choice = desk.choose(
            candidates.cliques,
            desk.expect(model),
            rho=now.choosing,
            weights=[self._weights[clique] for clique in candidates.cliques],
            penalties=[penalty(clique, sigma, self.domain) for clique in candidates.cliques],
            keeps=candidates.fit,
            context={"sigma": sigma, "part": part},
        )
        return [Pick(choice.clique)]

    def weight(self, clique: Clique) -> float:
        """Return how much a candidate matters."""
        return self._weights[clique]

    def openings(self) -> Openings:
        """Return the source of the candidates of all rounds, from the first on."""
        return Openings(self._cells, self.domain, self.max_size, frozenset(self.zeros), self.threads)

    def fitted(self, measured: Sequence[Measurement], start: GraphicalModel | None) -> GraphicalModel:
        """Return the model of some measurements, fitted as closely as a choice needs."""
        model = GraphicalModel(iterations=self.iterations, tolerance=_TOLERANCE, zeros=self.zeros)
        return model.fit(measured, self.domain, start=start, threads=self.threads)

    def replay(self, measured: Sequence[Measurement], one_ways: int) -> Iterator[GraphicalModel]:
        """Yield the model before each round, from the measurements of a release."""
        model = self.fitted(measured[:one_ways], None)
        yield model
        for end in range(one_ways + 1, len(measured)):
            model = self.fitted(measured[:end], model)
            yield model


def unmeasured_by_choices(
    run: ModelRun,
    measurements: Sequence[Measurement],
    choices: Sequence[Choice],
    cliques: Sequence[Clique],
    *,
    max_records_per_person: int,
) -> list[Distance | None]:
    """Return bounds on how far cliques are from what the model expected; None for those that were never candidates.

    Parameters
    ----------
    run
        The rounds of the release.
    measurements, choices
        What was measured, the 1-ways first, and the choice of each round.
    cliques
        The cliques to bound.
    max_records_per_person
        How many rows one person may have.
    """
    domain = run.domain
    singles = len(measurements) - len(choices)
    asked = [(clique, domain.clique(clique)) for clique in cliques]
    wanted = {named for _, named in asked}
    openings = run.openings()
    open_to, last = list[list[Clique]](), dict[Clique, int]()
    for t, one in enumerate(choices):
        at = openings.after(measurements[: singles + t], one.context["sigma"], one.context["part"])
        open_to.append(at.cliques)
        # A release of another version may have had other candidates: it gives no bound.
        asked_here = [clique for clique in at.cliques if clique in wanted] if one.clique in at.cliques else []
        last.update({clique: t for clique, fits in zip(asked_here, at.fit(asked_here), strict=True) if fits})
    found: dict[Clique, Distance] = {}
    for t, model in enumerate(run.replay(measurements, singles) if last else ()):
        here = [clique for clique, at in last.items() if at == t]
        if not here:
            continue
        one, candidates, sigma = choices[t], open_to[t], choices[t].context["sigma"]
        weights = dict(zip(candidates, whole_weights([run.weight(c) for c in candidates]).tolist(), strict=True))
        (expected,) = model.expect([one.clique])
        apart = float(np.abs(expected - measurements[singles + t].values).sum())
        spread = sigma * math.sqrt(domain.cells(one.clique))
        step = 2 * max(weights.values()) * max_records_per_person / one.epsilon
        ahead = weights[one.clique] * (apart - penalty(one.clique, sigma, domain))
        for clique, table in zip(here, model.expect(here), strict=True):
            limit = partial(
                _by_choice,
                ahead / weights[clique] + penalty(clique, sigma, domain),
                weights[one.clique] * spread / weights[clique],
                step / weights[clique],
                math.log(len(candidates)),
            )
            found[clique] = Distance(clique, table, limit)
    return [found[named].in_order_of(clique) if named in found else None for clique, named in asked]


def _by_choice(near: float, spread: float, step: float, log: float, risk: float) -> float:
    """Return the limit that a distance exceeds with probability `risk` at most."""
    return max(near + spread * math.sqrt(2 * math.log(2 / risk)) + step * (log + math.log(2 / risk)), 0.0)
