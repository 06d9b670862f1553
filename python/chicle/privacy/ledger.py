"""The ledger: the append-only list of what was spent, and the only place where budgets are added up.

Every release goes through `Ledger.debit`: it checks that the budget suffices and records the events, under one lock,
and only then is noise drawn (`primitives`). Nothing is refunded if something fails later. Later sigmas may depend on
earlier outputs: both currencies compose under full adaptivity without loss (Smith and Thakurta 2022 for Gaussian DP;
Whitehouse et al. 2023 for zCDP).

Discovering values that are not declared costs rho and delta. Deltas are added up apart from rho, against the part of
delta that the budget sets aside for discovery: PRIVACY.md proves that the two sums keep the promise. Pure releases cost
epsilon alone, which is added up apart as well, against the part of epsilon that the budget sets aside for them.
"""

from __future__ import annotations

import json
import math
import threading
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from chicle._html import Markup, card
from chicle._pandas import data_frame
from chicle.domain import Clique
from chicle.errors import ArtefactError, BudgetExceeded, ChicleError, PrivacyError
from chicle.privacy.budget import Accounting, Budget
from chicle.privacy.describe import ledger_rows, ledger_summary, ledger_table, ledger_terms
from chicle.privacy.events import KINDS, Event, GaussianEvent, PureEvent, event_from_dict, event_to_dict
from chicle.privacy.guarantee import Entry, Guarantee, Terms
from chicle.privacy.noise import SystemNoise

__all__ = ["Ledger"]

_FORMAT = 1


class Ledger(Guarantee):
    """What one body of private data has cost so far, against a budget.

    Parameters
    ----------
    budget
        What may be spent.
    noise
        For tests only: a `TestNoise`, which marks the ledger, and all that is released on it, as not protected.

    Examples
    --------
    >>> ledger = Ledger(Budget(epsilon=1, delta=1e-9))
    >>> ledger.debit([GaussianEvent(purpose="marginal", clique=("age",), l2_sensitivity=1, sigma=12.0, values=100)])
    >>> ledger
    release   of   values  sensitivity  noise     rho       share
    marginal  age  100     1            sigma 12  0.003472  21.0 %
    spent rho 0.003472 of 0.01656, which is epsilon 0.4426 of 1 at delta 1e-09 (accounting: gdp)
    an attacker's odds about one person change by at most a factor of 2.7, except with probability 4.5e-08
    """

    kind: ClassVar[str] = "ledger"

    def __init__(self, budget: Budget, *, noise: SystemNoise | None = None) -> None:
        if not isinstance(budget, Budget):
            raise PrivacyError(f"a ledger is opened with a chicle.Budget, not a {type(budget).__name__}")
        self._budget = budget
        self._limit = budget.rho
        self._noise = SystemNoise() if noise is None else noise
        # Only noise of exactly this class is secure; noise of any other class, also of a subclass, does not protect.
        self._protected = type(self._noise) is SystemNoise
        self._paid: list[tuple[Event, float]] = []
        self._lock = threading.Lock()
        self._read_only = False

    @property
    def budget(self) -> Budget:
        """What may be spent in all."""
        return self._budget

    @property
    def protected(self) -> bool:
        """Whether the noise protects people; False if it came from the seed of a test."""
        return self._protected

    @property
    def noise(self) -> SystemNoise:
        """The source of noise for this ledger's releases."""
        return self._noise

    @property
    def events(self) -> tuple[Event, ...]:
        """What was released, in order."""
        return tuple(event for event, _ in self._paid)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What was released and what each release cost, in order."""
        return tuple(Entry(event, cost, self._share(event, cost)) for event, cost in self._paid)

    def _share(self, event: Event, cost: float) -> float:
        """Return the part of the budget that an event took: of epsilon, of which some may be set aside, or of rho."""
        epsilon, pure = self._budget.epsilon or 1.0, self._budget.pure or 0.0
        return event.pure / epsilon if event.pure else cost / self._limit * (1 - pure / epsilon)

    @property
    def spent(self) -> float:
        """The rho of all events, rounded up."""
        return _total(cost for _, cost in self._paid)

    @property
    def remaining(self) -> float:
        """The rho that is left, rounded down."""
        return max(0.0, math.nextafter(self._limit - self.spent, -math.inf))

    @property
    def discovered(self) -> float:
        """The delta of all discoveries, rounded up."""
        return _total(event.delta for event in self.events)

    @property
    def pure(self) -> float:
        """The epsilon of all pure releases, rounded up."""
        return _total(event.pure for event in self.events)

    def epsilon(self, delta: float | None = None) -> float:
        """Return the epsilon spent so far at some delta, by default the budget's own, rounded up."""
        delta = self._budget.delta if delta is None else delta
        if delta is None:
            raise PrivacyError("this budget names no delta; say at which delta epsilon is wanted")
        return self._budget.epsilon_at(delta, self.spent, self.discovered, self.pure)

    def check(self, events: Iterable[Event]) -> None:
        """Raise `BudgetExceeded` unless all of these events can be paid for; nothing is spent."""
        self._priced(events)

    def debit(self, events: Iterable[Event]) -> None:
        """Record events, all or none, if they can be paid for. Every release debits here before noise is drawn."""
        with self._lock:
            self._paid.extend(self._priced(events))

    @property
    def divisible(self) -> bool:
        """Whether another part of epsilon can be set aside: nothing has cost rho, and the promise is in epsilon."""
        return self._budget.epsilon is not None and not self._read_only and not self.spent

    def set_aside(self, pure: float) -> None:
        """Set another part of epsilon aside for pure releases; rho follows from the rest. The promise stays the same.

        How much may depend on pure releases before. It may not depend on what was paid for in rho: so this is refused
        as soon as anything has cost rho (PRIVACY.md, "Epsilon beside rho").

        Examples
        --------
        >>> ledger = Ledger(Budget(epsilon=1, delta=1e-9))
        >>> ledger.set_aside(0.25)
        >>> ledger.budget
        Budget(epsilon=1, delta=1e-09, pure=0.25, accounting='gdp') of rho 0.009551
        """
        with self._lock:
            self._priced(())  # a ledger that can only be read says so
            if self.spent:
                raise PrivacyError(
                    "something was paid for in rho already, so no other part of epsilon can be set aside. Open the "
                    "ledger with Budget(..., pure=...); nothing was spent"
                )
            budget = self._budget.with_pure(pure)
            if not self.pure <= pure:
                raise PrivacyError(f"pure releases took epsilon {self.pure:.6g} already; set at least that much aside")
            self._budget, self._limit = budget, budget.rho

    def _priced(self, events: Iterable[Event]) -> list[tuple[Event, float]]:
        """Return events with their costs, if they can be paid for."""
        if self._read_only:
            raise PrivacyError(
                "this ledger was unpickled and can only be read, since two copies could spend one budget twice. Spend "
                "on the ledger that was pickled, or move it with to_json and Ledger.from_json; nothing was spent"
            )
        priced = [(event, _price(event, self._budget.accounting)) for event in events]
        total = _total(cost for _, cost in (*self._paid, *priced))
        if not total <= self._limit:
            raise BudgetExceeded(
                f"this release costs rho {_total(cost for _, cost in priced):.6g}, but of {self._limit:.6g} only "
                f"{self.remaining:.6g} is left. Release less, or with a larger sigma; nothing was spent"
            )
        delta = _total(event.delta for event, _ in (*self._paid, *priced))
        aside = self._budget.discovery or 0.0
        if not delta <= aside:
            raise BudgetExceeded(
                f"discoveries would take {delta:.6g} of delta, but the budget sets {aside:.6g} aside for "
                "them. Open the ledger with Budget(..., discovery=...), or declare the values; nothing was spent"
            )
        pure = _total(event.pure for event, _ in (*self._paid, *priced))
        aside = self._budget.pure or 0.0
        if not pure <= aside:
            raise BudgetExceeded(
                f"pure releases would take {pure:.6g} of epsilon, but the budget sets {aside:.6g} aside for them. Open "
                "the ledger with Budget(..., pure=...), or use Gaussian noise; nothing was spent"
            )
        return priced

    def unpaid(self, tables: Iterable[tuple[Clique, float, int]], *, l2_sensitivity: float) -> list[Clique]:
        """Return the cliques of noisy tables that are not among the events, each event paying for one table.

        Parameters
        ----------
        tables
            The clique, sigma and number of values of each noisy table.
        l2_sensitivity
            How far one person can move a table.
        """
        paid = Tally(
            (event.clique, event.sigma, event.values)
            for event in self.events
            if isinstance(event, (GaussianEvent, PureEvent)) and event.sensitivity == l2_sensitivity
        )
        paid.subtract(tables)
        return [clique for (clique, _, _), left in paid.items() if left < 0 and clique is not None]

    def summary(self) -> str:
        """Return what was spent, in a line, and a second line that warns if test noise was used."""
        return ledger_summary(self)

    def figures(self) -> dict[str, Any]:
        """Return the budget and what was spent of it, as plain data for programs."""
        spent = {"rho": self.spent}
        if self._budget.delta is not None:
            spent["epsilon"] = self.epsilon()
        return {
            "protected": self._protected,
            "budget": self._budget.promise(),
            "releases": len(self._paid),
            "spent": spent,
        }

    def terms(self, max_records_per_person: int) -> Terms:
        """Return the guarantee in words, for a table in which a person has at most so many rows."""
        return ledger_terms(self, max_records_per_person)

    def to_pandas(self) -> Any:  # noqa: ANN401 - pandas is no dependency
        """Return the entries as a pandas data frame: a row for each release, with its cost and share of the budget."""
        return data_frame({**event_to_dict(event), "rho": cost, "share": share} for event, cost, share in self.entries)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole ledger as plain data. A ledger loaded from it replaces this one: only one may spend."""
        return {
            "format": _FORMAT,
            "budget": self._budget.promise(),
            "protected": self._protected,
            "events": [event_to_dict(event) for event in self.events],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Ledger:
        """Return the ledger that `to_dict` wrote; further releases go on from what was spent."""
        try:
            if data["format"] != _FORMAT:
                raise ArtefactError(f"its format is {data['format']!r}, this version reads {_FORMAT}")
            ledger = cls(Budget(**data["budget"]))
            if not isinstance(data["protected"], bool):
                raise ArtefactError("the field 'protected' is not true or false")
            ledger.debit([event_from_dict(event) for event in data["events"]])
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError, ChicleError) as error:
            raise ArtefactError(f"this is not a ledger written by chicle: {error}") from error
        ledger._protected = data["protected"]
        return ledger

    @classmethod
    def from_json(cls, text: str) -> Ledger:
        """Return the ledger that `to_json` wrote; further releases go on from what was spent."""
        try:
            data = json.loads(text)
        except (TypeError, ValueError) as error:
            raise ArtefactError(f"this is not a ledger written by chicle: {error}") from error
        return cls.from_dict(data)

    def __copy__(self) -> Ledger:
        """Return the ledger itself: a copy could spend the same budget twice."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Callable[[str], Ledger], tuple[str]]:
        """Pickle a ledger that can be read but cannot spend."""
        return _read_only, (self.to_json(),)

    def __repr__(self) -> str:
        return "\n".join([*ledger_table(self), self.summary()])

    def _repr_html_(self) -> Markup:
        return card("Ledger", self.summary(), ledger_rows(self), warning="" if self._protected else "NOT PRIVATE")


def _read_only(text: str) -> Ledger:
    ledger = Ledger.from_json(text)
    ledger._read_only = True  # noqa: SLF001 - the other half of Ledger.__reduce__
    return ledger


def _price(event: Event, how: Accounting) -> float:
    if type(event) not in KINDS.values():
        raise PrivacyError(f"a ledger records events of chicle.privacy, not a {type(event).__name__}")
    cost = event.rho(how)
    if not (0 < cost < math.inf or 0 < event.pure < math.inf):
        raise PrivacyError("this event costs nothing or more than any budget; check its sensitivity and its noise")
    return cost


def _total(costs: Iterable[float]) -> float:
    total = math.fsum(costs)
    return math.nextafter(total, math.inf) if total else 0.0
