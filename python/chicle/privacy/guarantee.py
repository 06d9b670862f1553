"""The privacy guarantee of a release: either chicle's own accounting (`Ledger`) or what somebody else says (`Claim`).

Code that prints, saves or reports a release needs the same few answers from both; `Guarantee` is their interface.
Only a ledger can pay for a release.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from chicle._html import Markup, card
from chicle.domain import Clique
from chicle.privacy.budget import Budget
from chicle.privacy.events import Event

__all__ = ["Entry", "Guarantee", "Terms"]


class Entry(NamedTuple):
    """A line of a ledger: the event, its cost in rho, and that cost as a share of the budget."""

    event: Event
    rho: float
    share: float


@dataclass(frozen=True, kw_only=True)
class Terms:
    """A guarantee in words, for a report.

    Attributes
    ----------
    promise, condition
        The guarantee in a few characters, such as ``"ε = 1"``, and what it depends on, such as ``" at δ = 1e-09"``.
    detail
        One sentence more.
    caveat
        What limits publication of the release, as a sentence; empty if nothing does.
    facts
        All that is known, as pairs of a heading and a text.
    assumptions
        What must be true for the guarantee to hold.
    """

    promise: str
    condition: str
    detail: str
    caveat: str
    facts: tuple[tuple[str, str], ...]
    assumptions: tuple[str, ...]


class Guarantee(ABC):
    """What protects the people in a release, and who vouches for it."""

    kind: ClassVar[str]
    """The field of a release file that holds it."""

    @property
    @abstractmethod
    def budget(self) -> Budget | None:
        """What chicle may spend in all; None if somebody else did the accounting."""

    @property
    @abstractmethod
    def protected(self) -> bool:
        """Whether the noise protects people; False if it came from the seed of a test."""

    @property
    @abstractmethod
    def entries(self) -> tuple[Entry, ...]:
        """What chicle released and what each release cost, in order; empty if somebody else did the accounting."""

    @abstractmethod
    def check(self, events: Iterable[Event]) -> None:
        """Raise `PrivacyError` unless all of these events can be paid for."""

    @abstractmethod
    def unpaid(self, tables: Iterable[tuple[Clique, float, int]], *, l2_sensitivity: float) -> list[Clique]:
        """Return the cliques of noisy tables that should have been paid for and were not.

        Parameters
        ----------
        tables
            The clique, sigma and number of values of each noisy table.
        l2_sensitivity
            How far one person can move a table.
        """

    @abstractmethod
    def summary(self) -> str:
        """Return the guarantee in one or two lines."""

    def _repr_html_(self) -> Markup:
        return card("Guarantee", self.summary())

    @abstractmethod
    def figures(self) -> dict[str, Any]:
        """Return the guarantee in a few figures, as plain data for programs."""

    @abstractmethod
    def terms(self, max_records_per_person: int) -> Terms:
        """Return the guarantee in words, for a table in which a person has at most so many rows."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data."""

    @classmethod
    @abstractmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Guarantee:
        """Return what `to_dict` wrote."""

    def to_json(self) -> str:
        """Return all of it as JSON."""
        return json.dumps(self.to_dict(), indent=1)
