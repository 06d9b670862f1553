"""[P] figure 6: how the budget of the chosen marginals is shared, and by which noise it is spent."""

from __future__ import annotations

from chicle.papers.sources import ACS, ADULT, COLORADO, LOAN, US_ACCIDENT
from chicle.papers.studies.privsyn_parts import MEASURES, Noise, errors_of, privsyn_with
from chicle.papers.study import Case, Row, Study

__all__ = ["NOISE_SHARES"]

_KINDS: dict[str, Noise] = {"weighted Gaussian": "weighted", "equal Gaussian": "equal", "equal Laplace": "laplace"}


def noises(case: Case) -> list[Row]:
    """Return the errors by kind of noise."""
    rows: list[Row] = []
    for name, noise in _KINDS.items():
        made, tables = privsyn_with(case, noise=noise)
        rows.append({"noise": name, **errors_of(case, made), "tables": tables})
    return rows


NOISE_SHARES = Study(
    name="noise",
    title="Weighted against equal noise (figure 6)",
    about=(
        "[P] figure 6: Gaussian noise with shares ~ cells^(2/3), equal shares, and Laplace noise with equal shares of "
        "epsilon; DenseMarg and GUM as published. [P] draws curves without figures: weighted Gaussian is always best, "
        "more so at larger epsilon. Laplace noise gets 0.8 of epsilon here, 1-ways and scores Gaussian noise for 0.2."
    ),
    run=noises,
    by={"epsilon": "epsilon", "noise": "noise"},
    values={**MEASURES, "tables": "tables measured"},
    tables=(ADULT, ACS, US_ACCIDENT, LOAN, COLORADO),
    epsilons=(0.2, 0.4, 0.8, 1.0, 2.0),
    quick_epsilons=(0.2, 2.0),
    seeds=5,
    quick_seeds=5,
)
