"""DPSyn: the system of the NIST challenges of 2018 ([D18]) and 2020 ([D20])."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from chicle._checks import integer, number
from chicle.domain import Clique, Domain
from chicle.errors import ParameterError
from chicle.measurements.desk import Desk
from chicle.measurements.merges import Merge, merge_rare
from chicle.measurements.paying import Paying
from chicle.measurements.public_rows import PublicRows
from chicle.mechanisms.base import Declaration, Mechanism, as_schema, register_mechanism
from chicle.mechanisms.dpsyn_marginals import Marginals, group_of, marginals_of
from chicle.mechanisms.dpsyn_split import Asked, laplace_has_less_noise, laplace_shares, needs_count, split_2020
from chicle.mechanisms.stages import Setting, Stage, Stages, marginal_stage
from chicle.models.dpsyn import DPSynModel, Generator, Regime
from chicle.models.layout import Layout, seen_combinations
from chicle.partition import Partition
from chicle.plans import Plan, noise_errors
from chicle.privacy.budget import Budget, budget_shares, calibrate
from chicle.privacy.ledger import Ledger
from chicle.query import Query
from chicle.releases.release import Release
from chicle.schema import Schema
from chicle.workload import Workload

__all__ = ["DPSyn"]

Noise = Literal["auto", "laplace", "gaussian"]

_MOST_COMBINATIONS = 2**20  # of joint columns


@register_mechanism
@dataclass(kw_only=True, eq=False, repr=False)
class DPSyn(Mechanism):
    """Declared marginals and GUM ([D18]); beside trusted public data, three regimes and a pool for partitions ([D20]).

    Without public data it measures 1-ways, merges rare values, and measures the marginals that are declared, random
    views, or all pairs inside each group. With `PublicData(table, role="trusted")` it follows [D20]: at a small epsilon
    it buys the sizes of partitions only and takes public rows, at a larger one it buys 1-ways too, then all pairs.

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting, discovery, threads, progress
        As for every mechanism. The thresholds of [D20] are in epsilon; a budget in rho or mu is read as that of delta
        1e-9.
    marginals
        What to measure beside 1-ways: cliques, or cliques with weights. A weight is a precision: twice the weight, half
        the variance of the noise ([D18] 5.2). By default all pairs inside each group.
    views
        Instead of marginals: how many random views, of how many columns each, as ``(50, 8)`` ([D18] 4).
    groups
        Groups of columns that are synthesised apart and joined ([D18] 5.4). Columns in none form one more group.
    joint
        Groups of columns that become one, with the combinations that the public table has ([D20]). Rows with another
        combination are lost.
    synchronous
        Groups of columns that hold the same value unless they are missing, the first never: it is made, with the
        pattern of which of the others are missing ([D18] 5.3). Missing is the last of their values.
    mapped
        ``{column: other}``: columns that another one nearly determines. They are filled by a map that is learnt from
        the noisy marginal of the two ([D18] 5.4).
    regime
        ``"auto"``, by the thresholds of [D20]; or ``"public"``, ``"one-way"``, ``"two-way"``, whatever these say.
    noise
        ``"laplace"``, ``"gaussian"``, or by default the one with less noise for what is measured ([D18] figure 2).
        Laplace noise is pure epsilon-DP. Beside trusted public data pairs get Gaussian noise ([D20]).
    partition
        Columns that form partitions, as ``["PUMA", "YEAR"]``. Their list is what the schema declares. Names given to
        `fit`, or in the schema, do the same; a `chicle.Partition` given to `fit` asks for its own ways instead.
    floor, round_to
        Noisy sizes of partitions are raised to the floor, then rounded to a multiple; in the public regime to a
        multiple of a tenth of that ([D20]).
    one_ways
        The share of the budget for 1-ways, without public data.
    theta, rare
        Values whose noisy count is below theta sigmas, or below `rare` rows, are merged ([D18] 5.3). 800 rows is for
        tables of some 300,000; 0 leaves it to theta.
    generator
        What makes records: ``"gum"``, as published, or ``"descent"``, chicle's own, which comes closer to the tables.
    passes
        Passes of GUM, by default 3 where there are partitions and 10 otherwise, or sweeps of descent, by default 3.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(5_000, d=6)
    >>> synth = chicle.DPSyn(epsilon=1, delta=1e-9, marginals={("AGE", "SEX"): 2.0, ("AGE", "MARST"): 1.0}, rare=0)
    >>> table = synth.fit(census).sample(seed=0)
    >>> synth.ledger_.epsilon() <= 1
    True
    """

    public_data = "used"
    counts_persons = False  # it would cost rho, before Laplace noise can be paid in epsilon

    marginals: Mapping[Clique, float] | Iterable[Iterable[str]] | None = None
    views: tuple[int, int] | None = None
    groups: Sequence[Sequence[str]] = ()
    joint: Sequence[Sequence[str]] = ()
    synchronous: Sequence[Sequence[str]] = ()
    mapped: Mapping[str, str] = field(default_factory=dict)
    regime: Asked = "auto"
    noise: Noise = "auto"
    partition: Sequence[str] | str = ()
    floor: int = 300
    round_to: int = 100
    one_ways: float = 0.1
    theta: float = 4.5
    rare: float = 800.0
    generator: Generator = "gum"
    passes: int | None = None

    def __post_init__(self) -> None:
        # A plan and a fit both read them.
        if isinstance(self.marginals, Iterator):
            self.marginals = list(self.marginals)

    def check(self, domain: Domain) -> None:
        """Raise for parameters that cannot be used on these columns."""
        needs_count(1.0, 1, self.regime)
        if self.noise not in get_args(Noise):
            raise ParameterError(f"noise must be one of {get_args(Noise)}, not {self.noise!r}")
        if not 0 < number("one_ways", self.one_ways) < 1:
            raise ParameterError(f"one_ways is a share of the budget, between 0 and 1, not {self.one_ways!r}")
        for name in ("theta", "rare"):
            number(name, getattr(self, name))
        integer("floor", self.floor, 0)
        integer("round_to", self.round_to, 1)
        if self.passes is not None:
            integer("passes", self.passes, 0)
        if self.generator not in get_args(Generator):
            raise ParameterError(f"generator must be one of {get_args(Generator)}, not {self.generator!r}")
        if len(domain) == len(self._names(domain)):
            raise ParameterError("partition leaves no column to model; name fewer columns")
        self._marginals(self._layout(domain, None))

    def check_public(self, public: PublicRows, domain: Domain) -> None:
        """Raise for public rows that cannot stand in for private ones."""
        there = public.records.domain
        needed = list(domain) if public.role == "trusted" else [name for group in self.joint for name in group]
        gone = [name for name in needed if name not in there and name not in self._names(domain)]
        if gone:
            raise ParameterError(
                f"DPSyn takes whole public rows, but the public data have no {gone[0]!r}; add it, or leave it out of "
                "the schema"
            )
        if public.role != "trusted" and self.regime in ("public", "one-way"):
            raise ParameterError(
                f"regime={self.regime!r} takes public rows for private ones; vouch for them by "
                'chicle.PublicData(table, role="trusted")'
            )

    def budget_on(self, ledger: Ledger | None) -> Budget:
        """Return what a fit may spend; Laplace noise that is asked for and cannot be paid in epsilon is an error."""
        budget = self.budget
        # What is no ledger is refused later, as by every mechanism.
        divisible = not isinstance(ledger, Ledger) or ledger.divisible
        if self.noise == "laplace" and (budget.epsilon is None or not divisible):
            raise ParameterError(
                'noise="laplace" needs a budget in epsilon and delta, and a ledger of its own; nothing was spent'
            )
        return budget

    def plan(
        self,
        schema: Schema | Declaration,
        n: int = 100_000,
        *,
        partition: Partition | Sequence[str] | str | None = None,
        **given: Any,  # noqa: ANN401 - what every plan takes
    ) -> Plan:
        """Return what a fit on a table of this schema will release, as `Mechanism.plan`."""
        declared = as_schema(schema)
        mine = self._with_partition(partition, declared)
        if mine is None:
            return super().plan(declared, n, partition=partition, **given)
        return Mechanism.plan(mine, declared.partitioned(()), n, partition=(), **given)

    def _fit(
        self,
        source: Any,  # noqa: ANN401
        declared: Schema,
        *,
        partition: Partition | Sequence[str] | str | None,
        **given: Any,  # noqa: ANN401 - what every fit takes
    ) -> Release:
        mine = self._with_partition(partition, declared)
        if mine is None:
            return super()._fit(source, declared, partition=partition, **given)
        plain = declared.partitioned(())
        release = Mechanism._fit(mine, source, plain, partition=(), **given)  # noqa: SLF001 - this class's own
        names = [mine.partition] if isinstance(mine.partition, str) else mine.partition
        return replace(release, schema=release.schema.partitioned(names))

    def _with_partition(self, partition: Partition | Sequence[str] | str | None, declared: Schema) -> DPSyn | None:
        """Return this mechanism with the partition of a fit, if that is by names; None for the ways of `Partition`."""
        if isinstance(partition, Partition):
            return None
        names = declared.partition if partition is None else partition
        if self.partition and names and self._names(declared.domain) != tuple(names):
            raise ParameterError("partition is given twice, and not the same; give it to DPSyn or to fit")
        mine = copy(self)
        mine.partition = names or self.partition
        return mine

    def stages(self, setting: Setting) -> Stages:
        """Split the budget as [D18] does; shares are of epsilon where noise is Laplace, of rho where it is Gaussian."""
        layout = self._layout(setting.domain, None)
        fields, (cliques, weights) = self._fields(layout), self._marginals(layout)
        budget = self.budget
        epsilon = budget.epsilon or budget.epsilon_at(1e-9)
        sizes = 0.0
        if self.partition:
            split = split_2020(epsilon, setting.k, setting.n, asked="two-way")
            sizes = (split.count + split.sizes) / epsilon * setting.rho
        first, rest = self.one_ways * (setting.rho - sizes), (1 - self.one_ways) * (setting.rho - sizes)
        cells = [layout.domain.cells(one) for one in (*fields, *(cliques or fields))]
        partly = self._laplace(
            budget if budget.epsilon else None, epsilon, cells, len(fields), weights if cliques else None
        )
        bought = Stage(
            name="sizes", rho=sizes, of="partitions", values=setting.domain.cells(self._names(setting.domain))
        )
        columns = [one.columns for one in layout.fields.values()]
        if partly or sizes or self.mapped or any(len(one) > 1 for one in columns) or self.synchronous:
            tables = [layout.domain.cells(one) for one in cliques or fields]
            tables += [setting.domain.cells(setting.domain.clique(pair)) for pair in self.mapped.items()]
            weighed = _beside(weights if cliques else None, len(self.mapped))
            # Epsilon is split as rho is.
            each = [part / setting.rho * epsilon if partly else None for part in (first, rest)]
            return Stages.of(
                bought,
                _stage(setting, "1-way", cells[: len(fields)], None, what="columns", rho=first, epsilon=each[0]),
                _stage(setting, "marginal", tables, weighed, what="tables", rho=rest, epsilon=each[1]),
            )
        return Stages.of(
            marginal_stage(setting, first, fields, name="1-way"),
            marginal_stage(setting, rest, cliques or fields, weights=weights if cliques else None, merged=True),
        )

    def run(self, desk: Desk) -> DPSynModel:
        """Measure as [D20] does beside trusted public rows, else as [D18]."""
        paying = Paying(desk, self.budget)
        if desk.public is not None and desk.public.role == "trusted":
            return self._run_2020(desk, paying, desk.public)
        return self._run_2018(desk, paying)

    def parameters(self, domain: Domain) -> dict[str, Any]:
        """Return the parameters as plain data."""
        plain = super().parameters(domain)
        if isinstance(self.marginals, Mapping):
            plain["marginals"] = Workload(self.marginals).to_plain(domain)
        return plain

    def _run_2018(self, desk: Desk, paying: Paying) -> DPSynModel:
        """Measure sizes of partitions, if there are any, 1-ways, and with rare values merged what is declared."""
        layout = self._layout(desk.domain, desk.public)
        fields, (cliques, weights) = self._fields(layout), self._marginals(layout)
        spent = self._measure_sizes(desk, paying) if self.partition else 0.0
        rest = paying.epsilon - spent
        cells = [layout.domain.cells(one) for one in (*fields, *(cliques or fields))]
        pure = self.budget if paying.pure else None
        laplace = self._laplace(pure, rest, cells, len(fields), weights if cliques else None)

        def measure(where: Desk, queries: list[Query], sizes: list[int], share: float, weighed: Any) -> None:  # noqa: ANN401
            purpose = "1-way" if where is desk else "marginal"
            if laplace:
                paying.laplace(where, queries, share * rest, laplace_shares(sizes, weighed), purpose)
            else:
                rho = desk.left if share == 1 else share * desk.left
                shares = budget_shares(sizes).tolist() if weighed is None else weighed
                where.measure(queries, rho=rho, shares=shares, purpose=purpose)

        one_way = self.one_ways
        measure(
            desk, [layout.query(one) for one in fields], [layout.domain.cells(one) for one in fields], one_way, None
        )
        merged = desk.merged(self._merge(desk, layout))
        layout = self._layout(merged.domain, desk.public)
        queries = [layout.query(one) for one in cliques or fields]
        sizes = [layout.domain.cells(one) for one in cliques or fields]
        pairs = [merged.domain.clique(pair) for pair in self.mapped.items()]
        queries += [Query(pair) for pair in pairs]
        sizes += [merged.domain.cells(pair) for pair in pairs]
        measure(
            merged, queries, sizes, 1 - one_way if laplace else 1.0, _beside(weights if cliques else None, len(pairs))
        )
        return self.learn(self._model("declared").with_public(layout, None), merged)

    def _run_2020(self, desk: Desk, paying: Paying, public: PublicRows) -> DPSynModel:
        """Measure what the thresholds say: sizes only, sizes and 1-ways, or sizes and pairs."""
        layout = self._layout(desk.domain, public)
        names, epsilon, k = self._names(desk.domain), paying.epsilon, desk.k
        counted = None
        if needs_count(epsilon, k, self.regime):
            count = min(k / 1400, epsilon / 2)
            (found,) = paying.laplace(desk, [Query(())], count, [1.0], "number of records")
            counted = float(found.values)
        split = split_2020(epsilon, k, counted, partitioned=bool(names), asked=self.regime)
        desk.note(f"The {split.regime} regime of DPSyn: public rows {_WHAT[split.regime]}.")
        if names or split.regime == "public":
            paying.laplace(desk, [Query(names)], split.sizes, [1.0], "sizes" if names else "number of records")
        pairs = [desk.domain.clique(pair) for pair in self.mapped.items()]
        if split.regime == "one-way":
            queries = [*(layout.query(one) for one in self._fields(layout)), *map(Query, pairs)]
            sizes = [*layout.domain.values(), *map(desk.domain.cells, pairs)]
            paying.laplace(desk, queries, split.rest, laplace_shares(sizes, None), "1-way")
        elif split.regime == "two-way":
            cliques, weights = self._marginals(layout)
            cliques, weights = (cliques, weights) if cliques else (self._fields(layout), None)
            queries = [*map(layout.query, cliques), *map(Query, pairs)]
            shares = _beside(weights, len(pairs))
            if shares is None:
                sizes = [*map(layout.domain.cells, cliques), *map(desk.domain.cells, pairs)]
                shares = budget_shares(sizes).tolist()
            desk.measure(queries, rho=desk.left, shares=shares)
        model = self._model(split.regime).with_public(layout, layout.see(public.records))
        return self.learn(model, desk)

    def _measure_sizes(self, desk: Desk, paying: Paying) -> float:
        """Buy the number of records and the sizes of partitions as [D20] does; return the epsilon that they cost."""
        count = min(desk.k / 1400, paying.epsilon / 2)
        (found,) = paying.laplace(desk, [Query(())], count, [1.0], "number of records")
        split = split_2020(paying.epsilon, desk.k, float(found.values), asked="two-way")
        paying.laplace(desk, [Query(self._names(desk.domain))], split.sizes, [1.0], "sizes")
        return count + split.sizes

    def _laplace(
        self, budget: Budget | None, epsilon: float, cells: Sequence[int], first: int, weights: Sequence[float] | None
    ) -> bool:
        """Return whether tables get Laplace noise: 1-ways first, then the others; without a budget they cannot."""
        if budget is None or self.noise == "gaussian":
            return False
        if self.noise == "laplace":
            return True
        parts = [(cells[:first], self.one_ways, None), (cells[first:], 1 - self.one_ways, weights)]
        laplace = [share * one for part, share, given in parts for one in laplace_shares(part, given)]
        gaussian = [
            share * one
            for part, share, given in parts
            for one in (budget_shares(part).tolist() if given is None else given)
        ]
        mu = math.sqrt(2 * budget.of_rest(epsilon).rho)
        return laplace_has_less_noise(cells, laplace, gaussian, epsilon=epsilon, mu=mu)

    def _merge(self, desk: Desk, layout: Layout) -> Merge:
        """Return the merge of rare values of columns that are fields by themselves; a clock keeps its values."""
        clocks = {group[0] for group in self.synchronous}
        plain = [
            one.columns[0]
            for one in layout.fields.values()
            if len(one.columns) == 1 and not one.buckets and one.columns[0] not in clocks
        ]
        measured = [one for one in desk.transcript.measurements if one.clique in {(name,) for name in plain}]
        inside = Domain({name: desk.domain[name] for name in plain})
        return Merge(desk.domain, merge_rare(measured, inside, theta=self.theta, least=self.rare).changes)

    def _names(self, domain: Domain) -> Clique:
        """Return the columns that form partitions."""
        return domain.clique([self.partition] if isinstance(self.partition, str) else self.partition)

    def _layout(self, domain: Domain, public: PublicRows | None) -> Layout:
        """Return the fields of columns; before public rows are given, those of joint columns have all combinations."""
        joint = {}
        for group in map(domain.clique, self.joint):
            if (cells := domain.cells(group)) > _MOST_COMBINATIONS:
                raise ParameterError(
                    f"joint: {group!r} has {cells:,} combinations, above the limit; name fewer columns"
                )
            every = np.indices(domain.shape(group)).reshape(len(group), -1).T
            joint[group] = every if public is None else seen_combinations(public.records, group)
        return Layout(
            domain,
            joint=joint,
            synchronous=[tuple(group) for group in self.synchronous],
            mapped=self.mapped,
            without=self._names(domain),
        )

    def _fields(self, layout: Layout) -> list[Clique]:
        return [(name,) for name in layout.domain]

    def _marginals(self, layout: Layout) -> Marginals:
        group_of(layout, self.groups)
        return marginals_of(layout, marginals=self.marginals, views=self.views, groups=self.groups)

    def _model(self, regime: Regime) -> DPSynModel:
        passes = (3 if self.partition or self.generator == "descent" else 10) if self.passes is None else self.passes
        round_to = self.round_to if regime != "public" else max(1, self.round_to // 10)
        return DPSynModel(
            regime=regime,
            joint=[list(group) for group in self.joint],
            synchronous=[list(group) for group in self.synchronous],
            mapped=dict(self.mapped),
            partition=[self.partition] if isinstance(self.partition, str) else list(self.partition),
            floor=self.floor,
            round_to=round_to,
            generator=self.generator,
            passes=passes,
        )

    def _public(self, given: Any, codec: Any) -> PublicRows | None:  # noqa: ANN401 - any table, and how it is encoded
        if given is None and (self.joint or self.regime in ("public", "one-way")):
            what = "joint columns have the combinations of" if self.joint else f"regime={self.regime!r} takes rows of"
            raise ParameterError(f"{what} a public table; give it, fit(source, schema, public=...)")
        return super()._public(given, codec)


_WHAT = {
    "public": "stand in for private ones, and only the number of rows was measured",
    "one-way": "were changed to have the measured 1-ways",
    "two-way": "gave no more than combinations of columns",
}


def _stage(
    setting: Setting,
    name: str,
    cells: Sequence[int],
    weights: Sequence[float] | None,
    *,
    what: str,
    rho: float,
    epsilon: float | None,
) -> Stage:
    """Return the release of tables of so many cells, in one line of a plan; with epsilon, noise is Laplace."""
    if epsilon is None:
        shares = budget_shares(cells).tolist() if weights is None else weights
        noise, sigmas = "Gaussian", [calibrate(rho * share, l2_sensitivity=setting.k) for share in shares]
    else:
        # Gaussian noise of this sigma is as large on average.
        scales = [setting.k / (epsilon * share) for share in laplace_shares(cells, weights)]
        noise, sigmas = "Laplace", [scale * math.sqrt(math.pi / 2) for scale in scales]
    errors = noise_errors([float(one) for one in cells], sigmas, int(setting.n))
    return Stage(name=name, rho=rho, of=f"{len(cells):,} {what}, {noise} noise", errors=(min(errors), max(errors)))


def _beside(weights: Sequence[float] | None, maps: int) -> list[float] | None:
    """Return shares of the budget with those of maps, each of which weighs as much as a marginal does on average."""
    if weights is None:
        return None
    each = 1 / (len(weights) + maps)
    return [*(weight * len(weights) * each for weight in weights), *[each] * maps]
