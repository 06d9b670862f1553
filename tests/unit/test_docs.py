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
    assert {"chicle.domain.Domain", "chicle.counting.records.count", "chicle.privacy.ledger.Ledger"} <= found


PAGES = [
    "README.md",
    "PRIVACY.md",
    "SECURITY.md",
    "examples/README.md",
    *(f"docs/{page.name}" for page in ROOT.glob("docs/*.md")),
]


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_files_that_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:python|rust|tests|benches)/[\w./]+)`", text))
    assert named or page not in ("README.md", "PRIVACY.md", "docs/evaluate.md")
    for name in named:
        assert (ROOT / name).exists(), name
    for name in re.findall(r"`((?!python|rust|tests|benches)[a-z]\w+/\w+\.py)`", text):
        assert (ROOT / "python" / "chicle" / name).exists(), name


def release_rows() -> list[list[str]]:
    """The cells of each row of the table of releases in PRIVACY.md."""
    lines = (ROOT / "PRIVACY.md").read_text(encoding="utf-8").split("## Releases")[1].split("\n")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert rows[0] == ["release", "where", "sensitivity", "argument", "test"]
    return [row for row in rows[2:] if not row[0].startswith("---")]


def test_every_release_has_a_place_a_sensitivity_an_argument_and_a_test() -> None:
    table = release_rows()
    rows = table[: next(i for i, row in enumerate(table) if row[0] == "step")]
    assert len(rows) > 20
    for row in rows:
        assert len(row) == 5, row
        release, where, sensitivity, argument, test = row
        (file, *_) = re.findall(r"`(python/[\w./]+)`", where)
        named = re.findall(r"`([A-Za-z_.]+)(?:\([^`]*\))?`", where.replace(file, ""))
        code = (ROOT / file).read_text(encoding="utf-8")
        assert any(f"def {name.split('.')[-1]}(" in code for name in named), release
        assert min(map(len, (sensitivity, argument))) > 3, release
        tests = re.findall(r"`(tests/[\w/]+\.py)`", test)
        assert tests, release
        assert all((ROOT / one).exists() for one in tests), release


DOORS = {
    *("_pay", "ledger.debit", "parallel_ledgers", "release_choice", "release_gaussian", "release_pure", "self._scores"),
}
"""What releases are made through; what is one of them is listed where it is called."""


def releases_of(path: Path) -> set[str]:
    """The functions and methods of a module that call one of the doors, by file and name."""
    found = set()
    owners: list[tuple[str, ast.AST]] = [("", ast.parse(path.read_text(encoding="utf-8")))]
    while owners:
        prefix, owner = owners.pop()
        for node in ast.iter_child_nodes(owner):
            if isinstance(node, ast.ClassDef):
                owners.append((f"{prefix}{node.name}.", node))
            if isinstance(node, ast.FunctionDef):
                called = {ast.unparse(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
                if called & DOORS:
                    found.add(f"`{path.relative_to(ROOT).as_posix()}`, `{prefix}{node.name}`")
    return found


def test_every_release_is_listed() -> None:
    """Every function that debits a ledger stands in PRIVACY.md, by file and name."""
    listed = (ROOT / "PRIVACY.md").read_text(encoding="utf-8")
    planted = ROOT / "python/chicle/audit/planted.py"  # bugs on purpose
    files = [path for path in sorted((ROOT / "python").rglob("*.py")) if path != planted]
    found = {release for path in files for release in releases_of(path)}
    desk = {
        f"`python/chicle/measurements/desk.py`, `Desk.{name}`" for name in ("measure", "score", "dependence", "choose")
    }
    assert desk <= found
    unlisted = {
        "`_pay`",
        "`release_choice`",
        "`release_gaussian`",
        "`release_pure`",
        "`Desk._scores`",
        "`Ledger.from_dict`",
    }
    for release in found:
        assert release in listed or release.split(", ")[1] in unlisted, release
