"""A release as one file: a zip of JSON and plain arrays, without code and without anything private.

`release.json` holds the schema, the ledger, the mechanism with its options, and a header for each measurement, those of
the joint work and the fine 1-ways of coarse columns; the
tables and buckets that the headers name are `.npy` files (numpy's own format, never pickled), so that
``numpy.load("adult.chicle")`` shows them to anyone. `sha256` is a checksum over all others. Reading believes nothing:
sizes are bounded before anything is unpacked, shapes must follow from the schema, and every measurement must be paid
for by an event of the ledger.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle._core import __version__
from chicle._write import replacing
from chicle.counting.counter import MEMORY_LIMIT
from chicle.domain import Domain
from chicle.errors import ArtefactError, ChicleError, InfeasibleError, ParameterError
from chicle.measurements.measurement import Measurement, check_coarsening
from chicle.privacy.ledger import GaussianEvent, Ledger
from chicle.privacy.stated import StatedLedger
from chicle.schema import Schema
from chicle.sources.frames import Form

__all__ = ["ELSEWHERE", "Contents", "read_artefact", "write_artefact"]

ELSEWHERE = "Elsewhere"
"""The mechanism of releases that somebody else paid for; they alone have a claim in the place of a ledger."""

_FORMAT = 1
_KIND = "chicle release"
_HEADER, _SUM = "release.json", "sha256"
_MOST_MEMBERS = 200_000
_MOST_JSON = 256 * 2**20
_KEYS = {
    "kind",
    "format",
    "chicle",
    "private",
    "mechanism",
    "options",
    "notes",
    "schema",
    "ledger",
    "form",
    "measurements",
    "fine",
}
_FIX = "make or copy it again"
_WHEN = (1980, 1, 1, 0, 0, 0)  # the same release is the same bytes


@dataclass(frozen=True, eq=False)
class Contents:
    """What a file holds."""

    schema: Schema
    measurements: tuple[Measurement, ...]
    ledger: Ledger
    mechanism: str
    options: Mapping[str, Any]
    notes: tuple[str, ...]
    fine: tuple[Measurement, ...]
    form: Form


def write_artefact(path: str | Path, contents: Contents) -> None:
    """Write a file that is whole or not there."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    headers = []
    known: dict[bytes, str] = {}
    for i, measurement in enumerate([*contents.measurements, *contents.fine]):
        arrays[f"values-{i}"] = np.asarray(measurement.values, order="C")
        coarsening = {}
        for name, given in measurement.coarsening.items():
            buckets = np.ascontiguousarray(given, dtype=np.uint32)
            member = known.setdefault(buckets.tobytes(), f"buckets-{len(known)}")
            arrays[member] = buckets
            coarsening[name] = member
        headers.append({"clique": measurement.clique, "sigma": measurement.sigma, "coarsening": coarsening})
    told = {
        "kind": _KIND,
        "format": _FORMAT,
        "chicle": __version__,
        "private": contents.ledger.private,
        "mechanism": contents.mechanism,
        "options": contents.options,
        "notes": contents.notes,
        "schema": contents.schema.to_dict(),
        "ledger": json.loads(contents.ledger.to_json()),
        "form": contents.form.to_dict(),
        "measurements": headers[: len(contents.measurements)],
        "fine": headers[len(contents.measurements) :],
    }
    try:
        header = json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"this release can not be saved: {error}; options must be plain data") from None
    members = {_HEADER: header.encode(), **{f"{name}.npy": _npy(array) for name, array in arrays.items()}}
    if sum(map(len, members.values())) > MEMORY_LIMIT or len(members[_HEADER]) > _MOST_JSON:
        raise InfeasibleError(f"this release is too large to be saved: it has more than {MEMORY_LIMIT >> 30} GiB")
    members[_SUM] = _checksum(members).encode()
    try:
        with replacing(path) as beside, zipfile.ZipFile(beside, "x", zipfile.ZIP_DEFLATED) as file:
            for name, data in members.items():
                file.writestr(zipfile.ZipInfo(name, _WHEN), data, zipfile.ZIP_DEFLATED)
    except OSError as error:
        raise ArtefactError(f"{path} can not be written: {error.strerror}; choose another place") from None


def read_artefact(path: str | Path) -> Contents:
    """Return what a file holds, once it is known to be a whole release."""
    members = _members(path)
    told = _header(path, members[_HEADER])
    if members.pop(_SUM, b"") != _checksum(members).encode():
        raise ArtefactError(f"{path} is damaged or was changed: its checksum is another; {_FIX}")
    try:
        return _contents(told, members)
    except (ChicleError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ArtefactError(f"{path} is damaged or was changed: {error}; {_FIX}") from error


def _contents(told: Mapping[str, Any], members: Mapping[str, bytes]) -> Contents:
    if set(told) != _KEYS:
        raise ArtefactError("its header has other fields than it should")
    schema = Schema.from_dict(told["schema"])
    schema.check_reviewed()
    schema.check_discovered()
    ledger = _ledger(told["ledger"])
    if told["private"] is not ledger.private:
        raise ArtefactError("it is private by its header or by its ledger, but not by both")
    if not all(isinstance(text, str) for text in (*told["notes"], told["mechanism"])):
        raise ArtefactError("its notes and its mechanism are not texts")
    if not isinstance(told["options"], dict):
        raise ArtefactError("its options are not a mapping")
    measurements = tuple(
        _measurement(i, header, members, schema.model.domain, private=ledger.private)
        for i, header in enumerate(told["measurements"])
    )
    fine = tuple(
        _measurement(i, header, members, schema.domain, private=ledger.private)
        for i, header in enumerate(told["fine"], len(measurements))
    )
    there = [one.clique for one in fine]
    # Who made a release elsewhere may not have had all of them.
    coarse = [(name,) for name in schema.coarse if not isinstance(ledger, StatedLedger) or (name,) in there]
    if there != coarse or any(one.coarsening for one in fine):
        raise ArtefactError("it has other fine 1-ways than its schema has coarse columns")
    if isinstance(ledger, StatedLedger) is not (told["mechanism"] == ELSEWHERE):
        raise ArtefactError("it has a claim in the place of a ledger, or a ledger in the place of a claim")
    if not isinstance(ledger, StatedLedger):
        _check_paid([*measurements, *fine], ledger, schema.max_records_per_person)
    form = Form.from_dict(told["form"])
    return Contents(schema, measurements, ledger, told["mechanism"], told["options"], tuple(told["notes"]), fine, form)


def _ledger(told: Any) -> Ledger:  # noqa: ANN401 - whatever the file says
    if isinstance(told, dict) and set(told) == {"claim"}:
        return StatedLedger(told["claim"])
    return Ledger.from_json(json.dumps(told))


def _measurement(
    number: int, header: Mapping[str, Any], members: Mapping[str, bytes], domain: Domain, *, private: bool
) -> Measurement:
    clique, sigma = domain.check(tuple(header["clique"])), header["sigma"]
    if not isinstance(sigma, float) or not (isfinite(sigma) and sigma > 0):
        raise ArtefactError(f"the sigma of {clique!r} is no number above 0")
    found = {name: _array(members[f"{member}.npy"], np.uint32) for name, member in header["coarsening"].items()}
    coarsening = check_coarsening(clique, found, domain)
    values = _array(members[f"values-{number}.npy"], np.int64, np.float64)
    shape = tuple(int(coarsening[name].max()) + 1 if name in coarsening else domain[name] for name in clique)
    if values.shape != shape or not np.isfinite(values).all():
        raise ArtefactError(f"the table of {clique!r} has another shape than its schema says, or no numbers")
    return Measurement(clique, values, sigma, private, coarsening)


def _check_paid(measurements: Sequence[Measurement], ledger: Ledger, k: int) -> None:
    """Every measurement is an event of the ledger: the same clique and noise, as many values."""
    paid = Tally(
        (event.clique, event.sigma, event.values)
        for event in ledger.events
        if isinstance(event, GaussianEvent) and event.l2_sensitivity == k
    )
    paid.subtract((kept.clique, kept.sigma, kept.values.size) for kept in measurements)
    for (clique, _, _), left in paid.items():
        if left < 0:
            raise ArtefactError(f"its measurement of {clique!r} is not in its ledger")


def _members(path: str | Path) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(path) as file:
            entries = file.infolist()
            if _HEADER not in (entry.filename for entry in entries):
                raise ArtefactError(f"{path} is no release of chicle; give a file that Release.save wrote")
            if len({entry.filename for entry in entries}) < len(entries) or len(entries) > _MOST_MEMBERS:
                raise ArtefactError(f"{path} is damaged: it has parts twice, or too many; {_FIX}")
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
        raise ArtefactError(
            f"{path} can not be read: {error.strerror or 'it is damaged'}; is the path right?"
        ) from None


def _unpack(file: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    # One byte more than it says: a part that is longer than its entry says fails its own check, unread.
    with file.open(entry) as part:
        return part.read(entry.file_size + 1)


def _header(path: str | Path, data: bytes) -> dict[str, Any]:
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or told.get("kind") != _KIND:
        raise ArtefactError(f"{path} is no release of chicle; give a file that Release.save wrote")
    version = told.get("format")
    if type(version) is not int or version < 1:
        raise ArtefactError(f"{path} is damaged: it names no format; {_FIX}")
    if version > _FORMAT:
        raise ArtefactError(
            f"{path} was written by chicle {told.get('chicle')} in format {version}; this is chicle {__version__}, "
            f"which reads format {_FORMAT}: upgrade chicle"
        )
    return told


def _npy(array: npt.NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array.astype(array.dtype.newbyteorder("<")), (1, 0), allow_pickle=False)
    return file.getvalue()


def _array(data: bytes, *dtypes: type) -> npt.NDArray[Any]:
    """Return an array; its header is checked before anything is believed of it."""
    file = io.BytesIO(data)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ArtefactError("a table is in a format that is not known")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype not in dtypes or fortran or len(data) - file.tell() != dtype.itemsize * int(np.prod(shape, dtype=object)):
        raise ArtefactError("a table has another length or type than its own header says")
    return np.frombuffer(data, dtype, offset=file.tell()).reshape(shape).astype(dtype.newbyteorder("="))


def _checksum(members: Mapping[str, bytes]) -> str:
    total = hashlib.sha256()
    for name in sorted(members):
        total.update(hashlib.sha256(name.encode()).digest() + hashlib.sha256(members[name]).digest())
    return total.hexdigest()


def _plain(value: object) -> Any:  # noqa: ANN401 - for JSON
    if isinstance(value, (np.integer, np.floating, np.bool_)):
        return value.item()
    if isinstance(value, (np.ndarray, Mapping)):
        return value.tolist() if isinstance(value, np.ndarray) else dict(value)
    raise TypeError(f"a {type(value).__name__} is no plain data")
