"""Columns that are combined into one attribute, and coarse groups. Both are declared, so both are public."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle.codes import Codes, code_dtype
from chicle.columns import Column
from chicle.columns.base import is_unicode
from chicle.columns.coarse import coarse_groups
from chicle.columns.declare import unknown
from chicle.columns.selector import Selector
from chicle.errors import SchemaError
from chicle.schema.constraints import MOST_CELLS, Constraint, allowing, row_keys

__all__ = ["Combined", "Groups", "any_over", "combined_from", "groups_of", "possible"]

Groups = Mapping[str, npt.NDArray[np.int64]]
_KEYS = ("columns", "combinations", "others")


@dataclass(frozen=True, eq=False)
class Combined:
    """Several columns that are modelled as one attribute.

    Attributes
    ----------
    columns
        The columns.
    declaration
        The declaration, as plain data.
    listed
        The listed combinations; None allows all.
    others
        For each column, its code in rows whose combination is not listed; None refuses such rows.
    shape
        The number of codes of each column in the joint tables.
    cells
        The combinations that have a code, as cells of a table of this shape.
    """

    columns: tuple[str, ...]
    declaration: Mapping[str, Any]
    listed: Constraint | None = None
    others: tuple[int, ...] | None = None
    shape: tuple[int, ...] = ()
    cells: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def within(self, groups: Groups, constraints: Iterable[Constraint], domain: Mapping[str, int]) -> Combined:
        """Return the attribute with a code for each combination that the constraints allow."""
        shape = tuple(int(groups[name].max()) + 1 if name in groups else domain[name] for name in self.columns)
        if prod(shape) > MOST_CELLS:
            raise SchemaError(f"it has {prod(shape):,} combinations, more than {MOST_CELLS:,}; make columns `coarse`")
        there = np.ones(shape, dtype=np.bool_)
        inside = [one for one in constraints if not one.keep and set(one.columns) <= set(self.columns)]
        for one in [*([] if self.listed is None else [self.listed]), *inside]:
            table = possible(one, groups)
            order = sorted(range(len(one.columns)), key=lambda i: self.columns.index(one.columns[i]))
            there &= np.transpose(table, order).reshape(
                [size if name in one.columns else 1 for name, size in zip(self.columns, shape, strict=True)]
            )
        if not there.any():
            raise SchemaError("no combination is left; constraints forbid all that are listed")
        if self.others is not None:
            coarse = tuple(groups[n][c] if n in groups else c for n, c in zip(self.columns, self.others, strict=True))
            if not there[coarse]:
                raise SchemaError("a constraint forbids the combination of `others`; choose another")
        return Combined(self.columns, self.declaration, self.listed, self.others, shape, np.flatnonzero(there))

    def parts(self) -> list[Codes]:
        """Return the code of each column in each combination."""
        places = np.unravel_index(self.cells, self.shape)
        return [place.astype(code_dtype(size)) for place, size in zip(places, self.shape, strict=True)]

    def encode(self, codes: Mapping[str, Codes]) -> Codes:
        """Return the code of each row's combination."""
        keys = row_keys([codes[name] for name in self.columns], self.shape)
        dtype = code_dtype(len(self.cells))
        if len(self.cells) == prod(self.shape):
            return keys.astype(dtype)
        code_of = np.zeros(prod(self.shape), dtype=dtype)
        code_of[self.cells] = np.arange(len(self.cells))
        return np.asarray(code_of[keys])


def combined_from(
    declaration: object, columns: Mapping[str, Column], constraints: Sequence[Constraint] = ()
) -> dict[str, Combined]:
    """Return the combined columns of a declaration.

    Parameters
    ----------
    declaration
        For each new name, the columns that become one attribute.
    columns
        The declared columns.
    constraints
        Constraints of the schema; combinations that they forbid get no code.

    Examples
    --------
    >>> from chicle.columns import Boolean, Categorical
    >>> columns = {"sex": Categorical(values=["f", "m"]), "pregnant": Boolean()}
    >>> declaration = {"both": {"columns": ["sex", "pregnant"], "combinations": {"f": [False, True], "m": False}}}
    >>> len(combined_from(declaration, columns)["both"].cells)
    3
    """
    if not isinstance(declaration, Mapping):
        raise SchemaError(f"combine must be a mapping from a new name to its columns, not {declaration!r}")
    made: dict[str, Combined] = {}
    for name, one in declaration.items():
        taken = {column: other for other, before in made.items() for column in before.columns}
        try:
            made[name] = _combined(name, one, columns, taken)
        except SchemaError as error:
            raise SchemaError(f"combine {name!r}: {error}") from None
    groups = groups_of(columns)
    sizes = {name: column.cardinality for name, column in columns.items() if column.modelled}
    for name, one in made.items():
        try:
            made[name] = one.within(groups, constraints, sizes)
        except SchemaError as error:  # noqa: PERF203 - a few turns
            raise SchemaError(f"combine {name!r}: {error}") from None
    return made


def groups_of(columns: Mapping[str, Column]) -> dict[str, npt.NDArray[np.int64]]:
    """Return the group of each code of each coarse column."""
    return {
        name: _groups(name, column) for name, column in columns.items() if column.modelled and column.coarse is not None
    }


def possible(constraint: Constraint, groups: Groups) -> npt.NDArray[np.bool_]:
    """Return the codes, or coarse groups, of a constraint's columns that may occur together."""
    table = constraint.allowed
    for axis, (name, classes) in enumerate(zip(constraint.columns, constraint.classes, strict=True)):
        table = np.take(table, classes, axis=axis)
        if name in groups:
            table = any_over(table, groups[name], axis)
    return table


def any_over(table: npt.NDArray[np.bool_], groups: npt.NDArray[np.int64], axis: int) -> npt.NDArray[np.bool_]:
    """Return whether any cell of each group along an axis is true.

    Examples
    --------
    >>> any_over(np.array([True, False, False]), np.array([0, 0, 1]), 0).tolist()
    [True, False]
    """
    order = np.argsort(groups, kind="stable")
    there, begins = np.unique(groups[order], return_index=True)
    moved = np.moveaxis(table, axis, 0)
    made = np.zeros((int(groups.max()) + 1, *moved.shape[1:]), dtype=np.bool_)
    made[there] = np.logical_or.reduceat(moved[order], begins, axis=0)
    return np.moveaxis(made, 0, axis)


def _combined(name: object, declaration: object, columns: Mapping[str, Column], taken: Mapping[str, str]) -> Combined:
    if not isinstance(name, str) or not name or not is_unicode(name):
        raise SchemaError("the name of combined columns must be a text")
    if name in columns:
        raise SchemaError("a column has this name; choose another")
    given = declaration if isinstance(declaration, Mapping) else {"columns": declaration}
    for key in given:
        if key not in _KEYS:
            raise SchemaError(f"it has no {key!r}; {unknown(str(key), _KEYS)}")
    names = _names(given.get("columns"), columns, taken)
    if "combinations" not in given:
        if "others" in given:
            raise SchemaError("others is for combinations that are not listed; list some in `combinations`")
        return Combined(names, {"columns": list(names)})
    listed, classes, allowed = allowing(names, given["combinations"], columns)
    plain: dict[str, Any] = {"columns": list(names), "combinations": listed}
    constraint = Constraint(names, classes, allowed, {"combine": list(names)})
    others = given.get("others")
    if others is None:
        return Combined(names, plain, constraint)
    if isinstance(others, str) or not isinstance(others, Sequence) or len(others) != len(names):
        raise SchemaError(f"others must be one of the combinations, with a value for each column, not {others!r}")
    codes = tuple(_one(column, columns[column], value) for column, value in zip(names, others, strict=True))
    if not constraint.holds({column: np.array([code]) for column, code in zip(names, codes, strict=True)}).all():
        raise SchemaError("others is not one of the listed combinations; add it to `combinations`")
    return Combined(names, {**plain, "others": list(others)}, constraint, codes)


def _names(declaration: object, columns: Mapping[str, Column], taken: Mapping[str, str]) -> tuple[str, ...]:
    if isinstance(declaration, str) or not isinstance(declaration, Sequence) or len(declaration) < 2:
        raise SchemaError(f"columns must list two columns or more, not {declaration!r}")
    for name in declaration:
        if not isinstance(name, str) or name not in columns or not columns[name].modelled:
            modelled = [known for known, one in columns.items() if one.modelled]
            raise SchemaError(f"{name!r} is not a modelled column; {unknown(str(name), modelled)}")
        if columns[name].undiscovered:
            raise SchemaError(
                f"column {name!r}: its values are yet to be discovered; only declared columns can be combined"
            )
        if name in taken:
            raise SchemaError(f"column {name!r} is in {taken[name]!r} already; a column can be combined only once")
    if len(set(declaration)) < len(declaration):
        raise SchemaError("columns lists a column twice; list each once")
    return tuple(declaration)


def _one(name: str, column: Column, declaration: object) -> int:
    try:
        codes = np.flatnonzero(Selector(column)(declaration))
    except SchemaError as error:
        raise SchemaError(f"column {name!r}: {error}") from None
    if len(codes) != 1:
        raise SchemaError(f"column {name!r}: others names one value or bin, not {declaration!r}")
    return int(codes[0])


def _groups(name: str, column: Column) -> npt.NDArray[np.int64]:
    try:
        return coarse_groups(column)
    except SchemaError as error:
        raise SchemaError(f"column {name!r}: {error}") from None
