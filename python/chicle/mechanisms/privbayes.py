"""PrivBayes (Zhang et al. 2017): 1-ways, a Bayesian network of strong dependencies, and the tables of its families.

The network is made of released scores: the InDif of every pair of attributes, one noisy vector, which [P] section 6.1
puts in the place of mutual information too. So the structure costs one release however many networks are weighed, and
its sensitivity is the one that `chicle.selection.indif` proves: each score is the L1 distance of exact counts from a
product of 1-ways that were released before, and moves by exactly k records at most.

Attributes join the network one by one. A family, an attribute X with parents P, is worth

    sum over p in P of InDif(X, p)  -  what measuring it adds to the noise of all tables,

in records. Scores are drawn together as far as their spread is noise; the added noise is that of `dense_marg`,
``k ((T + t)^(3/2) - T^(3/2)) / sqrt(pi rho)`` with ``t = cells^(2/3)`` and T the sum of t over the families so far.
That is the theta-usefulness of the paper, told by the scores: parents are added while what they explain exceeds the
noise on the cells they bring, so that there are more of them where the budget is large or values are few. An attribute
that no parent is worth it for stays alone, with its 1-way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle._checks import integer, number
from chicle.counting.counter import MEMORY_LIMIT
from chicle.counting.records import Countable
from chicle.domain import Clique, Domain
from chicle.measurements.merges import compress, over_original
from chicle.mechanisms.base import Mechanism, in_parts
from chicle.mechanisms.mst import compressed_model, pairs_with_room
from chicle.models.pgm import jt_size
from chicle.plans import Plan, Step, one_way_steps, pair_errors, rough_cost
from chicle.privacy.budget import Budget
from chicle.privacy.ledger import Ledger
from chicle.releases.release import Release, generator_of
from chicle.schema import Schema
from chicle.selection import indif
from chicle.selection.expected_error import steady

__all__ = ["PrivBayes"]

_MODEL = 16 * 2**20  # bytes of the junction tree up to which families may have several parents


@dataclass(kw_only=True, eq=False, repr=False)
class PrivBayes(Mechanism):
    """Measure 1-ways and the families of a Bayesian network; records follow the graphical model of them.

    The module's header tells how the network is chosen. The graphical model of the families is the moralised network;
    where the paper draws attributes one after another from noisy conditional tables, the model also makes these agree
    with each other and with the 1-ways. Values of low count are merged as in `chicle.MST`.

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting, discovery, threads, progress
        As for every mechanism.
    parents
        Most parents of an attribute.
    shares
        Parts of the budget for the 1-ways, for selection and for the tables of families. Within the first and the last,
        a marginal of c cells gets a share ~ c^(2/3).
    theta
        Values whose noisy count is below this many sigmas are merged.
    iterations
        Most steps of fitting the model.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(5_000, d=6)
    >>> synth = chicle.PrivBayes(epsilon=1, delta=1e-9, parents=1).fit(census)
    >>> max(len(measured.clique) for measured in synth.release_.measurements)
    2
    >>> table = synth.sample(seed=0)
    """

    parents: int = 2
    shares: tuple[float, float, float] = (0.2, 0.1, 0.7)
    theta: float = 3.0
    iterations: int = 1_000

    def _check(self, schema: Schema) -> None:
        self._generation()
        self._parts(1.0, schema.domain)
        integer("parents", self.parents, 1)

    def _plan(self, schema: Schema, budget: Budget, n: int) -> Plan:
        domain, k = schema.domain, schema.max_records_per_person
        first, second, third = self._parts(budget.rho, domain)
        steps = one_way_steps(domain, first, k, n)
        if candidates := len(_candidates(domain)):
            # Were all pairs measured; a network has fewer tables, some of them larger.
            least, most = pair_errors(domain, third, k, n) or (None, None)
            steps += [
                Step(release="selection", of=f"{candidates:,} pairs", values=candidates, rho=second),
                Step(release="marginal", of="the families", rho=third, error=most, least_error=least),
            ]
        return Plan("PrivBayes", budget, steps, n, rough_cost(domain, n, per_pair=5))

    def _fit(self, records: Countable, schema: Schema, rho: float, ledger: Ledger) -> Release:
        options, domain = self._generation(), schema.domain
        first, second, third = self._parts(rho, domain)
        singles: list[Clique] = [(name,) for name in domain]
        one_ways = self._measure(records, singles, first, ledger, "1-way")
        if not (candidates := _candidates(domain)):
            return Release(schema, tuple(one_ways), ledger, "PrivBayes", options)
        compression = compress(one_ways, domain, theta=self.theta)
        coded = compression.encode(records)
        # What noise has left one value of depends on nothing.
        several = [pair for pair in candidates if min(compression.domain.shape(pair)) > 1]
        families: list[Clique] = []
        rest = second + third
        if several:
            rest = third
            noise = records.max_records_per_person / math.sqrt(math.pi * third)
            told = indif(coded, ledger, rho=second, one_ways=compression.one_ways, pairs=several, threads=self.threads)
            scores = dict(zip(told.cliques, steady(told.values, told.sigma).tolist(), strict=True))
            families = network(scores, compression.domain, noise=noise, parents=self.parents)
        if not families:
            # The rest makes the 1-ways better; values are merged by one of each attribute, so the worse ones go.
            again = self._measure(records, singles, rest, ledger, "1-way")
            best = [min(both, key=lambda one: one.sigma) for both in zip(one_ways, again, strict=True)]
            notes = ("no pair of attributes stands out: attributes are independent",)
            return Release(schema, tuple(best), ledger, "PrivBayes", options, notes)
        measured = self._measure(coded, families, rest, ledger)
        released = [over_original(table, compression) for table in measured]
        return Release(schema, (*one_ways, *released), ledger, "PrivBayes", options)

    def _generation(self) -> dict[str, Any]:
        """Return all that records depend on but measurements."""
        return {"theta": number("theta", self.theta), "iterations": integer("iterations", self.iterations, 1)}

    def _parts(self, rho: float, domain: Domain) -> tuple[float, float, float]:
        """Return the rho of the 1-ways, of selection and of the families."""
        parts = in_parts(rho, self.shares)
        return parts if _candidates(domain) else (rho, 0.0, 0.0)


def _candidates(domain: Domain) -> list[Clique]:
    """Return the pairs of which a network has room in memory, whichever are chosen; further parents have the rest."""
    return pairs_with_room(domain, MEMORY_LIMIT // 2)


def network(scores: Mapping[Clique, float], domain: Domain, *, noise: float, parents: int) -> list[Clique]:
    """Return the families of a network of several attributes each, in the order in which they joined it.

    Parameters
    ----------
    scores
        How far pairs are from independence, from released values; others are no parent and child.
    domain
        The attributes.
    noise
        What scales the noise of tables: ``k / sqrt(pi rho)``.
    parents
        Most parents of an attribute.

    Examples
    --------
    >>> scores = {("a", "b"): 900.0, ("a", "c"): 20.0, ("b", "c"): 300.0}
    >>> network(scores, Domain({"a": 2, "b": 3, "c": 4}), noise=2.0, parents=2)
    [('a', 'b'), ('b', 'c')]
    """
    names, sizes = list(domain), np.array(list(domain.values()), dtype=np.float64)
    worth = np.full((len(names), len(names)), -np.inf)
    for (a, b), value in scores.items():
        i, j = domain.position(a), domain.position(b)
        worth[i, j] = worth[j, i] = value
    inside = np.zeros(len(names), dtype=bool)
    families: list[Clique] = []
    total = 0.0

    def gains(explained: npt.NDArray[np.float64], cells: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        added: npt.NDArray[np.float64] = noise * ((total + cells ** (2 / 3)) ** 1.5 - total**1.5)
        return explained - added

    while not inside.all():
        # Whichever attribute gains most from one parent joins; further parents come after.
        single = gains(worth, np.outer(sizes, sizes))
        reach = np.where(inside[None, :] & ~inside[:, None], single, -np.inf)
        if reach.max(initial=-np.inf) <= 0:
            # Nothing is worth joining; the strongest pair of those outside begins anew.
            apart = np.where(~inside[None, :] & ~inside[:, None], single, -np.inf)
            if apart.max() <= 0:
                break
            inside[np.unravel_index(apart.argmax(), apart.shape)[0]] = True
            continue
        child, parent = (int(i) for i in np.unravel_index(reach.argmax(), reach.shape))
        family, best = [child, parent], float(reach.max())
        while len(family) <= parents:
            cells = sizes[family].prod() * sizes
            more = gains(worth[child, family[1:]].sum() + worth[child], cells)
            more[~inside | np.isin(np.arange(len(names)), family)] = -np.inf
            further = int(more.argmax())
            if more[further] <= best:
                break
            grown = domain.clique(names[i] for i in (*family, further))
            if jt_size([*families, grown], domain) > _MODEL:
                break
            family, best = [*family, further], float(more[further])
        inside[child] = True
        families.append(domain.clique(names[i] for i in family))
        total += float(sizes[family].prod()) ** (2 / 3)
    return families


generator_of("PrivBayes")(compressed_model)
