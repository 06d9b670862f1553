"""A whole query answered straight from the measurements of a release, with the standard error of each answer.

Every measured table that is at least as fine as the query gives each answer with noise of known size; where several do,
their answers are averaged by inverse variance. Where none does, records of the model answer, without a standard error.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from chicle.measurements.measurement import Measurement
from chicle.query import Query
from chicle.releases.answers import SEED, Answer

if TYPE_CHECKING:
    from chicle.domain import Domain
    from chicle.releases.release import Release

__all__ = ["answer_query"]

Floats = npt.NDArray[np.float64]


def answer_query(release: Release, query: Query) -> Answer:
    """Return the answers to a query over the columns, as arrays of its shape.

    Parameters
    ----------
    release
        The release.
    query
        A clique of columns; with buckets, a group or a functional where wanted.
    """
    domain = release.schema.domain
    query = query.checked(domain)
    found = [
        (table.clique, *contracted)
        for table in release.of_columns
        if (contracted := _contracted(table, query, domain)) is not None
    ]
    if not found and query.plain:
        found = _of_contrasts(release, query)
    if not found:
        (counts,) = release.draw(None, SEED).records.count([query])
        return Answer(np.asarray(counts, dtype=np.float64), None, None, ())
    precision = np.sum([1 / variance for _, _, variance in found], axis=0)
    estimate = np.sum([values / variance for _, values, variance in found], axis=0) / precision
    total = max(release.total, 1)
    shares = np.clip(estimate / total, 0.0, 1.0)
    noise, sampling = 1 / precision, release.alike * total * shares * (1 - shares)
    if query.functional is not None:
        weights = query.functional.weights.reshape(query.functional.answers, -1).astype(np.float64)
        estimate, noise = weights @ estimate.ravel(), weights**2 @ noise.ravel()
        mean = weights @ shares.ravel()
        sampling = release.alike * total * np.maximum(weights**2 @ shares.ravel() - mean**2, 0.0)
    return Answer(estimate, np.sqrt(noise + sampling), np.sqrt(noise), tuple(one[0] for one in found))


def _contracted(table: Measurement, query: Query, domain: Domain) -> tuple[Floats, Floats] | None:
    """Return the counts of a query from a measured table, and the variances of their noise; None if it is coarser."""
    if not table.whole or not {*query.clique, *query.where} <= set(table.clique):
        return None
    values = np.asarray(table.values, dtype=np.float64)
    variances = np.full(values.shape, float(table.sigma) ** 2)
    for axis, name in enumerate(table.clique):
        kept = _kept(name, values.shape[axis], table, query, domain)
        if kept is None:
            return None
        values, variances = (np.moveaxis(np.tensordot(kept, one, (1, axis)), 0, axis) for one in (values, variances))
    others = tuple(axis for axis, name in enumerate(table.clique) if name not in query.clique)
    left = [name for name in table.clique if name in query.clique]
    order = [left.index(name) for name in query.clique]
    values, variances = (one.squeeze(others).transpose(order) for one in (values, variances))
    return values, variances


def _kept(name: str, size: int, table: Measurement, query: Query, domain: Domain) -> Floats | None:
    """Return which places of a table's axis each place of the query's axis sums; None if the table is too coarse."""
    codes = np.arange(domain[name])
    places = np.asarray(table.buckets[name]) if name in table.buckets else codes
    if name in query.clique:
        wanted = np.asarray(query.buckets[name]) if name in query.buckets else codes
    elif name in query.where:
        wanted = np.where(codes == query.where[name], 0, -1)
    else:
        return np.ones((1, size))
    kept = np.zeros((int(wanted.max()) + 1, size))
    inside = wanted >= 0
    kept[wanted[inside], places[inside]] = 1
    # A place of the table with codes of two places of the query, or with codes outside the group, is too coarse.
    whole = np.bincount(places, minlength=size) == np.bincount(places[inside], minlength=size)
    return kept if (kept.sum(axis=0) <= 1).all() and whole[kept.any(axis=0)].all() else None


def _of_contrasts(release: Release, query: Query) -> list[tuple[tuple[str, ...], Floats, Floats]]:
    """Return a marginal from tables of contrasts, whose noise is known exactly; nothing where none holds it."""
    domain = release.schema.domain
    tables = release.transcript.tables_of_contrasts(release.domain)
    own = all(release.domain.get(name) == domain[name] for name in query.clique)
    ordered = tuple(name for name in domain if name in query.clique)
    if tables is None or not own or ordered != query.clique or not tables.holds(ordered):
        return []
    values = np.asarray(tables.values(ordered), dtype=np.float64)
    variance = float(tables.variance(ordered, dict.fromkeys(ordered, 1)))
    if not (math.isfinite(variance) and variance > 0):
        return []
    return [(ordered, values, np.full(values.shape, variance))]
