"""Atomic writing of files: written in the same folder under another name, then renamed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["replacing", "trying"]


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a path to write to, in the same folder and with the same ending; on success it is renamed to `path`."""
    with trying(path) as beside:
        yield beside
        beside.replace(path)


@contextmanager
def trying(path: str | Path) -> Iterator[Path]:
    """Yield such a path for a trial: the file is removed afterwards."""
    place = Path(path)
    beside = place.with_name(f".{secrets.token_hex(4)}.{place.name}")
    try:
        yield beside
    finally:
        if os.path.lexists(beside):
            beside.unlink()
