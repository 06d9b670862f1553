"""Graphical models of Adult: loss against steps, and what a step costs, on a tree and on denser graphs.

python benches/pgm.py [megabytes ...]   # sizes of the junction trees beside the tree, 1 and 10 unless given
"""

from __future__ import annotations

import sys
from itertools import combinations
from time import perf_counter, process_time

import numpy as np
from side_by_side import Row, Table, show
from tables import data_folder, load

import chicle
from chicle import Clique, Measurement, Records
from chicle.models.pgm import Pgm, jt_size
from chicle.selection.exact_scores import exact_indif
from chicle.selection.forest import spanning_forest

SIGMA = 40.0
STEPS = (10, 30, 100, 300)
COSTLY = 10**8


def graphs(table: Records, sizes: list[float]) -> dict[str, list[Clique]]:
    """Return 1-ways and a tree of the strongest pairs, and with as many further pairs as each size has room for."""
    scores = exact_indif(table)
    strongest_first = [scores.cliques[i] for i in np.argsort(-scores.values)]
    held: list[Clique] = [*((name,) for name in table.domain), *spanning_forest(strongest_first)]
    found = {"tree": list(held)}
    for size in sorted(sizes):
        for pair in strongest_first:
            if pair not in held and jt_size([*held, pair], table.domain) <= size * 1e6:
                held.append(pair)
        found[f"{size:g} MB"] = list(held)
    return found


def smallest_first(table: Records) -> list[Clique]:
    """Return all cliques of one to three attributes."""
    return [clique for size in (1, 2, 3) for clique in combinations(table.domain, size)]


def noisy(table: Records, cliques: list[Clique]) -> list[Measurement]:
    rng = np.random.default_rng(0)
    counts = chicle.count(table, cliques)
    return [
        Measurement(c, v + rng.normal(0, SIGMA, v.shape).round(), SIGMA) for c, v in zip(cliques, counts, strict=True)
    ]


def main(sizes: list[float]) -> None:
    if not (data_folder() / "adult").is_dir():
        return
    table, _ = load(data_folder() / "adult")
    rows: list[Row] = []
    after: list[Row] = []
    for name, cliques in graphs(table, sizes).items():
        measured = noisy(table, cliques)
        for threads in (1, 2):
            model = Pgm(measured, table.domain, threads=threads)
            row: Row = {"graph": name, "cliques": len(cliques), "MB": model.size / 1e6, "threads": threads}
            start, spent = perf_counter(), process_time()
            for steps in STEPS:
                model.step(steps - len(model.trace) + 1)
                row[f"loss, {steps}"] = model.loss
            taken = len(model.trace) - 1
            row["cpu ms a step"] = (process_time() - spent) / taken * 1e3
            row["ms a step"] = (perf_counter() - start) / taken * 1e3
            fitted = Pgm(measured, table.domain, threads=threads).fit()
            row["steps to the end"] = len(fitted.trace) - 1
            row["loss at the end"] = fitted.loss
            rows.append(row)
        start = process_time()
        records = fitted.records(seed=0)
        drawn = process_time()
        expected = fitted.marginals(chicle.pairs(table.domain))
        asked = process_time()
        within = fitted.marginals_within(COSTLY, smallest_first(table))
        all_asked = process_time()
        made = chicle.count(records, chicle.pairs(table.domain))
        off = [np.abs(a - b).sum() / (2 * len(records)) for a, b in zip(expected, made, strict=True)]
        inside = [distance for pair, distance in zip(chicle.pairs(table.domain), off, strict=True) if pair in cliques]
        after.append(
            {
                "graph": name,
                "cpu s of records": drawn - start,
                "cpu s of all pairs": asked - drawn,
                "of all up to triples": all_asked - asked,
                "left out": sum(marginal is None for marginal in within),
                "distance of records to the model, all pairs": float(np.mean(off)),
                "measured pairs": float(np.mean(inside)),
            }
        )
    show(Table(f"Adult, noisy marginals of sigma {SIGMA:g}: fitting", rows))
    show(Table("and what the models are asked for", after))


if __name__ == "__main__":
    main([float(size) for size in sys.argv[1:]] or [1.0, 10.0])
