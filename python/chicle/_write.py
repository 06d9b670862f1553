"""Atomic writing of files: written in the same folder under another name, put on the disk, then renamed.

A process that is killed while it writes leaves its file under that other name. The file is locked as long as its writer
lives, so the next one to write the same file can tell, and removes it.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from chicle._lock import locked_now
from chicle.errors import ArtefactError

__all__ = ["replacing", "sync", "sync_folder", "trying"]

_LOCKS = sys.platform != "win32"  # there an open file can be neither renamed nor removed


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a path to write to, in the same folder and with the same ending; on success it is renamed to `path`."""
    with trying(path) as beside:
        yield beside
        try:
            with beside.open("rb+") as written:
                sync(written.fileno())
            beside.replace(path)
            sync_folder(Path(path).parent)
        except OSError as error:
            raise ArtefactError(
                f"{path} cannot be written: {error.strerror}; make room, or choose another place"
            ) from None


@contextmanager
def trying(path: str | Path) -> Iterator[Path]:
    """Yield such a path, of an empty file, for a trial: the file is removed afterwards."""
    place = Path(path)
    _sweep(place)
    beside = place.with_name(f".{secrets.token_hex(4)}.{place.name}")
    lock = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        if _LOCKS:
            with suppress(OSError):  # a file system without locks: what is left there stays
                locked_now(lock)
        else:
            os.close(lock)
        yield beside
    finally:
        if _LOCKS:
            os.close(lock)
        if os.path.lexists(beside):
            beside.unlink()


def sync(file: int) -> None:
    """Return when what was written to an open file is on the disk."""
    os.fsync(file)
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415 - there fsync only reaches the drive's own memory

        with suppress(OSError):
            fcntl.fcntl(file, fcntl.F_FULLFSYNC)


def sync_folder(folder: Path) -> None:
    """Return when the names in a folder are on the disk, where the system can say so."""
    with suppress(OSError):
        names = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(names)
        finally:
            os.close(names)


def _sweep(place: Path) -> None:
    """Remove what writers of this file left when they were killed."""
    if not _LOCKS:
        return
    left = re.compile(rf"\.[0-9a-f]{{8}}\.{re.escape(place.name)}")
    with suppress(OSError):
        for name in os.listdir(place.parent):  # noqa: PTH208 - names, without a path for each of a large folder
            if left.fullmatch(name):
                _remove_unlocked(place.with_name(name))


def _remove_unlocked(path: Path) -> None:
    with suppress(OSError):
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        try:
            if locked_now(file):
                path.unlink()
        finally:
            os.close(file)
