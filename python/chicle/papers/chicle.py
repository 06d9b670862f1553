"""chicle's own claim: how good its tables are, beside every mechanism that it has."""

from dataclasses import replace

from chicle.papers.paper import Paper, Ratio, System
from chicle.papers.sources import ACS, ADULT, FIRE, MSNBC, NEW_YORK, TITANIC
from chicle.papers.studies.kernel_speed import KERNEL_SPEED

__all__ = ["CHICLE"]

_FLAGS = (
    *("State", "Region", "Division", "Income", "Age", "Workclass", "Education", "Marital Status", "Occupation"),
    *("Place of birth", "Citizenship status", "Self-care difficulty", "Hearing difficulty", "Vision difficulty"),
)
_SLOW = ("AIM",)

CHICLE = Paper(
    name="chicle",
    file="how-good",
    title="How good are chicle's tables?",
    about=(
        "Every general mechanism of chicle by the mean total variation distance of marginals. Constants of Prism were "
        "set on some of these tables, Adult among them, before there was a rule which tables only judge. The whole "
        "form takes under two hours on two cores, the quick form some minutes."
    ),
    tables=(
        ADULT,
        replace(
            ACS,
            name="ACS 2018 in two",
            binary=True,
            columns=_FLAGS,
            rows=21_574,
            note="14 attributes cut in two at their medians: a small domain",
        ),
        TITANIC,
        replace(MSNBC, slow=_SLOW),
        replace(FIRE, slow=_SLOW, note=""),
        replace(ACS, slow=_SLOW),
        replace(NEW_YORK, slow=_SLOW, note=""),
    ),
    systems=(
        System("Prism", "prism", "the default"),
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
    seeds=2,
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
    own="Prism",
    studies=(KERNEL_SPEED,),
    timeout=60,
)
