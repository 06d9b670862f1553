"""`chicle sample`: draw another table from a saved release, at no cost."""

from __future__ import annotations

import argparse
from typing import Any

from chicle.cli.arguments import add_draw, add_output, check_draw, command
from chicle.cli.output import check_output, write_sample
from chicle.cli.summary import say_summary
from chicle.cli.terminal import Progress
from chicle.releases.release import load
from chicle.sources.table_files import check_ending

__all__ = ["add"]

_HELP = """\
Example:
  chicle sample people.chicle -o more.parquet -n 1000000 --seed 7

A release holds noisy counts and no records. Drawing from it spends no budget: draw as often as you like.
"""


def add(commands: Any) -> None:  # noqa: ANN401 - argparse hides its type
    """Add the command."""
    made = command(commands, "sample", "draw another table from a saved release, at no cost", _HELP)
    made.add_argument("release", metavar="RELEASE", help="a file that `chicle synth --release` wrote")
    add_output(made, "the file of the synthetic table: .csv, .csv.gz, .tsv, .parquet, .arrow or .feather")
    add_draw(made)
    made.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    check_ending(arguments.output)
    check_output(arguments.output, arguments.force, inputs=[arguments.release])
    check_draw(arguments)
    release = load(arguments.release)
    with Progress(quiet=arguments.quiet) as progress:
        rows = write_sample(release, arguments, progress)
    say_summary(release, rows, arguments)
    return 0
