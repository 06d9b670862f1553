"""Records from marginals that somebody else released: no mechanism, only the half of one that comes after measuring.

``"prism"`` lets the tables correct each other and makes records as Prism does, but merges no values: the tables were
measured at the resolution they have. ``"descent"`` fits records to the marginals as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from chicle.counting.records import Records
from chicle.denoising.consistency import onto_simplex
from chicle.domain import Domain
from chicle.errors import DomainError, ParameterError
from chicle.measurements.measurement import Measurement, estimate_total
from chicle.mechanisms.prism import PrismOptions
from chicle.models.descent import descend
from chicle.releases.artefact import ELSEWHERE
from chicle.releases.release import Generator, Note, generator_of, rebuild
from chicle.schema import Schema

__all__: list[str] = []

_SWEEPS = 3


@dataclass(frozen=True, eq=False)
class _DescentRecords(Generator):
    """Records by residual descent towards marginals as they are."""

    targets: Sequence[Measurement]
    domain: Domain

    def records(self, n: int, seed: int | None, *, note: Note, threads: int | None = None) -> Records:
        return descend(self.targets, self.domain, n, sweeps=_SWEEPS, seed=seed, threads=threads, progress=note)


@generator_of(ELSEWHERE)
def _generator(schema: Schema, measurements: Sequence[Measurement], told: Mapping[str, Any]) -> Generator:
    if set(told) != {"generator"} or told["generator"] not in ("prism", "descent"):
        raise ParameterError(f"generator must be 'prism' or 'descent', not {told.get('generator')!r}")
    one_ways = [_one_way(name, measurements) for name in schema.domain]
    rest = [table for table in measurements if len(table.clique) > 1 or table.coarsening]
    if told["generator"] == "descent":
        return _DescentRecords([*one_ways, *rest], schema.domain)
    for table in rest:
        if len(table.clique) == 1:
            raise DomainError(f"Prism's generator takes no 1-way in buckets ({table.clique[0]!r}); choose 'descent'")
    # Counts without negative ones: then no value is merged, whatever its noise.
    total = max(estimate_total(measurements), 1)
    size = Measurement((), np.array(total), 1.0)
    singles = [replace(one_way, values=onto_simplex(one_way.values, total)) for one_way in one_ways]
    return rebuild("Prism", schema, [size, *singles, *rest], {**asdict(PrismOptions()), "theta": 0.0})


def _one_way(name: str, measurements: Sequence[Measurement]) -> Measurement:
    """Return what was told of an attribute alone, else the most precise margin of a larger table."""
    told = [table for table in measurements if name in table.clique and name not in table.coarsening]
    alone = [table for table in told if len(table.clique) == 1]
    if alone:
        weights = [table.sigma**-2 for table in alone]
        values = np.average([table.values for table in alone], axis=0, weights=weights)
        return replace(alone[0], values=values, sigma=1 / math.sqrt(sum(weights)))
    if not told:
        raise DomainError(f"no marginal tells the single values of {name!r}; give its 1-way")
    return min((_margin(name, table) for table in told), key=lambda margin: margin.sigma)


def _margin(name: str, table: Measurement) -> Measurement:
    axis = table.clique.index(name)
    values = table.values.sum(axis=tuple(i for i in range(table.values.ndim) if i != axis))
    sigma = table.sigma * math.sqrt(table.values.size / values.size)
    return Measurement((name,), values, sigma, table.private)
