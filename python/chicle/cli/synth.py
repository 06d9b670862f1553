"""`chicle synth`: from a private table to a synthetic one.

Errors are found before any budget is spent: outputs, parameters and the schema are checked first. The release is
written before the table.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chicle.cli.arguments import (
    add_analyses,
    add_budget,
    add_dialect,
    add_draw,
    add_output,
    add_partition,
    add_public,
    analyses,
    check_draw,
    command,
    mechanism,
    public_data,
    tables,
)
from chicle.cli.ledger import add_ledger, check_ledger, opened_ledger
from chicle.cli.linked import add_ending, add_tables, check_tables, run_linked
from chicle.cli.output import check_output, rehearse, write_sample
from chicle.cli.spark import add_engine, check_engine, check_spark_output, read_spark, spark_session, write_spark
from chicle.cli.summary import say_summary
from chicle.cli.terminal import Progress, warn
from chicle.errors import ChicleError, ParameterError
from chicle.mechanisms.base import Mechanism
from chicle.privacy.strength import check_strength
from chicle.releases.release import Release
from chicle.schema import Schema
from chicle.sources import open_source
from chicle.sources.table_files import check_ending

__all__ = ["add"]

_HELP = """\
Example:
  chicle synth people.csv -s people.yaml -o synthetic.csv --epsilon 1 --delta 1e-9     # and synthetic.chicle

A table may be many files, each with the same columns, and larger than memory:
  chicle synth 'part-*.parquet' -s people.yaml -o synthetic.parquet --epsilon 1 --delta 1e-9

If some marginals matter more than others, name them:
  chicle synth people.csv -s people.yaml -o made.csv --epsilon 1 --delta 1e-9 --mechanism aim --workload target:income

Declare the regressions that will be run on the table: their coefficients then come with intervals that hold.
  chicle synth people.csv -s people.yaml -o made.csv --epsilon 1 --delta 1e-9 --analysis "logit: died ~ age + sex"

A public table of the same columns, or some of them, makes the result better and costs nothing:
  chicle synth people.csv -s people.yaml -o made.csv --epsilon 1 --delta 1e-9 --public neighbours.csv

If more will be made from the same people's data later, keep one ledger for all of it (see `chicle ledger --help`):
  chicle synth people.csv -s people.yaml -o made.csv --epsilon 1 --delta 1e-9 --ledger people.ledger --total-epsilon 3

Linked tables, such as patients and their visits, are named; OUT is a folder with a file for each:
  chicle synth --table patients=patients.csv --table visits='visits-*.parquet' -s hospital.yaml -o made --epsilon 1 \
    --delta 1e-9

A table in a lake is read, counted and made by Spark; OUT is a folder of Parquet files:
  chicle synth /lake/people -s people.yaml -o /lake/made --epsilon 1 --delta 1e-9 --engine spark --master local[8]

Groups of rows that shall each be right by themselves, such as states, form partitions:
  chicle synth people.csv -s people.yaml -o made.csv --epsilon 1 --delta 1e-9 --partition state

Without --ledger, each run spends a new budget, and budgets add up. Keep the release and use `chicle sample` for more
rows at no cost.
"""


def add(commands: Any) -> None:  # noqa: ANN401 - argparse hides its type
    """Add the command."""
    made = command(commands, "synth", "make a synthetic table, spending a privacy budget", _HELP)
    made.add_argument("data", metavar="DATA", nargs="*", help="the private table: a file, several, or a pattern")
    add_tables(made)
    add_ending(made)
    made.add_argument("-s", "--schema", required=True, help="the reviewed schema, YAML or JSON")
    add_output(made, "the file of the synthetic table: .csv, .csv.gz, .tsv, .parquet, .arrow or .feather")
    add_budget(made)
    add_public(made)
    add_ledger(made)
    add_analyses(made)
    add_partition(made)
    kept = made.add_mutually_exclusive_group()
    kept.add_argument(
        "--release",
        metavar="FILE",
        help="where to save the release (noisy counts, no records) for `chicle sample` (default: OUT as .chicle)",
    )
    kept.add_argument("--no-release", action="store_true", help="save no release: more rows would cost a new budget")
    add_draw(made)
    add_dialect(made)
    add_engine(made)
    made.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    check_engine(arguments)
    check_draw(arguments)
    if check_tables(arguments):
        return run_linked(arguments, _mechanism, _made)
    return _run_on_spark(arguments) if arguments.engine == "spark" else _run_here(arguments)


def _run_here(arguments: argparse.Namespace) -> int:
    check_ending(arguments.output, written=True)
    if arguments.release is None and not arguments.no_release:
        arguments.release = _beside(arguments.output)
    outputs = [arguments.output, *([] if arguments.release is None else [arguments.release])]
    data = tables(arguments, arguments.data, said=not arguments.quiet)
    for path in outputs:
        check_output(path, arguments.force, inputs=[*data, arguments.schema, *_ledger_file(arguments)])
    if len({Path(path).resolve() for path in outputs}) < len(outputs):
        raise ParameterError(f"{arguments.output} is named for the table and for the release; give them two names")
    schema, synth, asked = _mechanism(arguments)
    with Progress(quiet=arguments.quiet) as progress:
        progress.say("reading the table", total=1.0)
        source = open_source(data, schema, threads=arguments.threads, progress=_passes(progress))
        rehearse(schema, source.form, arguments.output)
        release = synth.fit(source, schema, ledger=opened_ledger(arguments, synth), **asked).release_
        del source
        rows = _made(release, arguments, lambda: write_sample(release, arguments, progress))
    say_summary(release, rows, arguments, kept=arguments.release)
    return 0


def _beside(output: str) -> str:
    """Return the file of the release of a table: made.csv.gz has made.chicle."""
    path = Path(output)
    return str(path.with_name(path.name.removesuffix(".gz").removesuffix(".GZ")).with_suffix(".chicle"))


def _ledger_file(arguments: argparse.Namespace) -> list[str]:
    return [] if arguments.ledger is None else [arguments.ledger]


def _run_on_spark(arguments: argparse.Namespace) -> int:
    if arguments.release is not None:
        check_output(arguments.release, arguments.force, inputs=[arguments.schema, *_ledger_file(arguments)])
    schema, synth, asked = _mechanism(arguments)
    with Progress(quiet=arguments.quiet) as progress:
        progress.say("starting Spark")
        with spark_session(arguments) as session:
            check_spark_output(session, arguments)
            source = open_source(read_spark(session, arguments), schema)
            progress.say("counting on executors")
            release = synth.fit(source, schema, ledger=opened_ledger(arguments, synth), **asked).release_
            progress.say("making records on executors")
            rows = _made(release, arguments, lambda: write_spark(session, release, arguments))
    say_summary(release, rows, arguments, kept=arguments.release)
    return 0


def _mechanism(arguments: argparse.Namespace) -> tuple[Schema, Mechanism, dict[str, Any]]:
    """Return the reviewed schema, the mechanism that can use it, and the analyses that are asked of a fit."""
    schema = Schema.load(arguments.schema)
    synth = mechanism(arguments, arguments.epsilon, schema)
    schema.check_reviewed()
    if schema.assumption is not None:
        warn(schema.assumption)
    check_strength(synth.budget, schema.rows, allowed=synth.allow_weak)
    check_ledger(arguments, synth, schema)
    asked: dict[str, Any] = {"analyses": analyses(arguments), "analysis_share": arguments.analysis_share}
    if arguments.partition is not None:
        asked["partition"] = arguments.partition
    asked["public"] = public_data(arguments)
    synth.plan(schema, **asked)
    return schema, synth, asked


def _made(release: Release, arguments: argparse.Namespace, write: Callable[[], int]) -> int:
    """Save the release, write the table, and return its number of rows; the release is never lost."""
    kept = False
    try:
        if arguments.release is not None:
            release.save(arguments.release)
            kept = True
        return write()
    except BaseException:
        if not kept:
            _rescue(release)
        else:
            warn(_kept_in(arguments.release))
        raise


def _passes(progress: Progress) -> Callable[[float], None]:
    """Return a callback that shows the progress of a pass over the table."""
    done = 0.0

    def show(part: float) -> None:
        nonlocal done
        if part < done:
            progress.say("selecting and measuring marginals", total=1.0)
            done = 0.0
        progress.advance(part - done)
        done = part

    return show


def _rescue(release: Release) -> None:
    """Save the release in another place, when it could not be written where it should be."""
    for folder in (".", tempfile.gettempdir()):
        path = Path(folder, f"rescued-{os.getpid()}.chicle")
        try:
            release.save(path)
        except ChicleError:
            continue
        warn(_kept_in(path))
        return


def _kept_in(path: str | Path) -> str:
    return f"the budget is spent; the release was kept in {path}: go on with `chicle sample {path} -o OUT`"
