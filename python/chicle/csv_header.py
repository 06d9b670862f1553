"""The first line of a CSV file, looked at before anything is read: most of what newcomers meet is seen there.

Another separator, another encoding, a column without a name or two of one name: each has its own sentence here, where a
parser would say something of rows and lengths, or nothing. Names of columns are public, so they are quoted.
"""

from __future__ import annotations

import csv
import gzip
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
    names = next(csv.reader([_first_line(path)], delimiter=delimiter), [])
    if not names:
        raise ArtefactError(f"{path} begins with an empty line; its first line must name the columns")
    if len(names) == 1:
        for other, called in _SEPARATORS.items():
            if other != delimiter and other in names[0]:
                raise ArtefactError(
                    f"{path} separates its fields by {called}, not by {_SEPARATORS[delimiter]}; save it with commas as "
                    ".csv, or with tabs as .tsv"
                )
    for number, name in enumerate(names, 1):
        if not name.strip():
            raise ArtefactError(f"{path}: column {number} has no name; name it in the first line, or delete it")
        if name in names[: number - 1]:
            raise ArtefactError(f"{path}: two columns are called {name!r}; rename one of them in the first line")
    return names


def _first_line(path: str | Path) -> str:
    with gzip.open(path) if str(path).lower().endswith(".gz") else Path(path).open("rb") as file:
        # Blank lines before the header are skipped by the parser too.
        line = next((line for line in iter(lambda: file.readline(_MOST_BYTES), b"") if line.strip()), None)
    if line is None:
        raise ArtefactError(f"{path} is empty: it has not even a line that names columns; is it the right file?")
    if len(line) == _MOST_BYTES:
        raise ArtefactError(f"{path} has a first line of more than a megabyte; is it a CSV file?")
    try:
        return line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ArtefactError(f"{path} can not be read: {NOT_UTF8}") from None
