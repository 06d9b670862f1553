"""A ledger under any sequence of calls: it never spends more than its budget, forgets nothing and changes nothing."""

import copy
import json
import pickle
from fractions import Fraction

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from chicle import Budget, BudgetExceeded, Ledger, PrivacyError
from chicle.privacy import DiscoveryEvent, ExponentialEvent, GaussianEvent, LaplaceEvent
from chicle.privacy.events import Event

SCALES = st.floats(0.5, 200)

EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(
        GaussianEvent,
        purpose=st.sampled_from(["1-way", "marginal"]),
        clique=st.sampled_from([("a",), ("a", "b"), ()]),
        l2_sensitivity=st.integers(1, 9),
        sigma=SCALES,
        values=st.integers(1, 99),
    ),
    st.builds(
        LaplaceEvent, purpose=st.just("values"), l1_sensitivity=st.integers(1, 3), scale=SCALES, values=st.just(3)
    ),
    st.builds(ExponentialEvent, purpose=st.just("choice"), epsilon=st.floats(1e-6, 4), values=st.integers(1, 9)),
    st.builds(
        DiscoveryEvent,
        purpose=st.just("discovery"),
        clique=st.just(("a",)),
        l2_sensitivity=st.integers(1, 2),
        sigma=st.floats(1, 9),
        threshold=st.integers(10, 90),
        values=st.just(5),
    ),
)

BUDGETS = st.one_of(
    st.builds(
        Budget,
        epsilon=st.floats(0.1, 20),
        delta=st.sampled_from([1e-9, 1e-4]),
        accounting=st.sampled_from(["gdp", "zcdp", "zcdp-basic"]),
        discovery=st.sampled_from([None, 1e-10]),
    ),
    st.builds(Budget, rho=st.floats(1e-3, 9), discovery=st.sampled_from([None, 1e-6])),
    st.builds(Budget, mu=st.floats(1e-2, 5)),
)


class LedgerMachine(RuleBasedStateMachine):
    """What was paid is kept beside the ledger, in exact fractions."""

    @initialize(budget=BUDGETS)
    def open(self, budget: Budget) -> None:
        self.budget, self.ledger = budget, Ledger(budget)
        self.paid: list[Event] = []
        self.cost = Fraction(0)
        self.epsilon = 0.0

    def price(self, events: list[Event]) -> Fraction:
        return sum((Fraction(event.rho(self.budget.accounting)) for event in events), Fraction(0))

    def fits(self, events: list[Event]) -> bool | None:
        """Whether events can be paid for; None within rounding of the limit."""
        aside = Fraction(self.budget.discovery or 0.0)
        delta = sum((Fraction(event.delta) for event in [*self.paid, *events]), Fraction(0))
        cost, limit = self.cost + self.price(events), Fraction(self.budget.rho)
        if cost > limit or delta > aside:
            return False
        near = any(a and b - a < Fraction(1, 2**48) * b for a, b in ((cost, limit), (delta, aside)))
        return None if near else True

    @rule(events=st.lists(EVENTS, max_size=3))
    def debit(self, events: list[Event]) -> None:
        fits = self.fits(events)
        try:
            self.ledger.debit(events)
        except BudgetExceeded:
            assert not fits
            return
        assert fits is not False
        self.paid += events
        self.cost += self.price(events)

    @rule(events=st.lists(EVENTS, max_size=3))
    def check(self, events: list[Event]) -> None:
        before = self.ledger.to_json()
        try:
            self.ledger.check(events)
            assert self.fits(events) is not False
        except BudgetExceeded:
            assert not self.fits(events)
        assert self.ledger.to_json() == before

    @rule(good=EVENTS)
    def refuse_what_is_no_event(self, good: Event) -> None:
        for bad in (object(), None, "event"):
            with pytest.raises((PrivacyError, AttributeError, TypeError)):
                self.ledger.debit([good, bad])  # type: ignore[list-item]

    @rule()
    def save_and_load(self) -> None:
        self.ledger = Ledger.from_json(self.ledger.to_json())

    @rule()
    def copy_is_the_same(self) -> None:
        assert copy.copy(self.ledger) is copy.deepcopy(self.ledger) is self.ledger

    @rule(event=EVENTS)
    def a_pickle_cannot_spend(self, event: Event) -> None:
        read_only = pickle.loads(pickle.dumps(self.ledger))  # noqa: S301 - its own
        assert read_only.events == self.ledger.events
        with pytest.raises(PrivacyError):
            read_only.debit([event])

    @rule()
    def a_file_that_says_more_is_refused(self) -> None:
        data = json.loads(self.ledger.to_json())
        if data["events"] and self.cost > Fraction(self.budget.rho) / 2:
            data["events"] *= 3
            with pytest.raises(PrivacyError.__mro__[1]):
                Ledger.from_dict(data)

    @invariant()
    def nothing_is_lost_or_overspent(self) -> None:
        if not hasattr(self, "ledger"):
            return
        assert list(self.ledger.events) == self.paid
        assert self.ledger.protected
        spent = Fraction(self.ledger.spent)
        assert self.cost <= spent <= self.cost * (1 + Fraction(1, 2**50))
        assert spent <= Fraction(self.budget.rho)
        assert Fraction(self.ledger.remaining) <= Fraction(self.budget.rho) - self.cost
        assert self.ledger.discovered <= (self.budget.discovery or 0.0)
        if self.budget.delta is not None and self.budget.epsilon is not None:
            epsilon = self.ledger.epsilon()
            assert self.epsilon <= epsilon <= self.budget.epsilon * (1 + 1e-9)
            self.epsilon = epsilon


LedgerMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
TestLedger = LedgerMachine.TestCase
