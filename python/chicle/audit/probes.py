"""Probes: mechanisms that spend nearly all of their budget on one kind of release, so that an audit sees it clearly.

A probe is what a mechanism is: it has a desk and nothing else. Each first measures 1-ways for a sliver of the budget,
because a release needs a model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np
import numpy.typing as npt

from chicle.audit.pairs import ROWS, cross
from chicle.counting.countable import Expect
from chicle.domain import Clique
from chicle.measurements.desk import Desk
from chicle.mechanisms.base import Mechanism
from chicle.mechanisms.stages import Setting, Stage, Stages
from chicle.models.base import Model
from chicle.models.independent import IndependentModel
from chicle.query import Functional, Query, as_query

__all__ = ["PROBES", "Probe"]

_SLIVER = 0.02

Floats = npt.NDArray[np.float64]


@dataclass(kw_only=True, eq=False, repr=False)
class Probe(Mechanism):
    """Spends nearly everything as `PROBES` says under the probe's name."""

    probe: str = "tables"

    def stages(self, setting: Setting) -> Stages:
        """Return that all of the budget goes to the probe."""
        return Stages.of(Stage(name="probe", rho=setting.rho))

    def run(self, desk: Desk) -> Model:
        """Measure 1-ways, and what the probe is about."""
        desk.measure_one_ways(rho=_SLIVER * desk.left)
        PROBES[self.probe](desk)
        return self.learn(IndependentModel(), desk)


def _tables(desk: Desk) -> None:
    desk.measure(_subsets(tuple(desk.domain)), rho=desk.left)


def _groups(desk: Desk) -> None:
    """Count groups that overlap: the canary is in each of them."""
    last = {name: size - 1 for name, size in desk.domain.items()}
    groups = [Query((), where={name: last[name] for name in some}) for some in _subsets(tuple(last)) if some]
    desk.measure(groups, rho=desk.left)


def _subsets(names: Clique) -> list[Clique]:
    return list(chain.from_iterable(combinations(names, size) for size in range(len(names) + 1)))


def _answers(desk: Desk) -> None:
    """Ask for buckets and functionals; the canary's cell has the longest column of weights."""
    first, second, *_ = desk.domain
    halves = {first: np.arange(desk.domain[first]) // 2}
    weights = np.ones((2, desk.domain[second]), dtype=np.int64)
    weights[:, -1] = 3
    desk.measure([Query((first,), halves), Query((second,), functional=Functional(weights))], rho=desk.left)


def _scores(desk: Desk) -> None:
    """Score the distance from everybody but the canary, which is 0 without it and k with it."""
    first, *_ = desk.domain
    desk.score([(first,)], lambda _: [_of_others(desk, first)], rho=desk.left)


def _independence(desk: Desk) -> None:
    first, second, *_ = desk.domain
    desk.measure_one_ways(rho=desk.left / 4)
    desk.score([(first, second)], desk.independence(), rho=desk.left)


def _dependence(desk: Desk) -> None:
    first, second, *_ = desk.domain
    desk.dependence([(first, second)], rho=desk.left)


def _rivals(desk: Desk) -> Expect:
    """Return what is expected of two 1-ways: everybody but the canary in the first, the canary too in the second.

    So without the canary the second is off by k, with it the first: the worst case of a choice.
    """
    first, second, *_ = desk.domain
    expected: dict[Clique, Floats] = {(name,): _of_others(desk, name) for name in (first, second)}
    expected[(second,)][-1] += desk.k
    return lambda queries: [expected[as_query(one).clique] for one in queries]


def _of_others(desk: Desk, name: str) -> Floats:
    """Return the 1-way of everybody but the canary, which is public here."""
    return np.bincount(cross(desk.domain, ROWS)[name], minlength=desk.domain[name]).astype(np.float64)


def _choice(desk: Desk) -> None:
    first, second, *_ = desk.domain
    desk.choose([(first,), (second,)], _rivals(desk), rho=desk.left)


def _largest(desk: Desk) -> None:
    first, second, *_ = desk.domain
    desk.choose([(first,), (second,)], _rivals(desk), rho=desk.left, distance="max")


def _cells(desk: Desk) -> None:
    first, *_ = desk.domain
    desk.choose_cells([(first,)], lambda _: [_of_others(desk, first)], rho=desk.left, signed=True)


PROBES: dict[str, Callable[[Desk], None]] = {
    "tables": _tables,
    "groups": _groups,
    "answers": _answers,
    "scores": _scores,
    "independence": _independence,
    "dependence": _dependence,
    "choice": _choice,
    "largest": _largest,
    "cells": _cells,
}
"""What each probe spends on."""
