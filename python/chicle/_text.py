"""Format tables and shares as text for readers."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["aligned", "percent"]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a table as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def percent(share: float, digits: int = 1) -> str:
    """Return a share as a percentage, with `digits` decimals.

    Examples
    --------
    >>> percent(0.954), percent(1, 0)
    ('95.4 %', '100 %')
    """
    return f"{100 * share:.{digits}f} %"
