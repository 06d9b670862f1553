"""`chicle schema`: draft a schema from a table, or check a table against one."""

from __future__ import annotations

import argparse
import json
from typing import Any

from chicle._write import replacing
from chicle.cli.arguments import add_dialect, add_output, command, subcommands, tables
from chicle.cli.linked import add_tables, named
from chicle.cli.output import check_output
from chicle.cli.terminal import say, warn
from chicle.errors import ParameterError
from chicle.schema import Schema
from chicle.sources import check_table
from chicle.sources.draft import draft_schema
from chicle.sources.read import limit_remarks

__all__ = ["add"]

_SHOWN = 10  # values that do not fit, for each column

_HELP = """\
Example:
  chicle schema draft people.csv -o people.yaml
  chicle schema check people.csv people.yaml
"""
_DRAFT_HELP = """\
Example:
  chicle schema draft people.csv -o people.yaml

Review every column of the draft. For example:
  age: {type: integer, min: 17, max: 90, outside: clamp}     # the draft: 17 and 90 were read from the data
  age: {type: integer, min: 0, max: 120, outside: clamp}     # reviewed: public knowledge about ages
Then set `reviewed: true` at the top; `chicle synth` refuses a draft.
"""
_CHECK_HELP = """\
Example:
  chicle schema check people.csv people.yaml
  chicle schema check --table patients=patients.csv --table visits='visits-*.parquet' hospital.yaml

Prints the columns that do not fit, the rule and the fix; a value only with --show-values, and never a count.
Exit code 0 if the table fits, 1 if it does not.
"""


def add(commands: Any) -> None:  # noqa: ANN401 - argparse hides its type
    """Add both commands."""
    both = subcommands(command(commands, "schema", "draft a schema, or check a table against one", _HELP))
    made = command(both, "draft", "draft a schema from a table, for review: NOT PRIVATE", _DRAFT_HELP)
    made.add_argument("data", metavar="DATA", nargs="+", help="the private table: a file, several, or a pattern")
    add_output(made, "the schema file to write: YAML, or JSON if it ends in .json")
    add_dialect(made)
    made.set_defaults(run=_draft)
    made = command(both, "check", "list what in a table does not fit a schema, without showing a value", _CHECK_HELP)
    made.add_argument("data", metavar="DATA", nargs="*", help="the private table: a file, several, or a pattern")
    made.add_argument("schema", metavar="SCHEMA", help="the schema, YAML or JSON")
    add_tables(made)
    made.add_argument("--json", action="store_true", help="print JSON instead of sentences")
    made.add_argument(
        "--show-values",
        action="store_true",
        help="also list some values that do not fit, and what limits leave out: NOT PRIVATE, for your eyes",
    )
    add_dialect(made)
    made.set_defaults(run=_check)


def _draft(arguments: argparse.Namespace) -> int:
    paths = tables(arguments, arguments.data)
    check_output(arguments.output, arguments.force, inputs=paths)
    schema = draft_schema(paths)
    with replacing(arguments.output) as beside:
        schema.save(beside)
    warn(
        f"{arguments.output} is a DRAFT and NOT PRIVATE: it was read from the data. Review every line, replace what "
        "was read from the data by public knowledge, then set `reviewed: true`."
    )
    return 0


def _check(arguments: argparse.Namespace) -> int:
    schema = Schema.load(arguments.schema)
    if bool(arguments.table) == bool(arguments.data):
        raise ParameterError("name a table: DATA, or several linked ones, each with --table NAME=FILE; not both")
    paths = named(arguments) if arguments.table else tables(arguments, arguments.data)
    check = check_table(paths, schema, show=_SHOWN if arguments.show_values else 0)
    left_out = limit_remarks(paths, schema) if arguments.show_values and check.fits else ()
    shown = {"NOT PRIVATE": {"values": check.values, "rows of persons": left_out}} if arguments.show_values else {}
    marked = ["NOT PRIVATE: for your eyes only"] if arguments.show_values else []
    result = {"fits": check.fits, "problems": check.problems, "reviewed": schema.reviewed, **shown}
    say(json.dumps(result, indent=1) if arguments.json else "\n".join([*marked, str(check), *left_out]))
    if check.fits and not schema.reviewed:
        warn("the schema is a draft that nobody has reviewed; `chicle synth` will refuse it until `reviewed: true`")
    if schema.assumption is not None:
        warn(schema.assumption)
    return 0 if check.fits else 1
