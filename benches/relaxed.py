"""Relaxed projection against the graphical model at equal measurements ([A] appendix F).

python benches/relaxed.py [SEEDS] [TABLES]     # tables separated by commas; adult,titanic by default

Attributes of at most 16 values are kept.

MWEM+PGM chooses and measures; every model is then fitted to the same noisy tables. Printed are the mean total variation
distance of all triples from what the model expects, and from n records of it, and the seconds of the fit.
[A] replaces the model inside the rounds as well, so its choices differ; here nothing but the model does.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import fmean

import numpy as np
from tables import data_folder, distance, load

import chicle
from chicle import Model
from chicle.models import GraphicalModel, MixtureModel
from chicle.models.descent import DescentModel

MODELS: dict[str, Callable[[], Model]] = {
    "graphical": GraphicalModel,
    "relaxed projection": lambda: MixtureModel(link="projected"),
    "softmax mixture": lambda: MixtureModel(link="softmax"),
    "descent": DescentModel,
}
MOST_VALUES = 16  # of an attribute: a step of a mixture goes over all cells that were measured, for each component


def main(seeds: int, tables: list[str]) -> None:
    """Print the errors of each model."""
    for name in tables:
        whole, _ = load(data_folder() / name)
        small = {column: size for column, size in whole.domain.items() if 1 < size <= MOST_VALUES}
        real = chicle.Records({column: whole[column] for column in small}, small)
        triples = list(chicle.Workload.all_kway(real.domain, 3))
        exact = [table / len(real) for table in chicle.count(real, triples)]
        for epsilon in (0.2, 1.0, 5.0):
            found: dict[str, list[tuple[float, float, float]]] = {}
            for seed in range(seeds):
                synth = chicle.MWEM(epsilon=epsilon, delta=1e-9, rounds=2 * len(real.domain))
                measured = synth.fit(real).release_.measurements
                for kind, make in MODELS.items():
                    begun = time.process_time()
                    model = make().fit(measured, real.domain)
                    seconds = time.process_time() - begun
                    made = [
                        np.abs(t / t.sum() - e).sum() / 2 for t, e in zip(model.expect(triples), exact, strict=True)
                    ]
                    drawn = distance(real, model.records(len(real), seed), triples)
                    found.setdefault(kind, []).append((fmean(made), drawn, seconds))
            for kind, errors in found.items():
                model_error, drawn, seconds = (fmean(part) for part in zip(*errors, strict=True))
                print(
                    f"{name}, epsilon {epsilon:g}, {kind}: {model_error:.4f}, records {drawn:.4f}, {seconds:.1f} s",
                    flush=True,
                )


if __name__ == "__main__":
    given = sys.argv[2] if len(sys.argv) > 2 else "adult,titanic"
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2, given.split(","))
