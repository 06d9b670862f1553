"""Workload error ([A] Definition 2), and how many real rows drawn at random have the same error.

The error is (1/k) sum_i c_i |p_i - q_i|_1 over k cliques of weights c_i, with p_i and q_i the shares of the real and of
the synthetic rows in the cells of clique i. `subsample` finds the fraction of the real rows that would do as well.
"""

from __future__ import annotations

from collections.abc import Mapping

from chicle.domain import Clique
from chicle.evaluation.contest import Contest
from chicle.evaluation.distance import Distances
from chicle.evaluation.marginals import Observer, observe
from chicle.evaluation.result import Score
from chicle.evaluation.subsample import Subsampling

__all__ = ["counted", "workload_scores"]


def counted(contest: Contest, weights: Mapping[Clique, float], *more: Observer) -> tuple[Distances, Subsampling]:
    """Count a workload's cliques in every table; return their distances and the errors of subsamples.

    Further observers are passed every clique, too.
    """
    found = Distances.empty(len(contest.others), len(weights))
    drawn = Subsampling(len(contest.real), list(weights.values()))
    observe([contest.real, *contest.others], list(weights), contest.threads, found, drawn, *more)
    return found, drawn


def workload_scores(contest: Contest, found: Distances, drawn: Subsampling) -> list[Score]:
    """Return the workload error, and the fraction of the real rows that has it if drawn at random."""
    errors = 2 * (found.tvd * drawn.weights).mean(axis=1)
    fractions = [drawn.fraction(float(error)) for error in errors]
    what = "1 clique" if len(drawn.weights) == 1 else f"{len(drawn.weights):,} cliques"
    title = "fraction of real rows, drawn at random, that does as well"
    fields = {"better": "high", "unit": "ratio", "source": "[A] App. C"}
    return [
        contest.score("workload", f"workload error of {what}", errors, source="[A] Def. 2"),
        contest.score("subsampling", title, fractions, **fields),
    ]
