"""`chicle compare`: mechanisms against each other on one table."""

from __future__ import annotations

import argparse
from typing import Any

from chicle._checks import integer
from chicle.cli.arguments import command, numbers
from chicle.cli.evaluate import add_measures, measures
from chicle.cli.output import check_output
from chicle.cli.terminal import Progress, say
from chicle.comparison import check_plot, compare, plot
from chicle.comparison.adapters import ADAPTERS
from chicle.mechanisms.variants import mechanism_names
from chicle.schema import Schema

__all__ = ["add"]

_HELP = f"""\
Example:
  chicle compare people.csv -s people.yaml --mechanisms prism,privsyn,independent --epsilon 0.2,1,5 --seeds 3 \\
    -o results.csv --plot results.svg

NOT PRIVATE: this is an experiment. Every run spends its own budget on the real table; do not publish the results.
Mechanisms: {", ".join(mechanism_names())}, or your own as module:function, or
module:function@PYTHON in an environment of its own (codes in, codes out; see chicle.comparison.foreign).
Other packages, where PYTHON has them: {", ".join(f"{name}@PYTHON" for name in ADAPTERS)}.
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
    made.add_argument("--quiet", action="store_true", help="print errors and warnings only")
    made.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    integer("--seeds", arguments.seeds, 1)
    if arguments.plot is not None:
        check_plot(arguments.plot)
    for path in (arguments.output, arguments.plot):
        if path is not None:
            check_output(path, force=True, inputs=[arguments.real, arguments.schema])
    schema = Schema.load(arguments.schema)
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
            **measured,
        )
    if arguments.plot is not None:
        plot(found, arguments.plot)
    if not arguments.quiet:
        say(str(found))
    return 0
