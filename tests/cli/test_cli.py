"""The command line, end to end: what it writes, what it refuses, and that a refusal costs nothing."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import chicle
from chicle import Ledger, Schema, _write, demo
from chicle.cli import main
from chicle.cli import synth as synth_command
from chicle.cli.entry import parser
from chicle.mechanisms.base import Mechanism
from chicle.releases import artefact
from chicle.sources import check_table, read_records, table_files
from chicle.sources.table_files import read_table
from tests.unit.test_real_data import adult_schema

BUDGET = ["--epsilon", "1", "--delta", "1e-9"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the built-in census as a Parquet file, and a reviewed schema of it."""
    census = chicle.datasets.census(3_000, d=5)
    pq.write_table(pa.table({name: census[name] for name in census.domain}), tmp_path / "census.parquet")
    Schema.from_cardinalities(census.domain, ordinal=["AGE"]).save(tmp_path / "census.yaml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a test that spends budget."""

    def spends(*_: object) -> None:
        pytest.fail("budget was spent")

    monkeypatch.setattr(Ledger, "debit", spends)


def synth(*more: str) -> int:
    return main(["synth", "census.parquet", "-s", "census.yaml", *BUDGET, *more])


def refused(capsys: pytest.CaptureFixture[str], argv: Sequence[str]) -> str:
    """Run a command that must fail with one line on stderr and nothing on stdout; return the line."""
    capsys.readouterr()
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


# --- The way ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["prism", "privsyn", "mst", "independent"])
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "feather"])
def test_synth_then_sample(here: Path, mechanism: str, ending: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = f"made.{ending}"
    assert synth("-o", out, "--release", "r.chicle", "--mechanism", mechanism, "--seed", "5", "-n", "800") == 0
    said = capsys.readouterr()
    assert "Wrote 800 synthetic rows" in said.out
    assert "which is epsilon 1 of 1" in said.out
    assert said.err == "", "no progress where there is no terminal"
    schema = Schema.load("census.yaml")
    made = read_table(out, schema)
    assert made.num_rows == 800
    assert made.column_names == list(schema.domain)
    assert check_table(made, schema).fits
    assert main(["sample", "r.chicle", "-o", f"again.{ending}", "--seed", "5", "-n", "800", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert read_table(f"again.{ending}", schema).equals(made)
    assert chicle.load("r.chicle").ledger.figures()["spent"]["epsilon"] <= 1
    assert sorted(path.name for path in here.iterdir()) == sorted(
        ["census.parquet", "census.yaml", out, f"again.{ending}", "r.chicle"]
    ), "nothing else is left"


@pytest.mark.usefixtures("here")
def test_declared_analyses(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--analysis", "logit: SEX ~ AGE", "--analysis", "linear: AGE ~ C(SEX)"]
    plan = ["plan", "census.yaml", "--epsilon", "1", "--delta", "1e-9"]
    assert main([*plan, *asked]) == 0
    assert "expected answers" in capsys.readouterr().out
    assert "one at a time" in refused(capsys, ["plan", "census.yaml", "--epsilon", "1,2", "--delta", "1e-9", *asked])
    assert "begin with its kind" in refused(capsys, [*plan, "--analysis", "SEX ~ AGE"])
    assert "'WEIGHT' is not in the schema" in refused(capsys, [*plan, "--analysis", "linear: AGE ~ WEIGHT"])
    assert synth("-o", "made.csv", "--release", "r.chicle", *asked, "--analysis-share", "0.2") == 0
    assert "logit: SEX ~ AGE" in capsys.readouterr().out
    answers = chicle.load("r.chicle").analyses
    assert [one.title for one in answers] == ["logit: SEX ~ AGE", "linear: AGE ~ C(SEX)"]
    assert synth("-o", "again.csv", "--json", *asked) == 0
    told = json.loads(capsys.readouterr().out)["analyses"]
    assert [one[0]["analysis"] for one in told] == [one.title for one in answers]
    assert told[0][1]["coefficient"] == "AGE"


def test_summaries_for_programs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert synth("-o", "made.csv", "--release", "r.chicle", "-n", "70", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["output"], told["rows"], told["release"], told["mechanism"]) == ("made.csv", 70, "r.chicle", "Prism")
    assert told["privacy"]["budget"] == {"epsilon": 1.0, "delta": 1e-9, "accounting": "gdp"}
    assert 0.99 < told["privacy"]["spent"]["epsilon"] <= 1
    assert told["privacy"]["protected"] is True
    assert told["notes"]
    assert main(["sample", "r.chicle", "-o", "more.csv", "-n", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 5
    assert main(["schema", "check", "census.parquet", "census.yaml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"fits": True, "problems": [], "reviewed": True}
    claimed = chicle.Release.from_marginals(
        chicle.load("r.chicle").marginals(), Schema.load(here / "census.yaml"), claim="as the bureau says"
    )
    claimed.save("claimed.chicle")
    assert main(["sample", "claimed.chicle", "-o", "again.csv", "-n", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["privacy"] == {"protected": True, "claim": "as the bureau says"}
    assert main(["sample", "claimed.chicle", "-o", "once.csv", "-n", "5"]) == 0
    assert "claimed by others, not verified by chicle: as the bureau says" in capsys.readouterr().out


def test_the_default_number_of_rows_is_the_private_estimate(here: Path) -> None:
    assert synth("-o", "made.parquet", "--release", "r.chicle", "--threads", "1") == 0
    assert pq.read_table(here / "made.parquet").num_rows == chicle.load("r.chicle").total


def test_a_release_of_any_kind_of_frame_is_sampled(here: Path) -> None:
    frame = pd.read_parquet("census.parquet")
    schema = Schema.load("census.yaml")
    for name, source in (
        ("pandas", frame),
        ("polars", pl.from_pandas(frame)),
        ("records", read_records(frame, schema)),
    ):
        chicle.Independent(epsilon=1, delta=1e-9).fit(source, schema).release_.save(f"{name}.chicle")
        assert main(["sample", f"{name}.chicle", "-o", f"{name}.csv", "-n", "20"]) == 0
        assert read_table(here / f"{name}.csv", schema).num_rows == 20


def test_plan(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for mechanism, records in (("prism", 5_000), ("privsyn", 5_000), ("independent", 7)):
        told = ["plan", "census.yaml", *BUDGET, "--mechanism", mechanism, "--records", str(records)]
        assert main([*told, "--json"]) == 0
        plan = json.loads(capsys.readouterr().out)
        assert plan["mechanism"].lower().startswith(mechanism)
        assert sum(step["rho"] for step in plan["steps"]) == pytest.approx(plan["budget"]["rho"])
        assert main(told) == 0
        assert "sigma" in capsys.readouterr().out
    schema = Schema.load(here / "census.yaml")
    assert main(["plan", "census.yaml", *BUDGET, "--records", "9"]) == 0
    assert capsys.readouterr().out == f"{chicle.Prism(epsilon=1, delta=1e-9).plan(schema, 9)}\n"


def test_a_plan_of_several_budgets(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = ["plan", "census.yaml", "--epsilon", "0.2,1,5", "--delta", "1e-9", "--records", "5000"]
    assert main([*told, "--json"]) == 0
    plans = json.loads(capsys.readouterr().out)
    assert [plan["budget"]["epsilon"] for plan in plans] == [0.2, 1, 5]
    errors = [[step["error"] for step in plan["steps"] if step["release"] == "1-way"] for plan in plans]
    assert all(less > more for less, more in zip(errors[0], errors[2], strict=True))
    assert main(told) == 0
    text = capsys.readouterr().out
    schema = Schema.load(here / "census.yaml")
    assert text == f"{chicle.Prism(epsilon=1, delta=1e-9).sweep(schema, [0.2, 1, 5], 5_000)}\n"
    assert [line.split()[0] for line in text.splitlines()[2:]] == ["0.2", "1", "5"]


def test_a_number_of_rows_that_is_noise(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    synth = ["synth", "census.parquet", "-s", "census.yaml", "--delta", "1e-9", "-o"]
    monkeypatch.setattr("chicle.releases.release.Release.total", 50)
    assert main([*synth, "noise.csv", "--epsilon", "1e-3", "--mechanism", "independent"]) == 0
    assert "number of rows is mostly noise" in capsys.readouterr().err
    assert main([*synth, "told.csv", "--epsilon", "1e-3", "--mechanism", "independent", "-n", "9"]) == 0
    assert "mostly noise" not in capsys.readouterr().err
    monkeypatch.setattr("chicle.releases.release.Release.total", 2_000_000_000)
    assert main([*synth, "huge.csv", "--epsilon", "1e-9"]) == 2
    said = capsys.readouterr().err
    assert "give the number with -n" in said
    assert "the release was kept in" in said
    assert not (here / "huge.csv").exists()


def test_a_draft_of_several_files(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "part-0.csv").write_text("age,job\n3,nurse\n", encoding="utf-8")
    (here / "part-1.csv").write_text("job,age\ncook,71\n", encoding="utf-8")
    for data in (["part-*.csv"], ["part-0.csv", "part-1.csv"]):
        assert main(["schema", "draft", *data, "-o", "parts.yaml", "--force"]) == 0
        told = Schema.load("parts.yaml").to_dict()["columns"]
        assert (told["age"]["min"], told["age"]["max"], told["job"]["values"]) == (3, 71, ["cook", "nurse"])
        assert main(["schema", "check", *data, "parts.yaml"]) == 0
    capsys.readouterr()
    (here / "part-1.csv").write_text("age\n3\n", encoding="utf-8")
    assert "has other columns" in refused(capsys, ["schema", "draft", "part-*.csv", "-o", "other.yaml"])
    assert "is the pattern right" in refused(capsys, ["schema", "draft", "no-*.csv", "-o", "other.yaml"])


def test_schema_draft_and_check(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "draft", "census.parquet", "-o", "draft.yaml"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "DRAFT and NOT PRIVATE" in said.err
    assert not Schema.load("draft.yaml").reviewed
    assert main(["schema", "check", "census.parquet", "draft.yaml"]) == 0
    said = capsys.readouterr()
    assert said.out == "The table fits the schema.\n"
    assert "nobody has reviewed" in said.err
    assert main(["schema", "draft", "census.parquet", "-o", "draft.json"]) == 0
    assert Schema.load("draft.json") == Schema.load("draft.yaml")
    told = yaml.safe_load((here / "census.yaml").read_text(encoding="utf-8"))
    told["columns"]["AGE"]["values"] = 3
    (here / "census.yaml").write_text(yaml.safe_dump(told), encoding="utf-8")
    assert main(["schema", "check", "census.parquet", "census.yaml"]) == 1
    assert "column 'AGE'" in capsys.readouterr().out


def test_a_real_table_from_csv_to_csv(shared_data: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(shared_data / "adult_raw" / "data.csv.gz")
    frame = pd.read_csv(data)
    assert main(["schema", "draft", data, "-o", "adult.yaml"]) == 0
    assert "a draft that was read" in refused(capsys, ["synth", data, "-s", "adult.yaml", "-o", "made.csv", *BUDGET])
    schema = adult_schema(frame)
    schema.save("adult.yaml")
    assert main(["schema", "check", data, "adult.yaml"]) == 0
    told = ["synth", data, "-s", "adult.yaml", "-o", "made.csv", *BUDGET, "--force"]
    assert main([*told, "--release", "adult.chicle", "--seed", "0"]) == 0
    made = pd.read_csv(here / "made.csv")
    assert list(made) == list(frame)
    assert (made.dtypes == frame.dtypes).all()
    assert check_table(made, schema).fits
    assert abs(len(made) - len(frame)) < 0.02 * len(frame)
    assert main(["sample", "adult.chicle", "-o", "more.parquet", "-n", "1000"]) == 0
    assert check_table(pd.read_parquet(here / "more.parquet"), schema).fits


def test_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(demo, "main", ran.append)
    assert main(["demo"]) == main(["demo", "-o", "there"]) == 0
    assert ran == ["chicle-demo", "there"]


def test_reports(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert synth("-o", "made.csv", "--release", "r.chicle", "--quiet") == 0
    assert main(["report", "r.chicle", "-o", "public.html"]) == 0
    assert capsys.readouterr() == ("Wrote public.html.\n", "")
    assert "Safe to publish: " in (here / "public.html").read_text(encoding="utf-8")
    tables = ["--synthetic", "made.csv", "--real", "census.parquet"]
    assert main(["report", "r.chicle", *tables, "-o", "private.html", "--quiet", "--title", "<our> table"]) == 0
    assert capsys.readouterr().err.startswith("chicle: private.html is NOT PRIVATE")
    page = (here / "private.html").read_text(encoding="utf-8")
    assert "NOT PRIVATE: this page" in page
    assert "&lt;our&gt; table" in page
    assert main(["report", *tables, "-s", "census.yaml", "-o", "both.html"]) == 0
    assert "nothing is known about how this table was made" in (here / "both.html").read_text(encoding="utf-8").lower()


# --- What is refused -------------------------------------------------------------------------------------------------


SYNTH = ["synth", "census.parquet", "-s", "census.yaml"]
WRONG: dict[str, tuple[list[str], str]] = {
    "no data": (["synth", "none.csv", "-s", "census.yaml", "-o", "o.csv", *BUDGET], "none.csv cannot be read"),
    "no schema": (["synth", "census.parquet", "-s", "no.yaml", "-o", "o.csv", *BUDGET], "no.yaml cannot be read"),
    "data for a schema": (["plan", "census.parquet", *BUDGET], "census.parquet"),
    "a schema for data": (["schema", "check", "census.yaml", "census.yaml"], "a table is one of"),
    "epsilon 0": ([*SYNTH, "-o", "o.csv", "--epsilon", "0", "--delta", "1e-9"], "epsilon must be"),
    "delta 1": ([*SYNTH, "-o", "o.csv", "--epsilon", "1", "--delta", "1"], "delta must"),
    "epsilon x": ([*SYNTH, "-o", "o.csv", "--epsilon", "x", "--delta", "1e-9"], "invalid float value"),
    "no epsilon": ([*SYNTH, "-o", "o.csv"], "required: --epsilon, --delta; see `chicle synth --help`"),
    "no output": ([*SYNTH, *BUDGET], "required: -o"),
    "another mechanism": ([*SYNTH, "-o", "o.csv", *BUDGET, "--mechanism", "magic"], "'magic'"),
    "output there": ([*SYNTH, "-o", "there.csv", *BUDGET], "there.csv exists already; give --force"),
    "release there": ([*SYNTH, "-o", "o.csv", *BUDGET, "--release", "there.csv"], "there.csv exists already"),
    "output of no kind": ([*SYNTH, "-o", "o.xlsx", *BUDGET], "a table is one of"),
    "output nowhere": ([*SYNTH, "-o", "nowhere/o.csv", *BUDGET], "cannot be written: No such file or directory"),
    "release nowhere": ([*SYNTH, "-o", "o.csv", *BUDGET, "--release", "no/r"], "cannot be written: No such file"),
    "output a folder": ([*SYNTH, "-o", "folder.csv", *BUDGET, "--force"], "is a folder"),
    "output the input": (["synth", "there.csv", "-s", "census.yaml", "-o", "./there.csv", *BUDGET, "--force"], "lost"),
    "release the schema": ([*SYNTH, "-o", "o.csv", *BUDGET, "--force", "--release", "census.yaml"], "would be lost"),
    "a long name": ([*SYNTH, "-o", "x" * 245 + ".csv", *BUDGET], "cannot be written: File name too long"),
    "one for both": ([*SYNTH, "-o", "o.csv", *BUDGET, "--release", "./o.csv"], "two names"),
    "negative n": ([*SYNTH, "-o", "o.csv", *BUDGET, "-n", "-1"], "-n must be an integer of at least 0"),
    "negative seed": ([*SYNTH, "-o", "o.csv", *BUDGET, "--seed", "-1"], "seed must be"),
    "no threads": ([*SYNTH, "-o", "o.csv", *BUDGET, "--threads", "0"], "threads must be"),
    "epsilons of no number": (["plan", "census.yaml", "--epsilon", "1,", "--delta", "1e-9"], "invalid float value"),
    "one epsilon of 0": (["plan", "census.yaml", "--epsilon", "1,0", "--delta", "1e-9"], "epsilon must be"),
    "negative records": (["plan", "census.yaml", *BUDGET, "--records", "-1"], "n must be"),
    "another table": (
        ["synth", "there.csv", "-s", "census.yaml", "-o", "o.csv", *BUDGET],
        "is declared but not in the table",
    ),
    "no release": (["sample", "none.chicle", "-o", "o.csv"], "none.chicle cannot be read: No such file"),
    "data for a release": (["sample", "census.parquet", "-o", "o.csv"], "no whole release of chicle"),
    "draft there": (["schema", "draft", "census.parquet", "-o", "census.yaml"], "exists already"),
    "quiet and told": ([*SYNTH, "-o", "o.csv", *BUDGET, "--quiet", "--json"], "not allowed with"),
    "a report of nothing": (["report", "-o", "o.html"], "a report needs a release, or the real table"),
    "a report in place of the table": (
        ["report", "--real", "there.csv", "-o", "there.csv", "--force"],
        "would be lost",
    ),
    "a report by two schemas": (["report", "r.chicle", "-s", "census.yaml", "-o", "o.html"], "leave --schema out"),
    "a report at 0 threads": (["report", "r.chicle", "-o", "o.html", "--threads", "0"], "threads must be"),
    "no command": ([], "COMMAND"),
    "another command": (["sing"], "sing"),
}


@pytest.mark.usefixtures("no_fit")
@pytest.mark.parametrize("wrong", WRONG)
def test_mistakes_cost_one_line_and_nothing_else(here: Path, wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "there.csv").write_text("a,b\n1,secret\n", encoding="utf-8")
    (here / "folder.csv").mkdir()
    before = {path.name: path.read_bytes() for path in here.iterdir() if path.is_file()}
    argv, said = WRONG[wrong]
    line = refused(capsys, argv)
    assert said in line
    assert line.startswith("chicle")
    assert "secret" not in line
    assert {path.name: path.read_bytes() for path in here.iterdir() if path.is_file()} == before


@pytest.mark.usefixtures("here", "no_fit")
def test_the_guard_of_these_tests_works() -> None:
    with pytest.raises(pytest.fail.Exception, match="budget was spent"):
        synth("-o", "o.csv")


@pytest.mark.usefixtures("here")
def test_force_replaces() -> None:
    for _ in range(2):
        assert synth("-o", "o.csv", "--release", "r.chicle", "--force", "-n", "10") == 0
    assert read_table("o.csv").num_rows == 10


def _full(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


def _no_place_for(name: str) -> Any:
    def replacing(path: str | Path) -> Any:
        if Path(path).name == name:
            _full()
        return _write.replacing(path)

    return replacing


def test_what_was_paid_for_is_kept_if_the_table_can_not_be_written(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "o.csv").write_text("old", encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(synth_command, "rehearse", lambda *_: None)
        patch.setattr(table_files, "_write", _full)
        assert synth("-o", "o.csv", "--no-release", "--force") == 2
        rescue, error = capsys.readouterr().err.splitlines()
        assert "o.csv cannot be written: No space left on device" in error
        (kept,) = here.glob("rescued-*.chicle")
        assert kept.name in rescue
        assert synth("-o", "o.csv", "--release", "r.chicle", "--force") == 2
        assert len(list(here.glob("*.chicle"))) == 2, "the release was written first, there is nothing to rescue"
        patch.setattr(artefact, "replacing", _no_place_for("r.chicle"))
        assert synth("-o", "o.csv", "--release", "r.chicle", "--force") == 2
        assert "the release was kept in" in capsys.readouterr().err
    assert (here / "o.csv").read_text(encoding="utf-8") == "old"
    assert not list(here.glob(".*")), "no part of a file is left"
    assert main(["sample", str(kept), "-o", "made.csv", "-n", "30"]) == 0


@pytest.mark.usefixtures("no_fit")
def test_a_full_disk_is_found_out_before_budget_is_spent(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(table_files, "_write", _full)
    assert "No space left on device" in refused(capsys, [*SYNTH, "-o", "o.csv", *BUDGET])
    assert {path.name for path in here.iterdir()} == {"census.parquet", "census.yaml"}


def test_an_unforeseen_error_shows_no_value(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(Mechanism, "fit", fails)
    argv = [*SYNTH, "-o", "o.csv", *BUDGET]
    line = refused(capsys, argv)
    assert "unforeseen RuntimeError" in line
    assert "secret" not in line
    monkeypatch.setenv("CHICLE_TRACEBACK", "1")
    with pytest.raises(RuntimeError):
        main(argv)
    assert not (here / "o.csv").exists()


@pytest.mark.usefixtures("here")
def test_ctrl_c_is_no_error_of_ours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Mechanism, "fit", stop)
    assert synth("-o", "o.csv") == 130
    assert capsys.readouterr().err == "chicle: error: stopped\n"


@pytest.mark.usefixtures("here")
def test_a_release_with_test_noise_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    census = chicle.datasets.census(100, d=2)
    ledger = Ledger(chicle.Budget(epsilon=1, delta=1e-9), noise=chicle.privacy.TestNoise(0))
    chicle.Independent(epsilon=1, delta=1e-9).fit(census, ledger=ledger).release_.save("r.chicle")
    assert main(["sample", "r.chicle", "-o", "o.csv", "--quiet"]) == 0
    assert capsys.readouterr().err == "chicle: warning: r.chicle is NOT PRIVATE: it was made with test noise\n"


# --- Terminals, help and the installed module ------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_progress_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert synth("-o", "o.csv", "--epsilon", "50", "--allow-weak") == 0
    out, err = capsys.readouterr()
    assert "reading the table" in err
    assert "pass 1, error" in err
    assert err.endswith("\x1b[2K"), "the line is clean in the end"
    assert out.startswith("Wrote")
    assert synth("-o", "p.csv", "--quiet") == 0
    assert capsys.readouterr() == ("", "")


COMMANDS: list[list[str]] = [[], ["demo"], ["schema"], ["schema", "draft"], ["schema", "check"]]
COMMANDS += [["report"], ["plan"], ["synth"], ["sample"]]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_teaches_by_examples_that_parse(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--help"]) == 0
    text = capsys.readouterr().out
    examples = [shlex.split(line, comments=True) for line in text.splitlines() if line.startswith("  chicle ")]
    assert [example for example in examples if example[1 : 1 + len(command)] == command]
    for example in examples:
        parsed: Any = parser().parse_args(example[1:])
        assert callable(parsed.run)


SWALLOWED = """
import argparse, signal, sys
from chicle.cli import entry

signal.signal(signal.SIGINT, signal.default_int_handler)

class Interrupted:
    def __del__(self):
        raise KeyboardInterrupt

def run(arguments):
    Interrupted()
    for _ in range(10**9):
        pass
    return 0

entry.parser = lambda: argparse.Namespace(parse_args=lambda _: argparse.Namespace(run=run))
sys.exit(entry.main(["x"]))
"""


def test_ctrl_c_in_a_callback_is_not_swallowed() -> None:
    """Seen in a callback of an import, by benches/chaos.py: Python prints such an error and goes on."""
    done = subprocess.run([sys.executable, "-c", SWALLOWED], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 130, done.stderr
    assert done.stderr == "chicle: error: stopped\n"


def test_the_module_runs(here: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(chicle.__file__).parents[1])}
    run = [sys.executable, "-m", "chicle"]

    def result(*argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*run, *argv], capture_output=True, text=True, cwd=here, env=environment, check=False)

    done = result(*SYNTH, "-o", "o.parquet", *BUDGET, "--release", "r.chicle")
    assert (done.returncode, done.stderr) == (0, "")
    assert pq.read_table(here / "o.parquet").num_rows > 0
    done = result("sample", "r.chicle", "-o", "o.parquet")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "chicle: error: o.parquet exists already; give --force to replace it, or another name\n"
    assert result("--version").stdout == f"chicle {chicle.__version__}\n"


@pytest.mark.parametrize("given", [["part-*.parquet"], ["part-0.parquet", "part-1.parquet"]])
def test_several_files_are_one_table(here: Path, capsys: pytest.CaptureFixture[str], given: list[str]) -> None:
    table = pq.read_table("census.parquet")
    for i in range(2):
        pq.write_table(table.slice(i * 700, 700 if i == 0 else None), f"part-{i}.parquet")
    assert main(["synth", *given, "-s", "census.yaml", "-o", "o.parquet", *BUDGET, "--release", "r.chicle"]) == 0
    total = chicle.load("r.chicle").total
    assert pq.read_table(here / "o.parquet").num_rows == total
    assert abs(total - len(table)) < 500
    capsys.readouterr()
    assert main(["synth", *given, "-s", "census.yaml", "-o", "part-1.parquet", *BUDGET, "--force"]) == 2
    assert "is an input of this command" in capsys.readouterr().err
