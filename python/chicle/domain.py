"""The domain: the attributes of a table and their numbers of values, which are public; and cliques, sets of them."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from math import prod
from typing import TypeAlias

from chicle.errors import DomainError

__all__ = ["Clique", "Domain", "pairs"]

Clique: TypeAlias = tuple[str, ...]
"""Names of attributes. Cliques from chicle are in domain order; cliques from users may be in any order."""

MAX_CARDINALITY = 2**32 - 1


class Domain(Mapping[str, int]):
    """An ordered, immutable mapping from attribute name to cardinality.

    Parameters
    ----------
    attributes
        Mapping, or pairs, of name and number of values. The codes of an attribute are ``0..cardinality-1``.

    Examples
    --------
    >>> domain = Domain({"age": 100, "sex": 2, "state": 51})
    >>> domain["sex"], list(domain)
    (2, ['age', 'sex', 'state'])
    >>> domain.cells(("age", "state"))
    5100
    """

    __slots__ = ("_cardinalities", "_positions")

    def __init__(self, attributes: Mapping[str, int] | Iterable[tuple[str, int]]) -> None:
        items = attributes.items() if isinstance(attributes, Mapping) else attributes
        self._cardinalities: dict[str, int] = {}
        for name, cardinality in _pairs(items):
            if not isinstance(name, str) or not name:
                raise DomainError(f"an attribute's name must be a non-empty string, not {name!r}")
            if name in self._cardinalities:
                raise DomainError(f"attribute {name!r} occurs twice; names must differ")
            self._cardinalities[name] = _cardinality(name, cardinality)
        if not self._cardinalities:
            raise DomainError("a domain needs at least one attribute; this one is empty")
        self._positions = {name: i for i, name in enumerate(self._cardinalities)}

    @classmethod
    def of(cls, attributes: Mapping[str, int]) -> Domain:
        """Return a mapping as a domain; a domain is returned as it is."""
        return attributes if isinstance(attributes, Domain) else cls(attributes)

    def __getitem__(self, name: str) -> int:
        return self._cardinalities[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._cardinalities)

    def __len__(self) -> int:
        return len(self._cardinalities)

    def __hash__(self) -> int:
        return hash(tuple(self.items()))

    def __eq__(self, other: object) -> bool:
        """Whether names, cardinalities and order are the same; a plain mapping is compared without its order."""
        if isinstance(other, Domain):
            return tuple(self.items()) == tuple(other.items())
        return isinstance(other, Mapping) and dict(self) == dict(other)

    def __repr__(self) -> str:
        shown = [f"{name}: {cardinality}" for name, cardinality in self.items()]
        if len(shown) > 12:
            shown[10:] = [f"... {len(self)} attributes"]
        return f"Domain({', '.join(shown)})"

    @property
    def positions(self) -> Mapping[str, int]:
        """The position of each attribute in the domain."""
        return self._positions

    def position(self, name: str) -> int:
        """Return the position of an attribute in the domain."""
        return self._positions[name]

    def check(self, clique: Iterable[str]) -> Clique:
        """Return a clique as a tuple in its own order; its names must be attributes and differ."""
        if isinstance(clique, str):
            raise DomainError(f"a clique is a tuple of attribute names, not a string; write ({clique!r},)")
        names = tuple(clique)
        for name in names:
            if name not in self._cardinalities:
                raise DomainError(f"{name!r} is not an attribute of this domain; it has {_some(self)}")
        if len(set(names)) < len(names):
            raise DomainError(f"clique {names!r} names an attribute twice; a clique is a set")
        return names

    def clique(self, names: Iterable[str]) -> Clique:
        """Return names as a clique in domain order."""
        return tuple(sorted(self.check(names), key=self.position))

    def shape(self, clique: Iterable[str]) -> tuple[int, ...]:
        """Return the cardinalities of a clique in its own order: the shape of its table."""
        return tuple(self._cardinalities[name] for name in self.check(clique))

    def cells(self, clique: Iterable[str]) -> int:
        """Return the number of cells of a clique's table."""
        return prod(self.shape(clique))


def pairs(domain: Mapping[str, int]) -> list[Clique]:
    """Return all pairs of attributes, in domain order."""
    return list(combinations(domain, 2))


def _pairs(items: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    try:
        return [(name, cardinality) for name, cardinality in items]
    except (TypeError, ValueError):
        raise DomainError("a domain is a mapping, or pairs, of attribute name and cardinality") from None


def _cardinality(name: str, cardinality: object) -> int:
    rule = f"attribute {name!r}: its cardinality must be an integer from 1 to {MAX_CARDINALITY}"
    if isinstance(cardinality, bool) or not hasattr(cardinality, "__index__"):
        raise DomainError(f"{rule}, not of type {type(cardinality).__name__}")
    number = operator.index(cardinality)
    if not 1 <= number <= MAX_CARDINALITY:
        raise DomainError(f"{rule}, not {number}")
    return number


def _some(domain: Domain) -> str:
    names = [repr(name) for name in domain]
    return ", ".join(names if len(names) <= 8 else [*names[:7], f"... ({len(names)} in all)"])
