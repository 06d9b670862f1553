"""[P] table 4: the relative error that noise makes in the dependence scores of all pairs.

The whole budget of an epsilon buys all scores of one kind, each with the same share of rho by [P] Theorem 2. SUC is
``2 - 2 H(A,B) / (H(A) + H(B))`` of noisy entropies, those of attributes released once. Noise here is simulated: the
relative error needs the exact score, so nothing of it could be released anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from chicle.counting.records import Records, count
from chicle.domain import Clique, pairs
from chicle.papers.sources import ACS, ADULT, COLORADO, LOAN, US_ACCIDENT
from chicle.papers.studies.noise_range import entropy_sensitivity, information_sensitivity
from chicle.papers.study import Case, Row, Study
from chicle.privacy.budget import Budget
from chicle.selection.exact_scores import exact_indif

__all__ = ["SELECTION_NOISE", "entropies"]

Floats: TypeAlias = npt.NDArray[np.float64]

_RUNS, _QUICK_RUNS = 1_000, 100


def entropies(records: Records, cliques: list[Clique], *, threads: int | None = None) -> Floats:
    """Return the exact entropy of each clique, in bits. NOT PRIVATE."""
    found = []
    for clique in cliques:
        (table,) = count(records, [clique], threads=threads)
        shares = table[table > 0] / len(records)
        found.append(-float((shares * np.log2(shares)).sum()))
    return np.array(found)


def relative_errors(case: Case) -> list[Row]:
    """Return the mean relative error of each score over pairs and draws of noise."""
    records, domain = case.records, case.records.domain
    n, named = len(records), pairs(domain)
    rho = Budget(epsilon=case.epsilon, delta=1 / n**2, accounting="zcdp-basic").rho
    single = dict(zip(domain, entropies(records, [(name,) for name in domain], threads=case.threads), strict=True))
    joint = entropies(records, named, threads=case.threads)
    own = np.array([[single[a], single[b]] for a, b in named])
    places = np.array([[domain.position(a), domain.position(b)] for a, b in named])
    indif = exact_indif(records, pairs=named, threads=case.threads).values
    information = own.sum(axis=1) - joint
    rng = np.random.default_rng(case.seed)
    runs = _QUICK_RUNS if case.quick else _RUNS

    def alone(sensitivity: float) -> Callable[[], Floats]:
        sigma = sensitivity * sqrt(len(named) / (2 * rho))
        return lambda: np.abs(rng.normal(0, sigma, len(named)))

    def symmetrical() -> Floats:
        sigma = entropy_sensitivity(n) * sqrt((len(named) + len(domain)) / (2 * rho))
        noisy = np.array(list(single.values())) + rng.normal(0, sigma, len(domain))
        table = joint + rng.normal(0, sigma, len(named))
        errors: Floats = np.abs(2 - 2 * table / noisy[places].sum(axis=1) - suc)
        return errors

    suc = 2 - 2 * joint / np.maximum(own.sum(axis=1), np.finfo(float).tiny)
    kinds: dict[str, tuple[Floats, Callable[[], Floats]]] = {
        "InDif": (indif, alone(4.0)),
        "InDif against released 1-ways": (indif, alone(1.0)),
        "mutual information": (information, alone(information_sensitivity(n))),
        "SUC": (suc, symmetrical),
    }
    # Rounding leaves entropies of independent attributes a little apart; an error relative to nothing says nothing.
    rows: list[Row] = []
    for name, (scores, errors) in kinds.items():
        positive = scores > 1e-12
        relative = np.mean([errors()[positive] / scores[positive] for _ in range(runs)], axis=0)
        mean, median = (float(np.mean(relative)), float(np.median(relative))) if positive.any() else (None, None)
        rows.append({"score": name, "mean": mean, "median": median, "pairs": int(positive.sum())})
    return rows


SELECTION_NOISE = Study(
    name="scores",
    title="Noise of dependence scores (table 4)",
    about=(
        "[P] table 4: the mean over pairs of |noisy - exact| / exact, at epsilon 2 and delta 1/n^2, 1,000 draws of "
        "noise (quick form: 100). [P] does not say which share of the budget the scores get; here they get all of it. "
        "Pairs whose exact score is 0 are left out. InDif against released 1-ways is chicle's default: its exact value "
        "is taken to be that of InDif."
    ),
    run=relative_errors,
    by={"score": "score"},
    values={"mean": "mean relative error", "median": "median over pairs", "pairs": "pairs"},
    tables=(ADULT, ACS, US_ACCIDENT, LOAN, COLORADO),
    epsilons=(2.0,),
    quick_epsilons=(2.0,),
    published={
        ("Adult", "InDif"): {"mean": 0.017},
        ("Adult", "mutual information"): {"mean": 34},
        ("Adult", "SUC"): {"mean": 396},
        ("US Accident", "InDif"): {"mean": 0.028},
        ("US Accident", "mutual information"): {"mean": 314},
        ("US Accident", "SUC"): {"mean": 2858},
        ("Loan", "InDif"): {"mean": 0.161},
        ("Loan", "mutual information"): {"mean": 543},
        ("Loan", "SUC"): {"mean": 4205},
        ("Colorado", "InDif"): {"mean": 0.137},
        ("Colorado", "mutual information"): {"mean": 735},
        ("Colorado", "SUC"): {"mean": 6933},
    },
)
