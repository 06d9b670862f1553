"""The newcomer's path: own CSV to synthetic CSV, and each mistake on the way answered by what to do about it."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import chicle
from chicle import Ledger
from chicle.cli import main

BUDGET = ["--epsilon", "1", "--delta", "1e-9"]
SYNTH = ["synth", "p.csv", "-s", "p.yaml", "-o", "out.csv", *BUDGET]
DRAFT = ["schema", "draft", "p.csv", "-o", "new.yaml"]
SCHEMA = """\
chicle: 1
reviewed: true
columns:
  age: {type: integer, min: 0, max: 120}
  sex: {type: categorical, values: [F, M]}
  city: {type: categorical, values: [Lyon, Nice, Paris]}
  wage: {type: number, min: 0, max: 10000, bins: 20, outside: clamp}
  since: {type: date, min: 2020-01-01, max: 2024-12-31, bins: month}
"""


def people(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "sex": rng.choice(["F", "M"], rows),
            "city": rng.choice(["Lyon", "Nice", "Paris"], rows),
            "wage": rng.uniform(1000, 5000, rows).round(2),
            "since": [f"2023-{month:02}-15" for month in rng.integers(1, 13, rows)],
        }
    )


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    people().to_csv("p.csv", index=False)
    Path("p.yaml").write_text(SCHEMA, encoding="utf-8")
    return tmp_path


def test_the_way_of_the_readme(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Draft, be refused, review, check, plan, synth, sample; the outcome opens in pandas with the same types."""
    assert main(DRAFT) == 0
    argv = ["new.yaml" if word == "p.yaml" else word for word in SYNTH]
    assert main(argv) == 2
    assert "review it, then set `reviewed: true`" in capsys.readouterr().err
    draft = here / "new.yaml"
    text = draft.read_text(encoding="utf-8")
    draft.write_text(text.replace("reviewed: false", "reviewed: true"), encoding="utf-8")
    assert main(["schema", "check", "p.csv", "new.yaml"]) == 0
    assert main(["plan", "new.yaml", *BUDGET, "--records", "300"]) == 0
    assert main([*argv, "--release", "p.chicle"]) == 0
    assert main(["sample", "p.chicle", "-o", "more.csv", "-n", "50"]) == 0
    real, made = pd.read_csv("p.csv"), pd.read_csv("more.csv")
    assert list(made) == list(real)
    assert (made.dtypes == real.dtypes).all()


def edit(old: str, new: str) -> Callable[[], None]:
    """A schema with one mistake."""

    def do() -> None:
        assert old in SCHEMA
        Path("p.yaml").write_text(SCHEMA.replace(old, new), encoding="utf-8")

    return do


def table(change: Callable[[pd.DataFrame], pd.DataFrame], **how: object) -> Callable[[], None]:
    """A table with one mistake."""
    return lambda: change(people()).to_csv("p.csv", index=False, **how)


def raw(data: bytes) -> Callable[[], None]:
    def do() -> None:
        Path("p.csv").write_bytes(data)

    return do


def as_it_is(frame: pd.DataFrame) -> pd.DataFrame:
    return frame


def folder() -> None:
    Path("p.csv").unlink()
    Path("p.csv").mkdir()


MISTAKES: dict[str, tuple[Callable[[], object], Sequence[str], str]] = {
    "a draft": (edit("reviewed: true", "reviewed: false"), SYNTH, "review it, then set `reviewed: true`"),
    "reviewed: yes": (edit("reviewed: true", "reviewed: yes"), SYNTH, "p.yaml: reviewed must be true or false"),
    "a wrong type": (
        edit("{type: categorical, values: [F, M]}", "{type: boolean}"),
        SYNTH,
        "declare it as categorical",
    ),
    "a type of no name": (edit("type: date", "type: dates"), SYNTH, "did you mean 'date'?"),
    "a column too much": (edit("  sex: {type: categorical, values: [F, M]}\n", ""), SYNTH, "`sex: {type: drop}`"),
    "a column missing": (edit("  sex:", "  gender:"), SYNTH, "column 'gender' is declared but not in the table; leave"),
    "a value missing": (edit("[F, M]", "[F, X]"), SYNTH, "column 'sex' has a text that is not one of the 2 declared"),
    "a number outside": (edit("max: 120", "max: 40"), SYNTH, "widen `min` and `max`, or write `outside: clamp`"),
    "a date outside": (edit("max: 2024-12-31", "max: 2023-06-30"), SYNTH, "widen `min` and `max`, or write `outside"),
    "bounds swapped": (edit("min: 0, max: 120", "min: 120, max: 0"), SYNTH, "p.yaml: column 'age': min 120 is above"),
    "values missing": (
        table(lambda frame: frame.mask(frame["sex"] == "F")),
        SYNTH,
        "has missing values; write `missing: true`",
    ),
    "no schema": (edit("columns:", "column:"), SYNTH, "p.yaml: a schema has no 'column'; did you mean 'columns'?"),
    "the table as schema": (
        lambda: None,
        ["synth", "p.csv", "-s", "p.csv", *SYNTH[4:]],
        "p.csv: a schema is a mapping",
    ),
    "epsilon 0": (lambda: None, [*SYNTH, "--epsilon", "0"], "epsilon must be finite and above 0"),
    "no delta": (lambda: None, SYNTH[:-2], "required: --delta"),
    "delta 0": (lambda: None, [*SYNTH, "--delta", "0"], "choose far below 1/people, such as 1e-9"),
    "no table": (lambda: Path("p.csv").unlink(), SYNTH, "p.csv cannot be read: "),
    "a folder": (folder, SYNTH, "is a folder; name the files in it"),
    "no folder": (lambda: None, [*SYNTH, "-o", "no/out.csv"], "make the folder no first"),
    "a spreadsheet": (lambda: None, ["synth", "p.xlsx", *SYNTH[2:]], "a table is one of *.csv"),
    "no ending": (lambda: None, [*SYNTH, "-o", "out"], "a table is one of *.csv"),
    "semicolons": (table(as_it_is, sep=";"), SYNTH, "p.csv separates its fields by semicolons, not by commas; save it"),
    "semicolons and decimal commas": (table(as_it_is, sep=";", decimal=","), SYNTH, "by semicolons, not by commas"),
    "tabs": (table(as_it_is, sep="\t"), DRAFT, "with tabs as .tsv"),
    "a Latin-1 header": (
        table(lambda frame: frame.rename(columns={"age": "âge"}), encoding="latin-1"),
        DRAFT,
        "it is not UTF-8 text; save it as UTF-8",
    ),
    "UTF-16": (table(as_it_is, encoding="utf-16"), DRAFT, "not UTF-8 text"),
    "Latin-1": (
        table(lambda frame: frame.assign(city="Orléans"), encoding="latin-1"),
        SYNTH,
        "it is not UTF-8 text; save it as UTF-8",
    ),
    "a draft of Latin-1": (
        table(lambda frame: frame.assign(city="Orléans"), encoding="latin-1"),
        DRAFT,
        "it is not UTF-8 text; save it as UTF-8",
    ),
    "an empty file": (raw(b""), SYNTH, "p.csv cannot be read: it is empty, without even a line that names columns"),
    "empty lines": (raw(b"\n\n"), DRAFT, "it is empty, without even"),
    "a draft of a header": (raw(b"age,sex\n"), DRAFT, "no rows to draft a schema from; write it by hand"),
    "two of one name": (
        table(lambda frame: frame.set_axis(["age", "sex", "city", "wage", "age"], axis=1)),
        SYNTH,
        "two columns are called 'age'; rename one",
    ),
    "no name": (
        table(lambda frame: frame.set_axis(["age", "", "city", "wage", "since"], axis=1)),
        SYNTH,
        "column 2 has no name; name it in the first line, or delete it",
    ),
    "rows of several lengths": (raw(b"age,sex\n31,F\n12\n"), DRAFT, "its rows differ in length"),
    "another table": (raw(b"a,b\n1,2\n"), SYNTH, "column 'age' is declared but not in the table"),
    "another command": (lambda: None, ["sinth"], "invalid choice: 'sinth'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_answered_by_what_to_do(
    here: Path, mistake: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def spends(*_: object) -> None:
        pytest.fail("budget was spent")

    monkeypatch.setattr(Ledger, "debit", spends)
    make, argv, said = MISTAKES[mistake]
    make()
    before = sorted(path.name for path in here.iterdir())
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert said in err
    assert "Orl" not in err
    assert sorted(path.name for path in here.iterdir()) == before


def test_a_byte_order_mark_is_no_mistake(here: Path) -> None:
    table(as_it_is, encoding="utf-8-sig")()
    assert main(SYNTH) == 0
    assert list(pd.read_csv(here / "out.csv")) == list(people())


def test_one_column_will_do(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people()[["age"]].to_csv("p.csv", index=False)
    schema = "columns:\n  age: {type: integer, min: 0, max: 120}\n"
    (here / "p.yaml").write_text(schema, encoding="utf-8")
    assert main(SYNTH) == 0
    assert "independent" not in capsys.readouterr().out
    assert list(pd.read_csv(here / "out.csv")) == ["age"]


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE") or os.name == "nt", reason="no limits on files here")
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_no_room_for_the_table(here: Path, ending: str) -> None:
    """What was paid for is kept, what was half written is not, and the error says so."""
    code = f"""\
import resource, sys
import chicle
from chicle.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
sys.exit(main({[*SYNTH, "-o", f"out.{ending}", "-n", "50000"]!r}))
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(chicle.__file__).parents[1])}
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    rescue, error = done.stderr.splitlines()
    assert "File too large; make room, or choose another place" in error
    (kept,) = here.glob("rescued-*.chicle")
    assert f"go on with `chicle sample {kept.name} -o OUT`" in rescue
    assert sorted(path.name for path in here.iterdir()) == sorted(["p.csv", "p.yaml", kept.name])
    assert main(["sample", kept.name, "-o", f"out.{ending}", "-n", "10"]) == 0
