"""AIM ([A]): an adaptive and iterative mechanism for a workload of marginals.

One interface, two ways to find the errors that are left. The default is chicle's own variant: it compares with the
synthetic table itself, takes many cliques a round and needs no junction tree (`mechanisms.aim_records`).
``AIM(published=True)`` is AIM as published: one clique a round, on a graphical model (`mechanisms.aim_model`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from typing import Any

from chicle._checks import integer, number
from chicle.domain import Clique, Domain
from chicle.errors import InfeasibleError, ParameterError
from chicle.measurements.desk import Desk, Zeros
from chicle.measurements.measurement import Measurement, estimate_total, total_sigma
from chicle.mechanisms.aim_candidates import penalty
from chicle.mechanisms.aim_model import AnnealedRounds, ModelRun, unmeasured_by_choices
from chicle.mechanisms.aim_records import RecordRun
from chicle.mechanisms.base import Mechanism, register_mechanism
from chicle.mechanisms.basis import TOO_NOISY, Split, begin
from chicle.mechanisms.prism_options import PrismOptions, check_options
from chicle.mechanisms.rounds import rounds
from chicle.mechanisms.stages import Setting, Stage, Stages, selected_stage
from chicle.models.base import Model
from chicle.models.independent import IndependentModel
from chicle.models.pgm import GraphicalModel, jt_size
from chicle.plans import Cost, rough_cost
from chicle.privacy.budget import calibrate
from chicle.query import one_ways
from chicle.releases.bounds import Distance
from chicle.releases.release import Release
from chicle.schema import Schema
from chicle.workload import Workload

__all__ = ["AIM"]

_PLANNED = 16  # rounds for each attribute that the first budget is planned for ([A] Algorithm 4)
_CERTAIN = 3  # standard deviations: with fewer, even the number of records is noise
_ONLY_1_WAYS = "the budget is too small for more than 1-ways: attributes are independent"
_ASKED_FOR = "the workload asks for 1-ways alone: attributes are independent"
_NOTHING_ELSE = "no table of the workload stands out from noise: attributes are independent"


@register_mechanism
@dataclass(kw_only=True, eq=False, repr=False)
class AIM(Mechanism):
    """Measure what a workload needs and the current table gets wrong; chicle's own variant of AIM, over records.

    By default this is not the AIM of McKenna et al. but a variant that compares with the synthetic table itself, takes
    many cliques a round and needs no junction tree. ``AIM(published=True)`` is the published mechanism: one clique a
    round by the exponential mechanism, on a graphical model.

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting, discovery, threads, progress
        As for every mechanism. Progress is called after each round too, with its number and how far it moved the model.
    workload
        The marginals that matter: a `chicle.Workload`, cliques, or a mapping from cliques to weights, over the
        attributes that mechanisms see (``release.domain``). All triples of attributes by default; of linked tables the
        pairs that their schema weighs.
    published
        Whether to run AIM as published.
    rounds
        How many rounds; by default one or two, as the budget allows. As published: the T of [A], the number of rounds
        that the budget of the first is planned for; 16 for each attribute by default, and at least one for each.
    alpha
        As published: the share of a round's budget for its table; the choice gets the rest.
    max_size
        As published: most bytes of the junction tree.
    iterations
        As published: most steps of fitting the model in a round; the last model takes up to ten times as many.
    options
        Prism's switches, over records.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(5_000, d=6)
    >>> workload = chicle.Workload.target(census.domain, "AGE")
    >>> synth = chicle.AIM(epsilon=1, delta=1e-9, workload=workload).fit(census)
    >>> table = synth.sample(seed=0)
    >>> synth.ledger_.epsilon() <= 1
    True
    """

    workload: Workload | Mapping[Clique, float] | Iterable[Iterable[str]] | None = None
    published: bool = False
    rounds: int | None = None
    alpha: float = 0.9
    max_size: int = 80 * 2**20
    iterations: int = 100
    options: PrismOptions | None = None

    def __post_init__(self) -> None:
        # A plan and a fit both read it.
        if isinstance(self.workload, Iterator):
            self.workload = list(self.workload)

    @property
    def title(self) -> str:
        """The name of this mechanism in a plan."""
        return "AIM (as published)" if self.published else "AIM (over records)"

    def cost(self, setting: Setting) -> Cost:
        """Return about how long a fit and a sample take, and how much memory."""
        return rough_cost(setting.domain, int(setting.n), per_pair=60 if self.published else 18)

    def check(self, domain: Domain) -> None:
        """Raise for parameters that cannot be used on these attributes."""
        if not isinstance(self.published, bool):
            raise ParameterError(f"published must be True or False, not {self.published!r}")
        if not 0 < number("alpha", self.alpha) < 1:
            raise ParameterError(f"alpha must be between 0 and 1, not {self.alpha!r}")
        check_options(self.options)
        integer("max_size", self.max_size, 1)
        integer("iterations", self.iterations, 1)
        self._workload(domain)
        self._planned(domain)
        if self.published and (size := jt_size(one_ways(domain), domain)) > self.max_size:
            raise InfeasibleError(
                f"the 1-ways alone take {size:,} bytes of a model, above max_size, {self.max_size:,}; raise it, leave "
                "published out, or declare columns with fewer values or bins"
            )

    def stages(self, setting: Setting) -> Stages:
        """Split the budget between the first releases, choices and tables."""
        if self.published:
            each = self.alpha * setting.rho / self._planned(setting.domain)
            cliques = one_ways(setting.domain)
            share = 1 / len(cliques)
            first = Stages.of(Stage(name="1-way", rho=each * len(cliques), cliques=dict.fromkeys(cliques, share)))
            rest = setting.rho - each * len(cliques)
            scored, measured = (1 - self.alpha) * rest, self.alpha * rest
        else:
            split = Split.of(setting, check_options(self.options))
            first, scored, measured = split.first_stages(setting), split.selection, split.tables
        selection = Stage(name="selection", rho=scored, of="cliques of the workload's closure")
        return Stages.of(*first.all, selection, selected_stage(setting, measured))

    def run(self, desk: Desk) -> Model:
        """Spend the budget in rounds."""
        return self._run_published(desk) if self.published else self._run_records(desk)

    def suited(self, schema: Schema) -> AIM:
        """Return this mechanism with the workload that the schema implies, if none was given."""
        if self.workload is not None or schema.workload is None:
            return self
        made = copy(self)
        made.workload = schema.workload
        return made

    def weighs(self, schema: Schema) -> bool:
        """Return whether it weighs pairs as the schema says: where no other workload was given."""
        return schema.workload is not None and self.workload == schema.workload

    def _run_records(self, desk: Desk) -> Model:
        options = check_options(self.options)
        basis = begin(desk, options, lambda table: Split.of(table, options))
        if basis.too_noisy:
            return basis.measure_one_ways_again(self._why(desk.domain, TOO_NOISY))
        run = RecordRun(basis, self._workload(desk.domain), options, self.rounds, self.threads)
        first = self.learn(IndependentModel(), basis.merged)
        if not run.pairs or not rounds(basis.merged, first, run, run.schedule(), lambda _: basis.denoised(options)):
            return basis.measure_one_ways_again(self._why(desk.domain, _NOTHING_ELSE))
        return basis.denoised(options)

    def _run_published(self, desk: Desk) -> Model:
        domain, rho = desk.domain, desk.left
        stage = self.stages(Setting.at(desk))["1-way"]
        shares = dict(stage.cliques or {})
        measured = desk.measure(shares, rho=stage.rho, shares=list(shares.values()), purpose="1-way")
        if not self._worth(domain, measured, desk.left, desk.k):
            desk.measure_one_ways(rho=desk.left)
            if len(domain) > 1:
                desk.note(self._why(domain, _ONLY_1_WAYS))
            return self.learn(IndependentModel(), desk)
        run = self._model_run(domain, self._workload(domain), desk.zeros, rho)
        schedule = AnnealedRounds(rho / self._planned(domain), self.alpha, domain, desk.k)
        rounds(
            desk,
            run.fitted(measured, None),
            run,
            schedule,
            lambda before: run.fitted(desk.transcript.measurements, before),
        )
        return self.learn(GraphicalModel(iterations=10 * self.iterations, zeros=run.zeros), desk)

    def _model_run(self, domain: Domain, workload: Workload, zeros: Zeros, rho: float) -> ModelRun:
        # The junction tree must hold the cliques of structural zeros. Where these are too large, rows are repaired.
        fitting = zeros if jt_size(zeros, domain) <= self.max_size / 2 else {}
        return ModelRun(domain, workload, self.max_size, self.iterations, rho, fitting, self.threads)

    def _worth(self, domain: Domain, measured: Sequence[Measurement], rho: float, k: int) -> bool:
        """Return whether there is any table of several attributes that all of rho could make better than nothing."""
        sigma = calibrate(self.alpha * rho, l2_sensitivity=k)
        total = estimate_total(measured)
        if total < _CERTAIN * total_sigma(measured):
            return False
        most = 2 * max(total, 1)
        larger = (clique for clique in self._workload(domain).closure() if len(clique) > 1)
        return any(min(domain.shape(clique)) > 1 and penalty(clique, sigma, domain) <= most for clique in larger)

    def _why(self, domain: Domain, reason: str) -> str:
        """Return why attributes are independent."""
        return reason if any(len(clique) > 1 for clique in self._workload(domain)) else _ASKED_FOR

    def _workload(self, domain: Domain) -> Workload:
        given = Workload.all_kway(domain, 3) if self.workload is None else Workload.of(self.workload)
        return given.over(domain)

    def _planned(self, domain: Domain) -> int:
        """Return the number of rounds that the budget of the first is planned for, as published."""
        if self.rounds is None:
            return _PLANNED * len(domain)
        return integer("rounds", self.rounds, len(domain) if self.published else 1)

    def parameters(self, domain: Domain) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return {
            **super().parameters(domain),
            "workload": self._workload(domain).to_plain(domain),
            "options": asdict(check_options(self.options)),
        }

    @classmethod
    def unmeasured(
        cls, release: Release, cliques: Sequence[Clique], *, threads: int | None = None
    ) -> list[Distance | None]:
        """Return bounds on unmeasured cliques: by choices ([A] Theorem 4) as published, by scores over records."""
        given = release.parameters
        if not given["published"] or not release.transcript.choices:
            return super().unmeasured(release, cliques, threads=threads)
        synth = cls(max_size=given["max_size"], iterations=given["iterations"], threads=threads)
        workload = Workload.from_plain(given["workload"], release.domain)
        run = synth._model_run(release.domain, workload, release.codec.zeros, 1.0)
        return unmeasured_by_choices(
            run,
            release.measurements,
            release.transcript.choices,
            cliques,
            max_records_per_person=release.schema.max_records_per_person,
        )
