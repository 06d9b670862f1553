"""The first sheet of an Excel workbook, as texts, like a CSV file. Needs python-calamine, the extra ``excel``."""

from __future__ import annotations

import datetime as dt
import importlib
from pathlib import Path
from typing import Any

import pyarrow as pa

from chicle.errors import ArtefactError, ParameterError

__all__ = ["read_sheet"]


def read_sheet(path: str | Path) -> pa.Table:
    """Return the first sheet of a workbook as a table of texts; empty cells are missing.

    Numbers are written as they are typed (31, not 31.0), and dates as 2024-12-31.
    """
    try:
        calamine = importlib.import_module("python_calamine")
    except ImportError:
        raise ParameterError(
            f"{path} is an Excel workbook; install chicle[excel] to read it, or save it as .csv"
        ) from None
    try:
        rows = calamine.CalamineWorkbook.from_path(str(path)).get_sheet_by_index(0).to_python()
    except (calamine.CalamineError, OSError, IndexError):
        reason = "is the path right?" if not Path(path).exists() else "it is damaged, locked or no workbook"
        raise ArtefactError(f"{path} cannot be read: {reason}") from None
    if not rows:
        raise ArtefactError(f"{path} cannot be read: its first sheet is empty; move the table to the first sheet")
    names = [_text(cell) for cell in rows[0]]
    for number, name in enumerate(names, 1):
        if name is None:
            raise ArtefactError(f"{path}: column {number} has no name; name it in the first row, or delete it")
        if name in names[: number - 1]:
            raise ArtefactError(f"{path}: two columns are called {name!r}; rename one of them in the first row")
    columns = zip(*rows[1:], strict=True) if len(rows) > 1 else [()] * len(names)
    texts = [pa.array([_text(cell) for cell in column], pa.string()) for column in columns]
    return pa.table(dict(zip(names, texts, strict=True)))


def _text(cell: Any) -> str | None:  # noqa: ANN401 - what a cell holds
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    if isinstance(cell, dt.datetime) and cell.time() == dt.time():
        return cell.date().isoformat()
    return (cell.isoformat() if isinstance(cell, (dt.date, dt.time)) else str(cell).strip()) or None
