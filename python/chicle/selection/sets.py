"""Choose sets of attributes to measure, their levels and their noise: pairs by price, small attributes packed."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from chicle import _core
from chicle._checks import threads_or_all
from chicle.domain import Clique, Domain
from chicle.domain import pairs as all_pairs
from chicle.query import Query
from chicle.selection.expected_error import CAUTION, Prospects, expected_errors
from chicle.selection.levels import Level
from chicle.selection.price import choose, find_price, grid

__all__ = ["ChosenSet", "Packing", "as_queries", "choose_sets"]

Floats = npt.NDArray[np.float64]

_SMALL = 4
_MAX_CELLS = 64
_ROUNDS = 5
_NEAR = 0.05


@dataclass(frozen=True)
class ChosenSet:
    """A set of attributes to measure in one table.

    Attributes
    ----------
    attributes
        Their positions in the domain.
    levels
        The level of each.
    precision
        The ``1 / sigma^2`` of the set; over all sets it adds up to about the budget.
    """

    attributes: tuple[int, ...]
    levels: tuple[int, ...]
    precision: float


@dataclass(frozen=True)
class Packing:
    """How attributes of up to four values are packed into larger sets.

    Attributes
    ----------
    order
        The most attributes of a set; 2 for no packing.
    triple_bonus, triple_error
        The gain of covering a triple while pairs are packed, and the error of a triple that no set covers: as parts of
        the mean distance of pairs of small attributes from independence.
    """

    order: int = 4
    triple_bonus: float = 0.2
    triple_error: float = 0.3


def choose_sets(
    distances: Floats,
    pairs: Sequence[Clique],
    resolutions: Sequence[Sequence[Level]],
    domain: Domain,
    *,
    ordinal: Collection[str] = (),
    total: float,
    budget: float,
    weights: Floats | None = None,
    caution: float = CAUTION,
    packing: Packing = Packing(),  # noqa: B008 - frozen
    threads: int | None = None,
) -> list[ChosenSet]:
    """Choose the sets that lower the total expected error of pairs and triples most, for a budget of precision.

    Parameters
    ----------
    distances
        Released distances of pairs from independence, in records.
    pairs
        Those pairs. Others count as independent: they are measured only for their sampling error.
    resolutions
        The levels of each attribute.
    domain, ordinal
        The attributes, and those that have an order.
    total
        Released number of records.
    budget
        Sum of ``1 / sigma^2`` over all sets.
    weights
        The weight of each pair's error; by default all the same. With weights, other pairs have weight 0.
    caution
        The weight of what a coarse table hides.
    packing
        How small attributes are packed.
    threads
        How many threads to use; all there are, if ``None``.
    """
    sigmas = grid(budget)
    known = dict(zip(pairs, distances, strict=True))
    every = np.array([known.get(pair, 0.0) for pair in all_pairs(domain)])
    prospects = expected_errors(
        resolutions, [name in ordinal for name in domain], every, total, sigmas, caution=caution
    )
    if weights is not None:
        of_pair = dict(zip(pairs, weights, strict=True))
        matters = np.array([of_pair.get(pair, 0.0) for pair in all_pairs(domain)])
        matters /= max(float(matters[matters > 0].mean()) if (matters > 0).any() else 1.0, 1e-300)
        prospects = replace(
            prospects,
            unmeasured=matters * prospects.unmeasured,
            best=_weighted(matters, prospects.best),
            fine=_weighted(matters, prospects.fine),
        )
    price = find_price(prospects, sigmas, budget)
    low, high = 0.0, math.inf
    nearest: list[ChosenSet] = []
    for _ in range(_ROUNDS if packing.order > 2 else 1):
        sets = _at_price(prospects, sigmas, price, budget, domain, packing=packing, threads=threads)
        spent = _spent(sets)
        if not nearest or _apart(spent, budget) < _apart(_spent(nearest), budget):
            nearest = sets
        if not nearest or abs(spent / budget - 1) < _NEAR:
            break
        # Spending goes as price^(-2/3), but jumps where packing changes: stay between prices that were tried.
        low, high = (price, high) if spent > budget else (low, price)
        price *= (spent / budget) ** 1.5
        if not low < price < high:
            price = math.sqrt(low * high) if low > 0 else high / 2
    return nearest


def as_queries(sets: Sequence[ChosenSet], domain: Domain, resolutions: Sequence[Sequence[Level]]) -> list[Query]:
    """Return the query of each set: its attributes, in buckets where the level is coarse."""
    names = list(domain)
    queries = []
    for chosen in sets:
        seen = {names[i]: resolutions[i][at].buckets for i, at in zip(chosen.attributes, chosen.levels, strict=True)}
        buckets = {name: codes for name, codes in seen.items() if codes is not None}
        queries.append(Query(tuple(names[i] for i in chosen.attributes), buckets))
    return queries


def _weighted(weights: Floats, errors: Floats) -> Floats:
    """Return weighted errors; an infinite error (a table that cannot be measured) stays infinite."""
    known = np.isfinite(errors)
    return np.where(known, weights[:, None] * np.where(known, errors, 0.0), errors)


def _apart(spent: float, budget: float) -> float:
    """Return how far apart two amounts are, as a ratio."""
    return max(spent / budget, budget / spent) if spent > 0 else math.inf


def _spent(sets: Sequence[ChosenSet]) -> float:
    return sum(chosen.precision for chosen in sets)


def _at_price(
    prospects: Prospects,
    sigmas: Floats,
    price: float,
    budget: float,
    domain: Domain,
    *,
    packing: Packing,
    threads: int | None,
) -> list[ChosenSet]:
    """Return the pairs worth their price as sets, those of small attributes packed into larger ones."""
    places = choose(prospects, sigmas, price)
    sizes = np.array(list(domain.values()))
    matters = np.zeros(len(sizes), dtype=np.bool_)
    matters[prospects.pairs[prospects.unmeasured > 0]] = True
    small = np.flatnonzero((sizes > 1) & (sizes <= _SMALL) & matters)
    packs = packing.order > 2 and small.size > 2
    first, second = np.isin(prospects.pairs, small).T
    inside = first & second & packs
    precision = 1 / sigmas**2
    sets = [
        ChosenSet(
            tuple(prospects.pairs[p].tolist()), tuple(prospects.level[p, place].tolist()), float(precision[place])
        )
        for p, place in enumerate(places)
        if place >= 0 and not inside[p]
    ]
    if not packs:
        return sets
    among = np.flatnonzero(inside)
    rank = {int(attribute): i for i, attribute in enumerate(small)}
    interaction = max(float(prospects.structure[among].mean()), 0.0)
    triples = math.comb(len(sizes), 3) / len(prospects.pairs)
    packed = _core.pack(
        sizes[small].tolist(),
        sigmas,
        np.ascontiguousarray(prospects.fine[among]).reshape(-1),
        np.ascontiguousarray(prospects.unmeasured[among]),
        [([rank[i] for i in prospects.pairs[p].tolist()], int(places[p])) for p in among if places[p] >= 0],
        price,
        packing.order,
        _MAX_CELLS,
        packing.triple_bonus * interaction / triples,
        packing.triple_error * interaction,
        1 / triples if packing.triple_error > 0 else 0.0,
        max(budget - _spent(sets), 0.0),
        0,
        threads_or_all(threads),
    )
    sets += [
        ChosenSet(tuple(small[attributes].tolist()), (0,) * len(attributes), float(precision[place]))
        for attributes, place in packed
    ]
    return sets
