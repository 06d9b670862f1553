"""Coverage-guided fuzzing of what reads files from elsewhere: schemas, releases, ledgers, CSV tables, dates.

    pip install atheris
    python benches/fuzz/parsers.py schema -max_total_time=300     # or artefact, ledger, csv, date
    python benches/fuzz/parsers.py schema --blind 100000 [SEED]   # mutations without coverage, without atheris

A parser may refuse anything by an error of chicle in one line. Whatever else it raises is a finding, and gets a test in
tests/unit/test_fuzz.py, which also runs the targets on a few thousand mutations without atheris.
"""

from __future__ import annotations

import functools
import hashlib
import json
import random
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import chicle
from chicle import ChicleError, Ledger, Schema
from chicle.privacy import TestNoise
from chicle.releases.artefact import read_artefact
from chicle.sources import read_records

DECLARED = {
    "age": {"type": "integer", "min": 0, "max": 120, "bins": 12, "outside": "clamp"},
    "sex": {"type": "categorical", "values": ["f", "m"], "missing": True},
    "paid": {"type": "number", "min": 0, "max": 1000, "bins": 10, "missing": True},
    "born": {"type": "date", "min": "1900-01-01", "max": "2025-12-31", "bins": "year", "missing": True},
    "seen": {"type": "datetime", "min": "2020-01-01", "max": "2025-12-31", "bins": "month", "missing": True},
    "ill": {"type": "boolean", "missing": True},
}
HEAD = ",".join(DECLARED).encode() + b"\n"
_FOLDER = tempfile.TemporaryDirectory(prefix="chicle-fuzz-")


def must(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)


def refused(work: Callable[[], object], *, one_line: bool = True) -> bool:
    """Run a parser; return whether it refused. Any other error than chicle's, or one of several lines, is a finding."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            work()
        except ChicleError as error:
            must(not one_line or "\n" not in str(error), "an error is one line")
            return True
    return False


def schema(data: bytes) -> None:
    """Read a schema file: YAML, or JSON if the first byte is odd. What is accepted is the same once it was saved."""
    place = Path(_FOLDER.name) / ("s.json" if data[:1] and data[0] % 2 else "s.yaml")
    place.write_bytes(data[1:])
    found: list[Schema] = []
    if not refused(lambda: found.append(Schema.load(place))):
        found[0].save(place)
        must(Schema.load(place).to_dict() == found[0].to_dict(), "a saved schema is the same")


@functools.cache
def released() -> dict[str, bytes]:
    """Return the members of a small release."""
    rows = {"age": [1, 40, 77] * 40, "sex": ["f", "m", None] * 40, "ill": [True, False, None] * 40}
    declared = Schema({name: DECLARED[name] for name in rows}, max_records_per_person=2)
    fixed = Ledger(chicle.Budget(epsilon=1, delta=1e-6), noise=TestNoise(0))  # so that mutations are always the same
    release = chicle.Prism(epsilon=1, delta=1e-6).fit(rows, declared, ledger=fixed).release_
    place = Path(_FOLDER.name) / "seed.chicle"
    release.save(place)
    with zipfile.ZipFile(place) as file:
        return {name: file.read(name) for name in file.namelist()}


def artefact(data: bytes) -> None:
    """Read a release whose header, or one of whose arrays, was replaced, with a checksum that matches."""
    members = {name: content for name, content in released().items() if name != "sha256"}
    names = sorted(members)
    members["release.json" if not data or data[0] < 200 else names[data[0] % len(names)]] = data[1:]
    total = hashlib.sha256()
    for name in sorted(members):
        total.update(hashlib.sha256(name.encode()).digest() + hashlib.sha256(members[name]).digest())
    place = Path(_FOLDER.name) / "a.chicle"
    with zipfile.ZipFile(place, "w") as file:
        for name, content in {**members, "sha256": total.hexdigest().encode()}.items():
            file.writestr(name, content)
    refused(lambda: read_artefact(place))
    place.write_bytes(data)
    refused(lambda: read_artefact(place))


def ledger(data: bytes) -> None:
    """Read a saved ledger; what is accepted never has spent more than its budget."""
    text = data.decode("utf-8", "replace")
    found: list[Ledger] = []
    # It quotes keys as they stand; the command line prints any error in one line.
    if not refused(lambda: found.append(Ledger.from_json(text)), one_line=False):
        must(found[0].spent <= found[0].budget.rho, "a ledger is within its budget")
        must(Ledger.from_json(found[0].to_json()).events == found[0].events, "a saved ledger is the same")


def csv(data: bytes) -> None:
    """Read a CSV table by a schema, or draft one if the first byte is odd; with the right head if the second is."""
    place = Path(_FOLDER.name) / "t.csv"
    place.write_bytes((HEAD if data[1:2] and data[1] % 2 else b"") + data[2:])
    if data[:1] and data[0] % 2:
        refused(lambda: chicle.draft_schema(place))
        return
    declared = Schema(DECLARED)
    records: list[chicle.Records] = []
    if not refused(lambda: records.append(read_records(str(place), declared))):
        inside = (int(records[0][name].max(initial=0)) < size for name, size in declared.domain.items())
        must(all(inside), "codes are inside the domain")


def date(data: bytes) -> None:
    """Read texts as dates and times, in declared formats or in none, one a line."""
    lines: list[str | None] = [line or None for line in data[2:].decode("utf-8", "replace").split("\n")]
    forms = ("%d.%m.%Y", "%m/%d/%y", "%Y-%m-%dT%H:%M:%S", "excel", data[2:12].decode("utf-8", "replace"))
    form = forms[data[0] % len(forms)] if data[:1] and data[0] % 7 else None
    kind = "date" if data[1:2] and data[1] % 2 else "datetime"
    column = {
        "type": kind,
        "min": "1950-01-01",
        "max": "2030-12-31",
        "bins": "year",
        "missing": True,
        "outside": "clamp",
    }
    found: list[Schema] = []
    if not refused(lambda: found.append(Schema({"when": column | ({} if form is None else {"format": form})}))):
        refused(lambda: read_records({"when": lines}, found[0]))


TARGETS: dict[str, Callable[[bytes], None]] = {
    "schema": schema,
    "artefact": artefact,
    "ledger": ledger,
    "csv": csv,
    "date": date,
}


@functools.cache
def seeds() -> dict[str, list[bytes]]:
    """Well-formed inputs to begin with, for each target."""
    declared = Schema(DECLARED).to_dict()
    rows = b"31,f,12.5,1990-01-31,2021-05-05T12:00:00,true\n77,m,,,,\n"
    spent = chicle.Independent(epsilon=1, delta=1e-6).fit({"age": [1, 2], "sex": ["f", "m"]}, _two()).ledger_
    return {
        "schema": [b"\x01" + json.dumps(declared).encode(), b"\x00columns:\n  a: {type: boolean}\n"],
        "artefact": [b"\x00" + released()["release.json"]],
        "ledger": [spent.to_json().encode()],
        "csv": [b"\x00\x01" + rows, b"\x01\x01" + rows, b"\x01\x00a;b\n1,5;x\n2,5;y\n"],
        "date": [b"\x00\x011990-01-31\n2001-12-31", b"\x01\x0131.01.1990\n\n1.1.2000", b"\x04\x00%H:%M 12:30"],
    }


def _two() -> Schema:
    return Schema({name: DECLARED[name] for name in ("age", "sex")})


_TOKENS = (
    b"-1",
    b"1e400",
    b"null",
    b"NaN",
    b"[]",
    b"{}",
    b'""',
    b"9" * 22,
    b"0",
    b"true",
    b"\xff",
    b"\x00",
    b"\n",
    b",",
)


def mutations(seed: bytes, rng: random.Random) -> Iterator[bytes]:
    """Yield changed copies: bits flipped, parts cut out, repeated, or replaced by values that parsers dislike."""
    while True:
        data = bytearray(seed)
        for _ in range(rng.choice([1, 1, 2, 4, 8])):
            i, kind = rng.randrange(len(data) or 1), rng.randrange(5)
            if kind == 0 and data:
                data[i] ^= 1 << rng.randrange(8)
            elif kind == 1:
                del data[i : i + rng.randrange(1, 9)]
            elif kind == 2:
                data[i:i] = rng.randbytes(rng.randrange(1, 5))
            elif kind == 3:
                data[i:i] = data[rng.randrange(len(data) or 1) :][: rng.randrange(1, 30)]
            else:
                data[i : i + 1] = rng.choice(_TOKENS)
        yield bytes(data)


def blind(name: str, runs: int, seed: int = 0) -> None:
    """Run a target on so many mutations of its seeds, and raise what it raises."""
    rng = random.Random(seed)  # noqa: S311 - mutations, not noise
    drawn = [mutations(one, rng) for one in seeds()[name]]
    for i in range(runs):
        data = next(drawn[i % len(drawn)])
        try:
            TARGETS[name](data)
        except Exception:
            print(f"execution {i} of seed {seed}: {data!r}")
            raise
    print(f"{name}: {runs:,} executions, nothing found")


def main() -> None:
    if sys.argv[2:3] == ["--blind"]:
        blind(sys.argv[1], *map(int, sys.argv[3:]))
        return
    import atheris  # noqa: PLC0415 - the tests run the targets without it

    name = sys.argv.pop(1) if len(sys.argv) > 1 else ""
    if name not in TARGETS:
        sys.exit(f"name a target: {', '.join(TARGETS)}")
    atheris.instrument_all()
    corpus = Path(_FOLDER.name) / "corpus"
    corpus.mkdir()
    for i, seed in enumerate(seeds()[name]):
        (corpus / str(i)).write_bytes(seed)
    atheris.Setup([*sys.argv, str(corpus)], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
