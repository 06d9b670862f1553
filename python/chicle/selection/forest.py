"""Spanning forests: the heaviest pairs of attributes that form no cycle."""

from __future__ import annotations

from collections.abc import Sequence

from chicle.domain import Clique

__all__ = ["spanning_forest"]


def spanning_forest(heaviest_first: Sequence[Clique]) -> list[Clique]:
    """Return the pairs that Kruskal's algorithm keeps: each the heaviest that closes no cycle.

    Examples
    --------
    >>> spanning_forest([("a", "b"), ("b", "c"), ("a", "c"), ("d", "e")])
    [('a', 'b'), ('b', 'c'), ('d', 'e')]
    """
    component: dict[str, set[str]] = {}
    kept: list[Clique] = []
    for a, b in heaviest_first:
        ours, theirs = component.setdefault(a, {a}), component.setdefault(b, {b})
        if ours is not theirs:
            ours |= theirs
            component.update(dict.fromkeys(theirs, ours))
            kept.append((a, b))
    return kept
