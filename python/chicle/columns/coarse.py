"""Coarse columns: groups of codes that are one code in the joint tables.

Many codes make joint tables noisy and add little there. With `coarse`, selection, tables and records see a few groups
of codes. A fine 1-way of the column is measured as well, and splits the groups again.

- ``coarse: 10``: ten groups of adjacent codes, nearly equal in their number of codes;
- ``coarse: [0, 18, 65, 99]``: edges as in `bins`, from the first bound to the last;
- ``coarse: year``: for dates, a calendar unit as in `bins`;
- ``coarse: {north: [no, se], south: [it, es]}``: the values, or ranges of values, of each group.

Missing is always a group of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from chicle._checks import integer
from chicle.columns.base import Column
from chicle.columns.selector import Selector
from chicle.errors import ParameterError, SchemaError

__all__ = ["coarse_groups"]


def coarse_groups(column: Column) -> npt.NDArray[np.int64]:
    """Return the coarse code of each code of a column that is declared `coarse`.

    Examples
    --------
    >>> from chicle.columns import Integer
    >>> coarse_groups(Integer(min=0, max=5, missing=True, coarse=2)).tolist()
    [0, 0, 0, 1, 1, 1, 2]
    """
    declared = column.coarse
    if column.undiscovered:
        raise SchemaError("its values are yet to be discovered; only declared columns can be coarse")
    if isinstance(declared, Mapping):
        groups = _by_name(column, declared)
    elif isinstance(declared, str):
        groups = _by_unit(column, declared)
    elif isinstance(declared, (list, tuple)):
        groups = _by_edges(column, declared)
    else:
        groups = _by_number(column, declared)
    return np.append(groups, groups.max() + 1) if column.missing else groups


def _by_number(column: Column, declared: object) -> npt.NDArray[np.int64]:
    if not column.ordered:
        raise SchemaError(
            "coarse needs groups of values, such as `coarse: {north: [...], south: [...]}`, if values have no order"
        )
    try:
        number = integer("coarse", declared, 1, column.size)
    except ParameterError as error:
        raise SchemaError(f"{error}; or a list of edges") from None
    return np.arange(column.size) * number // column.size


def _by_edges(column: Column, declared: list[object] | tuple[object, ...]) -> npt.NDArray[np.int64]:
    starts = column.starts
    if starts is None or not column.ordered:
        raise SchemaError("coarse has edges, but its values have no order; name groups of values instead")
    if len(declared) < 2:
        raise SchemaError("coarse must list at least two edges, the first and the last bound")
    alone = [False, *(edge == before for before, edge in pairwise(declared[:-1]))]
    edges = [column.start_of(edge, after=after) for edge, after in zip(declared[:-1], alone, strict=True)]
    edges.append(column.start_of(declared[-1], after=True))
    if any(a >= b for a, b in pairwise(edges)):
        raise SchemaError("coarse must list its edges in rising order; an edge may occur twice, for that value alone")
    if edges[0] != starts[0] or edges[-1] != starts[-1]:
        raise SchemaError("the first and the last edge of coarse must be the bounds of the column")
    return _between(column, edges[:-1])


def _by_unit(column: Column, declared: str) -> npt.NDArray[np.int64]:
    edges = column.unit_starts(declared)
    if edges is None:
        raise SchemaError(f"coarse must be a number of groups, a list of edges or named groups, not {declared!r}")
    return _between(column, edges.tolist())


def _between(column: Column, edges: list[float]) -> npt.NDArray[np.int64]:
    """Return the groups that begin at these edges; each edge must be an edge of bins."""
    starts = column.starts
    assert starts is not None  # noqa: S101 - the callers' case
    for edge in edges:
        if edge not in starts:
            raise SchemaError(
                f"coarse cuts a bin in two at {column.said_start(edge)}; its edges must be edges of `bins` too"
            )
    return np.searchsorted(np.array(edges), starts[:-1], side="right") - 1


def _by_name(column: Column, declared: Mapping[object, object]) -> npt.NDArray[np.int64]:
    select = Selector(column)
    groups = np.full(column.size, -1, dtype=np.int64)
    for number, (name, values) in enumerate(declared.items()):
        if not isinstance(name, str):
            raise SchemaError(f"the name of a coarse group must be a text, not {name!r}; quote it")
        mask = select(values)
        if column.missing and mask[-1]:
            raise SchemaError(f"coarse group {name!r} has missing, which is always a group of its own; leave it out")
        if not mask.any():
            raise SchemaError(f"coarse group {name!r} has no values; leave it out")
        if (groups[mask[: column.size]] >= 0).any():
            raise SchemaError(f"coarse group {name!r} has a value that another group has; list each once")
        groups[mask[: column.size]] = number
    if (groups < 0).any():
        lost = int(np.flatnonzero(groups < 0)[0])
        label = repr(column.labels[lost]) if column.labels is not None else "a bin"
        raise SchemaError(f"coarse leaves out {label}; put every value into a group")
    if column.ordered and (np.diff(groups) < 0).any():
        raise SchemaError(
            "coarse groups of ordered values must be neighbours, and must be listed from the least to the greatest"
        )
    return groups
