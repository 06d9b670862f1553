"""The third NIST score: inequality of an amount within groups, and the gap between two classes; [D18] 5.1.

Every group (a city) has a Gini index of the amount (the wage) over its rows, and a gap 1 - m1/m0 between the mean
amounts of the two classes (the sexes). Over the m groups of the real table,

- the first part is 1 - sqrt(mean (g - g')^2), with g and g' the real and synthetic Gini indices;
- groups are ranked by their gap; the second part is 1 - sqrt(mean (r - r')^2 / ((m^2 - 1) / 3)), 0 for reversed ranks;

and the score is 10^6 times their mean. The paper does not say how it normalises the parts; this way is ours. A
group that is missing from the synthetic table counts as a Gini error of 1 and a gap of 0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from chicle.counting.records import count
from chicle.errors import ParameterError
from chicle.evaluation.contest import Contest
from chicle.evaluation.result import Score
from chicle.schema import Schema

__all__ = ["amounts", "check_gini", "gini", "gini_scores", "nist_gini"]

Floats = npt.NDArray[np.float64]


def gini_scores(contest: Contest, attributes: tuple[str, str, str]) -> list[Score]:
    """Return the NIST score of the Gini index and the gap, for a group, a class of two values and an amount."""
    group, by, amount = attributes
    values = amounts(contest.schema, amount)
    tables = [count(table, [(group, by, amount)], contest.threads)[0] for table in (contest.real, *contest.others)]
    known = [table[:, :2, : len(values)] for table in tables]
    scores = [nist_gini(known[0], other, values) for other in known[1:]]
    title = f"NIST Gini index and gap of {amount} by {by} within {group}"
    return [contest.score("nist_gini", title, scores, better="high", unit="score", source="[D18] 5.1")]


def check_gini(schema: Schema, attributes: tuple[str, str, str]) -> None:
    """Check that the attributes are a group, a class of two values and an amount."""
    if isinstance(attributes, str) or len(attributes) != 3:
        raise ParameterError("gini names three attributes: a group, a class of two values and an amount")
    _, by, amount = schema.domain.check(attributes)
    if schema.columns[by].size != 2:
        raise ParameterError(f"gini: {by!r}, the class, must have two values, not {schema.columns[by].size}")
    amounts(schema, amount)


def nist_gini(real: npt.NDArray[np.int64], made: npt.NDArray[np.int64], values: Floats) -> float:
    """Return the score from counts of (group, class, amount) and the number behind each code of the amount."""
    present = real.sum(axis=(1, 2)) > 0
    real, made = real[present], made[present]
    absent = made.sum(axis=(1, 2)) == 0
    off = np.array([gini(a.sum(axis=0), values) - gini(b.sum(axis=0), values) for a, b in zip(real, made, strict=True)])
    off = np.where(absent, 1.0, off)
    ranks, made_ranks = _ranks(_gaps(real, values)), _ranks(_gaps(made, values))
    most = (len(real) ** 2 - 1) / 3
    moved = ((ranks - made_ranks) ** 2).mean() / most if most else 0.0
    return 5e5 * (max(0.0, 1 - float(np.sqrt((off**2).mean()))) + max(0.0, 1 - float(np.sqrt(moved))))


def gini(counts: npt.NDArray[np.int64], values: Floats) -> float:
    """Return the Gini index of amounts with these counts: half their mean absolute difference over their mean.

    Examples
    --------
    >>> gini(np.array([1, 1]), np.array([0.0, 10.0]))
    0.5
    """
    order = np.argsort(values, kind="stable")
    rows, amount = counts[order].astype(np.float64), (counts * values)[order]
    if not amount.sum():
        return 0.0
    below = np.concatenate([[0.0], np.cumsum(amount)]) / amount.sum()
    return float(1 - (rows / rows.sum() * (below[1:] + below[:-1])).sum())


def amounts(schema: Schema, name: str) -> Floats:
    """Return the number behind each code of an attribute, without missing; for a bin, its middle."""
    column = schema.columns[name]
    if column.amounts is None:
        raise ParameterError(f"gini: {name!r}, the amount, must be a column of numbers; it is {column.type}")
    return column.amounts


def _gaps(counts: npt.NDArray[np.int64], values: Floats) -> Floats:
    rows, amount = counts.sum(axis=2), counts @ values
    means = np.divide(amount, rows, out=np.zeros_like(amount), where=rows > 0)
    known = (rows > 0).all(axis=1) & (means[:, 0] != 0)
    gaps = 1 - np.divide(means[:, 1], means[:, 0], out=np.ones(len(means)), where=known)
    return np.where(known, gaps, 0.0)


def _ranks(values: Floats) -> Floats:
    """Return ranks from 1; equal values share their mean rank."""
    _, which, times = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(times)
    shared: Floats = (last - (times - 1) / 2)[which]
    return shared
