"""How many rows persons have: a histogram of persons, released with noise.

Neighbours: add or remove one person. Each person is in exactly one cell, that of the number of rows before any limit.
So the histogram moves by 1 in one cell: its L2 sensitivity is 1, whatever `max_records` is. The cells are public: they
follow from `max_records` alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["PERSONS", "PersonRows", "cells_of"]

PERSONS = "rows a person"
"""The name of the release in a ledger."""

Floats = npt.NDArray[np.float64]

_SINGLE = 32  # numbers of rows that have a cell each
_BEYOND = (1, 2, 4, 8, 16)  # times `max_records`: where the cells above it begin


def cells_of(k: int) -> npt.NDArray[np.int64]:
    """Return the least number of rows of each cell, for a limit of k rows; the last cell has no end.

    Examples
    --------
    >>> cells_of(3).tolist()
    [1, 2, 3, 4, 7, 13, 25, 49]
    """
    first = list(range(1, min(k, _SINGLE) + 1))
    while first[-1] < k:
        first.append(min(k, first[-1] + max(first[-1] // 2, 1)))
    return np.array([*first, *(times * k + 1 for times in _BEYOND)], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class PersonRows:
    """A noisy histogram of persons by their number of rows.

    Attributes
    ----------
    values
        The noisy number of persons in each of `cells_of(k)`.
    sigma
        The standard deviation of the noise.
    k
        The limit.
    protected
        False if the noise came from the seed of a test.
    """

    values: npt.NDArray[np.int64]
    sigma: float
    k: int
    protected: bool

    def __repr__(self) -> str:
        mark = "" if self.protected else "NOT PRIVATE: "
        return f"{mark}PersonRows in {len(self.values)} cells, at most {self.k} rows a person, sigma {self.sigma:.4g}"

    @property
    def cells(self) -> npt.NDArray[np.int64]:
        """The least number of rows of each cell."""
        return cells_of(self.k)

    @property
    def persons(self) -> Floats:
        """The estimated number of persons in each cell: not negative, and 0 in the last ones that do not stand out."""
        clear = np.flatnonzero(self.values > 2 * self.sigma)
        last = int(clear[-1]) + 1 if len(clear) else 1
        found = np.where(np.arange(len(self.values)) < last, np.maximum(self.values, 0.0), 0.0)
        return np.asarray(found if found.sum() > 0 else np.append(1.0, np.zeros(len(found) - 1)), dtype=np.float64)

    @property
    def kept(self) -> Floats:
        """The estimated share of persons who have 1, 2, ... k rows once the limit is applied."""
        cells, persons = self.cells, self.persons
        shares = np.zeros(self.k)
        ends = np.append(cells[1:], cells[-1] + 1)
        for begin, end, number in zip(cells.tolist(), ends.tolist(), persons.tolist(), strict=True):
            if begin > self.k:
                shares[self.k - 1] += number
            else:
                shares[begin - 1 : end - 1] += number / (end - begin)
        return np.asarray(shares / shares.sum(), dtype=np.float64)

    @property
    def alike(self) -> float:
        """By how much sampling variances grow if persons, not rows, are a sample, and the rows of a person are alike.

        A person of s rows counts s times, so it is ``E[s^2] / E[s]``, at most k. Persons with k rows who are too few to
        stand out from noise count as well: as many as one standard deviation of it.
        """
        sizes = np.arange(1, self.k + 1)
        persons = self.persons.sum() * self.kept
        rows = float(persons @ sizes)
        return min((float(persons @ sizes**2) + self.sigma * self.k**2) / rows, float(self.k))

    @property
    def left_out(self) -> float:
        """The estimated share of rows that the limit leaves out."""
        rows, persons = self._rows, self.persons
        return float((np.maximum(rows - self.k, 0) * persons).sum() / (rows * persons).sum())

    @property
    def left_out_error(self) -> float:
        """The standard error of that share, by the noise in the cells that stand out and in the next one."""
        cells = int(np.flatnonzero(self.persons)[-1]) + 2
        beyond = np.maximum(self._rows[:cells] - self.k, 0)
        return float(self.sigma * np.sqrt((beyond**2).sum()) / (self._rows * self.persons).sum())

    def note(self) -> str:
        """Return a sentence for the reader of the release."""
        share, most = self.left_out, 2 * self.left_out_error
        about = "Hardly any row was" if share < 0.005 else f"About {share:.0%} of the rows were"
        return (
            f"{about} left out, because their persons had more than {self.k} (estimated from noisy counts of persons, "
            f"sigma {self.sigma:.3g}: between {max(share - most, 0):.0%} and {min(share + most, 1):.0%}). The "
            "synthetic table is like the rows that were kept."
        )

    @property
    def _rows(self) -> Floats:
        """The mean number of rows in each cell: most persons of a cell have few."""
        cells = self.cells.astype(np.float64)
        return cells + (np.append(cells[1:] - 1, cells[-1]) - cells) / 3

    def assign(self, rows: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Return a person for each of a number of synthetic rows, from 0 on: the rows of a person follow each other."""
        shares = self.kept
        mean = float(shares @ np.arange(1, self.k + 1))
        sizes = np.empty(0, dtype=np.int64)
        while sizes.sum() < rows:
            more = rng.choice(self.k, int((rows - sizes.sum()) / mean) + 16, p=shares) + 1
            sizes = np.concatenate([sizes, more])
        return np.repeat(np.arange(len(sizes)), sizes)[:rows]
