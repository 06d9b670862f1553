"""The door of declared analyses: noisy sums over private rows, paid for by the ledger before noise is drawn.

Features come in B blocks, none longer than 1 (`chicle.analyses.design`). With a weight w_b for each block and
``sum w_b^2 <= 1``, a row's weighted features are no longer than 1 either. Two questions are asked of them, in integers:

- **score**: ``v = round(U * weights * features * clip(residual / reach, -1, 1))``, with U = 2^16. Rounding p entries
  adds at most ``sqrt(p) / 2`` to its length, so it is at most ``U + sqrt(p) / 2``.
- **products**: ``a = round(V * weights * features)`` with V = 2^12, and all ``a_i a_j`` with i <= j. Their length is at
  most ``|a|^2 <= (V + sqrt(p) / 2)^2``.

The sums move by k times that when a person with k rows comes or goes. The bounds do not rest on floating point: a row
whose integers are longer, which none is, counts as 0.

Numbers enter as raw values, clamped to their declared bounds, not as bins: the bounds are all that the sensitivity
needs, and nothing is lost to bins.
Cost: a pass over the rows for each kind of question, for all analyses together; O(rows * coefficients), products
O(rows * coefficients^2) in a matrix product that is exact, because no sum of integers in it exceeds 2^53.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from chicle.analyses.design import Design
from chicle.analyses.families import Floats
from chicle.counting.countable import UNITS
from chicle.measurements.row_sums import RowSums
from chicle.privacy.budget import calibrate
from chicle.privacy.events import GaussianEvent
from chicle.privacy.ledger import Ledger
from chicle.privacy.primitives import release_gaussian
from chicle.sources import Source, Task

__all__ = ["Products", "Question", "RowSumsTask", "Score", "release_sums"]

Integers: TypeAlias = npt.NDArray[np.int64]

_ROWS = 2**14  # at a time: temporary arrays are small, and matrix products of integers are exact
_FEATURE_UNITS = 2**12


@dataclass(frozen=True, eq=False, kw_only=True)
class Question(ABC):
    """A question of each row, whose answers are bounded and summed.

    Attributes
    ----------
    of
        The analysis, in words.
    design
        The features and the outcome of a row, and the mean of the outcome.
    weights
        The weight of each feature, the same within a block; the squares over blocks add up to 1 at most.
    """

    kind: ClassVar[str]
    of: str
    design: Design
    weights: Floats

    def __post_init__(self) -> None:
        firsts = np.unique(self.design.block, return_index=True)[1]
        same = (self.weights == self.weights[firsts][self.design.block]).all()
        if not same or not (self.weights[firsts] ** 2).sum() <= 1 + 1e-12:
            raise ValueError("weights must be equal in a block, and their squares add up to 1 at most")

    @property
    @abstractmethod
    def units(self) -> Floats:
        """What one unit of each sum is."""

    @property
    @abstractmethod
    def row_sensitivity(self) -> int:
        """The most that one row moves the sums, in L2."""

    @property
    def at(self) -> Floats:
        """The coefficients at which it is asked; zeros where there are none."""
        return np.zeros(len(self.units))

    def sums(self, table: Mapping[str, pa.ChunkedArray]) -> Integers:
        """Return the exact sums over the rows of a table: private if the rows are."""
        total = np.zeros(len(self.units), dtype=np.int64)
        rows = len(next(iter(table.values())))
        for row in range(0, rows, _ROWS):
            part = {name: table[name].slice(row, _ROWS) for name in self.design.columns}
            total += self._sums(*self.design.rows(part))
        return total

    @abstractmethod
    def _sums(self, features: Floats, outcome: Floats) -> Integers:
        """Return the exact sums over some rows."""

    @property
    def _slack(self) -> int:
        """The most that rounding makes a vector of the size of the design longer, and more."""
        return math.isqrt(self.design.size) + 1


@dataclass(frozen=True, eq=False, kw_only=True)
class Score(Question):
    """The score of a model at public coefficients: features times residuals, clipped to `reach`."""

    kind = "score"
    place: Floats
    reach: float

    @property
    def at(self) -> Floats:
        """The coefficients of the features."""
        return self.place

    @property
    def units(self) -> Floats:
        """What one unit of each sum is, as a score of the features."""
        return self.reach / (UNITS * self.weights)

    @property
    def row_sensitivity(self) -> int:
        """The most that one row moves the sums, in L2."""
        return UNITS + self._slack

    def _sums(self, features: Floats, outcome: Floats) -> Integers:
        residuals = outcome - self.design.family.mean(features @ self.place)
        parts = np.clip(residuals / self.reach, -1, 1)
        vectors = _whole(UNITS * self.weights * features * parts[:, None])
        inside = (vectors**2).sum(axis=1) <= self.row_sensitivity**2
        return np.asarray(vectors[inside].sum(axis=0), dtype=np.int64)


@dataclass(frozen=True, eq=False, kw_only=True)
class Products(Question):
    """The products of all pairs of features, each feature with itself too: row by row of the upper triangle."""

    kind = "products"

    @property
    def units(self) -> Floats:
        """What one unit of each sum is, as a product of features."""
        return np.asarray(1 / (_FEATURE_UNITS**2 * np.outer(self.weights, self.weights))[self._upper])

    @property
    def row_sensitivity(self) -> int:
        """The most that one row moves the sums, in L2."""
        return (_FEATURE_UNITS + self._slack) ** 2

    def _sums(self, features: Floats, outcome: Floats) -> Integers:
        del outcome
        vectors = _whole(_FEATURE_UNITS * self.weights * features)
        inside = vectors[(vectors**2).sum(axis=1) <= self.row_sensitivity].astype(np.float64)
        return np.asarray((inside.T @ inside)[self._upper], dtype=np.int64)

    @property
    def _upper(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        return np.triu_indices(self.design.size)


def _whole(values: Floats) -> Integers:
    # Far beyond what any row inside the bounds gives; squares of it still add up in 64 bits.
    return np.asarray(np.clip(np.nan_to_num(np.rint(values)), -(2**27), 2**27), dtype=np.int64)


class RowSumsTask(Task[list[Integers]]):
    """Sum the answers to several questions over all rows: integers, so that no order of the rows matters."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self._questions = list(questions)
        self.sums = [np.zeros(len(one.units), dtype=np.int64) for one in questions]

    @property
    def columns(self) -> list[str]:
        """The columns that it reads."""
        return list(dict.fromkeys(name for one in self._questions for name in one.design.columns))

    def prepare(self, batch: Mapping[str, pa.ChunkedArray]) -> list[Integers]:
        """Return the sums over a batch."""
        return [one.sums(batch) for one in self._questions]

    def add(self, prepared: list[Integers]) -> None:
        """Add the sums over the next batch."""
        self.sums = [mine + more for mine, more in zip(self.sums, prepared, strict=True)]

    def merge(self, other: RowSumsTask) -> None:
        """Add the sums over the rows that follow."""
        self.add(other.sums)


def release_sums(asked: Sequence[tuple[Question, float]], source: Source, k: int, ledger: Ledger) -> list[RowSums]:
    """Release sums with exactly rounded Gaussian noise, each for its rho; one pass over the rows.

    Neighbours: add or remove one person, who has at most k rows, as the source enforces.
    Sensitivity: a row moves a sum by at most its `row_sensitivity` in L2, so a person by at most k times that.
    """
    events, questions = [], [one for one, _ in asked]
    for one, rho in asked:
        most = k * one.row_sensitivity
        sigma = calibrate(rho, l2_sensitivity=most)
        purpose = f"{one.kind} of {one.of}"
        events.append(GaussianEvent(purpose=purpose, l2_sensitivity=most, sigma=sigma, values=len(one.units)))
    ledger.check(events)
    task = RowSumsTask(questions)
    exact = source.reduce(task, task.columns).sums
    noisy = release_gaussian(exact, events, ledger)
    return [
        RowSums(one.of, one.kind, values, event.sigma, one.at.copy(), one.units, ledger.protected)
        for one, values, event in zip(questions, noisy, events, strict=True)
    ]
