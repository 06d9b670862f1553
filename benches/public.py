"""Public data: how much they help where they are right, and how little they hurt where they are wrong.

python benches/public.py adult [FITS] [EPSILONS] [TABLES]    # adult_public_pair, 15 attributes
python benches/public.py states [FITS] [EPSILONS] [TABLES]   # New Jersey beside 50,000 rows of New York, 24 attributes
python benches/public.py mechanisms [EPSILON]                # every mechanism on the first pair

Each line is a public table: the whole one, some of its columns, or a poisoned one. Errors are mean total variation
distances over all pairs and 300 triples. Ratios compare with the same mechanism without public data on the same noise,
that of a seed, so that they show what the public table does and nothing else; such a fit protects nobody. Epsilons, and
tables, are separated by commas; delta is 1e-9.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from tables import ADULT_ORDINAL, data_folder, distance

import chicle
from chicle import Ledger, PublicData, Records, Schema
from chicle.mechanisms.base import Mechanism
from chicle.privacy import TestNoise

DELTA = 1e-9
ROWS, TRIPLES = 50_000, 300
# fmt: off
STATES = [
    "AGEP", "SEX", "RAC1P", "HISP", "CIT", "ENG", "SCHL", "MAR", "ESR", "INDP",
    "OCCP", "COW", "WKHP", "JWMNP", "PINCP", "WAGP", "POVPIP", "HICOV", "PRIVCOV", "PUBCOV",
    "DIS", "MIL", "TEN", "HINCP",
]
# fmt: on
ELSEWHERE = "15"  # Hawaii

Poison = Callable[[Records], Records]


@dataclass(frozen=True)
class Pair:
    """A private table, what is public about it, and public rows of the same columns."""

    private: Records
    schema: Schema
    public: Records
    elsewhere: Records | None = None


def read(folder: str, file: str, names: list[str], where: dict[str, Any] | None = None) -> Records:
    """Return some columns of a table."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only where tables are at hand

    domain = json.loads((data_folder() / folder / "domain.json").read_text(encoding="utf-8"))
    filters = None if where is None else [(name, "==", value) for name, value in where.items()]
    table = pq.read_table(data_folder() / folder / file, columns=names, filters=filters)
    return Records(table, {name: domain[name] for name in names})


def load(which: str) -> Pair:
    """Return a pair of tables by name."""
    if which == "adult":
        folder = "adult_public_pair"
        names = list(json.loads((data_folder() / folder / "domain.json").read_text(encoding="utf-8")))
        private, public = (read(folder, f"{part}.parquet", names) for part in ("private", "public"))
        ordinal = [name for name in ADULT_ORDINAL if name in names]
        return Pair(private, Schema.from_cardinalities(private.domain, ordinal=ordinal), public)
    values = json.loads((data_folder() / "acs2024_ny" / "values.json").read_text(encoding="utf-8"))
    here, there = (read(f"acs2024_{state}", "data.parquet", STATES) for state in ("ny", "nj"))
    kept = np.random.default_rng(0).permutation(len(here))[:ROWS]
    private = Records({name: here[name][kept] for name in here}, here.domain)
    ordinal = [name for name in STATES if isinstance(values.get(name), dict)]
    return Pair(private, Schema.from_cardinalities(private.domain, ordinal=ordinal), there, far())


def far() -> Records | None:
    """Return the rows of a state that is not like New York, if they are at hand."""
    values = data_folder() / "acs2024_us49" / "values.json"
    if not values.exists():
        return None
    codes = json.loads(values.read_text(encoding="utf-8"))["STATE"]
    return read("acs2024_us49", "data.parquet", STATES, {"STATE": codes.index(ELSEWHERE)})


def tables(pair: Pair) -> dict[str, Records]:
    """Return public tables by name: the real one, parts of it, and poisoned ones."""
    real, rng = pair.public, np.random.default_rng(0)
    names, n = list(real.domain), len(real)

    def made(column: Callable[[str], Any], every: int = 1) -> Records:
        """Return the table with every second column, or every one, made anew."""
        return Records({a: column(a) if i % every == every - 1 else real[a] for i, a in enumerate(names)}, real.domain)

    def part(kept: list[str]) -> Records:
        return Records({name: real[name] for name in kept}, {name: real.domain[name] for name in kept})

    def recoded(name: str) -> Any:  # noqa: ANN401 - codes
        return rng.permutation(real.domain[name])[real[name]]

    repeated = np.concatenate([np.arange(n), np.repeat(rng.choice(n, n // 10, replace=False), 9)])
    found = {
        "public": real,
        "half the columns": part(names[::2]),
        "a tenth of the rows": Records({name: real[name][: n // 10] for name in names}, real.domain),
        "permuted": made(lambda name: rng.permutation(real[name])),
        "half permuted": made(lambda name: rng.permutation(real[name]), 2),
        "sorted": made(lambda name: np.sort(real[name])),
        "half sorted": made(lambda name: np.sort(real[name]), 2),
        "recoded": made(recoded),
        "half recoded": made(recoded, 2),
        "uniform": made(lambda name: rng.integers(real.domain[name], size=n)),
        "a tenth ten times": Records({name: real[name][repeated] for name in names}, real.domain),
    }
    return found if pair.elsewhere is None else found | {"another state": pair.elsewhere}


def errors(real: Records, made: Records) -> tuple[float, float]:
    """Return the mean distances of all pairs and of some triples."""
    every = list(combinations(real.domain, 3))
    drawn = np.random.default_rng(7).choice(len(every), min(TRIPLES, len(every)), replace=False)
    triples = [every[i] for i in drawn.tolist()]
    return distance(real, made, list(combinations(real.domain, 2))), distance(real, made, triples)


def measure(pair: Pair, make: Callable[..., Mechanism], epsilon: float, fits: int, public: Any) -> tuple[Any, str]:  # noqa: ANN401
    """Return mean errors and seconds, and what was believed."""
    found, began, told = [], time.process_time(), ""
    spent = 0.0
    for fit in range(fits):
        began = time.process_time()
        synth = make(epsilon=epsilon, delta=DELTA, threads=1)
        ledger = Ledger(synth.budget, noise=TestNoise(fit))
        synth.fit(pair.private, pair.schema, public=public, ledger=ledger)
        made = synth.sample(seed=fit)
        spent += time.process_time() - began
        found.append(errors(pair.private, made))
        told = next((note for note in synth.release_.notes if note.startswith("public data: ")), "")
    return (*np.mean(found, axis=0), spent / fits), told.removeprefix("public data: ")


def say(name: str, now: Any, before: Any, told: str) -> None:  # noqa: ANN401 - numbers
    two, three, seconds = now
    ratios = f"{two / before[0]:.3f} / {three / before[1]:.3f}"
    print(f"{name:26} {two:.4f} / {three:.4f}   ratio {ratios}   {seconds:.1f} s   {told}", flush=True)


def print_pair(which: str, fits: str = "3", epsilons: str = "0.2,1,5", chosen: str = "") -> None:
    """Print the errors beside each public table, for each epsilon."""
    pair = load(which)
    print(f"{which}: {len(pair.private):,} rows x {len(pair.private.domain)}, public {len(pair.public):,}")
    two, three = errors(pair.private, pair.public)
    print(f"the public table itself: {two:.4f} / {three:.4f}")
    for epsilon in map(float, epsilons.split(",")):
        before, _ = measure(pair, chicle.Prism, epsilon, int(fits), None)
        say(f"epsilon {epsilon:g}, Prism", before, before, "")
        for name, public in tables(pair).items():
            if not chosen or name in chosen.split(","):
                say(name, *_beside(pair, epsilon, int(fits), PublicData(public), before))
        if not chosen:
            trusted = PublicData(pair.public, role="trusted")
            say("public, trusted", *_beside(pair, epsilon, int(fits), trusted, before))


def _beside(pair: Pair, epsilon: float, fits: int, public: PublicData, before: Any) -> tuple[Any, Any, str]:  # noqa: ANN401
    now, told = measure(pair, chicle.Prism, epsilon, fits, public)
    return now, before, told


def print_mechanisms(epsilon: str = "0.2") -> None:
    """Print what public rows do for every mechanism, one fit each."""
    pair = load("adult")
    for make in (chicle.Prism, chicle.AIM, chicle.PrivSyn, chicle.MST, chicle.PrivBayes, chicle.Gaussian):
        before, _ = measure(pair, make, float(epsilon), 2, None)
        now, told = measure(pair, make, float(epsilon), 2, PublicData(pair.public))
        say(f"{make.__name__} {before[0]:.4f} / {before[1]:.4f}", now, before, told)


if __name__ == "__main__":
    verb, *more = sys.argv[1:] or ["adult"]
    if verb == "mechanisms":
        print_mechanisms(*more)
    else:
        print_pair(verb, *more)
