"""Run mechanisms on one table over epsilons and seeds, and evaluate their tables with the same measures."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any

from chicle._checks import integer, threads_or_all
from chicle._core import __version__
from chicle.comparison.comparison import FLOOR, Comparison, Row
from chicle.comparison.contenders import contender
from chicle.comparison.job import Job
from chicle.counting.records import Records
from chicle.errors import ParameterError
from chicle.evaluation.rows import row_hashes
from chicle.evaluation.run import check_measures
from chicle.evaluation.tables import read_one, schema_of
from chicle.privacy.budget import Budget, positive
from chicle.schema import Schema

__all__ = ["compare"]


def compare(
    real: Any,  # noqa: ANN401 - any table, or the path of one
    schema: Schema | Mapping[str, int] | str | PathLike[str] | None = None,
    *,
    mechanisms: Iterable[str] = ("prism", "privsyn", "independent"),
    epsilons: Iterable[float] = (0.2, 1.0, 5.0),
    delta: float = 1e-9,
    seeds: int = 3,
    output: str | PathLike[str] | None = None,
    timeout: float | None = None,
    threads: int | None = None,
    progress: Callable[[str], None] | None = None,
    **options: Any,  # noqa: ANN401 - those of `evaluate`
) -> Comparison:
    """Run mechanisms on a table and compare their synthetic tables. NOT PRIVATE: for experiments, not for publication.

    Each run has a process of its own, whose time and memory peak are measured, and a ledger of its own. All runs
    spend far more than one budget, so no result may be published.

    Parameters
    ----------
    real, schema
        The table and what its columns are, as for `evaluate`.
    mechanisms
        Names of mechanisms, or ``module:function`` of your own, or ``module:function@PYTHON`` in an environment of its
        own: see `chicle.comparison.contenders`.
    epsilons, delta
        The budgets.
    seeds
        How many runs of each mechanism at each epsilon.
    output
        A CSV or JSON file that grows with every run. If it exists, its runs are kept and not repeated, except those
        that failed.
    timeout
        Seconds after which a run is stopped and counts as failed.
    threads
        How many threads each run may use; all there are, if ``None``.
    progress
        Called before each run with a text that says what will run.
    options
        What `evaluate` should measure: `workload`, `label`, `gini`, `pairs`, `triples`, `queries`.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(2_000, d=4)
    >>> runs = chicle.compare(census, mechanisms=["independent"], epsilons=[1], seeds=1)
    >>> [row["mechanism"] for row in runs.rows]
    ['independent', 'floor']
    """
    declared = schema_of(real, schema, None)
    declared.check_reviewed()
    check_measures(declared, **options)
    names = list(dict.fromkeys(mechanisms))
    for name in names:
        contender(name)
    budgets = [positive("epsilon", epsilon) for epsilon in epsilons]
    for epsilon in budgets:
        Budget(epsilon=epsilon, delta=delta)
    runs: list[Row] = [
        {"mechanism": name, "epsilon": epsilon, "delta": float(delta), "seed": seed}
        for name, epsilon, seed in product(names, budgets, range(integer("seeds", seeds, 1)))
    ]
    threads = threads_or_all(threads)
    records = read_one("real", real, declared)
    digest = _digest(records, declared, options)
    found = _begin(output, digest)
    for i, run in enumerate(runs):
        if found.finished(run):
            continue
        if progress is not None:
            progress(f"run {i + 1} of {len(runs)}: {run['mechanism']}, epsilon {run['epsilon']:g}, seed {run['seed']}")
        job = Job(records=records, schema=declared, threads=threads, options=options, **run)
        result = _in_a_process(job, timeout)
        found = _with_floor(found.with_row(_row(run, result)), result.get("floor"))
        if output is not None:
            found.save(output)
    return found


def _begin(output: str | PathLike[str] | None, digest: str) -> Comparison:
    if output is None or not Path(output).exists():
        return Comparison((), digest)
    found = Comparison.load(output)
    if found.of != digest:
        raise ParameterError(
            f"{output} holds runs on another table, schema or version, or with other settings; give another name, "
            "or remove it"
        )
    return found


def _in_a_process(job: Job, timeout: float | None) -> dict[str, Any]:
    # The new process can import whatever this one can.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.curdir for path in sys.path)}
    command = [sys.executable, "-m", "chicle.comparison"]
    pipe = subprocess.PIPE
    # A session of its own, so that a run is stopped with the processes that it has started.
    with subprocess.Popen(  # noqa: S603 - ourselves
        command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
    ) as process:
        try:
            written, _ = process.communicate(pickle.dumps(job), timeout=timeout)
        except subprocess.TimeoutExpired:
            _stop(process)
            return {"error": f"stopped after {timeout:g} seconds"}
        except BaseException:
            _stop(process)
            raise
    if process.returncode:
        return {"error": f"the process ended with code {process.returncode}"}
    result: dict[str, Any] = json.loads(written)
    return result


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a run and the processes that it has started."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:  # Windows
        process.kill()


def _row(run: Row, result: Mapping[str, Any]) -> Row:
    figures = {key: result.get(key) for key in ("rows", "seconds", "peak_mb")}
    return {**run, **figures, "error": result.get("error", ""), **result.get("scores", {})}


def _with_floor(found: Comparison, scores: Mapping[str, float] | None) -> Comparison:
    """Keep the floor as the last row; it is the same for all runs except for the lengths of their tables."""
    others = [row for row in found.rows if row["mechanism"] != FLOOR]
    floor = [row for row in found.rows if row["mechanism"] == FLOOR]
    if not floor and scores is not None:
        none = dict.fromkeys(("epsilon", "delta", "seed", "rows", "seconds", "peak_mb"))
        floor = [{"mechanism": FLOOR, **none, "error": "", **scores}]
    return Comparison((*others, *floor), found.of)


def _digest(records: Records, schema: Schema, options: Mapping[str, Any]) -> str:
    settings = json.dumps([__version__, schema.to_dict(), repr(sorted(options.items()))], default=str)
    made = hashlib.sha256(settings.encode())
    made.update(row_hashes(records).tobytes())
    return made.hexdigest()[:16]
