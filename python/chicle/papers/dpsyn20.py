"""[D20]: Li, Li and Wang, DPSyn in the NIST challenge of 2020: a table of persons by PUMA, with public data."""

from chicle.papers.paper import Paper, Ratio, System
from chicle.papers.sources import PUMA, absent

__all__ = ["DPSYN20"]

DPSYN20 = Paper(
    name="dpsyn20",
    title="DPSyn in the NIST challenge of 2020",
    about=(
        "[D20] answers a table of PUMA and year, several rows a person, with a table of another state as public data. "
        "A comparison takes neither public data nor persons, so the challenge's own setting is not run here."
    ),
    tables=(PUMA, absent("Ohio and Illinois", "IPUMS USA 2012-2018, in the files of the NIST 2020 challenge")),
    systems=(
        System("DPSyn", "dpsyn"),
        System("PrivSyn", "privsyn"),
        System("MST", "mst"),
        System("Independent", "independent"),
        System("Prism", "prism", "chicle's own"),
    ),
    epsilons=(0.1, 1.0, 10.0),
    quick_epsilons=(0.1, 10.0),
    delta=None,
    seeds=3,
    measures={
        "nist_density": "NIST density score, higher is better",
        "tvd_2": "mean 2-way distance",
        "tvd_3": "mean 3-way distance",
        "seconds": "seconds",
    },
    options={"queries": 100},
    ratios=(Ratio("DPSyn", "PrivSyn"), Ratio("MST", "Prism")),
)
