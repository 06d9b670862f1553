"""The packages in one order: imports point down it, and nothing of a package hides one of its modules."""

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import chicle

ROOT = Path(chicle.__file__).parent
LAYERS = (
    *(
        "_core",
        "_text",
        "errors",
        "_lock",
        "_write",
        "_checks",
        "_memory",
        "_html",
        "_pandas",
        "_progress",
        "_elsewhere",
    ),  # what everything may use
    *("domain", "codes", "query", "workload", "presence", "columns", "schema"),  # public: what is declared and asked
    *("counting", "privacy", "measurements"),  # private rows, the ledger, and what is bought through it
    *("denoising", "selection", "plans"),  # free: from measurements to measurements and choices
    *("codecs", "linked", "sources", "public"),  # where private rows come from, and public ones
    *("models", "discovery", "analyses", "partition", "releases", "mechanisms"),  # from a table to a release
    *("datasets", "synthesis", "evaluation", "reports", "comparison", "papers"),  # what is made and measured with it
    *("audit", "dossier"),  # what a reviewer asks for
    *("demo", "ui", "cli", "__main__", "__init__"),
)


def layer_of(file: Path) -> str:
    return file.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(file: Path) -> Iterator[str]:
    """The modules of chicle that a file imports, in any block of it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name} has a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (
            f"{name}.__init__" if name == "chicle" else name for name in names if f"{name}.".startswith("chicle.")
        )


FILES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(ROOT)) for file in FILES])
def test_imports_point_down(file: Path) -> None:
    own = LAYERS.index(layer_of(file))
    for name in imports(file):
        imported = name.split(".")[1]
        assert imported in LAYERS, f"{name} is imported from chicle itself; name the module that has it"
        assert LAYERS.index(imported) <= own, f"{imported} is above {LAYERS[own]}"


FORBIDDEN = {
    "mechanisms": ("chicle.sources", "chicle.codecs", "chicle.counting", "chicle.public"),
    "models": ("chicle.sources", "chicle.codecs", "chicle.privacy"),
    "denoising": ("chicle.sources", "chicle.codecs", "chicle.privacy"),
    "selection": ("chicle.sources", "chicle.codecs", "chicle.privacy"),
}


@pytest.mark.parametrize("package", FORBIDDEN)
def test_private_rows_are_out_of_reach(package: str) -> None:
    """A mechanism sees private rows through its desk alone, and post-processing not at all."""
    for file in sorted((ROOT / package).rglob("*.py")):
        if (package, file.name) != ("mechanisms", "base.py"):
            reached = [
                name for name in imports(file) if f"{name}.".startswith(tuple(f"{p}." for p in FORBIDDEN[package]))
            ]
            assert not reached, f"{file.name} imports {reached}"


def packages() -> list[ModuleType]:
    found = pkgutil.walk_packages(chicle.__path__, "chicle.")
    return [chicle, *(importlib.import_module(module.name) for module in found if module.ispkg)]


@pytest.mark.parametrize("package", packages(), ids=lambda package: package.__name__)
def test_nothing_hides_a_module(package: ModuleType) -> None:
    for module in pkgutil.iter_modules(package.__path__):
        found = getattr(package, module.name, None)
        assert found is None or inspect.ismodule(found), f"{package.__name__}.{module.name} is a module, and {found!r}"


def test_the_top_level_is_small_and_documented() -> None:
    assert 40 <= len(chicle.__all__) <= 65
    assert len(set(chicle.__all__)) == len(chicle.__all__)
    for name in chicle.__all__:
        assert inspect.getdoc(getattr(chicle, name)), name
