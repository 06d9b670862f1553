"""The plan of a partitioned fit, before any data is seen: partitions are taken to be of equal size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from chicle.domain import Domain
from chicle.measurements.measurement import Measurement
from chicle.measurements.public_rows import PublicRows
from chicle.partition.areas import by_partition, public_areas
from chicle.partition.declared import Partition
from chicle.partition.rule import choose
from chicle.partition.sizes import SizesBudget
from chicle.plans import Step, noise_errors
from chicle.privacy.budget import budget_shares, calibrate

__all__ = ["plan_steps"]


def plan_steps(
    partition: Partition,
    bought: SizesBudget,
    domain: Domain,
    *,
    rho: float,
    k: int,
    n: int,
    public: PublicRows | None = None,
    steps: Callable[[Domain, float, int], list[Step]],
) -> list[Step]:
    """Return the releases of a partitioned fit.

    Parameters
    ----------
    partition, bought
        What forms partitions, and what buys their sizes.
    domain
        The attributes.
    rho, k, n
        What may be spent, how many rows one person may have, and about how many rows there are.
    public
        Public rows: where trusted ones have partitions, these say which tables are worth their price.
    steps
        The releases of the mechanism for attributes, a rho and a number of rows.
    """
    names = partition.names
    number, rest = domain.cells(names), partition.rest(domain)
    of = " x ".join(names)
    cost = 0.0 if bought.pure else bought.share * rho
    sigma = np.sqrt(2) * k / bought.pure if bought.pure else calibrate(cost, l2_sensitivity=k)
    (error,) = noise_errors([float(number)], [float(sigma)], n)
    sizes = Step(release="sizes", of=of, values=number, rho=cost, sigma=float(sigma), error=error)
    even = Measurement(names, np.full(domain.shape(names), n / number), float(sigma))
    chosen = choose(rest, partition, even, k=k, rho=rho - cost)
    left = rho - cost
    if chosen.way == "independent":
        each = steps(rest, left, n // number)
        return [sizes, *(replace(step, of=f"{step.of} in each {of}") for step in each)]
    if chosen.way == "attribute":
        return [sizes, *steps(domain, left, n)]
    areas = public_areas(public, names, None)
    spent = chosen.share * left
    asked = by_partition(rest, areas, public, size=max(n / number, 1.0), k=k, rho=spent) if spent else list(rest)
    tables = []
    for name, share in zip(asked, budget_shares([number * rest[name] for name in asked]).tolist(), strict=True):
        values, part = number * rest[name], spent * share
        noise = calibrate(part, l2_sensitivity=k) if part else None
        errors = [None] if noise is None else noise_errors([float(values)], [noise], n)
        tables.append(
            Step(release="by partition", of=f"{of} x {name}", values=values, rho=part, sigma=noise, error=errors[0])
        )
    return [sizes, *(tables if chosen.share else []), *steps(rest, left * (1 - chosen.share), n)]
