"""Coarse columns: which codes are one in the joint work.

Fine codes cost the joint tables dearly and say little there. With `coarse`, selection, tables and records see a few
groups of codes, and a fine 1-way that is measured beside them tells the codes of a group apart again.

- ``coarse: 10``: so many groups of neighbours, with nearly as many codes each;
- ``coarse: [0, 18, 65, 99]``: edges, as `bins` has them, from the first bound to the last;
- ``coarse: year``: for dates, what `bins` could be;
- ``coarse: {north: [no, se], south: [it, es]}``: values, or ranges of them, by group.

Missing is always a group of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from chicle._checks import integer
from chicle.columns.base import Column
from chicle.columns.chosen import Chosen
from chicle.columns.dates import Date, DateTime
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
    told = column.coarse
    if column.undiscovered:
        raise SchemaError("its values are yet to be discovered; only declared ones can be coarse")
    if isinstance(told, Mapping):
        groups = _by_name(column, told)
    elif isinstance(told, str):
        groups = _by_unit(column, told)
    elif isinstance(told, (list, tuple)):
        groups = _by_edges(column, told)
    else:
        groups = _by_number(column, told)
    return np.append(groups, groups.max() + 1) if column.missing else groups


def _by_number(column: Column, told: object) -> npt.NDArray[np.int64]:
    if not column.ordered:
        raise SchemaError(
            "coarse needs groups of values, such as `coarse: {north: [...], south: [...]}`, without order"
        )
    try:
        number = integer("coarse", told, 1, column.size)
    except ParameterError as error:
        raise SchemaError(f"{error}; or a list of edges") from None
    return np.arange(column.size) * number // column.size


def _by_edges(column: Column, told: list[object] | tuple[object, ...]) -> npt.NDArray[np.int64]:
    starts = column.starts
    if starts is None or not column.ordered:
        raise SchemaError("coarse has edges, but its values have no order; name groups of values instead")
    if len(told) < 2:
        raise SchemaError("coarse must list at least two edges, the first and the last bound")
    alone = [False, *(edge == before for before, edge in pairwise(told[:-1]))]
    edges = [column.start_of(edge, after=after) for edge, after in zip(told[:-1], alone, strict=True)]
    edges.append(column.start_of(told[-1], after=True))
    if any(a >= b for a, b in pairwise(edges)):
        raise SchemaError("coarse must list its edges in rising order, each once, or twice for that value alone")
    if edges[0] != starts[0] or edges[-1] != starts[-1]:
        raise SchemaError("the first and the last edge of coarse must be the bounds of the column")
    return _between(column, edges[:-1])


def _by_unit(column: Column, told: str) -> npt.NDArray[np.int64]:
    if not isinstance(column, (Date, DateTime)):
        raise SchemaError(f"coarse must be a number of groups, a list of edges or named groups, not {told!r}")
    return _between(column, replace(column, bins=told, coarse=None).edges[:-1].tolist())


def _between(column: Column, edges: list[float]) -> npt.NDArray[np.int64]:
    """Return the groups that begin at these edges, if bins do too."""
    starts = column.starts
    assert starts is not None  # noqa: S101 - the callers' case
    for edge in edges:
        if edge not in starts:
            raise SchemaError(
                f"coarse cuts a bin in two at {column.said_start(edge)}; its edges must be edges of `bins` too"
            )
    return np.searchsorted(np.array(edges), starts[:-1], side="right") - 1


def _by_name(column: Column, told: Mapping[object, object]) -> npt.NDArray[np.int64]:
    chosen = Chosen(column)
    groups = np.full(column.size, -1, dtype=np.int64)
    for number, (name, values) in enumerate(told.items()):
        if not isinstance(name, str):
            raise SchemaError(f"the name of a coarse group must be a text, not {name!r}; quote it")
        mask = chosen(values)
        if column.missing and mask[-1]:
            raise SchemaError(f"coarse group {name!r} has missing, which is a group of its own; leave it out")
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
            "coarse groups of values that have an order must be neighbours, from the least to the greatest"
        )
    return groups
