"""A distribution as weights on points, fitted by multiplicative updates: MWEM, PEP, and both on public rows ([G] 3, 5).

The points are all cells of a small domain (`ExplicitModel`), or the rows of a public or synthetic table
(`WeightedRowsModel`). The kernel is `rust/core/src/reweight`. Cost: an update sums the points of each cell that was
measured, a whole table is two passes over the points.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from chicle import _core
from chicle._checks import MEMORY_LIMIT, check_seed, integer, number, threads_or_all
from chicle.counting.records import Records
from chicle.domain import Domain
from chicle.errors import DomainError, InfeasibleError, ParameterError
from chicle.measurements.desk import Progress
from chicle.measurements.measurement import Measurement, average_repeats, check_all
from chicle.models.base import Floats, Model, State, register_model
from chicle.query import QueryLike, as_query

__all__ = ["MOST_CELLS", "ExplicitModel", "ReweightedModel", "Update", "WeightedRowsModel", "check_cells"]

MOST_CELLS = 2**24
"""Cells of the largest domain that an explicit model takes: 128 megabytes of weights."""

# Of the largest deviate expected in a table, half of what a cell may be off if that is above two; measured on Adult.
_OF_LARGEST = 0.4

Update: TypeAlias = Literal["pep", "mwem"]


def check_cells(domain: Domain, most: int = MOST_CELLS) -> None:
    """Raise an InfeasibleError for a domain that an explicit model has no room for.

    Examples
    --------
    >>> check_cells(Domain({"a": 5000, "b": 5000}))
    Traceback (most recent call last):
    chicle.errors.InfeasibleError: the attributes have 25,000,000 joint values; an explicit model takes at most \
16,777,216. Model fewer attributes, declare coarse groups, or use GEM, or MWEM(model="graphical")
    """
    if (cells := math.prod(domain.values())) > most:
        said = f"{cells:,}" if cells < 10**12 else f"{float(cells):.3g}" if cells < 10**300 else "more than 1e300"
        raise InfeasibleError(
            f"the attributes have {said} joint values; an explicit model takes at most {most:,}. Model fewer "
            'attributes, declare coarse groups, or use GEM, or MWEM(model="graphical")'
        )


@dataclass(kw_only=True, eq=False)
class ReweightedModel(Model):
    """Weights on points that multiplicative updates fit to what was measured.

    Attributes
    ----------
    update
        How single cells are fitted, in the order in which they were measured: ``"pep"``, by entropy projections on the
        cell of largest error, or ``"mwem"``, by a half step on the newest cell and on past ones of large error.
    steps
        Most projections after each cell.
    tolerance
        Whole tables: how many standard deviations of its noise a cell may be off, or more in a table of more than 22
        cells. Only what is beyond is corrected.
    sweeps
        Most sweeps over all whole tables.
    """

    update: Update = "pep"
    steps: int = 25
    tolerance: float = 2.0
    sweeps: int = 20

    def __post_init__(self) -> None:
        if self.update not in get_args(Update):
            raise ParameterError(f"update must be one of {get_args(Update)}, not {self.update!r}")
        integer("steps", self.steps, 1)
        number("tolerance", self.tolerance)
        integer("sweeps", self.sweeps, 1)

    @abstractmethod
    def begin(self, start: ReweightedModel | None, threads: int | None) -> _core.Reweight:
        """Return the kernel on the points of this model, with the weights of another one or those it begins with."""

    def fit_tables(
        self,
        measurements: list[Measurement],
        *,
        start: Model | None,
        threads: int | None,
        progress: Progress | None,
    ) -> None:
        """Learn from measurements over `domain`; those that `start` knows are not replayed."""
        del progress
        goes_on = isinstance(start, type(self)) and start.merge.domain == self.merge.domain
        before = start if goes_on and isinstance(start, ReweightedModel) else None
        whole = [one for one in measurements if one.whole]
        cells = average_repeats(one for one in measurements if not one.whole)
        tables = [self.merge.over(one) for one in check_all(whole, self.domain) if one.clique]
        kernel = self.begin(before, threads_or_all(threads))
        told = [self._cell(one) for one in cells]
        shares = np.array([float(one.values) / self.total for one in cells])
        known = 0 if before is None else min(before._told, len(cells))  # noqa: SLF001 - of this class
        for cell in told[:known]:
            kernel.tell(cell)
        for number_, cell in enumerate(told[known:], known + 1):
            kernel.tell(cell)
            if self.update == "mwem":
                kernel.mwem(shares[:number_], 0)
            else:
                kernel.pep(shares[:number_], min(self.steps, 2 * number_))
        if tables:
            places = {name: i for i, name in enumerate(self.merge.domain)}
            targets = [
                (one.axes(places), one.floats / self.total, self.sigmas(one) * one.sigma / self.total)
                for one in average_repeats(tables)
            ]
            kernel.fit(targets, self.sweeps)
        self._kernel: _core.Reweight = kernel
        self._told: int = len(cells)

    def sigmas(self, table: Measurement) -> float:
        """Return how many standard deviations a cell of a whole table may be off: more in a table of many cells.

        Noise alone moves some of many cells far, and multiplying for each of them fits noise.
        """
        expected = math.sqrt(2 * math.log(max(table.values.size, 1)))  # of the largest of as many deviates
        return self.tolerance * max(1.0, _OF_LARGEST * expected)

    def expect_tables(self, queries: Sequence[QueryLike], *, threads: int | None) -> list[Floats]:
        """Return expected counts over the merged domain."""
        del threads  # those of the fit
        asked, domain = [as_query(one) for one in queries], self.merge.domain
        places = {name: i for i, name in enumerate(domain)}
        axes = [[(places[name], one.buckets.get(name)) for name in one.clique] for one in asked]
        tables = self._kernel.tables(axes)
        return [table.reshape(one.shape(domain)) * self.total for table, one in zip(tables, asked, strict=True)]

    def draw_records(self, n: int, seed: int | None, *, threads: int | None, progress: Progress | None) -> Records:
        """Make records over the merged domain: each point as often as its weight says, rounded at random."""
        del threads, progress
        domain = self.merge.domain
        columns = self._kernel.draw(n, check_seed(seed))
        return Records(dict(zip(domain, columns, strict=True)), domain)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was learnt, as arrays."""
        sizes = np.array(list(self.merge.domain.values()), dtype=np.int64)
        return {"weights": self._kernel.weights(), "sizes": sizes}

    def from_arrays(self, state: State) -> None:
        """Take on what was learnt; nothing is fitted."""
        domain = self.merge.domain
        if np.asarray(state["sizes"]).tolist() != list(domain.values()):
            raise ValueError("the weights are of another domain")
        self._take_points(state)
        self._kernel, self._told = self._on(np.asarray(state["weights"], dtype=np.float64), None), 0

    @abstractmethod
    def _on(self, weights: Floats | None, threads: int | None) -> _core.Reweight:
        """Return the kernel with these weights on the points of this model, or with even ones."""

    def _take_points(self, state: State) -> None:
        """Take the points from a state, where they are part of it."""

    def _cell(self, one: Measurement) -> list[tuple[int, int]]:
        """Return the cell of a measurement of one."""
        if one.clique or one.functional is not None or self.merge.changes:
            raise DomainError(
                f"the measurement of {one.clique!r} is of a group or a functional; this model takes whole tables, and "
                "single cells of values that are not merged"
            )
        return [(self.domain.position(name), code) for name, code in one.query.checked(self.domain).where.items()]


@register_model("explicit")
@dataclass(kw_only=True, eq=False)
class ExplicitModel(ReweightedModel):
    """A probability for every joint value of a small domain, even at first.

    Attributes
    ----------
    most_cells
        Most joint values of all attributes.

    Examples
    --------
    >>> domain = Domain({"age": 3, "sex": 2})
    >>> measured = [Measurement(("age",), np.array([6, 0, 2]), 0.1), Measurement(("sex",), np.array([5, 3]), 0.1)]
    >>> model = ExplicitModel(tolerance=0).fit(measured, domain)
    >>> model.expect([("age", "sex")])[0].round(1)
    array([[3.8, 2.2],
           [0. , 0. ],
           [1.2, 0.8]])
    """

    most_cells: int = MOST_CELLS

    def begin(self, start: ReweightedModel | None, threads: int | None) -> _core.Reweight:
        """Return the kernel on all cells of the domain."""
        domain = self.merge.domain
        check_cells(domain, self.most_cells)
        weights = None if start is None else start._kernel.weights()  # noqa: SLF001 - of this class
        return self._on(weights, threads)

    def _on(self, weights: Floats | None, threads: int | None) -> _core.Reweight:
        domain = self.merge.domain
        return _core.Reweight(
            list(domain), list(domain.values()), None, weights, self.most_cells, MEMORY_LIMIT, threads
        )


@register_model("weighted rows")
@dataclass(kw_only=True, eq=False)
class WeightedRowsModel(ReweightedModel):
    """Weights on the distinct rows of a table, at first how often each occurs.

    Attributes
    ----------
    rows
        The table, over the attributes that are fitted: public, or made of releases alone.

    Examples
    --------
    >>> domain = Domain({"age": 3, "sex": 2})
    >>> rows = Records({"age": [0, 0, 1, 2], "sex": [0, 0, 1, 1]}, domain)
    >>> measured = [Measurement((), np.array(8), 0.1), Measurement(("sex",), np.array([2, 6]), 0.1)]
    >>> model = WeightedRowsModel(rows=rows, tolerance=0).fit(measured, domain)
    >>> model.expect([("age",)])[0].round(1)
    array([2., 3., 3.])
    """

    rows: Records | None = None

    def params(self) -> dict[str, Any]:
        """Return the parameters as plain data, for a file; the rows are part of the state."""
        return {name: value for name, value in super().params().items() if name != "rows"}

    def begin(self, start: ReweightedModel | None, threads: int | None) -> _core.Reweight:
        """Return the kernel on the distinct rows."""
        domain = self.merge.domain
        self._points: Records
        if isinstance(start, WeightedRowsModel):
            self._points = start._points  # noqa: SLF001 - of this class
            return self._on(start._kernel.weights(), threads)  # noqa: SLF001
        if self.rows is None or self.rows.domain != self.domain:
            raise DomainError("weighted rows need `rows=`, a table over the attributes that are fitted")
        if not len(self.rows):
            raise DomainError("weighted rows need a table of at least one row")
        rows = self.rows.view(self.merge.maps, domain) if self.merge.changes else self.rows
        table = np.stack([rows[name].astype(np.uint32) for name in domain], axis=1)
        distinct, counts = np.unique(table, axis=0, return_counts=True)
        self._points = Records({name: distinct[:, i] for i, name in enumerate(domain)}, domain)
        return self._on(counts.astype(np.float64), threads)

    def _on(self, weights: Floats | None, threads: int | None) -> _core.Reweight:
        domain = self.merge.domain
        columns = [self._points[name] for name in domain]
        return _core.Reweight(list(domain), list(domain.values()), columns, weights, 0, MEMORY_LIMIT, threads)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was learnt, as arrays."""
        rows = {f"row-{i}": self._points[name] for i, name in enumerate(self.merge.domain)}
        wide = {name: codes if codes.dtype == np.uint8 else codes.astype(np.uint32) for name, codes in rows.items()}
        return {**super().to_arrays(), **wide}

    def _take_points(self, state: State) -> None:
        domain = self.merge.domain
        self._points = Records({name: state[f"row-{i}"] for i, name in enumerate(domain)}, domain)
