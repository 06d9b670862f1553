"""Independent attributes: each follows its own noisy 1-way marginal. The first baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle.counting.countable import Independence
from chicle.counting.records import Records
from chicle.measurements.desk import Progress
from chicle.measurements.measurement import Measurement, average_repeats, best_one_ways, onto_simplex
from chicle.models.base import Floats, Model, State, register_model
from chicle.models.draws import draw_columns
from chicle.query import QueryLike

__all__ = ["IndependentModel"]


@register_model("independent")
@dataclass(kw_only=True, eq=False)
class IndependentModel(Model):
    """Records that follow the measured 1-way marginals and nothing else.

    An attribute that was measured several times follows the mean by inverse variance. Measurements of other cliques
    only help to estimate how many records there are.

    Examples
    --------
    >>> from chicle import Domain
    >>> domain = Domain({"age": 3, "sex": 2})
    >>> measured = [Measurement(("age",), np.array([6, -1, 2]), 1.0), Measurement(("sex",), np.array([5, 3]), 1.0)]
    >>> model = IndependentModel().fit(measured, domain)
    >>> np.bincount(model.records(8_000, seed=0)["sex"])
    array([5000, 3000])
    >>> model.expect([("age",)])[0].round(2)
    array([6., 0., 2.])
    """

    def fit_tables(
        self,
        measurements: list[Measurement],
        *,
        start: Model | None,
        threads: int | None,
        progress: Progress | None,
    ) -> None:
        """Learn from measurements over `domain`."""
        del start, threads, progress
        singles = average_repeats([self.merge.over(one) for one in measurements if len(one.clique) == 1])
        best = best_one_ways(singles, self.merge.domain)
        self._weights = {name: onto_simplex(one.values, self.total) for name, one in best.items()}

    def expect_tables(self, queries: Sequence[QueryLike], *, threads: int | None) -> list[Floats]:
        """Return expected counts over the merged domain."""
        del threads
        shares = {name: weights / max(weights.sum(), 1e-300) for name, weights in self._weights.items()}
        return Independence(shares, float(self.total))(queries)

    def draw_records(self, n: int, seed: int | None, *, threads: int | None, progress: Progress | None) -> Records:
        """Make records over the merged domain."""
        del progress
        return draw_columns(self.merge.domain, self._weights, {}, n, seed=seed, threads=threads)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was learnt, as arrays."""
        return {f"weights-{i}": weights for i, weights in enumerate(self._weights.values())}

    def from_arrays(self, state: State) -> None:
        """Take on what was learnt; nothing is fitted."""
        weights = [np.asarray(state[f"weights-{i}"], dtype=np.float64) for i in range(len(self.merge.domain))]
        for (name, size), one in zip(self.merge.domain.items(), weights, strict=True):
            if one.shape != (size,) or not (np.isfinite(one).all() and (one >= 0).all()):
                raise ValueError(f"the weights of {name!r} do not fit its values")
        self._weights = dict(zip(self.merge.domain, weights, strict=True))
