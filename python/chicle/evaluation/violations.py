"""Impossible rows: the share of rows that violate a constraint of the schema.

A release of chicle never has any. A table made by other software may, and the real table may where a constraint says
``violations: keep``. The Independent baseline ignores constraints: it shows what they are worth.
"""

from __future__ import annotations

import numpy as np

from chicle.counting.records import Records
from chicle.evaluation.contest import Contest
from chicle.evaluation.result import Score
from chicle.schema.constraints import Constraint

__all__ = ["violation_scores"]


def violation_scores(contest: Contest) -> list[Score]:
    """Return the share of rows that violate a constraint, and the one violated most; none without constraints."""
    constraints = contest.schema.constraints
    if not constraints:
        return []
    values = [float(_violated(other, constraints).mean()) for other in contest.others]
    shares = {str(one): float(_violated(contest.synthetic, (one,)).mean()) for one in constraints}
    most = max(shares, key=lambda one: shares[one])
    return [
        contest.score(
            "violations",
            "rows that violate a constraint",
            values,
            unit="share",
            note=f"most often {most}" if values[0] else "",
            also={"real table": float(_violated(contest.real, constraints).mean())},
        )
    ]


def _violated(records: Records, constraints: tuple[Constraint, ...]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    found = np.zeros(len(records), dtype=np.bool_)
    for one in constraints:
        found |= ~one.holds({name: records[name] for name in one.columns})
    return found
