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
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Protocol

from chicle.comparison.foreign import Foreign
from chicle.counting.records import Records
from chicle.errors import ParameterError
from chicle.mechanisms.base import Mechanism
from chicle.mechanisms.variants import mechanism_names, named_mechanism
from chicle.schema import Schema

__all__ = ["Contender", "contender"]


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
    ) -> Records:
        """Return any number of synthetic records over the domain of the real ones."""


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
    if name in mechanism_names():
        return _of_mechanism(named_mechanism(name))
    if "@" in name:
        return Foreign(name)
    module, _, function = name.partition(":")
    if not module or not function:
        known = ", ".join(mechanism_names())
        raise ParameterError(
            f"there is no mechanism {name!r}; it is one of {known}, or module:function of your own, "
            "with @PYTHON for another environment"
        )
    try:
        found: Contender = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError):
        raise ParameterError(f"mechanism {name!r} cannot be imported; is {module!r} installed, or here?") from None
    return found


def _of_mechanism(make: Callable[..., Mechanism]) -> Contender:
    def run(
        records: Records, schema: Schema, *, epsilon: float, delta: float, seed: int, threads: int | None
    ) -> Records:
        # An experiment protects nobody anyway, and says so.
        made: Records = (
            make(epsilon=epsilon, delta=delta, threads=threads, allow_weak=True).fit(records, schema).sample(seed=seed)
        )
        return made

    return run
