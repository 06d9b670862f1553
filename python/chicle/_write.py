"""Files that are whole or not there: written beside their place under another name, then renamed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["replacing"]


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a path to write to, in the same folder and with the same ending; it becomes `path` once all went well."""
    place = Path(path)
    beside = place.with_name(f".{secrets.token_hex(4)}.{place.name}")
    try:
        yield beside
        beside.replace(place)
    finally:
        # Gone after the renaming; left over if anything failed.
        if os.path.lexists(beside):
            beside.unlink()
