"""A run in a process of its own: a job comes in by stdin, what came of it goes out by stdout.

A fresh process makes the peak of memory the run's own, and keeps what a contender breaks to itself. The table is piped,
so that no copy of it touches a disk.
"""

from __future__ import annotations

import json
import pickle
import sys
from contextlib import redirect_stdout
from typing import Any

from chicle.comparison.job import Job, run_job
from chicle.errors import ChicleError


def _main() -> None:
    job: Job = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this one
    told: dict[str, Any]
    try:
        with redirect_stdout(sys.stderr):
            told = run_job(job)
    except ChicleError as error:
        told = {"error": f"{type(error).__name__}: {error}"}
    except Exception as error:  # noqa: BLE001 - a contender may raise anything, and its text may quote values
        told = {"error": type(error).__name__}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    _main()
