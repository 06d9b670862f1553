"""DPSyn where it was made to win: states by area as in the NIST 2020 challenge, fire calls as in that of 2018.

python benches/dpsyn.py areas [seeds] [epsilons]   # New York and Pennsylvania by PUMA, Illinois and Ohio as public data
python benches/dpsyn.py fire [seeds] [epsilons]    # the recipe of [D18] 5.3 beside PrivSyn and Prism
python benches/dpsyn.py crossover                  # up to how many marginals Laplace noise is less ([D18] figure 2)
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
from side_by_side import Row, Table, show
from tables import data_folder, distance, load

import chicle
from chicle import Mechanism, Records
from chicle.evaluation.nist2020 import segments
from chicle.mechanisms.dpsyn_split import laplace_has_less_noise
from chicle.privacy import Budget

COLUMNS = [
    "AGEP",
    "SEX",
    "RAC1P",
    "HISP",
    "CIT",
    "ENG",
    "SCHL",
    "MAR",
    "ESR",
    "INDP",
    "OCCP",
    "COW",
    "WKHP",
    "JWMNP",
    "PINCP",
    "WAGP",
    "POVPIP",
    "HICOV",
    "PRIVCOV",
    "PUBCOV",
    "DIS",
    "MIL",
    "TEN",
    "HINCP",
]
ROWS_OF_A_HOUSEHOLD = 7
DELTA = 3.45e-11
PAIRS = 50

TIMES = ["Received", "Entry", "Dispatch", "Response", "On Scene", "Transport", "Hospital", "Available"]
FIRE: dict[str, Any] = {"synchronous": [[*(f"{name} DtTm" for name in TIMES), "Watch Date"]]}


def states(name: str) -> tuple[Records, Records]:
    """Return the rows of a table of states that a fit may see, at most 7 of a household, and all of them."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only where tables are at hand

    folder = data_folder() / name
    sizes = json.loads((folder / "domain.json").read_text(encoding="utf-8"))
    table = pq.read_table(folder / "data.parquet", columns=["PUMA", "HOUSEHOLD", *COLUMNS])
    columns = {column: table[column].to_numpy() for column in ("PUMA", *COLUMNS)}
    columns["AGEP"] = np.minimum(columns["AGEP"] // 5, 19).astype(np.uint8)  # in groups of five years
    domain = {"PUMA": sizes["PUMA"], **{column: sizes[column] for column in COLUMNS}, "AGEP": 20}
    _, household = np.unique(table["HOUSEHOLD"].to_numpy(), return_inverse=True)
    order = np.argsort(household, kind="stable")
    starts = np.cumsum(np.bincount(household)) - np.bincount(household)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - starts[household[order]]
    few = rank < ROWS_OF_A_HOUSEHOLD
    seen = Records({c: codes[few] for c, codes in columns.items()}, domain, max_records_per_person=ROWS_OF_A_HOUSEHOLD)
    return seen, Records(columns, domain)


def score(real: Records, made: Records) -> float:
    """Return the score of the 2020 challenge by PUMA, over the pairs that its generator and seed give."""
    rng = np.random.RandomState(123456)
    pairs = [tuple(str(name) for name in rng.choice(COLUMNS, 2, replace=False)) for _ in range(PAIRS)]
    return 500 * (2 - float(segments(real, made, ("PUMA",), pairs).mean()))


def areas(seeds: int, epsilons: list[float]) -> None:
    """Score DPSyn in each of its regimes, and Prism with the PUMA as a column."""
    private, whole = states("acs2024_ny_pa_puma")
    public = states("acs2024_il_oh_puma")[1]
    # Its areas are others, of other numbers.
    table = chicle.PublicData(public, role="trusted", columns=COLUMNS)
    rows: list[Row] = []
    for epsilon in epsilons:
        budget: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA}
        for seed in range(seeds):
            contenders: dict[str, Mechanism] = {
                "DPSyn": chicle.DPSyn(**budget, partition="PUMA"),
                "DPSyn, descent": chicle.DPSyn(**budget, partition="PUMA", generator="descent"),
                "Prism, PUMA as a column": chicle.Prism(**budget),
            }
            for name, mechanism in contenders.items():
                made, seconds = fitted(mechanism, private, seed, table if "DPSyn" in name else None)
                row: Row = {"mechanism": name, "epsilon": epsilon, "seed": seed, "s": seconds}
                rows.append({**row, "score": score(whole, made)})
                print(rows[-1], flush=True)
    order = np.random.default_rng(0).permutation(whole["PUMA"])
    shuffled = Records({**{name: whole[name] for name in COLUMNS}, "PUMA": order}, whole.domain)
    exact: Row = {"mechanism": "exact rows, PUMA permuted", "epsilon": "-", "seed": "-", "s": 0.0}
    rows.append({**exact, "score": score(whole, shuffled)})
    show(Table("NIST 2020 score, New York and Pennsylvania by PUMA", rows))


def fire(seeds: int, epsilons: list[float]) -> None:
    """Compare the recipe of [D18] for fire calls with mechanisms that choose by themselves."""
    real, _ = load(data_folder() / "fire")
    pairs, triples = chicle.pairs(real.domain), drawn(real, 3, 100)
    rows: list[Row] = []
    for epsilon in epsilons:
        budget: dict[str, Any] = {"epsilon": epsilon, "delta": 1e-11}
        for seed in range(seeds):
            contenders: dict[str, Mechanism] = {
                "DPSyn": chicle.DPSyn(**budget, **FIRE),
                "DPSyn, descent": chicle.DPSyn(**budget, **FIRE, generator="descent"),
                "DPSyn, no fields": chicle.DPSyn(**budget),
                "PrivSyn": chicle.PrivSyn(**budget),
                "Prism": chicle.Prism(**budget),
            }
            for name, mechanism in contenders.items():
                made, seconds = fitted(mechanism, real, seed)
                row: Row = {"mechanism": name, "epsilon": epsilon, "seed": seed, "s": seconds}
                rows.append(
                    {**row, "2-way": float(distance(real, made, pairs)), "3-way": float(distance(real, made, triples))}
                )
                print(rows[-1], flush=True)
    show(Table("San Francisco fire calls", rows))


def fitted(mechanism: Mechanism, real: Records, seed: int, public: object = None) -> tuple[Records, float]:
    """Return a table of a mechanism, and the seconds of processor time that it took."""
    start = time.process_time()
    made = mechanism.fit(real, public=public).sample(seed=seed)
    return made, time.process_time() - start


def drawn(real: Records, order: int, number: int) -> list[tuple[str, ...]]:
    rng = np.random.default_rng(0)
    return [tuple(sorted(map(str, rng.choice(list(real.domain), order, replace=False)))) for _ in range(number)]


def crossover() -> None:
    """Print the largest number of equal marginals for which Laplace noise is less."""
    rows: list[Row] = []
    for epsilon in (0.1, 1.0, 10.0):
        for delta in (1e-5, 1e-9, 1e-12):
            row: Row = {"epsilon": epsilon, "delta": delta}
            for how in ("gdp", "zcdp-basic"):
                mu = (2 * Budget(epsilon=epsilon, delta=delta, accounting=how).rho) ** 0.5
                most = max(
                    m
                    for m in range(1, 500)
                    if laplace_has_less_noise([9] * m, [1 / m] * m, [1 / m] * m, epsilon=epsilon, mu=mu)
                )
                row[how] = most
            rows.append(row)
    show(Table("Laplace noise is less up to so many marginals", rows))


if __name__ == "__main__":
    what, *more = sys.argv[1:] or ["crossover"]
    if what == "crossover":
        crossover()
    else:
        run = {"areas": areas, "fire": fire}[what]
        listed = [float(epsilon) for epsilon in more[1].split(",")] if len(more) > 1 else [0.1, 1.0, 10.0]
        run(int(more[0]) if more else 3, listed)
