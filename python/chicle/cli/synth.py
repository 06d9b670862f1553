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

from chicle.cli.arguments import add_budget, add_draw, add_output, check_draw, command, mechanism
from chicle.cli.output import check_output, rehearse, write_sample
from chicle.cli.summary import say_summary
from chicle.cli.terminal import Progress, warn
from chicle.errors import ChicleError, ParameterError
from chicle.releases.release import Release
from chicle.schema import Schema
from chicle.sources import open_source
from chicle.sources.files import find_files
from chicle.sources.table_files import check_ending

__all__ = ["add"]

_HELP = """\
Example:
  chicle synth people.csv -s people.yaml -o synthetic.csv --epsilon 1 --delta 1e-9 --release people.chicle

A table may be many files, each with the same columns, and larger than memory:
  chicle synth 'part-*.parquet' -s people.yaml -o synthetic.parquet --epsilon 1 --delta 1e-9

If some marginals matter more than others, name them:
  chicle synth people.csv -s people.yaml -o made.csv --epsilon 1 --delta 1e-9 --mechanism aim --workload target:income

Each run spends a new budget, and budgets add up. Keep the release and use `chicle sample` for more rows at no cost.
"""


def add(commands: Any) -> None:  # noqa: ANN401 - argparse hides its type
    """Add the command."""
    made = command(commands, "synth", "make a synthetic table, spending a privacy budget", _HELP)
    made.add_argument("data", metavar="DATA", nargs="+", help="the private table: a file, several, or a pattern")
    made.add_argument("-s", "--schema", required=True, help="the reviewed schema, YAML or JSON")
    add_output(made, "the file of the synthetic table: .csv, .csv.gz, .tsv, .parquet, .arrow or .feather")
    add_budget(made)
    made.add_argument(
        "--release", metavar="FILE", help="also save the release (noisy counts, no records) for `chicle sample`"
    )
    add_draw(made)
    made.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    check_ending(arguments.output)
    outputs = [arguments.output, *([] if arguments.release is None else [arguments.release])]
    for path in outputs:
        check_output(path, arguments.force, inputs=[*find_files(arguments.data), arguments.schema])
    if len({Path(path).resolve() for path in outputs}) < len(outputs):
        raise ParameterError(f"{arguments.output} is named for the table and for the release; give them two names")
    check_draw(arguments)
    schema = Schema.load(arguments.schema)
    synth = mechanism(arguments, arguments.epsilon, schema)
    schema.check_reviewed()
    synth.plan(schema)
    with Progress(quiet=arguments.quiet) as progress:
        progress.say("reading the table", total=1.0)
        source = open_source(arguments.data, schema, threads=arguments.threads, progress=_passes(progress))
        rehearse(schema, source.form, arguments.output)
        release = synth.fit(source, schema).release_
        del source
        kept = False
        try:
            if arguments.release is not None:
                release.save(arguments.release)
                kept = True
            rows = write_sample(release, arguments, progress)
        except BaseException:
            if not kept:
                _rescue(release)
            raise
    say_summary(release, rows, arguments, kept=arguments.release)
    return 0


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
        warn(f"the budget is spent; the release was kept in {path}: go on with `chicle sample {path} -o OUT`")
        return
