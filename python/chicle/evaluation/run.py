"""Compare a synthetic table with the real one: every measure, with its baselines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import comb
from operator import itemgetter
from os import PathLike
from pathlib import Path
from statistics import fmean
from typing import Any, cast

from chicle._checks import check_seed, integer, threads_or_all
from chicle.counting.records import Records
from chicle.domain import Clique
from chicle.errors import ParameterError
from chicle.evaluation.amounts import amount_scores, amounts_of
from chicle.evaluation.answers import AnswerErrors, answer_scores
from chicle.evaluation.association import Associations, association_scores
from chicle.evaluation.classify import classification_scores
from chicle.evaluation.contest import Contest
from chicle.evaluation.distance import Distances, density_scores, marginal_scores
from chicle.evaluation.gini import check_gini, gini_scores
from chicle.evaluation.linked import LinkedEvaluation, families_of, link_scores, table_schema
from chicle.evaluation.marginals import Observer, cliques_of, observe
from chicle.evaluation.nist2020 import alike_score, check_nist2020, segment_score, trip_score
from chicle.evaluation.partitions import check_by, partition_errors
from chicle.evaluation.queries import nist_range_scores, range_scores
from chicle.evaluation.result import Association, AttributeErrors, CliqueErrors, Evaluation
from chicle.evaluation.rows import row_scores
from chicle.evaluation.sdnist import check_scorer, sdnist_score
from chicle.evaluation.subsample import Subsampling
from chicle.evaluation.tables import read_both, schema_of
from chicle.evaluation.violations import violation_scores
from chicle.evaluation.workload import counted, workload_scores
from chicle.privacy.budget import Budget
from chicle.releases.release import Release, load
from chicle.schema import Schema
from chicle.schema.linked import LinkedSchema
from chicle.sources.read import limit_remarks
from chicle.workload import Workload

__all__ = ["check_measures", "evaluate"]

_NIST_QUERIES = 300


def evaluate(
    real: Any,  # noqa: ANN401 - any table, or the path of one
    synthetic: Any,  # noqa: ANN401
    schema: Schema | Mapping[str, int] | str | PathLike[str] | None = None,
    *,
    release: Release | str | Path | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    seed: int = 0,
    workload: Workload | Mapping[Clique, float] | Sequence[Clique] | None = None,
    label: str | None = None,
    gini: tuple[str, str, str] | None = None,
    segment: Sequence[str] | None = None,
    trip: Sequence[str] | None = None,
    individual: Sequence[str] | None = None,
    pairs: int | None = None,
    triples: int | None = 300,
    queries: int = 1000,
    by: Sequence[str] | str | None = None,
    scorer: str | None = None,
    threads: int | None = None,
) -> Evaluation:
    """Compare a synthetic table with the real one. NOT PRIVATE: what it returns must not be published.

    Parameters
    ----------
    real, synthetic
        The two tables, each as a mechanism would take it: `Records`, a pandas, polars or pyarrow table, the path of a
        file, a pattern of several, or batches. Their codes, mostly one byte for each value, are kept in memory. Linked
        tables are given by name; each is compared, and what links them: `chicle.evaluation.linked.LinkedEvaluation`.
    schema
        The schema of both, or its file; by default that of the release, or of the records.
    release
        The release that the table was drawn from, or its file. The Independent baseline gets its budget.
    epsilon, delta
        The budget of the Independent baseline, where there is no release. Without a budget it gets the exact 1-ways.
    seed
        Fixes everything that is drawn: cliques, queries, the baselines and their noise.
    workload
        Cliques, or cliques with weights, for the workload error, and for the largest, mean and median error of all
        their cells; by default the workload error is that of the triples that are compared.
    label
        An attribute to predict from all others, for the misclassification of an SVM. Needs scikit-learn.
    gini
        A group, a class of two values and an amount, as ``("CITY", "SEX", "INCWAGE")``, for the NIST Gini score.
    segment
        Columns whose joint values are the segments of the NIST 2020 score, as ``["PUMA", "YEAR"]``.
    trip
        Where a trip begins and where it ends, as ``("pickup", "dropoff")``, for the trip score of NIST 2020, sprint 3.
    individual
        The modelled column of individuals, then those in which they are compared, as ``("taxi", "shift", "pickup")``,
        for the score of similar individuals of NIST 2020, sprint 3.
    pairs, triples
        How many pairs and triples to compare at most, drawn at random; all of them, if ``None``.
    queries
        How many range queries of three attributes to draw.
    by
        Columns that form partitions, such as ``["state"]``: the distances inside each are measured too; by default
        what the schema declares.
    scorer
        ``"sdnist"`` adds the k-marginal score of NIST's SDNist, by its own code; ``"sdnist@PYTHON"`` where it has an
        environment of its own.
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
    if isinstance(release, (str, Path)):
        release = load(release)
    declared = schema_of(real, schema, release)
    seed, threads = check_seed(seed), threads_or_all(threads)
    check_measures(
        declared,
        workload=workload,
        label=label,
        gini=gini,
        segment=segment,
        trip=trip,
        individual=individual,
        pairs=pairs,
        triples=triples,
        queries=queries,
        scorer=scorer,
    )
    inside = check_by(declared.partition if by is None else by, declared.domain)
    budget = _budget(release, epsilon, delta)
    if isinstance(declared, LinkedSchema) and not isinstance(real, Records):
        _one_table_only(
            workload=workload,
            label=label,
            gini=gini,
            segment=segment,
            trip=trip,
            individual=individual,
            by=by,
            scorer=scorer,
        )
        measured = {"pairs": pairs, "triples": triples, "queries": queries, "seed": seed, "threads": threads}
        # It says and shows the same; an overload could not tell tables by name from columns by name.
        return cast("Evaluation", _evaluate_linked(real, synthetic, declared, budget, **measured))
    contest = Contest.between(
        *read_both(real, synthetic, declared), declared, budget=budget, seed=seed, threads=threads
    )
    rng = contest.rng("cliques")
    sizes = range(1, min(3, len(declared.domain)) + 1)
    cliques = {size: cliques_of(declared.domain, size, {2: pairs, 3: triples}.get(size), rng) for size in sizes}

    widest = sizes[-1]
    association = Associations.empty(4, len(cliques.get(2, ())), declared)
    drawn = Subsampling(len(contest.real), [1.0] * len(cliques[widest]))
    found = {size: Distances.empty(3, len(cliques[size])) for size in sizes}
    for size in sizes:
        more: list[Observer] = [*([association] if size == 2 else []), *([drawn] if size == widest else [])]
        observe([contest.real, *contest.others], cliques[size], threads, found[size], *more)
    answers = AnswerErrors.empty(len(contest.others))
    asked = (
        (found[widest], drawn)
        if workload is None
        else counted(contest, Workload.of(workload).over(declared.domain), answers)
    )
    errors = {size: _clique_errors(cliques[size], found[size], comb(len(declared.domain), size)) for size in sizes}
    amounts = amounts_of(contest)
    scores = [
        *marginal_scores(contest, found),
        *amount_scores(contest, amounts),
        *range_scores(contest, queries),
        *([] if label is None else classification_scores(contest, label)),
        *density_scores(contest, found),
        *nist_range_scores(contest, _NIST_QUERIES),
        *([] if gini is None else gini_scores(contest, gini)),
        *([] if segment is None else [segment_score(contest, segment)]),
        *([] if trip is None else [trip_score(contest, trip)]),
        *([] if individual is None else [alike_score(contest, individual[0], individual[1:])]),
        *([] if scorer is None else [sdnist_score(contest, scorer)]),
        *workload_scores(contest, *asked),
        *([] if workload is None else answer_scores(contest, answers)),
        *association_scores(contest, association),
        *row_scores(contest),
        *violation_scores(contest),
    ]
    return Evaluation(
        scores=tuple(scores),
        errors=errors,
        attributes=_attributes(errors),
        association=_association(cliques.get(2, []), association),
        domain=declared.domain,
        rows=len(contest.real),
        synthetic_rows=len(contest.synthetic),
        seed=seed,
        amounts=amounts,
        partitions=partition_errors(
            contest.real, contest.synthetic, declared, inside, rng=contest.rng("partitions"), threads=threads
        )
        if inside
        else None,
        notes=limit_remarks(real, declared),
        budget="from the exact 1-way marginals, because no budget was given" if budget is None else f"at {budget!r}",
    )


def _one_table_only(**asked: object) -> None:
    """Raise for what is measured of one table only."""
    for name, given in asked.items():
        if given is not None:
            raise ParameterError(f"{name} is measured of one table; evaluate that table alone, by `schema.tables`")


def _evaluate_linked(
    real: Any,  # noqa: ANN401 - tables by name
    synthetic: Any,  # noqa: ANN401
    schema: LinkedSchema,
    budget: Budget | None,
    **measured: Any,  # noqa: ANN401
) -> LinkedEvaluation:
    """Compare linked tables: each by itself, and what links them."""
    (truth, left_out), (made, _) = (
        families_of(which, given, schema) for which, given in (("real", real), ("synthetic", synthetic))
    )
    spent: dict[str, Any] = {} if budget is None else {"epsilon": budget.epsilon, "delta": budget.delta}
    tables = {
        name: evaluate(first, second, table_schema(schema, name), **spent, **measured)
        for name, first, second in (
            (schema.layout.parent, truth.parents, made.parents),
            (schema.layout.child, truth.children, made.children),
        )
    }
    return LinkedEvaluation(tables, link_scores(truth, made, schema, measured["seed"]), (left_out,))


def check_measures(
    schema: Schema,
    *,
    workload: Workload | Mapping[Clique, float] | Sequence[Clique] | None = None,
    label: str | None = None,
    gini: tuple[str, str, str] | None = None,
    segment: Sequence[str] | None = None,
    trip: Sequence[str] | None = None,
    individual: Sequence[str] | None = None,
    pairs: int | None = None,
    triples: int | None = None,
    queries: int = 1,
    scorer: str | None = None,
    by: Sequence[str] | str | None = None,
) -> None:
    """Check, before any work, that `evaluate` can measure all this on a table of this schema."""
    for name, most in (("pairs", pairs), ("triples", triples), ("queries", queries)):
        if most is not None:
            integer(name, most, 1)
    if workload is not None:
        Workload.of(workload).over(schema.domain)
    if label is not None:
        schema.domain.check((label,))
    if gini is not None:
        check_gini(schema, gini)
    check_nist2020(schema.domain, segment, trip, individual)
    check_scorer(scorer)
    check_by(by, schema.domain)


def _budget(release: Release | None, epsilon: float | None, delta: float | None) -> Budget | None:
    if epsilon is not None or delta is not None:
        return Budget(epsilon=epsilon, delta=delta)
    return None if release is None else release.ledger.budget


def _clique_errors(cliques: list[Clique], found: Distances, of: int) -> CliqueErrors:
    tvd, floor, independent = found.tvd
    return CliqueErrors(
        cliques=tuple(cliques), tvd=tvd, largest=found.largest[0], floor=floor, independent=independent, of=of
    )


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
    inside: dict[str, list[tuple[float, str]]] = {name: [] for (name,) in one_ways.cliques}
    if pairs is not None:
        for (a, b), tvd in zip(pairs.cliques, pairs.tvd.tolist(), strict=True):
            inside[a].append((tvd, b))
            inside[b].append((tvd, a))
    return tuple(
        AttributeErrors(
            name=name,
            tvd=float(one_ways.tvd[i]),
            floor=float(one_ways.floor[i]),
            independent=float(one_ways.independent[i]),
            pairs_tvd=fmean(tvd for tvd, _ in inside[name]) if inside[name] else None,
            worst_with=max(inside[name], key=itemgetter(0))[1] if inside[name] else None,
        )
        for i, (name,) in enumerate(one_ways.cliques)
    )
