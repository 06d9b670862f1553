from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chicle.selection.expected_error import Prospects
from chicle.selection.price import choose, find_price, grid


def prospects_of(best: Any, unmeasured: Any) -> Prospects:
    """Any errors will do; which pairs and levels they are of does not matter here."""
    number = len(best)
    return Prospects(
        np.zeros((number, 2), dtype=np.int64),
        np.zeros(number),
        np.array(unmeasured, dtype=np.float64),
        np.array(best, dtype=np.float64),
        np.zeros((*np.shape(best), 2), dtype=np.int8),
        np.array(best, dtype=np.float64),
    )


@st.composite
def problems(draw: st.DrawFn, most: int, noises: int) -> tuple[Prospects, Any, float]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    number = draw(st.integers(1, most))
    best = np.sort(rng.exponential(100, (number, noises)), axis=1)
    unmeasured = rng.exponential(draw(st.sampled_from([30.0, 200.0])), number)
    budget = 10.0 ** draw(st.floats(-6, 2))
    return prospects_of(best, unmeasured), grid(budget)[:noises], budget


def error_and_cost(found: Prospects, sigmas: Any, places: Any) -> tuple[float, float]:
    error = cost = 0.0
    for p, place in enumerate(places):
        error += found.unmeasured[p] if place < 0 else found.best[p, place]
        cost += 0.0 if place < 0 else 1 / sigmas[place] ** 2
    return float(error), float(cost)


@given(problems(most=4, noises=5), st.floats(-4, 12))
def test_no_choice_that_spends_no_more_has_less_error(problem: tuple[Prospects, Any, float], exponent: float) -> None:
    """At any price, by looking at all choices (Everett 1963); at the price found, within the budget too."""
    found, sigmas, budget = problem
    for price in (10.0**exponent, find_price(found, sigmas, budget)):
        error, cost = error_and_cost(found, sigmas, choose(found, sigmas, price))
        for places in product(range(-1, sigmas.size), repeat=len(found.best)):
            other, spent = error_and_cost(found, sigmas, places)
            if spent <= cost:
                assert error <= other * (1 + 1e-9)
    assert cost <= budget * (1 + 1e-9)


@given(problems(most=6, noises=40), st.floats(-6, 12))
def test_each_pair_alone_takes_what_is_best_for_it(problem: tuple[Prospects, Any, float], exponent: float) -> None:
    found, sigmas, _ = problem
    price = 10.0**exponent
    for p, place in enumerate(choose(found, sigmas, price)):
        with_price = [float(found.best[p, s]) + price / sigma**2 for s, sigma in enumerate(sigmas)]
        taken = found.unmeasured[p] if place < 0 else with_price[place]
        assert taken == pytest.approx(min(found.unmeasured[p], *with_price))


@given(problems(most=30, noises=40), st.floats(-6, 12), st.floats(1, 100))
def test_a_higher_price_buys_less(problem: tuple[Prospects, Any, float], exponent: float, factor: float) -> None:
    found, sigmas, _ = problem
    _, cheap = error_and_cost(found, sigmas, choose(found, sigmas, 10.0**exponent))
    _, dear = error_and_cost(found, sigmas, choose(found, sigmas, factor * 10.0**exponent))
    assert dear <= cheap * (1 + 1e-9)


@pytest.mark.parametrize("budget", [1e-6, 0.01, 1.0, 50.0])
@pytest.mark.parametrize("seed", range(3))
def test_almost_all_of_the_budget_is_spent(budget: float, seed: int) -> None:
    """Errors as tables have them: of many cells, each with its noise."""
    rng = np.random.default_rng(seed)
    sigmas = grid(budget)
    cells = rng.integers(4, 5_000, 400)
    mean = rng.uniform(10, 1_000, 400) * budget**-0.5
    best = cells[:, None] * sigmas * mean[:, None] / (mean[:, None] + sigmas)
    found = prospects_of(best, cells * mean * rng.uniform(0, 0.7, 400))
    places = choose(found, sigmas, find_price(found, sigmas, budget))
    _, cost = error_and_cost(found, sigmas, places)
    assert 0.95 * budget < cost <= budget * (1 + 1e-9)
    assert 0 < (places >= 0).sum() < 400


@given(st.floats(-6, 3))
def test_a_lone_pair_gets_all(exponent: float) -> None:
    budget = 10.0**exponent
    sigmas = grid(budget)
    found = prospects_of([10 * sigmas], [1e9 * sigmas[0]])
    assert choose(found, sigmas, find_price(found, sigmas, budget)).tolist() == [0]


def test_what_tells_nothing_is_not_bought() -> None:
    sigmas = grid(1.0)
    found = prospects_of(np.full((3, sigmas.size), 5.0), [5.0, 4.0, np.nextafter(5.0, 0)])
    assert choose(found, sigmas, find_price(found, sigmas, 1.0)).tolist() == [-1, -1, -1]
    impossible = prospects_of(np.full((1, sigmas.size), np.inf), [1e12])
    assert choose(impossible, sigmas, find_price(impossible, sigmas, 1.0)).tolist() == [-1]
    nobody = prospects_of(np.empty((0, sigmas.size)), [])
    assert choose(nobody, sigmas, find_price(nobody, sigmas, 1.0)).tolist() == []


@given(st.floats(-9, 4))
def test_the_grid_starts_at_the_whole_budget(exponent: float) -> None:
    sigmas = grid(10.0**exponent)
    assert 1 / sigmas[0] ** 2 == pytest.approx(10.0**exponent)
    np.testing.assert_allclose(sigmas[1:] / sigmas[:-1], 1.25)
    assert 1 / sigmas[-1] ** 2 < 1e-7 * 10.0**exponent, "down to what thousands of pairs may share"
