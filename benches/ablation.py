"""What each step of Prism buys, and how much its constants matter: tables x epsilons x seeds x switches.

python benches/ablation.py run RESULTS.csv [seeds]      # resumable: what RESULTS has is not done again
python benches/ablation.py show RESULTS.csv [PLOT.svg]  # tables in Markdown; a plot, if matplotlib is there

Tables are the simulated census and the folders of $CHICLE_DATA, or of a folder ``shared/data`` beside the checkout; of
each the first 50,000 records. Errors are mean total variation distances to them.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from math import exp, log
from pathlib import Path

import numpy as np
from tables import data_folder, distance, load

import chicle
from chicle import Clique, PrismOptions, Records, Schema
from chicle.mechanisms.base import Mechanism

DELTA = 1e-9
EPSILONS = (0.2, 1.0, 5.0)
RECORDS = 50_000
FOLDERS = ("adult", "titanic", "fire", "acs2018_income", "acs2024_ny", "msnbc")
TRIPLES, MAX_CELLS = 200, 300_000
FIELDS = ("table", "switch", "epsilon", "seed", "two", "three", "seconds")

ALL = PrismOptions(replicate=1)
STEPS = {
    "all steps": ALL,
    "no levels": replace(ALL, sizes=()),
    "no packing": replace(ALL, order=2),
    "no triples": replace(ALL, triple_bonus=0.0, triple_error=0.0),
    "no margins absorbed": replace(ALL, absorb=False),
    "no low rank": replace(ALL, low_rank=False),
    "no shrinkage": replace(ALL, pull=0.0),
    "no merging": replace(ALL, theta=0.0),
    "strict moves": replace(ALL, threshold=1.0),
    "moves by noise": replace(ALL, significance=0.0),
    "independent start": replace(ALL, start="independent"),
    "tree start": replace(ALL, start="tree"),
    "replicated x4": replace(ALL, replicate=4),
}
CONSTANTS = {
    "pull": {0.4: replace(ALL, pull=0.4), 0.7: ALL, 1.0: replace(ALL, pull=1.0)},
    "caution": {1.0: replace(ALL, caution=1.0), 1.5: ALL, 2.0: replace(ALL, caution=2.0)},
    "triple_error": {0.1: replace(ALL, triple_error=0.1), 0.3: ALL, 0.6: replace(ALL, triple_error=0.6)},
    "significance": {0.2: replace(ALL, significance=0.2), 0.35: ALL, 0.5: replace(ALL, significance=0.5)},
    "selection": {0.01: replace(ALL, selection=0.01), 0.02: ALL, 0.05: replace(ALL, selection=0.05)},
}


def switches() -> dict[str, Callable[[float], Mechanism]]:
    options = dict(STEPS)
    for name, values in CONSTANTS.items():
        options |= {f"{name}={value:g}": option for value, option in values.items() if option is not ALL}

    def prism(option: PrismOptions) -> Callable[[float], Mechanism]:
        return lambda epsilon: chicle.Prism(epsilon=epsilon, delta=DELTA, options=option)

    made: dict[str, Callable[[float], Mechanism]] = {name: prism(option) for name, option in options.items()}
    made["PrivSyn, descent"] = lambda epsilon: chicle.PrivSyn(epsilon=epsilon, delta=DELTA, generator="descent")
    made["Independent"] = lambda epsilon: chicle.Independent(epsilon=epsilon, delta=DELTA)
    return made


def tables() -> Iterator[tuple[str, Records, Schema]]:
    census = chicle.datasets.census(RECORDS, d=30)
    yield "census", census, Schema.from_cardinalities(census.domain)
    for name in FOLDERS:
        if (data_folder() / name).is_dir():
            yield name, *load(data_folder() / name, RECORDS)


def workload(real: Records) -> list[list[Clique]]:
    triples = [triple for triple in combinations(real.domain, 3) if real.domain.cells(triple) <= MAX_CELLS]
    some = np.random.default_rng(0).choice(len(triples), min(TRIPLES, len(triples)), replace=False)
    pairs = [pair for pair in chicle.pairs(real.domain) if real.domain.cells(pair) <= MAX_CELLS]
    return [pairs, [triples[i] for i in some]]


def run(results: Path, seeds: int) -> None:
    done = {(row["table"], row["switch"], row["epsilon"], row["seed"]) for row in read(results)}
    with results.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not done:
            writer.writeheader()
        for name, real, schema in tables():
            cliques = workload(real)
            for seed in range(seeds):
                for switch, make in switches().items():
                    for epsilon in EPSILONS:
                        if (name, switch, str(epsilon), str(seed)) in done:
                            continue
                        start = time.perf_counter()
                        table = make(epsilon).fit(real, schema).sample(seed=seed)
                        seconds = time.perf_counter() - start
                        two, three = (distance(real, table, some) for some in cliques)
                        writer.writerow(
                            dict(zip(FIELDS, (name, switch, epsilon, seed, two, three, seconds), strict=True))
                        )
                        file.flush()


def read(results: Path) -> list[dict[str, str]]:
    if not results.exists():
        return []
    with results.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def means(rows: list[dict[str, str]], column: str) -> dict[tuple[str, str, float], float]:
    """Return the mean over seeds for each table, switch and epsilon."""
    found: dict[tuple[str, str, float], list[float]] = {}
    for row in rows:
        found.setdefault((row["table"], row["switch"], float(row["epsilon"])), []).append(float(row[column]))
    return {key: float(np.mean(values)) for key, values in found.items()}


def show(results: Path, plot: Path | None) -> None:
    rows = read(results)
    names = list(dict.fromkeys(row["table"] for row in rows))
    three, two = means(rows, "three"), means(rows, "two")
    say = sys.stdout.write
    say("Mean total variation distance over pairs / triples:\n\n")
    say("| table | epsilon | Independent | PrivSyn, descent | Prism |\n|---|---|---|---|---|\n")
    for name in names:
        for epsilon in EPSILONS:
            keys = [(name, switch, epsilon) for switch in ("Independent", "PrivSyn, descent", "all steps")]
            cells = " | ".join(f"{two[key]:.4f} / {three[key]:.4f}" for key in keys)
            say(f"| {name} | {epsilon:g} | {cells} |\n")
    say("\n3-way error without a step, over that with all (geometric mean over the epsilons):\n\n")
    steps = [step for step in STEPS if step != "all steps"]
    say(f"| | {' | '.join(names)} | mean |\n|---|{'---|' * (len(names) + 1)}\n")
    ratios = {step: [ratio(three, name, step) for name in names] for step in steps}
    for step, found in ratios.items():
        say(f"| {step} | {' | '.join(f'{value:.3f}' for value in found)} | {geometric(found):.3f} |\n")
    say("\nConstants: 3-way error over that with the default; and with the value that is best on all other tables:\n\n")
    say(f"| | {' | '.join(names)} | mean |\n|---|{'---|' * (len(names) + 1)}\n")
    for constant, values in CONSTANTS.items():
        table = {value: [ratio(three, name, label(constant, value)) for name in names] for value in values}
        for value, found in table.items():
            say(f"| {constant} = {value:g} | {' | '.join(f'{r:.3f}' for r in found)} | {geometric(found):.3f} |\n")
        left_out = []
        for i in range(len(names)):
            others = {value: geometric(found[:i] + found[i + 1 :]) for value, found in table.items()}
            left_out.append(table[min(others, key=lambda value: others[value])][i])
        say(f"| {constant}, by the others | {' | '.join(f'{r:.3f}' for r in left_out)} | {geometric(left_out):.3f} |\n")
    if plot is not None:
        draw(ratios, names, plot)


def label(constant: str, value: float) -> str:
    return "all steps" if CONSTANTS[constant][value] is ALL else f"{constant}={value:g}"


def ratio(errors: dict[tuple[str, str, float], float], table: str, switch: str) -> float:
    return geometric([errors[table, switch, e] / errors[table, "all steps", e] for e in EPSILONS])


def geometric(values: list[float]) -> float:
    return exp(sum(log(value) for value in values) / len(values))


def draw(ratios: dict[str, list[float]], names: list[str], plot: Path) -> None:
    import matplotlib as mpl  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - only for the plot

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "chicle"
    from matplotlib import pyplot as plt  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    steps = sorted(ratios, key=lambda step: geometric(ratios[step]))
    for i, name in enumerate(names):
        axes.plot([ratios[step][i] for step in steps], range(len(steps)), "o", alpha=0.6, label=name)
    axes.plot([geometric(ratios[step]) for step in steps], range(len(steps)), "k|", markersize=16, label="mean")
    axes.set_yticks(range(len(steps)), steps)
    axes.axvline(1, color="0.6", linewidth=1)
    axes.set_xlabel("3-way error over that of Prism with all steps")
    axes.legend(fontsize="small")
    figure.savefig(plot, metadata={"Date": None})


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run(Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 3)
    elif sys.argv[1:2] == ["show"]:
        show(Path(sys.argv[2]), Path(sys.argv[3]) if len(sys.argv) > 3 else None)
    else:
        sys.exit(__doc__)
