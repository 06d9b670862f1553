"""The transcript of a fit: every paid release and every choice made from it, in order. Nothing in it is private.

Choices and merges are kept, not recomputed: the same queries, at the same sigmas and merges, can be measured again on
another table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from chicle.domain import Domain
from chicle.measurements.contrasts import Contrasts, TablesOfContrasts
from chicle.measurements.measurement import Measurement
from chicle.measurements.merges import Merge
from chicle.measurements.row_sums import RowSums
from chicle.measurements.scores import Choice, Scores

__all__ = ["Entry", "Transcript"]

Entry: TypeAlias = Measurement | Contrasts | Scores | Choice | Merge | RowSums
"""One item of a transcript."""


@dataclass(eq=False)
class Transcript:
    """What a fit released, in order.

    Attributes
    ----------
    entries
        Measurements, contrasts, scores, choices and sums over rows, each paid for; and merges, which follow from the
        entries before them.
    notes
        What a reader of the table should know.
    """

    entries: list[Entry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """Every table of noisy counts."""
        return tuple(entry for entry in self.entries if isinstance(entry, Measurement))

    @property
    def scores(self) -> tuple[Scores, ...]:
        """Every vector of noisy scores."""
        return tuple(entry for entry in self.entries if isinstance(entry, Scores))

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Every choice by the exponential mechanism."""
        return tuple(entry for entry in self.entries if isinstance(entry, Choice))

    @property
    def row_sums(self) -> tuple[RowSums, ...]:
        """Everything that was bought for declared analyses."""
        return tuple(entry for entry in self.entries if isinstance(entry, RowSums))

    @property
    def contrasts(self) -> tuple[Contrasts, ...]:
        """The noisy contrasts of every clique that was measured by its residual."""
        return tuple(entry for entry in self.entries if isinstance(entry, Contrasts))

    def tables_of_contrasts(self, domain: Domain) -> TablesOfContrasts | None:
        """Return the tables that contrasts make with the number of records; None if there are no contrasts."""
        totals = [one for one in self.measurements if one.whole and not one.clique]
        return TablesOfContrasts(self.contrasts, totals[0], domain) if self.contrasts and totals else None

    def tables(self, domain: Domain) -> list[Measurement]:
        """Return every table that a model learns from: measurements, and the tables of contrasts; free."""
        made = self.tables_of_contrasts(domain)
        return [*self.measurements, *(made.targets() if made is not None else [])]

    @property
    def merge(self) -> Merge | None:
        """The merge of rare values, if there was one."""
        merges = [entry for entry in self.entries if isinstance(entry, Merge)]
        return merges[-1] if merges else None

    def before_scores(self) -> Iterator[tuple[Scores, list[Measurement], Merge | None]]:
        """Yield each vector of scores with the measurements before it and the merge in force."""
        measured: list[Measurement] = []
        merge: Merge | None = None
        for entry in self.entries:
            if isinstance(entry, Measurement):
                measured.append(entry)
            elif isinstance(entry, Merge):
                merge = entry
            elif isinstance(entry, Scores):
                yield entry, list(measured), merge

    def __len__(self) -> int:
        return len(self.entries)
