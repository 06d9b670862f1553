"""The append-only list of what was spent, and the only place where budgets are added up.

A release asks the ledger first: it checks that the budget suffices, records the events, and only then is noise drawn.
Nothing is given back when something fails later. Later sigmas may depend on earlier outputs: both currencies compose
under full adaptivity without loss (Smith and Thakurta 2022 for Gaussian DP; Whitehouse et al. 2023 for zCDP).
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, TypeAlias, cast

from chicle.domain import Clique
from chicle.errors import ArtefactError, BudgetExceeded, PrivacyError
from chicle.privacy import accounting
from chicle.privacy.budget import Accounting, Budget
from chicle.privacy.noise import SystemNoise, check_scale

__all__ = ["Event", "ExponentialEvent", "GaussianEvent", "LaplaceEvent", "Ledger"]

# Costs are a few float operations, each good to half an ulp; this rounds them up by more than all of them together.
_UP = 1 + 2.0**-50


@dataclass(frozen=True, kw_only=True)
class GaussianEvent:
    """A release of integer values with exactly rounded Gaussian noise."""

    purpose: str
    l2_sensitivity: float
    sigma: float
    values: int
    clique: Clique | None = None
    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        check_scale("sigma", self.sigma)
        _positive("l2_sensitivity", self.l2_sensitivity)

    @property
    def noise(self) -> str:
        """The noise in words."""
        return f"sigma {self.sigma:.4g}"

    def rho(self, how: Accounting) -> float:  # noqa: ARG002 - the same in every currency
        """Return the cost, s^2 / (2 sigma^2), rounded up."""
        return (self.l2_sensitivity / self.sigma) ** 2 / 2 * _UP


@dataclass(frozen=True, kw_only=True)
class LaplaceEvent:
    """A release of integer values with exact discrete Laplace noise, which is epsilon-DP."""

    purpose: str
    l1_sensitivity: float
    scale: float
    values: int
    clique: Clique | None = None
    kind: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        check_scale("scale", self.scale)
        _positive("l1_sensitivity", self.l1_sensitivity)

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
        return _pure_rho(self.epsilon, how, share=1.0)


@dataclass(frozen=True, kw_only=True)
class ExponentialEvent:
    """A choice by the exponential mechanism at epsilon."""

    purpose: str
    epsilon: float
    values: int
    clique: Clique | None = None
    kind: ClassVar[str] = "exponential"

    def __post_init__(self) -> None:
        _positive("epsilon", self.epsilon)

    @property
    def noise(self) -> str:
        """The noise in words."""
        return f"epsilon {self.epsilon:.4g}"

    def rho(self, how: Accounting) -> float:
        """Return the cost: eps^2 / 8 in zCDP ([A] Prop. 2), mu^2 / 2 of any epsilon-DP choice in Gaussian DP."""
        return _pure_rho(self.epsilon, how, share=0.25)


Event: TypeAlias = GaussianEvent | LaplaceEvent | ExponentialEvent


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
        self._budget = budget
        self._noise = SystemNoise() if noise is None else noise
        self._events: list[Event] = []
        self._costs: list[float] = []
        self._private = self._noise.private
        self._lock = threading.Lock()

    @property
    def budget(self) -> Budget:
        """What may be spent in all."""
        return self._budget

    @property
    def events(self) -> tuple[Event, ...]:
        """What was released, in order."""
        return tuple(self._events)

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
        return _total(self._costs)

    @property
    def remaining(self) -> float:
        """The rho that is left, rounded down."""
        return max(0.0, math.nextafter(self._budget.rho - self.spent, -math.inf))

    def check(self, events: Sequence[Event]) -> None:
        """Raise `BudgetExceeded` unless these events can be paid for together."""
        costs = self._price(events)
        if _total([*self._costs, *costs]) > self._budget.rho:
            raise BudgetExceeded(
                f"this release costs rho {_total(costs):.6g}, but of {self._budget.rho:.6g} only {self.remaining:.6g} "
                "is left. Release less, or with a larger sigma; nothing was spent"
            )

    def debit(self, events: Sequence[Event]) -> None:
        """Record events, all or none, if they can be paid for; the noise is drawn after this."""
        with self._lock:
            self.check(events)
            self._events.extend(events)
            self._costs.extend(self._price(events))

    def epsilon(self, delta: float | None = None) -> float:
        """Return the epsilon spent so far at some delta, by default the budget's own, rounded up."""
        if delta is None:
            if "delta" not in self._budget.promise:
                raise PrivacyError("this budget names no delta; say at which delta epsilon is wanted")
            delta = self._budget.promise["delta"]
        return self._budget.epsilon_at(delta, self.spent)

    def to_json(self) -> str:
        """Return the whole ledger as JSON."""
        events = [{"kind": event.kind, **asdict(event)} for event in self._events]
        budget = {**self._budget.promise, "accounting": self._budget.accounting}
        return json.dumps({"budget": budget, "private": self._private, "events": events}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Ledger:
        """Return a ledger from what `to_json` wrote; further releases go on from what was spent."""
        try:
            data = json.loads(text)
            ledger = cls(Budget(**data["budget"]))
            events = [_event(entry) for entry in data["events"]]
            private = data["private"]
            if not isinstance(private, bool):
                raise ArtefactError("the field 'private' is not true or false")  # noqa: TRY301
            ledger.debit(events)
        except (ArtefactError, KeyError, PrivacyError, TypeError, ValueError) as error:
            raise ArtefactError(f"this is not a ledger written by chicle: {error}") from error
        ledger._private = private
        return ledger

    def __copy__(self) -> Ledger:
        """Return the ledger itself: a copy could spend the same budget twice."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def __repr__(self) -> str:
        lines = _table(self._events, self._costs, self._budget.rho)
        line = f"spent rho {self.spent:.4g} of {self._budget.rho:.4g}"
        if "delta" in self._budget.promise:
            promise = self._budget.promise
            line += f", which is epsilon {self.epsilon():.4g} of {promise['epsilon']:g} at delta {promise['delta']:g}"
        lines.append(f"{line} (accounting: {self._budget.accounting})")
        if not self._private:
            lines.append("NOT PRIVATE: made with test noise")
        return "\n".join(lines)

    def _price(self, events: Sequence[Event]) -> list[float]:
        return [event.rho(self._budget.accounting) for event in events]


def _total(costs: Sequence[float]) -> float:
    return math.nextafter(math.fsum(costs), math.inf) if costs else 0.0


def _pure_rho(epsilon: float, how: Accounting, share: float) -> float:
    if how == "gdp":
        return accounting.pure_mu(epsilon=epsilon) ** 2 / 2 * _UP
    return share * epsilon**2 / 2 * _UP


def _positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise PrivacyError(f"{name} must be finite and above 0, not {value!r}")


def _event(entry: dict[str, Any]) -> Event:
    kinds = {kind.kind: kind for kind in (GaussianEvent, LaplaceEvent, ExponentialEvent)}
    values = dict(entry)
    kind = kinds[values.pop("kind")]
    if set(values) != {field.name for field in fields(kind)}:
        raise ArtefactError(f"an event of kind {kind.kind!r} has other fields than it should")
    if values["clique"] is not None:
        values["clique"] = tuple(values["clique"])
    return cast("Event", kind(**values))


def _table(events: Sequence[Event], costs: Sequence[float], total: float) -> list[str]:
    if not events:
        return []
    rows = [("release", "of", "values", "sensitivity", "noise", "rho", "share")]
    for event, cost in zip(events, costs, strict=True):
        sensitivity = getattr(event, "l2_sensitivity", getattr(event, "l1_sensitivity", None))
        rows.append(
            (
                event.purpose,
                "-" if event.clique is None else " x ".join(event.clique) or "total",
                f"{event.values:,}",
                "-" if sensitivity is None else f"{sensitivity:g}",
                event.noise,
                f"{cost:.4g}",
                f"{cost / total:.1%}".replace("%", " %"),
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    if len(lines) > 24:
        lines[13:-10] = [f"... {len(lines) - 23} more releases"]
    return lines
