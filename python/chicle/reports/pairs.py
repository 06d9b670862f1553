"""Pairs of attributes: a map of all pairs, and drawings of those with the largest errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle._html import Markup, Piece, cut, tag
from chicle._text import percent
from chicle.counting.records import Records
from chicle.domain import Clique
from chicle.evaluation.result import Evaluation
from chicle.query import Query
from chicle.releases.bounds import ErrorBound, count_in_buckets
from chicle.releases.release import Release
from chicle.reports import charts
from chicle.reports.axes import Axis
from chicle.reports.facts import Facts

__all__ = ["bounded_pairs", "compared_pairs"]

Floats = npt.NDArray[np.float64]

_MOST_ATTRIBUTES = 120
_BESIDE = 56  # maps of so many attributes fit beside each other
_DRAWN = 6
_GROUPS = 30


def compared_pairs(facts: Facts, evaluation: Evaluation) -> Markup | None:
    """Return maps of the errors and of the association of all pairs, and drawings of the worst pairs."""
    errors = evaluation.errors.get(2)
    if errors is None:
        return None
    distances = dict(zip(errors.cliques, errors.tvd.tolist(), strict=True))
    floors = dict(zip(errors.cliques, errors.floor.tolist(), strict=True))
    names = _shown(facts, distances)
    words_of = {pair: f"distance {distances[pair]:.4f}, floor {floors[pair]:.4f}" for pair in distances}
    parts: list[Piece] = [_notice(facts, names)]
    if len(errors) < errors.of:
        parts.append(
            tag("p", f"{len(errors):,} of {errors.of:,} pairs were drawn at random and compared.", class_="note")
        )
    maps = [_map("Distance of each pair to the real table", names, distances, words_of)]
    association = evaluation.association
    real, made = (
        dict(zip(association.pairs, values.tolist(), strict=True))
        for values in (association.cramers_v, association.cramers_v_synthetic)
    )
    said = {pair: f"Cramér's V real {_v(real[pair])}, synthetic {_v(made[pair])}" for pair in real}
    head = "Association (Cramér's V): real above the diagonal, synthetic below"
    maps.append(_map(head, names, made, said, above=real, top=1.0))
    parts.append(tag("div", maps, class_="maps" if len(names) <= _BESIDE else "maps stacked"))
    worst = [errors.cliques[i] for i in errors.worst(_DRAWN)]
    drawn = [
        _compared(facts, pair, f"distance {distances[pair]:.4f}, floor {floors[pair]:.4f}")
        for pair in worst
        if facts.real is not None
    ]
    if drawn:
        parts.append(tag("h3", f"The {len(drawn)} worst pairs" if len(drawn) > 1 else "The worst pair"))
        parts.append(tag("div", drawn, class_="triptychs"))
    return tag("section", tag("h2", "Pairs of attributes"), parts, id="pairs")


def bounded_pairs(facts: Facts, release: Release) -> Markup | None:
    """Return a map of the bounds of all pairs, and drawings of the measured pairs that the table fits worst."""
    pairs = {clique: bound for clique, bound in facts.bounds.items() if len(clique) == 2}
    if not pairs:
        return None
    distances: dict[Clique, float] = {pair: bound.distance for pair, bound in pairs.items()}
    names = _shown(facts, distances)
    words_of: dict[Clique, str] = {pair: _said(bound) for pair, bound in pairs.items()}
    head = f"Bound on the distance from the truth, each {facts.sure} sure; a dot where there is no bound"
    parts: list[Piece] = [_notice(facts, names), _map(head, names, distances, words_of)]
    known = sorted((pair for pair in pairs if pairs[pair].supported), key=lambda pair: _misfit(pairs[pair]))[-_DRAWN:]
    if known:
        parts.append(tag("h3", "The measured pairs that the synthetic table fits worst, relative to their noise"))
        parts.append(
            tag(
                "div",
                [_measured(facts, release, pairs[pair], words_of[pair]) for pair in known[::-1]],
                class_="triptychs",
            )
        )
    return tag("section", tag("h2", "Pairs of attributes"), parts, id="pairs")


def _shown(facts: Facts, distances: Mapping[Clique, float]) -> list[str]:
    """Return the attributes on the map: all, or those with the worst pairs."""
    if len(facts.domain) <= _MOST_ATTRIBUTES:
        return list(facts.domain)
    worst: dict[str, float] = dict.fromkeys(facts.domain, 0.0)
    for pair, distance in distances.items():
        for name in pair:
            worst[name] = max(worst[name], 0.0 if math.isnan(distance) else distance)
    kept = set(sorted(worst, key=lambda name: -worst[name])[:_MOST_ATTRIBUTES])
    return [name for name in facts.domain if name in kept]


def _notice(facts: Facts, names: Sequence[str]) -> Markup | None:
    if len(names) == len(facts.domain):
        return None
    said = f"The maps show the {len(names)} of {len(facts.domain)} attributes that have the worst pairs."
    return tag("p", said, class_="note")


def _map(
    head: str,
    names: Sequence[str],
    below: Mapping[Clique, float],
    words_of: Mapping[Clique, str],
    *,
    above: Mapping[Clique, float] | None = None,
    top: float | None = None,
) -> Markup:
    known = [value for value in below.values() if math.isfinite(value)]
    most = (max(known, default=0.0) or 1.0) if top is None else top
    size = len(names)
    lower, upper = np.full((size, size), math.nan), np.full((size, size), math.nan)
    words = [[""] * size for _ in names]
    for y in range(size):
        for x in range(y):
            pair = (names[x], names[y])
            lower[y, x] = below.get(pair, math.nan)
            upper[x, y] = math.nan if above is None else above.get(pair, math.nan)
            words[y][x] = f"{cut(names[x], 40)} × {cut(names[y], 40)}: {words_of.get(pair, 'not compared')}"
    drawn = charts.triangle(
        names, charts.rising(lower, most), words, None if above is None else charts.rising(upper, most)
    )
    caption = tag("figcaption", head, _ladder(most))
    return tag("figure", caption, tag("div", drawn, class_="scroll"))


def _ladder(top: float) -> Markup:
    """Return the legend of rising colours: the value at which each step begins."""
    steps = [
        tag("span", f"{top * (step / charts.STEPS) ** 2:.2g}", class_=f"step s{step}") for step in range(charts.STEPS)
    ]
    return tag("span", steps, tag("span", f"to {top:.2g}", class_="end"), class_="ladder")


def _compared(facts: Facts, pair: Clique, said: str) -> Markup:
    assert facts.real is not None  # noqa: S101 - the caller's case
    axes = [facts.labels.axis(name, facts.weights(name), _GROUPS) for name in pair]
    real, made = (_grouped(records, axes) / max(len(records), 1) for records in (facts.real, facts.synthetic))
    return _triptych(axes, ("real", real), made, off=made - real, said=said, scale=_share)


def _measured(facts: Facts, release: Release, bound: ErrorBound, said: str) -> Markup:
    assert bound.estimate is not None  # noqa: S101 - the caller's case
    assert bound.sigma is not None  # noqa: S101
    estimate, sigma = bound.estimate, bound.sigma
    (table,) = count_in_buckets(facts.synthetic, [Query(bound.clique, bound.buckets)], facts.threads)
    total = max(release.total, 1)
    made = table * (total / max(len(facts.synthetic), 1))
    axes = [
        facts.labels.axis(name, estimate.sum(axis=1 - i), _GROUPS, bound.buckets.get(name))
        for i, name in enumerate(bound.clique)
    ]

    def grouped(values: npt.NDArray[Any]) -> Floats:
        return axes[1].grouped(axes[0].grouped(values), axis=1)

    noise = np.sqrt(grouped(sigma**2))
    off = (grouped(made) - grouped(estimate)) / noise
    measured = np.maximum(grouped(estimate), 0) / total
    return _triptych(axes, ("measured", measured), grouped(made) / total, off=off, said=said, scale=_sigmas)


def _triptych(
    axes: Sequence[Axis],
    first: tuple[str, Floats],
    second: Floats,
    *,
    off: Floats,
    said: str,
    scale: Callable[[Floats], tuple[float, str]],
) -> Markup:
    """Draw a pair three times: real or measured, synthetic, and the difference.

    The scale of colours follows the cells of named values; the group of all other values may exceed it.
    """
    rows, columns = axes
    named = (slice(rows.named), slice(columns.named))
    top = float(max(first[1][named].max(initial=0), second[named].max(initial=0)))
    most, words = scale(off[named])
    shown = (first, ("synthetic", second))
    pictures = [
        tag("div", charts.grid(charts.rising(table, top), "h", name), tag("span", name)) for name, table in shown
    ]
    pictures.append(tag("div", charts.grid(charts.differing(off, most), "d", "difference"), tag("span", "difference")))
    names = tag("b", tag("bdi", cut(rows.name, 40)), " × ", tag("bdi", cut(columns.name, 40)))
    ends = [_ends("down", rows), _ends("across", columns)]
    notes = f"strongest colour: {percent(top, 2)} of the rows; difference from {words}"
    return tag(
        "figure",
        tag("figcaption", names, tag("span", said)),
        tag("div", pictures, class_="triptych"),
        tag("p", ends, notes, class_="note"),
        class_="pair",
    )


def _ends(way: str, axis: Axis) -> Piece:
    name = tag("bdi", cut(axis.name, 24))
    if axis.rest:
        return [f"{way}: ", name, f", the {axis.named} most frequent values, then {axis.labels[-1]}; "]
    first, last = (tag("bdi", cut(label, 24), title=label) for label in axis.ends)
    shown = f", in {len(axis)} groups" if len(axis) < axis.into.size else ""
    return [f"{way}: ", name, " (", first, " … ", last, f"{shown}); "]


def _share(off: Floats) -> tuple[float, str]:
    most = float(np.abs(off).max(initial=0))
    return most, f"−{percent(most, 2)} to +{percent(most, 2)} of the rows"


def _sigmas(off: Floats) -> tuple[float, str]:
    most = max(float(np.abs(off).max(initial=0)), 3.0)
    return most, f"−{most:.1f} to +{most:.1f} standard deviations of the noise"


def _grouped(records: Records, axes: Sequence[Axis]) -> Floats:
    first, second = (axis.into[records[axis.name]] for axis in axes)
    shape = (len(axes[0]), len(axes[1]))
    return np.bincount(first * shape[1] + second, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)


def _misfit(bound: ErrorBound) -> float:
    """Return how far the table is from the measurement, in units of the noise."""
    return bound.table_error / bound.estimate_error


def _said(bound: ErrorBound) -> str:
    if not bound.known:
        return "not measured: no bound"
    if not bound.supported:
        return f"not measured; bound {bound.distance:.4f} from how tables were selected"
    return f"bound {bound.distance:.4f}{', in buckets' if bound.buckets else ''}"


def _v(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"
