"""Open columns and private bins from the command line: drafted, planned, discovered, sampled."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import chicle
from chicle.cli import main

NAMES = "sk\u00e5l", "a: b", '"quoted"', "no", "1e5", "comma, too"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    words = np.array([*NAMES, *(f"word {i}" for i in range(400))])
    frame = pd.DataFrame(
        {
            "word": words[np.minimum(rng.geometric(0.15, 6_000) - 1, 405)],
            "wage": np.where(rng.random(6_000) < 0.4, 0, np.exp(rng.normal(10, 1, 6_000)).astype(int)),
            "note": [f"free text {i}" for i in rng.integers(0, 5_000, 6_000)],
        }
    )
    frame.loc[:40, "word"] = [f"rare {i}" for i in range(41)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def test_a_draft_leaves_many_texts_open(table: Path, tmp_path: Path) -> None:
    assert main(["schema", "draft", str(table), "-o", str(tmp_path / "s.yaml")]) == 0
    text = " ".join((tmp_path / "s.yaml").read_text(encoding="utf-8").replace("#", " ").split())
    schema = chicle.Schema.load(tmp_path / "s.yaml")
    assert schema.columns["word"].type == "open"
    assert schema.columns["note"].type == "drop", "most texts occur once"
    assert "rare 1" not in text, "no text of the table stands in it"
    assert "a fit discovers the frequent ones, with budget" in text
    assert "`bins: private` would find such edges" in text


def test_from_file_to_file(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.yaml").write_text(
        """
columns:
  word: {type: open, other: another}
  wage: {type: integer, min: 0, max: 10000000, bins: private}
  note: {type: drop}
"""
    )
    budget = ["--epsilon", "2", "--delta", "1e-9"]
    assert main(["schema", "check", str(table), str(tmp_path / "s.yaml")]) == 0
    assert main(["plan", str(tmp_path / "s.yaml"), *budget, "--discovery", "0.1"]) == 0
    said = capsys.readouterr().out
    assert "discovery  word" in said
    assert said.count(" 5.0 %") == 2
    out, kept = tmp_path / "out.csv", tmp_path / "r.chicle"
    told = ["synth", str(table), "-s", str(tmp_path / "s.yaml"), "-o", str(out), *budget, "--release", str(kept)]
    assert main([*told, "--seed", "1"]) == 0
    said = capsys.readouterr().out
    assert "values were discovered" in said
    assert "bins were discovered" in said
    made = pd.read_csv(out, keep_default_na=False)
    labels = chicle.load(kept).schema.columns["word"].labels or ()
    assert set(made["word"]) <= set(labels)
    assert set(NAMES) <= set(labels), "texts of any kind come back as they were"
    assert list(made.columns) == ["word", "wage"]
    assert abs((made["wage"] == 0).mean() - 0.4) < 0.05
    assert main(["sample", str(kept), "-o", str(tmp_path / "more.parquet"), "-n", "10"]) == 0
    assert main(["plan", str(tmp_path / "s.yaml"), *budget, "--discovery", "2"]) == 2
    assert "share must be" in capsys.readouterr().err
