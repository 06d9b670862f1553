"""Records whose attributes are independent: each follows its own noisy 1-way marginal. The first baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chicle import _core
from chicle._checks import check_seed, integer
from chicle.counting.records import Records
from chicle.denoising.consistency import onto_simplex
from chicle.domain import Domain
from chicle.measurements.measurement import Measurement, best_one_ways, estimate_total

__all__ = ["independent"]


def independent(
    measurements: Sequence[Measurement],
    domain: Mapping[str, int],
    n: int | None = None,
    *,
    seed: int | None = None,
) -> Records:
    """Draw records that follow the measured 1-way marginals and nothing else.

    Parameters
    ----------
    measurements
        At least one of each single attribute; the most precise one is used, larger cliques only help to estimate `n`.
    domain
        The attributes.
    n
        Number of records; by default the private estimate of it.
    seed
        Fixes the draw; the noise in the measurements is not touched by it.
    """
    domain = domain if isinstance(domain, Domain) else Domain(domain)
    estimate = estimate_total(measurements)
    size = estimate if n is None else integer("n", n, 0)
    best = best_one_ways(measurements, domain)
    weights = [onto_simplex(best[name].values, max(estimate, 1)) for name in domain]
    columns = _core.draw(list(domain.values()), [None] * len(domain), weights, size, check_seed(seed))
    return Records(dict(zip(domain, columns, strict=True)), domain)
