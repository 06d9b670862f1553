"""Linked tables on the command line: from files to a folder, and what is refused before anything is spent."""

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from chicle import Ledger, Schema
from chicle.cli import main
from tests.linked_tables import DECLARED, hospital

BUDGET = ["--epsilon", "4", "--delta", "1e-6"]
TABLES = ["--table", "patients=real/patients.csv", "--table", "visits=visits-*.parquet"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tables = hospital()
    (tmp_path / "real").mkdir()
    tables["patients"].to_csv(tmp_path / "real" / "patients.csv", index=False)
    for part in range(2):
        half = pa.Table.from_pandas(tables["visits"].iloc[part::2], preserve_index=False)
        pq.write_table(half, tmp_path / f"visits-{part}.parquet")
    pq.write_table(pa.Table.from_pandas(tables["visits"], preserve_index=False), tmp_path / "real" / "visits.parquet")
    Schema.from_dict(DECLARED).save(tmp_path / "hospital.yaml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("here")
def test_the_whole_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "hospital.yaml", *BUDGET]) == 0
    assert "every release has sensitivity 1" in capsys.readouterr().out
    assert main(["synth", *TABLES, "-s", "hospital.yaml", "-o", "made", *BUDGET]) == 0
    said = capsys.readouterr()
    assert "rows of patients" in said.out
    assert "Protects every row of 'patients' with all its rows of 'visits'" in said.out
    assert "NOT PRIVATE: 5 rows of 'visits' have no row of 'patients'" in said.err
    assert sorted(path.name for path in Path("made").iterdir()) == ["patients.csv", "release.chicle", "visits.csv"]
    patients, visits = (pd.read_csv(f"made/{name}.csv") for name in ("patients", "visits"))
    assert visits["patient"].isin(patients["pid"]).all()
    assert main(["sample", "made/release.chicle", "-o", "more", "--ending", "parquet", "-n", "50", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"]["patients"] == 50 == len(pq.read_table("more/patients.parquet"))
    assert main(["evaluate", "real", "made", "--release", "made/release.chicle"]) == 0
    assert "each child with the next" in capsys.readouterr().out
    assert main(["evaluate", "real", "more", "-s", "hospital.yaml", "--json"]) == 0
    assert {one["key"] for one in json.loads(capsys.readouterr().out)["links"]} > {"children", "across"}
    assert main(["report", "made/release.chicle", "-o", "public.html"]) == 0
    assert main(["report", "made/release.chicle", "--real", "real", "--synthetic", "made", "-o", "own.html"]) == 0
    assert "NOT PRIVATE" in Path("own.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("here")
def test_tables_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    check = ["schema", "check", *TABLES, "hospital.yaml"]
    assert main(check) == 0
    assert "fits" in capsys.readouterr().out
    assert main([*check, "--show-values"]) == 0
    assert "5 rows of 'visits' have no row of 'patients'" in capsys.readouterr().out
    twice = Path("real/patients.csv").read_text(encoding="utf-8")
    Path("twice.csv").write_text(twice + twice.splitlines()[-1] + "\n", encoding="utf-8")
    assert main(["schema", "check", "--table", "patients=twice.csv", *TABLES[2:], "hospital.yaml"]) == 1
    assert "table 'patients', column 'pid': a key occurs in several rows" in capsys.readouterr().out
    assert main(["schema", "check", "hospital.yaml"]) == 2
    assert "name a table" in capsys.readouterr().err


@pytest.mark.usefixtures("here")
def test_parents_are_drawn_where_or_given(capsys: pytest.CaptureFixture[str]) -> None:
    semicolons = Path("real/patients.csv").read_text(encoding="utf-8").replace(",", ";")
    Path("patients.csv").write_text(semicolons, encoding="utf-8")
    tables = ["--table", "patients=patients.csv", *TABLES[2:], "--delimiter", ";"]
    assert main(["synth", *tables, "-s", "hospital.yaml", "-o", "made", *BUDGET]) == 0
    assert main(["sample", "made/release.chicle", "-o", "women", "--where", "sex=f", "-n", "30"]) == 0
    made = pd.read_csv("women/patients.csv")
    assert (made["sex"] == "f").all()
    assert len(made) == 30
    assert pd.read_csv("women/visits.csv")["patient"].isin(made["pid"]).all()
    Path("known.csv").write_text("sex,born\nf,1950\nm,\n", encoding="utf-8")
    assert main(["sample", "made/release.chicle", "-o", "known", "--given", "known.csv"]) == 0
    assert pd.read_csv("known/patients.csv")["sex"].tolist() == ["f", "m"]
    assert main(["sample", "made/release.chicle", "-o", "no", "--given", "known.csv", "-n", "3"]) == 2
    assert "--given has a row for each row" in capsys.readouterr().err


REFUSED = {
    "no table": (["-s", "hospital.yaml", "-o", "made"], "name a table"),
    "both kinds": (["real/patients.csv", *TABLES, "-s", "hospital.yaml", "-o", "made"], "not both"),
    "one is missing": ([*TABLES[:2], "-s", "hospital.yaml", "-o", "made"], "table 'visits' is declared but not given"),
    "no name": (["--table", "real/patients.csv", "-s", "hospital.yaml", "-o", "made"], "--table takes NAME=FILE"),
    "the output is a file": ([*TABLES, "-s", "hospital.yaml", "-o", "hospital.yaml"], "is a file; linked tables"),
    "outputs are there": ([*TABLES, "-s", "hospital.yaml", "-o", "real"], "is an input of this command|exists already"),
    "spark": ([*TABLES, "-s", "hospital.yaml", "-o", "made", "--engine", "spark"], "read on this machine"),
    "an ending for one table": (
        ["real/patients.csv", "-s", "hospital.yaml", "-o", "m.csv", "--ending", "csv"],
        "--ending",
    ),
    "linked tables as one": (["real/patients.csv", "-s", "hospital.yaml", "-o", "made.csv"], "linked tables are given"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_are_one_line_and_cost_nothing(case: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given, message = REFUSED[case]
    before = {path.name for path in here.iterdir()}
    assert main(["synth", *given, *BUDGET]) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert any(part in said for part in message.split("|")), said
    assert {path.name for path in here.iterdir()} <= before | {"made"}
    assert not list(here.rglob("*.chicle"))


def test_a_plain_schema_has_no_linked_tables(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Schema({"sex": 2}).save(here / "plain.yaml")
    assert main(["synth", *TABLES, "-s", "plain.yaml", "-o", "made", *BUDGET]) == 2
    assert "declares one table" in capsys.readouterr().err


def test_folders_have_a_file_for_each_table(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "real/patients.csv", "real", "-s", "hospital.yaml"]) == 2
    assert "is not a folder" in capsys.readouterr().err
    (here / "half").mkdir()
    (here / "half" / "patients.csv").write_text("pid,sex,born\n", encoding="utf-8")
    assert main(["evaluate", "real", "half", "-s", "hospital.yaml"]) == 2
    assert "no file of table 'visits'" in capsys.readouterr().err


@pytest.mark.usefixtures("here")
def test_a_kept_ledger_pays(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["synth", *TABLES, "-s", "hospital.yaml", *BUDGET, "--ledger", "hospital.ledger"]
    assert main([*asked, "-o", "first", "--total-epsilon", "5"]) == 0
    assert len(Ledger.open("hospital.ledger").events) > 10
    assert main([*asked, "-o", "second"]) == 2, "4 of 5 is spent"
    assert "is left" in capsys.readouterr().err
    assert not list(Path("second").iterdir())
