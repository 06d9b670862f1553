"""What a fit leaves: noisy measurements, the ledger that paid for them, and how to make records of them.

A release holds nothing private: it can be kept, shown and sampled from again and again at no further cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from chicle._checks import integer
from chicle.frames import Form
from chicle.measure import Measurement, estimate_total
from chicle.privacy.ledger import Ledger
from chicle.records import Records
from chicle.schema import Schema

__all__ = ["Generator", "Release"]

Generator: TypeAlias = Callable[[int, int | None, list[float]], Records]
"""Makes that many records, by that seed, adding its error after each pass to the list."""

_DECODE = 0xDEC0DE  # what tells the stream of decoding from others of the same seed


@dataclass(frozen=True, eq=False)
class Release:
    """The public outcome of a fit.

    Attributes
    ----------
    schema
        What was declared about the table.
    measurements
        Everything that was released: noisy counts with their sigma.
    ledger
        What it cost.
    notes
        What a reader of the table should know.
    """

    schema: Schema
    measurements: tuple[Measurement, ...]
    ledger: Ledger
    generator: Generator = field(repr=False)
    kind: str = "records"
    notes: tuple[str, ...] = ()
    form: Form | None = field(default=None, repr=False)

    @property
    def total(self) -> int:
        """The private estimate of the number of records."""
        return estimate_total(self.measurements)

    def sample(self, n: int | None = None, seed: int | None = None, *, trace: list[float] | None = None) -> Any:  # noqa: ANN401 - the kind of table that was fitted
        """Draw a synthetic table: `n` rows, by default as many as the private estimate says."""
        rows = self.total if n is None else integer("n", n, 0)
        records = self.generator(rows, seed, [] if trace is None else trace)
        rng = np.random.default_rng(None if seed is None else [seed, _DECODE])
        return self.schema.decode(records, self.form or Form(self.kind), rng=rng)

    def __repr__(self) -> str:
        cells = sum(measurement.values.size for measurement in self.measurements)
        kept = f"{len(self.measurements)} measurements of {cells:,} cells"
        return "\n".join([f"Release of {kept} over {self.schema.domain!r}", *self.notes, repr(self.ledger)])
