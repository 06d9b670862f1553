"""A ledger in a file: for all releases from one body of data, over processes, users and years.

The file is a log (`privacy.log`) of these kinds of records: `ledger` opens it with its budget, `debit` holds the events
of a release, `reserve` and `end` are the begin and the end of a fit, `split` sets epsilon aside for pure releases. A
debit is on the disk before it counts, and it counts before noise is drawn. It holds the lock of the file for one
append, so processes take turns.

A fit also locks a file of its own, beside the ledger, as long as it runs. If its process is killed, the system drops
that lock; whoever reserves or spends next records the end, and what was not drawn is free again. What was drawn is in
debits.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from glob import escape
from pathlib import Path

from chicle._core import __version__
from chicle._lock import locked_now
from chicle.errors import ArtefactError, ChicleError, PrivacyError
from chicle.privacy.budget import Budget
from chicle.privacy.events import event_from_dict, event_to_dict
from chicle.privacy.hold import Hold, Paid
from chicle.privacy.ledger import Ledger, price, with_aside
from chicle.privacy.log import Log, Record

__all__ = ["FORMAT", "KeptLedger", "Session", "read_kept"]

FORMAT = 1


@dataclass
class Session:
    """What one fit did, or debits without a fit: a line of the history.

    Attributes
    ----------
    title
        What it was for.
    begun, ended
        When, in UTC. `ended` is None if it has not ended.
    how
        ``"running"``, ``"done"``, ``"failed"``, or ``"killed"`` where its process ended without a word.
    paid
        What was released, and what it cost.
    """

    title: str
    begun: str
    ended: str | None
    how: str
    paid: list[Paid]


class KeptLedger(Ledger):
    """A ledger that a file keeps; see `Ledger.open`."""

    def __init__(self, path: Path, budget: Budget | None, *, look: bool = False) -> None:
        if budget is not None and not isinstance(budget, Budget):
            raise PrivacyError(f"a ledger is opened with a chicle.Budget, not a {type(budget).__name__}")
        self._begun = False
        self._sessions: dict[str, Session] = {}
        self._loose: Session | None = None
        self._locks: dict[str, int] = {}
        self._log = Log(path, self._read)
        if look:
            super().__init__(_ANY)
            self._log.look()
            self._check_begun()
            self._closed = "was opened to be read only"
            return
        super().__init__(_ANY if budget is None else budget)
        with self._lock, self._log.locked(create=budget is not None):
            if not self._begun and budget is not None:
                self._log.append(
                    {
                        "record": "ledger",
                        "format": FORMAT,
                        "id": secrets.token_hex(8),
                        "at": _now(),
                        "chicle": __version__,
                        "budget": with_aside(budget).promise(),
                    }
                )
            self._check_begun()
            # How epsilon is split may have changed since (`set_aside`).
            there = self._budget if budget is None or budget.pure is not None else self._budget.undivided
            if budget is not None and with_aside(budget) != there:
                raise PrivacyError(
                    f"{path} was opened with {self._budget}, not with {with_aside(budget)}; the budget of a body of "
                    "data is fixed before its first release: leave it out, or give the same"
                )
            self._bury()
            self._sweep()

    @property
    def path(self) -> Path:
        """The file."""
        return self._log.path

    @property
    def head(self) -> str:
        """The checksum of all that was recorded."""
        return self._log.head

    @property
    def sessions(self) -> tuple[Session, ...]:
        """What was spent for what and when, in order."""
        return tuple(self._sessions.values())

    @contextmanager
    def _current(self) -> Iterator[None]:
        self._check_open()
        with self._log.locked():
            self._bury()
            yield

    def _check_begun(self) -> None:
        if not self._begun:
            raise ArtefactError(f"{self.path} is empty; open it with a budget, or restore it")

    # What is written; `_read` then records it in memory.

    def _record(self, priced: Sequence[Paid], key: str | None = None) -> None:
        events = [event_to_dict(event) for event, _ in priced]
        self._log.append({"record": "debit", "at": _now(), "fit": key, "events": events})

    def _begin(self, key: str, hold: Hold) -> None:
        beside = self._beside(key)
        lock = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            locked_now(lock)
            self._log.append(
                {
                    "record": "reserve",
                    "at": _now(),
                    "fit": key,
                    "for": hold.title,
                    "rho": hold.rho,
                    "delta": hold.delta,
                    "pure": hold.pure,
                    "chicle": __version__,
                }
            )
        except BaseException:
            _drop(beside, lock)
            raise
        self._locks[key] = lock

    def _divide(self, budget: Budget, key: str | None, pure: float, rho: float) -> None:
        split = {"budget": budget.promise(), "fit": key, "pure": pure, "rho": rho}
        self._log.append({"record": "split", "at": _now(), **split})

    def _end(self, key: str, how: str) -> None:
        """Record the end of a fit. If that fails, its lock is dropped: then whoever comes next records it."""
        if not self._here:
            return  # the fit goes on in the process that began it
        lock = self._locks.pop(key)
        try:
            with suppress(ChicleError), self._current():
                if key in self._holds:
                    self._log.append({"record": "end", "at": _now(), "fit": key, "how": how})
        finally:
            _drop(self._beside(key), lock)

    def _bury(self) -> None:
        """Record the end of fits whose processes ended without a word."""
        for key in [key for key in self._holds if key not in self._locks]:
            beside = self._beside(key)
            try:
                lock = os.open(beside, os.O_RDWR)
            except FileNotFoundError:
                lock = None
            if lock is not None and not locked_now(lock):
                os.close(lock)
                continue
            self._log.append({"record": "end", "at": _now(), "fit": key, "how": "killed"})
            if lock is not None:
                _drop(beside, lock)

    def _sweep(self) -> None:
        """Remove the locks of fits that were killed before they were recorded. Locks are made under that of the log."""
        for beside in self.path.parent.glob(f".{escape(self.path.name)}.{'[0-9a-f]' * 16}"):
            if beside.suffix[1:] not in self._holds:
                beside.unlink(missing_ok=True)

    def _beside(self, key: str) -> Path:
        return self.path.with_name(f".{self.path.name}.{key}")

    # What is read.

    def _read(self, record: Record) -> None:
        kind = record["record"]
        if not self._begun:
            if kind != "ledger":
                raise ArtefactError("it does not begin with a budget, so it is not a ledger of chicle")
            if record["format"] != FORMAT:
                raise ArtefactError(f"its format is {record['format']!r}, this version reads {FORMAT}: upgrade chicle")
            self._set(Budget(**record["budget"]))
            self._begun = True
        elif kind == "debit":
            self._read_debit(record)
        elif kind == "reserve":
            key, title = str(record["fit"]), str(record["for"])
            rho, delta, pure = (float(record[name]) for name in ("rho", "delta", "pure"))
            super()._begin(key, Hold(title, rho, delta, pure))
            self._sessions[key] = Session(title, str(record["at"]), None, "running", [])
            self._loose = None
        elif kind == "split":
            pure, rho = float(record["pure"]), float(record["rho"])
            super()._divide(Budget(**record["budget"]), record["fit"], pure, rho)
        elif kind == "end":
            key = str(record["fit"])
            self._sessions[key].ended, self._sessions[key].how = str(record["at"]), str(record["how"])
            super()._end(key, self._sessions[key].how)
        else:
            raise ArtefactError(f"it has a record of an unknown kind, {kind!r}: upgrade chicle")

    def _read_debit(self, record: Record) -> None:
        events = [event_from_dict(event) for event in record["events"]]
        paid = [(event, price(event, self._budget.accounting)) for event in events]
        key = record["fit"]
        super()._record(paid, key)
        if key is not None:
            self._sessions[key].paid += paid
            return
        at = str(record["at"])
        if self._loose is None:
            self._loose = Session("releases without a fit", at, at, "done", [])
            self._sessions[f"loose-{len(self._sessions)}"] = self._loose
        self._loose.paid += paid
        self._loose.ended = at


def read_kept(path: str | os.PathLike[str]) -> KeptLedger:
    """Return the ledger in a file to be read: without the right to write it, and without waiting for others."""
    return KeptLedger(Path(path), None, look=True)


_ANY = Budget(rho=1.0)  # until the file says which


def _drop(beside: Path, lock: int) -> None:
    with suppress(OSError):
        beside.unlink()
    os.close(lock)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
