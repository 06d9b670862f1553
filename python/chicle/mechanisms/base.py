"""The contract of every mechanism: plan, fit, sample, release.

A mechanism is a rule for choosing what to measure, plus a model. Its fields are its parameters, stored as they are
given and checked when they are used. It says how it splits its budget (`stages`) and what it does at a `Desk` (`run`).
It holds no kernel, no noise and no private rows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any, ClassVar, TypeVar, cast

from chicle._checks import integer, number
from chicle.codecs import Codec
from chicle.counting.countable import Countable
from chicle.counting.records import Records
from chicle.discovery import Discovery, purchases, resolve
from chicle.domain import Clique, Domain
from chicle.errors import BudgetExceeded, NotFittedError, ParameterError, PrivacyError, SchemaError
from chicle.measurements.desk import Desk
from chicle.measurements.measurement import Measurement
from chicle.measurements.transcript import Transcript
from chicle.mechanisms.stages import Setting, Stages, marginal_stage
from chicle.models.base import Model
from chicle.plans import Cost, Plan, Step, Sweep, rough_cost
from chicle.privacy.budget import Accounting, Budget
from chicle.privacy.ledger import Ledger
from chicle.privacy.noise import MIN_SCALE
from chicle.releases.bounds import Distance
from chicle.releases.release import Release
from chicle.releases.unmeasured import distances_of_scores, register_bounds
from chicle.schema import Schema
from chicle.sources import Source, open_source

__all__ = ["BY_NAME", "Mechanism", "as_schema", "parts_of", "register_mechanism"]

# Shares of the budget for the fine 1-way of each coarse column, and for all of them at most. They only split coarse
# groups; the rest buys everything joint.
_FINE, _FINE_AT_MOST = 0.02, 0.1

_MOST_RHO = math.floor(0.999 / (2 * MIN_SCALE**2))  # the sigma of any part of it is one that the samplers accept
_ALL = 1 - 2.0**-40  # all of a budget, but for rounding

_Self = TypeVar("_Self", bound="Mechanism")
_Class = TypeVar("_Class", bound="type[Mechanism]")
_Model = TypeVar("_Model", bound=Model)

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
    threads
        How many threads to use; all there are, if ``None``.
    progress
        Called after each pass of a fit or a draw with its number and the current error.
    """

    per_pair: ClassVar[float] = 15
    """Nanoseconds that making one record takes for each pair of attributes, for the plan; 0 where only 1-ways count."""

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    mu: float | None = None
    accounting: Accounting | None = None
    discovery: Discovery | None = None
    threads: int | None = None
    progress: Callable[[int, float], None] | None = None

    @abstractmethod
    def stages(self, setting: Setting) -> Stages:
        """Return how the budget is split; wrong parameters are an error here, before anything is spent."""

    @abstractmethod
    def run(self, desk: Desk) -> Model:
        """Spend the budget at a desk; return the model of what was measured."""

    def check(self, domain: Domain) -> None:
        """Raise for parameters that cannot be used on these attributes, before anything is spent; by default never."""
        del domain

    def learn(self, model: _Model, desk: Desk) -> _Model:
        """Fit a model to all measurements of a desk, with the values that are merged there; return the model."""
        return model.fit(desk.targets, desk.original, merge=desk.merge, threads=self.threads, progress=self.progress)

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
        budget = Budget(epsilon=self.epsilon, delta=self.delta, rho=self.rho, mu=self.mu, accounting=self.accounting)
        if budget.rho > _MOST_RHO:
            raise ParameterError(
                f"a budget of rho {budget.rho:.3g} adds no noise and gives no protection; use at most rho {_MOST_RHO:,}"
            )
        return budget

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

    def plan(self, schema: Schema | Mapping[str, int], n: int = 100_000) -> Plan:
        """Return what a fit on a table of this schema will release, before any data is seen.

        Parameters
        ----------
        schema
            What is public about the table.
        n
            About how many records it has: a guess, for the errors, the time and the memory to expect.
        """
        declared = as_schema(schema)
        codec = Codec(declared)
        self._check_all(codec)
        budget = self._discovery().budget(declared, self.budget)
        bought = [purchase.step() for purchase in purchases(declared, budget, self._discovery())]
        rho = budget.rho - math.fsum(step.rho for step in bought)
        bought += _fine(codec, rho, integer("n", n, 0))
        rest = Budget(rho=budget.rho - math.fsum(step.rho for step in bought)) if bought else budget
        table = Setting(codec.domain, rest.rho, declared.max_records_per_person, n)
        return Plan(self.title, budget, [*bought, *self.stages(table).steps(table)], n, self.cost(table))

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
        schema: Schema | Mapping[str, int] | None = None,
        *,
        ledger: Ledger | None = None,
    ) -> _Self:
        """Measure a private table, spending the budget.

        Parameters
        ----------
        source
            `Records`; a pandas, polars or pyarrow table; a path, a pattern or a list of paths (CSV, Parquet, Arrow);
            batches. Tables larger than memory are read in passes: see `chicle.sources`.
        schema
            What is public about the table, reviewed by a person; not needed for `Records`.
        ledger
            The ledger that pays; by default a new one of this mechanism's budget. A second fit on it pays again.
        """
        declared = _declared(source, schema)
        self._check_all(Codec(declared))
        budget = self._discovery().budget(declared, self.budget)
        ledger = self._ledger(ledger, budget)
        opened = source if isinstance(source, Source) else open_source(source, declared, threads=self.threads)
        opened.check_unit(declared)
        if not opened.coded:
            Codec(declared).check_types(opened.form.types)
        spent = ledger.spent
        declared, notes = self._discover(opened, declared, budget, ledger)
        codec = Codec(declared)
        rows = opened.countable(codec)
        _check_rows(rows, codec)
        rho = budget.rho - (ledger.spent - spent)
        beside = _fine(codec, rho, 0)
        fine_one_ways = _measure_splits(Desk(rows, ledger, threads=self.threads), beside)
        desk = Desk(
            rows.view(codec.maps, codec.domain),
            ledger,
            rho=rho - math.fsum(step.rho for step in beside),
            ordinal=codec.ordinal,
            zeros=codec.zeros,
            clean=codec.without_zeros,
            threads=self.threads,
            progress=self.progress,
        )
        model = self.run(desk)
        desk.close()
        _check_run(model, desk)
        transcript = Transcript(list(desk.transcript.entries), [*notes, *desk.transcript.notes, opened.promise])
        self.release_ = Release(
            schema=declared,
            transcript=transcript,
            model=model,
            ledger=ledger,
            mechanism=type(self).__name__,
            parameters=self.parameters(codec.domain),
            fine_one_ways=fine_one_ways,
            form=opened.form,
        )
        return self

    def sample(self, n: int | None = None, seed: int | None = None) -> Any:  # noqa: ANN401
        """Draw a synthetic table of the kind that was fitted: `n` rows, by default the private estimate of n.

        The seed fixes the draw, not the noise. Costs nothing; may be called any number of times.
        """
        release = self._fitted()
        trace: list[float] = []
        table = release.sample(n, seed, trace=trace, threads=self.threads, progress=self.progress)
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

    def _check_all(self, codec: Codec) -> None:
        """Raise for parameters that a fit on this schema cannot use, before it spends anything."""
        self.check(codec.domain)
        table = Setting(codec.domain, self.budget.rho, codec.schema.max_records_per_person)
        if (asked := math.fsum(stage.rho for stage in self.stages(table).all)) > table.rho * (1 + 1e-9):
            raise ParameterError(
                f"the stages of {type(self).__name__} cost {asked / table.rho:.3g} times its budget; split less"
            )

    def _ledger(self, ledger: Ledger | None, budget: Budget) -> Ledger:
        """Return the ledger that pays; one with too little left is an error."""
        if ledger is None:
            ledger = Ledger(budget)
        elif not isinstance(ledger, Ledger):
            raise PrivacyError(f"a fit is paid for by a chicle.Ledger, not a {type(ledger).__name__}")
        elif ledger.budget.accounting != budget.accounting:
            raise PrivacyError(
                f"the ledger accounts in {ledger.budget.accounting!r}, the mechanism in {budget.accounting!r}; "
                "give both the same accounting"
            )
        if ledger.remaining < _ALL * budget.rho:
            raise BudgetExceeded(
                f"this fit costs rho {budget.rho:.6g}, but only {ledger.remaining:.6g} of {ledger.budget.rho:.6g} is "
                "left. Fit with a smaller budget, or open a ledger of a larger one; nothing was spent"
            )
        return ledger

    def _discover(
        self, source: Source, schema: Schema, budget: Budget, ledger: Ledger
    ) -> tuple[Schema, tuple[str, ...]]:
        """Buy what a schema leaves to be discovered; return the complete schema, and notes on it."""
        if not schema.undiscovered:
            return schema, ()
        first = f"column {schema.undiscovered[0]!r} is yet to be discovered"
        if source.coded:
            raise SchemaError(f"{first}, but records are coded; give the table itself")
        if source.once:
            raise SchemaError(f"{first}, which needs another pass over the batches; give a function that opens them")
        bought = purchases(schema, budget, self._discovery())
        ledger.check(event for purchase in bought for event in purchase.events())
        found, notes = resolve(schema, source, bought, ledger)
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


def _declared(source: object, schema: Schema | Mapping[str, int] | None) -> Schema:
    """Return the schema of a source; a draft that was not reviewed is an error."""
    if schema is None:
        if not isinstance(source, Records):
            raise SchemaError("a table needs a schema; write one, or begin with chicle.draft_schema(table)")
        return Schema(source.domain, max_records_per_person=source.max_records_per_person)
    declared = as_schema(schema)
    declared.check_reviewed()
    return declared


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


def as_schema(schema: Schema | Mapping[str, int]) -> Schema:
    """Return a schema, or that of a coded table given as a mapping."""
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, Mapping):
        return Schema.from_cardinalities(schema)
    raise SchemaError(f"schema must be a chicle.Schema, not a {type(schema).__name__}")
