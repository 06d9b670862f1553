"""`--ledger` and `chicle ledger`: one file for all releases of a table, from the command line."""

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import chicle
from chicle import Ledger, Schema
from chicle.cli import main

BUDGET = ["--epsilon", "1", "--delta", "1e-9", "--mechanism", "independent"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    census = chicle.datasets.census(500, d=3)
    pq.write_table(pa.table({name: census[name] for name in census.domain}), tmp_path / "census.parquet")
    Schema.from_cardinalities(census.domain).save(tmp_path / "census.yaml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def synth(out: str, *more: str) -> int:
    return main(["synth", "census.parquet", "-s", "census.yaml", "-o", out, *BUDGET, *more])


def refused(capsys: pytest.CaptureFixture[str], code: int) -> str:
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    return err


def run(capsys: pytest.CaptureFixture[str], argv: Sequence[str]) -> str:
    capsys.readouterr()
    assert main(argv) == 0
    return capsys.readouterr().out


def test_one_ledger_for_many_runs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert synth("a.csv", "--ledger", "t.ledger", "--total-epsilon", "1.5") == 0
    assert synth("b.csv", "--ledger", "t.ledger", "--epsilon", "0.9") == 0
    assert "earlier releases about the same people" in capsys.readouterr().out
    assert "nothing was spent" in refused(capsys, synth("c.csv", "--ledger", "t.ledger"))
    assert not Path("c.csv").exists()
    ledger = Ledger.open("t.ledger")
    assert len(ledger.events) == 6
    assert 1.2 < ledger.epsilon() <= 1.5
    shown = run(capsys, ["ledger", "show", "t.ledger"])
    assert shown.count("1-way") == 6
    assert "left rho" in shown
    facts = json.loads(run(capsys, ["ledger", "show", "t.ledger", "--json"]))
    assert facts["releases"] == 6
    assert facts["ledger"]["events"][0]["purpose"] == "1-way"
    lines = run(capsys, ["ledger", "history", "t.ledger"]).splitlines()
    assert [line.split("  ")[1].strip() for line in lines[1:3]] == ["Independent: fit"] * 2
    assert [one["how"] for one in json.loads(run(capsys, ["ledger", "history", "t.ledger", "--json"]))] == ["done"] * 2
    told = run(capsys, ["ledger", "verify", "t.ledger", "a.chicle", "b.chicle"])
    assert "is whole: 6 releases in 2 fits" in told
    assert "b.chicle is in it" in told
    assert sorted(path.name for path in here.iterdir() if path.name.startswith(".")) == []


def test_a_ledger_that_lost_a_release_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert synth("a.csv", "--ledger", "t.ledger", "--total-epsilon", "3") == 0
    backup = Path("t.ledger").read_bytes()
    assert synth("b.csv", "--ledger", "t.ledger") == 0
    Path("t.ledger").write_bytes(backup)
    capsys.readouterr()
    assert "restore the newest file" in refused(capsys, main(["ledger", "verify", "t.ledger", "b.chicle"])).lower()
    Path("t.ledger").write_bytes(backup.replace(b"sigma", b"Sigma", 1))
    for what in ("show", "history", "verify"):
        assert "damaged or was changed" in refused(capsys, main(["ledger", what, "t.ledger"]))


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--ledger", "t.ledger"], "give --total-epsilon"),
        (["--total-epsilon", "3"], "give --ledger FILE too"),
        (["--ledger", ".", "--total-epsilon", "3"], "is a folder"),
        (["--ledger", "none/t.ledger", "--total-epsilon", "3"], "make the folder none first"),
        (["--ledger", "t.ledger", "--total-epsilon", "30"], "epsilon 30 is above 10"),
        (["--ledger", "t.ledger", "--total-epsilon", "0.5"], "nothing was spent"),
        (["--ledger", "a.csv", "--total-epsilon", "3"], "is an input of this command"),
        (["--ledger", "census.yaml"], "damaged or was changed"),
    ],
)
def test_what_is_refused(more: Sequence[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told in refused(capsys, synth("a.csv", *more))
    assert not Path("a.csv").exists()


def test_the_total_is_fixed_with_the_first_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert synth("a.csv", "--ledger", "t.ledger", "--total-epsilon", "3", "--total-delta", "1e-8") == 0
    capsys.readouterr()
    assert "--total-epsilon 4 out" in refused(capsys, synth("b.csv", "--ledger", "t.ledger", "--total-epsilon", "4"))
    assert "--total-delta 1e-09 out" in refused(capsys, synth("b.csv", "--ledger", "t.ledger", "--total-delta", "1e-9"))
    assert synth("b.csv", "--ledger", "t.ledger", "--total-epsilon", "3") == 0


def test_a_missing_ledger_is_no_new_one(capsys: pytest.CaptureFixture[str]) -> None:
    for what in ("show", "history", "verify"):
        assert "there is no ledger" in refused(capsys, main(["ledger", what, "none.ledger"]))
    assert not Path("none.ledger").exists()
