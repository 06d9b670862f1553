"""Records that fit contrasts of pairs and of triples: how Prism generates where it measures contrasts.

The tables that contrasts make agree with each other (`measurements.contrasts`). Pairs are denoised as every
`DenoisedModel` does, and records that fit them give what is expected of triples. What a triple's table says beyond its
pairs is then estimated for all triples together (`denoising.mixture`), in units of the root of the expected counts:
most triples say next to nothing, a few much. The records are refined with these tables as targets too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from chicle.denoising.interactions import high_order, pair_margins
from chicle.denoising.mixture import posterior_means
from chicle.measurements.desk import Progress
from chicle.measurements.measurement import Measurement
from chicle.models.base import Model, register_model
from chicle.models.interactions import InteractionModel

__all__ = ["ContrastModel"]

Floats = npt.NDArray[np.float64]


@register_model("contrasts")
@dataclass(kw_only=True, eq=False)
class ContrastModel(InteractionModel):
    """A denoised model of pairs and triples, all measured by their contrasts; parameters as of its parent."""

    def fit_tables(
        self,
        measurements: list[Measurement],
        *,
        start: Model | None,
        threads: int | None,
        progress: Progress | None,
    ) -> None:
        """Learn from measurements over `domain`: 1-ways, and tables of contrasts."""
        del start
        singles, tables = self.read(measurements)
        self._targets, self._interactions = self.denoise(singles, pair_margins(tables), tables), []
        triples = [table for table in tables if len(table.clique) > 2]
        if triples:
            expected = self.expected_by_pairs(triples, threads=threads, progress=progress)
            self._interactions = _together(triples, expected, self.refinement)


def _together(tables: Sequence[Measurement], expected: Sequence[Floats], pull: float) -> list[Measurement]:
    """Return tables with the expected effects of one and two attributes, and their own interactions, shrunk."""
    own = [high_order(table.floats - mean) for table, mean in zip(tables, expected, strict=True)]
    units = [_units(mean) for mean in expected]
    variances = [
        np.full(one.shape, table.sigma**2 * math.prod(1 - 1 / size for size in one.shape))
        for table, one in zip(tables, own, strict=True)
    ]
    found = posterior_means(
        np.concatenate([(one / unit).reshape(-1) for one, unit in zip(own, units, strict=True)]),
        np.concatenate([(one / unit**2).reshape(-1) for one, unit in zip(variances, units, strict=True)]),
    )
    made, at = [], 0
    for table, mean, one, unit in zip(tables, expected, own, units, strict=True):
        shrunk = high_order(found[at : at + one.size].reshape(one.shape) * unit)
        at += one.size
        made.append(replace(table, values=mean + one + pull * (shrunk - one)))
    return made


def _units(expected: Floats) -> Floats:
    """Return the root of the expected count of each cell, at least 1."""
    return np.sqrt(np.maximum(expected, 1.0))
