"""What events cost, and which events are impossible."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chicle import Budget, ChicleError, Ledger
from chicle.privacy import ExponentialEvent, GaussianEvent, LaplaceEvent, accounting, calibrate


def event(sigma: float, sensitivity: float = 1) -> GaussianEvent:
    return GaussianEvent(purpose="marginal", clique=("a", "b"), l2_sensitivity=sensitivity, sigma=sigma, values=6)


@given(st.floats(1e-3, 1e12), st.integers(1, 1000))
def test_a_gaussian_costs_at_least_its_exact_rho(sigma: float, k: int) -> None:
    exact = Fraction(k) ** 2 / (2 * Fraction(sigma) ** 2)
    cost = event(sigma, k).rho("gdp")
    assert exact <= Fraction(cost) <= exact * (1 + Fraction(1, 10**14))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int64])
def test_the_type_of_a_number_does_not_matter(kind: Any) -> None:
    sigma = kind(3.3)
    ledger = Ledger(Budget(epsilon=kind(1), delta=1e-9, accounting="zcdp-basic"))
    assert type(calibrate(kind(1), l2_sensitivity=kind(2))) is float
    cost = event(sigma, kind(3)).rho("gdp")
    assert Fraction(9) / (2 * Fraction(float(sigma)) ** 2) <= Fraction(cost)
    ledger.debit([event(kind(100), kind(1))])
    assert Ledger.from_json(ledger.to_json()).events == ledger.events


def test_pure_events_cost_more_in_gaussian_dp() -> None:
    draw = LaplaceEvent(purpose="scores", l1_sensitivity=2, scale=4.0, values=3)
    assert draw.epsilon == pytest.approx(0.5)
    assert draw.rho("zcdp") == pytest.approx(0.125)
    assert draw.rho("gdp") == pytest.approx(accounting.pure_mu(epsilon=0.5) ** 2 / 2)
    assert draw.rho("gdp") > draw.rho("zcdp")
    choice = ExponentialEvent(purpose="choice", epsilon=0.5, values=3)
    assert choice.rho("zcdp") == pytest.approx(0.5**2 / 8)
    assert choice.rho("gdp") == pytest.approx(accounting.choice_mu(epsilon=0.5) ** 2 / 2)
    assert choice.rho("zcdp") < choice.rho("gdp") < draw.rho("gdp") / 3.9


@pytest.mark.parametrize(
    "make",
    [
        lambda: event(0.0),
        lambda: event(math.nan),
        lambda: event(1.0, 0),
        lambda: event(1.0, 0.5),
        lambda: event(1.0, 10**400),
        lambda: GaussianEvent(purpose=5, l2_sensitivity=1, sigma=1.0, values=1),  # type: ignore[arg-type]
        lambda: GaussianEvent(purpose="", clique="abc", l2_sensitivity=1, sigma=1.0, values=1),  # type: ignore[arg-type]
        lambda: GaussianEvent(purpose="", l2_sensitivity=1, sigma=1.0, values=-1),
        lambda: event(1.0, math.inf),
        lambda: LaplaceEvent(purpose="", l1_sensitivity=-1, scale=1.0, values=1),
        lambda: LaplaceEvent(purpose="", l1_sensitivity=1, scale=1e-9, values=1),
        lambda: ExponentialEvent(purpose="", epsilon=0, values=1),
    ],
)
def test_impossible_events_are_refused(make: Any) -> None:
    with pytest.raises(ChicleError):
        make()
