"""`chicle report`: what is known of a synthetic table, as one HTML file."""

from __future__ import annotations

import argparse
from typing import Any

from chicle._checks import check_seed, threads_or_all
from chicle.cli.arguments import add_output, command
from chicle.cli.output import check_output
from chicle.cli.terminal import Progress, say, warn
from chicle.errors import ParameterError
from chicle.releases.release import load
from chicle.reports import report

__all__ = ["add"]

_HELP = """\
Examples:
  chicle report people.chicle -o public.html      # from the release alone: safe to publish
  chicle report people.chicle --synthetic synthetic.csv --real people.csv -o private.html   # NOT PRIVATE
  chicle report --schema people.yaml --synthetic synthetic.csv --real people.csv -o private.html

The page opens offline, in any browser, and prints. Without the real table it says how private the synthetic one is and
how far off it may be at most; with it, how good it is, and where it is worst.
"""


def add(commands: Any) -> None:  # noqa: ANN401 - argparse hides its type
    """Add the command."""
    made = command(commands, "report", "write a page about a synthetic table: public, or with the real table", _HELP)
    made.add_argument("release", metavar="RELEASE", nargs="?", help="a file that `chicle synth --release` wrote")
    made.add_argument("--synthetic", metavar="TABLE", help="the synthetic table; by default one drawn from the release")
    made.add_argument("--real", metavar="TABLE", help="the real table, to compare with: the page is then NOT PRIVATE")
    made.add_argument("-s", "--schema", help="the schema, YAML or JSON, where there is no release")
    add_output(made, "where the page goes, such as report.html")
    made.add_argument("--title", default="Synthetic table", help="what the page is called")
    made.add_argument("--confidence", type=float, default=0.95, help="with which bounds hold; 0.95 by default")
    made.add_argument("--seed", type=int, default=0, help="fixes what is drawn; 0 by default")
    made.add_argument("--threads", type=int, help="how many threads to use; all there are by default")
    made.add_argument("--quiet", action="store_true", help="print errors and warnings only")
    made.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    inputs = [arguments.release, arguments.synthetic, arguments.real, arguments.schema]
    check_output(arguments.output, arguments.force, inputs=[path for path in inputs if path is not None])
    if arguments.release is not None and arguments.schema is not None:
        raise ParameterError("a release brings its own schema; leave --schema out")
    check_seed(arguments.seed)
    threads_or_all(arguments.threads)
    with Progress(quiet=arguments.quiet) as progress:
        progress.say("reading and comparing" if arguments.real else "reading")
        release = None if arguments.release is None else load(arguments.release)
        report(
            arguments.output,
            release,
            arguments.synthetic,
            real=arguments.real,
            schema=arguments.schema,
            confidence=arguments.confidence,
            title=arguments.title,
            seed=arguments.seed,
            threads=arguments.threads,
        )
    if not arguments.quiet:
        say(f"Wrote {arguments.output}.")
    if arguments.real is not None:
        warn(f"{arguments.output} is NOT PRIVATE: it compares with the real table; do not publish it")
    return 0
