"""The main job on built-in data, end to end: `make demo`, or `python -m chicle.demo`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

import chicle
from chicle import Budget, Clique, Ledger, Records
from chicle.privacy import calibrate

PEOPLE = 200_000
ATTRIBUTES = 15

_T = TypeVar("_T")


def main() -> None:
    """Simulate a census, release its 1-way marginals privately, synthesise from them, and say how good that is."""
    say = sys.stdout.write
    census, seconds = _timed(lambda: chicle.datasets.census(PEOPLE, d=ATTRIBUTES))
    domain = census.domain
    say(f"1. A simulated census: {PEOPLE:,} people, {len(domain)} attributes ({seconds:.2f} s)\n   {domain}\n\n")

    ledger = Ledger(Budget(epsilon=1, delta=1e-9))
    one_ways = [(name,) for name in domain]
    # Shares ~ cells^(2/3) make the summed error of all cells smallest ([P] equation 1).
    shares = np.array([domain.cells(clique) for clique in one_ways]) ** (2 / 3)
    sigmas = [calibrate(ledger.remaining * share) for share in shares / shares.sum()]
    measurements, seconds = _timed(lambda: chicle.measure(census, one_ways, sigmas, ledger))
    say(f"2. Its 1-way marginals, counted and released with exact noise ({seconds:.2f} s). What was spent:\n\n")
    say("".join(f"   {line}\n" for line in repr(ledger).splitlines()))

    synthetic, seconds = _timed(lambda: chicle.independent(measurements, domain, seed=0))
    say(f"\n3. A synthetic table of {len(synthetic):,} rows, drawn from the released marginals ({seconds:.2f} s)\n\n")
    names = list(domain)[:10]
    say("   " + "  ".join(f"{name:>8}" for name in names) + "  ...\n")
    for row in range(5):
        say("   " + "  ".join(f"{synthetic[name][row]:>8}" for name in names) + "  ...\n")

    rng = np.random.default_rng(0)
    rows = rng.integers(len(census), size=len(census))
    resampled = Records({name: census[name][rows] for name in domain}, domain)
    pairs = chicle.pairs(domain)
    say("\n4. Mean total variation distance to the census (NOT private: it looks at the real table)\n\n")
    say(f"   {'':26}  1-way   2-way\n")
    for label, table in (("independent, epsilon = 1", synthetic), ("the census resampled", resampled)):
        errors = [_distance(census, table, cliques) for cliques in (one_ways, pairs)]
        say(f"   {label:26}  {errors[0]:.4f}  {errors[1]:.4f}\n")
    say("\n   The second line is the sampling error of a table of this size. Independent attributes cannot follow\n")
    say("   pairs; that is what the mechanisms built on these parts are for.\n")


def _timed(work: Callable[[], _T]) -> tuple[_T, float]:
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def _distance(real: Records, synthetic: Records, cliques: Sequence[Clique]) -> float:
    tables = zip(chicle.count(real, cliques), chicle.count(synthetic, cliques), strict=True)
    return float(np.mean([np.abs(a / len(real) - b / len(synthetic)).sum() / 2 for a, b in tables]))


if __name__ == "__main__":
    main()
