"""[D20]: Li, Li and Wang, DPSyn in the NIST challenge of 2020: persons by area, with public data."""

from chicle.papers.paper import Paper, Ratio, System
from chicle.papers.sources import PUMA, absent

__all__ = ["DPSYN20"]

DPSYN20 = Paper(
    name="dpsyn20",
    title="DPSyn in the NIST challenge of 2020",
    about=(
        "[D20] answers a table of areas (PUMA) and years, up to 7 rows a person, with a table of other states as "
        "public data. The score is that of the challenge, 1,000 for a perfect table: 50 random pairs in each area, "
        "and an area that is off by 250 rows counts as lost. Here years are missing, and households stand for the "
        "challenge's persons."
    ),
    tables=(PUMA, absent("Ohio and Illinois", "IPUMS USA 2012-2018, in the files of the NIST 2020 challenge")),
    systems=(
        System("DPSyn", "chicle.papers.systems:dpsyn_areas", "joint columns as in [D20] where the survey has them"),
        System("Prism", "prism", "chicle's own, beside the same public data"),
        System("Prism alone", "prism-alone", "no public data"),
        System("PrivSyn alone", "privsyn-alone", "no public data; areas by chicle's rule"),
        System("MST alone", "mst-alone", "no public data; areas by chicle's rule"),
        System("Independent alone", "independent-alone", "no public data; areas by chicle's rule"),
    ),
    epsilons=(0.1, 1.0, 10.0),
    quick_epsilons=(0.1, 1.0, 10.0),
    delta=3.45e-11,
    seeds=3,
    measures={
        "nist2020": "NIST 2020 score by area, higher is better",
        "nist_density": "NIST density score of the whole table, higher is better",
        "tvd_2": "mean 2-way distance",
        "tvd_3": "mean 3-way distance",
        "seconds": "seconds",
    },
    options={"queries": 100},
    ratios=(Ratio("DPSyn", "Prism"), Ratio("DPSyn", "Prism alone"), Ratio("DPSyn", "PrivSyn alone")),
)
