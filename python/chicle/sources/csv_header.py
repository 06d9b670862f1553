"""Check the header of a CSV file before it is read: most problems of newcomers show there.

A wrong separator, a wrong encoding, a column without a name and duplicate names each get their own message; a parser
would complain about row lengths, or about nothing. Names of columns are public, so messages quote them.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
from pathlib import Path

from chicle.errors import ArtefactError

__all__ = ["NOT_UTF8", "check_header"]

NOT_UTF8 = "it is not UTF-8 text; save it as UTF-8 (spreadsheets call it `CSV UTF-8`)"
"""The problem of a file in another encoding, and the fix."""

_MOST_BYTES = 2**20
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


def check_header(path: str | Path, delimiter: str) -> list[str]:
    r"""Return the names of the columns; a line that cannot be a header is an error that says how to fix it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("age,sex\n31,f\n", encoding="utf-8")
    ...     check_header(f"{folder}/a.csv", ",")
    ['age', 'sex']
    """
    text = _beginning(path)
    try:
        names = next((row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row), None)
    except csv.Error:
        raise ArtefactError(
            f"{path} cannot be read: its first line is not a list of names; is it a CSV file?"
        ) from None
    if names is None:
        raise ArtefactError(
            f"{path} cannot be read: it is empty, without even a line that names columns; is the path right?"
        )
    if len(names) == 1 and not text.lstrip().startswith('"'):
        for other, called in _SEPARATORS.items():
            if other != delimiter and other in names[0]:
                raise ArtefactError(
                    f"{path} separates its fields by {called}, not by {_SEPARATORS[delimiter]}; save it with commas as "
                    ".csv, or with tabs as .tsv"
                )
    for number, name in enumerate(names, 1):
        if not name:
            raise ArtefactError(f"{path}: column {number} has no name; name it in the first line, or delete it")
        if name in names[: number - 1]:
            raise ArtefactError(f"{path}: two columns are called {name!r}; rename one of them in the first line")
    return names


def _beginning(path: str | Path) -> str:
    with gzip.open(path) if str(path).lower().endswith(".gz") else Path(path).open("rb") as file:
        data = file.read(_MOST_BYTES)
    try:
        # The limit may cut a character in two, which is not an error of the file.
        return codecs.getincrementaldecoder("utf-8-sig")().decode(data)
    except UnicodeDecodeError:
        raise ArtefactError(f"{path} cannot be read: {NOT_UTF8}") from None
