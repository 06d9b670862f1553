"""Bounds on how far unmeasured cliques are from what was expected of them, from releases alone: free.

A released score of a clique is such a distance, with known noise: the distance is at most the noisy score plus a
quantile of its noise. A clique whose score came out low by chance is less likely to be measured, so low ones are
frequent among those that were not: a quarter of the risk is taken, which suffices for cliques that are left unmeasured
in at least a quarter of all fits.

The distance is from what was expected at that time: independence for the first scores, the model of the measurements so
far for later ones. To bound a table made later, its own distance from that expectation is added ([A] Corollary 2). The
transcript keeps the order of releases, and a model fitted again to the same measurements expects the same, so nothing
else is kept.

Where the contrasts of a clique were measured, and of all in it, its table is known with noise of known variance, and
that bounds it (`distances_of_contrasts`).

This holds for every mechanism whose transcript has scores against released values, or contrasts. Bounds from choices
by the exponential mechanism are up to the mechanism (`mechanisms.aim_model`).
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Protocol

import numpy as np

from chicle.domain import Clique
from chicle.measurements.merges import Merge
from chicle.measurements.scores import independence
from chicle.releases.bounds import Distance

if TYPE_CHECKING:
    from chicle.releases.release import Release

__all__ = ["distances_of", "distances_of_contrasts", "distances_of_scores", "register_bounds"]


class _Known(Protocol):
    """A class of mechanisms that bounds unmeasured cliques of its releases."""

    def unmeasured(
        self, release: Release, cliques: Sequence[Clique], *, threads: int | None = None
    ) -> list[Distance | None]: ...


_MECHANISMS: dict[str, _Known] = {}


def register_bounds(name: str, mechanism: _Known) -> None:
    """Register a class of mechanisms under its name."""
    _MECHANISMS[name] = mechanism


def distances_of(release: Release, cliques: Sequence[Clique], *, threads: int | None = None) -> list[Distance | None]:
    """Return the bounds of cliques that no measurement holds; None where there is none.

    Parameters
    ----------
    release
        A release; there are no bounds if its mechanism is not registered here.
    cliques
        The cliques to bound.
    threads
        How many threads to use; all there are, if ``None``.
    """
    # chicle's own mechanisms register themselves when they are imported, which loading a release does not need.
    importlib.import_module("chicle.mechanisms")
    if release.mechanism not in _MECHANISMS:
        return [None] * len(cliques)
    return _MECHANISMS[release.mechanism].unmeasured(release, cliques, threads=threads)


def distances_of_scores(
    release: Release, cliques: Sequence[Clique], *, threads: int | None = None
) -> list[Distance | None]:
    """Return the bounds of cliques by their released scores, over merged values; None for cliques without a score."""
    domain = release.domain
    asked = [(clique, domain.clique(clique)) for clique in cliques]
    wanted = {named for _, named in asked}
    found: dict[Clique, Distance] = {}
    # The last vector in which a clique was scored serves: later ones replace earlier ones.
    for scores, before, merge in release.transcript.before_scores():
        if scores.reference != "released":
            continue
        pairs = zip(scores.queries, scores.values.tolist(), strict=True)
        values = {one: value for one, value in pairs if isinstance(one, tuple)}
        here = sorted(wanted & values.keys())
        if not here:
            continue
        merged = Merge(domain) if merge is None else merge
        measured = [one for one in before if one.whole]
        tables = [one for one in measured if len(one.clique) > 1]
        if tables:
            model = release.model.unaided()
            possible = release.codec.without_zeros(measured)
            model.fit(possible, domain, merge=merged, amounts=release.codec.amounts, threads=threads)
            expected = model.expect(here, merged=True, threads=threads)
        else:
            singles = [merged.over(one) for one in measured if len(one.clique) == 1]
            expected = independence(singles, merged.domain)(here)
        for clique, table in zip(here, expected, strict=True):
            limit = partial(_by_score, values[clique], scores.sigma)
            buckets = {name: merged.codes(name).astype(np.uint32) for name in clique if name in merged.changes}
            found[clique] = Distance(clique, table, limit, buckets)
    return [found[named].in_order_of(clique) if named in found else None for clique, named in asked]


def distances_of_contrasts(release: Release, cliques: Sequence[Clique]) -> list[Distance | None]:
    """Return bounds on the tables of contrasts, None for others: the noise of their cells is not independent.

    The L1 norm of noise in n cells has the mean ``n s sqrt(2/pi)``, s the standard deviation of each. As a function of
    independent normal deviates its slope is at most ``sqrt(n) t``, with t the largest standard deviation in any
    direction, so it exceeds its mean by ``sqrt(n) t sqrt(2 log(1/risk))`` with probability `risk` at most.
    """
    tables = release.transcript.tables_of_contrasts(release.domain)
    found: list[Distance | None] = []
    for clique in cliques:
        named = release.domain.clique(clique)
        if tables is None or not named or not tables.holds(named):
            found.append(None)
            continue
        values = tables.values(named)
        mean = values.size * math.sqrt(tables.variance(named) * 2 / math.pi)
        root = math.sqrt(values.size)
        limit = partial(_by_slope, mean + root * tables.rounding(named), root * tables.steepest(named))
        found.append(Distance(named, values, limit).in_order_of(clique))
    return found


def _by_slope(mean: float, slope: float, risk: float) -> float:
    return mean + slope * math.sqrt(2 * math.log(1 / risk))


def _by_score(score: float, sigma: float, risk: float) -> float:
    """Return the limit that a distance exceeds with probability `risk` at most."""
    return max(score + sigma * NormalDist().inv_cdf(1 - risk / 4), 0.0)
