"""The whole workflow on built-in data: `make demo`, or `python -m chicle.demo`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import TypeVar

import numpy as np

from chicle.counting.records import Records, count
from chicle.datasets import census as simulated_census
from chicle.domain import Clique, Domain, pairs
from chicle.dossier import write_dossier
from chicle.mechanisms import Independent, Prism, PrivSyn
from chicle.reports import report
from chicle.schema import Schema

PEOPLE = 200_000
ATTRIBUTES = 15
ORDINAL = ("AGE", "EDUC", "INCWAGE", "NCHILD")
TRIPLES = 100

_T = TypeVar("_T")


def main(folder: str | Path = "chicle-demo") -> None:
    """Simulate a census, make private synthetic tables in several ways, compare them, and report on one.

    Parameters
    ----------
    folder
        The folder of the reports.
    """
    say = sys.stdout.write
    census, seconds = _timed(lambda: simulated_census(PEOPLE, d=ATTRIBUTES))
    domain = census.domain
    schema = Schema.from_cardinalities(domain, ordinal=ORDINAL)
    say(f"1. A simulated census: {PEOPLE:,} people, {len(domain)} attributes ({seconds:.2f} s)\n   {domain}\n\n")

    synth = Prism(epsilon=1, delta=1e-9)
    _, fitting = _timed(lambda: synth.fit(census, schema))
    say(f"2. Prism at epsilon 1 selects and measures marginals ({fitting:.2f} s). What was spent:\n\n")
    say("".join(f"   {line}\n" for line in repr(synth.ledger_).splitlines()))

    synthetic, seconds = _timed(lambda: synth.sample(seed=0))
    say(f"\n3. A synthetic table of {len(synthetic):,} rows, made from the measurements ({seconds:.2f} s)\n\n")
    names = list(domain)[:10]
    say("   " + "  ".join(f"{name:>8}" for name in names) + "  ...\n")
    for row in range(5):
        say("   " + "  ".join(f"{synthetic[name][row]:>8}" for name in names) + "  ...\n")

    say("\n4. Mean total variation distance to the census (NOT private: it looks at the real table)\n\n")
    say(f"   {'':26}  1-way   2-way   3-way  seconds\n")
    rows = np.random.default_rng(0).integers(PEOPLE, size=PEOPLE)
    tables: dict[str, Callable[[], Records]] = {
        "Independent": lambda: Independent(epsilon=1, delta=1e-9).fit(census, schema).sample(seed=0),
        "PrivSyn, GUM": lambda: PrivSyn(epsilon=1, delta=1e-9).fit(census, schema).sample(seed=0),
        "Prism": lambda: synthetic,
        "the census resampled": lambda: Records({name: census[name][rows] for name in domain}, domain),
    }
    for label, make in tables.items():
        table, taken = _timed(make)
        errors = [_distance(census, table, cliques) for cliques in _workload(domain)]
        shown = "  ".join(f"{error:.4f}" for error in errors)
        say(f"   {label:26}  {shown}  {seconds if table is synthetic else taken:7.2f}\n")
    say("\n   The last line is the sampling error of a table of this size, which no synthetic table need beat.\n")

    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    title, release = "A simulated census", synth.release_
    took = f"{fitting:.2f} s to select and measure, {seconds:.2f} s to draw the table"
    public, taken = _timed(lambda: report(place / "public.html", release, title=title))
    say(f"\n5. Reports: open them in a browser\n\n   {public}: safe to publish ({taken:.2f} s)\n")
    private, taken = _timed(
        lambda: report(place / "private.html", release, synthetic, real=census, title=title, remarks=[took])
    )
    say(f"   {private}: NOT private: it compares with the census ({taken:.2f} s)\n")

    release.save(place / "census.chicle")
    pages, taken = _timed(
        lambda: write_dossier(place / "census.chicle", place / "dossier", table="A simulated census", force=True)
    )
    say(f"\n6. A dossier for a review board\n\n   {pages[1]}: safe to publish ({taken:.2f} s)\n")


def _workload(domain: Domain) -> list[list[Clique]]:
    triples = list(combinations(domain, 3))
    some = np.random.default_rng(0).choice(len(triples), TRIPLES, replace=False)
    return [[(name,) for name in domain], pairs(domain), [triples[i] for i in some]]


def _timed(work: Callable[[], _T]) -> tuple[_T, float]:
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def _distance(real: Records, synthetic: Records, cliques: Sequence[Clique]) -> float:
    tables = zip(count(real, cliques), count(synthetic, cliques), strict=True)
    return float(np.mean([np.abs(a / len(real) - b / len(synthetic)).sum() / 2 for a, b in tables]))


if __name__ == "__main__":
    main()
