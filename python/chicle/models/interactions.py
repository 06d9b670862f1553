"""Records that fit tables of triples too: how Prism generates after its second stage.

The tables of the first stage are those of a `DenoisedModel`. Each table of the second stage tells of pairs and of
interactions of three and more attributes. Its pairs join the first tables, and records fitted to all of these give what
is expected of each second table. Its interactions are shrunk towards that (`denoising.interactions`), and the records
are refined once more, with these tables as targets too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle._checks import integer
from chicle.counting.records import Records
from chicle.denoising.interactions import interactions, pair_margins
from chicle.measurements.arrays import measurements_from_arrays, measurements_to_arrays
from chicle.measurements.desk import Progress
from chicle.measurements.measurement import Measurement, average_repeats
from chicle.models.base import Model, State, register_model
from chicle.models.denoised import DenoisedModel
from chicle.models.descent import descend

__all__ = ["InteractionModel"]

Floats = npt.NDArray[np.float64]

_REFERENCE = 0xA2  # the seed of the records that tell what second tables are expected to be


@register_model("interactions")
@dataclass(kw_only=True, eq=False)
class InteractionModel(DenoisedModel):
    """A denoised model of a first stage's tables, and interactions of a second stage's.

    Fitted to the first tables alone, it is the model that the second stage is chosen by.

    Attributes
    ----------
    first
        How many of the tables of two and more attributes are of the first stage; they come before the others.
    refinement
        How much of the way to its shrunk value each cell of an interaction goes; 0 for no shrinkage.
    refining
        Most sweeps of the last descent.
    """

    first: int = 0
    refinement: float = 0.5
    refining: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("first", self.first, 0)
        integer("refining", self.refining, 1)

    def less_smoothed(self) -> InteractionModel:
        """Return a model without shrinkage, whose records also follow what noise might explain."""
        return replace(self, pull=0.0, significance=0.0, sweeps=20, refinement=0.0)

    def fit_tables(
        self,
        measurements: list[Measurement],
        *,
        start: Model | None,
        threads: int | None,
        progress: Progress | None,
    ) -> None:
        """Learn from measurements over `domain`."""
        del start
        singles, tables = self.read(measurements)
        before, second = tables[: self.first], tables[self.first :]
        pairs = [*before, *pair_margins(second)]
        self._targets, self._interactions = self.denoise(singles, pairs, tables), []
        if not second:
            return
        larger = average_repeats([table for table in second if len(table.clique) > 2])
        expected = self.expected_by_pairs(larger, threads=threads, progress=progress)
        self._interactions = [
            interactions(table, mean, pull=self.refinement) for table, mean in zip(larger, expected, strict=True)
        ]

    def expected_by_pairs(
        self, tables: Sequence[Measurement], *, threads: int | None, progress: Progress | None
    ) -> list[Floats]:
        """Return what records that fit the targets so far expect of larger tables."""
        made = super().draw_records(self._total, _REFERENCE, threads=threads, progress=progress)
        scale = self._total / max(len(made), 1)
        counted = made.count([table.clique for table in tables], threads=threads) if tables else []
        return [counts.astype(np.float64) * scale for counts in counted]

    @property
    def targets(self) -> list[Measurement]:
        """What the last descent fits: denoised 1-ways and pairs, and tables with shrunk interactions."""
        return [*self._targets, *self._interactions]

    def draw_records(self, n: int, seed: int | None, *, threads: int | None, progress: Progress | None) -> Records:
        """Make records over the merged domain."""
        rng = np.random.default_rng(seed)
        first, second = rng.integers(2**63, size=2).tolist()
        made = super().draw_records(n, first, threads=threads, progress=progress)
        if n == 0 or not self._interactions:
            return made
        return descend(
            self.targets,
            self.merge.domain,
            start=made,
            amounts=self.amounts,
            polish=self.polish,
            sweeps=self.refining,
            threshold=self.threshold,
            significance=self.significance,
            seed=second,
            threads=threads,
        )

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was learnt, as arrays."""
        own = measurements_to_arrays(self.targets, self.merge.domain)
        return {**own, "second": np.array(len(self._interactions))}

    def from_arrays(self, state: State) -> None:
        """Take on what was learnt; nothing is fitted."""
        every = measurements_from_arrays(state, self.merge.domain)
        first = len(every) - integer("the number of interactions", int(state["second"]), 0, len(every))
        self._targets, self._interactions = every[:first], every[first:]
