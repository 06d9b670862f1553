"""Files that commands write: probed before anything is spent, whole or not there."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from chicle._write import replacing, trying
from chicle.cli.terminal import Progress, warn
from chicle.counting.records import Records
from chicle.errors import ArtefactError, ParameterError
from chicle.measurements.measurement import total_sigma
from chicle.releases.release import Release
from chicle.schema import Schema
from chicle.sources.frames import Form
from chicle.sources.table_files import write_table

__all__ = ["check_output", "rehearse", "write_sample"]

# An estimate of the number of rows below so many standard deviations is mostly noise; and how many of those to make.
_STANDS_OUT = 3
_MOST_NOISE = 10_000_000


def check_output(path: str, force: bool, inputs: Sequence[str | Path]) -> None:
    """Find out now whether a file can be written, and refuse to replace what is there unless told to."""
    place = Path(path)
    if place.resolve() in {Path(given).resolve() for given in inputs}:
        raise ParameterError(f"{path} is an input of this command and would be lost; write to another file")
    if place.is_dir():
        raise ParameterError(f"{path} is a folder; name a file in it")
    if place.exists() and not force:
        raise ParameterError(f"{path} is there already; give --force to replace it, or another name")
    try:
        with trying(path) as beside:
            beside.touch()
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        fix = f"make the folder {place.parent} first" if missing else "choose another place"
        raise ParameterError(f"{path} can not be written: {error.strerror}; {fix}") from None


def write_sample(release: Release, arguments: argparse.Namespace, progress: Progress) -> int:
    """Draw a table, write it, and return how many rows it has."""
    progress.say("making records")
    rows = _estimated_rows(release) if arguments.n is None else arguments.n
    parts = release.sample_parts(rows, arguments.seed, threads=arguments.threads, progress=progress.note)
    with replacing(arguments.output) as beside:
        return _write(_shown(parts, rows, progress), beside, arguments.output)


def _estimated_rows(release: Release) -> int:
    """Return the private estimate of the number of rows, and warn where noise is most of it."""
    rows, sigma = release.total, total_sigma(release.measurements)
    if rows < _STANDS_OUT * sigma:
        if rows > _MOST_NOISE:
            raise ParameterError(
                "this budget is too small to tell the number of rows, and its estimate is far too many; give it by -n"
            )
        warn(f"the number of rows is mostly noise, of standard deviation {sigma:,.0f}; -n takes any other")
    return rows


def _shown(parts: Iterable[pa.Table], rows: int, progress: Progress) -> Iterator[pa.Table]:
    """Give the parts of a table, and tell how far they are."""
    begun = False
    for part in parts:
        if not begun:
            progress.say("writing", total=rows)
            begun = True
        yield part
        progress.advance(len(part))


def rehearse(schema: Schema, form: Form, output: str) -> None:
    """Write a table of these types without any row: what its format can not hold is found out before the fit."""
    none = Records({name: np.empty(0, dtype=np.uint8) for name in schema.domain}, schema.domain)
    with trying(output) as beside:
        _write(schema.decode(none, Form("pyarrow", form.types)), beside, output)


def _write(table: pa.Table | Iterable[pa.Table], beside: Path, output: str) -> int:
    try:
        return write_table(table, beside)
    except (OSError, pa.ArrowException) as error:
        number = getattr(error, "errno", None)
        why = "a column has a type that this format can not hold; try .parquet"
        if number is not None:
            why = f"{os.strerror(number)}; make room, or choose another place"
        raise ArtefactError(f"{output} can not be written: {why}") from None
