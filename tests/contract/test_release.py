"""A release that is kept: the same records from the file, nothing private in it, and nothing believed of it."""

import io
import json
import pickle
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import ArtefactError, Budget, Ledger, Records, Release, Schema
from chicle.privacy import TestNoise
from chicle.releases.artefact import _checksum
from tests.contract.test_mechanisms import BUDGET, MECHANISMS, Make, constrained


@pytest.fixture(params=MECHANISMS, scope="module")
def make(request: pytest.FixtureRequest) -> Make:
    return MECHANISMS[request.param]


@pytest.fixture(scope="module")
def census() -> Records:
    return chicle.datasets.census(6_000, d=5)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory, census: Records) -> Path:
    path = tmp_path_factory.mktemp("saved") / "census.chicle"
    chicle.Prism(epsilon=3, delta=1e-9).fit(census).release_.save(path)
    return path


def same(first: Records, second: Records) -> bool:
    return first.domain == second.domain and all((first[name] == second[name]).all() for name in first.domain)


def people(kind: Callable[..., Any] = pa.table, rows: int = 800) -> tuple[Any, Schema]:
    rng = np.random.default_rng(0)
    day = np.datetime64("2024-01-01T00:00:00", "us")
    frame = kind(
        {
            "job": rng.choice(["cook", "smith"], rows),
            "wage": rng.integers(0, 10**6, rows),
            "share": np.where(rng.random(rows) < 0.3, np.nan, rng.random(rows)),
            "since": day + rng.integers(0, 10**7, rows).astype("m8[s]"),
            "id": [f"p{i}" for i in range(rows)],
        }
    )
    schema = Schema(
        {
            "job": {"type": "categorical", "values": ["cook", "smith", "tailor"]},
            "wage": {"type": "integer", "min": 0, "max": 10**6, "bins": 12},
            "share": {"type": "number", "min": 0, "max": 1, "bins": 6, "missing": True},
            "since": {"type": "datetime", "min": "2024-01-01", "max": "2024-06-30", "bins": "month"},
        },
        person="id",
    )
    return frame, schema


# --- The same release ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.02, 1.0, 10.0])
def test_a_loaded_release_gives_the_same_records(make: Make, census: Records, epsilon: float, tmp_path: Path) -> None:
    synth = make(epsilon=epsilon, delta=1e-9).fit(census, Schema.from_cardinalities(census.domain, ordinal=["AGE"]))
    release = synth.release_
    release.save(tmp_path / "a.chicle")
    loaded = chicle.load(tmp_path / "a.chicle")
    for n, seed in ((None, 0), (777, 1), (0, 2)):
        assert same(synth.sample(n, seed), loaded.sample(n, seed))
    assert repr(loaded) == repr(release)
    assert loaded.schema == release.schema
    assert loaded.ledger.entries == release.ledger.entries
    assert loaded.ledger.budget == release.ledger.budget
    for mine, theirs in zip(release.measurements, loaded.measurements, strict=True):
        assert (mine.clique, mine.sigma, mine.protected) == (theirs.clique, theirs.sigma, theirs.protected)
        assert mine.values.dtype == theirs.values.dtype
        np.testing.assert_array_equal(mine.values, theirs.values)
    loaded.save(tmp_path / "b.chicle")
    assert (tmp_path / "a.chicle").read_bytes() == (tmp_path / "b.chicle").read_bytes()


def test_releases_of_one_ledger_are_kept_each(census: Records, tmp_path: Path) -> None:
    ledger = Ledger(Budget(epsilon=5, delta=1e-9))
    schema = Schema.from_cardinalities(census.domain, max_records_per_person=3)
    releases = [
        mechanism(**BUDGET).fit(census, schema, ledger=ledger).release_ for mechanism in (chicle.Prism, chicle.PrivSyn)
    ]
    for release in releases:
        release.save(tmp_path / "r.chicle")
        loaded = chicle.load(tmp_path / "r.chicle")
        assert isinstance(loaded.ledger, Ledger)
        assert loaded.ledger.spent == ledger.spent
        assert same(loaded.sample(90, 1), release.sample(90, 1))


@pytest.mark.parametrize("domain", [{"a": 5}, {"a": 1, "b": 1}, {"a": 2, "b": 100_000}, {"a": 3, "b": 4, "d": 300}])
@pytest.mark.parametrize("rows", [0, 60])
def test_any_release_can_be_kept(make: Make, rows: int, domain: dict[str, int], tmp_path: Path) -> None:
    rng = np.random.default_rng(rows)
    table = Records({name: rng.integers(size, size=rows) for name, size in domain.items()}, domain)
    release = make(**BUDGET).fit(table).release_
    release.save(tmp_path / "r.chicle")
    assert same(release.sample(50, 3), chicle.load(tmp_path / "r.chicle").sample(50, 3))


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_the_kind_of_table_and_its_types_are_kept(make: Make, kind: Any, tmp_path: Path) -> None:
    frame, schema = people(kind)
    release = make(**BUDGET).fit(frame, schema).release_
    release.save(tmp_path / "r.chicle")
    first, second = release.sample(300, 4), chicle.load(tmp_path / "r.chicle").sample(300, 4)
    assert type(second) is type(frame)
    assert first.equals(second)
    if kind is pd.DataFrame:
        assert first.dtypes.to_dict() == second.dtypes.to_dict()
    else:
        assert first.schema == second.schema


PANDAS_TYPES = [
    pd.Series([1, 2, 3], dtype="Int16"),
    pd.Series(["x", "y", "x"], dtype="string"),
    pd.Series(["x", "y", "x"], dtype="string[python]"),
    pd.Series(["x", "y", "x"], dtype="str"),
    pd.Series(["x", "y", "x"], dtype=object),
    pd.Series(["x", "y", "x"], dtype="category"),
    pd.Series([True, False, True]),
    pd.Series([True, None, True], dtype="boolean"),
    pd.Series([1.5, None, 2.5], dtype="Float32"),
    pd.Series(["x", "y", "x"], dtype=pd.ArrowDtype(pa.large_string())),
    pd.Series(pd.to_datetime(["2024-01-01", "2024-02-01", "2024-03-01"]).tz_localize("Europe/Paris")),
]


@pytest.mark.parametrize("series", PANDAS_TYPES, ids=lambda series: str(series.dtype))
def test_types_of_pandas_survive(series: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": series})
    schema = chicle.draft_schema(frame).mark_reviewed("the form")
    release = chicle.Independent(**BUDGET).fit(frame, schema).release_
    release.save(tmp_path / "r.chicle")
    first, second = release.sample(20, 0), chicle.load(tmp_path / "r.chicle").sample(20, 0)
    pd.testing.assert_frame_equal(first, second)


ARROW_TYPES = [
    *(pa.int8(), pa.uint64(), pa.float32(), pa.bool_(), pa.string(), pa.large_string(), pa.string_view()),
    *(pa.date32(), pa.date64(), pa.timestamp("ms"), pa.timestamp("ns", "UTC"), pa.timestamp("s", "Europe/Paris")),
    *(pa.decimal128(10, 2), pa.decimal256(40, -3), pa.dictionary(pa.int32(), pa.large_string(), True)),
    *(pa.null(), pa.binary(), pa.dictionary(pa.uint8(), pa.timestamp("us", "+01:00"))),
]


@pytest.mark.parametrize("dtype", ARROW_TYPES, ids=str)
def test_types_of_arrow_survive(dtype: pa.DataType) -> None:
    form = chicle.sources.frames.Form("pyarrow", {"a": dtype}, {"a": dtype})
    again = chicle.sources.frames.Form.from_dict(json.loads(json.dumps(form.to_dict())))
    assert again == form


def test_types_without_a_name_are_left_out() -> None:
    form = chicle.sources.frames.Form("pyarrow", {"a": pa.list_(pa.int8()), "b": pa.int8()})
    assert chicle.sources.frames.Form.from_dict(form.to_dict()).types == {"a": None, "b": pa.int8()}


# --- What is in the file ---------------------------------------------------------------------------------------------


def test_nothing_private_is_in_the_file(make: Make, tmp_path: Path) -> None:
    """Canaries: identities, texts, values inside bins, a frame's categories, the number of rows: in no byte."""
    frame, schema = people(pd.DataFrame, 4_321)
    columns = {**schema.columns, "note": chicle.columns.Drop(), "key": chicle.columns.Identifier()}
    schema = Schema(columns, person="id")
    frame["id"] = [f"canary{i}" for i in range(len(frame))]
    frame["note"] = [f"a canary sings {i}" for i in range(len(frame))]
    frame["key"] = [f"canary-{i}" for i in range(len(frame))]
    frame["job"] = pd.Categorical(frame["job"], categories=["canary", "smith", "cook"])
    frame.loc[0, "wage"] = 618_033
    frame.attrs["note"] = "canary"
    frame.index = [f"canary{i}" for i in range(len(frame))]

    def saved() -> list[bytes]:
        release = make(**BUDGET).fit(frame, schema).release_
        release.save(tmp_path / "r.chicle")
        assert "canary" not in str(release.marginals().to_pylist())
        assert "canary" not in repr(release)
        with zipfile.ZipFile(tmp_path / "r.chicle") as file:
            assert {Path(name).suffix for name in file.namelist()} == {".json", ".npy", ""}
            return [file.read(name) for name in file.namelist()]

    def tells_n() -> bool:
        parts = saved()
        for part in parts:
            assert b"canary" not in part
            assert not _holds(part, 618_033)
            assert np.int64(618_033).tobytes() not in part
        return any(_holds(part, 4_321) for part in parts)

    # A noisy total equals n by luck in one release of a hundred; a file that tells n tells it every time.
    assert not all(tells_n() for _ in range(5))


def test_a_fitted_mechanism_can_be_pickled(make: Make, census: Records) -> None:
    synth = make(**BUDGET).fit(census)
    for thing in (synth, synth.release_):
        again = pickle.loads(pickle.dumps(thing))  # noqa: S301 - our own
        assert same(again.sample(200, seed=3), thing.sample(200, seed=3))
        assert repr(again) == repr(thing)


def test_a_release_from_elsewhere_can_be_pickled(saved: Path) -> None:
    release = Release.from_marginals(chicle.load(saved).marginals(), chicle.load(saved).schema, claim="by the bureau")
    again = pickle.loads(pickle.dumps(release))  # noqa: S301 - our own
    assert repr(again.ledger) == repr(release.ledger)
    assert again.sample(100, seed=1).equals(release.sample(100, seed=1))


def _holds(part: bytes, number: int) -> bool:
    """Whether a text holds a number itself: not as digits of another or of a digest, which hold any by chance."""
    return re.search(rb"(?<![\w.])%d(?!\w|\.\d*[1-9])" % number, part) is not None


def test_a_canary_would_be_found() -> None:
    for part in (b'{"n": 4321}', b"[1, 4321, 2]", b"4321.0", b"n=4321"):
        assert _holds(part, 4_321)
    for part in (b"bdf4321ea3", b"0.4321", b"43210", b"4321.75", b"54321"):
        assert not _holds(part, 4_321)


def test_anyone_can_read_it_with_numpy(saved: Path) -> None:
    release = chicle.load(saved)
    with np.load(saved, allow_pickle=False) as arrays:
        headers = json.loads(arrays["release.json"])["transcript"]
        places = [one["values"] for one in headers if one["kind"] == "measurement"]
        for place, measurement in zip(places, release.measurements, strict=True):
            np.testing.assert_array_equal(arrays[place], measurement.values)


def test_test_noise_is_told(census: Records, tmp_path: Path) -> None:
    ledger = Ledger(Budget(**BUDGET), noise=TestNoise(1))
    release = chicle.Independent(**BUDGET).fit(census, ledger=ledger).release_
    release.save(tmp_path / "r.chicle")
    with pytest.warns(UserWarning, match="NOT PRIVATE"):
        loaded = chicle.load(tmp_path / "r.chicle")
    assert not loaded.ledger.protected
    assert all(not measurement.protected for measurement in loaded.measurements)
    assert "NOT PRIVATE" in repr(loaded)
    with zipfile.ZipFile(tmp_path / "r.chicle") as file:
        assert json.loads(file.read("release.json"))["protected"] is False


def test_a_release_of_what_is_no_plain_data_is_not_saved(census: Records, tmp_path: Path) -> None:
    synth = chicle.PrivSyn(**BUDGET, generator="mcf", options={"start": census, "passes": np.int64(1)})
    release = synth.fit(census).release_
    with pytest.raises(chicle.ParameterError, match="Records is no plain data"):
        release.save(tmp_path / "r.chicle")
    assert not list(tmp_path.iterdir())


def test_unknown_options_of_a_kernel_cost_nothing(census: Records) -> None:
    ledger = Ledger(Budget(**BUDGET))
    with pytest.raises(chicle.ParameterError, match="no option 'sweep'; it has"):
        chicle.PrivSyn(**BUDGET, generator="descent", options={"sweep": 2}).fit(census, ledger=ledger)
    assert ledger.spent == 0


# --- What is no release ----------------------------------------------------------------------------------------------


def members_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def write(path: Path, members: dict[str, bytes], *, seal: bool = True) -> Path:
    """Write a file again; with `seal` its checksum is right."""
    others = {name: data for name, data in members.items() if name != "sha256"}
    with zipfile.ZipFile(path, "w") as file:
        for name, data in others.items():
            file.writestr(name, data)
        file.writestr("sha256", _checksum(others) if seal else members["sha256"])
    return path


def change(path: Path, edit: Callable[[dict[str, Any]], object], to: Path, *, seal: bool = True) -> Path:
    members = members_of(path)
    told = json.loads(members["release.json"])
    edit(told)
    return write(to, {**members, "release.json": json.dumps(told).encode()}, seal=seal)


@given(st.data())
def test_every_broken_byte_is_found(saved: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    raw = bytearray(saved.read_bytes())
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    broken = tmp_path_factory.mktemp("broken") / "r.chicle"
    broken.write_bytes(raw)
    try:
        loaded = chicle.load(broken)
    except ArtefactError:
        return
    # A byte that says nothing: a date, or an attribute of the file system.
    assert same(loaded.sample(50, 0), chicle.load(saved).sample(50, 0))


@given(st.data())
def test_a_file_that_is_cut_short_is_found(
    saved: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    raw = saved.read_bytes()
    short = tmp_path_factory.mktemp("short") / "r.chicle"
    short.write_bytes(raw[: data.draw(st.integers(0, len(raw) - 1))])
    with pytest.raises(ArtefactError, match="copy it again"):
        chicle.load(short)


EDITS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "newer": (lambda told: told.update(format=2, chicle="9.9"), "written by chicle 9.9 in format 2; .* upgrade chicle"),
    "no format": (lambda told: told.pop("format"), "names no format"),
    "another kind": (lambda told: told.update(kind="something"), "no release of chicle"),
    "another family": (lambda told: told["model"].update(family="magic"), "no model family 'magic'; .* or upgrade"),
    "another family's parameters": (lambda told: told["model"].update(family="composed"), "damaged or was changed"),
    "less noise": (lambda told: told["transcript"][1].update(sigma=1.0), "not in its ledger"),
    "noise of no number": (lambda told: told["transcript"][1].update(sigma="1"), "no number above 0"),
    "no measurement": (lambda told: told["transcript"].clear(), "holds no measurement"),
    "a measurement twice": (lambda told: told["transcript"].append(told["transcript"][1]), "damaged"),
    "another attribute": (lambda told: told["transcript"][1].update(clique=["nobody"]), "'nobody' is not an attrib"),
    "an entry of no kind": (lambda told: told["transcript"][1].update(kind="rumour"), "unknown kind, 'rumour'"),
    "another size": (lambda told: told["schema"]["columns"]["AGE"].update(values=7), "damaged"),
    "unreviewed": (lambda told: told["schema"].update(reviewed=False), "draft"),
    "no schema": (lambda told: told.pop("schema"), "missing or unknown fields"),
    "more budget": (lambda told: told["ledger"]["budget"].update(epsilon=0.1), "not a ledger"),
    "protected or not": (lambda told: told.update(protected=False), "disagree on whether it is protected"),
    "more fields": (lambda told: told.update(more=1), "missing or unknown fields"),
    "parameters of no number": (lambda told: told["model"]["parameters"].update(sweeps="3"), "sweeps must be"),
    "unknown parameters": (lambda told: told["model"]["parameters"].update(magic=1), "damaged or was changed"),
    "no model": (lambda told: told.pop("model"), "missing or unknown fields"),
    "no table": (lambda told: told["form"].update(kind="spreadsheet"), "spreadsheet"),
    "types of no type": (lambda told: told["form"].update(types={"AGE": "float13"}), "damaged"),
    "a claim for a ledger": (
        lambda told: (told.pop("ledger"), told.update(claim={"text": "private, trust me"})),
        "claim instead of",
    ),
    "a claim inside the ledger": (lambda told: told.update(ledger={"text": "private, trust me"}), "not a ledger"),
    "a ledger and a claim": (
        lambda told: told.update(claim={"text": "private, trust me"}),
        "missing or unknown fields",
    ),
    "neither ledger nor claim": (lambda told: told.pop("ledger"), "missing or unknown fields"),
    "notes of no text": (lambda told: told.update(notes=[1]), "not texts"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_what_was_changed_is_refused(saved: Path, edit: str, tmp_path: Path) -> None:
    """Even where the checksum was made anew."""
    how, said = EDITS[edit]
    with pytest.raises(ArtefactError, match=said):
        chicle.load(change(saved, how, tmp_path / "r.chicle"))


def unpay(told: dict[str, Any]) -> None:
    told["fine_one_ways"][0]["sigma"] *= 0.5


FINE: dict[str, Callable[[dict[str, Any]], object]] = {
    "lost": lambda told: told["fine_one_ways"].clear(),
    "twice": lambda told: told["fine_one_ways"].append(told["fine_one_ways"][0]),
    "of another column": lambda told: told["fine_one_ways"][0].update(clique=["wage"]),
    "not paid for": unpay,
    "not there": lambda told: told.pop("fine_one_ways"),
}


@pytest.mark.parametrize("edit", FINE)
def test_fine_1_ways_are_those_of_the_schema_and_paid_for(edit: str, tmp_path: Path) -> None:
    frame, schema = constrained()
    path = tmp_path / "r.chicle"
    chicle.Independent(**BUDGET).fit(frame, schema).release_.save(path)
    chicle.load(path)
    with pytest.raises(ArtefactError, match="damaged or was changed"):
        chicle.load(change(path, FINE[edit], tmp_path / "other.chicle"))


def test_a_changed_header_has_another_checksum(saved: Path, tmp_path: Path) -> None:
    path = change(saved, lambda told: told["notes"].append("all is well"), tmp_path / "r.chicle", seal=False)
    with pytest.raises(ArtefactError, match="checksum does not match; make or copy it again"):
        chicle.load(path)


def npy(array: Any, *, pickled: bool = False) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=pickled)
    return file.getvalue()


HOSTILE: dict[str, bytes] = {
    "pickled": npy(np.array([{"a": 1}], dtype=object), pickled=True),
    "no array": b"nothing",
    "empty": b"",
    "another type": npy(np.zeros(3, dtype=np.float16)),
    "another shape": npy(np.zeros((2, 2), dtype=np.int64)),
    "not finite": npy(np.full((), np.nan)),
    "huge": npy(np.zeros(1, dtype=np.int64)).replace(b"'shape': (1,), }          ", b"'shape': (99999999999,), }"),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_hostile_arrays_are_refused(saved: Path, data: bytes, tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="damaged"):
        chicle.load(write(tmp_path / "r.chicle", {**members_of(saved), "values-0.npy": data}))


def test_a_bomb_is_not_unpacked(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chicle.releases.artefact.MEMORY_LIMIT", 10_000_000)
    path = tmp_path / "r.chicle"
    members = members_of(saved)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in {**members, "values-0.npy": b"0" * 20_000_000}.items():
            file.writestr(name, data)
    assert path.stat().st_size < 1_000_000
    with pytest.raises(ArtefactError, match="would unpack to more"):
        chicle.load(path)


def test_what_could_not_be_loaded_is_not_saved(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = chicle.load(saved)
    monkeypatch.setattr("chicle.releases.artefact.MEMORY_LIMIT", 1_000)
    with pytest.raises(chicle.InfeasibleError, match="too large"):
        release.save(tmp_path / "r.chicle")
    assert not list(tmp_path.iterdir())


def test_other_files_are_refused(saved: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    with pytest.raises(ArtefactError, match="cannot be read: No such file"):
        chicle.load(other)
    with pytest.raises(ArtefactError, match="cannot be read: Is a directory"):
        chicle.load(tmp_path)
    other.write_text("age,sex\n", encoding="utf-8")
    with pytest.raises(ArtefactError, match="of another kind"):
        chicle.load(other)
    with zipfile.ZipFile(other, "w") as file:
        file.writestr("sheet.xml", "<a/>")
    with pytest.raises(ArtefactError, match=r"no release of chicle; give a file that Release\.save wrote"):
        chicle.load(other)
    members = members_of(saved)
    del members["values-1.npy"]
    with pytest.raises(ArtefactError, match="damaged"):
        chicle.load(write(other, members))


def test_saving_replaces_the_whole_file_or_nothing(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release: Release = chicle.load(saved)
    path = tmp_path / "r.chicle"
    path.write_text("old", encoding="utf-8")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(zipfile.ZipFile, "writestr", full)
        with pytest.raises(ArtefactError, match=r"r\.chicle cannot be written: No space left on device"):
            release.save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.chicle"]
    assert path.read_text(encoding="utf-8") == "old"
    release.save(path)
    assert path.read_bytes() == saved.read_bytes()
    with pytest.raises(ArtefactError, match="cannot be written: No such file"):
        release.save(tmp_path / "nowhere" / "r.chicle")


@pytest.mark.parametrize("rows", [1, 7, 100, 2**17])
def test_a_sample_in_parts_is_the_sample(rows: int) -> None:
    schema = Schema(
        {"id": {"type": "identifier"}, "sex": {"type": "categorical", "values": ["f", "m"], "missing": True}, "n": 5}
    )
    frame = pa.table({"id": ["a", "b", "c"] * 50, "sex": ["f", "m", None] * 50, "n": [0, 1, 4] * 50})
    release = chicle.Independent(epsilon=1, delta=1e-6).fit(frame, schema).release_
    whole = release.sample(100, seed=3)
    parts = list(release.sample_parts(100, seed=3, rows=rows))
    assert [len(part) for part in parts[:-1]] == [rows] * (len(parts) - 1)
    assert pa.concat_tables(parts).equals(whole)
    assert whole["id"][0].as_py() == "1001"
    (none,) = release.sample_parts(0, seed=3)
    assert none.schema == whole.schema
    assert len(none) == 0
