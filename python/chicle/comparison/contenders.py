"""What can be compared: chicle's own mechanisms by name, and anything else that makes records, by where to import it.

A contender is a function: real records in, synthetic records over the same domain out. To bring a peer, write one and
name it as ``module:function``; nothing is registered, and chicle depends on no peer::

    # peers.py
    def mst(records, schema, *, epsilon, delta, seed, threads):
        from somewhere import MST

        made = MST(epsilon, delta).fit_sample({name: records[name] for name in records})
        return chicle.Records(made, records.domain)

``chicle compare people.csv -s people.yaml --mechanisms prism,peers:mst``. Each run has a process of its own, so a peer
may be slow, greedy or fall over without harm to the others.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from chicle.counting.records import Records
from chicle.errors import ParameterError
from chicle.mechanisms import AIM, BY_NAME, PrivSyn
from chicle.mechanisms.base import Mechanism
from chicle.schema import Schema

__all__ = ["Contender", "contender", "contender_names"]


class Contender(Protocol):
    """What is compared: a function from real records to synthetic ones at a budget."""

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
        """Return synthetic records over the domain of the real ones, as many as the contender sees fit."""


_OURS: Mapping[str, tuple[Callable[..., Mechanism], Mapping[str, Any]]] = {
    **{name: (made, {}) for name, made in BY_NAME.items()},
    "privsyn-descent": (PrivSyn, {"generator": "descent"}),
    "privsyn-pgm": (PrivSyn, {"generator": "pgm"}),
    "aim-pgm": (AIM, {"generator": "pgm"}),
}


def contender_names() -> list[str]:
    """Return the names of chicle's own contenders."""
    return list(_OURS)


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
    if name in _OURS:
        make, options = _OURS[name]
        return _of_mechanism(make, options)
    module, _, function = name.partition(":")
    if not module or not function:
        raise ParameterError(
            f"there is no mechanism {name!r}; it is one of {', '.join(_OURS)}, or module:function of your own"
        )
    try:
        found: Contender = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError):
        raise ParameterError(f"mechanism {name!r} can not be imported; is {module!r} installed, or here?") from None
    return found


def _of_mechanism(make: Callable[..., Mechanism], options: Mapping[str, Any]) -> Contender:
    def run(
        records: Records, schema: Schema, *, epsilon: float, delta: float, seed: int, threads: int | None
    ) -> Records:
        made: Records = (
            make(epsilon=epsilon, delta=delta, threads=threads, **options).fit(records, schema).sample(seed=seed)
        )
        return made

    return run
