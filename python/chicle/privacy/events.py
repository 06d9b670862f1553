"""Events: what was released, with how much noise, and what it costs. A ledger records one event for each release.

An event holds all that accounting needs (the sensitivity and the noise) and no value of the table, so it may be
published. Costs are in rho. Pure and exponential events cost a different rho in each accounting; see `Event.rho`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any, ClassVar

from chicle._checks import integer
from chicle.domain import Clique
from chicle.errors import ArtefactError, PrivacyError
from chicle.privacy import accounting
from chicle.privacy.budget import Accounting, positive
from chicle.privacy.noise import check_scale

__all__ = [
    "KINDS",
    "DiscoveryEvent",
    "Event",
    "ExponentialEvent",
    "GaussianEvent",
    "LaplaceEvent",
    "ParallelEvent",
    "PureEvent",
    "event_from_dict",
    "event_to_dict",
]

# A cost takes a few float operations, each good to half an ulp; this rounds it up by more than all their errors.
_UP = 1 + 2.0**-50

_NUMBERS = {"epsilon", "l1_sensitivity", "l2_sensitivity", "scale", "sigma"}


@dataclass(frozen=True, kw_only=True)
class Event(ABC):
    """One release, as a ledger records it.

    Attributes
    ----------
    purpose
        What the release was for, in words.
    values
        How many values were released.
    clique
        The attributes whose marginal was released; None where it was no marginal.
    """

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
        # Numbers become Python floats, so that costs are computed in double precision for any given type.
        for name in _NUMBERS & {field.name for field in fields(self)}:
            set_field(name, positive(name, getattr(self, name)))

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain data, for files; its kind stands beside it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Event:
        """Return the event that `to_dict` wrote."""
        if set(data) != {field.name for field in fields(cls)}:
            raise ArtefactError(f"an event of kind {cls.kind!r} has other fields than it should")
        return cls(**data)

    @abstractmethod
    def rho(self, how: Accounting) -> float:
        """Return the cost in rho under one way of accounting, rounded up."""

    @property
    def delta(self) -> float:
        """The part of delta that the event takes, rounded up; only discoveries take any."""
        return 0.0

    @property
    def pure(self) -> float:
        """The epsilon that the event takes beside rho, rounded up; only pure events take any."""
        return 0.0

    @property
    @abstractmethod
    def sensitivity(self) -> float | None:
        """How far one person can move the released values; None where the noise is given as an epsilon."""

    @property
    @abstractmethod
    def noise(self) -> str:
        """The noise in words."""


@dataclass(frozen=True, kw_only=True)
class GaussianEvent(Event):
    """A release of integers with exactly rounded Gaussian noise."""

    l2_sensitivity: float
    sigma: float
    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_scale("sigma", self.sigma)
        _at_least_1("l2_sensitivity", self.l2_sensitivity)

    @property
    def sensitivity(self) -> float:
        """How far one person can move the values, in L2."""
        return self.l2_sensitivity

    @property
    def noise(self) -> str:
        """The noise in words."""
        return f"sigma {self.sigma:.4g}"

    def rho(self, how: Accounting) -> float:  # noqa: ARG002 - the same in every accounting
        """Return the cost, s^2 / (2 sigma^2), rounded up."""
        return (self.l2_sensitivity / self.sigma) ** 2 / 2 * _UP


@dataclass(frozen=True, kw_only=True)
class LaplaceEvent(Event):
    """A release of integers with exact discrete Laplace noise, which is epsilon-DP."""

    l1_sensitivity: float
    scale: float
    kind: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_scale("scale", self.scale)
        _at_least_1("l1_sensitivity", self.l1_sensitivity)

    @property
    def sensitivity(self) -> float:
        """How far one person can move the values, in L1."""
        return self.l1_sensitivity

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
class PureEvent(LaplaceEvent):
    """A release of integers with exact discrete Laplace noise, which costs epsilon and no rho.

    Its epsilon is added to that of everything else, against the part of epsilon that the budget sets aside for it.
    """

    kind: ClassVar[str] = "pure"

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise, with ten digits, so that every machine gives the same."""
        q = math.exp(-1 / self.scale)
        return float(f"{math.sqrt(2 * q) / -math.expm1(-1 / self.scale):.10g}")

    @property
    def pure(self) -> float:
        """The epsilon that the event takes beside rho, rounded up."""
        return self.epsilon

    def rho(self, how: Accounting) -> float:
        """Return 0: the cost is the pure epsilon."""
        del how
        return 0.0


@dataclass(frozen=True, kw_only=True)
class ParallelEvent(Event):
    """Releases about groups of rows that share no row: as many mechanisms, each of which costs `most` rho at most.

    The cost is that of one group, the largest, because a row is in one group only. PRIVACY.md proves this also for
    persons whose rows are in several groups. `values` is the number of groups, `clique` the attributes that form them.
    """

    most: float
    kind: ClassVar[str] = "parallel"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "most", positive("most", self.most))

    @property
    def sensitivity(self) -> None:
        """None: each group has releases of its own."""
        return

    @property
    def noise(self) -> str:
        """The noise in words."""
        return f"rho {self.most:.4g} in each"

    def rho(self, how: Accounting) -> float:  # noqa: ARG002 - groups are accounted as their ledger is
        """Return the most that any group may cost."""
        return self.most


@dataclass(frozen=True, kw_only=True)
class ExponentialEvent(Event):
    """A choice by the exponential mechanism at epsilon; `values` is the number of candidates."""

    epsilon: float
    kind: ClassVar[str] = "exponential"

    @property
    def sensitivity(self) -> None:
        """None: the sensitivity of the scores is already part of epsilon."""
        return

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
class DiscoveryEvent(Event):
    """A release of which values of an attribute are frequent: those whose noisy count reaches a threshold.

    The noise is exactly rounded Gaussian. `values` is the most values that are kept, since how many there are is
    private. `l2_sensitivity` is the number of rows of a person. A person may have values that nobody else has; `delta`
    bounds the probability that one of them is released.
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
    def sensitivity(self) -> float:
        """How far one person can move the counts of values that others have too, in L2."""
        return self.l2_sensitivity

    @property
    def noise(self) -> str:
        """The noise in words."""
        return f"sigma {self.sigma:.4g}, from {self.threshold:,}"

    @property
    def delta(self) -> float:
        """The probability that a value which only one person has is released, rounded up."""
        return accounting.discovery_delta(sigma=self.sigma, threshold=self.threshold, rows=int(self.l2_sensitivity))

    def rho(self, how: Accounting) -> float:  # noqa: ARG002 - the same in every accounting
        """Return the cost of the counts of values that others have too, s^2 / (2 sigma^2), rounded up."""
        return (self.l2_sensitivity / self.sigma) ** 2 / 2 * _UP


KINDS: dict[str, type[Event]] = {
    kind.kind: kind
    for kind in (GaussianEvent, LaplaceEvent, PureEvent, ParallelEvent, ExponentialEvent, DiscoveryEvent)
}
"""The events that a ledger records, by their name in files."""


def event_to_dict(event: Event) -> dict[str, Any]:
    """Return an event as plain data, with its kind."""
    return {"kind": event.kind, **event.to_dict()}


def event_from_dict(data: dict[str, Any]) -> Event:
    """Return the event that `event_to_dict` wrote."""
    values = dict(data)
    return KINDS[values.pop("kind")].from_dict(values)


def _at_least_1(name: str, sensitivity: float) -> None:
    if sensitivity < 1:
        raise PrivacyError(f"{name} is {sensitivity!r}; integers move by at least 1 when they move at all")
