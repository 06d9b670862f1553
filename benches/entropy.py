"""Maximum entropy against descent, after Prism's contrasts: persistent Gibbs chains, then a short descent; numpy.

python benches/entropy.py [SEEDS] [EPSILONS]      # e.g. 2 3,5

Tables are 10 attributes cut in two of four tables, 10,000 rows each. The records are the chains of a log-linear model
with an effect for each attribute, pair and triple that was measured. A sweep redraws every attribute of every record
from its conditional, then moves each effect by its residual. `targets` are those that Prism's descent has; `raw` are
the contrasts as released, each effect held back by its noise. Chains alone have the sampling noise of random records.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from small_domains import DELTA, cut
from tables import distance

import chicle
from chicle import Clique, PrismOptions, Records, Schema
from chicle.models import ContrastModel
from chicle.models.draws import draw_independent

Floats = npt.NDArray[np.float64]
Effect = tuple[Clique, float, float]
"""A clique, the mean of the product of its attributes (1 for code 0, else -1), and the variance of its noise."""

SWEEPS, STEP = 250, 0.3


def effect(table: npt.ArrayLike) -> float:
    values = np.asarray(table, dtype=np.float64)
    return float((values * reduce(np.multiply.outer, [np.array([1.0, -1.0])] * values.ndim)).sum())


def chains(start: Records, effects: Sequence[Effect], *, hold: bool, seed: int) -> Records:
    """Return the records of the chains after all sweeps."""
    rng, names, n = np.random.default_rng(seed), list(start.domain), len(start)
    rows = [1.0 - 2.0 * start[name] for name in names]
    places = [tuple(names.index(name) for name in clique) for clique, _, _ in effects]
    means, noise = (np.array([one[i] for one in effects]) for i in (1, 2))
    held = n * noise * np.array([len(place) > 1 for place in places]) if hold else np.zeros(len(effects))
    weights = np.array([np.arctanh(np.clip(mean, -0.99, 0.99)) if len(c) == 1 else 0.0 for c, mean, _ in effects])
    products = [[place[:at] + place[at + 1 :] for at in range(len(place))] for place in places]
    of = [[(e, products[e][p.index(i)]) for e, p in enumerate(places) if i in p] for i in range(len(names))]
    for sweep in range(SWEEPS):
        for i in rng.permutation(len(names)):
            logit = np.zeros(n)
            for e, others in of[i]:
                logit += reduce(np.multiply, [rows[j] for j in others], weights[e])
            rows[i] = np.where(rng.random(n) < 1 / (1 + np.exp(np.clip(-2 * logit, -40, 40))), 1.0, -1.0)
        now = np.array([reduce(np.multiply, [rows[j] for j in place]).mean() for place in places])
        step = STEP / (1 + sweep / 50) / (np.maximum(1 - now**2, 0.03) + held)
        weights += step * (means - now - held * weights)
    return Records({name: (rows[i] < 0).astype(np.uint8) for i, name in enumerate(names)}, start.domain)


def trial(real: Records, epsilon: float, seed: int) -> dict[str, list[float]]:
    """Return errors of pairs and triples, by who made the records."""
    n, domain = len(real), real.domain
    options = PrismOptions(contrasts=True)
    release = (
        chicle.Prism(epsilon=epsilon, delta=DELTA, options=options)
        .fit(real, Schema.from_cardinalities(domain))
        .release_
    )
    model = release.model
    if not isinstance(model, ContrastModel):
        raise TypeError("contrasts were not measured")
    tables = model.targets
    total = release.total
    scale = {table.clique: table.sigma**2 * table.values.size / total**2 for table in tables}
    targets = [(table.clique, effect(table.values) / total, scale[table.clique]) for table in tables]
    released = {one.clique: effect(one.residual()) / total for one in release.transcript.contrasts}
    raw = [(clique, released[clique] if len(clique) > 1 else mean, noise) for clique, mean, noise in targets]
    made: dict[str, Any] = {"descent": model.records(n, seed)}
    begin = draw_independent(tables, domain, n, seed=seed)
    for name, effects, hold in (("targets", targets, False), ("raw", raw, True)):
        made[f"chains, {name}"] = drawn = chains(begin, effects, hold=hold, seed=seed)
        made[f"chains, {name}, then descent"] = chicle.descend(
            tables, domain, start=drawn, sweeps=8, threshold=0.3, significance=0.35, seed=seed
        )
    cliques = [list(combinations(domain, order)) for order in (2, 3)]
    return {name: [distance(real, records, some) for some in cliques] for name, records in made.items()}


if __name__ == "__main__":
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    for folder, skip in (("acs2018_income", 0), ("acs2024_ny", 16), ("msnbc", 0), ("acs2024_nj", 0)):
        table = cut(folder, 10_000, 10, skip=skip)
        for epsilon in map(float, (sys.argv[2] if len(sys.argv) > 2 else "3,5").split(",")):
            runs = [trial(table, epsilon, seed) for seed in range(seeds)]
            told = (
                f"{name} {' / '.join(f'{x:.5f}' for x in np.mean([r[name] for r in runs], axis=0))}" for name in runs[0]
            )
            print(f"{folder}, epsilon {epsilon:g}: {'; '.join(told)}", flush=True)
