"""[P] table 3: how large the noise of a dependence score is against its range, by the number of values.

For n records and attributes of at most c values (logarithms to base 2), sensitivity over range is

    InDif                ``4 / (2 n)``; against 1-ways that were released before, ``1 / (2 n)``
    mutual information   ``(2 log((n+1)/2) + (n-1) log((n+1)/(n-1))) / (n log c)``
    entropy              ``(2 + 1/ln 2 + 2 log n) / (n log c)``: SUC is made of three entropies
"""

from __future__ import annotations

from math import log, log2

from chicle.papers.study import Case, Row, Study

__all__ = ["NOISE_RANGE", "entropy_sensitivity", "information_sensitivity"]

_RECORDS = 600_000
_VALUES = (2, 50, 100, 1_000, 10_000, 100_000)
_PUBLISHED = {
    "InDif": (2.0, 2.0, 2.0, 2.0, 2.0, 2.0),
    "mutual information": (39.3, 7.0, 5.9, 3.9, 3.0, 2.4),
    "entropy": (41.8, 7.4, 6.3, 4.2, 3.1, 2.5),
}


def information_sensitivity(n: int) -> float:
    """Return by how much one of n records moves the mutual information of two attributes, in bits.

    Examples
    --------
    >>> round(600_000 * information_sensitivity(600_000), 1)
    39.3
    """
    return (2 * log2((n + 1) / 2) + (n - 1) * log2((n + 1) / (n - 1))) / n


def entropy_sensitivity(n: int) -> float:
    """Return by how much one of n records moves an entropy, in bits.

    Examples
    --------
    >>> round(600_000 * entropy_sensitivity(600_000), 1)
    41.8
    """
    return (2 + 1 / log(2) + 2 * log2(n)) / n


def noise_ranges(case: Case) -> list[Row]:
    """Return the ratio of each score, times the number of records."""
    del case
    n = _RECORDS
    bits = {"mutual information": information_sensitivity(n) * n, "entropy": entropy_sensitivity(n) * n}
    fixed = {"InDif": 4 / 2, "InDif against released 1-ways": 1 / 2}
    rows: list[Row] = [{"score": score, "values": c, "ratio": ratio} for score, ratio in fixed.items() for c in _VALUES]
    rows += [{"score": score, "values": c, "ratio": top / log2(c)} for score, top in bits.items() for c in _VALUES]
    return rows


NOISE_RANGE = Study(
    name="ranges",
    title="Noise against range (table 3)",
    about=(
        "[P] table 3: the sensitivity of a dependence score over its range, times the number of records, for 600,000 "
        "records. Formulas, no table. [P] calls smaller better, and InDif is smallest for all these numbers of values. "
        "Against 1-ways that were released before, as chicle scores by default, InDif has a quarter of the sensitivity."
    ),
    run=noise_ranges,
    by={"score": "score", "values": "values"},
    values={"ratio": "ratio times n"},
    published={
        ("", score, c): {"ratio": ratio}
        for score, ratios in _PUBLISHED.items()
        for c, ratio in zip(_VALUES, ratios, strict=True)
    },
)
