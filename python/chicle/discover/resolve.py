"""From a schema that leaves something to be discovered to one that declares everything.

The table is read once, before anything is spent: whatever does not fit is refused then. Exact counts of values and of
places on a scale are kept for as long as it takes to buy noisy ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from chicle.columns import Column, Open
from chicle.columns.base import refuse
from chicle.columns.private_bins import Binned
from chicle.discover.discovery import Purchase
from chicle.discover.edges import Histogram, discover_bins
from chicle.privacy.ledger import Ledger
from chicle.privacy.mechanisms import release_frequent
from chicle.schema import Schema

__all__ = ["resolve"]


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
    tallies: dict[str, list[Any]] = defaultdict(list)
    for batch in batches:
        for name in schema.domain:
            column = schema.columns[name]
            if isinstance(column, Open):
                tallies[name].append(column.tally(batch[name], refuse(name)))
            elif isinstance(column, Binned) and column.undiscovered:
                tallies[name].append(Histogram.of(column.cells(batch[name], refuse(name))))
            else:
                column.examine(batch[name], refuse(name))
    found: dict[str, Column] = {}
    notes = []
    for purchase in purchases:
        name, column = purchase.name, schema.columns[purchase.name]
        if isinstance(column, Open):
            values, counts = column.merged(tallies.pop(name))
            kept = release_frequent(counts, purchase.event(column.most), ledger)
            found[name] = column.discovered(values[place] for place in kept)
            notes.append(
                f"Of {name!r} {len(kept)} values were discovered (at most {column.most} were asked for); "
                f"all others are {column.other!r}."
            )
        elif isinstance(column, Binned):
            starts = discover_bins(column, column.size, Histogram.merged(tallies.pop(name)), purchase, ledger)
            found[name] = column.discovered(starts)
            notes.append(f"Of {name!r} {found[name].size} bins were discovered.")
    return schema.discovered(found), notes
