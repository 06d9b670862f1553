"""`chicle dossier`: a release, explained to those who trust nobody."""

from __future__ import annotations

import argparse
from typing import Any

from chicle.cli.arguments import command
from chicle.cli.terminal import say
from chicle.dossier import write_dossier

__all__ = ["add"]

_HELP = """\
Examples:
  chicle dossier people.chicle -o dossier/ --table "Patients 2024"
  openssl genpkey -algorithm ed25519 -out steward.pem
  chicle dossier people.chicle -o dossier/ --sign steward.pem    # needs pip install 'chicle[sign]'

Writes dossier.md, dossier.html and manifest.json: what was protected, what epsilon means in words and in odds, every
release with its sensitivity, noise, argument and test, the schema with the sources of its bounds, the ledger, error
bounds, versions and hashes, and what was not done, by the topics of NIST SP 800-226. It is made from the release alone
and is safe to publish.
"""


def add(commands: Any) -> None:  # noqa: ANN401 - argparse hides its type
    """Add the command that writes a dossier."""
    made = command(commands, "dossier", "write the dossier of a release, for a review board", _HELP)
    made.add_argument("release", metavar="RELEASE", help="a file that `chicle synth --release` wrote")
    made.add_argument("-o", "--output", required=True, metavar="FOLDER", help="the folder to write, such as dossier/")
    made.add_argument("--table", default="", metavar="TEXT", help="what the table is, for the title")
    made.add_argument("--sign", metavar="KEY", help="a private ed25519 key (PEM) to sign the manifest with")
    made.add_argument("--force", action="store_true", help="replace an earlier dossier in the folder")
    made.add_argument("--quiet", action="store_true", help="print errors and warnings only")
    made.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    written = write_dossier(
        arguments.release, arguments.output, table=arguments.table, key=arguments.sign, force=arguments.force
    )
    if not arguments.quiet:
        say("\n".join(f"Wrote {path}." for path in written))
    return 0
