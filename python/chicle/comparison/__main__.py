"""One run in a process of its own: the job arrives on stdin, its result leaves on stdout.

In a fresh process the memory peak is the run's own, and a contender that crashes harms nobody else. The table is piped,
so no copy of it is written to disk. The argument is the end of a pipe whose other end the starting process holds: when
that process ends, in whatever way, so does the run.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import threading
from contextlib import redirect_stdout
from typing import Any

from chicle.comparison.job import Job, run_job
from chicle.errors import ChicleError


def _end_with(pipe: int) -> None:
    """End this run, and the processes that it has started, when nobody holds the other end of a pipe any more."""
    os.read(pipe, 1)
    os.killpg(os.getpid(), signal.SIGKILL)  # the run has a session of its own


def _main() -> None:
    if len(sys.argv) > 1:
        threading.Thread(target=_end_with, args=[int(sys.argv[1])], daemon=True).start()
    job: Job = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this one
    result: dict[str, Any]
    try:
        with redirect_stdout(sys.stderr):
            result = run_job(job)
    except ChicleError as error:
        result = {"error": f"{type(error).__name__}: {error}"}
    except Exception as error:  # noqa: BLE001 - a contender may raise anything, and its text may quote values
        result = {"error": type(error).__name__}
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    _main()
