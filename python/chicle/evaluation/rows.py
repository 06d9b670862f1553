"""Whole rows: how many are distinct, and how many equal a real row.

These are sanity checks, not guarantees. A synthetic row that equals a real one is no leak if independence or any
public model would give it too, and a table without such rows proves nothing. The only guarantee is that of the ledger.
Look at the share beyond what the Independent baseline has by chance.

Rows are compared by 64-bit hashes: among a million rows, two different ones collide with probability 1e-8 or so.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from chicle.counting.records import Records
from chicle.evaluation.contest import Contest
from chicle.evaluation.result import Score

__all__ = ["row_hashes", "row_scores"]

Hashes = npt.NDArray[np.uint64]

_CHECK = "a sanity check, never a privacy guarantee"


def row_scores(contest: Contest) -> list[Score]:
    """Return the shares of distinct rows, of rows that equal a real one, and of unique real rows that occur."""
    real, times = np.unique(row_hashes(contest.real), return_counts=True)
    unique = real[times == 1]
    hashes = [row_hashes(other) for other in contest.others]
    distinct = [len(np.unique(rows)) / len(rows) for rows in hashes]
    matches = [float(np.isin(rows, real).mean()) for rows in hashes]
    beyond = [share - matches[2] for share in matches]
    met = [float(np.isin(unique, rows).mean()) if len(unique) else 0.0 for rows in hashes]
    return [
        contest.score(
            "distinct_rows",
            "distinct rows",
            distinct,
            better="none",
            unit="share",
            also={"real table": len(real) / len(contest.real)},
        ),
        contest.score("matches", "rows equal to a real row", matches, better="none", unit="share", note=_CHECK),
        contest.score(
            "excess_matches",
            "rows equal to a real row, beyond Independent",
            beyond,
            better="none",
            unit="share",
            note=_CHECK,
        ),
        contest.score("unique_matches", "unique real rows reproduced", met, better="none", unit="share", note=_CHECK),
    ]


def row_hashes(records: Records) -> Hashes:
    """Return a hash of every row: the same for equal rows, and almost never for others.

    Examples
    --------
    >>> first, second, third = row_hashes(Records({"a": [0, 1, 0], "b": [1, 0, 1]}, {"a": 2, "b": 2})).tolist()
    >>> first == third != second
    True
    """
    hashes = np.zeros(len(records), dtype=np.uint64)
    for name in records:
        hashes = _mixed(hashes + np.uint64(0x9E3779B97F4A7C15) + records[name])
    return hashes


def _mixed(values: Hashes) -> Hashes:
    """Spread every bit over all others: the finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
