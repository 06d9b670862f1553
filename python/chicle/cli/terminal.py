"""Terminal output: results on stdout, everything else on stderr, progress only on a terminal."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Display

__all__ = ["Progress", "say", "warn"]


class Progress:
    """A progress line on a terminal; it is removed at the end.

    Parameters
    ----------
    quiet
        Show nothing, even on a terminal.
    """

    def __init__(self, *, quiet: bool) -> None:
        console = Console(stderr=True)
        shown = not quiet and console.is_terminal
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        self._display = Display(*columns, console=console, transient=True, disable=not shown)
        self._task: TaskID | None = None

    def __enter__(self) -> Progress:  # noqa: PYI034 - Self is not in the typing of Python 3.10
        self._display.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._display.stop()

    def say(self, what: str, total: float | None = None) -> None:
        """Show what is being done, and the number of its steps if that is known."""
        if self._task is not None:
            self._display.remove_task(self._task)
        self._task = self._display.add_task(what, total=total)

    def advance(self, steps: float) -> None:
        """Advance the progress by a number of steps."""
        if self._task is not None:
            self._display.advance(self._task, steps)

    def note(self, number: int, error: float) -> None:
        """Show the pass of the model that makes records, and its error."""
        if self._task is not None:
            self._display.update(
                self._task, description=f"making records: pass {number}, error {error:.4f}", refresh=True
            )


def say(text: str) -> None:
    """Print a result."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def warn(text: str) -> None:
    """Print one line on stderr."""
    sys.stderr.write(f"chicle: {' '.join(text.split())}\n")
