"""Help before the first command: the next step in a folder, completion in the shell, facts for a bug report."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import chicle
from chicle import Schema
from chicle.cli import main
from chicle.cli.next_step import offer_next_step

TABLE = "age,sex\n" + "31,F\n4,M\n77,F\n" * 200


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(here: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert offer_next_step(here) == 0
    return capsys.readouterr().out


def test_each_step_leads_to_the_next(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The commands that are offered, in the order in which they are offered, go from a table to its report."""
    assert "chicle demo" in said(here, capsys)
    (here / "my people.csv").write_text(TABLE, encoding="utf-8")
    (here / "other.yaml").write_text("a: 1\n", encoding="utf-8")
    offered = said(here, capsys)
    assert "31" not in offered
    draft = "schema draft 'my people.csv' -o 'my people.yaml'"
    assert f"  chicle {draft}\n" in offered
    assert main(["schema", "draft", "my people.csv", "-o", "my people.yaml"]) == 0
    offered = said(here, capsys)
    assert "`reviewed: true`" in offered
    assert "chicle ui 'my people.csv'" in offered
    Schema.load("my people.yaml").mark_reviewed(source="the questionnaire").save("my people.yaml")
    offered = said(here, capsys)
    assert "chicle plan 'my people.yaml' --epsilon 1 --delta 1e-9" in offered
    assert "chicle synth 'my people.csv' -s 'my people.yaml'" in offered
    told = ["-o", "synthetic.csv", "--epsilon", "1", "--delta", "1e-9", "--release", "my people.chicle", "-n", "5"]
    assert main(["synth", "my people.csv", "-s", "my people.yaml", *told]) == 0
    assert "chicle report 'my people.chicle' -o 'my people.html'" in said(here, capsys)
    assert main(["report", "my people.chicle", "-o", "my people.html"]) == 0
    offered = said(here, capsys)
    assert "More tables cost nothing" in offered
    assert "chicle synth" not in offered


def test_only_on_a_terminal(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main([]) == 2
    assert "required: COMMAND" in capsys.readouterr().err
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main([]) == 0
    assert "chicle demo" in capsys.readouterr().out
    assert here.exists()


def test_doctor_names_versions_and_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    told = capsys.readouterr().out
    facts = json.loads(told)
    assert facts["chicle"] == chicle.__version__
    assert {"python", "threads", "vector instructions", "memory", "java", "numpy"} <= set(facts)
    assert str(Path.home()) not in told
    assert main(["doctor"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(facts)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["chicle", "schema", "d"], "draft"),
        (["chicle", "synth", "--mechanism", "privs"], "privsyn privsyn-descent privsyn-pgm"),
        (["chicle", "completion", "z"], "zsh"),
        (["chicle", "schema", "draft", "--fo"], "--force"),
        (["chicle", "synth", "people"], ""),
    ],
)
def test_bash_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], completed: str) -> None:
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "chicle.bash"
    script.write_text(capsys.readouterr().out, encoding="utf-8")
    ask = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _chicle; echo "${COMPREPLY[*]}"'
    run = ["bash", "-c", ask, str(script), *words]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip() == completed


@pytest.mark.parametrize("shell", ["fish", "zsh"])
def test_other_shells(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "privsyn-descent" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)
