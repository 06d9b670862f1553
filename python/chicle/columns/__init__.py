"""Typed columns of a schema: they encode values as codes and decode codes. `column` registers a user's own type."""

from __future__ import annotations

from chicle.columns.base import Column, Report, SyntheticRows, Unmodelled
from chicle.columns.categorical import Boolean, Categorical, Ordinal
from chicle.columns.coded import Coded
from chicle.columns.date import Date
from chicle.columns.datetime import DateTime
from chicle.columns.declare import column_from_dict
from chicle.columns.derived import Derived
from chicle.columns.discovery import BinEdges, FrequentValues, Tally
from chicle.columns.drafting import Draft, RawColumn
from chicle.columns.following import Following
from chicle.columns.integer import Integer
from chicle.columns.number import Number
from chicle.columns.open import Open
from chicle.columns.registry import TYPES, register_column
from chicle.columns.unmodelled import Determined, Drop, Identifier

__all__ = [
    "TYPES",
    "BinEdges",
    "Boolean",
    "Categorical",
    "Coded",
    "Column",
    "Date",
    "DateTime",
    "Derived",
    "Determined",
    "Draft",
    "Drop",
    "Following",
    "FrequentValues",
    "Identifier",
    "Integer",
    "Number",
    "Open",
    "Ordinal",
    "RawColumn",
    "Report",
    "SyntheticRows",
    "Tally",
    "Unmodelled",
    "column_from_dict",
    "register_column",
]
