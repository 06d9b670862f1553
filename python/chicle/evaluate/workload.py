"""Workload error: [A] Definition 2, and what it is worth in rows.

The error is (1/k) sum_i c_i |p_i - q_i|_1 over k cliques of weights c_i, with p_i and q_i the shares of the real and of
the synthetic rows in the cells of clique i. `subsample` says which fraction of the real rows would do as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from chicle.domain import Clique, Domain
from chicle.errors import ParameterError
from chicle.evaluate.contest import Contest
from chicle.evaluate.distance import Distances
from chicle.evaluate.marginals import observe
from chicle.evaluate.result import Score
from chicle.evaluate.subsample import Subsampling
from chicle.privacy.budget import real as number

__all__ = ["Workload", "counted", "weighted", "workload_scores"]

Workload: TypeAlias = Mapping[Clique, float] | Sequence[Clique]
"""Cliques, all of weight 1, or each with a weight of at least 0."""


def weighted(workload: Workload, domain: Domain) -> dict[Clique, float]:
    """Return the checked cliques of a workload with their weights."""
    if isinstance(workload, str) or not isinstance(workload, (Mapping, Sequence)):
        raise ParameterError(
            f"a workload is a list of cliques, or a mapping from clique to weight, not a {type(workload).__name__}"
        )
    given = workload if isinstance(workload, Mapping) else dict.fromkeys(map(tuple, workload), 1.0)
    weights = {domain.check(clique): number("a weight of the workload", weight) for clique, weight in given.items()}
    if not weights or not all(0 <= weight < float("inf") for weight in weights.values()):
        raise ParameterError("a workload needs at least one clique, and weights that are finite and not below 0")
    return weights


def counted(contest: Contest, weights: Mapping[Clique, float]) -> tuple[Distances, Subsampling]:
    """Return what the scores of a workload are made of, counted."""
    found = Distances.empty(len(contest.others), len(weights))
    drawn = Subsampling(len(contest.real), list(weights.values()))
    observe([contest.real, *contest.others], list(weights), contest.threads, found, drawn)
    return found, drawn


def workload_scores(contest: Contest, found: Distances, drawn: Subsampling) -> list[Score]:
    """Return the workload error and the fraction of the real rows that would have it, were they drawn at random."""
    errors = 2 * (found.tvd * drawn.weights).mean(axis=1)
    fractions = [drawn.fraction(float(error)) for error in errors]
    what = "1 clique" if len(drawn.weights) == 1 else f"{len(drawn.weights):,} cliques"
    title = "rows drawn at random that do as well, of all"
    told = {"better": "high", "unit": "ratio", "source": "[A] App. C"}
    return [
        contest.score("workload", f"workload error of {what}", errors, source="[A] Def. 2"),
        contest.score("subsampling", title, fractions, **told),
    ]
