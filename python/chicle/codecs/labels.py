"""Labels of codes, for readers of tables of counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from chicle.codecs.codec import Codec
from chicle.schema import Schema

__all__ = ["attribute_labels", "bucket_labels", "value_labels"]

_SHOWN = 3


def value_labels(schema: Schema, name: str) -> list[str]:
    """Return a label of each code of a column: its value, the bounds of its bin, or ``missing``.

    Examples
    --------
    >>> schema = Schema({"age": {"type": "integer", "min": 0, "max": 99, "bins": 4}, "smoker": {"type": "boolean"}})
    >>> value_labels(schema, "age"), value_labels(schema, "smoker")
    (['0 to 24', '25 to 49', '50 to 74', '75 to 99'], ['False', 'True'])
    """
    return schema.columns[name].texts


def attribute_labels(codec: Codec, name: str) -> list[str]:
    """Return a label of each code of an attribute: a column, coarse groups of its values, or combined columns.

    Examples
    --------
    >>> columns = {"age": {"type": "integer", "min": 0, "max": 99, "coarse": 2}, "left": 2, "right": 2}
    >>> codec = Codec(Schema(columns, combine={"sides": ["left", "right"]}))
    >>> attribute_labels(codec, "age"), attribute_labels(codec, "sides")
    (['0 ... 49', '50 ... 99'], ['0 & 0', '0 & 1', '1 & 0', '1 & 1'])
    """
    combined = codec.schema.combined
    if name not in combined:
        return _grouped(codec, name)
    one = combined[name]
    parts = [
        np.array(_grouped(codec, column), dtype=object)[codes]
        for column, codes in zip(one.columns, one.parts(), strict=True)
    ]
    return [" & ".join(cell) for cell in zip(*parts, strict=True)]


def bucket_labels(labels: list[str], buckets: npt.NDArray[Any], *, ordered: bool) -> list[str]:
    """Return a label of each bucket of values: its first and last value if they have an order, else its first few."""
    texts = []
    for bucket in range(int(buckets.max()) + 1):
        held = [labels[code] for code in np.flatnonzero(buckets == bucket)]
        if len(held) <= 1 or not ordered:
            more = [f"{len(held) - _SHOWN} more"] if len(held) > _SHOWN else []
            texts.append(", ".join([*held[:_SHOWN], *more]))
        else:
            texts.append(f"{held[0]} ... {held[-1]}")
    return texts


def _grouped(codec: Codec, name: str) -> list[str]:
    labels, groups = value_labels(codec.schema, name), codec.attributes.groups.get(name)
    return labels if groups is None else bucket_labels(labels, groups, ordered=name in codec.schema.ordinal)
