"""The tables of an evaluation, as records over one domain."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from chicle.counting.records import Records
from chicle.errors import ChicleError, ParameterError, SchemaError
from chicle.mechanisms.base import as_schema
from chicle.releases.release import Release
from chicle.schema import Schema
from chicle.sources import read_records

__all__ = ["read_both", "read_one", "schema_of"]


def schema_of(real: object, schema: object, release: Release | None) -> Schema:
    """Return the schema of the tables: as given, from its file, of the release, or of the records."""
    declared = _declared(real, schema) if schema is not None or release is None else None
    if release is not None and (declared is None or declared.undiscovered):
        return release.schema
    if declared is None:
        raise SchemaError(
            "a table needs a schema to be compared; give schema=, or the release that the table was drawn from"
        )
    if declared.undiscovered:
        raise SchemaError(
            f"column {declared.undiscovered[0]!r} is yet to be discovered; give the release, whose schema has it"
        )
    return declared


def _declared(real: object, schema: object) -> Schema | None:
    if isinstance(schema, (str, os.PathLike)):
        return Schema.load(Path(schema))
    if schema is not None:
        return as_schema(schema)  # type: ignore[arg-type]  # it raises for other types
    if isinstance(real, Records):
        return Schema(real.domain, max_records_per_person=real.max_records_per_person)
    return None


def read_both(real: Any, synthetic: Any, schema: Schema) -> tuple[Records, Records]:  # noqa: ANN401 - any table or path
    """Return the real and the synthetic table as records over the schema's domain.

    Parameters
    ----------
    real, synthetic
        Any tables that a mechanism can be fitted to: records, frames, paths of files, patterns, batches. Files and
        batches are read in turn: only their codes, mostly one byte for each value, need to fit into memory.
    schema
        Their schema. Where it names a person column, only the rows that a fit would keep are compared.
    """
    return read_one("real", real, schema), read_one("synthetic", synthetic, schema, synthetic=True)


def read_one(which: str, source: Any, schema: Schema, *, synthetic: bool = False) -> Records:  # noqa: ANN401
    """Return one table as records over the schema's domain; errors say which it is."""
    try:
        # max_records_per_person matters to the budget, not here.
        fits = isinstance(source, Records) and source.domain == schema.domain
        records = source if fits else read_records(source, schema, synthetic=synthetic)
    except ChicleError as error:
        raise type(error)(f"the {which} table: {error}") from None
    if not len(records):
        raise ParameterError(f"the {which} table has no rows; there is nothing to compare")
    return records
