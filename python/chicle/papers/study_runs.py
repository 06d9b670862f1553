"""Run the studies of a paper: rows of each table are kept in a file and not repeated."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from chicle._core import __version__
from chicle._write import replacing
from chicle.comparison.held_out import Role, role_of
from chicle.counting.records import Records
from chicle.errors import ChicleError, ParameterError
from chicle.papers.paper import Paper, Table
from chicle.papers.study import Case, Study
from chicle.papers.tables import digest_of, find
from chicle.schema import Schema

__all__ = ["Planned", "Studied", "chosen_studies", "run_studies", "study_cases"]


@dataclass(frozen=True, eq=False)
class Studied:
    """What was run of a study on one table.

    Attributes
    ----------
    study
        The study.
    table
        The table; None for a study of formulas.
    found
        The rows; None where the table is not at hand. A row with ``failed`` says why it failed.
    rows, attributes
        The size of the table.
    """

    study: Study
    table: Table | None
    found: list[dict[str, Any]] | None = None
    rows: int = 0
    attributes: int = 0

    @property
    def name(self) -> str:
        """The name of the table."""
        return "" if self.table is None else self.table.name

    def plain(self) -> dict[str, Any]:
        """Return all as plain data."""
        head = {"study": self.study.name, "table": self.name, "rows": self.rows, "attributes": self.attributes}
        return {**head, "found": self.found}


@dataclass(frozen=True, eq=False)
class Planned:
    """A study on one table, with its cases."""

    study: Study
    table: Table | None
    there: tuple[Records, Schema] | None = None
    cases: list[Case] = field(default_factory=list)


def chosen_studies(
    paper: Paper,
    names: Sequence[str] | None,
    *,
    epsilons: Sequence[float] | None,
    seeds: int | None,
    quick: bool,
    tables: Sequence[str],
    role: Role | None,
) -> list[Study]:
    """Return the studies that were asked for, with their budgets, repetitions and tables; all of them by default.

    Other budgets are for studies that tell their rows by epsilon, other repetitions for those that are repeated.
    """
    known = {study.name: study for study in paper.studies}
    for name in names or ():
        if name not in known:
            raise ParameterError(f"the paper has no study {name!r}; it has {', '.join(known) or 'none'}")
    wanted = {name.lower() for name in tables}
    made = []
    for study in paper.studies if names is None else [known[name] for name in dict.fromkeys(names)]:
        kept = [
            table
            for table in study.tables
            if (not wanted or table.name.lower() in wanted) and (role is None or role_of(table.name) == role)
        ]
        if study.tables and not kept:
            continue
        budgets = study.quick_epsilons if quick else study.epsilons
        repeated = study.quick_seeds if quick else study.seeds
        made.append(
            replace(
                study,
                tables=kept,
                epsilons=tuple(epsilons) if epsilons is not None and "epsilon" in study.by else budgets,
                seeds=seeds if seeds is not None and study.seeds > 1 else repeated,
            )
        )
    return made


def study_cases(studies: Sequence[Study], folder: Path, *, quick: bool, threads: int | None) -> list[Planned]:
    """Return what will be run: each study on each of its tables, those too that are not at hand."""
    planned = []
    at_hand: dict[Table, tuple[Records, Schema] | None] = {}
    for study in studies:
        found = 0
        tables: Sequence[Table | None] = study.tables or [None]
        for table in tables:
            there = None
            if table is not None:
                if quick and found == study.quick_tables:
                    break
                if table not in at_hand:
                    at_hand[table] = find(table, folder, quick=quick)
                there = at_hand[table]
                if there is None:
                    planned.append(Planned(study, table))
                    continue
                found += 1
            cases = [
                Case(table=there, epsilon=epsilon, seed=seed, quick=quick, threads=threads)
                for epsilon in study.epsilons or [0.0]
                for seed in range(study.seeds)
            ]
            planned.append(Planned(study, table, there, cases))
    return planned


def run_studies(
    planned: Sequence[Planned], stem: Path, slug: Callable[[str], str], say: Callable[[str], None]
) -> list[Studied]:
    """Run studies; rows that are kept in files are not run again, but for those that failed.

    Parameters
    ----------
    planned
        What to run, from `study_cases`.
    stem
        The beginning of the files' paths.
    slug
        Makes a part of a file's name from the name of a table.
    say
        Called before each case with a text that says what will run.
    """
    return [_run(one, stem, slug, say) for one in planned]


def _run(one: Planned, stem: Path, slug: Callable[[str], str], say: Callable[[str], None]) -> Studied:
    study, table = one.study, one.table
    if not one.cases:
        return Studied(study, table)
    part = "" if table is None else f"-{slug(table.name)}"
    path = stem.with_name(f"{stem.name}-{study.name}{part}.json")
    digest = f"{__version__} {'' if one.there is None else digest_of(one.there[0])}"
    found = _begin(path, digest)
    for case in one.cases:
        named: dict[str, Any] = {"epsilon": case.epsilon} if study.epsilons else {}
        named["seed"] = case.seed
        if any(row.items() >= named.items() for row in found):
            continue
        say(f"{study.name}" + (f", epsilon {case.epsilon:g}, seed {case.seed}" if study.epsilons else ""))
        try:
            found += [{**named, **row} for row in study.run(case)]
        except (ChicleError, MemoryError) as error:
            found.append({**named, "failed": f"{type(error).__name__}: {error}"})
        with replacing(path) as beside:
            beside.write_text(json.dumps({"of": digest, "rows": found}, indent=1) + "\n", encoding="utf-8")
    asked = [(case.epsilon, case.seed) for case in one.cases]
    kept = [row for row in found if (row.get("epsilon", 0.0), row["seed"]) in asked]
    size = (0, 0) if one.there is None else (len(one.there[0]), len(one.there[0].domain))
    return Studied(study, table, kept, *size)


def _begin(path: Path, digest: str) -> list[dict[str, Any]]:
    """Return the rows that are there, without those that failed."""
    if not path.exists():
        return []
    kept = json.loads(path.read_text(encoding="utf-8"))
    if kept["of"] != digest:
        raise ParameterError(
            f"{path} holds rows of another table or version; give another folder of results, or remove it"
        )
    return [row for row in kept["rows"] if not row.get("failed")]
