"""[A] section 5 and figure 4 (c): bounds on the errors of AIM's table, whether they hold and how tight they are.

Three kinds of bounds, each with 95 % confidence:

- cliques that some measurement holds, by the Chernoff bound of [A] Theorem 3 and Corollary 1, with lambda 1.7;
- the same by the quantile of the noise's L1 norm, as chicle computes it (`chicle.releases.bounds`);
- other cliques, by the choices of the exponential mechanism: [A] Theorem 4 and Corollary 2.

Bound and error are L1 distances of counts over the released number of rows, so 2 is the most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from chicle.counting.records import Records
from chicle.mechanisms import AIM
from chicle.papers.sources import ADULT, FIRE_15, MSNBC, TITANIC
from chicle.papers.study import Case, Row, Study
from chicle.query import Query
from chicle.releases.bounds import ErrorBound, count_in_buckets
from chicle.workload import Workload

__all__ = ["ERROR_BOUNDS", "chernoff"]

Floats: TypeAlias = npt.NDArray[np.float64]

_LAMBDA = 1.7
_DELTA = 1e-9
_KINDS = ("supported, Theorem 3", "supported, chicle's quantile", "unsupported, Theorem 4")


def chernoff(sigma: float, cells: int, lam: float = _LAMBDA) -> float:
    """Return what the L1 norm of noise in some cells exceeds with probability ``exp(-lam^2)`` at most ([A] Theorem 3).

    Examples
    --------
    >>> round(chernoff(10.0, 100))
    1418
    """
    return math.sqrt(2 * math.log(2)) * sigma * cells + lam * sigma * math.sqrt(2 * cells)


def bounds(case: Case) -> list[Row]:
    """Return, by kind of bound, how many hold and how tight they are. NOT PRIVATE: errors are exact."""
    synth = AIM(published=True, epsilon=case.epsilon, delta=_DELTA, allow_weak=True, threads=case.threads)
    made: Records = synth.fit(case.records, case.schema).sample(seed=case.seed)
    release, domain = synth.release_, case.records.domain
    cliques = Workload.all_kway(domain, min(3, len(domain))).closure()
    found = release.error_bounds(cliques, synthetic=made, threads=case.threads)
    total = max(release.total, 1)
    asked = [Query(clique) for clique in cliques]
    both = (count_in_buckets(one, asked, case.threads) for one in (case.records, made))
    seen: dict[str, list[tuple[float, float]]] = {kind: [] for kind in _KINDS}
    for bound, real, other in zip(found, *both, strict=True):
        synthetic = other * (total / max(len(made), 1))
        error = float(np.abs(real - synthetic).sum())
        if bound.supported:
            seen[_KINDS[0]].append((_by_theorem_3(bound, synthetic), error))
            seen[_KINDS[1]].append((bound.table_error, error))
        elif bound.known:
            seen[_KINDS[2]].append((bound.table_error, error))
    rows = [_row(kind, pairs, total) for kind, pairs in seen.items()]
    return [*rows, {**_row("none", [], total), "cliques": sum(not bound.known for bound in found)}]


def _by_theorem_3(bound: ErrorBound, synthetic: Floats) -> float:
    """Return the bound of [A] Corollary 1, in records."""
    assert bound.estimate is not None  # noqa: S101 - it is supported
    assert bound.sigma is not None  # noqa: S101
    apart = float(np.abs(synthetic - bound.estimate).sum())
    return apart + chernoff(float(bound.sigma.max()), bound.estimate.size)


def _row(kind: str, pairs: Sequence[tuple[float, float]], total: int) -> Row:
    """Return how bounds compare with errors, both in records."""
    if not pairs:
        return {"kind": kind, "cliques": 0, **dict.fromkeys(("held", "ratio", "bound", "error", "trivial"))}
    ratios = [bound / error for bound, error in pairs if error > 0]
    return {
        "kind": kind,
        "cliques": len(pairs),
        "held": fmean(bound >= error for bound, error in pairs),
        "ratio": median(ratios) if ratios else None,
        "bound": median(bound for bound, _ in pairs) / total,
        "error": median(error for _, error in pairs) / total,
        "trivial": fmean(bound >= 2 * total for bound, _ in pairs),
    }


ERROR_BOUNDS = Study(
    name="bounds",
    title="Bounds on errors (section 5, figure 4 c)",
    about=(
        "[A] section 6.6: AIM as published on Fire, all triples and what is in them, epsilon 10, bounds of 95 % "
        "confidence. It reports that all hold, and medians of bound over error. Errors and bounds are L1 distances of "
        "shares; 2 and more says nothing. chicle's bounds take AIM's own releases; Theorem 3's are computed from the "
        "same estimates with lambda 1.7. Theorem 4 divides its risk evenly, which is next to the paper's 2.7 and 3.7."
    ),
    run=bounds,
    by={"epsilon": "epsilon", "kind": "bound"},
    values={
        "cliques": "cliques",
        "held": "share that holds",
        "ratio": "median of bound / error",
        "bound": "median bound",
        "error": "median error",
        "trivial": "share of 2 and more",
    },
    tables=(FIRE_15, ADULT, TITANIC, MSNBC),
    epsilons=(10.0,),
    quick_epsilons=(1.0, 10.0),
    quick_tables=3,
    published={
        ("Fire", 10.0, "supported, Theorem 3"): {"held": 1.0, "ratio": 4.4},
        ("Fire", 10.0, "unsupported, Theorem 4"): {"held": 1.0, "ratio": 8.3},
    },
)
