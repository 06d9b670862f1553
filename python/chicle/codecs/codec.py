"""The codec: encodes the columns of a table as codes, and decodes synthetic records, according to a schema.

Encoding is public and treats each row by itself, so no sensitivity changes. Constraints are enforced afterwards, on
synthetic records. A codec imports no source and can be pickled, so it can be sent to where the rows are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from chicle.codecs.check import column_problems, misfits, with_plain
from chicle.codecs.recode import Attributes
from chicle.codecs.repair import repair
from chicle.codecs.zeros import forbidden_cells, without_zeros
from chicle.codes import Codes, code_dtype
from chicle.columns import Column, Identifier, SyntheticRows
from chicle.columns.arithmetic import is_time
from chicle.columns.base import refuse
from chicle.columns.private_bins import Binned
from chicle.columns.times import as_type
from chicle.counting.records import Records
from chicle.domain import Clique, Domain
from chicle.errors import DomainError, SchemaError
from chicle.measurements.measurement import Measurement
from chicle.query import Maps
from chicle.schema import Schema

__all__ = ["Codec", "with_person"]


class Codec:
    """Encodes, decodes and checks tables of a schema.

    Parameters
    ----------
    schema
        The schema of the tables.

    Attributes
    ----------
    schema
        As given.
    attributes
        The attributes that mechanisms see, and the maps between them and the columns.

    Examples
    --------
    >>> schema = Schema({"age": {"type": "integer", "min": 0, "max": 99, "coarse": 5}, "left": 2, "right": 3},
    ...     combine={"sides": ["left", "right"]})
    >>> codec = Codec(schema)
    >>> schema.domain, codec.base, codec.domain
    (Domain(age: 100, left: 2, right: 3), Domain(age: 100, left: 2, right: 3, sides: 6), Domain(age: 5, sides: 6))
    >>> batch = {"left": pa.chunked_array([[0, 1]]), "right": pa.chunked_array([[2, 1]])}
    >>> codec.codes(batch, ["sides"])
    {'sides': array([2, 4], dtype=uint8)}
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.attributes = Attributes({name: schema.columns[name] for name in schema.domain}, schema.combined)

    @property
    def domain(self) -> Domain:
        """The attributes that mechanisms see: columns, coarse groups of their values, and combined columns."""
        return self.attributes.domain

    @property
    def base(self) -> Domain:
        """The domain of encoding and counting: the modelled columns, and an attribute for each set of combined ones."""
        return self.attributes.base

    @property
    def maps(self) -> Maps:
        """The maps from `base` to `domain`."""
        return self.attributes.maps

    @property
    def ordinal(self) -> frozenset[str]:
        """The attributes of `domain` whose codes have an order."""
        return frozenset(name for name in self.domain if name in self.schema.ordinal)

    @cached_property
    def axes(self) -> dict[str, npt.NDArray[np.float64]]:
        """For each ordered attribute of `domain` the starts of its values, and the end of the last; without missing.

        Examples
        --------
        >>> Codec(Schema({"age": {"type": "integer", "bins": [0, 1, 18, 99], "missing": True}})).axes
        {'age': array([  0.,   1.,  18., 100.])}
        """
        found = {}
        for name in self.ordinal:
            column, groups = self.schema.columns[name], self.attributes.groups.get(name)
            starts = np.arange(column.size + 1) if column.starts is None else np.asarray(column.starts)
            if groups is not None:
                groups = groups[: column.size]
                if (np.diff(groups) < 0).any():
                    continue
                starts = starts[np.append(np.flatnonzero(np.diff(groups, prepend=-1)), column.size)]
            found[name] = starts.astype(np.float64)
        return dict(sorted(found.items()))

    @property
    def amounts(self) -> dict[str, npt.NDArray[np.float64]]:
        """The number that each code of an ordinal attribute of `domain` stands for; not a number for missing.

        Examples
        --------
        >>> age = {"type": "integer", "min": 0, "max": 3, "coarse": 2, "missing": True}
        >>> Codec(Schema({"age": age})).amounts
        {'age': array([0.5, 2.5, nan])}
        """
        return {name: self._amounts(name) for name in sorted(self.ordinal)}

    def _amounts(self, name: str) -> npt.NDArray[np.float64]:
        column = self.schema.columns[name]
        known = np.arange(column.size, dtype=np.float64) if column.amounts is None else column.amounts
        every: npt.NDArray[np.float64] = np.concatenate([known, [np.nan] * bool(column.missing)])
        if name not in self.attributes.groups:
            return every
        groups, there = self.attributes.groups[name], np.isfinite(every)
        sums, sizes = np.bincount(groups, np.where(there, every, 0.0)), np.bincount(groups, there)
        means: npt.NDArray[np.float64] = np.divide(sums, sizes, out=np.full(sums.size, np.nan), where=sizes > 0)
        return means

    @property
    def max_records_per_person(self) -> int:
        """The maximum number of rows of one person."""
        return self.schema.max_records_per_person

    @property
    def coarse(self) -> tuple[str, ...]:
        """The columns that are coarse in joint tables; a fine 1-way of each is released as well."""
        return tuple(self.attributes.groups)

    @cached_property
    def zeros(self) -> dict[Clique, npt.NDArray[np.bool_]]:
        """Structural zeros: for cliques of `domain`, the cells that no allowed row can occupy.

        Examples
        --------
        >>> schema = Schema({"child": {"type": "boolean"}, "wed": {"type": "boolean"}},
        ...     constraints=[{"forbid": {"child": True, "wed": True}}])
        >>> Codec(schema).zeros
        {('child', 'wed'): array([[False, False],
               [False,  True]])}
        """
        return forbidden_cells(self.schema.constraints, self.attributes)

    @property
    def constrained(self) -> list[str]:
        """The columns of constraints and of lists of combinations, in the order of the schema."""
        inside = {name for part in self.schema.parts for name in part.kinds}
        return [name for name in self.schema.domain if name in inside]

    def needed(self, attributes: Sequence[str]) -> list[str]:
        """Return the columns from which attributes of `base` are encoded."""
        columns = self.attributes.needed(attributes)
        return list(
            dict.fromkeys([*columns, *(other for name in columns for other in self.schema.columns[name].beside)])
        )

    def codes(self, batch: Mapping[str, pa.ChunkedArray], attributes: Sequence[str]) -> dict[str, Codes]:
        """Return the codes of attributes of `base` in a batch that has their columns.

        A value that does not fit raises a SchemaError that names its column and the rule. `check_codes` checks
        constraints and combinations.
        """
        columns = {}
        for name in self.attributes.needed(attributes):
            column, report = self.schema.columns[name], refuse(name)
            columns[name] = column.encode(column.values_in(name, with_plain(self.schema, name, batch), report), report)
        return {
            name: columns[name] if name in columns else self.attributes.combine(name, columns) for name in attributes
        }

    def adopt(self, records: Records) -> Records:
        """Return records as records of this schema; they must be over its domain."""
        if records.domain != self.schema.domain:
            raise DomainError("the records have another domain than the schema: names, sizes or order differ")
        k = self.max_records_per_person
        if records.max_records_per_person > k:
            raise SchemaError(
                f"the records allow {records.max_records_per_person} rows a person, the schema {k}; declare the larger "
                "number in the schema"
            )
        if records.max_records_per_person == k:
            return records
        return Records({name: records[name] for name in records}, records.domain, max_records_per_person=k)

    def extend(self, records: Records) -> Records:
        """Return records over the columns as records over `base`."""
        if not self.attributes.combined:
            return records
        codes = {name: records[name] for name in records}
        codes.update({name: self.attributes.combine(name, codes) for name in self.attributes.combined})
        return Records(codes, self.base, max_records_per_person=records.max_records_per_person)

    def recode(self, records: Records) -> Records:
        """Return records over the columns as records over `domain`."""
        return self.extend(records).view(self.maps, self.domain)

    def restore(
        self,
        records: Records,
        fine: Sequence[Measurement],
        rng: np.random.Generator,
        kept: Mapping[str, Codes] | None = None,
    ) -> Records:
        """Return synthetic records over `domain` as records over the columns, without violations of constraints.

        Parameters
        ----------
        records
            Synthetic records over `domain`.
        fine
            The fine 1-ways of coarse columns, by which groups are split.
        rng
            Splits coarse groups and repairs rows.
        kept
            Columns that are known already: they get these codes, whatever constraints say.
        """
        if self.attributes.changes:
            records = self.attributes.split(records, fine, int(rng.integers(2**63)))
        if kept:
            records = Records({name: kept.get(name, records[name]) for name in records}, records.domain)
        parts = self.schema.parts
        return repair(records, parts, rng, self.attributes.groups, kept or ()) if parts else records

    def decode(
        self,
        records: Records,
        types: Mapping[str, pa.DataType | None],
        rng: np.random.Generator,
        *,
        first: int = 0,
        total: int | None = None,
        counts: Mapping[str, npt.NDArray[np.int64]] | None = None,
        persons: npt.NDArray[np.int64] | None = None,
        known: Mapping[str, pa.Array] | None = None,
    ) -> dict[str, pa.Array]:
        """Return the columns of a synthetic table, or of some of its rows.

        Parameters
        ----------
        records
            Records over the columns, as `restore` returns them.
        types
            The Arrow types of columns, where given.
        rng
            Draws numbers and dates inside their bins.
        first, total
            The position of the first row in the table, and the table's number of rows: identifiers count all of them.
        counts
            How many rows of the whole table have each code of a column (`counts_of`); by default of these records.
        persons
            The person of each of these records, numbered over the whole table; by default each has its own.
        known
            Columns whose values are known, not only their codes; what is generated from them comes after them.
        """
        rows = range(first, first + len(records))
        columns = with_person(self.schema.columns, self.schema.person)
        codes = {name: records[name] for name in records}
        some = SyntheticRows(
            codes=codes,
            columns=columns,
            numbers=rows,
            total=len(records) if total is None else total,
            rng=rng,
            counts=self.counts_of(records) if counts is None else counts,
            person=None if persons is None else self.schema.person,
            persons=persons,
        )
        made: dict[str, pa.Array | None] = {}
        while len(made) < len(columns):  # those that are generated from others come after them
            ready = {
                name: column for name, column in columns.items() if name not in made and {*column.beside} <= {*made}
            }
            if not ready:
                raise SchemaError(f"columns {', '.join(map(repr, columns.keys() - made.keys()))} wait for each other")
            some = replace(some, made={name: values for name, values in made.items() if values is not None})
            made.update({name: column.make(name, some, types.get(name)) for name, column in ready.items()})
            for name, values in (known or {}).items():  # before what is generated from them
                if name in ready and (drawn := made[name]) is not None:
                    made[name] = typed_as(columns[name], values, drawn.type)
        return {name: values for name in columns if (values := made[name]) is not None}

    def counts_of(self, records: Records) -> dict[str, npt.NDArray[np.int64]]:
        """Return how many records have each code of each column in bins."""
        binned = [name for name in records if isinstance(self.schema.columns[name], Binned)]
        return {name: np.bincount(records[name], minlength=records.domain[name]) for name in binned}

    def without_zeros(self, measurements: Iterable[Measurement]) -> tuple[Measurement, ...]:
        """Return measurements over `domain` with 0 in cells that no allowed row can occupy."""
        return without_zeros(measurements, self.schema.constraints, self.attributes)

    def over_columns(self, measurements: Iterable[Measurement]) -> list[Measurement]:
        """Return measurements over `domain` as measurements over the columns; those without such a form are left out.

        Examples
        --------
        >>> columns = {"age": {"type": "integer", "min": 0, "max": 3, "coarse": 2}, "left": 2, "right": 2}
        >>> codec = Codec(Schema(columns, combine={"sides": ["left", "right"]}))
        >>> (seen,) = codec.over_columns([Measurement(("age", "sides"), np.ones((2, 4)), 1.0)])
        >>> seen.clique, seen.values.shape, seen.buckets["age"].tolist()
        (('age', 'left', 'right'), (2, 2, 2), [0, 0, 1, 1])
        """
        seen = [self.attributes.over_columns(one) for one in measurements]
        return [one for one in seen if one is not None]

    def misfits(self, names: Collection[str]) -> list[str]:
        """Return a sentence for each declared column that a table lacks, and for each of its columns not declared."""
        return misfits(self.schema, names)

    def check(self, batch: Mapping[str, pa.ChunkedArray]) -> list[str]:
        """Return a sentence for each rule that a batch breaks, without any value."""
        problems, codes = column_problems(self.schema, batch)
        return [*problems, *self.violations(codes)]

    def violations(self, codes: Mapping[str, Codes]) -> list[str]:
        """Return a sentence for each constraint or list of combinations that a row with these codes violates.

        Combinations that are not listed are no violation if `others` is declared, nor are violations of a constraint
        with ``violations: keep``. Constraints on columns that are not given are skipped.
        """
        settled, problems = self.attributes.settle(codes)
        for one in self.schema.constraints:
            if not one.keep and set(one.columns) <= set(settled) and not one.holds(settled).all():
                problems.append(
                    f"the table has a row that violates {one}; correct the table or the constraint, or write "
                    "`violations: keep` to count such rows as they are"
                )
        return problems

    def check_codes(self, codes: Mapping[str, Codes]) -> None:
        """Raise a SchemaError if a row with these codes violates a constraint or a list of combinations."""
        for problem in self.violations({name: codes[name] for name in self.constrained}):
            raise SchemaError(problem)

    def check_types(self, types: Mapping[str, pa.DataType | None]) -> None:
        """Raise unless every bin of a constrained column has values of the table's type."""
        for name in sorted(self.constrained):
            column, dtype = self.schema.columns[name], types.get(name)
            codes = np.arange(column.cardinality, dtype=code_dtype(column.cardinality))
            made = column.decode(codes, dtype, np.random.default_rng(0))
            if (column.encode(pa.chunked_array([made]), lambda _rule, _fix: None) != codes).any():
                raise SchemaError(
                    f"column {name!r} has a bin without any value of type {dtype}, so constraints on it cannot be "
                    "kept; declare it as integer, or give it wider `bins`"
                )

    def __repr__(self) -> str:
        return f"Codec of {self.schema.domain!r} to {self.domain!r}"


def typed_as(column: Column, values: pa.Array, dtype: pa.DataType) -> pa.Array:
    """Return given values of a column in the type of the table."""
    values = column.plain(pa.chunked_array([values])).combine_chunks()
    if pa.types.is_dictionary(dtype):
        return typed_as(column, values, dtype.value_type).dictionary_encode()
    if is_time(values.type):
        return as_type(values.cast(column.arrow_type) if column.arrow_type else values, dtype)
    try:
        return values.cast(dtype)
    except (pa.ArrowException, NotImplementedError):
        return values


def with_person(columns: Mapping[str, Column], person: str | None) -> dict[str, Column]:
    """Return the columns of a table; a person column that is not declared comes first, as an identifier."""
    return dict(columns) if person is None or person in columns else {person: Identifier(), **columns}
