"""The page of a rerun: what was compared, tables of means, what the paper reported beside what was found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from chicle._core import __version__
from chicle._write import replacing
from chicle.comparison import Comparison
from chicle.comparison.comparison import FLOOR
from chicle.comparison.held_out import role_of
from chicle.evaluation.result import NOT_PRIVATE
from chicle.papers.paper import Paper, Ratio
from chicle.papers.picture import picture
from chicle.papers.run import BY_NAME, Outcome, TableOutcome, failed
from chicle.papers.study_page import study_page
from chicle.papers.tables import QUICK_COLUMNS, QUICK_PARTS, QUICK_ROWS

__all__ = ["page", "ratio", "save"]


def save(outcome: Outcome, folder: Path) -> Path:
    """Write the pages, the pictures and the machine-readable record; return the path of the (first) page."""
    stem = outcome.paper.file or outcome.paper.name
    _write(folder / f"{stem}.json", outcome.to_json())
    if outcome.studied:
        _write(folder / f"{stem}-studies.md", study_page(outcome.paper.name, outcome.studied, quick=outcome.quick))
    if not outcome.systems and not outcome.missing:
        return folder / f"{stem}-studies.md"
    pictures = {}
    key, title = next(iter(outcome.paper.measures.items()))
    for i, one in enumerate(outcome.tables):
        drawn = "" if one.runs is None else picture(f"{_title(one)}: {title}", _lines(outcome, one.runs, key))
        if drawn:
            pictures[_title(one)] = f"{stem}-{i}.svg"
            _write(folder / f"{stem}-{i}.svg", drawn)
    _write(folder / f"{stem}.md", page(outcome, pictures))
    return folder / f"{stem}.md"


def page(outcome: Outcome, pictures: dict[str, str] | None = None) -> str:
    """Return the page in Markdown.

    Parameters
    ----------
    outcome
        What was run.
    pictures
        By the title of a section, the file of its picture.
    """
    paper = outcome.paper
    parts = [f"# {paper.title}", NOT_PRIVATE, paper.about, "\n".join(_head(outcome))]
    if paper.ratios:
        parts += ["## Against the paper" if not paper.own else f"## {paper.own} and the others", *_ratios(outcome)]
    if paper.own:
        parts += [f"## Where {paper.own} is not the best", _losses(outcome)]
    for one in outcome.tables:
        parts.append(f"## {(titled := _title(one))}")
        if one.runs is None:
            parts.append(f"Not at hand: no row of this table was run. Source: {one.table.source}.")
            continue
        parts.append(" ".join(_about(outcome, one)))
        if pictures and titled in pictures:
            parts.append(f"![{titled}]({pictures[titled]})")
        for key, title in paper.measures.items():
            if key in one.runs.columns:
                parts.append(f"**{title[0].upper()}{title[1:]}**\n\n{_table(outcome, one, key)}")
        asked = {system.run for system in outcome.systems}
        if broken := [row for row in failed(one.runs) if row["mechanism"] in asked]:
            parts.append("\n".join(f"- {_name(outcome, row['mechanism'])} failed: {_why(row)}" for row in broken))
    return "\n\n".join(parts) + "\n"


def ratio(outcome: Outcome, asked: Ratio) -> tuple[float, int, int] | None:
    """Return the geometric mean of the ratios of two systems' errors, how many are at least 1, and how many there are.

    Over all tables of its workload and epsilons where both have a result, by the first measure of the paper; None where
    there is none.
    """
    key = next(iter(outcome.paper.measures))
    runs = {system.name: system.run for system in outcome.systems}
    found = []
    for one in outcome.tables:
        if asked.workload not in ("", one.workload):
            continue
        if one.runs is None or key not in one.runs.columns or not {asked.system, asked.to} <= runs.keys():
            continue
        means = one.runs.means(key)
        for epsilon in outcome.paper.epsilons:
            mine, theirs = (means.get((runs[name], epsilon)) for name in (asked.system, asked.to))
            if mine and theirs and fmean(mine) > 0 and fmean(theirs) > 0:
                found.append(fmean(mine) / fmean(theirs))
    if not found:
        return None
    return math.exp(fmean(map(math.log, found))), sum(value >= 1 for value in found), len(found)


def _head(outcome: Outcome) -> Iterator[str]:
    paper = outcome.paper
    command = f"chicle papers {paper.name} --data FOLDER{' --quick' if outcome.quick else _part(paper)}"
    repeated = f"{paper.seeds} runs each" if paper.seeds > 1 else "one run each"
    delta = "1/n^2" if paper.delta is None else f"{paper.delta:g}"
    yield f"- Made by `{command}`, chicle {__version__}; epsilon {_numbers(paper.epsilons)}, delta {delta}, {repeated}."
    if outcome.quick:
        yield (
            f"- Quick form: the first {paper.quick_tables} tables at hand, {QUICK_ROWS:,} rows (or all rows of "
            f"{QUICK_PARTS} parts), {QUICK_COLUMNS} attributes of fewest values. It shows that everything runs and "
            "which order to expect; it is not the paper's setting."
        )
    for system in outcome.systems:
        if system.note:
            yield f"- {system.name}: {system.note}."
    for system in outcome.missing:
        yield f"- {system.name} is missing: {system.note or 'chicle has no such mechanism in this version'}."
    asked = (*outcome.systems, *outcome.missing)
    if left_out := [system.name for system in paper.systems if system not in asked]:
        yield f"- Not asked for in this run: {', '.join(left_out)}."
    yield "- Floor: a bootstrap of the real table, sampling error alone."


def _part(paper: Paper) -> str:
    """Return what was asked for instead of the whole paper."""
    whole, names = BY_NAME[paper.name], [table.name for table in paper.tables]
    seeds = "" if paper.seeds == whole.seeds else f" --seeds {paper.seeds}"
    return seeds if len(names) == len(whole.tables) else f'{seeds} --tables "{",".join(names)}"'


def _about(outcome: Outcome, one: TableOutcome) -> Iterator[str]:
    yield f"{one.rows:,} rows, {one.attributes} attributes. Source: {one.table.source}."
    yield f"Its role is to {role_of(one.table.name)}."
    if one.table.note:
        yield f"Note: {one.table.note}."
    if one.table.slow:
        yield f"Not run here, because a run takes more than {outcome.paper.timeout:g} s: {', '.join(one.table.slow)}."
    if one.table.person:
        yield f"A person is a {one.table.person}, with at most {one.table.max_rows} rows, which are fitted and judged."
    if one.table.public is not None:
        yield f"Public data, {one.table.public.role}: {one.table.public.note}."
    if one.other:
        yield "This is another table than the one with which chicle's own figures were made: its digest differs."


def _title(one: TableOutcome) -> str:
    """Return the title of the section of a table, with the name of its workload if it has one."""
    return f"{one.workload}: {one.table.name}" if one.workload else one.table.name


def _ratios(outcome: Outcome) -> Iterator[str]:
    title = next(iter(outcome.paper.measures.values()))
    yield f"Geometric mean, over tables and epsilons, of the ratios of {title}."
    for workload in dict.fromkeys(asked.workload for asked in outcome.paper.ratios):
        if workload and workload not in outcome.paper.workloads:
            continue
        rows = [("system", "against", "published", "here", "1 or more in")]
        for asked in (one for one in outcome.paper.ratios if one.workload == workload):
            found = ratio(outcome, asked)
            said = "-" if asked.published is None else f"{asked.published:g}"
            here = ("not run", "-") if found is None else (f"{found[0]:.2f}", f"{found[1]} of {found[2]}")
            rows.append((asked.system, asked.to, said, *here))
        yield (f"**{workload}**\n\n" if workload else "") + _markdown(rows)


def _losses(outcome: Outcome) -> str:
    """Return the cells of the first two measures, both errors, in which another system is better than the own one."""
    paper, own = outcome.paper, next((one.run for one in outcome.systems if one.name == outcome.paper.own), "")
    rows, cells = [("table", "epsilon", "measure", paper.own, "better")], 0
    for one in outcome.tables:
        for key, title in list(paper.measures.items())[:2]:
            means = {} if one.runs is None or key not in one.runs.columns else one.runs.means(key)
            for epsilon in paper.epsilons:
                if not (mine := means.get((own, epsilon))):
                    continue
                cells += 1
                found = {s.name: fmean(v) for s in outcome.systems if (v := means.get((s.run, epsilon)))}
                better = sorted((value, name) for name, value in found.items() if value < fmean(mine))
                if better:
                    named = ", ".join(f"{name} {value:.4f}" for value, name in better)
                    rows.append((one.table.name, f"{epsilon:g}", title, f"{fmean(mine):.4f}", named))
    said = f"In {len(rows) - 1} of {cells} cells, by the means that the tables below show; many are within noise."
    return f"{said}\n\n{_markdown(rows)}" if len(rows) > 1 else f"Nowhere in {cells} cells."


def _table(outcome: Outcome, one: TableOutcome, key: str) -> str:
    """Return the means over seeds, a row for each system."""
    if one.runs is None:
        return ""
    means, paper = one.runs.means(key), outcome.paper
    rows = [("epsilon", *(f"{epsilon:g}" for epsilon in paper.epsilons))]

    def shown(values: list[float] | None) -> str:
        if not values:
            return "-"
        value = fmean(values)
        return (
            f"{value:,.0f}" if value >= 100 or key == "peak_mb" else f"{value:{'.2f' if key == 'seconds' else '.4f'}}"
        )

    ran = [system for system in outcome.systems if system.public in (None, one.table.public is not None)]
    rows += [(system.name, *(shown(means.get((system.run, e))) for e in paper.epsilons)) for system in ran]
    if floor := means.get((FLOOR, None)):
        rows.append(("floor", *[shown(floor)] * len(paper.epsilons)))
    for given in paper.published if key == next(iter(paper.measures)) and not outcome.quick else ():
        if given.table == one.table.name and given.workload in ("", one.workload):
            values = [f"{given.values[e]:g}" if e in given.values else "-" for e in paper.epsilons]
            rows.append((f"{given.system}, {given.where}", *values))
    return _markdown(rows)


def _lines(outcome: Outcome, runs: Comparison, key: str) -> dict[str, list[tuple[float, float]]]:
    if key not in runs.columns:
        return {}
    means = runs.means(key)
    found = {
        system.name: [(e, fmean(v)) for e in outcome.paper.epsilons if (v := means.get((system.run, e)))]
        for system in outcome.systems
    }
    return {name: line for name, line in found.items() if line}


def _name(outcome: Outcome, run: str) -> str:
    return next((system.name for system in outcome.systems if system.run == run), run)


def _why(row: dict[str, object]) -> str:
    return f"epsilon {row['epsilon']:g}, seed {row['seed']}: {str(row['error'])[:160]}"


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *rest = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([head, f"|{'---|' * len(rows[0])}", *rest])


def _write(path: Path, text: str) -> None:
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")
