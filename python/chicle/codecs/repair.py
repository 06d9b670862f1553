"""Repair synthetic rows that violate a constraint, so that none is left.

Columns that constraints connect form a part; parts share no column. In each part, in this order:

1. Pairs of rows swap their values of one column, if all constraints on that column then hold in both rows. No 1-way
   changes. Coarse columns first swap inside their groups, which changes no measured table.
2. The remaining rows change one column at a time, drawn at random from the columns of their violated constraints. The
   new value comes from a conforming row that agrees on the columns that constraints connect with this one. Without such
   a row, it is any value that all constraints allow there, in proportion to its frequency.
3. Rows that no single change repairs take the whole part of a conforming row. If no row conforms, they take the
   assignment that was found when the schema was declared. A schema without such an assignment is refused.

A change satisfies all constraints on its column and affects no others, so the number of violated constraints falls. In
one run on the American Community Survey of 2018 with seven constraints at epsilon 1, 8 % of Prism's rows violated one;
its mean 2-way error was .0137 before, .0134 after, and .0167 without step 1.

The repair uses synthetic rows and declarations only, so it is post-processing and costs no budget. It works on whole
arrays, without a loop over rows: O(rows) for each constraint, and a sort of the repaired rows and their models.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from chicle.codes import Codes, code_dtype
from chicle.columns.base import Mask
from chicle.counting.records import Records
from chicle.errors import InfeasibleError
from chicle.schema.connected import Part
from chicle.schema.constraints import Constraint

__all__ = ["as_keys", "draw", "mend", "repair", "swap"]

_MOST_PLACES = 2**22  # contexts times kinds at a time
_ROUNDS = 200  # of swaps, at most
_IDLE = 5  # swaps end after this many rounds in a row that each repair under 1 % of the rows

Integers = npt.NDArray[np.int64]


def repair(
    records: Records,
    parts: Sequence[Part],
    rng: np.random.Generator,
    groups: Mapping[str, Integers] | None = None,
    kept: Collection[str] = (),
) -> Records:
    """Return records without rows that violate a constraint.

    Parameters
    ----------
    records
        Synthetic records over the columns.
    parts
        The constraints, as `connected` returns them.
    rng
        Draws the pairs that swap, the column of a row that changes, and its new value.
    groups
        The group of each code of each coarse column.
    kept
        Columns that stay as they are; rows that cannot be repaired without them are an error.
    """
    groups = {} if groups is None else groups
    whole = {name: np.zeros(size, dtype=np.int64) for name, size in records.domain.items()}
    for swapped in (groups, whole):
        records = swap(records, parts, rng, {name: of for name, of in swapped.items() if name not in kept})
    return mend(records, parts, rng, kept)


def swap(records: Records, parts: Sequence[Part], rng: np.random.Generator, groups: Mapping[str, Integers]) -> Records:
    """Return records with values swapped inside groups, so that fewer rows violate a constraint.

    Each row that violates a constraint is paired with a random row of its group. The two swap if all constraints on the
    column then hold in both.
    """
    codes = {name: records[name] for name in records}
    for part in parts:
        for name in part.kinds:
            if name in groups:
                about = [one for one in part.constraints if name in one.columns]
                codes[name] = _swapped(name, codes, groups[name][codes[name]], about, rng)
    return Records(codes, records.domain, max_records_per_person=records.max_records_per_person)


def mend(records: Records, parts: Sequence[Part], rng: np.random.Generator, kept: Collection[str] = ()) -> Records:
    """Return records without violations of constraints; conforming rows stay as they are, and so do `kept` columns."""
    codes = {name: records[name] for name in records}
    for part in parts:
        codes.update(_mended(part, codes, rng, kept))
    return Records(codes, records.domain, max_records_per_person=records.max_records_per_person)


def draw(groups: Integers, weights: Integers, wanted: Integers, rng: np.random.Generator) -> tuple[Integers, Mask]:
    """Draw an item of each wanted group by integer weights, and return a mask of the groups that have one.

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
        # A row takes part in at most one swap: of several that drew the same partner, the last one swaps.
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
    """Return whether each row satisfies all constraints."""
    held = constraints[0].holds(codes)
    for one in constraints[1:]:
        held &= one.holds(codes)
    return held


def _rows(codes: Mapping[str, Codes], constraints: Sequence[Constraint], rows: Integers) -> dict[str, Codes]:
    return {name: codes[name][rows] for one in constraints for name in one.columns}


def _mended(
    part: Part, codes: Mapping[str, Codes], rng: np.random.Generator, kept: Collection[str]
) -> dict[str, Codes]:
    """Return the columns of a part, repaired so that every row satisfies its constraints."""
    columns = list(part.kinds)
    held = _hold(part.constraints, codes)
    bad = np.flatnonzero(~held)
    if not len(bad):
        return {}
    models = {name: codes[name][held] for name in columns}
    rows = {name: codes[name][bad] for name in columns}
    counts = {name: np.bincount(codes[name], minlength=part.kinds[name].size) for name in columns}
    about = np.array([[name in one.columns for name in columns] for one in part.constraints])
    tried = np.tile([name in kept for name in columns], (len(bad), 1))
    while True:
        violated = np.stack([~one.holds(rows) for one in part.constraints], axis=1)
        open_ = (violated @ about) & ~tried
        if not open_.any():
            break
        # One of the columns that may change, each with equal probability.
        choice = np.where(open_.any(axis=1), np.argmax(rng.random(open_.shape) * open_, axis=1), -1)
        for number, name in enumerate(columns):
            picked = np.flatnonzero(choice == number)
            if len(picked):
                value, found = _changed(part, name, rows, picked, models=models, counts=counts[name], rng=rng)
                rows[name][picked[found]] = value[found]
                tried[picked[~found], number] = True
    left = np.flatnonzero(violated.any(axis=1))
    if len(left):
        held_here = [name for name in columns if name in kept]
        like = {name: rows[name][left] for name in held_here}
        made = _agreeing(models, like, rng) if like else _whole(part, models, len(left), rng)
        for name, values in made.items():
            rows[name][left] = values
    made = {name: codes[name].copy() for name in columns}
    for name in columns:
        made[name][bad] = rows[name]
    return made


def _changed(
    part: Part,
    name: str,
    rows: Mapping[str, Codes],
    picked: Integers,
    *,
    models: Mapping[str, Codes],
    counts: Integers,
    rng: np.random.Generator,
) -> tuple[Codes, Mask]:
    """Return new values of a column for some rows so that all constraints on it hold, and where one was found."""
    near = [other for other in part.kinds if other != name and _meet(part, name, other)]
    wanted, known = as_keys([rows[other][picked] for other in near], [models[other] for other in near])
    like = np.flatnonzero(np.isin(known, wanted))
    row, found = draw(known[like], np.ones(len(like), dtype=np.int64), wanted, rng)
    value = rows[name][picked]
    if len(like):
        value = np.where(found, models[name][like[row]], value)
    rest = np.flatnonzero(~found)
    if len(rest):
        kinds = {other: part.kinds[other][rows[other][picked[rest]]] for other in near}
        some, there = _any_allowed(part, name, kinds, counts, rng)
        value[rest[there]] = some[there]
        found[rest[there]] = True
    return value, found


def _any_allowed(
    part: Part, name: str, kinds: Mapping[str, Integers], counts: Integers, rng: np.random.Generator
) -> tuple[Integers, Mask]:
    """Return a code for each row that all constraints allow given the kinds of other columns, and where one exists."""
    near = list(kinds)
    (keys,) = as_keys([kinds[other] for other in near])
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
    """Return all columns of random conforming rows or, if there are none, codes of the satisfying assignment."""
    size = len(next(iter(models.values())))
    if size:
        taken = rng.integers(size, size=rows)
        return {name: values[taken] for name, values in models.items()}
    made: dict[str, Codes] = {}
    for name, kinds in part.kinds.items():
        alike = np.flatnonzero(kinds == part.assignment[name]).astype(code_dtype(kinds.size))
        made[name] = alike[rng.integers(len(alike), size=rows)]
    return made


def _agreeing(models: Mapping[str, Codes], like: Mapping[str, Codes], rng: np.random.Generator) -> dict[str, Codes]:
    """Return all columns of random conforming rows that agree with some columns of the rows to replace."""
    wanted, known = as_keys(list(like.values()), [models[name] for name in like])
    row, found = draw(known, np.ones(len(known), dtype=np.int64), wanted, rng)
    if not found.all():
        there = " and ".join(map(repr, like))
        raise InfeasibleError(
            f"the constraints leave no synthetic row with the values of {there} that some rows have; drop these rows, "
            f"or give fewer columns"
        )
    return {name: values[row] for name, values in models.items()}


def _meet(part: Part, name: str, other: str) -> bool:
    return any(name in one.columns and other in one.columns for one in part.constraints)


def as_keys(*tables: Sequence[npt.NDArray[np.generic]]) -> list[Integers]:
    """Return a key of each row of each table; equal rows have equal keys."""
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
