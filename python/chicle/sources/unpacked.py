"""Gzipped files, unpacked up to a limit: a file of kilobytes may hold gigabytes of the same line.

Tables unpack to 3 to 50 times their size, and gzip reaches 1,032 times at most. A file that unpacks to more than 64 MiB
and more than 200 times its size is refused, unless the environment variable CHICLE_GZIP_RATIO allows more.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from chicle.errors import ArtefactError, ParameterError

__all__ = ["Unpacked", "is_gzipped"]

_RATIO = 200
_FREE = 2**26


def is_gzipped(path: str | Path) -> bool:
    """Return whether the ending of a file says that it is gzipped."""
    return str(path).lower().endswith(".gz")


class Unpacked(io.RawIOBase):
    """The content of a gzipped file, as a stream that can be read once.

    Parameters
    ----------
    path
        Its name, for the error.
    packed
        The open file.
    """

    def __init__(self, path: str | Path, packed: pa.NativeFile) -> None:
        self._path = path
        self._stream = pa.CompressedInputStream(packed, "gzip")
        self._most = max(_FREE, _ratio() * packed.size())
        self._done = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any buffer
        """Read into a buffer."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def read(self, size: int | None = -1) -> bytes:
        """Return at most so many bytes, or all that follow."""
        room = self._most - self._done + 1
        data: bytes = self._stream.read(room if size is None or size < 0 else min(size, room))
        self._done += len(data)
        if self._done > self._most:
            raise ArtefactError(
                f"{self._path} unpacks to more than {self._most:,} bytes, far more than a table of its size would; if "
                "that is right, set CHICLE_GZIP_RATIO=1100, or unpack it yourself"
            )
        return data


def _ratio() -> float:
    given = os.environ.get("CHICLE_GZIP_RATIO", str(_RATIO))
    try:
        ratio = float(given)
    except ValueError:
        ratio = 0.0
    if not ratio >= 1:
        raise ParameterError(f"CHICLE_GZIP_RATIO must be a number of at least 1, not {given!r}")
    return ratio
