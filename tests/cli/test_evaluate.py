"""`chicle evaluate` and `chicle compare`, end to end."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import chicle
from chicle import Schema
from chicle.cli import main


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, its schema, a synthetic table and the release it was made from."""
    census = chicle.datasets.census(2_000, d=4)
    schema = Schema.from_cardinalities(census.domain, ordinal=["AGE"])
    schema.save(tmp_path / "s.yaml")
    synth = chicle.Independent(epsilon=1, delta=1e-9).fit(census, schema)
    synth.release_.save(tmp_path / "r.chicle")
    for name, records in (("real", census), ("made", synth.sample(seed=0))):
        pq.write_table(pa.table({name: records[name] for name in census.domain}), tmp_path / f"{name}.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("here")
def test_evaluate(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "real.parquet", "made.parquet", "--schema", "s.yaml", "--release", "r.chicle"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("NOT PRIVATE")
    assert "epsilon=1" in said.out
    assert said.err == ""
    told = ["evaluate", "real.parquet", "made.parquet", "--release", "r.chicle", "--json", "--label", "SEX"]
    assert main(told) == 0
    found = json.loads(capsys.readouterr().out)
    assert next(iter(found)) == "warning"
    scores = {score["key"]: score for score in found["scores"]}
    direct = chicle.evaluate("real.parquet", "made.parquet", "s.yaml", epsilon=1, delta=1e-9, label="SEX")
    assert scores["tvd_2"]["value"] == direct["tvd_2"].value
    assert scores["tvd_2"]["independent"] == direct["tvd_2"].independent
    assert "misclassification" in scores


@pytest.mark.usefixtures("here")
def test_compare(capsys: pytest.CaptureFixture[str]) -> None:
    told = [
        "compare",
        "real.parquet",
        "-s",
        "s.yaml",
        "--mechanisms",
        "independent",
        "--epsilon",
        "0.2,1",
        "--seeds",
        "1",
    ]
    assert main([*told, "-o", "runs.csv", "--plot", "runs.svg"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("NOT PRIVATE")
    assert said.err == ""
    assert Path("runs.csv").read_text(encoding="utf-8").startswith("# NOT PRIVATE")
    assert "NOT PRIVATE" in Path("runs.svg").read_text(encoding="utf-8")
    assert main([*told, "-o", "runs.csv", "--quiet"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("here")
def test_compare_gives_contenders_what_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    census = pq.read_table("real.parquet")
    pq.write_table(census.append_column("who", pa.array([i // 3 for i in range(len(census))])), "visits.parquet")
    Path("p.json").write_text('{"prism": {"records_share": 1}}', encoding="utf-8")
    told = ["compare", "visits.parquet", "-s", "s.yaml", "--epsilon", "1", "--seeds", "1", "--by", "SEX"]
    told += ["--mechanisms", "independent", "--public", "made.parquet", "--workload", "all-2way", "-o", "runs.csv"]
    assert main([*told, "--person", "who", "--max-rows", "2"]) == 0
    found = chicle.comparison.Comparison.load("runs.csv").rows
    assert found[0]["error"] == ""
    assert main([*told, "--person", "who", "--max-rows", "3"]) == 2
    assert "other settings" in capsys.readouterr().err
    for more, why in (
        (["--max-rows", "2"], "--person COLUMN"),
        (["--person", "who", "--max-rows", "0"], "--max-rows must be"),
        (["--person", "who", "--parameters", "p.json"], "parameters are given for 'prism', which does not run"),
        (["--person", "who", "--parameters", "s.yaml"], "cannot be read; it must be JSON"),
        (["--person", "who", "--public", "nowhere.parquet"], "nowhere.parquet"),
    ):
        assert main([*told, *more]) == 2
        assert why in capsys.readouterr().err


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["evaluate", "real.parquet", "made.parquet"], "give --schema"),
        (["evaluate", "real.parquet", "nowhere.csv", "-s", "s.yaml"], "cannot be read"),
        (["evaluate", "real.parquet", "made.parquet", "-s", "s.yaml", "--gini", "AGE,SEX"], "three attributes"),
        (["evaluate", "real.parquet", "made.parquet", "-s", "s.yaml", "--epsilon", "1"], "delta"),
        (["evaluate", "real.parquet", "made.parquet", "-s", "s.yaml", "--triples", "0"], "triples"),
        (["compare", "real.parquet", "-s", "s.yaml", "--mechanisms", "prsm"], "no mechanism 'prsm'"),
        (["compare", "real.parquet", "-s", "s.yaml", "--seeds", "0"], "seeds"),
        (["compare", "real.parquet", "-s", "s.yaml", "-o", "real.parquet"], "is an input"),
        (["compare", "real.parquet", "-s", "s.yaml", "--plot", "p.gif"], "a picture is"),
        (["compare", "real.parquet", "-s", "s.yaml", "--epsilon", "1,x"], "invalid float"),
    ],
)
def test_refusals_are_one_line(argv: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert why in err
    assert err.count("\n") == 1
