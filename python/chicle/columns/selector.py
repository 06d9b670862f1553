"""Select codes of a column by values, lists of values, ranges, missing, or the complement of any of these.

Constraints, combinations and coarse groups use it. A range must begin and end at edges of bins, because a code does not
say where inside its bin a value lies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from chicle.columns.base import Column, Mask
from chicle.columns.categorical import places, value_key
from chicle.errors import SchemaError

__all__ = ["Selector"]

_BOUNDS = {"from": False, "below": False, "above": True, "to": True}  # whether the cut comes after the bound itself
_RANGE = "{from: ..., to: ...} (both included), {above: ..., below: ...} (neither)"
_MOST_CODES = 2**22


class Selector:
    """Selects the codes of one column that a declaration names.

    Examples
    --------
    >>> from chicle.columns import Integer
    >>> select = Selector(Integer(min=0, max=9, missing=True))
    >>> np.flatnonzero(select([1, None])).tolist(), np.flatnonzero(select({"below": 2})).tolist()
    ([1, 10], [0, 1])
    >>> np.flatnonzero(select({"not": {"from": 2}})).tolist()
    [0, 1, 10]
    """

    def __init__(self, column: Column) -> None:
        if column.undiscovered:
            raise SchemaError("its values are yet to be discovered; only declared values can be named")
        if column.cardinality > _MOST_CODES:
            raise SchemaError(f"it has {column.cardinality} codes, more than {_MOST_CODES}; give it fewer `bins`")
        self._column = column
        self._starts = column.starts
        self._places = {} if column.labels is None else places(column.labels)

    def __call__(self, named: object) -> Mask:
        """Return a mask of the codes that a value, a list, a range such as ``{below: 15}`` or ``{not: ...}`` names."""
        if isinstance(named, Mapping):
            if set(named) == {"not"}:
                return ~self(named["not"])
            return self._range(named)
        mask = np.zeros(self._column.cardinality, dtype=np.bool_)
        if isinstance(named, (list, tuple)):
            for item in named:
                mask |= self(item)
            return mask
        if named is None:
            if not self._column.missing:
                raise SchemaError("it has no missing values; leave null out, or declare `missing: true`")
            mask[-1] = True
        elif self._places:
            try:
                mask[self._places[value_key(named)]] = True
            except (KeyError, TypeError):
                raise SchemaError(f"{named!r} is not one of its values; {self._some()}") from None
        else:
            return self._range({"from": named, "to": named})
        return mask

    def _range(self, named: Mapping[Any, Any]) -> Mask:
        unknown = [key for key in named if key not in _BOUNDS]
        if unknown or not named:
            raise SchemaError(f"a range is {_RANGE}, and a complement is {{not: ...}}; not {dict(named)!r}")
        if self._starts is None:
            raise SchemaError("its values have no order, so it has no ranges; list values, or declare it as ordinal")
        first, end = 0, self._column.size
        for key, bound in named.items():
            place = self._cut(key, bound)
            if key in ("from", "above"):
                first = max(first, place)
            else:
                end = min(end, place)
        mask = np.zeros(self._column.cardinality, dtype=np.bool_)
        mask[first:end] = True
        return mask

    def _cut(self, key: str, bound: object) -> int:
        """Return the first code at or after a bound; a bound inside a bin is an error."""
        starts, column = self._starts, self._column
        assert starts is not None  # noqa: S101 - the caller's case
        start = column.start_of(bound, after=_BOUNDS[key])
        place = int(np.searchsorted(starts, start))
        if 0 < place <= column.size and starts[place] != start:
            near = " or ".join(column.said_start(edge) for edge in starts[place - 1 : place + 1].tolist())
            word = "from" if key in ("from", "above") else "below"
            raise SchemaError(
                f"`{key}: {bound}` cuts a bin in two; write `{word}:` {near}, where bins begin, or add an edge to bins"
            )
        return min(place, column.size)

    def _some(self) -> str:
        labels = [repr(label) for (_, label), _ in zip(self._places, range(6), strict=False)]
        return f"it has {', '.join(labels)}" + (", ..." if len(self._places) > 6 else "")
