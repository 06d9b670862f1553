"""Residual descent: error after each sweep, seconds, cost by records and by marginals, one thread against two.

python benches/descent.py                      # exact pairs of the simulated census
python benches/descent.py sampling [records]   # what Prism takes to sample: microseconds a record at d = 20 and 80
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from time import perf_counter, process_time

import numpy as np
from side_by_side import Goal, Row, Table, show
from tables import data_folder, load

import chicle
from chicle import Clique, Measurement, Records
from chicle.models.descent import Descent

RECORDS = 662_000
PAIRS = 500
SWEEPS = 10


def exact(table: Records, cliques: Sequence[Clique]) -> list[Measurement]:
    return [
        Measurement(clique, counts, 1.0) for clique, counts in zip(cliques, chicle.count(table, cliques), strict=True)
    ]


def random_pairs(table: Records, number: int) -> list[Clique]:
    pairs = chicle.pairs(table.domain)
    return [pairs[i] for i in np.random.default_rng(0).choice(len(pairs), number, replace=False)]


def trace(
    targets: list[Measurement], table: Records, sweeps: int, threads: int | None
) -> tuple[list[Row], float, float]:
    """Return a row for each sweep, the seconds of all and the processor seconds of the sweeps."""
    start = perf_counter()
    descent = Descent(targets, table.domain, seed=0, threads=threads)
    rows: list[Row] = [
        {"sweep": 0, "mean error": descent.trace[0], "seconds": perf_counter() - start, "moves / n": 0.0}
    ]
    spent = process_time()
    for number in range(1, sweeps + 1):
        descent.sweep()
        rows.append(
            {
                "sweep": number,
                "mean error": descent.trace[-1],
                "seconds": perf_counter() - start,
                "moves / n": descent.moves[-1] / len(table),
            }
        )
    return rows, perf_counter() - start, process_time() - spent


def census() -> list[Goal]:
    table = chicle.datasets.census(RECORDS)
    targets = exact(table, random_pairs(table, PAIRS))
    rows, _, _ = trace(targets, table, SWEEPS, None)
    show(Table(f"census {RECORDS:,} x 97, {PAIRS} exact pairs, all threads", rows, "seconds from the measurements on"))
    timed: list[Row] = []
    for threads in (1, 2, 1, 2):
        _, seconds, spent = trace(targets, table, 3, threads)
        timed.append({"threads": threads, "seconds": seconds, "cpu s of the sweeps": spent})
    show(Table("start and three sweeps", timed, "two threads say something only if a second core was free: cpu s >> s"))
    one, two = (min(float(row["seconds"]) for row in timed if row["threads"] == threads) for threads in (1, 2))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return [
        Goal("mean error of 500 exact pairs", 0.006, float(rows[-1]["mean error"]), smaller_is_better=True),
        Goal("2 threads: times as fast as 1, start and three sweeps", 1.5, one / two),
        Goal("peak memory, GB", 1.0, peak, smaller_is_better=True),
    ]


def adult() -> list[Goal]:
    if not (data_folder() / "adult").is_dir():
        return []
    table, _ = load(data_folder() / "adult")
    targets = exact(table, chicle.pairs(table.domain))
    rows, seconds, _ = trace(targets, table, SWEEPS, None)
    show(Table("Adult, 91 exact pairs", rows))
    return [
        Goal("Adult: mean error", 0.0055, float(rows[-1]["mean error"]), smaller_is_better=True),
        Goal("Adult: seconds", 0.2, seconds, smaller_is_better=True),
    ]


def linear() -> None:
    whole = chicle.datasets.census(RECORDS)
    rows: list[Row] = []
    for records, pairs in [(n, 250) for n in (82_000, 165_000, 331_000, RECORDS)] + [
        (165_000, k) for k in (125, 500, 1000)
    ]:
        table = Records({name: whole[name][:records] for name in whole}, whole.domain)
        _, _, spent = trace(exact(table, random_pairs(whole, pairs)), table, 3, 1)
        cost = spent / 3 / (records * pairs) * 1e9
        rows.append({"records": records, "pairs": pairs, "cpu s a sweep": spent / 3, "ns per record and pair": cost})
    show(Table("cost of the first three sweeps, one thread", rows))


def sampling(records: int = 250_000) -> None:
    """Time `sample` of releases at epsilon 1; processor time says more than wall time where others are at work."""
    rows: list[Row] = []
    for attributes in (20, 80):
        synth = chicle.Prism(epsilon=1, delta=1e-9).fit(chicle.datasets.census(records, d=attributes))
        for threads in (1, None):
            walls, spent = [], []
            for seed in range(3):
                wall, cpu = perf_counter(), process_time()
                synth.release_.sample(records, seed=seed, threads=threads)
                walls.append(perf_counter() - wall)
                spent.append(process_time() - cpu)
            each = 1e6 / records
            used = threads or "all"
            rows.append(
                {"d": attributes, "threads": used, "us a record": min(walls) * each, "cpu us": min(spent) * each}
            )
    show(Table(f"Prism at epsilon 1, census {records:,}: sample", rows))


if __name__ == "__main__":
    if sys.argv[1:2] == ["sampling"]:
        sampling(*map(int, sys.argv[2:3]))
        raise SystemExit
    goals = census() + adult()
    linear()
    show(Table("goals", [goal.row() for goal in goals]))
