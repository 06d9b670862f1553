"""The header of a CSV file, looked at before anything is read: most of what newcomers meet is seen there.

Another separator, another encoding, a column without a name or two of one name: each has its own sentence here, where a
parser would say something of rows and lengths, or nothing. Names of columns are public, so they are quoted.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
from pathlib import Path

from chicle.errors import ArtefactError

__all__ = ["NOT_UTF8", "check_header"]

NOT_UTF8 = "it is not UTF-8 text; save it as such (spreadsheets call it `CSV UTF-8`)"
"""What is wrong with a file in another encoding, and what to do."""

_MOST_BYTES = 2**20
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


def check_header(path: str | Path, delimiter: str) -> list[str]:
    r"""Return the names of the columns; what can not be a header is refused with what to do about it.

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
        raise ArtefactError(f"{path} can not be read: its first line is no list of names; is it a CSV file?") from None
    if names is None:
        raise ArtefactError(
            f"{path} can not be read: it is empty, without even a line that names columns; is the path right?"
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
        # What is cut off within a letter is no mistake of the file.
        return codecs.getincrementaldecoder("utf-8-sig")().decode(data)
    except UnicodeDecodeError:
        raise ArtefactError(f"{path} can not be read: {NOT_UTF8}") from None
