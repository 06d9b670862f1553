"""[P] tables 6 and 7: seconds and memory by the number of attributes, on the built-in census at the paper's sizes.

A process for each run, as in `chicle.compare`, so that its memory peak is its own.
"""

from __future__ import annotations

from chicle.comparison import compare
from chicle.errors import ChicleError
from chicle.papers.paper import Table
from chicle.papers.study import Case, Row, Study

__all__ = ["COST"]

_SYSTEMS = {
    "PrivBayes": "privbayes",
    "PGM": "privsyn-pgm",
    "PrivSyn of ours": "privsyn",
    "Prism": "prism",
}
_SIZES = {
    "Adult": (48_000, 15),
    "US Accident": (600_000, 30),
    "Loan": (600_000, 81),
    "Colorado": (662_000, 97),
}
_MINUTES = {
    "PrivBayes": (1, 2, 7, 10),
    "PGM": (4, 18, 40, 70),
    "PrivSyn of ours": (4, 40, 130, 210),
}
_GIGABYTES = (0.06, 0.13, 0.36, 0.43)


def costs(case: Case) -> list[Row]:
    """Return the seconds of a fit and a sample, and the memory peak of their process, for each system."""
    runs = compare(
        case.records,
        case.schema,
        mechanisms=list(_SYSTEMS.values()),
        epsilons=[case.epsilon],
        delta=1 / len(case.records) ** 2,
        seeds=1,
        threads=case.threads,
        pairs=100,
        triples=1,
        queries=1,
    )
    found = {row["mechanism"]: row for row in runs.rows}
    names = {run: name for name, run in _SYSTEMS.items()}
    if broken := [f"{names[run]}: {found[run]['error']}" for run in names if found[run]["error"]]:
        raise ChicleError("; ".join(broken))
    return [
        {
            "system": name,
            "seconds": found[run]["seconds"],
            "gigabytes": None if found[run]["peak_mb"] is None else found[run]["peak_mb"] / 1024,
            "l1_2": found[run]["l1_2"],
        }
        for name, run in _SYSTEMS.items()
    ]


def _size(name: str) -> Table:
    rows, attributes = _SIZES[name]
    return Table(
        name=f"census of {attributes} attributes",
        source="chicle.datasets.census",
        simulated=(rows, attributes),
        note=f"at the size of {name}; other values and other dependence",
    )


COST = Study(
    name="cost",
    title="Running time and memory (tables 6 and 7)",
    about=(
        "[P] tables 6 and 7, at epsilon 2: running time on a Xeon E7-8867 v3 in Python, and memory. Here fit and "
        "sample, at the tables' numbers of records and attributes, with the memory peak of the whole process: Python "
        "and chicle themselves take about .13 GB of it. PrivSyn is chicle's form, with 10 passes of tuned GUM where "
        "the paper has 100 of its own; its figures stand beside it. PGM is a graphical model of PrivSyn's selection."
    ),
    run=costs,
    by={"system": "system"},
    values={"seconds": "seconds", "gigabytes": "GB", "l1_2": "pairs, mean L1 error"},
    tables=[_size(name) for name in _SIZES],
    epsilons=(2.0,),
    quick_epsilons=(2.0,),
    quick_tables=len(_SIZES),
    published={
        (_size(name).name, system): {"seconds": 60 * minutes[i], "gigabytes": _GIGABYTES[i]}
        for i, name in enumerate(_SIZES)
        for system, minutes in _MINUTES.items()
    },
)
