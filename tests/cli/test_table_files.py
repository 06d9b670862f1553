"""Tables survive their files, and what is wrong with a file is said without a value of it."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given

import chicle
from chicle import Schema
from chicle.sources import check_table, read_records, table_files
from chicle.sources.table_files import check_ending, read_table, write_table
from tests.schemas import tables

ENDINGS = ["csv", "csv.gz", "tsv", "parquet", "pq", "arrow", "feather"]


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "feather"])
@given(drawn=tables())
def test_a_table_is_encoded_alike_from_any_file(
    tmp_path_factory: pytest.TempPathFactory, ending: str, drawn: tuple[dict[str, Any], dict[str, list[Any]]]
) -> None:
    declared, values = drawn
    schema = Schema(declared)
    frame = pa.table(values)
    if "sv" in ending:  # it can not tell an empty text from a missing one
        assume(
            not any(told.get("missing") and "" in np.atleast_1d(told.get("values", [])) for told in declared.values())
        )
    path = tmp_path_factory.mktemp("files") / f"table.{ending}"
    write_table(frame, path)
    direct, read = read_records(frame, schema), read_records(read_table(path, schema), schema)
    for name in schema.domain:
        np.testing.assert_array_equal(direct[name], read[name])


def test_types_of_a_csv_file_are_declared_and_not_read_off_the_values(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("zip,size,n,id\n06,1,1.0,007\n10,2,,7\n", encoding="utf-8")
    schema = Schema(
        {
            "zip": {"type": "categorical", "values": ["06", "10"]},
            "size": {"type": "number", "min": 0, "max": 9, "bins": 3},
            "n": {"type": "integer", "min": 0, "max": 9, "missing": True},
        },
        person="id",
    )
    table = read_table(tmp_path / "a.csv", schema)
    assert table.schema.types == [pa.string(), pa.float64(), pa.int64(), pa.string()]
    assert table["n"].to_pylist() == [1, None]
    assert table["zip"].to_pylist() == ["06", "10"]
    assert table["id"].to_pylist() == ["007", "7"], "two people"
    assert check_table(table, schema).fits
    assert read_table(tmp_path / "a.csv").schema.types[:2] == [pa.int64(), pa.int64()], "guessed"


def test_fractions_among_integers_are_left_to_the_schema(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\n1.5\n2.0\n", encoding="utf-8")
    schema = Schema({"n": {"type": "integer", "min": 0, "max": 9}})
    table = read_table(tmp_path / "a.csv", schema)
    assert table["n"].to_pylist() == [1.5, 2.0]
    assert not check_table(table, schema).fits


def test_empty_fields_are_missing_unless_declared(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y,z\na,,NA\n,b,3\n", encoding="utf-8")
    assert read_table(tmp_path / "a.csv").to_pydict() == {"x": ["a", None], "y": [None, "b"], "z": [None, 3]}
    listed = {"type": "categorical", "values": ["", "a", "b"]}
    schema = Schema({"x": listed, "y": {**listed, "values": ["b"], "missing": True}, "z": {"type": "drop"}})
    table = read_table(tmp_path / "a.csv", schema)
    assert table["x"].to_pylist() == ["a", ""]
    assert table["y"].to_pylist() == [None, "b"]


def test_a_column_that_is_not_as_declared_is_left_to_the_schema(tmp_path: Path) -> None:
    rows = "\n".join(str(i) for i in range(300_000))  # the first block alone looks like integers
    (tmp_path / "a.csv").write_text(f"age\n{rows}\nunknown\n", encoding="utf-8")
    schema = Schema({"age": {"type": "integer", "min": 0, "max": 10**6, "bins": 9}})
    problems = check_table(read_table(tmp_path / "a.csv", schema), schema).problems
    assert len(problems) == 1
    assert "column 'age'" in problems[0]
    assert "unknown" not in problems[0]
    assert read_table(tmp_path / "a.csv").schema.types == [pa.string()]


@pytest.mark.parametrize("name", ["a.docx", "a", "a.parquet.gz", "a.csv.zip", ".csv"])
def test_other_endings_are_refused(name: str) -> None:
    with pytest.raises(chicle.ParameterError, match=r"a table is one of \*\.csv"):
        check_ending(name)


@pytest.mark.parametrize("ending", ENDINGS)
def test_broken_files_are_refused_without_a_value(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    with pytest.raises(chicle.ArtefactError, match="there is no such file; is the path right"):
        read_table(path)
    path.mkdir()
    with pytest.raises(chicle.ArtefactError, match="cannot be read"):
        read_table(path)
    path.rmdir()
    for data in (b"", b"a,b\tc\n1,2\nsecret,\xff\xfe,4\n"):
        path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
        with pytest.raises(chicle.ArtefactError, match="cannot be read") as caught:
            read_table(path)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_table_may_be_written_in_parts(tmp_path: Path, ending: str) -> None:
    table = pa.table(
        {
            "n": pa.array([3, None, 1, 2], pa.int64()),
            "t": pa.array(["a", "b", "a", None]),
            "c": pa.array([7, 8, 7, 9], pa.int64()).dictionary_encode(),
        }
    )
    parts = [table.slice(0, 1), table.slice(1, 2), table.slice(3)]
    parts[1] = parts[1].set_column(2, "c", parts[1]["c"].cast(pa.int64()).dictionary_encode())
    assert write_table(iter(parts), tmp_path / f"a.{ending}") == 4
    assert write_table(table, tmp_path / f"b.{ending}") == 4
    in_parts, whole = (read_table(tmp_path / f"{name}.{ending}") for name in "ab")
    assert in_parts.schema == whole.schema
    assert in_parts.to_pydict() == whole.to_pydict() == table.to_pydict()


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_reading_again_as_other_types_meets_no_reader_that_was_given_up(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Integers written as 31.0 make the file be read again, column by column, while old readers still read ahead."""
    monkeypatch.setattr(table_files, "_BLOCK_BYTES", 2**12)
    names = [f"c{i}" for i in range(12)]
    values = np.random.default_rng(0).integers(0, 100, (20_000, len(names)))
    pd.DataFrame(values.astype(float), columns=names).to_csv(tmp_path / f"a.{ending}", index=False)
    schema = Schema({name: {"type": "integer", "min": 0, "max": 99} for name in names})
    for _ in range(5):
        read = sum(len(batch) for batch, _ in table_files.read_batches(tmp_path / f"a.{ending}", names, schema))
        assert read == len(values)
