"""A measure against epsilon as an SVG, both axes in logarithms, as the papers draw it; needs no plotting library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

__all__ = ["picture"]

# Colours that colour-blind readers can distinguish (Okabe and Ito 2008), solid first, then dashed.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 640, 340, 60, 30, 180, 40


def picture(title: str, lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Return a drawing of several lines; points that are not above 0 are left out.

    Parameters
    ----------
    title
        What is drawn.
    lines
        By name: pairs of epsilon and value.
    """
    points = {name: [(x, y) for x, y in line if x > 0 and y > 0] for name, line in lines.items()}
    every = [point for line in points.values() for point in line]
    if not every:
        return ""
    across = _Scale([x for x, _ in every], _LEFT, _WIDTH - _RIGHT)
    up = _Scale([y for _, y in every], _HEIGHT - _BOTTOM, _TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif">',
        "<style>text {font-size: 11px}</style>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="18">{escape(title)}</text>',
    ]
    marks = sorted({x for x, _ in every})
    parts += [f'<text x="{across(x):.1f}" y="{_HEIGHT - 22}" text-anchor="middle">{x:g}</text>' for x in marks]
    for y in up.ticks():
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{up(y):.1f}" y2="{up(y):.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 5}" y="{up(y) + 4:.1f}" text-anchor="end">{y:.2g}</text>')
    parts.append(f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 6}" text-anchor="middle">epsilon</text>')
    for i, (name, line) in enumerate(points.items()):
        colour, dash = _COLOURS[i % len(_COLOURS)], "" if i < len(_COLOURS) else ' stroke-dasharray="4 3"'
        drawn = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in sorted(line))
        parts.append(f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="1.5"{dash}/>')
        parts += [f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="2.5" fill="{colour}"/>' for x, y in line]
        y, x = _TOP + 8 + 18 * i, _WIDTH - _RIGHT + 12
        parts.append(f'<line x1="{x}" x2="{x + 20}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2"{dash}/>')
        parts.append(f'<text x="{x + 26}" y="{y + 4}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


class _Scale:
    """Maps the logarithms of numbers to places between two ends."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        self._low, self._high = math.log10(min(values)), math.log10(max(values))
        if self._high - self._low < 1e-9:
            self._low, self._high = self._low - 0.1, self._high + 0.1
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        return self._start + (self._end - self._start) * (math.log10(value) - self._low) / (self._high - self._low)

    def ticks(self) -> list[float]:
        return [10 ** (self._low + (self._high - self._low) * i / 4) for i in range(5)]
