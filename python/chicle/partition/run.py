"""Fit a partitioned table: sizes first, then one of three ways, by a rule that reads only what was released.

*Independent*: the mechanism runs on each partition by itself. Partitions share no row, so all of them cost what one
costs (`Desk.groups`). *Pooled*: the mechanism runs on the whole table without the attributes of the partition, and the
table of each other attribute by partition says how partitions differ. Few partitions at a small budget are left to the
mechanism as one more attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from chicle.domain import Clique, Domain
from chicle.errors import ChicleError
from chicle.measurements.desk import Desk
from chicle.measurements.measurement import Measurement
from chicle.measurements.merges import Merge
from chicle.measurements.scores import Choice, Scores
from chicle.measurements.transcript import Entry
from chicle.models.base import Model
from chicle.partition.areas import by_partition, public_areas
from chicle.partition.declared import Partition
from chicle.partition.model import PartitionedModel
from chicle.partition.rule import choose
from chicle.partition.sizes import SizesBudget
from chicle.query import Query, QueryLike, as_query

__all__ = ["run_partitioned"]

_ROUNDING = 1 - 2.0**-40


class Runs(Protocol):
    """A mechanism."""

    @property
    def public_data(self) -> str: ...
    def check(self, domain: Domain) -> None: ...
    def run(self, desk: Desk) -> Model: ...
    def run_beside_public(self, desk: Desk) -> Model: ...


def run_partitioned(mechanism: Runs, desk: Desk, partition: Partition, bought: SizesBudget) -> Model:
    """Spend the budget of a desk on a partitioned table; return the model of what was measured.

    Parameters
    ----------
    mechanism
        What measures each partition, or the whole table.
    desk
        The desk over the whole table.
    partition
        What forms partitions.
    bought
        What buys their sizes.
    """
    names = desk.domain.check(partition.names)
    if bought.pure:
        sizes = desk.measure_pure(names, epsilon=bought.pure * _ROUNDING, purpose="sizes")
    else:
        (sizes,) = desk.measure([names], rho=bought.share * desk.left, purpose="sizes")
    chosen = choose(
        partition.rest(desk.domain), partition, sizes, k=desk.k, rho=desk.left, whole=_takes(mechanism, desk.domain)
    )
    desk.note(chosen.note)
    if chosen.way == "attribute":
        return mechanism.run_beside_public(desk)
    if chosen.way == "independent":
        return _independent(mechanism, desk, names)
    return _pooled(mechanism, desk, names, chosen.share)


def _takes(mechanism: Runs, domain: Domain) -> bool:
    """Return whether a mechanism can be fitted to these attributes."""
    try:
        mechanism.check(domain)
    except ChicleError:
        return False
    return True


def _independent(mechanism: Runs, desk: Desk, names: Clique) -> PartitionedModel:
    models = []
    if desk.public is not None and mechanism.public_data == "weighed":
        desk.note("Each partition was fitted by itself, without public data.")
    shape = desk.domain.shape(names)
    for place, group in enumerate(desk.groups(names, rho=desk.left, purpose="each partition")):
        models.append(mechanism.run(group))
        group.close()
        codes = np.unravel_index(place, shape)
        where = dict(zip(names, map(int, codes), strict=True))
        desk.transcript.entries += _inside(group.transcript.entries, where)
    model = PartitionedModel.independent(names, models)
    return model.fit(desk.transcript.measurements, desk.domain, amounts=desk.amounts, threads=desk.threads)


def _pooled(mechanism: Runs, desk: Desk, names: Clique, share: float) -> PartitionedModel:
    whole = desk.apart(names)
    areas = public_areas(desk.public, names, desk.threads)
    if share > 0:
        rho = share * desk.left
        asked = by_partition(whole.domain, areas, desk.public, size=_mean_size(desk, names), k=desk.k, rho=rho)
        desk.measure([(*names, name) for name in asked], rho=rho, purpose="by partition")
    inner = mechanism.run_beside_public(whole)
    desk.transcript.entries += [
        Merge(desk.domain, entry.changes) if isinstance(entry, Merge) else entry for entry in whole.transcript.entries
    ]
    desk.transcript.notes += whole.transcript.notes
    model = PartitionedModel.pooled(names, inner, areas)
    model.fit(desk.targets, desk.domain, amounts=desk.amounts, threads=desk.threads)
    if areas is not None:
        desk.note(f"public data: {areas.said(model.believed)}")
    return model


def _mean_size(desk: Desk, names: Clique) -> float:
    """Return about how many rows a partition has, from their noisy sizes."""
    (sizes,) = [one for one in desk.targets if one.clique == names]
    return max(float(sizes.floats.mean()), 1.0)


def _inside(entries: Sequence[Entry], where: dict[str, int]) -> list[Entry]:
    """Return the entries of a partition's transcript as entries about a group of the whole table.

    Merges stay with the model of the partition: they are made from its 1-ways and of nobody else's values.
    """

    def asked(query: QueryLike) -> Query:
        one = as_query(query)
        return Query(one.clique, one.buckets, {**where, **one.where}, one.functional)

    found: list[Entry] = []
    for entry in entries:
        if isinstance(entry, Measurement):
            found.append(replace(entry, where={**where, **entry.where}))
        elif isinstance(entry, Scores):
            found.append(replace(entry, queries=tuple(asked(one) for one in entry.queries)))
        elif isinstance(entry, Choice):
            found.append(replace(entry, query=asked(entry.query)))
    return found
