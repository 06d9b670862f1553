"""`chicle evaluate`: how good a synthetic table is, against the real one."""

from __future__ import annotations

import argparse
from typing import Any

from chicle.cli.arguments import command, workload
from chicle.cli.terminal import Progress, say
from chicle.errors import SchemaError
from chicle.evaluation import evaluate
from chicle.releases.release import load
from chicle.schema import Schema

__all__ = ["add", "add_measures", "measures"]

_HELP = """\
Example:
  chicle evaluate people.csv synthetic.csv -s people.yaml --release people.chicle
  chicle evaluate people.csv synthetic.csv -s people.yaml --epsilon 1 --delta 1e-9 --label income --json > scores.json

NOT PRIVATE: what it prints was computed from the real table; do not publish it. Every number stands beside two others:
the floor, which a fresh sample of the real table of the same length would have, and that of the Independent mechanism
at the same budget, which knows no dependence.
"""


def add(commands: Any) -> None:  # noqa: ANN401 - argparse hides its type
    """Add the command."""
    made = command(commands, "evaluate", "say how good a synthetic table is: NOT PRIVATE", _HELP)
    made.add_argument("real", metavar="REAL", help="the private table")
    made.add_argument("synthetic", metavar="SYNTHETIC", help="the synthetic table")
    made.add_argument("-s", "--schema", help="the schema, YAML or JSON; by default that of the release")
    made.add_argument("--release", metavar="FILE", help="what the table was made from: tells schema and budget")
    made.add_argument("--epsilon", type=float, help="the budget of the Independent baseline, if there is no release")
    made.add_argument("--delta", type=float, help="goes with --epsilon")
    made.add_argument("--seed", type=int, default=0, help="fixes the queries and the baselines (default 0)")
    add_measures(made)
    made.add_argument("--json", action="store_true", help="print JSON instead of a table")
    made.set_defaults(run=_run)


def add_measures(parser: argparse.ArgumentParser) -> None:
    """Add what `evaluate` may be told to measure."""
    parser.add_argument("--label", metavar="COLUMN", help="a column to predict from all others by an SVM")
    parser.add_argument(
        "--gini", metavar="GROUP,CLASS,AMOUNT", help="three columns for the NIST Gini and pay-gap score"
    )
    parser.add_argument(
        "--workload",
        metavar="FILE",
        help="the marginals whose error counts: a JSON file as chicle.Workload.to_json writes, or all-2way, all-3way, "
        "target:COLUMN",
    )
    parser.add_argument("--triples", type=int, default=300, help="how many triples to compare (default 300)")
    parser.add_argument("--threads", type=int, help="how many threads to use; all there are by default")


def measures(arguments: argparse.Namespace, schema: Schema) -> dict[str, Any]:
    """Return the parameters of `evaluate` that were given, for columns of a schema."""
    told: dict[str, Any] = {"triples": arguments.triples}
    if arguments.label is not None:
        told["label"] = arguments.label
    if arguments.workload is not None:
        told["workload"] = workload(arguments.workload, schema.domain)
    if arguments.gini is not None:
        told["gini"] = tuple(arguments.gini.split(","))
    return told


def _run(arguments: argparse.Namespace) -> int:
    release = None if arguments.release is None else load(arguments.release)
    if arguments.schema is not None:
        schema = Schema.load(arguments.schema)
    elif release is not None:
        schema = release.schema
    else:
        raise SchemaError("the columns are not known; give --schema, or the --release that the table was made from")
    told = measures(arguments, schema)
    with Progress(quiet=arguments.json) as progress:
        progress.say("comparing")
        found = evaluate(
            arguments.real,
            arguments.synthetic,
            schema,
            release=release,
            epsilon=arguments.epsilon,
            delta=arguments.delta,
            seed=arguments.seed,
            threads=arguments.threads,
            **told,
        )
    say(found.to_json() if arguments.json else str(found))
    return 0
