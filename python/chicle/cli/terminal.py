"""What a command says: results on stdout, all else on stderr, and progress on a terminal only."""

from __future__ import annotations

import sys

__all__ = ["Progress", "clear", "say", "warn"]

_CLEAR = "\r\x1b[K"  # back to the beginning of a line that is then empty


class Progress:
    """One line on a terminal that tells what is being done."""

    def __init__(self, *, quiet: bool) -> None:
        self._shown = not quiet and sys.stderr.isatty()

    def say(self, what: str) -> None:
        """Tell what is being done now."""
        if self._shown:
            sys.stderr.write(f"{_CLEAR}{what} ...")
            sys.stderr.flush()

    def note(self, number: int, error: float) -> None:
        """Tell how far the generator is."""
        self.say(f"making records: pass {number}, error {error:.4f}")

    def end(self) -> None:
        """Leave a clean line."""
        if self._shown:
            clear()


def clear() -> None:
    """Empty the line that progress was shown on."""
    if sys.stderr.isatty():
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()


def say(text: str) -> None:
    """Print a result."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def warn(text: str) -> None:
    """Print one line on stderr."""
    sys.stderr.write(f"chicle: {' '.join(text.split())}\n")
