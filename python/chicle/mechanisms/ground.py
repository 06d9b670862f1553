"""What Prism, and AIM over records, stand on: the number of records, 1-ways, values merged, levels.

Two releases, the number of records and the 1-ways; everything else here is computed from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from chicle.counting.counter import MEMORY_LIMIT
from chicle.counting.records import Countable
from chicle.denoising.consistency import onto_simplex
from chicle.domain import Clique, Domain
from chicle.domain import pairs as all_pairs
from chicle.measurements.measurement import Measurement, estimate_total, measure
from chicle.measurements.merges import Compression, compress, over_original
from chicle.mechanisms.prism_options import PrismOptions
from chicle.privacy.budget import calibrate
from chicle.privacy.ledger import Ledger
from chicle.schema import Schema
from chicle.selection.expected_error import noise_error
from chicle.selection.levels import Level, levels
from chicle.selection.sets import ChosenSet, as_cliques
from chicle.selection.share import one_way_share

__all__ = ["NO_PAIR", "TOO_NOISY", "Ground", "Parts", "lay_ground"]

TOO_NOISY = "the 1-ways are too noisy for pairs to tell more: attributes are independent"
NO_PAIR = "no pair of attributes stands out: attributes are independent"

# Where the 1-ways are wrong by more than this share of the records, pairs measured with the rest of the budget do not
# make up for what it would do for the 1-ways: on five tables the errors of both cross between .09 and .15.
_TOO_NOISY = 0.1


class Parts:
    """How the budget is split, before any table is chosen."""

    def __init__(self, options: PrismOptions, rho: float, domain: Domain, n: float, k: int) -> None:
        self._k = k
        self.counting = rho * options.counting
        rest = rho - self.counting
        share = options.one_ways
        if share is None or len(domain) < 2:
            share = one_way_share(domain, n, math.sqrt(2 * rho) / k)
        self.one_ways = rest * share
        rest -= self.one_ways
        self.selection = rest * options.selection if len(domain) > 1 else 0.0
        self.tables = rest - self.selection

    @property
    def rest(self) -> float:
        """What the 1-ways leave."""
        return self.selection + self.tables

    def sigma(self, rho: float) -> float:
        """Return the noise at which a table costs rho."""
        return calibrate(rho, l2_sensitivity=self._k)


@dataclass(frozen=True, eq=False)
class Ground:
    """The first releases, and private records as they say.

    Attributes
    ----------
    schema, parts
        The attributes, and how the budget is split.
    size, one_ways
        What was released.
    compression, coded
        Values merged by the 1-ways, and the private records so.
    resolutions
        The levels of each attribute.
    """

    schema: Schema
    parts: Parts
    size: Measurement
    one_ways: Sequence[Measurement]
    compression: Compression
    coded: Countable
    resolutions: Sequence[Sequence[Level]]

    @property
    def k(self) -> int:
        """How many rows a person may have."""
        return self.schema.max_records_per_person

    @property
    def measured(self) -> tuple[Measurement, ...]:
        """All that was released so far."""
        return (self.size, *self.one_ways)

    @cached_property
    def total(self) -> int:
        """The released number of records, at least 1."""
        return max(estimate_total(self.measured), 1)

    @cached_property
    def too_noisy(self) -> bool:
        """Whether the 1-ways need the rest of the budget more than anything else does."""
        return _one_way_error(self.one_ways, self.total) > _TOO_NOISY

    @cached_property
    def pairs(self) -> list[Clique]:
        """The pairs that can be scored; those too large to count are not found out after 1-ways have been paid for."""
        domain = self.coded.domain
        return [
            pair for pair in all_pairs(domain) if min(domain.shape(pair)) > 1 and 8 * domain.cells(pair) <= MEMORY_LIMIT
        ]

    def measure_sets(
        self, sets: Sequence[ChosenSet], rho: float, ledger: Ledger, *, threads: int | None
    ) -> list[Measurement]:
        """Release the tables of chosen sets, for rho in all: each as precise as it asks for, in proportion."""
        cliques, coarsening = as_cliques(sets, self.compression.domain, self.resolutions)
        asked = sum(chosen.precision for chosen in sets)
        sigmas = [self.parts.sigma(rho * chosen.precision / asked) for chosen in sets]
        tables = measure(self.coded, cliques, sigmas, ledger, coarsening=coarsening, threads=threads)
        return [over_original(table, self.compression) for table in tables]


def lay_ground(
    measure_all: Callable[[Countable, Sequence[Clique], float, Ledger, str], list[Measurement]],
    records: Countable,
    schema: Schema,
    rho: float,
    *,
    ledger: Ledger,
    options: PrismOptions,
    threads: int | None,
) -> Ground:
    """Release the number of records and the 1-ways of a budget of rho; merge values and make levels by them.

    Parameters
    ----------
    measure_all
        Releases marginals for some rho together: `Mechanism._measure`.
    records, schema, ledger
        The private records, what is public about them, and what pays.
    rho
        What the mechanism may spend in all; `Ground.parts` says what is left.
    options
        The shares, and how values are merged.
    threads
        How many threads to use; all there are, if ``None``.
    """
    domain = schema.domain
    sigma = calibrate(rho * options.counting, l2_sensitivity=schema.max_records_per_person)
    (size,) = measure(records, [()], sigma, ledger, purpose="number of records", threads=threads)
    parts = Parts(options, rho, domain, float(size.values), schema.max_records_per_person)
    one_ways = measure_all(records, [(name,) for name in domain], parts.one_ways, ledger, "1-way")
    total = max(estimate_total([size, *one_ways]), 1)
    compression = compress(one_ways, domain, theta=options.theta, ordinal=schema.ordinal, vanish=False)
    resolutions = [
        levels(onto_simplex(one_way.values, total), ordinal=one_way.clique[0] in schema.ordinal, sizes=options.sizes)
        for one_way in compression.one_ways
    ]
    return Ground(schema, parts, size, one_ways, compression, compression.encode(records), resolutions)


def _one_way_error(one_ways: Sequence[Measurement], total: float) -> float:
    """Return the mean expected L1 error of the 1-ways, as a share of the records, by `select.expected_error`."""
    errors = []
    for one_way in one_ways:
        counts = onto_simplex(one_way.values, total)
        errors.append(noise_error(counts, one_way.sigma) / total)
    return float(np.mean(errors))
