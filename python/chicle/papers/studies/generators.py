"""[P] figure 7: what makes records of measured marginals. GUM against min-cost flow and graphical models."""

from __future__ import annotations

from collections.abc import Callable

from chicle.models.base import Model
from chicle.models.composed import ComposedModel
from chicle.models.pgm import GraphicalModel
from chicle.papers.sources import ACS, ADULT, COLORADO, LOAN, US_ACCIDENT
from chicle.papers.studies.privsyn_parts import GUM, MEASURES, Chooser, dense, errors_of, families, privsyn_with
from chicle.papers.study import Case, Row, Study

__all__ = ["GENERATORS"]

_KINDS: dict[str, tuple[Chooser, Callable[[], Model]]] = {
    "GUM": (dense, lambda: ComposedModel(kernel="gum", options=dict(GUM))),
    "GUM, tuned": (dense, lambda: ComposedModel(kernel="gum", options={"variant": "tuned", "passes": 10})),
    "descent": (dense, lambda: ComposedModel(kernel="descent", options={"sweeps": 3})),
    "MCF": (dense, lambda: ComposedModel(kernel="mcf")),
    "PGM": (families, lambda: GraphicalModel(iterations=1_000)),
}


def generators(case: Case) -> list[Row]:
    """Return the errors by what makes the records."""
    rows: list[Row] = []
    for name, (choose, model) in _KINDS.items():
        made, tables = privsyn_with(case, choose=choose, private=False, model=model())
        rows.append({"generator": name, **errors_of(case, made), "tables": tables})
    return rows


GENERATORS = Study(
    name="generators",
    title="What makes the records (figure 7)",
    about=(
        "[P] figure 7: marginals are chosen by exact scores, and measured with noise. GUM and MCF take those of "
        "DenseMarg, the graphical model those of PrivBayes with InDif. PrivBayes' own sampling is left out: the "
        "graphical model of a network stands for it. [P] draws curves without figures: GUM is best, and MCF worse than "
        "the graphical model on fewer marginals. GUM is the published one with 100 passes; tuned GUM and descent are "
        "chicle's own."
    ),
    run=generators,
    by={"epsilon": "epsilon", "generator": "generator"},
    values={**MEASURES, "tables": "tables measured"},
    tables=(ADULT, ACS, US_ACCIDENT, LOAN, COLORADO),
    epsilons=(0.2, 0.4, 0.8, 1.0, 2.0),
    quick_epsilons=(0.2, 2.0),
    seeds=5,
    quick_seeds=5,
)
