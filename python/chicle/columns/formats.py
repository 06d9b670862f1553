"""Dates and datetimes as people write them: 31/12/2024, 12/31/2024, 31.12.2024, 2024-12-31, and the serials of Excel.

A format is a pattern of ``YYYY``, ``MM``, ``DD``, ``hh``, ``mm`` and ``ss``, or ``excel``: days from 1899-12-30, as
spreadsheets save dates. A text takes the first of the declared formats that fits, so ``03/04/2024`` is the third of
April if ``DD/MM/YYYY`` comes before ``MM/DD/YYYY``. Day and month may have one digit or two.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from chicle.columns.base import arrow_kind
from chicle.errors import SchemaError

__all__ = ["KNOWN", "Written", "as_texts", "checked_formats", "how_written", "parsed"]

_EXCEL = "excel"
_SERIALS = (10_000, 80_000)  # serials of a draft: 1927 to 2119
_PARTS = {"YYYY": (r"\d{4}", "%Y"), "MM": (r"\d{1,2}", "%m"), "DD": (r"\d{1,2}", "%d")}
_PARTS |= {"hh": (r"\d{1,2}", "%H"), "mm": (r"\d{2}", "%M"), "ss": (r"\d{2}", "%S")}
_TOKEN = re.compile("|".join(_PARTS))

KNOWN = ("YYYY-MM-DD", "DD/MM/YYYY", "MM/DD/YYYY", "DD.MM.YYYY", "DD-MM-YYYY", "MM-DD-YYYY", "YYYY/MM/DD", "YYYYMMDD")
"""The formats that a draft recognises, beside ``excel``; each also with a time."""

_ISO = ("YYYY-MM-DD", "YYYY-MM-DD hh:mm:ss")  # always read: they cannot be mistaken, and synthetic tables have them

_LOOKS_DATED = re.compile(r"^(\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{5}|\d{8})", re.MULTILINE)
_TIMES = ("", " hh:mm", " hh:mm:ss", "Thh:mm", "Thh:mm:ss")
_TWINS = {"DD/MM/YYYY": "MM/DD/YYYY", "DD-MM-YYYY": "MM-DD-YYYY"}


@dataclass(frozen=True)
class Written:
    """How the dates of a column are written: NOT PRIVATE.

    Attributes
    ----------
    formats
        The formats, the most frequent first.
    ambiguous
        What is ambiguous, as a sentence; empty if nothing is.
    """

    formats: tuple[str, ...]
    ambiguous: str


def checked_formats(given: object) -> tuple[str, ...]:
    """Return declared formats as a tuple; one that is not understood is an error.

    Examples
    --------
    >>> checked_formats("DD/MM/YYYY")
    ('DD/MM/YYYY',)
    """
    several = [given] if isinstance(given, str) else given
    if not isinstance(several, Sequence) or not several:
        raise SchemaError(f"format must be a format such as DD/MM/YYYY, or a list of several, not {given!r}")
    for one in several:
        if not isinstance(one, str) or (one != _EXCEL and not {"YYYY", "MM", "DD"} <= set(_TOKEN.findall(one))):
            raise SchemaError(
                f"format must have YYYY, MM and DD, such as DD/MM/YYYY or YYYY-MM-DD hh:mm, or be excel, not {one!r}"
            )
    return tuple(several)


def as_texts(values: pa.Array) -> pa.Array:
    """Return texts or whole numbers as texts."""
    return values if arrow_kind(values.type) == "text" else values.cast(pa.int64(), safe=False).cast(pa.string())


def parsed(texts: pa.Array, formats: Sequence[str], dtype: pa.DataType) -> pa.Array:
    """Return texts as times of a type; null where no format fits.

    Examples
    --------
    >>> parsed(pa.array(["31/12/2024", "2024-12-31", "45657", "?"]), ["DD/MM/YYYY", "YYYY-MM-DD", "excel"],
    ...     pa.date32()).to_pylist()
    [datetime.date(2024, 12, 31), datetime.date(2024, 12, 31), datetime.date(2024, 12, 31), None]
    """
    made = pa.nulls(len(texts), pa.timestamp("us"))
    for one in dict.fromkeys([*formats, *_ISO]):
        made = pc.coalesce(made, _parsed(texts, one))
    return made.cast(dtype, safe=False)


def how_written(texts: pa.Array, counts: pa.Array) -> Written | None:
    """Return how different texts, with their numbers of rows, write dates; None if they are no dates."""
    if not _LOOKS_DATED.search(_sample(texts)):
        return None
    left, found = texts, {}
    for one in (base + time for base in KNOWN for time in _TIMES):
        fits = _parsed(texts, one).is_valid()
        if pc.any(fits).as_py():
            found[one] = fits
            left = left.filter(_parsed(left, one).is_null())
    if len(left) and not _are_serials(left):
        return None
    formats = {one: pc.sum(counts.filter(fits)).as_py() for one, fits in found.items()}
    ambiguous = ""
    for first, second in ((a + time, b + time) for a, b in _TWINS.items() for time in _TIMES):
        if first in found and second in found:
            ambiguous = _settle(found[first], found[second], first, second, formats) or ambiguous
    kept = sorted(formats, key=lambda one: -formats[one])
    return Written((*kept, *([_EXCEL] if len(left) else [])), ambiguous)


def _settle(fits_a: pa.Array, fits_b: pa.Array, a: str, b: str, formats: dict[str, int]) -> str:
    """Leave out the one of two formats that no text needs; return what remains ambiguous."""
    only_a = pc.any(pc.and_not(fits_a, fits_b)).as_py()
    only_b = pc.any(pc.and_not(fits_b, fits_a)).as_py()
    if only_a and not only_b:
        del formats[b]
        return ""
    if only_b and not only_a:
        del formats[a]
        return ""
    if only_a:
        first = a if formats[a] >= formats[b] else b
        return (
            f"ambiguous: some dates are {a} and some {b}; those that fit both are read as {first}, the first in "
            "`format`, which may be wrong"
        )
    del formats[b]
    return f"ambiguous: every date fits both {a} and {b}; keep the right one in `format`"


def _sample(texts: pa.Array) -> str:
    return "\n".join(texts.slice(0, 100).to_pylist())


def _are_serials(texts: pa.Array) -> bool:
    """Return whether all texts are serials of Excel that are plausible dates."""
    if _parsed(texts, _EXCEL).null_count:
        return False
    bounds = pc.min_max(texts.cast(pa.float64()))
    return bool(bounds["min"].as_py() >= _SERIALS[0] and bounds["max"].as_py() < _SERIALS[1])


def _parsed(texts: pa.Array, one: str) -> pa.Array:
    """Return texts of one format as timestamps; null for others."""
    if one == _EXCEL:
        fits = pc.match_substring_regex(texts, r"^\d{1,6}(\.\d*)?$")
        days = pc.cast(pc.if_else(fits, texts, None), pa.float64())
        seconds = pc.round(pc.multiply(pc.subtract(days, 25_569.0), 86_400.0))
        return pc.multiply(pc.cast(seconds, pa.int64()), 10**6).cast(pa.timestamp("us"))
    pattern = "^" + _TOKEN.sub(_group, re.escape(one)) + "$"
    found = pc.extract_regex(texts, pattern)
    day = pc.cast(pc.struct_field(found, "DD"), pa.int64())
    form = _TOKEN.sub(lambda token: _PARTS[token[0]][1], one)
    made = pc.strptime(pc.if_else(found.is_valid(), texts, None), format=form, unit="us", error_is_null=True)
    return pc.if_else(pc.equal(pc.day(made), day), made, None)  # 31 April is no date, not 1 May


def _group(token: re.Match[str]) -> str:
    return f"(?P<{token[0]}>{_PARTS[token[0]][0]})"
