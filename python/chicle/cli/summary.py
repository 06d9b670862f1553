"""What `synth` and `sample` say in the end: for a reader, or as JSON for a program."""

from __future__ import annotations

import argparse
import json
from typing import Any

from chicle.cli.terminal import say
from chicle.privacy import StatedLedger
from chicle.releases.release import Release

__all__ = ["say_summary"]


def say_summary(release: Release, rows: int, arguments: argparse.Namespace, *, kept: str | None = None) -> None:
    """Say what was written, what a reader should know of it, and what it cost."""
    if arguments.json:
        say(json.dumps(_told(release, rows, arguments.output, kept), indent=1))
    elif not arguments.quiet:
        lines = [f"Wrote {rows:,} synthetic rows to {arguments.output}.", *release.notes]
        say("\n".join([*lines, *([] if isinstance(release.ledger, StatedLedger) else [_spent(release)])]))


def _spent(release: Release) -> str:
    ends = [line for line in repr(release.ledger).splitlines()[-2:] if line.startswith(("spent", "NOT PRIVATE"))]
    return "\n".join(ends)


def _told(release: Release, rows: int, output: str, kept: str | None) -> dict[str, Any]:
    ledger = release.ledger
    privacy: dict[str, Any] = {"private": ledger.private}
    if isinstance(ledger, StatedLedger):
        privacy["claim"] = ledger.claim
    else:
        privacy.update(budget=ledger.budget.promise(), releases=len(ledger.events), spent={"rho": ledger.spent})
        if ledger.budget.delta is not None:
            privacy["spent"]["epsilon"] = ledger.epsilon()
    return {
        "output": output,
        "rows": rows,
        "release": kept,
        "mechanism": release.mechanism,
        "notes": release.notes,
        "privacy": privacy,
    }
