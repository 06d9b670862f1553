"""The registered column types, which declarations may name. Users may register their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from types import MappingProxyType
from typing import TypeVar

from chicle.columns.base import Column
from chicle.errors import ParameterError

__all__ = ["ALIASES", "TYPES", "register_column"]

_types: dict[str, type[Column]] = {}
_aliases: dict[str, str] = {}

TYPES: Mapping[str, type[Column]] = MappingProxyType(_types)
"""The registered classes, by the name of their type."""

ALIASES: Mapping[str, str] = MappingProxyType(_aliases)
"""Other words that people write for a type, and its name, which the error suggests."""

_Class = TypeVar("_Class", bound=type[Column])


def register_column(made: _Class) -> _Class:
    """Register a column type, so that schemas, files, drafts and saved releases know it by its `type`.

    This decorates a frozen dataclass that derives from `Column` and has a `type` of its own. A second class of the same
    name in the same module replaces the first, as when a notebook cell runs twice.

    Notes
    -----
    A type is one class in one file::

        @column
        @dataclass(frozen=True, kw_only=True)
        class Compass(Categorical):
            type = "compass"
            also = ("wind",)
            values: Sequence[str] = ("north", "east", "south", "west")
    """
    name = vars(made).get("type")
    if not isinstance(name, str) or not name:
        raise ParameterError(f"{made.__name__} needs a `type` of its own: its name in declarations")
    if not is_dataclass(made):
        raise ParameterError(f"{made.__name__} must be a dataclass; its fields are the keys of a declaration")
    if name in _types and _place(_types[name]) != _place(made):
        raise ParameterError(f"there is a column type {name!r} already; give {made.__name__} another `type`")
    _types[name] = made
    _aliases.update(dict.fromkeys(vars(made).get("also", ()), name))
    return made


def _place(made: type[Column]) -> tuple[str, str]:
    return made.__module__, made.__qualname__
