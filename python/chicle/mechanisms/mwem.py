"""MWEM: round by round, measure what the model gets most wrong, and refit the model.

Over a graphical model this is MWEM+PGM ([A] Algorithm 1), which measures tables. Over an explicit distribution it is
MWEM as [G] has it, one of the mechanisms of query release.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from chicle._checks import MEMORY_LIMIT, integer, number
from chicle.domain import Clique, Domain
from chicle.errors import InfeasibleError, ParameterError
from chicle.measurements.desk import Desk
from chicle.measurements.measurement import Measurement, estimate_total
from chicle.measurements.public_rows import PublicRows
from chicle.mechanisms.base import Mechanism, register_mechanism
from chicle.mechanisms.beside_public import NO_PUBLIC
from chicle.mechanisms.pep import ExplicitRounds
from chicle.mechanisms.query_release import Per
from chicle.mechanisms.rounds import Chooser, EqualRounds, Pick, Round, rounds
from chicle.mechanisms.stages import Setting, Stage, Stages, count_stage, selected_stage
from chicle.models.base import Model
from chicle.models.pgm import GraphicalModel, jt_size, jt_sizes
from chicle.plans import Cost, noise_errors
from chicle.privacy.budget import Budget, calibrate
from chicle.privacy.ledger import Ledger
from chicle.workload import Workload

__all__ = ["MWEM"]

_COUNTING = 0.001  # of rho, for the number of records
_ROUND_STEPS = 100  # of refitting the model before a choice: it starts from the round before
# Nanoseconds that a round takes for each cell of its candidates, and for each record and candidate; measured on Adult.
_PER_CELL, _PER_RECORD = 150, 1
_COPIES = 20  # of the junction tree that fitting and asking the model take at most, seen on Adult
_BYTES = 8  # of a cell of the junction tree
_BYTES_MEASURED = 300  # that a model takes for each measured cell, at most, beside its junction tree

Family: TypeAlias = Literal["graphical", "explicit"]


@dataclass(kw_only=True, eq=False, repr=False)
class _Explicit(ExplicitRounds):
    """MWEM of [G]: half steps on cells, over a probability for every joint value."""

    default_rounds = {"table": 80, "query": 100}  # noqa: RUF012 - as the base has it
    update = "mwem"


@register_mechanism
@dataclass(kw_only=True, eq=False, repr=False)
class MWEM(Mechanism):
    """MWEM: begin with a uniform model; in each round measure what it gets wrong of the workload.

    Over a graphical model, the default, this is MWEM+PGM, which measures cliques.

    A round chooses by the exponential mechanism with the score ``|M_r - model_r|_1 - n_r`` of [A] Algorithm 1, where
    n_r is the number of cells; measures what it chose with Gaussian noise; and refits the graphical model. Only cliques
    of the workload itself are measured. An attribute in no chosen clique is uniform, as published: a note says so.

    Three things differ from the paper. There the number of records is public; here it is private, and a thousandth of
    the budget is spent on it. There the model grows without limit; here cliques that would take its junction tree above
    `max_size` are no candidates, and neither are tables of more cells than twice the records, whose scores are
    negative on any data. Measurements are weighted by ``1 / sigma^2``; all weights but that of the number are equal.

    As [A] section 3 says, it does not adapt to the budget: the rounds are fixed, and the score weighs cells and not the
    noise on them. With little budget it is worse than independent attributes: their 2-way error on Adult at epsilon 0.2
    is .091, its own .151, and .124 with a workload of all pairs.

    With ``model="explicit"`` it keeps a number for each joint value of all attributes, at most 2^24, and is a mechanism
    of query release as `chicle.PEP` is: with ``per="query"`` a round measures one cell, then takes half steps on it and
    on past cells of large error, ``A(x) *= exp(q(x) (a - q(A)) / 2)``.

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting, discovery, threads, progress
        As for every mechanism.
    model
        ``"graphical"`` or ``"explicit"``.
    workload
        What matters: a `chicle.Workload`, or cliques; all triples by default. Cliques of weight 0 are left out; other
        weights do not matter. Each round compares all cliques with the model, which is slow for many attributes.
    rounds
        How many tables are measured; as many as there are attributes by default. Over an explicit model 80 tables
        or 100 cells.
    alpha
        The share of a round's budget for its table; the choice gets the rest. [A] Algorithm 1 has 0.5, but choices need
        less: on Adult at epsilon 1 the 2-way error is .084 with 0.5, .069 with 0.9, and .079 for Independent. The
        default is 0.9. Over an explicit model it is the share of eps0 for the choice, as in every
        mechanism of query release.
    per, published
        Over an explicit model: whether a round measures a whole ``"table"`` or a single ``"query"``, and whether all is
        as in [G].
    max_size
        Most bytes of the model's junction tree.
    iterations
        Most steps of fitting the model in the end.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(5_000, d=6)
    >>> synth = chicle.MWEM(epsilon=1, delta=1e-9, rounds=4).fit(census)
    >>> [len(measured.clique) for measured in synth.release_.measurements]
    [0, 3, 3, 3, 3]
    >>> table = synth.sample(seed=0)
    """

    model: Family = "graphical"
    workload: Workload | Mapping[Clique, float] | Iterable[Iterable[str]] | None = None
    rounds: int | None = None
    alpha: float | None = None
    per: Per | None = None
    published: bool = False
    max_size: int = 80_000_000
    iterations: int = 1_000
    per_pair = 5.0

    def __post_init__(self) -> None:
        # A plan and a fit both read it.
        if isinstance(self.workload, Iterator):
            self.workload = list(self.workload)

    @property
    def _over_all(self) -> _Explicit | None:
        """The same rounds over an explicit model, if that is asked for."""
        if self.model not in get_args(Family):
            raise ParameterError(f"model must be one of {get_args(Family)}, not {self.model!r}")
        if self.model == "explicit":
            return _Explicit(**{field.name: getattr(self, field.name) for field in fields(_Explicit)})
        if self.per is not None or self.published:
            raise ParameterError('per and published are for MWEM(model="explicit"); leave them out, or set the model')
        return None

    @property
    def _share(self) -> float:
        """The share of a round's rho for its table."""
        if self.alpha is None:
            return 0.9
        if not 0 < number("alpha", self.alpha) < 1:
            raise ParameterError(f"alpha must lie between 0 and 1, not {self.alpha!r}")
        return self.alpha

    @property
    def budget(self) -> Budget:
        """What a fit may spend."""
        explicit = self._over_all
        return super().budget if explicit is None else explicit.budget

    def budget_on(self, ledger: Ledger | None) -> Budget:
        """Return what a fit may spend of a given ledger, or of a new one."""
        explicit = self._over_all
        return super().budget_on(ledger) if explicit is None else explicit.budget_on(ledger)

    def check(self, domain: Domain) -> None:
        """Raise for parameters that cannot be used, and for a workload that no model has room for."""
        if (explicit := self._over_all) is not None:
            return explicit.check(domain)
        integer("iterations", self.iterations, 1)
        integer("max_size", self.max_size, _BYTES)
        _ = self._share
        self._candidates(domain)
        return None

    def check_public(self, public: PublicRows, domain: Domain) -> None:
        """Raise over an explicit model, which has no use for public rows."""
        del public, domain
        if self._over_all is not None:
            raise ParameterError(NO_PUBLIC.format('MWEM(model="explicit")'))

    def stages(self, setting: Setting) -> Stages:
        """Split the budget between the number of records, choices and tables."""
        if (explicit := self._over_all) is not None:
            return explicit.stages(setting)
        domain, total = setting.domain, self._rounds(setting.domain)
        first = _COUNTING * setting.rho
        tables = self._share * (setting.rho - first)
        candidates = self._candidates(domain)
        cells = [float(domain.cells(clique)) for clique in _worth(candidates, domain, int(setting.n))]
        sigma = calibrate(tables / total, l2_sensitivity=setting.k)
        least, most = noise_errors([min(cells), max(cells)], [sigma] * 2, int(setting.n))
        number = "1 choice" if total == 1 else f"{total:,} choices"
        of = f"{number} among {len(candidates):,} cliques"
        selection = Stage(name="selection", rho=setting.rho - first - tables, of=of)
        return Stages.of(count_stage(first), selection, selected_stage(setting, tables, errors=(least, most)))

    def cost(self, setting: Setting) -> Cost:
        """Return about how long a fit and a sample take, and how much memory."""
        if (explicit := self._over_all) is not None:
            return explicit.cost(setting)
        domain, n = setting.domain, int(setting.n)
        cells = [float(domain.cells(clique)) for clique in _worth(self._candidates(domain), domain, n)]
        asking = self._rounds(domain) * (_PER_CELL * sum(cells) + _PER_RECORD * n * len(cells)) * 1e-9
        model = _COPIES * min(self.max_size, _BYTES * domain.cells(domain))
        cost = super().cost(setting)
        return replace(cost, seconds=cost.seconds + asking, memory=cost.memory + model)

    def run(self, desk: Desk) -> Model:
        """Measure the number of records, then what the model gets wrong, round by round."""
        if (explicit := self._over_all) is not None:
            return explicit.run(desk)
        domain = desk.domain
        stages = self.stages(Setting.at(desk))
        desk.measure([()], rho=stages.rho("records"), purpose="number of records")
        schedule = EqualRounds(self._rounds(domain), stages.rho("selection"), stages.rho("marginal"))
        rounds(desk, self._fitted_to(desk, None), _Worst(self, self._candidates(domain)), schedule, self._refit(desk))
        held = {name for table in desk.transcript.measurements for name in table.clique}
        for name in domain:
            if name not in held:
                desk.note(f"{name!r} is in no measured marginal: its values come evenly")
        return self.learn(GraphicalModel(iterations=self.iterations, memory_limit=self._memory_limit), desk)

    def parameters(self, domain: Domain) -> dict[str, Any]:
        """Return the parameters as plain data."""
        explicit = self._over_all
        workload = self._workload(domain) if explicit is None else explicit.workload_over(domain)
        return {**super().parameters(domain), "workload": workload.to_plain(domain)}

    @property
    def answers_(self) -> dict[Clique, npt.NDArray[np.float64]]:
        """The answers of the model to the workload, as shares of all records: before any record is drawn."""
        explicit = self._over_all
        asked = _Explicit(workload=self.workload) if explicit is None else explicit
        asked.release_ = self._fitted()
        return asked.answers_

    @property
    def _memory_limit(self) -> int:
        return 2 * self.max_size + MEMORY_LIMIT

    def _refit(self, desk: Desk) -> Any:  # noqa: ANN401 - a function of the model before
        return lambda before: self._fitted_to(desk, before)

    def _fitted_to(self, desk: Desk, before: GraphicalModel | None) -> GraphicalModel:
        """Return the model of all measurements so far, fitted as closely as a choice needs."""
        model = GraphicalModel(iterations=_ROUND_STEPS, memory_limit=self._memory_limit)
        return model.fit(desk.transcript.measurements, desk.domain, start=before, threads=self.threads)

    def _workload(self, domain: Domain) -> Workload:
        return Workload.all_kway(domain, 3) if self.workload is None else Workload.of(self.workload).over(domain)

    def _rounds(self, domain: Domain) -> int:
        return len(domain) if self.rounds is None else integer("rounds", self.rounds, 1)

    def _candidates(self, domain: Domain) -> list[Clique]:
        """Return the cliques of the workload that a model has room for, each alone."""
        cliques = [clique for clique, weight in self._workload(domain).items() if weight > 0]
        most = min(self.max_size // _BYTES, MEMORY_LIMIT // (_BYTES_MEASURED * self._rounds(domain)))
        small = [clique for clique in cliques if domain.cells(clique) <= most]
        if fitting := self._fitting(small, [], domain):
            return fitting
        least = min(cliques, key=domain.cells)
        raise InfeasibleError(
            f"no clique of the workload can be measured: the smallest, {least!r}, has {domain.cells(least):,} cells "
            f"and takes a junction tree of {jt_size([least], domain):.3g} bytes, above max_size {self.max_size:.3g} or "
            "what memory holds in so many rounds; give a workload of smaller cliques, fewer rounds, or raise max_size"
        )

    def _fitting(self, cliques: Sequence[Clique], measured: Sequence[Measurement], domain: Domain) -> list[Clique]:
        """Return which cliques leave the junction tree below its limit, and could be worth measuring on some data."""
        held = {table.clique for table in measured}
        sizes = jt_sizes(cliques, domain, held=held, threads=self.threads)
        fitting = [c for c, size in zip(cliques, sizes, strict=True) if size <= self.max_size or c in held]
        return _worth(fitting, domain, estimate_total(measured)) if measured else fitting


@dataclass
class _Worst(Chooser[GraphicalModel]):
    """One clique a round, by the exponential mechanism: the score is ``|M_r - model_r|_1 - n_r``."""

    mechanism: MWEM
    candidates: Sequence[Clique]

    def choose(self, desk: Desk, model: GraphicalModel, now: Round) -> list[Pick]:
        fitting = self.mechanism._fitting(self.candidates, desk.transcript.measurements, desk.domain)  # noqa: SLF001
        penalties = [float(desk.domain.cells(clique)) for clique in fitting]
        return [Pick(desk.choose(fitting, desk.expect(model), rho=now.choosing, penalties=penalties).clique)]


def _worth(cliques: Sequence[Clique], domain: Domain, n: int) -> list[Clique]:
    """Return the cliques whose score may be above 0 with n records; if there is none, the one of fewest cells."""
    small = [clique for clique in cliques if domain.cells(clique) < 2 * max(n, 1)]
    return small or [min(cliques, key=domain.cells)]
