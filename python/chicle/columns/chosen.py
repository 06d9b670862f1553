"""Which codes of a column a declaration names: values, lists of them, ranges, missing, and what they leave.

Used wherever a schema speaks of some of a column's values: constraints, combinations and coarse groups. A range must
begin and end where bins do: inside a bin nobody can tell on which side a row is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from chicle.columns.base import Column, Mask
from chicle.columns.categorical import places, value_key
from chicle.errors import SchemaError

__all__ = ["Chosen"]

_BOUNDS = {"from": False, "below": False, "above": True, "to": True}  # whether the bound itself lies before the cut
_RANGE = "{from: ..., to: ...} (both included), {above: ..., below: ...} (neither)"
_MOST_CODES = 2**22


class Chosen:
    """Finds the codes of one column that declarations name.

    Examples
    --------
    >>> from chicle.columns import Integer
    >>> chosen = Chosen(Integer(min=0, max=9, missing=True))
    >>> np.flatnonzero(chosen([1, None])).tolist(), np.flatnonzero(chosen({"below": 2})).tolist()
    ([1, 10], [0, 1])
    >>> np.flatnonzero(chosen({"not": {"from": 2}})).tolist()
    [0, 1, 10]
    """

    def __init__(self, column: Column) -> None:
        if column.undiscovered:
            raise SchemaError("its values are yet to be discovered; only declared ones can be named")
        if column.cardinality > _MOST_CODES:
            raise SchemaError(f"it has {column.cardinality} codes, more than can be chosen from; give it fewer `bins`")
        self._column = column
        self._starts = column.starts
        self._places = {} if column.labels is None else places(column.labels)

    def __call__(self, told: object) -> Mask:
        """Return which codes are named by a value, a list, a range such as ``{below: 15}``, or ``{not: ...}``."""
        if isinstance(told, Mapping):
            if set(told) == {"not"}:
                return ~self(told["not"])
            return self._range(told)
        mask = np.zeros(self._column.cardinality, dtype=np.bool_)
        if isinstance(told, (list, tuple)):
            for item in told:
                mask |= self(item)
            return mask
        if told is None:
            if not self._column.missing:
                raise SchemaError("it has no missing values; leave null out, or declare `missing: true`")
            mask[-1] = True
        elif self._places:
            try:
                mask[self._places[value_key(told)]] = True
            except (KeyError, TypeError):
                raise SchemaError(f"{told!r} is none of its values; {self._some()}") from None
        else:
            return self._range({"from": told, "to": told})
        return mask

    def _range(self, told: Mapping[Any, Any]) -> Mask:
        unknown = [key for key in told if key not in _BOUNDS]
        if unknown or not told:
            raise SchemaError(f"a range is {_RANGE}, and all but some is {{not: ...}}; not {dict(told)!r}")
        if self._starts is None:
            raise SchemaError("its values have no order, so it has no ranges; list values, or declare it as ordinal")
        first, end = 0, self._column.size
        for key, bound in told.items():
            place = self._cut(key, bound)
            if key in ("from", "above"):
                first = max(first, place)
            else:
                end = min(end, place)
        mask = np.zeros(self._column.cardinality, dtype=np.bool_)
        mask[first:end] = True
        return mask

    def _cut(self, key: str, bound: object) -> int:
        """Return the first code at or after a bound, if no bin lies on both sides of it."""
        starts, column = self._starts, self._column
        assert starts is not None  # noqa: S101 - the caller's case
        start = column.start_of(bound, after=_BOUNDS[key])
        place = int(np.searchsorted(starts, start))
        if 0 < place <= column.size and starts[place] != start:
            near = " or ".join(column.said_start(edge) for edge in starts[place - 1 : place + 1].tolist())
            word = "from" if key in ("from", "above") else "below"
            raise SchemaError(
                f"`{key}: {bound}` cuts a bin in two; say `{word}:` {near}, where bins begin, or add an edge to `bins`"
            )
        return min(place, column.size)

    def _some(self) -> str:
        labels = [repr(label) for (_, label), _ in zip(self._places, range(6), strict=False)]
        return f"there is {', '.join(labels)}" + (", ..." if len(self._places) > 6 else "")
