"""What of a table does not fit a schema: columns, rules and fixes, never a value or a count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from chicle.columns import Determined
from chicle.columns.base import Report
from chicle.errors import SchemaError
from chicle.sources.people import first_rows

if TYPE_CHECKING:
    from chicle.schema import Schema

__all__ = ["Check", "check_frame"]


@dataclass(frozen=True)
class Check:
    """The outcome of `Schema.check`.

    Attributes
    ----------
    problems
        A sentence for each rule that some column breaks; none if the table fits.
    """

    problems: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Whether the whole table fits."""
        return not self.problems

    def __str__(self) -> str:
        if self.fits:
            return "The table fits the schema."
        return "\n".join(["The table does not fit the schema:", *(f"  {problem}" for problem in self.problems)])


def check_frame(schema: Schema, table: Mapping[str, pa.ChunkedArray]) -> Check:
    """Return what of a table does not fit."""
    problems = dict.fromkeys(schema.misfits(table))
    if schema.person is not None and schema.person in table:
        try:
            first_rows(schema.person, table[schema.person], schema.max_records_per_person)
        except SchemaError as error:
            problems[str(error)] = None
    wrong: set[str] = set()
    codes = {}
    for name in schema.domain:
        if name in table:
            report = _collect(name, problems, wrong)
            if schema.columns[name].undiscovered:
                schema.columns[name].examine(table[name], report)
            else:
                codes[name] = schema.columns[name].encode(table[name], report)
    for name, column in schema.columns.items():
        if not isinstance(column, Determined) or not {name, column.determined_by} <= set(table):
            continue
        if column.determined_by not in wrong and not _agrees(schema, name, column, table):
            fix = "correct the map or the table; the synthetic table follows the map"
            problems[f"column {name!r} is not what its map makes of {column.determined_by!r}; {fix}"] = None
    fitting = {name: values for name, values in codes.items() if name not in wrong}
    problems.update(dict.fromkeys(schema.joint.violations(fitting)))
    return Check(tuple(problems))


def _collect(name: str, problems: dict[str, None], wrong: set[str]) -> Report:
    def report(rule: str, fix: str) -> None:
        problems[f"column {name!r} {rule}; {fix}"] = None
        wrong.add(name)

    return report


def _agrees(schema: Schema, name: str, column: Determined, table: Mapping[str, pa.ChunkedArray]) -> bool:
    source = schema.columns[column.determined_by]
    codes = source.encode(table[column.determined_by], lambda _rule, _fix: None)
    there = table[name].combine_chunks()
    if pa.types.is_dictionary(there.type):
        there = there.cast(there.type.value_type)
    said = column.fill(source, codes, there.type)
    if said.type != there.type:
        return False
    same = pc.or_(pc.fill_null(pc.equal(said, there), False), pc.and_(pc.is_null(said), pc.is_null(there)))
    return bool(pc.all(same).as_py()) or not len(there)
