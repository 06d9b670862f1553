"""Counting marginals of the simulated census: chicle, numpy, polars, duckdb and pandas."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
from side_by_side import Goal, Part, Row, Settings, Table, Timed, check, in_turns

import chicle
from chicle import Clique, Records

ATTRIBUTES = 97
TRIPLES = 100
TRIPLE_CELLS = 32_768
LARGE_TRIPLE = ("AGE", "OCC", "INCWAGE")
BATCH = 65_536
GROWING_RECORDS = (10_000, 100_000)
MOST_RECORDS = 3_000_000
GROWING_ATTRIBUTES = (12, 25, 50, ATTRIBUTES)

PLAIN_NUMPY = "numpy.bincount"
NARROW_NUMPY = "numpy.bincount, narrow cells"

MEMORY_SLACK = 64 * 2**20
"""What counting may take besides twice its result tables, in bytes."""

Counts: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Way:
    """One tool's way to count cliques.

    It counts the first `sample` cliques of a shuffled list, and its time is scaled to all of them. `dense` turns its
    own form of an answer, where it has one, into an array of counts, outside the measured time.
    """

    name: str
    threads: str
    count: Callable[[Sequence[Clique]], Sequence[Any]]
    sample: int | None = None
    dense: Callable[[Any, Clique], Counts] | None = None


def chicle_ways(records: Records) -> list[Way]:
    return [
        Way("chicle", "1", partial(chicle.count, records, threads=1)),
        Way("chicle", "all", partial(chicle.count, records)),
    ]


def numpy_ways(records: Records, sample: int | None = None) -> list[Way]:
    """Return numpy as most write it, in int64, and with the narrowest type of cell number: less memory to move."""

    def bincount(clique: Clique, dtype: npt.DTypeLike) -> Counts:
        first, *others = clique
        cell = records[first].astype(dtype)
        for name in others:
            cell *= records.domain[name]
            cell += records[name]
        counts = np.bincount(cell, minlength=records.domain.cells(clique))
        return counts.reshape(records.domain.shape(clique))

    def plain(cliques: Sequence[Clique]) -> list[Counts]:
        return [bincount(clique, np.int64) for clique in cliques]

    def narrow(cliques: Sequence[Clique]) -> list[Counts]:
        return [bincount(clique, np.min_scalar_type(records.domain.cells(clique))) for clique in cliques]

    return [
        Way(PLAIN_NUMPY, "1", plain, sample),
        Way(NARROW_NUMPY, "1", narrow, sample),
    ]


def polars_way(records: Records, sample: int) -> Way:
    frame = pl.DataFrame({name: records[name] for name in records})

    def count(cliques: Sequence[Clique]) -> list[pl.DataFrame]:
        return [frame.group_by(clique).len("n") for clique in cliques]

    def dense(answer: pl.DataFrame, clique: Clique) -> Counts:
        return scatter(records, clique, (answer[name].to_numpy() for name in clique), answer["n"].to_numpy())

    return Way("polars group_by", "all", count, sample, dense)


def duckdb_way(records: Records, sample: int) -> Way:
    connection = duckdb.connect()
    connection.register("frame", pl.DataFrame({name: records[name] for name in records}).to_arrow())
    connection.execute("CREATE TABLE people AS FROM frame")

    def count(cliques: Sequence[Clique]) -> list[dict[str, Counts]]:
        queries = (f"SELECT {', '.join(clique)}, count(*) AS n FROM people GROUP BY ALL" for clique in cliques)  # noqa: S608 - the census's own names
        return [connection.execute(query).fetchnumpy() for query in queries]

    def dense(answer: dict[str, Counts], clique: Clique) -> Counts:
        return scatter(records, clique, (answer[name] for name in clique), answer["n"])

    return Way("duckdb GROUP BY", "all", count, sample, dense)


def pandas_way(records: Records, sample: int) -> Way:
    frame = pd.DataFrame({name: records[name] for name in records})

    def count(cliques: Sequence[Clique]) -> list[pd.DataFrame]:
        return [pd.crosstab(frame[a], frame[b]) for a, b in cliques]

    def dense(answer: pd.DataFrame, clique: Clique) -> Counts:
        return scatter(records, clique, np.ix_(answer.index, answer.columns), answer.to_numpy())

    return Way("pandas.crosstab", "1", count, sample, dense)


def scatter(records: Records, clique: Clique, codes: Iterable[npt.NDArray[Any]], counts: Counts) -> Counts:
    table = np.zeros(records.domain.shape(clique), np.int64)
    table[tuple(codes)] = counts
    return table


def compare(ways: Sequence[Way], cliques: Sequence[Clique], settings: Settings) -> list[Timed]:
    """Time the ways in turns, scaled to all cliques, and check that all give the counts of the first."""
    taken = [cliques[: way.sample] for way in ways]
    jobs = {str(i): partial(way.count, some) for i, (way, some) in enumerate(zip(ways, taken, strict=True))}
    timed = list(in_turns(jobs, settings.rounds).values())
    for way, some, result in zip(ways, taken, timed, strict=True):
        for clique, expected, answer in zip(some, timed[0].answer, result.answer, strict=False):
            counts = answer if way.dense is None else way.dense(answer, clique)
            check(np.array_equal(counts, expected), f"{way.name} and {ways[0].name} count {clique} differently")
    return [
        Timed(result.seconds * len(cliques) / len(some), result.answer)
        for some, result in zip(taken, timed, strict=True)
    ]


def rows(ways: Sequence[Way], timed: Sequence[Timed], cliques: int, settings: Settings) -> list[Row]:
    return [
        {
            "method": way.name,
            "threads": way.threads,
            "seconds": result.seconds,
            "ns per record and clique": result.seconds / settings.records / cliques * 1e9,
            "ratio to chicle, 1 thread": result.seconds / timed[0].seconds,
            "measured on": f"{min(way.sample or cliques, cliques):,} of {cliques:,}",
        }
        for way, result in zip(ways, timed, strict=True)
    ]


def times_numpy(ways: Sequence[Way], timed: Sequence[Timed], threads: str, what: str, bound: float) -> list[Goal]:
    """Return how much longer numpy takes than chicle, as goals: against plain bincount, and against the narrow one."""
    seconds = {(way.name, way.threads): result.seconds for way, result in zip(ways, timed, strict=True)}
    mine = seconds["chicle", threads]
    return [Goal(f"{what}: times {name}", bound, seconds[name, "1"] / mine) for name in (PLAIN_NUMPY, NARROW_NUMPY)]


@cache
def census(records: int, attributes: int = ATTRIBUTES) -> Records:
    return chicle.datasets.census(records, attributes)


def shuffled(cliques: Iterable[Clique]) -> list[Clique]:
    order = list(cliques)
    random.Random(1).shuffle(order)  # noqa: S311 - a fixed choice of pairs, not a secret
    return order


def all_pairs(settings: Settings) -> Part:
    people = census(settings.records)
    cliques = shuffled(chicle.pairs(people.domain))
    ways = [
        *chicle_ways(people),
        *numpy_ways(people, 100 if settings.quick else 500),
        polars_way(people, 20),
        duckdb_way(people, 20),
        pandas_way(people, 8),
    ]
    timed = compare(ways, cliques, settings)
    size = f"{settings.records:,} records x {ATTRIBUTES} attributes, {len(cliques):,} pairs"
    note = "Slow peers count a fixed random sample of the pairs; their seconds are scaled to all."
    goals = [
        *times_numpy(ways, timed, "1", "all pairs, 1 thread", 6),
        *times_numpy(ways, timed, "all", "all pairs, all threads", 10),
    ]
    return Part([Table(f"All pairs: {size}", rows(ways, timed, len(cliques), settings), note)], goals)


def memory(settings: Settings) -> Part:
    """Measure the peak of one call, each in a process of its own."""
    if not Path("/proc/self/clear_refs").exists():
        return Part([])
    measured: list[Row] = []
    for threads, name in ((1, "1"), (None, "all")):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            peak, tables = process.submit(peak_of_all_pairs, settings.records, threads).result()
        bound = 2 * tables + MEMORY_SLACK
        megabytes = {"peak": peak, "result tables": tables, "bound": bound}
        measured.append({"threads": name} | {f"{what}, MB": size / 2**20 for what, size in megabytes.items()})
    note = "Above the input; the bound is twice the result tables and 64 MB."
    goals = [
        Goal(
            f"all pairs, {row['threads']} thread(s): memory above the input, MB",
            float(row["bound, MB"]),
            float(row["peak, MB"]),
            smaller_is_better=True,
        )
        for row in measured
    ]
    return Part([Table("All pairs: peak memory of chicle.count", measured, note)], goals)


def peak_of_all_pairs(records: int, threads: int | None) -> tuple[int, int]:
    """Return the bytes that counting takes at its peak, and those of its result."""
    people = census(records)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from what is in use now
    before = resident("VmRSS")
    tables = chicle.count(people, chicle.pairs(people.domain), threads)
    return resident("VmHWM") - before, sum(table.nbytes for table in tables)


def resident(field: str) -> int:
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def triples(settings: Settings) -> Part:
    people = census(settings.records)
    cliques = random_triples(people)
    ways = [*chicle_ways(people), *numpy_ways(people)]
    timed = compare(ways, cliques, settings)
    title = f"{TRIPLES} random 3-way cliques of up to {TRIPLE_CELLS:,} cells: {settings.records:,} records"
    goals = times_numpy(ways, timed, "1", f"{TRIPLES} triples, 1 thread", 3)
    return Part([Table(title, rows(ways, timed, len(cliques), settings))], goals)


def random_triples(people: Records) -> list[Clique]:
    chooser = random.Random(2)  # noqa: S311 - a fixed choice of cliques, not a secret
    chosen: set[Clique] = set()
    while len(chosen) < TRIPLES:
        clique = people.domain.clique(chooser.sample(list(people.domain), 3))
        if people.domain.cells(clique) <= TRIPLE_CELLS:
            chosen.add(clique)
    return sorted(chosen)


def large_triple(settings: Settings) -> Part:
    people = census(settings.records)
    ways = [*chicle_ways(people), *numpy_ways(people)]
    timed = compare(ways, [LARGE_TRIPLE], settings)
    cells = people.domain.cells(LARGE_TRIPLE)
    title = f"One large clique, {' x '.join(LARGE_TRIPLE)}, {cells:,} cells: {settings.records:,} records"
    return Part([Table(title, rows(ways, timed, 1, settings))])


def stream(settings: Settings) -> Part:
    people = census(settings.records)
    cliques = chicle.pairs(people.domain)
    starts = range(0, len(people), BATCH)
    batches = [Records({name: people[name][i : i + BATCH] for name in people}, people.domain) for i in starts]

    def counter(threads: int | None, cliques: Sequence[Clique]) -> list[Counts]:
        counter = chicle.Counter(people.domain, cliques, threads)
        for batch in batches:
            counter.update(batch)
        return counter.result()

    batched = f"chicle.Counter, batches of {BATCH:,}"
    ways = [*chicle_ways(people), Way(batched, "1", partial(counter, 1)), Way(batched, "all", partial(counter, None))]
    timed = compare(ways, cliques, settings)
    title = f"All pairs in one call and in batches: {settings.records:,} records x {ATTRIBUTES} attributes"
    return Part([Table(title, rows(ways, timed, len(cliques), settings))])


def growth(settings: Settings) -> Part:
    """Show how the cost of all pairs grows with the records and with the attributes, on one thread."""
    lengths = sorted({*GROWING_RECORDS, settings.records, *([] if settings.quick else [MOST_RECORDS])})
    sizes = [(n, ATTRIBUTES) for n in lengths] + [(settings.records, d) for d in GROWING_ATTRIBUTES]
    tables = {size: chicle.datasets.census(*size) for size in sizes}
    jobs = {str(size): partial(some_pairs, people) for size, people in tables.items()}
    timed = in_turns(jobs, settings.rounds)
    measured: dict[tuple[int, int], Row] = {}
    for size, people in tables.items():
        plain, *_ = numpy_ways(people)
        seconds, counted = timed[str(size)].seconds, timed[str(size)].answer
        for clique, expected in zip(counted, plain.count(list(counted)), strict=True):
            check(np.array_equal(counted[clique], expected), f"chicle and numpy count {clique} differently")
        cliques = chicle.pairs(people.domain)
        measured[size] = {
            "records": len(people),
            "attributes": len(people.domain),
            "pairs": len(cliques),
            "cells": sum(people.domain.cells(clique) for clique in cliques),
            "seconds": seconds,
            "ns per record and pair": seconds / len(people) / len(cliques) * 1e9,
        }
    return Part(
        [
            Table("All pairs, growing records, 1 thread", [measured[n, ATTRIBUTES] for n in lengths]),
            Table(
                "All pairs, growing attributes, 1 thread", [measured[settings.records, d] for d in GROWING_ATTRIBUTES]
            ),
        ]
    )


def some_pairs(people: Records) -> dict[Clique, Counts]:
    """Count all pairs and keep a few, to check."""
    cliques = chicle.pairs(people.domain)
    tables = dict(zip(cliques, chicle.count(people, cliques, 1), strict=True))
    return {clique: tables[clique] for clique in shuffled(cliques)[:10]}


COUNTING = (all_pairs, memory, triples, large_triple, stream)
GROWTH = (growth,)
