"""The primitives: a release is paid for first, by one function, and only integers are released."""

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chicle
from chicle import Budget, BudgetExceeded, Ledger, PrivacyError
from chicle.privacy import TestNoise, gaussian, laplace


def test_one_function_pays_for_every_release() -> None:
    """Whoever debits a ledger or takes its noise elsewhere in the library is found here."""
    package = Path(chicle.__file__).parent
    users = set()
    for path in set(package.rglob("*.py")) - {package / "audit/planted.py"}:  # bugs on purpose
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef):
                used = {ast.unparse(node) for node in ast.walk(function) if isinstance(node, ast.Attribute)}
                if used & {"ledger.debit", "ledger.noise", "ledger._noise"}:
                    users.add((path.relative_to(package).as_posix(), function.name))
    assert users == {("privacy/primitives.py", "_pay"), ("privacy/parallel.py", "parallel_ledgers")}


def test_noise_is_drawn_only_after_the_debit() -> None:
    class Untouchable(TestNoise):
        def rounded_gaussian(self, *_: Any) -> Any:
            raise AssertionError("noise was drawn")

        def discrete_laplace(self, *_: Any) -> Any:
            raise AssertionError("noise was drawn")

    ledger = Ledger(Budget(rho=0.1), noise=Untouchable(0))
    with pytest.raises(BudgetExceeded):
        gaussian([5], l2_sensitivity=1, sigma=1.0, ledger=ledger)
    with pytest.raises(BudgetExceeded):
        laplace([5], l1_sensitivity=1, scale=1.0, ledger=ledger)
    assert ledger.events == ()
    with pytest.raises(AssertionError, match="noise was drawn"):
        gaussian([5], l2_sensitivity=1, sigma=3.0, ledger=ledger)
    assert len(ledger.events) == 1, "and no refund when something fails afterwards"


def test_values_are_released_near_where_they_were() -> None:
    ledger = Ledger(Budget(rho=10))
    values = [[10**6, -(10**6)], [0, 5]]
    for noisy in (
        gaussian(values, l2_sensitivity=1, sigma=2.0, ledger=ledger),
        laplace(values, l1_sensitivity=1, scale=2.0, ledger=ledger),
    ):
        assert noisy.shape == (2, 2)
        assert abs(noisy - values).max() < 200
    assert [e.kind for e in ledger.events] == ["gaussian", "laplace"]
    assert [e.values for e in ledger.events] == [4, 4]


@pytest.mark.parametrize("values", [[0.5], ["a"], [True], [None], np.array([2**63], dtype=np.uint64)])
def test_only_integers_are_released(values: Any) -> None:
    ledger = Ledger(Budget(rho=10))
    with pytest.raises(PrivacyError, match=r"exact noise is for integers|beyond 2"):
        gaussian(values, l2_sensitivity=1, sigma=2.0, ledger=ledger)
    assert ledger.events == ()
