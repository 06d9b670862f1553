"""What is public about a table: its columns and their values.

A schema is declared, never read off the data. It turns a source into `Records` and synthetic records back into the kind
of table that the source was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import copy
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from chicle._checks import integer
from chicle.columns import Coded, Column, Drop
from chicle.columns.base import refuse
from chicle.columns.declare import unknown
from chicle.counting.records import Codes, Records
from chicle.domain import Clique, Domain
from chicle.errors import DomainError, SchemaError
from chicle.schema.check import Check, check_frame
from chicle.schema.constraints import Constraint
from chicle.schema.declared import (
    check_determined,
    check_person,
    columns_from,
    described,
    max_records_from,
    with_order,
)
from chicle.schema.decode import columns_of, with_person
from chicle.schema.files import read_declaration, write_declaration
from chicle.schema.joint import Joint
from chicle.schema.recode import Recoding
from chicle.sources.frames import Form
from chicle.sources.source import Source, unread

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
        By a new name, columns that are modelled as one attribute; see `chicle.schema.recode`.
    constraints
        Which combinations of values no row has; see `chicle.schema.constraints`. No synthetic row ever violates one.

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
        self._columns = with_order(columns_from(columns), ordinal)
        self._max_records_per_person = integer("max_records_per_person", max_records_per_person, 1, 2**31)
        self._person = person
        if not isinstance(reviewed, bool):
            raise SchemaError(f"reviewed must be true or false, not {reviewed!r}")
        self._reviewed = reviewed
        self._comments = dict(comments or {})
        check_person(person, self._columns)
        check_determined(self._columns)
        modelled = {name: column.cardinality for name, column in self._columns.items() if column.modelled}
        if not modelled:
            raise SchemaError("no column is modelled; declare at least one that is neither dropped nor made afterwards")
        self._domain = Domain(modelled)
        self._ordinal = frozenset(name for name in modelled if self._columns[name].ordered)
        self._joint = Joint(self._columns, combine, constraints)

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
            max_records_per_person=max_records_from(declaration.get("max_records", 1)),
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
        return {**told, **self._joint.to_dict()}

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
        recoding = self._joint.recoding
        if not recoding.changes:
            return self
        made = Schema(dict(recoding.domain), recoding.ordinal, self._max_records_per_person)
        made.zeros = self.zeros
        return made

    @cached_property
    def zeros(self) -> dict[Clique, npt.NDArray[np.bool_]]:
        """Structural zeros: for cliques that mechanisms see, which of their cells constraints leave to no row.

        Examples
        --------
        >>> schema = Schema({"child": {"type": "boolean"}, "wed": {"type": "boolean"}},
        ...     constraints=[{"forbid": {"child": True, "wed": True}}])
        >>> schema.zeros
        {('child', 'wed'): array([[False, False],
               [False,  True]])}
        """
        return self._joint.zeros

    @property
    def joint(self) -> Joint:
        """What is declared of several columns, and what it does to records and measurements."""
        return self._joint

    @property
    def recoding(self) -> Recoding:
        """The maps between the columns and what mechanisms see."""
        return self._joint.recoding

    @property
    def coarse(self) -> tuple[str, ...]:
        """The columns that are coarse in the joint work; a fine 1-way of each is released beside it."""
        return tuple(self._joint.recoding.groups)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Which combinations of values no row has."""
        return self._joint.constraints

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
        return self._but({**self._columns, **columns}, reviewed=self._reviewed)

    @property
    def reviewed(self) -> bool:
        """Whether a person vouches that all this is public."""
        return self._reviewed

    def mark_reviewed(self) -> Schema:
        """Return the same schema, reviewed: you vouch that nothing in it was learnt from the private table alone."""
        return self._but(self._columns, reviewed=True)

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
        vars(nobody).update(_person=None, _columns=with_person(self._columns, self._person))
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

    def codes(self, columns: Mapping[str, pa.ChunkedArray], attributes: Iterable[str]) -> dict[str, Codes]:
        """Return the codes of attributes in a batch that has their columns."""
        return {name: self._columns[name].encode(columns[name], refuse(name)) for name in attributes}

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
        made = self._made(records, form, rng, range(len(records)), len(records))
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
            made = self._made(part, plain, rng, range(i * rows, i * rows + len(part)), len(records))
            yield plain.frame(made)

    def check_rows(self, source: Any) -> None:  # noqa: ANN401
        """Raise a SchemaError if a row of a source violates what is declared of several columns.

        Parameters
        ----------
        source
            A `Source` of raw columns, read batch by batch, or `Records` over this schema's domain.
        """
        names = [name for name in self._domain if name in self._joint.constrained]
        if not names:
            return
        for batch in source.batches(names):
            codes = {name: batch[name] for name in names} if isinstance(source, Records) else self.codes(batch, names)
            for problem in self._joint.violations(codes):
                raise SchemaError(problem)

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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self._domain, self._max_records_per_person, self._person))

    def __repr__(self) -> str:
        width = max(len(name) for name in self._columns)
        lines = [f"  {name:<{width}}  {described(column)}" for name, column in self._columns.items()]
        who = f"{self._max_records_per_person} a person" + (f", by {self._person!r}" if self._person else "")
        draft = [] if self._reviewed else [_DRAFT]
        lines += [f"  {name}: combines {', '.join(one.columns)}" for name, one in self.recoding.combined.items()]
        lines += [f"  never violated: {one}" for one in self.constraints]
        return "\n".join([*draft, f"Schema of {len(self._columns)} columns, rows: {who}", *lines])

    def _but(self, columns: Mapping[str, Column], *, reviewed: bool) -> Schema:
        """Return the same schema with other columns, reviewed or not."""
        return Schema(
            columns,
            max_records_per_person=self._max_records_per_person,
            person=self._person,
            reviewed=reviewed,
            comments=self._comments,
            **self._joint.to_dict(),
        )

    def _made(
        self, records: Records, form: Form, rng: np.random.Generator, rows: range, total: int
    ) -> dict[str, pa.Array]:
        """Return the columns of a synthetic table, or of some of its rows."""
        return columns_of(with_person(self._columns, self._person), records, form.types, rng, rows=rows, total=total)
