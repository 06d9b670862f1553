"""The values of attributes in words: what a code stands for, as a reader of a table of counts wants to see it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle.columns import Column, Date, DateTime, Integer, Number
from chicle.schema import Schema

__all__ = ["attribute_labels", "bucket_labels", "value_labels"]

_SHOWN = 3


def value_labels(schema: Schema, name: str) -> list[str]:
    """Return a text for each code of a column: its value, the bounds of its bin, or ``missing``.

    Examples
    --------
    >>> schema = Schema({"age": {"type": "integer", "min": 0, "max": 99, "bins": 4}, "smoker": {"type": "boolean"}})
    >>> value_labels(schema, "age"), value_labels(schema, "smoker")
    (['0 to 24', '25 to 49', '50 to 74', '75 to 99'], ['False', 'True'])
    """
    known, size = _known(schema.columns[name]), schema.domain[name]
    return [str(code) for code in range(size)] if known is None else [*known, "missing"][:size]


def attribute_labels(schema: Schema, name: str) -> list[str]:
    """Return a text for each code of what mechanisms see: a column, coarse groups of its values, or columns combined.

    Examples
    --------
    >>> columns = {"age": {"type": "integer", "min": 0, "max": 99, "coarse": 2}, "left": 2, "right": 2}
    >>> schema = Schema(columns, combine={"sides": ["left", "right"]})
    >>> attribute_labels(schema, "age"), attribute_labels(schema, "sides")
    (['0 ... 49', '50 ... 99'], ['0 & 0', '0 & 1', '1 & 0', '1 & 1'])
    """
    recoding = schema.recoding
    if name not in recoding.combined:
        return _grouped(schema, name)
    one = recoding.combined[name]
    parts = [
        np.array(_grouped(schema, column), dtype=object)[codes]
        for column, codes in zip(one.columns, one.parts(), strict=True)
    ]
    return [" & ".join(cell) for cell in zip(*parts, strict=True)]


def bucket_labels(labels: list[str], buckets: npt.NDArray[Any], *, ordered: bool) -> list[str]:
    """Return a text for each bucket of values: the first and the last where they have an order, else the first few."""
    texts = []
    for bucket in range(int(buckets.max()) + 1):
        held = [labels[code] for code in np.flatnonzero(buckets == bucket)]
        if len(held) <= 1 or not ordered:
            more = [f"{len(held) - _SHOWN} more"] if len(held) > _SHOWN else []
            texts.append(", ".join([*held[:_SHOWN], *more]))
        else:
            texts.append(f"{held[0]} ... {held[-1]}")
    return texts


def _grouped(schema: Schema, name: str) -> list[str]:
    labels, groups = value_labels(schema, name), schema.recoding.groups.get(name)
    return labels if groups is None else bucket_labels(labels, groups, ordered=name in schema.ordinal)


def _known(column: Column) -> list[str] | None:
    if column.labels is not None:
        return [str(label) for label in column.labels]
    if isinstance(column, Integer):
        return [_between(first, end - 1) for first, end in pairwise(column.starts.tolist())]
    if isinstance(column, Number):
        return [_between(f"{first:.6g}", f"{end:.6g}") for first, end in pairwise(column.edges.tolist())]
    if isinstance(column, Date):
        days = column.edges.astype("datetime64[D]")
        return [_between(first, end) for first, end in zip(days[:-1], days[1:] - 1, strict=True)]
    if isinstance(column, DateTime):
        return [_between(first, end) for first, end in pairwise(column.edges.astype("datetime64[us]"))]
    return None


def _between(first: object, last: object) -> str:
    return str(first) if first == last else f"{first} to {last}"
