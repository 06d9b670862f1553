"""Project 500 noisy pairs of the census: `python benches/consistency.py [--quick]`.

Side by side with the same algorithm in plain numpy, which is timed over a few sweeps and scaled to all it would take.
"""

from __future__ import annotations

import argparse
import random
import sys
import warnings
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
from side_by_side import Goal, Part, Row, Settings, Table, check, in_turns, show

import chicle
from chicle import Clique, Domain, Measurement

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.oracles import consistency as oracle

SIGMA = 50.0
TOLERANCE = 1e-6
NUMPY_SWEEPS = 6


def noisy(people: chicle.Records, cliques: list[Clique]) -> list[Measurement]:
    rng = np.random.default_rng(0)
    counted = zip(cliques, chicle.count(people, cliques), strict=True)
    return [Measurement(c, np.rint(t + rng.normal(0, SIGMA, t.shape)).astype(np.int64), SIGMA) for c, t in counted]


def sweeps_of(measured: list[Measurement], domain: Domain, rule: str) -> int:
    done: list[float] = []
    chicle.project(measured, domain, nonnegativity=rule, progress=lambda _, error: done.append(error))  # type: ignore[arg-type]
    return len(done)


def pairs(settings: Settings) -> Part:
    people = chicle.datasets.census(settings.records, 97)
    order = chicle.pairs(people.domain)
    random.Random(1).shuffle(order)  # noqa: S311 - a fixed choice of pairs, not a secret
    measured = noisy(people, order[:500])
    cells = sum(m.values.size for m in measured)
    rows: list[Row] = []
    goals: list[Goal] = []
    for rule in ("least-squares", "norm-sub"):
        jobs = {
            str(threads): partial(
                chicle.project,
                measured,
                people.domain,
                nonnegativity=rule,
                tolerance=TOLERANCE,
                threads=threads,
            )
            for threads in (1, 2)
        }
        rounds = settings.rounds if rule == "least-squares" else 2
        timed = in_turns(jobs, rounds)
        check(
            all((a.values == b.values).all() for a, b in zip(timed["1"].answer, timed["2"].answer, strict=True)),
            "the result depends on the number of threads",
        )
        sweeps = sweeps_of(measured, people.domain, rule)
        start = perf_counter()
        theirs, _ = oracle.project(measured, rule=rule, max_sweeps=NUMPY_SWEEPS)
        numpy = (perf_counter() - start) / NUMPY_SWEEPS
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            mine = chicle.project(measured, people.domain, nonnegativity=rule, max_sweeps=NUMPY_SWEEPS)
        close = (np.allclose(m.values, t, atol=1e-5) for m, t in zip(mine, theirs, strict=True))
        check(all(close), f"chicle and numpy project differently after {NUMPY_SWEEPS} sweeps")
        seconds = {"chicle, 1 thread": timed["1"].seconds, "chicle, 2 threads": timed["2"].seconds}
        for method, taken in {**seconds, "plain numpy, scaled": numpy * sweeps}.items():
            rows.append(
                {
                    "nonnegativity": rule,
                    "method": method,
                    "sweeps": sweeps,
                    "seconds": taken,
                    "ms a sweep": taken / sweeps * 1e3,
                    "ns per cell and sweep": taken / sweeps / cells * 1e9,
                    "times 2 threads": taken / timed["2"].seconds,
                }
            )
        if rule == "least-squares":
            goals = [
                Goal("500 pairs, 2 threads: seconds", 2, timed["2"].seconds, smaller_is_better=True),
                Goal("500 pairs, 2 threads: times plain numpy", 50, numpy * sweeps / timed["2"].seconds),
                Goal("500 pairs: 2 threads times 1", 1.5, timed["1"].seconds / timed["2"].seconds),
            ]
    title = f"Project 500 pairs of 97 attributes, {cells:,} cells, sigma {SIGMA:g}, to {TOLERANCE:g} of the total"
    return Part([Table(title, rows)], goals)


def shapes(settings: Settings) -> Part:
    """Show what other shapes cost: a few large tables, and many small ones of higher order."""
    people = chicle.datasets.census(settings.records, 97)
    names = sorted(people.domain, key=people.domain.__getitem__)
    chooser = random.Random(2)  # noqa: S311 - a fixed choice of cliques, not a secret
    small = [people.domain.clique(chooser.sample(names[:40], 4)) for _ in range(300)]
    large = [people.domain.clique((*names[-5:-3], name)) for name in names[30:36]]
    rows: list[Row] = []
    for title, cliques in {"300 4-ways of small attributes": small, "6 large 3-ways": large}.items():
        measured = noisy(people, cliques)
        sizes = [m.values.size for m in measured]
        seconds = {}
        errors: list[float] = []
        for threads in (1, 2):
            project = partial(chicle.project, measured, people.domain, tolerance=1e-4, threads=threads)
            done: list[float] = []
            project(progress=lambda _, error, done=done: done.append(error))  # type: ignore[misc]
            errors = done
            seconds[threads] = in_turns({"": project}, 2)[""].seconds
        rows.append(
            {
                "tables": title,
                "cells": sum(sizes),
                "largest": max(sizes),
                "sweeps to 1e-4": len(errors),
                "ms a sweep, 1 thread": seconds[1] / len(errors) * 1e3,
                "ns per cell and sweep": seconds[1] / len(errors) / sum(sizes) * 1e9,
                "2 threads times 1": seconds[1] / seconds[2],
            }
        )
    return Part([Table("Other shapes", rows)])


CONSISTENCY = (pairs, shapes)


def main() -> None:
    parser = argparse.ArgumentParser(description="Consistency of noisy tables, side by side with plain numpy.")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    settings = Settings(quick=parser.parse_args().quick)
    goals: list[Row] = []
    for comparison in CONSISTENCY:
        part = comparison(settings)
        for table in part.tables:
            show(table)
        goals.extend(goal.row() for goal in part.goals)
    show(Table("Goals", goals))


if __name__ == "__main__":
    main()
