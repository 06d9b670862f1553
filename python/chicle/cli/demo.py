"""`chicle demo`: the main job on built-in data."""

from __future__ import annotations

import argparse
from typing import Any

from chicle import demo
from chicle.cli.arguments import command

__all__ = ["add"]

_HELP = """\
Example:
  chicle demo     # simulates a census, synthesises it in several ways, and says how good the tables are
"""


def add(commands: Any) -> None:  # noqa: ANN401 - argparse hides its type
    """Add the command."""
    command(commands, "demo", "show the main job on built-in data, end to end", _HELP).set_defaults(run=_run)


def _run(_: argparse.Namespace) -> int:
    demo.main()
    return 0
