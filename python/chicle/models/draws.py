"""First records for the record kernels: independent attributes, a tree of pairs, or half of each; drawn in Rust."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from chicle import _core
from chicle._checks import check_seed, check_size, threads_or_all
from chicle.counting.records import Records
from chicle.domain import Clique, Domain
from chicle.measurements.measurement import Measurement, best_margins, check_all, estimate_total, onto_simplex
from chicle.selection.forest import spanning_forest

__all__ = ["draw_columns", "draw_independent", "draw_mixed", "draw_tree"]


def draw_independent(
    measurements: Sequence[Measurement],
    domain: Mapping[str, int],
    n: int | None = None,
    *,
    seed: int | None = None,
    threads: int | None = None,
) -> Records:
    """Draw records whose attributes are independent and follow their margins.

    Parameters
    ----------
    measurements
        Of any cliques: each attribute follows its most precise margin, or is uniform if it has none.
    domain
        The attributes.
    n
        Number of records; by default the private estimate of it.
    seed
        Fixes the draw.
    threads
        How many threads to use; all there are, if ``None``. The records do not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> domain = {"age": 3, "sex": 2}
    >>> measured = [Measurement(("age", "sex"), np.array([[4, 2], [0, 0], [1, 1]]), 1.0)]
    >>> records = draw_independent(measured, domain, n=8_000, seed=0)
    >>> np.bincount(records["age"])
    array([6000,    0, 2000])
    """
    domain, targets, size = _checked(measurements, domain, n)
    return draw_columns(domain, _one_ways(targets, domain), {}, size, seed=seed, threads=threads)


def draw_tree(
    measurements: Sequence[Measurement],
    domain: Mapping[str, int],
    n: int | None = None,
    *,
    seed: int | None = None,
    threads: int | None = None,
) -> Records:
    """Draw records along the maximum spanning tree of mutual information of the measured pairs (Chow and Liu 1968).

    The tree is walked from its heaviest edge; each attribute is drawn given its parent. Attributes in no measured pair
    follow their margin, or are uniform. Pairs that are only part of a larger clique count too.

    Parameters
    ----------
    measurements, domain, n, seed, threads
        As for `draw_independent`.

    Examples
    --------
    >>> import numpy as np
    >>> domain = {"age": 3, "sex": 2}
    >>> measured = [Measurement(("age", "sex"), np.array([[4, 2], [0, 0], [0, 2]]), 1.0)]
    >>> records = draw_tree(measured, domain, n=8_000, seed=0)
    >>> np.bincount(2 * records["age"] + records["sex"])
    array([4000, 2000,    0,    0,    0, 2000])
    """
    domain, targets, size = _checked(measurements, domain, n)
    tables = {pair: _proper(table) for pair, table in best_margins(targets, domain, 2).items()}
    ones = _one_ways(targets, domain)
    laws: dict[str, tuple[str, npt.NDArray[np.float64]]] = {}
    for child, parent in _parents(tables).items():
        table = tables[parent, child] if (parent, child) in tables else tables[child, parent].T
        laws[child] = parent, np.where(table.sum(axis=1, keepdims=True) > 0, table, ones[child])
    return draw_columns(domain, ones, laws, size, seed=seed, threads=threads)


def draw_mixed(
    measurements: Sequence[Measurement],
    domain: Mapping[str, int],
    n: int | None = None,
    *,
    seed: int | None = None,
    threads: int | None = None,
) -> Records:
    """Draw every other record along the tree, the rest with independent attributes.

    Where attributes nearly determine each other, descent comes closer to the truth from half of each than from either
    alone; otherwise it matters little (`docs/prism-ablation.md`).

    Parameters
    ----------
    measurements, domain, n, seed, threads
        As for `draw_independent`.

    Examples
    --------
    >>> import numpy as np
    >>> domain = {"age": 2, "sex": 2}
    >>> measured = [Measurement(("age", "sex"), np.array([[4, 0], [0, 4]]), 1.0)]
    >>> records = draw_mixed(measured, domain, n=8_000, seed=0)
    >>> bool((records["age"][::2] == records["sex"][::2]).all()), bool((records["age"] == records["sex"]).all())
    (True, False)
    """
    domain, _, size = _checked(measurements, domain, n)
    seeds = np.random.default_rng(check_seed(seed)).integers(2**63, size=2).tolist()
    halves = [
        draw(measurements, domain, number, seed=own, threads=threads)
        for draw, number, own in zip((draw_tree, draw_independent), (size - size // 2, size // 2), seeds, strict=True)
    ]
    columns = {}
    for name in domain:
        columns[name] = np.empty(size, dtype=halves[0][name].dtype)
        columns[name][::2], columns[name][1::2] = (half[name] for half in halves)
    return Records(columns, domain)


def _checked(
    measurements: Sequence[Measurement], domain: Mapping[str, int], n: int | None
) -> tuple[Domain, list[Measurement], int]:
    domain = Domain.of(domain)
    check_size(n)
    targets = check_all(measurements, domain)
    return domain, targets, estimate_total(measurements) if n is None else n


def _one_ways(targets: Sequence[Measurement], domain: Domain) -> dict[str, npt.NDArray[np.float64]]:
    found = {name: _proper(table) for (name,), table in best_margins(targets, domain, 1).items()}
    return {name: found.get(name, np.ones(size)) for name, size in domain.items()}


def _proper(table: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the table without negative values, its total kept."""
    if table.min() >= 0:
        return table
    return onto_simplex(table.reshape(-1), max(float(table.sum()), 1.0)).reshape(table.shape)


def _parents(tables: Mapping[Clique, npt.NDArray[np.float64]]) -> dict[str, str]:
    """Return the parent of every attribute of the maximum spanning forest but its roots."""
    heaviest_first = sorted(tables, key=lambda pair: -_mutual_information(tables[pair]))
    neighbours: dict[str, list[str]] = {}
    for a, b in spanning_forest(heaviest_first):
        neighbours.setdefault(a, []).append(b)
        neighbours.setdefault(b, []).append(a)
    parents: dict[str, str] = {}
    seen: set[str] = set()
    for root, _ in heaviest_first:
        reached = [] if root in seen else [root]
        seen.add(root)
        for name in reached:
            children = [other for other in neighbours[name] if other not in seen]
            seen.update(children)
            parents.update(dict.fromkeys(children, name))
            reached += children
    return parents


def _mutual_information(table: npt.NDArray[np.float64]) -> float:
    joint = table / max(float(table.sum()), 1e-300)
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    held = joint > 0
    return float((joint[held] * np.log(joint[held] / product[held])).sum())


def draw_columns(
    domain: Domain,
    ones: Mapping[str, npt.NDArray[np.float64]],
    laws: Mapping[str, tuple[str, npt.NDArray[np.float64]]],
    n: int,
    *,
    seed: int | None,
    threads: int | None,
) -> Records:
    """Draw columns: each by its own weights, or by the weights for the code of its parent column.

    Parameters
    ----------
    domain
        The attributes.
    ones
        The weights of each attribute's codes.
    laws
        For some attributes their parent, and a row of weights for each of the parent's codes.
    n, seed, threads
        As for `draw_independent`.
    """
    parents = [domain.position(laws[name][0]) if name in laws else None for name in domain]
    weights = [np.ascontiguousarray(laws[name][1] if name in laws else ones[name]).reshape(-1) for name in domain]
    columns = _core.draw(list(domain.values()), parents, weights, n, check_seed(seed), threads_or_all(threads))
    return Records(dict(zip(domain, columns, strict=True)), domain)
