"""Drawings: compact SVG without scripts. Colours are classes of the style sheet, which knows dark pages and print.

Colour never stands alone: real is a bar, synthetic a dot or a line, noise a whisker or a band. Labels that can be long
are HTML beside the drawing, because browsers wrap text better in HTML than in SVG.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from chicle._html import Markup, Piece, cut, tag
from chicle._text import percent
from chicle.reports.axes import Axis

__all__ = ["STEPS", "Series", "differing", "grid", "panel", "rising", "scale", "triangle"]

Floats = npt.NDArray[np.float64]

STEPS = 8
"""How many steps of colour there are; half of them to each side of zero where values differ in sign."""

_ROW = 16
_WIDTH = 168
_HEIGHT = 96


class Series:
    """The shares of an axis's groups: synthetic, and, if known, real ones and the band of the measured ones."""

    def __init__(
        self,
        axis: Axis,
        synthetic: Floats,
        real: Floats | None = None,
        band: tuple[Floats, Floats] | None = None,
    ) -> None:
        self.axis = axis
        self.synthetic = synthetic
        self.real = real
        self.band = None if band is None else (np.maximum(band[0], 0), np.maximum(band[1], 0))

    @property
    def top(self) -> float:
        """The largest share of any value."""
        known = [self.synthetic, self.real, None if self.band is None else self.band[1]]
        return max(1e-9, *(float(shares[: self.axis.named].max(initial=0)) for shares in known if shares is not None))

    def words(self, group: int) -> str:
        """Return the numbers of a group in words."""
        said = [f"synthetic {percent(self.synthetic[group], 2)}"]
        if self.real is not None:
            said.insert(0, f"real {percent(self.real[group], 2)}")
        if self.band is not None:
            said.append(f"measured {percent(self.band[0][group], 2)} to {percent(self.band[1][group], 2)}")
        return ", ".join(said)


def panel(series: Series) -> Markup:
    """Draw one attribute: as steps if its values are ordered and many, else one row for each value."""
    return _steps(series.axis, series) if series.axis.ordered and len(series.axis) > 12 else _rows(series.axis, series)


def _rows(axis: Axis, series: Series) -> Markup:
    unit, rows = _WIDTH / series.top, axis.named
    names = [
        tag("li", tag("bdi", cut(label, 60)), title=f"{label}: {series.words(i)}")
        for i, label in enumerate(axis.labels)
    ]
    drawn: list[Piece] = []
    if series.real is not None:
        bars = "".join(f"M0 {i * _ROW + 3}h{_n(share * unit)}v10H0z" for i, share in enumerate(series.real[:rows]))
        drawn.append(tag("path", class_="real", d=bars))
    dots = "".join(f"M{_n(share * unit)} {i * _ROW + 8}h0" for i, share in enumerate(series.synthetic[:rows]))
    drawn.append(tag("path", class_="made", d=dots))
    if series.band is not None:
        low, high = (edge[:rows] for edge in series.band)
        whiskers = "".join(
            f"M{_n(a * unit)} {i * _ROW + 4}v8m0-4H{_n(b * unit)}m0-4v8"
            for i, (a, b) in enumerate(zip(low, high, strict=True))
        )
        drawn.append(tag("path", class_="noise", d=whiskers))
    height = rows * _ROW
    size = {"viewBox": f"-5 0 {_WIDTH + 10} {height}", "width": _WIDTH + 10, "height": height}
    picture = tag("svg", drawn, **size, **_image(axis.name))
    rest = tag("p", f"{axis.labels[-1]}: {series.words(rows)}", class_="rest") if axis.rest else None
    scale = tag("span", percent(series.top), class_="top")
    return tag("div", tag("ul", names[:rows]), picture, scale, rest, class_="rows")


def _steps(axis: Axis, series: Series) -> Markup:
    wide, unit = 2 * _WIDTH / len(axis), _HEIGHT / series.top

    def stairs(shares: Floats) -> str:
        return "".join(f"V{_n(_HEIGHT - share * unit)}H{_n((i + 1) * wide)}" for i, share in enumerate(shares))

    drawn: list[Piece] = []
    if series.real is not None:
        drawn.append(tag("path", class_="real", d=f"M0 {_HEIGHT}{stairs(series.real)}V{_HEIGHT}z"))
    if series.band is not None:
        low, high = series.band
        boxes = "".join(
            f"M{_n(i * wide)} {_n(_HEIGHT - b * unit)}H{_n((i + 1) * wide)}V{_n(_HEIGHT - a * unit)}H{_n(i * wide)}z"
            for i, (a, b) in enumerate(zip(low, high, strict=True))
        )
        drawn.append(tag("path", class_="band", d=boxes))
    drawn.append(
        tag("path", class_="line", d=f"M0 {_n(_HEIGHT - series.synthetic[0] * unit)}{stairs(series.synthetic)}")
    )
    drawn.append(tag("path", class_="axis", d=f"M0 {_HEIGHT}h{2 * _WIDTH}"))
    box = f"0 -2 {2 * _WIDTH} {_HEIGHT + 4}"
    picture = tag("svg", drawn, viewBox=box, preserveAspectRatio="none", **_image(axis.name))
    ends = [axis.ends[0], axis.labels[len(axis) // 2], axis.ends[1]]
    names = [tag("bdi", cut(label, 40), title=label) for label in ends]
    return tag("div", tag("span", percent(series.top), class_="top"), picture, tag("p", names), class_="steps")


def rising(values: Floats, top: float) -> npt.NDArray[np.int64]:
    """Return the step of colour of values from 0 to `top`, by their square root; -1 for NaN."""
    known = np.isfinite(values)
    shares = np.sqrt(np.clip(np.where(known, values, 0), 0, top) / (top or 1))
    return np.where(known, np.minimum((shares * STEPS).astype(np.int64), STEPS - 1), -1)


def differing(values: Floats, top: float) -> npt.NDArray[np.int64]:
    """Return the step of colour of values from -`top` to `top`: 0 for zero, up to 4 to each side."""
    return np.rint(np.clip(values, -top, top) / (top or 1) * (STEPS // 2)).astype(np.int64)


def grid(steps: npt.NDArray[np.int64], kind: str, name: str) -> Markup:
    """Draw a table as coloured cells: `kind` h for rising steps, d for differing ones."""
    rows, columns = steps.shape
    paths = []
    for step in np.unique(steps):
        if step == 0:
            continue
        cells = "".join(f"M{x} {y}h1v1h-1z" for y, x in zip(*np.nonzero(steps == step), strict=True))
        paths.append(tag("path", class_=f"{kind}{step}".replace("-", "m"), d=cells))
    return tag(
        "svg",
        tag("path", class_=f"{kind}0", d=f"M0 0h{columns}v{rows}h{-columns}z"),
        paths,
        class_="grid",
        viewBox=f"0 0 {columns} {rows}",
        preserveAspectRatio="none",
        width=150,
        height=150,
        **_image(name),
    )


def triangle(
    names: Sequence[str],
    below: npt.NDArray[np.int64],
    titles: Sequence[Sequence[str]],
    above: npt.NDArray[np.int64] | None = None,
) -> Markup:
    """Draw a number for each pair of attributes below the diagonal, and possibly another above it.

    Parameters
    ----------
    names
        The attributes.
    below, above
        A square of steps of colour each; -1 draws a dot.
    titles
        The tooltip of each cell below the diagonal.
    """
    count = len(names)
    cell = max(10, min(26, 480 // max(count, 1)))
    letters = max((_letters(_short(name, 16)) for name in names), default=1)
    margin = 8 + 7 * letters
    cells: list[Piece] = []
    for y in range(count):
        for x in range(count):
            step = int(below[y, x]) if x < y else -1 if above is None or x == y else int(above[y, x])
            said = titles[max(x, y)][min(x, y)]
            if step >= 0:
                cells.append(tag("path", tag("title", said), class_=f"h{step}", d=f"M{x} {y}h1v1h-1z"))
            elif x < y:
                cells.append(tag("path", tag("title", said), class_="none", d=f"M{x}.5 {y}.5h0"))
    labels: list[Piece] = []
    for i, name in enumerate(names):
        at, short = i * cell + cell / 2, _short(name, 16)
        labels.append(tag("text", tag("title", cut(name, 300)), short, x=margin - 4, y=margin + at, class_="row"))
        turn = f"translate({_n(margin + at)} {margin - 4}) rotate(-90)"
        labels.append(tag("text", tag("title", cut(name, 300)), short, transform=turn, class_="column"))
    side = margin + count * cell + 1
    body = tag("g", cells, transform=f"translate({margin} {margin}) scale({cell})")
    box = f"0 0 {side} {side}"
    return tag("svg", body, labels, class_="triangle", viewBox=box, width=side, **_image("a cell for each pair"))


def scale(value: float, floor: float | None, independent: float | None, words: Sequence[str]) -> Markup:
    """Draw a number on a line from 0, together with the two baselines."""
    marks = [mark for mark in (value, floor, independent) if mark is not None and np.isfinite(mark)]
    unit = 400 / (max(marks, default=0) * 1.08 or 1)
    drawn: list[Piece] = [tag("path", class_="axis", d="M0 22h400")]
    for kind, at in (("floor", floor), ("independent", independent)):
        if at is not None and np.isfinite(at):
            drawn.append(tag("path", class_=kind, d=f"M{_n(at * unit)} 10v24"))
    drawn.append(tag("path", class_="made", d=f"M{_n(value * unit)} 22h0"))
    drawn.append(tag("text", "0", x=0, y=42))
    return tag("svg", tag("title", "; ".join(words)), drawn, class_="scale", viewBox="-8 0 416 44", **_image(words[0]))


def _image(name: str) -> dict[str, str]:
    """Return the attributes that name a drawing for screen readers; its numbers are in titles and beside it."""
    return {"role": "img", "aria_label": cut(name, 80)}


def _n(number: float) -> str:
    """Return a coordinate as short text."""
    return f"{number:.1f}".removesuffix(".0")


def _letters(label: str) -> int:
    return sum(1 if ord(letter) < 0x1100 else 2 for letter in label)


def _short(label: str, most: int) -> str:
    """Cut a label by the width of its letters."""
    room = 0
    for i, letter in enumerate(label):
        room += _letters(letter)
        if room > most:
            return f"{label[: max(i - 1, 1)]}…"
    return label
