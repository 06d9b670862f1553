"""One run of a comparison: make a synthetic table, then evaluate it."""

from __future__ import annotations

import importlib
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chicle.comparison.contenders import accepted, contender
from chicle.counting.records import Records
from chicle.evaluation import evaluate
from chicle.schema import Schema

__all__ = ["Job", "peak_mb", "run_job"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """What one run needs, the real table included.

    `given` reaches contenders that have parameters for it; `parameters` are the contender's own.
    """

    records: Records
    schema: Schema
    mechanism: str
    epsilon: float
    delta: float
    seed: int
    threads: int | None
    options: dict[str, Any]
    given: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)


def run_job(job: Job) -> dict[str, Any]:
    """Make a table and evaluate it; return seconds, the memory peak in MB before the evaluation, scores and floors."""
    make = contender(job.mechanism)
    more = {**accepted(make, job.given), **job.parameters}
    start = time.perf_counter()
    made = make(
        job.records, job.schema, epsilon=job.epsilon, delta=job.delta, seed=job.seed, threads=job.threads, **more
    )
    seconds = time.perf_counter() - start
    peak = peak_mb()
    found = evaluate(job.records, made, job.schema, threads=job.threads, **job.options)
    scores = {score.key: score.to_dict() for score in found}
    return {
        "rows": len(made),
        "seconds": seconds,
        "peak_mb": peak,
        "scores": {key: score["value"] for key, score in scores.items()},
        "floor": {key: score["floor"] for key, score in scores.items()},
    }


def _children_mb() -> float:
    """Return the memory peak of contenders in other environments, which are processes of this one."""
    resource = importlib.import_module("resource")
    return float(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 2**10


def peak_mb() -> float | None:
    """Return the memory peak of this process, and of the largest of its own that ended; None where nobody tells."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux ru_maxrss is that of the parent process if that was larger
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="ascii", errors="replace"))
        return max(int(found[1]) / 2**10, _children_mb()) if found else None
    try:
        resource = importlib.import_module("resource")
    except ImportError:  # Windows
        return None
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / (2**20 if sys.platform == "darwin" else 2**10)
