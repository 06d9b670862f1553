"""The append-only list of what was spent, and the only place where budgets are added up.

A release asks the ledger first: it checks that the budget suffices, records the events, and only then is noise drawn.
Nothing is given back when something fails later. Later sigmas may depend on earlier outputs: both currencies compose
under full adaptivity without loss (Smith and Thakurta 2022 for Gaussian DP; Whitehouse et al. 2023 for zCDP).

Discovering values that are not declared costs rho and delta. Deltas are added up apart from rho, against what the
budget sets aside for them: PRIVACY.md argues that both together keep the promise.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any, ClassVar, TypeAlias

from chicle._checks import integer
from chicle._text import aligned, percent
from chicle.domain import Clique
from chicle.errors import ArtefactError, BudgetExceeded, ChicleError, PrivacyError
from chicle.privacy import accounting
from chicle.privacy.budget import Accounting, Budget, positive
from chicle.privacy.noise import SystemNoise, check_scale

__all__ = ["DiscoveryEvent", "Event", "ExponentialEvent", "GaussianEvent", "LaplaceEvent", "Ledger"]

# Costs are a few float operations, each good to half an ulp; this rounds them up by more than all of them together.
_UP = 1 + 2.0**-50

_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class _Release:
    """What every event tells: what for, of which clique if of any, how many values."""

    purpose: str
    values: int
    clique: Clique | None = None
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        set_field = partial(object.__setattr__, self)
        if not isinstance(self.purpose, str):
            raise PrivacyError("an event's purpose is a text")
        set_field("values", integer("values", self.values, 0))
        if self.clique is not None:
            if isinstance(self.clique, str) or not all(isinstance(name, str) for name in self.clique):
                raise PrivacyError("an event's clique is a tuple of attribute names")
            set_field("clique", tuple(self.clique))
        # Numbers become Python floats, so that costs are computed in double precision whatever was given.
        for name in _NUMBERS & {field.name for field in fields(self)}:
            set_field(name, positive(name, getattr(self, name)))


_NUMBERS = {"epsilon", "l1_sensitivity", "l2_sensitivity", "scale", "sigma"}


@dataclass(frozen=True, kw_only=True)
class GaussianEvent(_Release):
    """A release of integer values with exactly rounded Gaussian noise."""

    l2_sensitivity: float
    sigma: float
    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_scale("sigma", self.sigma)
        _at_least_1("l2_sensitivity", self.l2_sensitivity)

    @property
    def noise(self) -> str:
        """The noise in words."""
        return f"sigma {self.sigma:.4g}"

    def rho(self, how: Accounting) -> float:  # noqa: ARG002 - the same in every currency
        """Return the cost, s^2 / (2 sigma^2), rounded up."""
        return (self.l2_sensitivity / self.sigma) ** 2 / 2 * _UP


@dataclass(frozen=True, kw_only=True)
class LaplaceEvent(_Release):
    """A release of integer values with exact discrete Laplace noise, which is epsilon-DP."""

    l1_sensitivity: float
    scale: float
    kind: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_scale("scale", self.scale)
        _at_least_1("l1_sensitivity", self.l1_sensitivity)

    @property
    def noise(self) -> str:
        """The noise in words."""
        return f"scale {self.scale:.4g}"

    @property
    def epsilon(self) -> float:
        """The pure epsilon, rounded up."""
        return self.l1_sensitivity / self.scale * _UP

    def rho(self, how: Accounting) -> float:
        """Return the cost: eps^2 / 2 in zCDP (Bun and Steinke 2016, Prop. 3.3), mu^2 / 2 in Gaussian DP."""
        if how == "gdp":
            return accounting.pure_mu(epsilon=self.epsilon) ** 2 / 2 * _UP
        return self.epsilon**2 / 2 * _UP


@dataclass(frozen=True, kw_only=True)
class ExponentialEvent(_Release):
    """A choice by the exponential mechanism at epsilon, among that many values."""

    epsilon: float
    kind: ClassVar[str] = "exponential"

    @property
    def noise(self) -> str:
        """The noise in words."""
        return f"epsilon {self.epsilon:.4g}"

    def rho(self, how: Accounting) -> float:
        """Return the cost: eps^2 / 8 in zCDP ([A] Prop. 2), mu^2 / 2 of `accounting.choice_mu` in Gaussian DP."""
        if how == "gdp":
            return accounting.choice_mu(epsilon=self.epsilon) ** 2 / 2 * _UP
        return self.epsilon**2 / 8 * _UP


@dataclass(frozen=True, kw_only=True)
class DiscoveryEvent(_Release):
    """Values of an attribute whose counts reach a threshold with exactly rounded Gaussian noise on them.

    `values` is how many are kept at most: how many there are is private. `l2_sensitivity` is the number of rows of a
    person, who may have brought values that nobody else has: `delta` bounds the probability that one of them shows.
    """

    l2_sensitivity: float
    sigma: float
    threshold: int
    kind: ClassVar[str] = "discovery"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_scale("sigma", self.sigma)
        if not float(self.l2_sensitivity).is_integer():
            raise PrivacyError(f"l2_sensitivity of a discovery is a number of rows, not {self.l2_sensitivity!r}")
        object.__setattr__(self, "threshold", integer("threshold", self.threshold, 1))
        _ = self.delta

    @property
    def noise(self) -> str:
        """The noise in words."""
        return f"sigma {self.sigma:.4g}, from {self.threshold:,}"

    @property
    def delta(self) -> float:
        """The probability that a value of one person alone is kept, rounded up."""
        return accounting.discovery_delta(sigma=self.sigma, threshold=self.threshold, rows=int(self.l2_sensitivity))

    def rho(self, how: Accounting) -> float:  # noqa: ARG002 - the same in every currency
        """Return the cost of the counts of values that others have too, s^2 / (2 sigma^2), rounded up."""
        return (self.l2_sensitivity / self.sigma) ** 2 / 2 * _UP


Event: TypeAlias = GaussianEvent | LaplaceEvent | ExponentialEvent | DiscoveryEvent
_KINDS: dict[str, type[Event]] = {
    kind.kind: kind for kind in (GaussianEvent, LaplaceEvent, ExponentialEvent, DiscoveryEvent)
}


class Ledger:
    """What one body of private data has cost so far, against a budget.

    Parameters
    ----------
    budget
        What may be spent.
    noise
        For tests only: a `TestNoise`, which marks the ledger, and whatever is released on it, as not private.

    Examples
    --------
    >>> ledger = Ledger(Budget(epsilon=1, delta=1e-9))
    >>> ledger.debit([GaussianEvent(purpose="marginal", clique=("age",), l2_sensitivity=1, sigma=12.0, values=100)])
    >>> ledger
    release   of   values  sensitivity  noise     rho       share
    marginal  age  100     1            sigma 12  0.003472  21.0 %
    spent rho 0.003472 of 0.01656, which is epsilon 0.4426 of 1 at delta 1e-09 (accounting: gdp)
    """

    def __init__(self, budget: Budget, *, noise: SystemNoise | None = None) -> None:
        if not isinstance(budget, Budget):
            raise PrivacyError(f"a ledger is opened with a chicle.Budget, not a {type(budget).__name__}")
        self._budget = budget
        self._limit = budget.rho
        self._noise = SystemNoise() if noise is None else noise
        # Only the one class whose noise is secure counts as private; whatever else is passed does not.
        self._private = type(self._noise) is SystemNoise
        self._entries: list[tuple[Event, float]] = []
        self._lock = threading.Lock()
        self._read_only = False

    @property
    def budget(self) -> Budget:
        """What may be spent in all."""
        return self._budget

    @property
    def events(self) -> tuple[Event, ...]:
        """What was released, in order."""
        return tuple(event for event, _ in self._entries)

    @property
    def noise(self) -> SystemNoise:
        """Where the noise of this ledger's releases comes from."""
        return self._noise

    @property
    def private(self) -> bool:
        """False where noise came from a test's seed, and the promise is void."""
        return self._private

    @property
    def spent(self) -> float:
        """The rho of all events, rounded up."""
        return _total(cost for _, cost in self._entries)

    @property
    def remaining(self) -> float:
        """The rho that is left, rounded down."""
        return max(0.0, math.nextafter(self._limit - self.spent, -math.inf))

    @property
    def discovered(self) -> float:
        """The delta of all discoveries, rounded up."""
        return _total(event.delta for event in self.events if isinstance(event, DiscoveryEvent))

    def check(self, events: Iterable[Event]) -> None:
        """Raise `BudgetExceeded` unless these events can be paid for together."""
        self._affordable(events)

    def debit(self, events: Iterable[Event]) -> None:
        """Record events, all or none, if they can be paid for; the noise is drawn after this."""
        with self._lock:
            self._entries.extend(self._affordable(events))

    def _affordable(self, events: Iterable[Event]) -> list[tuple[Event, float]]:
        if self._read_only:
            raise PrivacyError(
                "this ledger came out of a pickle and is there to be read: two could spend one budget twice. Go on "
                "with the one that was pickled, or keep a ledger with to_json and Ledger.from_json; nothing was spent"
            )
        priced = [(event, _price(event, self._budget.accounting)) for event in events]
        total = _total(cost for _, cost in (*self._entries, *priced))
        if not total <= self._limit:
            raise BudgetExceeded(
                f"this release costs rho {_total(cost for _, cost in priced):.6g}, but of {self._limit:.6g} only "
                f"{self.remaining:.6g} is left. Release less, or with a larger sigma; nothing was spent"
            )
        deltas = [event.delta for event, _ in (*self._entries, *priced) if isinstance(event, DiscoveryEvent)]
        aside = self._budget.discovery or 0.0
        if not _total(deltas) <= aside:
            raise BudgetExceeded(
                f"discoveries would take {_total(deltas):.6g} of delta, but the budget sets {aside:.6g} aside for "
                "them. Open the ledger with Budget(..., discovery=...), or declare the values; nothing was spent"
            )
        return priced

    def epsilon(self, delta: float | None = None) -> float:
        """Return the epsilon spent so far at some delta, by default the budget's own, rounded up."""
        delta = self._budget.delta if delta is None else delta
        if delta is None:
            raise PrivacyError("this budget names no delta; say at which delta epsilon is wanted")
        return self._budget.epsilon_at(delta, self.spent, self.discovered)

    def to_json(self) -> str:
        """Return the whole ledger as JSON. A ledger loaded from it replaces this one: only one may go on spending."""
        events = [{"kind": event.kind, **asdict(event)} for event in self.events]
        return json.dumps(
            {"format": _FORMAT, "budget": self._budget.promise(), "private": self._private, "events": events}, indent=1
        )

    @classmethod
    def from_json(cls, text: str) -> Ledger:
        """Return a ledger from what `to_json` wrote; further releases go on from what was spent."""
        try:
            data = json.loads(text)
            if data["format"] != _FORMAT:
                raise ArtefactError(f"its format is {data['format']!r}, this version reads {_FORMAT}")
            ledger = cls(Budget(**data["budget"]))
            if not isinstance(data["private"], bool):
                raise ArtefactError("the field 'private' is not true or false")
            ledger.debit([_event(entry) for entry in data["events"]])
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError, ChicleError) as error:
            raise ArtefactError(f"this is not a ledger written by chicle: {error}") from error
        ledger._private = data["private"]
        return ledger

    def __copy__(self) -> Ledger:
        """Return the ledger itself: a copy could spend the same budget twice."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Callable[[str], Ledger] | type[Ledger], tuple[str]]:
        """Pickle a ledger that can be read, and spends nothing."""
        return _read_only, (self.to_json(),)

    def __repr__(self) -> str:
        budget = self._budget
        lines = _table(self._entries, self._limit)
        line = f"spent rho {self.spent:.4g} of {self._limit:.4g}"
        if budget.delta is not None:
            line += f", which is epsilon {self.epsilon():.4g} of {budget.epsilon:g} at delta {budget.delta:g}"
        if budget.discovery is not None:
            line += ", of which" if budget.delta is not None else "; of delta,"
            line += f" discovery took {self.discovered:.4g} of {budget.discovery:.4g}"
        lines.append(f"{line} (accounting: {budget.accounting})")
        if not self._private:
            lines.append("NOT PRIVATE: made with test noise")
        return "\n".join(lines)


def _read_only(text: str) -> Ledger:
    ledger = Ledger.from_json(text)
    ledger._read_only = True  # noqa: SLF001 - the other half of Ledger.__reduce__
    return ledger


def _price(event: Event, how: Accounting) -> float:
    if type(event) not in _KINDS.values():
        raise PrivacyError(f"a ledger records events of chicle.privacy, not a {type(event).__name__}")
    cost = event.rho(how)
    if not 0 < cost < math.inf:
        raise PrivacyError("this event costs nothing or more than any budget; check its sensitivity and its noise")
    return cost


def _total(costs: Iterable[float]) -> float:
    total = math.fsum(costs)
    return math.nextafter(total, math.inf) if total else 0.0


def _at_least_1(name: str, sensitivity: float) -> None:
    if sensitivity < 1:
        raise PrivacyError(f"{name} is {sensitivity!r}; integers move by at least 1 when they move at all")


def _event(entry: dict[str, Any]) -> Event:
    values = dict(entry)
    kind = _KINDS[values.pop("kind")]
    if set(values) != {field.name for field in fields(kind)}:
        raise ArtefactError(f"an event of kind {kind.kind!r} has other fields than it should")
    return kind(**values)


def _table(entries: Sequence[tuple[Event, float]], total: float) -> list[str]:
    if not entries:
        return []
    rows = [("release", "of", "values", "sensitivity", "noise", "rho", "share")]
    for event, cost in entries:
        sensitivity = getattr(event, "l2_sensitivity", getattr(event, "l1_sensitivity", None))
        rows.append(
            (
                event.purpose,
                "-" if event.clique is None else " x ".join(event.clique) or "total",
                f"{event.values:,}",
                "-" if sensitivity is None else f"{sensitivity:g}",
                event.noise,
                f"{cost:.4g}",
                percent(cost / total),
            )
        )
    lines = aligned(rows)
    if len(lines) > 24:
        lines[13:-10] = [f"... {len(lines) - 23} more releases"]
    return lines
