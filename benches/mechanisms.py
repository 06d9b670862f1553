"""The whole of PrivSyn on the simulated census, beside numpy's count of its pairs; all mechanisms on real tables.

python benches/mechanisms.py                  # 662,000 x 97, epsilon 1
python benches/mechanisms.py FOLDER [seeds]   # a folder as in tables.py: errors, seconds and memory at three epsilons
"""

from __future__ import annotations

import resource
import sys
import time
from itertools import combinations
from pathlib import Path

import numpy as np
from side_by_side import Row, Table, show
from tables import distance, load

import chicle
from chicle.mechanisms.base import Mechanism

DELTA = 1e-9
EPSILONS = (0.2, 1.0, 5.0)
MAX_TRIPLES = 400
MAX_CELLS = 2_000_000


def mechanisms(epsilon: float) -> dict[str, Mechanism]:
    return {
        "Independent": chicle.Independent(epsilon=epsilon, delta=DELTA),
        "PrivSyn, GUM": chicle.PrivSyn(epsilon=epsilon, delta=DELTA),
        "PrivSyn, descent": chicle.PrivSyn(epsilon=epsilon, delta=DELTA, generator="descent"),
        "Prism": chicle.Prism(epsilon=epsilon, delta=DELTA),
    }


def whole_run() -> None:
    census = chicle.datasets.census(662_000)
    start = time.perf_counter()
    pairs = chicle.pairs(census.domain)
    for a, b in pairs[::10]:
        np.bincount(census[a].astype(np.int64) * census.domain[b] + census[b], minlength=census.domain.cells((a, b)))
    numpy_seconds = (time.perf_counter() - start) * len(pairs) / len(pairs[::10])
    synth = chicle.PrivSyn(epsilon=1, delta=DELTA, generator="descent")
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


def accuracy(folder: Path, seeds: int) -> None:
    real, schema = load(folder)
    domain = real.domain
    triples = [triple for triple in combinations(domain, 3) if real.domain.cells(triple) <= MAX_CELLS]
    rng = np.random.default_rng(0)
    some = rng.choice(len(triples), min(MAX_TRIPLES, len(triples)), replace=False)
    workload = [chicle.pairs(domain), [triples[i] for i in some]]
    rows: list[Row] = []
    for name in mechanisms(1):
        for epsilon in EPSILONS:
            errors, seconds = [], []
            for seed in range(seeds):
                start = time.perf_counter()
                table = mechanisms(epsilon)[name].fit(real, schema).sample(seed=seed)
                seconds.append(time.perf_counter() - start)
                errors.append([distance(real, table, cliques) for cliques in workload])
            two, three = np.mean(errors, axis=0)
            rows.append(
                {
                    "mechanism": name,
                    "epsilon": epsilon,
                    "2-way": float(two),
                    "3-way": float(three),
                    "s": float(np.mean(seconds)),
                    "peak MB so far": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                }
            )
    show(Table(f"{folder.name}: mean total variation distance, {seeds} seeds", rows))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        accuracy(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3)
    else:
        whole_run()
