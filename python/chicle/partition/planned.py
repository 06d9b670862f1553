"""The plan of a partitioned fit, before any data is seen: partitions are taken to be of equal size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from chicle.domain import Domain
from chicle.measurements.measurement import Measurement
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
    shares = budget_shares([number * size for size in rest.values()]).tolist()
    tables = []
    for (name, size), share in zip(rest.items(), shares, strict=True):
        part = chosen.share * left * share
        noise = calibrate(part, l2_sensitivity=k) if part else None
        errors = [None] if noise is None else noise_errors([float(number * size)], [noise], n)
        tables.append(
            Step(
                release="by partition",
                of=f"{of} x {name}",
                values=number * size,
                rho=part,
                sigma=noise,
                error=errors[0],
            )
        )
    return [sizes, *(tables if chosen.share else []), *steps(rest, left * (1 - chosen.share), n)]
