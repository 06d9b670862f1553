"""Coded tables for benchmarks: a folder with data.parquet, domain.json and, where values were binned, values.json."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import chicle
from chicle import Clique, Records, Schema

ADULT_ORDINAL = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")


def data_folder() -> Path:
    """Return where tables are looked for: $CHICLE_DATA, or a folder ``shared/data`` beside the checkout."""
    return Path(os.environ.get("CHICLE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def load(folder: Path, records: int | None = None) -> tuple[Records, Schema]:
    """Return the first records of a table; columns of bins are ordinal."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only where tables are at hand

    domain = json.loads((folder / "domain.json").read_text(encoding="utf-8"))
    values = folder / "values.json"
    known = json.loads(values.read_text(encoding="utf-8")) if values.exists() else {}
    binned = [column for column, kept in known.items() if isinstance(kept, dict) and column in domain]
    table = pq.read_table(folder / "data.parquet")
    table = table if records is None else table[:records]
    ordinal = ADULT_ORDINAL if folder.name == "adult" else binned
    return Records(table, domain), Schema.from_cardinalities(domain, ordinal=ordinal)


def distance(real: Records, made: Records, cliques: Sequence[Clique], at_once: int = 50) -> float:
    """Return the mean total variation distance over cliques."""
    total = 0.0
    for start in range(0, len(cliques), at_once):
        some = cliques[start : start + at_once]
        for a, b in zip(chicle.count(real, some), chicle.count(made, some), strict=True):
            total += np.abs(a / len(real) - b / max(len(made), 1)).sum() / 2
    return total / len(cliques)


def binary(real: Records, attributes: int = 16) -> tuple[Records, Schema]:
    """Return the first attributes of several values, each cut in two at its median: a small domain."""
    several = [name for name in real if real.domain[name] > 1][:attributes]
    columns = {name: (real[name] > np.median(real[name])).astype(np.uint8) for name in several}
    held = {name: codes for name, codes in columns.items() if 0 < codes.mean() < 1}
    domain = dict.fromkeys(held, 2)
    return Records(held, domain), Schema.from_cardinalities(domain)
