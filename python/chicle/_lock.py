"""Locks on open files, between processes. The system drops them when their process ends, however it ends."""

from __future__ import annotations

import errno
import os
import sys
import time

__all__ = ["locked_now", "locked_soon", "unlocked"]

_BUSY = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}
_WAIT = 0.005

if sys.platform == "win32":
    import msvcrt

    _FAR = 2**40  # beyond any content: there a locked byte keeps nobody from reading

    def _lock(file: int, how: int) -> None:
        os.lseek(file, _FAR, os.SEEK_SET)
        msvcrt.locking(file, how, 1)

    def _take(file: int) -> None:
        _lock(file, msvcrt.LK_NBLCK)

    def unlocked(file: int) -> None:
        """Unlock an open file."""
        _lock(file, msvcrt.LK_UNLCK)

else:
    import fcntl

    def _take(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def unlocked(file: int) -> None:
        """Unlock an open file."""
        fcntl.flock(file, fcntl.LOCK_UN)


def locked_now(file: int) -> bool:
    """Lock an open file, and return True; return False if another process, or another opening, has locked it."""
    try:
        _take(file)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        raise
    return True


def locked_soon(file: int, seconds: float) -> bool:
    """Lock an open file as soon as it is free; return False if it is not within so many seconds."""
    until = time.monotonic() + seconds
    while not locked_now(file):
        if time.monotonic() > until:
            return False
        time.sleep(_WAIT)
    return True
