"""How far cliques that nobody measured may be from what was expected of them: by what was released, at no further cost.

A released score of a clique is such a distance, with known noise: the distance is at most the noisy score plus a
quantile of its noise. A clique whose score came out low by chance is less likely to be measured, so low ones are
frequent among those that were not: a quarter of the risk is taken, which suffices for cliques that are left unmeasured
in at least a quarter of all fits.

The distance is from what was expected then: independence for the first scores, the model of the measurements so far for
later ones. A table made later is off by at most its own distance from that more ([A] Corollary 2). The transcript keeps
the order of releases, and the same model fitted to the same measurements expects the same, so nothing else is kept.

What choices by the exponential mechanism tell is known by the mechanism that made them (`mechanisms.aim_model`).
"""

from __future__ import annotations

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

__all__ = ["distances_of", "distances_of_scores", "register_bounds"]


class _Known(Protocol):
    """A class of mechanisms that knows what its releases tell of unmeasured cliques."""

    def unmeasured(
        self, release: Release, cliques: Sequence[Clique], *, threads: int | None = None
    ) -> list[Distance | None]: ...


_MECHANISMS: dict[str, _Known] = {}


def register_bounds(name: str, mechanism: _Known) -> None:
    """Make a class of mechanisms known by its name."""
    _MECHANISMS[name] = mechanism


def distances_of(release: Release, cliques: Sequence[Clique], *, threads: int | None = None) -> list[Distance | None]:
    """Return what is known of cliques that no measurement holds; None where nothing is.

    Parameters
    ----------
    release
        Of any mechanism; one that is not registered here tells nothing.
    cliques
        What is asked for.
    threads
        How many threads to use; all there are, if ``None``.
    """
    if release.mechanism not in _MECHANISMS:
        return [None] * len(cliques)
    return _MECHANISMS[release.mechanism].unmeasured(release, cliques, threads=threads)


def distances_of_scores(
    release: Release, cliques: Sequence[Clique], *, threads: int | None = None
) -> list[Distance | None]:
    """Return what released scores tell of cliques, in the values that were kept; None of those that have none."""
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
            model = type(release.model)(**release.model.params())
            model.fit(release.codec.without_zeros(measured), domain, merge=merged, threads=threads)
            expected = model.expect(here, merged=True, threads=threads)
        else:
            singles = [merged.over(one) for one in measured if len(one.clique) == 1]
            expected = independence(singles, merged.domain)(here)
        for clique, table in zip(here, expected, strict=True):
            limit = partial(_by_score, values[clique], scores.sigma)
            buckets = {name: merged.codes(name).astype(np.uint32) for name in clique if name in merged.changes}
            found[clique] = Distance(clique, table, limit, buckets)
    return [found[named].in_order_of(clique) if named in found else None for clique, named in asked]


def _by_score(score: float, sigma: float, risk: float) -> float:
    """Return what a distance exceeds with probability `risk` at most."""
    return max(score + sigma * NormalDist().inv_cdf(1 - risk / 4), 0.0)
