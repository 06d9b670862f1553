"""Accounting against mpmath at 60 digits and against dp-accounting: never on the unsafe side, and tight."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given, settings
from hypothesis import strategies as st

from chicle.errors import PrivacyError
from chicle.privacy import accounting

if TYPE_CHECKING:
    from collections.abc import Callable

EPSILONS = (1e-3, 1e-2, 0.1, 0.2, 1.0, 5.0, 20.0, 100.0)
DELTAS = (1e-15, 1e-9, 1e-5, 1e-2)
TARGETS = tuple(product(EPSILONS, DELTAS))
TIGHT = 1e-8

any_epsilon = st.floats(-12, 4).map(lambda exponent: 10**exponent)
any_delta = st.floats(-300, -0.01).map(lambda exponent: 10**exponent)
any_mu = st.floats(-12, 3).map(lambda exponent: 10**exponent)
wider = st.floats(1.0, 10.0)

# mpmath is untyped, so its numbers are Any.
mp = mpmath.mp.clone()
mp.dps = 60


def normal_cdf(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def true_gdp_delta(epsilon: Any, mu: Any) -> Any:
    """Return Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2), as written, at enough digits to survive it."""
    epsilon, mu = mp.mpf(epsilon), mp.mpf(mu)
    return normal_cdf(-epsilon / mu + mu / 2) - mp.exp(epsilon) * normal_cdf(-epsilon / mu - mu / 2)


def true_zcdp_delta(epsilon: Any, rho: Any) -> Any:
    """Return [A] Proposition 4, as written, minimised over log(alpha - 1) by golden sections."""
    epsilon, rho = mp.mpf(epsilon), mp.mpf(rho)

    def log_delta(t: Any) -> Any:
        alpha = 1 + mp.exp(t)
        return (alpha - 1) * (alpha * rho - epsilon) - mp.log(alpha - 1) + alpha * mp.log(1 - 1 / alpha)

    ratio = (mp.sqrt(5) - 1) / 2
    low, high = mp.mpf(-40), mp.mpf(40)
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = log_delta(left), log_delta(right)
    while high - low > mp.mpf("1e-15"):  # the minimum is flat, so its value is good to 1e-30
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = log_delta(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = log_delta(right)
    return mp.exp(min(at_left, at_right))


def assert_just_above(value: float, truth: Any) -> None:
    assert truth <= value <= truth * (1 + TIGHT)


@pytest.mark.parametrize("mu", [1e-12, 1e-6, 1e-4, 0.00999, 0.01001, 0.1, 1.0, 5.0, 14.0, 60.0])
def test_gdp_delta_is_just_above_the_truth(mu: float) -> None:
    # Standardised distances to the mean, from delta near 1 to delta near 1e-300.
    for a in (-8.9, -5.2, -3.0, -0.5, 0.0, 0.5, 1.0, 3.9, 4.1, 8.0, 20.0, 37.0):
        epsilon = mu * (a + mu / 2)
        if epsilon >= 0:
            assert_just_above(accounting.gdp_delta(epsilon=epsilon, mu=mu), true_gdp_delta(epsilon, mu))


def test_gdp_delta_at_the_edges() -> None:
    assert_just_above(accounting.gdp_delta(epsilon=0.0, mu=1.0), true_gdp_delta(0, 1))
    assert accounting.gdp_delta(epsilon=1.0, mu=0.0) == 0
    assert accounting.gdp_delta(epsilon=5000.0, mu=1.0) == math.ulp(0.0)  # underflow is rounded up too
    assert accounting.gdp_delta(epsilon=1.0, mu=1e200) == 1
    assert_just_above(accounting.gdp_delta(epsilon=5000.0, mu=95.0), true_gdp_delta(5000, 95))


@pytest.mark.parametrize("epsilon", [1e6, 1e9, 1e12, 1e15])
def test_gdp_delta_is_safe_where_epsilon_dwarfs_the_last_digit(epsilon: float) -> None:
    for delta in np.geomspace(1e-30, 0.9, 50):
        mu = accounting.gdp_mu(epsilon=epsilon, delta=float(delta))
        assert true_gdp_delta(epsilon, mu) <= delta


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_gdp_calibration_is_safe_and_tight(epsilon: float, delta: float) -> None:
    mu = accounting.gdp_mu(epsilon=epsilon, delta=delta)
    assert true_gdp_delta(epsilon, mu) <= delta < true_gdp_delta(epsilon, mp.mpf(mu) * (1 + TIGHT))
    back = accounting.gdp_epsilon(mu=mu, delta=delta)
    assert true_gdp_delta(back, mu) <= delta < true_gdp_delta(mp.mpf(back) * (1 - TIGHT), mu)
    assert back == pytest.approx(epsilon, rel=TIGHT)


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_zcdp_calibration_is_safe_and_tight(epsilon: float, delta: float) -> None:
    rho = accounting.zcdp_rho(epsilon=epsilon, delta=delta)
    truth = true_zcdp_delta(epsilon, rho)
    assert truth <= delta < true_zcdp_delta(epsilon, mp.mpf(rho) * (1 + TIGHT))
    assert_just_above(accounting.zcdp_delta(epsilon=epsilon, rho=rho), truth)
    back = accounting.zcdp_epsilon(rho=rho, delta=delta)
    assert true_zcdp_delta(back, rho) <= delta < true_zcdp_delta(mp.mpf(back) * (1 - TIGHT), rho)
    assert back == pytest.approx(epsilon, rel=TIGHT)


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_basic_conversion_is_safe_and_tight(epsilon: float, delta: float) -> None:
    def true_epsilon(rho: Any) -> Any:
        return rho + 2 * mp.sqrt(rho * mp.log(1 / mp.mpf(delta)))

    rho = accounting.zcdp_basic_rho(epsilon=epsilon, delta=delta)
    assert true_epsilon(mp.mpf(rho)) <= epsilon < true_epsilon(mp.mpf(rho) * (1 + TIGHT))
    assert_just_above(accounting.zcdp_basic_epsilon(rho=rho, delta=delta), true_epsilon(mp.mpf(rho)))


@pytest.mark.parametrize(
    ("epsilon", "delta", "basic", "zcdp", "gdp"),
    [
        (1.0, 1e-9, "0.01178", "0.01497", "0.01656"),
        (0.2, 1e-9, "0.00048", "0.00068", "0.00075"),
        (5.0, 1e-9, "0.2699", "0.3117", "0.3405"),
        (1.0, 1e-5, "0.0208", "0.0306", "0.0359"),
    ],
)
def test_published_budgets(epsilon: float, delta: float, basic: str, zcdp: str, gdp: str) -> None:
    digits = len(basic) - len("0.")
    assert f"{accounting.zcdp_basic_rho(epsilon=epsilon, delta=delta):.{digits}f}" == basic
    assert f"{accounting.zcdp_rho(epsilon=epsilon, delta=delta):.{digits}f}" == zcdp
    assert f"{accounting.gdp_mu(epsilon=epsilon, delta=delta) ** 2 / 2:.{digits}f}" == gdp


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_gdp_agrees_with_dp_accounting(epsilon: float, delta: float) -> None:
    mu = accounting.gdp_mu(epsilon=epsilon, delta=delta)
    assert 1 / mu == pytest.approx(dp_accounting.get_sigma_gaussian(epsilon, delta), rel=1e-7)
    assert epsilon == pytest.approx(dp_accounting.get_epsilon_gaussian(1 / mu, delta), rel=1e-7)


def test_gdp_composition_agrees_with_privacy_loss_distributions() -> None:
    sigmas = (8.0, 12.0, 30.0)
    accountant = PLDAccountant(value_discretization_interval=1e-4)
    for sigma in sigmas:
        accountant.compose(dp_accounting.GaussianDpEvent(sigma))
    mu = math.hypot(*(1 / sigma for sigma in sigmas))
    for delta in (1e-9, 1e-5, 1e-2):
        pessimistic = accountant.get_epsilon(delta)
        assert accounting.gdp_epsilon(mu=mu, delta=delta) <= pessimistic
        assert accounting.gdp_epsilon(mu=mu, delta=delta) == pytest.approx(pessimistic, abs=1e-3)


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_zcdp_agrees_with_dp_accounting(epsilon: float, delta: float) -> None:
    rho = accounting.zcdp_rho(epsilon=epsilon, delta=delta)
    orders = 1 + np.geomspace(1e-3, 1e7, 20_001)
    on_grid, _ = rdp_privacy_accountant.compute_epsilon(orders, orders * rho, delta)
    assert accounting.zcdp_epsilon(rho=rho, delta=delta) == pytest.approx(on_grid, rel=1e-6)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 1e-3, 0.1, 1.0, 5.0, 20.0, 100.0, 700.0, 5000.0])
def test_pure_mu_meets_the_kink(epsilon: float) -> None:
    mu = mp.mpf(accounting.pure_mu(epsilon=epsilon))
    kink = 1 / (1 + mp.exp(mp.mpf(epsilon)))
    assert normal_cdf(-mu / 2) <= kink < normal_cdf(-mu / 2 * (1 - TIGHT))


@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 0.1, 1.0, 5.0, 100.0])
def test_pure_mu_bounds_the_trade_off_of_pure_dp(epsilon: float) -> None:
    mu, growth = mp.mpf(accounting.pure_mu(epsilon=epsilon)), mp.exp(mp.mpf(epsilon))
    for z in mp.linspace(-10, 10 + mu, 201):
        alpha = normal_cdf(-z)  # type I error; G_mu(alpha) = Phi(z - mu)
        assert normal_cdf(z - mu) <= max(1 - growth * alpha, (1 - alpha) / growth)


@settings(max_examples=500, deadline=None)
@given(mu=any_mu, a=st.floats(-10.0, 40.0))
def test_gdp_delta_is_safe_anywhere(mu: float, a: float) -> None:
    epsilon = max(0.0, mu * (a + mu / 2))
    assert true_gdp_delta(epsilon, mu) <= accounting.gdp_delta(epsilon=epsilon, mu=mu) <= 1


@settings(max_examples=100, deadline=None)
@given(epsilon=any_epsilon, mu=any_mu, factor=wider)
def test_delta_falls_with_epsilon_and_grows_with_the_budget(epsilon: float, mu: float, factor: float) -> None:
    delta = accounting.gdp_delta(epsilon=epsilon, mu=mu)
    assert accounting.gdp_delta(epsilon=epsilon * factor, mu=mu) <= delta * (1 + TIGHT)
    assert accounting.gdp_delta(epsilon=epsilon, mu=mu * factor) * (1 + TIGHT) >= delta
    delta = accounting.zcdp_delta(epsilon=epsilon, rho=mu)
    assert accounting.zcdp_delta(epsilon=epsilon * factor, rho=mu) <= delta * (1 + TIGHT)
    assert accounting.zcdp_delta(epsilon=epsilon, rho=mu * factor) * (1 + TIGHT) >= delta


@settings(max_examples=100, deadline=None)
@given(epsilon=any_epsilon, delta=any_delta, factor=wider)
def test_budgets_grow_with_epsilon_and_delta(epsilon: float, delta: float, factor: float) -> None:
    for budget_of in (accounting.gdp_mu, accounting.zcdp_rho, accounting.zcdp_basic_rho):
        budget = budget_of(epsilon=epsilon, delta=delta)
        assert budget_of(epsilon=epsilon * factor, delta=delta) * (1 + TIGHT) >= budget
        assert budget_of(epsilon=epsilon, delta=min(delta * factor, 0.99)) * (1 + TIGHT) >= budget


@settings(max_examples=100, deadline=None)
@given(epsilon=any_epsilon, delta=any_delta)
def test_conversions_are_ordered_from_exact_to_crude(epsilon: float, delta: float) -> None:
    basic = accounting.zcdp_basic_rho(epsilon=epsilon, delta=delta)
    zcdp = accounting.zcdp_rho(epsilon=epsilon, delta=delta)
    assert 0 < basic <= zcdp <= accounting.gdp_mu(epsilon=epsilon, delta=delta) ** 2 / 2 * (1 + TIGHT)


@settings(max_examples=100, deadline=None)
@given(epsilon=any_epsilon, delta=any_delta)
def test_a_calibrated_budget_costs_its_target_at_most(epsilon: float, delta: float) -> None:
    mu = accounting.gdp_mu(epsilon=epsilon, delta=delta)
    rho = accounting.zcdp_rho(epsilon=epsilon, delta=delta)
    assert accounting.gdp_delta(epsilon=epsilon, mu=mu) <= delta
    assert accounting.zcdp_delta(epsilon=epsilon, rho=rho) <= delta * (1 + 1e-6)  # both ways are rounded against us
    # Where delta nearly suffices alone, epsilon is steep in the budget and only its absolute error is small.
    assert accounting.gdp_epsilon(mu=mu, delta=delta) <= epsilon * (1 + TIGHT) + 1e-12
    assert accounting.zcdp_epsilon(rho=rho, delta=delta) <= epsilon * (1 + TIGHT) + 1e-12


@settings(max_examples=100, deadline=None)
@given(epsilon=any_epsilon, factor=wider)
def test_pure_mu_grows_with_epsilon(epsilon: float, factor: float) -> None:
    assert accounting.pure_mu(epsilon=epsilon) <= accounting.pure_mu(epsilon=epsilon * factor)


def test_little_enough_noise_needs_no_epsilon() -> None:
    # At epsilon 0 the exact delta is the total variation distance, erf(mu / sqrt 8), about 0.4 mu.
    assert accounting.gdp_epsilon(mu=0.02, delta=1e-2) == 0
    assert accounting.gdp_epsilon(mu=0.03, delta=1e-2) > 0
    assert accounting.zcdp_epsilon(rho=1e-5, delta=1e-2) == 0
    for function in (accounting.zcdp_epsilon, accounting.zcdp_basic_epsilon):
        assert function(rho=0.0, delta=1e-9) == 0
    assert accounting.gdp_epsilon(mu=0.0, delta=1e-9) == 0
    assert accounting.zcdp_delta(epsilon=1.0, rho=0.0) == 0


@pytest.mark.parametrize("extreme", [5e-324, 1e-300, 1e-100, 1e100, 1e300])
@pytest.mark.parametrize("delta", [5e-324, 1e-300, 0.5, 1 - 2**-53])
def test_extreme_input_stays_on_the_safe_side(extreme: float, delta: float) -> None:
    mu = accounting.gdp_mu(epsilon=extreme, delta=delta)
    assert accounting.gdp_delta(epsilon=extreme, mu=mu) <= delta
    assert 0 <= accounting.zcdp_basic_rho(epsilon=extreme, delta=delta) < math.inf
    assert 0 <= accounting.zcdp_rho(epsilon=extreme, delta=delta) < math.inf
    # rho-zCDP costs at least about rho, and mu-GDP about mu^2/2, however lax delta is below 1.
    if extreme > 1:
        assert accounting.zcdp_epsilon(rho=extreme, delta=delta) > extreme * (1 - 1e-9)
        assert accounting.gdp_epsilon(mu=extreme, delta=delta) / extreme > extreme / 2 * (1 - 1e-9)
        assert accounting.pure_mu(epsilon=extreme) > math.sqrt(8) * math.sqrt(extreme) * (1 - 1e-9)


GOOD = {"epsilon": 1.0, "delta": 1e-9, "mu": 0.1, "rho": 0.01}
PARAMETERS: list[tuple[Callable[..., float], tuple[str, ...]]] = [
    (accounting.gdp_delta, ("epsilon", "mu")),
    (accounting.gdp_epsilon, ("mu", "delta")),
    (accounting.gdp_mu, ("epsilon", "delta")),
    (accounting.zcdp_delta, ("epsilon", "rho")),
    (accounting.zcdp_epsilon, ("rho", "delta")),
    (accounting.zcdp_rho, ("epsilon", "delta")),
    (accounting.zcdp_basic_epsilon, ("rho", "delta")),
    (accounting.zcdp_basic_rho, ("epsilon", "delta")),
    (accounting.pure_mu, ("epsilon",)),
]


@pytest.mark.parametrize(("function", "names"), PARAMETERS)
def test_bad_input_is_refused_by_name(function: Callable[..., float], names: tuple[str, ...]) -> None:
    good = {name: GOOD[name] for name in names}
    for name in names:
        bad = [-1.0, -1e-300, math.nan, math.inf, -math.inf]
        bad += [0.0, 1.0, 2.0] if name == "delta" else []
        bad += [0.0] if name == "epsilon" and not function.__name__.endswith("_delta") else []
        for value in bad:
            with pytest.raises(PrivacyError, match=f"^{name} must .*, not {value!r}; "):
                function(**{**good, name: value})


@pytest.mark.parametrize(("function", "names"), PARAMETERS)
def test_numpy_scalars_and_integers_give_the_same_float(function: Callable[..., float], names: tuple[str, ...]) -> None:
    plain = {name: 1.0 if name != "delta" else 1e-9 for name in names}
    expected = function(**plain)
    assert function(**{name: np.float64(value) for name, value in plain.items()}) == expected
    assert function(**{name: 1 if name != "delta" else 1e-9 for name in names}) == expected
    assert type(function(**{name: np.float64(value) for name, value in plain.items()})) is float
