"""Static proof: in the code of a fit, exact counts go to a release and nowhere else, and noise is drawn in one place.

A small taint analysis over the syntax tree. What the methods in `COUNTS` give is exact, and so is every name that is
assigned from it. An exact value may be given to a door, which debits and adds noise; its size may be asked for. It may
not be returned, yielded, kept in an attribute or a container, formatted, or given to anything that is called for its
effect. `test_desk` and `test_replay` check the same while code runs.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import chicle

ROOT = Path(chicle.__file__).parent

COUNTS = {"count", "distances", "dependence", "deviations", "largest", "person_rows", "between", "reduce"}
"""What gives exact values of private rows."""

GIVEN = {"exact", "histogram", "counts", "tallies"}
"""Arguments that hold them."""

DOORS = {"release_gaussian", "release_choice", "release_frequent", "release_pure", "_scores", "discover_bins", "buy"}
"""What turns them into releases; each is in the table of PRIVACY.md, or calls one that is (`test_docs`)."""

HARMLESS = {"size", "shape", "len"}
"""What may be asked of an exact value: the number of cells, which the query says."""

FITS = ("measurements", "discovery", "analyses", "mechanisms")

COUNTING = {
    "measurements/desk.py": "the desk: checked below",
    "measurements/cells.py": "deviations for the desk, which says PRIVATE",
    "discovery/edges.py": "checked below",
    "discovery/persons.py": "checked below",
    "discovery/resolution.py": "checked below",
    "analyses/sums.py": "checked below",
    "mechanisms/gem.py": "public records",
    "mechanisms/best_response.py": "synthetic records",
    "mechanisms/privsyn.py": "desk.dependence, a release",
    "analyses/design.py": "names in a formula",
    "analyses/formula.py": "atoms in a term",
    "measurements/measurement.py": "functools.reduce, over measurements",
    "measurements/contrasts.py": "functools.reduce, over axes",
}
"""Every file of a fit that calls something of these names, and of what."""

CHECKED = (
    "measurements/desk.py",
    "discovery/edges.py",
    "discovery/persons.py",
    "discovery/values.py",
    "analyses/sums.py",
)

DECLASSIFIED = {
    ("discovery/values.py", "buy"): "the labels at released positions: that they are frequent is the release"
}


def called(node: ast.AST) -> str:
    """The last name of what is called."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def names_called(tree: ast.AST) -> set[str]:
    return {called(node) for node in ast.walk(tree) if isinstance(node, ast.Call)}


def test_who_counts_is_known() -> None:
    found = set()
    for package in FITS:
        for file in sorted((ROOT / package).rglob("*.py")):
            if names_called(ast.parse(file.read_text(encoding="utf-8"))) & COUNTS:
                found.add(file.relative_to(ROOT).as_posix())
    assert found == set(COUNTING), "a file that counts private rows must go through a door: say here what it counts"


NOISE = {"rounded_gaussian", "discrete_laplace", "choose"}


def test_noise_of_a_ledger_is_drawn_by_the_primitives_alone() -> None:
    """`Desk.choose` has the name of a draw, and the mechanisms that call it; nobody else says `noise`."""
    drawing, debiting, holding = set(), set(), set()
    for file in sorted(ROOT.rglob("*.py")):
        name = file.relative_to(ROOT).as_posix()
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr == "noise" and ast.unparse(node.value).endswith("ledger"):
                holding.add(name)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr in NOISE and "noise" in ast.unparse(node.func.value).lower():
                    drawing.add(name)
                if node.func.attr == "debit":
                    debiting.add(name)
    planted = "audit/planted.py"  # bugs on purpose, which mark every ledger
    # Ledgers of groups of rows draw from the source of the ledger that paid for them.
    assert holding == {"privacy/primitives.py", "privacy/parallel.py", planted}
    assert drawing <= {"privacy/primitives.py", planted}
    assert debiting - {planted} <= {
        "privacy/primitives.py",
        "privacy/ledger.py",
        "ui/balance.py",
        "privacy/store.py",
        "privacy/parallel.py",
    }


LEAVING = (ast.Return, ast.Yield, ast.YieldFrom, ast.Raise, ast.Assert, ast.JoinedStr, ast.Expr)
Assigned = ast.Assign | ast.AugAssign | ast.AnnAssign


class Taint:
    """The exact values of a function, and what becomes of them."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self.function = function
        arguments = (*function.args.args, *function.args.kwonlyargs)
        self.exact = {argument.arg for argument in arguments if argument.arg in GIVEN} | COUNTS
        for _ in range(3):  # until nothing is added: names are assigned before they are used, but in loops
            for target, value in self.bindings():
                if self.holds(value):
                    self.exact |= {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}

    def bindings(self) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Every target with what is assigned to it."""
        for node in ast.walk(self.function):
            if isinstance(node, (ast.For, ast.comprehension)):
                yield node.target, node.iter
            elif isinstance(node, Assigned) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    yield target, node.value

    def holds(self, node: ast.AST) -> bool:
        """Whether an expression has an exact value in it."""
        if isinstance(node, ast.Call) and called(node) in DOORS | HARMLESS:
            return False
        if isinstance(node, ast.Attribute) and node.attr in HARMLESS:
            return False
        if isinstance(node, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            return False
        if isinstance(node, (ast.Name, ast.Attribute)) and called(node) in (
            self.exact if isinstance(node, ast.Name) else COUNTS
        ):
            return True
        return any(self.holds(child) for child in ast.iter_child_nodes(node))

    def leaks(self) -> Iterator[str]:
        """Every way in which an exact value leaves the function but by a door."""
        for node in ast.walk(self.function):
            if isinstance(node, LEAVING) and any(self.holds(child) for child in ast.iter_child_nodes(node)):
                yield f"line {node.lineno}: {type(node).__name__} with an exact value"
        for target, value in self.bindings():
            if isinstance(target, (ast.Attribute, ast.Subscript)) and self.holds(value):
                yield f"line {target.lineno}: an exact value is kept in {ast.unparse(target)}"


def leaks(function: ast.FunctionDef) -> list[str]:
    return list(Taint(function).leaks())


def functions(file: str) -> dict[str, ast.FunctionDef]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("file", CHECKED)
def test_exact_values_leave_by_doors_alone(file: str) -> None:
    checked = functions(file)
    assert any(names_called(function) & DOORS for function in checked.values()), "or there is nothing to check"
    for name, function in checked.items():
        if (file, name) not in DECLASSIFIED:
            assert leaks(function) == [], f"{file}: {name}"


LEAKS = {
    "returned": "def f(rows):\n exact = rows.count([()])\n return exact",
    "returned at once": "def f(rows):\n return rows.count([()])",
    "through a sum": "def f(rows):\n exact = rows.count([()])\n total = sum(exact[0]) + 1\n return total",
    "kept": "def f(self, rows):\n exact = rows.distances([()])\n self.last = exact",
    "kept in a list": "def f(rows, notes):\n for one in rows.count([()]):\n  notes.append(one)",
    "in an error": "def f(rows):\n exact = rows.count([()])\n raise ValueError(f'{exact} rows')",
    "in a loop": "def f(rows):\n best = 0\n for one in rows.count([()]):\n  best = max(best, one.max())\n return best",
    "given": "def f(exact):\n return exact.sum()",
    "beside a release": (
        "def f(rows, ledger):\n exact = rows.count([()])\n noisy = release_gaussian(exact, [], ledger)\n"
        " return noisy, exact[0].max()"
    ),
    "in an item": "def f(rows, seen):\n seen['n'] = rows.person_rows(3)",
}


@pytest.mark.parametrize("leak", LEAKS)
def test_leaks_are_found(leak: str) -> None:
    (function,) = (node for node in ast.walk(ast.parse(LEAKS[leak])) if isinstance(node, ast.FunctionDef))
    assert leaks(function), leak


def test_a_release_is_none() -> None:
    code = (
        "def f(rows, ledger):\n exact = rows.count([()])\n noisy = release_gaussian(exact, [], ledger)\n return noisy"
    )
    (function,) = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.FunctionDef))
    assert leaks(function) == []


def test_what_is_named_here_exists() -> None:
    for file in (*COUNTING, *CHECKED):
        assert Path(ROOT / file).exists()
    for file, name in DECLASSIFIED:
        assert name in functions(file)
