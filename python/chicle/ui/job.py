"""Work beside the page: one thread, with progress, that can be cancelled between its steps."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from chicle.errors import explained

__all__ = ["Cancelled", "Job", "State"]

State: TypeAlias = Literal["running", "done", "failed", "cancelled"]


class Cancelled(Exception):  # noqa: N818 - it is no error
    """The user cancelled this job."""


@dataclass(eq=False)
class Job:
    """Work in a thread of its own.

    Attributes
    ----------
    title
        What it does.
    work
        The work; it calls `step`, `share` and `note`, which raise `Cancelled` once the user has asked for that.
    then, back
        Where the page goes on once it is done, and where if it was not.
    steps
        What it did so far; the last one is being done.
    done
        The share of the last step that is done, if known.
    trace
        The error after each pass of a model.
    state, error
        How it ended; an error is one line without private values.
    """

    title: str
    work: Callable[[Job], None]
    then: str
    back: str
    steps: list[str] = field(default_factory=list)
    done: float | None = None
    trace: list[float] = field(default_factory=list)
    state: State = "running"
    error: str = ""
    began: float = field(default_factory=time.monotonic)

    def start(self) -> None:
        """Begin."""
        self._stop = threading.Event()
        # Not a daemon: the process waits until files are whole or removed.
        self._thread = threading.Thread(target=self._run, name=self.title)
        self._thread.start()

    def step(self, what: str) -> None:
        """Begin the next step."""
        self._check()
        self.steps.append(what)
        self.done = None

    def share(self, done: float) -> None:
        """Tell the share of this step that is done."""
        self._check()
        self.done = done

    def note(self, _: int, error: float) -> None:
        """Tell the error after a pass of a model."""
        self._check()
        self.trace.append(error)

    def cancel(self) -> None:
        """Ask the job to end; it does at its next step, pass or batch."""
        self._stop.set()

    @property
    def cancelling(self) -> bool:
        """Whether it was asked to end and has not yet."""
        return self._stop.is_set() and self.state == "running"

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return time.monotonic() - self.began

    def join(self, seconds: float | None = None) -> bool:
        """Wait until it ended; return whether it has."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _check(self) -> None:
        if self._stop.is_set():
            raise Cancelled

    def _run(self) -> None:
        try:
            self.work(self)
        except Cancelled:
            self.state = "cancelled"
        except Exception as error:  # noqa: BLE001 - shown on the page, in one line
            self.error = explained(error)
            self.state = "failed"
        else:
            self.state = "done"
