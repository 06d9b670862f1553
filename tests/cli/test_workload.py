"""Workloads on the command line."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from chicle import Workload
from chicle.cli import main

SCHEMA = """\
reviewed: true
columns:
  age: {type: integer, min: 0, max: 9}
  sex: {type: categorical, values: [f, m]}
  job: {type: categorical, values: [cook, smith, clerk]}
  rich: {type: boolean}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    age = rng.integers(0, 10, 3_000)
    pd.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], 3_000),
            "job": np.where(age < 4, "cook", rng.choice(["smith", "clerk"], 3_000)),
            "rich": rng.random(3_000) < age / 10,
        }
    ).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "people.yaml").write_text(SCHEMA, encoding="utf-8")
    (tmp_path / "w.json").write_text(Workload({("age", "rich"): 2.0}).to_json(), encoding="utf-8")
    return tmp_path


def synth(folder: Path, *more: str) -> int:
    given = [str(folder / "people.csv"), "-s", str(folder / "people.yaml"), "-o", str(folder / "made.csv")]
    return main(["synth", *given, "--epsilon", "3", "--delta", "1e-9", "--force", "--quiet", *more])


@pytest.mark.parametrize("given", ["all-2way", "target:rich", "w.json"])
@pytest.mark.parametrize("mechanism", ["aim", "mwem", "gaussian"])
def test_mechanisms_take_a_workload(folder: Path, given: str, mechanism: str) -> None:
    given = str(folder / given) if given.endswith("json") else given
    assert synth(folder, "--mechanism", mechanism, "--workload", given) == 0
    assert list(pd.read_csv(folder / "made.csv")) == ["age", "sex", "job", "rich"]


@pytest.mark.parametrize(("mechanism", "title"), [("aim", "over records"), ("aim-published", "as published")])
def test_a_plan_takes_one_too(folder: Path, capsys: pytest.CaptureFixture[str], mechanism: str, title: str) -> None:
    given = ["--epsilon", "1", "--delta", "1e-9", "--mechanism", mechanism, "--workload", "target:rich"]
    assert main(["plan", str(folder / "people.yaml"), *given]) == 0
    said = capsys.readouterr().out
    assert "closure" in said
    assert f"AIM ({title})" in said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--mechanism", "prism", "--workload", "all-2way"], "prism takes no --workload"),
        (["--mechanism", "aim", "--workload", "target:nobody"], "'nobody' is not an attribute"),
        (["--mechanism", "aim", "--workload", "none.json"], "cannot be read"),
        (["--mechanism", "aim", "--workload", "all-0way"], "k must be"),
    ],
)
def test_mistakes_are_a_line_and_nothing_is_written(
    folder: Path, more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert synth(folder, *more) != 0
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told
    assert not (folder / "made.csv").exists()


def test_an_evaluation_counts_by_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [str(folder / "people.csv"), str(folder / "people.csv"), "-s", str(folder / "people.yaml")]
    assert main(["evaluate", *given, "--workload", str(folder / "w.json"), "--json"]) == 0
    assert "workload error of 1 clique" in json.dumps(json.loads(capsys.readouterr().out))
    assert main(["evaluate", *given, "--workload", "all-2way", "--json"]) == 0
    assert "workload error of 6 cliques" in json.dumps(json.loads(capsys.readouterr().out))
    assert main(["evaluate", *given, "--workload", "target:nobody"]) != 0
    assert "'nobody' is not an attribute" in capsys.readouterr().err
