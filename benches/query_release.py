"""Query release: max and mean error of all cells of a workload, a picture of it, and the time of a round.

python benches/query_release.py rows adult [FITS] [EPSILONS] [PATTERN]   # adult_queries, all 286 triples
python benches/query_release.py rows reduced [FITS] [EPSILONS] [PATTERN] # its reduced columns, all 35 triples
python benches/query_release.py rows states [FITS] [EPSILONS] [PATTERN]  # New York, with New Jersey as public data
python benches/query_release.py mixtures reduced|adult|states            # what no weights on public rows can improve
python benches/query_release.py draw PICTURE.svg RESULTS.csv [...]       # max error against epsilon; needs matplotlib
python benches/query_release.py times                                    # a step, a round and 500,000 cells

`rows` writes comma-separated lines. Epsilons are separated by commas; a pattern is part of the name of a row; delta is
1/n^2. Noise is the system's, so a fit has no seed. Rows of several T are there because the paper reports the best T by
the true error, which nobody knows beforehand. Errors are those of `answers_`; mechanisms that have none are asked for
four times as many records as there are.

Public tables: all of it, every second attribute of it ("half"), or the rows without one value ("narrow": no weights on
them can give that value to anybody).
"""

from __future__ import annotations

import csv
import json
import resource
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from tables import data_folder

import chicle
from chicle import Clique, Records, _core
from chicle.evaluation.answers import answer_errors
from chicle.measurements.measurement import Measurement
from chicle.models.reweighted import WeightedRowsModel

REDUCED = ("sex", "income>50K", "race", "marital-status", "occupation", "education-num", "age_10")
ATTRIBUTES, TRIPLES = 45, 256  # of the states: those of fewest values, and how many of their triples
MISSING = 2  # the code of race, a tenth of the rows, that the narrow public table lacks


@dataclass(frozen=True)
class Bench:
    """A private table, a workload, and public tables by name."""

    real: Records
    workload: list[Clique]
    public: dict[str, Records]


@dataclass(frozen=True)
class Line:
    """A mechanism to measure, with one of the public tables of the bench, or none."""

    name: str
    make: Callable[..., Any]
    public: str = ""


# Mechanisms whose rounds are timed. DualQuery makes all of its rounds: in few of them each choice is slower.
ROUNDS: dict[str, Callable[..., Any]] = {
    "GEM, whole tables": partial(chicle.GEM, rounds=8),
    "GEM, single cells": partial(chicle.GEM, per="query", rounds=8),
    "RAP-softmax, K 10": partial(chicle.RAP, per="query", queries=10, rounds=8),
    "PMWPub": partial(chicle.PMWPub, rounds=8),
    "DualQuery": chicle.DualQuery,
    "FEM": partial(chicle.FEM, rounds=8),
}
EXPLICIT_ROUNDS: dict[str, Callable[..., Any]] = {
    "MWEM": partial(chicle.MWEM, model="explicit", published=True, rounds=8),
    "PEP": partial(chicle.PEP, published=True, rounds=8),
    "PEP, whole tables": partial(chicle.PEP, rounds=8),
}


def bench_of(which: str) -> Bench:
    """Return the bench of a name."""
    if which == "states":
        domain = json.loads((data_folder() / "acs2024_ny" / "domain.json").read_text(encoding="utf-8"))
        few = set(sorted(domain, key=domain.__getitem__)[:ATTRIBUTES])
        names = [name for name in domain if name in few]
        every = list(combinations(names, 3))
        drawn = np.random.default_rng(0).choice(len(every), TRIPLES, replace=False)
        here, there = (_read(f"acs2024_{state}", "data.parquet", names) for state in ("ny", "nj"))
        return Bench(here, [every[i] for i in sorted(drawn.tolist())], {"all": there, "half": _half(there)})
    columns = REDUCED if which == "reduced" else None
    real, public = (_read("adult_queries", f"{kind}.parquet", columns) for kind in ("private", "public"))
    kept = public["race"] != MISSING
    narrow = Records({name: public[name][kept] for name in public.domain}, public.domain)
    given = {"all": public, "half": _half(public), "narrow": narrow}
    return Bench(real, list(combinations(real.domain, 3)), given)


def _half(public: Records) -> Records:
    names = list(public.domain)[::2]
    return Records({name: public[name] for name in names}, {name: public.domain[name] for name in names})


def rows_of(which: str) -> list[Line]:
    """Return the rows of a bench."""
    without = [Line("GEM, whole tables", chicle.GEM), Line("Prism", chicle.Prism)]
    public = [
        Line("PMWPub, whole tables", chicle.PMWPub, "all"),
        Line("PMWPub, published, T 100", partial(chicle.PMWPub, published=True), "all"),
        Line("PEP-pub, T 100", partial(chicle.PMWPub, per="query"), "all"),
        Line("GEM-pub, whole tables", chicle.GEM, "all"),
        Line("GEM-pub, half the attributes", chicle.GEM, "half"),
    ]
    if which == "states":
        return [*public, *without]
    tables = [
        *without,
        Line("AIM", chicle.AIM),
        *(Line(f"GEM, single cells, T {t}", partial(chicle.GEM, per="query", rounds=t)) for t in (50, 100, 200)),
        *(
            Line(f"RAP-softmax, T {t}, K {k}", partial(chicle.RAP, per="query", rounds=t, queries=k))
            for t, k in ((5, 10), (10, 10), (10, 25), (25, 25))
        ),
        Line("RAP, whole tables", chicle.RAP),
        Line("DualQuery, eta 2, s 50", chicle.DualQuery),
        Line("FEM", chicle.FEM),
        Line("FEM, choices at the paper's price", partial(chicle.FEM, published=True)),
        *public,
        Line("narrow: PMWPub, whole tables", chicle.PMWPub, "narrow"),
        Line("narrow: PMWPub, published, T 100", partial(chicle.PMWPub, published=True), "narrow"),
        Line("narrow: GEM-pub, whole tables", chicle.GEM, "narrow"),
    ]
    if which == "adult":
        return tables
    explicit = partial(chicle.MWEM, model="explicit", published=True)
    return [
        *tables,
        *(Line(f"MWEM, T {t}", partial(explicit, rounds=t)) for t in (50, 100, 200)),
        *(Line(f"PEP, T {t}", partial(chicle.PEP, published=True, rounds=t)) for t in (20, 30, 60, 100)),
        Line("PEP, whole tables", chicle.PEP),
    ]


def measure(bench: Bench, line: Line, epsilon: float, fits: int) -> dict[str, float]:
    """Return errors of the answers, and the CPU seconds of a fit, on one thread."""
    delta, found, began = 1 / len(bench.real) ** 2, [], time.process_time()
    given = {"public": bench.public[line.public]} if line.public else {}
    for _ in range(fits):
        asks = {} if line.make is chicle.Prism else {"workload": bench.workload}
        synth = line.make(epsilon=epsilon, delta=delta, threads=1, **asks).fit(bench.real, **given)
        answers = getattr(synth, "answers_", None)
        if answers is None:
            made = synth.sample(4 * len(bench.real), seed=0)
            tables = made.count(bench.workload, threads=1)
            answers = {clique: table / len(made) for clique, table in zip(bench.workload, tables, strict=True)}
        errors = answer_errors(bench.real, answers, threads=1)
        found.append((errors["max"], 1e4 * errors["mean"]))
    (largest, mean), spread = np.mean(found, axis=0), np.std(found, axis=0)
    seconds = (time.process_time() - began) / fits
    return {"max": float(largest), "sd": float(spread[0]), "mean 1e4": float(mean), "cpu s": seconds}


def print_rows(which: str, fits: int = 3, epsilons: str = "0.1,0.25,0.5,1", pattern: str = "") -> None:
    """Print the rows of a bench, one line for each epsilon."""
    bench, out = bench_of(which), csv.writer(sys.stdout)
    for line in rows_of(which):
        for epsilon in map(float, epsilons.split(",")):
            if pattern in line.name:
                told = measure(bench, line, epsilon, int(fits))
                out.writerow([which, line.name, epsilon, *(f"{value:.4f}" for value in told.values())])
                sys.stdout.flush()


def print_mixtures(which: str) -> None:
    """Print for each public table of all attributes how far any weights on its rows stay from the workload.

    At least the largest private cell that no public row is in; at most what weights leave that are fitted to the exact
    answers. [G] calls the best of all weights the best mixture.
    """
    bench = bench_of(which)
    counts = bench.real.count(bench.workload, threads=1)
    measured = [Measurement(clique, table, 1.0) for clique, table in zip(bench.workload, counts, strict=True)]
    for name, public in bench.public.items():
        if public.domain == bench.real.domain:
            held = public.count(bench.workload, threads=1)
            least = max(int(table[seen == 0].max(initial=0)) for table, seen in zip(counts, held, strict=True))
            model = WeightedRowsModel(rows=public, tolerance=0.0, sweeps=300).fit(
                measured, bench.real.domain, threads=1
            )
            shares = [table / model.total for table in model.expect(bench.workload)]
            most = answer_errors(bench.real, dict(zip(bench.workload, shares, strict=True)), threads=1)["max"]
            print(f"{which}, {name}: the best mixture is {least / len(bench.real):.4f} to {most:.4f} off")


def draw(picture: str, *results: str) -> None:
    """Draw max error against epsilon, a panel for each bench; of rows that differ in T and K alone, the best one."""
    import matplotlib as mpl  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - only for the picture

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "chicle"
    from matplotlib import pyplot as plt  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415

    found: dict[str, dict[str, dict[str, dict[float, float]]]] = {}  # panel, family, row, epsilon
    for path in results:
        for which, line, epsilon, largest, *_ in csv.reader(Path(path).read_text(encoding="utf-8").splitlines()):
            panel, name = (f"{which}, narrow public data", line[8:]) if line.startswith("narrow: ") else (which, line)
            rows_alike = found.setdefault(panel, {}).setdefault(name.split(", T ")[0], {})
            rows_alike.setdefault(name, {})[float(epsilon)] = float(largest)
    figure, panels = plt.subplots(
        1, len(found), figsize=(5.5 * len(found), 7), layout="constrained", squeeze=False, sharey=True
    )
    for axes, (which, families) in zip(panels[0], found.items(), strict=True):
        for i, (family, rows) in enumerate(families.items()):
            at = sorted({epsilon for row in rows.values() for epsilon in row})
            best = [min(row[epsilon] for row in rows.values() if epsilon in row) for epsilon in at]
            label = family if len(rows) == 1 else f"{family} (best T)"
            line = "--" if "pub" in family.lower() else "-"  # with public data
            axes.plot(at, best, "osD^vP*X"[i % 8] + line, label=label)
        axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="largest error of a cell", title=which)
        axes.set_xticks(at, [f"{epsilon:g}" for epsilon in at], minor=False)
        axes.minorticks_off()
        axes.legend(fontsize=7)
    figure.savefig(picture, metadata={"Date": None})


def print_times() -> None:
    """Print the time of a step on all triples, beside torch or JAX where they are installed, and of large workloads."""
    _print_large()
    bench = bench_of("adult")
    domain = bench.real.domain
    names, sizes, k = list(domain), list(domain.values()), 1_000
    tables = [[(domain.position(name), None) for name in clique] for clique in bench.workload]
    counts = bench.real.count(bench.workload, threads=1)
    targets = np.concatenate([table.ravel() / len(bench.real) for table in counts]).astype(np.float32)
    ours = _core.Mixture(names, sizes, k, "softmax", (1, 1), 0, 1)
    steps: dict[str, Callable[[], object]] = {
        "chicle": lambda: ours.fit_squares(tables, targets, [1.0] * len(tables), 1, 0.1, False)
    }
    steps |= _step_of_torch(tables, sizes, targets, k) | _step_of_jax(tables, sizes, targets, k)
    spent: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(6):  # in turns: the machine may be busy
        for name, step in steps.items():
            began = time.process_time()
            step()
            spent[name].append(time.process_time() - began)
    for name, each in spent.items():
        print(f"a step on {targets.size:,} cells, {name}: first {each[0]:.3f} s, then {fmean(each[1:]):.3f} s")
    cells = [[(a, 0), (b, 0), (c, 0)] for a, b, c in combinations(range(len(names)), 3)][:100]
    few = np.full(100, 0.01, np.float32)
    began = time.process_time()
    ours.fit_worst(cells, few, 0.0, 100, 100, 0.01, False)
    print(f"a step on 100 single cells, chicle: {(time.process_time() - began) * 10:.2f} ms")
    network = _core.Mixture(names, sizes, k, "network", (512, 1024), 0, 1)
    began = time.process_time()
    network.fit_worst(cells, few, 0.0, 100, 3, 1e-4, False)
    print(f"a step of GEM's network on 100 single cells, chicle: {(time.process_time() - began) / 3:.2f} s")
    for which, names_of in (("adult", ROUNDS), ("reduced", EXPLICIT_ROUNDS)):
        rounds = bench_of(which)
        for name, make in names_of.items():
            print(f"a round on {which}, {name}: {_round(rounds, name, make):.3f} s")


def _print_large() -> None:
    """Print the time and memory of rounds on half a million cells; before all else, as peak memory only grows."""
    large = chicle.Domain({f"x{i}": 24 for i in range(8)})
    workload = list(combinations(large, 3))[:37]
    rng = np.random.default_rng(0)
    rows = Records({name: rng.integers(24, size=50_000) for name in large}, large)
    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    chicle.GEM(epsilon=1, delta=1e-9, workload=workload, per="query", rounds=5, threads=1).fit(rows)
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    seconds = time.process_time() - began
    print(f"5 rounds on {sum(map(large.cells, workload)):,} cells: {seconds:.1f} s, {more:.0f} MB more than before")


def _round(bench: Bench, name: str, make: Callable[..., Any]) -> float:
    """Return the CPU seconds of a round: choose, measure and refit; the first one, which also counts, is left out."""
    ends: list[float] = []
    given = {"public": bench.public["all"]} if name == "PMWPub" else {}
    noted = {"threads": 1, "progress": lambda *_: ends.append(time.process_time())}
    synth = make(epsilon=1, delta=1 / len(bench.real) ** 2, workload=bench.workload, **noted)
    synth.fit(bench.real, **given)
    return fmean(np.diff(ends).tolist())


def _step_of_torch(tables: Any, sizes: list[int], targets: Any, k: int) -> dict[str, Callable[[], object]]:  # noqa: ANN401
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - only where it is installed
    except ImportError:
        print("torch is not installed")
        return {}
    torch.set_num_threads(1)
    logits = torch.rand(sum(sizes), k, requires_grad=True)
    adam, wanted = torch.optim.Adam([logits], lr=0.1), torch.tensor(targets)

    def step() -> None:
        adam.zero_grad()
        p = [torch.softmax(part, 0) for part in torch.split(logits, sizes)]
        answers = [torch.einsum("ak,bk,ck->abc", *(p[a] for a, _ in table)).ravel() / k for table in tables]
        (k / 2 * ((torch.cat(answers) - wanted) ** 2).sum()).backward()
        adam.step()

    return {"torch": step}


def _step_of_jax(tables: Any, sizes: list[int], targets: Any, k: int) -> dict[str, Callable[[], object]]:  # noqa: ANN401
    try:
        import jax  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - only where it is installed
    except ImportError:
        print("JAX is not installed")
        return {}
    ends = np.cumsum(sizes)[:-1]

    @jax.jit  # type: ignore[untyped-decorator,unused-ignore]
    def gradient(logits: Any) -> Any:  # noqa: ANN401
        def loss(logits: Any) -> Any:  # noqa: ANN401
            p = [jax.nn.softmax(part, 0) for part in jax.numpy.split(logits, ends)]
            answers = [jax.numpy.einsum("ak,bk,ck->abc", *(p[a] for a, _ in t)).ravel() / k for t in tables]
            return k / 2 * ((jax.numpy.concatenate(answers) - targets) ** 2).sum()

        return jax.grad(loss)(logits)

    logits = jax.numpy.asarray(np.random.default_rng(0).random((sum(sizes), k), dtype=np.float32))
    return {"JAX": lambda: gradient(logits).block_until_ready()}


def _read(folder: str, file: str, names: Iterable[str] | None) -> Records:
    import pyarrow.parquet as pq  # noqa: PLC0415 - only where tables are at hand

    path = data_folder() / folder
    domain = json.loads((path / "domain.json").read_text(encoding="utf-8"))
    kept = {name: domain[name] for name in (domain if names is None else names)}
    return Records(pq.read_table(path / file, columns=list(kept)), kept)


if __name__ == "__main__":
    commands: dict[str, Callable[..., None]] = {
        "rows": print_rows,
        "mixtures": print_mixtures,
        "draw": draw,
        "times": print_times,
    }
    verb, *more = sys.argv[1:] or ["times"]
    commands[verb](*more)
