"""The purchase for one column with something to discover: its cost and its result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from chicle.columns import Column
from chicle.plans import Step
from chicle.privacy.events import Event
from chicle.privacy.ledger import Ledger

__all__ = ["Purchase"]


@dataclass(frozen=True, kw_only=True)
class Purchase(ABC):
    """The purchase of one column's values or bins.

    Attributes
    ----------
    name
        The column.
    rows
        The maximum number of rows of a person.
    rho, delta
        The maximum cost.
    wanted
        The request of the column.
    """

    takes_delta: ClassVar[bool]
    """Whether it costs delta as well as rho."""

    name: str
    rows: int
    rho: float
    delta: float = 0.0
    wanted: Any

    @abstractmethod
    def events(self) -> list[Event]:
        """Return all events that the purchase may cost."""

    @abstractmethod
    def step(self) -> Step:
        """Return the purchase as a step of a plan."""

    @abstractmethod
    def buy(self, counts: Any, ledger: Ledger) -> tuple[Column, str]:  # noqa: ANN401 - each kind has its own counts
        """Return the column, declared in full, and a note on the result.

        Parameters
        ----------
        counts
            The private counts of the column's tally.
        ledger
            The ledger that pays.
        """
