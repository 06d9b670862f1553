r"""A log of plain records in a file: append-only, with a chain of checksums, one writer at a time.

Each line is the checksum of everything up to it, a space, and a record in JSON. A record counts once its line is whole
and on the disk. A line without an end was being written when its process or its machine was stopped: nobody acted on
it, so it is removed, unless only its end is missing; then it counts. A whole line with a wrong checksum means that the
file was damaged or changed, which is an error.

Why no database: a plain file can be read in ten years without this program, appending and syncing fail in one way only,
and SQLite's write-ahead log needs two more files and memory that processes share.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from chicle._lock import locked_soon, unlocked
from chicle._write import sync, sync_folder
from chicle.errors import ArtefactError, PrivacyError

__all__ = ["Log", "Record"]

Record = dict[str, Any]

_NONE = "0" * 64
# The first bytes of a log, however few. Another file is never changed.
_BEGUN = re.compile(rb"[0-9a-f]{0,63}|[0-9a-f]{64}( (\{.*)?)?", re.DOTALL)

_WAIT = 30.0
"""Seconds to wait for another process, which holds the lock for milliseconds unless it was stopped."""


class Log:
    """The records of a file, as far as they were read.

    Parameters
    ----------
    path
        The file.
    read
        Called with each record, in order; whatever it raises is an error of the file.
    """

    def __init__(self, path: Path, read: Callable[[Record], None]) -> None:
        self.path = path
        self._read = read
        self._known, self._chain = 0, _NONE
        self._place: tuple[int, int] | None = None
        self._file: int | None = None

    @property
    def head(self) -> str:
        """The checksum of all records so far."""
        return self._chain

    @contextmanager
    def locked(self, *, create: bool = False) -> Iterator[None]:
        """Give the only right to write, after reading what others wrote."""
        if self._file is not None:
            yield  # already ours, in an outer block
            return
        self._file = self._open(create=create)
        try:
            self._lock()
            self._check_place()
            self._catch_up(mend=True)
            yield
        finally:
            with suppress(OSError):
                unlocked(self._file)
            os.close(self._file)
            self._file = None

    def look(self) -> None:
        """Read what was written since, without the right to write; a record that is being written is left out."""
        self._file = self._open(create=False, write=False)
        try:
            self._check_place()
            self._catch_up(mend=False)
        finally:
            os.close(self._file)
            self._file = None

    def append(self, record: Record) -> None:
        """Write a record and read it back once it is on the disk; if that fails, it does not count. Needs the lock.

        Only what was read changes anything in memory, and it is read before it is known: whatever interrupts this, no
        record is forgotten.
        """
        file = self._ours
        text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(", ", ": "))
        line = f"{_link(self._chain, text)} {text}\n".encode()
        try:
            written = 0
            while written < len(line):
                written += os.write(file, line[written:])
            sync(file)
            if self._known == 0:
                sync_folder(self.path.parent)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(file, self._known)
            raise ArtefactError(
                f"{self.path} cannot be written: {error.strerror}; make room. No noise was drawn"
            ) from None
        self._catch_up(mend=False)

    @property
    def _ours(self) -> int:
        if self._file is None:
            raise PrivacyError("a log is written under its lock only")
        return self._file

    def _open(self, *, create: bool, write: bool = True) -> int:
        how = (os.O_RDWR | os.O_APPEND | (os.O_CREAT if create else 0)) if write else os.O_RDONLY
        try:
            return os.open(self.path, how | getattr(os, "O_BINARY", 0), 0o666)
        except FileNotFoundError:
            missing = not self.path.parent.is_dir()
            fix = (
                f"make the folder {self.path.parent} first"
                if missing
                else "is the path right? A new one needs a budget"
            )
            raise ArtefactError(f"there is no ledger {self.path}: {fix}") from None
        except OSError as error:
            raise ArtefactError(f"{self.path} cannot be opened: {error.strerror}; it is a ledger: restore it") from None

    def _lock(self) -> None:
        try:
            free = locked_soon(self._ours, _WAIT)
        except OSError as error:
            raise ArtefactError(
                f"{self.path} cannot be locked: {error.strerror}; keep ledgers on a file system with locks"
            ) from None
        if not free:
            raise PrivacyError(
                f"{self.path} is in use by another process for more than {_WAIT:.0f} s; end it, or wait and run again. "
                "Nothing was spent"
            )

    def _check_place(self) -> None:
        """Raise if the path leads to another file than before, or if the file is shorter than what was read."""
        try:
            named, there = self.path.stat(), os.fstat(self._ours)
        except OSError:
            raise ArtefactError(f"{self.path} was removed while it was in use; restore it") from None
        place = (there.st_dev, there.st_ino)
        if (named.st_dev, named.st_ino) != place or self._place not in (None, place) or there.st_size < self._known:
            raise ArtefactError(
                f"{self.path} was replaced or cut short while it was in use; restore the longest one. Nothing was spent"
            )
        self._place = place

    def _catch_up(self, *, mend: bool) -> None:
        """Read the records that follow; under the lock, mend a last line that has no end."""
        file = self._ours
        with os.fdopen(os.dup(file), "rb") as reader:
            reader.seek(self._known)
            data = reader.read()
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._accept(line)
        if not (rest and mend):
            return
        if not self._known and not _BEGUN.fullmatch(rest):
            raise ArtefactError(f"{self.path} is no ledger of chicle; name another file")
        if self._is_next(rest):
            os.write(file, b"\n")
            sync(file)
            self._accept(rest)
        else:
            os.ftruncate(file, self._known)
            sync(file)

    def _is_next(self, line: bytes) -> bool:
        try:
            return line[:64].decode() == _link(self._chain, line[65:].decode())
        except UnicodeDecodeError:
            return False

    def _accept(self, line: bytes) -> None:
        number = f"the record at byte {self._known:,}"
        if not self._is_next(line):
            raise ArtefactError(
                f"{self.path} is damaged or was changed: the checksum of {number} does not match; restore the file. "
                "Nothing was spent"
            )
        try:
            self._read(json.loads(line[65:]))
        except ArtefactError as error:
            raise ArtefactError(f"{self.path} cannot be read: {number}: {error}") from None
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError, PrivacyError) as error:
            raise ArtefactError(f"{self.path} cannot be read: {number} is no record of a ledger: {error}") from None
        self._known, self._chain = self._known + len(line) + 1, line[:64].decode()


def _link(chain: str, text: str) -> str:
    return hashlib.sha256(f"{chain} {text}".encode()).hexdigest()
