"""Examples run, so they cannot drift."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import chicle

ROOT = Path(__file__).resolve().parents[2]
MODULES = ["chicle", *(module.name for module in pkgutil.walk_packages(chicle.__path__, "chicle."))]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module, raise_on_error=False, report=True).failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    found = {test.name for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples}
    assert {"chicle.domain.Domain", "chicle.marginals.count", "chicle.privacy.ledger.Ledger"} <= found


@pytest.mark.parametrize("page", ["README.md"])
def test_pages(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    scope: dict[str, object] = {}
    for block in blocks:
        exec(block, scope)  # noqa: S102 - our own page
    assert "spent rho" in capsys.readouterr().out


@pytest.mark.parametrize("page", ["README.md", "PRIVACY.md"])
def test_pages_name_files_that_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:python|rust|tests|benches)/[\w./]+)`", text))
    assert named
    for name in named:
        assert (ROOT / name).exists(), name


def test_every_release_is_listed() -> None:
    """Whatever debits a ledger stands in PRIVACY.md by file and name."""
    listed = (ROOT / "PRIVACY.md").read_text(encoding="utf-8")
    for path in sorted((ROOT / "python").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if re.search(r"\bledger\.debit\(|\brelease_gaussian\(", source) and path.name != "ledger.py":
            assert path.relative_to(ROOT).as_posix() in listed, path
