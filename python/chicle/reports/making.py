"""Scores in numbers, and how the table was made: mechanism, marginals, schema, version."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from chicle._core import __version__
from chicle._text import percent
from chicle.evaluation.result import Evaluation
from chicle.measurements.measurement import Measurement
from chicle.models.targets import check_targets
from chicle.releases.bounds import count_in_buckets
from chicle.releases.release import Release
from chicle.reports.facts import Facts
from chicle.reports.html import Markup, Piece, cut, tag
from chicle.reports.privacy import table

__all__ = ["making", "measured", "reading", "scores"]

_MOST_SETS = 1_500
_MOST_LISTED = 12

_DISTANCE = """\
Distance: total variation distance, half the sum of the differences of shares over all cells of a marginal. 0.03 means
that 3 of 100 rows would have to be changed to make both equal."""
_FLOOR = """\
Floor: the same number for the real table resampled with as many rows. No synthetic table need beat it."""
_INDEPENDENT = """\
Independent: the same number for a table whose attributes have nothing to do with each other, bought with the same
budget. What does not beat it has learnt no relation."""
_VERDICT = """\
Verdict: the share of the way from Independent to the floor that the table came, by the mean distance of pairs. From
90 % on it is very good, from 70 % good, from 40 % fair, from 10 % weak, else poor."""
_BOUND = """\
Bound: the synthetic table is at most so far from the truth, with probability {} over the noise; told by the release
alone. Each holds by itself, not all of them together. In buckets: the bound is on the counts of the groups of values
that were measured, not on how a group is spread over its values. Where no measurement holds both attributes of a pair,
and how tables were chosen tells nothing of it either, nothing is claimed."""


def scores(evaluation: Evaluation) -> Markup:
    """Return every score, with the floor and the Independent baseline beside it."""
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


def measured(facts: Facts, release: Release) -> Markup | None:
    """Return the measured sets of two and more attributes, and how the synthetic table fits them."""
    sets = [measurement for measurement in release.measurements if len(measurement.clique) > 1]
    if not sets:
        return None
    rows, total = [], max(release.total, 1)
    inside = _inside(facts, sets, total)
    order = np.argsort(inside, kind="stable")
    for i in order[:_MOST_SETS]:
        measurement = sets[i]
        names = " × ".join(cut(name, 40) for name in measurement.clique)
        cells = measurement.values.size
        buckets = "in buckets" if measurement.coarsening else "every value"
        noise = float(np.sqrt(2 / np.pi) * measurement.sigma * cells / (2 * total))
        rows.append(
            [tag("bdi", names), buckets, f"{cells:,}", f"{measurement.sigma:.3g}", f"{noise:.3f}", percent(inside[i])]
        )
    sizes = Counter(len(measurement.clique) for measurement in sets)
    said = ", ".join(f"{number:,} of {size} attributes" for size, number in sorted(sizes.items()))
    middle = float(np.median(inside))
    told = (
        f"Measured sets: {said}. Of the cells of a set the synthetic table is within two standard deviations of the "
        f"noise in {percent(middle)} at the median; noise alone would give 95.4 %."
    )
    head = ["set", "resolution", "cells", "sigma", "noise as a distance", "cells within 2 sigma"]
    more = tag("p", f"and {len(sets) - len(rows):,} more") if len(sets) > len(rows) else None
    listing = tag(
        "details", tag("summary", f"All measured sets ({len(sets):,}), worst fit first"), table(head, rows, 2), more
    )
    return tag("section", tag("h2", "Measured marginals"), tag("p", told), listing, id="measured")


def making(facts: Facts) -> Markup:
    """Return how the table was made."""
    release = facts.release
    rows: list[tuple[Piece, Piece]] = []
    if release is not None:
        options = json.dumps(_short(dict(release.options)), default=str)
        cells = sum(measurement.values.size for measurement in release.measurements)
        rows += [
            ("Mechanism", release.mechanism),
            ("Options", tag("small", cut(options, 2_000)) if release.options else "none"),
            ("Measurements", f"{len(release.measurements):,} noisy tables of {cells:,} cells"),
            ("Estimated number of records", f"{release.total:,}"),
        ]
    rows.append(("Synthetic rows", f"{len(facts.synthetic):,}"))
    if facts.evaluation is not None:
        rows.append(("Compared with", f"{facts.evaluation.rows:,} real rows, seed {facts.evaluation.seed}"))
    rows += [("Remark", cut(remark, 2_000)) for remark in facts.remarks]
    rows.append(("Version", f"chicle {__version__}"))
    told = tag("table", [tag("tr", tag("th", head), tag("td", said)) for head, said in rows], class_="facts")
    return tag("section", tag("h2", "How it was made"), told, _schema(facts), id="making")


def _short(told: object) -> object:
    """Return options without their long lists: rounds and scores are for programs, which read them in the release.

    Examples
    --------
    >>> _short({"sizes": [20, 10, 5], "rounds": [[0.1, 0.2]] * 19})
    {'sizes': [20, 10, 5], 'rounds': '19, listed in the release'}
    """
    if isinstance(told, Mapping):
        return {name: _short(value) for name, value in told.items()}
    if isinstance(told, Sequence) and not isinstance(told, str):
        plain = len(told) <= _MOST_LISTED and not any(isinstance(value, (Mapping, list, tuple)) for value in told)
        return list(told) if plain else f"{len(told):,}, listed in the release"
    return told


def reading(facts: Facts) -> Markup:
    """Return how to read the page."""
    items = [_DISTANCE]
    if facts.evaluation is not None:
        items += [_FLOOR, _INDEPENDENT, _VERDICT]
    if facts.bounds:
        items.append(_BOUND.format(facts.sure))
    return tag("section", tag("h2", "How to read this"), tag("ul", [tag("li", item) for item in items]), id="reading")


def _inside(facts: Facts, sets: list[Measurement], total: int) -> npt.NDArray[np.float64]:
    """Return the share of cells of each set in which the synthetic table is within two sigmas of what was measured."""
    targets = check_targets(sets, facts.recoded.domain)
    maps = [dict(zip(target.clique, target.maps, strict=True)) for target in targets]
    seen = [
        (target.clique, {name: codes for name, codes in each.items() if codes is not None})
        for target, each in zip(targets, maps, strict=True)
    ]
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
        rows.append([tag("bdi", cut(name, 60)), column.type, "yes" if column.ordered else "no", missing, codes])
    head = tag("summary", f"The declared schema ({len(rows):,} columns)")
    return tag("details", head, table(["column", "type", "in order", "missing", "codes"], rows, 4))
