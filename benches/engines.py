"""Engines side by side: what counting in Spark costs against Spark's own reading, and against this machine alone.

    python benches/engines.py [ROWS] [MASTER ...]
    python benches/engines.py --units
    python benches/engines.py --shards [FOLDER]

The table is a simulated census of 32 attributes as texts, in 8 Parquet files. For each master (by default `local[2]`;
`cluster` starts a standalone cluster of two workers of one core each on this machine) a process of its own prints
seconds: reading and throwing away, passes through the JVM and from files, a whole fit of Prism, all pairs in Spark SQL
(extrapolated from four), and sampling. `alone` is chicle without an engine, with two threads; lazy frames, relations
and Dask frames are read by the same process. Trust the ratios, and only on a machine that does nothing else.
`--units` prints the unit costs of docs/scale.md: CPU seconds of one thread, so that they hold on a busy machine too.
`--shards` prints the error of tables made in shards; FOLDER holds a coded table, by default acs2018_income.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tables import data_folder, distance, load

import chicle
from chicle.codecs import Codec
from chicle.counting.digest import Digest
from chicle.plans import shards
from chicle.sources import Source, open_source

ATTRIBUTES, FILES = 32, 8
THREADS = 2


def seconds(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def typed(rows: int, folder: Path) -> chicle.Schema:
    """Write a table of texts in several files; return its schema."""
    census = chicle.datasets.census(rows, d=ATTRIBUTES)
    labels = {name: [f"{name} {code:03}" for code in range(size)] for name, size in census.domain.items()}
    for i in range(FILES):
        part = slice(i * rows // FILES, (i + 1) * rows // FILES)
        columns = {name: pa.array(listed).take(pa.array(census[name][part])) for name, listed in labels.items()}
        pq.write_table(pa.table(columns), folder / f"{i}.parquet")
    return chicle.Schema({name: {"type": "categorical", "values": listed} for name, listed in labels.items()})


def passes(source: Source, schema: chicle.Schema) -> tuple[float, float]:
    """Return the seconds of the first pass, and of counting all pairs."""
    codec = Codec(schema)
    begun = time.perf_counter()
    rows = source.countable(codec)
    first = time.perf_counter() - begun
    pairs = seconds(lambda: rows.count(chicle.pairs(codec.base), threads=THREADS))
    source.close()
    return first, pairs


def units() -> None:
    """Print what one core takes for a value, a pair and a merge."""
    with tempfile.TemporaryDirectory() as folder:
        schema = typed(100_000, Path(folder))
        codec = Codec(schema)
        begun = time.process_time()
        records = open_source(f"{folder}/*.parquet", schema, threads=1).records(codec)
        print(f"read and encode a value: {(time.process_time() - begun) / 1e5 / ATTRIBUTES * 1e9:.0f} ns")
    census = chicle.datasets.census(200_000, threads=1)
    for name, table in {f"{ATTRIBUTES} attributes": records, "97 attributes": census}.items():
        pairs = chicle.pairs(table.domain)
        counter = chicle.Counter(table.domain, pairs, 1)
        cpu = {"count": -time.process_time()}
        counter.update(table)
        counter.result()
        cpu["count"] += time.process_time()
        cpu["digest"] = -time.process_time()
        Digest().add(table, 1)
        cpu["digest"] += time.process_time()
        cpu["pack"] = -time.process_time()
        packed = pickle.dumps(counter)
        cpu["pack"] += time.process_time()
        whole = pickle.loads(packed)  # noqa: S301 - our own
        cpu["merge"] = -time.process_time()
        whole.merge(pickle.loads(packed))  # noqa: S301
        cpu["merge"] += time.process_time()
        cells = sum(found.size for found in whole.result())
        work = len(table) * len(pairs)
        print(f"{name}, {len(table):,} rows: {len(pairs):,} pairs of {cells:,} cells")
        print(f"  count a row in a pair {cpu['count'] / work * 1e9:.2f} ns")
        print(f"  digest a value {cpu['digest'] / len(table) / len(table.domain) * 1e9:.2f} ns")
        print(f"  pack a cell {cpu['pack'] / cells * 1e9:.1f} ns, merge one {cpu['merge'] / cells * 1e9:.1f} ns")
        print(f"  {8 * cells / 1e6:.0f} MB in memory, {len(packed) / 1e6:.2f} MB on the wire")


def shard_errors(folder: Path) -> None:
    """Print the mean distance over all pairs of tables that are made in shards of fewer and fewer rows."""
    whole, _ = load(folder, 200_000)
    domain = chicle.Domain({name: whole.domain[name] for name in list(whole.domain)[:14]})
    real = chicle.Records({name: whole[name] for name in domain}, domain)
    for epsilon in (1, 10):
        for seed in range(2):
            release = chicle.Prism(epsilon=epsilon, delta=1e-9, threads=1).fit(real).release_
            for rows in (200_000, 50_000, 10_000):
                drawn = (release.sample_shard(i, 200_000, seed, rows=rows) for i in range(shards(200_000, rows)))
                made = chicle.Records(pa.concat_tables(part for shard in drawn for part in shard), domain)
                error = distance(real, made, chicle.pairs(domain))
                print(f"epsilon {epsilon}, seed {seed}, shards of {rows:,}: {error:.4f}", flush=True)


def alone(folder: Path, schema: chicle.Schema) -> dict[str, Any]:
    """Return the seconds of engines that this process reads, and of none."""
    import dask.dataframe as dd  # noqa: PLC0415 - only here
    import duckdb  # noqa: PLC0415
    import polars as pl  # noqa: PLC0415

    files = f"{folder}/*.parquet"
    given = {
        "chicle alone": files,
        "Polars lazy frame": pl.scan_parquet(files),
        "DuckDB relation": duckdb.read_parquet(files),
        "Dask frame, threads": dd.read_parquet(files),
    }
    found: dict[str, Any] = {}
    for name, table in given.items():
        found[name] = passes(open_source(table, schema, threads=THREADS), schema)
    fit = chicle.Prism(epsilon=1, delta=1e-9, threads=THREADS)
    found["chicle alone: Prism, whole fit"] = seconds(lambda: fit.fit(files, schema))
    counter = chicle.Counter(schema.domain, chicle.pairs(schema.domain))
    counter.update(open_source(files, schema).records(Codec(schema)))
    found["all pairs, MB: in memory, on the wire"] = (
        sum(table.nbytes for table in counter.result()) / 1e6,
        len(pickle.dumps(counter)) / 1e6,
    )
    return found


def on_spark(master: str, folder: Path, schema: chicle.Schema) -> dict[str, Any]:
    """Return the seconds of everything on Spark."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only here

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    for name, value in {
        "spark.driver.memory": "2g",
        "spark.executor.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    frame = spark.read.parquet(str(folder))
    through = frame.where("1 = 1")  # no plain scan any more

    def drop(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        yield pa.RecordBatch.from_pydict({"n": pa.array([0])})

    def throw_away(given: Any) -> Callable[[], None]:  # noqa: ANN401 - pyspark is optional
        return lambda: given.write.format("noop").mode("overwrite").save()

    throw_away(frame.mapInArrow(drop, "n bigint"))()  # starts everything
    found: dict[str, Any] = {"read and throw away": seconds(throw_away(frame))}
    found["rows to Python and throw away"] = seconds(throw_away(frame.mapInArrow(drop, "n bigint")))
    found["first pass, all pairs: through the JVM"] = passes(open_source(through, schema), schema)
    found["first pass, all pairs: from files"] = passes(open_source(frame, schema), schema)
    synth = chicle.Prism(epsilon=1, delta=1e-9, threads=THREADS)
    found["Prism, whole fit from files"] = seconds(lambda: synth.fit(frame, schema))
    found["Prism, whole fit through the JVM"] = seconds(lambda: synth.fit(through, schema))
    found["whole fit from files : read and throw away"] = (
        found["Prism, whole fit from files"] / found["read and throw away"]
    )
    found["whole fit from files : rows to Python"] = (
        found["Prism, whole fit from files"] / found["rows to Python and throw away"]
    )
    names = list(schema.domain)
    some = [(names[i], names[i + 9]) for i in range(0, 20, 5)]
    grouped = seconds(lambda: [frame.groupBy(*pair).count().collect() for pair in some])
    found["Spark SQL GROUP BY, all pairs (from 4)"] = grouped / 4 * len(chicle.pairs(schema.domain))
    release = synth.release_
    found["sample as many rows, 2 shards"] = seconds(
        throw_away(release.sample_spark(spark, release.total, seed=0, rows=-(-release.total // 2)))
    )
    spark.stop()
    return found


@contextmanager
def cluster() -> Iterator[str]:
    """Start a standalone cluster of two workers on this machine; give its master."""
    import pyspark  # noqa: PLC0415 - only here

    home = Path(pyspark.__file__).parent
    master = "spark://127.0.0.1:17077"
    place = "org.apache.spark.deploy"
    worker = ["--cores", "1", "--memory", "1g", "--host", "127.0.0.1", master]
    calls = [[f"{place}.master.Master", "--host", "127.0.0.1", "--port", "17077", "--webui-port", "0"]]
    calls += [[f"{place}.worker.Worker", "--webui-port", "0", *worker]] * 2
    with tempfile.TemporaryDirectory() as folder:
        here = {**os.environ, "SPARK_HOME": str(home), "SPARK_WORKER_DIR": folder, "SPARK_DAEMON_MEMORY": "256m"}
        running = []
        try:
            for call in calls:
                running.append(
                    subprocess.Popen(  # noqa: S603 - Spark's own
                        [str(home / "bin" / "spark-class"), *call],
                        env=here,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                    )
                )
                time.sleep(8)
            yield master
        finally:
            for process in running:
                process.terminate()
                process.wait()


def apart(how: str, folder: str) -> dict[str, Any]:
    """Measure one way in a process of its own."""
    call = [sys.executable, __file__, "--one", how, folder]
    done = subprocess.run(call, check=True, capture_output=True, text=True)  # noqa: S603 - this file
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    masters = sys.argv[2:] or ["local[2]"]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "data").mkdir()
        schema = typed(rows, Path(folder, "data"))
        schema.save(f"{folder}/schema.yaml")
        print(f"{rows:,} rows x {ATTRIBUTES}, {len(chicle.pairs(schema.domain))} pairs; seconds")
        for how in ["alone", *masters]:
            if how == "cluster":
                with cluster() as master:
                    found = apart(master, folder)
            else:
                found = apart(how, folder)
            print(f"\n{how}")
            for name, told in found.items():
                shown = "  ".join(f"{value:9.2f}" for value in np.atleast_1d(told))
                print(f"  {name:<46} {shown}", flush=True)


if __name__ == "__main__":
    if "--units" in sys.argv:
        units()
    elif "--shards" in sys.argv:
        shard_errors(Path(sys.argv[2]) if len(sys.argv) > 2 else data_folder() / "acs2018_income")
    elif "--one" in sys.argv:
        logging.disable()
        given, where = sys.argv[2], Path(sys.argv[3])
        declared = chicle.Schema.load(where / "schema.yaml")
        data = Path(where, "data")
        print(json.dumps(alone(data, declared) if given == "alone" else on_spark(given, data, declared)))
    else:
        main()
