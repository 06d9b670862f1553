"""From a declaration in plain data to a column; what is not understood is refused, with the nearest that would be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from difflib import get_close_matches
from typing import Any

from chicle.columns.base import Column
from chicle.columns.categorical import Boolean, Categorical, Ordinal
from chicle.columns.coded import Coded
from chicle.columns.dates import Date, DateTime
from chicle.columns.integer import Integer
from chicle.columns.number import Number
from chicle.columns.open import Open
from chicle.columns.unmodelled import Determined, Drop, Identifier
from chicle.errors import SchemaError

__all__ = ["column_from_dict", "unknown"]

_COLUMNS: tuple[type[Column], ...] = (
    Categorical, Ordinal, Boolean, Open, Integer, Number, Date, DateTime, Coded, Drop, Identifier, Determined,
)  # fmt: skip
_BY_TYPE = {column.type: column for column in _COLUMNS}
_ALSO = {
    "string": "categorical", "str": "categorical", "text": "categorical", "category": "categorical",
    "enum": "categorical", "int": "integer", "float": "number", "double": "number", "real": "number",
    "numeric": "number", "bool": "boolean", "timestamp": "datetime", "time": "datetime", "id": "identifier",
    "key": "identifier", "ignore": "drop", "skip": "drop", "code": "coded",
}  # fmt: skip


def column_from_dict(name: str, declaration: object) -> Column:
    """Return the column that a declaration describes.

    Examples
    --------
    >>> column_from_dict("age", {"type": "integer", "min": 0, "max": 99}).cardinality
    100
    >>> column_from_dict("age", {"type": "integr", "min": 0, "max": 99})
    Traceback (most recent call last):
    chicle.errors.SchemaError: column 'age': there is no type 'integr'; did you mean 'integer'?
    """
    if not isinstance(declaration, Mapping):
        raise SchemaError(
            f"column {name!r}: a declaration is a mapping such as {{type: integer, min: 0, max: 99}}, "
            f"not a {type(declaration).__name__}"
        )
    told: dict[str, Any] = dict(declaration)
    kind = told.pop("type", "determined" if "determined_by" in told else None)
    if kind is None:
        raise SchemaError(f"column {name!r}: it has no type; write `type:` and one of {', '.join(_BY_TYPE)}")
    if not isinstance(kind, str) or kind not in _BY_TYPE:
        meant = _ALSO.get(str(kind).lower())
        hint = f"did you mean {meant!r}?" if meant else unknown(str(kind), _BY_TYPE)
        raise SchemaError(f"column {name!r}: there is no type {kind!r}; {hint}")
    column = _BY_TYPE[kind]
    allowed = {field.name: field.default is MISSING for field in fields(column)}
    if not column.modelled:
        del allowed["missing"], allowed["coarse"]
    for key in told:
        if key not in allowed:
            raise SchemaError(f"column {name!r}: {kind} has no {key!r}; {unknown(str(key), allowed)}")
    for key, required in allowed.items():
        if required and key not in told:
            raise SchemaError(f"column {name!r}: {kind} needs {key!r}; write `{key}: ...`")
    try:
        return column(**told)
    except SchemaError as error:
        raise SchemaError(f"column {name!r}: {error}") from None


def unknown(word: str, known: Iterable[str]) -> str:
    """Return a hint at the nearest of the known words, or at all of them."""
    names = list(known)
    near = get_close_matches(word, names, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"there is {', '.join(names)}" if names else "it takes nothing"
