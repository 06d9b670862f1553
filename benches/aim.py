"""AIM beside the others on the workload of all triples: errors ([A] Definition 2), seconds and memory.

python benches/aim.py TABLE [seeds] [mechanisms]   # a folder as in tables.py, or "census": 100,000 x 97, simulated
python benches/aim.py adult 3 aim,aim-published          # only some; runs are kept in benches/runs and not done again
"""

from __future__ import annotations

import sys
from pathlib import Path

from tables import data_folder, load

import chicle

MECHANISMS = "independent,mst,privsyn,aim,prism,aim-published"
EPSILONS = (0.2, 1.0, 5.0)
TRIPLES = 400
TIMEOUT = 1800.0


def main(name: str, seeds: int, mechanisms: str) -> None:
    if name == "census":
        real = chicle.datasets.census(100_000)
        schema = chicle.Schema(real.domain)
    else:
        real, schema = load(data_folder() / name)
    runs = Path(__file__).parent / "runs"
    runs.mkdir(exist_ok=True)
    found = chicle.compare(
        real,
        schema,
        mechanisms=mechanisms.split(","),
        epsilons=EPSILONS,
        seeds=seeds,
        output=runs / f"aim-{name}.csv",
        timeout=TIMEOUT,
        triples=TRIPLES,
        progress=print,
    )
    print(f"{name}, {seeds} seeds, {TRIPLES} triples at most; the workload error is twice the distance of triples")
    print(found)


if __name__ == "__main__":
    given = sys.argv[1:]
    main(given[0], int(given[1]) if len(given) > 1 else 3, given[2] if len(given) > 2 else MECHANISMS)
