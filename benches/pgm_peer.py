"""Graphical models of Adult against mbi (Private-PGM in JAX): the same measurements, the same loss, side by side.

mbi asks for versions that fit nobody else's, so give it an environment of its own:

python -m venv mbi-env && mbi-env/bin/pip install . 'mbi==2.0.0'
mbi-env/bin/python benches/pgm_peer.py [megabytes]   # of the junction tree beside the tree, 10 unless given

The goal is set by mbi: the loss that 1,000 iterations of its default estimator end at.
Compiling is timed by a first call of 50.
mbi computes in single precision unless JAX_ENABLE_X64=1 is set; chicle always in double.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from time import perf_counter, process_time
from typing import Any

import numpy as np
from pgm import graphs, noisy
from side_by_side import Goal, Row, Table, check, show
from tables import data_folder, load

from chicle import Domain, Measurement
from chicle.models.pgm import Pgm

ITERATIONS, FIRST = 1_000, 50
MOST_STEPS = 3_000


def loss_of(model: Any, measured: Sequence[Measurement]) -> float:  # noqa: ANN401
    """Return the loss of mbi's model, in double precision."""
    have = (np.asarray(model.project(m.clique).values, dtype=np.float64) for m in measured)
    return sum(float((((h - m.values) / m.sigma) ** 2).sum()) for h, m in zip(have, measured, strict=True)) / 2


def peer(measured: Sequence[Measurement], domain: Domain, total: int) -> tuple[float, float, float, float]:
    """Return mbi's loss, its seconds and processor seconds once compiled, and the seconds that compiling adds."""
    mbi = importlib.import_module("mbi")
    told = [mbi.LinearMeasurement(m.values.ravel(), m.clique, stddev=m.sigma) for m in measured]
    its_domain = mbi.Domain(tuple(domain), tuple(domain.values()))
    estimator = mbi.estimation.MirrorDescent()
    start = perf_counter()
    estimator.estimate(its_domain, told, known_total=float(total), iters=FIRST)
    first = perf_counter() - start
    start, spent = perf_counter(), process_time()
    model = estimator.estimate(its_domain, told, known_total=float(total), iters=ITERATIONS)
    loss = loss_of(model, measured)
    seconds, spent = perf_counter() - start, process_time() - spent
    return loss, seconds, spent, max(first - seconds * FIRST / ITERATIONS, 0.0)


def ours(measured: Sequence[Measurement], domain: Domain, goal: float) -> tuple[Pgm, float, float]:
    """Fit until the loss is as small; return the model, its seconds and processor seconds."""
    start, spent = perf_counter(), process_time()
    model = Pgm(measured, domain)
    while model.loss > goal and len(model.trace) <= MOST_STEPS:
        model.step()
    return model, perf_counter() - start, process_time() - spent


def main(size: float) -> None:
    if not (data_folder() / "adult").is_dir():
        return
    table, _ = load(data_folder() / "adult")
    rows: list[Row] = []
    goals: list[Row] = []
    for name, cliques in graphs(table, [size]).items():
        measured = noisy(table, cliques)
        loss, seconds, spent, compiling = peer(measured, table.domain, Pgm(measured, table.domain).total)
        model, our_seconds, our_spent = ours(measured, table.domain, loss)
        check(model.loss <= loss, f"{name}: loss {model.loss}, mbi's is {loss}")
        rows.append(
            {
                "graph": name,
                "MB": model.size / 1e6,
                "mbi's loss": loss,
                "mbi, s": seconds,
                "cpu s": spent,
                "and compiling, s": compiling,
                "chicle, s": our_seconds,
                "its cpu s": our_spent,
                "steps": len(model.trace) - 1,
                "times faster": seconds / our_seconds,
                "with compiling": (seconds + compiling) / our_seconds,
            }
        )
        goals.append(Goal(f"times faster than mbi: {name}", 5.0, seconds / our_seconds).row())
    show(Table(f"Adult: seconds until the loss of {ITERATIONS:,} iterations of mbi", rows))
    show(Table("goals", goals))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0)
