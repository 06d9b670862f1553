"""The sets of Prism's second stage: what tells most about the pairs and triples that a model gets wrong.

Candidates are pairs, and triples whose noise would not drown what they could tell (`candidates`). Their distances from
the model are released. A distance holds the model's error and the sampling noise of the private table itself, so each
kind is regressed on its sampling distance (`expected_distances`). The kernel `sets` then chooses sets of two to four
attributes at one price (`choose_second_sets`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from chicle import _core
from chicle.counting.countable import Expect
from chicle.domain import Clique, Domain
from chicle.selection.expected_error import NoiseClasses, sampling_error
from chicle.selection.second_share import MAX_CELLS

__all__ = ["Candidates", "SecondSet", "candidates", "choose_second_sets", "expected_distances"]

Floats = npt.NDArray[np.float64]

_MOST_TRIPLES = 10_000
_AT_ONCE = 500
_STEPS, _RATIO, _OPTIONS = 100, 2**0.25, 41
_ORDER = 4
_PAIRS_MATTER = 2.0  # all pairs together, against all triples together
_TYPICAL_SETS = 30  # a triple that would drown even in noise of so many sets is no candidate
_ROUNDS, _NEAR = 12, 0.05


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs and triples that can be scored against a model.

    Attributes
    ----------
    cliques
        Which they are.
    sampling
        How far a table of as many independent records would be from what the model expects, in records.
    noise_errors
        The error that each noise of `sigmas` leaves in the table of each.
    sigmas
        The noises.
    """

    cliques: Sequence[Clique]
    sampling: Floats
    noise_errors: Floats
    sigmas: Floats

    @property
    def orders(self) -> npt.NDArray[np.int64]:
        """How many attributes each has."""
        return np.array([len(clique) for clique in self.cliques], dtype=np.int64)


@dataclass(frozen=True)
class SecondSet:
    """A set of attributes to measure, and the ``1 / sigma^2`` that was chosen for it."""

    clique: Clique
    precision: float


def candidates(domain: Domain, expect: Expect, pairs: Mapping[Clique, float], budget: float) -> Candidates:
    """Return the pairs and triples that may be worth a table.

    Parameters
    ----------
    domain
        The attributes.
    expect
        What the model expects of cliques.
    pairs
        How far each pair is from independence, as far as it was released: where there are very many triples, those of
        the most dependent pairs are taken.
    budget
        Sum of ``1 / sigma^2`` over all sets to come.
    """
    names = [name for name in domain if domain[name] > 1]
    small = [pair for pair in combinations(names, 2) if domain.cells(pair) <= MAX_CELLS]
    triples = [triple for triple in combinations(names, 3) if domain.cells(triple) <= MAX_CELLS]
    if len(triples) > _MOST_TRIPLES:
        strength = [-sum(pairs.get(pair, 0.0) for pair in combinations(triple, 2)) for triple in triples]
        triples = [triples[i] for i in sorted(np.argsort(strength, kind="stable")[:_MOST_TRIPLES].tolist())]
    sigmas = budget**-0.5 * _RATIO ** np.arange(_STEPS)
    classes = NoiseClasses(sigmas)
    typical = int(np.searchsorted(sigmas, math.sqrt(_TYPICAL_SETS / budget)))
    kept: list[Clique] = []
    sampling: list[float] = []
    errors: list[Floats] = []
    cliques: list[Clique] = [*small, *triples]
    for start in range(0, len(cliques), _AT_ONCE):
        some = cliques[start : start + _AT_ONCE]
        for clique, table in zip(some, expect(some), strict=True):
            flat = np.asarray(table, dtype=np.float64).reshape(-1)
            noise, own = classes.errors(flat), sampling_error(flat)
            if len(clique) == 2 or noise[typical] < 2 * own:
                kept.append(clique)
                sampling.append(own)
                errors.append(noise)
    return Candidates(kept, np.array(sampling), np.array(errors).reshape(-1, _STEPS), sigmas)


def expected_distances(distances: Floats, sigma: float, asked: Candidates) -> Floats:
    """Return how far each candidate is from the model, given noisy distances: regressed on its sampling distance.

    Parameters
    ----------
    distances, sigma
        The released distances, and the noise on them.
    asked
        What they are distances of.
    """
    expected = np.empty_like(distances)
    for order in (2, 3):
        kind = asked.orders == order
        if not kind.any():
            continue
        values, sampling = distances[kind], asked.sampling[kind]
        slope = max(float((values * sampling).sum() / max((sampling**2).sum(), 1e-300)), 0.2)
        beyond = values - slope * sampling
        kept = max(0.0, 1 - sigma**2 / max(float(beyond.var()), 1e-9))
        expected[kind] = np.maximum(slope * sampling + kept * beyond, 0.1 * sampling)
    return expected


def choose_second_sets(errors: Floats, asked: Candidates, domain: Domain, budget: float) -> list[SecondSet]:
    """Choose sets whose precisions add up to about a budget, at one price.

    Parameters
    ----------
    errors
        How far each candidate is from the model.
    asked
        The candidates.
    domain
        The attributes.
    budget
        Sum of ``1 / sigma^2`` over all sets.
    """
    is_pair = asked.orders == 2
    weights = np.ones(len(errors))
    if is_pair.any() and not is_pair.all():
        weights[is_pair] = _PAIRS_MATTER * errors[~is_pair].sum() / max(float(errors[is_pair].sum()), 1e-9)
    items = [
        ([domain.position(name) for name in clique], float(error), float(weight))
        for clique, error, weight in zip(asked.cliques, errors, weights, strict=True)
    ]
    precisions = 1 / asked.sigmas**2

    def at(price: float) -> list[tuple[list[int], int]]:
        return _core.choose_sets(
            list(domain.values()),
            items,
            asked.sigmas,
            _OPTIONS,
            asked.noise_errors.reshape(-1),
            price,
            _ORDER,
            MAX_CELLS,
            4 * budget,
        )

    whole = float(weights @ errors)
    low, high = -40.0, 10.0  # of the price, in octaves above all error for all budget
    best: tuple[float, list[tuple[list[int], int]]] = (math.inf, [])
    for _ in range(_ROUNDS if whole > 0 else 0):
        middle = (low + high) / 2
        found = at(whole / budget * 2.0**middle)
        spent = float(precisions[[noise for _, noise in found]].sum())
        apart = abs(math.log(spent / budget)) if found else math.inf
        best = min(best, (apart, found), key=lambda one: one[0])
        if apart < _NEAR:
            break
        low, high = (middle, high) if spent > budget else (low, middle)
    names = list(domain)
    return [SecondSet(tuple(names[i] for i in places), float(precisions[noise])) for places, noise in best[1]]
