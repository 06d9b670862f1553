"""The ledger of a table that the page works on: in a file, as `Ledger.open` keeps it.

A page that is opened on the same folder again goes on from what was spent; two pages at once take turns.
"""

from __future__ import annotations

from pathlib import Path

from chicle.errors import ArtefactError
from chicle.privacy import Ledger

__all__ = ["NAME", "found"]

NAME = "table.ledger"

_OLD = "ledger.json"


def found(path: Path) -> Ledger | None:
    """Return the ledger in a file, or None if there is no file."""
    if path.exists():
        return Ledger.open(path)
    old = path.with_name(_OLD)
    if old.exists():
        raise ArtefactError(
            f"{old} is the ledger of an earlier version of chicle, and what it spent counts; go on with that "
            "version, or work in another folder with what is left of the budget"
        )
    return None
