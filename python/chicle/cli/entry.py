"""The entry point: parse the arguments, run the command, report an error in one line.

Each command is a module of this package: its `add` declares the parameters and the help, with an example, beside the
code that runs it. We use argparse: it comes with Python, and we word its errors and help ourselves. Errors are one line
on stderr and exit code 2.
"""

from __future__ import annotations

import _thread
import argparse
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chicle._core import __version__
from chicle.cli import (
    audit,
    compare,
    completion,
    demo,
    doctor,
    dossier,
    evaluate,
    ledger,
    papers,
    plan,
    report,
    sample,
    schema,
    synth,
    ui,
    verify,
)
from chicle.cli.arguments import Parser, command, subcommands
from chicle.cli.next_step import offer_next_step
from chicle.cli.terminal import warn
from chicle.errors import explained

__all__ = ["main", "parser"]

_COMMANDS = (
    demo,
    ui,
    schema,
    plan,
    synth,
    sample,
    evaluate,
    report,
    ledger,
    compare,
    papers,
    dossier,
    verify,
    audit,
    doctor,
    completion,
)

_WAY = """\
From your own table to a synthetic one, in a page of your browser:
  chicle ui people.csv

The same with commands:
  chicle schema draft people.csv -o people.yaml   # a first schema, read from the data
  edit people.yaml                                # replace what was read from the data; set `reviewed: true`
  chicle schema check people.csv people.yaml      # does the table fit?
  chicle plan people.yaml --epsilon 1 --delta 1e-9     # what will be released, how noisy, at what cost
  chicle synth people.csv -s people.yaml -o synthetic.csv --epsilon 1 --delta 1e-9 --release people.chicle
  chicle sample people.chicle -o more.csv -n 1000000
  chicle evaluate people.csv synthetic.csv -s people.yaml --release people.chicle     # how good is it? NOT PRIVATE
  chicle report people.chicle -o report.html      # a report that is safe to publish
  chicle dossier people.chicle -o dossier/        # for a review board; `chicle verify people.chicle` checks it

Tables are CSV (.csv, .csv.gz, .tsv), Parquet (.parquet) or Arrow (.arrow, .feather), by the ending of the file name.
`chicle COMMAND --help` explains each command with an example.

Exit codes: 0 done; 1 the table does not fit (`schema check`) or something does not hold (`verify`, `audit`); 2 an
error, in one line on stderr; 130 interrupted.
Files are written whole or not at all. Inputs and outputs are checked before any budget is spent.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code: 0, 1 if the table does not fit its schema, 2 for errors.

    Parameters
    ----------
    argv
        The arguments; those of the process by default.
    """
    given = sys.argv[1:] if argv is None else argv
    if not given and sys.stdout.isatty():
        return offer_next_step(Path.cwd())
    try:
        arguments = parser().parse_args(given)
    except SystemExit as stop:  # --help, --version and argparse's errors
        return int(stop.code or 0)
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        with _interruptible(), warnings.catch_warnings():
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
        warn(f"error: {explained(error)}")
        return 130 if isinstance(error, KeyboardInterrupt) else 2


@contextmanager
def _interruptible() -> Iterator[None]:
    """Interrupt also where Ctrl-C comes in a callback of an import or of the memory, where Python only prints it."""
    before = sys.unraisablehook

    def hook(raised: Any) -> None:  # noqa: ANN401 - has no public type
        if issubclass(raised.exc_type, KeyboardInterrupt):
            threading.Timer(0.01, _thread.interrupt_main).start()  # once more, when the callback is over
        else:
            before(raised)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def parser() -> Parser:
    """Return the parser of all commands."""
    made = command(None, "chicle", "Differentially private synthetic tables.", _WAY)
    made.add_argument("--version", action="version", version=f"chicle {__version__}")
    commands = subcommands(made)
    for one in _COMMANDS:
        one.add(commands)
    return made


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:  # noqa: ANN401 - as `warnings` calls it
    warn(f"warning: {message}")
