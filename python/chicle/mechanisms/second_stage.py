"""The second stage of Prism: sets of up to four attributes that tell of what the first stage's records get wrong.

1. The share of the first stage follows from the released 1-ways (`selection.second_share`); where domains are large or
   the budget small it is all of it, and there is no second stage.
2. The first stage's records are the model. Its distances from pairs and triples are released, for a little budget.
3. Sets of two to four attributes are chosen at one price (`selection.second_sets`) and measured.
4. Their pairs join the first stage's tables; their interactions refine the records (`models.interactions`).

Steps 2 and 3 release something, through the ledger. Both depend on the first stage's releases only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from chicle.domain import Clique
from chicle.mechanisms.basis import Basis
from chicle.mechanisms.prism_options import PrismOptions
from chicle.mechanisms.stages import Setting, Stage
from chicle.models.interactions import InteractionModel
from chicle.selection.second_sets import candidates, choose_second_sets, expected_distances
from chicle.selection.second_share import SCORES, first_share
from chicle.selection.sets import ChosenSet

__all__ = ["planned_share", "second_stages", "share_of_first_stage", "with_second_stage"]

_MANY = 1_000  # values of an attribute beyond which a fit merges most: a plan does not know which


def share_of_first_stage(basis: Basis, options: PrismOptions) -> float:
    """Return the part of what is left after the 1-ways that the first stage gets."""
    if options.first_stage is not None:
        return options.first_stage
    if basis.desk.presence is not None:
        return 1.0  # its rule and its records know nothing of who is there
    tables = [np.maximum(one.values.astype(np.float64), 0.0) for one in basis.merged.one_ways()]
    return first_share(
        [table / max(table.sum(), 1e-300) for table in tables], basis.total, 2 * basis.split.rest / basis.desk.k**2
    )


def planned_share(setting: Setting, rest: float, options: PrismOptions) -> float:
    """Return the share of the first stage that a fit is likely to find, if values are about equally frequent.

    Parameters
    ----------
    setting
        What a plan knows.
    rest
        The rho that is left after the 1-ways.
    options
        The switches of Prism's steps.
    """
    if options.first_stage is not None:
        return options.first_stage
    even = [np.full(size, 1 / size) for size in setting.domain.values() if size <= _MANY]
    return first_share(even, setting.n, 2 * rest / setting.k**2) if len(even) == len(setting.domain) else 1.0


def second_stages(rho: float) -> list[Stage]:
    """Return the releases of the second stage, for a plan."""
    scores = Stage(name="second selection", rho=SCORES * rho, of="pairs and triples, against the first stage's records")
    return [scores, Stage(name="second marginal", rho=(1 - SCORES) * rho, of="sets of two to four attributes")]


def with_second_stage(
    basis: Basis, first: Sequence[ChosenSet], pairs: Mapping[Clique, float], options: PrismOptions
) -> InteractionModel:
    """Spend the rest of the budget on sets that tell of what the first stage gets wrong; return the model of all.

    Parameters
    ----------
    basis
        The first releases.
    first
        The sets of the first stage, which are measured.
    pairs
        The released distances of pairs from independence.
    options
        The switches of Prism's steps.
    """
    desk, left = basis.merged, basis.desk.left

    def learnt(number: int) -> InteractionModel:
        model = options.model(InteractionModel, first=number)
        return model.fit(
            basis.desk.targets,
            basis.desk.domain,
            merge=basis.merge,
            amounts=basis.desk.amounts,
            threads=desk.threads,
        )

    expect = desk.expect(learnt(len(first)))
    asked = candidates(desk.domain, expect, pairs, 2 * (1 - SCORES) * left / desk.k**2)
    scores = desk.score(asked.cliques, expect, rho=SCORES * left)
    errors = expected_distances(scores.values, scores.sigma, asked)
    chosen = choose_second_sets(errors, asked, desk.domain, 2 * basis.desk.left / desk.k**2)
    if not chosen:
        basis.measure_sets(first, basis.desk.left)
        return learnt(2 * len(first))
    precision = math.fsum(one.precision for one in chosen)
    shares = [one.precision / precision for one in chosen]
    desk.measure([one.clique for one in chosen], rho=basis.desk.left, shares=shares, purpose="second marginal")
    return learnt(len(first))
