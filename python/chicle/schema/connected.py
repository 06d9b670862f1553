"""Connected components of constraints that share columns, and whether any row satisfies each.

Columns that constraints connect form a part. Parts share no column, so each is checked and repaired on its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from chicle.domain import Domain
from chicle.errors import SchemaError
from chicle.schema.constraints import Constraint

__all__ = ["Part", "connected"]

Integers = npt.NDArray[np.int64]
_MOST_TRIES = 100_000


@dataclass(frozen=True, eq=False)
class Part:
    """A connected component: columns, and the constraints that connect them.

    Attributes
    ----------
    constraints
        The constraints.
    kinds
        For each column, the kind of each code: no constraint distinguishes codes of one kind.
    classes
        For each constraint, and each of its columns, the class of each kind.
    assignment
        A kind for each column that satisfies all constraints.
    """

    constraints: tuple[Constraint, ...]
    kinds: Mapping[str, Integers]
    classes: tuple[tuple[Integers, ...], ...]
    assignment: Mapping[str, int]


def connected(constraints: Sequence[Constraint], domain: Domain) -> list[Part]:
    """Return constraints in parts that share no column; a part that no row satisfies is an error.

    Examples
    --------
    >>> from chicle.columns import Boolean
    >>> from chicle.schema.constraints import constraints_from
    >>> columns = {name: Boolean() for name in "abc"}
    >>> never = [{"forbid": {"a": x, "b": y}} for x in (False, True) for y in (False, True)]
    >>> connected(constraints_from(never, columns), Domain({"a": 2, "b": 2, "c": 2}))
    Traceback (most recent call last):
    chicle.errors.SchemaError: no row satisfies all constraints on 'a' and 'b'; drop or widen one
    """
    parts: list[list[Constraint]] = []
    for one in constraints:
        touching = [part for part in parts if any(set(other.columns) & set(one.columns) for other in part)]
        parts = [part for part in parts if part not in touching] + [[*chain(*touching), one]]
    return [_part(part, domain) for part in parts]


def _part(constraints: Sequence[Constraint], domain: Domain) -> Part:
    columns = sorted({name for one in constraints for name in one.columns}, key=domain.position)
    kinds: dict[str, Integers] = {}
    samples: dict[str, Integers] = {}
    for name in columns:
        classes = [one.classes[one.columns.index(name)] for one in constraints if name in one.columns]
        _, samples[name], of_code = np.unique(np.stack(classes), axis=1, return_index=True, return_inverse=True)
        kinds[name] = of_code.reshape(-1).astype(np.int64)
    of_kind = tuple(
        tuple(one.classes[axis].astype(np.int64)[samples[name]] for axis, name in enumerate(one.columns))
        for one in constraints
    )
    assignment = _search(constraints, of_kind, {name: len(samples[name]) for name in columns})
    if assignment is None:
        names = " and ".join(repr(name) for name in columns)
        raise SchemaError(f"no row satisfies all constraints on {names}; drop or widen one")
    return Part(tuple(constraints), kinds, of_kind, assignment)


def _search(
    constraints: Sequence[Constraint], classes: Sequence[Sequence[Integers]], sizes: Mapping[str, int]
) -> dict[str, int] | None:
    """Return a kind for each column so that all constraints hold, by depth-first search, busiest columns first."""
    busy = {name: sum(name in one.columns for one in constraints) for name in sizes}
    order = sorted(sizes, key=lambda name: (-busy[name], sizes[name]))
    tries = 0

    def fits(partial: Mapping[str, int]) -> bool:
        for one, of_kind in zip(constraints, classes, strict=True):
            places = tuple(
                of_kind[axis][partial[name]] if name in partial else slice(None)
                for axis, name in enumerate(one.columns)
            )
            if not np.any(one.allowed[places]):
                return False
        return True

    def extend(partial: dict[str, int]) -> dict[str, int] | None:
        nonlocal tries
        if len(partial) == len(order):
            return partial
        name = order[len(partial)]
        for kind in range(sizes[name]):
            tries += 1
            if tries > _MOST_TRIES:
                raise SchemaError("the constraints are too entangled to find a row that satisfies them; simplify them")
            more = {**partial, name: kind}
            if fits(more) and (found := extend(more)) is not None:
                return found
        return None

    return extend({})
