"""The page of a paper's studies: means over repetitions, with standard errors, and the paper's figures beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import fmean, stdev
from typing import Any

from chicle._core import __version__
from chicle.evaluation.result import NOT_PRIVATE
from chicle.papers.study import Study
from chicle.papers.study_runs import Studied
from chicle.papers.tables import QUICK_ROWS

__all__ = ["study_page", "study_rows"]


def study_page(paper: str, studied: Sequence[Studied], *, quick: bool) -> str:
    """Return the page in Markdown.

    Parameters
    ----------
    paper
        The name of the paper on the command line.
    studied
        What was run.
    quick
        Whether it is the quick form.
    """
    command = f"chicle papers {paper} --data FOLDER{' --quick' if quick else ''}"
    head = [
        f"- Made by `{command}`, chicle {__version__}, which runs the paper's comparison too (`--only none`: not).",
        "- With `--studies`, `--tables`, `--epsilon` or `--seeds` it is a part: each section says what was run.",
        "- Figures of the paper, where it gives any, are of the paper's own tables and machines.",
        "- After ± is the standard error of the mean of several runs.",
    ]
    if quick:
        head.append(f"- Quick form: {QUICK_ROWS:,} rows, few attributes. It is not the paper's setting.")
    parts = [f"# {paper}: other tables and figures of the paper", NOT_PRIVATE, "\n".join(head)]
    for study, group in groupby(studied, key=lambda one: one.study):
        parts += _section(study, list(group))
    return "\n\n".join(parts) + "\n"


def study_rows(one: Studied) -> list[list[str]]:
    """Return the table of a study as text, with its head: a row for each value of `by`."""
    study = one.study
    said = {key for figures in study.published.values() for key in figures}
    head = list(study.by.values())
    for key, title in study.values.items():
        head += [title, f"{title}, published"] if key in said else [title]
    grouped: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in one.found or []:
        if not row.get("failed"):
            grouped.setdefault(tuple(row.get(key) for key in study.by), []).append(row)
    lines = [head]
    for named, rows in grouped.items():
        line = [_shown(value) for value in named]
        figures = study.published.get((one.name, *named), {})
        for key in study.values:
            values = [row[key] for row in rows if row.get(key) is not None]
            line.append(_mean(values))
            if key in said:
                line.append(_shown(figures[key]) if key in figures else "-")
        lines.append(line)
    return lines


def _section(study: Study, studied: Sequence[Studied]) -> Iterator[str]:
    yield f"## {study.title}"
    runs = "one run each" if study.seeds == 1 else f"{study.seeds} runs each"
    budgets = f" Epsilon {', '.join(f'{epsilon:g}' for epsilon in study.epsilons)}, {runs}." if study.epsilons else ""
    yield f"{study.about}{budgets} `--studies {study.name}`"
    for one in studied:
        if one.found is None:
            continue
        if one.table is not None:
            note = f" Note: {one.table.note}." if one.table.note else ""
            yield f"**{one.name}**: {one.rows:,} rows, {one.attributes} attributes.{note}"
        if len(lines := study_rows(one)) > 1:
            head, *rest = [f"| {' | '.join(line)} |" for line in lines]
            yield "\n".join([head, f"|{'---|' * len(lines[0])}", *rest])
        if broken := [row for row in one.found if row.get("failed")]:
            yield "\n".join(
                f"- epsilon {row.get('epsilon', 0):g}, seed {row['seed']} failed: {str(row['failed'])[:160]}"
                for row in broken
            )
    if missing := [one.name for one in studied if one.found is None]:
        yield f"Not at hand: {', '.join(missing)}."


def _mean(values: Sequence[float]) -> str:
    """Return the mean, with its standard error where values differ."""
    if not values:
        return "-"
    error = stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return _shown(fmean(values)) + (f" ± {_shown(float(f'{error:.1g}'))}" if error > 0 else "")


def _shown(value: str | float | None) -> str:
    if isinstance(value, str) or value is None:
        return value or "-"
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"
