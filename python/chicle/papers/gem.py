"""[G]: Liu, Vietri and Wu, iterative methods, NeurIPS 2021: figures 1 and 2, without and with public data."""

from dataclasses import replace
from itertools import combinations

import numpy as np

from chicle.domain import Domain
from chicle.papers.paper import Paper, Public, Ratio, System, Table
from chicle.papers.sources import ADULT_QUERIES, NEW_YORK, absent
from chicle.workload import Workload

__all__ = ["GEM"]

_SEVEN = ("sex", "income>50K", "race", "marital-status", "occupation", "education-num", "age_10")
_TRIPLES = 4_096  # of the survey's, as in [G]
_RACE = ("race", 2)  # a tenth of the people

_REDUCED = Table(name="Adult (reduced)", folder="adult_queries", source=ADULT_QUERIES.source, columns=_SEVEN)


def _triples(domain: Domain, _: Table) -> Workload:
    """All triples, or as many drawn as [G] has."""
    every = list(combinations(domain, 3))
    if len(every) <= _TRIPLES:
        return Workload(every)
    drawn = np.random.default_rng(0).choice(len(every), _TRIPLES, replace=False)
    return Workload(every[i] for i in sorted(drawn.tolist()))


GEM = Paper(
    name="gem",
    title="GEM and PEP: the largest error of three-way marginals, without and with public data",
    about=(
        "[G] reports the largest error of a cell over a workload of triples, delta 1/n^2, five runs, the best of "
        "several settings by the true error. Here settings are fixed, and the synthetic tables are measured, so their "
        "sampling error is a part of the result; the errors of the answers themselves are printed by "
        "`benches/query_release.py rows`. The first tables are the standard setting. The others have public data of "
        "three kinds ([G] 7): rows of the same people, with half of the attributes as a case of its own; rows that "
        "lack some people; a neighbouring state."
    ),
    tables=(
        ADULT_QUERIES,
        _REDUCED,
        replace(
            ADULT_QUERIES,
            name="Adult beside public rows",
            public=Public(folder="adult_queries", note="4,869 other rows of Adult, as [G] split them"),
        ),
        replace(
            _REDUCED,
            name="Adult (reduced) beside public rows without one race",
            public=Public(
                folder="adult_queries",
                without=_RACE,
                note="the same public rows without one race, a tenth of the people: no weights on them can be right",
            ),
        ),
        NEW_YORK,
        replace(
            NEW_YORK,
            name="ACS New York beside New Jersey",
            public=Public(
                folder="acs2024_nj", note="the survey's rows of New Jersey, for another year or state of [G]"
            ),
        ),
        absent("ACS PA-18", "American Community Survey 2018, Pennsylvania, IPUMS USA"),
        absent("ACS PA-18 beside PA-10 and CA-18", "the same of 2010, and of California, IPUMS USA"),
    ),
    systems=(
        System("GEM", "gem-alone", "whole tables, no public data"),
        System("GEM as published", "chicle.papers.systems:gem_published", public=False),
        System("RAP-softmax", "rap", "rows projected onto the simplex", public=False),
        System("PEP", "pep", "whole tables; small domains only", public=False),
        System("PEP as published", "chicle.papers.systems:pep_published", "small domains only", public=False),
        System("MWEM", "chicle.papers.systems:mwem_explicit", "small domains only", public=False),
        System("DualQuery", "dualquery", public=False),
        System("FEM", "fem", public=False),
        System("GEM-pub", "gem", "whole tables", public=True),
        System(
            "GEM-pub (half)",
            "chicle.papers.systems:gem_pub_half",
            "the public table has every second attribute, 7 of the 13 of Adult as in [G]",
            public=True,
        ),
        System("PMW-pub", "pmwpub", "whole tables", public=True),
        System("PMW-pub as published", "chicle.papers.systems:pmw_pub_published", public=True),
        System("Independent", "independent-alone"),
        System("AIM over records", "aim-alone", "chicle's own, no public data"),
        System("Prism", "prism-alone", "chicle's own, no public data"),
        System("Prism beside public data", "prism", "chicle's own", public=True),
    ),
    epsilons=(0.1, 0.15, 0.2, 0.25, 0.5, 1.0),
    quick_epsilons=(0.25, 1.0),
    delta=None,
    measures={
        "workload_max": "largest error of a 3-way cell",
        "workload_mean": "mean error of a 3-way cell",
        "tvd_3": "mean 3-way distance",
        "seconds": "seconds",
        "peak_mb": "peak MB",
    },
    options={"queries": 100},
    workloads={"": _triples},
    quick_tables=4,
    ratios=(
        Ratio("RAP-softmax", "GEM"),
        Ratio("MWEM", "PEP as published"),
        Ratio("GEM", "GEM-pub"),
        Ratio("GEM", "GEM-pub (half)"),
        Ratio("PMW-pub", "GEM-pub"),
        Ratio("PMW-pub as published", "GEM-pub"),
        Ratio("Prism", "GEM"),
        Ratio("Prism", "Prism beside public data"),
    ),
)
