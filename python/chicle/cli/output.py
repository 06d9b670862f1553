"""Output files: checked before anything is spent, and written whole or not at all."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from chicle._write import replacing, trying
from chicle.cli.terminal import Progress, warn
from chicle.codecs import Codec
from chicle.counting.records import Records
from chicle.errors import ParameterError
from chicle.measurements.measurement import total_sigma
from chicle.releases.release import Release
from chicle.schema import Schema
from chicle.sources import decode_table
from chicle.sources.frames import Form
from chicle.sources.table_files import write_explained

__all__ = ["check_output", "estimated_rows", "rehearse", "write_sample"]

# An estimated number of rows below so many standard deviations is mostly noise; at most so many such rows are made.
_STANDS_OUT = 3
_MOST_NOISE = 10_000_000


def check_output(path: str, force: bool, inputs: Sequence[str | Path]) -> None:
    """Check that a file can be written, and that it does not exist unless `force` is given."""
    place = Path(path)
    if place.resolve() in {Path(given).resolve() for given in inputs}:
        raise ParameterError(f"{path} is an input of this command and would be lost; write to another file")
    if place.is_dir():
        raise ParameterError(f"{path} is a folder; name a file in it")
    if place.exists() and not force:
        raise ParameterError(f"{path} exists already; give --force to replace it, or another name")
    try:
        with trying(path) as beside:
            beside.touch()
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        fix = f"make the folder {place.parent} first" if missing else "choose another place"
        raise ParameterError(f"{path} cannot be written: {error.strerror}; {fix}") from None


def write_sample(
    release: Release,
    arguments: argparse.Namespace,
    progress: Progress,
    *,
    where: Mapping[str, Any] | None = None,
    given: str | None = None,
) -> int:
    """Draw a table, write it, and return how many rows it has; `where` and `given` are those of `Release.sample`."""
    progress.say("making records")
    rows = arguments.n
    if rows is None and where is None and given is None:
        rows = estimated_rows(release)
    parts = release.sample_parts(
        rows, arguments.seed, where=where, given=given, threads=arguments.threads, progress=progress.note
    )
    with replacing(arguments.output) as beside:
        return write_explained(_shown(parts, rows, progress), beside, arguments.output)


def estimated_rows(release: Release) -> int:
    """Return the private estimate of the number of rows, and warn where noise is most of it."""
    rows, sigma = release.total, total_sigma(release.measurements)
    if rows < _STANDS_OUT * sigma:
        if rows > _MOST_NOISE:
            raise ParameterError("this budget is too small to estimate the number of rows; give the number with -n")
        warn(f"the estimated number of rows is mostly noise (standard deviation {sigma:,.0f}); set it with -n")
    return rows


def _shown(parts: Iterable[pa.Table], rows: int | None, progress: Progress) -> Iterator[pa.Table]:
    """Yield the parts of a table and show the progress."""
    begun = False
    for part in parts:
        if not begun:
            progress.say("writing", total=rows)
            begun = True
        yield part
        progress.advance(len(part))


def rehearse(schema: Schema, form: Form, output: str) -> None:
    """Write an empty table of these types, to find out before the fit whether the format can hold them."""
    none = Records({name: np.empty(0, dtype=np.uint8) for name in schema.domain}, schema.domain)
    with trying(output) as beside:
        write_explained(decode_table(none, Codec(schema), Form("pyarrow", form.types)), beside, output)
