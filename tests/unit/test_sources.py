"""Whatever a table comes from, and however it is cut into batches, it is the same table."""

import gzip
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import ArtefactError, Budget, Ledger, ParameterError, Records, Schema, SchemaError
from chicle.codecs import Codec
from chicle.counting.countable import Countable, Independence, View
from chicle.counting.passes import Passes
from chicle.mechanisms.base import Mechanism
from chicle.privacy import TestNoise
from chicle.sources import check_table, local, open_source, read_records
from chicle.sources.files import find_files
from chicle.sources.local import ahead
from chicle.sources.table_files import write_table
from tests.interrupt import interrupt
from tests.schemas import Raw, tables

DECLARED: dict[str, Any] = {
    "age": {"type": "integer", "min": 0, "max": 99, "bins": 10},
    "job": {"type": "categorical", "values": ["nurse", "clerk", "cook", "06"], "missing": True},
    "left": {"type": "boolean"},
    "pay": {"type": "number", "min": 0, "max": 10, "bins": 7},
}
SCHEMA = Schema(DECLARED)
BUDGET: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-6}


def people(rows: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, rows)
    job = np.array(["nurse", "clerk", "cook", "06", None], dtype=object)[(age // 25 + rng.integers(0, 2, rows)) % 5]
    return pa.table(
        {
            "age": age,
            "job": pa.array(job, pa.string()),
            "left": age > 50,
            "pay": np.clip(rng.normal(5, 2, rows), 0, 10).round(2),
        }
    )


def same(one: Countable, other: Countable) -> None:
    assert one.domain == other.domain
    assert one.max_records_per_person == other.max_records_per_person
    cliques = [(), *((name,) for name in one.domain), *chicle.pairs(one.domain)]
    for first, second in zip(chicle.count(one, cliques), chicle.count(other, cliques), strict=True):
        np.testing.assert_array_equal(first, second)


def parts(table: pa.Table, borders: list[int]) -> list[pa.Table]:
    ends = [0, *sorted(min(border, len(table)) for border in borders), len(table)]
    return [table.slice(a, b - a) for a, b in pairwise(ends)]


def once(tables: list[pa.Table]) -> Iterator[pa.Table]:
    yield from tables


GIVEN: dict[str, Callable[[pa.Table], Any]] = {
    "pyarrow": lambda table: table,
    "pandas": lambda table: table.to_pandas(),
    "polars": pl.DataFrame,
    "list of batches": lambda table: table.to_batches(max_chunksize=100),
    "list of frames": lambda table: [part.to_pandas() for part in parts(table, [100, 300])],
    "function": lambda table: lambda: table.to_batches(max_chunksize=77),
    "reader": lambda table: table.to_reader(max_chunksize=130),
    "generator": lambda table: once(parts(table, [1, 2, 400])),
    "dataset": lambda table: ds.dataset(table.to_batches(max_chunksize=50)),
}


@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.parametrize("in_memory", [0, 2**28])
def test_every_kind_of_source_is_the_same_table(kind: str, in_memory: int) -> None:
    table = people(500)
    direct = read_records(table, SCHEMA)
    opened = open_source(GIVEN[kind](table), SCHEMA, in_memory=in_memory)
    read = opened.countable(Codec(SCHEMA))
    streamed = in_memory == 0 and kind in ("list of batches", "list of frames", "function", "dataset")
    assert isinstance(read, Passes if streamed else Records)
    same(read, direct)
    assert opened.form.kind == (kind if kind in ("pandas", "polars") else "pyarrow")


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "arrow"])
@pytest.mark.parametrize("in_memory", [0, 2**28])
def test_files_are_one_table(tmp_path: Path, ending: str, in_memory: int) -> None:
    table = people(1_000)
    for i, part in enumerate(parts(table, [10, 10, 600])):  # one of them without rows
        shuffled = part.select(["pay", "age", "left", "job"]) if i == 2 else part
        write_table(shuffled, tmp_path / f"part-{i}.{ending}")
    for files in (str(tmp_path / f"part-*.{ending}"), sorted(tmp_path.iterdir())):
        opened = open_source(files, SCHEMA, in_memory=in_memory)
        same(opened.countable(Codec(SCHEMA)), read_records(table, SCHEMA))
        assert list(opened.form.types) == table.column_names
        assert opened.form.types["age"] == pa.int64()
        assert opened.form.types["job"] == pa.string()


@given(drawn=tables(), borders=st.lists(st.integers(0, 30), max_size=4), threads=st.sampled_from([1, 2, 8]))
def test_any_table_in_any_batches(
    drawn: tuple[dict[str, Any], dict[str, list[Any]]], borders: list[int], threads: int
) -> None:
    declared, values = drawn
    schema, table = Schema(declared), pa.table(values)
    opened = open_source(parts(table, borders), schema, in_memory=0, threads=threads)
    direct, streamed = read_records(table, schema), opened.countable(Codec(schema))
    cliques = [(), *((name,) for name in schema.domain)]
    if any(schema.domain.cells(clique) > 10**6 for clique in cliques):
        return
    for first, second in zip(chicle.count(direct, cliques), chicle.count(streamed, cliques), strict=True):
        np.testing.assert_array_equal(first, second)
    joined = opened.records(Codec(schema))
    for name in schema.domain:
        np.testing.assert_array_equal(direct[name], joined[name])


MECHANISMS: dict[str, Callable[[], Mechanism]] = {
    "prism": lambda: chicle.Prism(**BUDGET),
    "privsyn": lambda: chicle.PrivSyn(generator="descent", **BUDGET),
    "privsyn, published": lambda: chicle.PrivSyn(generator="descent", form="published", **BUDGET),
    "independent": lambda: chicle.Independent(**BUDGET),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_streamed_fit_is_the_fit_in_memory(name: str) -> None:
    table = people(3_000)
    batches = table.to_batches(max_chunksize=333)
    released = []
    for given_table in (table, open_source(batches, SCHEMA, in_memory=0), lambda: batches):
        ledger = Ledger(Budget(**BUDGET), noise=TestNoise(3))
        release = MECHANISMS[name]().fit(given_table, SCHEMA, ledger=ledger).release_
        released.append(release)
    first = released[0]
    for other in released[1:]:
        assert other.ledger.entries == first.ledger.entries
        assert len(other.measurements) == len(first.measurements)
        for one, two in zip(first.measurements, other.measurements, strict=True):
            assert one.clique == two.clique
            np.testing.assert_array_equal(one.values, two.values)
        assert other.notes == first.notes


def test_passes_are_few() -> None:
    batches: list[pa.RecordBatch] = people(2_000).to_batches(max_chunksize=500)
    readings = 0

    def give() -> list[pa.RecordBatch]:
        nonlocal readings
        readings += 1
        return batches

    opened = open_source(give, SCHEMA, in_memory=0)
    assert readings == 1, "the columns"
    chicle.Prism(**BUDGET, options=chicle.PrismOptions(first_stage=1.0)).fit(opened, SCHEMA)
    assert readings == 4, "all is checked and 1-ways are counted; pairs are scored; sets are counted"


def test_recoded_rows_are_counted_as_such() -> None:
    table = people(700)
    direct = read_records(table, SCHEMA)
    readings = 0

    def give() -> list[pa.RecordBatch]:
        nonlocal readings
        readings += 1
        return list(table.to_batches(max_chunksize=99))

    stream = open_source(give, SCHEMA, in_memory=0).countable(Codec(SCHEMA))
    halves = (np.arange(10) // 2).astype(np.uint8)
    back = np.array([4, 3, 2, 1, 0], dtype=np.uint8)
    columns: Any = {"job": ("job", None), "tens": ("age", halves)}
    domain = chicle.Domain({"job": 5, "tens": 5})
    same(direct.view(columns, domain), stream.view(columns, domain))
    same(View(direct, columns, domain), stream.view(columns, domain))
    again: Any = {"tens": ("tens", back), "trade": ("job", None)}
    turned = chicle.Domain({"tens": 5, "trade": 5})
    lazily = stream.view(columns, domain).view(again, turned)
    same(direct.view(columns, domain).view(again, turned), lazily)
    before = readings
    chicle.count(lazily, [("tens",)])
    assert readings == before, "a 1-way takes no pass of its own"
    assert "700" not in repr(stream) + repr(lazily)


@pytest.mark.parametrize("reference", [True, False])
def test_pairs_are_scored_alike(monkeypatch: pytest.MonkeyPatch, reference: bool) -> None:
    table = people(900)
    direct = read_records(table, SCHEMA)
    stream = open_source(table.to_batches(max_chunksize=200), SCHEMA, in_memory=0).countable(Codec(SCHEMA))
    expect = Independence({name: np.full(size, 1 / size) for name, size in direct.domain.items()}, 800.0)
    pairs = chicle.pairs(direct.domain)

    def scored(rows: Countable, pairs: list[chicle.Clique]) -> Any:
        return rows.distances(pairs, expect) if reference else rows.dependence(pairs)

    expected = scored(direct, pairs)
    for room in (2**28, 100):  # all at once, or a pass for each
        monkeypatch.setattr("chicle.counting.countable._PASS_BYTES", room)
        np.testing.assert_array_equal(scored(stream, pairs), expected)
    assert scored(stream, []).size == 0


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_a_file_without_rows_is_a_table(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"none.{ending}"
    write_table(pa.table({"job": pa.array([], pa.string()), "age": pa.array([], pa.int64())}), path)
    told: dict[str, Any] = {"job": {"type": "open"}, "age": {"type": "integer", "min": 0, "max": 99, "bins": "private"}}
    for columns in (told, {**told, "job": {"type": "categorical", "values": ["nurse", "cook"]}}):
        synth = chicle.Prism(epsilon=1, delta=1e-9).fit(path, Schema(columns))
        assert synth.sample(3, seed=0).num_rows == 3
    assert len(read_records(path, Schema({**columns, "age": {"type": "coded", "values": 9}}))) == 0


def test_a_misfit_in_the_last_file_costs_nothing(tmp_path: Path) -> None:
    for i, age in enumerate([5, 7, 777]):
        write_table(people(50).set_column(0, "age", pa.array([age] * 50)), tmp_path / f"{i}.parquet")
    for in_memory in (0, 2**28):
        ledger = Ledger(Budget(**BUDGET))
        opened = open_source(str(tmp_path / "*.parquet"), SCHEMA, in_memory=in_memory)
        with pytest.raises(SchemaError, match=r"2.parquet: column 'age' has a number outside its bounds") as refusal:
            chicle.Prism(**BUDGET).fit(opened, SCHEMA, ledger=ledger)
        assert ledger.spent == 0
        assert "777" not in str(refusal.value)


def test_columns_are_checked_file_by_file(tmp_path: Path) -> None:
    write_table(people(5), tmp_path / "a.csv")
    write_table(people(5).drop_columns(["pay"]), tmp_path / "b.csv")
    with pytest.raises(SchemaError, match=r"b.csv: column 'pay' is declared but not in the table"):
        open_source(str(tmp_path / "*.csv"), SCHEMA)
    write_table(people(5).append_column("more", [[1] * 5]), tmp_path / "b.csv")
    with pytest.raises(SchemaError, match=r"b.csv: column 'more' is not declared"):
        open_source(str(tmp_path / "*.csv"), SCHEMA)
    dropping = Schema({**DECLARED, "more": {"type": "drop"}})
    same(
        open_source(str(tmp_path / "*.csv"), dropping).countable(Codec(dropping)),
        read_records(pa.concat_tables([people(5)] * 2), SCHEMA),
    )
    with pytest.raises(SchemaError, match="batch 2 has no column 'pay'"):
        open_source([people(3), people(3).drop_columns(["pay"])], SCHEMA).countable(Codec(SCHEMA))


def test_a_file_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else every row of it would be two, of somebody who may have one."""
    monkeypatch.chdir(tmp_path)
    write_table(people(5), tmp_path / "1.csv")
    write_table(people(5), tmp_path / "2.csv")
    (tmp_path / "link.csv").symlink_to(tmp_path / "1.csv")
    for twice in (["1.csv", "*.csv"], ["1.csv", str(tmp_path / "1.csv")], ["2.csv", "2.csv"], "*.csv"):
        with pytest.raises(ParameterError, match="is named twice, so its rows would count twice"):
            find_files(twice)
    assert len(find_files("?.csv")) == 2


def test_files_that_are_none_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="no file matches"):
        find_files(str(tmp_path / "*.csv"))
    with pytest.raises(ParameterError, match="is a folder; name the files in it"):
        find_files(tmp_path)
    with pytest.raises(ArtefactError, match="no such file"):
        open_source(tmp_path / "none.parquet", SCHEMA)
    with pytest.raises(ParameterError, match="an unknown ending"):
        open_source(["a.csv", "b.docx"], SCHEMA)
    with pytest.raises(SchemaError, match="there are no batches"):
        open_source([], SCHEMA)
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(ArtefactError, match=r"cut.parquet cannot be read"):
        open_source(tmp_path / "cut.parquet", SCHEMA)


def test_a_reader_is_read_once_and_says_so() -> None:
    opened = open_source(people(300).to_reader(max_chunksize=100), SCHEMA, in_memory=0)
    assert isinstance(opened.countable(Codec(SCHEMA)), Records)
    with pytest.raises(SchemaError, match="can be read only once; give a list of them"):
        opened.reduce(Raw(), ["age"])


def test_a_source_that_changes_is_noticed() -> None:
    batches = people(300).to_batches(max_chunksize=50)
    opened = open_source(batches, SCHEMA, in_memory=0)
    stream = opened.countable(Codec(SCHEMA))
    batches.append(batches[0])
    with pytest.raises(SchemaError, match="other rows when it was read again"):
        chicle.count(stream, [("age", "job")])


def test_csv_types_that_show_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chicle.sources.table_files._BLOCK_BYTES", 200)
    schema = Schema({"n": {"type": "integer", "min": 0, "max": 9}, "t": {"type": "categorical", "values": ["a", "b"]}})
    rows = [f"{i % 10},{'ab'[i % 2]}" for i in range(300)]
    late = [*rows, "4.0,b"]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["n,t", *late]) + "\n", encoding="utf-8")
    expected = np.append(np.arange(300) % 10, 4)
    opened = open_source(path, schema, in_memory=0)
    assert opened.form.types == {"n": pa.int64(), "t": pa.string()}
    np.testing.assert_array_equal(opened.records(Codec(schema))["n"], expected)
    np.testing.assert_array_equal(chicle.count(opened.countable(Codec(schema)), [("n",)])[0], np.bincount(expected))
    path.write_text("\n".join(["n,t", *rows, "none,b"]) + "\n", encoding="utf-8")
    with pytest.raises(SchemaError, match=r"a.csv: column 'n' holds text, not numbers"):
        open_source(path, schema).countable(Codec(schema))
    with gzip.open(tmp_path / "b.csv.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(["n,t", *rows]))
    np.testing.assert_array_equal(
        open_source(tmp_path / "b.csv.gz", schema).records(Codec(schema))["n"], np.arange(300) % 10
    )


@pytest.mark.parametrize("row", ["NA,x9,2", "1,7.5,2", "true,,2", "0,7,NA"])
def test_types_of_a_csv_file_tell_nothing_of_a_row(tmp_path: Path, row: str) -> None:
    """Neighbours have the same form, whatever a column without a declared type holds: that of a release is public."""
    schema = Schema(
        {
            "smoker": {"type": "boolean", "missing": True},
            "id": {"type": "identifier"},
            "half": {"type": "determined", "determined_by": "smoker", "map": [[True, 1.5], [False, 2]]},
        }
    )
    forms = []
    for rows in (["1,7,2"], ["1,7,2", row], [row]):
        path = tmp_path / "a.csv"
        path.write_text("\n".join(["smoker,id,half", *rows, ""]), encoding="utf-8")
        synth = chicle.Independent(epsilon=1, delta=1e-6).fit(path, schema)
        made = synth.sample(5, seed=0)
        forms.append((synth.release_.form.to_dict(), made.schema))
    assert forms[0] == forms[1] == forms[2]


def test_what_arrow_says_of_a_dataset_is_not_passed_on(tmp_path: Path) -> None:
    """Its messages quote values."""
    rows = ["age", *["31"] * 900_000, "canary-4711"]  # the first block tells the type
    (tmp_path / "a.csv").write_text("\n".join(rows), encoding="utf-8")
    schema = Schema({"age": {"type": "integer", "min": 0, "max": 99}})
    given_dataset = ds.dataset(str(tmp_path / "a.csv"), format="csv")
    with pytest.raises(SchemaError, match="cannot be read") as caught:
        chicle.Independent(epsilon=1, delta=1e-6).fit(given_dataset, schema)
    assert "4711" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_progress_is_told(tmp_path: Path) -> None:
    for i in range(3):
        pq.write_table(people(1_000), tmp_path / f"{i}.parquet", row_group_size=100)
    seen: list[float] = []
    open_source(str(tmp_path / "*.parquet"), SCHEMA, progress=seen.append).countable(Codec(SCHEMA))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_raw_columns_come_in_batches() -> None:
    table = people(400)
    for given_table in (table, table.to_batches(max_chunksize=64), table.to_pandas()):
        assert open_source(given_table, SCHEMA).reduce(Raw(), ["age"]).column("age").equals(table["age"])


def test_large_batches_are_encoded_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_BATCH_ROWS", 64)
    table = people(1_000)
    same(open_source(table, SCHEMA).countable(Codec(SCHEMA)), read_records(table, SCHEMA))
    frame = pd.DataFrame({"a": np.arange(200, dtype=np.uint8) % 3})
    coded = Schema({"a": 3})
    assert np.shares_memory(
        open_source(pa.Table.from_pandas(frame), coded).records(Codec(coded))["a"], frame["a"].to_numpy()
    )


def test_work_ahead_keeps_order_and_ends() -> None:
    def fail(number: int) -> int:
        if number == 7:
            raise ValueError("seven")
        return number

    begun = threading.active_count()
    numbers = ahead(iter(range(1, 20)), fail, threads=3)
    assert [next(numbers) for _ in range(6)] == [1, 2, 3, 4, 5, 6]
    with pytest.raises(ValueError, match="seven"):
        next(numbers)
    assert list(ahead(iter(()), fail)) == []
    left = ahead(iter(range(10, 100)), fail, threads=2)
    next(left)
    left.close()
    assert threading.active_count() == begun


def test_ctrl_c_ends_a_pass(tmp_path: Path) -> None:
    write_table(pa.concat_tables([people(20_000)] * 50), tmp_path / "a.parquet")
    prepare = f"""
        import chicle
        from chicle.codecs import Codec
        from chicle.sources import open_source
        schema = chicle.Schema({DECLARED!r})
        stream = open_source({str(tmp_path / "a.parquet")!r}, schema, in_memory=0).countable(Codec(schema))
    """
    assert interrupt(tmp_path, prepare, "chicle.count(stream, [('age', 'job')])") == "stopped\n"


def test_files_and_batches_are_checked(tmp_path: Path) -> None:
    write_table(people(20), tmp_path / "a.parquet")
    write_table(people(0), tmp_path / "b.parquet")
    assert check_table(str(tmp_path / "*.parquet"), SCHEMA).fits
    write_table(people(9).set_column(0, "age", pa.array([999] * 9)).drop_columns(["pay"]), tmp_path / "c.parquet")
    write_table(people(0).append_column("more", pa.array([], pa.int8())), tmp_path / "d.parquet")
    problems = check_table(str(tmp_path / "*.parquet"), SCHEMA).problems
    assert [problem.split(";")[0] for problem in problems] == [
        "column 'pay' is declared but not in the table",
        "column 'age' has a number outside its bounds",
        "column 'more' is not declared",
    ]
    assert not check_table(iter([people(3), people(3).set_column(1, "job", pa.array(["king"] * 3))]), SCHEMA).fits
