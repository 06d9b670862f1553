"""`chicle compare`: mechanisms against each other on one table."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from chicle._checks import integer
from chicle.cli.arguments import add_public, command, numbers
from chicle.cli.evaluate import add_measures, measures
from chicle.cli.output import check_output
from chicle.cli.terminal import Progress, say
from chicle.comparison import check_plot, compare, plot
from chicle.comparison.adapters import ADAPTERS
from chicle.errors import ParameterError
from chicle.mechanisms.variants import mechanism_names
from chicle.public import PublicData
from chicle.schema import Schema

__all__ = ["add"]

_HELP = f"""\
Example:
  chicle compare people.csv -s people.yaml --mechanisms prism,privsyn,independent --epsilon 0.2,1,5 --seeds 3 \\
    -o results.csv --plot results.svg

Every mechanism that takes a workload measures for the one by which tables are judged:
  chicle compare people.csv -s people.yaml --mechanisms aim,gem,prism --workload target:income -o target.csv

Every mechanism that takes public data gets them, unless -alone stands after its name:
  chicle compare people.csv -s people.yaml --mechanisms pmwpub,gem,gem-alone --public neighbours.csv -o public.csv

Where people have several rows, all mechanisms protect people, of whom K rows are kept:
  chicle compare visits.csv -s visits.yaml --person patient --max-rows 4 -o persons.csv

NOT PRIVATE: this is an experiment. Every run spends its own budget on the real table; do not publish the results.
Mechanisms: {", ".join(mechanism_names(public=True))}, or your own as module:function, or
module:function@PYTHON in an environment of its own (codes in, codes out; see chicle.comparison.foreign).
Other packages, where PYTHON has them: {", ".join(f"{name}@PYTHON" for name in ADAPTERS)}.
A function of yours gets workload= and public= if it has parameters of these names (see chicle.comparison.contenders).
To resume, run the same command again: it skips the runs that are in the output, but repeats those that failed.
"""


def add(commands: Any) -> None:  # noqa: ANN401 - argparse hides its type
    """Add the command."""
    made = command(commands, "compare", "compare mechanisms over several epsilons and seeds: NOT PRIVATE", _HELP)
    made.add_argument("real", metavar="REAL", help="the private table")
    made.add_argument("-s", "--schema", required=True, help="the reviewed schema, YAML or JSON")
    made.add_argument(
        "--mechanisms",
        default="prism,privsyn,independent",
        metavar="A,B",
        help="the mechanisms (default prism,privsyn,independent)",
    )
    made.add_argument("--epsilon", type=numbers, default=[0.2, 1.0, 5.0], help="the budgets (default 0.2,1,5)")
    made.add_argument("--delta", type=float, default=1e-9, help="the delta of every budget (default 1e-9)")
    made.add_argument("--seeds", type=int, default=3, help="runs of each mechanism at each budget (default 3)")
    made.add_argument("-o", "--output", metavar="OUT", help="the file of results, one row for each run: .csv or .json")
    made.add_argument("--plot", metavar="FILE", help="also draw errors, seconds and memory: .svg or .png")
    made.add_argument("--timeout", type=float, metavar="SECONDS", help="stop a run after this many seconds")
    add_measures(made)
    add_public(made)
    made.add_argument("--person", metavar="COLUMN", help="the column that identifies persons, instead of the schema's")
    made.add_argument(
        "--max-rows",
        type=int,
        metavar="K",
        help="rows of a person that are kept, instead of the schema's max_records",
    )
    made.add_argument(
        "--parameters",
        metavar="FILE",
        help='parameters of mechanisms as JSON, such as {"dpsyn": {"marginals": [["age", "sex"]], "rare": 0}}',
    )
    made.add_argument("--quiet", action="store_true", help="print errors and warnings only")
    made.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    integer("--seeds", arguments.seeds, 1)
    if arguments.plot is not None:
        check_plot(arguments.plot)
    for path in (arguments.output, arguments.plot):
        if path is not None:
            check_output(path, force=True, inputs=[arguments.real, arguments.schema])
    schema = _of_persons(Schema.load(arguments.schema), arguments.person, arguments.max_rows)
    parameters = None if arguments.parameters is None else _parameters(Path(arguments.parameters))
    public = None if arguments.public is None else PublicData(arguments.public, role=arguments.public_role)
    measured = measures(arguments, schema)
    with Progress(quiet=arguments.quiet) as progress:
        found = compare(
            arguments.real,
            schema,
            mechanisms=arguments.mechanisms.split(","),
            epsilons=arguments.epsilon,
            delta=arguments.delta,
            seeds=arguments.seeds,
            output=arguments.output,
            timeout=arguments.timeout,
            threads=arguments.threads,
            progress=progress.say,
            public=public,
            parameters=parameters,
            **measured,
        )
    if arguments.plot is not None:
        plot(found, arguments.plot)
    if not arguments.quiet:
        say(str(found))
    return 0


def _of_persons(schema: Schema, person: str | None, rows: int | None) -> Schema:
    """Return a schema with another person column, or another maximum of rows a person."""
    if person is None and rows is None:
        return schema
    declared = schema.to_dict()
    if (named := declared.get("person") if person is None else person) is None:
        raise ParameterError(
            "--max-rows keeps so many rows of each person; name the column of persons, --person COLUMN"
        )
    columns = {name: column for name, column in declared["columns"].items() if name != named}
    most = schema.max_records_per_person if rows is None else integer("--max-rows", rows, 1)
    kept = {"most": most, "keep": schema.keep}
    return Schema.from_dict({**declared, "columns": columns, "person": named, "max_records": kept})


def _parameters(path: Path) -> dict[str, dict[str, Any]]:
    """Return the parameters of mechanisms in a JSON file."""
    rule = 'it must be JSON such as {"dpsyn": {"rare": 0}}'
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise ParameterError(f"--parameters: {path} cannot be read; {rule}") from None
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise ParameterError(f"--parameters: {path} does not name parameters by mechanism; {rule}")
    return found
