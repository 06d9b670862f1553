"""The hot deck: each row that lacks something takes it from a random row that is like it.

Rows are alike if they agree on all of some columns; where none does, on all but the last of them, and so on. Cost: one
sort of the donors for each number of columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle.codecs.repair import as_keys, draw

__all__ = ["donors", "strongest_first"]

Integers = npt.NDArray[np.int64]

_SEEN = 100_000  # rows by which the strength of a dependence is judged


def donors(wanted: Sequence[npt.NDArray[Any]], known: Sequence[npt.NDArray[Any]], rng: np.random.Generator) -> Integers:
    """Return for each wanted row the place of a known one that agrees with it on as many first columns as possible.

    Examples
    --------
    >>> donors([np.array([2, 7])], [np.array([1, 2, 3])], np.random.default_rng(0))[0].item()
    1
    """
    rows = len(wanted[0])
    found = np.zeros(rows, dtype=np.int64)
    left = np.arange(rows)
    ones = np.ones(len(known[0]), dtype=np.int64)
    for number in range(len(wanted), 0, -1):
        keys, there = as_keys([one[left] for one in wanted[:number]], list(known[:number]))
        taken, agrees = draw(there, ones, keys, rng)
        found[left[agrees]] = taken[agrees]
        left = left[~agrees]
        if not len(left):
            return found
    found[left] = rng.integers(len(ones), size=len(left))
    return found


def strongest_first(
    given: Mapping[str, npt.NDArray[Any]], free: Mapping[str, npt.NDArray[Any]], rng: np.random.Generator
) -> list[str]:
    """Return the given columns in the order in which rows should agree on them.

    First, for each free column, the given one on which it depends most; then the others, by how much all free columns
    depend on them. Dependence is the distance of a pair from independence, beyond what sampling explains.
    """
    rows = len(next(iter(given.values())))
    some = rng.permutation(rows)[:_SEEN]

    def dependence(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> float:
        left, right = one[some].astype(np.int64), other[some].astype(np.int64)
        shape = int(left.max(initial=0)) + 1, int(right.max(initial=0)) + 1
        if shape[0] * shape[1] > 10 * max(len(some), 1):
            return 0.0
        joint = np.bincount(left * shape[1] + right, minlength=shape[0] * shape[1]).reshape(shape) / max(len(some), 1)
        alone = np.outer(joint.sum(axis=1), joint.sum(axis=0))
        by_sampling = np.sqrt(2 / np.pi * alone / max(len(some), 1)).sum()
        return float(np.abs(joint - alone).sum() - by_sampling)

    strength = {name: [dependence(codes, other) for other in free.values()] for name, codes in given.items()}
    best = {max(given, key=lambda name: strength[name][place]) for place in range(len(free))}
    return sorted(given, key=lambda name: (name not in best, -sum(strength[name])))
