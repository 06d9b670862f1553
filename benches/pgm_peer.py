"""Graphical models beside `mbi` (Private-PGM on JAX): seconds to the same loss on the same measurements, in one run.

python -m venv peer && peer/bin/pip install mbi        # its dependencies want an environment of their own
python benches/pgm_peer.py peer/bin/python [megabytes ...]   # junction trees beside the tree of pairs; 10 unless given

mbi takes 1,000 iterations, its default, once with compiling and once compiled; chicle steps until its loss is as small.
The loss of both is worked out here, in double precision, from the marginals that they give.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

ITERATIONS = 1_000


def peer(folder: Path) -> None:
    """Fit by mbi, twice; this part runs in its environment and imports nothing of chicle."""
    from mbi import Domain, LinearMeasurement, estimation  # type: ignore[import-not-found]  # noqa: PLC0415

    told = json.loads((folder / "problem.json").read_text(encoding="utf-8"))
    tables = np.load(folder / "tables.npz")
    domain = Domain(list(told["domain"]), list(told["domain"].values()))
    measured = [
        LinearMeasurement(tables[f"arr_{i}"].ravel(), tuple(clique), told["sigma"])
        for i, clique in enumerate(told["cliques"])
    ]
    seconds = []
    for _ in range(2):
        start = perf_counter()
        model = estimation.MirrorDescent().estimate(domain, measured, known_total=told["total"], iters=ITERATIONS)
        fitted = [np.asarray(model.project(tuple(clique)).datavector()) for clique in told["cliques"]]
        seconds.append(perf_counter() - start)
    np.savez(folder / "fitted.npz", *fitted)
    (folder / "seconds.json").write_text(json.dumps(seconds), encoding="utf-8")


def main(python: str, sizes: list[float]) -> None:
    from pgm import SIGMA, graphs, noisy  # noqa: PLC0415 - not there for the peer
    from side_by_side import Row, Table, show  # noqa: PLC0415
    from tables import data_folder, load  # noqa: PLC0415

    from chicle import Pgm  # noqa: PLC0415

    table, _ = load(data_folder() / "adult")
    rows: list[Row] = []
    for name, cliques in graphs(table, sizes).items():
        measured = noisy(table, cliques)
        total = Pgm(measured, table.domain).total
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            problem: dict[str, Any] = {"domain": dict(table.domain), "cliques": cliques, "sigma": SIGMA, "total": total}
            (folder / "problem.json").write_text(json.dumps(problem), encoding="utf-8")
            np.savez(folder / "tables.npz", *(one.values for one in measured))
            subprocess.run([python, __file__, "--peer", place], check=True)  # noqa: S603 - the environment that was named
            compiled, again = json.loads((folder / "seconds.json").read_text(encoding="utf-8"))
            fitted = np.load(folder / "fitted.npz")
            off = [(fitted[f"arr_{i}"] - one.values.ravel()) / SIGMA for i, one in enumerate(measured)]
            loss = float(sum((part**2).sum() for part in off) / 2)
        start = perf_counter()
        model = Pgm(measured, table.domain)
        while model.loss > loss and len(model.trace) <= 10 * ITERATIONS:
            model.step()
        mine = perf_counter() - start
        rows.append(
            {
                "graph": name,
                "MB": model.size / 1e6,
                "mbi s, with compiling": compiled,
                "mbi s, compiled": again,
                "mbi loss": loss,
                "chicle s": mine,
                "chicle loss": model.loss,
                "steps": len(model.trace) - 1,
                "ratio": again / mine,
                "ratio, with compiling": compiled / mine,
            }
        )
    show(Table(f"Adult, noisy marginals of sigma {SIGMA:g}: to the loss of mbi after {ITERATIONS:,} iterations", rows))


if __name__ == "__main__":
    if sys.argv[1] == "--peer":
        peer(Path(sys.argv[2]))
    else:
        main(sys.argv[1], [float(size) for size in sys.argv[2:]] or [10.0])
