"""Run a file of ours with another Python, in an environment that needs nothing of chicle."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from chicle.errors import ParameterError

__all__ = ["ElsewhereError", "python_at", "run_elsewhere"]

_OURS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")  # the other environment has its own


class ElsewhereError(ParameterError):
    """What ran in the other environment failed; its text is the kind of the error, which quotes no value."""


def python_at(given: str, name: str) -> str:
    """Return the path of a Python, which the user named as a part of `name`."""
    found = shutil.which(given)
    if found is None:
        raise ParameterError(f"{name!r}: there is no Python {given!r}; give the path of one that can be run")
    return found


def run_elsewhere(python: str, script: Path, arguments: Sequence[str], given: bytes = b"") -> bytes:
    """Return what a script writes to its standard output.

    The script ends its standard error with the kind of an error, on a line of its own, and does not fail otherwise.
    Where the Python is this one, the script can import whatever this process can.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _OURS}
    if python == sys.executable:
        environment["PYTHONPATH"] = os.pathsep.join(path or os.curdir for path in sys.path)
    done = subprocess.run(  # noqa: S603 - what the user named
        [python, str(script), *arguments], input=given, capture_output=True, env=environment, check=False
    )
    if done.returncode:
        # Only the last line: the text of an error may quote values of the table.
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise ElsewhereError(lines[-1][:80] if lines[-1].isidentifier() else f"exit code {done.returncode}")
    return done.stdout
