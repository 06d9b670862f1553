"""Pictures of the page: SVG without scripts, coloured by its style sheet, each with a text that says the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from chicle._html import Markup, Piece, cut, tag
from chicle._text import percent
from chicle.columns import Column
from chicle.reports.axes import Labels
from chicle.schema import Schema

__all__ = ["Bars", "Offer", "bars_of", "draw_bars", "draw_offers", "draw_trace"]

_MOST_BARS = 24
_MOST_ROWS = 200_000  # more would not change a picture


@dataclass(frozen=True)
class Bars:
    """How the values of a private column are distributed: NOT PRIVATE, in memory only, never in a file or a log."""

    labels: tuple[str, ...]
    shares: tuple[float, ...]
    ordered: bool
    sampled: bool


def bars_of(name: str, column: Column, values: pa.ChunkedArray) -> Bars | None:
    """Return the bars of a column under the declaration that was drafted from it; None where it has no codes."""
    if not column.modelled or column.undiscovered or not len(values):
        return None
    sampled = len(values) > _MOST_ROWS
    if sampled:
        values = values.take(pa.array(np.linspace(0, len(values) - 1, _MOST_ROWS).astype(np.int64)))
    codes = column.encode(values, lambda _rule, _fix: None)
    counts = np.bincount(codes, minlength=column.cardinality)
    axis = Labels(Schema({name: column}, reviewed=False)).axis(name, counts, _MOST_BARS)
    shares = axis.grouped(counts) / len(values)
    return Bars(axis.labels, tuple(shares.tolist()), axis.ordered, sampled)


def draw_bars(bars: Bars, name: str) -> Markup:
    """Draw a column: columns side by side where values have an order, else one row for each value."""
    top = max(bars.shares) or 1.0
    if not bars.ordered:
        rows = [
            tag(
                "tr",
                tag("th", tag("bdi", cut(label, 40)), scope="row"),
                tag("td", _line(share / top)),
                tag("td", percent(share), class_="n"),
            )
            for label, share in zip(bars.labels, bars.shares, strict=True)
        ]
        return tag("table", tag("tbody", rows), class_="bars")
    wide, high = 640, 130
    each = wide / len(bars.shares)
    columns = [
        tag(
            "rect",
            tag("title", f"{label}: {percent(share)}"),
            x=f"{i * each + 1:.1f}",
            y=f"{high - share / top * (high - 6):.1f}",
            width=f"{max(each - 2, 1):.1f}",
            height=f"{share / top * (high - 6):.1f}",
            rx=2,
        )
        for i, (label, share) in enumerate(zip(bars.labels, bars.shares, strict=True))
    ]
    ends = tag("p", [tag("bdi", cut(bars.labels[i], 30)) for i in (0, len(bars.labels) // 2, -1)], class_="ends")
    picture = _svg(wide, high, f"Distribution of {name}; the tallest bar is {percent(top)}", *columns, class_="columns")
    return tag("figure", picture, ends)


@dataclass(frozen=True)
class Offer:
    """What one epsilon buys.

    Attributes
    ----------
    epsilon, rho
        The budget of a run.
    columns, pairs
        The least and the largest error of a single column and of a pair: the share of rows that noise moves. None where
        the mechanism does not measure them, or where the data decide.
    sigma
        The largest standard deviation of the noise on a count of one column, in rows.
    affordable
        Whether the ledger has that much left.
    """

    epsilon: float
    rho: float
    columns: tuple[float, float] | None
    pairs: tuple[float, float] | None
    sigma: float | None
    affordable: bool


def draw_offers(offers: Sequence[Offer]) -> Markup:
    """Draw the expected errors against epsilon: a band for pairs and one for single columns."""
    wide, high, left, low = 940, 250, 46, 26
    ticks = np.linspace(left + 14, wide - 14, len(offers))
    tops = [band[1] for offer in offers for band in (offer.columns, offer.pairs) if band is not None]
    top = min(1.0, max(tops, default=1.0))

    def y(error: float) -> float:
        # The square root keeps small errors apart, which are the ones that people decide by.
        return (high - low) * (1 - math.sqrt(min(error, top) / top) * 0.94)

    pieces: list[Piece] = []
    for share in (0.01, 0.05, 0.1, 0.2, 0.5, 1.0):
        if share <= top * 1.01 and share >= top / 60:
            height = f"{y(share):.1f}"
            pieces.append(tag("line", class_="grid", x1=left, x2=wide, y1=height, y2=height))
            pieces.append(tag("text", percent(share, 0), x=left - 8, y=height, class_="scale"))
    for kind in ("pairs", "columns"):
        known = [
            (x, band) for x, offer in zip(ticks, offers, strict=True) if (band := getattr(offer, kind)) is not None
        ]
        if known:
            upper = [f"{x:.1f},{y(band[1]):.1f}" for x, band in known]
            lower = [f"{x:.1f},{y(band[0]):.1f}" for x, band in reversed(known)]
            pieces.append(tag("polygon", points=" ".join(upper + lower), class_=f"band {kind}"))
            pieces.append(tag("polyline", points=" ".join(upper), class_=f"edge {kind}"))
    for i, (x, offer) in enumerate(zip(ticks, offers, strict=True)):
        pieces.append(tag("line", class_="at", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=0, y2=high - low, data_at=i))
        pieces.append(tag("text", f"{offer.epsilon:g}", x=f"{x:.1f}", y=high - 6, class_="tick", data_at=i))
    words = "Expected error against epsilon; the table below has the numbers"
    return _svg(wide, high, words, *pieces, class_="offers")


def draw_trace(errors: Sequence[float]) -> Markup | None:
    """Draw the error after each pass of the model; None before the second pass."""
    if len(errors) < 2:
        return None
    wide, high = 940, 90
    top = max(errors) or 1.0
    points = " ".join(
        f"{i * wide / (len(errors) - 1):.1f},{4 + (high - 8) * (1 - error / top):.1f}" for i, error in enumerate(errors)
    )
    words = f"Error after each of {len(errors)} passes, now {errors[-1]:.4f}"
    return tag("figure", _svg(wide, high, words, tag("polyline", points=points, class_="edge columns")), class_="trace")


def _line(share: float) -> Markup:
    """Draw one bar of a row."""
    bar = tag("rect", x=0, y=2, width=f"{max(share * 240, 0.5):.1f}", height=10, rx=2)
    return tag("svg", bar, viewBox="0 0 240 14", width=240, height=14, aria_hidden="true")


def _svg(wide: float, high: float, words: str, *pieces: Piece, class_: str | None = None) -> Markup:
    return tag("svg", tag("title", words), pieces, viewBox=f"0 0 {wide} {high}", role="img", class_=class_)
