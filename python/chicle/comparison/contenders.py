"""What can be compared: chicle's own mechanisms, by name, and any other function that makes records, by import path.

A contender is a function from real records to synthetic records over the same domain. To compare another library, write
such a function and name it as ``module:function``; nothing needs to be registered::

    # peers.py
    def mst(records, schema, *, epsilon, delta, seed, threads):
        from somewhere import MST

        made = MST(epsilon, delta).fit_sample({name: records[name] for name in records})
        return chicle.Records(made, records.domain)

``chicle compare people.csv -s people.yaml --mechanisms prism,peers:mst``. Each run has a process of its own, so a
contender that is slow, needs much memory or crashes does not affect the others. A library that does not install beside
chicle runs in an environment of its own, as ``module:function@PYTHON``: see `chicle.comparison.foreign`; functions for
some are in `chicle.comparison.adapters`.

What a comparison may give beside a budget reaches those that have a parameter of that name: ``workload``, the
`chicle.Workload` by which tables will be judged, and ``public``, a `chicle.PublicData` whose table is `Records`. A
person may have `records.max_records_per_person` rows. A mechanism with ``-alone`` after its name gets no public data.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any, Protocol

from chicle.comparison.foreign import Foreign
from chicle.counting.records import Records
from chicle.errors import InfeasibleError, ParameterError
from chicle.mechanisms.base import Mechanism
from chicle.mechanisms.variants import mechanism_names, named_mechanism
from chicle.public import PublicData
from chicle.schema import Schema
from chicle.workload import Workload

__all__ = ["ALONE", "Contender", "Ours", "accepted", "contender"]

ALONE = "-alone"
"""After the name of a mechanism: it gets no public data."""


class Contender(Protocol):
    """A function from real records to synthetic ones at a budget."""

    def __call__(
        self,
        records: Records,
        schema: Schema,
        *,
        epsilon: float,
        delta: float,
        seed: int,
        threads: int | None,
        **given: Any,  # noqa: ANN401 - what it has parameters for
    ) -> Records:
        """Return any number of synthetic records over the domain of the real ones."""


@dataclass(frozen=True)
class Ours:
    """A mechanism of chicle as a contender.

    Attributes
    ----------
    name
        What it is called in comparisons.
    make
        Makes the mechanism from its parameters.
    alone
        Whether it gets no public data.
    """

    name: str
    make: Callable[..., Mechanism]
    alone: bool = False

    def __call__(
        self,
        records: Records,
        schema: Schema,
        *,
        epsilon: float,
        delta: float,
        seed: int,
        threads: int | None,
        workload: Workload | None = None,
        public: PublicData | None = None,
        **parameters: Any,  # noqa: ANN401 - the mechanism's own
    ) -> Records:
        """Fit the mechanism and draw a table."""
        synth = self._made(workload, parameters, epsilon=epsilon, delta=delta, threads=threads)
        made: Records = synth.fit(records, schema, public=self._public(synth, public)).sample(seed=seed)
        return made

    def check(
        self,
        schema: Schema,
        *,
        epsilon: float,
        delta: float,
        workload: Workload | None = None,
        public: PublicData | None = None,
        **parameters: Any,  # noqa: ANN401
    ) -> None:
        """Raise for what the mechanism cannot be given; a table that is too large for it is no such error."""
        known = [name for name in signature(self.make).parameters if name not in _OF_EVERY_RUN]
        for name in parameters:
            if name not in known:
                raise ParameterError(f"{self.name} has no parameter {name!r} to set; it has {', '.join(known)}")
        synth = self._made(workload, parameters, epsilon=epsilon, delta=delta, threads=1)
        given_public = self._public(synth, public)
        if synth.public_data == "needed" and given_public is None:
            raise ParameterError(f"{self.name} begins with public data; give a table, public=..., or --public FILE")
        try:
            synth.plan(schema, public=given_public)
        except InfeasibleError:
            return
        except ParameterError as error:
            raise ParameterError(f"{self.name}: {error}") from None

    def _made(self, workload: Workload | None, parameters: Mapping[str, Any], **budget: Any) -> Mechanism:  # noqa: ANN401
        asks = workload is not None and "workload" in signature(self.make).parameters
        # An experiment protects nobody anyway, and says so.
        given = {"allow_weak": True, **({"workload": workload} if asks else {}), **parameters}
        return self.make(**budget, **given)

    def _public(self, synth: Mechanism, public: PublicData | None) -> PublicData | None:
        return None if self.alone or synth.public_data == "refused" else public


_OF_EVERY_RUN = ("epsilon", "delta", "rho", "mu", "threads", "progress", "allow_weak")


def contender(name: str) -> Contender:
    """Return the contender of a name, or import the one at ``module:function``.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(500, d=3)
    >>> schema = chicle.Schema(census.domain)
    >>> len(contender("independent")(census, schema, epsilon=9, delta=1e-9, seed=0, threads=1)) > 400
    True
    """
    mechanism = name.removesuffix(ALONE)
    if mechanism in mechanism_names(public=True):
        return Ours(name, named_mechanism(mechanism), alone=name != mechanism)
    if "@" in name:
        return Foreign(name)
    module, _, function = name.partition(":")
    if not module or not function:
        known = ", ".join(mechanism_names(public=True))
        raise ParameterError(
            f"there is no mechanism {name!r}; it is one of {known}, or module:function of your own, "
            "with @PYTHON for another environment"
        )
    try:
        found: Contender = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError):
        raise ParameterError(f"mechanism {name!r} cannot be imported; is {module!r} installed, or here?") from None
    return found


def accepted(function: Callable[..., object], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a function has parameters for.

    Examples
    --------
    >>> accepted(lambda records, *, seed, workload=None: records, {"workload": 1, "public": 2})
    {'workload': 1}
    """
    there = signature(function).parameters.values()
    every = any(one.kind is Parameter.VAR_KEYWORD for one in there)
    names = {one.name for one in there}
    return {name: value for name, value in given.items() if every or name in names}
