"""Everything that a report shows, gathered once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from chicle.codecs import Codec
from chicle.counting.records import Records, count
from chicle.domain import Clique, Domain
from chicle.evaluation.result import Evaluation
from chicle.releases.bounds import ErrorBound
from chicle.releases.release import Release
from chicle.reports.axes import Labels
from chicle.schema import Schema

__all__ = ["Facts"]

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known about a synthetic table.

    Attributes
    ----------
    schema
        What its columns are.
    synthetic, drawn
        The table, and whether it was drawn from the release here.
    release
        What it was made from, where that is known.
    bounds
        Bounds on the errors of every attribute and every pair, from the release alone.
    evaluation, real
        How it compares with the real table, and that table: NOT PRIVATE.
    confidence
        The probability with which each bound holds.
    title, remarks
        What the user says about it.
    threads
        How many threads to use; all there are, if ``None``.
    """

    schema: Schema
    synthetic: Records
    drawn: bool
    release: Release | None
    bounds: Mapping[Clique, ErrorBound]
    evaluation: Evaluation | None
    real: Records | None
    confidence: float
    title: str
    remarks: Sequence[str]
    threads: int | None

    @property
    def domain(self) -> Domain:
        """The attributes."""
        return self.schema.domain

    @property
    def sure(self) -> str:
        """The confidence of bounds, in words."""
        return f"{100 * self.confidence:.6g} %"

    @property
    def publishable(self) -> bool:
        """Whether the page may be published: it shows the real table only through noise that protects."""
        compared = self.evaluation is not None or self.real is not None
        return not compared and self.release is not None and self.release.ledger.protected

    @cached_property
    def labels(self) -> Labels:
        """What codes stand for."""
        return Labels(self.schema)

    @cached_property
    def synthetic_counts(self) -> dict[str, Counts]:
        """How often each value occurs in the synthetic table."""
        return self._counted(self.synthetic)

    @cached_property
    def real_counts(self) -> dict[str, Counts] | None:
        """How often each value occurs in the real table."""
        return None if self.real is None else self._counted(self.real)

    def weights(self, name: str) -> npt.NDArray[np.float64]:
        """Return how often each value occurs: really, else as measured, else in the synthetic table."""
        if self.real_counts is not None:
            return self.real_counts[name].astype(np.float64)
        bound = self.bounds.get((name,))
        if bound is not None and bound.estimate is not None and not bound.buckets:
            return bound.estimate
        return self.synthetic_counts[name].astype(np.float64)

    @cached_property
    def recoded(self) -> Records:
        """The synthetic table as mechanisms see it: with coarse groups and combined columns."""
        return Codec(self.schema).recode(self.synthetic)

    def _counted(self, records: Records) -> dict[str, Counts]:
        tables = count(records, [(name,) for name in self.domain], self.threads)
        return dict(zip(self.domain, tables, strict=True))
