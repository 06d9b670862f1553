"""Files that are whole or not there: written beside their place under another name, then renamed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["replacing", "trying"]


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a path to write to, in the same folder and with the same ending; it becomes `path` once all went well."""
    with trying(path) as beside:
        yield beside
        beside.replace(path)


@contextmanager
def trying(path: str | Path) -> Iterator[Path]:
    """Give the same path to write to, for a rehearsal: what was written is removed again."""
    place = Path(path)
    beside = place.with_name(f".{secrets.token_hex(4)}.{place.name}")
    try:
        yield beside
    finally:
        if os.path.lexists(beside):
            beside.unlink()
