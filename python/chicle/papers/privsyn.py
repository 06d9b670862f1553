"""[P]: Zhang et al., PrivSyn, USENIX Security 2021: figures 3 to 8, end to end."""

from chicle.papers.paper import Paper, Ratio, System
from chicle.papers.sources import ACS, ADULT, COLORADO, LOAN, US_ACCIDENT
from chicle.papers.studies.cost import COST
from chicle.papers.studies.generators import GENERATORS
from chicle.papers.studies.marginal_choice import MARGINAL_CHOICE
from chicle.papers.studies.noise_range import NOISE_RANGE
from chicle.papers.studies.noise_shares import NOISE_SHARES
from chicle.papers.studies.record_updates import RECORD_UPDATES
from chicle.papers.studies.selection_noise import SELECTION_NOISE

__all__ = ["PRIVSYN"]

PRIVSYN = Paper(
    name="privsyn",
    title="PrivSyn: pairs, range queries and classification",
    about=(
        "[P] compares published tables by the L1 error of all pairs, by 1,000 range queries of three attributes and by "
        "the misclassification of an SVM, on four tables."
    ),
    tables=(ADULT, ACS, US_ACCIDENT, LOAN, COLORADO),
    systems=(
        System("PrivSyn", "chicle.papers.systems:privsyn_published", "accounting and GUM as in the paper too"),
        System("PrivSyn of ours", "privsyn", "scores of sensitivity 1, exact accounting, other GUM options"),
        System("PrivBayes", "privbayes", "with InDif and a graphical model, as [P] replaces its scores too"),
        System("PGM", "privsyn-pgm", "PrivSyn's selection, records by a graphical model"),
        System("DualQuery", "dualquery"),
        System("Descent", "privsyn-descent", "PrivSyn's tables, records by descent"),
        System("Independent", "independent"),
        System("Prism", "prism", "chicle's own"),
    ),
    epsilons=(0.2, 0.4, 0.8, 1.0, 2.0),
    quick_epsilons=(0.2, 2.0),
    delta=None,
    measures={
        "l1_2": "pairs, mean L1 error",
        "range_3": "range queries, mean error",
        "misclassification": "misclassification of an SVM",
        "seconds": "seconds",
        "peak_mb": "peak MB",
    },
    options={"queries": 1000, "triples": 50},
    ratios=(
        Ratio("PrivBayes", "PrivSyn"),
        Ratio("PGM", "PrivSyn"),
        Ratio("PrivSyn of ours", "PrivSyn"),
        Ratio("Prism", "PrivSyn"),
    ),
    studies=(NOISE_RANGE, SELECTION_NOISE, MARGINAL_CHOICE, NOISE_SHARES, GENERATORS, RECORD_UPDATES, COST),
)
