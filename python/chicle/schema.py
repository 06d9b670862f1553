"""What is public about a table: its columns and their values.

A schema is declared, never read off the data. It turns a source into `Records` and synthetic records back into the kind
of table that the source was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from chicle._checks import integer
from chicle.check import Check, check_frame
from chicle.columns import Coded, Column, Determined, Drop, Identifier, column_from_dict
from chicle.columns.base import is_unicode, refuse
from chicle.columns.declare import unknown
from chicle.constraints import Constraint, constraints_from
from chicle.domain import Domain
from chicle.errors import DomainError, SchemaError
from chicle.files import read_declaration, write_declaration
from chicle.frames import Form
from chicle.measure import Measurement
from chicle.recode import Recoding, combined_from
from chicle.records import Codes, Records, Rows, code_dtype
from chicle.repair import connected, repair
from chicle.sources.source import Source, unread
from chicle.zeros import without_zeros

__all__ = ["Schema"]

_VERSION = 1
_KEYS = ("chicle", "reviewed", "person", "max_records", "columns", "combine", "constraints")
_DRAFT = (
    "DRAFT, NOT PRIVATE: this schema was read from the data. Review every line, replace what only the data told by "
    "what is public knowledge, then set `reviewed: true`."
)


class Schema:
    """The declared columns of a table.

    Parameters
    ----------
    columns
        For each column its declaration: a column of `chicle.columns`, a mapping such as
        ``{"type": "integer", "min": 0, "max": 99}``, or a number of codes for a column that holds codes already.
    ordinal
        Which of the coded columns have an order.
    max_records_per_person
        How many rows one person may have at most; the sensitivity of every release follows from it.
    person
        The column that tells whose row it is; the first `max_records_per_person` rows of each are kept. It is never
        modelled. Without it, that no person has more rows is an assumption.
    reviewed
        Whether a person vouches that all this is public; drafts are not, and `fit` refuses them.
    comments
        Remarks on columns, for the saved file.
    combine
        By a new name, columns that are modelled as one attribute; see `chicle.recode`.
    constraints
        Which combinations of values no row has; see `chicle.constraints`. No synthetic row ever violates one.

    Examples
    --------
    >>> schema = Schema({
    ...     "age": {"type": "integer", "min": 0, "max": 99, "bins": 20},
    ...     "sex": {"type": "categorical", "values": ["f", "m"], "missing": True},
    ... })
    >>> schema.domain
    Domain(age: 20, sex: 3)
    >>> records = schema.encode({"age": [31, 4, 77], "sex": ["m", None, "f"]})
    >>> records["age"], records["sex"]
    (array([ 6,  0, 15], dtype=uint8), array([1, 2, 0], dtype=uint8))
    """

    def __init__(
        self,
        columns: Mapping[str, Column | Mapping[str, Any] | int],
        ordinal: Iterable[str] = (),
        max_records_per_person: int = 1,
        *,
        person: str | None = None,
        reviewed: bool = True,
        comments: Mapping[str, str] | None = None,
        combine: Mapping[str, Any] | None = None,
        constraints: Iterable[Mapping[str, Any]] | None = None,
    ) -> None:
        if not isinstance(columns, Mapping):
            raise SchemaError(f"columns must be a mapping from name to declaration, not a {type(columns).__name__}")
        declared = {_name(name): _declared(name, told) for name, told in columns.items()}
        self._columns = _with_order(declared, ordinal)
        self._max_records_per_person = integer("max_records_per_person", max_records_per_person, 1, 2**31)
        self._person = person
        if not isinstance(reviewed, bool):
            raise SchemaError(f"reviewed must be true or false, not {reviewed!r}")
        self._reviewed = reviewed
        self._comments = dict(comments or {})
        self._check()
        modelled = {name: column.cardinality for name, column in self._columns.items() if column.modelled}
        if not modelled:
            raise SchemaError("no column is modelled; declare at least one that is neither dropped nor made afterwards")
        self._domain = Domain(modelled)
        self._ordinal = frozenset(name for name in modelled if self._columns[name].ordered)
        self._constraints = constraints_from([] if constraints is None else constraints, self._columns)
        combined = combined_from({} if combine is None else combine, self._columns)
        self._recoding = Recoding({name: self._columns[name] for name in modelled}, combined, self._constraints)
        listed = [one.listed for one in combined.values() if one.listed is not None]
        self._parts = connected([*self._constraints, *listed], self._domain)

    @classmethod
    def from_cardinalities(
        cls,
        cardinalities: Mapping[str, int],
        *,
        ordinal: Iterable[str] = (),
        max_records_per_person: int = 1,
    ) -> Schema:
        """Return the schema of a coded table: each column holds codes ``0..cardinality-1``.

        Examples
        --------
        >>> Schema.from_cardinalities({"age": 100, "sex": 2}, ordinal=["age"]).domain
        Domain(age: 100, sex: 2)
        """
        return cls(dict(Domain(cardinalities)), ordinal, max_records_per_person)

    @classmethod
    def from_dict(cls, declaration: Mapping[str, Any]) -> Schema:
        """Return the schema of a declaration in plain data, as `to_dict` gives it.

        Examples
        --------
        >>> Schema.from_dict({"columns": {"smoker": {"type": "boolean"}}}).domain
        Domain(smoker: 2)
        """
        if not isinstance(declaration, Mapping):
            raise SchemaError(f"a schema is a mapping with `columns:`, not a {type(declaration).__name__}")
        for key in declaration:
            if key not in _KEYS:
                raise SchemaError(f"a schema has no {key!r}; {unknown(str(key), _KEYS)}")
        version = declaration.get("chicle", _VERSION)
        if version != _VERSION or isinstance(version, bool):
            raise SchemaError(f"chicle: {version!r} is no version of schemas that is known here; this one writes 1")
        if "columns" not in declaration:
            raise SchemaError("the schema declares no columns; write `columns:` and a line for each")
        return cls(
            declaration["columns"],
            max_records_per_person=_records(declaration.get("max_records", 1)),
            person=declaration.get("person"),
            reviewed=declaration.get("reviewed", True),
            combine=declaration.get("combine"),
            constraints=declaration.get("constraints"),
        )

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Return the schema that a YAML or JSON file declares."""
        declaration = read_declaration(path)
        try:
            return cls.from_dict(declaration)
        except SchemaError as error:
            raise SchemaError(f"{path}: {error}") from None

    def save(self, path: str | Path) -> None:
        """Write the schema to a file: JSON if its name ends in ``.json``, else YAML, with comments."""
        header = _DRAFT if not self._reviewed else None
        write_declaration(path, self.to_dict(), header=header, comments=self._comments)

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain data, for YAML and JSON."""
        told: dict[str, Any] = {"chicle": _VERSION, "reviewed": self._reviewed}
        if self._person is not None:
            told["person"] = self._person
        if self._person is not None or self._max_records_per_person > 1:
            told["max_records"] = self._max_records_per_person
        told["columns"] = {name: column.to_dict() for name, column in self._columns.items()}
        return {**told, **self._declared_joint()}

    @property
    def columns(self) -> Mapping[str, Column]:
        """The declared columns, those that are not modelled among them."""
        return MappingProxyType(self._columns)

    @property
    def domain(self) -> Domain:
        """The modelled columns and how many codes each has: what records of this schema are over."""
        return self._domain

    @cached_property
    def model(self) -> Schema:
        """The schema of what mechanisms see: coarse groups, and columns combined; this one, where there are none.

        Examples
        --------
        >>> schema = Schema({"age": {"type": "integer", "min": 0, "max": 99, "coarse": 5}, "left": 2, "right": 3},
        ...     combine={"sides": ["left", "right"]})
        >>> schema.domain, schema.model.domain
        (Domain(age: 100, left: 2, right: 3), Domain(age: 5, sides: 6))
        """
        if not self._recoding.changes:
            return self
        return Schema(dict(self._recoding.domain), self._recoding.ordinal, self._max_records_per_person)

    @property
    def recoding(self) -> Recoding:
        """The maps between the columns and what mechanisms see."""
        return self._recoding

    @property
    def coarse(self) -> tuple[str, ...]:
        """The columns that are coarse in the joint work; a fine 1-way of each is released beside it."""
        return tuple(self._recoding.groups)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Which combinations of values no row has."""
        return self._constraints

    @property
    def ordinal(self) -> frozenset[str]:
        """Attributes whose codes have an order, so that neighbouring codes may be treated alike."""
        return self._ordinal

    @property
    def max_records_per_person(self) -> int:
        """How many rows one person may have at most."""
        return self._max_records_per_person

    @property
    def person(self) -> str | None:
        """The column that tells whose row it is."""
        return self._person

    @property
    def dropped(self) -> list[str]:
        """The columns of which nothing is needed, so that nothing in them can fail."""
        return [name for name, column in self._columns.items() if isinstance(column, Drop) and name != self._person]

    @property
    def coded(self) -> bool:
        """Whether a table of this schema holds codes and nothing else, as `Records` do."""
        return self._person is None and all(
            type(column) is Coded and not column.missing for column in self._columns.values()
        )

    @property
    def undiscovered(self) -> tuple[str, ...]:
        """The columns that leave values or bins to be discovered; their cardinality is the most that there may be."""
        return tuple(name for name in self._domain if self._columns[name].undiscovered)

    def discovered(self, columns: Mapping[str, Column]) -> Schema:
        """Return the same schema with some columns declared in full."""
        return Schema(
            {**self._columns, **columns},
            max_records_per_person=self._max_records_per_person,
            person=self._person,
            reviewed=self._reviewed,
            comments=self._comments,
            **self._declared_joint(),
        )

    @property
    def reviewed(self) -> bool:
        """Whether a person vouches that all this is public."""
        return self._reviewed

    def mark_reviewed(self) -> Schema:
        """Return the same schema, reviewed: you vouch that nothing in it was learnt from the private table alone."""
        return Schema(
            self._columns,
            (),
            self._max_records_per_person,
            person=self._person,
            comments=self._comments,
            **self._declared_joint(),
        )

    def of_synthetic(self) -> Schema:
        """Return the schema of synthetic tables, whose rows are nobody's: it limits no person's rows.

        Examples
        --------
        >>> schema = Schema({"smoker": {"type": "boolean"}}, person="patient")
        >>> len(schema.of_synthetic().encode({"smoker": [True, False]}))
        2
        """
        if self._person is None:
            return self
        nobody = copy(self)
        vars(nobody).update(_person=None, _columns={self._person: Identifier(), **self._columns})
        return nobody

    def check_reviewed(self) -> None:
        """Raise a SchemaError for a draft that nobody has reviewed."""
        if not self._reviewed:
            raise SchemaError(
                "this schema is a draft that was read from the data, which is not private; review it, then set "
                "`reviewed: true` in its file or call schema.mark_reviewed()"
            )

    def check_discovered(self) -> None:
        """Raise a SchemaError if a column leaves values or bins to be discovered."""
        for name in self.undiscovered:
            raise SchemaError(
                f"column {name!r} is yet to be discovered, by a fit; declare its values or bins, or take the schema of "
                "the release"
            )

    def encode(self, source: Any) -> Records:  # noqa: ANN401 - any data frame, without importing them all
        """Return a source as records over this schema's domain."""
        return self.read(source)[0]

    def read(self, source: Any) -> tuple[Records, Form]:  # noqa: ANN401
        """Return a source as records, and the form in which `decode` should give such a table back."""
        opened = Source(source, self)
        return opened.records(self), opened.form

    def needed(self, attributes: Iterable[str] | None = None) -> list[str]:
        """Return the columns of a table that the codes of attributes, by default of all, are made of."""
        return list(self._domain if attributes is None else attributes)

    def codes(
        self, columns: Mapping[str, pa.ChunkedArray], attributes: Iterable[str] | None = None
    ) -> dict[str, Codes]:
        """Return the codes of attributes, by default of all, in a batch that has the columns which they need."""
        names = self._domain if attributes is None else attributes
        return {name: self._columns[name].encode(columns[name], refuse(name)) for name in names}

    def adopt(self, source: Records) -> Records:
        """Return records as those of a table of this schema, if they are over its domain."""
        if source.domain != self._domain:
            raise DomainError("the records have another domain than the schema: names, sizes or order differ")
        if source.max_records_per_person > self._max_records_per_person:
            raise SchemaError(
                f"the records allow {source.max_records_per_person} rows a person, the schema "
                f"{self._max_records_per_person}; declare the larger number in the schema"
            )
        if source.max_records_per_person == self._max_records_per_person:
            return source
        columns = {name: source[name] for name in source}
        return Records(columns, self._domain, max_records_per_person=self._max_records_per_person)

    def decode(self, records: Records, form: Form | None = None, *, rng: np.random.Generator | None = None) -> Any:  # noqa: ANN401
        """Return records as a table.

        Parameters
        ----------
        records
            Over this schema's domain; synthetic ones, if the table is to be shown to anyone.
        form
            The kind of table, as `read` gives it; a pyarrow table by default.
        rng
            Draws numbers and dates inside their bins.

        Examples
        --------
        >>> schema = Schema({"age": {"type": "integer", "min": 0, "max": 99, "bins": 20}})
        >>> records = schema.encode({"age": [31, 4, 77]})
        >>> schema.decode(records, rng=np.random.default_rng(0))["age"].to_pylist()
        [34, 3, 77]
        """
        if form is not None and form.kind == "records":
            return records
        form = Form("pyarrow") if form is None else form
        rng = np.random.default_rng() if rng is None else rng
        made = self._columns_of(records, range(len(records)), len(records), form, rng)
        return form.frame(made, nullable=[name for name, column in self._columns.items() if column.missing])

    def decode_parts(self, records: Records, form: Form, *, rows: int, rng: np.random.Generator) -> Iterator[pa.Table]:
        """Give records as Arrow tables of so many rows, one after the other; there is at least one.

        Parameters
        ----------
        records, rng
            As for `decode`.
        form
            The types of the table.
        rows
            Most rows of a part.
        """
        plain = Form("pyarrow", form.types)
        for i, part in enumerate(records.pieces(rows)):
            made = self._columns_of(part, range(i * rows, i * rows + len(part)), len(records), plain, rng)
            yield plain.frame(made)

    def violations(self, codes: Mapping[str, Codes]) -> list[str]:
        """Return what is declared of several columns, and violated by a row with these codes of theirs.

        Rows of combinations that are not listed are no violation where `others` says what they get, nor are rows that
        violate a constraint which says ``violations: keep``. What is said of columns that are not given is passed over.
        """
        settled, problems = self._recoding.settle(codes)
        for one in self._constraints:
            if not one.keep and set(one.columns) <= set(settled) and not one.holds(settled).all():
                problems.append(
                    f"the table has a row that violates {one}; correct the table or the constraint, or write "
                    "`violations: keep` to count such rows as they are"
                )
        return problems

    def check_rows(self, source: Any) -> None:  # noqa: ANN401
        """Raise a SchemaError if a row of a source violates what is declared of several columns.

        Parameters
        ----------
        source
            A `Source` of raw columns, read batch by batch, or `Records` over this schema's domain.
        """
        inside = {name for part in self._parts for name in part.kinds}
        names = [name for name in self._domain if name in inside]
        if not names:
            return
        for batch in source.batches(self.needed(names)):
            codes = {name: batch[name] for name in names} if isinstance(source, Records) else self.codes(batch, names)
            for problem in self.violations(codes):
                raise SchemaError(problem)

    def recode(self, records: Rows) -> Rows:
        """Return records over the columns as records over `model`, which mechanisms see: each row by itself.

        Rows of combinations that are not listed get that of `others`.
        """
        return self._recoding.over(records) if self._recoding.changes else records

    def check_form(self, form: Form) -> None:
        """Raise unless every bin of a column under a constraint has values of the type that the table will have."""
        constrained = {name for part in self._parts for name in part.kinds} if form.kind != "records" else set()
        for name in sorted(constrained):
            column, dtype = self._columns[name], form.types.get(name)
            codes = np.arange(column.cardinality, dtype=code_dtype(column.cardinality))
            made = column.decode(codes, dtype, np.random.default_rng(0))
            if (column.encode(pa.chunked_array([made]), lambda _rule, _fix: None) != codes).any():
                raise SchemaError(
                    f"column {name!r} has a bin without any value of type {dtype}, so no constraint on it could be "
                    "kept; declare it as integer, or give it wider `bins`"
                )

    def restore(self, records: Records, fine: Sequence[Measurement], rng: np.random.Generator) -> Records:
        """Return synthetic records over `model` as records over the columns, none of which violates a constraint.

        Parameters
        ----------
        records
            Synthetic records over ``model.domain``.
        fine
            The fine 1-ways of coarse columns.
        rng
            Draws what coarse groups hide, and mends rows.
        """
        if self._recoding.changes:
            records = self._recoding.decode(records, fine, int(rng.integers(2**63)))
        return repair(records, self._parts, rng, self._recoding.groups) if self._parts else records

    def without_zeros(self, measurements: Iterable[Measurement]) -> tuple[Measurement, ...]:
        """Return measurements over `model`, 0 in cells that constraints leave to no row."""
        return without_zeros(measurements, self._constraints, self._recoding)

    def over_columns(self, measurements: Iterable[Measurement]) -> list[Measurement]:
        """Return measurements over `model` as measurements over the columns, those that can be.

        Examples
        --------
        >>> schema = Schema({"age": {"type": "integer", "min": 0, "max": 3, "coarse": 2}, "left": 2, "right": 2},
        ...     combine={"sides": ["left", "right"]})
        >>> (seen,) = schema.over_columns([Measurement(("age", "sides"), np.ones((2, 4)), 1.0)])
        >>> seen.clique, seen.values.shape, seen.coarsening["age"].tolist()
        (('age', 'left', 'right'), (2, 2, 2), [0, 0, 1, 1])
        """
        seen = [self._recoding.over_columns(one) for one in measurements]
        return [one for one in seen if one is not None]

    def check(self, source: Any) -> Check:  # noqa: ANN401
        """Return what of a table does not fit this schema, by column and rule, without any value of it.

        Takes what `chicle.sources.Source` takes; files and batches are looked at one after the other.

        Examples
        --------
        >>> schema = Schema({"age": {"type": "integer", "min": 0, "max": 99}, "smoker": {"type": "boolean"}})
        >>> print(schema.check({"age": [31, None, 177], "note": ["a", "b", "c"]}))
        The table does not fit the schema:
          column 'smoker' is declared but not in the table; leave it out of the schema, or add it to the table
          column 'note' is not declared; declare it, or write `note: {type: drop}`
          column 'age' has missing values; write `missing: true` to make missing a value of its own, or fill them first
          column 'age' has a number outside its bounds; widen `min` and `max`, or write `outside: clamp`
        """
        problems: dict[str, None] = {}
        for batch in unread(source, self):
            problems.update(dict.fromkeys(check_frame(self, batch).problems))
        return Check(tuple(problems))

    def misfits(self, table: Collection[str]) -> list[str]:
        """Return which columns are declared but not in a table of these, or there but not declared."""
        needed = [*self._domain, *([] if self._person is None else [self._person])]
        absent = [
            f"column {name!r} is declared but not in the table; leave it out of the schema, or add it to the table"
            for name in needed
            if name not in table
        ]
        strange = [
            f"column {name!r} is not declared; declare it, or write `{name}: {{type: drop}}`"
            for name in table
            if name not in self._columns and name != self._person
        ]
        return absent + strange

    def promise(self, source: Any) -> str:  # noqa: ANN401
        """Return what the privacy unit of a fit on this source is: how many rows of a person, and what sees to it.

        Examples
        --------
        >>> schema = Schema({"smoker": {"type": "boolean"}}, person="patient")
        >>> schema.promise({"smoker": [True, False], "patient": [1, 2]})
        "Protects every person: of each value of 'patient' at most one row was kept."
        """
        k = self._max_records_per_person
        rows, kept = ("one row", "was kept") if k == 1 else (f"{k} rows", "were kept")
        if self._person is None:
            return f"Protects a person with {rows} at most: an assumption, for no column tells whose row it is."
        if isinstance(source, Records) or (isinstance(source, Source) and source.coded):
            return f"Protects a person with {rows} at most: an assumption, for records do not tell whose row it is."
        return f"Protects every person: of each value of {self._person!r} at most {rows} {kept}."

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self._domain, self._max_records_per_person, self._person))

    def __repr__(self) -> str:
        width = max(len(name) for name in self._columns)
        lines = [f"  {name:<{width}}  {_said(column)}" for name, column in self._columns.items()]
        who = f"{self._max_records_per_person} a person" + (f", by {self._person!r}" if self._person else "")
        draft = [] if self._reviewed else [_DRAFT]
        lines += [f"  {name}: combines {', '.join(one.columns)}" for name, one in self._recoding.combined.items()]
        lines += [f"  never violated: {one}" for one in self._constraints]
        return "\n".join([*draft, f"Schema of {len(self._columns)} columns, rows: {who}", *lines])

    def _check(self) -> None:
        person = self._person
        if person is not None:
            if not isinstance(person, str) or not person:
                raise SchemaError(f"person must be the name of a column, not {person!r}")
            if not isinstance(self._columns.get(person, Identifier()), (Drop, Identifier)):
                raise SchemaError(
                    f"column {person!r}: it is the person column, which is never modelled; "
                    "declare it as identifier or drop, or not at all"
                )
        for name, column in self._columns.items():
            if isinstance(column, Determined):
                source = self._columns.get(column.determined_by)
                if source is None or not source.modelled:
                    raise SchemaError(
                        f"column {name!r}: determined_by names {column.determined_by!r}, which is no modelled column; "
                        f"{unknown(column.determined_by, [n for n, c in self._columns.items() if c.modelled])}"
                    )
                try:
                    column.check_source(source)
                except SchemaError as error:
                    raise SchemaError(f"column {name!r}: {error}") from None

    def _declared_joint(self) -> dict[str, Any]:
        """Return what is declared of several columns, as plain data."""
        combine = {name: dict(one.told) for name, one in self._recoding.combined.items()}
        constraints = [dict(one.told) for one in self._constraints]
        said = {"combine": combine, "constraints": constraints}
        return {key: value for key, value in said.items() if value}

    def _made(self) -> list[str]:
        """Return the columns of a synthetic table."""
        names = [name for name, column in self._columns.items() if not isinstance(column, Drop)]
        return [self._person, *names] if self._person is not None and self._person not in self._columns else names

    def _columns_of(
        self, records: Records, rows: range, of: int, form: Form, rng: np.random.Generator
    ) -> dict[str, pa.Array]:
        """Return the columns of a synthetic table, or of some of its rows."""
        ids = {
            name: column.fresh(rows, of, form.types.get(name))
            for name in self._made()
            if isinstance(column := self._columns.get(name, Identifier()), Identifier)
        }
        return {
            name: ids[name] if name in ids else self._make(name, records, form.types.get(name), rng)
            for name in self._made()
        }

    def _make(self, name: str, records: Records, dtype: pa.DataType | None, rng: np.random.Generator) -> pa.Array:
        column = self._columns[name]
        if isinstance(column, Determined):
            source = column.determined_by
            return column.fill(self._columns[source], records[source], dtype)
        return column.decode(records[name], dtype, rng)


def _name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise SchemaError(f"a column's name must be a text, not {name!r}; quote it")
    if not is_unicode(name):
        raise SchemaError(f"a column's name must be Unicode, not {name!r}; rename it")
    return name


def _declared(name: str, told: Column | Mapping[str, Any] | int) -> Column:
    if isinstance(told, Column):
        return told
    if isinstance(told, int) and not isinstance(told, bool):
        return column_from_dict(name, {"type": "coded", "values": told})
    return column_from_dict(name, told)


def _with_order(columns: dict[str, Column], ordinal: Iterable[str]) -> dict[str, Column]:
    if isinstance(ordinal, str):
        raise SchemaError(f"ordinal is a list of attribute names, not a string; write [{ordinal!r}]")
    named = frozenset(ordinal)
    for name in sorted(named):
        if name not in columns:
            raise SchemaError(f"ordinal names {name!r}, which is not an attribute of this schema")
        column = columns[name]
        if not isinstance(column, Coded):
            raise SchemaError(f"ordinal names {name!r}, which is not coded; declare its own order by its type")
        columns[name] = Coded(values=column.values, ordinal=True, missing=column.missing)
    return columns


def _records(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SchemaError(f"max_records must be an integer of at least 1, not {value!r}")
    return value


def _said(column: Column) -> str:
    most = "up to " if column.undiscovered else ""
    codes = f", {most}{column.cardinality} codes" if column.modelled else ""
    by = f" by {column.determined_by!r}" if isinstance(column, Determined) else ""
    coarse = ", coarse in joint work" if column.coarse is not None else ""
    return f"{column.type}{by}{codes}{', missing is one' if column.missing else ''}{coarse}"
