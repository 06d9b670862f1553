"""The contract of every mechanism: plan, fit, sample, and what a fit leaves.

A mechanism is a composition: it selects, measures and generates with the parts of other modules, and holds no kernel
and no noise of its own. Its fields are its parameters, stored as they are given and checked when they are used.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from chicle._checks import integer, number
from chicle.counting.records import Countable, Records
from chicle.discovery import Discovery, purchases, resolve
from chicle.domain import Clique, Domain
from chicle.errors import BudgetExceeded, NotFittedError, ParameterError, PrivacyError, SchemaError
from chicle.measurements.measurement import Measurement, measure
from chicle.plans import Plan, Step, Sweep, one_way_steps
from chicle.privacy.budget import Accounting, Budget, calibrate
from chicle.privacy.ledger import Ledger
from chicle.privacy.noise import MIN_SCALE
from chicle.releases.release import Release
from chicle.schema import Schema
from chicle.selection import budget_shares
from chicle.sources import Source

__all__ = ["Mechanism", "as_schema", "in_parts"]

# Shares of the budget for the fine 1-way of each coarse column, and for all of them at most. They only tell apart what
# a coarse group holds; everything joint is bought by the rest.
_FINE, _FINE_AT_MOST = 0.02, 0.1

_MOST_RHO = math.floor(0.999 / (2 * MIN_SCALE**2))  # whatever part of it buys a release, samplers take its sigma
_ALL = 1 - 2.0**-40  # all of a budget, but for rounding

_Self = TypeVar("_Self", bound="Mechanism")


@dataclass(kw_only=True, eq=False, repr=False)
class Mechanism(ABC):
    """Base of all mechanisms.

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting
        The budget, as in `chicle.Budget`.
    discovery
        What of the budget may go to values and bins that the schema leaves to be discovered.
    threads
        How many threads to use; all there are, if ``None``.
    progress
        Called after each pass of the generator with its number and the current error.
    """

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    mu: float | None = None
    accounting: Accounting | None = None
    discovery: Discovery | None = None
    threads: int | None = None
    progress: Callable[[int, float], None] | None = None

    @property
    def budget(self) -> Budget:
        """What a fit may spend."""
        budget = Budget(epsilon=self.epsilon, delta=self.delta, rho=self.rho, mu=self.mu, accounting=self.accounting)
        if budget.rho > _MOST_RHO:
            raise ParameterError(
                f"a budget of rho {budget.rho:.3g} would buy noise that is none, and protect nobody; mechanisms take "
                f"rho {_MOST_RHO:,} at most. Give a smaller budget"
            )
        return budget

    def plan(self, schema: Schema, n: int = 100_000) -> Plan:
        """Return what a fit on a table of this schema will release, before any data is seen.

        Parameters
        ----------
        schema
            What is public about the table.
        n
            About how many records it has: a guess, for the errors, the time and the memory to expect.
        """
        declared = as_schema(schema)
        self._check(declared.model)
        budget = self._discovery().budget(declared, self.budget)
        bought = [purchase.step(declared) for purchase in purchases(declared, budget, self._discovery())]
        rho = budget.rho - math.fsum(step.rho for step in bought)
        bought += _fine_steps(declared, rho, integer("n", n, 0))
        if not bought:
            return self._plan(declared.model, budget, n)
        rest = Budget(rho=budget.rho - math.fsum(step.rho for step in bought))
        plan = self._plan(declared.model, rest, n)
        return replace(plan, budget=budget, steps=[*bought, *plan.steps])

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
        schema: Schema | None = None,
        *,
        ledger: Ledger | None = None,
    ) -> _Self:
        """Measure a private table, spending the budget.

        Parameters
        ----------
        source
            `Records`; a pandas, polars or pyarrow table; a path, a pattern or a list of paths (CSV, Parquet, Arrow);
            batches. What is larger than memory is read in passes: see `chicle.sources.Source`.
        schema
            What is public about the table, reviewed by a person; records bring their own.
        ledger
            What pays; by default a new ledger of this mechanism's budget. A second fit on the same ledger pays again.
        """
        if schema is None:
            if not isinstance(source, Records):
                raise SchemaError("a table needs a schema; write one, or begin with chicle.draft_schema(table)")
            declared = Schema(source.domain, max_records_per_person=source.max_records_per_person)
        else:
            declared = as_schema(schema)
            declared.check_reviewed()
        self._check(declared.model)
        budget = self._discovery().budget(declared, self.budget)
        if ledger is None:
            ledger = Ledger(budget)
        elif ledger.budget.accounting != budget.accounting:
            raise PrivacyError(
                f"the ledger accounts in {ledger.budget.accounting!r}, the mechanism in {budget.accounting!r}; "
                "give both the same accounting"
            )
        if ledger.remaining < _ALL * budget.rho:
            raise BudgetExceeded(
                f"this fit costs rho {budget.rho:.6g}, but of {ledger.budget.rho:.6g} only {ledger.remaining:.6g} is "
                "left. Fit with a smaller budget, or open a ledger of a larger one; nothing was spent"
            )
        opened = source if isinstance(source, Source) else Source(source, declared, threads=self.threads)
        opened.check_unit(declared)
        declared.joint.check_form(opened.form)
        spent = ledger.spent
        declared, notes = self._discover(opened, declared, budget, ledger)
        rows = opened.countable(declared)
        fine, rest = self._measure_fine(rows, declared, budget.rho - (ledger.spent - spent), ledger)
        release = self._fit(declared.joint.recode(rows), declared.model, rest, ledger)
        told = (*notes, *release.notes, opened.promise)
        release = replace(release, schema=declared, fine=fine, form=opened.form, notes=told)
        release.prepare()
        self.release_ = release
        return self

    def sample(self, n: int | None = None, seed: int | None = None) -> Any:  # noqa: ANN401
        """Draw a synthetic table of the kind that was fitted: `n` rows, by default the private estimate of n.

        The seed fixes the draw, not the noise. Costs nothing; may be called again and again.
        """
        release = self._fitted()
        trace: list[float] = []
        table = release.sample(n, seed, trace=trace, threads=self.threads, progress=self.progress)
        self.trace_ = trace
        return table

    @property
    def ledger_(self) -> Ledger:
        """What the fit spent on what."""
        return self._fitted().ledger

    def _measure(
        self, records: Countable, cliques: Sequence[Clique], rho: float, ledger: Ledger, purpose: str = "marginal"
    ) -> list[Measurement]:
        """Release marginals for rho in all, shared among them so that their noise is least together."""
        k = records.max_records_per_person
        sigmas = [calibrate(rho * share, l2_sensitivity=k) for share in budget_shares(cliques, records.domain)]
        return measure(records, cliques, sigmas, ledger, purpose=purpose, threads=self.threads)

    def _measure_fine(
        self, records: Countable, schema: Schema, rho: float, ledger: Ledger
    ) -> tuple[tuple[Measurement, ...], float]:
        """Release the fine 1-ways of coarse columns; return them and what is left of rho."""
        steps = _fine_steps(schema, rho, 0)
        if not steps:
            return (), rho
        sigmas = [step.sigma for step in steps if step.sigma is not None]
        cliques = [(step.of,) for step in steps]
        fine = measure(records, cliques, sigmas, ledger, purpose="fine 1-way", threads=self.threads)
        return tuple(fine), rho - math.fsum(step.rho for step in steps)

    def _discover(
        self, source: Source, schema: Schema, budget: Budget, ledger: Ledger
    ) -> tuple[Schema, tuple[str, ...]]:
        """Buy what a schema leaves to be discovered; return the schema in full, and what to say of it."""
        if not schema.undiscovered:
            return schema, ()
        first = f"column {schema.undiscovered[0]!r} is yet to be discovered"
        if source.coded:
            raise SchemaError(f"{first}, but records are coded; give the table itself")
        if source.once:
            raise SchemaError(f"{first}, which takes a reading of its own; give a function that opens the batches")
        bought = purchases(schema, budget, self._discovery())
        ledger.check(event for purchase in bought for event in purchase.events(schema))
        schema.check_rows(source)
        found, notes = resolve(schema, source.batches(list(schema.domain)), bought, ledger)
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

    def _check(self, schema: Schema) -> None:
        """Refuse parameters that a fit on what mechanisms see of this schema can not use, before it spends anything."""
        del schema

    @abstractmethod
    def _plan(self, schema: Schema, budget: Budget, n: int) -> Plan: ...

    @abstractmethod
    def _fit(self, records: Countable, schema: Schema, rho: float, ledger: Ledger) -> Release: ...


def _fine_steps(schema: Schema, rho: float, n: int) -> list[Step]:
    """Return the releases of the fine 1-ways of coarse columns."""
    if not schema.coarse:
        return []
    domain = Domain({name: schema.domain[name] for name in schema.coarse})
    share = min(_FINE * len(domain), _FINE_AT_MOST)
    steps = one_way_steps(domain, rho * share, schema.max_records_per_person, n)
    return [replace(step, release="fine 1-way") for step in steps]


def in_parts(rho: float, shares: Sequence[float]) -> tuple[float, float, float]:
    """Return the three parts of rho that shares ask for.

    Examples
    --------
    >>> in_parts(1.0, (1, 1, 2))
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
