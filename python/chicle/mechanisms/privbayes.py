"""PrivBayes (Zhang et al. 2017): 1-ways, a Bayesian network of strong dependencies, and the tables of its families.

The network is made from released scores: the InDif of every pair of attributes, one noisy vector, which [P] section 6.1
uses instead of mutual information too. So the structure costs one release, for any number of networks compared. Its
sensitivity is the one that `chicle.measurements.scores` proves: each score is the L1 distance of exact counts from a
product of 1-ways that were released before, and moves by at most k records.

Attributes join the network one by one. A family, an attribute X with parents P, is worth

    sum over p in P of InDif(X, p)  -  what measuring it adds to the noise of all tables,

in records. Scores are shrunk towards their mean as far as their spread is noise; the added noise is `dense_marg`'s,
``k ((T + t)^(3/2) - T^(3/2)) / sqrt(pi rho)`` with ``t = cells^(2/3)`` and T the sum of t over the families so far.
That is the theta-usefulness of the paper, computed from scores: parents are added while the dependence they explain
exceeds the noise of the cells they add, so there are more of them where the budget is large or values are few. An
attribute for which no parent is worth its noise stays alone, with its 1-way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chicle._checks import MEMORY_LIMIT, integer, number
from chicle.domain import Clique, Domain
from chicle.measurements.desk import Desk
from chicle.measurements.merges import merge_rare
from chicle.mechanisms.base import Mechanism, parts_of, register_mechanism
from chicle.mechanisms.basis import NO_PAIR
from chicle.mechanisms.stages import Setting, Stages, one_way_stage, score_stage, selected_stage
from chicle.models.base import Model
from chicle.models.independent import IndependentModel
from chicle.models.pgm import GraphicalModel, jt_size, pairs_with_room
from chicle.selection.expected_error import steady

__all__ = ["PrivBayes"]

_MODEL = 16 * 2**20  # bytes of the junction tree up to which families may have several parents


@register_mechanism
@dataclass(kw_only=True, eq=False, repr=False)
class PrivBayes(Mechanism):
    """Measure 1-ways and the families of a Bayesian network; records follow the graphical model of them.

    The module's header says how the network is chosen. The graphical model of the families is the moralised network;
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
    per_pair = 5.0

    def check(self, domain: Domain) -> None:
        """Raise for parameters that cannot be used."""
        del domain
        number("theta", self.theta)
        integer("iterations", self.iterations, 1)
        integer("parents", self.parents, 1)

    def stages(self, setting: Setting) -> Stages:
        """Split the budget between 1-ways, scores and the families."""
        first, second, third = parts_of(setting.rho, self.shares)
        if not (candidates := _candidates(setting.domain)):
            return Stages.of(one_way_stage(setting, setting.rho))
        # Errors are those of measuring all pairs; a network has fewer tables, some of them larger.
        return Stages.of(
            one_way_stage(setting, first),
            score_stage(second, len(candidates)),
            selected_stage(setting, third, "the families"),
        )

    def run(self, desk: Desk) -> Model:
        """Measure 1-ways, score pairs, measure the families of a network."""
        stages = self.stages(Setting.at(desk))
        desk.measure_one_ways(rho=stages.rho("1-way"))
        merged = desk.merged(merge_rare(desk.one_ways(), desk.domain, theta=self.theta))
        # An attribute with one value left depends on nothing.
        several = [pair for pair in _candidates(desk.domain) if min(merged.domain.shape(pair)) > 1]
        families: list[Clique] = []
        if several:
            third = stages.rho("marginal")
            scores = merged.score(several, merged.independence(), rho=stages.rho("selection"))
            steadied = dict(zip(scores.cliques, steady(scores.values, scores.sigma).tolist(), strict=True))
            noise = desk.k / math.sqrt(math.pi * third)
            families = network(steadied, merged.domain, noise=noise, parents=self.parents)
        if families:
            merged.measure(families, rho=desk.left)
        elif "marginal" in stages:
            desk.measure_one_ways(rho=desk.left)
            desk.note(NO_PAIR)
            return self.learn(IndependentModel(), desk)
        return self.learn(GraphicalModel(iterations=self.iterations), merged)


def _candidates(domain: Domain) -> list[Clique]:
    """Return the pairs small enough for any network of them to fit in half the memory; further parents get the rest."""
    return pairs_with_room(domain, MEMORY_LIMIT // 2)


def network(scores: Mapping[Clique, float], domain: Domain, *, noise: float, parents: int) -> list[Clique]:
    """Return the families of a network of several attributes each, in the order in which they joined it.

    Parameters
    ----------
    scores
        How far pairs are from independence, from released values; other pairs are never joined.
    domain
        The attributes.
    noise
        The scale of the noise of tables: ``k / sqrt(pi rho)``.
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
        # The attribute that gains most from one parent joins; further parents come after.
        single = gains(worth, np.outer(sizes, sizes))
        reach = np.where(inside[None, :] & ~inside[:, None], single, -np.inf)
        if reach.max(initial=-np.inf) <= 0:
            # No attribute gains from joining; the strongest pair outside starts another component.
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
