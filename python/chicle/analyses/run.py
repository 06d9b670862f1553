"""Answer declared analyses: what each may spend, what is bought in which order, and what to expect of it beforehand.

The rho of all analyses is split evenly. Each buys the products of its features, alone or with others of the same
columns (`chicle.analyses.shared`), then its score twice (`chicle.analyses.solve`): at the estimate of the synthetic
table, and where that led. All analyses buy at the same time, so that the rows are read three times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from chicle.analyses.coefficients import Coefficients
from chicle.analyses.declared import Analysis
from chicle.analyses.design import Design
from chicle.analyses.families import LOGIT, Floats
from chicle.analyses.shared import Group, groups_of
from chicle.analyses.solve import VAGUE, Shape, next_place, solve
from chicle.analyses.sums import Products, Question, Score, release_sums
from chicle.errors import ParameterError, SchemaError
from chicle.measurements.row_sums import RowSums
from chicle.plans import Expected, Step
from chicle.privacy.budget import calibrate
from chicle.privacy.ledger import Ledger
from chicle.schema import Schema
from chicle.sources import Source

__all__ = ["ANALYSIS_SHARE", "SYNTHETIC_ROWS", "AnalysisPlan", "as_analyses"]

ANALYSIS_SHARE = 0.1
"""The share of the budget that declared analyses get by default."""

SYNTHETIC_ROWS = 200_000
"""Most synthetic rows that the shape of a score is taken from."""

_ROUNDS = {"products": 0.2, "first score": 0.4, "last score": 0.4}  # shares of an analysis' rho
_BIAS = 0.2  # of the standard deviation of noise, at most, by clipping residuals
_LEAST = 0.05  # share of the squared weights that is spread evenly, so that no block is left without
_REPEATS = 30
_SPREAD_ROWS = 4_096  # for what to expect of a table that nobody has seen


def as_analyses(given: Iterable[Analysis] | Analysis) -> tuple[Analysis, ...]:
    """Return declared analyses as a tuple; anything else is an error."""
    found = (given,) if isinstance(given, Analysis) else tuple(given)
    for one in found:
        if not isinstance(one, Analysis):
            raise ParameterError(
                f"analyses must be chicle.Linear, chicle.Logit or chicle.Poisson, not a {type(one).__name__}"
            )
    if len({one.title for one in found}) < len(found):
        raise ParameterError("an analysis is declared twice; each is paid for, so declare it once")
    return found


@dataclass(frozen=True)
class AnalysisPlan:
    """Declared analyses over a schema, and what they may spend.

    Attributes
    ----------
    analyses
        What was declared.
    schema
        The schema of the table.
    rho
        What all of them cost.
    """

    analyses: tuple[Analysis, ...]
    schema: Schema
    rho: float

    @classmethod
    def of(cls, analyses: Sequence[Analysis], schema: Schema, *, rho: float, share: float) -> AnalysisPlan:
        """Return a plan that spends a share of rho; a formula that does not fit the schema is an error."""
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
            raise ParameterError(f"analysis_share must lie between 0 and 1, not {share!r}")
        if analyses and schema.presence is not None:
            raise SchemaError("declared analyses are of one table; leave them out of a fit of linked tables")
        for one in analyses:
            one.design(schema)
        return cls(tuple(analyses), schema, rho * share if analyses else 0.0)

    def check(self, source: Source) -> None:
        """Raise unless a source can be read as often as the analyses need."""
        if self.analyses and source.once:
            raise SchemaError(
                "declared analyses read the table again, but these batches can be read only once; give a function that "
                "opens them"
            )

    def steps(self) -> list[Step]:
        """Return the releases, for a plan; sigma is in units of the most that one row can add."""
        k, rhos, sizes = self.schema.max_records_per_person, self._rhos, {}
        for group in self._groups():
            size, members = group.whole.size, len(group.titles)
            sizes["products", group.title] = (size * (size + 1) // 2, members * rhos["products"])
        for one in self.analyses:
            for name in ("first score", "last score"):
                sizes[name, one.title] = (one.design(self.schema).size, rhos[name])
        return [
            Step(release=name, of=title, values=values, rho=rho, sigma=calibrate(rho, l2_sensitivity=k))
            for (name, title), (values, rho) in sizes.items()
        ]

    def expected(self, n: int) -> list[Expected]:
        """Return the standard errors to expect if n rows are spread evenly over their declared values."""
        found = []
        for one in self.analyses:
            design = one.design(self.schema)
            k = self.schema.max_records_per_person
            case = _Case(one.title, design, _spread(design, n), k, k)
            score, sigma = case.score(case.shape.middle(), self._rhos["last score"])
            zeros = np.zeros(design.size, dtype=np.int64)
            answer = case.answer([RowSums(one.title, score.kind, zeros, sigma, score.at, score.units)] * 2)
            sampling = np.sqrt(np.diag(answer.sampling))
            found.append(Expected(one.title, answer.names, answer.standard_error.tolist(), sampling.tolist()))
        return found

    def answer(
        self, source: Source, ledger: Ledger, *, synthetic: Mapping[str, pa.ChunkedArray], rows: float, alike: float
    ) -> tuple[list[Coefficients], list[RowSums]]:
        """Buy sums over private rows; return the answers, and everything that was released for them.

        Parameters
        ----------
        source, ledger
            The private rows, and what pays.
        synthetic
            The columns of a synthetic table.
        rows
            How many real rows one synthetic row stands for.
        alike
            By how much sampling variances grow if the rows of a person are alike; at most k.
        """
        k = self.schema.max_records_per_person
        rhos, groups = self._rhos, self._groups()
        asked: list[tuple[Question, float]] = [
            (
                Products(of=group.title, design=group.whole, weights=group.weights),
                len(group.titles) * rhos["products"],
            )
            for group in groups
        ]
        released = release_sums(asked, source, k, ledger)
        products = {
            title: group.of(place, bought)
            for group, bought in zip(groups, released, strict=True)
            for place, title in enumerate(group.titles)
        }
        cases = []
        for one in self.analyses:
            design = one.design(self.schema)
            shape = Shape.of(design, synthetic, rows).mixed(products[one.title])
            cases.append(_Case(one.title, design, shape, k, alike))
        places, scores = [case.shape.own for case in cases], list[list[RowSums]]()
        for name in ("first score", "last score"):
            asked = [(case.score(at, rhos[name])[0], rhos[name]) for case, at in zip(cases, places, strict=True)]
            scores.append(release_sums(asked, source, k, ledger))
            places = [next_place(case.shape, one) for case, one in zip(cases, scores[-1], strict=True)]
        answers = [case.answer(bought) for case, *bought in zip(cases, *scores, strict=True)]
        return answers, [*released, *(one for some in scores for one in some)]

    @property
    def _rhos(self) -> dict[str, float]:
        """What an analysis pays for each purchase."""
        return {name: share * self.rho / max(len(self.analyses), 1) for name, share in _ROUNDS.items()}

    def _groups(self) -> list[Group]:
        titles, formulas = [one.title for one in self.analyses], [one.parsed for one in self.analyses]
        return groups_of(titles, formulas, [one.design(self.schema) for one in self.analyses], self.schema)


@dataclass(frozen=True)
class _Case:
    """An analysis with all that is public about it: what it asks next, and its answer."""

    title: str
    design: Design
    shape: Shape
    k: int
    alike: float

    def score(self, at: Floats, rho: float) -> tuple[Score, float]:
        """Return the score to buy at a place for rho, and the noise of its sums."""
        noise = calibrate(rho, l2_sensitivity=self.k)
        reach = self._reach(at, noise)
        score = Score(
            of=self.title, design=self.design, weights=self._weights(at, noise * reach), place=at, reach=reach
        )
        return score, calibrate(rho, l2_sensitivity=self.k * score.row_sensitivity)

    def answer(self, bought: Sequence[RowSums]) -> Coefficients:
        """Return the answer from scores."""
        estimate, sampling, noise = solve(self.shape, bought, self.alike)
        unit = self.design.radius
        estimate = unit * estimate
        estimate[0] += self.design.middle
        return Coefficients(self.title, tuple(self.design.names), estimate, unit**2 * sampling, unit**2 * noise)

    def _weights(self, at: Floats, noise: float) -> Floats:
        """Return the weights of features at which noise widens intervals least, as far as the synthetic rows tell.

        Noise of variance ``1 / v_b`` on the score of block b adds ``sum_b cost_ib / v_b`` to the variance of
        coefficient i, with cost_ib the sum of ``(unscale H^-1)_ij^2`` over j in b. The sum over coefficients of the
        logarithms of their variances, of sampling and of noise, is least under ``sum v_b = 1`` where v_b is
        proportional to what b adds to these variances, as shares of each: a fixed point, found by repetition.
        Logarithms, so that a coefficient that noise hides anyway, such as that of a level of few rows, does not take
        all from the others.
        """
        design = self.design
        turn = design.unscale @ np.linalg.inv(self.shape.slope(at) + noise / VAGUE * np.eye(design.size))
        with np.errstate(all="ignore"):
            sampling = np.diag(turn @ self.shape.meat() @ turn.T)
            costs = noise**2 * np.array([(turn[:, design.block == b] ** 2).sum(axis=1) for b in range(design.blocks)])
            parts = np.full(design.blocks, 1 / design.blocks)
            for _ in range(_REPEATS):
                added = costs / parts[:, None]
                wanted = (added / (sampling + added.sum(axis=0))).sum(axis=1)
                parts = np.sqrt(parts * wanted / wanted.sum())
                parts = np.maximum(parts / parts.sum(), _LEAST / design.blocks)
                parts /= parts.sum()
        # Of an empty table nothing is known.
        return np.asarray(np.sqrt(parts)[design.block]) if np.isfinite(parts).all() else _even(design)

    def _reach(self, at: Floats, noise: float) -> float:
        """Return where residuals are clipped: as low as the bias of clipping stays small beside the noise.

        Noise on a score is proportional to the reach R. Clipping moves the score, in units in which the noise is
        `noise`, by at most ``sum max(|residual| - R, 0) / R``. The synthetic rows tell that sum, and their residuals
        are too long rather than too short, because noise puts some records far off.
        """
        if self.design.family is LOGIT:
            return 1.0
        lengths = np.sort(np.abs(self.shape.residuals(at)))[::-1]
        above = np.cumsum(lengths) - lengths * np.arange(1, len(lengths) + 1)  # the sum, if R is this length
        fits = lengths[self.shape.rows * above <= _BIAS * noise * lengths]
        return max(float(fits.min()) if fits.size else 0.0, self.design.family.least_reach)


def _even(design: Design) -> Floats:
    """Return the same weight for all features."""
    return np.full(design.size, (1 / design.blocks) ** 0.5)


def _spread(design: Design, n: int) -> Shape:
    """Return the shape of a table whose columns are spread evenly over their declared values."""
    rng = np.random.default_rng(0)
    features = design.spread(_SPREAD_ROWS, rng)
    low, high = design.outcome_span
    drawn = (rng.uniform(low, high, _SPREAD_ROWS) - design.middle) / design.radius
    outcome: Floats = np.asarray(drawn > (low + high) / 2, dtype=float) if design.family is LOGIT else drawn
    return Shape(features, outcome, features, design.family, design.unscale, n / _SPREAD_ROWS)
