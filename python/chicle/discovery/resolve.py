"""From a schema that leaves something to be discovered to one that declares everything.

The table is read once, before anything is spent: whatever does not fit is refused then. Exact counts of values and of
cells are kept for as long as it takes to buy noisy ones; their memory is that of the different values, not of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from chicle.columns import Column, Open
from chicle.columns.base import refuse
from chicle.columns.private_bins import Binned
from chicle.discovery.discovery import Purchase
from chicle.discovery.edges import Histogram, discover_bins
from chicle.privacy.ledger import Ledger
from chicle.privacy.mechanisms import release_frequent
from chicle.schema import Schema

__all__ = ["resolve"]

_PENDING = 2**20  # so many different values of new batches are kept before they are merged with those before


def resolve(
    schema: Schema, batches: Iterable[Mapping[str, pa.ChunkedArray]], purchases: Sequence[Purchase], ledger: Ledger
) -> tuple[Schema, list[str]]:
    """Return a schema in which every value and bin is declared, and a sentence on each column that was discovered.

    Neighbours: add or remove one person, who has at most k rows in these batches. Costs what the purchases say at most.

    Parameters
    ----------
    schema
        What is declared.
    batches
        All modelled columns of the private table, at most k rows of each person.
    purchases
        What may be spent on which column.
    ledger
        What pays.
    """
    counted = _count(schema, batches)
    found: dict[str, Column] = {}
    notes = []
    for purchase in purchases:
        name, column = purchase.name, schema.columns[purchase.name]
        if isinstance(column, Open):
            tally = counted.pop(name).whole()
            counts = tally["count"].to_numpy().astype(np.int64)
            kept = release_frequent(counts, purchase.event(column.most), ledger)
            found[name] = column.discovered(tally["value"].take(kept).to_pylist())
            notes.append(
                f"Of {name!r} {len(kept)} values were discovered (at most {column.most} were asked for); "
                f"all others are {column.other!r}."
            )
        elif isinstance(column, Binned):
            starts = discover_bins(column, column.size, counted.pop(name).whole(), purchase, ledger)
            found[name] = column.discovered(starts)
            notes.append(f"Of {name!r} {found[name].size} bins were discovered.")
    return schema.discovered(found), notes


class _Counted:
    """Counts of several batches, merged whenever the new ones are as many as those before."""

    def __init__(self, merge: Callable[[Sequence[Any]], Any], empty: Any) -> None:  # noqa: ANN401 - either kind of count
        self._merge = merge
        self._parts = [empty]

    def add(self, part: Any) -> None:  # noqa: ANN401
        self._parts.append(part)
        first, *rest = map(len, self._parts)
        if sum(rest) > max(first, _PENDING):
            self._parts = [self.whole()]

    def whole(self) -> Any:  # noqa: ANN401
        return self._merge(self._parts)


def _count(schema: Schema, batches: Iterable[Mapping[str, pa.ChunkedArray]]) -> dict[str, _Counted]:
    """Return the exact counts of columns that are yet to be discovered, once all columns are known to fit."""
    counted: dict[str, _Counted] = {}
    for name in schema.undiscovered:
        column = schema.columns[name]
        if isinstance(column, Open):
            none = column.tally(pa.chunked_array([], pa.null()), refuse(name))
            counted[name] = _Counted(column.merged, none)
        else:
            counted[name] = _Counted(Histogram.merged, Histogram.of(np.empty(0, dtype=np.int64)))
    for batch in batches:
        for name in schema.domain:
            column, values = schema.columns[name], batch[name]
            if isinstance(column, Open):
                counted[name].add(column.tally(values, refuse(name)))
            elif isinstance(column, Binned) and column.undiscovered:
                counted[name].add(Histogram.of(column.cells(values, refuse(name))))
            else:
                column.examine(values, refuse(name))
    return counted
