"""Examples run, so they cannot drift."""

import ast
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
    assert {"chicle.domain.Domain", "chicle.counting.counter.count", "chicle.privacy.ledger.Ledger"} <= found


@pytest.mark.parametrize("page", ["README.md", "PRIVACY.md", "docs/evaluate.md"])
def test_pages_name_files_that_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:python|rust|tests|benches)/[\w./]+)`", text))
    assert named
    for name in named:
        assert (ROOT / name).exists(), name


def test_every_release_is_listed() -> None:
    """Every function that debits a ledger stands in PRIVACY.md, by file and name."""
    listed = (ROOT / "PRIVACY.md").read_text(encoding="utf-8")
    found = set()
    for path in sorted((ROOT / "python").rglob("*.py")):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef) and function.name not in (
                "from_json",
                "release_choice",
                "release_gaussian",
            ):
                called = {ast.unparse(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}
                if called & {"ledger.debit", "release_choice", "release_gaussian"}:
                    found.add(f"`{path.relative_to(ROOT).as_posix()}`, `{function.name}`")
    assert len(found) >= 3
    for release in found:
        assert release in listed, release
