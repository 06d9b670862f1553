"""A layout: columns seen as fewer, smaller fields, and made from them again ([D18] 5.3 and 5.4, [D20]).

Some columns say almost the same, and a marginal of all of them has mostly empty cells. A layout sees columns as fields:

- **Joint**: several columns become one field that has a code for each of the combinations that a public table has
  ([D20]: five binary columns about insurance have 13 combinations instead of 32).
- **Synchronous**: columns that hold the same value unless they are missing. The first, the clock, is a field of its
  own. All others are one field, the pattern of which of them are there ([D18] 5.3: ten times of an emergency call).
- **Mapped**: a column that another one nearly determines is no field. It is filled from the other one, by a map that is
  learnt from the noisy marginal of the two ([D18] 5.4).

Every other column is a field by itself. A field's codes follow from the codes of its columns by public maps, so a query
of fields is a query of columns, and nothing about sensitivity changes. A row with a combination that a field does not
have is in no cell of its tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle.codes import Codes, code_dtype
from chicle.counting.records import Records
from chicle.domain import Clique, Domain
from chicle.errors import ParameterError
from chicle.measurements.measurement import Measurement
from chicle.query import Query

__all__ = ["Field", "Layout", "seen_combinations"]

Ints = npt.NDArray[np.int64]

_MOST_PATTERNS = 2**12
_STANDS_OUT = 3.0  # sigmas by which a cell must stand out for a map to be learnt from it


@dataclass(frozen=True, eq=False)
class Field:
    """Columns seen as one: code i is the combination ``cells[i]`` of their codes, or of their buckets."""

    name: str
    columns: Clique
    cells: Ints
    buckets: Mapping[str, npt.NDArray[np.uint32]]


class Layout:
    """Fields of a domain.

    Parameters
    ----------
    domain
        The columns.
    joint
        Groups of columns that become one field, with the combinations that this field has, a row each.
    synchronous
        Groups of columns that hold the same value unless they are missing: the clock first. A column with one value
        more than the clock has missing as its last.
    mapped
        For each column that is filled from another one, that other one.
    without
        Columns that are no part of any field.
    """

    def __init__(
        self,
        domain: Domain,
        *,
        joint: Mapping[Clique, Ints] | None = None,
        synchronous: Sequence[Clique] = (),
        mapped: Mapping[str, str] | None = None,
        without: Sequence[str] = (),
    ) -> None:
        self.columns = domain
        self.mapped = dict(mapped or {})
        self.synchronous = [tuple(group) for group in synchronous]
        self.joint = {tuple(group): np.asarray(cells, dtype=np.int64) for group, cells in (joint or {}).items()}
        self._check(without)
        self._patterns = {group: self._pattern(group) for group in self.synchronous}
        fields = [Field(_joint_name(group), group, cells, {}) for group, cells in self.joint.items()]
        fields += [pattern for pattern in self._patterns.values() if pattern is not None]
        taken = {name for group in (*self.joint, *(group[1:] for group in self.synchronous)) for name in group}
        taken |= {*self.mapped, *without}
        fields += [
            Field(name, (name,), np.arange(size)[:, None], {}) for name, size in domain.items() if name not in taken
        ]
        # In the order of their first columns, so that a clique of fields is read as its columns are declared.
        fields.sort(key=lambda field: domain.position(field.columns[0]))
        self.fields = {field.name: field for field in fields}
        self.domain = Domain({field.name: len(field.cells) for field in fields})

    def field_of(self, column: str) -> str:
        """Return the field that says what a column is: of a mapped one, the field of the column that determines it."""
        column = self.mapped.get(column, column)
        for field in self.fields.values():
            if column in field.columns:
                return field.name
        for group in self.synchronous:
            if column in group:
                return group[0]
        raise ParameterError(f"column {column!r} is in no field")

    def clique(self, columns: Sequence[str]) -> Clique:
        """Return the fields of some columns, each once, in order."""
        return self.domain.clique({self.field_of(name) for name in columns})

    def query(self, fields: Sequence[str]) -> Query:
        """Return the query of columns whose table holds that of some fields."""
        parts = [self.fields[name] for name in fields]
        buckets = {name: codes for field in parts for name, codes in field.buckets.items()}
        return Query(self.columns.clique(name for field in parts for name in field.columns), buckets)

    def table(self, measured: Measurement) -> Measurement | None:
        """Return a measurement over fields; None if it is of other columns than any fields have."""
        fields = [one for one in self.fields.values() if set(one.columns) <= set(measured.clique)]
        whole = {name for field in fields for name in field.columns} == set(measured.clique)
        fits = whole and all(set(field.buckets) == set(field.columns) & set(measured.buckets) for field in fields)
        if not (fits and measured.whole and fields):
            return None
        index = []
        for name in measured.clique:
            axis, field = next((i, one) for i, one in enumerate(fields) if name in one.columns)
            codes = field.cells[:, field.columns.index(name)]
            index.append(codes.reshape([-1 if i == axis else 1 for i in range(len(fields))]))
        clique = tuple(field.name for field in fields)
        return Measurement(clique, measured.floats[tuple(index)], measured.sigma, measured.protected)

    def maps(self, measurements: Sequence[Measurement]) -> dict[str, Ints]:
        """Return for each mapped column its value for each value of the other one, learnt from noisy tables.

        It is the value of the largest cell, if that stands out from the noise by three standard deviations; else the
        most frequent value of the column.
        """
        learnt = {}
        for name, by in self.mapped.items():
            (of_both,) = [one for one in measurements if set(one.clique) == {name, by} and not one.buckets][:1]
            table = of_both.floats if of_both.clique == (by, name) else of_both.floats.T
            most = int(np.maximum(table, 0.0).sum(axis=0).argmax())
            stands_out = table.max(axis=1) >= _STANDS_OUT * of_both.sigma
            learnt[name] = np.where(stands_out, table.argmax(axis=1), most)
        return learnt

    def split(self, records: Records, maps: Mapping[str, Ints]) -> dict[str, Codes]:
        """Return the columns of records over fields."""
        made: dict[str, Codes] = {}
        for field in self.fields.values():
            if not field.buckets:
                for i, name in enumerate(field.columns):
                    made[name] = field.cells[:, i].astype(code_dtype(self.columns[name]))[records[field.name]]
        for group in self.synchronous:
            clock, pattern = made[group[0]], self._patterns[group]
            for name in group[1:]:
                made[name] = clock.astype(code_dtype(self.columns[name]))
                if pattern is not None and name in pattern.columns:
                    missing = pattern.cells[:, pattern.columns.index(name)][records[pattern.name]] == 1
                    made[name][missing] = self.columns[name] - 1
        for name, by in self.mapped.items():
            made[name] = maps[name].astype(code_dtype(self.columns[name]))[made[by]]
        return made

    def see(self, records: Records) -> Records:
        """Return rows of all columns as rows of fields, without rows of a combination that a field does not have."""
        columns = {}
        there = np.ones(len(records), dtype=np.bool_)
        for field in self.fields.values():
            codes = [
                records[name] if name not in field.buckets else field.buckets[name][records[name]]
                for name in field.columns
            ]
            sizes = [int(field.cells[:, i].max(initial=0)) + 1 for i in range(len(codes))]
            found = np.full(sizes, -1, dtype=np.int64)
            found[tuple(field.cells.T)] = np.arange(len(field.cells))
            inside = np.all([code < size for code, size in zip(codes, sizes, strict=True)], axis=0)
            columns[field.name] = np.where(
                inside, found[tuple(np.minimum(c, s - 1) for c, s in zip(codes, sizes, strict=True))], -1
            )
            there &= columns[field.name] >= 0
        kept = {name: codes[there].astype(code_dtype(self.domain[name])) for name, codes in columns.items()}
        return Records(kept, self.domain)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the combinations of joint fields: all that does not follow from parameters."""
        return {f"joint-{place}": cells for place, cells in enumerate(self.joint.values())}

    def _pattern(self, group: Clique) -> Field | None:
        """Return the field of which columns are there: in each, bucket 1 is missing."""
        values = self.columns[group[0]]
        sometimes = self.columns.clique(name for name in group[1:] if self.columns[name] == values + 1)
        if not sometimes:
            return None
        buckets = {name: (np.arange(values + 1) == values).astype(np.uint32) for name in sometimes}
        cells = np.array(list(product((0, 1), repeat=len(sometimes))), dtype=np.int64)
        return Field(f"what is missing of {group[0]}", sometimes, cells, buckets)

    def _check(self, without: Sequence[str]) -> None:
        for group in (*self.joint, *self.synchronous):
            if len(self.columns.check(group)) < 2:
                raise ParameterError(f"{group!r} names fewer than two columns; leave it out")
        for group in self.synchronous:
            self._check_clock(group)
        for name, by in self.mapped.items():
            self.columns.check((name, by))
            if by in self.mapped:
                raise ParameterError(f"mapped: {name!r} follows {by!r}, which follows another column; name that one")
            if by in without:
                raise ParameterError(f"mapped: {name!r} follows {by!r}, which is no column of the table that is made")
        held = [*without, *self.mapped, *(name for group in (*self.joint, *self.synchronous) for name in group)]
        for name in held:
            if held.count(name) > 1:
                raise ParameterError(
                    f"column {name!r} is named twice: a column is partitioned, joint, synchronous or mapped"
                )

    def _check_clock(self, group: Clique) -> None:
        values = self.columns[group[0]]
        for name in group[1:]:
            if self.columns[name] not in (values, values + 1):
                raise ParameterError(
                    f"synchronous: {name!r} has {self.columns[name]} values and its clock {group[0]!r} {values}; it "
                    "must have as many, or one more for missing"
                )
        if 2 ** (len(group) - 1) > _MOST_PATTERNS:
            raise ParameterError(f"synchronous: {len(group)} columns have too many patterns; name at most 13")


def seen_combinations(records: Records, columns: Clique) -> Ints:
    """Return the combinations of some columns that rows have, a row each, in order.

    Examples
    --------
    >>> rows = Records({"married": [1, 0, 1], "sex": [1, 0, 1]}, {"married": 2, "sex": 2})
    >>> seen_combinations(rows, ("married", "sex")).tolist()
    [[0, 0], [1, 1]]
    """
    found: Ints = np.unique(np.stack([records[name].astype(np.int64) for name in columns], axis=1), axis=0)
    return found


def _joint_name(columns: Clique) -> str:
    return " & ".join(columns)
