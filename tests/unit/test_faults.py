"""Faults from outside: each was seen, and each ends in one line or in nothing at all."""

import errno
import gzip
import io
import os
import random
import signal
import stat
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import chicle
from chicle import ArtefactError, ParameterError, Schema, _write
from chicle.privacy import TestNoise
from chicle.releases.artefact import _checksum
from chicle.sources import table_files
from chicle.sources.table_files import read_table, write_table

CENSUS = chicle.datasets.census(800, d=4)
ONE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-9}


# --- Writing ---------------------------------------------------------------------------------------------------------

SAVES = """
import os, signal, sys, zipfile
import chicle
release = chicle.load(sys.argv[1])
zipfile.ZipFile.close = lambda self: os.kill(os.getpid(), signal.SIGKILL)
release.save(sys.argv[2])
"""


def test_what_a_killed_save_left_is_swept(tmp_path: Path) -> None:
    kept, path = tmp_path / "kept.chicle", tmp_path / "r.chicle"
    release = chicle.Independent(**ONE).fit(CENSUS).release_
    release.save(kept)
    release.save(path)
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", SAVES, str(kept), str(path)], check=False, timeout=60)
        assert done.returncode == -signal.SIGKILL
        assert len(list(tmp_path.glob(".*"))) == 1, "the second save swept what the first one left"
        chicle.load(path)
    other = tmp_path / ".0123abcd.other.chicle"
    other.touch()
    release.save(path)
    assert list(tmp_path.glob(".*")) == [other], "files of others are let be"


def test_a_file_that_is_being_written_is_not_swept(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with _write.replacing(path) as one, _write.replacing(path) as two:
        one.write_text("one", encoding="utf-8")
        two.write_text("two", encoding="utf-8")
    assert path.read_text(encoding="utf-8") == "one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_and_its_name_are_on_the_disk_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    told: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def synced(file: int) -> None:
        told.append("folder" if stat.S_ISDIR(os.fstat(file).st_mode) else "file")
        fsync(file)

    def renamed(beside: Path, to: Path) -> Path:
        told.append("renamed")
        return replace(beside, to)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    with _write.replacing(path) as beside:
        beside.write_text("new", encoding="utf-8")
    assert told == ["file", "renamed", "folder"]


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "arrow"])
def test_a_full_disk_leaves_the_old_table(ending: str, tmp_path: Path) -> None:
    """With a real limit on the size of files, so that it fails where it does on a full disk."""
    resource = pytest.importorskip("resource")
    path = tmp_path / f"a.{ending}"
    small = pa.table({"a": pa.array([1, 2])})
    write_table(small, path)
    large = pa.table({"a": pa.array(np.random.default_rng(0).integers(2**60, size=200_000))})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(ArtefactError, match=r"a\.\S+ cannot be written: .*; make room") as raised:
            write_table(large, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == [path]
    assert read_table(path).equals(small)


def test_a_disk_that_is_full_at_the_last_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ArtefactError, match=r"a\.csv cannot be written: No space left on device; make room"):
        write_table(pa.table({"a": [1]}), tmp_path / "a.csv")
    assert not list(tmp_path.iterdir())


# --- Reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [True, False])
def test_a_gzip_bomb_is_refused(whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chicle.sources.unpacked._FREE", 2**20)
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,0\n" * 2_000_000))
    schema = Schema({"a": {"type": "integer", "min": 0, "max": 9}, "b": {"type": "boolean"}})

    def read() -> Any:
        if whole:
            return read_table(path)
        return chicle.Independent(**ONE).fit(path, schema)

    with pytest.raises(ArtefactError, match=r"bomb\.csv\.gz unpacks to more than .* CHICLE_GZIP_RATIO=1100"):
        read()
    monkeypatch.setenv("CHICLE_GZIP_RATIO", "1100")
    read()
    monkeypatch.setenv("CHICLE_GZIP_RATIO", "lots")
    with pytest.raises(ParameterError, match="CHICLE_GZIP_RATIO must be a number"):
        read()


def test_other_gzipped_tables_are_read_as_before(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    table = pa.table({"a": np.random.default_rng(0).integers(1_000, size=50_000)})
    assert table_files.write_table(table, path) == 50_000
    assert read_table(path).equals(table)
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(path.read_bytes()[:-3_000])
    with pytest.raises(ArtefactError, match="cut short"):
        read_table(cut)


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {entry.filename: file.read(entry) for entry in file.infolist()}


def zipped(parts: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name, data in parts.items():
            file.writestr(name, data)
    return made.getvalue()


def mutated(data: bytes, rng: random.Random, most: int) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(min(most, len(changed)))
        how = rng.randrange(3)
        if how == 0:
            changed[place] = rng.choice(b"0123456789-.eE{}[]()\",:' \x00\xff")
        elif how == 1:
            del changed[place : place + rng.randint(1, 9)]
        else:
            changed[place:place] = bytes(rng.choices(b"0123456789e-('", k=rng.randint(1, 9)))
    return bytes(changed)


@pytest.mark.filterwarnings("ignore")
def test_a_mutated_release_is_refused_or_means_the_same(tmp_path: Path) -> None:
    path, rng = tmp_path / "r.chicle", random.Random(23)
    fixed = chicle.Ledger(chicle.Budget(**ONE), noise=TestNoise(0))  # so that mutations are always the same
    chicle.Prism(**ONE).fit(CENSUS, ledger=fixed).release_.save(path)
    whole = path.read_bytes()
    meant = members(whole)
    refused = 0
    for _ in range(300):
        path.write_bytes(mutated(whole, rng, len(whole)))
        try:
            release = chicle.load(path)
        except ArtefactError:
            refused += 1
            continue
        release.save(path)
        assert members(path.read_bytes()) == meant, "only what zip says beside the content may differ"
    assert refused > 200
    for _ in range(700):
        # A forged checksum: whatever the parts then say, nothing but ArtefactError comes out.
        parts = {name: data for name, data in meant.items() if name != "sha256"}
        name = rng.choice([*sorted(parts), "release.json"])
        parts[name] = mutated(parts[name], rng, 130 if rng.random() < 0.7 else len(parts[name]))
        path.write_bytes(zipped({**parts, "sha256": _checksum(parts).encode()}))
        with suppress(ArtefactError):
            chicle.load(path)


# --- Memory ----------------------------------------------------------------------------------------------------------

CODES = """
import sys, chicle
n, under = int(sys.argv[1]), int(sys.argv[2])
if under:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (under, under))
schema = chicle.Schema.from_cardinalities({"a": n, "b": 2})
ledger = chicle.Ledger(chicle.Budget(epsilon=1, delta=1e-9))
synth = chicle.Prism(epsilon=1, delta=1e-9)
for what in (lambda: synth.plan(schema), lambda: synth.fit({"a": [0, 1], "b": [0, 1]}, schema, ledger=ledger)):
    try:
        what()
    except chicle.InfeasibleError as error:
        print(error)
assert not ledger.events and not ledger.reserved
from chicle.comparison.job import peak_mb
print(int(peak_mb()))
"""


@pytest.mark.parametrize(("codes", "under"), [(10**8, 0), (3 * 10**7, 3 * 2**30)], ids=["100 million", "under 3 GiB"])
def test_too_many_codes_are_refused_before_they_take_memory(codes: int, under: int) -> None:
    pytest.importorskip("resource")
    command = [sys.executable, "-c", CODES, str(codes), str(under)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.stderr == ""
    planned, fitted, peak = done.stdout.splitlines()
    assert planned == fitted
    assert f"column 'a' has {codes:,} codes: a fit would take about" in planned
    assert "make its bins coarser" in planned
    assert int(peak) < 1_000, "megabytes"


# --- Columns ---------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("error")
def test_a_coarse_group_of_one_value_divides_nothing_by_nothing() -> None:
    column = {"type": "integer", "min": 0, "max": 9, "coarse": {"none": [0], "some": list(range(1, 10))}}
    schema = Schema({"a": column, "b": {"type": "boolean"}})
    with np.errstate(all="raise"):
        synth = chicle.Prism(**ONE).fit({"a": [0, 1, 2, 3, 4] * 100, "b": [True, False] * 250}, schema)
        assert len(synth.sample(100, seed=0)["a"]) == 100
