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
    "Mixture",
    "Pgm",
    "Projection",
    "Reweight",
    "__version__",
    "best_responses",
    "census",
    "choose",
    "choose_sets",
    "count",
    "digest",
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

_Cells: TypeAlias = Sequence[tuple[int, int | None]]
"""The axes of a table: the position of an attribute, and its code if the axis is that alone."""

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
        place: tuple[float, float] | None = None,
    ) -> Descent: ...
    def freeze(self, attributes: Sequence[int]) -> None: ...
    def sweep(self, threshold: float, noise: float) -> int: ...
    def polish(
        self,
        amounts: Sequence[npt.NDArray[np.float64] | None],
        strength: float,
        sigma: float,
        threshold: float,
        noise: float,
    ) -> int: ...
    def fit(self) -> tuple[float, float]: ...
    def columns(self) -> list[npt.NDArray[Any]]: ...
    def finish(self) -> list[npt.NDArray[Any]]: ...

@final
class Mixture:
    def __new__(
        cls,
        attributes: Sequence[str],
        cardinalities: Sequence[int],
        components: int,
        link: str,
        widths: tuple[int, int],
        seed: int,
        threads: int | None = None,
    ) -> Mixture: ...
    @staticmethod
    def of_probabilities(
        attributes: Sequence[str],
        cardinalities: Sequence[int],
        components: int,
        probabilities: npt.NDArray[np.float32],
        threads: int | None = None,
    ) -> Mixture: ...
    def answers(self, tables: Sequence[_Cells]) -> npt.NDArray[np.float32]: ...
    def fit_squares(
        self,
        tables: Sequence[_Cells],
        targets: npt.NDArray[np.float32],
        weights: Sequence[float],
        steps: int,
        rate: float,
        cosine: bool,
    ) -> list[float]: ...
    def fit_worst(
        self,
        tables: Sequence[_Cells],
        targets: npt.NDArray[np.float32],
        threshold: float,
        most: int,
        steps: int,
        rate: float,
        cosine: bool,
    ) -> list[float]: ...
    def reset(self) -> None: ...
    def probabilities(self) -> npt.NDArray[np.float32]: ...
    def parameters(self) -> npt.NDArray[np.float32]: ...
    def set_parameters(self, parameters: npt.NDArray[np.float32]) -> None: ...

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

@final
class Reweight:
    def __new__(
        cls,
        attributes: Sequence[str],
        cardinalities: Sequence[int],
        rows: Sequence[npt.NDArray[Any]] | None,
        weights: npt.NDArray[np.float64] | None,
        most_cells: int,
        memory_limit: int,
        threads: int | None = None,
    ) -> Reweight: ...
    def tell(self, cell: Sequence[tuple[int, int]]) -> None: ...
    def answers(self) -> npt.NDArray[np.float64]: ...
    def mwem(self, measured: npt.NDArray[np.float64], seed: int) -> None: ...
    def pep(self, measured: npt.NDArray[np.float64], steps: int) -> float: ...
    def fit(self, targets: Sequence[_Target], sweeps: int) -> float: ...
    def tables(self, asked: Sequence[_Axes]) -> list[npt.NDArray[np.float64]]: ...
    def weights(self) -> npt.NDArray[np.float64]: ...
    def draw(self, records: int, seed: int) -> list[npt.NDArray[Any]]: ...

def best_responses(
    attributes: Sequence[str],
    cardinalities: Sequence[int],
    cells: Sequence[Sequence[tuple[int, int]]],
    weights: npt.NDArray[np.float64],
    records: int,
    starts: int,
    scale: float,
    seed: int,
    threads: int | None = None,
) -> list[npt.NDArray[Any]]: ...
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
def digest(
    codes: Sequence[npt.NDArray[Any]],
    attributes: Sequence[str],
    cardinalities: Sequence[int],
    keys: Sequence[int],
    threads: int | None = None,
) -> tuple[list[int], int]: ...

@final
class FirstRows:
    def __new__(cls, most: int, persons: int) -> FirstRows: ...
    def update(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]: ...
    def next_pass(self) -> bool: ...

def choose_sets(
    sizes: Sequence[int],
    items: Sequence[tuple[Sequence[int], float, float]],
    sigmas: npt.NDArray[np.float64],
    options: int,
    noise_errors: npt.NDArray[np.float64],
    price: float,
    max_order: int,
    max_cells: int,
    budget: float,
) -> list[tuple[list[int], int]]: ...
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
