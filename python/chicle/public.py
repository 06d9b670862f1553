"""Public data: a table that everybody may see, given to a fit beside the private one.

It is encoded by the codec of the schema, as the private table is, before anything is spent. It reaches mechanisms on
the free side only, as `Desk.public`: whatever they make of it is made of public rows and of releases, so it is never
paid for and no sensitivity changes. If some of its people are in the private table too, what it says of them is public.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from chicle.codecs import Codec
from chicle.counting.records import Records
from chicle.domain import Domain
from chicle.errors import ChicleError, ParameterError, SchemaError
from chicle.measurements.public_rows import PublicRows, Role
from chicle.schema import Schema
from chicle.sources.local import reader_of
from chicle.sources.read import read_records
from chicle.sources.readers import dropped

__all__ = ["PublicData"]


@dataclass(frozen=True, eq=False)
class PublicData:
    """A public table, and what it may be used for.

    Parameters
    ----------
    table
        A pandas, polars or pyarrow table, or a mapping of arrays; a path, a pattern or a list of paths; or `Records`.
        Columns of the schema may be missing.
    role
        How far to believe it. ``"evidence"``: where released values contradict it, they decide. ``"trusted"``: its rows
        are like those of the private table, and may stand in for what was not measured.
    columns
        The columns to use; by default all. Others of the table are not read.
    name
        What plans, releases and reports call the table; by default the name of its file.

    Examples
    --------
    >>> public = PublicData({"age": [31, 4, 77], "note": ["a", "b", "c"]}, columns=["age"])
    >>> public.rows(Codec(Schema({"age": {"type": "integer", "min": 0, "max": 99, "bins": 5}, "sex": 2})))
    PublicRows of 3 rows, as evidence, over Domain(age: 5)
    """

    table: Any
    role: Role = "evidence"
    columns: Sequence[str] | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if self.role not in get_args(Role):
            raise ParameterError(f"the role of public data must be one of {get_args(Role)}, not {self.role!r}")
        if isinstance(self.columns, str) or not all(isinstance(name, str) for name in self.columns or ()):
            raise ParameterError("the columns of public data must be a list of names")
        if not (self.name is None or (isinstance(self.name, str) and self.name.isprintable() and self.name.strip())):
            raise ParameterError("the name of public data must be a text of one line")

    @classmethod
    def of(cls, given: Any) -> PublicData:  # noqa: ANN401 - any table
        """Return public data unchanged, or a table as evidence."""
        return given if isinstance(given, cls) else cls(given)

    def rows(self, codec: Codec) -> PublicRows:
        """Return the rows as a codec encodes them; a table that does not fit its schema is an error.

        A constraint, or a combination of columns, is left out where the table lacks one of its columns.
        """
        try:
            return PublicRows(self._records(codec), self.role, self._called)
        except ChicleError as error:
            raise type(error)(f"public data: {error}") from None

    def coded(self, schema: Schema) -> PublicData:
        """Return the same public data as codes, read once; a table that does not fit the schema is an error."""
        try:
            codes = self._codes(schema)
        except ChicleError as error:
            raise type(error)(f"public data: {error}") from None
        made = PublicData(codes, role=self.role, name=self._called)
        made.rows(Codec(schema))
        return made

    @property
    def _called(self) -> str:
        if self.name is not None:
            return self.name
        return Path(self.table).name if isinstance(self.table, (str, os.PathLike)) else "a table"

    def _codes(self, schema: Schema) -> Records:
        """Return the codes of the columns that are used."""
        if isinstance(self.table, Iterator):
            raise SchemaError("batches that are read once cannot be checked first; give a list of them, or files")
        there = list(self.table.domain) if isinstance(self.table, Records) else _columns_of(self.table, schema)
        return _coded(self.table, schema, self._used(there, schema), there)

    def _records(self, codec: Codec) -> Records:
        codes = self._codes(codec.schema)
        used = list(codes.domain)
        if not len(codes):
            raise SchemaError("the table has no rows; give at least one, or leave `public` out")
        given = {name: codes[name] for name in used}
        for problem in codec.violations(given):
            raise SchemaError(problem)
        made = codec.attributes
        whole = [name for name, parts in made.columns.items() if set(parts) <= set(used)]
        if not whole:
            raise SchemaError("the table has no whole attribute: columns that are combined come together")
        base = Domain({name: made.base[name] for name in whole})
        joint = {name: codes[name] if name in used else made.combine(name, given) for name in whole}
        maps = {name: made.maps[name] for name in whole}
        return Records(joint, base).view(maps, Domain({name: made.domain[name] for name in whole}))

    def _used(self, there: Sequence[str], schema: Schema) -> list[str]:
        """Return the modelled columns to use, in the order of the schema."""
        for name in self.columns or ():
            if name not in schema.domain:
                raise SchemaError(f"the schema has no modelled column {name!r}; it has {_listed(schema.domain)}")
            if name not in there:
                raise SchemaError(f"the table has no column {name!r}; it has {_listed(there)}")
        for name in there if self.columns is None else ():
            if name not in schema.columns and name != schema.person:
                raise SchemaError(f"column {name!r} is not in the schema; drop it, or name those to use in `columns`")
        used = [name for name in schema.domain if name in (there if self.columns is None else self.columns)]
        if not used:
            raise SchemaError(f"the table has no modelled column of the schema; those are {_listed(schema.domain)}")
        for name in used:
            if schema.columns[name].undiscovered:
                raise SchemaError(
                    f"column {name!r} is yet to be discovered, so public values have no codes; declare its values or "
                    "bins, for example as the public table has them"
                )
        return used


def _columns_of(table: Any, schema: Schema) -> list[str]:  # noqa: ANN401
    """Return the columns of a table, or of the first of several files; those that are dropped are left out."""
    _, names = next(iter(reader_of(table, schema).layouts()))
    return list(names)


def _coded(table: Any, schema: Schema, used: Sequence[str], there: Sequence[str]) -> Records:  # noqa: ANN401
    """Return the codes of some columns."""
    domain = Domain({name: schema.domain[name] for name in used})
    if isinstance(table, Records):
        for name in used:
            if table.domain[name] != domain[name]:
                raise SchemaError(f"column {name!r} has {table.domain[name]} codes, in the schema {domain[name]}")
        return Records({name: table[name] for name in used}, domain)
    unused = {name: {"type": "drop"} for name in (*there, *dropped(schema)) if name not in domain}
    return read_records(table, Schema({**{name: schema.columns[name] for name in used}, **unused}))


def _listed(names: Sequence[str] | Domain) -> str:
    shown = [repr(name) for name in names]
    return ", ".join(shown if len(shown) <= 12 else [*shown[:12], f"and {len(shown) - 12} more"])
