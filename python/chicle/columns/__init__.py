"""Typed columns of a schema: how values become codes, and codes values again."""

from __future__ import annotations

from chicle.columns.base import Column
from chicle.columns.categorical import Boolean, Categorical, Ordinal
from chicle.columns.coded import Coded
from chicle.columns.dates import Date, DateTime
from chicle.columns.declare import column_from_dict
from chicle.columns.integer import Integer
from chicle.columns.number import Number
from chicle.columns.open import Open
from chicle.columns.unmodelled import Determined, Drop, Identifier

__all__ = [
    "Boolean",
    "Categorical",
    "Coded",
    "Column",
    "Date",
    "DateTime",
    "Determined",
    "Drop",
    "Identifier",
    "Integer",
    "Number",
    "Open",
    "Ordinal",
    "column_from_dict",
]
