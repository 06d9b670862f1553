"""Records by descent towards denoised tables: how Prism, and AIM over records, generate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chicle._checks import check_seed
from chicle.counting.records import Records
from chicle.denoising import denoise
from chicle.errors import DomainError
from chicle.measurements.measurement import Measurement, estimate_total
from chicle.measurements.merges import Compression, compress, over_compressed
from chicle.mechanisms.independent import IndependentRecords
from chicle.mechanisms.prism_options import PrismOptions
from chicle.models.descent import Descent, Start
from chicle.releases.release import Generator, Note, singles_of
from chicle.schema import Schema

__all__ = ["DenoisedRecords", "denoised_records", "together"]

# Most attributes of cells that a sweep may have to look up, over all records: a few seconds' work. Above it records are
# repeated.
_WORK = 2_000_000_000


def denoised_records(schema: Schema, measurements: Sequence[Measurement], options: PrismOptions) -> Generator:
    """Return what makes records of a number of records, 1-ways and tables of merged values at any level."""
    domain = schema.domain
    size = measurements[0]
    if size.clique != ():
        raise DomainError("the first measurement is the number of records")
    one_ways, rest = singles_of(schema, measurements[1:])
    if all(len(measurement.clique) == 1 for measurement in rest):
        # Only the 1-ways could be told: this is the Independent mechanism, with as little noise.
        if not rest:
            return IndependentRecords(one_ways, domain)
        again, none = singles_of(schema, rest)
        if none:
            raise DomainError("every attribute is measured twice at most where nothing else is")
        best = [_mean(first, second) for first, second in zip(one_ways, again, strict=True)]
        return IndependentRecords(best, domain)
    compression = compress(one_ways, domain, theta=options.theta, ordinal=schema.ordinal, vanish=False)
    targets = denoise(
        one_ways,
        together([over_compressed(table, compression) for table in rest]),
        compression,
        max(estimate_total([size, *one_ways]), 1),
        absorbing=options.absorb,
        sharing=options.low_rank,
        pull=options.pull,
    )
    return DenoisedRecords(targets, compression, options)


def together(tables: Sequence[Measurement]) -> list[Measurement]:
    """Return tables, those of the same cells as one: their mean by inverse variance.

    Examples
    --------
    >>> first, second = Measurement(("a",), np.array([4, 0]), 1.0), Measurement(("a",), np.array([9, 5]), 2.0)
    >>> (both,) = together([first, second])
    >>> both.values.round(6).tolist(), round(both.sigma, 3)
    ([5.0, 1.0], 0.894)
    """
    found: dict[Any, Measurement] = {}
    for table in tables:
        seen = ((name, np.asarray(buckets).tobytes()) for name, buckets in table.coarsening.items())
        key = (table.clique, frozenset(seen))
        found[key] = _mean(found[key], table) if key in found else table
    return list(found.values())


def _mean(first: Measurement, second: Measurement) -> Measurement:
    """Return both measurements of one attribute as one, by inverse variance."""
    weight = second.sigma**2 / (first.sigma**2 + second.sigma**2)
    values = weight * first.values + (1 - weight) * second.values
    return replace(first, values=values, sigma=math.sqrt(weight) * first.sigma)


@dataclass(frozen=True, eq=False)
class DenoisedRecords(Generator):
    """Records by residual descent towards denoised tables, over the compressed domain."""

    targets: Sequence[Measurement]
    compression: Compression
    options: PrismOptions

    def records(self, n: int, seed: int | None, *, note: Note, threads: int | None = None) -> Records:
        """Make `n` records over the original domain."""
        first, second = np.random.default_rng(check_seed(seed)).integers(2**63, size=2).tolist()
        made = self.compressed(n, first, note=note, threads=threads)
        return self.compression.decode(made, second)

    def _copies(self, n: int) -> int:
        work = n * sum(len(target.clique) for target in self.targets)
        return 1 if work <= _WORK else 2 if work <= 2 * _WORK else 4

    def compressed(self, n: int, seed: int, *, note: Note, threads: int | None = None) -> Records:
        """Make `n` records over the compressed domain."""
        options, domain = self.options, self.compression.domain
        copies = options.replicate or self._copies(n)
        size = -(-n // copies)
        rng = np.random.default_rng(seed)

        def begin(number: int | None, start: Start) -> Descent:
            return Descent(
                self.targets,
                domain,
                number,
                start=start,
                threshold=options.threshold,
                significance=options.significance,
                seed=int(rng.integers(2**63)),
                threads=threads,
            )

        descent = begin(size, options.start)
        last = descent.loss
        for number in range(1, options.sweeps + 1):
            note(number, descent.sweep())
            loss = descent.loss
            if descent.moves[-1] * 2000 < size or (number >= 2 and loss > 0.9 * last):
                break
            last = loss
        made = descent.records
        if n == 0:
            return made
        # In any order: blocks of records are moved alike, and neighbours should tell nothing of each other.
        rows = rng.permutation(np.arange(n) % size)
        made = Records({name: made[name][rows] for name in made}, domain)
        if copies == 1:
            return made
        descent = begin(None, made)
        note(number + 1, descent.sweep())
        return descent.finish()
