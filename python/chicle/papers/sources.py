"""The tables of the papers, with their public sources; those that are in no folder of ours say so."""

from chicle.papers.paper import Table

__all__ = ["ACS", "ADULT", "ADULT_QUERIES", "FIRE", "MSNBC", "NEW_YORK", "PUMA", "TITANIC", "absent"]

ADULT = Table(
    name="Adult",
    folder="adult",
    source="UCI Adult, as coded in the public repository nist-synthetic-data-2021 of AIM's first author",
    label="income>50K",
)
FIRE = Table(
    name="Fire",
    folder="fire",
    source="San Francisco fire calls of the NIST 2018 challenge, from the same repository",
    columns=(),
    note="30 columns; AIM's table has 15 that the paper does not name",
)
MSNBC = Table(name="MSNBC", folder="msnbc", source="UCI MSNBC anonymous web data, from the same repository")
TITANIC = Table(name="Titanic", folder="titanic", source="the public passenger list, from the same repository")
ADULT_QUERIES = Table(
    name="Adult (queries)",
    folder="adult_queries",
    source="UCI Adult as the authors of the iterative methods coded it, in their public repository iterative-dp",
)
ACS = Table(
    name="ACS 2018",
    folder="acs2018_income",
    source="American Community Survey 2018, public use microdata of the US Census Bureau",
)
NEW_YORK = Table(
    name="ACS New York",
    folder="acs2024_ny",
    source="American Community Survey 2024, public use microdata of the US Census Bureau",
    note="stands for the states of the paper, of other years",
)
PUMA = Table(
    name="New York and Pennsylvania",
    folder="acs2024_ny_pa_puma",
    source="American Community Survey 2024, public use microdata of the US Census Bureau",
    note="stands for the challenge's IPUMS table of 2012-2018; scored over all rows, not PUMA by PUMA",
)


def absent(name: str, source: str) -> Table:
    """Return a table of a paper that chicle has no copy of."""
    return Table(name=name, source=source)
