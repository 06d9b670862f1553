"""Residual: the measurements that answer a declared workload with the least noise (ResidualPlanner).

Nothing is chosen by the data: the contrasts of every clique of the workload's downward closure are measured, with
shares of the budget that are best for the workload (`chicle.selection.residual_shares`). So every answer has noise of
mean 0 and a variance that is known exactly, before the fit. Noise is independent, integer and exactly rounded, and the
ledger debits what is released: see `chicle.measurements.contrasts`.

Xiao, He, Zhang and Kifer, "An Optimal and Scalable Matrix Mechanism for Noisy Marginals under Convex Loss Functions",
NeurIPS 2023. It is the successor, for marginals, of HDMM in the comparison of [A] table 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle._checks import integer, number
from chicle.domain import Clique, Domain
from chicle.errors import InfeasibleError, ParameterError
from chicle.measurements.contrasts import Contrasts, TablesOfContrasts, contrast_sensitivity
from chicle.measurements.desk import Desk
from chicle.measurements.measurement import Measurement
from chicle.mechanisms.base import Mechanism, register_mechanism
from chicle.mechanisms.stages import Setting, Stage, Stages, count_stage
from chicle.models.base import Model, model_of
from chicle.plans import Step, noise_errors
from chicle.privacy.budget import calibrate
from chicle.releases.bounds import Distance
from chicle.releases.release import Release
from chicle.releases.unmeasured import distances_of_contrasts
from chicle.selection.residual_shares import Minimise, ResidualShares, residual_shares
from chicle.workload import Workload

__all__ = ["Residual", "TableAnswer"]


@dataclass(frozen=True, eq=False)
class TableAnswer:
    """The answer to one clique of a workload.

    Attributes
    ----------
    values
        Counts with noise of mean 0, so some may be negative.
    standard_error
        The standard deviation of the noise in each cell: exact, and the same for all.
    """

    values: npt.NDArray[np.float64]
    standard_error: float

    def interval(self, confidence: float = 0.95) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the ends of the confidence interval of each cell, for the counts of this table's rows."""
        if not 0 < number("confidence", confidence) < 1:
            raise ParameterError(f"confidence must be between 0 and 1, not {confidence!r}")
        half = NormalDist().inv_cdf((1 + confidence) / 2) * self.standard_error
        return self.values - half, self.values + half


@register_mechanism
@dataclass(kw_only=True, eq=False, repr=False)
class Residual(Mechanism):
    """Answer a workload of marginals with the least noise, and exact standard errors; records by any model.

    The answers, `answers_`, agree with each other: two tables have the same margins. They are the optimal
    unbiased ones for the noise. `sample` makes records that fit them, by the model of a given family.

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting, discovery, threads, progress
        As for every mechanism.
    workload
        What to answer, a `chicle.Workload` or cliques; by default all pairs of attributes (of one, its 1-way).
        Cliques of weight 0 are left out.
    minimise
        What is to be least over the workload, with its weights: ``"variance"``, the sum of the variances of all cells;
        ``"error"``, the sum of the expected L1 errors of its tables; ``"max"``, the largest error of a cell.
    model
        The family of the model that makes records, such as ``"descent"`` or ``"graphical"``.
    max_cells
        Most cells of all tables that are measured: a workload with more is an error before anything is spent.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(5_000, d=6)
    >>> synth = chicle.Residual(epsilon=1, delta=1e-9, workload=[("SEX", "AGE"), ("SEX", "RACE")]).fit(census)
    >>> {clique: round(answer.standard_error, 1) for clique, answer in synth.answers_.items()}
    {('SEX', 'AGE'): 6.1, ('SEX', 'RACE'): 12.0}
    >>> left, right = (answer.values.sum(axis=1) for answer in synth.answers_.values())
    >>> bool(abs(left - right).max() < 1e-6)
    True
    >>> table = synth.sample(seed=0)
    """

    workload: Workload | Mapping[Clique, float] | Iterable[Iterable[str]] | None = None
    minimise: Minimise = "variance"
    model: str = "descent"
    max_cells: int = 20_000_000

    def __post_init__(self) -> None:
        # A plan and a fit both read it.
        if isinstance(self.workload, Iterator):
            self.workload = list(self.workload)

    def check(self, domain: Domain) -> None:
        """Raise for parameters that cannot be used."""
        plan = self._plan(domain)
        # A model says what it cannot hold when it is fitted; tables of even counts have the shapes of the real ones.
        even = []
        for clique, share in plan.shares.items():
            shape = domain.shape(clique)
            if clique:
                sigma = calibrate(share, l2_sensitivity=contrast_sensitivity(shape, 1))
                even.append(Contrasts(clique, np.zeros([size - 1 for size in shape], dtype=np.int64), sigma))
        total = Measurement((), np.array(1_000), calibrate(plan.shares[()]))
        model_of(self.model)().fit([total, *TablesOfContrasts(even, total, domain).targets()], domain)

    def stages(self, setting: Setting) -> Stages:
        """Share the budget among the residuals of the workload."""
        plan = self._plan(setting.domain)
        shares = {clique: share for clique, share in plan.shares.items() if clique}
        rest = math.fsum(shares.values())
        return Stages.of(
            count_stage(setting.rho * plan.shares[()]) if rest else count_stage(setting.rho),
            _ContrastStage(
                name="contrasts",
                rho=setting.rho * rest,
                cliques={clique: share / rest for clique, share in shares.items()},
                deviations={clique: math.sqrt(found / setting.rho) for clique, found in plan.tables.items()},
            ),
        )

    def run(self, desk: Desk) -> Model:
        """Measure the number of records and all contrasts."""
        stages = self.stages(Setting.at(desk))
        desk.measure([()], rho=stages.rho("records"), purpose="number of records")
        if "contrasts" in stages:
            shares = dict(stages["contrasts"].cliques or {})
            desk.measure_contrasts(shares, rho=min(stages.rho("contrasts"), desk.left), shares=list(shares.values()))
        held = {name for clique in self._weights(desk.domain) for name in clique}
        for name in desk.domain:
            if name not in held:
                desk.note(f"{name!r} is in no clique of the workload: its values come evenly")
        return self.learn(model_of(self.model)(), desk)

    @property
    def answers_(self) -> dict[Clique, TableAnswer]:
        """The answer to each clique of the workload, with the standard error of its cells."""
        release = self._fitted()
        tables = _tables_of(release)
        found = {}
        for clique in self._weights(release.domain):
            if tables is None:  # every attribute has one value
                (total,) = release.measurements
                found[clique] = TableAnswer(total.floats.reshape(release.domain.shape(clique)), total.sigma)
            else:
                found[clique] = TableAnswer(tables.values(clique), math.sqrt(tables.variance(clique)))
        return found

    def parameters(self, domain: Domain) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return {**super().parameters(domain), "workload": self._workload(domain).to_plain(domain)}

    @classmethod
    def unmeasured(
        cls, release: Release, cliques: Sequence[Clique], *, threads: int | None = None
    ) -> list[Distance | None]:
        """Return bounds on the tables of contrasts, see `chicle.releases.unmeasured.distances_of_contrasts`."""
        del threads
        return distances_of_contrasts(release, cliques)

    def _workload(self, domain: Domain) -> Workload:
        return Workload.all_kway(domain, 2) if self.workload is None else Workload.of(self.workload).over(domain)

    def _weights(self, domain: Domain) -> dict[Clique, float]:
        return {clique: weight for clique, weight in self._workload(domain).items() if weight > 0}

    def _plan(self, domain: Domain) -> ResidualShares:
        """Return the shares of the residuals, after checking the size of their tables."""
        most, weights = integer("max_cells", self.max_cells, 1), self._weights(domain)
        if (cells := sum(map(domain.cells, weights))) > most:
            raise InfeasibleError(
                f"the {len(weights):,} tables of the workload have {cells:.3g} cells in all, above max_cells "
                f"{most:,}; give a workload of fewer or smaller cliques, or raise max_cells"
            )
        return residual_shares(weights, domain, minimise=self.minimise)


@dataclass(frozen=True, kw_only=True)
class _ContrastStage(Stage):
    """The release of contrasts.

    Attributes
    ----------
    deviations
        For cliques of the workload, the standard deviation of the noise in a cell of their tables, at k = 1.
    """

    deviations: Mapping[Clique, float]

    def _step(self, clique: Clique, share: float, setting: Setting) -> Step:
        shape = setting.domain.shape(clique)
        sigma = calibrate(self.rho * share, l2_sensitivity=contrast_sensitivity(shape, setting.k))
        error = None
        if clique in self.deviations:
            cells = float(setting.domain.cells(clique))
            (error,) = noise_errors([cells], [self.deviations[clique] * setting.k], int(setting.n))
        values = math.prod(size - 1 for size in shape)
        of = " x ".join(clique)
        return Step(release=self.name, of=of, values=values, rho=self.rho * share, sigma=sigma, error=error)


def _tables_of(release: Release) -> TablesOfContrasts | None:
    return release.transcript.tables_of_contrasts(release.domain)
