"""Time of an evaluation, part by part: `python benches/evaluate.py [FOLDER]`, on acs2024_ny or a census of its size.

The goal: all 1- and 2-way and 300 3-way errors of 210,150 x 52 in under 10 seconds on two cores, baselines included.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from side_by_side import Goal, Row, Table, show
from tables import data_folder, load

import chicle
from chicle.evaluation.association import Associations
from chicle.evaluation.contest import Contest
from chicle.evaluation.distance import Distances
from chicle.evaluation.marginals import cliques_of, observe
from chicle.evaluation.queries import nist_range_scores, range_scores
from chicle.evaluation.rows import row_scores
from chicle.evaluation.workload import counted, workload_scores

TRIPLES = 300


def main(folder: Path) -> None:
    if folder.is_dir():
        real, schema = load(folder)
    else:
        real = chicle.datasets.census(210_150, d=52)
        schema = chicle.Schema(real.domain)
    made = chicle.Independent(epsilon=1, delta=1e-9).fit(real, schema).sample(seed=0)
    rows: list[Row] = []

    def timed(part: str, start: float) -> float:
        rows.append({"part": part, "s": perf_counter() - start})
        return perf_counter()

    begin = start = perf_counter()
    budget = chicle.Budget(epsilon=1, delta=1e-9)
    contest = Contest.between(real, made, schema, budget=budget, seed=0, threads=None)
    start = timed("baselines: bootstrap and Independent", start)
    tables = [contest.real, *contest.others]
    triples = cliques_of(real.domain, 3, TRIPLES, np.random.default_rng(0))
    sizes: dict[int, list[chicle.Clique]] = {
        1: [(name,) for name in real.domain],
        2: chicle.pairs(real.domain),
        3: triples,
    }
    for size, cliques in sizes.items():
        observe(tables, cliques, None, Distances.empty(3, len(cliques)))
        start = timed(f"{len(cliques):,} {size}-way errors of three tables", start)
    errors = perf_counter() - begin
    pairs = chicle.pairs(real.domain)
    observe(tables, pairs, None, Associations.empty(4, len(pairs), schema))
    start = timed("association of all pairs", start)
    range_scores(contest, 1000)
    start = timed("1,000 range queries", start)
    nist_range_scores(contest, 300)
    start = timed("300 NIST range queries", start)
    workload_scores(contest, *counted(contest, dict.fromkeys(triples, 1.0)))
    start = timed("workload error and subsampling", start)
    row_scores(contest)
    start = timed("whole rows", start)
    chicle.evaluate(real, made, schema, epsilon=1, delta=1e-9)
    timed("chicle.evaluate, all of it", start)
    show(Table(f"{folder.name if folder.is_dir() else 'census'}: {len(real):,} x {len(real.domain)}", rows))
    goal = Goal("seconds for all 1-, 2- and 300 3-way errors", 10, errors, smaller_is_better=True)
    show(Table("Goals", [goal.row()]))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else data_folder() / "acs2024_ny")
