"""Models: learnt from measurements. Everything here is post-processing: it cannot reach the private data.

A model is fitted to measurements once. It then gives the expected counts of any query and makes records. Its state goes
into the file of a release, so that a load never fits again. Families are registered by name; a user's own
model, registered by the same decorator, saves and loads like ours.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from chicle._checks import check_seed, integer
from chicle.counting.records import Records
from chicle.domain import Domain
from chicle.errors import DomainError, NotFittedError, ParameterError
from chicle.measurements.desk import Progress
from chicle.measurements.measurement import Measurement, estimate_total
from chicle.measurements.merges import Merge
from chicle.query import Query, QueryLike, as_query

__all__ = ["CountedModel", "Model", "State", "model_of", "register_model"]

Floats: TypeAlias = npt.NDArray[np.float64]
State: TypeAlias = Mapping[str, npt.NDArray[Any]]

_Self = TypeVar("_Self", bound="Model")
_Class = TypeVar("_Class", bound="type[Model]")

_FAMILIES: dict[str, type[Model]] = {}

_REFERENCE = 0xA1  # the seed of the records that `expect` counts: public, so that anyone can make them again


def register_model(family: str) -> Callable[[_Class], _Class]:
    """Register a class of models under a family name; releases with such models can be saved and loaded."""

    def register(model: _Class) -> _Class:
        taken = _FAMILIES.get(family)
        if taken is not None and (taken.__module__, taken.__qualname__) != (model.__module__, model.__qualname__):
            raise ParameterError(f"the model family {family!r} is taken by {taken.__name__}; choose another name")
        model.family = family
        _FAMILIES[family] = model
        return model

    return register


def model_of(family: str) -> type[Model]:
    """Return the class of models of a family."""
    if family not in _FAMILIES:
        known = ", ".join(sorted(_FAMILIES))
        raise ParameterError(
            f"there is no model family {family!r}; known are {known}. Import the package that registers it, or upgrade"
        )
    return _FAMILIES[family]


@dataclass(kw_only=True, eq=False)
class Model(ABC):
    """Base of all models. Its fields are its parameters.

    A model works on merged values where a merge is given: measurements are merged on the way in, and records and
    expectations are split on the way out.
    """

    family: ClassVar[str]

    def fit(  # noqa: PYI019 - Self is not in the typing of Python 3.10
        self: _Self,
        measurements: Sequence[Measurement],
        domain: Domain,
        *,
        merge: Merge | None = None,
        amounts: Mapping[str, Floats] | None = None,
        start: Model | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> _Self:
        """Learn from measurements; return the model itself.

        Parameters
        ----------
        measurements
            Of cliques of the domain, in buckets or not.
        domain
            The attributes.
        merge
            The merge of values, if there is one.
        amounts
            The number that each code of an ordinal attribute stands for, before any merge; not a number for missing.
        start
            A fitted model of the same class to start from, where the class supports it.
        threads
            How many threads to use; all there are, if ``None``.
        progress
            Called after every few steps of fitting.
        """
        self._domain, self._merge = domain, Merge(domain) if merge is None else merge
        self._amounts = {} if amounts is None else {name: amounts[name] for name in domain if name in amounts}
        try:
            self._total = max(estimate_total(measurements), 1)
            self.fit_tables(list(measurements), start=start, threads=threads, progress=progress)
        except BaseException:
            del self._domain  # it is not fitted
            raise
        return self

    @property
    def domain(self) -> Domain:
        """The attributes."""
        if not hasattr(self, "_domain"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit(measurements, domain) first")
        return self._domain

    @property
    def merge(self) -> Merge:
        """The merge of values inside the model."""
        _ = self.domain
        return self._merge

    @property
    def amounts(self) -> dict[str, Floats]:
        """The number that each merged value of an ordinal attribute stands for."""
        return self.merge.amounts(self._amounts)

    @property
    def total(self) -> int:
        """How many records the model stands for, at least 1."""
        _ = self.domain
        return self._total

    def expect(self, queries: Sequence[QueryLike], *, merged: bool = False, threads: int | None = None) -> list[Floats]:
        """Return the counts that the model expects for each query, for `total` records.

        Parameters
        ----------
        queries
            Queries, or cliques.
        merged
            Whether these are queries of the merged values, ``model.merge.domain``.
        threads
            How many threads to use; all there are, if ``None``.
        """
        domain = self.merge.domain if merged else self.domain
        checked = [one.checked(domain) if isinstance(one, Query) else domain.check(one) for one in queries]
        if any(isinstance(one, Query) and (one.where or one.functional is not None) for one in checked):
            return [self._expect_one(as_query(one), merged=merged, threads=threads) for one in checked]
        if merged or not self._merge.changes:
            return self.expect_tables(checked, threads=threads)
        return list(self._merge.expect(lambda inner: self.expect_tables(inner, threads=threads))(checked))

    def records(
        self, n: int, seed: int | None = None, *, threads: int | None = None, progress: Progress | None = None
    ) -> Records:
        """Make `n` records. The seed fixes them; the number of threads does not matter."""
        _ = self.domain
        n, seed = integer("n", n, 0), check_seed(seed)
        made = self.draw_records(n, seed, threads=threads, progress=progress)
        return self._merge.split(made, seed) if self._merge.changes else made

    def unaided(self) -> Model:
        """Return an unfitted model with the same parameters that learns from measurements alone."""
        return type(self)(**self.params())

    def told(self, measurements: Sequence[Measurement]) -> Sequence[Measurement]:
        """Return the measurements by which 1-ways of records are settled (`releases.settling`): all, by default."""
        _ = self.domain
        return measurements

    def less_smoothed(self: _Self) -> _Self:  # noqa: PYI019
        """Return an unfitted model of the same family that follows its measurements more closely.

        By default it has the same parameters; models that smooth leave that out. `Release.draws` uses it.
        """
        return type(self)(**self.params())

    def params(self) -> dict[str, Any]:
        """Return the parameters as plain data, for a file."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was learnt, as arrays: all that `restore` needs apart from the parameters."""
        _ = self.domain
        own = self.to_arrays()
        amounts = {f"amounts-{self.domain.position(name)}": codes for name, codes in self._amounts.items()}
        common = {**self.merge.to_arrays(), **amounts, "total": np.array(self.total)}
        for name in common.keys() & own.keys():
            raise ParameterError(f"the state of a {type(self).__name__} has an array {name!r}; choose another name")
        return {**common, **own}

    def restore(self: _Self, state: State, domain: Domain) -> _Self:  # noqa: PYI019
        """Take on what was learnt, from arrays that `state` gave; return the model itself. Nothing is fitted."""
        self._domain, self._merge = domain, Merge.from_arrays(domain, state)
        there = {name: state.get(f"amounts-{place}") for place, name in enumerate(domain)}
        self._amounts = {name: _checked(name, found, domain) for name, found in there.items() if found is not None}
        self._total = integer("the total of a model", int(state["total"]), 1, 2**31 - 1)
        self.from_arrays(state)
        return self

    def _expect_one(self, query: Query, *, merged: bool, threads: int | None) -> Floats:
        """Answer a query of a group, or a functional, from the table that holds it."""
        whole = Query((*query.where, *query.clique), query.buckets)
        (table,) = self.expect([whole if whole.buckets else whole.clique], merged=merged, threads=threads)
        table = np.asarray(table[tuple(query.where.values())], dtype=np.float64)
        if query.functional is None:
            return table
        weights = query.functional.weights.reshape(query.functional.answers, -1)
        return np.asarray(weights @ table.reshape(-1), dtype=np.float64)

    @abstractmethod
    def fit_tables(
        self,
        measurements: list[Measurement],
        *,
        start: Model | None,
        threads: int | None,
        progress: Progress | None,
    ) -> None:
        """Learn from measurements over `domain`."""

    @abstractmethod
    def expect_tables(self, queries: Sequence[QueryLike], *, threads: int | None) -> list[Floats]:
        """Return expected counts over the merged domain; queries have no group and no functional."""

    @abstractmethod
    def draw_records(self, n: int, seed: int | None, *, threads: int | None, progress: Progress | None) -> Records:
        """Make records over the merged domain."""

    @abstractmethod
    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was learnt, as arrays."""

    @abstractmethod
    def from_arrays(self, state: State) -> None:
        """Take on what was learnt; nothing is fitted."""

    def __getstate__(self) -> dict[str, Any]:
        """Pickle parameters and arrays, as a file holds them."""
        fitted = hasattr(self, "_domain")
        state = {"state": self.state(), "domain": self._domain} if fitted else {}
        return {"params": {field.name: getattr(self, field.name) for field in fields(self)}, **state}

    def __setstate__(self, given: dict[str, Any]) -> None:
        vars(self).update(given["params"])
        if "state" in given:
            self.restore(given["state"], given["domain"])


def _checked(name: str, amounts: npt.NDArray[Any], domain: Domain) -> Floats:
    if amounts.shape != (domain[name],) or amounts.dtype.kind != "f":
        raise DomainError(f"the numbers of {name!r} do not fit its values")
    return amounts.astype(np.float64)


class CountedModel(Model):
    """A model that can only make records: it counts its own records to answer `expect`."""

    def expect_tables(self, queries: Sequence[QueryLike], *, threads: int | None) -> list[Floats]:
        """Return expected counts over the merged domain."""
        made = self._reference(threads)
        scale = self.total / max(len(made), 1)
        return [table.astype(np.float64) * scale for table in made.count(queries, threads=threads)]

    def _reference(self, threads: int | None) -> Records:
        """Return `total` records over the merged domain, the same each time."""
        if not hasattr(self, "_kept"):
            self._kept = self.draw_records(self.total, _REFERENCE, threads=threads, progress=None)
        return self._kept

    def fit(self: _Self, *arguments: Any, **given: Any) -> _Self:  # noqa: ANN401, PYI019
        """Learn from measurements, as `Model.fit`; records counted before are forgotten."""
        vars(self).pop("_kept", None)
        return super().fit(*arguments, **given)

    def restore(self: _Self, state: State, domain: Domain) -> _Self:  # noqa: PYI019
        """Take on what was learnt, as `Model.restore`; records counted before are forgotten."""
        vars(self).pop("_kept", None)
        return super().restore(state, domain)
