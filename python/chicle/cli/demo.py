"""`chicle demo`: the whole workflow on built-in data."""

from __future__ import annotations

import argparse
from typing import Any

from chicle import demo
from chicle.cli.arguments import command

__all__ = ["add"]

_HELP = """\
Example:
  chicle demo     # simulates a census, makes synthetic tables, evaluates them, writes two reports and a dossier
"""


def add(commands: Any) -> None:  # noqa: ANN401 - argparse hides its type
    """Add the command."""
    made = command(commands, "demo", "run the whole workflow on built-in data", _HELP)
    made.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        default="chicle-demo",
        help="the folder of the reports (default chicle-demo)",
    )
    made.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    demo.main(arguments.output)
    return 0
