"""Presence: attributes that are only there where a number says so, such as the second of a household's people.

A wide row has a number N and slots; a slot is there if N exceeds its threshold. Its attributes have a last code,
*nobody*, for rows without it. Absence makes nearly every pair of attributes look dependent, so what is expected of
independent attributes is taken *given presence*: N says who is there, and whoever is there has independent values.

All of this is declared, or computed from released values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle.domain import Clique
from chicle.errors import DomainError
from chicle.query import QueryLike, as_query

__all__ = ["GivenPresence", "Presence"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Presence:
    """Which attributes are there only if a number says so.

    Attributes
    ----------
    number
        The attribute whose code, plus `least`, says how many are there.
    least
        The number that its code 0 stands for.
    thresholds
        For each attribute of a slot, the number that must be exceeded for it to be there. Where `least` exceeds it, it
        is always there and has no code for nobody.

    Examples
    --------
    >>> presence = Presence("people", 1, {"age 1": 0, "age 2": 1})
    >>> presence.optional("age 1"), presence.optional("age 2")
    (False, True)
    >>> presence.apart({"people": 3, "age 1": 10, "age 2": 11, "rooms": 5})
    {'people': 3, 'age 2': 1}
    """

    number: str
    least: int
    thresholds: Mapping[str, int]

    def optional(self, name: str) -> bool:
        """Return whether an attribute may be absent, so that its last code means nobody."""
        return name in self.thresholds and self.thresholds[name] >= self.least

    def apart(self, domain: Mapping[str, int]) -> dict[str, int]:
        """Return how many last codes of each attribute must never be joined with others."""
        optional = {name: 1 for name in domain if self.optional(name)}
        return {self.number: domain[self.number], **optional} if self.number in domain else optional

    def consistent(
        self, shares: Mapping[str, Floats], variances: Mapping[str, Floats] | None = None
    ) -> dict[str, Floats]:
        """Return shares of values that agree on who is there: the mean of all that tell of it, by inverse variance.

        Parameters
        ----------
        shares
            For each attribute the shares of its codes.
        variances
            For each attribute the variance of each share; all the same by default.
        """
        noise = {name: np.ones(len(one)) for name, one in shares.items()} if variances is None else variances
        made = dict(shares)
        if self.number not in shares:
            return made
        own = shares[self.number]
        counts = self.least + np.arange(len(own))
        there = {}
        for threshold in sorted({self.thresholds[name] for name in shares if self.optional(name)}):
            above = counts > threshold
            told = [(float(own[above].sum()), float(noise[self.number][above].sum()))]
            for name, one in shares.items():
                if self.optional(name) and self.thresholds[name] == threshold:
                    told.append((1 - float(one[-1]), float(noise[name][-1])))
            weights = [1 / max(variance, 1e-300) for _, variance in told]
            there[threshold] = float(np.average([share for share, _ in told], weights=weights))
        made[self.number] = _with_tails(own, counts, there)
        for threshold in there:
            there[threshold] = float(made[self.number][counts > threshold].sum())
        for name, one in shares.items():
            if self.optional(name):
                made[name] = _present(one, there[self.thresholds[name]])
        return made

    def expected(
        self, clique: Clique, shares: Mapping[str, Floats], total: float, buckets: Mapping[str, Any] | None = None
    ) -> Floats:
        """Return the expected counts of a clique if attributes are independent given who is there.

        Parameters
        ----------
        clique
            The attributes.
        shares
            For each attribute the shares of its codes, as `consistent` returns them.
        total
            The number of records.
        buckets
            The bucket of each code, where an attribute is seen in buckets.
        """
        slots = [name for name in clique if self.optional(name)]
        buckets = {} if buckets is None else buckets
        if not slots:
            return total * _outer([_seen(shares[name], buckets.get(name)) for name in clique])
        own = shares[self.number]
        counts = self.least + np.arange(len(own))
        if self.number in clique:
            classes = np.arange(len(own))
        else:
            # Numbers between the same thresholds are alike.
            classes = np.searchsorted(sorted({self.thresholds[name] for name in slots}), counts, side="left")
        tables = []
        for one in np.unique(classes):
            inside = classes == one
            mass, count = float(own[inside].sum()), int(counts[inside][0])
            axes = []
            for name in clique:
                if name == self.number:
                    axis = inside.astype(np.float64)
                elif name in slots:
                    axis = _given(shares[name], there=count > self.thresholds[name])
                else:
                    axis = shares[name]
                axes.append(_seen(axis, buckets.get(name)))
            tables.append(mass * _outer(axes))
        return total * np.asarray(sum(tables), dtype=np.float64)

    def impossible(self, clique: Clique, domain: Mapping[str, int]) -> npt.NDArray[np.bool_]:
        """Return the cells of a clique that no row can occupy, because of who is there.

        Examples
        --------
        >>> Presence("n", 0, {"a": 0}).impossible(("n", "a"), {"n": 2, "a": 3}).astype(int)
        array([[1, 1, 0],
               [0, 0, 1]])
        """
        even = {name: np.full(size, 1 / size) for name, size in domain.items()}
        return np.asarray(self.expected(clique, even, 1.0) == 0)

    def to_plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"number": self.number, "least": self.least, "thresholds": dict(self.thresholds)}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Presence:
        """Return it from the plain data of `to_plain`."""
        thresholds = {str(name): int(threshold) for name, threshold in plain["thresholds"].items()}
        return cls(str(plain["number"]), int(plain["least"]), thresholds)


@dataclass(frozen=True)
class GivenPresence:
    """The expected counts of attributes that are independent given who is there: an `Expect`.

    Attributes
    ----------
    presence
        Who is there when.
    shares
        For each attribute the public shares of its values.
    total
        The public estimate of the number of records.
    """

    presence: Presence
    shares: Mapping[str, Floats]
    total: float

    def __call__(self, queries: Sequence[QueryLike]) -> list[Floats]:
        """Return the expected answer to each query; queries of groups and functionals are an error."""
        asked = [as_query(one) for one in queries]
        if any(one.where or one.functional is not None for one in asked):
            raise DomainError("what is expected given presence is a whole table; leave groups and functionals out")
        return [self.presence.expected(one.clique, self.shares, self.total, one.buckets) for one in asked]


def _outer(axes: Sequence[Floats]) -> Floats:
    return np.asarray(reduce(np.multiply.outer, axes, np.array(1.0)), dtype=np.float64)


def _seen(axis: Floats, buckets: Any) -> Floats:  # noqa: ANN401 - an array, or None
    return axis if buckets is None else np.bincount(np.asarray(buckets), weights=axis).astype(np.float64)


def _given(shares: Floats, *, there: bool) -> Floats:
    """Return the shares of an optional attribute's codes where it is there, or where it is not."""
    if not there:
        return np.append(np.zeros(len(shares) - 1), 1.0)
    return _present(shares, 1.0)


def _present(shares: Floats, there: float) -> Floats:
    """Return shares in which values have a given sum, and nobody has the rest."""
    values = np.maximum(shares[:-1], 0.0)
    known = float(values.sum())
    each = values / known if known > 0 else np.full(len(values), 1 / max(len(values), 1))
    return np.append(each * there, 1 - there)


def _with_tails(shares: Floats, counts: npt.NDArray[np.int64], there: Mapping[int, float]) -> Floats:
    """Return the shares of a number so that those above each threshold add up to what is known of them."""
    made, above, high = np.zeros(len(shares)), 1.0, -1
    bounds = [*there.items(), (int(counts[-1]), 0.0)]
    for threshold, told in bounds:
        inside = (counts > high) & (counts <= threshold)
        share = min(max(told, 0.0), above)
        held = np.maximum(shares, 0.0) * inside
        known = float(held.sum())
        if not inside.any():
            continue
        made += (above - share) * (held / known if known > 0 else inside / inside.sum())
        above, high = share, threshold
    return made
