"""The contract of every mechanism: plan, fit, sample, release.

A mechanism is a rule for choosing what to measure, plus a model. Its fields are its parameters, stored as they are
given and checked when they are used. It says how it splits its budget (`stages`) and what it does at a `Desk` (`run`).
It holds no kernel, no noise and no private rows.
"""

from __future__ import annotations

import math
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, cast

import pyarrow as pa

from chicle._checks import integer, number
from chicle._progress import Listener, Listeners, shown
from chicle.analyses import Analysis
from chicle.analyses.run import ANALYSIS_SHARE, SYNTHETIC_ROWS, AnalysisPlan, as_analyses
from chicle.codecs import Codec
from chicle.counting.countable import Countable
from chicle.counting.records import Records
from chicle.discovery import Discovery, purchases, resolve
from chicle.discovery.persons import measure_persons, persons_step
from chicle.domain import Clique, Domain
from chicle.errors import NotFittedError, ParameterError, PrivacyError, SchemaError
from chicle.measurements.desk import Desk
from chicle.measurements.measurement import Measurement
from chicle.measurements.public_rows import PublicRows
from chicle.measurements.transcript import Transcript
from chicle.mechanisms.beside_public import NO_PUBLIC, beside_public
from chicle.mechanisms.stages import Setting, Stages, marginal_stage
from chicle.models.base import Model
from chicle.partition import Partition, chosen_partition, plan_steps, run_partitioned, seen_domain, sizes_budget
from chicle.plans import Cost, Plan, Step, Sweep, check_codes, rough_cost
from chicle.privacy.budget import Accounting, Budget
from chicle.privacy.ledger import Ledger, Reservation, with_aside
from chicle.privacy.noise import MIN_SCALE
from chicle.privacy.strength import check_strength
from chicle.public import PublicData
from chicle.releases.bounds import Distance
from chicle.releases.release import Release
from chicle.releases.unmeasured import distances_of_scores, register_bounds
from chicle.schema import Schema
from chicle.sources import Source, open_source

__all__ = ["BY_NAME", "Mechanism", "PublicUse", "as_schema", "parts_of", "register_mechanism"]

# Shares of the budget for the fine 1-way of each coarse column, and for all of them at most. They only split coarse
# groups; the rest buys everything joint.
_FINE, _FINE_AT_MOST = 0.02, 0.1

_MOST_RHO = math.floor(0.999 / (2 * MIN_SCALE**2))  # the sigma of any part of it is one that the samplers accept

_Self = TypeVar("_Self", bound="Mechanism")
_Class = TypeVar("_Class", bound="type[Mechanism]")
_Model = TypeVar("_Model", bound=Model)

Declaration: TypeAlias = Mapping[str, Any] | str | os.PathLike[str]
"""A schema as a mapping (its declaration, or its columns) or as a file."""

PublicUse: TypeAlias = Literal["refused", "weighed", "used", "needed"]

BY_NAME: dict[str, type[Mechanism]] = {}
"""Every registered mechanism, by its name on the command line."""


def register_mechanism(mechanism: _Class) -> _Class:
    """Register a class of mechanisms under its own name, for the command line, comparisons and saved releases.

    Its annotated fields are its parameters: a class that is no dataclass yet becomes one.
    """
    taken = BY_NAME.get(mechanism.__name__.lower())
    if taken is not None and (taken.__module__, taken.__qualname__) != (mechanism.__module__, mechanism.__qualname__):
        raise ParameterError(f"there is a mechanism {taken.__name__!r} already; give this class another name")
    if "__dataclass_params__" not in vars(mechanism):
        mechanism = dataclass(kw_only=True, eq=False, repr=False)(mechanism)  # type: ignore[assignment]
    BY_NAME[mechanism.__name__.lower()] = mechanism
    register_bounds(mechanism.__name__, mechanism)
    return mechanism


@dataclass(kw_only=True, eq=False, repr=False)
class Mechanism(ABC):
    """Base of all mechanisms.

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting
        The budget, as in `chicle.Budget`.
    discovery
        The part of the budget for values and bins that the schema leaves to be discovered.
    allow_weak
        Allow an epsilon above 10, or a delta of 1/(10 n) and more; see `chicle.privacy.strength`.
    threads
        How many threads to use; all there are, if ``None``.
    progress
        Called after each pass of a fit or a draw with its number and the current error. True shows progress on a
        terminal or in a notebook.
    """

    per_pair: ClassVar[float] = 15
    """Nanoseconds that making one record takes for each pair of attributes, for the plan; 0 where only 1-ways count."""

    public_data: ClassVar[PublicUse] = "weighed"
    """What a fit does with public data: refuses them, weighs them against its releases (`models.evidence`), or has a
    use of its own for them, if they are given or always."""

    counts_persons: ClassVar[bool] = True
    """Whether a fit buys how many rows persons have, where the schema names a person."""

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    mu: float | None = None
    accounting: Accounting | None = None
    discovery: Discovery | None = None
    allow_weak: bool = False
    threads: int | None = None
    progress: Listener | bool | None = None

    @abstractmethod
    def stages(self, setting: Setting) -> Stages:
        """Return how the budget is split; wrong parameters are an error here, before anything is spent."""

    @abstractmethod
    def run(self, desk: Desk) -> Model:
        """Spend the budget at a desk; return the model of what was measured."""

    def run_beside_public(self, desk: Desk) -> Model:
        """Spend the budget at a desk; return the model, improved by the public rows of the desk if they are weighed."""
        model = self.run(desk)
        if desk.public is None or self.public_data != "weighed" or not isinstance(model, Model):
            return model
        return beside_public(model, desk, desk.public)

    def check(self, domain: Domain) -> None:
        """Raise for parameters that cannot be used on these attributes, before anything is spent; by default never."""
        del domain

    def check_public(self, public: PublicRows, domain: Domain) -> None:
        """Raise for public rows that cannot be used, before anything is spent; by default never."""
        del public, domain

    def suited(self: _Self, schema: Schema) -> _Self:  # noqa: PYI019
        """Return this mechanism with parameters that were left open and that a schema implies; by default none."""
        del schema
        return self

    def learn(self, model: _Model, desk: Desk) -> _Model:
        """Fit a model to all measurements of a desk, with the values that are merged there; return the model."""
        return model.fit(
            desk.targets,
            desk.original,
            merge=desk.merge,
            amounts=desk.amounts,
            threads=self.threads,
            progress=desk.progress,
        )

    @property
    def title(self) -> str:
        """The name of this mechanism in a plan."""
        return type(self).__name__

    def cost(self, setting: Setting) -> Cost:
        """Return about how long a fit and a sample take, and how much memory."""
        return rough_cost(setting.domain, int(setting.n), per_pair=self.per_pair)

    @classmethod
    def unmeasured(
        cls, release: Release, cliques: Sequence[Clique], *, threads: int | None = None
    ) -> list[Distance | None]:
        """Return bounds on how far unmeasured cliques are from what was expected of them; None where there is none.

        By default from the scores in the transcript: each is such a distance, with known noise.
        """
        return distances_of_scores(release, cliques, threads=threads)

    @property
    def budget(self) -> Budget:
        """What a fit may spend."""
        return self.budget_in(self.accounting)

    def budget_in(self, accounting: Accounting | None) -> Budget:
        """Return what a fit may spend, accounted in a given way."""
        budget = Budget(epsilon=self.epsilon, delta=self.delta, rho=self.rho, mu=self.mu, accounting=accounting)
        if budget.rho > _MOST_RHO:
            raise ParameterError(
                f"a budget of rho {budget.rho:.3g} adds no noise and gives no protection; use at most rho {_MOST_RHO:,}"
            )
        return budget

    def budget_on(self, ledger: Ledger | None) -> Budget:
        """Return what a fit may spend of a given ledger, or of a new one."""
        del ledger
        return self.budget

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, as in scikit-learn."""
        del deep
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self: _Self, **params: Any) -> _Self:  # noqa: ANN401, PYI019 - as in scikit-learn
        """Set parameters by name, as in scikit-learn; return the mechanism itself."""
        known = {field.name for field in fields(self)}
        for name in params.keys() - known:
            there = ", ".join(sorted(known))
            raise ParameterError(f"{type(self).__name__} has no parameter {name!r}; it has {there}")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def weighs(self, schema: Schema) -> bool:
        """Return whether this mechanism weighs attributes as the schema says, where it says something."""
        del schema
        return False

    def plan(
        self,
        schema: Schema | Declaration,
        n: int = 100_000,
        *,
        public: Any = None,  # noqa: ANN401 - any table
        partition: Partition | Sequence[str] | str | None = None,
        analyses: Iterable[Analysis] | Analysis = (),
        analysis_share: float = ANALYSIS_SHARE,
    ) -> Plan:
        """Return what a fit on a table of this schema will release, before any data is seen.

        Parameters
        ----------
        schema
            What is public about the table.
        n
            About how many records it has: a guess, for the errors, the time and the memory to expect.
        public
            Public data, as for `fit`; a plan names them.
        partition
            As for `fit`; a plan takes partitions to be of equal size.
        analyses, analysis_share
            As for `fit`; the plan shows how wide the intervals will be, if columns are spread evenly.
        """
        declared = as_schema(schema)
        if (suited := self.suited(declared)) is not self:
            return suited.plan(
                declared, n, public=public, partition=partition, analyses=analyses, analysis_share=analysis_share
            )
        codec = Codec(declared)
        parted = chosen_partition(partition, declared, codec.domain)
        self._check_all(codec, parted)
        rows = None if public is None else self._public(public, codec)
        budget = self._discovery().budget(declared, self.budget)
        if parted is not None:
            k, expected = declared.max_records_per_person, declared.rows
            sizes = sizes_budget(parted, codec.domain, budget, k=k, rows=expected, trusted=self._trusts(rows))
            budget = sizes.apply(budget)
        bought = [purchase.step() for purchase in purchases(declared, budget, self._discovery())]
        rho = budget.rho - math.fsum(step.rho for step in bought)
        persons = persons_step(declared, rho) if self.counts_persons else []
        rho -= math.fsum(step.rho for step in persons)
        bought += [*persons, *_fine(codec, rho, integer("n", n, 0))]
        answers = AnalysisPlan.of(as_analyses(analyses), declared, rho=rho, share=analysis_share)
        rest = budget.rho - math.fsum(step.rho for step in (*bought, *answers.steps()))
        table = Setting(codec.domain, rest, declared.max_records_per_person, n)

        def own(domain: Domain, rho: float, records: int) -> list[Step]:
            setting = Setting(domain, rho, table.k, records)
            return self.stages(setting).steps(setting)

        if parted is None:
            mine = own(table.domain, table.rho, n)
        else:
            records = integer("n", n, 0)
            mine = plan_steps(parted, sizes, table.domain, rho=table.rho, k=table.k, n=records, public=rows, steps=own)
        steps = [*bought, *mine, *answers.steps()]
        one_ways = {step.of: step.rho / budget.rho for step in steps if step.release == "1-way"}
        split = declared.split(one_ways, weighed=self.weighs(declared))
        notes = (*declared.notes, *split, *(() if rows is None else (rows.note,)))
        return Plan(self.title, budget, steps, n, self.cost(table), answers.expected(n), notes)

    def sweep(self, schema: Schema, epsilons: Iterable[float], n: int = 100_000) -> Sweep:
        """Return plans at several epsilons and this mechanism's delta: what more budget would buy."""
        if self.epsilon is None:
            raise PrivacyError("a sweep goes over epsilon; make the mechanism with epsilon= and delta=")
        plans = []
        for epsilon in epsilons:
            other = copy(self)
            other.epsilon = epsilon
            plans.append(other.plan(schema, n))
        if not plans:
            raise PrivacyError("a sweep needs at least one epsilon")
        return Sweep(plans)

    def fit(  # noqa: PYI019 - Self is not in the typing of Python 3.10
        self: _Self,
        source: Any,  # noqa: ANN401
        schema: Schema | Declaration | None = None,
        *,
        public: Any = None,  # noqa: ANN401 - any table
        partition: Partition | Sequence[str] | str | None = None,
        ledger: Ledger | None = None,
        analyses: Iterable[Analysis] | Analysis = (),
        analysis_share: float = ANALYSIS_SHARE,
    ) -> _Self:
        """Measure a private table, spending the budget.

        Parameters
        ----------
        source
            `Records`; a pandas, polars or pyarrow table; a path, a pattern or a list of paths (CSV, Parquet, Arrow);
            batches; a Spark or Dask frame, a DuckDB relation, a Polars lazy frame. Tables larger than memory are
            read in passes: see `chicle.sources`. Linked tables are given by name, as a mapping.
        schema
            What is public about the table, reviewed by a person: a `Schema`, its file, or its declaration as a mapping;
            not needed for `Records`.
        public
            Public data: a table, or a `chicle.PublicData`. They cost nothing; the release notes what they are and how
            far they were believed. See docs/public-data.md.
        partition
            Columns whose joint values form partitions, such as states, each of which shall be right by itself; or a
            `chicle.Partition`. By default what the schema declares. See docs/partitions.md.
        ledger
            The ledger that pays; by default a new one of this mechanism's budget. A second fit on it pays again.
        analyses
            Regressions to answer with valid intervals, such as ``chicle.Logit("readmitted ~ age + sex")``; the answers
            are `release_.analyses`. See docs/inference.md.
        analysis_share
            The share of the budget that all of them get; the rest makes the table.
        """
        with shown(self.progress, f"{type(self).__name__}: fit") as listeners:
            declared = _declared(source, schema)
            suited = self.suited(declared)
            self.release_ = suited._fit(  # noqa: SLF001 - of its own class
                source,
                declared,
                public=public,
                partition=partition,
                ledger=ledger,
                asked=as_analyses(analyses),
                share=analysis_share,
                listeners=listeners,
            )
        for weak in [] if self.allow_weak else self.release_.weakness:
            warnings.warn(f"{weak}; its reports say so", UserWarning, stacklevel=2)
        return self

    def _fit(
        self,
        source: Any,  # noqa: ANN401
        declared: Schema,
        *,
        public: Any,  # noqa: ANN401
        partition: Partition | Sequence[str] | str | None,
        ledger: Ledger | None,
        asked: tuple[Analysis, ...],
        share: float,
        listeners: Listeners,
    ) -> Release:
        """Return the release of a fit."""
        partition = chosen_partition(partition, declared, Codec(declared).domain)
        declared = declared.partitioned(() if partition is None else partition.names)
        self._check_all(Codec(declared), partition)
        public_rows = self._public(public, Codec(declared))
        budget = self._discovery().budget(declared, self.budget_on(ledger))
        if partition is not None:
            left = (ledger.budget.pure or 0.0) - ledger.pure if isinstance(ledger, Ledger) else None
            k, rows = declared.max_records_per_person, declared.rows
            trusted = self._trusts(public_rows)
            domain = Codec(declared).domain
            sizes = sizes_budget(partition, domain, budget, k=k, rows=rows, pure_left=left, trusted=trusted)
            budget = sizes.apply(budget)
        check_strength(budget, declared.rows, allowed=self.allow_weak)
        own, aside = ledger is None, budget.discovery or 0.0
        ledger = self._ledger(ledger, budget)
        if ledger.budget.discovery is not None:
            budget = with_aside(budget)  # so that a fit of the whole promise fits into the ledger
        check_strength(ledger.budget, declared.rows, allowed=self.allow_weak)
        opened = source
        if not isinstance(source, Source):
            opened = open_source(source, declared, threads=self.threads, progress=listeners.reading)
        opened.check_unit(declared)
        AnalysisPlan.of(asked, declared, rho=budget.rho, share=share).check(opened)
        if not opened.coded:
            Codec(declared).check_types(opened.form.types)
        whole = own or self._discovery().delta is not None
        with closing(opened), ledger.reserve(budget, title=f"{self.title}: fit", delta=aside, whole=whole) as held:
            notes_before = _notes(declared, ledger)
            declared, notes = self._discover(opened, declared, budget, held)
            codec = Codec(declared)
            rows = opened.countable(codec)
            _check_rows(rows, codec)
            persons = None
            if self.counts_persons:
                persons = measure_persons(opened, declared, budget.rho - held.spent, held)
            rho = budget.rho - held.spent
            answers = AnalysisPlan.of(asked, declared, rho=rho, share=share)
            beside = _fine(codec, rho, 0)
            fine_one_ways = _measure_splits(Desk(rows, held, threads=self.threads), beside)
            desk = Desk(
                rows.view(codec.maps, codec.domain),
                held,
                rho=rho - answers.rho - math.fsum(step.rho for step in beside),
                ordinal=codec.ordinal,
                amounts=codec.amounts,
                zeros=codec.zeros,
                clean=codec.without_zeros,
                public=public_rows,
                presence=declared.presence,
                workload=declared.workload,
                threads=self.threads,
                progress=listeners.passes,
            )
            if public_rows is not None:
                desk.note(public_rows.note)
            model = self.run_beside_public(desk) if partition is None else run_partitioned(self, desk, partition, sizes)
            desk.close()
            _check_run(model, desk)
            told = [] if persons is None else [persons.note()]
            told += [opened.promise, *notes_before]
            release = Release(
                schema=declared,
                transcript=Transcript(list(desk.transcript.entries), [*notes, *desk.transcript.notes, *told]),
                model=model,
                ledger=ledger,
                mechanism=type(self).__name__,
                parameters=self.parameters(seen_domain(model, codec.domain)),
                fine_one_ways=fine_one_ways,
                form=opened.form,
                persons=persons,
            )
            return _answered(release, answers, opened, held, self.threads)

    def sample(self, n: int | None = None, seed: int | None = None) -> Any:  # noqa: ANN401
        """Draw a synthetic table of the kind that was fitted: `n` rows, by default the private estimate of n.

        The seed fixes the draw, not the noise. Costs nothing; may be called any number of times.
        """
        release = self._fitted()
        trace: list[float] = []
        with shown(self.progress, f"{type(self).__name__}: sample") as listeners:
            table = release.sample(n, seed, trace=trace, threads=self.threads, progress=listeners.passes)
        self.trace_ = trace
        return table

    @property
    def ledger_(self) -> Ledger:
        """What the fit spent on what."""
        return cast("Ledger", self._fitted().ledger)  # a fit pays from a ledger, never from a claim

    def parameters(self, domain: Domain) -> dict[str, Any]:
        """Return the mechanism's own parameters as plain data, for the release."""
        del domain
        own = [field.name for field in fields(self) if field.name not in _COMMON]
        given = {name: getattr(self, name) for name in own}
        return {
            name: asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
            for name, value in given.items()
        }

    def _check_all(self, codec: Codec, partition: Partition | None) -> None:
        """Raise for parameters that a fit on this schema cannot use, before it spends anything."""
        check_codes(codec.schema.domain, codec.domain)
        domain = codec.domain if partition is None else partition.rest(codec.domain)
        self.check(domain)
        table = Setting(domain, self.budget.rho, codec.schema.max_records_per_person)
        if (asked := math.fsum(stage.rho for stage in self.stages(table).all)) > table.rho * (1 + 1e-9):
            raise ParameterError(
                f"the stages of {type(self).__name__} cost {asked / table.rho:.3g} times its budget; split less"
            )

    def _trusts(self, public: PublicRows | None) -> bool:
        """Return whether public rows tell what releases do not."""
        return public is not None and public.role == "trusted" and self.public_data == "weighed"

    def _public(self, given: Any, codec: Codec) -> PublicRows | None:  # noqa: ANN401 - any table
        """Return public data as rows of a codec, before anything is spent; data that cannot be used are an error."""
        name = type(self).__name__
        if given is None:
            if self.public_data == "needed":
                raise ParameterError(
                    f"{name} begins with public data; give a table: fit(source, schema, public=table), or --public FILE"
                )
            return None
        if codec.schema.presence is not None:
            raise ParameterError("public data are rows of one table; leave `public` out for linked tables")
        if self.public_data == "refused":
            raise ParameterError(NO_PUBLIC.format(name))
        rows = PublicData.of(given).rows(codec)
        self.check_public(rows, codec.domain)
        return rows

    def _ledger(self, ledger: Ledger | None, budget: Budget) -> Ledger:
        """Return the ledger that pays."""
        if ledger is None:
            return Ledger(budget)
        if not isinstance(ledger, Ledger):
            raise PrivacyError(f"a fit is paid for by a chicle.Ledger, not a {type(ledger).__name__}")
        ledger.check_accounting(budget)
        return ledger

    def _discover(
        self, source: Source, schema: Schema, budget: Budget, held: Reservation
    ) -> tuple[Schema, tuple[str, ...]]:
        """Buy what a schema leaves to be discovered; return the complete schema, and notes on it."""
        if not schema.undiscovered:
            return schema, ()
        first = f"column {schema.undiscovered[0]!r} is yet to be discovered"
        if source.coded:
            raise SchemaError(f"{first}, but records are coded; give the table itself")
        if source.once:
            raise SchemaError(f"{first}, which needs another pass over the batches; give a function that opens them")
        bought = purchases(schema, budget, self._discovery(), delta=held.delta)
        held.check(event for purchase in bought for event in purchase.events())
        found, notes = resolve(schema, source, bought, held)
        return found, tuple(notes)

    def _discovery(self) -> Discovery:
        if self.discovery is None:
            return Discovery()
        if not isinstance(self.discovery, Discovery):
            raise ParameterError(f"discovery must be a chicle.Discovery, not a {type(self.discovery).__name__}")
        return self.discovery

    def _fitted(self) -> Release:
        if not hasattr(self, "release_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit(source, schema) first")
        return self.release_

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if v is not None and not k.endswith("_"))
        return f"{type(self).__name__}({shown})"


_COMMON = frozenset(field.name for field in fields(Mechanism))


def _declared(source: object, schema: Schema | Declaration | None) -> Schema:
    """Return the schema of a source; a draft that was not reviewed is an error."""
    if schema is None:
        if not isinstance(source, Records):
            raise SchemaError("a table needs a schema; write one, or begin with chicle.draft_schema(table)")
        return Schema(source.domain, max_records_per_person=source.max_records_per_person)
    declared = as_schema(schema)
    declared.check_reviewed()
    return declared


def _notes(schema: Schema, ledger: Ledger) -> list[str]:
    """Return what a reader of a release must know beside what it measured."""
    notes = [] if schema.assumption is None else [f"{schema.assumption[0].upper()}{schema.assumption[1:]}."]
    if ledger.events:
        notes.append(
            f"{len(ledger.events):,} earlier releases about the same people are in the same ledger; they spent rho "
            f"{ledger.spent:.4g} of it, and the guarantee is for all of them together."
        )
    return notes


def _check_rows(rows: Countable, codec: Codec) -> None:
    """Raise unless the rows of a source are those that the schema declares, before anything is spent on them."""
    if rows.domain != codec.base:
        raise SchemaError("the rows of the source do not have the attributes of its codec; see `Codec.base`")
    if rows.max_records_per_person != codec.max_records_per_person:
        raise PrivacyError(
            f"the source gave rows of at most {rows.max_records_per_person} a person, but the schema declares "
            f"{codec.max_records_per_person}; both must be the same"
        )


def _check_run(model: object, desk: Desk) -> None:
    """Raise unless a mechanism measured something and returned the fitted model of it."""
    if not desk.transcript.measurements:
        raise ParameterError("the mechanism measured nothing; a release needs at least one measurement")
    if not isinstance(model, Model):
        raise ParameterError(f"`run` must return a fitted chicle.Model, not a {type(model).__name__}")
    if model.domain != desk.domain:
        raise ParameterError(
            "`run` must return a model over the attributes of its desk; fit it by `learn`, or with `merge=`"
        )


def _answered(release: Release, asked: AnalysisPlan, source: Source, ledger: Ledger, threads: int | None) -> Release:
    """Return a release with the answers to declared analyses, bought on the private rows."""
    if not asked.analyses:
        return release
    n = min(release.total, SYNTHETIC_ROWS)
    made = pa.concat_tables(release.sample_parts(n, seed=0, threads=threads))
    columns = {name: made[name] for name in made.column_names}
    answers, sums = asked.answer(source, ledger, synthetic=columns, rows=release.total / max(n, 1), alike=release.alike)
    transcript = Transcript([*release.transcript.entries, *sums], release.transcript.notes)
    return replace(release, transcript=transcript, analyses=tuple(answers))


def _fine(codec: Codec, rho: float, n: int) -> list[Step]:
    """Return the releases of the fine 1-ways of coarse columns."""
    if not codec.coarse:
        return []
    domain = Domain({name: codec.schema.domain[name] for name in codec.coarse})
    share = min(_FINE * len(domain), _FINE_AT_MOST)
    table = Setting(domain, rho * share, codec.schema.max_records_per_person, n)
    cliques: list[Clique] = [(name,) for name in domain]
    return marginal_stage(table, table.rho, cliques, name="fine 1-way").steps(table)


def _measure_splits(desk: Desk, steps: Sequence[Step]) -> tuple[Measurement, ...]:
    """Release the fine 1-ways of coarse columns."""
    if not steps:
        return ()
    sigmas = [step.sigma for step in steps if step.sigma is not None]
    return tuple(desk.measure([(step.of,) for step in steps], sigma=sigmas, purpose="fine 1-way"))


def parts_of(rho: float, shares: Sequence[float]) -> tuple[float, float, float]:
    """Split rho into three parts in the ratios of shares.

    Examples
    --------
    >>> parts_of(1.0, (1, 1, 2))
    (0.25, 0.25, 0.5)
    """
    each = [number("each of shares", share) for share in shares]
    if len(each) != 3 or not all(each):
        raise ParameterError(f"shares must be three positive numbers, not {shares!r}")
    first, second, third = (rho * share / sum(each) for share in each)
    return first, second, third


def as_schema(schema: Schema | Declaration) -> Schema:
    """Return a schema, given as such, as a file, as a declaration in plain data, or as a mapping of columns."""
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, (str, os.PathLike)):
        return Schema.load(Path(schema))
    if isinstance(schema, Mapping):
        whole = any(isinstance(schema.get(key), Mapping) for key in ("columns", "tables"))
        return Schema.from_dict(schema) if whole else Schema(schema)
    raise SchemaError(f"schema must be a chicle.Schema, its file or its declaration, not a {type(schema).__name__}")
