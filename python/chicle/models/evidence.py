"""Public rows as evidence beside released tables, for every mechanism that releases tables of several attributes.

The mechanism fits its own model first. Then, from released values and public rows alone:

1. The 1-ways are estimated from noisy counts and public ones (`denoising.prior`), and absorb the margins of all tables.
   Merged values are split by these estimates.
2. The public rows are raked to the 1-ways (`models.raked`). What they say of dependence is denoised
   (`denoising.deviations`).
3. The released tables show how far that is right (`denoising.evidence`). If they do not bear it out, the mechanism's
   own model is released as it is.
4. Else each table is estimated from its noisy counts, the public rows and the mechanism's own model. Pairs that no
   table holds are expected to be as in the public rows, as far as their attributes are believed.
5. Records are made by descent towards all of these. They start at records of the mechanism's own model, and some at
   public rows, which tell of more than pairs: the more, the more public rows there are.

All of it is post-processing. A file keeps the public rows that records start at, over merged values. Nothing else of
the public table is needed again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle.counting.records import Records
from chicle.denoising.absorb import absorb
from chicle.denoising.deviations import PublicDeviations
from chicle.denoising.evidence import OWN, Belief, Seen, believe
from chicle.denoising.prior import posterior_counts
from chicle.domain import Domain
from chicle.errors import DomainError
from chicle.measurements.desk import Progress
from chicle.measurements.measurement import Measurement, average_repeats, check_all, onto_simplex
from chicle.measurements.merges import Change, Merge
from chicle.measurements.public_rows import PublicRows, Role
from chicle.models.base import Model, State, model_of, register_model
from chicle.models.denoised import DenoisedModel
from chicle.models.descent import Start
from chicle.models.raked import RakedRows
from chicle.query import Query

__all__ = ["EvidenceModel"]

Floats = npt.NDArray[np.float64]

_STARTS = 2  # records that start from public rows, for each row that they effectively are
_LEAST = 1e-9  # share of a value that is split off


@register_model("evidence")
@dataclass(kw_only=True, eq=False)
class EvidenceModel(DenoisedModel):
    """Estimates from released tables, public rows and another model, and records by descent towards them.

    The parameters are those of a `DenoisedModel`; of these, the ones of descent matter.

    Attributes
    ----------
    own, parameters
        The family and the parameters of the mechanism's own model.
    role
        ``"evidence"`` or ``"trusted"``; see `chicle.PublicData`.
    public
        The public rows, over some or all attributes that are fitted.

    Examples
    --------
    >>> import chicle
    >>> here, there = chicle.datasets.census(4_000, d=4, seed=1), chicle.datasets.census(4_000, d=4, seed=2)
    >>> desk = chicle.Desk(here, chicle.Ledger(chicle.Budget(epsilon=1, delta=1e-9)))
    >>> measured = [*desk.measure_one_ways(rho=desk.left / 2), *desk.measure([("SEX", "AGE")], rho=desk.left)]
    >>> model = EvidenceModel(public=there).fit(measured, here.domain)
    >>> model.belief.tables <= 1, len(model.records(100, seed=0))
    (True, 100)
    """

    own: str = DenoisedModel.family
    parameters: Mapping[str, Any] = field(default_factory=dict)
    role: Role = "evidence"
    public: Records | None = field(default=None, repr=False)

    @classmethod
    def beside(cls, model: Model, public: PublicRows) -> EvidenceModel:
        """Return an unfitted model of a mechanism's own model and public rows; descent is as in the mechanism's."""
        known = {one.name for one in fields(DenoisedModel)}
        descent = {name: value for name, value in model.params().items() if name in known}
        there = Domain({name: size for name, size in model.domain.items() if name in public.records.domain})
        return cls(
            own=model.family,
            parameters=model.params(),
            role=public.role,
            public=Records({name: public.records[name] for name in there}, there),
            **(descent if isinstance(model, DenoisedModel) else {}),
        )

    def unaided(self) -> Model:
        """Return an unfitted model of the mechanism's own kind."""
        return model_of(self.own)(**self.parameters)

    def less_smoothed(self) -> Any:  # noqa: ANN401 - a model of the mechanism's own kind
        """Return the mechanism's own model, less smoothed: intervals rest on releases alone."""
        return self.unaided().less_smoothed()

    def params(self) -> dict[str, Any]:
        """Return the parameters as plain data; public rows are part of the state."""
        return {name: value for name, value in super().params().items() if name != "public"}

    @property
    def belief(self) -> Belief:
        """How far the public rows were believed."""
        _ = self.domain
        return self._belief

    def told(self, measurements: Sequence[Measurement]) -> Sequence[Measurement]:
        """Return the measurements of attributes that public rows lack: the others have steady tails from these rows."""
        _ = self.domain
        return [one for one in measurements if not self._seen.intersection(one.clique)]

    def fit_tables(
        self,
        measurements: list[Measurement],
        *,
        start: Model | None,
        threads: int | None,
        progress: Progress | None,
    ) -> None:
        """Learn from measurements over `domain`, and from what the mechanism's own model makes of them, `start`."""
        if self.public is None:
            raise DomainError("an evidence model needs `public=`, rows over some of the attributes that are fitted")
        own = start if start is not None else self._own(measurements, threads, progress)
        self._total = own.total
        self._model = own
        measured = check_all([one for one in measurements if one.whole], self.domain)
        counts = {name: self._counts(name, measured, own, self.public) for name in self.domain}
        self._seen = frozenset(self.public.domain)
        self._merge = _resplit(self.merge, {name: values for name, (values, _) in counts.items()})
        merged = [self.merge.over(one) for one in measured if len(one.clique) > 1]
        singles = [self._single(name, *counts[name], merged) for name in self.domain]
        raked = self._rake(self.public, singles, threads)
        estimates = self._tables(average_repeats(merged), singles, own, raked, threads)
        self._targets = [*singles, *estimates]
        self._rows = raked if raked.domain == self.merge.domain else None

    def first_records(self, n: int, rng: np.random.Generator) -> Start:
        """Return where a descent of `n` records starts: some at public rows, the others at the mechanism's own."""
        public = 0
        if self._rows is not None:
            believed = float(np.mean([self._belief.weight((name,)) for name in self.merge.domain]))
            public = round(n * believed * min(_STARTS * self._rows.effective / self.total, 1.0))
        first, second = rng.integers(2**63, size=2).tolist()
        own = self._model.draw_records(n - public, second, threads=None, progress=None)
        if self._rows is None or not public:
            return own
        rows = self._rows.draw(public, first)
        return Records({name: np.concatenate([rows[name], own[name]]) for name in own}, own.domain)

    def _own(self, measurements: list[Measurement], threads: int | None, progress: Progress | None) -> Model:
        """Return the mechanism's own model, fitted."""
        given: dict[str, Any] = {"merge": self.merge, "amounts": self._amounts}
        return self.unaided().fit(measurements, self.domain, threads=threads, progress=progress, **given)

    def _counts(self, name: str, measured: Sequence[Measurement], own: Model, public: Records) -> tuple[Floats, Floats]:
        """Return the estimated counts of an attribute's values, and their variances."""
        held = [one for one in measured if name in one.clique and name not in one.buckets]
        singles = average_repeats([one for one in held if len(one.clique) == 1])
        margins = singles or [one.margin((name,)) for one in held]
        size = self.domain[name]
        seen = np.bincount(public[name], minlength=size) if name in public.domain else None
        if margins:
            best = min(margins, key=lambda one: one.sigma)
            if seen is None:
                return best.floats, np.full(size, best.sigma**2)
            trusted = self.role == "trusted"
            return posterior_counts(best.floats, best.sigma**2, seen, self._total, trusted=trusted)
        (expected,) = own.expect([(name,)]) if seen is None else [(seen + 0.5) / (seen + 0.5).sum() * self._total]
        return expected, np.maximum(expected, 1.0)

    def _single(self, name: str, values: Floats, variances: Floats, tables: Sequence[Measurement]) -> Measurement:
        """Return a 1-way over merged values that has absorbed the margins of all tables."""
        codes, size = self.merge.codes(name), self.merge.domain[name]
        if name in self.merge.changes and (change := self.merge.changes[name]).vanish:
            held = change.shares > 0
            codes, values, variances = codes[held], values[held], variances[held]
        sums = np.bincount(codes, values, minlength=size).astype(np.float64)
        spread = np.bincount(codes, variances, minlength=size).astype(np.float64)
        sums, spread = absorb(name, sums, spread, tables)
        return Measurement((name,), onto_simplex(sums, self._total), float(np.sqrt(spread.mean())))

    def _rake(self, public: Records, singles: Sequence[Measurement], threads: int | None) -> RakedRows:
        """Return the public rows over merged values, raked to the 1-ways."""
        merge = self.merge
        maps = {name: change for name, change in merge.maps.items() if name in public.domain}
        rows = public.view(maps, Domain({name: merge.domain[name] for name in public.domain}))
        shares = {one.clique[0]: one.values / self._total for one in singles}
        return RakedRows(rows, threads=threads).fit({name: shares[name] for name in rows.domain})

    def _tables(
        self,
        tables: Sequence[Measurement],
        singles: Sequence[Measurement],
        own: Model,
        raked: RakedRows,
        threads: int | None,
    ) -> list[Measurement]:
        """Return the estimates of released tables, and those of pairs that none of them holds."""
        total, queries = self._total, [one.query for one in tables]
        asked = [query if query.buckets else query.clique for query in queries]
        expected = own.expect(asked, merged=True, threads=threads) if asked else []
        shares = {one.clique[0]: one.values / total for one in singles}
        public = PublicDeviations(raked.tables, raked.effective, {name: shares[name] for name in raked.domain})
        there = [i for i, query in enumerate(queries) if set(query.clique) <= set(raked.domain)]
        deviations = dict(zip(there, public.of([queries[i] for i in there]), strict=True))
        known = [i for i in there if deviations[i].any()]  # of the others public rows say nothing
        seen = [
            Seen(
                queries[i].clique,
                tables[i].floats,
                tables[i].sigma ** 2,
                expected[i],
                total * public.independent(queries[i]),
                total * deviations[i],
            )
            for i in known
        ]
        self._belief, estimates = believe(seen, trusted=self.role == "trusted", sampling=total / raked.effective)
        made = [
            replace(one, values=values, sigma=one.sigma * OWN**0.5)
            for one, values in zip(tables, expected, strict=True)
        ]
        for i, estimate in zip(known, estimates, strict=False):
            made[i] = replace(made[i], values=estimate.values, sigma=estimate.sigma)
        return [*made, *(self._pairs(public, queries) if self._belief.used else [])]

    def _pairs(self, public: PublicDeviations, held: Sequence[Query]) -> list[Measurement]:
        """Return what is expected of the pairs that no released table holds with all their values."""
        whole = {frozenset(pair) for query in held if not query.buckets for pair in combinations(query.clique, 2)}
        made = []
        for pair in public.pairs:
            weight = self._belief.weight(pair)
            (deviation,) = public.of([Query(pair)])
            if frozenset(pair) in whole or not weight or not deviation.any():
                continue
            expected = np.maximum(self._total * (public.independent(Query(pair)) + weight * deviation), 0.0)
            made.append(Measurement(pair, expected, float(np.sqrt(self._belief.variance(expected).mean()))))
        return made

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was learnt, as arrays."""
        belief = self._belief
        arrays = super().to_arrays() | {f"own-{name}": array for name, array in self._model.state().items()}
        arrays["believed"] = np.array([belief.weight((name,)) for name in self.domain])
        start = self._rows is not None
        arrays["belief"] = np.array(
            [belief.slope, belief.error, belief.tables, belief.trusted, start], dtype=np.float64
        )
        arrays["seen-attributes"] = np.array([name in self._seen for name in self.domain], dtype=np.uint8)
        if self._rows is not None:
            columns = [self._rows.rows[name] for name in self.merge.domain]
            wide = [codes if codes.dtype == np.uint8 else codes.astype(np.uint32) for codes in columns]
            arrays |= {f"row-{i}": codes for i, codes in enumerate(wide)}
            arrays["row-weights"] = self._rows.weights
        return arrays

    def from_arrays(self, state: State) -> None:
        """Take on what was learnt; nothing is fitted."""
        super().from_arrays(state)
        slope, error, tables, trusted, start = state["belief"].tolist()
        of_attribute = {
            name: (weight, 0.0) for name, weight in zip(self.domain, state["believed"].tolist(), strict=True)
        }
        self._belief = Belief(slope, error, int(tables), bool(trusted), of_attribute)
        own = {name.removeprefix("own-"): array for name, array in state.items() if name.startswith("own-")}
        self._model = self.unaided().restore(own, self.domain)
        if self._model.merge.domain != self.merge.domain:
            raise DomainError("the mechanism's own model is over other merged values")
        self._seen = frozenset(name for name, seen in zip(self.domain, state["seen-attributes"], strict=True) if seen)
        self._rows = None
        if start:
            merged = self.merge.domain
            rows = Records({name: state[f"row-{i}"] for i, name in enumerate(merged)}, merged)
            self._rows = RakedRows(rows, state["row-weights"])


def _resplit(merge: Merge, counts: Mapping[str, Floats]) -> Merge:
    """Return the same merge, with merged values split in the ratios of other counts."""
    changes = {}
    for name, change in merge.changes.items():
        known = np.maximum(counts[name], _LEAST * max(counts[name].sum(), 1.0))
        known = np.where(change.shares > 0, known, 0.0) if change.vanish else known
        changes[name] = Change(change.codes, known / np.bincount(change.codes, known)[change.codes], change.vanish)
    return Merge(merge.original, changes)
