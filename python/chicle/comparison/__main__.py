"""One run in a process of its own: the job arrives on stdin, its result leaves on stdout.

In a fresh process the memory peak is the run's own, and a contender that crashes harms nobody else. The table is piped,
so no copy of it is written to disk.
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
