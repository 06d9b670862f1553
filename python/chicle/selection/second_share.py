"""Whether Prism has a second stage, and how much of the budget the first one gets: from the 1-ways alone.

A second stage tells of triples, at the cost of pairs. So it pays where domains are small or the budget is large. These
rules predict the errors of pairs and triples from the expected counts of independent cells.

With one stage, a pair gets the precision ``B / P packed`` with P pairs and the budget B; `packed` is how much more
packing gives it. A triple is wrong by what its pairs are, and by its own interaction: by about its sampling distance.
Errors of pairs follow the noise's with a power of 0.3: what denoising and records repair does not grow with noise.

**Contrasts** (`contrasts_pay`) of all pairs and triples: a clique's own residual has the part r, the product of all
(1 - 1/m), of the noise of a table. So pairs get the precision ``B / P (1 - t) q / r``, t the share of triples and q
that of pairs in the rest; and noise at the precision ``B t / (T r)``, with T triples, takes the place of a triple's
sampling distance. They pay if ``2 ln(pairs' mean error) + ln(triples' mean error)`` is less than with one stage. On
all tables tried they were better than predicted (docs/prism-ablation.md), so pairs weigh less than below.

**Sets** in a second stage (`first_share`), with a share s of the budget for the first one:

- a pair gets ``B / P (s packed + c (1 - s) via)``: `via` is what tables of triples that hold it give.
- a triple keeps what noise at the precision ``c B (1 - s) b / T`` leaves of its sampling distance, b what fourth
  attributes add.
- The share of least ``3 ln(pairs' mean error) + ln(triples' mean error)``, both relative to no second stage, wins if
  it beats no second stage by `_MARGIN`. Pairs weigh more because the power makes light of what they lose.

c leaves out what the scores cost. Constants were set on Adult, msnbc and ACS 2018, whole and with attributes cut in
two; the margin also on titanic, where a second stage at epsilon 5 and 10 costs pairs more than it gives triples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from itertools import combinations

import numpy as np
import numpy.typing as npt

from chicle.selection.expected_error import MAX_CELLS as MAX_PAIR
from chicle.selection.expected_error import NoiseClasses

__all__ = ["MAX_CELLS", "SCORES", "TRIPLES", "contrasts_pay", "first_share"]

Floats = npt.NDArray[np.float64]

MAX_CELLS = 4_096
"""Sets of the second stage have at most this many cells."""

SCORES = 0.04
"""The share of the second stage for its scores."""

TRIPLES = 0.25
"""The share of triples where contrasts are measured, of what is left after the 1-ways."""

_SHARES = (1.0, 0.85, 0.7, 0.5)
_MARGIN = 0.04
_PAIRS_MATTER, _PAIRS_MATTER_LESS = 3.0, 2.0
_DAMPING = 0.3
_PAIRS_SHARE = 0.65  # of the first contrasts; the rest goes to 1-ways
_PACKED_CELLS = 100
_MOST = 100  # pairs and triples that are looked at; of more, so many are drawn
_OCTAVES = 24  # of noise, from that of the whole budget on one table


def first_share(one_ways: Sequence[Floats], total: float, budget: float) -> float:
    """Return the share of the budget for the first stage, 1 where a second one would not pay.

    Parameters
    ----------
    one_ways
        The share of records with each value, for each attribute: released, or assumed.
    total
        Number of records, released or assumed.
    budget
        Sum of ``1 / sigma^2`` over all sets of both stages.

    Examples
    --------
    >>> binary = [np.array([0.4, 0.6])] * 10
    >>> first_share(binary, 20_000, budget=0.5)
    0.5
    >>> first_share(binary, 20_000, budget=1e-5)
    1.0
    """
    forecast = _forecast(one_ways, total, budget)
    if forecast is None:
        return 1.0
    alone = forecast.errors(1.0)
    return min([(-_MARGIN, 1.0), *((_change(forecast.errors(share), alone), share) for share in _SHARES[1:])])[1]


def contrasts_pay(one_ways: Sequence[Floats], total: float, budget: float) -> bool:
    """Return whether contrasts of all pairs and triples have lower errors than sets.

    Parameters
    ----------
    one_ways, total, budget
        As for `first_share`.

    Examples
    --------
    >>> contrasts_pay([np.array([0.4, 0.6])] * 10, 20_000, budget=1e-5)
    True
    >>> contrasts_pay([np.full(60, 1 / 60)] * 10, 20_000, budget=1e-5)
    False
    """
    forecast = _forecast(one_ways, total, budget)
    if forecast is None or math.prod(sorted(one.size for one in one_ways)[-2:]) > MAX_CELLS:
        return False
    return _change(forecast.errors_of_contrasts(), forecast.errors(1.0), _PAIRS_MATTER_LESS) < 0


def _forecast(one_ways: Sequence[Floats], total: float, budget: float) -> _Forecast | None:
    attributes = [one for one in one_ways if one.size > 1]
    if len(attributes) < 3 or not (budget > 0 and total > 0):
        return None
    return _Forecast(attributes, total, budget)


def _change(errors: tuple[float, float], others: tuple[float, float], weight: float = _PAIRS_MATTER) -> float:
    """Return by how much errors of pairs and triples are worse than others, in logarithms; pairs have a weight."""
    pairs, triples = (math.log(one / other) for one, other in zip(errors, others, strict=True))
    return weight * pairs + triples


class _Forecast:
    """Expected errors of pairs and triples, from 1-ways alone."""

    def __init__(self, attributes: Sequence[Floats], total: float, budget: float) -> None:
        self._alike, self._total = [_alike(one) for one in attributes], total
        self._sizes = [one.size for one in attributes]
        number = len(attributes)
        self._first_log = -0.5 * math.log2(budget)
        self._classes = NoiseClasses(np.exp2(self._first_log + np.arange(_OCTAVES, dtype=np.float64)))
        self._each_pair = budget / math.comb(number, 2)
        self._each_triple = (1 - SCORES) * budget / math.comb(number, 3)
        some, triples = _some(number, 2), _some(number, 3)
        pairs = sorted({*some, *(pair for triple in triples for pair in combinations(triple, 2))})
        place = {pair: i for i, pair in enumerate(pairs)}
        self._some = [place[pair] for pair in some]
        self._inside = np.array([[place[pair] for pair in combinations(triple, 2)] for triple in triples])
        via, packed, curves = zip(*map(self._pair, pairs), strict=True)
        self._via, self._packed, self._of_pairs = np.array(via), np.array(packed), np.stack(curves)
        more, left = zip(*map(self._triple, triples), strict=True)
        self._more, self._of_triples = np.array(more), np.stack(left)
        self._own_pair, self._own_triple = (np.array([self._own(one) for one in some]) for some in (pairs, triples))

    def errors(self, share: float) -> tuple[float, float]:
        """Return the mean errors of pairs and of triples at a share of the first stage."""
        first = self._at(self._of_pairs, self._each_pair * self._packed)
        told = share * self._packed + (1 - SCORES) * (1 - share) * self._via
        now = self._at(self._of_pairs, self._each_pair * told)
        pairs = np.maximum(first * (now / np.maximum(first, 1e-9)) ** _DAMPING, 1e-9)
        own = self._of_triples[:, -1]
        if share < 1:
            own = self._at(self._of_triples, self._each_triple * (1 - share) * self._more)
        triples = np.sqrt(own**2 + (pairs[self._inside] ** 2).sum(axis=1))
        return float(pairs[self._some].mean()), float(triples.mean())

    def errors_of_contrasts(self) -> tuple[float, float]:
        """Return the mean errors of pairs and of triples if contrasts of all are measured."""
        first = self._at(self._of_pairs, self._each_pair * self._packed)
        now = self._at(self._of_pairs, (1 - TRIPLES) * _PAIRS_SHARE * self._each_pair / self._own_pair)
        pairs = np.maximum(first * (now / np.maximum(first, 1e-9)) ** _DAMPING, 1e-9)
        own = self._at(self._of_triples, TRIPLES * self._each_triple / (1 - SCORES) / self._own_triple)
        triples = np.sqrt(own**2 + (pairs[self._inside] ** 2).sum(axis=1))
        return float(pairs[self._some].mean()), float(triples.mean())

    def _own(self, clique: tuple[int, ...]) -> float:
        """Return the part of a table's noise that is in its own residual."""
        return math.prod(1 - 1 / self._sizes[i] for i in clique)

    def _pair(self, pair: tuple[int, ...]) -> tuple[float, float, Floats]:
        """Return what tables of triples, and packing, give a pair, and its error at every noise."""
        cells = math.prod(self._sizes[i] for i in pair)
        others = [size for i, size in enumerate(self._sizes) if i not in pair]
        via = 3 * sum(1 / size for size in others if cells * size <= MAX_CELLS) / len(others)
        packed = max([1.0, *(3 / size for size in others if cells * size <= _PACKED_CELLS)])
        if cells > MAX_PAIR:  # it is never measured
            return via, packed, np.full(_OCTAVES, float(self._total))
        return via, packed, self._classes.errors(*self._counts(pair))

    def _triple(self, triple: tuple[int, ...]) -> tuple[float, Floats]:
        """Return what fourth attributes add to a triple, and what every noise leaves of its sampling distance."""
        sizes = [self._sizes[i] for i in triple]
        cells, largest = math.prod(sizes), max(sizes)
        more = [size for i, size in enumerate(self._sizes) if i not in triple and size >= largest]
        add = max(1.0, 4 / min(more, default=4))
        if cells > MAX_CELLS:  # never measured; roots that add up to n add up to at most the root of n times cells
            return add, np.full(_OCTAVES, min(math.sqrt(self._total * cells), 2 * self._total))
        return add, self._classes.left(*self._counts(triple))

    def _counts(self, clique: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Return the different expected counts of a table's cells, and how many cells have each."""
        shares, times = zip(*(self._alike[i] for i in clique), strict=True)
        return self._total * reduce(np.multiply.outer, shares), reduce(np.multiply.outer, times)

    def _at(self, curves: Floats, precisions: Floats) -> Floats:
        """Return the error of each table at its precision, between two noises by interpolation."""
        place = np.clip(-0.5 * np.log2(np.maximum(precisions, 1e-300)) - self._first_log, 0, _OCTAVES - 1)
        low = np.minimum(place.astype(np.int64), _OCTAVES - 2)
        part, row = place - low, np.arange(len(curves))
        found: Floats = curves[row, low] * (1 - part) + curves[row, low + 1] * part
        return found


def _alike(one_way: Floats) -> tuple[Floats, Floats]:
    """Return shares that stand for those of a 1-way, a quarter of an octave each, and how many values have each."""
    held = one_way[one_way > 0]
    _, of, times = np.unique(np.round(4 * np.log2(held)), return_inverse=True, return_counts=True)
    return np.bincount(of, weights=held) / times, times.astype(np.float64)


def _some(number: int, order: int) -> list[tuple[int, ...]]:
    """Return all cliques of an order of so many attributes, or `_MOST` of them."""
    if math.comb(number, order) <= _MOST:
        return list(combinations(range(number), order))
    rng = np.random.default_rng(order)
    return sorted({tuple(sorted(rng.choice(number, order, replace=False).tolist())) for _ in range(_MOST)})
