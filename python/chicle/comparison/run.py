"""Run mechanisms on one table over epsilons and seeds, and evaluate their tables with the same measures."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any

from chicle._checks import integer, threads_or_all
from chicle._core import __version__
from chicle.codecs import Codec
from chicle.comparison.comparison import FLOOR, Comparison, Row
from chicle.comparison.contenders import Ours, contender
from chicle.comparison.job import Job
from chicle.counting.records import Records
from chicle.errors import ParameterError
from chicle.evaluation.rows import row_hashes
from chicle.evaluation.run import check_measures
from chicle.evaluation.tables import read_one, schema_of
from chicle.privacy.budget import Budget, positive
from chicle.public import PublicData
from chicle.schema import Schema
from chicle.workload import Workload

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
    public: Any = None,  # noqa: ANN401 - any table, or PublicData
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    **options: Any,  # noqa: ANN401 - those of `evaluate`
) -> Comparison:
    """Run mechanisms on a table and compare their synthetic tables. NOT PRIVATE: for experiments, not for publication.

    Each run has a process of its own, whose time and memory peak are measured, and a ledger of its own. All runs
    spend far more than one budget, so no result may be published.

    Parameters
    ----------
    real, schema
        The table and what its columns are, as for `evaluate`. Where the schema names a person, `max_records` rows of
        each are kept, and every run protects persons; where it declares a partition, mechanisms fit it.
    mechanisms
        Names of mechanisms, or ``module:function`` of your own, or ``module:function@PYTHON`` in an environment of its
        own: see `chicle.comparison.contenders`. ``-alone`` after a mechanism's name withholds the public data.
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
    public
        Public data, a table or a `chicle.PublicData`, for all mechanisms and functions that take them.
    parameters
        By the name of a mechanism, parameters of its own, as ``{"dpsyn": {"marginals": [("AGE", "SEX")]}}``; functions
        get them as keywords.
    options
        What `evaluate` should measure: `workload`, `label`, `gini`, `segment`, `pairs`, `triples`, `queries`. The
        workload is also what mechanisms measure for, if they take one.

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
    budgets = [positive("epsilon", epsilon) for epsilon in epsilons]
    for epsilon in budgets:
        Budget(epsilon=epsilon, delta=delta)
    given = _given(declared, public, options.get("workload"))
    own = _own_parameters(names, parameters or {})
    for name in names:
        made = contender(name)
        if isinstance(made, Ours):
            made.check(declared, epsilon=budgets[0], delta=delta, **{**given, **own.get(name, {})})
    runs: list[Row] = [
        {"mechanism": name, "epsilon": epsilon, "delta": float(delta), "seed": seed}
        for name, epsilon, seed in product(names, budgets, range(integer("seeds", seeds, 1)))
    ]
    threads = threads_or_all(threads)
    records = read_one("real", real, declared)
    digest = _digest(records, declared, options, given, own)
    found = _begin(output, digest)
    for i, run in enumerate(runs):
        if found.finished(run):
            continue
        if progress is not None:
            progress(f"run {i + 1} of {len(runs)}: {run['mechanism']}, epsilon {run['epsilon']:g}, seed {run['seed']}")
        job = Job(
            records=records,
            schema=declared,
            threads=threads,
            options=options,
            given=given,
            parameters=own.get(run["mechanism"], {}),
            **run,
        )
        result = _in_a_process(job, timeout)
        found = _with_floor(found.with_row(_row(run, result)), result.get("floor"))
        if output is not None:
            found.save(output)
    return found


def _given(schema: Schema, public: Any, workload: Any) -> dict[str, Any]:  # noqa: ANN401 - any table, any cliques
    """Return what contenders may know beside their budget, checked."""
    given: dict[str, Any] = {}
    if workload is not None:
        given["workload"] = Workload.of(workload).over(schema.domain)
    if public is not None:
        given["public"] = PublicData.of(public).coded(schema)
    return given


def _own_parameters(names: Sequence[str], parameters: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the parameters of each contender, checked."""
    for name, own in parameters.items():
        if name not in names:
            raise ParameterError(f"parameters are given for {name!r}, which does not run; name it in `mechanisms`")
        for one in ("epsilon", "delta", "seed", "threads", "public"):
            if one in own:
                raise ParameterError(f"{one} is given to all contenders; leave it out of the parameters of {name!r}")
    return {name: dict(own) for name, own in parameters.items()}


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
    with ExitStack() as held:
        inherited = []
        if hasattr(os, "killpg"):
            # The system closes our end when this process ends, even by a signal that it cannot see; then the run ends.
            reading, writing = os.pipe()
            held.callback(os.close, writing)
            held.callback(os.close, reading)
            command.append(str(reading))
            inherited.append(reading)
        # A session of its own, so that a run is stopped with the processes that it has started.
        process = held.enter_context(
            subprocess.Popen(  # noqa: S603 - ourselves
                command,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                env=environment,
                start_new_session=True,
                pass_fds=inherited,
            )
        )
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


def _digest(
    records: Records,
    schema: Schema,
    options: Mapping[str, Any],
    given: Mapping[str, Any],
    parameters: Mapping[str, Mapping[str, Any]],
) -> str:
    measured = repr(sorted((name, value) for name, value in options.items() if name != "workload"))
    told: list[Any] = [__version__, schema.to_dict(), measured, records.max_records_per_person]
    told.append(given["workload"].to_json() if "workload" in given else None)
    if "public" in given:
        rows = given["public"].rows(Codec(schema))
        told.append([rows.digest, rows.role])
    if parameters:
        told.append(repr(sorted((name, sorted(some.items())) for name, some in parameters.items())))
    made = hashlib.sha256(json.dumps(told, default=str).encode())
    made.update(row_hashes(records).tobytes())
    return made.hexdigest()[:16]
