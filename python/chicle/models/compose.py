"""Make the easy parts of the marginal graph without a record kernel ([P] section 5.3); any kernel makes the rest.

- **Separate and join**: attributes that no chain of cliques connects are independent in the model, so each connected
  component is generated alone and the columns are joined. A kernel then never trades the error of one for another's.
- **Attribute appending**: an attribute in only one clique cannot disturb any other clique. It is left out, and drawn
  afterwards given the rest of its clique, in one pass and exactly up to rounding.

Both repeat: without an attribute, others may be in one clique only, or a component may fall apart.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from chicle.codes import Codes, code_dtype
from chicle.counting.records import Records
from chicle.domain import Clique, Domain
from chicle.measurements.measurement import Measurement

__all__ = ["Kernel", "compose"]

Kernel: TypeAlias = Callable[[Sequence[Measurement], Domain, int, int], Records]
"""Makes records from targets, a domain, a number of records and a seed."""


def compose(
    kernel: Kernel,
    targets: Sequence[Measurement],
    domain: Domain,
    n: int,
    seed: int | None,
    *,
    separate: bool = True,
    append: bool = True,
) -> Records:
    """Generate records by a kernel; attributes and components that need no kernel are appended and joined.

    Every attribute must be in some target; targets of one attribute connect nothing.
    """
    rng = np.random.default_rng(seed)
    columns: dict[str, Codes] = {}
    components = _components([target.clique for target in targets], domain) if separate else [tuple(domain)]
    for component in components:
        inside = [target for target in targets if target.clique and set(target.clique) <= set(component)]
        part = _generate(kernel, inside, domain, component, n=n, rng=rng, append=append)
        # Components are independent: rows of one meet rows of another at random.
        order = rng.permutation(n) if len(components) > 1 else np.arange(n)
        columns.update({name: codes[order] for name, codes in part.items()})
    return Records({name: columns[name] for name in domain}, domain)


def _generate(
    kernel: Kernel,
    targets: Sequence[Measurement],
    domain: Domain,
    attributes: Clique,
    *,
    n: int,
    rng: np.random.Generator,
    append: bool,
) -> dict[str, Codes]:
    """Make the columns of one component."""
    leaf = _leaf([target for target in targets if len(target.clique) > 1]) if append else None
    if leaf is None and len(attributes) == 1 and targets:
        leaf = min(targets, key=lambda target: target.sigma), attributes
    if leaf is None:
        inner = Domain({name: domain[name] for name in attributes})
        made = kernel(targets, inner, n, int(rng.integers(2**63)))
        return {name: made[name] for name in made}
    clique, appended = leaf
    rest = [t for t in targets if not set(t.clique) & set(appended)]
    rest += _margin(clique, appended)
    kept = tuple(name for name in attributes if name not in appended)
    columns = _generate(kernel, rest, domain, kept, n=n, rng=rng, append=True) if kept else {}
    columns.update(_append(clique, appended, columns, domain, n=n, rng=rng))
    return columns


def _leaf(targets: Sequence[Measurement]) -> tuple[Measurement, Clique] | None:
    """Return a target that has attributes in no other target of two or more, with those attributes.

    It must share at least one attribute with other targets, unless it is the only target.
    """
    held = Tally(name for target in targets for name in target.clique)
    for target in targets:
        alone = tuple(name for name in target.clique if held[name] == 1)
        if alone and (len(alone) < len(target.clique) or len(targets) == 1):
            return target, alone
    return None


def _margin(target: Measurement, without: Clique) -> list[Measurement]:
    """Return the margin of a target without some attributes; nothing if fewer than two are left."""
    kept = tuple(name for name in target.clique if name not in without)
    return [target.margin(kept)] if len(kept) >= 2 else []


def _append(
    target: Measurement,
    appended: Clique,
    columns: dict[str, Codes],
    domain: Domain,
    *,
    n: int,
    rng: np.random.Generator,
) -> dict[str, Codes]:
    """Draw attributes given the others of their clique, with as little sampling error as n records allow."""
    given = tuple(name for name in target.clique if name not in appended)
    axes = [target.clique.index(name) for name in (*given, *appended)]
    shape = domain.shape(appended)
    table = np.maximum(np.transpose(np.asarray(target.values, dtype=np.float64), axes), 0.0)
    table = table.reshape(-1, int(np.prod(shape)))
    # Where the given attributes have an empty cell, the margin of the whole clique is used.
    empty = table.sum(axis=1) <= 0
    table[empty] = table.sum(axis=0) if table.sum() > 0 else 1.0
    cell = np.zeros(n, dtype=np.int64)
    for name in given:
        cell = cell * domain[name] + columns[name]
    joint = _stratified(cell, table, rng)
    codes = np.unravel_index(joint, shape)
    return {name: part.astype(code_dtype(domain[name])) for name, part in zip(appended, codes, strict=True)}


def _stratified(
    cell: npt.NDArray[np.int64], weights: npt.NDArray[np.float64], rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Draw a column of `weights` for each record by its row, `cell`: m records of a row take m even quantiles."""
    # Shuffled, then sorted by row: numbers of 16 bits and less are sorted by their digits, in linear time.
    order = rng.permutation(cell.size)
    order = order[np.argsort(cell[order].astype(np.min_scalar_type(len(weights))), kind="stable")]
    counts = np.bincount(cell, minlength=len(weights))
    starts = np.cumsum(counts) - counts
    rank = np.empty(cell.size, dtype=np.int64)
    rank[order] = np.arange(cell.size) - np.repeat(starts, counts)
    quantile = (rank + rng.random(len(weights))[cell]) / counts[cell]
    edges = np.cumsum(weights, axis=1)
    edges /= edges[:, -1:]
    edges[:, -1] = 1.0
    # One sorted array of all rows' edges, row i shifted by i, answers every record at once.
    flat = (edges + np.arange(len(weights))[:, None]).ravel()
    found = np.searchsorted(flat, cell + quantile, side="right")
    drawn: npt.NDArray[np.int64] = np.minimum(found - cell * weights.shape[1], weights.shape[1] - 1)
    return drawn


def _components(cliques: Sequence[Clique], domain: Domain) -> list[Clique]:
    """Return the connected components of the attributes, in domain order."""
    root = {name: name for name in domain}

    def find(name: str) -> str:
        while root[name] != name:
            root[name] = root[root[name]]
            name = root[name]
        return name

    for clique in cliques:
        for name in clique[1:]:
            root[find(name)] = find(clique[0])
    parts: dict[str, list[str]] = {}
    for name in domain:
        parts.setdefault(find(name), []).append(name)
    return [tuple(part) for part in parts.values()]
