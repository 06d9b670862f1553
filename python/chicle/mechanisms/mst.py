"""MST (McKenna, Miklau and Sheldon 2021): 1-ways, a tree of the strongest pairs, and the graphical model of both."""

from dataclasses import dataclass

from chicle._checks import number
from chicle.domain import Domain
from chicle.measurements.desk import Desk
from chicle.measurements.merges import merge_rare
from chicle.mechanisms.base import Mechanism, parts_of, register_mechanism
from chicle.mechanisms.stages import Setting, Stages, one_way_stage, score_stage, selected_stage
from chicle.models.pgm import GraphicalModel, pairs_with_room
from chicle.selection.forest import spanning_forest

__all__ = ["MST"]


@register_mechanism
@dataclass(kw_only=True, eq=False, repr=False)
class MST(Mechanism):
    """Measure 1-ways and the pairs of a spanning tree; records follow the graphical model of them.

    One noisy vector of InDif scores selects the tree: cheaper than the paper's exponential mechanism for each edge.

    Parameters
    ----------
    shares, theta, iterations
        Parts of the budget for 1-ways, scores and pairs; rare values are below theta sigmas; most steps of fitting.
    """

    shares: tuple[float, float, float] = (1 / 3, 1 / 3, 1 / 3)
    theta: float = 3.0
    iterations: int = 1_000
    per_pair = 5.0

    def check(self, domain: Domain) -> None:
        """Raise for parameters that cannot be used."""
        del domain
        number("theta", self.theta)
        GraphicalModel(iterations=self.iterations)

    def stages(self, setting: Setting) -> Stages:
        """Split the budget between 1-ways, scores and the tree."""
        first, second, third = parts_of(setting.rho, self.shares)
        if not (pairs := pairs_with_room(setting.domain)):
            return Stages.of(one_way_stage(setting, setting.rho))
        return Stages.of(
            one_way_stage(setting, first),
            score_stage(second, len(pairs)),
            selected_stage(setting, third, "the pairs of a tree"),
        )

    def run(self, desk: Desk) -> GraphicalModel:
        """Measure 1-ways, score pairs, measure a tree of them."""
        stages = self.stages(Setting.at(desk))
        desk.measure_one_ways(rho=stages.rho("1-way"))
        merged = desk.merged(merge_rare(desk.one_ways(), desk.domain, theta=self.theta))
        if pairs := pairs_with_room(desk.domain):
            scores = merged.score(pairs, merged.independence(), rho=stages.rho("selection"))
            merged.measure(spanning_forest(scores.highest_first()), rho=stages.rho("marginal"))
        return self.learn(GraphicalModel(iterations=self.iterations), merged)
