"""Files as people write them: marks of missing values, formats of dates, spaces, workbooks, ragged lines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import ArtefactError, Schema, SchemaError
from chicle.cli import main
from chicle.sources import check_table, read_records
from chicle.sources.dialect import Dialect, DialectPath, dialect_of

CELLS: dict[str, tuple[dict[str, Any], Sequence[tuple[str, int]]]] = {
    "integers": (
        {"type": "integer", "min": 0, "max": 9, "missing": ["?", -9]},
        [("0", 0), (" 7", 7), ("?", 10), ("-9", 10), ("", 10), ("NA", 10)],
    ),
    "numbers": (
        {"type": "number", "min": 0, "max": 1, "bins": 2, "missing": ["unknown"]},
        [("0.25", 0), ("0.75 ", 1), ("unknown", 2), ("None", 2)],
    ),
    "labels": (
        {"type": "categorical", "values": ["No", "None", " x"], "missing": ["?"]},
        [("No", 0), ("None", 1), ("?", 3), ("NA", 3), ("null", 3)],
    ),
    "codes": ({"type": "categorical", "values": [1, 2], "missing": [99]}, [("1", 0), ("2", 1), ("99", 2), ("", 2)]),
    "booleans": ({"type": "boolean", "missing": ["?"]}, [("true", 1), ("false", 0), ("?", 2)]),
    "dates": (
        {
            "type": "date",
            "min": "2024-01-01",
            "max": "2024-12-31",
            "bins": "month",
            "format": ["DD/MM/YYYY", "YYYY-MM-DD", "excel"],
            "missing": ["?"],
        },
        [("31/12/2024", 11), ("3/4/2024", 3), ("2024-02-29", 1), ("45292", 0), ("?", 12), ("", 12)],
    ),
    "moments": (
        {"type": "datetime", "min": "2024-01-01", "max": "2024-12-31", "bins": "month", "format": "MM/DD/YYYY hh:mm"},
        [("12/31/2024 23:59", 11), ("01/02/2024 00:00", 0)],
    ),
}


@given(st.data())
@pytest.mark.parametrize("kind", CELLS)
def test_files_and_frames_agree(tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject) -> None:
    declared, cells = CELLS[kind]
    drawn = data.draw(st.lists(st.sampled_from(cells), min_size=1, max_size=8))
    schema = Schema({"x": declared, "y": {"type": "boolean"}})
    texts, codes = [text for text, _ in drawn], [code for _, code in drawn]
    path = tmp_path_factory.getbasetemp() / "cells.csv"
    frame = pd.DataFrame({"x": pd.Series(texts, dtype=object), "y": [True] * len(texts)})
    for separator in ",;":
        frame.to_csv(path, index=False, sep=separator)
        assert read_records(path, schema)["x"].tolist() == codes
    assert read_records(frame, schema)["x"].tolist() == codes
    assert read_records(pl.DataFrame({"x": texts, "y": frame["y"].tolist()}), schema)["x"].tolist() == codes
    assert read_records(frame.astype({"x": "category"}), schema)["x"].tolist() == codes
    assert check_table(path, schema).fits


def test_pandas_reads_the_same_missing_values(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\nNone,1\nNA,2\nup,3\n", encoding="utf-8")
    drafts = [chicle.draft_schema(given) for given in (tmp_path / "a.csv", pd.read_csv(tmp_path / "a.csv"))]
    assert drafts[0].columns == drafts[1].columns


@pytest.mark.parametrize("text", ["31/02/2024", "2024-13-01", "1/2/24", "?"])
def test_texts_of_no_declared_format_are_refused_without_a_value(text: str) -> None:
    declared = {key: value for key, value in CELLS["dates"][0].items() if key != "missing"}
    with pytest.raises(SchemaError, match=r"not of the form DD/MM/YYYY or YYYY-MM-DD or excel; add its form") as raised:
        read_records(pd.DataFrame({"x": ["31/12/2024", text]}), Schema({"x": declared}))
    assert text not in str(raised.value)


@pytest.mark.parametrize("wrong", ["DD/MM", "dd/mm/yyyy", "", 5, ["excel", "MM"]])
def test_a_format_names_year_month_and_day(wrong: Any) -> None:
    with pytest.raises(SchemaError, match="format must"):
        Schema({"x": {**CELLS["dates"][0], "format": wrong}})


def test_spaces_around_names_and_values_are_trimmed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("age , sex\n 31, f\n4 ,m \n", encoding="utf-8")
    schema = Schema(
        {"age": {"type": "integer", "min": 0, "max": 99}, "sex": {"type": "categorical", "values": ["f", "m"]}}
    )
    assert read_records(tmp_path / "a.csv", schema)["sex"].tolist() == [0, 1]
    assert read_records({"age": [31, 4], "sex": [" f", "m "]}, schema)["sex"].tolist() == [0, 1]
    told = chicle.draft_schema(tmp_path / "a.csv").to_dict()["columns"]
    assert (list(told), told["sex"]["values"]) == (["age", "sex"], ["f", "m"])


DIALECTS = [
    Dialect(*three) for three in ((",", ".", "utf-8"), (";", ",", "cp1252"), ("\t", ",", "utf-8"), ("|", ".", "utf-16"))
]


@pytest.mark.parametrize("dialect", DIALECTS, ids=str)
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_dialects_are_sniffed(tmp_path: Path, dialect: Dialect, ending: str) -> None:
    frame = pd.DataFrame({"née": ["é", "b", "?"], "kilos": [61.5, 70.0, 80.25], "icd": ["250.83", "V57", "1.0"]})
    path = tmp_path / f"a.{ending}"
    frame.to_csv(path, index=False, sep=dialect.delimiter, decimal=dialect.decimal, encoding=dialect.encoding)
    assert dialect_of(path) == dialect
    assert dialect_of(DialectPath.of(path, dialect)) == dialect
    columns: dict[str, Any] = {
        "née": {"type": "categorical", "values": ["é", "b"], "missing": ["?"]},
        "kilos": {"type": "number", "min": 0, "max": 100, "bins": [0, 62, 75, 100]},
        "icd": {"type": "categorical", "values": ["250.83", "V57", "1.0"]},
    }
    for one in (path, DialectPath.of(path, dialect)):
        records = read_records(one, Schema(columns))
        assert [records[name].tolist() for name in columns] == [[0, 1, 2], [0, 1, 2], [0, 1, 2]]
    marked = Schema({**columns, "kilos": {**columns["kilos"], "missing": ["?"]}})
    assert read_records(path, marked)["kilos"].tolist() == [0, 1, 2]


def test_a_workbook_is_read_like_a_file(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame(
        {
            "age": [31, 4, 77],
            "kilos": [61.5, 70.0, None],
            "since": pd.to_datetime(["2024-01-31", "2024-05-06", "2024-12-31"]),
            "job": [" nurse", "cook", "?"],
        }
    )
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    told = chicle.draft_schema(tmp_path / "a.xlsx").to_dict()["columns"]
    assert [column["type"] for column in told.values()] == ["integer", "number", "date", "categorical"]
    assert told["job"] | {"source": None} == {
        "type": "categorical",
        "values": ["cook", "nurse"],
        "missing": ["?"],
        "source": None,
    }
    schema = chicle.draft_schema(tmp_path / "a.xlsx").mark_reviewed("the form")
    assert check_table(tmp_path / "a.xlsx", schema).fits
    made = chicle.Independent(epsilon=1, delta=1e-9).fit(tmp_path / "a.xlsx", schema).sample(5, seed=0)
    assert made.column_names == list(frame)
    (tmp_path / "b.xlsx").write_bytes(b"PK no workbook")
    with pytest.raises(ArtefactError, match=r"b.xlsx cannot be read: it is damaged, locked or no workbook"):
        read_records(tmp_path / "b.xlsx", schema)


@pytest.mark.parametrize(
    ("text", "where"), [("a,b\n1,2\n3\n", "line 3 has 1 fields"), ('a,b\n"x\ny",2\n1,2,3\n', "line 4 has 3")]
)
def test_a_ragged_file_names_the_line(tmp_path: Path, text: str, where: str) -> None:
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    for do in (
        lambda: chicle.draft_schema(tmp_path / "a.csv"),
        lambda: read_records(tmp_path / "a.csv", Schema({"a": 9, "b": 9})),
    ):
        with pytest.raises(ArtefactError, match=f"a.csv cannot be read: {where}.*, but the first line has 2"):
            do()


def test_values_that_do_not_fit_are_shown_if_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"age": [31, 177, 4, 178], "sex": ["f", "m", "divers", None]}).to_csv("a.csv", index=False)
    Path("a.yaml").write_text(
        "columns: {age: {type: integer, min: 0, max: 99}, sex: {type: categorical, values: [f, m]}}"
    )
    assert main(["schema", "check", "a.csv", "a.yaml"]) == 1
    said = capsys.readouterr().out
    assert "177" not in said
    assert "divers" not in said
    assert main(["schema", "check", "a.csv", "a.yaml", "--show-values"]) == 1
    said = capsys.readouterr().out
    assert "NOT PRIVATE: some of the values that do not fit:\n  age: 177, 178\n  sex: 'divers', missing\n" in said


def test_the_draft_of_a_frame_and_of_its_file_agree(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": rng.choice(10**6, 300, replace=False),
            "wage": rng.lognormal(10, 1, 300).round(2),
            "visits": rng.poisson(2, 300),
            "job": rng.choice(["nurse", "cook", "?"], 300),
            "since": [f"{day:02}/01/2024" for day in rng.integers(1, 29, 300)],
        }
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert chicle.draft_schema(frame).columns == chicle.draft_schema(tmp_path / "a.csv").columns
