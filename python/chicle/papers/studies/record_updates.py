"""[P] section 5: GUM's own choices, the decay of its rate and how freed records are filled, on exact marginals.

[P] reports them in a technical report (appendices I and J): step decay is preferable in all settings, and duplication
helps to converge. Targets here are exact counts, so that what is left is the update's own error.
"""

from __future__ import annotations

from typing import Any

from chicle.counting.records import count
from chicle.domain import pairs
from chicle.measurements.measurement import Measurement
from chicle.models.gum import DECAYS, Gum
from chicle.papers.sources import ACS, ADULT
from chicle.papers.studies.privsyn_parts import errors_of
from chicle.papers.study import Case, Row, Study
from chicle.privacy.budget import Budget
from chicle.selection.dense_marg import dense_marg
from chicle.selection.exact_scores import exact_indif

__all__ = ["RECORD_UPDATES"]

_PASSES = 100
_FLOW = {"alpha": 1.0, "decay": "constant", "duplicate": 0.0, "growth": "proportional", "removal": "excess"}
_KINDS: dict[str, dict[str, Any]] = {
    "published: step decay, half and all duplicated in turn": {},
    **{f"{decay} decay": {"decay": decay} for decay in DECAYS if decay != "step"},
    "replace only": {"duplicate": 0.0},
    "duplicate only": {"duplicate": 1.0},
    "min-cost flow (MCF)": {**_FLOW, "pairing": "flow", "order": "given"},
    "tuned (chicle)": {"variant": "tuned"},
}


def updates(case: Case) -> list[Row]:
    """Return the errors of targets and of all pairs by kind of update. NOT PRIVATE: targets are exact."""
    records, domain = case.records, case.records.domain
    scores = exact_indif(records, pairs=pairs(domain), threads=case.threads)
    rho = Budget(epsilon=case.epsilon, delta=1 / len(records) ** 2, accounting="zcdp-basic").rho
    chosen = dense_marg(scores, domain, rho=0.8 * rho, allow_unprotected=True)
    alone = [(name,) for name in domain if not any(name in pair for pair in chosen)]
    cliques = [*chosen, *alone]
    tables = count(records, cliques, threads=case.threads)
    targets = [Measurement(clique, table, 0.0) for clique, table in zip(cliques, tables, strict=True)]
    rows: list[Row] = []
    for name, options in _KINDS.items():
        run = Gum(targets, domain, seed=case.seed, threads=case.threads, **options).run(_PASSES)
        rows.append(
            {
                "update": name,
                "targets": run.trace[-1],
                "best": min(run.trace),
                "l1_2": errors_of(case, run.records())["l1_2"],
                "number": len(chosen),
            }
        )
    return rows


RECORD_UPDATES = Study(
    name="updates",
    title="GUM's update rules (section 5)",
    about=(
        "[P] compares decays of the update rate and ways to fill freed records in its technical report, and says in "
        "section 5 that step decay is preferable in all settings and that duplication helps to converge. 100 passes "
        "over the exact tables of the pairs that DenseMarg chooses by exact scores; one option of the published GUM "
        "changes in each row."
    ),
    run=updates,
    by={"update": "update"},
    values={
        "targets": "targets, mean L1 error",
        "best": "the same, best pass",
        "l1_2": "all pairs, mean L1 error",
        "number": "targets",
    },
    tables=(ADULT, ACS),
    epsilons=(2.0,),
    quick_epsilons=(2.0,),
    seeds=5,
    quick_seeds=5,
)
