"""What `synth` and `sample` print when they are done: text for a reader, or JSON for a program."""

from __future__ import annotations

import argparse
import json
from typing import Any

from chicle.cli.terminal import say
from chicle.privacy import Ledger
from chicle.releases.release import Release

__all__ = ["say_summary"]


def say_summary(
    release: Release, rows: int, arguments: argparse.Namespace, *, kept: str | None = None, paid: bool = True
) -> None:
    """Print what was written, the notes about it, and what it cost; or, if it was not paid for now, that it is free."""
    if arguments.json:
        say(json.dumps(_facts(release, rows, arguments.output, kept), indent=1))
    elif not arguments.quiet:
        written = f"Wrote {rows:,} synthetic rows to {arguments.output}."
        more = [] if kept is None else [f"Kept the release in {kept}: `chicle sample {kept} -o OUT` costs nothing."]
        weak = [f"WEAK: {one}." for one in release.weakness]
        if not paid:
            cost = ["This draw cost nothing: the release was paid for when it was made."]
            ours = isinstance(release.ledger, Ledger) and release.ledger.protected
            mark = [] if ours else [release.ledger.summary()]
            say("\n".join([written, *release.notes, *weak, *cost, *mark]))
            return
        answers = map(repr, release.analyses)
        say("\n".join([written, *more, *answers, *release.notes, *weak, release.ledger.summary()]))


def _facts(release: Release, rows: int, output: str, kept: str | None) -> dict[str, Any]:
    return {
        "output": output,
        "rows": rows,
        "release": kept,
        "mechanism": release.mechanism,
        "notes": release.notes,
        **({"analyses": [one.to_records() for one in release.analyses]} if release.analyses else {}),
        "privacy": release.ledger.figures(),
    }
