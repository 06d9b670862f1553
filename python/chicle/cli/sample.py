"""`chicle sample`: draw another table from a saved release, at no cost."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyarrow import csv

from chicle.cli.arguments import add_draw, add_output, check_draw, command
from chicle.cli.linked import add_ending, sample_linked
from chicle.cli.output import check_output, write_sample
from chicle.cli.summary import say_summary
from chicle.cli.terminal import Progress
from chicle.columns import Column
from chicle.errors import ParameterError
from chicle.releases.release import load
from chicle.schema import Schema
from chicle.schema.linked import LinkedSchema
from chicle.sources.table_files import check_ending

__all__ = ["add"]

_HELP = """\
Example:
  chicle sample people.chicle -o more.parquet -n 1000000 --seed 7
  chicle sample people.chicle -o women.csv --where sex=f --where region=north --where region=south
  chicle sample people.chicle -o whole.csv --given part.csv

A release of linked tables, such as patients and their visits, is drawn into a folder with a file for each:
  chicle sample hospital.chicle -o made --ending parquet
  chicle sample hospital.chicle -o women --where sex=f           # a column of the patients

A release holds noisy counts and no records. Drawing from it spends no budget: draw as often as you like.
"""


def add(commands: Any) -> None:  # noqa: ANN401 - argparse hides its type
    """Add the command."""
    made = command(commands, "sample", "draw another table from a saved release, at no cost", _HELP)
    made.add_argument("release", metavar="RELEASE", help="a file that `chicle synth --release` wrote")
    add_output(made, "the file of the synthetic table: .csv, .csv.gz, .tsv, .parquet, .arrow or .feather")
    add_draw(made)
    made.add_argument(
        "--where",
        metavar="COLUMN=VALUE",
        action="append",
        help="keep rows with this value only; repeat it for several columns, or for several values of one column; "
        "COLUMN= is missing",
    )
    made.add_argument(
        "--given",
        metavar="FILE",
        help="a table with some of the columns: its rows are kept, and the other columns are added",
    )
    add_ending(made)
    made.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    check_draw(arguments)
    release = load(arguments.release)
    if arguments.given is not None and (arguments.where or arguments.n is not None):
        raise ParameterError("--given has a row for each row to make; leave -n and --where out")
    if isinstance(release.schema, LinkedSchema):
        parents = release.schema.tables[release.schema.parent.name]
        return sample_linked(release, release.schema, arguments, _conditions(arguments.where or [], parents) or None)
    check_ending(arguments.output, written=True)
    check_output(arguments.output, arguments.force, inputs=[arguments.release])
    if arguments.given is not None:
        check_output(arguments.output, arguments.force, inputs=[arguments.given])
    conditions = _conditions(arguments.where or [], release.schema)
    with Progress(quiet=arguments.quiet) as progress:
        rows = write_sample(release, arguments, progress, where=conditions or None, given=arguments.given)
    say_summary(release, rows, arguments, paid=False)
    return 0


def _conditions(texts: Sequence[str], schema: Schema) -> dict[str, list[Any]]:
    """Return the values of each column, as they are read from a CSV file."""
    found: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise ParameterError(f"--where takes COLUMN=VALUE, such as sex=f, not {text!r}")
        found.setdefault(name, []).append(_value(value, schema.columns.get(name)))
    return found


def _value(text: str, column: Column | None) -> Any:  # noqa: ANN401 - of any type
    if not text:
        return None
    dtype = None if column is None else column.arrow_type
    kinds = {} if dtype is None else {"value": dtype}
    options = csv.ConvertOptions(column_types=kinds, strings_can_be_null=False)
    quoted = text.replace('"', '""')
    try:
        table = csv.read_csv(pa.BufferReader(f'value\n"{quoted}"\n'.encode()), convert_options=options)
    except pa.ArrowException:
        return text  # the column says what is wrong with it
    return table["value"][0].as_py()
