"""From a declaration in plain data to a column. Unknown words are errors that suggest the closest known word."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from difflib import get_close_matches
from typing import Any

from chicle.columns.base import Column
from chicle.columns.registry import ALIASES, TYPES
from chicle.errors import SchemaError

__all__ = ["column_from_dict", "unknown"]


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
    options: dict[str, Any] = dict(declaration)
    kind = _kind(options)
    if kind is None:
        raise SchemaError(f"column {name!r}: it has no type; write `type:` and one of {', '.join(TYPES)}")
    if not isinstance(kind, str) or kind not in TYPES:
        meant = ALIASES.get(str(kind).lower())
        hint = f"did you mean {meant!r}?" if meant else unknown(str(kind), TYPES)
        raise SchemaError(f"column {name!r}: there is no type {kind!r}; {hint}")
    column = TYPES[kind]
    allowed = {field.name: field.default is MISSING for field in fields(column)}
    if not column.modelled:
        del allowed["missing"], allowed["coarse"]
    for key in options:
        if key not in allowed:
            raise SchemaError(f"column {name!r}: {kind} has no {key!r}; {unknown(str(key), allowed)}")
    for key, required in allowed.items():
        if required and key not in options:
            raise SchemaError(f"column {name!r}: {kind} needs {key!r}; write `{key}: ...`")
    try:
        return column(**options)
    except SchemaError as error:
        raise SchemaError(f"column {name!r}: {error}") from None


def _kind(options: dict[str, Any]) -> object:
    """Take the type out of a declaration, or return the one that it implies."""
    implied = next(
        (kind for kind, one in TYPES.items() if one.implied_by is not None and one.implied_by in options), None
    )
    kind = options.pop("type", implied)
    if implied == "following":  # its `type` is that of the values
        options["kind"], kind = kind, implied
    return kind


def unknown(word: str, known: Iterable[str]) -> str:
    """Return a hint: the closest known word, or all of them."""
    names = list(known)
    near = get_close_matches(word, names, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"use one of {', '.join(names)}" if names else "leave it out"
