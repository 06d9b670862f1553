"""`chicle ui`: the whole way in a page of the browser, on this machine alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from chicle._checks import threads_or_all
from chicle.cli.arguments import command
from chicle.cli.terminal import say
from chicle.errors import ParameterError

__all__ = ["add"]

_HELP = """\
Example:
  chicle ui people.csv

Opens a page to draft and review a schema, see what a budget buys, make a synthetic table and take it along. The page
is served to this machine alone, under an address with a random token, until Ctrl-C. Results are written to a folder
beside the place where this is started: people-chicle. Needs `pip install 'chicle[ui]'`.
"""


def add(commands: Any) -> None:  # noqa: ANN401 - argparse hides its type
    """Add the command."""
    made = command(commands, "ui", "open a page to work in, for people without code", _HELP)
    made.add_argument("data", metavar="DATA", nargs="?", help="the private table to open: a file or a pattern")
    made.add_argument("-s", "--schema", metavar="SCHEMA", help="a schema to go on with, instead of a draft")
    made.add_argument("--folder", default=".", help="where tables are and where results go (default: here)")
    made.add_argument("--port", type=int, default=0, help="the port (default: any that is free)")
    made.add_argument("--no-browser", action="store_true", help="print the address, and open no browser")
    made.add_argument("--threads", type=int, help="number of threads (default: all cores)")
    made.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    threads_or_all(arguments.threads)
    folder = Path(arguments.folder)
    if not folder.is_dir():
        raise ParameterError(f"{folder} is no folder; name one with --folder")
    try:
        from chicle.ui.server import serve  # noqa: PLC0415 - an extra
        from chicle.ui.session import Session  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("chicle"):
            raise
        raise ParameterError(f"the page needs {error.name}; pip install 'chicle[ui]'") from None
    session = Session(folder, threads=arguments.threads)
    if arguments.data is not None:
        session.open(arguments.data, None if arguments.schema is None else Path(arguments.schema))
    serve(session, port=arguments.port, browser=not arguments.no_browser, say=_announce)
    return 0


def _announce(address: str) -> None:
    say(f"The page is at {address}\nOnly this machine can open it. It ends with Ctrl-C.")
