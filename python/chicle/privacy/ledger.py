"""The ledger: the append-only list of what was spent, and the only place where budgets are added up.

Every release goes through `Ledger.debit`: it checks that the budget suffices and records the events, under one lock,
and only then is noise drawn (`primitives`). Nothing is refunded if something fails later. Later sigmas may depend on
earlier outputs: both currencies compose under full adaptivity without loss (Smith and Thakurta 2022 for Gaussian DP;
Whitehouse et al. 2023 for zCDP).

A fit reserves its budget at its start (`Ledger.reserve`), so two fits on one ledger cannot take it from each other.
What it has not drawn when it ends is free again.

Two copies of a ledger could spend one budget twice. So a ledger spends in the process that opened it only; one that was
loaded or unpickled can be read. A ledger in a file (`Ledger.open`, `privacy.store`) serves any number of processes.

Discovering values that are not declared costs rho and delta. Deltas are added up apart from rho, against the part of
delta that the budget sets aside for discovery: PRIVACY.md proves that the two sums keep the promise. Pure releases cost
epsilon alone, which is added up apart as well, against the part of epsilon that the budget sets aside for them.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import threading
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, ClassVar

from chicle._html import Markup, card
from chicle._pandas import data_frame
from chicle.domain import Clique
from chicle.errors import ArtefactError, BudgetExceeded, ChicleError, PrivacyError
from chicle.privacy.budget import Accounting, Budget, positive
from chicle.privacy.describe import ledger_rows, ledger_summary, ledger_table, ledger_terms
from chicle.privacy.events import KINDS, Event, GaussianEvent, PureEvent, event_from_dict, event_to_dict
from chicle.privacy.guarantee import Entry, Guarantee, Terms
from chicle.privacy.hold import Hold, Paid, total_up
from chicle.privacy.noise import SystemNoise

__all__ = ["Ledger", "Reservation", "price", "with_aside"]

_FORMAT = 1
_ASIDE = 0.1  # share of a budget's delta for discovery: the rest allows 99.4 % of rho at epsilon 1 and delta 1e-9
_ALL = 1 - 2.0**-40  # all of a budget, but for rounding
_ROOM = 1 - 2.0**-50  # of a limit, what reservations may fill: more than all rounding of sums
_LOADED = "was loaded or unpickled and can only be read, since two copies could spend one budget twice"

_forks = 0


def _forked() -> None:
    global _forks  # noqa: PLW0603 - one number for the process
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


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
        self._set(budget)
        self._noise = SystemNoise() if noise is None else noise
        # Only noise of exactly this class is secure; noise of any other class, also of a subclass, does not protect.
        self._protected = type(self._noise) is SystemNoise
        self._paid: list[Paid] = []
        self._holds: dict[str, Hold] = {}
        self._lock = threading.RLock()
        self._process = (os.getpid(), _forks)
        self._closed = ""

    @staticmethod
    def open(path: str | os.PathLike[str], budget: Budget | None = None) -> Ledger:
        """Open the ledger that a file keeps, or begin one: for all releases from one body of data, over years.

        Every debit is on the disk before noise is drawn, and any number of processes may spend on the file. See
        docs/ledger.md.

        Parameters
        ----------
        path
            The file. By convention it ends in ``.ledger``.
        budget
            What may be spent in all; needed where there is no file yet. A tenth of its delta is set aside for
            discovery, unless `Budget.discovery` says how much.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ledger = Ledger.open(f"{folder}/people.ledger", Budget(epsilon=3, delta=1e-9))
        ...     ledger.debit([GaussianEvent(purpose="total", clique=(), l2_sensitivity=1, sigma=12.0, values=1)])
        ...     len(Ledger.open(f"{folder}/people.ledger").events)
        1
        """
        from chicle.privacy.store import KeptLedger  # noqa: PLC0415 - it derives from this class

        return KeptLedger(Path(path), budget)

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
        return event.pure / epsilon if event.pure else cost / self._budget.rho * (1 - pure / epsilon)

    @property
    def spent(self) -> float:
        """The rho of all events, rounded up."""
        return total_up(cost for _, cost in self._paid)

    @property
    def remaining(self) -> float:
        """The rho that is neither spent nor reserved, rounded down."""
        return max(0.0, math.nextafter(self._limit - total_up((self.spent, self.reserved)), -math.inf))

    @property
    def reserved(self) -> float:
        """The rho that is reserved by fits that have not ended, and not drawn yet, rounded up."""
        return total_up(hold.left[0] for hold in list(self._holds.values()))

    @property
    def discovered(self) -> float:
        """The delta of all discoveries, rounded up."""
        return total_up(event.delta for event in self.events)

    @property
    def pure(self) -> float:
        """The epsilon of all pure releases, rounded up."""
        return total_up(event.pure for event in self.events)

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
        with self._lock, self._current():
            self._record(self._priced(events))

    def check_accounting(self, budget: Budget) -> None:
        """Raise unless a fit of this budget prices events as this ledger does; one release has one price."""
        if budget.accounting != self._budget.accounting:
            raise PrivacyError(
                f"the ledger accounts in {self._budget.accounting!r}, the mechanism in {budget.accounting!r}; "
                "give both the same accounting"
            )

    @contextmanager
    def reserve(self, budget: Budget, *, title: str, delta: float = 0.0, whole: bool = False) -> Iterator[Reservation]:
        """Hold a budget for one fit; what it has not drawn in the end is free again.

        Parameters
        ----------
        budget
            What the fit may spend.
        title
            What it is for, in words.
        delta
            What it may take for discovery of the delta that is set aside: at most half of what is left, so that a later
            fit can discover too. A fit that takes all of rho may take all of that delta.
        whole
            Hold all of that delta or nothing.
        """
        self.check_accounting(budget)
        with self._lock, self._current():
            self._check_open()
            key, hold = secrets.token_hex(8), self._held(budget, title, delta, whole=whole)
            self._begin(key, hold)
        reservation = Reservation(self, key, budget, hold)
        how = "failed"
        try:
            yield reservation
            how = "done"
        finally:
            reservation.close("this fit is over")
            with self._lock:
                self._end(key, how)

    @property
    def divisible(self) -> bool:
        """Whether another part of epsilon can be set aside: nothing costs rho yet, and the promise is in epsilon."""
        return self.divisible_by(None)

    def set_aside(self, pure: float) -> None:
        """Set another part of epsilon aside for pure releases; rho follows from the rest. The promise stays the same.

        How much may depend on pure releases before. It may not depend on what was paid for in rho: so this is refused
        as soon as anything has cost rho, or is reserved (PRIVACY.md, "Epsilon beside rho").

        Examples
        --------
        >>> ledger = Ledger(Budget(epsilon=1, delta=1e-9))
        >>> ledger.set_aside(0.25)
        >>> ledger.budget
        Budget(epsilon=1, delta=1e-09, pure=0.25, accounting='gdp') of rho 0.009551
        """
        self.divide(positive("pure", pure))

    def divide(self, pure: float, key: str | None = None, rho: float = 0.0) -> float:
        """Set a part of epsilon aside, also for the only reservation, which then holds it and rho; return that rho."""
        with self._lock, self._current():
            self._check_open()
            if self.spent or any(other != key for other in self._holds):
                raise PrivacyError(
                    "something was paid for in rho already, or is reserved, so no other part of epsilon can be set "
                    "aside. Open the ledger with Budget(..., pure=...); nothing was spent"
                )
            own = [event.pure for event, _ in (self._paid if key is None else self._holds[key].drawn)]
            if not total_up(own) <= pure:
                raise PrivacyError(f"pure releases took epsilon {self.pure:.6g} already; set at least that much aside")
            before = math.fsum((*(event.pure for event in self.events), *(-one for one in own)))
            budget = self._budget.with_pure(pure + before)
            rho = min(rho, budget.rho * _ROOM)
            self._divide(budget, key, pure, rho)
            return rho

    def divisible_by(self, key: str | None) -> bool:
        """Return whether a reservation can set another part of epsilon aside."""
        alone = all(other == key for other in list(self._holds))
        return self._budget.epsilon is not None and not self._closed and not self.spent and alone

    def _set(self, budget: Budget) -> None:
        self._budget, self._limit = budget, budget.rho
        self._aside, self._pure = budget.discovery or 0.0, budget.pure or 0.0

    def _held(self, budget: Budget, title: str, delta: float, *, whole: bool) -> Hold:
        """Return what is held for a fit of a budget; too little left is an error."""
        if delta and self._budget.discovery is None and not (self._paid or self._holds):
            self._set(with_aside(self._budget))  # nothing has been released yet
        free = max(0.0, self._limit * _ROOM - total_up((self.spent, self.reserved)))
        if free < _ALL * budget.rho:
            running = f", and fits that run have reserved {self.reserved:.6g}" if self._holds else ""
            raise BudgetExceeded(
                f"this fit costs rho {budget.rho:.6g}, but only {free:.6g} of {self._limit:.6g} is left{running}. Fit "
                "with a smaller budget, or open a ledger of a larger one; nothing was spent"
            )
        rho = min(budget.rho, free)
        if delta:
            left = self._aside - total_up((self.discovered, *(hold.left[1] for hold in list(self._holds.values()))))
            share = left if whole or rho >= _ALL * free else left / 2
            if share <= 0 or (whole and delta > share):
                raise BudgetExceeded(_no_aside(delta, self._aside, left))
            delta = min(delta, share)
        pure = budget.pure or 0.0
        free = max(0.0, self._pure - total_up((self.pure, *(hold.left[2] for hold in list(self._holds.values())))))
        if pure and free < _ALL * pure:
            raise BudgetExceeded(_no_pure(pure, self._pure))
        return Hold(title, rho, delta, min(pure, free))

    def draw(self, key: str, priced: Sequence[Paid]) -> None:
        """Record what a reservation draws; it has checked that it may."""
        with self._lock, self._current():
            self._check_open()
            if key not in self._holds:
                raise PrivacyError("what was reserved for this fit was given back; run it again. Nothing was spent")
            self._record(priced, key)

    # What follows also lasts, where a file keeps the ledger.

    def _current(self) -> AbstractContextManager[None]:
        """Give the only right to change this ledger, as it now is."""
        return nullcontext()

    def _record(self, priced: Sequence[Paid], key: str | None = None) -> None:
        """Record a debit, of a reservation or of what is free."""
        self._paid.extend(priced)
        if key is not None:
            self._holds[key].drawn.extend(priced)

    def _begin(self, key: str, hold: Hold) -> None:
        """Record a reservation."""
        self._holds[key] = hold

    def _divide(self, budget: Budget, key: str | None, pure: float, rho: float) -> None:
        """Record how the promise is split from here on, and what a reservation then holds."""
        self._set(budget)
        if key is not None:
            self._holds[key].pure, self._holds[key].rho = pure, rho

    def _end(self, key: str, how: str) -> None:
        """Record the end of a reservation."""
        del how
        self._holds.pop(key, None)

    @property
    def _here(self) -> bool:
        """Whether this is the process that opened this ledger."""
        return self._process == (os.getpid(), _forks)

    def _check_open(self) -> None:
        """Raise unless this ledger may spend, here."""
        if self._closed:
            raise PrivacyError(f"this ledger {self._closed}; nothing was spent")
        if not self._here:
            raise PrivacyError(
                "this ledger was carried into a forked process, where it could spend its budget twice. Open it there "
                "with Ledger.open(file), or fit in the process that opened it; nothing was spent"
            )

    def _priced(self, events: Iterable[Event]) -> list[Paid]:
        """Return events with their costs, if they can be paid for."""
        self._check_open()
        priced = [(event, price(event, self._budget.accounting)) for event in events]
        held = [hold.left for hold in list(self._holds.values())]
        total = total_up((*(cost for _, cost in (*self._paid, *priced)), *(rho for rho, _, _ in held)))
        if not total <= self._limit:
            raise BudgetExceeded(
                f"this release costs rho {total_up(cost for _, cost in priced):.6g}, but of {self._limit:.6g} only "
                f"{self.remaining:.6g} is left. Release less, or with a larger sigma; nothing was spent"
            )
        gone = [*(event.delta for event, _ in self._paid), *(delta for _, delta, _ in held)]
        asked = [event.delta for event, _ in priced]
        if not total_up((*gone, *asked)) <= self._aside:
            raise BudgetExceeded(_no_aside(total_up(asked), self._aside, self._aside - total_up(gone)))
        pure = total_up((*(event.pure for event, _ in (*self._paid, *priced)), *(pure for _, _, pure in held)))
        if not pure <= self._pure:
            raise BudgetExceeded(_no_pure(pure, self._pure))
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
        """Return the whole ledger as plain data; what is loaded from it can be read but cannot spend."""
        return {
            "format": _FORMAT,
            "budget": self._budget.promise(),
            "protected": self._protected,
            "events": [event_to_dict(event) for event in self.events],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Ledger:
        """Return the ledger that `to_dict` wrote, to be read; it cannot spend."""
        try:
            if data["format"] != _FORMAT:
                raise ArtefactError(f"its format is {data['format']!r}, this version reads {_FORMAT}")
            ledger = Ledger(Budget(**data["budget"]))
            if not isinstance(data["protected"], bool):
                raise ArtefactError("the field 'protected' is not true or false")
            ledger._paid = ledger._priced([event_from_dict(event) for event in data["events"]])
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError, ChicleError) as error:
            raise ArtefactError(f"this is not a ledger written by chicle: {error}") from error
        ledger._protected = data["protected"]
        ledger._closed = f"{_LOADED}. Spend on a ledger in a file, Ledger.open(file)"
        return ledger

    @classmethod
    def from_json(cls, text: str) -> Ledger:
        """Return the ledger that `to_json` wrote, to be read; it cannot spend."""
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
        return Ledger.from_json, (self.to_json(),)

    def __repr__(self) -> str:
        return "\n".join([*ledger_table(self), self.summary()])

    def _repr_html_(self) -> Markup:
        return card("Ledger", self.summary(), ledger_rows(self), warning="" if self._protected else "NOT PRIVATE")


class Reservation(Ledger):
    """The part of a ledger that is held for one fit. What it spends is recorded in the whole ledger, as it is spent.

    Its events, `spent` and `left` are its own: other fits on the same ledger do not disturb it.
    """

    def __init__(self, whole: Ledger, key: str, budget: Budget, hold: Hold) -> None:
        super().__init__(budget, noise=whole.noise)
        self._whole, self._key = whole, key
        self._limit, self._aside, self._pure = hold.rho, hold.delta, hold.pure
        self._protected = whole.protected

    @property
    def delta(self) -> float:
        """The delta that is held for discovery."""
        return self._aside

    @property
    def divisible(self) -> bool:
        """Whether another part of the fit's epsilon can be set aside: no other fit has spent or reserved rho."""
        return super().divisible and self._whole.divisible_by(self._key)

    def set_aside(self, pure: float) -> None:
        """Set another part of the fit's epsilon aside for pure releases, here and in the whole ledger."""
        with self._lock:
            budget = self._budget.with_pure(pure)
            rho = self._whole.divide(pure, self._key, budget.rho)
            self._budget, self._limit, self._pure = budget, rho, pure

    def close(self, why: str) -> None:
        """Spend nothing more."""
        self._closed = f"can spend no more: {why}"

    def _record(self, priced: Sequence[Paid], key: str | None = None) -> None:
        del key
        super()._record(priced)  # first: whatever happens between, this reservation cannot draw it again
        self._whole.draw(self._key, priced)


def with_aside(budget: Budget) -> Budget:
    """Return a budget with a tenth of its delta set aside for discovery, unless it says how much or has no delta."""
    if budget.discovery is not None or budget.delta is None:
        return budget
    return Budget(**{**budget.promise(), "discovery": _ASIDE * budget.delta})


def _no_aside(delta: float, aside: float, left: float) -> str:
    return (
        f"discoveries would take {delta:.6g} of delta, but the budget sets {aside:.6g} aside for them, of which "
        f"{max(left, 0.0):.6g} is left. Open the ledger with Budget(..., discovery=...), or declare the values; "
        "nothing was spent"
    )


def _no_pure(pure: float, aside: float) -> str:
    return (
        f"pure releases would take {pure:.6g} of epsilon, but the budget sets {aside:.6g} aside for them. Open the "
        "ledger with Budget(..., pure=...), or use Gaussian noise; nothing was spent"
    )


def price(event: Event, how: Accounting) -> float:
    """Return what an event of chicle costs in rho."""
    if type(event) not in KINDS.values():
        raise PrivacyError(f"a ledger records events of chicle.privacy, not a {type(event).__name__}")
    cost = event.rho(how)
    if not (0 < cost < math.inf or 0 < event.pure < math.inf):
        raise PrivacyError("this event costs nothing or more than any budget; check its sensitivity and its noise")
    return cost
