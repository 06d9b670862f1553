"""What a reviewer of a draft should know about each column: **not private**, like the draft.

`chicle.draft_schema(table).flags` has the flags of each column. In the saved file they are comments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["FEW", "Flags", "Rare", "RowsAPerson"]

FEW = 5
"""A value that so many rows or people have, or fewer, is rare: it may point at them."""

_SHOWN = 6  # rare values that a sentence names


@dataclass(frozen=True, kw_only=True)
class RowsAPerson:
    """How many rows the persons of a column have: NOT PRIVATE.

    Attributes
    ----------
    persons
        The number of different ids.
    median, high, most
        The rows of the median person, those that 99 % of persons do not exceed, and the most that a person has.
    max_records
        The proposed limit of rows a person: the smallest that keeps at least 90 % of the rows.
    kept
        The share of rows that this limit keeps.
    """

    persons: int
    median: int
    high: int
    most: int
    max_records: int
    kept: float

    def __str__(self) -> str:
        rows = "1 row" if self.median == 1 else f"{self.median} rows"
        return (
            f"a person has {rows} in the median, at most {self.high} in 99 of 100 cases, and at most {self.most}; "
            f"`max_records: {self.max_records}` keeps {100 * self.kept:.0f} % of the rows, and noise grows with it"
        )


@dataclass(frozen=True)
class Rare:
    """A part of a drafted declaration that few rows or people decide.

    Attributes
    ----------
    key
        The key of the declaration: ``values``, ``min`` or ``max``.
    value
        The value.
    """

    key: str
    value: Any


@dataclass(frozen=True, kw_only=True)
class Flags:
    """What a reviewer should know about a drafted column: NOT PRIVATE.

    Attributes
    ----------
    read
        What was read from the data, such as ``"bounds"``; ``"its type"`` if nothing else was.
    needs_source
        Whether the declaration has values, bounds or edges from the data. Such a column is drafted with
        ``source: data``, and the schema can be marked as reviewed only after a public source replaces it.
    identifier
        Whether its values look like ids of rows or persons.
    person
        The rows a person, where it is the proposed person column or another candidate.
    rare
        Labels and extremes that `FEW` rows or people have, or fewer.
    missing_marks
        Values that look like marks of missing values and are drafted as missing.
    formats
        The formats of dates that are written in another way than 2024-12-31.
    ambiguous
        What is ambiguous about its dates, as a sentence; empty if nothing is.
    free_text
        Whether it holds free text, which is dropped.
    remarks
        Further sentences.
    """

    read: str = "its type"
    needs_source: bool = False
    identifier: bool = False
    person: RowsAPerson | None = None
    rare: tuple[Rare, ...] = ()
    missing_marks: tuple[Any, ...] = ()
    formats: tuple[str, ...] = ()
    ambiguous: str = ""
    free_text: bool = False
    remarks: tuple[str, ...] = ()

    @property
    def sentences(self) -> list[str]:
        """All flags in words, the most important first."""
        return list(self._sentences())

    @property
    def comment(self) -> str:
        """The comment in the saved file."""
        return "; ".join([f"read from the data: {self.read}", *self.sentences])

    def _sentences(self) -> Iterator[str]:
        if self.person is not None:
            yield f"values repeat like those of persons: {self.person}"
        elif self.identifier:
            yield "it looks like an identifier of rows; if it identifies persons, write `person:`"
        if self.rare:
            yield f"rare: {FEW} rows or fewer have {_listed(self.rare)}; leave out what only the data could tell"
        if self.missing_marks:
            yield f"missing: {', '.join(map(repr, self.missing_marks))} looks like a mark of missing values"
        if self.formats:
            yield f"dates are written as {', '.join(self.formats)}"
        if self.ambiguous:
            yield self.ambiguous
        yield from self.remarks


def _listed(rare: tuple[Rare, ...]) -> str:
    bounds = [f"the {one.key} {one.value}" for one in rare if one.key != "values"]
    values = [repr(one.value) for one in rare if one.key == "values"]
    if len(values) > _SHOWN:
        values[_SHOWN:] = [f"{len(values) - _SHOWN} more values"]
    return ", ".join([*bounds, *values])
