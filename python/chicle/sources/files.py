"""Tables in files, one after the other: CSV, Parquet and Arrow, named one by one or by a pattern."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from chicle.errors import ArtefactError, ParameterError
from chicle.sources.frames import Form, arrow_columns
from chicle.sources.readers import Batch, Reader
from chicle.sources.table_files import check_ending, layout, read_batches

if TYPE_CHECKING:
    from chicle.schema import Schema

__all__ = ["Files", "are_files", "find_files"]


class Files(Reader):
    """Files that together are one table, in the order in which they are named; the first one tells the types.

    Parameters
    ----------
    paths
        The files.
    schema
        What is declared about their columns.
    """

    streams = True

    def __init__(self, paths: Sequence[Path], schema: Schema) -> None:
        self._paths, self._schema = list(paths), schema
        self._skip = schema.dropped
        for path in self._paths:
            check_ending(path)

    def layouts(self) -> Iterator[tuple[str | None, Sequence[str]]]:
        """Give the columns of each file."""
        for path in self._paths:
            names = layout(path, self._schema).names
            yield str(path), [name for name in names if name not in self._skip]

    def form(self) -> Form:
        """Return an Arrow table of the first file's types."""
        empty = layout(self._paths[0], self._schema).empty_table()
        return Form.of(empty, arrow_columns(empty, self._skip))

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Give the rows of each file."""
        for i, path in enumerate(self._paths):
            for batch, part in read_batches(path, names, self._schema):
                columns = arrow_columns(batch)
                yield Batch({name: columns[name] for name in names}, str(path), (i + part) / len(self._paths))


def are_files(given: object) -> bool:
    """Return whether a table is given as a path, a pattern, or several of them."""
    several = given if isinstance(given, (list, tuple)) else [given]
    return bool(several) and all(isinstance(item, (str, os.PathLike)) for item in several)


def find_files(given: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Return the files of a path, of a pattern such as ``part-*.parquet`` in the order of their names, or of several.

    Examples
    --------
    >>> find_files("no-such-*.csv")
    Traceback (most recent call last):
    chicle.errors.ArtefactError: no file is called no-such-*.csv; is the pattern right?
    """
    several = [given] if isinstance(given, (str, os.PathLike)) else list(given)
    if not several:
        raise ParameterError("the list of files is empty; name at least one")
    found: list[Path] = []
    for item in several:
        path = Path(item)
        if path.is_dir():
            raise ParameterError(f"{path} is a folder; name the files in it, as in {path / '*.parquet'}")
        if path.exists() or not glob.has_magic(str(path)):
            found.append(path)
            continue
        matching = sorted(Path(name) for name in glob.glob(str(path), recursive=True))  # noqa: PTH207 - of any path
        if not matching:
            raise ArtefactError(f"no file is called {path}; is the pattern right?")
        found += matching
    met: set[Path] = set()
    for path in found:
        if (place := path.resolve()) in met:
            raise ParameterError(f"{path} is named twice, so its rows would count twice; name it once")
        met.add(place)
    return found
