"""The Gaussian mechanism on a workload ([A] section 6.1): every clique of it is measured, none is chosen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle._checks import integer
from chicle.domain import Clique, Domain
from chicle.errors import InfeasibleError
from chicle.measurements.desk import Desk
from chicle.mechanisms.base import Mechanism, register_mechanism
from chicle.mechanisms.stages import Setting, Stage, Stages
from chicle.models.descent import DescentModel
from chicle.workload import Workload

__all__ = ["Gaussian"]


@register_mechanism
@dataclass(kw_only=True, eq=False, repr=False)
class Gaussian(Mechanism):
    """Measure every clique of a workload; the noisy tables themselves are the answers.

    The budget is shared so that the total weighted noise of all tables is least. A table of n_i cells has an
    expected L1 noise of ``sqrt(2 / pi) n_i sigma_i``, and sigma_i costs ``rho_i = k^2 / (2 sigma_i^2)``. To minimise
    ``sum c_i n_i sigma_i`` for a fixed sum of rho_i, the derivative ``-c_i n_i rho_i^(-3/2)`` must be the same for all
    i: ``rho_i ~ (c_i n_i)^(2/3)``, which for equal weights is equation 1 of [P].

    The baseline of the paper has no records, only `answers_`. `sample` makes records that fit the answers by residual
    descent, which chicle adds.

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting, discovery, threads, progress
        As for every mechanism.
    workload
        What to measure, a `chicle.Workload` or cliques; by default all pairs of attributes (of one, its 1-way).
        Cliques of weight 0 are left out.
    max_cells
        Most cells of all tables in all: a workload with more is an error before anything is spent.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(5_000, d=6)
    >>> synth = chicle.Gaussian(epsilon=1, delta=1e-9, workload={("SEX", "AGE"): 2.0, ("SEX", "RACE"): 1.0}).fit(census)
    >>> {clique: table.shape for clique, table in synth.answers_.items()}
    {('SEX', 'AGE'): (2, 116), ('SEX', 'RACE'): (2, 8)}
    >>> table = synth.sample(seed=0)
    """

    workload: Workload | Mapping[Clique, float] | Iterable[Iterable[str]] | None = None
    max_cells: int = 20_000_000

    def __post_init__(self) -> None:
        # A plan and a fit both read it.
        if isinstance(self.workload, Iterator):
            self.workload = list(self.workload)

    @property
    def answers_(self) -> Mapping[Clique, npt.NDArray[Any]]:
        """The noisy table of each clique of the workload: counts with noise of mean 0, so some may be negative."""
        return MappingProxyType({table.clique: table.values for table in self._fitted().measurements})

    def stages(self, setting: Setting) -> Stages:
        """Share the budget among the cliques of the workload."""
        return Stages.of(Stage(name="marginal", rho=setting.rho, cliques=self._shares(setting.domain)))

    def run(self, desk: Desk) -> DescentModel:
        """Measure every clique of the workload."""
        stage = self.stages(Setting.at(desk))["marginal"]
        shares = dict(stage.cliques or {})
        desk.measure(shares, rho=stage.rho, shares=list(shares.values()))
        held = {name for clique in shares for name in clique}
        for name in desk.domain:
            if name not in held:
                desk.note(f"{name!r} is in no clique of the workload: its values come evenly")
        return self.learn(DescentModel(), desk)

    def parameters(self, domain: Domain) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return {"workload": self._workload(domain).to_plain(domain), "max_cells": self.max_cells}

    def _workload(self, domain: Domain) -> Workload:
        return Workload.all_kway(domain, 2) if self.workload is None else Workload.of(self.workload).over(domain)

    def _shares(self, domain: Domain) -> dict[Clique, float]:
        """Return the part of the budget of each clique, by the allocation that the class derives."""
        most = integer("max_cells", self.max_cells, 1)
        weighed = {clique: weight for clique, weight in self._workload(domain).items() if weight > 0}
        if (cells := sum(map(domain.cells, weighed))) > most:
            raise InfeasibleError(
                f"the {len(weighed):,} tables of the workload have {cells:.3g} cells in all, above max_cells "
                f"{most:,}; give a workload of fewer or smaller cliques, or raise max_cells"
            )
        return dict(zip(weighed, _allocation(weighed, domain).tolist(), strict=True))


def _allocation(weights: Mapping[Clique, float], domain: Domain) -> npt.NDArray[np.float64]:
    # Relative to the largest, so that no weight overflows or vanishes.
    loads = np.array([np.log(weight) + np.log(domain.cells(clique)) for clique, weight in weights.items()])
    parts = np.exp((loads - loads.max()) * (2 / 3))
    shares: npt.NDArray[np.float64] = parts / parts.sum()
    return shares
