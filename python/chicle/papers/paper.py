"""A paper's comparison as data: which tables, which systems, which budgets, which measure, and what it reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from chicle.domain import Domain
from chicle.measurements.public_rows import Role
from chicle.papers.study import Study
from chicle.workload import Workload

__all__ = ["Asks", "Paper", "Public", "Published", "Ratio", "System", "Table"]


@dataclass(frozen=True, kw_only=True)
class Public:
    """The public table beside a private one.

    Attributes
    ----------
    folder
        The folder of data that holds it: `public.parquet`, or `data.parquet`.
    role
        How far mechanisms may believe it; see `chicle.PublicData`.
    without
        An attribute and a code: rows that have it are left out.
    note
        What it is, for the page.
    """

    folder: str
    role: Role = "evidence"
    without: tuple[str, int] | None = None
    note: str = ""


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
    widths
        By attribute, how many neighbouring codes become one, as ``{"AGEP": 5}``.
    person, max_rows
        The column that identifies persons, which is no attribute, and how many rows of each are kept.
    partition
        The attributes whose values are parts that are judged one by one.
    public
        The public table that systems get.
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
    widths: Mapping[str, int] = field(default_factory=dict, hash=False)
    person: str = ""
    max_rows: int = 1
    partition: Sequence[str] = ()
    public: Public | None = None
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
    public
        Whether it runs only on tables with public data (True) or only on those without (False); by default on all.
    """

    name: str
    run: str = ""
    note: str = ""
    public: bool | None = None


@dataclass(frozen=True)
class Ratio:
    """A ratio of errors that a paper reports: by how much `system` is worse than `to`, on average over a workload."""

    system: str
    to: str
    published: float | None = None
    workload: str = ""


@dataclass(frozen=True)
class Published:
    """Figures that a paper reports for a system on a table, by epsilon."""

    table: str
    system: str
    values: Mapping[float, float]
    where: str
    workload: str = ""


Asks: TypeAlias = Callable[[Domain, Table], Workload]
"""The workload of a paper for the attributes of a table."""


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
    workloads
        Workloads by name: each table is compared by each of them, and systems measure for it if they can. "" names
        the only one of a paper.
    quick_tables
        How many of the tables at hand the quick form has.
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
    workloads: Mapping[str, Asks] = field(default_factory=dict)
    quick_tables: int = 2
    ratios: Sequence[Ratio] = ()
    published: Sequence[Published] = ()
    file: str = ""
    own: str = ""
    timeout: float | None = None
    studies: Sequence[Study] = ()
