"""Complete a schema by discovery, so that it declares everything.

The table is read once, before any budget is spent; a table that does not fit is refused then. Exact counts of values
and cells are deleted once noisy ones are bought; their memory grows with the distinct values, not with the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chicle.codecs import Codec
from chicle.codecs.check import with_plain
from chicle.columns import Column, Tally
from chicle.columns.base import refuse
from chicle.discovery.purchase import Purchase
from chicle.privacy.ledger import Ledger
from chicle.schema import Schema
from chicle.sources import Source, Task
from chicle.sources.tasks import Columns

__all__ = ["Tallies", "resolve"]


class Tallies(Task["Tallies"]):
    """The tallies of all columns that are yet to be discovered: private.

    They can be pickled, filled in several processes and merged; the counts do not depend on the split.

    Parameters
    ----------
    codec
        The codec that checks all columns.
    """

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        columns = codec.schema.columns
        wanted = {name: columns[name].discovery for name in codec.schema.domain}
        self._tallies: dict[str, Tally[Any]] = {name: one.tally() for name, one in wanted.items() if one is not None}

    def prepare(self, batch: Columns) -> Tallies:
        """Return the tallies of a batch of all modelled columns; raise a SchemaError if one does not fit."""
        schema, constrained = self._codec.schema, self._codec.constrained
        self._codec.check_codes(self._codec.codes(batch, constrained))
        one = Tallies(self._codec)
        for name in schema.domain:
            if name in one._tallies:
                one._tallies[name].add(batch[name], refuse(name))
            elif name not in constrained:
                column, report = schema.columns[name], refuse(name)
                column.examine(column.values_in(name, with_plain(schema, name, batch), report), report)
        return one

    def add(self, prepared: Tallies) -> None:
        """Count the rows of the next batch."""
        self.merge(prepared)

    def merge(self, other: Tallies) -> None:
        """Add the counts of another part of the table."""
        for name, tally in self._tallies.items():
            tally.merge(other._tallies[name])

    def take(self, name: str) -> Any:  # noqa: ANN401 - each kind of tally has its own counts
        """Return the counts of a column, and delete them here."""
        return self._tallies.pop(name).counts()


def resolve(schema: Schema, source: Source, purchases: Sequence[Purchase], ledger: Ledger) -> tuple[Schema, list[str]]:
    """Return a schema that declares every value and bin, and a note on each discovered column.

    Neighbours: add or remove one person, of whom a source gives at most k rows. The purchases bound the cost.

    Parameters
    ----------
    schema
        The schema to complete.
    source
        The private table.
    purchases
        The purchase for each column.
    ledger
        The ledger that pays.
    """
    tallies = source.reduce(Tallies(Codec(schema)), list(schema.domain))
    found: dict[str, Column] = {}
    notes = []
    for purchase in purchases:
        found[purchase.name], note = purchase.buy(tallies.take(purchase.name), ledger)
        notes.append(note)
    return schema.discovered(found), notes
