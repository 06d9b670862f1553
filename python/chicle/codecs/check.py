"""Check a table against a schema. Problems name columns, rules and fixes, never a value or a count."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa

from chicle.codes import Codes
from chicle.columns.base import Report
from chicle.schema import Schema

__all__ = ["Check", "column_problems", "misfits"]


@dataclass(frozen=True)
class Check:
    """The result of `chicle.sources.check_table`.

    Attributes
    ----------
    problems
        A sentence for each broken rule; empty if the table fits.
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


def misfits(schema: Schema, names: Collection[str]) -> list[str]:
    """Return a sentence for each declared column that a table lacks, and for each of its columns not declared."""
    needed = [*schema.domain, *([] if schema.person is None else [schema.person])]
    absent = [
        f"column {name!r} is declared but not in the table; leave it out of the schema, or add it to the table"
        for name in needed
        if name not in names
    ]
    strange = [
        f"column {name!r} is not declared; declare it, or write `{name}: {{type: drop}}`"
        for name in names
        if name not in schema.columns and name != schema.person
    ]
    return absent + strange


def column_problems(schema: Schema, table: Mapping[str, pa.ChunkedArray]) -> tuple[dict[str, None], dict[str, Codes]]:
    """Return the problems of columns, and the codes of the columns that fit."""
    problems: dict[str, None] = {}
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
        source = column.follows
        if source is not None and {name, source} <= set(table) and source not in wrong:
            column.compare(table[name], schema.columns[source], table[source], _collect(name, problems, wrong))
    return problems, {name: values for name, values in codes.items() if name not in wrong}


def _collect(name: str, problems: dict[str, None], wrong: set[str]) -> Report:
    def report(rule: str, fix: str) -> None:
        problems[f"column {name!r} {rule}; {fix}"] = None
        wrong.add(name)

    return report
