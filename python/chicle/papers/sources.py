"""The tables of the papers, with their public sources; those that are in no folder of ours say so."""

from dataclasses import replace

from chicle.papers.paper import Public, Table

__all__ = [
    "ACS",
    "ADULT",
    "ADULT_QUERIES",
    "COLORADO",
    "FIRE",
    "FIRE_15",
    "LOAN",
    "MSNBC",
    "NEW_YORK",
    "PUMA",
    "TITANIC",
    "US_ACCIDENT",
    "absent",
]

# fmt: off
_CHALLENGE = (
    "PUMA", "AGEP", "SEX", "RAC1P", "HISP", "CIT", "ENG", "SCHL", "MAR", "ESR", "INDP", "OCCP", "COW",
    "WKHP", "JWMNP", "PINCP", "WAGP", "POVPIP", "HICOV", "PRIVCOV", "PUBCOV", "DIS", "MIL", "TEN", "HINCP",
)
# fmt: on

ADULT = Table(
    name="Adult",
    folder="adult",
    digest="ff5544a95a845941",
    source="UCI Adult, as coded in the public repository nist-synthetic-data-2021 of AIM's first author",
    label="income>50K",
)
FIRE = Table(
    name="Fire",
    folder="fire",
    digest="d45b90f6e5ebcb3b",
    source="San Francisco fire calls of the NIST 2018 challenge, from the same repository",
    note="30 columns; AIM's table has 15 that the paper does not name",
)
# [A] table 2 does not name its attributes. These are all of 2 to 46 values; their number and the size of their joint
# domain, 4e15, are those of the table.
FIRE_15 = replace(
    FIRE,
    columns=(
        "ALS Unit",
        "Final Priority",
        "Call Type Group",
        "Original Priority",
        "Priority",
        "City",
        "Unit Type",
        "Fire Prevention District",
        "Battalion",
        "Supervisor District",
        "Call Final Disposition",
        "Zipcode of Incident",
        "Call Type",
        "Neighborhooods - Analysis Boundaries",
        "Station Area",
    ),
    quick=(
        "Final Priority",
        "Call Type Group",
        "City",
        "Fire Prevention District",
        "Battalion",
        "Supervisor District",
        "Zipcode of Incident",
    ),
    note="the 15 attributes of 2 to 46 values, which have the joint domain, 4e15, of the table in [A]",
)
MSNBC = Table(
    name="MSNBC",
    folder="msnbc",
    digest="5e9d6c1b2ec638b2",
    source="UCI MSNBC anonymous web data, from the same repository",
)
TITANIC = Table(
    name="Titanic",
    folder="titanic",
    digest="e81aa51f47d1e210",
    source="the public passenger list, from the same repository",
    label="Survived",
)
ADULT_QUERIES = Table(
    name="Adult (queries)",
    folder="adult_queries",
    digest="5b5068e1011abefb",
    source="UCI Adult as the authors of the iterative methods coded it, in their public repository iterative-dp",
)
ACS = Table(
    name="ACS 2018",
    folder="acs2018_income",
    digest="bc24c13f1296499d",
    source="American Community Survey 2018, public use microdata of the US Census Bureau",
)
NEW_YORK = Table(
    name="ACS New York",
    folder="acs2024_ny",
    digest="079971a05dff0813",
    source="American Community Survey 2024, public use microdata of the US Census Bureau",
    note="stands for the states of the paper, of other years",
)
PUMA = Table(
    name="New York and Pennsylvania",
    folder="acs2024_ny_pa_puma",
    digest="a1e1a2236f8f8202",
    source="American Community Survey 2024, public use microdata of the US Census Bureau",
    columns=_CHALLENGE,
    widths={"AGEP": 5},
    person="HOUSEHOLD",
    max_rows=7,
    partition=("PUMA",),
    public=Public(
        folder="acs2024_il_oh_puma",
        role="trusted",
        note="Illinois and Ohio of the same survey, whose areas are others",
    ),
    note="stands for the challenge's IPUMS table of 2012-2018; 24 attributes beside the area",
)


def absent(name: str, source: str) -> Table:
    """Return a table of a paper that chicle has no copy of."""
    return Table(name=name, source=source)


US_ACCIDENT = absent("US Accident", "US-Accidents of Moosavi et al. 2019, on the web pages of its authors")
LOAN = absent("Loan", "Lending Club loan data, from the public data site named in [P]")
COLORADO = absent("Colorado", "1940 census of Colorado, IPUMS, in the files of the NIST 2018 challenge")
