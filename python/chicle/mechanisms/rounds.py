"""Rounds: choose, measure, refit, until the budget is spent exactly. One driver for all adaptive mechanisms.

A schedule sets what each round may spend, a chooser picks what it measures: by the exponential mechanism, one query a
round, or by noisy scores, many at once. Choosers pay at the desk, so each round is a sequence of releases whose
parameters depend on earlier releases only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from chicle.measurements.desk import Desk
from chicle.models.base import Model
from chicle.query import QueryLike

__all__ = ["Chooser", "EqualRounds", "Pick", "Round", "Schedule", "rounds"]

_Model = TypeVar("_Model", bound="Model")


@dataclass(frozen=True)
class Round:
    """What one round may spend.

    Attributes
    ----------
    number
        Which round it is, from 1.
    choosing, measuring
        The rho of choosing what to measure, and of measuring it.
    last
        Whether the budget ends with this round.
    """

    number: int
    choosing: float
    measuring: float
    last: bool = False


@dataclass(frozen=True)
class Pick:
    """What to measure in a round: a query, and its share of what the round may spend on measuring."""

    query: QueryLike
    share: float = 1.0


class Schedule(ABC):
    """Says what each round may spend."""

    @abstractmethod
    def next(self, desk: Desk) -> Round:
        """Return the next round."""

    def moved(self, picks: Sequence[Pick], distance: float) -> None:
        """React to how far a round moved the model on what it measured, in records; by default do nothing."""
        del picks, distance


@dataclass
class EqualRounds(Schedule):
    """A fixed number of rounds that spend the same.

    Attributes
    ----------
    number
        How many there are.
    choosing, measuring
        The rho of all of them.
    """

    number: int
    choosing: float
    measuring: float
    done: int = 0

    def next(self, desk: Desk) -> Round:
        """Return the next round."""
        del desk
        self.done += 1
        parts = self.choosing / self.number, self.measuring / self.number
        return Round(self.done, *parts, last=self.done == self.number)


class Chooser(ABC, Generic[_Model]):
    """Chooses what a round measures."""

    @abstractmethod
    def choose(self, desk: Desk, model: _Model, now: Round) -> list[Pick]:
        """Return what to measure, spending at most `now.choosing`; an empty list ends the rounds."""


def rounds(
    desk: Desk,
    model: _Model,
    chooser: Chooser[_Model],
    schedule: Schedule,
    refit: Callable[[_Model], _Model],
) -> int:
    """Choose, measure and refit until the schedule's last round; return how many rounds measured something.

    Parameters
    ----------
    desk
        Where choices and measurements are paid for.
    model
        The model before the first round.
    chooser, schedule
        What is measured, and what it may cost.
    refit
        Returns the model of all measurements so far, given the one before; after the last round nothing is refitted.
    """
    while True:
        now = schedule.next(desk)
        picks = chooser.choose(desk, model, now)
        if not picks:
            return now.number - 1
        queries = [pick.query for pick in picks]
        desk.measure(queries, rho=now.measuring, shares=[pick.share for pick in picks])
        if now.last:
            return now.number
        before = model
        model = refit(before)
        listens = type(schedule).moved is not Schedule.moved
        if listens or desk.progress is not None:
            tables = zip(*(desk.expect(one)(queries) for one in (before, model)), strict=True)
            distance = sum(float(np.abs(new - old).sum()) for old, new in tables)
            schedule.moved(picks, distance)
            if desk.progress is not None:
                desk.progress(now.number, distance / model.total)
