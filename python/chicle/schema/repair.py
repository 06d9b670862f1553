"""Synthetic rows that violate a constraint are mended, so that none is left.

Columns that constraints connect form a part; parts do not touch each other. In each part, in this order:

1. Rows swap the values of one column, two and two, where that settles its constraints in one row and breaks none in the
   other: no 1-way changes. Coarse columns first swap inside their groups, which changes nothing that was measured.
2. Rows that are left change one column at a time, chosen at random among those that their violated constraints are
   about: to the value of a conforming row that agrees with them on the columns which those constraints connect or, if
   there is none, to any value that all constraints allow there, by how often rows have it.
3. Rows that no single change helps take the whole part of a conforming row; if no row conforms, of an assignment that
   was searched for when the schema was declared. A schema without any is refused then.

A change settles all constraints on its column and touches no others, so the number of violated ones falls. In one run
on the American Community Survey of 2018 with seven constraints at epsilon 1, 8 % of Prism's rows violated one; its mean
2-way error was .0137 before, .0134 after, and .0167 without step 1.

Everything is computed from synthetic rows and declarations: post-processing, free of cost. Rows are mended together,
without a loop over them: O(rows) for each constraint, and sorting those that are mended and those they may learn from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from chicle.columns.base import Mask
from chicle.counting.records import Codes, Records, code_dtype
from chicle.domain import Domain
from chicle.errors import SchemaError
from chicle.schema.constraints import Constraint

__all__ = ["Part", "connected", "mend", "repair", "swap"]

_MOST_TRIES = 100_000
_MOST_PLACES = 2**22  # contexts times kinds at a time
_ROUNDS, _IDLE = 200, 5  # of swaps, and of those that settle next to nothing before they end

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Part:
    """Columns that constraints connect.

    Attributes
    ----------
    constraints
        What connects them.
    kinds
        For each column the kind of each code: codes of one kind are alike to all constraints.
    classes
        For each constraint, and each of its columns, the class of each kind.
    assignment
        For each column a kind, which together satisfy everything.
    """

    constraints: tuple[Constraint, ...]
    kinds: Mapping[str, Integers]
    classes: tuple[tuple[Integers, ...], ...]
    assignment: Mapping[str, int]


def connected(constraints: Sequence[Constraint], domain: Domain) -> list[Part]:
    """Return constraints in parts that share no column; a part that nothing satisfies is refused.

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


def repair(
    records: Records, parts: Sequence[Part], rng: np.random.Generator, groups: Mapping[str, Integers] | None = None
) -> Records:
    """Return records without rows that violate a constraint.

    Parameters
    ----------
    records
        Synthetic records over the columns.
    parts
        The constraints, as `connected` gives them.
    rng
        Draws who swaps with whom, which column of a row is changed, and to what.
    groups
        For each coarse column the group of each code.
    """
    swapped = swap(records, parts, rng, {} if groups is None else groups)
    whole = {name: np.zeros(size, dtype=np.int64) for name, size in records.domain.items()}
    return mend(swap(swapped, parts, rng, whole), parts, rng)


def swap(records: Records, parts: Sequence[Part], rng: np.random.Generator, groups: Mapping[str, Integers]) -> Records:
    """Return records with values swapped inside groups, so that fewer rows violate a constraint.

    Each row that violates one is offered the value of a row of its group, drawn at random; both agree if then no
    constraint on that column is violated in either.
    """
    codes = {name: records[name] for name in records}
    for part in parts:
        for name in part.kinds:
            if name in groups:
                about = [one for one in part.constraints if name in one.columns]
                codes[name] = _swapped(name, codes, groups[name][codes[name]], about, rng)
    return Records(codes, records.domain, max_records_per_person=records.max_records_per_person)


def mend(records: Records, parts: Sequence[Part], rng: np.random.Generator) -> Records:
    """Return records without rows that violate a constraint; what conforms is left as it is."""
    codes = {name: records[name] for name in records}
    for part in parts:
        codes.update(_mended(part, codes, rng))
    return Records(codes, records.domain, max_records_per_person=records.max_records_per_person)


def draw(groups: Integers, weights: Integers, wanted: Integers, rng: np.random.Generator) -> tuple[Integers, Mask]:
    """Draw for each wanted group one of its items, by integer weights; and tell where there was one to draw.

    Examples
    --------
    >>> draw(np.array([5, 7, 7]), np.array([1, 0, 2]), np.array([7, 6]), np.random.default_rng(0))
    (array([2, 0]), array([ True, False]))
    """
    order = np.argsort(groups, kind="stable")
    ranked = groups[order]
    marks = np.concatenate([[0], np.cumsum(weights[order])])
    low = marks[np.searchsorted(ranked, wanted, side="left")]
    total = marks[np.searchsorted(ranked, wanted, side="right")] - low
    there = total > 0
    place = np.searchsorted(marks, low + rng.integers(0, np.maximum(total, 1)), side="right") - 1
    return np.where(there, order[np.minimum(place, len(order) - 1)] if len(order) else 0, 0), there


def _swapped(
    name: str, codes: Mapping[str, Codes], groups: Integers, about: Sequence[Constraint], rng: np.random.Generator
) -> Codes:
    bad = np.flatnonzero(~_hold(about, codes))
    if not len(bad):
        return codes[name]
    made = codes[name].copy()
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    begins = np.cumsum(sizes) - sizes
    wrong = np.zeros(len(made), dtype=np.bool_)
    wrong[bad] = True
    taken = np.empty(len(made), dtype=np.int64)
    idle = 0
    for _ in range(_ROUNDS):
        if not len(bad) or idle == _IDLE:
            break
        before = len(bad)
        partner = order[begins[groups[bad]] + rng.integers(0, sizes[groups[bad]])]
        # Everybody takes part in one swap at most: of those who chose a row, the last.
        place = np.arange(before)
        taken[partner] = place
        first = np.flatnonzero((taken[partner] == place) & ~wrong[partner])
        one, other = bad[first], partner[first]
        agreed = _hold(about, {**_rows(codes, about, one), name: made[other]})
        agreed &= _hold(about, {**_rows(codes, about, other), name: made[one]})
        one, other = one[agreed], other[agreed]
        made[one], made[other] = made[other], made[one]
        wrong[one] = False
        bad = bad[wrong[bad]]
        idle = idle + 1 if (before - len(bad)) * 100 < before else 0
    return made


def _hold(constraints: Sequence[Constraint], codes: Mapping[str, Codes]) -> Mask:
    """Return for each row whether it satisfies all constraints."""
    held = constraints[0].holds(codes)
    for one in constraints[1:]:
        held &= one.holds(codes)
    return held


def _rows(codes: Mapping[str, Codes], constraints: Sequence[Constraint], rows: Integers) -> dict[str, Codes]:
    return {name: codes[name][rows] for one in constraints for name in one.columns}


def _mended(part: Part, codes: Mapping[str, Codes], rng: np.random.Generator) -> dict[str, Codes]:
    """Return the columns of a part, with every row satisfying its constraints."""
    columns = list(part.kinds)
    held = _hold(part.constraints, codes)
    bad = np.flatnonzero(~held)
    if not len(bad):
        return {}
    models = {name: codes[name][held] for name in columns}
    rows = {name: codes[name][bad] for name in columns}
    counts = {name: np.bincount(codes[name], minlength=part.kinds[name].size) for name in columns}
    about = np.array([[name in one.columns for name in columns] for one in part.constraints])
    tried = np.zeros((len(bad), len(columns)), dtype=np.bool_)
    while True:
        violated = np.stack([~one.holds(rows) for one in part.constraints], axis=1)
        open_ = (violated @ about) & ~tried
        if not open_.any():
            break
        # One of the columns that may be changed, each as likely.
        choice = np.where(open_.any(axis=1), np.argmax(rng.random(open_.shape) * open_, axis=1), -1)
        for number, name in enumerate(columns):
            chosen = np.flatnonzero(choice == number)
            if len(chosen):
                value, found = _changed(part, name, rows, chosen, models=models, counts=counts[name], rng=rng)
                rows[name][chosen[found]] = value[found]
                tried[chosen[~found], number] = True
    left = np.flatnonzero(violated.any(axis=1))
    if len(left):
        for name, values in _whole(part, models, len(left), rng).items():
            rows[name][left] = values
    made = {name: codes[name].copy() for name in columns}
    for name in columns:
        made[name][bad] = rows[name]
    return made


def _changed(
    part: Part,
    name: str,
    rows: Mapping[str, Codes],
    chosen: Integers,
    *,
    models: Mapping[str, Codes],
    counts: Integers,
    rng: np.random.Generator,
) -> tuple[Codes, Mask]:
    """Return new values of a column for the chosen rows, with which all constraints on it hold, where there are any."""
    near = [other for other in part.kinds if other != name and _meet(part, name, other)]
    wanted, known = _as_keys([rows[other][chosen] for other in near], [models[other] for other in near])
    like = np.flatnonzero(np.isin(known, wanted))
    row, found = draw(known[like], np.ones(len(like), dtype=np.int64), wanted, rng)
    value = rows[name][chosen]
    if len(like):
        value = np.where(found, models[name][like[row]], value)
    rest = np.flatnonzero(~found)
    if len(rest):
        kinds = {other: part.kinds[other][rows[other][chosen[rest]]] for other in near}
        some, there = _any_allowed(part, name, kinds, counts, rng)
        value[rest[there]] = some[there]
        found[rest[there]] = True
    return value, found


def _any_allowed(
    part: Part, name: str, kinds: Mapping[str, Integers], counts: Integers, rng: np.random.Generator
) -> tuple[Integers, Mask]:
    """Return for each row a code that all constraints on a column allow beside the kinds of the others, if any does."""
    near = list(kinds)
    (keys,) = _as_keys([kinds[other] for other in near])
    _, first, context = np.unique(keys, return_index=True, return_inverse=True)
    own = part.kinds[name]
    seen = np.bincount(own, weights=counts).astype(np.int64)
    any_ = np.bincount(own)
    picked, found = np.zeros(len(context), dtype=np.int64), np.zeros(len(context), dtype=np.bool_)
    step = max(_MOST_PLACES // len(seen), 1)
    for begin in range(0, len(first), step):
        there = first[begin : begin + step]
        allowed = np.ones((len(there), len(seen)), dtype=np.bool_)
        for one, classes in zip(part.constraints, part.classes, strict=True):
            if name not in one.columns:
                continue
            places = [
                classes[axis] if other == name else classes[axis][kinds[other][there]][:, None]
                for axis, other in enumerate(one.columns)
            ]
            allowed &= one.allowed[tuple(places)]
        weights = allowed * seen
        empty = ~weights.any(axis=1)
        weights[empty] = allowed[empty] * any_
        rows = np.flatnonzero((context >= begin) & (context < begin + len(there)))
        groups = np.repeat(np.arange(len(there)), len(seen))
        place, ok = draw(groups, weights.ravel(), context[rows] - begin, rng)
        picked[rows], found[rows] = place % len(seen), ok
    weights = np.where(seen[own] > 0, counts, 1)
    code, _ = draw(own, weights, picked, rng)
    return code, found


def _whole(part: Part, models: Mapping[str, Codes], rows: int, rng: np.random.Generator) -> dict[str, Codes]:
    """Return all columns of conforming rows or, without any, codes of the assignment that satisfies everything."""
    size = len(next(iter(models.values())))
    if size:
        taken = rng.integers(size, size=rows)
        return {name: values[taken] for name, values in models.items()}
    made: dict[str, Codes] = {}
    for name, kinds in part.kinds.items():
        alike = np.flatnonzero(kinds == part.assignment[name]).astype(code_dtype(kinds.size))
        made[name] = alike[rng.integers(len(alike), size=rows)]
    return made


def _meet(part: Part, name: str, other: str) -> bool:
    return any(name in one.columns and other in one.columns for one in part.constraints)


def _as_keys(*tables: Sequence[npt.NDArray[np.generic]]) -> list[Integers]:
    """Return for each table of columns a key of each row, equal where rows are."""
    lengths = [len(table[0]) for table in tables]
    keys = np.zeros(sum(lengths), dtype=np.int64)
    size = 1
    for columns in zip(*tables, strict=True):
        codes = np.concatenate(columns)
        width = int(codes.max(initial=0)) + 1
        if size * width >= 2**62:
            _, keys = np.unique(keys, return_inverse=True)
            size = int(keys.max(initial=0)) + 1
        keys = keys * width + codes
        size *= width
    return np.split(keys, np.cumsum(lengths)[:-1])


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
        said = " and ".join(repr(name) for name in columns)
        raise SchemaError(f"no row satisfies all constraints on {said}; drop or widen one")
    return Part(tuple(constraints), kinds, of_kind, assignment)


def _search(
    constraints: Sequence[Constraint], classes: Sequence[Sequence[Integers]], sizes: Mapping[str, int]
) -> dict[str, int] | None:
    """Return a kind for each column that satisfies all constraints: depth first, busy columns first."""
    busy = {name: sum(name in one.columns for one in constraints) for name in sizes}
    order = sorted(sizes, key=lambda name: (-busy[name], sizes[name]))
    tries = 0

    def fits(chosen: Mapping[str, int]) -> bool:
        for one, of_kind in zip(constraints, classes, strict=True):
            places = tuple(
                of_kind[axis][chosen[name]] if name in chosen else slice(None) for axis, name in enumerate(one.columns)
            )
            if not np.any(one.allowed[places]):
                return False
        return True

    def extend(chosen: dict[str, int]) -> dict[str, int] | None:
        nonlocal tries
        if len(chosen) == len(order):
            return chosen
        name = order[len(chosen)]
        for kind in range(sizes[name]):
            tries += 1
            if tries > _MOST_TRIES:
                raise SchemaError(
                    "the constraints are too entangled to tell whether any row satisfies them; split them"
                )
            more = {**chosen, name: kind}
            if fits(more) and (found := extend(more)) is not None:
                return found
        return None

    return extend({})
