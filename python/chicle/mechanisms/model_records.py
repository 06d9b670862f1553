"""Records of the graphical model of all measurements: how MST, PrivBayes, MWEM and AIM on a model generate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from chicle.counting.counter import MEMORY_LIMIT
from chicle.counting.records import Records
from chicle.domain import Domain
from chicle.measurements.measurement import Measurement
from chicle.measurements.merges import Compression
from chicle.models.pgm import Pgm, Zeros
from chicle.releases.release import Generator, Note

__all__ = ["ModelRecords"]


@dataclass(eq=False)
class ModelRecords(Generator):
    """Records of a model that is fitted when the first of them are asked for, and kept.

    Attributes
    ----------
    targets
        The measurements.
    domain
        The attributes, as the measurements have them.
    iterations
        Most steps of fitting.
    compression
        How values were merged; None where they were not.
    zeros
        Structural zeros.
    memory_limit
        Most bytes that the model may take.
    """

    targets: Sequence[Measurement]
    domain: Domain
    iterations: int
    compression: Compression | None = None
    zeros: Zeros = field(default_factory=dict)
    memory_limit: int = MEMORY_LIMIT
    _model: Pgm | None = field(default=None, init=False, repr=False)

    def records(self, n: int, seed: int | None, *, note: Note, threads: int | None = None) -> Records:
        """Draw `n` records; the steps of fitting are noted, the first time."""
        made = self.model(note=note, threads=threads).records(n, seed)
        return made if self.compression is None else self.compression.decode(made, seed)

    def model(self, *, note: Note | None = None, threads: int | None = None) -> Pgm:
        """Return the model, fitted."""
        if self._model is None:
            model = Pgm(self.targets, self.domain, zeros=self.zeros, threads=threads, memory_limit=self.memory_limit)
            self._model = model.fit(self.iterations, progress=note)
        return self._model

    def __getstate__(self) -> dict[str, Any]:
        """Return all but the model, which is fitted again where it is wanted."""
        return {**vars(self), "_model": None}
