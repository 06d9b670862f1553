"""The schema: the public declaration of a table's columns and their values.

A schema is declared, never read from the data. It only declares: `chicle.codecs.Codec` encodes tables and decodes
synthetic records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from chicle._checks import integer
from chicle._html import card
from chicle._pandas import data_frame
from chicle.columns import Column
from chicle.columns.declare import unknown
from chicle.domain import Clique, Domain
from chicle.errors import SchemaError
from chicle.presence import Presence
from chicle.schema.combine import Combined, combined_from
from chicle.schema.connected import Part, connected
from chicle.schema.constraints import Constraint, constraints_from
from chicle.schema.declared import (
    check_among,
    check_person,
    columns_from,
    data_from,
    described,
    max_records_from,
    partition_from,
    unlimited,
    with_order,
)
from chicle.schema.files import read_declaration, write_declaration
from chicle.schema.flags import Flags
from chicle.schema.sources import check_sources, with_sources
from chicle.workload import Workload

__all__ = ["Schema"]

_VERSION = 1
_MOST_LINES = 30
_KEYS = ("chicle", "reviewed", "data", "person", "max_records", "columns", "combine", "constraints", "partition")
_DRAFT = (
    "DRAFT, NOT PRIVATE: this schema was read from the data. Review every line, replace what came from the data by "
    "public knowledge, then set `reviewed: true`."
)


class Schema:
    """The declared columns of a table.

    Parameters
    ----------
    columns
        The declaration of each column: a column of `chicle.columns`, a mapping such as
        ``{"type": "integer", "min": 0, "max": 99}``, or the number of codes of a column that holds codes already.
    ordinal
        The coded columns that have an order.
    max_records_per_person
        How many rows one person may have at most; the sensitivity of every release follows from it.
    person
        The column that identifies persons; `max_records_per_person` rows of each person are kept. It is never
        modelled. Without it, the maximum is an assumption.
    keep
        Which of them: the ``"first"`` of each person, or ``"random"`` ones.
    reviewed
        Whether a person confirms that the declaration is public. `fit` refuses drafts, which are not reviewed.
    comments
        Comments on columns, for the saved file.
    flags
        For a draft: what a reviewer should know about each column. They are saved as comments.
    data
        The ``name`` and ``date`` of the data and about how many ``rows`` it has, where these are public, for the
        pages; and when the schema was ``drafted`` from it.
    combine
        For each new name, columns that are modelled as one attribute; see `chicle.schema.combine`.
    constraints
        Combinations of values that no row has; see `chicle.schema.constraints`. No synthetic row violates one.
    partition
        Columns whose joint values form partitions, each of which shall be right by itself; see docs/partitions.md.

    Examples
    --------
    >>> schema = Schema({
    ...     "age": {"type": "integer", "min": 0, "max": 99, "bins": 20},
    ...     "sex": {"type": "categorical", "values": ["f", "m"], "missing": True},
    ... })
    >>> schema.domain
    Domain(age: 20, sex: 3)
    """

    def __init__(
        self,
        columns: Mapping[str, Column | Mapping[str, Any] | int],
        ordinal: Iterable[str] = (),
        max_records_per_person: int = 1,
        *,
        person: str | None = None,
        keep: str = "first",
        reviewed: bool = True,
        comments: Mapping[str, str] | None = None,
        flags: Mapping[str, Flags] | None = None,
        data: Mapping[str, Any] | None = None,
        combine: Mapping[str, Any] | None = None,
        constraints: Iterable[Mapping[str, Any]] | None = None,
        partition: Iterable[str] | None = None,
    ) -> None:
        self._columns = with_order(columns_from(columns), ordinal)
        self._max_records_per_person = integer("max_records_per_person", max_records_per_person, 1, 2**31)
        self._person = person
        _, self._keep = max_records_from({"most": 1, "keep": keep})
        if not isinstance(reviewed, bool):
            raise SchemaError(f"reviewed must be true or false, not {reviewed!r}")
        self._reviewed = reviewed
        self._flags = dict(flags or {})
        self._comments = {**{name: one.comment for name, one in self._flags.items()}, **(comments or {})}
        self._data = data_from({} if data is None else data)
        check_person(person, self._columns)
        check_among(self._columns)
        if reviewed:
            check_sources(self._columns, drafted="drafted" in self._data)
        modelled = {name: column.cardinality for name, column in self._columns.items() if column.modelled}
        if not modelled:
            raise SchemaError("no column is modelled; declare one that is not dropped, an identifier or determined")
        self._domain = Domain(modelled)
        self._ordinal = frozenset(name for name in modelled if self._columns[name].ordered)
        self._constraints = constraints_from([] if constraints is None else constraints, self._columns)
        self._combined = combined_from({} if combine is None else combine, self._columns, self._constraints)
        listed = [one.listed for one in self._combined.values() if one.listed is not None]
        self._partition = partition_from([] if partition is None else partition, self._domain)
        self._parts = tuple(connected([*self._constraints, *listed], self._domain))

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
        if "tables" in declaration:
            from chicle.schema.linked import LinkedSchema  # noqa: PLC0415 - it derives from this class

            return LinkedSchema.from_dict(declaration)
        for key in declaration:
            if key not in _KEYS:
                raise SchemaError(f"a schema has no {key!r}; {unknown(str(key), _KEYS)}")
        version = declaration.get("chicle", _VERSION)
        if version != _VERSION or isinstance(version, bool):
            raise SchemaError(f"chicle: {version!r} is not a known version of schemas; write `chicle: {_VERSION}`")
        if "columns" not in declaration:
            raise SchemaError("the schema declares no columns; write `columns:` and a line for each")
        most, keep = max_records_from(declaration.get("max_records", 1))
        return cls(
            declaration["columns"],
            max_records_per_person=most,
            keep=keep,
            person=declaration.get("person"),
            data=declaration.get("data"),
            reviewed=declaration.get("reviewed", True),
            combine=declaration.get("combine"),
            constraints=declaration.get("constraints"),
            partition=declaration.get("partition"),
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
        plain: dict[str, Any] = {"chicle": _VERSION, "reviewed": self._reviewed}
        if self._data:
            plain["data"] = dict(self._data)
        if self._person is not None:
            plain["person"] = self._person
        if self._person is not None or self._max_records_per_person > 1:
            most = self._max_records_per_person
            plain["max_records"] = most if self._keep == "first" else {"most": most, "keep": self._keep}
        plain["columns"] = {name: column.to_dict() for name, column in self._columns.items()}
        return {**plain, **self._of_several()}

    @property
    def columns(self) -> Mapping[str, Column]:
        """All declared columns, including those that are not modelled."""
        return MappingProxyType(self._columns)

    @property
    def domain(self) -> Domain:
        """The modelled columns and the number of codes of each: the domain of records of this schema."""
        return self._domain

    @property
    def combined(self) -> Mapping[str, Combined]:
        """The columns that are modelled as one attribute, by its name."""
        return MappingProxyType(self._combined)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Combinations of values that no row has."""
        return self._constraints

    @property
    def partition(self) -> Clique:
        """The columns whose joint values form partitions; empty if there are none."""
        return self._partition

    def partitioned(self, names: Iterable[str]) -> Schema:
        """Return the same schema with these columns as its partition."""
        asked = tuple(names)
        if asked == self._partition:
            return self
        return self._but(self._columns, reviewed=self._reviewed, partition=asked)

    @property
    def parts(self) -> tuple[Part, ...]:
        """Constraints and lists of combinations in parts that share no column, each with a satisfying assignment."""
        return self._parts

    @property
    def ordinal(self) -> frozenset[str]:
        """The columns whose codes have an order."""
        return self._ordinal

    @property
    def max_records_per_person(self) -> int:
        """The maximum number of rows of one person."""
        return self._max_records_per_person

    @property
    def keep(self) -> str:
        """Which rows of a person with more than the maximum are kept: the ``first``, or some at ``random``."""
        return self._keep

    @property
    def person(self) -> str | None:
        """The column that identifies persons."""
        return self._person

    @property
    def undiscovered(self) -> tuple[str, ...]:
        """The columns whose values or bins are yet to be discovered; their cardinality is an upper bound."""
        return tuple(name for name in self._domain if self._columns[name].undiscovered)

    def discovered(self, columns: Mapping[str, Column]) -> Schema:
        """Return the same schema with these columns, which are declared in full."""
        if "drafted" in self._data:
            bought = {name: replace(one, source="discovered with budget") for name, one in columns.items()}
            columns = {name: columns[name] if columns[name].source else bought[name] for name in columns}
        return self._but({**self._columns, **columns}, reviewed=self._reviewed)

    @property
    def reviewed(self) -> bool:
        """Whether a person confirms that the declaration is public."""
        return self._reviewed

    def mark_reviewed(self, source: str | Mapping[str, str] | None = None) -> Schema:
        """Return the same schema, reviewed: you confirm that nothing in it is known only from the private table.

        Parameters
        ----------
        source
            Where the declarations that a draft read from the data are publicly known: a text for all of them, or one
            for each column.
        """
        return self._but(with_sources(self._columns, source), reviewed=True)

    @property
    def flags(self) -> Mapping[str, Flags]:
        """What a reviewer should know about each column of a draft: NOT PRIVATE. Empty unless it was drafted here."""
        return MappingProxyType(self._flags)

    @property
    def data(self) -> Mapping[str, str]:
        """The ``name`` and ``date`` of the data, where declared, and when the schema was ``drafted`` from it."""
        return MappingProxyType(self._data)

    @property
    def rows(self) -> int | None:
        """About how many rows the data has, where that is declared as public."""
        return int(self._data["rows"]) if "rows" in self._data else None

    @property
    def presence(self) -> Presence | None:
        """Which attributes are there only if a number says so, in the wide rows of linked tables; else None."""
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of a plan should know about the records of this schema."""
        return ()

    def split(self, one_ways: Mapping[str, float], *, weighed: bool) -> tuple[str, ...]:
        """Return how a budget is split between tables, where there are several: see `LinkedSchema.split`."""
        del one_ways, weighed
        return ()

    @property
    def workload(self) -> Workload | None:
        """The marginals that matter more than others, where the declaration itself tells; else None."""
        return None

    @property
    def assumption(self) -> str | None:
        """What a reader must be told, if nothing enforces the maximum number of rows of a person; else None."""
        return None if self._person is not None else unlimited(self._columns, self._max_records_per_person)

    def check_reviewed(self) -> None:
        """Raise a SchemaError unless the schema is reviewed."""
        if not self._reviewed:
            raise SchemaError(
                "this schema is a draft that was read from the data, which is not private; review it, then set "
                "`reviewed: true` in its file or call schema.mark_reviewed()"
            )

    def check_discovered(self) -> None:
        """Raise a SchemaError if a column's values or bins are yet to be discovered."""
        for name in self.undiscovered:
            raise SchemaError(
                f"column {name!r} is yet to be discovered by a fit; declare its values or bins, or use the schema of "
                "the release"
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self._domain, self._max_records_per_person, self._person))

    def to_pandas(self) -> Any:  # noqa: ANN401 - pandas is no dependency
        """Return the columns as a pandas data frame: a row for each, with its type, codes and declaration."""
        return data_frame(
            {
                "column": name,
                "type": column.type,
                "codes": column.cardinality if column.modelled else None,
                "missing": column.missing,
                "declaration": column.to_dict(),
            }
            for name, column in self._columns.items()
        )

    def __str__(self) -> str:
        return self._described(len(self._columns))

    def __repr__(self) -> str:
        return self._described(_MOST_LINES)

    def _repr_html_(self) -> str:
        rows = [("column", "declared as"), *((name, described(column)) for name, column in self._columns.items())]
        warning = "" if self._reviewed else _DRAFT
        return card(self._title, rows, "\n".join(self._said_of_several()), warning=warning)

    def _described(self, most: int) -> str:
        """Return all of it in words; of more than `most` columns the middle is left out."""
        width = max(len(name) for name in self._columns)
        lines = [f"  {name:<{width}}  {described(column)}" for name, column in self._columns.items()]
        if len(lines) > most:
            half = most // 2
            lines[half:-half] = [f"  ... {len(lines) - 2 * half} more columns"]
        draft = [] if self._reviewed else [_DRAFT]
        return "\n".join([*draft, self._title, *lines, *(f"  {one}" for one in self._said_of_several())])

    @property
    def _title(self) -> str:
        who = f"{self._max_records_per_person} a person" + (f", by {self._person!r}" if self._person else "")
        return f"Schema of {len(self._columns)} columns, rows: {who}"

    def _said_of_several(self) -> list[str]:
        """Return the combined columns and constraints in words."""
        combined = [f"{name}: combines {', '.join(one.columns)}" for name, one in self._combined.items()]
        return [*combined, *(f"never violated: {one}" for one in self.constraints)]

    def _but(self, columns: Mapping[str, Column], *, reviewed: bool, partition: Clique | None = None) -> Schema:
        """Return the same schema with these columns, reviewed or not, and another partition if one is given."""
        several = self._of_several() if partition is None else {**self._of_several(), "partition": partition}
        return Schema(
            columns,
            max_records_per_person=self._max_records_per_person,
            person=self._person,
            keep=self._keep,
            reviewed=reviewed,
            # Comments of a draft say what only the private table tells.
            comments={} if reviewed and not self._reviewed else self._comments,
            data=self._data,
            **several,
        )

    def _of_several(self) -> dict[str, Any]:
        """Return the combined columns and constraints as plain data."""
        combine = {name: dict(one.declaration) for name, one in self._combined.items()}
        constraints = [dict(one.declaration) for one in self._constraints]
        several = {"combine": combine, "constraints": constraints, "partition": list(self._partition)}
        return {name: declared for name, declared in several.items() if declared}
