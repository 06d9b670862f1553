"""The tables of the papers: found in a folder of data, checked, and cut down for the quick form."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from chicle.counting.records import Records
from chicle.datasets import census
from chicle.errors import ParameterError
from chicle.papers.paper import Table
from chicle.schema import Schema

__all__ = ["data_folder", "digest_of", "find"]

QUICK_TABLES, QUICK_ROWS, QUICK_COLUMNS = 2, 8_000, 7

_ORDINAL = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")


def data_folder(given: str | os.PathLike[str] | None) -> Path:
    """Return the folder of tables: the one given, or that of ``CHICLE_DATA``."""
    named = os.environ.get("CHICLE_DATA") if given is None else given
    if named is None:
        raise ParameterError("the tables of the papers are not part of chicle; name their folder with --data")
    folder = Path(named)
    if not folder.is_dir():
        raise ParameterError(f"there is no folder {str(folder)!r}; name the one that holds the tables with --data")
    return folder


def find(table: Table, folder: Path, *, quick: bool = False) -> tuple[Records, Schema] | None:
    """Return a table with its schema; None where the folder does not hold it, or one without any of its columns.

    The quick form has the first rows, and the attributes of fewest values with the label among them.
    """
    if table.simulated is not None:
        size, attributes = table.simulated
        people = census(min(size, QUICK_ROWS) if quick else size, attributes)
        return people, Schema.from_cardinalities(people.domain)
    files = [folder / table.folder / name for name in ("data.parquet", "private.parquet")] if table.folder else []
    path = next((file for file in files if file.exists()), None)
    if path is None or not path.with_name("domain.json").exists():
        return None
    domain = json.loads(path.with_name("domain.json").read_text(encoding="utf-8"))
    names = [name for name in (table.columns or domain) if name in domain]
    if not names:
        return None
    wanted = [name for name in table.quick if name in domain]
    kept = (wanted or _quick_columns(names, domain, table.label)) if quick else names
    rows = pq.read_table(path, columns=kept)
    rows = rows[: min(QUICK_ROWS if quick else len(rows), table.rows or len(rows))]
    columns = {name: rows[name].to_numpy() for name in kept}
    sizes = {name: int(domain[name]) for name in kept}
    if table.binary:
        columns = {name: _halves(codes) for name, codes in columns.items() if np.ptp(codes)}
        sizes = dict.fromkeys(columns, 2)
    ordinal = [name for name in sizes if name in (*_ORDINAL, *_binned(path)) and sizes[name] > 2]
    return Records(columns, sizes), Schema.from_cardinalities(sizes, ordinal=ordinal)


def digest_of(records: Records) -> str:
    """Return a digest of the codes of a table: two tables with the same one are the same."""
    made = hashlib.sha256(json.dumps(list(records.domain.items())).encode())
    for name in records.domain:
        made.update(np.ascontiguousarray(records[name], dtype="<u4").tobytes())
    return made.hexdigest()[:16]


def _quick_columns(names: Sequence[str], domain: dict[str, int], label: str | None) -> list[str]:
    several = [name for name in names if domain[name] > 1]
    small = sorted(several, key=lambda name: (name != label, domain[name]))[:QUICK_COLUMNS]
    return [name for name in names if name in small]


def _halves(codes: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return whether codes are above their median; or at it, where none is above."""
    above = codes > np.median(codes)
    return np.asarray(above if above.any() else codes >= np.median(codes), dtype=np.uint8)


def _binned(path: Path) -> list[str]:
    """Return the attributes that are bins of numbers, as the table's notes on values say."""
    values = path.with_name("values.json")
    known = json.loads(values.read_text(encoding="utf-8")) if values.exists() else {}
    return [name for name, kept in known.items() if isinstance(kept, dict)]
