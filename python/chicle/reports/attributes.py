"""A panel for each attribute: real shares, synthetic shares, and measured shares with the band of their noise."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from chicle._html import Markup, Piece, cut, tag
from chicle.reports import charts
from chicle.reports.axes import Axis
from chicle.reports.facts import Facts

__all__ = ["attributes"]

_ROWS = 12
_STEPS = 120


def attributes(facts: Facts) -> Markup:
    """Return a panel for each attribute, in the order of the schema."""
    keys = []
    if facts.real is not None:
        keys.append(tag("span", "real", class_="key real"))
    keys.append(tag("span", "synthetic", class_="key made"))
    if facts.bounds:
        keys.append(tag("span", f"measured, with its noise ({facts.sure})", class_="key noise"))
    distances = {} if facts.evaluation is None else {error.name: error for error in facts.evaluation.attributes}
    panels = []
    for name in facts.domain:
        said: list[str] = []
        if name in distances:
            said.append(f"distance {distances[name].tvd:.4f}, floor {distances[name].floor:.4f}")
        bound = facts.bounds.get((name,))
        if bound is not None and bound.supported:
            said.append(f"bound {bound.distance:.4f}")
        panels.append(_panel(facts, name, said))
    legend = tag("p", keys, class_="legend")
    return tag("section", tag("h2", "Attributes"), legend, tag("div", panels, class_="panels"), id="attributes")


def _panel(facts: Facts, name: str, said: list[str]) -> Markup:
    ordered = name in facts.schema.ordinal
    axis = facts.labels.axis(name, facts.weights(name), _STEPS if ordered and facts.domain[name] > _ROWS else _ROWS)
    made = _shares(axis, facts.synthetic_counts[name])
    real = None if facts.real_counts is None else _shares(axis, facts.real_counts[name])
    size = facts.domain[name]
    kind = f"{size:,} value{'s' if size > 1 else ''}{' in order' if ordered else ''}"
    head: list[Piece] = [tag("b", tag("bdi", cut(name, 60)), title=cut(name, 300)), tag("small", kind)]
    return tag(
        "figure",
        tag("figcaption", head),
        charts.panel(charts.Series(axis, made, real, _band(facts, name, axis))),
        tag("p", "; ".join(said), class_="note"),
        class_="panel",
    )


def _shares(axis: Axis, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    return axis.grouped(counts) / max(int(counts.sum()), 1)


def _band(facts: Facts, name: str, axis: Axis) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None:
    """Return the confidence band of the true shares, from the measurements."""
    bound = facts.bounds.get((name,))
    if bound is None or bound.estimate is None or bound.sigma is None or bound.buckets or facts.release is None:
        return None
    total = max(facts.release.total, 1)
    estimate, sigma = axis.grouped(bound.estimate) / total, np.sqrt(axis.grouped(bound.sigma**2)) / total
    z = NormalDist().inv_cdf((1 + facts.confidence) / 2)
    return estimate - z * sigma, estimate + z * sigma
