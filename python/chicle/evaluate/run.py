"""Compare a synthetic table with the real one: every measure, with its baselines beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import comb
from os import PathLike
from typing import Any

import numpy as np

from chicle._checks import integer, threads_or_all
from chicle.domain import Clique
from chicle.evaluate.association import Associations
from chicle.evaluate.contest import Contest
from chicle.evaluate.distance import Distances
from chicle.evaluate.marginals import cliques_of, marginals_of
from chicle.evaluate.result import Association, AttributeErrors, CliqueErrors, Evaluation, Score
from chicle.evaluate.tables import read_both, schema_of
from chicle.generate.start import check_seed
from chicle.privacy.budget import Budget
from chicle.release import Release
from chicle.schema import Schema

__all__ = ["evaluate"]


def evaluate(
    real: Any,  # noqa: ANN401 - any table, or the path of one
    synthetic: Any,  # noqa: ANN401
    schema: Schema | Mapping[str, int] | str | PathLike[str] | None = None,
    *,
    release: Release | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    seed: int = 0,
    pairs: int | None = None,
    triples: int | None = 300,
    threads: int | None = None,
) -> Evaluation:
    """Compare a synthetic table with the real one. NOT PRIVATE: what it returns must not be published.

    Parameters
    ----------
    real, synthetic
        The two tables: `Records`, pandas, polars or pyarrow tables, or paths of files.
    schema
        What their columns are, or the file that says so; by default that of the release, or of the records.
    release
        What the table was made from: its budget is what the Independent baseline gets.
    epsilon, delta
        The budget of the Independent baseline, where there is no release. Without either it gets the exact 1-ways.
    seed
        Fixes everything that is drawn: cliques, queries, the baselines and their noise.
    pairs, triples
        How many pairs and triples to compare at most, drawn at random; all of them, if ``None``.
    threads
        How many threads to use; all there are, if ``None``. The result does not depend on it.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(5_000, d=6)
    >>> synth = chicle.Prism(epsilon=1, delta=1e-9).fit(census)
    >>> found = chicle.evaluate(census, synth.sample(seed=0), release=synth.release_)
    >>> print(str(found).splitlines()[0])
    NOT PRIVATE: these numbers compare with the real table; do not publish them.
    >>> found["tvd_2"].floor < found["tvd_2"].value < 0.2
    True
    >>> found.errors[2].cliques[found.errors[2].worst(1)[0]] in chicle.pairs(census.domain)
    True
    """
    declared = schema_of(real, schema, release)
    seed, threads = check_seed(seed), threads_or_all(threads)
    most = {1: None, 2: _most("pairs", pairs), 3: _most("triples", triples)}
    budget = _budget(release, epsilon, delta)
    contest = Contest.between(
        *read_both(real, synthetic, declared), declared, budget=budget, seed=seed, threads=threads
    )
    domain = declared.domain
    sizes = range(1, min(3, len(domain)) + 1)
    rng = contest.rng("cliques")
    cliques = {size: cliques_of(domain, size, most[size], rng) for size in sizes}
    association = Associations.empty(4, len(cliques.get(2, ())), declared)
    found = {size: _distances(contest, cliques[size], association if size == 2 else None) for size in sizes}
    errors = {size: _clique_errors(cliques[size], found[size], comb(len(domain), size)) for size in sizes}
    scores = _marginal_scores(contest, found, errors) + _association_scores(contest, association)
    return Evaluation(
        scores=tuple(scores),
        errors=errors,
        attributes=_attributes(errors),
        association=_association(cliques.get(2, []), association),
        domain=domain,
        rows=len(contest.real),
        synthetic_rows=len(contest.synthetic),
        seed=seed,
        budget="from the exact 1-way marginals, for no budget was given" if budget is None else f"at {budget!r}",
    )


def _most(name: str, value: int | None) -> int | None:
    return None if value is None else integer(name, value, 1)


def _budget(release: Release | None, epsilon: float | None, delta: float | None) -> Budget | None:
    if epsilon is not None or delta is not None:
        return Budget(epsilon=epsilon, delta=delta)
    return None if release is None else release.ledger.budget


def _distances(contest: Contest, cliques: list[Clique], association: Associations | None) -> Distances:
    found = Distances.empty(len(contest.others), len(cliques))
    for marginals in marginals_of([contest.real, *contest.others], cliques, contest.threads):
        found.note(marginals)
        if association is not None:
            association.note(marginals)
    return found


def _clique_errors(cliques: list[Clique], found: Distances, of: int) -> CliqueErrors:
    tvd, floor, independent = found.tvd
    return CliqueErrors(
        cliques=tuple(cliques), tvd=tvd, largest=found.largest[0], floor=floor, independent=independent, of=of
    )


def _marginal_scores(
    contest: Contest, found: Mapping[int, Distances], errors: Mapping[int, CliqueErrors]
) -> list[Score]:
    scores = []
    for size, distances in found.items():
        sampled = len(errors[size]) < errors[size].of
        note = f"{len(errors[size]):,} of {errors[size].of:,} drawn at random" if sampled else ""
        title = f"mean {size}-way total variation distance"
        scores.append(contest.score(f"tvd_{size}", title, distances.tvd.mean(axis=1), note=note))
    return scores


def _association_scores(contest: Contest, association: Associations) -> list[Score]:
    scores = []
    for key, title, values in (
        ("cramers_v", "mean difference of Cramér's V", association.cramers_v),
        ("pearson", "mean difference of Pearson's correlation", association.pearson),
    ):
        off = np.abs(values[1:] - values[0])
        known = np.isfinite(off).all(axis=0)
        if known.any():
            scores.append(contest.score(key, title, off[:, known].mean(axis=1)))
    return scores


def _association(pairs: Iterable[Clique], found: Associations) -> Association:
    return Association(
        pairs=tuple(pairs),
        cramers_v=found.cramers_v[0],
        cramers_v_synthetic=found.cramers_v[1],
        pearson=found.pearson[0],
        pearson_synthetic=found.pearson[1],
    )


def _attributes(errors: Mapping[int, CliqueErrors]) -> tuple[AttributeErrors, ...]:
    one_ways, pairs = errors[1], errors.get(2)
    told = []
    for i, (name,) in enumerate(one_ways.cliques):
        mine = [] if pairs is None else [j for j, pair in enumerate(pairs.cliques) if name in pair]
        worst = max(mine, key=lambda j: pairs.tvd[j]) if mine and pairs is not None else None
        told.append(
            AttributeErrors(
                name=name,
                tvd=float(one_ways.tvd[i]),
                floor=float(one_ways.floor[i]),
                independent=float(one_ways.independent[i]),
                pairs_tvd=float(pairs.tvd[mine].mean()) if mine and pairs is not None else None,
                worst_with=None
                if worst is None or pairs is None
                else next(other for other in pairs.cliques[worst] if other != name),
            )
        )
    return tuple(told)
