"""chicle's own claim: how good its tables are, beside every mechanism that it has."""

from dataclasses import replace

from chicle.papers.paper import Paper, Ratio, System
from chicle.papers.sources import ACS, ADULT, FIRE, MSNBC, NEW_YORK, TITANIC

__all__ = ["CHICLE"]

CHICLE = Paper(
    name="chicle",
    title="How good are chicle's tables?",
    about="Every general mechanism of chicle on all tables at hand, by the mean total variation distance of marginals.",
    tables=(
        ADULT,
        replace(ADULT, name="Adult in two", binary=True, note="the attributes cut in two at their medians"),
        ACS,
        NEW_YORK,
        FIRE,
        MSNBC,
        TITANIC,
    ),
    systems=(
        System("Prism", "prism"),
        System("AIM over records", "aim"),
        System("AIM", "aim-published"),
        System("PrivMRF", "privmrf"),
        System("MST", "mst"),
        System("PrivSyn", "privsyn"),
        System("PrivBayes", "privbayes"),
        System("Residual", "residual", "all pairs"),
        System("Gaussian", "gaussian", "all pairs"),
        System("DPSyn", "dpsyn"),
        System("Independent", "independent"),
    ),
    epsilons=(0.2, 1.0, 5.0),
    quick_epsilons=(0.2, 1.0, 5.0),
    seeds=3,
    measures={
        "tvd_3": "mean 3-way distance",
        "tvd_2": "mean 2-way distance",
        "tvd_1": "mean 1-way distance",
        "seconds": "seconds",
        "peak_mb": "peak MB",
    },
    options={"queries": 100},
    ratios=tuple(
        Ratio(name, "Prism") for name in ("AIM over records", "AIM", "PrivMRF", "MST", "PrivSyn", "PrivBayes")
    ),
)
