"""The whole of PrivSyn on the simulated census, beside numpy's count of its pairs; all mechanisms on real tables.

python benches/mechanisms.py                  # 662,000 x 97, epsilon 1
python benches/mechanisms.py FOLDER [seeds]   # a folder as in tables.py: errors, seconds and memory at three epsilons
python benches/mechanisms.py FOLDER seeds binary [rows]   # up to 16 of its attributes cut in two at the median
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import numpy as np
from side_by_side import Row, Table, show
from tables import binary, distance, load

import chicle

MECHANISMS = (
    "independent",
    "mst",
    "privbayes",
    "privsyn",
    "privsyn-descent",
    "privsyn-pgm",
    "aim",
    "aim-published",
    "prism",
)
EPSILONS = (0.2, 1.0, 5.0)
TRIPLES = 400


def whole_run() -> None:
    census = chicle.datasets.census(662_000)
    start = time.perf_counter()
    pairs = chicle.pairs(census.domain)
    for a, b in pairs[::10]:
        np.bincount(census[a].astype(np.int64) * census.domain[b] + census[b], minlength=census.domain.cells((a, b)))
    numpy_seconds = (time.perf_counter() - start) * len(pairs) / len(pairs[::10])
    synth = chicle.PrivSyn(epsilon=1, delta=1e-9, generator="descent")
    start = time.perf_counter()
    synth.fit(census)
    fitted = time.perf_counter()
    table = synth.sample(seed=0)
    end = time.perf_counter()
    chosen = sum(len(m.clique) > 1 for m in synth.release_.measurements)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    row: Row = {
        "cliques": chosen,
        "fit s": fitted - start,
        "sample s": end - fitted,
        "numpy counts the pairs, s": numpy_seconds,
        "ratio": (end - start) / numpy_seconds,
        "peak MB": peak,
        "2-way error": distance(census, table, pairs[::20]),
    }
    show(Table("PrivSyn with descent, 662,000 x 97, epsilon 1", [row]))


def accuracy(folder: Path, seeds: int, rows: int | None = None, *, cut: bool = False) -> None:
    real, schema = load(folder, rows)
    if cut:
        real, schema = binary(real)
    what = f", {len(real.domain)} attributes cut in two" if cut else ""
    print(f"{folder.name}{what}, {len(real):,} rows, {seeds} seeds")
    print(chicle.compare(real, schema, mechanisms=MECHANISMS, epsilons=EPSILONS, seeds=seeds, triples=TRIPLES))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        more = sys.argv[2:]
        rows = int(more[2]) if len(more) > 2 else None
        accuracy(Path(sys.argv[1]), int(more[0]) if more else 3, rows, cut="binary" in more)
    else:
        whole_run()
