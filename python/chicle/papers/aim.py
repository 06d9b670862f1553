"""[A]: McKenna, Mullins, Sheldon and Miklau, AIM, VLDB 2022: figure 2, ALL-3WAY."""

from chicle.papers.paper import Paper, Published, Ratio, System
from chicle.papers.sources import ADULT, FIRE_15, MSNBC, TITANIC, absent
from chicle.papers.studies.error_bounds import ERROR_BOUNDS
from chicle.papers.studies.structural_zeros import STRUCTURAL_ZEROS

__all__ = ["AIM"]

_EPSILONS = (0.01, 0.0316, 0.1, 0.316, 1.0, 3.16, 10.0, 31.6, 100.0)
_FIRE = (0.613, 0.303, 0.141, 0.087, 0.052, 0.044, 0.038, 0.029, 0.025)

AIM = Paper(
    name="aim",
    title="AIM: workload error on ALL-3WAY",
    about=(
        "[A] compares mechanisms on six tables, three workloads and nine epsilons, five runs each. This is ALL-3WAY: "
        "the workload error is the mean over all triples of the L1 distance of shares, twice the total variation. "
        "Mechanisms that [A] adapts to zCDP are accounted by exact Gaussian DP where their noise is all Gaussian."
    ),
    tables=(
        ADULT,
        TITANIC,
        MSNBC,
        FIRE_15,
        absent("Salary", "Hay et al. 2016, in the public repository dpcomp"),
        absent("NLTCS", "National Long Term Care Survey, in the same repository as Adult"),
    ),
    systems=(
        System("AIM", "aim-published"),
        System("PrivMRF", "privmrf", "R-scores of sensitivity 1; no GPU"),
        System("MST", "mst", "one vector of scores selects the tree"),
        System("MWEM+PGM", "mwem"),
        System("PrivBayes+PGM", "privbayes", "scores by distance, not mutual information"),
        System("RAP", "rap", "rows projected onto the simplex"),
        System("GEM", "gem"),
        System("HDMM+PGM", "chicle.papers.systems:residual_triples", "ResidualPlanner instead of HDMM; triples only"),
        System("Gaussian", "gaussian", "all pairs"),
        System("Independent", "independent"),
        System("AIM over records", "aim", "chicle's own"),
        System("Prism", "prism", "chicle's own"),
    ),
    epsilons=_EPSILONS,
    quick_epsilons=(0.1, 1.0, 10.0),
    measures={"workload": "workload error", "seconds": "seconds", "peak_mb": "peak MB"},
    options={"queries": 100},
    three_way=True,
    ratios=(
        Ratio("PrivMRF", "AIM", 1.3),
        Ratio("MST", "AIM", 8.4),
        Ratio("MWEM+PGM", "AIM", 2.1),
        Ratio("PrivBayes+PGM", "AIM", 2.6),
        Ratio("RAP", "AIM", 9.5),
        Ratio("GEM", "AIM", 2.3),
        Ratio("HDMM+PGM", "AIM"),
        Ratio("AIM over records", "AIM"),
        Ratio("Prism", "AIM"),
    ),
    published=(Published("Fire", "AIM", dict(zip(_EPSILONS, _FIRE, strict=True)), "[A] table 3, without zeros"),),
    studies=(ERROR_BOUNDS, STRUCTURAL_ZEROS),
)
