"""The rounds of AIM on a graphical model, as published: [A] Algorithms 2 to 4.

1. 1-ways with the noise of the first round ([A] Algorithm 2), of all attributes: those that no clique of the workload
   has would otherwise come out even.
2. Round by round: choose a clique of the workload's closure by the exponential mechanism, with the score of [A]
   equation 1; measure it; refit the model. Only cliques with which the junction tree stays below its share of
   `max_size` are candidates, and of those only such that some data could make worth measuring: a noisy table that is
   wrong by more than twice the number of records helps nobody.
3. Where a measurement has hardly moved the model, rounds get four times the budget ([A] Algorithm 3). The last round
   gets all that is left, so the budget is spent to the last digit.

The whole is a sequence of exponential and Gaussian mechanisms whose parameters depend on earlier releases only. [A]
accounts in zCDP; here the ledger's currency decides, and what a round may spend is split 1:9 between choice and table.
Measurements are weighted by ``1 / sigma^2``, which is what maximum likelihood asks for, where [A] prints 1/sigma.

What follows from the releases alone is recomputed when it is needed: `replay` gives the model before every round, for
the bounds of [A] Theorem 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from chicle.counting.counter import Counted
from chicle.counting.records import Countable
from chicle.domain import Clique, Domain
from chicle.measurements.measurement import Measurement, measure
from chicle.mechanisms.aim_candidates import Openings, penalty
from chicle.models.pgm import Pgm, Zeros
from chicle.privacy.budget import calibrate, calibrate_choice
from chicle.privacy.ledger import Ledger
from chicle.selection.worst import choose_worst
from chicle.workload import Workload

__all__ = ["ModelRounds", "Round"]

_TOLERANCE = 1e-3  # of a round's fit: the next goes on from there


@dataclass(frozen=True)
class Round:
    """What a round could spend, and on what: public.

    Attributes
    ----------
    clique
        What was chosen and measured.
    epsilon, sigma
        Of the choice and of the table.
    part
        Which part of `max_size` the model could take.
    """

    clique: Clique
    epsilon: float
    sigma: float
    part: float


@dataclass
class ModelRounds:
    """AIM's rounds over a graphical model.

    Attributes
    ----------
    domain, workload
        The attributes, and what matters.
    max_size
        Bytes of the junction tree at the end, at most.
    iterations
        Most steps of refitting the model in a round.
    zeros
        Structural zeros.
    """

    domain: Domain
    workload: Workload
    max_size: int
    iterations: int
    zeros: Zeros = field(default_factory=dict)
    threads: int | None = None

    def __post_init__(self) -> None:
        singles: dict[Clique, None] = dict.fromkeys((name,) for name in self.domain)
        closure = [clique for clique in self.workload.closure() if clique not in singles]
        cliques = [*singles, *closure]
        self._weights = dict(zip(cliques, map(self.workload.relevance, cliques), strict=True))
        self._cells = {clique: self.domain.cells(clique) for clique in cliques}

    def run(
        self,
        records: Countable,
        one_ways: Sequence[Measurement],
        rho: float,
        ledger: Ledger,
        *,
        before: float,
        first: float,
        alpha: float,
        progress: Callable[[int, float], None] | None = None,
    ) -> tuple[list[Measurement], list[Round]]:
        """Spend rho on rounds, the first for `first`; return the tables and what each round was.

        Parameters
        ----------
        records
            The private records.
        one_ways
            Released 1-ways.
        rho
            What all rounds may spend together.
        ledger
            What pays.
        before
            The rho that the 1-ways took.
        first
            The rho of the first round.
        alpha
            Which part of a round's budget its table gets.
        progress
            Called after each round with its number and by how much it has moved the model, as a share of its records.
        """
        k, how = records.max_records_per_person, ledger.budget.accounting
        begun, share = ledger.spent, first
        measured, rounds = list(one_ways), list[Round]()
        model = self._model(measured, None)
        openings, counted = self.openings(), Counted(records)
        while True:
            spent = ledger.spent - begun
            if last := rho - spent <= 2 * share:
                share = rho - spent
            sigma = calibrate(alpha * share, l2_sensitivity=k)
            epsilon = calibrate_choice((1 - alpha) * share, accounting=how)
            part = 1.0 if last else min(1.0, (before + spent + share) / (before + rho))
            open_to = openings.after(measured, sigma, part)
            candidates = open_to.cliques
            chosen = choose_worst(
                counted.keep(candidates, self.threads),
                candidates,
                model.marginals,
                ledger,
                epsilon=epsilon,
                weights=[self._weights[clique] for clique in candidates],
                penalties=[penalty(clique, sigma, self.domain) for clique in candidates],
                fit=open_to.fit,
                threads=self.threads,
            )
            clique = candidates[chosen]
            measured += measure(counted, [clique], sigma, ledger, threads=self.threads)
            rounds.append(Round(clique, epsilon, sigma, part))
            if last:
                return measured[len(one_ways) :], rounds
            old = model.marginal(clique)
            model = self._model(measured, model)
            moved = float(np.abs(model.marginal(clique) - old).sum())
            if progress is not None:
                progress(len(rounds), moved / model.total)
            if moved <= penalty(clique, sigma, self.domain):
                share *= 4

    def weight(self, clique: Clique) -> float:
        """Return how much a candidate matters."""
        return self._weights[clique]

    def openings(self) -> Openings:
        """Return what gives the candidates of all rounds, from the first on."""
        return Openings(self._cells, self.domain, self.max_size, frozenset(self.zeros), self.threads)

    def replay(self, measured: Sequence[Measurement], one_ways: int) -> Iterator[Pgm]:
        """Give the model before each round again, from the measurements of a release."""
        model = self._model(measured[:one_ways], None)
        yield model
        for end in range(one_ways + 1, len(measured)):
            model = self._model(measured[:end], model)
            yield model

    def _model(self, measured: Sequence[Measurement], start: Pgm | None) -> Pgm:
        model = Pgm(measured, self.domain, zeros=self.zeros, start=start, threads=self.threads)
        return model.fit(self.iterations, tolerance=_TOLERANCE)
