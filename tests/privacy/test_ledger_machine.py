"""A ledger under any sequence of calls, also of overlapping fits: it never overspends and forgets nothing."""

import copy
import json
import math
import pickle
import tempfile
from collections.abc import Iterable
from contextlib import AbstractContextManager
from fractions import Fraction
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from chicle import ArtefactError, Budget, BudgetExceeded, Ledger, PrivacyError
from chicle.privacy import DiscoveryEvent, ExponentialEvent, GaussianEvent, LaplaceEvent
from chicle.privacy.events import Event
from chicle.privacy.ledger import Reservation

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
    """What was paid is kept beside the ledger, in exact fractions; the ledger is in memory, or a file opened often."""

    def __init__(self) -> None:
        super().__init__()
        self.paid: list[Event] = []
        self.fits: dict[Reservation, AbstractContextManager[Reservation]] = {}
        self.drawn: dict[Reservation, list[Event]] = {}
        self.epsilon = 0.0

    def teardown(self) -> None:
        if not hasattr(self, "handles"):
            return
        for reservation in list(self.fits):
            self.end(reservation, failed=False)
        with self.folder:
            self.handles[-1].debit([])
            assert self.handles[-1].reserved == 0

    @initialize(budget=BUDGETS, kept=st.booleans())
    def open(self, budget: Budget, kept: bool) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "people.ledger" if kept else None
        self.handles = [Ledger.open(self.path, budget) if self.path else Ledger(budget)]
        self.budget = self.handles[0].budget

    @property
    def ledger(self) -> Ledger:
        """The handle to use next: files are used through each in turn."""
        self.handles.append(self.handles.pop(0))
        return self.handles[-1]

    def price(self, events: Iterable[Event]) -> Fraction:
        return sum((Fraction(event.rho(self.budget.accounting)) for event in events), Fraction(0))

    def delta(self, events: Iterable[Event]) -> Fraction:
        return sum((Fraction(event.delta) for event in events), Fraction(0))

    def held(self) -> tuple[Fraction, Fraction]:
        """The rho and the delta that running fits have not drawn."""
        rho = sum((Fraction(one._limit) - self.price(self.drawn[one]) for one in self.fits), Fraction(0))
        delta = sum((Fraction(one.delta) - self.delta(self.drawn[one]) for one in self.fits), Fraction(0))
        return rho, delta

    def fit_in(self, events: list[Event], rho: Fraction, aside: Fraction) -> bool | None:
        """Whether events cost at most so much; None within rounding of it."""
        pairs = ((self.price(events), rho), (self.delta(events), aside))
        if any(cost > left for cost, left in pairs):
            return False
        slack = Fraction(1, 2**46)
        near = self.price([*self.paid, *events]) + rho, self.delta([*self.paid, *events]) + aside
        return None if any(a and b - a < slack * c for (a, b), c in zip(pairs, near, strict=True)) else True

    def payable(self, events: list[Event]) -> bool | None:
        rho, delta = self.held()
        return self.fit_in(
            events,
            Fraction(self.budget.rho) - self.price(self.paid) - rho,
            Fraction(self.budget.discovery or 0.0) - self.delta(self.paid) - delta,
        )

    @rule(events=st.lists(EVENTS, max_size=3))
    def debit(self, events: list[Event]) -> None:
        payable = self.payable(events)
        try:
            self.ledger.debit(events)
        except BudgetExceeded:
            assert not payable
            return
        assert payable is not False
        self.paid += events

    @rule(events=st.lists(EVENTS, max_size=3))
    def check(self, events: list[Event]) -> None:
        before = [handle.to_json() for handle in self.handles]
        try:
            self.handles[-1].check(events)
            assert self.payable(events) is not False
        except BudgetExceeded:
            assert not self.payable(events)
        assert [handle.to_json() for handle in self.handles] == before

    @precondition(lambda self: len(self.fits) < 3)
    @rule(part=st.floats(0.01, 1.2), delta=st.sampled_from([0.0, 0.0, 1e-10]))
    def begin(self, part: float, delta: float) -> None:
        rho, aside = self.held()
        free = Fraction(self.budget.rho) - self.price(self.paid) - rho
        asked = part * float(free)
        if asked < 1e-9:
            return
        how = self.budget.accounting
        part_of_it = Budget(mu=math.sqrt(2 * asked)) if how == "gdp" else Budget(rho=asked)
        fit = self.ledger.reserve(part_of_it, title="a fit", delta=delta)
        if how == "zcdp-basic":
            with pytest.raises(PrivacyError, match="give both the same accounting"):
                fit.__enter__()
            return
        try:
            reservation = fit.__enter__()
        except BudgetExceeded:
            assert delta or part > 1 - 2**-30
            return
        assert part < 1 + 2**-30
        self.budget = self.handles[-1].budget  # a ledger in memory sets delta aside when it is first asked for
        assert Fraction(reservation._limit) <= free
        assert Fraction(reservation.delta) <= Fraction(self.budget.discovery or 0.0) - self.delta(self.paid) - aside
        self.fits[reservation], self.drawn[reservation] = fit, []

    @precondition(lambda self: self.fits)
    @rule(which=st.integers(0, 2), events=st.lists(EVENTS, max_size=2))
    def draw(self, which: int, events: list[Event]) -> None:
        reservation = list(self.fits)[which % len(self.fits)]
        gone = self.drawn[reservation]
        left = Fraction(reservation._limit) - self.price(gone), Fraction(reservation.delta) - self.delta(gone)
        payable = self.fit_in(events, *left)
        try:
            reservation.debit(events)
        except BudgetExceeded:
            assert not payable
            return
        assert payable is not False
        self.paid += events
        gone += events

    @precondition(lambda self: self.fits)
    @rule(which=st.integers(0, 2), failed=st.booleans(), event=EVENTS)
    def end_one(self, which: int, failed: bool, event: Event) -> None:
        reservation = list(self.fits)[which % len(self.fits)]
        self.end(reservation, failed=failed)
        with pytest.raises(PrivacyError, match="this fit is over"):
            reservation.debit([event])

    def end(self, reservation: Reservation, *, failed: bool) -> None:
        fit = self.fits.pop(reservation)
        error = (ValueError, ValueError(), None) if failed else (None, None, None)
        assert not fit.__exit__(*error)

    @rule(good=EVENTS)
    def refuse_what_is_no_event(self, good: Event) -> None:
        for bad in (object(), None, "event"):
            with pytest.raises((PrivacyError, AttributeError, TypeError)):
                self.ledger.debit([good, bad])  # type: ignore[list-item]

    @precondition(lambda self: self.path and len(self.handles) < 3)
    @rule(again=st.booleans())
    def open_it_again(self, again: bool) -> None:
        """In another place of the same program, with the budget or without; both then spend."""
        self.handles.append(Ledger.open(self.path, self.budget if again else None))  # type: ignore[arg-type]

    @rule()
    def copy_is_the_same(self) -> None:
        assert copy.copy(self.ledger) is copy.deepcopy(self.handles[-1]) is self.handles[-1]

    @rule(event=EVENTS, pickled=st.booleans())
    def what_is_loaded_cannot_spend(self, event: Event, pickled: bool) -> None:
        ledger = self.handles[-1]
        loaded = pickle.loads(pickle.dumps(ledger)) if pickled else Ledger.from_json(ledger.to_json())  # noqa: S301 - its own
        assert loaded.events == ledger.events
        assert loaded.to_json() == ledger.to_json()
        with pytest.raises(PrivacyError, match="can only be read"):
            loaded.debit([event])

    @rule()
    def a_file_that_says_more_is_refused(self) -> None:
        data = json.loads(self.handles[-1].to_json())
        if data["events"] and self.price(self.paid) > Fraction(self.budget.rho) / 2:
            data["events"] *= 3
            with pytest.raises(ArtefactError):
                Ledger.from_dict(data)

    @invariant()
    def nothing_is_lost_or_overspent(self) -> None:
        if not hasattr(self, "handles"):
            return
        ledger = self.handles[-1]
        if self.path:
            ledger.debit([])  # reads what other handles wrote
        assert list(ledger.events) == self.paid
        assert ledger.protected
        cost, spent, limit = self.price(self.paid), Fraction(ledger.spent), Fraction(self.budget.rho)
        assert cost <= spent <= cost * (1 + Fraction(1, 2**50))
        rho, delta = self.held()
        assert cost + rho <= limit
        assert rho <= Fraction(ledger.reserved)
        assert Fraction(ledger.remaining) <= max(limit - cost - rho, Fraction(0))
        assert Fraction(ledger.discovered) + delta <= Fraction(self.budget.discovery or 0.0) * (1 + Fraction(1, 2**50))
        if self.budget.delta is not None and self.budget.epsilon is not None:
            epsilon = ledger.epsilon()
            assert self.epsilon <= epsilon <= self.budget.epsilon * (1 + 1e-9)
            self.epsilon = epsilon


LedgerMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
TestLedger = LedgerMachine.TestCase
