"""The newcomer's path: own CSV to synthetic CSV, and each mistake on the way answered by what to do about it.

The first walk is over a messy file like a hospital's: several rows a person, marks of missing values, three formats of
dates, semicolons, decimal commas, Latin-1, counts that are mostly zero, stays, drugs and free text.
"""

import datetime as dt
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

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


DRUGS = ["metformin", "insulin", "glipizide", "glyburide", "pioglitazone", "acarbose"]
EPOCH = dt.date(1899, 12, 30)  # day 0 of Excel


def written(days: np.ndarray, forms: np.ndarray) -> list[str]:
    """Dates as several people write them: 31/12/2019, 2019-12-31, 43830."""
    return [
        [f"{day:%d/%m/%Y}", day.isoformat(), str((day - EPOCH).days)][form]
        for day, form in zip(days.astype(object), forms, strict=True)
    ]


def hospital(patients: int = 15_000) -> pd.DataFrame:
    """Encounters: one to 40 a patient."""
    rng = np.random.default_rng(0)
    each = np.minimum(rng.geometric(0.62, patients), 40)
    each[0] = 40
    who = rng.permutation(np.repeat(np.arange(patients), each))
    rows = len(who)
    numbers = 10_000_000 + rng.choice(89_000_000, patients, replace=False)
    decade = np.clip(rng.normal(6.5, 1.6, patients), 0, 9).astype(int)[who]
    admission = np.datetime64("2019-01-01") + rng.integers(0, 1000, rows).astype("m8[D]")
    stay = np.minimum(rng.geometric(0.25, rows), 14)
    forms = rng.choice(3, rows, p=[0.6, 0.3, 0.1])
    drugs = rng.choice(["No", "Steady", "Up", "Down"], (rows, len(DRUGS)), p=[0.8, 0.14, 0.03, 0.03])
    weight = [f"{kilos:.1f}".replace(".", ",") for kilos in rng.normal(78, 14, rows)]
    diagnoses = np.array([f"{code:.2f}" for code in rng.uniform(1, 999, 500)] + [f"V{i:02}" for i in range(90)])
    return pd.DataFrame(
        {
            "encounter_id": rng.choice(10**8, rows, replace=False),
            "patient_nbr": numbers[who],
            "insurance": [f"{number * 7 % 10**9:09d}" for number in numbers[who].tolist()],
            "race": rng.choice(["Caucasian", "Hispanic", "?"], rows, p=[0.8, 0.17, 0.03]),
            "age": [f"[{10 * low}-{10 * low + 10})" for low in decade],
            "weight": np.where(rng.random(rows) < 0.2, "?", weight),
            "admission_type_id": rng.choice([1, 2, 3, 99], rows, p=[0.5, 0.2, 0.25, 0.05]),
            "admission": written(admission, forms),
            "discharge": written(admission + stay.astype("m8[D]"), forms),
            "emergencies": np.where(rng.random(rows) < 0.88, 0, rng.negative_binomial(1, 0.45, rows) + 1),
            "diagnosis": diagnoses[np.minimum(rng.geometric(0.015, rows) - 1, len(diagnoses) - 1)],
            "A1C": rng.choice(["None", "Norm", ">7", ">8"], rows, p=[0.8, 0.1, 0.05, 0.05]),
            "ward": rng.choice(["Süd", "Nord", "Orthopädie"], rows),
            **{name: drugs[:, i] for i, name in enumerate(DRUGS)},
            "treated": np.where((drugs != "No").any(axis=1), "Yes", "No"),
            "note": [f"Seen by nurse {i} and sent on to a ward" for i in rng.integers(0, 10**6, rows)],
        }
    )


def review(text: str) -> str:
    """What a steward does with the draft: sources, honest bounds, the order of dates, the rules of drugs."""
    text = text.replace("reviewed: false", "reviewed: true").replace("source: data", "source: codebook of 2019")
    text = re.sub(
        r"(discharge): .*(format: \[.*?\])", r"\1: {type: date, after: admission, by: {min: 0, max: 60}, \2", text
    )
    text = re.sub(
        r"(emergencies: .*) max: \d+, bins: \[.*?\]", r"\1 bins: [0, 1, 2, 3, 4, 6, 9, 13, 19, 28, 42, 100]", text
    )
    text = text.replace("min: 0, bins", "bins")
    each = f"columns: [{', '.join(DRUGS)}], are: [Down, Steady, Up]"
    rules = [f"if: {{treated: 'No'}}\n    none: {{{each}}}", f"if: {{treated: 'Yes'}}\n    any: {{{each}}}"]
    return text + "constraints:\n" + "".join(f"  - {rule}\n" for rule in rules)


def test_the_way_through_a_messy_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    real = hospital()
    real.to_csv("h.csv", sep=";", encoding="latin-1", index=False)
    assert main(["schema", "draft", "h.csv", "-o", "h.yaml"]) == 0
    assert "semicolons between fields, decimal commas, encoding cp1252" in capsys.readouterr().err
    draft = chicle.Schema.load("h.yaml").to_dict()
    assert draft["person"] == "patient_nbr"
    assert draft["max_records"] == 3
    types = {name: column["type"] for name, column in draft["columns"].items()}
    assert [name for name, kind in types.items() if kind == "identifier"] == ["encounter_id", "patient_nbr"]
    assert types["insurance"] == "drop", "a second id of the same persons"
    assert {types["note"], types["diagnosis"], types["age"], types["admission_type_id"]} == {
        "drop",
        "open",
        "ordinal",
        "categorical",
    }
    marks = {name: column["missing"] for name, column in draft["columns"].items() if column.get("missing")}
    assert marks == {"race": ["?"], "weight": ["?"], "admission_type_id": [99], "A1C": True}
    for name in ("admission", "discharge"):
        assert draft["columns"][name]["format"] == ["DD/MM/YYYY", "YYYY-MM-DD", "excel"]
    text = (tmp_path / "h.yaml").read_text(encoding="utf-8")
    told = " ".join(text.replace("#", " ").split())
    for flag in (
        "at most 40; `max_records: 3` keeps 94 % of the rows",
        "'?' looks like a mark of missing values",
        "it is never before 'admission': `after: admission, by: {min: 0, max: 14}`",
        "bins grow with it, and zero has its own",
        "rare: 5 rows or fewer have",
    ):
        assert flag in told
    assert yaml.safe_load(text)["columns"]["treated"]["values"] == ["No", "Yes"], "other readers see the same labels"

    (tmp_path / "h.yaml").write_text(review(text), encoding="utf-8")
    assert main(["schema", "check", "h.csv", "h.yaml"]) == 0
    assert main(["plan", "h.yaml", *BUDGET, "--records", "25000"]) == 0
    assert "odds about one person change by at most a factor of 2.7" in capsys.readouterr().out
    assert main(["synth", "h.csv", "-s", "h.yaml", "-o", "made.csv", "--epsilon", "8", "--delta", "1e-9"]) == 0
    assert "ASSUMPTION" not in capsys.readouterr().err
    made = pd.read_csv("made.csv", dtype={"patient_nbr": str}, keep_default_na=False, na_values=[""])
    assert list(made) == [name for name in real if name not in ("insurance", "note")]
    # Ids: fresh ones, and as many persons as there are.
    assert not set(made["patient_nbr"].str.lstrip("0")) & set(real["patient_nbr"].astype(str))
    assert made["patient_nbr"].value_counts().max() <= 3
    assert abs(made["patient_nbr"].nunique() / real["patient_nbr"].nunique() - 1) < 0.05
    # Tails: honest bounds, ten times the largest count, do not fill with noise.
    mine, theirs = real["emergencies"], made["emergencies"]
    assert abs(theirs.mean() / mine.mean() - 1) < 0.25
    assert abs(theirs.std() / mine.std() - 1) < 0.5
    assert theirs.quantile(0.999) < 2 * mine.quantile(0.999)
    # Order: no stay ends before it begins, and stays are as long as they are.
    stays = (pd.to_datetime(made["discharge"]) - pd.to_datetime(made["admission"])).dt.days
    assert stays.min() >= 0
    assert abs(stays.mean() - 3.9) < 0.4
    # Rules: drugs if treated, none if not.
    assert ((made[DRUGS] != "No").any(axis=1) == (made["treated"] == "Yes")).all()
    # Marks, decimals and labels.
    assert set(made["race"].dropna()) == {"Caucasian", "Hispanic"}
    assert made["race"].isna().any()
    assert (made["weight"].dropna() == made["weight"].dropna().round(1)).all()
    assert set(made["ward"]) == set(real["ward"])

    assert main(["report", "made.chicle", "-o", "page.html"]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for said in ("codebook of 2019", "rows were left out", "h.csv", "YYYY-MM-DD", "Safe to publish"):
        assert said in page
    assert str(real["patient_nbr"][0]) not in page


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
    assert main(["schema", "check", "p.csv", "new.yaml"]) == 2
    assert "replace `source: data` by where it stands" in capsys.readouterr().err
    text = draft.read_text(encoding="utf-8").replace("source: data", "source: the questionnaire")
    draft.write_text(text, encoding="utf-8")
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
    "a spreadsheet": (lambda: None, ["synth", "p.xlsx", *SYNTH[2:]], "p.xlsx cannot be read: is the path right?"),
    "no ending": (lambda: None, [*SYNTH, "-o", "out"], "a table is one of *.csv"),
    "another separator": (
        lambda: None,
        [*DRAFT, "--delimiter", ";"],
        "separates its fields by commas, not by semicolons",
    ),
    "two separators": (lambda: None, [*DRAFT, "--delimiter", "ab"], "a delimiter is one character"),
    "no encoding": (lambda: None, [*DRAFT, "--encoding", "latin-99"], "there is no encoding 'latin-99'"),
    "another encoding": (
        table(lambda frame: frame.assign(city="Orléans"), encoding="latin-1"),
        [*SYNTH, "--encoding", "utf-8"],
        "it is not text of its encoding; name the right one, such as `--encoding latin-1`",
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
    "rows of several lengths": (raw(b"age,sex\n31,F\n12\n"), DRAFT, "line 3 has 1 fields, but the first line has 2"),
    "another table": (raw(b"a,b\n1,2\n"), SYNTH, "column 'age' is declared but not in the table"),
    "another command": (lambda: None, ["sinth"], "invalid choice: 'sinth'"),
}


WRITTEN: dict[str, dict[str, object]] = {
    "semicolons": {"sep": ";"},
    "semicolons and decimal commas": {"sep": ";", "decimal": ","},
    "bars": {"sep": "|"},
    "tabs": {"sep": "\t"},
    "Latin-1": {"encoding": "latin-1"},
    "UTF-16": {"encoding": "utf-16"},
    "a byte order mark": {"encoding": "utf-8-sig"},
}


@pytest.mark.parametrize("how", WRITTEN)
def test_other_ways_to_write_a_csv_file_are_no_mistake(
    here: Path, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = people().rename(columns={"city": "cité"}).replace({"cité": {"Nice": "Orléans"}})
    frame.to_csv("p.csv", index=False, **WRITTEN[how])
    schema = (
        SCHEMA.replace("city", "cité")
        .replace("Nice", "Orléans")
        .replace("number, min: 0", "number, decimals: 2, min: 0")
    )
    (here / "p.yaml").write_text(schema, encoding="utf-8")
    assert main([*SYNTH, "--epsilon", "9"]) == 0
    assert ("p.csv is read with " in capsys.readouterr().err) == (how != "a byte order mark")
    made = pd.read_csv("out.csv")
    assert list(made) == list(frame)
    assert abs(made["wage"].mean() / frame["wage"].mean() - 1) < 0.2
    assert main([*DRAFT, "--force"]) == 0
    assert chicle.Schema.load("new.yaml").columns["wage"].type == "number"


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
sys.exit(main({[*SYNTH, "-o", f"out.{ending}", "-n", "5e4", "--no-release"]!r}))
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
