"""Completed tables beside plain samples: how far two- and three-way tables of the records are from the real ones.

    python benches/conditional.py [EPSILON] [RELEASES]

Adult; five columns are given for the same people. `plain` is a whole synthetic table, `given` a completed one, `hot
deck` a completed one without the two sweeps of descent. Then the rows of another population are given, with the
weights of the release raked to it, and without. Figures are mean total variation distances, over releases.
"""

from __future__ import annotations

import itertools
import sys
from contextlib import ExitStack
from unittest import mock

import numpy as np
from tables import data_folder, distance, load

import chicle
from chicle import Clique, Records, Release
from chicle.releases import conditional

GIVEN = ("age", "sex", "education-num", "race", "marital-status")
TRIPLES = 150


def completed(release: Release, real: Records, *, seed: int, descent: bool = True, weights: bool = True) -> Records:
    """Return the given columns of some people with the others added."""
    kept = {name: real[name] for name in GIVEN}
    with ExitStack() as off:
        if not descent:
            off.enter_context(mock.patch.object(conditional, "_descended", lambda _, made, *_args, **_options: made))
        if not weights:
            off.enter_context(
                mock.patch.object(conditional, "_raked", lambda pool, *_: np.full(len(pool), 1 / len(pool)))
            )
        made: Records = release.sample(given=Records(kept, {name: real.domain[name] for name in GIVEN}), seed=seed)
    return made


def main(epsilon: float, releases: int) -> None:
    real, schema = load(data_folder() / "adult")
    added = [name for name in real.domain if name not in GIVEN]
    triples: list[Clique] = [(g, *pair) for g in GIVEN for pair in itertools.combinations(added, 2)]
    triples = [triples[i] for i in np.random.default_rng(0).permutation(len(triples))[:TRIPLES]]
    cliques: dict[str, list[Clique]] = {
        "pairs of a given and an added column": list(itertools.product(GIVEN, added)),
        "pairs of added columns": list(itertools.combinations(added, 2)),
        "triples of a given and two added columns": triples,
    }
    cliques = {said: [real.domain.check(one) for one in some] for said, some in cliques.items()}
    other = np.flatnonzero((real["sex"] == 0) & (real["age"] > 25))
    others = Records({name: real[name][other] for name in real}, real.domain)
    found: dict[str, list[list[float]]] = {}
    for seed in range(releases):
        release = chicle.Prism(epsilon=epsilon, delta=1e-9).fit(real, schema).release_
        made = {
            "plain": release.sample(len(real), seed=seed),
            "given": completed(release, real, seed=seed),
            "hot deck": completed(release, real, seed=seed, descent=False),
        }
        for said, some in cliques.items():
            found.setdefault(said, []).append([distance(real, records, some) for records in made.values()])
        made = {
            "with weights": completed(release, others, seed=seed),
            "without": completed(release, others, seed=seed, weights=False),
            "hot deck": completed(release, others, seed=seed, descent=False),
        }
        pairs = [pair for some in list(cliques.values())[:2] for pair in some]
        said = f"another population, {len(others):,} rows: pairs"
        found.setdefault(said, []).append([distance(others, records, pairs) for records in made.values()])
    for said, rows in found.items():
        heads = ("with weights", "without", "hot deck") if "another" in said else ("plain", "given", "hot deck")
        means = np.mean(rows, axis=0)
        print(f"{said:45}", "  ".join(f"{head} {mean:.4f}" for head, mean in zip(heads, means, strict=True)))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0, int(sys.argv[2]) if len(sys.argv) > 2 else 3)
