"""Scores in numbers, and how the table was made: mechanism, measurements, schema, version."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from chicle._core import __version__
from chicle._html import Markup, Piece, cut, table, tag
from chicle._text import percent
from chicle.columns import Column
from chicle.evaluation.result import AMOUNT_HEAD, AMOUNT_NOTE, Evaluation
from chicle.measurements.measurement import Measurement, check_all
from chicle.releases.bounds import count_in_buckets
from chicle.releases.release import Release
from chicle.reports.facts import Facts
from chicle.schema.sources import needs_source

__all__ = ["amounts", "making", "measured", "reading", "scores"]

_MOST_SETS = 1_500
_MOST_LISTED = 12

_DISTANCE = """\
Distance: total variation distance, which is half the sum over all cells of a marginal of the absolute differences
between shares. 0.03 means that 3 of 100 rows would have to be changed to make both tables equal there."""
_FLOOR = """\
Floor: the same number for the real table, resampled to as many rows. It shows sampling error alone; no synthetic table
has to beat it."""
_INDEPENDENT = """\
Independent: the same number for a table in which attributes are independent of each other, made with the same budget. A
table that does not beat it has learnt no relation between attributes."""
_VERDICT = """\
Verdict: how far the table came on the way from Independent to the floor, by the mean distance of pairs. From 90 % of
the way on it is very good, from 70 % good, from 40 % fair, from 10 % weak, and below that poor. A column whose mean is
off by more than 5 % or whose SD by more than 10 % makes it good at most; 15 or 30 % fair; 30 or 75 % weak."""
_BOUND = """\
Bound: with probability {} over the noise, the distance of the synthetic table from the truth is at most this. It
follows from the release alone. Each bound holds by itself with this probability, not all of them at once. In buckets:
values were measured in groups, and the bound is on the counts of groups, not on how a group is spread over its values.
No bound: no measurement has both attributes of the pair, and how tables were selected says nothing about the pair."""


def scores(evaluation: Evaluation) -> Markup:
    """Return every score, with its floor and its Independent baseline."""
    rows = []
    for score in evaluation.scores:
        name = tag("span", score.title, title=score.note or None)
        also = "; ".join(f"{key} {score.shown(value)}" for key, value in score.also.items())
        better = {"low": "lower", "high": "higher"}.get(score.better, "-")
        source = "; ".join(part for part in (score.source, score.note, also) if part)
        values = [score.shown(value) for value in (score.value, score.floor, score.independent)]
        rows.append([name, *values, better, tag("small", source)])
    head = ["measure", "this table", "floor", "Independent", "better", ""]
    notes = [tag("p", note, class_="note") for note in evaluation.notes]
    return tag("section", tag("h2", "Scores"), table(head, rows, until=4), notes, id="scores")


def amounts(evaluation: Evaluation) -> Markup | None:
    """Return mean, SD, quantiles, zeros and earth mover's distance of every column of numbers."""
    rows = [one.row() for one in evaluation.amounts if not one.coded]
    if not rows:
        return None
    listed = table(AMOUNT_HEAD, [[tag("bdi", cut(name, 60)), *rest] for name, *rest in rows])
    return tag("section", tag("h2", "Amounts"), listed, tag("p", AMOUNT_NOTE, class_="note"), id="amounts")


def measured(facts: Facts, release: Release) -> Markup | None:
    """Return the measured sets of two or more attributes, and how well the synthetic table fits them."""
    sets = [one for one in release.measurements if len(one.clique) > 1 and one.whole]
    if not sets:
        return None
    rows, total = [], max(release.total, 1)
    inside = _inside(facts, sets, total)
    order = np.argsort(inside, kind="stable")
    for i in order[:_MOST_SETS]:
        measurement = sets[i]
        names = " × ".join(cut(name, 40) for name in measurement.clique)
        cells = measurement.values.size
        buckets = "in buckets" if measurement.buckets else "every value"
        noise = float(np.sqrt(2 / np.pi) * measurement.sigma * cells / (2 * total))
        rows.append(
            [tag("bdi", names), buckets, f"{cells:,}", f"{measurement.sigma:.3g}", f"{noise:.3f}", percent(inside[i])]
        )
    sizes = Counter(len(measurement.clique) for measurement in sets)
    said = ", ".join(f"{number:,} of {size} attributes" for size, number in sorted(sizes.items()))
    middle = float(np.median(inside))
    summary = (
        f"Measured sets: {said}. In the median set, the synthetic table is within two standard deviations of the noise "
        f"in {percent(middle)} of all cells; noise alone would give 95.4 %."
    )
    head = ["set", "resolution", "cells", "sigma", "noise as a distance", "cells within 2 sigma"]
    more = tag("p", f"and {len(sets) - len(rows):,} more") if len(sets) > len(rows) else None
    listing = tag(
        "details", tag("summary", f"All measured sets ({len(sets):,}), worst fit first"), table(head, rows, 2), more
    )
    return tag("section", tag("h2", "Measured marginals"), tag("p", summary), listing, id="measured")


def making(facts: Facts) -> Markup:
    """Return how the table was made."""
    release = facts.release
    rows: list[tuple[Piece, Piece]] = []
    if release is not None:
        options = json.dumps(_short(dict(release.parameters)), default=str)
        cells = sum(measurement.values.size for measurement in release.measurements)
        rows += [
            ("Mechanism", release.mechanism),
            ("Parameters", tag("small", cut(options, 2_000)) if release.parameters else "none"),
            ("Measurements", f"{len(release.measurements):,} noisy tables of {cells:,} cells"),
            ("Estimated number of records", f"{release.total:,}"),
        ]
    rows.append(("Synthetic rows", f"{len(facts.synthetic):,}"))
    if facts.evaluation is not None:
        rows.append(("Compared with", f"{facts.evaluation.rows:,} real rows, seed {facts.evaluation.seed}"))
    rows += [("Remark", cut(remark, 2_000)) for remark in facts.remarks]
    rows.append(("Version", f"chicle {__version__}"))
    facts_table = tag("table", [tag("tr", tag("th", head), tag("td", said)) for head, said in rows], class_="facts")
    return tag("section", tag("h2", "How it was made"), facts_table, _schema(facts), id="making")


def _short(options: object) -> object:
    """Return options without long lists, such as rounds and scores, which programs read from the release.

    Examples
    --------
    >>> _short({"sizes": [20, 10, 5], "rounds": [[0.1, 0.2]] * 19})
    {'sizes': [20, 10, 5], 'rounds': '19, listed in the release'}
    """
    if isinstance(options, Mapping):
        return {name: _short(value) for name, value in options.items()}
    if isinstance(options, Sequence) and not isinstance(options, str):
        plain = len(options) <= _MOST_LISTED and not any(isinstance(value, (Mapping, list, tuple)) for value in options)
        return list(options) if plain else f"{len(options):,}, listed in the release"
    return options


def reading(facts: Facts) -> Markup:
    """Return how to read the page."""
    items = [_DISTANCE]
    if facts.evaluation is not None:
        items += [_FLOOR, _INDEPENDENT, _VERDICT]
    if facts.bounds:
        items.append(_BOUND.format(facts.sure))
    return tag("section", tag("h2", "How to read this"), tag("ul", [tag("li", item) for item in items]), id="reading")


def _inside(facts: Facts, sets: list[Measurement], total: int) -> npt.NDArray[np.float64]:
    """Return, for each set, the share of cells in which the synthetic table is within two sigmas of the measurement."""
    targets = check_all(sets, facts.recoded.domain)
    seen = [target.query for target in targets]
    scale = total / max(len(facts.synthetic), 1)
    shares = []
    for target, made in zip(targets, count_in_buckets(facts.recoded, seen, facts.threads), strict=True):
        noisy = target.values[tuple(slice(size) for size in made.shape)]
        shares.append(np.mean(np.abs(made * scale - noisy) <= 2 * target.sigma))
    return np.array(shares)


def _schema(facts: Facts) -> Markup:
    rows = []
    for name, column in facts.schema.columns.items():
        codes = f"{column.cardinality:,}" if column.modelled else "-"
        missing = "is a value" if column.missing else "not allowed" if column.modelled else "-"
        order = "yes" if column.ordered else "no"
        source = column.source or ("not named" if needs_source(column) else "-")
        declared, source = cut(_declared(column), 2_000), cut(source, 300)
        shown = [tag("small", declared), tag("small", source)]
        rows.append([tag("bdi", cut(name, 60)), column.type, order, missing, codes, *shown])
    head = tag("summary", f"The declared schema ({len(rows):,} columns)")
    names = ["column", "type", "in order", "missing", "codes", "bounds, labels and bins", "source"]
    return tag("details", head, table(names, rows, 4))


def _declared(column: Column) -> str:
    """Return the bounds, labels and bins of a column as a declaration writes them."""
    plain = {key: value for key, value in column.to_dict().items() if key not in ("type", "missing", "source")}
    return "; ".join(f"{key}: {_said(value)}" for key, value in plain.items()) or "-"


def _said(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_said(item)}" for key, item in value.items())
    return ", ".join(map(_said, value)) if isinstance(value, list) else str(value)
