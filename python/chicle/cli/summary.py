"""What `synth` and `sample` print when they are done: text for a reader, or JSON for a program."""

from __future__ import annotations

import argparse
import json
from typing import Any

from chicle.cli.terminal import say
from chicle.releases.release import Release

__all__ = ["say_summary"]


def say_summary(release: Release, rows: int, arguments: argparse.Namespace, *, kept: str | None = None) -> None:
    """Print what was written, the notes about it, and what it cost."""
    if arguments.json:
        say(json.dumps(_facts(release, rows, arguments.output, kept), indent=1))
    elif not arguments.quiet:
        written = f"Wrote {rows:,} synthetic rows to {arguments.output}."
        say("\n".join([written, *release.notes, release.ledger.summary()]))


def _facts(release: Release, rows: int, output: str, kept: str | None) -> dict[str, Any]:
    return {
        "output": output,
        "rows": rows,
        "release": kept,
        "mechanism": release.mechanism,
        "notes": release.notes,
        "privacy": release.ledger.figures(),
    }
