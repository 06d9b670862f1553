"""Spark: the counts of a local table, whatever happens to tasks and workers, and rows made on executors."""

import datetime as dt
import importlib.util
import os
import shutil
import signal
import sys
import threading
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import chicle
from chicle import ArtefactError, Budget, Ledger, Schema, SchemaError
from chicle.cli import main
from chicle.codecs import Codec
from chicle.counting.countable import Countable
from chicle.mechanisms.base import BY_NAME
from chicle.privacy import TestNoise
from chicle.sources import open_source, read_records
from chicle.sources.engines.spark import SparkSource
from tests.unit.test_sources import SCHEMA, people, same

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="pyspark is not installed"),
    pytest.mark.skipif(shutil.which("java") is None and "JAVA_HOME" not in os.environ, reason="there is no Java"),
    # pyspark's own: it says of each import of pandas 3 that it is not fully supported, and leaves sockets to Python.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]
BUDGET: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-6}
FEW: dict[str, dict[str, Any]] = {"fem": {"rounds": 4}, "dualquery": {"rounds": 4, "samples": 5}}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "tables"),
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    # Two threads; a task that fails is tried again.
    builder = SparkSession.builder.master("local[2,3]").appName("chicle tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def nothing_kept(spark: Any) -> Iterator[None]:
    yield
    spark.catalog.clearCache()


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return people(1_500)


@pytest.fixture(scope="module")
def files(spark: Any, table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The table as a plain scan of two Parquet files, the second of several row groups."""
    folder = tmp_path_factory.mktemp("files")
    pq.write_table(table.slice(0, 400), folder / "a.parquet")
    pq.write_table(table.slice(400), folder / "b c.parquet", row_group_size=500)
    return spark.read.parquet(str(folder))


def persisted(spark: Any) -> int:
    """How many frames are kept by Spark."""
    return int(spark.sparkContext._jsc.getPersistentRDDs().size())


def counted(given: Any, schema: Schema) -> Countable:
    return open_source(given, schema).countable(Codec(schema))


def released(given: Any, make: Callable[..., Any], schema: Schema = SCHEMA, **budget: Any) -> Any:
    ledger = Ledger(Budget(**BUDGET, **budget), noise=TestNoise(3))
    return make(**BUDGET).fit(given, schema, ledger=ledger).release_


@pytest.mark.parametrize("name", [name for name, one in BY_NAME.items() if one.public_data != "needed"])
def test_every_mechanism_measures_what_it_measures_locally(spark: Any, files: Any, table: pa.Table, name: str) -> None:
    frame = files if name in ("prism", "aim") else spark.createDataFrame(table)
    there, here = (released(given, partial(BY_NAME[name], **FEW.get(name, {}))) for given in (frame, table))
    for one, other in zip(there.measurements, here.measurements, strict=True):
        assert one.clique == other.clique
        np.testing.assert_array_equal(one.values, other.values)
    assert there.ledger.spent == here.ledger.spent
    assert persisted(spark) == 0


def test_executors_read_plain_parquet_themselves(spark: Any, files: Any, table: pa.Table) -> None:
    def direct(frame: Any) -> bool:
        return SparkSource(frame, SCHEMA)._files is not None

    assert direct(files)
    assert not direct(files.where("age > 3"))
    assert not direct(files.union(files))
    assert not direct(spark.createDataFrame(table))
    source = SparkSource(files, SCHEMA)
    same(source.countable(Codec(SCHEMA)), read_records(table, SCHEMA))
    source.close()
    assert persisted(spark) == 0


def test_types_and_missing_values(spark: Any) -> None:
    rows = 300
    rng = np.random.default_rng(2)

    def column(values: list[Any], dtype: pa.DataType) -> pa.Array:
        return pa.array([None if i % 7 == 0 else values[i] for i in rng.integers(0, len(values), rows)], dtype)

    days = [dt.date(2020, 1, 1) + dt.timedelta(days=i) for i in range(60)]
    times = [dt.datetime(2020, 1, 1, i % 24, tzinfo=dt.timezone.utc) + dt.timedelta(days=i) for i in range(60)]
    given = pa.table(
        {
            "a.b c": column(["ä", "", "x`y"], pa.string()),
            "day": column(days, pa.date32()),
            "time": column(times, pa.timestamp("us", "UTC")),
            "price": column([Decimal("1.50"), Decimal("9.99")], pa.decimal128(10, 2)),
            "small": column([1, 2, 3], pa.int16()),
            "flag": column([True, False], pa.bool_()),
            "note": pa.array([{"x": i} for i in range(rows)]),
        }
    )
    schema = Schema(
        {
            "a.b c": {"type": "categorical", "values": ["ä", "", "x`y"], "missing": True},
            "day": {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "bins": "month", "missing": True},
            "time": {
                "type": "datetime",
                "min": "2020-01-01T00:00:00",
                "max": "2020-12-31T00:00:00",
                "bins": "week",
                "timezone": "UTC",
                "missing": True,
            },
            "price": {"type": "number", "min": 0, "max": 10, "bins": 5, "missing": True},
            "small": {"type": "integer", "min": 1, "max": 3, "missing": True},
            "flag": {"type": "boolean", "missing": True},
            "note": {"type": "drop"},
        }
    )
    frame = spark.createDataFrame(given.drop_columns(["note"])).selectExpr("*", "struct(small) as note")
    same(counted(frame.repartition(3), schema), read_records(given, schema))
    release = released(frame, chicle.Independent, schema)
    made = release.sample_spark(spark, 20, seed=0)
    assert made.columns == [name for name in given.column_names if name != "note"]
    fields = dict(made.dtypes)
    assert (fields["price"], fields["day"], fields["small"]) == ("decimal(10,2)", "date", "smallint")
    assert made.count() == 20


def test_coded_frames_and_empty_partitions(spark: Any) -> None:
    census = chicle.datasets.census(3, d=3)
    schema = Schema(census.domain)
    frame = spark.createDataFrame(pa.table({name: census[name].astype(np.int64) for name in census.domain}))
    same(counted(frame.repartition(5), schema), census)
    empty = counted(frame.where("false"), schema)
    assert int(empty.count([()])[0]) == 0


def test_discovery_runs_on_executors(spark: Any, table: pa.Table) -> None:
    columns: dict[str, Any] = {
        **SCHEMA.columns,
        "age": {"type": "integer", "min": 0, "max": 99, "bins": {"private": 8}},
    }
    schema = Schema({**columns, "job": {"type": "open", "missing": True}})
    frame = spark.createDataFrame(table).repartition(5)
    there, here = (released(given, chicle.Prism, schema, discovery=1e-7) for given in (frame, table))
    assert there.schema == here.schema
    for one, other in zip(there.measurements, here.measurements, strict=True):
        np.testing.assert_array_equal(one.values, other.values)


PERSONS = Schema(
    {"who": {"type": "integer", "min": 0, "max": 19}, "job": {"type": "integer", "min": 0, "max": 9}},
    person="id",
    max_records_per_person=3,
)


def rows_of(persons: list[int]) -> pa.Table:
    rng = np.random.default_rng(5)
    return pa.table({"id": [f"p{who}" for who in persons], "who": persons, "job": rng.integers(0, 10, len(persons))})


def test_persons_are_limited_across_partitions(spark: Any) -> None:
    persons = [i % 20 for i in range(100)] + [3] * 40 + [4] * 2
    given = rows_of(persons)
    source = SparkSource(spark.createDataFrame(given).repartition(6), PERSONS)
    everyone = source.countable(Codec(PERSONS))
    source.close()
    limited = [min(times, 3) for _, times in sorted(Tally(persons).items())]
    assert everyone.count([("who",)])[0].tolist() == limited
    assert "at most 3 rows were kept" in source.promise
    # However the table is split, and whoever else is in it, a person's rows are the same: the rule sees only them.
    for frame in (
        spark.createDataFrame(given.take(np.arange(len(persons))[::-1])).coalesce(1),
        spark.createDataFrame(given.filter(pa.array([who != 3 for who in persons]))),
    ):
        other = SparkSource(frame, PERSONS)
        other._key = source._key
        jobs, wanted = (one.count([("who", "job")])[0] for one in (other.countable(Codec(PERSONS)), everyone))
        other.close()
        keep = [who for who in range(20) if jobs[who].sum()]
        np.testing.assert_array_equal(jobs[keep], wanted[keep])


def test_only_survivors_are_shuffled(spark: Any) -> None:
    source = SparkSource(spark.createDataFrame(rows_of([i % 20 for i in range(100)])), PERSONS)
    plan = source._limited("id")._jdf.queryExecution().executedPlan().toString()
    assert plan.count("WindowGroupLimit") >= 2, "the limit holds before the shuffle and after it"


def test_every_row_needs_its_person(spark: Any) -> None:
    given = pa.table({"id": ["a", None], "who": [1, 2], "job": [1, 2]})
    with pytest.raises(SchemaError, match="column 'id' has missing values; every row needs its person"):
        counted(spark.createDataFrame(given), PERSONS)


def test_persons_in_discovery_are_limited_too(spark: Any) -> None:
    schema = Schema({"job": {"type": "open", "other": -1}}, person="id")
    given = pa.table({"id": [1] * 500 + list(range(2, 400)), "job": [7] * 500 + [8] * 398})
    release = released(spark.createDataFrame(given).repartition(4), chicle.Independent, schema, discovery=1e-7)
    assert list(release.schema.columns["job"].values) == [8, -1]


def once(folder: Path, fail: Callable[[], None]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return rows as they are, after a failure in the first task that gets here."""
    marker = str(folder / "failed")

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:  # noqa: PERF203 - a few batches
                yield batch
            else:
                yield batch  # so that the task has counted something before it fails
                fail()

    return run


@pytest.mark.parametrize("how", ["task", "worker"])
def test_failures_count_nothing_twice(spark: Any, table: pa.Table, tmp_path: Path, how: str) -> None:
    def fail() -> None:
        if how == "worker":
            os.kill(os.getpid(), signal.SIGKILL)
        raise RuntimeError("once")

    frame = spark.createDataFrame(table).repartition(4)
    tried = frame.mapInArrow(once(tmp_path, fail), frame.schema)
    same(counted(tried, SCHEMA), read_records(table, SCHEMA))
    assert (tmp_path / "failed").exists()


def test_a_wrong_value_is_found_once_and_not_quoted(spark: Any, table: pa.Table) -> None:
    frame = spark.createDataFrame(table).selectExpr("if(age = 50, 777, age) as age", "job", "left", "pay")
    ledger = Ledger(Budget(**BUDGET))
    with pytest.raises(SchemaError, match="column 'age' has a number outside its bounds; widen") as raised:
        chicle.Prism(**BUDGET).fit(frame, SCHEMA, ledger=ledger)
    assert "777" not in str(raised.value)
    assert ledger.spent == 0
    assert persisted(spark) == 0


def test_a_wrong_schema_is_refused_before_any_job(spark: Any, table: pa.Table) -> None:
    with pytest.raises(SchemaError, match="'pay' is declared but not in the table"):
        open_source(spark.createDataFrame(table).drop("pay"), SCHEMA)


def test_errors_of_spark_are_one_line_without_values(spark: Any, table: pa.Table) -> None:
    frame = spark.createDataFrame(table).selectExpr("assert_true(age < 5) as age", "job", "left", "pay")
    with pytest.raises(ArtefactError, match=r"^Spark stopped the job \(\w+\); its log says why") as raised:
        chicle.Independent(**BUDGET).fit(frame.selectExpr("int(age) age", "job", "left", "pay"), SCHEMA)
    assert raised.value.__cause__ is None
    assert persisted(spark) == 0


def test_a_cancelled_job_leaves_nothing_behind(spark: Any, table: pa.Table, tmp_path: Path) -> None:
    begun = str(tmp_path / "begun")

    def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        Path(begun).touch()
        time.sleep(60)
        yield from batches

    def cancel() -> None:
        while not Path(begun).exists():
            time.sleep(0.05)
        spark.sparkContext.cancelAllJobs()

    frame = spark.createDataFrame(table)
    thread = threading.Thread(target=cancel)
    thread.start()
    ledger = Ledger(Budget(**BUDGET))
    with pytest.raises(ArtefactError, match="the Spark job was cancelled"):
        chicle.Prism(**BUDGET).fit(frame.mapInArrow(slow, frame.schema), SCHEMA, ledger=ledger)
    thread.join()
    assert ledger.spent == 0
    assert persisted(spark) == 0


def test_shards_are_the_same_wherever_they_are_made(spark: Any, table: pa.Table) -> None:
    release = released(table, chicle.Prism)
    made, again, other = (release.sample_spark(spark, 1_000, seed=seed, rows=300) for seed in (1, 1, 2))
    assert made.rdd.getNumPartitions() == 4
    here = pa.concat_tables([one for shard in range(4) for one in release.sample_shard(shard, 1_000, 1, rows=300)])
    found = made.toArrow()
    assert found.to_pylist() == here.to_pylist() == again.toArrow().to_pylist()
    assert other.toArrow().to_pylist() != found.to_pylist()
    unseeded = release.sample_spark(spark, 200)
    assert unseeded.toArrow() == unseeded.toArrow(), "made anew by each action, but the same"


def test_ids_do_not_repeat_between_shards(spark: Any) -> None:
    release = released(rows_of([i % 20 for i in range(200)]), chicle.Independent, PERSONS)
    made = release.sample_spark(spark, 1_000, seed=0, rows=150)
    met = {(row[0], row[1]) for row in made.selectExpr("id", "spark_partition_id()").collect()}
    assert len({shard for _, shard in met}) == 7
    assert len({person for person, _ in met}) == len(met), "each person is in one shard"


def test_the_command_writes_what_spark_reads(
    spark: Any, files: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    SCHEMA.save(tmp_path / "people.yaml")
    folder = Path(files.inputFiles()[0].removeprefix("file:").replace("///", "/")).parent
    out = tmp_path / "made"
    words = ["synth", str(folder), "-s", str(tmp_path / "people.yaml"), "-o", str(out), "--epsilon", "1"]
    words += ["--delta", "1e-9", "--engine", "spark", "--master", "local[2]", "-n", "500", "--seed", "1"]
    assert main([*words, "--release", str(tmp_path / "people.chicle")]) == 0
    assert pq.read_table(out).num_rows == 500
    ledger = chicle.load(tmp_path / "people.chicle").ledger
    assert isinstance(ledger, Ledger)
    assert ledger.spent > 0
    capsys.readouterr()
    assert main(words) != 0
    assert "exists already; give --force to replace it" in capsys.readouterr().err
    assert spark.range(1).count() == 1, "a session that was there before goes on"
