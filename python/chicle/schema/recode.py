"""From the columns of a schema to the attributes that mechanisms see, and back: coarse groups, and columns combined.

Both are declared, so the maps are public constants: each record is recoded by itself, a person's k records stay at most
k, and no sensitivity changes. What coarse groups hide is drawn again by a fine 1-way of the column, released beside
the joint work. Cost: a look-up for each record and column that changes.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from chicle.columns import Column
from chicle.columns.base import is_unicode
from chicle.columns.chosen import Chosen
from chicle.columns.coarse import coarse_groups
from chicle.columns.declare import unknown
from chicle.counting.records import Codes, Countable, Recoded, Records, Rows, code_dtype, look_up
from chicle.counting.records import Recoding as Maps
from chicle.domain import Clique, Domain
from chicle.errors import SchemaError
from chicle.measurements.measurement import Measurement
from chicle.measurements.merges import grouped
from chicle.schema.constraints import MOST_CELLS, Constraint, allowing, row_keys

__all__ = ["Combined", "Recoding", "any_over", "combined_from", "possible"]

Groups = Mapping[str, npt.NDArray[np.int64]]
_KEYS = ("columns", "combinations", "others")


@dataclass(frozen=True, eq=False)
class Combined:
    """Several columns as one attribute.

    Attributes
    ----------
    columns
        The columns.
    told
        The declaration, as plain data.
    listed
        Which combinations there are; all, if none are listed.
    others
        For each column the code that a row gets whose combination is not listed; without it, such a row is refused.
    shape
        How many codes each column has in the joint work.
    cells
        The combinations that have a code, as cells of a table of this shape.
    """

    columns: tuple[str, ...]
    told: Mapping[str, Any]
    listed: Constraint | None = None
    others: tuple[int, ...] | None = None
    shape: tuple[int, ...] = ()
    cells: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def within(self, groups: Groups, constraints: Iterable[Constraint], domain: Mapping[str, int]) -> Combined:
        """Return the attribute with a code for each combination that some allowed row can have."""
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
        return Combined(self.columns, self.told, self.listed, self.others, shape, np.flatnonzero(there))

    def parts(self) -> list[Codes]:
        """Return, for each column, its code in each combination."""
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


class Recoding:
    """The maps between the columns of a schema and the attributes that mechanisms see.

    Parameters
    ----------
    columns
        The modelled columns.
    combined
        By name, columns that are one attribute; it stands where the first of them stood.
    constraints
        What no row may violate: combinations that they rule out get no code.
    """

    def __init__(
        self, columns: Mapping[str, Column], combined: Mapping[str, Combined], constraints: Sequence[Constraint]
    ) -> None:
        self.groups = {name: _groups(name, column) for name, column in columns.items() if column.coarse is not None}
        self.original = Domain({name: column.cardinality for name, column in columns.items()})
        self.combined = {}
        for name, one in combined.items():
            try:
                self.combined[name] = one.within(self.groups, constraints, self.original)
            except SchemaError as error:  # noqa: PERF203 - a few turns
                raise SchemaError(f"combine {name!r}: {error}") from None
        home = {column: name for name, one in self.combined.items() for column in one.columns}
        self.attributes = {
            name: self.combined[name].columns if name in self.combined else (name,)
            for name in dict.fromkeys(home.get(column, column) for column in columns)
        }
        self.domain = Domain({name: self._size(name) for name in self.attributes})
        self.ordinal = frozenset(name for name in self.attributes if name in columns and columns[name].ordered)

    @property
    def changes(self) -> bool:
        """Whether mechanisms see anything but the columns as they are."""
        return bool(self.groups or self.combined)

    def settle(self, codes: Mapping[str, Codes]) -> tuple[dict[str, Codes], list[str]]:
        """Return codes of columns, rows of combinations that are not listed having those of `others`; and refusals."""
        made, problems = dict(codes), []
        for name, one in self.combined.items():
            if one.listed is None or not set(one.columns) <= set(codes) or (there := one.listed.holds(codes)).all():
                continue
            if one.others is None:
                problems.append(
                    f"combine {name!r}: the table has a combination of {_and(one.columns)} that is not listed; "
                    "add it to `combinations`, or say in `others` which one such rows get"
                )
                continue
            for column, code in zip(one.columns, one.others, strict=True):
                made[column] = np.where(there, codes[column], codes[column].dtype.type(code))
        return made, problems

    def over(self, records: Rows) -> Rows:
        """Return rows over the attributes that mechanisms see; they are as private as those given."""
        seen = self.encode(records, list(self.domain)) if isinstance(records, Records) else _Seen(records, self)
        return cast("Rows", seen)

    def encode(self, records: Records, names: Sequence[str]) -> Records:
        """Return records over some of the attributes that mechanisms see."""
        codes, _ = self.settle({name: records[name] for name in records})
        for name in records:
            if name in self.groups:
                codes[name] = look_up(self.group_codes(name), codes[name])
        made = {name: self.combined[name].encode(codes) if name in self.combined else codes[name] for name in names}
        domain = {name: self.domain[name] for name in names}
        return Records(made, domain, max_records_per_person=records.max_records_per_person)

    def group_codes(self, name: str) -> Codes:
        """Return the coarse group of each code of a column."""
        groups = self.groups[name]
        return groups.astype(code_dtype(int(groups.max()) + 1))

    def decode(self, records: Records, fine: Sequence[Measurement], seed: int) -> Records:
        """Return records over the columns; fine 1-ways say how coarse groups are split, evenly where there is none."""
        codes: dict[str, Codes] = {}
        for name in records:
            if name not in self.combined:
                codes[name] = records[name]
                continue
            one = self.combined[name]
            for column, part in zip(one.columns, one.parts(), strict=True):
                codes[column] = part[records[name]]
        if self.groups:
            domain = Domain({name: self.original[name] for name in self.groups})
            told = {one.clique[0]: _steadied(one, self.groups[one.clique[0]]) for one in fine}
            even = {name: Measurement((name,), np.ones(size), 1.0) for name, size in domain.items()}
            split = grouped(list({**even, **told}.values()), domain, self.groups)
            drawn = split.decode(Records({name: codes[name] for name in domain}, split.domain), seed)
            codes.update({name: drawn[name] for name in domain})
        return Records(codes, self.original)

    def over_columns(self, measurement: Measurement) -> Measurement | None:
        """Return a measurement of attributes as one of columns, in buckets where these are coarse.

        Combinations that have no code are cells of 0. Buckets of combined columns are not buckets of each, so that a
        measurement in them tells nothing of columns: None.
        """
        values = measurement.values
        clique: list[str] = []
        coarsening: dict[str, npt.ArrayLike] = {}
        for name in measurement.clique:
            if name in self.combined:
                if name in measurement.coarsening:
                    return None
                one = self.combined[name]
                moved = np.moveaxis(values, len(clique), 0)
                spread = np.zeros((prod(one.shape), *moved.shape[1:]), dtype=values.dtype)
                spread[one.cells] = moved
                axes = range(len(clique), len(clique) + len(one.shape))
                values = np.moveaxis(spread.reshape(*one.shape, *moved.shape[1:]), range(len(one.shape)), axes)
            for column in self.attributes[name]:
                clique.append(column)
                buckets = measurement.coarsening.get(column)
                if column in self.groups:
                    groups = self.groups[column]
                    coarsening[column] = groups if buckets is None else np.asarray(buckets)[groups]
                elif buckets is not None:
                    coarsening[column] = buckets
        return replace(measurement, clique=tuple(clique), values=values, coarsening=coarsening)

    def _size(self, name: str) -> int:
        if name in self.combined:
            return len(self.combined[name].cells)
        return int(self.groups[name].max()) + 1 if name in self.groups else self.original[name]


class _Seen(Countable):
    """Rows over the attributes that mechanisms see, recoded while they are counted."""

    __slots__ = ("_base", "_recoding")

    def __init__(self, base: Countable, recoding: Recoding) -> None:
        self._base, self._recoding = base, recoding

    @property
    def domain(self) -> Domain:
        return self._recoding.domain

    @property
    def max_records_per_person(self) -> int:
        return self._base.max_records_per_person

    def batches(self, names: Sequence[str]) -> Generator[Records, None, None]:
        needed = list(dict.fromkeys(column for name in names for column in self._recoding.attributes[name]))
        for batch in self._base.batches(needed):
            yield self._recoding.encode(batch, names)

    def recode(self, columns: Maps, domain: Domain) -> Countable:
        return Recoded(self, columns, domain)

    def known(self, clique: Clique) -> npt.NDArray[np.int64] | None:
        if any(name in self._recoding.combined for name in clique):
            return None
        columns = {name: (name, self._recoding.group_codes(name)) for name in clique if name in self._recoding.groups}
        return Recoded(self._base, columns, self.domain).known(clique) if columns else self._base.known(clique)


def combined_from(told: object, columns: Mapping[str, Column]) -> dict[str, Combined]:
    """Return the combined columns of a declaration.

    Examples
    --------
    >>> from chicle.columns import Boolean, Categorical
    >>> columns = {"sex": Categorical(values=["f", "m"]), "pregnant": Boolean()}
    >>> told = {"both": {"columns": ["sex", "pregnant"], "combinations": {"f": [False, True], "m": False}}}
    >>> Recoding(columns, combined_from(told, columns), ()).domain
    Domain(both: 3)
    """
    if not isinstance(told, Mapping):
        raise SchemaError(f"combine must be a mapping from a new name to its columns, not {told!r}")
    made: dict[str, Combined] = {}
    for name, one in told.items():
        taken = {column: other for other, before in made.items() for column in before.columns}
        try:
            made[name] = _combined(name, one, columns, taken)
        except SchemaError as error:
            raise SchemaError(f"combine {name!r}: {error}") from None
    return made


def possible(constraint: Constraint, groups: Groups) -> npt.NDArray[np.bool_]:
    """Return which codes of a constraint's columns may meet, in groups where there are any."""
    table = constraint.allowed
    for axis, (name, classes) in enumerate(zip(constraint.columns, constraint.classes, strict=True)):
        table = np.take(table, classes, axis=axis)
        if name in groups:
            table = any_over(table, groups[name], axis)
    return table


def any_over(table: npt.NDArray[np.bool_], groups: npt.NDArray[np.int64], axis: int) -> npt.NDArray[np.bool_]:
    """Return whether any of the cells of each group along an axis is true.

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


def _combined(name: object, told: object, columns: Mapping[str, Column], taken: Mapping[str, str]) -> Combined:
    if not isinstance(name, str) or not name or not is_unicode(name):
        raise SchemaError("the name of combined columns must be a text")
    if name in columns:
        raise SchemaError("a column has this name; choose another")
    said = told if isinstance(told, Mapping) else {"columns": told}
    for key in said:
        if key not in _KEYS:
            raise SchemaError(f"it has no {key!r}; {unknown(str(key), _KEYS)}")
    names = _names(said.get("columns"), columns, taken)
    if "combinations" not in said:
        if "others" in said:
            raise SchemaError("others is for combinations that are not listed; list some in `combinations`")
        return Combined(names, {"columns": list(names)})
    listed, classes, allowed = allowing(names, said["combinations"], columns)
    plain: dict[str, Any] = {"columns": list(names), "combinations": listed}
    constraint = Constraint(names, classes, allowed, {"combine": list(names)})
    given = said.get("others")
    if given is None:
        return Combined(names, plain, constraint)
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != len(names):
        raise SchemaError(f"others must be one of the combinations, a value for each column, not {given!r}")
    others = tuple(_one(column, columns[column], value) for column, value in zip(names, given, strict=True))
    if not constraint.holds({column: np.array([code]) for column, code in zip(names, others, strict=True)}).all():
        raise SchemaError("others is none of the combinations that are listed; add it there")
    return Combined(names, {**plain, "others": list(given)}, constraint, others)


def _names(told: object, columns: Mapping[str, Column], taken: Mapping[str, str]) -> tuple[str, ...]:
    if isinstance(told, str) or not isinstance(told, Sequence) or len(told) < 2:
        raise SchemaError(f"columns must list two columns or more, not {told!r}")
    for name in told:
        if not isinstance(name, str) or name not in columns or not columns[name].modelled:
            modelled = [known for known, one in columns.items() if one.modelled]
            raise SchemaError(f"{name!r} is no modelled column; {unknown(str(name), modelled)}")
        if columns[name].undiscovered:
            raise SchemaError(
                f"column {name!r}: its values are yet to be discovered; only declared ones can be combined"
            )
        if name in taken:
            raise SchemaError(f"column {name!r} is in {taken[name]!r} already; combine all at once")
    if len(set(told)) < len(told):
        raise SchemaError("columns names one twice; name each once")
    return tuple(told)


def _one(name: str, column: Column, told: object) -> int:
    try:
        chosen = np.flatnonzero(Chosen(column)(told))
    except SchemaError as error:
        raise SchemaError(f"column {name!r}: {error}") from None
    if len(chosen) != 1:
        raise SchemaError(f"column {name!r}: others names one value or bin, not {told!r}")
    return int(chosen[0])


def _steadied(one_way: Measurement, groups: npt.NDArray[np.int64]) -> Measurement:
    """Return a fine 1-way drawn towards an even spread inside each group, as far as noise explains its unevenness.

    The positive-part rule of James and Stein: of four and more codes, it is closer to the truth in mean squares.
    """
    values = one_way.values.astype(np.float64)
    sizes = np.bincount(groups)
    means = np.bincount(groups, weights=values) / sizes
    uneven = np.bincount(groups, weights=(values - means[groups]) ** 2)
    noise = np.maximum(sizes - 3, 0) * one_way.sigma**2
    kept = np.where(noise > 0, np.maximum(1 - noise / np.maximum(uneven, noise), 0), 1.0)
    return replace(one_way, values=means[groups] + kept[groups] * (values - means[groups]))


def _groups(name: str, column: Column) -> npt.NDArray[np.int64]:
    try:
        return coarse_groups(column)
    except SchemaError as error:
        raise SchemaError(f"column {name!r}: {error}") from None


def _and(names: Sequence[str]) -> str:
    return " and ".join(repr(name) for name in names)
