"""Graphical models: the maximum-likelihood distribution of noisy marginals, by the Rust kernel `pgm` (Private-PGM)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from chicle import _core
from chicle._checks import MEMORY_LIMIT, check_seed, check_size, integer, memory_bytes, number, threads_or_all
from chicle.counting.records import Records
from chicle.domain import Clique, Domain, pairs
from chicle.errors import DomainError, ParameterError
from chicle.measurements.arrays import measurements_from_arrays, measurements_to_arrays
from chicle.measurements.desk import Progress
from chicle.measurements.measurement import Measurement, check_all, estimate_total
from chicle.models.base import Model, State, register_model
from chicle.query import Query, QueryLike

__all__ = ["GraphicalModel", "Pgm", "Zeros", "jt_size", "jt_sizes", "model_bytes", "pairs_with_room", "pgm"]

Zeros: TypeAlias = Mapping[Clique, npt.ArrayLike]
"""Structural zeros: for some cliques, the cells that no record can be in, as an array of truth values."""

Floats: TypeAlias = npt.NDArray[np.float64]

_BYTES = 8  # of a cell
_BYTES_OF_TREE = 400  # that the model of a tree takes for each measured cell, at most
_VECTORS = 32  # that fitting keeps, with a number for each measured value
_BATCH = 5  # steps between two checks of convergence
_WINDOW = 10  # steps over which the loss must fall


def pgm(
    measurements: Sequence[Measurement],
    domain: Mapping[str, int],
    n: int | None = None,
    *,
    iterations: int = 1_000,
    tolerance: float = 1e-4,
    zeros: Zeros | None = None,
    seed: int | None = None,
    threads: int | None = None,
    memory_limit: int = MEMORY_LIMIT,
    progress: Callable[[int, float], None] | None = None,
) -> Records:
    """Make records that follow the graphical model of the measurements.

    Each measurement weighs by ``1 / sigma**2``. The model has the largest entropy that the measurements allow:
    attributes that no chain of cliques connects are independent, and an attribute that was not measured is uniform.

    Parameters
    ----------
    measurements
        Of cliques of any size, at any resolution. Their graph must be sparse: see `jt_size`.
    domain
        The attributes.
    n
        Number of records; by default the estimate from the measurements.
    iterations, tolerance
        As for `Pgm.fit`.
    zeros
        As for `Pgm`.
    seed
        Fixes the records.
    threads
        How many threads to use; all there are, if ``None``. The records do not depend on it.
    memory_limit
        Most bytes that the model may take; above it, an `InfeasibleError` says the size before anything is built.
    progress
        Called after every few steps with their number and the loss.

    Examples
    --------
    >>> import numpy as np
    >>> domain = {"age": 3, "sex": 2, "smokes": 2}
    >>> measured = [
    ...     Measurement(("age", "sex"), np.array([[40, 20], [0, 20], [0, 20]]), 1.0),
    ...     Measurement(("sex", "smokes"), np.array([[40, 0], [30, 30]]), 1.0),
    ... ]
    >>> records = pgm(measured, domain, n=10_000, seed=0)
    >>> np.bincount(2 * records["sex"] + records["smokes"])
    array([4000,    0, 3000, 3000])
    """
    check_size(n)
    model = Pgm(measurements, domain, zeros=zeros, threads=threads, memory_limit=memory_limit)
    model.fit(iterations, tolerance=tolerance, progress=progress)
    return model.records(n, seed)


class Pgm:
    """A graphical model of measurements: fit it step by step, ask it for marginals, draw records from it.

    Parameters
    ----------
    measurements, domain, threads, memory_limit
        As for `pgm`.
    zeros
        Structural zeros: cells that must stay empty, of any cliques. These cliques become part of the model.
    start
        A model to start from: its potentials are kept for every clique that both measure at the same resolution.
        Or the potentials themselves, one table for each measurement.

    Attributes
    ----------
    total
        How many records the model stands for: the estimate from the measurements, at least 1.
    trace
        The loss at the start, and after each step. It is half the sum of squared differences between the model's
        marginals and the measured ones, in units of sigma: the negative log-likelihood, but for a constant.

    Examples
    --------
    >>> import numpy as np
    >>> ages = Measurement(("age", "sex"), np.array([[40, 20], [-3, 20], [0, 20]]), 1.0)
    >>> smokers = Measurement(("sex", "smokes"), np.array([[40, 0], [30, 30]]), 1.0)
    >>> model = Pgm([ages, smokers], {"age": 3, "sex": 2, "smokes": 2}).fit()
    >>> model.marginal(("age", "smokes")).round(1)
    array([[49.6,  9.9],
           [ 9.9,  9.9],
           [ 9.9,  9.9]])
    """

    def __init__(
        self,
        measurements: Sequence[Measurement],
        domain: Mapping[str, int],
        *,
        zeros: Zeros | None = None,
        start: Pgm | Sequence[Floats] | None = None,
        threads: int | None = None,
        memory_limit: int = MEMORY_LIMIT,
    ) -> None:
        self._domain = Domain.of(domain)
        memory_bytes(memory_limit)
        targets = check_all(measurements, self._domain)
        self._keys = [_key(target) for target in targets]
        self.total = max(estimate_total(measurements), 1)
        self._kernel = _core.Pgm(
            list(self._domain),
            list(self._domain.values()),
            [(target.axes(self._domain.positions), target.floats, target.sigma**-2) for target in targets],
            _check_zeros(zeros, self._domain),
            float(self.total),
            self._warm(targets, start) if isinstance(start, Pgm) else start,
            memory_limit,
            threads_or_all(threads),
        )
        self.trace: list[float] = [self._kernel.loss]
        self._cells = sum(target.values.size for target in targets)

    def step(self, count: int = 1) -> float:
        """Take this many steps, fewer if the loss cannot be lowered further; return the loss."""
        self.trace += self._kernel.steps(integer("count", count, 1))
        return self.trace[-1]

    def fit(
        self,
        iterations: int = 1_000,
        *,
        tolerance: float = 1e-4,
        progress: Callable[[int, float], None] | None = None,
    ) -> Pgm:
        """Take steps until the loss stands still; return the model itself.

        Parameters
        ----------
        iterations
            Most steps to take.
        tolerance
            Stop once ten steps have lowered the loss by less than this share of it (or of the number of measured cells,
            where that is larger: noise alone makes the loss half of it).
        progress
            Called after every few steps with their number, from 1 on, and the loss.
        """
        integer("iterations", iterations, 0)
        if not 0 <= tolerance < 1:
            raise ParameterError(f"tolerance must be from 0 to below 1, not {tolerance!r}")
        begun = len(self.trace)
        while (done := len(self.trace) - begun) < iterations:
            self.step(min(_BATCH, iterations - done))
            taken = len(self.trace) - begun
            if taken == done:
                break
            if progress is not None:
                progress(taken, self.trace[-1])
            enough = tolerance * max(self.trace[-1], self._cells)
            if taken >= _WINDOW and self.trace[-1 - _WINDOW] - self.trace[-1] <= enough:
                break
        return self

    @property
    def loss(self) -> float:
        """The loss as it is now."""
        return self._kernel.loss

    @property
    def size(self) -> int:
        """Bytes of the junction tree, as in `jt_size`."""
        return _BYTES * self._kernel.cells

    def marginal(self, clique: Iterable[str]) -> Floats:
        """Return the expected counts of any clique, measured or not."""
        return self.marginals([clique])[0]

    def marginals(self, cliques: Iterable[QueryLike | Iterable[str]]) -> list[Floats]:
        """Return the expected counts of any cliques, axes in their order; or of queries in buckets.

        Those inside the junction tree are read off it, others are computed by messages along it, which the cliques of
        one call share; if one takes more than the memory limit, an `InfeasibleError` says so.
        """
        asked = [one.checked(self._domain) if isinstance(one, Query) else self._domain.check(one) for one in cliques]
        tables = self._kernel.marginals([self._axes(one) for one in asked])
        size = self._domain.__getitem__
        shapes = [tuple(map(size, one)) if isinstance(one, tuple) else one.shape(self._domain) for one in asked]
        return [table.reshape(shape) for table, shape in zip(tables, shapes, strict=True)]

    def marginals_within(self, cells: int, cliques: Iterable[Iterable[str]]) -> list[Floats | None]:
        """Return the expected counts of those cliques that are not too costly, and ``None`` for the others.

        Parameters
        ----------
        cells
            How many cells computing one clique may touch: about a second of one core for every 2e9. A table that is
            stored counts tenfold. A clique counts alone, though cliques share work.
        cliques
            Any cliques. Those above the memory limit are ``None``, too.
        """
        integer("cells", cells, 0)
        named = [self._domain.check(clique) for clique in cliques]
        tables = self._kernel.marginals_within(cells, [self._axes(clique) for clique in named])
        return [
            None if table is None else table.reshape(self._domain.shape(clique))
            for table, clique in zip(tables, named, strict=True)
        ]

    def records(self, n: int | None = None, seed: int | None = None) -> Records:
        """Draw `n` records, by default `total`: counts of cells are rounded at random, without bias."""
        check_size(n)
        columns = self._kernel.records(self.total if n is None else n, check_seed(seed))
        return Records(dict(zip(self._domain, columns, strict=True)), self._domain)

    def potentials(self) -> list[Floats]:
        """Return the logarithms of the factors of the model, one table for each measurement."""
        return self._kernel.potentials()

    def _axes(self, asked: QueryLike) -> list[tuple[int, npt.NDArray[np.uint32] | None]]:
        names, buckets = (asked, {}) if isinstance(asked, tuple) else (asked.clique, asked.buckets)
        return [(self._domain.position(name), buckets.get(name)) for name in names]

    def _warm(self, targets: Sequence[Measurement], start: Pgm) -> list[Floats]:
        if start._domain != self._domain:
            raise DomainError("the model to start from must have the same domain: attributes, sizes and order")
        known: dict[Any, list[Floats]] = {}
        for key, potential in zip(start._keys, start._kernel.potentials(), strict=True):
            known.setdefault(key, []).append(potential)
        found = (known.get(key) for key in self._keys)
        return [
            potentials.pop(0) if potentials else np.zeros(target.values.size)
            for potentials, target in zip(found, targets, strict=True)
        ]

    def __repr__(self) -> str:
        return f"Pgm of {len(self._keys)} measurements over {self._domain!r}: {self.size:,} bytes, loss {self.loss:.6g}"


@register_model("graphical")
@dataclass(kw_only=True, eq=False)
class GraphicalModel(Model):
    """The graphical model of all measurements, as a `Model`.

    Attributes
    ----------
    iterations, tolerance
        As for `Pgm.fit`.
    memory_limit
        Most bytes that the model may take.
    zeros
        Structural zeros, over the attributes before any merge; a merged attribute has none.

    Examples
    --------
    >>> measured = [Measurement(("age", "sex"), np.array([[40, 20], [0, 20], [0, 20]]), 1.0)]
    >>> model = GraphicalModel().fit(measured, Domain({"age": 3, "sex": 2}))
    >>> model.expect([("sex",)])[0].round(2)
    array([40., 60.])
    """

    iterations: int = 1_000
    tolerance: float = 1e-4
    memory_limit: int = MEMORY_LIMIT
    zeros: Zeros = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        integer("iterations", self.iterations, 1)
        memory_bytes(self.memory_limit)
        if not 0 <= number("tolerance", self.tolerance) < 1:
            raise ParameterError(f"tolerance must be from 0 to below 1, not {self.tolerance!r}")

    @property
    def pgm(self) -> Pgm:
        """The fitted `Pgm`."""
        _ = self.domain
        return self._pgm

    def params(self) -> dict[str, Any]:
        """Return the parameters as plain data; structural zeros are part of the state."""
        return {"iterations": self.iterations, "tolerance": self.tolerance, "memory_limit": self.memory_limit}

    def fit_tables(
        self,
        measurements: list[Measurement],
        *,
        start: Model | None,
        threads: int | None,
        progress: Progress | None,
    ) -> None:
        """Learn from measurements over `domain`."""
        domain = self.merge.domain
        self._targets = [self.merge.over(one) for one in measurements]
        self._zeros = {} if self.merge.changes else dict(self.zeros)
        self._pgm = Pgm(
            self._targets,
            domain,
            zeros=self._zeros,
            start=start.pgm if isinstance(start, GraphicalModel) else None,
            threads=threads,
            memory_limit=self.memory_limit,
        ).fit(self.iterations, tolerance=self.tolerance, progress=progress)
        self._total = self._pgm.total

    def expect_tables(self, queries: Sequence[QueryLike], *, threads: int | None) -> list[Floats]:
        """Return expected counts over the merged domain."""
        del threads
        return self._pgm.marginals(queries)

    def draw_records(self, n: int, seed: int | None, *, threads: int | None, progress: Progress | None) -> Records:
        """Make records over the merged domain."""
        del threads, progress
        return self._pgm.records(n, seed)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was learnt, as arrays."""
        domain = self.merge.domain
        potentials = np.concatenate([np.empty(0), *(one.reshape(-1) for one in self._pgm.potentials())])
        zeros = [(domain.clique(names), np.asarray(cells)) for names, cells in self._zeros.items()]
        arrays: dict[str, npt.NDArray[Any]] = {}
        for i, (names, cells) in enumerate(zeros):
            arrays[f"zeros-{i}-attributes"] = np.array([domain.position(name) for name in names], dtype=np.int64)
            arrays[f"zeros-{i}-cells"] = cells.astype(np.uint8)
        return {**measurements_to_arrays(self._targets, domain), "potentials": potentials, **arrays}

    def from_arrays(self, state: State) -> None:
        """Take on what was learnt; nothing is fitted."""
        domain, names = self.merge.domain, list(self.merge.domain)
        self._targets = measurements_from_arrays(state, domain)
        self._zeros = {}
        while f"zeros-{len(self._zeros)}-cells" in state:
            i = len(self._zeros)
            clique = tuple(names[place] for place in state[f"zeros-{i}-attributes"].tolist())
            self._zeros[clique] = state[f"zeros-{i}-cells"].astype(np.bool_)
        ends = np.cumsum([one.values.size for one in self._targets])
        if ends[-1] != state["potentials"].size or not np.isfinite(state["potentials"]).all():
            raise DomainError("the potentials of the model do not fit its measurements")
        start = [np.ascontiguousarray(part) for part in np.split(state["potentials"], ends[:-1])]
        self._pgm = Pgm(self._targets, domain, zeros=self._zeros, start=start, memory_limit=self.memory_limit)


def jt_size(cliques: Iterable[Iterable[str]], domain: Mapping[str, int]) -> int:
    """Return the bytes of the junction tree of cliques, 8 a cell, without building it: JT-SIZE of [A].

    Parameters
    ----------
    cliques
        What the model should hold.
    domain
        The attributes; those in no clique count by themselves.

    Examples
    --------
    >>> domain = {"a": 10, "b": 10, "c": 10, "d": 10}
    >>> jt_size([("a", "b"), ("b", "c"), ("c", "d")], domain), jt_size([("a", "b", "c", "d")], domain)
    (2400, 80000)
    """
    (size,) = jt_sizes([()], domain, held=cliques)
    return size


def jt_sizes(
    candidates: Iterable[Iterable[str]],
    domain: Mapping[str, int],
    *,
    held: Iterable[Iterable[str]] = (),
    threads: int | None = None,
) -> list[int]:
    """Return the bytes of the junction tree of some cliques with each of the candidates, as `jt_size`."""
    domain = Domain.of(domain)
    places, wanted = (
        [[domain.position(name) for name in domain.check(clique)] for clique in cliques]
        for cliques in (held, candidates)
    )
    cells = _core.model_cells(list(domain.values()), places, wanted, threads_or_all(threads))
    return [_BYTES * number for number in cells]


def pairs_with_room(domain: Domain, memory: int = MEMORY_LIMIT) -> list[Clique]:
    """Return the pairs that are small enough for a model of any tree of them to fit in memory."""
    most = memory // (_BYTES_OF_TREE * len(domain))
    return [pair for pair in pairs(domain) if domain.cells(pair) <= most]


def model_bytes(cliques: Sequence[Clique], domain: Domain) -> int:
    """Return the bytes that a `Pgm` of measurements of these cliques, not in buckets, counts against its limit."""
    return 2 * jt_size(cliques, domain) + _BYTES * (2 + _VECTORS) * sum(domain.cells(clique) for clique in cliques)


def _key(target: Measurement) -> tuple[Any, ...]:
    """Return a key that is equal for measurements with the same cells."""
    return target.query.key


def _check_zeros(zeros: Zeros | None, domain: Domain) -> list[tuple[list[tuple[int, None]], npt.NDArray[np.bool_]]]:
    checked: list[tuple[list[tuple[int, None]], npt.NDArray[np.bool_]]] = []
    for names, given in (zeros or {}).items():
        clique, cells = domain.check(names), np.asarray(given)
        if cells.dtype != np.bool_ or cells.shape != domain.shape(clique):
            raise DomainError(
                f"the structural zeros of {clique!r} must be an array of truth values, one for each of its cells: "
                f"{' x '.join(map(str, domain.shape(clique)))} of them"
            )
        if cells.all():
            raise DomainError(f"the structural zeros of {clique!r} leave no cell; leave at least one of them False")
        checked.append(([(domain.position(name), None) for name in clique], np.ascontiguousarray(cells).reshape(-1)))
    return checked
