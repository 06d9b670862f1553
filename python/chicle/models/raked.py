"""Public rows with weights under which their 1-ways are given ones: raking, by the Rust kernel `reweight`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from chicle import _core
from chicle._checks import MEMORY_LIMIT, threads_or_all
from chicle.counting.records import Records
from chicle.domain import Domain
from chicle.query import Query

__all__ = ["RakedRows"]

Floats = npt.NDArray[np.float64]

_SWEEPS = 40
_LEAST = 1e-7  # share of a value: a weight of 0 could not be raised again


class RakedRows:
    """Weighted rows of a table over some attributes.

    Parameters
    ----------
    rows
        The rows.
    weights
        Their weights; even by default.
    threads
        How many threads to use; all there are, if ``None``.

    Examples
    --------
    >>> rows = Records({"age": [0, 0, 1, 2], "sex": [0, 0, 1, 1]}, {"age": 3, "sex": 2})
    >>> raked = RakedRows(rows).fit({"sex": np.array([0.25, 0.75])})
    >>> raked.tables([Query(("age",))])[0].round(3), round(raked.effective, 2)
    (array([0.25 , 0.375, 0.375]), 3.2)
    """

    def __init__(self, rows: Records, weights: Floats | None = None, *, threads: int | None = None) -> None:
        self._rows = rows
        names, sizes = list(rows.domain), list(rows.domain.values())
        even = np.ones(len(rows)) if weights is None else weights
        columns = [np.ascontiguousarray(rows[name]) for name in names]
        self._kernel = _core.Reweight(names, sizes, columns, even, 0, MEMORY_LIMIT, threads_or_all(threads))

    @property
    def domain(self) -> Domain:
        """The attributes."""
        return self._rows.domain

    @property
    def rows(self) -> Records:
        """The rows, without their weights."""
        return self._rows

    @property
    def weights(self) -> Floats:
        """The weights, which add up to 1."""
        return self._kernel.weights()

    @property
    def effective(self) -> float:
        """How many rows of equal weight tell as much: 1 over the sum of squared weights."""
        return float(1 / np.square(self.weights).sum())

    def fit(self, shares: Mapping[str, Floats]) -> RakedRows:
        """Rake the weights to the shares of the values of attributes; return the rows themselves."""
        targets = []
        for name, given in shares.items():
            known = np.maximum(given, _LEAST)
            targets.append(([(self.domain.position(name), None)], known / known.sum(), 0.0))
        self._kernel.fit(targets, _SWEEPS)
        return self

    def tables(self, queries: Sequence[Query]) -> list[Floats]:
        """Return the table of each query, in shares of all weight."""
        places = self.domain.positions
        asked = [[(places[name], one.buckets.get(name)) for name in one.clique] for one in queries]
        tables = self._kernel.tables(asked)
        return [table.reshape(one.shape(self.domain)) for table, one in zip(tables, queries, strict=True)]

    def draw(self, n: int, seed: int) -> Records:
        """Return `n` rows: each as often as its weight says, rounded at random."""
        return Records(dict(zip(self.domain, self._kernel.draw(n, seed), strict=True)), self.domain)
