"""`chicle verify`: what can be checked of a release without its private table."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from chicle._text import aligned
from chicle.cli.arguments import command
from chicle.cli.terminal import say
from chicle.dossier import verify
from chicle.errors import ParameterError

__all__ = ["add"]

_HELP = """\
Examples:
  chicle verify people.chicle
  chicle verify people.chicle --dossier dossier/ --key steward-public.pem

Checks that the file is whole, that everything in it was paid for, that sensitivities allow for all rows of a person,
and that the accounting comes out the same: recomputed from the events in decimal arithmetic, and by dp-accounting where
it is installed. It cannot check that noise was drawn as the events say, nor that the schema is public.

Exit codes: 0 everything holds; 1 something does not.
"""


def add(commands: Any) -> None:  # noqa: ANN401 - argparse hides its type
    """Add the command that verifies a release."""
    made = command(commands, "verify", "verify a release: file, payments and accounting", _HELP)
    made.add_argument("release", metavar="RELEASE", help="a file that `chicle synth --release` wrote")
    made.add_argument("--dossier", metavar="FOLDER", help="its dossier, to be checked against the manifest")
    made.add_argument("--key", metavar="KEY", help="the steward's public key (PEM), to check the signature")
    output = made.add_mutually_exclusive_group()
    output.add_argument("--quiet", action="store_true", help="print only what does not hold")
    output.add_argument("--json", action="store_true", help="print the checks as JSON")
    made.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.key is not None and arguments.dossier is None:
        raise ParameterError("--key checks the signature of a dossier; give --dossier FOLDER too")
    checks = verify(arguments.release, dossier=arguments.dossier, key=arguments.key)
    if arguments.json:
        say(json.dumps([asdict(check) for check in checks], indent=1))
    else:
        shown = [check for check in checks if not (arguments.quiet and check.holds)]
        rows = [("ok" if check.holds else "FAILED", check.what, check.detail) for check in shown]
        if rows:
            say("\n".join(aligned(rows)))
    return 0 if all(check.holds for check in checks) else 1
