"""How far cliques that AIM did not measure may be from what it knew: told by how it chose, at no further cost.

With the exponential mechanism ([A] Theorem 4): that a clique was not chosen says that its score was hardly above that
of the one that was. In round t, with the weights w, penalties p, distances d of all candidates C and the chosen one c,
and ``s = 2 Delta / epsilon``, where Delta is the largest weight times the k rows of a person,

    w_r (d_r - p_r)  <=  w_c (d_c - p_c) + s (log |C| + x)        with probability 1 - e^-x,

and d_c is at most the noisy table's distance plus ``y sigma sqrt(cells)`` with probability ``1 - e^(-y^2/2)``. The risk
is divided evenly between the two. One round serves for each clique, the last in which it was a candidate, whatever the
bound turns out to be: to take the smallest of several would not be covered.

With scores that were released themselves: d_r is at most the noisy score plus a quantile of its noise. A clique whose
score came out low by chance is less likely to be measured, so low ones are frequent among those that were not: a
quarter of the risk is taken, which suffices for cliques that are left unmeasured in at least a quarter of all fits.

Both are distances from what the model of that round expects; a table made later is off by at most its own distance
from that more ([A] Corollary 2). Measurements of a release make the same models again (`ModelRounds.replay`,
`reference_records`), so nothing but the numbers of the rounds is kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle.domain import Clique
from chicle.measurements.measurement import Measurement, estimate_total
from chicle.measurements.merges import compress
from chicle.mechanisms.aim_candidates import penalty
from chicle.mechanisms.aim_model import ModelRounds, Round
from chicle.mechanisms.aim_records import expected_counts, reference_records
from chicle.mechanisms.prism_options import PrismOptions
from chicle.releases.bounds import Distance
from chicle.schema import Schema
from chicle.selection.indif import expected_pair
from chicle.selection.worst import whole_weights

__all__ = ["distances_of_choices", "distances_of_scores"]

Floats = npt.NDArray[np.float64]


def distances_of_choices(
    run: ModelRounds,
    measurements: Sequence[Measurement],
    rounds: Sequence[Round],
    cliques: Sequence[Clique],
    *,
    max_records_per_person: int,
) -> list[Distance | None]:
    """Return what choices by the exponential mechanism tell of cliques; None of those that were never candidates."""
    domain = run.domain
    singles = len(measurements) - len(rounds)
    asked = [(clique, domain.clique(clique)) for clique in cliques]
    wanted = {named for _, named in asked}
    openings = run.openings()
    open_to, last = list[list[Clique]](), dict[Clique, int]()
    for t, one in enumerate(rounds):
        at = openings.after(measurements[: singles + t], one.sigma, one.part)
        open_to.append(at.cliques)
        # A release of another version, whose candidates were others, tells nothing.
        asked_here = [clique for clique in at.cliques if clique in wanted] if one.clique in at.cliques else []
        last.update({clique: t for clique, fits in zip(asked_here, at.fit(asked_here), strict=True) if fits})
    found: dict[Clique, Distance] = {}
    for t, model in enumerate(run.replay(measurements, singles) if last else ()):
        here = [clique for clique, at in last.items() if at == t]
        if not here:
            continue
        one, candidates = rounds[t], open_to[t]
        weights = dict(zip(candidates, whole_weights([run.weight(c) for c in candidates]).tolist(), strict=True))
        apart = float(np.abs(model.marginal(one.clique) - measurements[singles + t].values).sum())
        spread = one.sigma * math.sqrt(domain.cells(one.clique))
        step = 2 * max(weights.values()) * max_records_per_person / one.epsilon
        ahead = weights[one.clique] * (apart - penalty(one.clique, one.sigma, domain))
        for clique in here:
            limit = partial(
                _by_choice,
                ahead / weights[clique] + penalty(clique, one.sigma, domain),
                weights[one.clique] * spread / weights[clique],
                step / weights[clique],
                math.log(len(candidates)),
            )
            found[clique] = Distance(clique, model.marginal(clique), limit)
    return [found[named].in_order_of(clique) if named in found else None for clique, named in asked]


def _by_choice(near: float, spread: float, step: float, log: float, risk: float) -> float:
    """Return what a distance exceeds with probability `risk` at most."""
    return max(near + spread * math.sqrt(2 * math.log(2 / risk)) + step * (log + math.log(2 / risk)), 0.0)


def distances_of_scores(
    schema: Schema,
    measurements: Sequence[Measurement],
    scores: Sequence[Mapping[str, Any]],
    options: PrismOptions,
    cliques: Sequence[Clique],
    *,
    threads: int | None = None,
) -> list[Distance | None]:
    """Return what released scores tell of cliques, in the values that were kept; None of those that have none.

    Parameters
    ----------
    schema, measurements, options
        Of the release.
    scores
        For each round the cliques as positions of attributes, values and sigma in records, and `after` how many
        tables they were compared with the records of; the first with the product of the 1-ways.
    cliques
        What is asked for.
    threads
        How many threads to use; all there are, if ``None``.
    """
    if not scores:
        return [None] * len(cliques)
    domain = schema.domain
    one_ways, tables = measurements[1 : len(domain) + 1], measurements[len(domain) + 1 :]
    total = max(estimate_total([measurements[0], *one_ways]), 1)
    compression = compress(one_ways, domain, theta=options.theta, ordinal=schema.ordinal, vanish=False)
    merged = {
        name: compression.codes(name).astype(np.uint32) for name in domain if compression.domain[name] != domain[name]
    }
    names = list(domain)
    asked = [(clique, domain.clique(clique)) for clique in cliques]
    wanted = {named for _, named in asked}
    found: dict[Clique, Distance] = {}
    # The last round in which a clique was scored serves: later ones replace earlier ones.
    for one in scores:
        scored = {
            tuple(names[i] for i in places): float(v) for places, v in zip(one["cliques"], one["values"], strict=True)
        }
        here = sorted(wanted & scored.keys())
        if not here:
            continue
        if one["after"]:
            made = reference_records(one_ways, tables[: one["after"]], compression, total, options, threads=threads)
            expected = expected_counts(made, here, total, threads)
        else:
            expected = [expected_pair(clique, compression.one_ways, compression.domain) for clique in here]
        for clique, table in zip(here, expected, strict=True):
            limit = partial(_by_score, scored[clique], float(one["sigma"]))
            found[clique] = Distance(clique, table, limit, {n: merged[n] for n in clique if n in merged})
    return [found[named].in_order_of(clique) if named in found else None for clique, named in asked]


def _by_score(score: float, sigma: float, risk: float) -> float:
    """Return what a distance exceeds with probability `risk` at most."""
    return max(score + sigma * NormalDist().inv_cdf(1 - risk / 4), 0.0)
