"""The command line: from a file to a synthetic file, without writing code.

Whatever can go wrong is found out before budget is spent: outputs are probed, parameters and the schema are checked
first. Files are written beside their place and renamed, the release before the table. Errors are one line on stderr and
exit code 2; progress is shown on a terminal only.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from chicle import demo
from chicle._checks import integer, threads_or_all
from chicle._core import __version__
from chicle._write import replacing, trying
from chicle.draft import draft_schema
from chicle.errors import ArtefactError, ChicleError, ParameterError
from chicle.frames import Form, arrow_columns
from chicle.generate.start import check_seed
from chicle.mechanisms import Independent, Prism, PrivSyn
from chicle.mechanisms.base import Mechanism
from chicle.records import Records
from chicle.release import Release, load
from chicle.schema import Schema
from chicle.table_files import check_ending, read_table, write_table

__all__ = ["main"]

_MECHANISMS: dict[str, type[Mechanism]] = {"prism": Prism, "privsyn": PrivSyn, "independent": Independent}

_CLEAR = "\r\x1b[K"  # back to the beginning of a line that is then empty

_WAY = """\
From your own table to a synthetic one:
  chicle schema draft people.csv -o people.yaml   # a first schema, read from the data
  edit people.yaml                                # replace what only the data told; set `reviewed: true`
  chicle schema check people.csv people.yaml      # does the table fit?
  chicle plan people.yaml --epsilon 1 --delta 1e-9
  chicle synth people.csv -s people.yaml -o synthetic.csv --epsilon 1 --delta 1e-9 --release people.chicle
  chicle sample people.chicle -o more.csv -n 1000000

Tables are CSV (also .csv.gz), Parquet (.parquet) or Arrow (.arrow, .feather), by the ending of their name.
`chicle COMMAND --help` explains each command with an example.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code: 0, 1 where a check found something, 2 for errors.

    Parameters
    ----------
    argv
        The arguments; those of the process by default.
    """
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as stop:  # --help, --version, and what argparse refuses
        return int(stop.code or 0)
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.simplefilter("always", RuntimeWarning)
            warnings.showwarning = _show_warning
            return run(arguments)
    except BrokenPipeError:  # `chicle plan ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (Exception, KeyboardInterrupt) as error:
        if os.environ.get("CHICLE_TRACEBACK"):
            raise
        if sys.stderr.isatty():
            sys.stderr.write(_CLEAR)
        _warn(f"error: {_explained(error)}")
        return 130 if isinstance(error, KeyboardInterrupt) else 2


def _explained(error: BaseException) -> str:
    """Return an error in words that quote nothing private."""
    if isinstance(error, KeyboardInterrupt):
        return "stopped"
    if isinstance(error, ChicleError):
        return str(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory for this table; leave columns out or make their bins coarser"
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return f"an unforeseen {type(error).__name__}; run again with CHICLE_TRACEBACK=1 to see where, and report it"


def _demo(_: argparse.Namespace) -> int:
    demo.main()
    return 0


def _schema_draft(arguments: argparse.Namespace) -> int:
    _check_output(arguments.output, arguments.force, inputs=[arguments.data])
    schema = draft_schema(read_table(arguments.data))
    with replacing(arguments.output) as beside:
        schema.save(beside)
    _warn(
        f"{arguments.output} is a DRAFT and NOT PRIVATE: it was read from the data. Review every line, replace what "
        "only the data told by what is public knowledge, then set `reviewed: true`."
    )
    return 0


def _schema_check(arguments: argparse.Namespace) -> int:
    schema = Schema.load(arguments.schema)
    check = schema.check(read_table(arguments.data, schema))
    _say(f"{check}\n")
    if check.fits and not schema.reviewed:
        _warn("the schema is a draft that nobody has reviewed; `chicle synth` will refuse it until `reviewed: true`")
    return 0 if check.fits else 1


def _plan(arguments: argparse.Namespace) -> int:
    schema = Schema.load(arguments.schema)
    synth = _mechanism(arguments)
    plan = synth.plan(schema, arguments.records) if isinstance(synth, Prism) else synth.plan(schema)
    _say(f"{plan.to_json() if arguments.json else plan}\n")
    return 0


def _synth(arguments: argparse.Namespace) -> int:
    progress = _Progress(quiet=arguments.quiet)
    check_ending(arguments.output)
    outputs = [arguments.output, *([] if arguments.release is None else [arguments.release])]
    for path in outputs:
        _check_output(path, arguments.force, inputs=[arguments.data, arguments.schema])
    if len({Path(path).resolve() for path in outputs}) < len(outputs):
        raise ParameterError(f"{arguments.output} is named for the table and for the release; give them two names")
    _check_draw(arguments)
    synth = _mechanism(arguments)
    schema = Schema.load(arguments.schema)
    schema.check_reviewed()
    synth.plan(schema)
    progress.say("reading the table")
    table = read_table(arguments.data, schema)
    _rehearse(schema, table, arguments.output)
    progress.say("selecting and measuring marginals")
    release = synth.fit(table, schema).release_
    del table
    if arguments.release is not None:
        release.save(arguments.release)
    try:
        rows = _write_sample(release, arguments, progress)
    except BaseException:
        progress.end()
        if arguments.release is None:
            _rescue(release)
        raise
    if not arguments.quiet:
        lines = repr(release.ledger).splitlines()
        spent = [line for line in lines[-2:] if line.startswith(("spent", "NOT PRIVATE"))]
        _say("\n".join([f"Wrote {rows:,} synthetic rows to {arguments.output}.", *release.notes, *spent]) + "\n")
    return 0


def _sample(arguments: argparse.Namespace) -> int:
    progress = _Progress(quiet=arguments.quiet)
    check_ending(arguments.output)
    _check_output(arguments.output, arguments.force, inputs=[arguments.release])
    _check_draw(arguments)
    release = load(arguments.release)
    rows = _write_sample(release, arguments, progress)
    if not arguments.quiet:
        _say(f"Wrote {rows:,} synthetic rows to {arguments.output}.\n")
    return 0


def _write_sample(release: Release, arguments: argparse.Namespace, progress: _Progress) -> int:
    """Draw a table, write it, and return how many rows it has."""
    progress.say("making records")
    types = {} if release.form is None else release.form.types
    table: pa.Table = replace(release, form=Form("pyarrow", types)).sample(
        arguments.n, arguments.seed, threads=arguments.threads, progress=progress.note
    )
    progress.say("writing")
    with replacing(arguments.output) as beside:
        _write(table, beside, arguments.output)
    progress.end()
    return len(table)


def _rehearse(schema: Schema, table: pa.Table, output: str) -> None:
    """Write a table of the same types without any row: what its format can not hold is found out before the fit."""
    none = Records({name: np.empty(0, dtype=np.uint8) for name in schema.domain}, schema.domain)
    form = Form("pyarrow", Form.of(table, arrow_columns(table)).types)
    with trying(output) as beside:
        _write(schema.decode(none, form), beside, output)


def _write(table: pa.Table, beside: Path, output: str) -> None:
    try:
        write_table(table, beside)
    except (OSError, pa.ArrowException) as error:
        why = getattr(error, "strerror", None) or "a column has a type that this format can not hold; try .parquet"
        raise ArtefactError(f"{output} can not be written: {why}") from None


def _rescue(release: Release) -> None:
    """Keep what was paid for when the table could not be written."""
    for folder in (".", tempfile.gettempdir()):
        path = Path(folder, f"rescued-{os.getpid()}.chicle")
        try:
            release.save(path)
        except ChicleError:
            continue
        _warn(f"the budget is spent; the release was kept in {path}: go on with `chicle sample {path} -o OUT`")
        return


def _mechanism(arguments: argparse.Namespace) -> Mechanism:
    make = _MECHANISMS[arguments.mechanism]
    threads = threads_or_all(getattr(arguments, "threads", None))
    synth = make(epsilon=arguments.epsilon, delta=arguments.delta, threads=threads)
    _ = synth.budget  # refuses what is no budget
    return synth


def _check_draw(arguments: argparse.Namespace) -> None:
    if arguments.n is not None:
        integer("-n", arguments.n, 0)
    check_seed(arguments.seed)
    threads_or_all(arguments.threads)


def _check_output(path: str, force: bool, inputs: Sequence[str]) -> None:
    """Find out now whether a file can be written, and refuse to replace what is there unless told to."""
    place = Path(path)
    if place.resolve() in {Path(given).resolve() for given in inputs}:
        raise ParameterError(f"{path} is an input of this command and would be lost; write to another file")
    if place.is_dir():
        raise ParameterError(f"{path} is a folder; name a file in it")
    if place.exists() and not force:
        raise ParameterError(f"{path} is there already; give --force to replace it, or another name")
    try:
        with trying(path) as beside:
            beside.touch()
    except OSError as error:
        raise ParameterError(f"{path} can not be written: {error.strerror}; choose another folder") from None


class _Progress:
    """One line on a terminal that tells what is being done."""

    def __init__(self, *, quiet: bool) -> None:
        self._shown = not quiet and sys.stderr.isatty()

    def say(self, what: str) -> None:
        if self._shown:
            sys.stderr.write(f"{_CLEAR}{what} ...")
            sys.stderr.flush()

    def note(self, number: int, error: float) -> None:
        self.say(f"making records: pass {number}, error {error:.4f}")

    def end(self) -> None:
        if self._shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _warn(text: str) -> None:
    sys.stderr.write(f"chicle: {' '.join(text.split())}\n")


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:  # noqa: ANN401 - as `warnings` calls it
    _warn(f"warning: {message}")


class _Parser(argparse.ArgumentParser):
    """argparse with errors of one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}; see `{self.prog} --help`\n")


def _parser() -> _Parser:
    parser = _command(None, "chicle", "Differentially private synthetic tables.", _WAY)
    parser.add_argument("--version", action="version", version=f"chicle {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)

    made = _command(
        commands,
        "demo",
        "show the main job on built-in data, end to end",
        """\
Example:
  chicle demo     # simulates a census, synthesises it in several ways, and says how good the tables are
""",
    )
    made.set_defaults(run=_demo)

    schemas = _command(commands, "schema", "draft a schema, or check a table against one", _SCHEMA_HELP)
    kinds = schemas.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)
    made = _command(kinds, "draft", "propose a schema for a table: NOT PRIVATE, to be reviewed", _DRAFT_HELP)
    made.add_argument("data", metavar="DATA", help="the private table")
    _add_output(made, "where the schema goes: YAML, or JSON if it ends in .json")
    made.set_defaults(run=_schema_draft)
    made = _command(kinds, "check", "say what of a table does not fit a schema, without showing a value", _CHECK_HELP)
    made.add_argument("data", metavar="DATA", help="the private table")
    made.add_argument("schema", metavar="SCHEMA", help="the schema, YAML or JSON")
    made.set_defaults(run=_schema_check)

    made = _command(commands, "plan", "say what will be released at what cost, before any data is seen", _PLAN_HELP)
    made.add_argument("schema", metavar="SCHEMA", help="the schema, YAML or JSON")
    _add_budget(made)
    made.add_argument(
        "--records",
        type=int,
        default=100_000,
        metavar="N",
        help="about how many rows the table has (default 100000); prism splits its budget by it",
    )
    made.add_argument("--json", action="store_true", help="print JSON instead of a table")
    made.set_defaults(run=_plan)

    made = _command(commands, "synth", "make a synthetic table, spending a privacy budget", _SYNTH_HELP)
    made.add_argument("data", metavar="DATA", help="the private table")
    made.add_argument("-s", "--schema", required=True, help="the reviewed schema, YAML or JSON")
    _add_output(made, "where the synthetic table goes")
    _add_budget(made)
    made.add_argument(
        "--release", metavar="FILE", help="also keep the release (noisy counts, no records), for `sample`"
    )
    _add_draw(made)
    made.set_defaults(run=_synth)

    made = _command(commands, "sample", "draw another table from a kept release, at no cost", _SAMPLE_HELP)
    made.add_argument("release", metavar="RELEASE", help="a file that `chicle synth --release` wrote")
    _add_output(made, "where the synthetic table goes")
    _add_draw(made)
    made.set_defaults(run=_sample)
    return parser


def _command(commands: Any, name: str, what: str, epilog: str) -> _Parser:  # noqa: ANN401 - argparse hides its type
    style = argparse.RawDescriptionHelpFormatter
    told: dict[str, Any] = {
        "description": what[0].upper() + what[1:].rstrip(".") + ".",
        "epilog": epilog,
        "formatter_class": style,
    }
    parser: _Parser = _Parser(prog=name, **told) if commands is None else commands.add_parser(name, help=what, **told)
    return parser


def _add_output(parser: _Parser, what: str) -> None:
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help=what)
    parser.add_argument("--force", action="store_true", help="replace what is there already")


def _add_budget(parser: _Parser) -> None:
    parser.add_argument("--epsilon", type=float, required=True, help="the privacy budget; 1 is a common choice")
    parser.add_argument("--delta", type=float, required=True, help="well below 1 / number of people, such as 1e-9")
    parser.add_argument("--mechanism", choices=_MECHANISMS, default="prism", help="how; prism by default")


def _add_draw(parser: _Parser) -> None:
    parser.add_argument("-n", type=int, help="how many rows; by default the private estimate of the table's own number")
    parser.add_argument("--seed", type=int, help="fixes the draw, never the noise")
    parser.add_argument("--threads", type=int, help="how many threads to use; all there are by default")
    parser.add_argument("--quiet", action="store_true", help="print errors and warnings only")


_SCHEMA_HELP = """\
Example:
  chicle schema draft people.csv -o people.yaml
  chicle schema check people.csv people.yaml
"""
_DRAFT_HELP = """\
Example:
  chicle schema draft people.csv -o people.yaml

A column of the draft, and what becomes of it in the review:
  age: {type: integer, min: 17, max: 90, outside: clamp}     # 17 and 90 were read from the data
  age: {type: integer, min: 0, max: 120, outside: clamp}     # what anyone would say who has not seen it
Then set `reviewed: true` at the top; `chicle synth` refuses a draft.
"""
_CHECK_HELP = """\
Example:
  chicle schema check people.csv people.yaml

Exit code 0 if the table fits, 1 if it does not. Columns, rules and fixes are named, never a value or a count.
"""
_PLAN_HELP = """\
Example:
  chicle plan people.yaml --epsilon 1 --delta 1e-9 --records 50000

Reads the schema alone. `sigma` is the standard deviation of the noise on each count.
"""
_SYNTH_HELP = """\
Example:
  chicle synth people.csv -s people.yaml -o synthetic.csv --epsilon 1 --delta 1e-9 --release people.chicle

Each run spends anew: two runs at epsilon 1 on one table add up. Keep the release and use `chicle sample` for more rows.
"""
_SAMPLE_HELP = """\
Example:
  chicle sample people.chicle -o more.parquet -n 1000000 --seed 7

A release holds no records, only what was paid for: draw from it as often as you like.
"""
