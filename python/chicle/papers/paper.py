"""A paper's comparison as data: which tables, which systems, which budgets, which measure, and what it reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chicle.papers.study import Study

__all__ = ["Paper", "Published", "Ratio", "System", "Table"]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of a paper.

    Attributes
    ----------
    name
        Its name in the paper.
    folder
        The folder of data that holds it: `data.parquet` or `private.parquet`, and `domain.json`; "" where chicle has no
        way to it.
    source
        Where the public can get it.
    digest
        What `digest_of` gives for the table that the figures here were made on; "" where none were.
    label
        The attribute that a classifier predicts, if the paper has one.
    columns
        The attributes that are used; all, if empty.
    binary
        Whether every attribute is cut in two at its median: a table of small domains.
    note
        How it differs from the paper's.
    rows
        How many of its rows are used, from the first; all, if None.
    slow
        Systems that are not run on it, because one run takes longer than the paper's `timeout`.
    simulated
        Rows and attributes of the built-in census that stands for it, instead of a folder.
    quick
        The attributes of the quick form; those of fewest values, if empty.
    """

    name: str
    folder: str = ""
    source: str
    digest: str = ""
    label: str | None = None
    columns: Sequence[str] = ()
    binary: bool = False
    note: str = ""
    rows: int | None = None
    slow: Sequence[str] = ()
    simulated: tuple[int, int] | None = None
    quick: Sequence[str] = ()


@dataclass(frozen=True)
class System:
    """A system of a comparison.

    Attributes
    ----------
    name
        Its name in the paper.
    run
        What `chicle.compare` calls it: a mechanism, or ``module:function``; "" where there is none.
    note
        How ours differs, or why there is none.
    """

    name: str
    run: str = ""
    note: str = ""


@dataclass(frozen=True)
class Ratio:
    """A ratio of errors that a paper reports: by how much `system` is worse than `to`, on average."""

    system: str
    to: str
    published: float | None = None


@dataclass(frozen=True)
class Published:
    """Figures that a paper reports for a system on a table, by epsilon."""

    table: str
    system: str
    values: Mapping[float, float]
    where: str


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A comparison that can be run again.

    Attributes
    ----------
    name, title
        Its name on the command line, and its title.
    about
        What the paper compared, in a sentence or two, and how this run differs.
    tables, systems
        What is run.
    epsilons, delta, seeds
        The budgets and repetitions; delta is 1/n^2 where it is None.
    quick_epsilons
        The budgets of the quick form.
    measures
        Columns of a comparison with their titles; the first is drawn.
    options
        For `chicle.evaluate`.
    three_way
        Whether the workload is all triples, instead of a sample of them.
    ratios, published
        What to hold against the paper.
    file
        The name of its page, instead of `name`.
    own
        The system of which the page lists where others are better.
    timeout
        Seconds after which a run is stopped, unless the caller says otherwise.
    studies
        Tables and figures of the paper that are no comparison of systems.
    """

    name: str
    title: str
    about: str
    tables: Sequence[Table]
    systems: Sequence[System]
    epsilons: Sequence[float]
    quick_epsilons: Sequence[float]
    delta: float | None = 1e-9
    seeds: int = 5
    measures: Mapping[str, str] = field(default_factory=lambda: {"tvd_2": "mean 2-way distance"})
    options: Mapping[str, Any] = field(default_factory=dict)
    three_way: bool = False
    ratios: Sequence[Ratio] = ()
    published: Sequence[Published] = ()
    file: str = ""
    own: str = ""
    timeout: float | None = None
    studies: Sequence[Study] = ()
