"""The ledger of a table that the page works on: in a file before any noise is drawn, and the only one of its kind.

A page that is opened on the same folder again goes on from what was spent. Two pages at once cannot spend the same
budget: the file must be as this process left it, and is locked while it is replaced.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from chicle._write import replacing
from chicle.errors import ArtefactError, PrivacyError
from chicle.privacy import Budget, Event, Ledger
from chicle.privacy.events import event_to_dict

__all__ = ["KeptLedger"]


class KeptLedger(Ledger):
    """A ledger that is written to its file with each debit.

    Parameters
    ----------
    path
        The file; if it exists, what was spent is read from it.
    budget
        What may be spent in all, if there is no file yet.
    """

    def __init__(self, path: Path, budget: Budget) -> None:
        self._path = path
        kept = self._read()
        super().__init__(budget if kept is None else kept.budget)
        if kept is not None:
            super().debit(kept.events)

    @classmethod
    def found(cls, path: Path) -> KeptLedger | None:
        """Return the ledger in a file, or None if there is no file."""
        if not path.exists():
            return None
        return cls(path, Ledger.from_json(_text(path)).budget)

    def debit(self, events: Iterable[Event]) -> None:
        """Write events down and record them, before noise is drawn; if that fails, nothing is spent."""
        with _locked(self._path):
            kept = self._read()
            if (() if kept is None else kept.events) != self.events:
                raise PrivacyError(
                    f"{self._path} has changed: another page spends on it; close one of the two and open this one again"
                )
            paid = list(events)
            self.check(paid)
            kept_now = self.to_dict()
            kept_now["events"] += [event_to_dict(event) for event in paid]
            try:
                with replacing(self._path) as beside, beside.open("w", encoding="utf-8") as file:
                    json.dump(kept_now, file, indent=1)
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                raise ArtefactError(
                    f"{self._path} cannot be written: {error.strerror}; make room. No noise was drawn"
                ) from None
            super().debit(paid)

    def _read(self) -> Ledger | None:
        return Ledger.from_json(_text(self._path)) if self._path.exists() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        raise ArtefactError(f"{path} cannot be read; it is the ledger of this table: restore it") from None


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock a file against other processes, where the system can."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:
        yield
        return
    lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
