"""Contrasts against whole tables, as measurements of the same sets at the same budget.

python benches/residual.py noise             # closed form: expected L1 noise of all tables of a workload, by scheme
python benches/residual.py prism [SEEDS]     # Prism's sets on Adult: by tables and 1-ways, or by contrasts

`noise` needs no data: overlapping tables alone, the same combined by generalised least squares (which is exact here:
residuals are orthogonal), and contrasts with their best shares. `prism` fits Prism on Adult without levels, takes the
sets it chose, and spends the same rho on each way of measuring them; both go to the same model. Noise is the system's.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from itertools import combinations
from statistics import fmean, stdev
from typing import Any

from tables import data_folder, distance, load

import chicle
from chicle import Budget, Clique, Desk, Domain, Ledger, Records, Workload
from chicle.models.denoised import DenoisedModel
from chicle.models.descent import DescentModel
from chicle.privacy.budget import budget_shares
from chicle.selection.residual_shares import Minimise, residual_shares

ADULT = Domain(dict(zip("abcdefghijklmn", (100, 9, 100, 16, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42), strict=True)))


def noise() -> None:
    """Print the expected L1 noise of all tables, relative to that of overlapping tables alone."""
    binary = Domain({f"x{i}": 2 for i in range(14)})
    for name, domain, k in (
        ("14 binary, pairs", binary, 2),
        ("14 binary, triples", binary, 3),
        ("sizes of Adult, pairs", ADULT, 2),
    ):
        cliques = list(Workload.all_kway(domain, k))
        cells = [float(domain.cells(clique)) for clique in cliques]
        shares = dict(zip(cliques, budget_shares([int(c) for c in cells]).tolist(), strict=True))
        alone = sum(c * math.sqrt(1 / (2 * shares[q])) for q, c in zip(cliques, cells, strict=True))
        combined = sum(c * math.sqrt(v) for c, v in zip(cells, gls(shares, domain).values(), strict=True))
        best = residual_shares(dict.fromkeys(cliques, 1.0), domain, minimise="error").tables
        contrasts = sum(c * math.sqrt(best[q]) for q, c in zip(cliques, cells, strict=True))
        print(
            f"{name}: tables 1, tables by least squares {combined / alone:.3f}, contrasts {contrasts / alone:.3f}; "
            f"contrasts have {combined / contrasts:.2f} times less noise than least squares"
        )


def gls(shares: Mapping[Clique, float], domain: Domain) -> dict[Clique, float]:
    """Return the variance of a cell of each table at rho 1, after all tables have been combined.

    A table with variance v in each cell knows residual B with precision n_B / (n_A v).
    """
    precision: dict[Clique, float] = {}
    for clique, share in shares.items():
        for size in range(len(clique) + 1):
            for part in combinations(clique, size):
                known = domain.cells(part) / domain.cells(clique) * 2 * share
                precision[part] = precision.get(part, 0.0) + known
    found = {}
    for clique in shares:
        total = 0.0
        for size in range(len(clique) + 1):
            for part in combinations(clique, size):
                inside = math.prod(1 - 1 / domain[name] for name in part)
                outside = math.prod(domain[name] for name in clique if name not in part)
                total += inside / outside**2 / precision[part]
        found[clique] = total
    return found


def prism(seeds: int) -> None:
    """Print the errors of Prism's model on the same sets, measured by tables and by contrasts."""
    real, schema = load(data_folder() / "adult")
    pairs, triples = chicle.pairs(real.domain), list(Workload.all_kway(real.domain, 3))[::3]
    for epsilon in (0.2, 1.0, 5.0):
        found: dict[str, list[tuple[float, float]]] = {}
        for seed in range(seeds):
            options = chicle.PrismOptions(sizes=(), theta=0.0)
            synth = chicle.Prism(epsilon=epsilon, delta=1e-9, options=options).fit(real, schema)
            events = [event for event in synth.ledger_.events if event.clique is not None]
            sets = [one.clique for one in synth.release_.measurements if len(one.clique) > 1]
            ones = [event for event in events if len(event.clique or ()) == 1]
            tables = [event for event in events if len(event.clique or ()) > 1]
            rho = [math.fsum(event.rho("gdp") for event in some) for some in (ones, tables)]
            for how, targets in ways(real, sets, *rho).items():
                for name, model in (("denoised", DenoisedModel()), ("descent", DescentModel())):
                    made = model.fit(targets, real.domain).records(len(real), seed)
                    errors = distance(real, made, pairs), distance(real, made, triples)
                    found.setdefault(f"{how}, {name}", []).append(errors)
        for how, made_errors in found.items():
            two, three = zip(*made_errors, strict=True)
            spread = stdev(three) / math.sqrt(len(three)) if len(three) > 1 else math.nan
            print(f"epsilon {epsilon:g}, {how}: {fmean(two):.4f} / {fmean(three):.4f} (se {spread:.4f})", flush=True)


def ways(real: Records, sets: list[Clique], singles: float, tables: float) -> dict[str, list[Any]]:
    """Return the measurements of both ways, for the same rho."""
    total = 0.001 * (singles + tables)

    def desk() -> Desk:
        return Desk(real, Ledger(Budget(rho=(singles + tables + total) * 1.0001)))

    whole, contrasts = desk(), desk()
    whole.measure([()], rho=total)
    whole.measure_one_ways(rho=singles)
    whole.measure(sets, rho=tables)
    found = {"tables": whole.targets}
    names: list[Clique] = [(name,) for name in real.domain]
    minimised: tuple[Minimise, ...] = ("error", "variance")
    for minimise in minimised:
        contrasts = desk()
        contrasts.measure([()], rho=total)
        # 1-ways get the weight that the margins of sets do not give them.
        weights: dict[Clique, float] = dict.fromkeys([*sets, *names], 1.0)
        shares = residual_shares(weights, real.domain, minimise=minimise).shares
        parts = {clique: share for clique, share in shares.items() if clique}
        scale = math.fsum(parts.values())
        contrasts.measure_contrasts(parts, rho=singles + tables, shares=[share / scale for share in parts.values()])
        found[f"contrasts, least {minimise}"] = contrasts.targets
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["noise"]:
        noise()
    else:
        prism(int(sys.argv[2]) if len(sys.argv) > 2 else 3)
