"""Tables in one or several files (CSV, Parquet, Arrow), given by paths or by a pattern."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from chicle.errors import ArtefactError, ParameterError
from chicle.schema import Schema
from chicle.sources.dialect import DialectPath
from chicle.sources.frames import Form, arrow_columns
from chicle.sources.readers import Batch, Reader, dropped
from chicle.sources.table_files import check_ending, layout, read_batches

__all__ = ["Files", "are_files", "find_files"]


class Files(Reader):
    """A table that is split into files, in the order given; the first file decides the types.

    Parameters
    ----------
    paths
        The files.
    schema
        Their schema.
    """

    streams = True

    def __init__(self, paths: Sequence[Path], schema: Schema) -> None:
        self._paths, self._schema = list(paths), schema
        self._skip = dropped(schema)
        for path in self._paths:
            check_ending(path)

    def layouts(self) -> Iterator[tuple[str | None, Sequence[str]]]:
        """Yield the columns of each file."""
        for path in self._paths:
            names = layout(path, self._schema).names
            yield str(path), [name for name in names if name not in self._skip]

    def form(self) -> Form:
        """Return the form of an Arrow table with the first file's types."""
        empty = layout(self._paths[0], self._schema).empty_table()
        return Form.of(empty, arrow_columns(empty, self._skip))

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Yield the rows of each file."""
        for i, path in enumerate(self._paths):
            for batch, part in read_batches(path, names, self._schema):
                columns = arrow_columns(batch)
                yield Batch({name: columns[name] for name in names}, str(path), (i + part) / len(self._paths))


def are_files(given: object) -> bool:
    """Return whether a table is given as a path, a pattern, or a list of these."""
    several = given if isinstance(given, (list, tuple)) else [given]
    return bool(several) and all(isinstance(item, (str, os.PathLike)) for item in several)


def find_files(given: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Return the files of a path, of a pattern such as ``part-*.parquet`` in order of name, or of a list of these.

    Examples
    --------
    >>> find_files("no-such-*.csv")
    Traceback (most recent call last):
    chicle.errors.ArtefactError: no file matches no-such-*.csv; is the pattern right?
    """
    several = [given] if isinstance(given, (str, os.PathLike)) else list(given)
    if not several:
        raise ParameterError("the list of files is empty; name at least one")
    found: list[Path] = []
    for item in several:
        path = item if isinstance(item, Path) else Path(item)
        if path.is_dir():
            raise ParameterError(f"{path} is a folder; name the files in it, as in {path / '*.parquet'}")
        if path.exists() or not glob.has_magic(str(path)):
            found.append(path)
            continue
        matching = sorted(Path(name) for name in glob.glob(str(path), recursive=True))  # noqa: PTH207 - of any path
        if isinstance(path, DialectPath):
            matching = [DialectPath.of(one, path.dialect) for one in matching]
        if not matching:
            raise ArtefactError(f"no file matches {path}; is the pattern right?")
        found += matching
    met: set[Path] = set()
    for path in found:
        if (place := path.resolve()) in met:
            raise ParameterError(f"{path} is named twice, so its rows would count twice; name it once")
        met.add(place)
    return found
