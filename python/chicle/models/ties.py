"""In which order attributes give way when records are rewritten: the least tied to the others first.

A record that gets another code of one attribute loses what tied it to its other codes, so a visit of one target pulls
all other targets of that attribute towards independence. They then rewrite records of their own, and the more
ties an attribute has, the more the visits of a pass undo each other, also in small steps (figures: docs/gum.md).

So a visit chooses what it rewrites. Attributes are taken off one by one, always the one of weakest ties to those that
are left, and a visit rewrites the attribute of its clique that was taken off first. That disturbs its targets with
attributes taken off later, whose ties are as few as any order can make them at worst (smallest last, Matula and Beck
1983), and those with attributes taken off earlier, which are visited later in the pass and mended without it.
Cost: O(cells) for each pair of attributes in a target, and O(attributes^2).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from chicle.domain import Clique, Domain

__all__ = ["ranks", "tied_first"]


def ranks(targets: Sequence[tuple[Clique, npt.NDArray[np.float64]]], domain: Domain) -> list[int]:
    """Return the place of each attribute in the order in which they give way.

    A tie of two attributes is the total variation distance of their counts from independence.
    """
    ties = np.zeros((len(domain), len(domain)))
    for clique, values in targets:
        for i, j in combinations(range(len(clique)), 2):
            pair = values.sum(axis=tuple(axis for axis in range(len(clique)) if axis not in (i, j)))
            pair = pair / max(pair.sum(), 1.0)
            apart = np.abs(pair - np.outer(pair.sum(axis=1), pair.sum(axis=0))).sum() / 2
            a, b = domain.position(clique[i]), domain.position(clique[j])
            ties[a, b] = ties[b, a] = max(ties[a, b], apart)
    left = ties.sum(axis=1)
    places = [0] * len(domain)
    for place in range(len(domain)):
        least = int(np.argmin(left))
        places[least] = place
        left -= ties[least]
        left[least] = np.inf
    return places


def tied_first(cliques: Sequence[Clique], places: Sequence[int], domain: Domain) -> list[int]:
    """Return positions of cliques: the later the attribute gives way that a visit rewrites, the earlier the visit."""

    def key(position: int) -> list[int]:
        return sorted((-places[domain.position(name)] for name in cliques[position]), reverse=True)

    return sorted(range(len(cliques)), key=key)
