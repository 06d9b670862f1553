"""What a fit leaves: noisy measurements, the ledger that paid for them, and how to make records of them.

A release holds nothing private: it can be kept, shown and sampled from again and again at no further cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from chicle.errors import ParameterError
from chicle.measure import Measurement, estimate_total
from chicle.privacy.ledger import Ledger
from chicle.records import Records
from chicle.schema import Schema, as_table

__all__ = ["Generator", "Release"]

Generator: TypeAlias = Callable[[int, int | None, list[float]], Records]
"""Makes that many records, by that seed, adding its error after each pass to the list."""


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
    """

    schema: Schema
    measurements: tuple[Measurement, ...]
    ledger: Ledger
    generator: Generator = field(repr=False)
    kind: str = "records"

    @property
    def total(self) -> int:
        """The private estimate of the number of records."""
        return estimate_total(self.measurements)

    def sample(
        self, n: int | None = None, seed: int | None = None, *, trace: list[float] | None = None
    ) -> Any:  # noqa: ANN401 - the kind of table that was fitted
        """Draw a synthetic table: `n` rows, by default as many as the private estimate says."""
        if n is not None and (isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0):
            raise ParameterError(f"n must be None or an integer of at least 0, not {n!r}")
        records = self.generator(self.total if n is None else int(n), seed, [] if trace is None else trace)
        return as_table(records, self.kind)

    def __repr__(self) -> str:
        cells = sum(measurement.values.size for measurement in self.measurements)
        kept = f"{len(self.measurements)} measurements of {cells:,} cells"
        return f"Release of {kept} over {self.schema.domain!r}\n{self.ledger!r}"


def split(measurements: Sequence[Measurement]) -> tuple[list[Measurement], list[Measurement]]:
    """Return the measurements of single attributes, and those of more."""
    ones = [m for m in measurements if len(m.clique) == 1]
    return ones, [m for m in measurements if len(m.clique) > 1]
