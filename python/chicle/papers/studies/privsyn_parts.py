"""PrivSyn taken apart ([P] Algorithm 3), so that one step can be changed while the others stay: for experiments.

Epsilon and delta are turned into rho as in the paper; the budget is split 1:1:8 between 1-ways, selection and tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import pi, sqrt
from typing import Any, Literal, TypeAlias

from chicle.counting.records import Records
from chicle.domain import Clique, pairs
from chicle.evaluation import evaluate
from chicle.measurements.desk import Desk
from chicle.measurements.merges import merge_rare
from chicle.measurements.scores import Scores
from chicle.mechanisms.privbayes import network
from chicle.models.base import Model
from chicle.models.composed import ComposedModel
from chicle.papers.study import Case, Row
from chicle.privacy.budget import Budget
from chicle.privacy.ledger import Ledger
from chicle.selection.combine import combine
from chicle.selection.dense_marg import dense_marg
from chicle.selection.exact_scores import exact_indif
from chicle.selection.expected_error import steady

__all__ = ["GUM", "MEASURES", "Chooser", "dense", "errors_of", "families", "privsyn_with"]

MEASURES = {"l1_2": "pairs, mean L1 error", "range_3": "range queries, mean error"}
GUM: Mapping[str, Any] = {"variant": "published", "passes": 100}
_THETA = 3.0
_QUERIES = 1_000

Noise: TypeAlias = Literal["weighted", "equal", "laplace"]
Chooser: TypeAlias = Callable[[Scores, Desk, float], list[Clique]]
"""From scores, a desk over merged values and the rho of the tables to what is measured."""


def dense(scores: Scores, desk: Desk, rho: float) -> list[Clique]:
    """Return what DenseMarg chooses, combined ([P] Algorithms 1 and 2)."""
    return combine(dense_marg(scores, desk.domain, rho=rho, allow_unprotected=True), desk.domain)


def families(scores: Scores, desk: Desk, rho: float) -> list[Clique]:
    """Return the families of a Bayesian network: PrivBayes with InDif."""
    several = [pair for pair in scores.cliques if min(desk.domain.shape(pair)) > 1]
    steadied = dict(zip(scores.cliques, steady(scores.values, scores.sigma).tolist(), strict=True))
    kept = {pair: steadied[pair] for pair in several}
    return network(kept, desk.domain, noise=1 / sqrt(pi * rho), parents=2) if kept else []


def privsyn_with(
    case: Case,
    *,
    choose: Chooser = dense,
    private: bool = True,
    noise: Noise = "weighted",
    model: Model | None = None,
) -> tuple[Records, int]:
    """Return synthetic records and how many tables of several attributes were measured. NOT PRIVATE unless `private`.

    Parameters
    ----------
    case
        The table and the budget.
    choose
        Chooses what is measured.
    private
        Whether scores are released; if not they are exact, and cost nothing.
    noise
        Gaussian noise with shares ~ cells^(2/3), or equal shares; or Laplace noise with equal shares of epsilon.
    model
        Makes records of the tables; GUM as published by default.
    """
    delta = 1 / len(case.records) ** 2
    budget = Budget(epsilon=case.epsilon, delta=delta, accounting="zcdp-basic")
    rho = budget.rho
    if noise == "laplace":
        # It is composed by itself: 0.8 of epsilon, beside Gaussian releases for 0.2 of it.
        budget = Budget(epsilon=case.epsilon, delta=delta, pure=0.8 * case.epsilon)
    desk = Desk(case.records, Ledger(budget), threads=case.threads)
    early = desk.left / 2 if noise == "laplace" else 0.1 * rho
    desk.measure_one_ways(rho=early)
    merged = desk.merged(merge_rare(desk.one_ways(), desk.domain, theta=_THETA))
    named = pairs(desk.domain)
    if private:
        scores = merged.dependence(named, rho=early)
    else:
        scores = exact_indif(case.records, pairs=named, threads=case.threads)
    chosen = choose(scores, merged, 0.8 * rho)
    if not chosen:
        desk.measure_one_ways(rho=desk.left)
    elif noise == "laplace":
        for clique in chosen:
            merged.measure_pure(clique, epsilon=0.8 * case.epsilon / len(chosen) * (1 - 1e-9))
    else:
        merged.measure(chosen, rho=desk.left, shares=[1 / len(chosen)] * len(chosen) if noise == "equal" else None)
    fitted = ComposedModel(kernel="gum", options=dict(GUM)) if model is None else model
    fitted.fit(desk.targets, desk.original, merge=merged.merge, threads=case.threads)
    return fitted.records(fitted.total, case.seed, threads=case.threads), len(chosen)


def errors_of(case: Case, made: Records) -> Row:
    """Return the errors of pairs and of range queries. NOT PRIVATE."""
    found = evaluate(case.records, made, case.schema, seed=case.seed, triples=1, queries=_QUERIES, threads=case.threads)
    return {key: found[key].value for key in MEASURES}
