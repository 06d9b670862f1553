"""Counts, means and quantiles straight from the measurements of a release, with standard errors.

A table that was measured holds each count with noise of known size, so what is computed from it has a standard error
that no records are needed for. Where several tables hold an answer, their answers are averaged by inverse variance of
the noise. Where none does, records of the model answer, without a standard error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from chicle._checks import number
from chicle.errors import ParameterError, SchemaError
from chicle.measurements.measurement import Measurement, onto_simplex
from chicle.releases.conditional import codes_where, modelled

if TYPE_CHECKING:
    from chicle.releases.release import Release

__all__ = ["SEED", "Answer", "Count", "Mean", "Quantile", "Question", "answer"]

Floats = npt.NDArray[np.float64]

SEED = 0xA1  # of the records that answer where no table does: public


@dataclass(frozen=True, kw_only=True)
class Count:
    """How many rows satisfy a condition: for each of some columns its value, or a list of values."""

    where: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Mean:
    """The mean of a column of numbers, without missing, over the rows that satisfy a condition."""

    column: str
    where: Mapping[str, Any] = field(default_factory=dict, kw_only=True)


@dataclass(frozen=True)
class Quantile:
    """The value below which a share of the rows lies, of those that satisfy a condition and are not missing."""

    column: str
    share: float = 0.5
    where: Mapping[str, Any] = field(default_factory=dict, kw_only=True)


Question: TypeAlias = Count | Mean | Quantile


@dataclass(frozen=True)
class Answer:
    """An answer from a release.

    Attributes
    ----------
    estimate
        The answer: a number, or an array for a query.
    standard_error
        For the population that the people are a sample of: noise and sampling. None where no measured table holds it.
    noise_error
        The part of it that is noise: the standard error for these people alone.
    tables
        The cliques of the tables it was computed from.
    """

    estimate: Any
    standard_error: Any
    noise_error: Any
    tables: tuple[tuple[str, ...], ...]

    def interval(self, confidence: float = 0.95) -> tuple[Any, Any]:
        """Return the ends of the confidence interval for the population: two numbers, or two arrays for a query."""
        if not 0 < number("confidence", confidence) < 1:
            raise ParameterError(f"confidence must be between 0 and 1, not {confidence!r}")
        if self.standard_error is None:
            raise ParameterError("no measured table holds this answer, so it has no interval; use Release.draws")
        half = NormalDist().inv_cdf((1 + confidence) / 2) * self.standard_error
        return self.estimate - half, self.estimate + half


def answer(release: Release, question: Question) -> Answer:
    """Answer a question from the measurements of a release.

    Parameters
    ----------
    release
        The release.
    question
        A `Count`, `Mean` or `Quantile`.
    """
    if not isinstance(question, (Count, Mean, Quantile)):
        raise ParameterError(f"a question is a Count, a Mean or a Quantile, not a {type(question).__name__}")
    schema = release.schema
    allowed = {}
    for name, asked in question.where.items():
        codes = codes_where(schema, name, asked)
        allowed[name] = np.isin(np.arange(schema.domain[name]), codes)
    column = None if isinstance(question, Count) else question.column
    if column is not None:
        modelled("answer", [column], schema)
        if column in allowed:
            raise ParameterError(f"{column!r} is both asked for and a condition; leave it out of `where`")
    solve = _solver(question, release)
    found: list[tuple[tuple[str, ...], float, float, float]] = []
    for table in release.of_columns:
        sliced = _slice(table, allowed, column)
        if sliced is not None:
            values, sigma = sliced
            estimate, noise, sampling = solve(values, sigma)
            if math.isfinite(estimate) and noise > 0:
                found.append((table.clique, estimate, noise, sampling))
    if not found and isinstance(question, Count):
        found += _of_contrasts(release, allowed)
    if not found:
        names = tuple(name for name in schema.domain if name in allowed or name == column)
        records = release.draw(None, SEED).records
        (counts,) = records.count([names])
        sliced = _slice(Measurement(names, counts, 1.0), allowed, column)
        estimate = math.nan if sliced is None else solve(sliced[0], 1.0)[0]
        return Answer(estimate, None, None, ())
    weights = np.array([1 / noise**2 for _, _, noise, _ in found])
    weights /= weights.sum()
    estimate = float(weights @ [one[1] for one in found])
    noise = math.sqrt(float(weights**2 @ [one[2] ** 2 for one in found]))
    sampling = math.sqrt(release.alike) * float(weights @ [one[3] for one in found])
    return Answer(estimate, math.hypot(noise, sampling), noise, tuple(one[0] for one in found))


def _of_contrasts(
    release: Release, allowed: Mapping[str, npt.NDArray[np.bool_]]
) -> list[tuple[tuple[str, ...], float, float, float]]:
    """Return a count from tables of contrasts: its noise is known exactly; nothing where none holds it."""
    tables, domain = release.transcript.tables_of_contrasts(release.domain), release.schema.domain
    clique = tuple(name for name in domain if name in allowed)
    own = all(release.domain.get(name) == domain[name] for name in clique)
    if tables is None or not own or not tables.holds(clique):
        return []
    block = tables.values(clique)[np.ix_(*(allowed[name] for name in clique))] if clique else tables.values(clique)
    sigma = math.sqrt(tables.variance(clique, {name: int(allowed[name].sum()) for name in clique}))
    estimate, noise, sampling = _count(max(release.total, 1), float(block.sum()), sigma)
    return [(clique, estimate, noise, sampling)] if noise > 0 else []


def _slice(table: Measurement, allowed: Mapping[str, npt.NDArray[np.bool_]], column: str | None) -> Any:  # noqa: ANN401
    """Return the counts of a column in the group that a condition allows, and their noise; None if it lacks them."""
    needed = [*allowed] if column is None else [*allowed, column]
    if not set(needed) <= set(table.clique) or not table.whole or (column is not None and column in table.buckets):
        return None
    values = np.asarray(table.values, dtype=np.float64)
    cells = 1.0
    for axis in reversed(range(values.ndim)):
        name = table.clique[axis]
        if name == column:
            continue
        kept = np.ones(values.shape[axis], dtype=np.bool_)
        if name in allowed:
            codes = allowed[name]
            places = np.asarray(table.buckets[name]) if name in table.buckets else np.arange(codes.size)
            inside = np.bincount(places, codes, minlength=values.shape[axis])
            sizes = np.bincount(places, minlength=values.shape[axis])
            if ((inside > 0) & (inside < sizes)).any():
                return None  # a bucket has values inside and outside
            kept = inside > 0
        cells *= kept.sum()
        values = values.compress(kept, axis=axis).sum(axis=axis)
    return values, table.sigma * math.sqrt(cells)


Solver: TypeAlias = Callable[[Any, float], tuple[float, float, float]]
"""From counts and their noise to an answer, its noise error and its sampling error."""


def _solver(question: Question, release: Release) -> Solver:
    if isinstance(question, Count):
        return partial(_count, max(release.total, 1))
    kind = release.schema.columns[question.column]
    amounts = kind.amounts
    if amounts is None or kind.type in ("date", "datetime"):
        raise SchemaError(f"column {question.column!r} has no numbers; ask for a Count")
    if isinstance(question, Mean):
        return partial(_mean, amounts)
    share = number("share", question.share)
    if not 0 < share < 1:
        raise ParameterError(f"the share of a quantile must be between 0 and 1, not {question.share!r}")
    # Codes that stand for one value each are as wide as the step to the next.
    edges = np.append(amounts, 2 * amounts[-1] - amounts[-2] if amounts.size > 1 else amounts[-1] + 1)
    if kind.starts is not None and len(kind.starts) == edges.size and np.asarray(kind.starts).dtype.kind in "iuf":
        edges = np.asarray(kind.starts, dtype=np.float64)
    return partial(_quantile, edges, share)


def _count(total: int, count: Any, sigma: float) -> tuple[float, float, float]:  # noqa: ANN401 - an array of one
    part = min(max(float(count) / total, 0.0), 1.0)
    return float(count), sigma, math.sqrt(total * part * (1 - part))


def _mean(amounts: Floats, values: Floats, sigma: float) -> tuple[float, float, float]:
    counts = values[: amounts.size]
    total = float(counts.sum())
    if total <= 0:
        return math.nan, math.nan, math.nan
    centre = float(counts @ amounts) / total
    spread = max(float(counts @ (amounts - centre) ** 2) / total, 0.0)
    return centre, sigma * math.sqrt(float(((amounts - centre) ** 2).sum())) / total, math.sqrt(spread / total)


def _quantile(edges: Floats, share: float, values: Floats, sigma: float) -> tuple[float, float, float]:
    size = edges.size - 1
    total = float(values[:size].sum())
    if total <= 0:
        return math.nan, math.nan, math.nan
    heights = np.concatenate([[0.0], np.cumsum(onto_simplex(values[:size], total))]) / total

    def at(height: float) -> float:
        return float(np.interp(min(max(height, 0.0), 1.0), heights, edges))

    below = int(np.searchsorted(heights, share))
    noise = sigma * math.sqrt(below * (1 - share) ** 2 + (size - below) * share**2) / total
    sampling = math.sqrt(share * (1 - share) / total)
    half = [(at(share + error) - at(share - error)) / 2 for error in (noise, sampling)]
    return at(share), half[0], half[1]
