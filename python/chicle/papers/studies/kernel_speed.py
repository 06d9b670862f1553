"""chicle's own claim of speed: counting pairs beside numpy's, and exact noise beside numpy's inexact floats."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from chicle.counting.records import count
from chicle.domain import pairs
from chicle.papers.paper import Table
from chicle.papers.study import Case, Row, Study
from chicle.privacy import rounded_gaussian

__all__ = ["KERNEL_SPEED"]

_EVERY = 20
_CELLS = 1_000_000


def speeds(case: Case) -> list[Row]:
    """Return the seconds of chicle and of numpy, the best of three each."""
    records, cliques = case.records, pairs(case.records.domain)

    def by_numpy() -> None:
        for a, b in cliques[::_EVERY]:
            cells = records[a].astype(np.int64) * records.domain[b] + records[b]
            np.bincount(cells, minlength=records.domain.cells((a, b)))

    ours = _best(lambda: count(records, cliques, threads=case.threads))
    theirs = _best(by_numpy) * len(cliques) / len(cliques[::_EVERY])
    noise = _best(lambda: rounded_gaussian(100.0, _CELLS))
    floats = _best(lambda: np.random.default_rng().normal(0.0, 100.0, _CELLS))
    return [
        {"what": f"all {len(cliques):,} pairs, counted", "seconds": ours, "numpy": theirs, "times": theirs / ours},
        {"what": f"exact noise of {_CELLS:,} cells", "seconds": noise, "numpy": floats, "times": floats / noise},
    ]


def _best(run: Callable[[], object], times: int = 3) -> float:
    found = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


KERNEL_SPEED = Study(
    name="speed",
    title="Speed of the kernels",
    about=(
        "Seconds of counting and of noise, the best of three. numpy counts every twentieth pair by bincount, scaled to "
        "all of them, on one thread; its noise is floating point and protects nobody. chicle's noise uses all threads."
    ),
    run=speeds,
    by={"what": "what"},
    values={"seconds": "chicle, s", "numpy": "numpy, s", "times": "numpy / chicle"},
    tables=[Table(name="census of 97 attributes", source="chicle.datasets.census", simulated=(662_000, 97))],
)
