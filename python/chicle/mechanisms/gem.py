"""GEM and RAP ([G] sections 3 and 4): mixtures of products, fitted to what each round measures by gradient descent."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from chicle._checks import integer
from chicle.domain import Clique, Domain
from chicle.errors import ParameterError
from chicle.measurements.desk import Desk
from chicle.measurements.measurement import Measurement
from chicle.measurements.public_rows import PublicRows
from chicle.mechanisms.base import register_mechanism
from chicle.mechanisms.query_release import Per
from chicle.mechanisms.query_rounds import QueryRounds
from chicle.mechanisms.stages import Setting
from chicle.models.mixture import COMPONENTS, MixtureModel
from chicle.plans import Cost

__all__ = ["GEM", "RAP"]

_STEPS: dict[Per, int] = {"table": 60, "query": 100}  # of Adam after each round
_FINAL = 300  # steps of Adam on whole tables in the end
_PUBLIC = 400  # steps of Adam on all tables of the public data
_PER_STEP = 2.0e-10  # seconds of a step for each cell and component; measured on Adult


@dataclass(kw_only=True, eq=False, repr=False)
class MixtureRounds(QueryRounds[MixtureModel]):
    """Base of the mechanisms with a mixture of products.

    Parameters
    ----------
    components
        How many products the mixture has.
    """

    public_data = "used"

    components: int = COMPONENTS

    @abstractmethod
    def model(self, desk: Desk, turn: int, *, final: bool = False) -> MixtureModel:
        """Return the model of a round, not fitted yet."""

    def check(self, domain: Domain) -> None:
        """Raise for parameters that cannot be used."""
        super().check(domain)
        integer("components", self.components, 1, 100_000)

    def check_public(self, public: PublicRows, domain: Domain) -> None:
        """Raise for public rows that tell nothing of the workload."""
        if not len(public.records) or not _held(self.cliques(domain), public):
            raise ParameterError(
                "no clique of the workload has all its attributes in the public data, or they have no rows; give a "
                "public table of more columns, or leave it out"
            )

    def refit(self, desk: Desk, before: MixtureModel | None, *, final: bool = False) -> MixtureModel:
        """Return the model of all measurements so far, its parameters continued from the round before.

        The first one continues from public answers, if there are any.
        """
        if before is None and desk.public is not None:
            before = self._of_public(desk, desk.public)
        turn = len(desk.transcript.choices) // self.each
        model = self.model(desk, turn, final=final)
        if not turn and "1-way" not in self.stages(Setting.at(desk)):
            model = replace(model, steps=0)  # the number of records alone says nothing
        return model.fit(desk.targets, desk.original, start=before, threads=desk.threads)

    def cost(self, setting: Setting) -> Cost:
        """Return about how long a fit and a sample take, and how much memory."""
        domain, total = setting.domain, self.rounds_over(setting.domain)
        cliques = self.cliques(domain)
        cells = sum(map(domain.cells, cliques))
        fitted = total * (cells / len(cliques) if self.unit == "table" else self.each) / 2
        steps = _STEPS[self.unit] * fitted + cells
        cost = super().cost(setting)
        memory = cost.memory + 16 * cells + 24 * self.components * sum(domain.values())
        return replace(cost, seconds=cost.seconds + _PER_STEP * total * steps * self.components, memory=memory)

    def _of_public(self, desk: Desk, public: PublicRows) -> MixtureModel:
        """Return the mixture of a public table: fitted to its exact answers."""
        cliques = _held(self.cliques(desk.domain), public)
        tables = public.records.count(cliques, threads=desk.threads)
        measured = [Measurement(clique, table, 1.0) for clique, table in zip(cliques, tables, strict=True)]
        model = replace(self.model(desk, 0), loss="squares", steps=_PUBLIC, average="no")
        if model.link == "network":
            model = replace(model, rate=1e-3)
        return model.fit(measured, desk.original, threads=desk.threads)


@register_mechanism
@dataclass(kw_only=True, eq=False, repr=False)
class GEM(MixtureRounds):
    """GEM: a mixture of products that is fitted, round by round, to what it got most wrong.

    By default each round chooses the marginal of the workload with the largest error of a cell, measures all of it, and
    fits free logits to all measurements by weighted least squares. With ``per="query"`` it chooses and measures single
    cells and lowers the mean size of the largest errors, as in the paper, still with free logits. With
    ``published=True`` the logits come from the paper's network, too: slower by orders of magnitude, and not better.

    `answers_` are the answers of the mixture: use them if the workload is all you need. The synthetic table has further
    errors, of drawing records.

    With public data (GEM-pub) the mixture begins with the answers of the public table, of those cliques whose
    attributes it has: it is fitted to their tables by least squares, with the network too. (The paper runs its own
    rounds on the public answers, up to 10,000 of them.)

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting, discovery, threads, progress
        As for every mechanism. If `accounting` is None, the one that leaves less noise is taken, before any data.
    workload
        Cliques, or cliques with weights: the marginals to answer. By default all triples of at most 2^20 cells.
    rounds
        How many rounds; by default 80 with whole tables, or as many as there are cliques, and 100 with single cells.
    per
        ``"table"`` or ``"query"``: what a round chooses and measures.
    published
        Whether to follow the paper in every detail.
    alpha
        The share of a round that is spent on its choice, as the paper's alpha.
    components
        How many products the mixture has.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(5_000, d=5)
    >>> synth = chicle.GEM(epsilon=1, delta=1e-9, workload=chicle.pairs(census.domain), components=100).fit(census)
    >>> sorted(table.shape for table in synth.answers_.values())[:2]
    [(2, 6), (2, 8)]
    >>> table = synth.sample(seed=0)
    """

    default_rounds = {"table": 80, "query": 100}  # noqa: RUF012 - as the base has it
    default_alpha = {"table": 0.3, "query": 0.67}  # noqa: RUF012

    def model(self, desk: Desk, turn: int, *, final: bool = False) -> MixtureModel:
        """Return the model of a round: squares of tables, or the worst single cells with an average of parameters."""
        if self.unit == "table":
            return MixtureModel(components=self.components, steps=_FINAL if final else _STEPS["table"])
        late = turn > self.rounds_over(desk.domain) // 2
        model = MixtureModel(
            components=self.components,
            loss="worst",
            steps=_STEPS["query"],
            rate=0.05,
            average="use" if final else "keep" if late else "no",
        )
        return replace(model, link="network", rate=1e-4) if self.published else model


@register_mechanism
@dataclass(kw_only=True, eq=False, repr=False)
class RAP(MixtureRounds):
    """RAP: relaxed rows, fitted in each round to everything that was measured so far by least squares.

    With ``per="query"`` a round chooses several cells and measures them. ``link="softmax"`` is the form of [G],
    RAP-softmax: rows of free logits. ``link="projected"`` is RAP in its second version: rows of probabilities,
    projected on the simplex after each step. (The first version clips rows to -1..1: they are no distributions.)

    With public data the rows begin with the answers of the public table, as those of `chicle.GEM` do.

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting, discovery, threads, progress
        As for every mechanism.
    workload, rounds, per, published, alpha, components
        As for `chicle.GEM`; ``published=True`` is RAP with rows that are projected.
    queries
        How many cells a round chooses and measures, with ``per="query"``.
    link
        ``"softmax"`` or ``"projected"``; by default softmax, unless `published`.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(5_000, d=4)
    >>> synth = chicle.RAP(epsilon=1, delta=1e-9, per="query", rounds=3, components=100).fit(census)
    >>> len(synth.release_.transcript.choices)
    30
    """

    default_rounds = {"table": 80, "query": 10}  # noqa: RUF012 - as the base has it
    default_alpha = {"table": 0.3, "query": 0.5}  # noqa: RUF012

    queries: int = 10
    link: Literal["softmax", "projected"] | None = None

    @property
    def each(self) -> int:
        """How many measurements a round makes."""
        return integer("queries", self.queries, 1, 10_000) if self.unit == "query" else 1

    @property
    def linking(self) -> Literal["softmax", "projected"]:
        """Where the rows come from."""
        if self.link not in (None, "softmax", "projected"):
            raise ParameterError(f"link must be 'softmax' or 'projected', not {self.link!r}")
        return self.link or ("projected" if self.published else "softmax")

    def check(self, domain: Domain) -> None:
        """Raise for parameters that cannot be used."""
        super().check(domain)
        _ = self.each, self.linking

    def model(self, desk: Desk, turn: int, *, final: bool = False) -> MixtureModel:
        """Return the model of a round."""
        del desk, turn
        given: dict[str, Any] = {"components": self.components, "link": self.linking}
        rate = 0.1 if self.linking == "softmax" else 0.01
        if self.unit == "table":
            return MixtureModel(**given, rate=rate, steps=_FINAL if final else _STEPS["table"])
        return MixtureModel(**given, rate=rate, steps=1_000, cosine=False)


def _held(cliques: Sequence[Clique], public: PublicRows) -> list[Clique]:
    """Return the cliques whose attributes are all in public data."""
    return [clique for clique in cliques if set(clique) <= set(public.records.domain)]
