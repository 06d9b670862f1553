"""AIM ([A]): an adaptive and iterative mechanism that knows which marginals will be asked for.

One interface, two ways to know what is still wrong. ``generator="records"``, the default, compares with the synthetic
table itself, takes many cliques a round and needs no junction tree (`mechanisms.aim_records`). ``generator="pgm"`` is
AIM as published, one clique a round, on a graphical model (`mechanisms.aim_model`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from chicle._checks import integer, number
from chicle.counting.records import Countable, Records
from chicle.domain import Clique, Domain
from chicle.errors import InfeasibleError, ParameterError
from chicle.measurements.measurement import Measurement, estimate_total, measure, total_sigma
from chicle.mechanisms.aim_bounds import distances_of_choices, distances_of_scores
from chicle.mechanisms.aim_candidates import penalty
from chicle.mechanisms.aim_model import ModelRounds, Round
from chicle.mechanisms.aim_records import RecordRounds
from chicle.mechanisms.base import Mechanism
from chicle.mechanisms.denoised import denoised_records
from chicle.mechanisms.ground import TOO_NOISY, Parts, lay_ground
from chicle.mechanisms.model_records import ModelRecords
from chicle.mechanisms.prism_options import PrismOptions
from chicle.models.pgm import Zeros, jt_size
from chicle.plans import Plan, Step, noise_errors, one_way_steps, pair_errors, rough_cost
from chicle.privacy.budget import Budget, calibrate
from chicle.privacy.ledger import Ledger
from chicle.releases.bounds import Distance
from chicle.releases.release import Generator, Note, Release, generator_of, singles_of
from chicle.schema import Schema
from chicle.workload import Workload

__all__ = ["AIM"]

AimGenerator: TypeAlias = Literal["records", "pgm"]

_PLANNED = 16  # rounds for each attribute that the first budget is planned for ([A] Algorithm 4)
_CERTAIN = 3  # standard deviations: with fewer, even the number of records is noise
_ONLY_1_WAYS = "the budget is too small for more than 1-ways: attributes are independent"
_ASKED_FOR = "the workload asks for 1-ways alone: attributes are independent"
_NOTHING_ELSE = "no table of the workload stands out from noise: attributes are independent"


@dataclass(kw_only=True, eq=False, repr=False)
class AIM(Mechanism):
    """Measure what a workload needs and the current model gets wrong, round by round.

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting, discovery, threads, progress
        As for every mechanism. With ``"pgm"`` progress is called after each round too, with its number and by how much
        it has moved the model.
    workload
        The marginals that matter: a `chicle.Workload`, cliques, or a mapping from cliques to weights, over the
        attributes that mechanisms see (``schema.model.domain``). All triples of attributes by default.
    generator
        ``"records"``: scores against the synthetic table, several cliques a round, records by descent. ``"pgm"``: as
        published, the exponential mechanism and a graphical model.
    rounds
        Of ``"records"``, how many; by default one or two, as the budget allows. Of ``"pgm"``, how many the budget of
        the first is planned for, the T of [A]: 16 for each attribute by default, and at least one for each.
    alpha
        Which part of a round's budget its table gets, with ``"pgm"``; the choice gets the rest.
    max_size
        Most bytes of the junction tree, with ``"pgm"``.
    iterations
        Most steps of fitting the model in a round, with ``"pgm"``; the model that records are drawn from takes ten
        times as many if it has to.
    options
        Prism's switches, with ``"records"``.

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
    generator: AimGenerator = "records"
    rounds: int | None = None
    alpha: float = 0.9
    max_size: int = 80 * 2**20
    iterations: int = 100
    options: PrismOptions | None = None

    def __post_init__(self) -> None:
        # A plan and a fit both read it.
        if isinstance(self.workload, Iterator):
            self.workload = list(self.workload)

    def _check(self, schema: Schema) -> None:
        domain = schema.domain
        self._told(domain)
        self._planned(domain)
        if self.generator == "pgm" and (size := jt_size([(name,) for name in domain], domain)) > self.max_size:
            raise InfeasibleError(
                f"the 1-ways alone take {size:,} bytes of a model, above max_size, {self.max_size:,}; raise it, take "
                "generator='records', or declare columns with fewer values or bins"
            )

    def _plan(self, schema: Schema, budget: Budget, n: int) -> Plan:
        domain, k = schema.domain, schema.max_records_per_person
        title = f"AIM ({self.generator})"
        if self.generator == "records":
            parts = Parts(self._options(), budget.rho, domain, n, k)
            steps = [
                Step(
                    release="records",
                    of="their number",
                    values=1,
                    rho=parts.counting,
                    sigma=parts.sigma(parts.counting),
                ),
                *one_way_steps(domain, parts.one_ways, k, n),
            ]
            scored, measured, per_pair = parts.selection, parts.tables, 18.0
        else:
            each = self.alpha * budget.rho / self._planned(domain)
            sigma = calibrate(each, l2_sensitivity=k)
            errors = noise_errors([float(size) for size in domain.values()], [sigma] * len(domain), n)
            steps = [
                Step(release="1-way", of=name, values=size, rho=each, sigma=sigma, error=error)
                for (name, size), error in zip(domain.items(), errors, strict=True)
            ]
            rest = budget.rho - each * len(domain)
            scored, measured, per_pair = (1 - self.alpha) * rest, self.alpha * rest, 60.0
        if scored + measured > 0:
            least, most = pair_errors(domain, measured, k, n) or (None, None)
            steps += [
                Step(release="selection", of="cliques of the workload's closure", rho=scored),
                Step(release="marginal", of="the chosen cliques", rho=measured, error=most, least_error=least),
            ]
        return Plan(title, budget, steps, n, rough_cost(domain, n, per_pair=per_pair))

    def _fit(self, records: Countable, schema: Schema, rho: float, ledger: Ledger) -> Release:
        return (self._fit_model if self.generator == "pgm" else self._fit_records)(records, schema, rho, ledger)

    def _fit_records(self, records: Countable, schema: Schema, rho: float, ledger: Ledger) -> Release:
        spent = ledger.spent
        options = self._options()
        ground = lay_ground(self._measure, records, schema, rho, ledger=ledger, options=options, threads=self.threads)
        told = self._told(schema.domain)
        run = RecordRounds(ground, self._workload(schema.domain), options, self.rounds, self.threads)
        found = not ground.too_noisy and run.run(ledger)
        told["scores"] = run.told()
        if not found:
            rest = rho - (ledger.spent - spent)
            again = self._one_ways_again(records, rest, ledger) if ground.parts.rest > 0 else []
            why = TOO_NOISY if ground.too_noisy else _NOTHING_ELSE
            return Release(schema, (*ground.measured, *again), ledger, "AIM", told, self._notes(schema, why))
        return Release(schema, (*ground.measured, *run.tables), ledger, "AIM", told)

    def _fit_model(self, records: Countable, schema: Schema, rho: float, ledger: Ledger) -> Release:
        domain, spent = schema.domain, ledger.spent
        share = rho / self._planned(domain)
        sigma = calibrate(self.alpha * share, l2_sensitivity=records.max_records_per_person)
        singles: list[Clique] = [(name,) for name in domain]
        one_ways = measure(records, singles, sigma, ledger, purpose="1-way", threads=self.threads)
        told = self._told(domain)
        left = rho - (ledger.spent - spent)
        if not self._worth(domain, one_ways, left, records.max_records_per_person):
            again = self._one_ways_again(records, left, ledger)
            return Release(schema, (*one_ways, *again), ledger, "AIM", told, self._notes(schema, _ONLY_1_WAYS))
        run = _model_rounds(domain, told, schema.zeros, self._workload(domain), self.threads)
        tables, rounds = run.run(
            records,
            one_ways,
            left,
            ledger,
            before=rho - left,
            first=share,
            alpha=self.alpha,
            progress=self.progress,
        )
        told["rounds"] = [[one.epsilon, one.part] for one in rounds]
        return Release(schema, (*one_ways, *tables), ledger, "AIM", told)

    def _worth(self, domain: Domain, one_ways: Sequence[Measurement], rho: float, k: int) -> bool:
        """Return whether there is any table of several attributes that all of rho could make better than nothing."""
        sigma = calibrate(self.alpha * rho, l2_sensitivity=k)
        total = estimate_total(one_ways)
        if total < _CERTAIN * total_sigma(one_ways):
            return False
        most = 2 * max(total, 1)
        larger = (clique for clique in self._workload(domain).closure() if len(clique) > 1)
        return any(min(domain.shape(clique)) > 1 and penalty(clique, sigma, domain) <= most for clique in larger)

    def _one_ways_again(self, records: Countable, rho: float, ledger: Ledger) -> list[Measurement]:
        """Give the rest of the budget to the 1-ways."""
        return self._measure(records, [(name,) for name in records.domain], rho, ledger, "1-way")

    def _notes(self, schema: Schema, why: str) -> tuple[str, ...]:
        """Return why attributes are independent."""
        if len(schema.domain) < 2:
            return ()
        return (why if any(len(clique) > 1 for clique in self._workload(schema.domain)) else _ASKED_FOR,)

    def _workload(self, domain: Domain) -> Workload:
        given = Workload.all_kway(domain, 3) if self.workload is None else Workload.of(self.workload)
        return given.over(domain)

    def _planned(self, domain: Domain) -> int:
        """Return how many rounds the first budget is planned for, with a model."""
        if self.rounds is None:
            return _PLANNED * len(domain)
        least = len(domain) if self.generator == "pgm" else 1
        return integer("rounds", self.rounds, least)

    def _options(self) -> PrismOptions:
        if self.options is None:
            return PrismOptions()
        if not isinstance(self.options, PrismOptions):
            raise ParameterError(f"options must be PrismOptions, not a {type(self.options).__name__}")
        return self.options

    def _told(self, domain: Domain) -> dict[str, Any]:
        """Return all that records and bounds depend on but measurements, once it is known to be right."""
        if self.generator not in get_args(AimGenerator):
            raise ParameterError(f"generator must be one of {get_args(AimGenerator)}, not {self.generator!r}")
        if not 0 < number("alpha", self.alpha) < 1:
            raise ParameterError(f"alpha must be between 0 and 1, not {self.alpha!r}")
        options, workload = asdict(self._options()), self._workload(domain)
        fitting = {
            "max_size": integer("max_size", self.max_size, 1),
            "iterations": integer("iterations", self.iterations, 1),
        }
        if self.generator == "records":
            return {"generator": "records", "options": options}
        return {"generator": "pgm", **fitting, "workload": workload.told(domain)}


def _model_rounds(
    domain: Domain, told: Mapping[str, Any], zeros: Zeros, workload: Workload, threads: int | None
) -> ModelRounds:
    # The junction tree must hold the cliques of structural zeros; where they would take it all, rows are mended later.
    fitting = zeros if jt_size(zeros, domain) <= told["max_size"] / 2 else {}
    return ModelRounds(domain, workload, told["max_size"], told["iterations"], zeros=fitting, threads=threads)


@dataclass(eq=False)
class _ChosenRecords(ModelRecords):
    """Records of the graphical model, and the choices that led to it."""

    rounds: Sequence[Round] = ()
    run: ModelRounds | None = None
    k: int = 1

    def distances(self, cliques: Sequence[Clique], *, threads: int | None = None) -> list[Distance | None]:
        """Return what the choices of cliques tell of those that were not chosen ([A] Theorem 4)."""
        if self.run is None or not self.rounds:
            return [None] * len(cliques)
        run = replace(self.run, threads=threads)
        return distances_of_choices(run, self.targets, self.rounds, cliques, max_records_per_person=self.k)


@dataclass(frozen=True, eq=False)
class _ScoredRecords(Generator):
    """Records by descent, and the scores by which tables were chosen."""

    schema: Schema
    measurements: Sequence[Measurement]
    told: Mapping[str, Any]
    made: Generator

    def records(self, n: int, seed: int | None, *, note: Note, threads: int | None = None) -> Records:
        """Make `n` records."""
        return self.made.records(n, seed, note=note, threads=threads)

    def distances(self, cliques: Sequence[Clique], *, threads: int | None = None) -> list[Distance | None]:
        """Return what the scores of cliques tell: [A] Theorem 4 for scores with Gaussian noise."""
        scores, options = self.told.get("scores", ()), _options(self.told)
        return distances_of_scores(self.schema, self.measurements, scores, options, cliques, threads=threads)


def _options(told: Mapping[str, Any]) -> PrismOptions:
    return PrismOptions(**{**told["options"], "sizes": tuple(told["options"]["sizes"])})


@generator_of("AIM")
def _generator(schema: Schema, measurements: Sequence[Measurement], told: Mapping[str, Any]) -> Generator:
    if told["generator"] == "records":
        made = denoised_records(schema, measurements, _options(told))
        return _ScoredRecords(schema, measurements, told, made)
    _, rest = singles_of(schema, measurements)
    run = _model_rounds(schema.domain, told, schema.zeros, Workload.from_told(told["workload"], schema.domain), None)
    rounds = []
    if "rounds" in told:
        pairs = zip(rest, told["rounds"], strict=True)
        rounds = [Round(one.clique, float(epsilon), one.sigma, float(part)) for one, (epsilon, part) in pairs]
    steps = 10 * int(told["iterations"])
    k = schema.max_records_per_person
    return _ChosenRecords(measurements, schema.domain, steps, zeros=run.zeros, rounds=rounds, run=run, k=k)
