"""Constraints: combinations of values that no row may have (structural zeros).

There are three forms about two or three columns, and one about many:

- ``{forbid: {age: {below: 15}, marital: [married, widowed]}}``: no row has all of these;
- ``{if: {age: {below: 15}}, then: {marital: never}}``: rows with the first have the second;
- ``{allow: [state, county], combinations: {NY: [Kings, Queens], NJ: Essex}}``: no other combination occurs;
- ``{if: {treated: "no"}, none: {columns: [insulin, metformin], are: [Up, Down]}}``: of many columns none, `any`, `all`
  or a `count` has one of some values; without `if`, in every row.

Each becomes a small table: the codes of a column fall into classes that the constraint treats alike, and the table says
which classes may occur together. So a constraint costs one look-up for each row and column, at any cardinality.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle.codes import Codes, code_dtype
from chicle.columns.base import Column, Mask
from chicle.columns.declare import unknown
from chicle.columns.selector import Selector
from chicle.errors import SchemaError

__all__ = ["Constraint", "allowing", "constraints_from", "row_keys"]

MOST_CELLS = 2**24
_FORMS = "`forbid`, `if` and `then`, `allow` and `combinations`, or a count (`any`, `all`, `none`, `count`)"
_COUNTS = ("any", "all", "none", "count")
_KEYS = ("forbid", "if", "then", "allow", "combinations", *_COUNTS, "violations")
_SHOWN = 4
_MOST_COUNTED = 24  # columns of a count: its table has 2 to the power of them cells
_MOST_LISTED = 256  # columns of a count, with those that have none of its values


@dataclass(frozen=True, eq=False)
class Constraint:
    """The allowed combinations of values of some columns.

    Attributes
    ----------
    columns
        The constrained columns.
    classes
        For each of them, the class of each of its codes.
    allowed
        Which classes may occur together: an axis for each column.
    declaration
        The declaration, as plain data.
    keep
        Whether rows of the private table that violate it are counted as they are. If not, such a table is refused.
    implied
        For a count of many columns: the constraints on two of them that follow from it.
    """

    columns: tuple[str, ...]
    classes: tuple[Codes, ...]
    allowed: npt.NDArray[np.bool_]
    declaration: Mapping[str, Any]
    keep: bool = False
    implied: tuple[Constraint, ...] = ()

    def holds(self, codes: Mapping[str, Codes]) -> Mask:
        """Return whether each row satisfies the constraint."""
        of_row = [classes[codes[name]] for name, classes in zip(self.columns, self.classes, strict=True)]
        found: Mask = self.allowed.ravel()[row_keys(of_row, self.allowed.shape)]
        return found

    def __str__(self) -> str:
        (kind, *_) = self.declaration
        names = [repr(name) for name in self.columns]
        some = names if len(names) <= _SHOWN else [*names[: _SHOWN - 1], f"{len(names) - _SHOWN + 1} more"]
        return f"the constraint `{kind}` on {' and '.join(some)}"


def constraints_from(declaration: object, columns: Mapping[str, Column]) -> tuple[Constraint, ...]:
    """Return the constraints of a declaration.

    Examples
    --------
    >>> from chicle.columns import Categorical, Integer
    >>> columns = {"age": Integer(min=0, max=99), "marital": Categorical(values=["never", "married"])}
    >>> (constraint,) = constraints_from([{"if": {"age": {"below": 15}}, "then": {"marital": "never"}}], columns)
    >>> constraint.holds({"age": np.array([14, 14, 15]), "marital": np.array([0, 1, 1])}).tolist()
    [True, False, True]
    """
    if isinstance(declaration, (str, Mapping)) or not isinstance(declaration, Iterable):
        raise SchemaError(f"constraints must be a list, each with {_FORMS}, not {declaration!r}")
    made = []
    for number, one in enumerate(declaration, 1):
        try:
            made.append(_constraint(one, columns))
        except SchemaError as error:  # noqa: PERF203 - a few turns
            raise SchemaError(f"constraint {number}: {error}") from None
    return tuple(made)


def allowing(
    names: Sequence[str], combinations: object, columns: Mapping[str, Column]
) -> tuple[list[list[Any]], tuple[Codes, ...], npt.NDArray[np.bool_]]:
    """Return combinations as plain data, the classes of each column's codes, and which classes may occur together."""
    listed = _listed(names, combinations)
    selectors = _selectors(names, columns)
    classes, members = [], []
    for axis, name in enumerate(names):
        masks: dict[str, Mask] = {}
        for row in listed:
            key = repr(row[axis])
            if key not in masks:
                masks[key] = _some(name, selectors[name], row[axis])
        if len(masks) * columns[name].cardinality > 16 * MOST_CELLS:
            raise SchemaError(f"it lists too many values of {name!r}; give it fewer codes, or list ranges")
        kinds, of_code = np.unique(np.stack(list(masks.values())), axis=1, return_inverse=True)
        classes.append(of_code.reshape(-1).astype(code_dtype(kinds.shape[1])))
        in_kind = dict(zip(masks, kinds, strict=True))
        members.append([np.flatnonzero(in_kind[repr(row[axis])]) for row in listed])
    shape = [int(of_code.max()) + 1 for of_code in classes]
    if prod(shape) > MOST_CELLS:
        raise SchemaError("it distinguishes too many values; list fewer values, or fewer columns")
    allowed = np.zeros(shape, dtype=np.bool_)
    for cells in zip(*members, strict=True):
        allowed[np.ix_(*cells)] = True
    return listed, tuple(classes), allowed


def row_keys(codes: Sequence[npt.NDArray[Any]], shape: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the flat cell of each row in a table of this shape."""
    keys = codes[0].astype(np.int64)
    for of_row, size in zip(codes[1:], shape[1:], strict=True):
        keys *= size
        keys += of_row
    return keys


def _constraint(declaration: object, columns: Mapping[str, Column]) -> Constraint:
    if not isinstance(declaration, Mapping):
        raise SchemaError(f"it must be a mapping with {_FORMS}, not {declaration!r}")
    for key in declaration:
        if key not in _KEYS:
            raise SchemaError(f"it has no {key!r}; {unknown(str(key), _KEYS)}")
    keep = declaration.get("violations", "refuse")
    if keep not in ("refuse", "keep"):
        raise SchemaError(f'violations must be "refuse" or "keep", not {keep!r}')
    given = {key: value for key, value in declaration.items() if key != "violations"}
    form = set() if set(_COUNTS) & set(given) else {"forbid", "if", "allow"} & set(given)
    if form == {"forbid"} and len(given) == 1:
        made = _excluding(given, {}, given["forbid"], columns)
    elif form == {"if"} and set(given) == {"if", "then"}:
        made = _excluding(given, given["then"], given["if"], columns)
    elif form == {"allow"} and set(given) == {"allow", "combinations"}:
        names = _names(given["allow"], columns)
        listed, classes, allowed = allowing(names, given["combinations"], columns)
        made = Constraint(names, classes, allowed, {"allow": list(names), "combinations": listed})
    elif len(kinds := set(_COUNTS) & set(given)) == 1 and set(given) <= {"if", *kinds}:
        made = _counting(given, kinds.pop(), columns)
    else:
        raise SchemaError(f"it has {' and '.join(repr(key) for key in given)}; a constraint has {_FORMS}")
    if keep == "refuse":
        return made
    return replace(made, declaration={**made.declaration, "violations": "keep"}, keep=True)


def _excluding(declaration: Mapping[str, Any], then: object, when: object, columns: Mapping[str, Column]) -> Constraint:
    """Return the constraint that rows with all of `when` have all of `then`; an empty `then` forbids such rows."""
    for part in (when, then):
        if not isinstance(part, Mapping) or not when:
            raise SchemaError(f"it must map columns to values, such as {{age: {{below: 15}}}}, not {part!r}")
    assert isinstance(when, Mapping)  # noqa: S101 - just checked
    assert isinstance(then, Mapping)  # noqa: S101
    names = _names([*when, *then], columns)
    selectors = _selectors(names, columns)
    masks = [_some(name, selectors[name], declaration) for name, declaration in (*when.items(), *then.items())]
    selected = np.indices((2,) * len(names)).astype(np.bool_)
    allowed: npt.NDArray[np.bool_] = np.logical_not(selected[: len(when)].all(axis=0))
    if then:
        allowed |= selected[len(when) :].all(axis=0)
    return Constraint(names, tuple(mask.astype(np.uint8) for mask in masks), allowed, _plain(declaration))


def _counting(declaration: Mapping[str, Any], kind: str, columns: Mapping[str, Column]) -> Constraint:
    """Return the constraint on how many of many columns have one of some values, in all rows or where `if` holds."""
    rule = f"{kind} must be a mapping such as {{columns: [insulin, metformin], are: [Up, Down]}}"
    given, when = declaration[kind], declaration.get("if", {})
    if not isinstance(given, Mapping) or not {"columns", "are"} <= set(given):
        raise SchemaError(f"{rule}, not {given!r}")
    for key in set(given) - {"columns", "are", *(("min", "max") if kind == "count" else ())}:
        raise SchemaError(f"{kind} has no {key!r}; {rule}")
    if not isinstance(when, Mapping):
        raise SchemaError(f"`if` must map columns to values, not {when!r}")
    flags = given["columns"]
    listed = _names([*when, *(flags if isinstance(flags, (list, tuple)) else [flags])], columns, most=_MOST_LISTED)
    first, number = len(when), len(listed) - len(when)
    if number < 1:
        raise SchemaError(f"{kind} lists no columns")
    low, high = {"any": (1, number), "all": (number, number), "none": (0, 0)}.get(
        kind, (given.get("min", 0), given.get("max", number))
    )
    if not (isinstance(low, int) and isinstance(high, int) and 0 <= low <= high):
        raise SchemaError(f"count must have a `min` from 0 on and a `max` at or above it, not {low!r} and {high!r}")
    selectors = _selectors(listed, columns)
    masks = {name: _some(name, selectors[name], when[name]) for name in listed[:first]}
    found = _in_any(listed[first:], selectors, given["are"])
    # Columns that have none of the values are never counted; a constraint is about two columns at least.
    masks |= {name: mask for name, mask in found.items() if mask.any()}
    masks |= dict(list(found.items())[:2]) if len(masks) < 2 else {}
    names = tuple(masks)
    number = len(names) - first
    if len(names) > _MOST_COUNTED:
        raise SchemaError(f"it is about {len(names)} columns; a count is about at most {_MOST_COUNTED}")
    inside = np.array([low <= count <= high for count in range(number + 1)])
    possible = np.stack([np.ones_like(inside), inside])  # by whether the condition holds, and how many are set
    counts = np.zeros(1, dtype=np.uint8)
    for _ in range(number):
        counts = np.concatenate([counts, counts + 1])
    allowed = np.ones((2**first, 2**number), dtype=np.bool_)
    allowed[-1] = inside[counts]
    allowed = allowed.reshape((2,) * len(names))
    classes = tuple(mask.astype(np.uint8) for mask in masks.values())
    implied = []
    for a, b in combinations(range(len(names)), 2) if len(names) > 3 else ():
        table = _pairs_allowed(possible, first, a < first, b < first)
        if not table.all():
            implied.append(Constraint((names[a], names[b]), (classes[a], classes[b]), table, declaration))
    return Constraint(names, classes, allowed, _plain(declaration), implied=tuple(implied))


def _in_any(names: Sequence[str], selectors: Mapping[str, Selector], are: object) -> dict[str, Mask]:
    """Return which codes of each column have one of some values; each value must be one of at least one column."""
    found = {name: selectors[name]([]) for name in names}
    for item in are if isinstance(are, (list, tuple)) else [are]:
        known, refused = False, None
        for name in names:
            try:
                mask = selectors[name](item)
            except SchemaError as error:  # noqa: PERF203 - a few turns
                refused = refused or SchemaError(f"column {name!r}: {error}")
                if isinstance(item, Mapping):  # a range, or a complement: meant for every column
                    raise refused from None
            else:
                found[name] |= mask
                known |= bool(mask.any())
        if not known:
            raise refused or SchemaError(f"{item!r} names none of the values of {', '.join(map(repr, names))}")
    return found


def _pairs_allowed(
    possible: npt.NDArray[np.bool_], conditions: int, first: bool, second: bool
) -> npt.NDArray[np.bool_]:
    """Return which values of two columns of a count, conditions or flags, some allowed row has."""
    table = np.zeros((2, 2), dtype=np.bool_)
    number = possible.shape[1] - 1
    for cell in np.ndindex(2, 2):
        fixed = [value for value, condition in zip(cell, (first, second), strict=True) if condition]
        flags = [value for value, condition in zip(cell, (first, second), strict=True) if not condition]
        holds = {0} if 0 in fixed else {1} if len(fixed) == conditions else {0, 1}
        counts = range(sum(flags), number - len(flags) + sum(flags) + 1)
        table[cell] = any(possible[held, count] for held in holds for count in counts)
    return table


def _names(declaration: object, columns: Mapping[str, Column], most: int = 3) -> tuple[str, ...]:
    if isinstance(declaration, str) or not isinstance(declaration, Iterable):
        raise SchemaError(f"it must list its columns, not {declaration!r}")
    names = tuple(declaration)
    for name in names:
        column = columns.get(name) if isinstance(name, str) else None
        if column is not None and column.follows is not None:
            raise SchemaError(f"{name!r} is determined by {column.follows!r}; constrain {column.follows!r} instead")
        if column is None or not column.modelled:
            modelled = [known for known, one in columns.items() if one.modelled]
            raise SchemaError(f"{name!r} is not a modelled column; {unknown(str(name), modelled)}")
    if len(set(names)) < len(names):
        raise SchemaError("it names a column twice; name each once, with all its values")
    if most > 3:
        if not 2 <= len(names) <= most:
            raise SchemaError(f"it is about {len(names)} columns; a count is about 2 to {most}")
    elif not 2 <= len(names) <= 3:
        raise SchemaError(
            f"it is about {len(names)} column{'' if len(names) == 1 else 's'}; a constraint is about two or three"
            + (" (declare the values of one column in that column)" if len(names) == 1 else "")
        )
    return names


def _selectors(names: Sequence[str], columns: Mapping[str, Column]) -> dict[str, Selector]:
    made = {}
    for name in names:
        try:
            made[name] = Selector(columns[name])
        except SchemaError as error:  # noqa: PERF203 - a few turns
            raise SchemaError(f"column {name!r}: {error}") from None
    return made


def _some(name: str, select: Selector, declaration: object) -> Mask:
    try:
        mask = select(declaration)
    except SchemaError as error:
        raise SchemaError(f"column {name!r}: {error}") from None
    if not mask.any():
        raise SchemaError(
            f"column {name!r}: {declaration!r} names none of its values; leave it out, or widen the column"
        )
    return mask


def _listed(names: Sequence[str], combinations: object) -> list[list[Any]]:
    """Return combinations as lists with an entry for each column; for two columns, a mapping is accepted."""
    rule = f"combinations must be a list, each with a value of {' and of '.join(repr(name) for name in names)}"
    if isinstance(combinations, Mapping):
        if len(names) != 2:
            raise SchemaError(f"{rule}; a mapping is for two columns")
        combinations = list(combinations.items())
    if isinstance(combinations, str) or not isinstance(combinations, Iterable):
        raise SchemaError(f"{rule}, not {combinations!r}")
    listed = [list(row) if isinstance(row, (list, tuple)) else [row] for row in combinations]
    for row in listed:
        if len(row) != len(names):
            raise SchemaError(f"{rule}, not {row!r}")
    if not listed:
        raise SchemaError(f"{rule}; it lists none")
    return [[_plain(item) for item in row] for row in listed]


def _plain(declaration: Any) -> Any:  # noqa: ANN401 - data for YAML and JSON
    if isinstance(declaration, Mapping):
        return {key: _plain(value) for key, value in declaration.items()}
    if isinstance(declaration, (list, tuple)):
        return [_plain(item) for item in declaration]
    if isinstance(declaration, dt.date):
        return declaration.isoformat()
    return declaration.item() if isinstance(declaration, np.generic) else declaration
