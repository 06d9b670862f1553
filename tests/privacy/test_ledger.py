"""The ledger: it records, refuses, adds up without overspending, and can be kept."""

import contextlib
import copy
import json
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chicle import ArtefactError, Budget, BudgetExceeded, Ledger, PrivacyError
from chicle.privacy import ExponentialEvent, GaussianEvent, LaplaceEvent, TestNoise, calibrate
from tests.privacy.test_events import event


def test_it_records_and_refuses() -> None:
    ledger = Ledger(Budget(rho=1.0))
    ledger.debit([event(1.0)])
    assert ledger.spent == pytest.approx(0.5)
    with pytest.raises(BudgetExceeded, match="nothing was spent"):
        ledger.debit([event(2.0), event(0.9)])
    assert ledger.events == (event(1.0),), "all or none"
    ledger.debit([event(2.0)])
    assert ledger.remaining == pytest.approx(1 - 0.5 - 0.125)


def test_an_iterator_is_recorded_too() -> None:
    ledger = Ledger(Budget(rho=1.0))
    ledger.debit(event(sigma) for sigma in (2.0, 3.0))
    assert len(ledger.events) == 2


@pytest.mark.parametrize("cost", [-5.0, 0.0, math.nan, math.inf])
def test_forged_events_are_refused(cost: float) -> None:
    class Forged(GaussianEvent):
        def rho(self, how: Any) -> float:  # noqa: ARG002
            return cost

    ledger = Ledger(Budget(rho=1.0))
    with pytest.raises(PrivacyError, match="Forged"):
        ledger.debit([Forged(purpose="", l2_sensitivity=1, sigma=1.0, values=1)])
    assert ledger.remaining == pytest.approx(1)


def test_the_budget_cannot_be_changed_afterwards() -> None:
    budget = Budget(epsilon=1, delta=1e-9)
    assert hash(budget) == hash(Budget(epsilon=1, delta=1e-9))
    with pytest.raises(AttributeError):
        budget.rho = 5.0  # type: ignore[misc]
    budget.promise()["epsilon"] = 50
    assert budget.promise()["epsilon"] == 1
    ledger = Ledger(budget)
    budget.__init__(rho=99.0)  # type: ignore[misc]
    with pytest.raises(BudgetExceeded):
        ledger.debit([event(1.0)])
    with pytest.raises(PrivacyError, match="Budget, not a float"):
        Ledger(1.0)  # type: ignore[arg-type]


def test_threads_cannot_overspend_together() -> None:
    ledger = Ledger(Budget(rho=1.0))

    def spend(_: int) -> int:
        with contextlib.suppress(BudgetExceeded):
            ledger.debit([event(5.0)])
            return 1
        return 0

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(spend, range(200))) == 49
    assert len(ledger.events) == 49
    assert ledger.spent <= 1


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=60), st.integers(1, 9))
def test_parts_of_a_budget_can_all_be_spent(parts: list[float], k: int) -> None:
    ledger = Ledger(Budget(epsilon=1, delta=1e-9))
    total = ledger.remaining
    for part in parts:
        ledger.debit([event(calibrate(total * part / math.fsum(parts), l2_sensitivity=k), k)])
    assert total * (1 - 1e-10) <= ledger.spent <= total


@given(st.lists(st.floats(0.3, 50.0), max_size=80))
def test_it_never_overspends(sigmas: list[float]) -> None:
    budget = Budget(mu=2.0)
    ledger = Ledger(budget)
    for sigma in sigmas:
        with contextlib.suppress(BudgetExceeded):
            ledger.debit([event(sigma)])
    exact = sum((1 / (2 * Fraction(e.sigma) ** 2) for e in ledger.events if isinstance(e, GaussianEvent)), Fraction())
    assert exact <= Fraction(ledger.spent)
    assert ledger.spent <= budget.rho
    assert 0 <= ledger.remaining <= budget.rho - ledger.spent


def test_epsilon_so_far() -> None:
    ledger = Ledger(Budget(epsilon=1, delta=1e-9))
    assert ledger.epsilon() == 0
    ledger.debit([event(calibrate(ledger.remaining))])
    assert ledger.epsilon() == pytest.approx(1, rel=1e-9)
    assert ledger.epsilon() <= 1
    assert ledger.epsilon(1e-5) < 1
    with pytest.raises(PrivacyError, match="no delta"):
        Ledger(Budget(rho=1)).epsilon()
    assert Ledger(Budget(rho=1)).epsilon(1e-9) == 0


@pytest.mark.parametrize("budget", [Budget(epsilon=1, delta=1e-9), Budget(rho=2.0), Budget(mu=1.5)])
def test_json_round_trip(budget: Budget) -> None:
    ledger = Ledger(budget)
    ledger.debit([event(20.0), ExponentialEvent(purpose="choice", epsilon=0.01, values=3)])
    ledger.debit([LaplaceEvent(purpose="total", clique=(), l1_sensitivity=1, scale=200.0, values=1)])
    again = Ledger.from_json(ledger.to_json())
    assert again.events == ledger.events
    assert again.budget == budget
    assert again.spent == ledger.spent
    assert again.protected
    assert again.to_json() == ledger.to_json()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.pop("budget"),
        lambda data: data.pop("protected"),
        lambda data: data.update(protected="yes"),
        lambda data: data["budget"].update(epsilon=-1),
        lambda data: data["budget"].update(rho=1),
        lambda data: data.update(format=2),
        lambda data: data.pop("format"),
        lambda data: data["events"][0].update(l2_sensitivity=1e300),
        lambda data: data["events"][0].update(l2_sensitivity=10**400),
        lambda data: data["events"][0].update(purpose=5),
        lambda data: data["events"][0].update(values="q"),
        lambda data: data["events"][0].update(clique="abc"),
        lambda data: data["events"][0].update(kind="secret"),
        lambda data: data["events"][0].update(sigma=0),
        lambda data: data["events"][0].update(sigma="5"),
        lambda data: data["events"][0].update(sigma=0.001),
        lambda data: data["events"][0].update(note="x"),
        lambda data: data["events"][0].pop("sigma"),
        lambda data: data.update(events=7),
    ],
)
def test_a_damaged_file_is_refused(damage: Any) -> None:
    ledger = Ledger(Budget(epsilon=1, delta=1e-9))
    ledger.debit([event(20.0)])
    data = json.loads(ledger.to_json())
    damage(data)
    with pytest.raises(ArtefactError, match="not a ledger"):
        Ledger.from_json(json.dumps(data))
    with pytest.raises(ArtefactError, match="not a ledger"):
        Ledger.from_json("no json at all")


def test_a_copy_cannot_spend_twice() -> None:
    ledger = Ledger(Budget(rho=1))
    assert copy.copy(ledger) is ledger
    assert copy.deepcopy({"ledger": ledger})["ledger"] is ledger
    ledger.debit([event(20.0)])
    pickled = pickle.loads(pickle.dumps(ledger))  # noqa: S301 - our own
    assert (pickled.events, pickled.spent, repr(pickled)) == (ledger.events, ledger.spent, repr(ledger))
    loaded = [Ledger.from_json(ledger.to_json()) for _ in range(2)]
    spends = [pickled.check, pickled.debit, pickle.loads(pickle.dumps(pickled)).debit]  # noqa: S301
    for spend in (*spends, loaded[0].check, loaded[0].debit, loaded[1].debit):
        with pytest.raises(PrivacyError, match="can only be read"):
            spend([event(20.0)])
    assert pickled.spent == ledger.spent


def test_it_shows_a_table() -> None:
    ledger = Ledger(Budget(epsilon=1, delta=1e-9))
    ledger.debit([event(100.0 + i) for i in range(100)])
    shown = repr(ledger)
    assert "a x b" in shown
    assert "sigma 100" in shown
    assert "more releases" in shown
    assert len(shown.splitlines()) < 30
    assert "of 1 at delta 1e-09" in shown.splitlines()[-2]
    assert "at most a factor of 2.7" in shown.splitlines()[-1]


def test_test_noise_marks_it_for_good() -> None:
    ledger = Ledger(Budget(rho=1), noise=TestNoise(1))
    assert not ledger.protected
    assert "NOT PRIVATE" in repr(ledger)
    assert not Ledger.from_json(ledger.to_json()).protected

    class Disguised(TestNoise):
        protected = True

    assert not Ledger(Budget(rho=1), noise=Disguised(1)).protected
