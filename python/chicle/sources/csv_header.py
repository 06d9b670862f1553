"""Check the header of a CSV file before it is read: most problems of newcomers show there.

An empty file, a column without a name and duplicate names each get their own message; a parser would complain about row
lengths, or about nothing. Names of columns are public, so messages quote them.
"""

from __future__ import annotations

import csv
from collections.abc import Collection
from pathlib import Path

from chicle.errors import ArtefactError
from chicle.sources.dialect import SEPARATORS, Dialect, opened

__all__ = ["NOT_UTF8", "check_header"]

NOT_UTF8 = "it is not text of its encoding; name the right one, such as `--encoding latin-1`, or save it as UTF-8"
"""The problem of a file in another encoding, and the fix."""

_MOST_LETTERS = 2**20


def check_header(path: str | Path, dialect: Dialect, declared: Collection[str] = ()) -> list[str]:
    r"""Return the names of the columns; a line that cannot be a header is an error that says how to fix it.

    Names are trimmed, unless a declared one begins or ends with a space.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("age,sex\n31,f\n", encoding="utf-8")
    ...     check_header(f"{folder}/a.csv", Dialect(",", ".", "utf-8"))
    ['age', 'sex']
    """
    delimiter = dialect.delimiter or ","
    try:
        with opened(path, dialect.encoding or "utf-8") as file:
            text = file.read(_MOST_LETTERS)
        rows = csv.reader(text.splitlines(keepends=True), delimiter=delimiter)
        names = next((row for row in rows if row), None)
    except csv.Error:
        raise ArtefactError(
            f"{path} cannot be read: its first line is not a list of names; is it a CSV file?"
        ) from None
    if names is None:
        raise ArtefactError(
            f"{path} cannot be read: it is empty, without even a line that names columns; is the path right?"
        )
    names = [name if name in declared else name.strip() for name in names]
    if len(names) == 1 and not text.lstrip().startswith('"'):
        for other, called in SEPARATORS.items():
            if other != delimiter and other in names[0]:
                between = SEPARATORS.get(delimiter, repr(delimiter))
                raise ArtefactError(
                    f"{path} separates its fields by {called}, not by {between}; leave the delimiter out, or correct it"
                )
    for number, name in enumerate(names, 1):
        if not name:
            raise ArtefactError(f"{path}: column {number} has no name; name it in the first line, or delete it")
        if name in names[: number - 1]:
            raise ArtefactError(f"{path}: two columns are called {name!r}; rename one of them in the first line")
    return names
