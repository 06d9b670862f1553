"""Neighbouring tables: some rows, and the rows of one more person, the canary.

They are made up and tiny, so that a fit takes milliseconds and the canary stands out. All rows of the canary lie in the
same cell, which moves counts the most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle.counting.records import Records
from chicle.query import Query
from chicle.schema import Schema

__all__ = ["ROWS", "Pair", "Table", "coded_pair", "cross"]

ROWS = 24
"""Rows of everybody but the canary, where codes are given."""

Table = Mapping[str, Sequence[Any]]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring tables.

    Attributes
    ----------
    schema
        What is declared about both.
    others, canary
        The rows of everybody else, and those of one more person, by column.
    coded
        Whether values are codes: then the auditor can count, and fits get `Records`.
    """

    schema: Schema
    others: Table
    canary: Table
    coded: bool = True

    def source(self, *, with_canary: bool) -> Any:  # noqa: ANN401 - records or a table
        """Return one of both tables, for a fit."""
        table = {name: [*self.others[name], *(self.canary[name] if with_canary else ())] for name in self.others}
        if not self.coded:
            return table
        k = self.schema.max_records_per_person
        return Records(table, self.schema.domain, max_records_per_person=k)

    def counts(self, query: Query, rows: Table) -> Integers:
        """Count a query, one row after another: the auditor's own count."""
        sizes = {name: int(np.max(seen)) + 1 for name, seen in query.buckets.items()}
        table = np.zeros([sizes.get(name, self.schema.domain[name]) for name in query.clique], dtype=np.int64)
        for i in range(len(next(iter(rows.values())))):
            if all(rows[name][i] == code for name, code in query.where.items()):
                cell = tuple(
                    int(query.buckets[name][rows[name][i]]) if name in query.buckets else rows[name][i]
                    for name in query.clique
                )
                table[cell] += 1
        return table if query.functional is None else query.functional(table)


def cross(cardinalities: Mapping[str, int], rows: int) -> dict[str, list[int]]:
    """Return rows that are spread over all cells but the last one of each attribute, as far as there is another."""
    spread = {name: max(size - 1, 1) for name, size in cardinalities.items()}
    steps = dict(zip(spread, (1, 2, 3, 5, 7, 11, 13), strict=False))
    return {name: [i * steps[name] % size for i in range(rows)] for name, size in spread.items()}


def coded_pair(cardinalities: Mapping[str, int], *, k: int, rows: int = ROWS) -> Pair:
    """Return a table of codes, and its neighbour with k rows more, all of which have the last code everywhere."""
    return Pair(
        Schema.from_cardinalities(dict(cardinalities), max_records_per_person=k),
        cross(cardinalities, rows),
        {name: [size - 1] * k for name, size in cardinalities.items()},
    )
