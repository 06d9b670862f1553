"""The first baseline: noisy 1-way marginals, attributes independent. A mechanism that loses to it has a defect."""

from __future__ import annotations

from dataclasses import dataclass

from chicle.measurements.desk import Desk
from chicle.mechanisms.base import Mechanism, register_mechanism
from chicle.mechanisms.stages import Setting, Stages, one_way_stage
from chicle.models.independent import IndependentModel

__all__ = ["Independent"]


@register_mechanism
@dataclass(kw_only=True, eq=False, repr=False)
class Independent(Mechanism):
    """Measure every 1-way marginal, with shares ~ cells^(2/3), and draw the attributes independently.

    Takes the parameters of every mechanism.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(5_000, d=6)
    >>> table = chicle.Independent(epsilon=1, delta=1e-9).fit(census).sample(100, seed=0)
    >>> len(table), list(table) == list(census.domain)
    (100, True)
    """

    per_pair = 0.0

    def stages(self, setting: Setting) -> Stages:
        """Give all of the budget to the 1-ways."""
        return Stages.of(one_way_stage(setting, setting.rho))

    def run(self, desk: Desk) -> IndependentModel:
        """Measure all 1-ways."""
        desk.measure_one_ways(rho=desk.left)
        return self.learn(IndependentModel(), desk)
