"""A picture of a comparison: errors, seconds and memory against epsilon. Needs matplotlib, in ``chicle[evaluate]``."""

from __future__ import annotations

import importlib
from pathlib import Path
from statistics import fmean
from typing import Any

from chicle._write import replacing
from chicle.comparison.comparison import FLOOR, Comparison
from chicle.errors import ParameterError
from chicle.evaluation.result import NOT_PRIVATE

__all__ = ["check_plot", "plot"]

_PANELS = {
    "tvd_2": "mean 2-way distance",
    "tvd_3": "mean 3-way distance",
    "seconds": "seconds",
    "peak_mb": "peak MB",
}
# Colours that colour-blind readers can distinguish (Okabe and Ito 2008), with markers too.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = "osD^vP*"


def plot(comparison: Comparison, path: str | Path) -> None:
    """Draw errors, seconds and memory against epsilon: means over seeds, bars from the smallest to the largest value.

    Parameters
    ----------
    comparison
        The runs.
    path
        Where the picture goes: ``.svg`` or ``.png``.
    """
    check_plot(path)
    try:
        figure = importlib.import_module("matplotlib.figure").Figure(figsize=(10, 7), layout="constrained")
    except ImportError:
        raise ParameterError("pictures need matplotlib: pip install 'chicle[evaluate]'") from None
    panels = {key: title for key, title in _PANELS.items() if key in comparison.columns}
    for axes, (key, title) in zip(figure.subplots(2, 2).flat, panels.items(), strict=False):
        _panel(axes, comparison.means(key), title)
    figure.suptitle(NOT_PRIVATE, fontsize=9)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    with replacing(path) as beside:
        figure.savefig(beside, dpi=150, metadata={"Date": None} if Path(path).suffix == ".svg" else None)


def check_plot(path: str | Path) -> None:
    """Raise unless the file name has the ending of a known picture format."""
    if Path(path).suffix.lower() not in (".svg", ".png"):
        raise ParameterError(f"{path} has an unknown ending; a picture is *.svg or *.png")


def _panel(axes: Any, numbers: dict[tuple[str, float | None], list[float]], title: str) -> None:  # noqa: ANN401
    names = [name for name in dict.fromkeys(name for name, _ in numbers) if name != FLOOR]
    epsilons = sorted({epsilon for _, epsilon in numbers if epsilon is not None})
    for i, name in enumerate(names):
        known = [(epsilon, values) for epsilon in epsilons if (values := numbers.get((name, epsilon)))]
        means = [fmean(values) for _, values in known]
        spread = [
            [mean - min(values) for mean, (_, values) in zip(means, known, strict=True)],
            [max(values) - mean for mean, (_, values) in zip(means, known, strict=True)],
        ]
        axes.errorbar(
            [epsilon for epsilon, _ in known],
            means,
            yerr=spread,
            label=name,
            color=_COLOURS[i % len(_COLOURS)],
            marker=_MARKERS[i % len(_MARKERS)],
            capsize=3,
        )
    for values in (values for (name, _), values in numbers.items() if name == FLOOR and values):
        axes.axhline(values[0], color="#777777", linestyle="--", label="floor (bootstrap of the real table)")
    axes.set_xscale("log")
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    axes.set_ylim(0, 1.04 * axes.get_ylim()[1])
    axes.set_xlabel("epsilon")
    axes.set_title(title)
    axes.spines[["top", "right"]].set_visible(False)
