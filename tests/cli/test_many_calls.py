"""Two hundred random calls that get past the parser: no traceback, no panic, one line for each error, no private value.

Arguments are drawn from a fixed seed: good and bad tables, schemas, releases, numbers, places. Private tables hold
markers that nothing may show: ids of persons, a label and a number that no schema declares. Drafts and evaluations are
NOT PRIVATE, say so, and are called too, but may show them.
"""

import random
import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest

from chicle.cli import main

MARKERS = ("zqperson", "zqlabel", "zqcolumn", "73570927")
PRIVATE = ("draft", "evaluate", "private.html")
CALLS = 200

SCHEMA = """\
reviewed: true
person: who
max_records: 2
columns:
  who: {type: identifier}
  sex: {type: categorical, values: [f, m]}
  age: {type: integer, min: 0, max: 99, bins: 10}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Good files and bad ones; a few releases are made by the calls themselves."""
    here = tmp_path_factory.mktemp("calls")
    rows = [f"zqperson{i // 2},{'fm'[i % 3 == 0]},{i * 7 % 100}" for i in range(240)]
    head = "who,sex,age"
    (here / "people.csv").write_text("\n".join([head, *rows]) + "\n")
    (here / "label.csv").write_text("\n".join([head, *rows, "zqperson1,zqlabel,4"]) + "\n")
    (here / "number.csv").write_text("\n".join([head, *rows, "zqperson1,f,73570927"]) + "\n")
    (here / "text.csv").write_text("\n".join([head, *rows, "zqperson1,f,zqlabel"]) + "\n")
    (here / "missing.csv").write_text("\n".join([head, *rows, "zqperson1,,"]) + "\n")
    (here / "ragged.csv").write_text("\n".join([head, *rows, "zqperson1,f,4,zqlabel,zqlabel"]) + "\n")
    (here / "lacking.csv").write_text("who,sex\nzqperson1,f\n")
    (here / "empty.csv").write_text("")
    (here / "head.csv").write_text(f"{head}\n")
    (here / "binary.csv").write_bytes(bytes(range(256)) * 20)
    (here / "people.parquet").write_bytes(b"PAR1zqlabel")
    (here / "schema.yaml").write_text(SCHEMA)
    (here / "draft.yaml").write_text(SCHEMA.replace("true", "false"))
    (here / "open.yaml").write_text(SCHEMA.replace("{type: categorical, values: [f, m]}", "{type: open, most: 4}"))
    (here / "broken.yaml").write_text(SCHEMA + "  age: [\n")
    (here / "wrong.yaml").write_text(SCHEMA.replace("max: 99", "max: ninety"))
    (here / "broken.chicle").write_bytes(b"PK\x03\x04 nothing")
    (here / "folder").mkdir()
    return here


TABLES = ("label", "number", "text", "missing", "ragged", "lacking", "empty", "head", "binary")
SCHEMAS = ("draft.yaml", "open.yaml", "broken.yaml", "wrong.yaml", "none.yaml")
RELEASES = ("broken.chicle", "none.chicle", "people.csv", "folder")
MECHANISMS = ("prism", "privsyn", "mst", "aim", "mwem", "independent", "gaussian")


def call(rng: random.Random, number: int) -> list[str]:
    """One call: a command with arguments that its parser takes, most of them right."""

    def mostly(good: str, bad: Sequence[str]) -> str:
        return good if rng.random() < 0.8 else rng.choice(bad)

    def sometimes(*words: str) -> list[str]:
        return list(words) if rng.random() < 0.4 else []

    pick = rng.choice
    bad_tables = [*(f"{name}.csv" for name in TABLES), "people.parquet", "none.csv", "folder"]
    table, schema = mostly("people.csv", bad_tables), mostly("schema.yaml", SCHEMAS)
    release = mostly("made.chicle", RELEASES)
    out = mostly(f"new{number}.csv", ["out.csv", "out.parquet", "folder", "no/where.csv", "out.xyz", "people.csv"])
    budget = [
        *("--epsilon", mostly("1", ["0.001", "30", "0", "-1", "nan", "1e400"])),
        *("--delta", mostly("1e-9", ["0.5", "0", "2"])),
    ]
    force, seed = sometimes("--force"), sometimes("--seed", mostly("7", ["-1"]))
    rows = sometimes("-n", mostly("50", ["0", "-3", "1e3"]))
    kind = sometimes("--mechanism", pick(MECHANISMS))
    where = sometimes("--where", mostly("sex=f", ["sex=x", "q=1", "age"]))
    kept = ["--release", pick(["made.chicle", f"kept{number}.chicle"])]
    folder = mostly(f"dossier{number}", ["folder", "people.csv"])
    calls = {
        "synth": [table, "-s", schema, "-o", out, *budget, *kind, *rows, *seed, *force, *kept],
        "synth-json": [table, "-s", schema, "-o", out, *budget, "--json", *force, *kept],
        "plan": [schema, *budget, *kind, *sometimes("--records", mostly("1000", ["0", "-5"]))],
        "sample": [release, "-o", out, *rows, *seed, *force, *where],
        "check": [table, schema],
        "draft": [table, "-o", mostly(f"d{number}.yaml", ["d.yaml", "people.csv"]), *force],
        "report": [release, "-o", mostly(f"r{number}.html", ["folder", "no/where.html"]), *force],
        "private": [release, "--real", table, "-o", "private.html", "--force"],
        "evaluate": [table, "out.csv", "-s", schema],
        "dossier": [release, "-o", folder, *force],
        "verify": [release, *sometimes("--dossier", pick(["folder", "dossier0"]))],
        "audit": [mostly("choice", ["labels", "nobody"]), "--runs", mostly("4", ["6", "0"]), "--jobs", "1"],
        "doctor": [],
        "completion": [pick(["bash", "zsh", "fish"])],
    }
    name = pick([*calls, "synth", "synth", "synth", "sample", "sample", "dossier", "verify"])
    words = {"synth-json": ["synth"], "check": ["schema", "check"], "draft": ["schema", "draft"], "private": ["report"]}
    return [*words.get(name, [name]), *calls[name]]


def test_two_hundred_calls(place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    before = {path: path.read_bytes() for path in place.iterdir() if path.is_file()}
    rng, codes, done = random.Random(23), dict[int, int](), dict[str, int]()
    first = ["-o", "out.csv", "--epsilon", "1", "--delta", "1e-9", "--release", "made.chicle"]
    assert main(["synth", "people.csv", "-s", "schema.yaml", *first]) == 0
    for number in range(CALLS):
        given = call(rng, number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = main(given)
        told = capsys.readouterr()
        assert code in (0, 1, 2), given
        codes[code] = codes.get(code, 0) + 1
        done[given[0]] = done.get(given[0], 0) + (code == 0)
        said = told.out + told.err
        for word in ("Traceback", "panicked", "RuntimeError", 'File "'):
            assert word not in said, (given, said)
        if code == 2:
            errors = [line for line in told.err.splitlines() if "error:" in line]
            assert len(errors) == 1, (given, told.err)
            assert "usage:" not in told.err
            assert "invalid choice" not in told.err, "this call did not get past the parser"
        if not set(given) & set(PRIVATE):
            assert not [marker for marker in MARKERS if marker in said], (given, said)
    assert codes[0] > CALLS / 5, codes
    assert codes[2] > CALLS / 5, codes
    assert all(done.get(name) for name in ("synth", "sample", "report", "dossier", "verify", "plan")), done
    left = [path for path in place.rglob("*") if path.is_file() and path not in before]
    assert {".csv", ".html", ".chicle", ".md"} <= {path.suffix for path in left}
    for path in left:
        assert not path.name.startswith("."), f"{path.name} is half written"
        if path.name != "private.html" and path.suffix != ".yaml":
            found = [marker for marker in MARKERS if marker.encode() in path.read_bytes()]
            assert not found, (path.name, found)
    for path, data in before.items():
        assert path.read_bytes() == data, f"{path.name} is an input"
