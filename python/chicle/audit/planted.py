"""Twelve bugs to plant, one at a time: an audit that misses them proves nothing where it finds none.

Each bug replaces one function of the library inside a ``with`` block, in the process of an audit, on made-up tables.
While it is planted no ledger calls itself protected, so nothing that is made then can pass for private.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from chicle.counting.countable import Countable, Independence
from chicle.counting.records import Records
from chicle.domain import Clique, Domain
from chicle.measurements.contrasts import contrast_sensitivity
from chicle.measurements.desk import Desk
from chicle.privacy import primitives
from chicle.privacy.events import DiscoveryEvent, ExponentialEvent, GaussianEvent
from chicle.privacy.ledger import Ledger
from chicle.privacy.noise import SystemNoise
from chicle.query import Query
from chicle.schema import Schema
from chicle.sources.people import People

__all__ = ["BUGS", "Bug"]

Integers = npt.NDArray[np.int64]
Release = Callable[[Sequence[Integers], Sequence[GaussianEvent], Ledger], list[Integers]]


@dataclass(frozen=True)
class Bug:
    """A bug that can be planted.

    Attributes
    ----------
    what
        What is wrong.
    case
        The audit that must find it.
    where, instead
        The name of what is replaced, and by what.
    also
        Other places of the same bug.
    """

    what: str
    case: str
    where: str
    instead: Any
    also: Mapping[str, Any] = field(default_factory=dict)

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Plant the bug while the block runs."""
        with ExitStack() as stack:
            for where, instead in {self.where: self.instead, **self.also}.items():
                stack.enter_context(patch(where, instead))
            stack.enter_context(patch.object(Ledger, "protected", property(lambda _: False)))
            yield


_TABLES = "chicle.measurements.desk.release_gaussian"


def _noisy(values: Sequence[Integers], events: Sequence[GaussianEvent], ledger: Ledger) -> list[Integers]:
    """Release what has been paid for already, or never is."""
    draws = ledger.noise.rounded_gaussian([event.sigma for event in events], [one.size for one in values])
    parts = np.split(draws, np.cumsum([one.size for one in values])[:-1])
    return [(one.ravel() + part).reshape(one.shape) for one, part in zip(values, parts, strict=True)]


_sensitivity = Query.l2_sensitivity


def _of_one_row(query: Query, k: int) -> int:
    del k
    return _sensitivity(query, 1)


def _contrasts_of_one_row(shape: Sequence[int], k: int) -> float:
    del k
    return contrast_sensitivity(shape, 1)


def _seeded(noise: SystemNoise) -> int:
    """Return the seed of a user, moved on by the number of the call."""
    noise.calls = getattr(noise, "calls", 0) + 1  # type: ignore[attr-defined]
    return 42 + int(noise.calls)  # type: ignore[attr-defined]


def _scores_are_free(values: Sequence[Integers], events: Sequence[GaussianEvent], ledger: Ledger) -> list[Integers]:
    ledger.debit([event for event in events if event.clique is not None])
    return _noisy(values, events, ledger)


def _n_is_exact(values: Sequence[Integers], events: Sequence[GaussianEvent], ledger: Ledger) -> list[Integers]:
    noisy = primitives.release_gaussian(values, events, ledger)
    return [exact if event.clique == () else one for exact, one, event in zip(values, noisy, events, strict=True)]


def _whole_share(values: Sequence[Integers], events: Sequence[GaussianEvent], ledger: Ledger) -> list[Integers]:
    """Draw the noise of each table as if it had the budget of all of them."""
    ledger.debit(events)
    precision = sum((event.l2_sensitivity / event.sigma) ** 2 for event in events)
    sigmas = [event.l2_sensitivity / precision**0.5 for event in events]
    draws = [ledger.noise.rounded_gaussian([sigma], [one.size]) for sigma, one in zip(sigmas, values, strict=True)]
    return [(one.ravel() + noise).reshape(one.shape) for one, noise in zip(values, draws, strict=True)]


def _one_noise(values: Sequence[Integers], events: Sequence[GaussianEvent], ledger: Ledger) -> list[Integers]:
    """Add the same draws to every table, of the largest noise that any of them needs."""
    ledger.debit(events)
    most = max(one.size for one in values)
    draws = ledger.noise.rounded_gaussian([max(event.sigma for event in events)], [most])
    return [(one.ravel() + draws[: one.size]).reshape(one.shape) for one in values]


def _overlapping(rows: Records, names: Clique) -> list[Countable]:
    """Return groups each of which has the rows of all of them."""
    kept = Domain({name: size for name, size in rows.domain.items() if name not in names})
    return [rows.view({name: (name, None) for name in kept}, kept)] * rows.domain.cells(names)


def _exact_independence(desk: Desk) -> Independence:
    """Return the product of exact 1-ways; scores keep the sensitivity of released ones."""
    rows = desk._Desk__rows  # type: ignore[attr-defined]  # noqa: SLF001 - what the bug is about
    tables = rows.count([(name,) for name in desk.domain])
    total = max(int(tables[0].sum()), 1)
    return Independence({name: table / total for name, table in zip(desk.domain, tables, strict=True)}, total)


def _data_bounds(source: Any, schema: Schema) -> Schema:  # noqa: ANN401 - any table
    """Declare bounds as narrow as the data are."""
    declared = schema.to_dict()
    for name, column in declared["columns"].items():
        if column.get("type") == "integer":
            column |= {"min": min(source[name]), "max": max(source[name])}
    return Schema.from_dict(declared)


def _every_label(counts: Integers, event: DiscoveryEvent, ledger: Ledger) -> npt.NDArray[np.intp]:
    """Keep all labels that fit, also those of a single person."""
    ledger.debit([event])
    return np.argsort(-counts, kind="stable")[: event.values]


class _Unlimited(People):
    """A limit of rows that nobody reaches."""

    def __init__(self, name: str, k: int, persons: int = 2**20, *, keep: str = "first") -> None:
        super().__init__(name, 2**20 * k, persons, keep=keep)


def _half_sensitivity(
    scores: Integers,
    sensitivity: int,
    event: ExponentialEvent,
    ledger: Ledger,
    keeps: Any = None,  # noqa: ANN401
) -> int:
    return primitives.release_choice(scores, max(sensitivity // 2, 1), event, ledger, keeps)


BUGS: dict[str, Bug] = {
    "row-sensitivity": Bug(
        "sensitivity 1 for k rows",
        "tables",
        "chicle.query.Query.l2_sensitivity",
        _of_one_row,
        {"chicle.measurements.desk.contrast_sensitivity": _contrasts_of_one_row},
    ),
    "seeded-noise": Bug("noise from the user's seed", "tables", "chicle.privacy.noise.SystemNoise._next_seed", _seeded),
    "free-score": Bug("a score that is not debited", "scores", _TABLES, _scores_are_free),
    "data-bounds": Bug("bounds read off the data", "bounds", "chicle.mechanisms.base._declared", _data_bounds),
    "exact-n": Bug("the number of rows published exactly", "tables", _TABLES, _n_is_exact),
    "rare-label": Bug("a rare label kept", "labels", "chicle.discovery.values.release_frequent", _every_label),
    "whole-share": Bug("sigma of the whole budget for each share", "tables", _TABLES, _whole_share),
    "noise-reused": Bug("one noise vector for all tables", "tables", _TABLES, _one_noise),
    "exact-reference": Bug(
        "selection against exact 1-ways",
        "independence",
        "chicle.measurements.desk.Desk.independence",
        _exact_independence,
    ),
    "no-person-limit": Bug("no limit on the rows of a person", "persons", "chicle.sources.local.People", _Unlimited),
    "parallel-overlap": Bug(
        "parallel composition over groups that overlap",
        "partitions-independent",
        "chicle.counting.records.Records.parts",
        _overlapping,
    ),
    "half-sensitivity": Bug(
        "the exponential mechanism with half the sensitivity",
        "choice",
        "chicle.measurements.desk.release_choice",
        _half_sensitivity,
    ),
}
"""Every bug, by its name on the command line."""
