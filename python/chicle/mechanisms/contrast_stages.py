"""Prism by contrasts: what tables of pairs, and then of triples, say beyond their margins; for small domains.

A table spends most of its budget on what other tables say too: of the 16 cells of four binary attributes, a pair needs
the one contrast that its margins do not tell. Contrasts (`measurements.contrasts`) leave that out. So with the same
budget, pairs of binary attributes have half the noise variance that the best packed sets give them, and all triples
can be measured besides.

1. The released 1-ways say whether this pays (`selection.second_share.contrasts_pay`).
2. First stage: the contrasts of all attributes and pairs, with the shares that are best for tables of pairs.
3. Second stage: the contrasts of triples. If there are so many that records would take minutes to fit them, those of
   the most dependent pairs, as released.

Nothing else is chosen, so there are no scores. Values are not merged: where this pays they are few.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from chicle.domain import Clique, Domain
from chicle.measurements.contrasts import CONTRASTS, Contrasts
from chicle.mechanisms.basis import Basis
from chicle.mechanisms.prism_options import PrismOptions
from chicle.mechanisms.stages import Setting, Stage
from chicle.models.contrasted import ContrastModel
from chicle.plans import noise_errors
from chicle.selection.expected_error import MAX_CELLS as MAX_PAIR
from chicle.selection.residual_shares import ResidualShares, residual_shares
from chicle.selection.second_share import MAX_CELLS, TRIPLES, contrasts_pay

__all__ = ["by_contrasts", "contrast_stages", "likely_by_contrasts", "pays_by_contrasts"]

# A sweep of the last descent looks up so many codes, three for each record and triple: about a second's work. Fewer
# triples than `_FEW_TRIPLES` are never left out.
_WORK = 500_000_000
_FEW_TRIPLES, _MOST_TRIPLES = 1_000, 10_000
# Where the error of the 1-ways exceeds this share of the records, they need all of the budget. It is more than for
# tables of pairs, because the contrasts of the 1-ways get a third of the first stage.
_TOO_NOISY = 0.3
_STAGES = (f"{CONTRASTS}, first stage", f"{CONTRASTS}, second stage")


def pays_by_contrasts(basis: Basis, options: PrismOptions) -> bool:
    """Return whether contrasts pay, from the released 1-ways."""
    desk = basis.desk
    if basis.one_way_error > _TOO_NOISY:
        return False
    if options.contrasts is not None:
        return options.contrasts and desk.presence is None and bool(_pairs(desk.domain))
    if options.first_stage is not None or desk.presence is not None or desk.workload is not None:
        return False
    tables = [np.maximum(one.floats, 0.0) for one in desk.one_ways()]
    shares = [table / max(table.sum(), 1e-300) for table in tables]
    return contrasts_pay(shares, basis.total, 2 * basis.split.rest / desk.k**2)


def likely_by_contrasts(setting: Setting, rest: float, options: PrismOptions) -> bool:
    """Return whether contrasts are likely to pay, if values are about equally frequent: for a plan.

    Parameters
    ----------
    setting
        What a plan knows.
    rest
        The rho that is left after the 1-ways.
    options
        The switches of Prism's steps.
    """
    if options.contrasts is not None or options.first_stage is not None:
        return bool(options.contrasts and _pairs(setting.domain))
    even = [np.full(size, 1 / size) for size in setting.domain.values() if size <= MAX_CELLS]
    return len(even) == len(setting.domain) and contrasts_pay(even, setting.n, 2 * rest / setting.k**2)


def contrast_stages(setting: Setting, rho: float) -> list[Stage]:
    """Return both stages, for a plan."""
    domain = setting.domain
    plan, triples = _plan(domain), len(_candidates(domain, setting.n, {}))
    second = TRIPLES * rho if triples else 0.0
    sigmas = [setting.k * math.sqrt(variance / (rho - second)) for variance in plan.tables.values()]
    errors = noise_errors([float(domain.cells(pair)) for pair in plan.tables], sigmas, int(setting.n))
    singles, pairs = sum(len(clique) == 1 for clique in plan.shares), len(plan.tables)
    return [
        Stage(
            name=_STAGES[0],
            rho=rho - second,
            of=f"{singles:,} attributes and {pairs:,} pairs",
            errors=(min(errors), max(errors)),
        ),
        Stage(name=_STAGES[1], rho=second, of=f"{triples:,} triples"),
    ]


def by_contrasts(basis: Basis, options: PrismOptions) -> ContrastModel:
    """Spend the rest of the budget on contrasts of pairs and triples; return the model of all.

    Parameters
    ----------
    basis
        The first releases.
    options
        The switches of Prism's steps.
    """
    desk = basis.desk
    first, rest = _first_shares(desk.domain), desk.left
    second = TRIPLES * rest if _candidates(desk.domain, basis.total, {}) else 0.0
    made = desk.measure_contrasts(first, rho=rest - second, shares=list(first.values()), purpose=_STAGES[0])
    triples = _candidates(desk.domain, basis.total, _strengths(made))
    if triples:
        weights = np.array([math.prod(size - 1 for size in desk.domain.shape(triple)) ** (2 / 3) for triple in triples])
        desk.measure_contrasts(
            triples, rho=min(second, desk.left), shares=(weights / weights.sum()).tolist(), purpose=_STAGES[1]
        )
    model = options.model(ContrastModel)
    return model.fit(desk.targets, desk.domain, amounts=desk.amounts, threads=desk.threads)


def _plan(domain: Domain) -> ResidualShares:
    """Return the shares of the residuals in pairs that are best for all tables of pairs that are not too large."""
    return residual_shares(dict.fromkeys(_pairs(domain), 1.0), domain, minimise="variance")


def _pairs(domain: Domain) -> list[Clique]:
    """Return the pairs that are measured: those of at least two values each that are not too large."""
    several = [name for name, size in domain.items() if size > 1]
    return [pair for pair in combinations(several, 2) if domain.cells(pair) <= MAX_PAIR]


def _first_shares(domain: Domain) -> dict[Clique, float]:
    """Return the shares of the residuals of all attributes and pairs: the number of records is released before."""
    found = {clique: share for clique, share in _plan(domain).shares.items() if clique}
    whole = math.fsum(found.values())
    return {clique: share / whole for clique, share in found.items()}


def _candidates(domain: Domain, n: float, strengths: Mapping[Clique, float]) -> list[Clique]:
    """Return the triples to measure, in domain order; of too many for n records, those of the strongest pairs."""
    several = [name for name, size in domain.items() if size > 1]
    triples: list[Clique] = [triple for triple in combinations(several, 3) if domain.cells(triple) <= MAX_CELLS]
    most = min(max(int(_WORK / (3 * max(n, 1))), _FEW_TRIPLES), _MOST_TRIPLES)
    if len(triples) <= most:
        return triples
    weakest = [-sum(strengths.get(pair, 0.0) for pair in combinations(triple, 2)) for triple in triples]
    return [triples[i] for i in sorted(np.argsort(weakest, kind="stable")[:most].tolist())]


def _strengths(made: Sequence[Contrasts]) -> dict[Clique, float]:
    """Return how far each pair is from independence, as released: in records."""
    return {one.clique: float(np.abs(one.residual()).sum()) for one in made if len(one.clique) == 2}
