"""`chicle report`: an HTML report about a synthetic table, in one file."""

from __future__ import annotations

import argparse
from typing import Any

from chicle._checks import check_seed, threads_or_all
from chicle.cli.arguments import add_dialect, add_output, command, tables
from chicle.cli.linked import in_folder
from chicle.cli.output import check_output
from chicle.cli.terminal import Progress, say, warn
from chicle.errors import ParameterError
from chicle.releases.release import Release, load
from chicle.reports import report
from chicle.schema import Schema
from chicle.schema.linked import LinkedSchema

__all__ = ["add"]

_HELP = """\
Examples:
  chicle report people.chicle -o public.html      # from the release alone: safe to publish
  chicle report people.chicle --synthetic synthetic.csv --real people.csv -o private.html   # NOT PRIVATE
  chicle report --schema people.yaml --synthetic synthetic.csv --real people.csv -o private.html

The page is one file that opens offline in any browser. Without the real table it shows the privacy guarantee and bounds
on the error; with the real table it shows how good the synthetic one is, and where it is worst.
"""


def add(commands: Any) -> None:  # noqa: ANN401 - argparse hides its type
    """Add the command."""
    made = command(commands, "report", "write an HTML report about a synthetic table", _HELP)
    made.add_argument("release", metavar="RELEASE", nargs="?", help="a file that `chicle synth --release` wrote")
    made.add_argument("--synthetic", metavar="TABLE", help="the synthetic table (default: drawn from the release)")
    made.add_argument("--real", metavar="TABLE", help="the real table, to compare with: the page is then NOT PRIVATE")
    made.add_argument("-s", "--schema", help="the schema, YAML or JSON, if there is no release")
    add_output(made, "the HTML file to write, such as report.html")
    made.add_argument("--title", default="Synthetic table", help="the title of the page")
    made.add_argument(
        "--confidence", type=float, default=0.95, help="the confidence of the error bounds (default 0.95)"
    )
    made.add_argument("--seed", type=int, default=0, help="seed of everything that is drawn (default 0)")
    made.add_argument("--threads", type=int, help="number of threads (default: all cores)")
    add_dialect(made)
    made.add_argument("--quiet", action="store_true", help="print errors and warnings only")
    made.set_defaults(run=_run)


def _given(arguments: argparse.Namespace, release: Release | None) -> tuple[Any, Any]:
    """Return the synthetic and the real table; linked tables are in folders."""
    schema = Schema.load(arguments.schema) if release is None and arguments.schema is not None else None
    schema = release.schema if release is not None else schema
    given = (arguments.synthetic, arguments.real)
    if isinstance(schema, LinkedSchema):
        synthetic, real = (None if folder is None else in_folder(folder, schema) for folder in given)
        return synthetic, real
    return given[0], None if given[1] is None else tables(arguments, given[1], said=not arguments.quiet)


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
        synthetic, real = _given(arguments, release)
        report(
            arguments.output,
            release,
            synthetic,
            real=real,
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
