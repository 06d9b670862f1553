"""Workloads: the marginals that users will ask of a synthetic table, and the weight of each.

A workload is a set of cliques with weights c_s ([A] section 2.1). Mechanisms that know it may measure any clique of its
*downward closure*, the subsets of its cliques: smaller cliques have larger counts. The relevance of a clique r of the
closure is its overlap with the workload, ``w_r = sum over s of c_s |r & s|`` ([A] Algorithm 4, line 8). This is the
sum, over the attributes of r, of the weight of all cliques that contain the attribute: O(workload), not
O(workload * closure).

Everything here is public: a workload is chosen without looking at the data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from chicle._checks import check_seed, integer, number
from chicle.domain import Clique, Domain
from chicle.errors import DomainError, ParameterError

__all__ = ["Workload"]

_MOST = 10_000_000  # cliques; a larger workload is a mistake


class Workload(Mapping[Clique, float]):
    """Cliques with weights, immutable.

    Parameters
    ----------
    cliques
        Tuples of attribute names, each of weight 1, or a mapping from them to weights of at least 0.

    Examples
    --------
    >>> workload = Workload({("age", "income"): 2.0, ("age", "sex"): 1.0})
    >>> workload.closure()
    [('age',), ('income',), ('sex',), ('age', 'income'), ('age', 'sex')]
    >>> workload.relevance(("age",)), workload.relevance(("age", "income"))
    (3.0, 5.0)
    """

    __slots__ = ("_of_attribute", "_weights")

    def __init__(self, cliques: Mapping[Clique, float] | Iterable[Iterable[str]]) -> None:
        if isinstance(cliques, str) or not isinstance(cliques, Iterable):
            raise ParameterError(
                f"a workload is a list of cliques, or a mapping from clique to weight, not a {type(cliques).__name__}"
            )
        given = cliques.items() if isinstance(cliques, Mapping) else ((clique, 1.0) for clique in cliques)
        self._weights: dict[Clique, float] = {}
        seen: set[frozenset[str]] = set()
        for clique, weight in given:
            names = _clique(clique)
            if frozenset(names) in seen:
                raise ParameterError(f"clique {names!r} is in the workload twice; give it the sum of its weights")
            seen.add(frozenset(names))
            self._weights[names] = number(f"the weight of {names!r} in the workload", weight)
        if not any(self._weights.values()):
            raise ParameterError("a workload needs at least one clique of a weight above 0")
        self._of_attribute: dict[str, float] = {}
        for names, weight in self._weights.items():
            for name in names:
                self._of_attribute[name] = self._of_attribute.get(name, 0.0) + weight
        if not math.isfinite(math.fsum(self._of_attribute.values())):
            raise ParameterError("the weights of the workload add up to more than a float holds; give smaller ones")
        _check_size(sum(2 ** min(len(clique), 64) for clique in self._weights) // 8)

    @classmethod
    def all_kway(cls, domain: Mapping[str, int], k: int = 3) -> Workload:
        """Return all cliques of k attributes (ALL-3WAY of [A] section 6.1), or of all attributes if there are fewer.

        Examples
        --------
        >>> Workload.all_kway({"a": 2, "b": 2, "c": 2, "d": 2})
        Workload of 4 cliques over 4 attributes
        """
        size = min(integer("k", k, 1), len(domain))
        _check_size(math.comb(len(domain), size))
        return cls(combinations(domain, size))

    @classmethod
    def target(cls, domain: Mapping[str, int], attribute: str, k: int = 3) -> Workload:
        """Return all cliques of k attributes that contain a given one (TARGET of [A] section 6.1).

        Examples
        --------
        >>> list(Workload.target({"a": 2, "b": 2, "income": 2}, "income", k=2))
        [('a', 'income'), ('b', 'income')]
        """
        domain = Domain.of(domain)
        domain.check((attribute,))
        others = [name for name in domain if name != attribute]
        size = min(integer("k", k, 1), len(domain)) - 1
        _check_size(math.comb(len(others), size))
        return cls(domain.clique((attribute, *rest)) for rest in combinations(others, size))

    @classmethod
    def skewed(cls, domain: Mapping[str, int], k: int = 3, *, number: int = 256, seed: int = 0) -> Workload:
        """Return random cliques that hold some attributes far more often than others (SKEWED of [A] section 6.1).

        Each attribute has a weight, the square of an exponential deviate; cliques are drawn with probability
        proportional to the product of their attributes' weights. The weight of a clique is how often it was drawn.

        Parameters
        ----------
        domain
            The attributes.
        k
            The number of attributes of a clique.
        number
            How many cliques are drawn.
        seed
            Fixes the draw.

        Examples
        --------
        >>> workload = Workload.skewed({name: 2 for name in "abcdefgh"}, seed=1)
        >>> sum(workload.values())
        256.0
        """
        domain = Domain.of(domain)
        size = min(integer("k", k, 1), len(domain))
        _check_size(math.comb(len(domain), size))
        rng = np.random.default_rng(check_seed(seed))
        weights = dict(zip(domain, rng.exponential(size=len(domain)) ** 2, strict=True))
        every = list(combinations(domain, size))
        chances = np.array([math.prod(weights[name] for name in clique) for clique in every])
        drawn = rng.choice(len(every), size=integer("number", number, 1), p=chances / chances.sum())
        which, times = np.unique(drawn, return_counts=True)
        return cls({every[i]: float(count) for i, count in zip(which.tolist(), times.tolist(), strict=True)})

    @classmethod
    def of(cls, given: Workload | Mapping[Clique, float] | Iterable[Iterable[str]]) -> Workload:
        """Return a workload unchanged, or make one from cliques."""
        return given if isinstance(given, Workload) else cls(given)

    def over(self, domain: Domain) -> Workload:
        """Return the workload with every clique in domain order; an unknown attribute is an error."""
        return Workload({domain.clique(clique): weight for clique, weight in self.items()})

    def closure(self) -> list[Clique]:
        """Return the downward closure, small cliques first: all non-empty subsets of cliques of a weight above 0."""
        found: dict[Clique, None] = {}
        relevant = [clique for clique, weight in self.items() if weight > 0]
        for size in range(1, max(map(len, relevant), default=0) + 1):
            for clique in relevant:
                found.update(dict.fromkeys(combinations(clique, size)))
        return list(found)

    def coverage(self) -> dict[Clique, float]:
        """Return for each clique of the closure the weight of all cliques that contain it.

        Examples
        --------
        >>> workload = Workload({("age", "income"): 2.0, ("age", "sex"): 1.0})
        >>> workload.coverage()[("age",)], workload.coverage()[("age", "sex")]
        (3.0, 1.0)
        """
        found = dict.fromkeys(self.closure(), 0.0)
        for clique, weight in self.items():
            if weight > 0:
                for size in range(1, len(clique) + 1):
                    for part in combinations(clique, size):
                        found[part] += weight
        return found

    def relevance(self, clique: Iterable[str]) -> float:
        """Return the relevance of a clique, the w_r of [A]: the sum of weight times overlap over all cliques."""
        return math.fsum(self._of_attribute.get(name, 0.0) for name in clique)

    def to_json(self) -> str:
        """Return the workload as JSON, for `from_json`."""
        entries = [{"clique": list(clique), "weight": weight} for clique, weight in self.items()]
        return json.dumps({"workload": entries}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Workload:
        """Return the workload that `to_json` wrote; cliques without a weight have weight 1.

        Examples
        --------
        >>> Workload.from_json('{"workload": [["age", "sex"], {"clique": ["age", "job"], "weight": 2}]}')
        Workload of 2 cliques over 3 attributes
        """
        rule = 'a workload is {"workload": [{"clique": ["a", "b"], "weight": 1}, ...]}'
        try:
            document: Any = json.loads(text)
        except (RecursionError, TypeError, ValueError):
            raise ParameterError(f"this is not JSON; {rule}") from None
        entries = document.get("workload") if isinstance(document, dict) else None
        if not isinstance(entries, list):
            raise ParameterError(f"the key 'workload' with a list is missing; {rule}")
        weights: list[tuple[Any, Any]] = []
        for entry in entries:
            fits = isinstance(entry, dict) and set(entry) <= {"clique", "weight"} and "clique" in entry
            if not fits and not isinstance(entry, list):
                raise ParameterError(f"an entry of the workload is not a clique and has none; {rule}")
            weights.append((entry["clique"], entry.get("weight", 1.0)) if isinstance(entry, dict) else (entry, 1.0))
        for clique, _ in weights:
            if not isinstance(clique, list):
                raise ParameterError(f"a clique is a list of attribute names; {rule}")
        cliques = [_clique(clique) for clique, _ in weights]
        if len(set(cliques)) < len(cliques):
            twice = next(clique for clique in cliques if cliques.count(clique) > 1)
            raise ParameterError(f"clique {twice!r} is in the workload twice; give it the sum of its weights")
        return cls({clique: weight for clique, (_, weight) in zip(cliques, weights, strict=True)})

    def to_plain(self, domain: Domain) -> Any:  # noqa: ANN401 - plain data
        """Return the workload as plain data, for `from_plain`: shortened if it is all cliques of k attributes."""
        (size, *others), weights = {len(clique) for clique in self}, set(self.values())
        if not others and len(weights) == 1 and len(self) == math.comb(len(domain), size):
            return {"all_kway": size}
        return [[[domain.position(name) for name in clique], weight] for clique, weight in self.items()]

    @classmethod
    def from_plain(cls, plain: Any, domain: Domain) -> Workload:  # noqa: ANN401 - plain data
        """Return the workload of `to_plain`, up to the scale of equal weights.

        Examples
        --------
        >>> domain = Domain({"a": 2, "b": 2, "c": 2})
        >>> workload = Workload({("a", "c"): 2.0, ("b",): 1.0})
        >>> dict(Workload.from_plain(workload.to_plain(domain), domain)) == dict(workload)
        True
        >>> Workload.all_kway(domain, 2).to_plain(domain)
        {'all_kway': 2}
        """
        if isinstance(plain, Mapping):
            return cls.all_kway(domain, plain["all_kway"])
        names = list(domain)
        return cls({tuple(names[i] for i in places): weight for places, weight in plain})

    @classmethod
    def load(cls, path: str | Path) -> Workload:
        """Return the workload in a JSON file."""
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise ParameterError(f"the workload {path} cannot be read: {reason}") from None
        except ParameterError as error:
            raise ParameterError(f"{path}: {error}") from None

    def __getitem__(self, clique: Clique) -> float:
        return self._weights[clique]

    def __iter__(self) -> Iterator[Clique]:
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)

    def __repr__(self) -> str:
        many = "1 clique" if len(self) == 1 else f"{len(self):,} cliques"
        return f"Workload of {many} over {len(self._of_attribute):,} attributes"


def _clique(names: object) -> Clique:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise DomainError(f"a clique is a tuple of attribute names, not a {type(names).__name__}")
    clique = tuple(names)
    if not clique or not all(isinstance(name, str) for name in clique):
        raise DomainError("a clique of a workload is one attribute name or more")
    if len(set(clique)) < len(clique):
        raise DomainError(f"clique {clique!r} names an attribute twice; a clique is a set")
    return clique


def _check_size(cliques: int) -> None:
    if cliques > _MOST:
        raise ParameterError(
            f"a workload of {cliques:,} cliques and subsets is too large; at most {_MOST:,} are allowed. Use smaller "
            "cliques, or fewer"
        )
