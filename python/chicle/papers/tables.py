"""The tables of the papers: found in a folder of data, checked, and cut down for the quick form."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from chicle.counting.records import Records
from chicle.datasets import census
from chicle.domain import Domain
from chicle.errors import ParameterError
from chicle.papers.paper import Table
from chicle.public import PublicData
from chicle.schema import Schema

__all__ = ["data_folder", "digest_of", "find", "find_public"]

QUICK_ROWS, QUICK_PARTS, QUICK_COLUMNS = 8_000, 12, 7

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
    path = _path(folder, table.folder, ("data.parquet", "private.parquet"))
    if path is None:
        return None
    domain = json.loads(path.with_name("domain.json").read_text(encoding="utf-8"))
    names = [name for name in (table.columns or domain) if name in domain]
    if not names:
        return None
    wanted = [name for name in table.quick if name in domain]
    kept = (wanted or _quick_columns(names, domain, (*table.partition, table.label))) if quick else names
    rows = pq.read_table(path, columns=[*kept, *([table.person] if table.person else [])])
    rows = rows[: table.rows or len(rows)]
    if quick and not table.partition:
        rows = rows[:QUICK_ROWS]
    columns, sizes = _codes(rows, {name: int(domain[name]) for name in kept}, table.widths)
    if table.person:
        first = _first_rows(rows[table.person].to_numpy(), table.max_rows)
        columns = {name: codes[first] for name, codes in columns.items()}
    if quick and table.partition:
        columns, sizes = _few_parts(columns, sizes, table.partition[0])
    if table.binary:
        columns = {name: _halves(codes) for name, codes in columns.items() if np.ptp(codes)}
        sizes = dict.fromkeys(columns, 2)
    ordinal = [name for name in sizes if name in (*_ORDINAL, *_binned(path)) and sizes[name] > 2]
    records = Records(columns, sizes, max_records_per_person=table.max_rows)
    # About how many rows there are is published with such tables.
    data = {"rows": int(float(f"{len(records):.1e}"))} if table.partition else None
    return records, Schema(sizes, ordinal, table.max_rows, data=data, partition=table.partition)


def find_public(table: Table, folder: Path, domain: Domain) -> PublicData | None:
    """Return the public table beside a table of these attributes; None where it has none, or none is at hand.

    Parts of a public table are others than those of the private one, of numbers of their own. They are left out where
    there are more of them.
    """
    given = table.public
    path = None if given is None else _path(folder, given.folder, ("public.parquet", "data.parquet"))
    if given is None or path is None:
        return None
    there = json.loads(path.with_name("domain.json").read_text(encoding="utf-8"))
    names = [name for name in domain if name in there]
    columns, sizes = _codes(
        pq.read_table(path, columns=names), {name: int(there[name]) for name in names}, table.widths
    )
    if given.without is not None and given.without[0] in columns:
        kept = columns[given.without[0]] != given.without[1]
        columns = {name: codes[kept] for name, codes in columns.items()}
    fit = [name for name in names if name not in table.partition or sizes[name] <= domain[name]]
    records = Records({name: columns[name] for name in fit}, {name: domain[name] for name in fit})
    return PublicData(records, role=given.role, name=given.folder)


def _path(folder: Path, name: str, files: Sequence[str]) -> Path | None:
    """Return the first of several files that a folder of data holds; None if it holds none, or no domain."""
    paths = [folder / name / file for file in files] if name else []
    path = next((path for path in paths if path.exists()), None)
    return path if path is not None and path.with_name("domain.json").exists() else None


def _codes(
    rows: pa.Table, sizes: dict[str, int], widths: Mapping[str, int]
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, int]]:
    """Return codes with their numbers of values, neighbours made one as `widths` say."""
    columns = {name: rows[name].to_numpy() // widths.get(name, 1) for name in sizes}
    return columns, {name: -(-size // widths.get(name, 1)) for name, size in sizes.items()}


def _first_rows(person: npt.NDArray[Any], most: int) -> npt.NDArray[np.int64]:
    """Return the places of the first rows of each person, in order."""
    order = np.argsort(person, kind="stable")
    begins = np.flatnonzero(np.append(True, np.diff(person[order]) != 0))
    inside = np.arange(len(order)) - np.repeat(begins, np.diff(np.append(begins, len(order))))
    return np.sort(order[inside < most])


def _few_parts(
    columns: dict[str, npt.NDArray[Any]], sizes: dict[str, int], name: str
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, int]]:
    """Return all rows of the first parts: parts that are cut say nothing."""
    kept = columns[name] < QUICK_PARTS
    return {other: codes[kept] for other, codes in columns.items()}, {**sizes, name: min(sizes[name], QUICK_PARTS)}


def digest_of(records: Records) -> str:
    """Return a digest of the codes of a table: two tables with the same one are the same."""
    made = hashlib.sha256(json.dumps(list(records.domain.items())).encode())
    for name in records.domain:
        made.update(np.ascontiguousarray(records[name], dtype="<u4").tobytes())
    return made.hexdigest()[:16]


def _quick_columns(names: Sequence[str], domain: dict[str, int], first: Sequence[str | None]) -> list[str]:
    several = [name for name in names if domain[name] > 1]
    small = sorted(several, key=lambda name: (name not in first, domain[name]))[:QUICK_COLUMNS]
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
