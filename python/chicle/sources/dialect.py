"""How a CSV file is written: its separator, its decimal mark and its encoding, declared or sniffed.

Sniffing reads the beginning of a file. A separator is one that gives all first lines the same number of fields; the
decimal mark is a comma only where commas are no separator and a whole column is numbers with one; a file that is not
UTF-8 is read as Windows-1252, of which Latin-1 is a part. The command line says what was sniffed.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from chicle.errors import ParameterError

__all__ = ["SEPARATORS", "Dialect", "DialectPath", "dialect_of", "fields_differ", "opened"]

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
"""The separators that are sniffed, in words."""

_BYTES = 2**20  # that are read to sniff separators
_MOST_BYTES = 2**24  # that are read to sniff the encoding
_LINES = 200
_NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "bar": "|", "space": " "}
_DECIMAL = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?")
_MARK = re.compile(r"\W*|na|nan|none|null|unknown", re.IGNORECASE)


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written; None is sniffed.

    Parameters
    ----------
    delimiter
        The separator of fields.
    decimal
        The decimal mark, ``"."`` or ``","``.
    encoding
        The encoding of the text, as Python calls it.

    Examples
    --------
    >>> str(Dialect(";", ",", "cp1252"))
    'semicolons between fields, decimal commas, encoding cp1252'
    """

    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.delimiter is not None:
            object.__setattr__(self, "delimiter", _NAMED.get(self.delimiter, self.delimiter))
            if len(self.delimiter) != 1 or self.delimiter in '"\r\n':
                raise ParameterError(f"a delimiter is one character, such as ; or tab, not {self.delimiter!r}")
        if self.decimal not in (None, ".", ","):
            raise ParameterError(f"a decimal mark is . or , and not {self.decimal!r}")
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise ParameterError(
                    f"there is no encoding {self.encoding!r}; common ones are utf-8, latin-1"
                ) from None

    def plain_but(self, known: Dialect) -> bool:
        """Return whether this is what programs expect (commas, decimal points, UTF-8), but for what was known."""
        expected = (known.delimiter or ",", known.decimal or ".", known.encoding or "utf-8")
        return (self.delimiter, self.decimal, self.encoding) == expected

    def __str__(self) -> str:
        between = SEPARATORS.get(self.delimiter or "", repr(self.delimiter))
        comma = ", decimal commas" if self.decimal == "," else ""
        return f"{between} between fields{comma}, encoding {self.encoding}"


class DialectPath(type(Path())):  # type: ignore[misc]
    """The path of a CSV file whose dialect is known, wholly or in part; accepted wherever a path is.

    Examples
    --------
    >>> DialectPath.of("people.csv", Dialect(encoding="latin-1")).name
    'people.csv'
    """

    dialect: Dialect = Dialect()

    @classmethod
    def of(cls, path: str | Path, dialect: Dialect) -> DialectPath:
        """Return a path with a dialect."""
        made = cls(path)
        made.dialect = dialect
        return made


def dialect_of(path: str | Path) -> Dialect:
    r"""Return the dialect of a CSV file; what is not known is sniffed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_bytes("née;poids\n2001;61,5\n".encode("cp1252"))
    ...     dialect_of(f"{folder}/a.csv")
    Dialect(delimiter=';', decimal=',', encoding='cp1252')
    """
    known = path.dialect if isinstance(path, DialectPath) else Dialect()
    if Path(path).name.lower().removesuffix(".gz").endswith(".tsv") and known.delimiter is None:
        known = replace(known, delimiter="\t")
    if None not in (known.delimiter, known.decimal, known.encoding):
        return known
    encoding = known.encoding or _encoding(path)
    with opened(path, encoding) as file:
        text = file.read(_BYTES)
    lines = text.splitlines(keepends=True)
    text = "".join(lines[: -1 if len(text) == _BYTES and len(lines) > 1 else None][:_LINES])
    delimiter = known.delimiter or _delimiter(text)
    decimal = known.decimal or ("," if delimiter != "," and _has_commas(text, delimiter) else ".")
    return Dialect(delimiter, decimal, encoding)


def fields_differ(path: str | Path, dialect: Dialect) -> str | None:
    """Return where the first line has another number of fields than the header, in words; None if there is none."""
    with opened(path, dialect.encoding or "utf-8") as file, suppress(csv.Error):
        reader = csv.reader(file, delimiter=dialect.delimiter or ",")
        expected = next((len(row) for row in reader if row), 0)
        for row in reader:
            if row and len(row) != expected:
                return f"line {reader.line_num:,} has {len(row)} fields, but the first line has {expected}"
    return None


def _encoding(path: str | Path) -> str:
    with gzip.open(path) if str(path).lower().endswith(".gz") else Path(path).open("rb") as file:
        data = file.read(_MOST_BYTES)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for encoding in ("utf-8", "cp1252"):
        try:
            # The limit may cut a character in two, which is not an error of the file.
            codecs.getincrementaldecoder(encoding)().decode(data)
        except UnicodeDecodeError:
            continue
        if encoding == "utf-8" or b"\0" not in data:
            return encoding
    return "utf-8" if b"\0" in data else "latin-1"


def opened(path: str | Path, encoding: str) -> IO[str]:
    """Open a text, which may be gzipped; what is not of its encoding is replaced."""
    encoding = "utf-8-sig" if encoding == "utf-8" else encoding
    if str(path).lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding=encoding, errors="replace", newline="")
    return Path(path).open(encoding=encoding, errors="replace", newline="")


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    with suppress(csv.Error):
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if row:
                yield row


def _delimiter(text: str) -> str:
    found = {}
    for delimiter in SEPARATORS:
        lengths = [len(row) for row in _rows(text, delimiter)]
        if lengths and lengths[0] > 1:
            found[delimiter] = (sum(length == lengths[0] for length in lengths) / len(lengths), lengths[0])
    # The first of those with the most regular rows; among equals, the one with most fields.
    return max(found, key=lambda one: (found[one][0] > 0.9, found[one][1]), default=",")


def _has_commas(text: str, delimiter: str) -> bool:
    """Return whether a column has numbers with a decimal comma and nothing else."""
    rows = list(_rows(text, delimiter))
    for column in zip(*(row for row in rows[1:] if len(row) == len(rows[0])), strict=True):
        values = [value.strip() for value in column if not _MARK.fullmatch(value.strip())]
        if any("," in value for value in values) and all(_DECIMAL.fullmatch(value) for value in values):
            return True
    return False
