"""Range queries: the share of rows whose values lie in a given set, for each of some attributes.

- [P] 6.1: queries of three attributes drawn at random; the error is the mean of |c - c'| over queries, with c and c'
  the shares of the real and of the synthetic rows that fall in the range.
- [D18] 5.1: every attribute is in a query with probability 0.33, and some real row must satisfy it. With f and f' the
  two shares and d = ln(max(f', 1e-6) / f), the score is 10^6 max(0, 1 - sqrt(mean d^2) / ln 10^3).

An ordinal attribute gets a random interval of its codes, any other a random set of 1 to all of its values. For [D18]
a real row is drawn first, and each condition is drawn from those that hold for it.

All queries are answered at once. Each code of an attribute has a bit for each query, eight to a byte; a row's answers
are the bitwise AND of those of its codes. Cost: O(rows * attributes * queries / 8) bytes moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isqrt, log
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from chicle.counting.records import Records
from chicle.evaluation.contest import Contest
from chicle.evaluation.result import Score
from chicle.schema import Schema

__all__ = ["RangeQuery", "nist_range_scores", "range_scores", "shares"]

Mask: TypeAlias = npt.NDArray[np.bool_]
Floats: TypeAlias = npt.NDArray[np.float64]
RangeQuery: TypeAlias = Mapping[str, Mask]
"""For each attribute of the query, which of its codes satisfy it."""

_ATTRIBUTES = 3
_CHANCE = 0.33
_ROWS = 2**14


def range_scores(contest: Contest, queries: int) -> list[Score]:
    """Return the mean error of random range queries of three attributes, [P] 6.1."""
    rng = contest.rng("range queries")
    names = list(contest.real)
    size = min(_ATTRIBUTES, len(names))
    drawn: list[RangeQuery] = []
    for _ in range(queries):
        picked = rng.choice(len(names), size, replace=False)
        drawn.append({names[i]: _condition(contest.schema, names[i], None, rng) for i in picked})
    real = shares(contest.real, drawn)
    values = [np.abs(shares(other, drawn) - real).mean() for other in contest.others]
    title = f"mean error of {queries:,} range queries"
    return [contest.score("range_3", title, values, source="[P] 6.1")]


def nist_range_scores(contest: Contest, queries: int) -> list[Score]:
    """Return the NIST score of random range queries over a third of the attributes, [D18] 5.1."""
    rng = contest.rng("NIST range queries")
    names = list(contest.real)
    drawn: list[RangeQuery] = []
    for row in rng.integers(0, len(contest.real), queries):
        picked = np.flatnonzero(rng.random(len(names)) < _CHANCE)
        picked = picked if len(picked) else rng.integers(0, len(names), 1)
        drawn.append(
            {names[i]: _condition(contest.schema, names[i], int(contest.real[names[i]][row]), rng) for i in picked}
        )
    real = shares(contest.real, drawn)
    values = [nist_range(real, shares(other, drawn)) for other in contest.others]
    return [contest.score("nist_range", "NIST range queries", values, better="high", unit="score", source="[D18] 5.1")]


def nist_range(real: Floats, made: Floats) -> float:
    """Return the NIST score of queries' real and synthetic shares; [D18] 5.1.

    Examples
    --------
    >>> nist_range(np.array([0.5, 0.1]), np.array([0.5, 0.1]))
    1000000.0
    """
    ratios = np.log(np.maximum(made, 1e-6) / real)
    return 1e6 * max(0.0, 1 - float(np.sqrt((ratios**2).mean())) / log(1e3))


def shares(records: Records, queries: Sequence[RangeQuery]) -> Floats:
    """Return the share of the records that satisfies each query.

    Examples
    --------
    >>> records = Records({"a": [0, 1, 2, 2]}, {"a": 3})
    >>> shares(records, [{"a": np.array([True, False, True])}]).tolist()
    [0.75]
    """
    asked = {name for query in queries for name in query}
    answers = {name: _answers(name, queries, records.domain[name]) for name in records if name in asked}
    total = np.zeros(len(queries), dtype=np.int64)
    for start in range(0, len(records), _ROWS):
        rows = min(_ROWS, len(records) - start)
        satisfied = np.full((rows, _bytes(queries)), 255, dtype=np.uint8)
        for name, bits in answers.items():
            satisfied &= bits[records[name][start : start + rows]]
        total += np.unpackbits(satisfied, axis=1, count=len(queries)).sum(axis=0, dtype=np.int64)
    return total / len(records)


def _bytes(queries: Sequence[RangeQuery]) -> int:
    return -(-len(queries) // 8)


def _answers(name: str, queries: Sequence[RangeQuery], cardinality: int) -> npt.NDArray[np.uint8]:
    """Return for each code of an attribute a bit for each query: whether the code satisfies it."""
    bits = np.full((cardinality, _bytes(queries)), 255, dtype=np.uint8)
    for i, query in enumerate(queries):
        if name in query:
            bits[~query[name], i // 8] &= 255 ^ (128 >> i % 8)
    return bits


def _condition(schema: Schema, name: str, holds_for: int | None, rng: np.random.Generator) -> Mask:
    """Draw which codes of an attribute satisfy a query; with `holds_for`, one that holds for this code."""
    size = schema.domain[name]
    allowed = np.zeros(size, dtype=np.bool_)
    values = schema.columns[name].size
    if name in schema.ordinal and (holds_for is None or holds_for < values):
        if holds_for is None:
            low, high = np.sort(rng.integers(0, values, 2))
        else:
            low, high = rng.integers(0, holds_for + 1), rng.integers(holds_for, values)
        allowed[low : high + 1] = True
    elif holds_for is None:
        allowed[rng.choice(size, rng.integers(1, size + 1), replace=False)] = True
    else:
        # A random set of m of c values holds a given one with probability m/c, so size m is drawn with weight m.
        many = (isqrt(8 * int(rng.integers(size * (size + 1) // 2)) + 1) + 1) // 2
        others = rng.choice(size - 1, many - 1, replace=False)
        allowed[others + (others >= holds_for)] = True
        allowed[holds_for] = True
    return allowed
