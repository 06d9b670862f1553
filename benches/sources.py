"""Tables that are read in passes against tables in memory: time, peak memory, and what encoding costs.

    python benches/sources.py FOLDER [TIMES]

FOLDER holds a coded table (`data.parquet`, `domain.json`); the streamed fit reads it TIMES times over, by default once,
as a list of files. Each fit runs in a process of its own, so that its peak memory is its own. Trust the ratios.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

import chicle
from chicle.sources import open_source, read_records

ROWS = 500_000  # of the tables that are encoded
LEAST_IN_MEMORY = 1 << 20


def fit(folder: str, times: int, how: str) -> dict[str, float]:
    """Fit Prism on the table, streamed or in memory; return seconds and the peak of memory in MB."""
    schema = coded_schema(Path(folder))
    room = LEAST_IN_MEMORY if how == "streamed" else 1 << 40
    with tempfile.TemporaryDirectory(dir=folder) as links:
        paths = [Path(links, f"{i}.parquet") for i in range(times)]
        for path in paths:  # a file may be named once only
            path.hardlink_to(Path(folder, "data.parquet"))
        begun = time.perf_counter()
        source = open_source(paths, schema, in_memory=room)
        chicle.Prism(epsilon=1, delta=1e-9).fit(source, schema)
        seconds = time.perf_counter() - begun
    return {"seconds": seconds, "peak": peak()}


def peak() -> float:
    """Return the most memory that this process has had, in MB; `ru_maxrss` also knows that of its parent."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lines = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines())
    return int(lines["VmHWM"].split()[0]) / 1024


def coded_schema(folder: Path) -> chicle.Schema:
    return chicle.Schema.from_cardinalities(json.loads((folder / "domain.json").read_text(encoding="utf-8")))


def apart(folder: str, times: int, how: str) -> dict[str, float]:
    """Run a fit in a process of its own."""
    done = subprocess.run(  # noqa: S603 - this file
        [sys.executable, __file__, folder, str(times), how], check=True, capture_output=True, text=True
    )
    told: dict[str, float] = json.loads(done.stdout)
    return told


def seconds(work: Callable[[], Any], times: int = 3) -> float:
    """Return the least time of a few."""
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def encoding(folder: Path) -> None:
    """Print what encoding costs against counting all pairs, from frames and from files."""
    coded = coded_schema(folder)
    with pq.ParquetFile(folder / "data.parquet") as file:
        codes = pa.Table.from_batches([next(file.iter_batches(ROWS))])
    labels = {name: [f"{name} {code:03}" for code in range(size)] for name, size in coded.domain.items()}
    schema = chicle.Schema({name: {"type": "categorical", "values": listed} for name, listed in labels.items()})
    texts = pa.table({name: pa.array(listed).take(codes[name].combine_chunks()) for name, listed in labels.items()})
    listed = pa.table({name: texts[name].dictionary_encode() for name in texts.column_names})
    records = read_records(codes, coded)
    counting = seconds(lambda: chicle.count(records, chicle.pairs(records.domain)))
    print(f"{len(codes):,} rows x {len(coded.domain)}: all pairs counted in {counting:.2f} s")
    with tempfile.TemporaryDirectory() as made:
        pq.write_table(codes, f"{made}/codes.parquet")
        pq.write_table(texts, f"{made}/texts.parquet")
        pcsv.write_csv(codes, f"{made}/codes.csv")
        pcsv.write_csv(texts, f"{made}/texts.csv")
        tables: dict[str, tuple[Any, chicle.Schema]] = {
            "frame of codes": (codes, coded),
            "frame of categories": (listed, schema),
            "frame of texts": (texts, schema),
            "Parquet, codes": (f"{made}/codes.parquet", coded),
            "Parquet, texts": (f"{made}/texts.parquet", schema),
            "CSV, codes": (f"{made}/codes.csv", coded),
            "CSV, texts": (f"{made}/texts.csv", schema),
        }
        for name, (given, declared) in tables.items():
            taken = seconds(lambda given=given, declared=declared: read_records(given, declared))  # type: ignore[misc]
            rate = len(codes) / taken / 1e6
            print(f"  {name:<20} {taken:6.2f} s, {taken / counting:5.2f} of counting, {rate:6.2f} million rows/s")


def main() -> None:
    folder, times = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    encoding(Path(folder))
    told = {how: apart(folder, times if how == "streamed" else 1, how) for how in ("in memory", "streamed")}
    for how, one in told.items():
        read = times if how == "streamed" else 1
        print(f"fit {how}, table read {read} times over: {one['seconds']:.1f} s, peak {one['peak']:,.0f} MB")
    ratio = told["streamed"]["seconds"] / times / told["in memory"]["seconds"]
    print(f"streamed : in memory, for as many rows: {ratio:.2f}")


if __name__ == "__main__":
    if len(sys.argv) > 3:
        print(json.dumps(fit(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
    else:
        main()
