"""A release as one file: a zip of JSON and plain arrays, without code and without anything private.

`release.json` holds the schema, a ledger or a claim, the mechanism with its parameters, the transcript and the family
of the model. The tables that it names are `.npy` files (numpy's own format, never pickled), so that anyone can read
them by ``numpy.load("adult.chicle")``. `sha256` is a checksum over all others. Reading trusts nothing: sizes are
bounded before anything is unpacked, and `releases.contents` checks the rest.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chicle._checks import MEMORY_LIMIT
from chicle._core import __version__
from chicle._write import replacing
from chicle.errors import ArtefactError, ChicleError, InfeasibleError, ParameterError
from chicle.releases.contents import FORMAT, IMPORTED, KIND, Contents, contents_of, members_of

__all__ = ["IMPORTED", "Contents", "read_artefact", "write_artefact"]

_HEADER, _SUM = "release.json", "sha256"
_MOST_MEMBERS = 200_000
_MOST_JSON = 256 * 2**20
_FIX = "make or copy it again"
_WHEN = (1980, 1, 1, 0, 0, 0)  # constant, so that equal releases are equal bytes


def write_artefact(path: str | Path, contents: Contents) -> None:
    """Write a release to a file; a failed write leaves no partial file."""
    try:
        header, arrays = members_of(contents)
        text = json.dumps(header, indent=1, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"this release cannot be saved: {error}; parameters must be plain data") from None
    members = {_HEADER: text.encode(), **{f"{name}.npy": data for name, data in arrays.items()}}
    if sum(map(len, members.values())) > MEMORY_LIMIT or len(members[_HEADER]) > _MOST_JSON:
        raise InfeasibleError(f"this release is too large to be saved: it has more than {MEMORY_LIMIT >> 30} GiB")
    members[_SUM] = _checksum(members).encode()
    try:
        with replacing(path) as beside, zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as file:
            for name, data in members.items():
                file.writestr(zipfile.ZipInfo(name, _WHEN), data, zipfile.ZIP_DEFLATED)
    except OSError as error:
        raise ArtefactError(f"{path} cannot be written: {error.strerror}; choose another place") from None


def read_artefact(path: str | Path) -> Contents:
    """Read a file and check that it is a whole release."""
    members = _members(path)
    header = _header(path, members[_HEADER])
    if members.pop(_SUM, b"") != _checksum(members).encode():
        raise ArtefactError(f"{path} is damaged or was changed: its checksum does not match; {_FIX}")
    try:
        return contents_of(header, members)
    except (ChicleError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ArtefactError(f"{path} is damaged or was changed: {error}; {_FIX}") from error


def _members(path: str | Path) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(path) as file:
            entries = file.infolist()
            if _HEADER not in (entry.filename for entry in entries):
                raise ArtefactError(f"{path} is no release of chicle; give a file that Release.save wrote")
            if len({entry.filename for entry in entries}) < len(entries) or len(entries) > _MOST_MEMBERS:
                raise ArtefactError(f"{path} is damaged: it has duplicate parts, or too many; {_FIX}")
            if sum(entry.file_size for entry in entries) > MEMORY_LIMIT or file.getinfo(_HEADER).file_size > _MOST_JSON:
                raise ArtefactError(
                    f"{path} would unpack to more than {MEMORY_LIMIT >> 30} GiB; no release is so large"
                )
            return {entry.filename: _unpack(file, entry) for entry in entries}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError):
        raise ArtefactError(
            f"{path} is no whole release of chicle: it is cut short, damaged or of another kind; {_FIX}"
        ) from None
    except OSError as error:
        raise ArtefactError(f"{path} cannot be read: {error.strerror or 'it is damaged'}; is the path right?") from None


def _unpack(file: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    # Read one byte more than declared: a part that is longer than its entry declares fails its own check.
    with file.open(entry) as part:
        return part.read(entry.file_size + 1)


def _header(path: str | Path, data: bytes) -> dict[str, Any]:
    try:
        header = json.loads(data)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("kind") != KIND:
        raise ArtefactError(f"{path} is no release of chicle; give a file that Release.save wrote")
    version = header.get("format")
    if type(version) is not int or version < 1:
        raise ArtefactError(f"{path} is damaged: it names no format; {_FIX}")
    if version > FORMAT:
        raise ArtefactError(
            f"{path} was written by chicle {header.get('chicle')} in format {version}; this is chicle {__version__}, "
            f"which reads format {FORMAT}: upgrade chicle"
        )
    return header


def _checksum(members: Mapping[str, bytes]) -> str:
    total = hashlib.sha256()
    for name in sorted(members):
        total.update(hashlib.sha256(name.encode()).digest() + hashlib.sha256(members[name]).digest())
    return total.hexdigest()
