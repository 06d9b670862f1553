"""[P] figure 5: which marginals to measure. DenseMarg against the network of PrivBayes, with noisy and exact scores."""

from __future__ import annotations

from chicle.papers.sources import ACS, ADULT, COLORADO, LOAN, US_ACCIDENT
from chicle.papers.studies.privsyn_parts import MEASURES, dense, errors_of, families, privsyn_with
from chicle.papers.study import Case, Row, Study

__all__ = ["MARGINAL_CHOICE"]

_CHOICES = {"DenseMarg": dense, "PrivBayes (InDif)": families}


def choices(case: Case) -> list[Row]:
    """Return the errors by choice, with released and with exact scores."""
    rows: list[Row] = []
    for name, choose in _CHOICES.items():
        for private in (True, False):
            made, tables = privsyn_with(case, choose=choose, private=private)
            scores = "released" if private else "exact"
            rows.append({"choice": name, "scores": scores, **errors_of(case, made), "tables": tables})
    return rows


MARGINAL_CHOICE = Study(
    name="choice",
    title="Which marginals are measured (figure 5)",
    about=(
        "[P] figure 5: DenseMarg against PrivBayes with InDif, with released and with exact scores; weighted noise and "
        "GUM as published. [P] draws curves without figures: DenseMarg is always better, by about half on range "
        "queries, and exact scores gain next to nothing. Classification is left out, and Colorado's manual choice."
    ),
    run=choices,
    by={"epsilon": "epsilon", "choice": "choice", "scores": "scores"},
    values={**MEASURES, "tables": "tables measured"},
    tables=(ADULT, ACS, US_ACCIDENT, LOAN, COLORADO),
    epsilons=(0.2, 0.4, 0.8, 1.0, 2.0),
    quick_epsilons=(0.2, 2.0),
    seeds=5,
    quick_seeds=5,
)
