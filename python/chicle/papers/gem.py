"""[G]: Liu, Vietri and Wu, iterative methods, NeurIPS 2021: figure 1, the standard setting."""

from chicle.papers.paper import Paper, Ratio, System, Table
from chicle.papers.sources import ADULT_QUERIES, NEW_YORK, absent

__all__ = ["GEM"]

_SEVEN = ("sex", "income>50K", "race", "marital-status", "occupation", "education-num", "age_10")

GEM = Paper(
    name="gem",
    title="GEM and PEP: the largest error of three-way marginals",
    about=(
        "[G] reports the largest error of a cell over a workload of triples, delta 1/n^2, five runs. Here the "
        "synthetic tables are measured, so their sampling error is a part of the result. The errors of the answers "
        "themselves, with public data too, are printed by `benches/query_release.py rows`."
    ),
    tables=(
        ADULT_QUERIES,
        Table(name="Adult (reduced)", folder="adult_queries", source=ADULT_QUERIES.source, columns=_SEVEN),
        NEW_YORK,
        absent("ACS PA-18", "American Community Survey 2018, Pennsylvania, IPUMS USA"),
    ),
    systems=(
        System("GEM", "gem", "whole tables"),
        System("GEM as published", "chicle.papers.systems:gem_published"),
        System("RAP-softmax", "rap", "rows projected onto the simplex"),
        System("PEP", "pep", "whole tables; small domains only"),
        System("PEP as published", "chicle.papers.systems:pep_published", "small domains only"),
        System("MWEM", "chicle.papers.systems:mwem_explicit", "small domains only"),
        System("DualQuery", "dualquery"),
        System("FEM", "fem"),
        System("PMWPub", "", "needs public data, which a comparison does not pass on; see the bench"),
        System("Independent", "independent"),
        System("AIM over records", "aim", "chicle's own"),
        System("Prism", "prism", "chicle's own"),
    ),
    epsilons=(0.1, 0.15, 0.2, 0.25, 0.5, 1.0),
    quick_epsilons=(0.25, 1.0),
    delta=None,
    measures={
        "max_3": "largest error of a 3-way cell",
        "tvd_3": "mean 3-way distance",
        "seconds": "seconds",
        "peak_mb": "peak MB",
    },
    options={"triples": None, "queries": 100},
    ratios=(Ratio("RAP-softmax", "GEM"), Ratio("MWEM", "PEP as published"), Ratio("Prism", "GEM")),
)
