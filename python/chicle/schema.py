"""What is public about a table: its columns and their values. So far coded tables only: codes `0..k-1` everywhere.

A schema is declared, never read off the data. It turns a source into `Records` and synthetic records back into the kind
of table that the source was.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from chicle._checks import integer
from chicle.domain import Domain
from chicle.errors import DomainError, SchemaError
from chicle.records import Records

__all__ = ["Schema"]


@dataclass(frozen=True)
class Schema:
    """The declared columns of a table.

    Attributes
    ----------
    domain
        The attributes and their cardinalities.
    ordinal
        Attributes whose codes have an order, so that neighbouring codes may be treated alike.
    max_records_per_person
        How many rows one person may have at most; the sensitivity of every release follows from it.

    Examples
    --------
    >>> schema = Schema.from_cardinalities({"age": 100, "sex": 2}, ordinal=["age"])
    >>> schema.domain
    Domain(age: 100, sex: 2)
    """

    domain: Domain
    ordinal: frozenset[str] = frozenset()
    max_records_per_person: int = 1

    @classmethod
    def from_cardinalities(
        cls,
        cardinalities: Mapping[str, int],
        *,
        ordinal: Iterable[str] = (),
        max_records_per_person: int = 1,
    ) -> Schema:
        """Return the schema of a coded table: each column holds codes ``0..cardinality-1``."""
        domain = Domain(cardinalities)
        if isinstance(ordinal, str):
            raise SchemaError(f"ordinal is a list of attribute names, not a string; write [{ordinal!r}]")
        named = frozenset(ordinal)
        for name in sorted(named):
            if name not in domain:
                raise SchemaError(f"ordinal names {name!r}, which is not an attribute of this schema")
        return cls(domain, named, integer("max_records_per_person", max_records_per_person, 1, 2**31))

    def encode(self, source: Any) -> Records:  # noqa: ANN401 - any data frame, without importing them all
        """Return a source as records over this schema's domain."""
        if isinstance(source, Records):
            if source.domain != self.domain:
                raise DomainError("the records have another domain than the schema: names, sizes or order differ")
            if source.max_records_per_person > self.max_records_per_person:
                raise SchemaError(
                    f"the records allow {source.max_records_per_person} rows a person, the schema "
                    f"{self.max_records_per_person}; declare the larger number in the schema"
                )
            if source.max_records_per_person == self.max_records_per_person:
                return source
            source = {name: source[name] for name in source}
        return Records(source, self.domain, max_records_per_person=self.max_records_per_person)


def table_kind(source: object) -> str:
    """Return which kind of table a source is: ``"pandas"``, ``"polars"``, ``"pyarrow"`` or ``"records"``."""
    package = type(source).__module__.partition(".")[0]
    return package if package in ("pandas", "polars", "pyarrow") else "records"


def as_table(records: Records, kind: str) -> Any:  # noqa: ANN401
    """Return records as a table of some kind, without copying codes where that library allows it."""
    columns = {name: records[name] for name in records}
    if kind == "records":
        return records
    module = importlib.import_module(kind)
    return module.table(columns) if kind == "pyarrow" else module.DataFrame(columns)
