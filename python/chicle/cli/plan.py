"""`chicle plan`: what will be released, and at what cost, before any data is read."""

from __future__ import annotations

import argparse
from typing import Any

from chicle.cli.arguments import (
    add_analyses,
    add_budget,
    add_dialect,
    add_partition,
    add_public,
    analyses,
    command,
    count,
    mechanism,
    public_data,
)
from chicle.cli.terminal import say, warn
from chicle.errors import ParameterError
from chicle.schema import Schema

__all__ = ["add"]

_HELP = """\
Example:
  chicle plan people.yaml --epsilon 1 --delta 1e-9 --records 50000
  chicle plan people.yaml --epsilon 0.2,1,5 --delta 1e-9 --records 50000     # what a larger budget buys

  chicle plan people.yaml --epsilon 1 --delta 1e-9 --analysis "logit: died ~ age + sex"    # how wide intervals will be

Reads the schema, and the public table if there is one, never the data. In the plan:
  sigma  the standard deviation of the noise on each count
  rho    the cost of the step in zero-concentrated differential privacy; share: of the whole budget
  error  the total variation distance that noise alone adds to a table of counts: the share of records it moves to other
         cells. For pairs: of the least and the most harmed pair, if all pairs were measured
Time and memory are rough estimates for two cores, right to a factor of two.
"""


def add(commands: Any) -> None:  # noqa: ANN401 - argparse hides its type
    """Add the command."""
    made = command(commands, "plan", "show what will be released, and at what cost, before any data is read", _HELP)
    made.add_argument("schema", metavar="SCHEMA", help="the schema, YAML or JSON")
    add_budget(made, several=True)
    add_public(made)
    add_analyses(made)
    add_partition(made)
    made.add_argument(
        "--records",
        type=count,
        default=100_000,
        metavar="N",
        help="a public guess of the number of rows (default 100000); prism splits its budget by it",
    )
    made.add_argument("--json", action="store_true", help="print JSON instead of a table")
    add_dialect(made)
    made.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    schema = Schema.load(arguments.schema)
    first, *more = arguments.epsilon
    synth = mechanism(arguments, first, schema)
    asked = analyses(arguments)
    public, partition = public_data(arguments), arguments.partition
    if more and (asked or partition or public):
        raise ParameterError("--analysis, --partition and --public need a single --epsilon; plan one at a time")
    plan = (
        synth.sweep(schema, arguments.epsilon, arguments.records)
        if more
        else synth.plan(
            schema,
            arguments.records,
            public=public,
            partition=partition,
            analyses=asked,
            analysis_share=arguments.analysis_share,
        )
    )
    if schema.assumption is not None:
        warn(schema.assumption)
    say(plan.to_json() if arguments.json else str(plan))
    return 0
