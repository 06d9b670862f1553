"""`chicle synth --engine spark`: the private table stays in Spark, and Spark writes the synthetic one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chicle.cli.arguments import Parser
from chicle.errors import ParameterError
from chicle.releases.release import Release
from chicle.sources.engines.spark import spark_errors

__all__ = ["add_engine", "check_engine", "check_spark_output", "read_spark", "spark_session", "write_spark"]


def add_engine(parser: Parser) -> None:
    """Add the arguments of engines."""
    engine = parser.add_argument_group("engines", "Where the table is read and counted, if not on this machine.")
    engine.add_argument("--engine", choices=["local", "spark"], default="local", help="default: local")
    engine.add_argument("--master", metavar="URL", help="the Spark master, such as local[8] or spark://host:7077")
    engine.add_argument(
        "--format",
        default="parquet",
        help="how Spark reads DATA: parquet (the default), delta, iceberg, orc, or table for a table's name",
    )
    engine.add_argument(
        "--conf",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a setting of the Spark session; may be repeated",
    )


def check_engine(arguments: argparse.Namespace) -> None:
    """Raise for settings of an engine that is not used, or that cannot be read."""
    if arguments.engine == "local" and (arguments.master or arguments.conf or arguments.format != "parquet"):
        raise ParameterError("--master, --format and --conf are for Spark; add --engine spark")
    for setting in arguments.conf:
        if "=" not in setting:
            raise ParameterError(f"--conf takes KEY=VALUE, not {setting!r}")


@contextmanager
def spark_session(arguments: argparse.Namespace) -> Iterator[Any]:
    """Give a Spark session; one that is started here is stopped in the end."""
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - pyspark is optional
    except ImportError:
        raise ParameterError(
            "--engine spark needs pyspark and Java 17 or later; run `pip install 'chicle[spark]'`"
        ) from None
    running = SparkSession.getActiveSession()
    builder = SparkSession.builder.appName("chicle synth").config("spark.ui.showConsoleProgress", "false")
    if arguments.master is not None:
        builder = builder.master(arguments.master)
    for setting in arguments.conf:
        builder = builder.config(*setting.split("=", 1))
    with spark_errors():
        session = running if running is not None else builder.getOrCreate()
    try:
        yield session
    finally:
        if running is None:
            session.stop()


def read_spark(session: Any, arguments: argparse.Namespace) -> Any:  # noqa: ANN401
    """Return the table as Spark reads it."""
    with spark_errors():
        if arguments.format != "table":
            return session.read.format(arguments.format).load(arguments.data)
        if len(arguments.data) > 1:
            raise ParameterError("--format table takes one table's name")
        return session.table(arguments.data[0])


def check_spark_output(session: Any, arguments: argparse.Namespace) -> None:  # noqa: ANN401
    """Check that the output is not there yet, on whatever file system, unless it is to be replaced."""
    java = getattr(session, "_jvm", None)
    if arguments.force or java is None:
        return
    with spark_errors():
        path = java.org.apache.hadoop.fs.Path(arguments.output)
        there = path.getFileSystem(session._jsc.hadoopConfiguration()).exists(path)  # noqa: SLF001 - no public way
    if there:
        raise ParameterError(f"{arguments.output} exists already; give --force to replace it, or another name")


def write_spark(session: Any, release: Release, arguments: argparse.Namespace) -> int:  # noqa: ANN401
    """Let executors make a table and write it as a folder of Parquet files; return how many rows it has."""
    rows = release.total if arguments.n is None else int(arguments.n)
    frame = release.sample_spark(session, rows, arguments.seed)
    with spark_errors():
        frame.write.mode("overwrite" if arguments.force else "errorifexists").parquet(arguments.output)
    return rows
