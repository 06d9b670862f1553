"""The site builds without a warning, and everything it shows is in it."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("mkdocs", "material", "mkdocstrings")),
    reason="mkdocs-material and mkdocstrings are not installed (the extra docs)",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    run = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(place)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(run, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return place


def test_every_part_is_there(site: Path) -> None:
    front = (site / "index.html").read_text(encoding="utf-8")
    for part in ("Start", "How to", "Reference", "How it works", "How good"):
        assert f"{part}\n" in front, part
    reference = (site / "reference" / "mechanisms.html").read_text(encoding="utf-8")
    assert "chicle.mechanisms.prism.Prism" in reference
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    for command in ("chicle ui", "chicle schema draft", "chicle doctor"):
        assert f'id="{command.replace(" ", "-")}"' in commands
    notebook = (site / "notebook.html").read_text(encoding="utf-8")
    assert "spent rho" in notebook
    assert (site / "examples" / "first-steps.ipynb").exists()


def test_it_fetches_nothing_from_elsewhere(site: Path) -> None:
    pages = [page.read_text(encoding="utf-8") for page in site.rglob("*.html")]
    assert len(pages) > 20
    for page in pages:
        assert not re.search(r"<(script|img|iframe|link)[^>]* (src|href)=\"?https?:", page)
