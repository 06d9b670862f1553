"""Run a paper's comparison by `chicle.compare`: a process for each run, resumable, with the time that is left."""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from chicle._checks import integer
from chicle.comparison import Comparison, compare
from chicle.comparison.comparison import FLOOR
from chicle.comparison.contenders import ALONE, contender
from chicle.comparison.held_out import Role, role_of
from chicle.counting.records import Records
from chicle.errors import ParameterError
from chicle.mechanisms.variants import mechanism_names
from chicle.papers.aim import AIM
from chicle.papers.chicle import CHICLE
from chicle.papers.dpsyn18 import DPSYN18
from chicle.papers.dpsyn20 import DPSYN20
from chicle.papers.gem import GEM
from chicle.papers.paper import Asks, Paper, System, Table
from chicle.papers.privsyn import PRIVSYN
from chicle.papers.study_runs import Studied, chosen_studies, run_studies, study_cases
from chicle.papers.tables import data_folder, digest_of, find, find_public
from chicle.public import PublicData
from chicle.schema import Schema
from chicle.workload import Workload

__all__ = ["BY_NAME", "Outcome", "TableOutcome", "run_paper"]

_One = TypeVar("_One", System, Table, str)

BY_NAME: Mapping[str, Paper] = {paper.name: paper for paper in (PRIVSYN, AIM, GEM, DPSYN18, DPSYN20, CHICLE)}
"""Every paper, by its name on the command line."""


@dataclass(frozen=True, eq=False)
class TableOutcome:
    """What was run on one table and workload; `runs` is None where the table is not at hand."""

    table: Table
    runs: Comparison | None = None
    rows: int = 0
    attributes: int = 0
    other: bool = False
    """Whether the table is another than the figures of the page were made on."""
    workload: str = ""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What was run of a paper.

    Attributes
    ----------
    paper
        The paper, with the epsilons and seeds that were run.
    quick
        Whether it is the quick form.
    systems, missing
        The systems that were run, and those that there is no mechanism of.
    tables
        By table, those too that are not at hand.
    seconds
        How long it took, without the runs that were done before.
    studied
        What was run of each study on each of its tables.
    """

    paper: Paper
    quick: bool
    systems: tuple[System, ...]
    missing: tuple[System, ...]
    tables: tuple[TableOutcome, ...]
    seconds: float
    studied: tuple[Studied, ...] = ()

    def to_json(self) -> str:
        """Return all runs, as a record for programs."""
        tables = [
            {
                "name": one.table.name,
                "workload": one.workload,
                "source": one.table.source,
                "rows": one.rows,
                "attributes": one.attributes,
                "runs": None if one.runs is None else list(one.runs.rows),
            }
            for one in self.tables
        ]
        head = {"paper": self.paper.name, "quick": self.quick, "seconds": round(self.seconds, 1)}
        named = {"systems": {one.name: one.run for one in self.systems}, "missing": [one.name for one in self.missing]}
        studies = [one.plain() for one in self.studied]
        return json.dumps({**head, **named, "tables": tables, "studies": studies}, indent=1) + "\n"


def run_paper(
    name: str,
    *,
    data: str | PathLike[str] | None = None,
    output: str | PathLike[str],
    quick: bool = False,
    only: Sequence[str] = (),
    also: Sequence[str] = (),
    tables: Sequence[str] = (),
    workloads: Sequence[str] = (),
    studies: Sequence[str] | None = None,
    epsilons: Sequence[float] | None = None,
    seeds: int | None = None,
    role: Role | None = None,
    timeout: float | None = None,
    threads: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Outcome:
    """Run the comparison of a paper. NOT PRIVATE.

    Parameters
    ----------
    name
        One of `BY_NAME`.
    data
        The folder of tables; that of ``CHICLE_DATA`` by default.
    output
        The folder where the runs of each table are kept; runs that are there are not repeated.
    quick
        Whether to run the quick form: few rows, few attributes, few budgets, one seed.
    only
        Systems to run, by their names in the paper; all, if empty; ``["none"]`` runs the studies alone.
    also
        Systems that join, each as ``NAME=RUN``, where `chicle.compare` knows ``RUN``, such as
        ``Mine=mine:function@PYTHON``.
    tables
        Tables to run, by their names in the paper; all, if empty.
    workloads
        Workloads to run, by their names in the paper; all, if empty.
    studies
        Studies to run, by their names; all, if ``None``.
    epsilons, seeds
        The budgets, and how often each is run, instead of the paper's.
    role
        Run the tables of this role only: those that constants may be set on, or those that judge.
    timeout
        Seconds after which a run is stopped and counts as failed.
    threads
        How many threads each run may use; all there are, if ``None``.
    progress
        Called before each run with a text that says what will run and about how long it all takes.
    """
    if name not in BY_NAME:
        raise ParameterError(f"there is no paper {name!r}; there are {', '.join(BY_NAME)}")
    paper = BY_NAME[name]
    asked: dict[str, Any] = {"epsilons": epsilons, "seeds": seeds, "quick": quick, "tables": tables, "role": role}
    paper = replace(paper, systems=[*paper.systems, *(_joined(one) for one in also)])
    paper = _part(paper, **asked, workloads=workloads)
    if only == ["none"]:
        paper, only = replace(paper, tables=(), systems=(), ratios=()), ()
    systems, missing = _systems(paper, only)
    folder = data_folder(data)
    kept = Path(output)
    kept.mkdir(parents=True, exist_ok=True)
    begun, outcomes = time.monotonic(), list[TableOutcome]()
    there = [(table, found) for table in paper.tables if (found := find(table, folder, quick=quick)) is not None]
    # A table that needs a public one is not at hand without it.
    publics = {table.name: find_public(table, folder, found[0].domain) for table, found in there}
    there = [(table, found) for table, found in there if table.public is None or publics[table.name] is not None]
    if quick:
        left_out = {table.name for table, _ in there[paper.quick_tables :]}
        paper = replace(paper, tables=[table for table in paper.tables if table.name not in left_out])
        there = there[: paper.quick_tables]
    planned = study_cases(chosen_studies(paper, studies, **asked), folder, quick=quick, threads=threads)
    workloads_of: Mapping[str, Asks | None] = paper.workloads or {"": None}
    run = {table.name: [one for one in systems if one.public in (None, table.public is not None)] for table, _ in there}
    compared = len(workloads_of) * sum(map(len, run.values())) * len(paper.epsilons) * paper.seeds
    clock = _Clock(compared + sum(len(one.cases) for one in planned), progress)
    at_hand = dict.fromkeys(table.name for table, _ in there)
    for (workload, asks), (table, (records, schema)) in product(workloads_of.items(), there):
        clock.table = f"{table.name}, {workload}" if workload else table.name
        runs = _compare(
            paper,
            table,
            records=records,
            schema=schema,
            public=publics[table.name],
            workload=None if asks is None else asks(records.domain, table),
            systems=run[table.name],
            file=kept / f"{paper.name}{'-quick' if quick else ''}-{_slug(clock.table)}.csv",
            timeout=timeout,
            threads=threads,
            clock=clock,
        )
        whole = not quick and not table.columns and not table.binary and bool(table.digest)
        other = whole and digest_of(records) != table.digest
        outcomes.append(TableOutcome(table, runs, len(records), len(records.domain), other, workload))
    outcomes += [TableOutcome(table) for table in paper.tables if table.name not in at_hand]
    clock.table = "study"
    studied = run_studies(planned, kept / f"{paper.name}{'-quick' if quick else ''}", _slug, clock.say)
    return Outcome(paper, quick, systems, missing, tuple(outcomes), time.monotonic() - begun, tuple(studied))


def _part(
    paper: Paper,
    *,
    quick: bool,
    epsilons: Sequence[float] | None,
    seeds: int | None,
    tables: Sequence[str],
    workloads: Sequence[str],
    role: Role | None,
) -> Paper:
    """Return the part of a paper that was asked for."""
    if quick:
        paper = replace(paper, epsilons=paper.quick_epsilons, seeds=1)
    if epsilons is not None:
        paper = replace(paper, epsilons=tuple(epsilons))
    if seeds is not None:
        paper = replace(paper, seeds=integer("seeds", seeds, 1))
    if tables:
        every = [*paper.tables, *(table for study in paper.studies for table in study.tables)]
        named = _named("table", tables, {table.name.lower(): table for table in reversed(every)})
        paper = replace(paper, tables=[table for table in named if table in paper.tables])
    if workloads:
        known = {one.lower(): one for one in paper.workloads}
        paper = replace(paper, workloads={one: paper.workloads[one] for one in _named("workload", workloads, known)})
    if role is not None:
        paper = replace(paper, tables=[table for table in paper.tables if role_of(table.name) == role])
    return paper


def _compare(
    paper: Paper,
    table: Table,
    *,
    records: Records,
    schema: Schema,
    public: PublicData | None,
    workload: Workload | None,
    systems: Sequence[System],
    file: Path,
    timeout: float | None,
    threads: int | None,
    clock: _Clock,
) -> Comparison:
    options: dict[str, Any] = dict(paper.options)
    if workload is not None:
        options["workload"] = workload
    if table.partition:
        options |= {"segment": table.partition, "by": ()}
    learns = "misclassification" in paper.measures and table.label in records.domain
    if learns and importlib.util.find_spec("sklearn") is not None:
        options["label"] = table.label
    return compare(
        records,
        schema,
        mechanisms=[system.run for system in systems if system.name not in table.slow],
        epsilons=paper.epsilons,
        delta=1 / len(records) ** 2 if paper.delta is None else paper.delta,
        seeds=paper.seeds,
        output=file,
        timeout=paper.timeout if timeout is None else timeout,
        threads=threads,
        progress=clock.say,
        public=public,
        **options,
    )


def _systems(paper: Paper, only: Sequence[str]) -> tuple[tuple[System, ...], tuple[System, ...]]:
    """Return the systems that can be run, and those that there is no mechanism of."""
    known = mechanism_names(public=True)
    chosen = _named("system", only, {system.name.lower(): system for system in paper.systems}) or list(paper.systems)
    runs = [system for system in chosen if set(":@") & set(system.run) or system.run.removesuffix(ALONE) in known]
    return tuple(runs), tuple(system for system in chosen if system not in runs)


def _joined(given: str) -> System:
    """Return a system that is not the paper's."""
    name, _, run = given.partition("=")
    if not (name and run):
        raise ParameterError(f"{given!r} is no system; write NAME=RUN, such as Mine=mine:function@PYTHON")
    contender(run)
    return System(name, run, "not a system of the paper")


def _named(what: str, names: Sequence[str], there: Mapping[str, _One]) -> list[_One]:
    """Return what has the given names, whatever their case."""
    for name in names:
        if name.lower() not in there:
            raise ParameterError(f"the paper has no {what} {name!r}; it has {', '.join(there)}")
    return [there[name.lower()] for name in names]


class _Clock:
    """Says what runs next, and about how long the rest takes."""

    def __init__(self, runs: int, say: Callable[[str], None] | None) -> None:
        self.table = ""
        self._runs, self._say, self._begun, self._done = runs, say, time.monotonic(), 0

    def say(self, what: str) -> None:
        if self._say is not None:
            left = ""
            if self._done:
                each = (time.monotonic() - self._begun) / self._done
                left = f"; about {timedelta(seconds=round(each * (self._runs - self._done)))} left at most"
            self._say(f"{self.table}: {what}{left}")
        self._done += 1


def _slug(name: str) -> str:
    return "-".join("".join(letter if letter.isalnum() else " " for letter in name.lower()).split())


def failed(runs: Comparison) -> list[dict[str, Any]]:
    """Return the runs that failed."""
    return [row for row in runs.rows if row["mechanism"] != FLOOR and row.get("error")]
