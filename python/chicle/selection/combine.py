"""From chosen pairs to the cliques that are measured ([P] Algorithm 2).

The chosen pairs are the edges of a graph. Algorithm 2 goes through its cliques from the largest size down to 3. It
takes a clique if it has at most gamma cells and shares at most two attributes with the cliques taken before; call such
a clique admissible. Taking a clique never makes another one admissible, and the order within a size is open. So the
algorithm is: *while there is one, take a largest admissible clique*. That needs no list of all cliques, of which a
dense graph has too many.

Branch and bound finds a largest admissible clique: depth first, attributes of few values first; a branch is cut when
its bound is no larger than the best clique found. The bound colours the candidates greedily (a clique has at most one
attribute of a colour) and counts how many colours fit gamma at the size of their smallest attribute, with at most two
attributes that are held already. On complete graphs the first descent reaches the bound and the search ends.

The search is not always exact: after `effort` bounds in all, each further search computes a few more and takes the best
clique it has found, which is admissible but may not be largest. Ten thousand bounds take about 0.2 s on 97 attributes.
The pairs that DenseMarg chooses from a census, sparse graphs and nearly complete ones need fewer; random graphs of
binary attributes with every second edge need more than the default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import fsum

from chicle._checks import number
from chicle.domain import Clique, Domain
from chicle.errors import DomainError, ParameterError

__all__ = ["combine", "given_cliques", "given_weights"]

# Bounds that a search may still compute once the effort is used up.
_LAST_EFFORT = 30

# Arrays of numpy before version 2 have at most this many axes.
_MOST_ATTRIBUTES = 32

# How many attributes a clique may share with the cliques taken before.
_SHARED = 2


def combine(
    chosen: Iterable[Iterable[str]], domain: Mapping[str, int], *, gamma: int = 5000, effort: int = 40_000
) -> list[Clique]:
    """Merge chosen pairs into larger cliques where all pairs of a clique were chosen and its table stays small.

    Parameters
    ----------
    chosen
        The pairs.
    domain
        The attributes.
    gamma
        The most cells of a merged clique; below 8 or so nothing is merged.
    effort
        The number of bounds to compute in search of the largest cliques; after them, smaller ones may be taken.

    Returns
    -------
    The merged cliques, largest first, then the pairs that are in none of them, in the order given. The attributes of
    each are in domain order.

    Examples
    --------
    >>> combine([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")], {"a": 2, "b": 3, "c": 4, "d": 5})
    [('a', 'b', 'c'), ('c', 'd')]
    """
    domain = Domain.of(domain)
    for name, limit in (("gamma", gamma), ("effort", effort)):
        if type(limit) is not int or limit < 0:
            raise ParameterError(f"{name} must be an integer of at least 0, not {limit!r}")
    pairs = list(dict.fromkeys(domain.clique(pair) for pair in _not_a_string(chosen)))
    for pair in pairs:
        if len(pair) != 2:
            raise DomainError(f"only pairs can be combined; {pair!r} has {len(pair)} attributes")
    graph = _Graph(pairs, domain, gamma, effort)
    merged: list[Clique] = []
    while len(clique := graph.largest()) > 2:
        graph.take(clique)
        merged.append(domain.clique(graph.names[v] for v in clique))
    held = [set(clique) for clique in merged]
    return merged + [pair for pair in pairs if not any(clique.issuperset(pair) for clique in held)]


def given_cliques(cliques: Iterable[Iterable[str]], domain: Mapping[str, int]) -> list[Clique]:
    """Return a user's own cliques in the form of selected ones: checked, in domain order, each once.

    Examples
    --------
    >>> given_cliques([("b", "a"), ("a", "b"), ("c",)], {"a": 2, "b": 3, "c": 4})
    [('a', 'b'), ('c',)]
    """
    domain = Domain.of(domain)
    named = list(dict.fromkeys(domain.clique(clique) for clique in _not_a_string(cliques)))
    if not named:
        raise DomainError("there are no cliques; name at least one, or leave the choice to selection")
    if () in named:
        raise DomainError("the empty clique () adds nothing to the 1-ways; leave it out")
    return named


def given_weights(
    cliques: Mapping[Clique, float] | Iterable[Iterable[str]], domain: Mapping[str, int]
) -> tuple[list[Clique], list[float] | None]:
    """Return a user's own cliques as `given_cliques`, with the share of the budget of each, if they have weights.

    Cliques of weight 0 are left out.

    Examples
    --------
    >>> given_weights({("b", "a"): 3.0, ("c",): 1.0}, {"a": 2, "b": 3, "c": 4})
    ([('a', 'b'), ('c',)], [0.75, 0.25])
    """
    if not isinstance(cliques, Mapping):
        return given_cliques(cliques, domain), None
    known = Domain.of(domain)
    weights = {tuple(one): number(f"the weight of {one!r}", weight) for one, weight in cliques.items()}
    kept = [one for one, weight in weights.items() if weight > 0]
    named = given_cliques(kept, known)
    if len(named) < len(kept):
        raise DomainError("a clique is given twice, in different orders; give it once, with the sum of its weights")
    total = fsum(weights.values())
    return named, [weights[one] / total for one in kept]


class _Graph:
    """The chosen pairs as a graph. Attributes are numbers, those of few values first; sets of attributes are bits."""

    def __init__(self, pairs: list[Clique], domain: Domain, gamma: int, effort: int) -> None:
        used = {name for pair in pairs for name in pair}
        self.names = sorted(used, key=lambda name: (domain[name], domain.position(name)))
        self._sizes = [domain[name] for name in self.names]
        number = {name: v for v, name in enumerate(self.names)}
        self._neighbours = [0] * len(self.names)
        for a, b in pairs:
            self._neighbours[number[a]] |= 1 << number[b]
            self._neighbours[number[b]] |= 1 << number[a]
        self._gamma = gamma
        self._effort = effort
        self._held = 0

    def take(self, clique: list[int]) -> None:
        """Mark a clique's attributes as held."""
        for v in clique:
            self._held |= 1 << v

    def largest(self) -> list[int]:
        """Return a largest admissible clique of more than two attributes, or a smaller one if there is none."""
        self._best: list[int] = []
        self._left = max(self._effort, _LAST_EFFORT)
        before = self._left
        self._extend([], 1, (1 << len(self.names)) - 1)
        self._effort -= before - self._left
        return self._best

    def _extend(self, clique: list[int], cells: int, candidates: int) -> None:
        """Try all cliques that add some of the candidates; each candidate is a neighbour of the whole clique."""
        if len(clique) > len(self._best):
            self._best = list(clique)
        shared = _SHARED - sum(self._held >> v & 1 for v in clique)
        if shared <= 0:
            candidates &= ~self._held
        if len(clique) == _MOST_ATTRIBUTES:
            return
        while candidates and self._left > 0:
            self._left -= 1
            # A clique of two gains nothing: look for three at least.
            if len(clique) + self._bound(cells, candidates, shared) <= max(len(self._best), 2):
                return
            v = (candidates & -candidates).bit_length() - 1
            candidates ^= 1 << v
            if cells * self._sizes[v] > self._gamma:
                return  # all that follow are at least as large
            self._extend([*clique, v], cells * self._sizes[v], candidates & self._neighbours[v])

    def _bound(self, cells: int, candidates: int, shared: int) -> int:
        """Return an upper bound on the number of candidates a clique can take."""
        prices = sorted(
            self._colours(candidates & ~self._held) + self._colours(candidates & self._held)[: max(shared, 0)]
        )
        count = 0
        for price in prices:
            cells *= price
            if cells > self._gamma:
                break
            count += 1
        return count

    def _colours(self, candidates: int) -> list[int]:
        """Colour the candidates, no two neighbours alike; return the least size in each colour, ascending."""
        prices = []
        while candidates:
            first = (candidates & -candidates).bit_length() - 1
            prices.append(self._sizes[first])
            independent = candidates
            while independent:
                lowest = independent & -independent
                candidates ^= lowest
                independent &= ~(self._neighbours[lowest.bit_length() - 1] | lowest)
        return prices


def _not_a_string(cliques: Iterable[Iterable[str]]) -> Iterable[Iterable[str]]:
    if isinstance(cliques, str):
        raise DomainError("cliques must be a list of tuples of attribute names, not a string")
    return cliques
