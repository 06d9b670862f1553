"""Budgets in their three forms, and noise calibrated to them."""

import math
from fractions import Fraction
from typing import Any

import pytest

from chicle import Budget, PrivacyError
from chicle.privacy import calibrate


def test_three_forms() -> None:
    assert Budget(epsilon=1, delta=1e-9).rho == pytest.approx(0.01656, abs=5e-6)
    assert Budget(epsilon=1, delta=1e-9, accounting="zcdp").rho == pytest.approx(0.01497, abs=5e-6)
    assert Budget(epsilon=1, delta=1e-9, accounting="zcdp-basic").rho == pytest.approx(0.01178, abs=5e-6)
    assert Budget(rho=0.5).rho == 0.5
    assert Budget(rho=0.5).accounting == "zcdp"
    assert Budget(mu=1.0).rho == pytest.approx(0.5)
    assert Budget(mu=1.0).rho <= 0.5


@pytest.mark.parametrize("how", ["gdp", "zcdp", "zcdp-basic"])
def test_the_promise_is_kept(how: Any) -> None:
    for epsilon in (1e-3, 0.2, 1.0, 20.0, 100.0):
        budget = Budget(epsilon=epsilon, delta=1e-9, accounting=how)
        assert budget.epsilon_at(1e-9) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({}, "given nothing"),
        ({"epsilon": 1}, "given epsilon"),
        ({"delta": 1e-9}, "given delta"),
        ({"epsilon": 1, "delta": 1e-9, "rho": 1}, "given epsilon and delta and rho"),
        ({"rho": 1, "mu": 1}, "given rho and mu"),
        ({"epsilon": 0, "delta": 1e-9}, "epsilon must be finite and above 0"),
        ({"epsilon": -1, "delta": 1e-9}, "epsilon must be finite and above 0"),
        ({"epsilon": math.nan, "delta": 1e-9}, "epsilon must be finite and above 0"),
        ({"epsilon": 1, "delta": 0}, "delta must lie between 0 and 1"),
        ({"epsilon": 1, "delta": 1}, "delta must lie between 0 and 1"),
        ({"rho": 0}, "rho must be finite"),
        ({"rho": "1"}, "rho must be a number"),
        ({"rho": 10**400}, "rho must be a number that a float can hold"),
        ({"mu": math.inf}, "mu must be finite"),
        ({"rho": 1, "accounting": "gdp"}, "accounted in 'zcdp'"),
        ({"epsilon": 1, "delta": 1e-9, "accounting": "rdp"}, "accounting must be one of"),
    ],
)
def test_bad_budgets_are_refused(arguments: Any, rule: str) -> None:
    with pytest.raises(PrivacyError, match=rule):
        Budget(**arguments)


def test_calibrated_noise_costs_what_it_should() -> None:
    sigma = calibrate(0.02, l2_sensitivity=3)
    exact = Fraction(9) / (2 * Fraction(sigma) ** 2)
    assert exact <= Fraction(0.02)
    assert float(exact) == pytest.approx(0.02, rel=1e-11)
    assert calibrate(Budget(rho=0.02)) == calibrate(0.02)
    for rho, sensitivity in ((0, 1), (-1, 1), (math.inf, 1), (1, 0), (1, math.nan)):
        with pytest.raises(PrivacyError, match="finite and above 0"):
            calibrate(rho, l2_sensitivity=sensitivity)
