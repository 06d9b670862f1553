"""Rounds of query release (section 3 of [G]): choose what the model gets most wrong, measure it, refit.

The mechanisms differ in the model. What is chosen and measured is either a single cell of a marginal, as in the paper
(``per="query"``), or a whole marginal, chosen by its largest cell error (``per="table"``). A whole table costs what one
of its cells costs, because all k rows of a person may lie in one cell.

The paper splits the budget of a round by ``alpha``: a choice is an exponential mechanism of exponent
``alpha eps0 |count - expected|``, which costs ``(alpha eps0)^2 / 2`` of rho, and a measurement has noise of
``sigma = 1 / ((1 - alpha) eps0)``, which costs ``((1 - alpha) eps0)^2 / 2``. With K choices in each of T rounds that is

    eps0 = sqrt(2 rho / (K T (alpha^2 + (1 - alpha)^2)))        (in counts; section 3.1 of [G] leaves K out).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from chicle._checks import integer, number
from chicle.domain import Clique, Domain
from chicle.errors import ParameterError
from chicle.measurements.desk import Desk
from chicle.mechanisms.query_release import COUNTING, Per, QueryRelease
from chicle.mechanisms.rounds import Chooser, EqualRounds, Pick, Round, rounds
from chicle.mechanisms.stages import Setting, Stage, Stages, count_stage, one_way_stage, selected_stage
from chicle.models.base import Model
from chicle.plans import noise_errors
from chicle.privacy.budget import calibrate
from chicle.query import Query

__all__ = ["QueryRounds", "WorstCells", "WorstTable"]

_Model = TypeVar("_Model", bound=Model)


@dataclass(kw_only=True, eq=False, repr=False)
class QueryRounds(QueryRelease, Generic[_Model]):
    """Base of the mechanisms that choose and measure in rounds.

    Parameters
    ----------
    workload
        Cliques, or cliques with weights: the marginals to answer. By default all of three attributes that have at most
        2^20 cells, and smaller ones of attributes that are in no such clique.
    rounds
        How many rounds, T. It is fixed before any data are seen; by default `default_rounds`.
    per
        What a round chooses and measures: ``"table"``, a whole marginal, or ``"query"``, a single cell of one. By
        default whole tables; single cells with `published`.
    published
        Whether to follow the paper in every detail.
    alpha
        The share of eps0 that a round spends on its choice; by default `default_alpha`.
    """

    default_rounds: ClassVar[Mapping[Per, int]] = {"table": 80, "query": 50}
    default_alpha: ClassVar[Mapping[Per, float]] = {"table": 0.35, "query": 0.5}
    one_way_share: ClassVar[Mapping[Per, float]] = {"table": 0.1, "query": 0.0}
    """The share of rho with which all 1-ways are measured before the first round."""

    alpha: float | None = None

    # --- What a mechanism of this family says -------------------------------------------------------------------

    @abstractmethod
    def refit(self, desk: Desk, before: _Model | None, *, final: bool = False) -> _Model:
        """Return the model of all measurements at a desk so far.

        Parameters
        ----------
        desk
            Where they were measured.
        before
            The model of the round before; None before the first round, when only the number of records and, where
            `one_way_share` says so, the 1-ways are measured.
        final
            Whether this is the model that is released.
        """

    def chooser(self, desk: Desk) -> Chooser[Any]:
        """Return what picks the measurements of a round; by default the worst table or the worst cells."""
        cliques = self.cliques(desk.domain)
        return WorstTable(cliques) if self.unit == "table" else WorstCells(cliques, self.each)

    @property
    def each(self) -> int:
        """How many measurements a round makes, K."""
        return 1

    # --- Parameters ------------------------------------------------------------------------------------------------

    def check(self, domain: Domain) -> None:
        """Raise for parameters that cannot be used, and for a workload of too many cells."""
        self.rounds_over(domain)
        super().check(domain)

    def rounds_over(self, domain: Domain) -> int:
        """Return the number of rounds: no more than there is to choose from, each time something else."""
        total = self.default_rounds[self.unit] if self.rounds is None else integer("rounds", self.rounds, 1)
        cliques = self.cliques(domain)
        there = len(cliques) if self.unit == "table" else sum(map(domain.cells, cliques)) // self.each
        return min(total, max(there, 1))

    @property
    def choosing(self) -> float:
        """The share of the rounds' rho that is spent on choices: alpha^2 / (alpha^2 + (1 - alpha)^2)."""
        alpha = self.default_alpha[self.unit] if self.alpha is None else number("alpha", self.alpha)
        if not 0 < alpha < 1:
            raise ParameterError(f"alpha must lie between 0 and 1, not {self.alpha!r}")
        return alpha**2 / (alpha**2 + (1 - alpha) ** 2)

    # --- The budget ------------------------------------------------------------------------------------------------

    def stages(self, setting: Setting) -> Stages:
        """Split the budget between the number of records, 1-ways, choices and measurements."""
        domain, total = setting.domain, self.rounds_over(setting.domain)
        first = COUNTING * setting.rho
        ones = self.one_way_share[self.unit] * setting.rho
        rest = setting.rho - first - ones
        choices = self.choosing * rest
        cliques, number = self.cliques(domain), total * self.each
        cells = [float(domain.cells(clique)) for clique in cliques] if self.unit == "table" else [1.0]
        sigma = calibrate((rest - choices) / number, l2_sensitivity=setting.k)
        least, most = noise_errors([min(cells), max(cells)], [sigma] * 2, int(setting.n))
        among = f"{len(cliques):,} cliques" if self.unit == "table" else f"the cells of {len(cliques):,} cliques"
        many = "1 choice" if number == 1 else f"{number:,} choices"
        selection = Stage(name="selection", rho=choices, of=f"{many} among {among}")
        what = "the chosen cliques" if self.unit == "table" else "the chosen cells"
        return Stages.of(
            count_stage(first),
            one_way_stage(setting, ones) if ones else None,
            selection,
            selected_stage(setting, rest - choices, what, errors=(least, most)),
        )

    # --- The rounds ------------------------------------------------------------------------------------------------

    def run(self, desk: Desk) -> _Model:
        """Measure the number of records, then round by round what the model gets most wrong."""
        stages = self.stages(Setting.at(desk))
        desk.measure([()], rho=stages.rho("records"), purpose="number of records")
        if "1-way" in stages:
            desk.measure_one_ways(rho=stages.rho("1-way"))
        last = self.refit(desk, None)

        def refit(before: _Model) -> _Model:
            nonlocal last
            last = self.refit(desk, before)
            return last

        schedule = EqualRounds(self.rounds_over(desk.domain), stages.rho("selection"), stages.rho("marginal"))
        rounds(desk, last, self.chooser(desk), schedule, refit)
        return self.refit(desk, last, final=True)


@dataclass
class WorstTable(Chooser[Model]):
    """One clique a round, by its largest cell error and the exponential mechanism; each clique once."""

    cliques: Sequence[Clique]

    def choose(self, desk: Desk, model: Model, now: Round) -> list[Pick]:
        """Return a clique that was not chosen before."""
        chosen = {choice.query for choice in desk.transcript.choices if isinstance(choice.query, tuple)}
        left = [clique for clique in self.cliques if clique not in chosen]
        return [Pick(desk.choose(left, desk.expect(model), rho=now.choosing, distance="max").query)] if left else []


@dataclass
class WorstCells(Chooser[Model]):
    """Single cells, by their error and the exponential mechanism; each cell once.

    Attributes
    ----------
    cliques
        The cliques whose cells are the candidates.
    number
        How many cells a round chooses.
    """

    cliques: Sequence[Clique]
    number: int = 1

    def choose(self, desk: Desk, model: Model, now: Round) -> list[Pick]:
        """Return `number` cells, or as many as are left; none ends the rounds."""
        chosen = [choice.query for choice in desk.transcript.choices if isinstance(choice.query, Query)]
        number = min(self.number, sum(map(desk.domain.cells, self.cliques)) - len(chosen))
        if number < 1:
            return []
        choices = desk.choose_cells(
            self.cliques,
            desk.expect(model),
            rho=now.choosing,
            number=number,
            repeats=False,
            without=chosen,
        )
        return [Pick(choice.query, 1 / number) for choice in choices]
