"""`chicle evaluate`: how good a synthetic table is, compared with the real one."""

from __future__ import annotations

import argparse
from typing import Any

from chicle.cli.arguments import add_dialect, command, names, tables, workload
from chicle.cli.linked import in_folder
from chicle.cli.terminal import Progress, say
from chicle.errors import SchemaError
from chicle.evaluation import evaluate, export_sdnist
from chicle.releases.release import load
from chicle.schema import Schema
from chicle.schema.linked import LinkedSchema

__all__ = ["add", "add_measures", "measures"]

_HELP = """\
Example:
  chicle evaluate people.csv synthetic.csv -s people.yaml --release people.chicle
  chicle evaluate people.csv synthetic.csv -s people.yaml --epsilon 1 --delta 1e-9 --label income --json > scores.json

Linked tables are in folders, with a file for each table, such as real/patients.csv and real/visits.parquet:
  chicle evaluate real made --release hospital.chicle

NOT PRIVATE: the numbers are computed from the real table; do not publish them. Two baselines stand beside each:
  floor        a fresh sample of the real table with as many rows: sampling error alone
  Independent  the Independent mechanism at the same budget, which learns no dependence between columns
"""


def add(commands: Any) -> None:  # noqa: ANN401 - argparse hides its type
    """Add the command."""
    made = command(commands, "evaluate", "say how good a synthetic table is: NOT PRIVATE", _HELP)
    made.add_argument("real", metavar="REAL", help="the private table")
    made.add_argument("synthetic", metavar="SYNTHETIC", help="the synthetic table")
    made.add_argument("-s", "--schema", help="the schema, YAML or JSON; by default that of the release")
    made.add_argument("--release", metavar="FILE", help="the release of the table; gives schema and budget")
    made.add_argument("--epsilon", type=float, help="the budget of the Independent baseline, if there is no release")
    made.add_argument("--delta", type=float, help="the delta of that budget")
    made.add_argument("--seed", type=int, default=0, help="seed of the queries and the baselines (default 0)")
    add_measures(made)
    add_dialect(made)
    made.add_argument(
        "--sdnist-files", metavar="FOLDER", help="also write both tables as NIST's SDNist reads them, the real one too"
    )
    made.add_argument("--json", action="store_true", help="print JSON instead of a table")
    made.set_defaults(run=_run)


def add_measures(parser: argparse.ArgumentParser) -> None:
    """Add the parameters that choose measures."""
    parser.add_argument("--label", metavar="COLUMN", help="a column that an SVM predicts from all others")
    parser.add_argument(
        "--gini", metavar="GROUP,CLASS,AMOUNT", help="three columns for the NIST Gini and pay-gap score"
    )
    parser.add_argument("--segment", metavar="COLUMNS", help="columns of the segments of the NIST 2020 score")
    parser.add_argument("--trip", metavar="FROM,TO", help="two columns for the NIST 2020 score of trips")
    parser.add_argument(
        "--individual",
        metavar="WHO,COLUMNS",
        help="a column of individuals and others, for the NIST 2020 score of them",
    )
    parser.add_argument(
        "--workload",
        metavar="FILE",
        help="the marginals of the workload error: all-2way, all-3way, target:COLUMN, or a JSON file as "
        "chicle.Workload.to_json writes",
    )
    parser.add_argument(
        "--triples", type=int, default=300, help="number of triples of columns to compare (default 300)"
    )
    parser.add_argument(
        "--by",
        metavar="COLUMN,...",
        type=names,
        help="columns that form partitions: errors inside each are listed (default: those that the schema declares)",
    )
    parser.add_argument(
        "--scorer",
        metavar="sdnist[@PYTHON]",
        help="also the k-marginal score of NIST's SDNist, where it is installed or in an environment of its own",
    )
    parser.add_argument("--threads", type=int, help="number of threads (default: all cores)")


def measures(arguments: argparse.Namespace, schema: Schema) -> dict[str, Any]:
    """Return the parameters of `evaluate` that choose measures, for the columns of a schema."""
    measured: dict[str, Any] = {"triples": arguments.triples}
    if arguments.by is not None:
        measured["by"] = arguments.by
    if arguments.scorer is not None:
        measured["scorer"] = arguments.scorer
    if arguments.label is not None:
        measured["label"] = arguments.label
    if arguments.workload is not None:
        measured["workload"] = workload(arguments.workload, schema.domain)
    if arguments.gini is not None:
        measured["gini"] = tuple(arguments.gini.split(","))
    for name in ("segment", "trip", "individual"):
        if (given := getattr(arguments, name)) is not None:
            measured[name] = tuple(given.split(","))
    return measured


def _given(arguments: argparse.Namespace, schema: Schema) -> tuple[Any, Any]:
    """Return the real and the synthetic table; linked tables are in folders."""
    if isinstance(schema, LinkedSchema):
        return in_folder(arguments.real, schema), in_folder(arguments.synthetic, schema)
    return tables(arguments, arguments.real, said=not arguments.json), arguments.synthetic


def _run(arguments: argparse.Namespace) -> int:
    release = None if arguments.release is None else load(arguments.release)
    if arguments.schema is not None:
        schema = Schema.load(arguments.schema)
    elif release is not None:
        schema = release.schema
    else:
        raise SchemaError("the schema is not known; give --schema, or the --release that the table was drawn from")
    measured = measures(arguments, schema)
    real, synthetic = _given(arguments, schema)
    if arguments.sdnist_files is not None:
        export_sdnist(real, synthetic, schema, arguments.sdnist_files)
    with Progress(quiet=arguments.json) as progress:
        progress.say("comparing")
        found = evaluate(
            real,
            synthetic,
            schema,
            release=release,
            epsilon=arguments.epsilon,
            delta=arguments.delta,
            seed=arguments.seed,
            threads=arguments.threads,
            **measured,
        )
    say(found.to_json() if arguments.json else str(found))
    return 0
