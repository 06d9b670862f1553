"""The order in which attributes are rewritten by GUM: the one that depends least on the others first.

A record that gets another code of one attribute no longer fits its other codes. So a visit of one target pulls all
other targets of that attribute towards independence. Their visits then rewrite other records. The more an attribute
depends on others, the more the visits of a pass undo each other, also in small steps (figures: docs/gum.md).

So a visit chooses what it rewrites. Attributes are removed one by one, always the one that depends least on those that
are left, and a visit rewrites the attribute of its clique that was removed first. That disturbs its targets with
attributes removed later, which are as few as in any order (smallest last, Matula and Beck 1983), and its targets with
attributes removed earlier, which are visited later in the pass and then rewrite those.
Cost: O(cells) for each pair of attributes in a target, and O(attributes^2).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from chicle.domain import Clique, Domain
from chicle.measurements.measurement import Measurement

__all__ = ["rewriting_ranks", "strongest_first"]


def rewriting_ranks(targets: Sequence[Measurement], domain: Domain) -> list[int]:
    """Return the rank of each attribute in the order of rewriting.

    How much two attributes depend on each other is the total variation distance of their counts from independence.
    """
    dependence = np.zeros((len(domain), len(domain)))
    for target in targets:
        for a, b in combinations(target.clique, 2):
            pair = np.asarray(target.margin((a, b)).values, dtype=np.float64)
            pair = pair / max(pair.sum(), 1.0)
            distance = np.abs(pair - np.outer(pair.sum(axis=1), pair.sum(axis=0))).sum() / 2
            i, j = domain.position(a), domain.position(b)
            dependence[i, j] = dependence[j, i] = max(dependence[i, j], distance)
    left = dependence.sum(axis=1)
    places = [0] * len(domain)
    for place in range(len(domain)):
        least = int(np.argmin(left))
        places[least] = place
        left -= dependence[least]
        left[least] = np.inf
    return places


def strongest_first(cliques: Sequence[Clique], places: Sequence[int], domain: Domain) -> list[int]:
    """Return positions of cliques in the order of visits: attributes that were removed last come first."""

    def key(position: int) -> list[int]:
        return sorted((-places[domain.position(name)] for name in cliques[position]), reverse=True)

    return sorted(range(len(cliques)), key=key)
