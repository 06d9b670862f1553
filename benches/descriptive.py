"""Descriptive statistics of a table of codes, each with its usual sampling variance: for benches/coverage.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

Codes = Mapping[str, npt.NDArray[np.int64]]
Statistic = Callable[[Codes], tuple[float, float]]
"""An estimate, and its usual sampling variance."""


def mean(name: str) -> Statistic:
    return lambda t: (float(t[name].mean()), float(t[name].var() / len(t[name])))


def deviation(name: str) -> Statistic:
    def of(t: Codes) -> tuple[float, float]:
        x = t[name] - t[name].mean()
        variance, fourth = float((x**2).mean()), float((x**4).mean())
        return variance**0.5, (fourth - variance**2) / (4 * variance * len(x))

    return of


def quantile(name: str, share: float) -> Statistic:
    """Of codes as intervals of length 1, so that it is no whole number."""

    def of(t: Codes) -> tuple[float, float]:
        counts = np.bincount(t[name]).astype(float)
        heights = np.concatenate([[0.0], np.cumsum(counts)]) / counts.sum()
        error = (share * (1 - share) / counts.sum()) ** 0.5
        at = np.interp([share, share - error, share + error], heights, np.arange(len(heights)))
        return float(at[0]), float((at[2] - at[1]) / 2) ** 2

    return of


def cells(codes: Mapping[str, int]) -> Statistic:
    def of(t: Codes) -> tuple[float, float]:
        inside = np.logical_and.reduce([t[name] == code for name, code in codes.items()])
        p = float(inside.mean())
        return p, p * (1 - p) / len(inside)

    return of


def difference(name: str, group: str, code: int) -> Statistic:
    """Return the mean in a group less that of all others."""

    def of(t: Codes) -> tuple[float, float]:
        inside = t[group] == code
        one, other = t[name][inside], t[name][~inside]
        return float(one.mean() - other.mean()), float(one.var() / len(one) + other.var() / len(other))

    return of
