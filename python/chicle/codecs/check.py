"""Check a table against a schema. Problems name columns, rules and fixes, never a value or a count."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from chicle.codes import Codes
from chicle.columns import Column
from chicle.columns.base import Report
from chicle.schema import Schema

__all__ = ["Check", "column_problems", "misfits", "offending", "with_plain"]


@dataclass(frozen=True)
class Check:
    """The result of `chicle.sources.check_table`.

    Attributes
    ----------
    problems
        A sentence for each broken rule; empty if the table fits.
    values
        For each column that breaks a rule, some of the values that do: NOT PRIVATE. Empty unless they were asked for.
    """

    problems: tuple[str, ...]
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def fits(self) -> bool:
        """Whether the whole table fits."""
        return not self.problems

    def __str__(self) -> str:
        if self.fits:
            return "The table fits the schema."
        lines = ["The table does not fit the schema:", *(f"  {problem}" for problem in self.problems)]
        if self.values:
            lines.append("NOT PRIVATE: some of the values that do not fit:")
            lines += [f"  {name}: {', '.join(values)}" for name, values in self.values.items()]
        return "\n".join(lines)


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
            column = schema.columns[name]
            if column.undiscovered:
                column.examine(table[name], report)
            elif set(column.beside) <= set(table):
                codes[name] = column.encode(column.values_in(name, with_plain(schema, name, table), report), report)
    for name, column in schema.columns.items():
        beside = set(column.beside)
        if beside and {name, *beside} <= set(table) and not beside & wrong:
            plain = with_plain(schema, name, table)
            column.compare(name, plain, schema.columns, _collect(name, problems, wrong))
    return problems, {name: values for name, values in codes.items() if name not in wrong}


def with_plain(schema: Schema, name: str, table: Mapping[str, pa.ChunkedArray]) -> Mapping[str, pa.ChunkedArray]:
    """Return a table in which a column and those beside it are plain, if it is encoded or compared with others."""
    beside = schema.columns[name].beside
    if not beside:
        return table
    return {**table, **{one: schema.columns[one].plain(table[one]) for one in (name, *beside) if one in table}}


def offending(column: Column, values: pa.ChunkedArray, most: int) -> list[str]:
    """Return some different values that break a rule of a column by themselves: NOT PRIVATE.

    Cost: a few encodings of the different values for each one found.

    Examples
    --------
    >>> from chicle.columns import Integer
    >>> offending(Integer(min=0, max=99), pa.chunked_array([[31, 177, None, 8]]), 10)
    ['177', 'missing']
    """
    found: list[str] = []
    parts = [values.unique()]
    while parts and len(found) < most:
        part = parts.pop()
        problems: list[str] = []
        column.examine(pa.chunked_array([part]), _noting(problems))
        if not problems:
            continue
        if len(part) == 1:
            found.append("missing" if part[0].as_py() is None else repr(part[0].as_py()))
        else:
            parts += [part[len(part) // 2 :], part[: len(part) // 2]]
    return found


def _noting(problems: list[str]) -> Report:
    return lambda rule, _fix: problems.append(rule)


def _collect(name: str, problems: dict[str, None], wrong: set[str]) -> Report:
    def report(rule: str, fix: str) -> None:
        problems[f"column {name!r} {rule}; {fix}"] = None
        wrong.add(name)

    return report
