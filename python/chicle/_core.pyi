"""The Rust kernels (`rust/bindings`). Private: import what `chicle` exports instead."""

from collections.abc import Sequence
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "INDIF_UNITS",
    "MAX_SCALE",
    "MEMORY_LIMIT",
    "MIN_SCALE",
    "Counter",
    "Descent",
    "FirstRows",
    "Gum",
    "Pgm",
    "Projection",
    "__version__",
    "census",
    "choose",
    "count",
    "discrete_laplace",
    "distances",
    "distances_of_counts",
    "draw",
    "id_hashes",
    "indif",
    "indif_of_counts",
    "model_cells",
    "pack",
    "rounded_gaussian",
]

__version__: str
INDIF_UNITS: int
MEMORY_LIMIT: int
MIN_SCALE: float
MAX_SCALE: float

_Axes: TypeAlias = Sequence[tuple[int, npt.NDArray[np.uint32] | None]]
"""The axes of a query: the position of an attribute, and the bucket of each of its codes if it is seen in buckets."""

_Target: TypeAlias = tuple[_Axes, npt.NDArray[np.float64], float]
"""Axes, values and weight; where the values have an axis for each of the axes, their shape tells the sizes of these."""

def count(
    codes: Sequence[npt.NDArray[Any]],
    attributes: Sequence[str],
    cardinalities: Sequence[int],
    queries: Sequence[_Axes],
    memory_limit: int,
    threads: int | None = None,
) -> list[npt.NDArray[np.int64]]: ...

@final
class Counter:
    def __new__(
        cls,
        attributes: Sequence[str],
        cardinalities: Sequence[int],
        queries: Sequence[_Axes],
        memory_limit: int,
        threads: int | None = None,
    ) -> Counter: ...
    def update(self, codes: Sequence[npt.NDArray[Any]]) -> None: ...
    def merge(self, other: Counter) -> None: ...
    def add_tables(self, tables: Sequence[npt.NDArray[np.int64]]) -> None: ...
    def result(self) -> list[npt.NDArray[np.int64]]: ...

@final
class Projection:
    def __new__(
        cls,
        attributes: Sequence[str],
        cardinalities: Sequence[int],
        targets: Sequence[_Target],
        rule: str,
        memory_limit: int,
        total: float | None = None,
        threads: int | None = None,
    ) -> Projection: ...
    @property
    def total(self) -> float: ...
    def sweep(self) -> float: ...
    def tables(self) -> list[npt.NDArray[np.float64]]: ...

@final
class Gum:
    def __new__(
        cls,
        codes: Sequence[npt.NDArray[Any]],
        attributes: Sequence[str],
        cardinalities: Sequence[int],
        targets: Sequence[_Target],
        ranks: Sequence[int],
        seed: int,
        threads: int | None = None,
    ) -> Gum: ...
    def errors(self) -> npt.NDArray[np.float64]: ...
    def update(
        self,
        order: Sequence[int],
        round: int,  # noqa: A002 - the word of the kernels
        alpha: float,
        duplicate: float,
        growth: str,
        removal: str,
        pairing: str,
    ) -> npt.NDArray[np.float64]: ...
    def records(self) -> list[npt.NDArray[Any]]: ...

@final
class Descent:
    def __new__(
        cls,
        codes: Sequence[npt.NDArray[Any]],
        attributes: Sequence[str],
        cardinalities: Sequence[int],
        targets: Sequence[_Target],
        seed: int,
        memory_limit: int,
        threads: int | None = None,
    ) -> Descent: ...
    def sweep(self, threshold: float, noise: float) -> int: ...
    def fit(self) -> tuple[float, float]: ...
    def columns(self) -> list[npt.NDArray[Any]]: ...
    def finish(self) -> list[npt.NDArray[Any]]: ...

@final
class Pgm:
    def __new__(
        cls,
        attributes: Sequence[str],
        cardinalities: Sequence[int],
        targets: Sequence[_Target],
        zeros: Sequence[tuple[_Axes, npt.NDArray[np.bool_]]],
        total: float,
        start: Sequence[npt.NDArray[np.float64]] | None,
        memory_limit: int,
        threads: int | None = None,
    ) -> Pgm: ...
    def steps(self, count: int) -> list[float]: ...
    @property
    def loss(self) -> float: ...
    @property
    def cells(self) -> int: ...
    def potentials(self) -> list[npt.NDArray[np.float64]]: ...
    def marginals(self, queries: Sequence[_Axes]) -> list[npt.NDArray[np.float64]]: ...
    def marginals_within(self, most: int, queries: Sequence[_Axes]) -> list[npt.NDArray[np.float64] | None]: ...
    def records(self, records: int, seed: int) -> list[npt.NDArray[Any]]: ...

def model_cells(
    cardinalities: Sequence[int],
    cliques: Sequence[Sequence[int]],
    candidates: Sequence[Sequence[int]],
    threads: int | None = None,
) -> list[int]: ...
def draw(
    cardinalities: Sequence[int],
    parents: Sequence[int | None],
    weights: Sequence[npt.NDArray[np.float64]],
    records: int,
    seed: int,
    threads: int | None = None,
) -> list[npt.NDArray[Any]]: ...
def rounded_gaussian(
    sigmas: Sequence[float],
    sizes: Sequence[int],
    test_seed: int | None = None,
    threads: int | None = None,
) -> npt.NDArray[np.int64]: ...
def discrete_laplace(
    scales: Sequence[float],
    sizes: Sequence[int],
    test_seed: int | None = None,
    threads: int | None = None,
) -> npt.NDArray[np.int64]: ...
def census(
    records: int,
    attributes: int,
    seed: int,
    threads: int | None = None,
) -> tuple[list[str], list[int], list[npt.NDArray[Any]]]: ...
def indif(
    codes: Sequence[npt.NDArray[Any]],
    attributes: Sequence[str],
    cardinalities: Sequence[int],
    pairs: Sequence[_Axes],
    shares: Sequence[npt.NDArray[np.float64]] | None,
    total: float,
    memory_limit: int,
    threads: int | None = None,
) -> npt.NDArray[np.int64]: ...
def indif_of_counts(
    tables: Sequence[npt.NDArray[np.int64]],
    cardinalities: Sequence[int],
    pairs: Sequence[_Axes],
    records: int,
    shares: Sequence[npt.NDArray[np.float64]] | None,
    total: float,
    threads: int | None = None,
) -> npt.NDArray[np.int64]: ...
def distances(
    codes: Sequence[npt.NDArray[Any]],
    attributes: Sequence[str],
    cardinalities: Sequence[int],
    queries: Sequence[_Axes],
    references: Sequence[npt.NDArray[np.float64]],
    memory_limit: int,
    threads: int | None = None,
) -> npt.NDArray[np.int64]: ...
def distances_of_counts(
    tables: Sequence[npt.NDArray[np.int64]],
    references: Sequence[npt.NDArray[np.float64]],
    records: int,
    threads: int | None = None,
) -> npt.NDArray[np.int64]: ...
def choose(gaps: npt.NDArray[np.uint64], scale: float, test_seed: int | None = None) -> int: ...
def id_hashes(
    key: tuple[int, int],
    words: npt.NDArray[np.uint64] | None = None,
    texts: tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]] | None = None,
    threads: int | None = None,
) -> npt.NDArray[np.uint64]: ...

@final
class FirstRows:
    def __new__(cls, most: int, persons: int) -> FirstRows: ...
    def update(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]: ...
    def next_pass(self) -> bool: ...

def pack(
    sizes: Sequence[int],
    sigmas: npt.NDArray[np.float64],
    fine: npt.NDArray[np.float64],
    unmeasured: npt.NDArray[np.float64],
    pairs: Sequence[tuple[Sequence[int], int]],
    price: float,
    max_order: int,
    max_cells: int,
    triple_bonus: float,
    triple_error: float,
    triple_weight: float,
    budget: float,
    seed: int,
    threads: int | None = None,
) -> list[tuple[list[int], int]]: ...
