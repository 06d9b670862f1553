import contextlib
import copy
import json
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chicle import ArtefactError, Budget, BudgetExceeded, ChicleError, Ledger, PrivacyError
from chicle.privacy import (
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    TestNoise,
    accounting,
    calibrate,
    gaussian,
    laplace,
)


def event(sigma: float, sensitivity: float = 1) -> GaussianEvent:
    return GaussianEvent(purpose="marginal", clique=("a", "b"), l2_sensitivity=sensitivity, sigma=sigma, values=6)


class TestBudget:
    def test_three_forms(self) -> None:
        assert Budget(epsilon=1, delta=1e-9).rho == pytest.approx(0.01656, abs=5e-6)
        assert Budget(epsilon=1, delta=1e-9, accounting="zcdp").rho == pytest.approx(0.01497, abs=5e-6)
        assert Budget(epsilon=1, delta=1e-9, accounting="zcdp-basic").rho == pytest.approx(0.01178, abs=5e-6)
        assert Budget(rho=0.5).rho == 0.5
        assert Budget(rho=0.5).accounting == "zcdp"
        assert Budget(mu=1.0).rho == pytest.approx(0.5)
        assert Budget(mu=1.0).rho <= 0.5

    @pytest.mark.parametrize("how", ["gdp", "zcdp", "zcdp-basic"])
    def test_the_promise_is_kept(self, how: Any) -> None:
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
    def test_bad_budgets_are_refused(self, arguments: Any, rule: str) -> None:
        with pytest.raises(PrivacyError, match=rule):
            Budget(**arguments)

    def test_calibrated_noise_costs_what_it_should(self) -> None:
        sigma = calibrate(0.02, l2_sensitivity=3)
        exact = Fraction(9) / (2 * Fraction(sigma) ** 2)
        assert exact <= Fraction(0.02)
        assert float(exact) == pytest.approx(0.02, rel=1e-11)
        assert calibrate(Budget(rho=0.02)) == calibrate(0.02)
        for rho, sensitivity in ((0, 1), (-1, 1), (math.inf, 1), (1, 0), (1, math.nan)):
            with pytest.raises(PrivacyError, match="finite and above 0"):
                calibrate(rho, l2_sensitivity=sensitivity)


class TestCosts:
    @given(st.floats(1e-3, 1e12), st.integers(1, 1000))
    def test_a_gaussian_costs_at_least_its_exact_rho(self, sigma: float, k: int) -> None:
        exact = Fraction(k) ** 2 / (2 * Fraction(sigma) ** 2)
        cost = event(sigma, k).rho("gdp")
        assert exact <= Fraction(cost) <= exact * (1 + Fraction(1, 10**14))

    @pytest.mark.parametrize("kind", [np.float16, np.float32, np.int64])
    def test_the_type_of_a_number_does_not_matter(self, kind: Any) -> None:
        sigma = kind(3.3)
        ledger = Ledger(Budget(epsilon=kind(1), delta=1e-9, accounting="zcdp-basic"))
        assert type(calibrate(kind(1), l2_sensitivity=kind(2))) is float
        cost = event(sigma, kind(3)).rho("gdp")
        assert Fraction(9) / (2 * Fraction(float(sigma)) ** 2) <= Fraction(cost)
        ledger.debit([event(kind(100), kind(1))])
        assert Ledger.from_json(ledger.to_json()).events == ledger.events

    def test_pure_events_cost_more_in_gaussian_dp(self) -> None:
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
    def test_impossible_events_are_refused(self, make: Any) -> None:
        with pytest.raises(ChicleError):
            make()


class TestLedger:
    def test_it_records_and_refuses(self) -> None:
        ledger = Ledger(Budget(rho=1.0))
        ledger.debit([event(1.0)])
        assert ledger.spent == pytest.approx(0.5)
        with pytest.raises(BudgetExceeded, match="nothing was spent"):
            ledger.debit([event(2.0), event(0.9)])
        assert ledger.events == (event(1.0),), "all or none"
        ledger.debit([event(2.0)])
        assert ledger.remaining == pytest.approx(1 - 0.5 - 0.125)

    def test_an_iterator_is_recorded_too(self) -> None:
        ledger = Ledger(Budget(rho=1.0))
        ledger.debit(event(sigma) for sigma in (2.0, 3.0))
        assert len(ledger.events) == 2

    @pytest.mark.parametrize("cost", [-5.0, 0.0, math.nan, math.inf])
    def test_forged_events_are_refused(self, cost: float) -> None:
        class Forged(GaussianEvent):
            def rho(self, how: Any) -> float:  # noqa: ARG002
                return cost

        ledger = Ledger(Budget(rho=1.0))
        with pytest.raises(PrivacyError, match="Forged"):
            ledger.debit([Forged(purpose="", l2_sensitivity=1, sigma=1.0, values=1)])
        assert ledger.remaining == pytest.approx(1)

    def test_the_budget_cannot_be_changed_afterwards(self) -> None:
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

    def test_threads_cannot_overspend_together(self) -> None:
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
    def test_parts_of_a_budget_can_all_be_spent(self, parts: list[float], k: int) -> None:
        ledger = Ledger(Budget(epsilon=1, delta=1e-9))
        total = ledger.remaining
        for part in parts:
            ledger.debit([event(calibrate(total * part / math.fsum(parts), l2_sensitivity=k), k)])
        assert total * (1 - 1e-10) <= ledger.spent <= total

    @given(st.lists(st.floats(0.3, 50.0), max_size=80))
    def test_it_never_overspends(self, sigmas: list[float]) -> None:
        budget = Budget(mu=2.0)
        ledger = Ledger(budget)
        for sigma in sigmas:
            with contextlib.suppress(BudgetExceeded):
                ledger.debit([event(sigma)])
        exact = sum(
            (1 / (2 * Fraction(e.sigma) ** 2) for e in ledger.events if isinstance(e, GaussianEvent)), Fraction()
        )
        assert exact <= Fraction(ledger.spent)
        assert ledger.spent <= budget.rho
        assert 0 <= ledger.remaining <= budget.rho - ledger.spent

    def test_epsilon_so_far(self) -> None:
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
    def test_json_round_trip(self, budget: Budget) -> None:
        ledger = Ledger(budget)
        ledger.debit([event(20.0), ExponentialEvent(purpose="choice", epsilon=0.01, values=3)])
        ledger.debit([LaplaceEvent(purpose="total", clique=(), l1_sensitivity=1, scale=200.0, values=1)])
        again = Ledger.from_json(ledger.to_json())
        assert again.events == ledger.events
        assert again.budget == budget
        assert again.spent == ledger.spent
        assert again.private
        assert again.to_json() == ledger.to_json()

    @pytest.mark.parametrize(
        "damage",
        [
            lambda data: data.pop("budget"),
            lambda data: data.pop("private"),
            lambda data: data.update(private="yes"),
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
    def test_a_damaged_file_is_refused(self, damage: Any) -> None:
        ledger = Ledger(Budget(epsilon=1, delta=1e-9))
        ledger.debit([event(20.0)])
        data = json.loads(ledger.to_json())
        damage(data)
        with pytest.raises(ArtefactError, match="not a ledger"):
            Ledger.from_json(json.dumps(data))
        with pytest.raises(ArtefactError, match="not a ledger"):
            Ledger.from_json("no json at all")

    def test_a_copy_cannot_spend_twice(self) -> None:
        ledger = Ledger(Budget(rho=1))
        assert copy.copy(ledger) is ledger
        assert copy.deepcopy({"ledger": ledger})["ledger"] is ledger
        ledger.debit([event(20.0)])
        pickled = pickle.loads(pickle.dumps(ledger))  # noqa: S301 - our own
        assert (pickled.events, pickled.spent, repr(pickled)) == (ledger.events, ledger.spent, repr(ledger))
        for spend in (pickled.check, pickled.debit, pickle.loads(pickle.dumps(pickled)).debit):  # noqa: S301
            with pytest.raises(PrivacyError, match="there to be read"):
                spend([event(20.0)])
        assert pickled.spent == ledger.spent

    def test_it_shows_a_table(self) -> None:
        ledger = Ledger(Budget(epsilon=1, delta=1e-9))
        ledger.debit([event(100.0 + i) for i in range(100)])
        shown = repr(ledger)
        assert "a x b" in shown
        assert "sigma 100" in shown
        assert "more releases" in shown
        assert len(shown.splitlines()) < 30
        assert "of 1 at delta 1e-09" in shown.splitlines()[-1]

    def test_test_noise_marks_it_for_good(self) -> None:
        ledger = Ledger(Budget(rho=1), noise=TestNoise(1))
        assert not ledger.private
        assert "NOT PRIVATE" in repr(ledger)
        assert not Ledger.from_json(ledger.to_json()).private

        class Disguised(TestNoise):
            private = True

        assert not Ledger(Budget(rho=1), noise=Disguised(1)).private


class TestReleases:
    def test_noise_is_drawn_only_after_the_debit(self) -> None:
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

    def test_values_are_released_near_where_they_were(self) -> None:
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
    def test_only_integers_are_released(self, values: Any) -> None:
        ledger = Ledger(Budget(rho=10))
        with pytest.raises(PrivacyError, match=r"exact noise is for integers|beyond 2"):
            gaussian(values, l2_sensitivity=1, sigma=2.0, ledger=ledger)
        assert ledger.events == ()
