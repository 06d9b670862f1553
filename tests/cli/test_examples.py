"""The reviewed schemas of examples/: real tables from file to file, where they are at hand."""

from pathlib import Path

import pandas as pd
import pytest

import chicle
from chicle import Schema
from chicle.cli import main
from chicle.columns import Determined
from chicle.sources import check_table, read_records

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TABLES = {"adult": "adult_raw/data.csv.gz", "acs2018_income": "acs2018_income/raw.csv.gz"}
ROWS = 5_000


def read(path: str | Path, rows: int | None = None) -> pd.DataFrame:
    """A CSV file in which only empty fields are missing."""
    return pd.read_csv(path, nrows=rows, keep_default_na=False, na_values=[""])


@pytest.fixture(params=TABLES)
def example(
    request: pytest.FixtureRequest, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Schema, str]:
    monkeypatch.chdir(tmp_path)
    read(shared_data / TABLES[request.param], ROWS).to_csv("real.csv", index=False)
    path = EXAMPLES / f"{request.param}.yaml"
    return Schema.load(path), str(path)


@pytest.mark.parametrize("name", TABLES)
def test_examples_are_reviewed_and_complete(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    schema = Schema.load(EXAMPLES / f"{name}.yaml")
    assert schema.reviewed
    assert any(isinstance(column, Determined) for column in schema.columns.values())
    assert main(["plan", str(EXAMPLES / f"{name}.yaml"), "--epsilon", "0.2,1,5", "--delta", "1e-9"]) == 0
    assert "error of pairs" in capsys.readouterr().out


def test_a_table_from_file_to_file(example: tuple[Schema, str], capsys: pytest.CaptureFixture[str]) -> None:
    schema, path = example
    assert main(["schema", "check", "real.csv", path]) == 0
    assert capsys.readouterr().out == "The table fits the schema.\n"
    told = ["synth", "real.csv", "-s", path, "-o", "made.csv", "--epsilon", "8", "--delta", "1e-9", "--seed", "1"]
    assert main([*told, "--release", "made.chicle"]) == 0
    real, made = read("real.csv"), read("made.csv")
    assert list(made) == list(real)
    for name in real:
        column = schema.columns[name]
        assert made[name].isna().any() <= column.missing, name
        if isinstance(column, Determined):
            pairs = real[[column.determined_by, name]].drop_duplicates().set_index(column.determined_by)[name]
            seen = made[made[column.determined_by].isin(pairs.index)]
            assert (seen[name] == seen[column.determined_by].map(pairs)).all(), name
        elif pd.api.types.is_numeric_dtype(real[name]):
            # Whole numbers are written as whole numbers, also where the real table has 31.0.
            assert (made[name].dropna() % 1 == 0).all(), name
        else:
            assert made[name].dtype == real[name].dtype, name
    assert check_table(made, schema).fits, "no impossible value"
    records = read_records(made, schema)
    codes = {name: records[name] for name in records}
    assert schema.constraints
    assert all(constraint.holds(codes).all() for constraint in schema.constraints), "no impossible combination"
    score = chicle.evaluate(real, made, schema)["tvd_2"]
    assert score.value is not None
    assert score.independent is not None
    assert score.value < score.independent, "what is measured of pairs helps"
