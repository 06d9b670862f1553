"""Structural zeros: which combinations of values no row may have.

Three ways to say it, all about two or three columns:

- ``{forbid: {age: {below: 15}, marital: [married, widowed]}}``: no row has all of these;
- ``{if: {age: {below: 15}}, then: {marital: never}}``: rows with the first have the second;
- ``{allow: [state, county], combinations: {NY: [Kings, Queens], NJ: Essex}}``: no others.

Each becomes a small table: the codes of a column fall into classes that the constraint treats alike, and the table says
which classes may meet. So a constraint costs one look-up for each row and column, whatever the cardinalities.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle.columns.base import Column, Mask
from chicle.columns.chosen import Chosen
from chicle.columns.declare import unknown
from chicle.columns.unmodelled import Determined
from chicle.counting.records import Codes, code_dtype
from chicle.errors import SchemaError

__all__ = ["Constraint", "allowing", "constraints_from", "row_keys"]

MOST_CELLS = 2**24
_FORMS = "`forbid`, `if` and `then`, or `allow` and `combinations`"
_KEYS = ("forbid", "if", "then", "allow", "combinations", "violations")


@dataclass(frozen=True, eq=False)
class Constraint:
    """Which combinations of values some columns may have.

    Attributes
    ----------
    columns
        The columns that it is about.
    classes
        For each of them, the class of each of its codes.
    allowed
        Which classes may meet: an axis for each column.
    told
        The declaration, as plain data.
    keep
        Whether rows of the private table that violate it are counted all the same; else the table is refused.
    """

    columns: tuple[str, ...]
    classes: tuple[Codes, ...]
    allowed: npt.NDArray[np.bool_]
    told: Mapping[str, Any]
    keep: bool = False

    def holds(self, codes: Mapping[str, Codes]) -> Mask:
        """Return for each row whether it satisfies the constraint."""
        of_row = [classes[codes[name]] for name, classes in zip(self.columns, self.classes, strict=True)]
        found: Mask = self.allowed.ravel()[row_keys(of_row, self.allowed.shape)]
        return found

    def __str__(self) -> str:
        (kind, *_) = self.told
        return f"the constraint `{kind}` on {' and '.join(repr(name) for name in self.columns)}"


def constraints_from(told: object, columns: Mapping[str, Column]) -> tuple[Constraint, ...]:
    """Return the constraints of a declaration.

    Examples
    --------
    >>> from chicle.columns import Categorical, Integer
    >>> columns = {"age": Integer(min=0, max=99), "marital": Categorical(values=["never", "married"])}
    >>> (constraint,) = constraints_from([{"if": {"age": {"below": 15}}, "then": {"marital": "never"}}], columns)
    >>> constraint.holds({"age": np.array([14, 14, 15]), "marital": np.array([0, 1, 1])}).tolist()
    [True, False, True]
    """
    if isinstance(told, (str, Mapping)) or not isinstance(told, Iterable):
        raise SchemaError(f"constraints must be a list, each with {_FORMS}, not {told!r}")
    made = []
    for number, one in enumerate(told, 1):
        try:
            made.append(_constraint(one, columns))
        except SchemaError as error:  # noqa: PERF203 - a few turns
            raise SchemaError(f"constraint {number}: {error}") from None
    return tuple(made)


def allowing(
    names: Sequence[str], combinations: object, columns: Mapping[str, Column]
) -> tuple[list[list[Any]], tuple[Codes, ...], npt.NDArray[np.bool_]]:
    """Return listed combinations as plain data, the classes of each column's codes, and which of these may meet."""
    listed = _listed(names, combinations)
    choosers = _choosers(names, columns)
    classes, members = [], []
    for axis, name in enumerate(names):
        masks: dict[str, Mask] = {}
        for row in listed:
            said = repr(row[axis])
            if said not in masks:
                masks[said] = _some(name, choosers[name], row[axis])
        if len(masks) * columns[name].cardinality > 16 * MOST_CELLS:
            raise SchemaError(f"it lists too many values of {name!r}; give it fewer codes, or list ranges")
        kinds, of_code = np.unique(np.stack(list(masks.values())), axis=1, return_inverse=True)
        classes.append(of_code.reshape(-1).astype(code_dtype(kinds.shape[1])))
        in_kind = dict(zip(masks, kinds, strict=True))
        members.append([np.flatnonzero(in_kind[repr(row[axis])]) for row in listed])
    shape = [int(of_code.max()) + 1 for of_code in classes]
    if prod(shape) > MOST_CELLS:
        raise SchemaError("it tells too many values apart; list fewer, or fewer columns")
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


def _constraint(told: object, columns: Mapping[str, Column]) -> Constraint:
    if not isinstance(told, Mapping):
        raise SchemaError(f"it is a mapping with {_FORMS}, not {told!r}")
    for key in told:
        if key not in _KEYS:
            raise SchemaError(f"it has no {key!r}; {unknown(str(key), _KEYS)}")
    keep = told.get("violations", "refuse")
    if keep not in ("refuse", "keep"):
        raise SchemaError(f'violations must be "refuse" or "keep", not {keep!r}')
    said = {key: value for key, value in told.items() if key != "violations"}
    form = {"forbid", "if", "allow"} & set(said)
    if form == {"forbid"} and len(said) == 1:
        made = _excluding(said, {}, said["forbid"], columns)
    elif form == {"if"} and set(said) == {"if", "then"}:
        made = _excluding(said, said["then"], said["if"], columns)
    elif form == {"allow"} and set(said) == {"allow", "combinations"}:
        names = _names(said["allow"], columns)
        listed, classes, allowed = allowing(names, said["combinations"], columns)
        made = Constraint(names, classes, allowed, {"allow": list(names), "combinations": listed})
    else:
        raise SchemaError(f"it has {' and '.join(repr(key) for key in said)}; a constraint has {_FORMS}")
    if keep == "refuse":
        return made
    return Constraint(made.columns, made.classes, made.allowed, {**made.told, "violations": "keep"}, keep=True)


def _excluding(told: Mapping[str, Any], then: object, when: object, columns: Mapping[str, Column]) -> Constraint:
    """Return the constraint that rows with all of `when` have all of `then` too; with nothing there, that none is."""
    for part in (when, then):
        if not isinstance(part, Mapping) or not when:
            raise SchemaError(f"it is about values by column, such as {{age: {{below: 15}}}}, not {part!r}")
    assert isinstance(when, Mapping)  # noqa: S101 - just checked
    assert isinstance(then, Mapping)  # noqa: S101
    names = _names([*when, *then], columns)
    choosers = _choosers(names, columns)
    masks = [_some(name, choosers[name], told) for name, told in (*when.items(), *then.items())]
    chosen = np.indices((2,) * len(names)).astype(np.bool_)
    allowed: npt.NDArray[np.bool_] = np.logical_not(chosen[: len(when)].all(axis=0))
    if then:
        allowed |= chosen[len(when) :].all(axis=0)
    return Constraint(names, tuple(mask.astype(np.uint8) for mask in masks), allowed, _plain(told))


def _names(told: object, columns: Mapping[str, Column]) -> tuple[str, ...]:
    if isinstance(told, str) or not isinstance(told, Iterable):
        raise SchemaError(f"it names its columns in a list, not {told!r}")
    names = tuple(told)
    for name in names:
        column = columns.get(name) if isinstance(name, str) else None
        if isinstance(column, Determined):
            raise SchemaError(f"{name!r} is determined by {column.determined_by!r}; say it of {column.determined_by!r}")
        if column is None or not column.modelled:
            modelled = [known for known, one in columns.items() if one.modelled]
            raise SchemaError(f"{name!r} is no modelled column; {unknown(str(name), modelled)}")
    if len(set(names)) < len(names):
        raise SchemaError("it names a column twice; say all about a column at once")
    if not 2 <= len(names) <= 3:
        raise SchemaError(
            f"it is about {len(names)} column{'' if len(names) == 1 else 's'}; a constraint is about two or three"
            + (" (what one column may hold is declared there)" if len(names) == 1 else "")
        )
    return names


def _choosers(names: Sequence[str], columns: Mapping[str, Column]) -> dict[str, Chosen]:
    made = {}
    for name in names:
        try:
            made[name] = Chosen(columns[name])
        except SchemaError as error:  # noqa: PERF203 - a few turns
            raise SchemaError(f"column {name!r}: {error}") from None
    return made


def _some(name: str, chosen: Chosen, told: object) -> Mask:
    try:
        mask = chosen(told)
    except SchemaError as error:
        raise SchemaError(f"column {name!r}: {error}") from None
    if not mask.any():
        raise SchemaError(f"column {name!r}: {told!r} names none of its values; leave it out, or widen the column")
    return mask


def _listed(names: Sequence[str], combinations: object) -> list[list[Any]]:
    """Return combinations as a list with an entry for each column; for two, a mapping will do."""
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


def _plain(told: Any) -> Any:  # noqa: ANN401 - data for YAML and JSON
    if isinstance(told, Mapping):
        return {key: _plain(value) for key, value in told.items()}
    if isinstance(told, (list, tuple)):
        return [_plain(item) for item in told]
    if isinstance(told, dt.date):
        return told.isoformat()
    return told.item() if isinstance(told, np.generic) else told
