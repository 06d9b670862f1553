"""[D18]: Li, Zhang and Wang, DPSyn in the NIST challenges of 2018: density and range scores."""

from chicle.papers.paper import Paper, Ratio, System
from chicle.papers.sources import FIRE, absent

__all__ = ["DPSYN18"]

DPSYN18 = Paper(
    name="dpsyn18",
    title="DPSyn in the NIST challenge of 2018",
    about=(
        "[D18] describes entries to a challenge, scored by its organisers. The density and the range "
        "score are chicle's, after the rules of the challenge; the Gini score needs the census table."
    ),
    tables=(FIRE, absent("Colorado", "1940 census of Colorado, IPUMS, in the files of the NIST 2018 challenge")),
    systems=(
        System("DPSyn", "dpsyn"),
        System("PrivSyn", "privsyn"),
        System("MST", "mst", "the winner of the challenge's last match, in its general form"),
        System("PrivBayes", "privbayes"),
        System("Independent", "independent"),
        System("Prism", "prism", "chicle's own"),
    ),
    epsilons=(0.3, 1.0, 8.0),
    quick_epsilons=(0.3, 8.0),
    delta=None,
    measures={
        "nist_density": "NIST density score, higher is better",
        "nist_range": "NIST range score, higher is better",
        "tvd_3": "mean 3-way distance",
        "seconds": "seconds",
    },
    options={"queries": 300},
    ratios=(Ratio("DPSyn", "PrivSyn"), Ratio("MST", "Prism")),
)
