"""Prism with its second stage, with one stage only, and AIM on a graphical model, on tables of small domains.

python benches/small_domains.py run RESULTS.csv [seeds] [epsilons] [tables]   # e.g. 3 0.2,1,5,10 "ny,23 cut"
python benches/small_domains.py show RESULTS.csv                              # tables in Markdown

A run is resumable: what RESULTS.csv holds is not done again. Tables are drawn from the folders of $CHICLE_DATA, or of a
folder ``shared/data`` beside the checkout. No constant of Prism was set on those marked with a star. Errors are mean
total variation distances of all pairs and of up to 400 triples.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
from tables import data_folder, distance, load

import chicle
from chicle import PrismOptions, Records, Schema
from chicle.mechanisms.base import Mechanism

DELTA = 1e-9
EPSILONS = (0.2, 1.0, 5.0, 10.0)
TRIPLES = 400
FIELDS = ("table", "mechanism", "epsilon", "seed", "two", "three", "seconds")
AIM, ONE, TWO = "AIM on a graphical model", "Prism, one stage", "Prism"

MECHANISMS: dict[str, Callable[[float], Mechanism]] = {
    AIM: lambda epsilon: chicle.AIM(epsilon=epsilon, delta=DELTA, published=True),
    ONE: lambda epsilon: chicle.Prism(epsilon=epsilon, delta=DELTA, options=PrismOptions(first_stage=1.0)),
    TWO: lambda epsilon: chicle.Prism(epsilon=epsilon, delta=DELTA),
}


def cut(folder: str, rows: int, attributes: int, skip: int = 0) -> Records:
    """Return rows at random with attributes cut in two at the median, but for those that are then nearly constant."""
    real = sample(folder, rows)
    columns = {name: (real[name] > np.median(real[name])).astype(np.uint8) for name in real}
    held = [name for name, codes in columns.items() if 0.02 < codes.mean() < 0.98][skip : skip + attributes]
    return Records({name: columns[name] for name in held}, dict.fromkeys(held, 2))


def small(folder: str, rows: int, attributes: int, fewest: int, most: int) -> Records:
    """Return rows at random with the first attributes of so many values."""
    real = sample(folder, rows)
    held = [name for name in real if fewest <= real.domain[name] <= most and np.ptp(real[name])][:attributes]
    return Records({name: real[name] for name in held}, {name: real.domain[name] for name in held})


def sample(folder: str, rows: int) -> Records:
    """Return rows of a table at random, the same each time."""
    real, _ = load(data_folder() / folder)
    at = np.sort(np.random.default_rng(0).choice(len(real), rows, replace=False))
    return Records({name: real[name][at] for name in real}, real.domain)


TABLES: dict[str, Callable[[], Records]] = {
    "acs2018_income, 16 cut in two": lambda: cut("acs2018_income", 21_574, 16),
    "acs2018_income, 19 cut in two *": lambda: cut("acs2018_income", 40_000, 19, skip=2),
    "acs2024_ny, 16 cut in two": lambda: cut("acs2024_ny", 30_000, 16),
    "acs2024_ny, 23 cut in two *": lambda: cut("acs2024_ny", 50_000, 23, skip=16),
    "acs2024_ny, 18 of 3 to 7 values": lambda: small("acs2024_ny", 40_000, 18, 3, 7),
    "msnbc, 16 cut in two": lambda: cut("msnbc", 50_000, 16),
}


def run(path: Path, seeds: int, epsilons: tuple[float, ...], names: list[str]) -> None:
    """Add to a file what it does not hold."""
    done = {tuple(row[:4]) for row in _rows(path)}
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        for name in names:
            real = TABLES[name]()
            schema, pairs = Schema.from_cardinalities(real.domain), chicle.pairs(real.domain)
            triples = list(combinations(real.domain, 3))
            if len(triples) > TRIPLES:
                drawn = np.random.default_rng(0).choice(len(triples), TRIPLES, replace=False)
                triples = [triples[i] for i in drawn]
            for epsilon in epsilons:
                for seed in range(seeds):
                    for mechanism, make in MECHANISMS.items():
                        if (name, mechanism, f"{epsilon:g}", str(seed)) in done:
                            continue
                        start = time.perf_counter()
                        made = make(epsilon).fit(real, schema).sample(seed=seed)
                        seconds = time.perf_counter() - start
                        errors = [f"{distance(real, made, cliques):.6f}" for cliques in (pairs, triples)]
                        row = [name, mechanism, f"{epsilon:g}", seed, *errors, f"{seconds:.2f}"]
                        writer.writerow(row)
                        file.flush()
                        print(*row, sep="  ", flush=True)


def show(path: Path) -> None:
    """Print the errors of pairs / triples side by side, and the ratios of triples and of pairs."""
    cells: dict[tuple[str, str, str], list[list[float]]] = {}
    for table, mechanism, epsilon, _, *numbers in _rows(path):
        cells.setdefault((table, epsilon, mechanism), []).append([float(number) for number in numbers])
    print(f"| table | epsilon | {AIM} | {ONE} | {TWO} | triples over AIM's | pairs / triples over one stage | s |")
    print("|---|---|---|---|---|---|---|---|")
    for table, epsilon in dict.fromkeys((table, epsilon) for table, epsilon, _ in cells):
        means = {name: np.mean(cells.get((table, epsilon, name), [[np.nan] * 3]), axis=0) for name in MECHANISMS}
        errors = " | ".join(f"{one[0]:.5f} / {one[1]:.5f}" for one in means.values())
        ratio = means[TWO] / means[ONE]
        seconds = " / ".join(f"{one[2]:.1f}" for one in means.values())
        over = means[TWO][1] / means[AIM][1]
        print(f"| {table} | {epsilon} | {errors} | {over:.2f} | {ratio[0]:.2f} / {ratio[1]:.2f} | {seconds} |")


def _rows(path: Path) -> list[list[str]]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [row for row in csv.reader(file) if row]


if __name__ == "__main__":
    do, file, *more = sys.argv[1:]
    if do == "run":
        wanted = tuple(float(one) for one in more[1].split(",")) if len(more) > 1 else EPSILONS
        part = more[2] if len(more) > 2 else ""
        run(Path(file), int(more[0]) if more else 3, wanted, [name for name in TABLES if part in name])
    else:
        show(Path(file))
