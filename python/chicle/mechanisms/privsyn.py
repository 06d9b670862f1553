"""PrivSyn ([P] Algorithm 3): 1-ways, rare values merged, cliques chosen by InDif and DenseMarg, measured, generated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from chicle._checks import MEMORY_LIMIT, integer, memory_bytes, number
from chicle.domain import Clique, Domain, pairs
from chicle.errors import InfeasibleError, ParameterError
from chicle.measurements.desk import Desk
from chicle.measurements.merges import merge_rare
from chicle.mechanisms.base import Mechanism, parts_of, register_mechanism
from chicle.mechanisms.stages import Setting, Stages, marginal_stage, one_way_stage, score_stage, selected_stage
from chicle.models.base import Model
from chicle.models.composed import KERNELS, ComposedModel, check_options
from chicle.models.pgm import GraphicalModel, jt_size, model_bytes, pgm
from chicle.plans import Cost, rough_cost
from chicle.query import one_ways
from chicle.selection.combine import combine, given_weights
from chicle.selection.dense_marg import dense_marg
from chicle.workload import Workload

__all__ = ["PrivSyn"]

# GUM as published fits its targets by copying records, at the cost of marginals that were not measured: on the fire
# calls of 2018 at epsilon 1 its 2-way error is .18, that of independent attributes .175, of the tuned variant .046.
# Beyond three sweeps of descent records come closer to the noisy targets, but no closer to the true table.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "gum": {"variant": "tuned", "passes": 10},
    "descent": {"sweeps": 3},
    "mcf": {},
    "pgm": {"iterations": 300},
}

_MODEL = 4 * 2**20  # bytes of the junction tree of chosen pairs

Form = Literal["released", "published"]


@register_mechanism
@dataclass(kw_only=True, eq=False, repr=False)
class PrivSyn(Mechanism):
    """The published system, every part of it, with exact accounting and tuned record kernels unless asked otherwise.

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting, discovery, threads, progress
        As for every mechanism; ``accounting="zcdp-basic"`` is the paper's.
    generator
        ``"gum"``, the paper's record update; ``"descent"``, chicle's own, closer to the targets and faster; ``"mcf"``,
        the paper's baseline; ``"pgm"``, a graphical model: chosen pairs that would take its junction tree above 4 MB
        are left out, and pairs are not combined.
    shares
        Parts of the budget for the 1-ways, for selection and for the chosen marginals. Within the first and the last,
        a marginal of c cells gets a share ~ c^(2/3) ([P] equation 1).
    form
        InDif scores against the ``"released"`` 1-ways (sensitivity 1), or as ``"published"`` (sensitivity 4).
    cliques
        What to measure, or a mapping of it to weights: the share of the measuring budget that each gets ([D18] 5.2).
        By default it is selected privately; where it is given, the budget of selection goes to measuring.
    gamma
        Chosen pairs are combined into larger cliques of at most this many cells ([P] Algorithm 2).
    theta
        Values whose noisy count is below this many sigmas are merged or dropped ([P] 5.3).
    separate, append
        Whether unconnected parts, and attributes in one marginal only, are made without the generator ([P] 5.3).
    options
        Keyword arguments for the generator. By default GUM runs 10 passes of its tuned variant, and descent three
        sweeps; ``{"variant": "published", "passes": 100}`` is the paper's GUM.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(5_000, d=6)
    >>> synth = chicle.PrivSyn(epsilon=1, delta=1e-9, generator="descent").fit(census)
    >>> table = synth.sample(seed=0)
    >>> synth.ledger_.epsilon() <= 1
    True
    """

    generator: Literal["gum", "descent", "mcf", "pgm"] = "gum"
    shares: tuple[float, float, float] = (0.1, 0.1, 0.8)
    form: Literal["released", "published"] = "released"
    cliques: Mapping[Clique, float] | Iterable[Iterable[str]] | None = None
    gamma: int = 5000
    theta: float = 3.0
    separate: bool = True
    append: bool = True
    options: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        # A plan and a fit both read them.
        if isinstance(self.cliques, Iterator):
            self.cliques = list(self.cliques)

    @property
    def title(self) -> str:
        """The name of this mechanism in a plan."""
        return f"PrivSyn ({self.generator})"

    def cost(self, setting: Setting) -> Cost:
        """Return about how long a fit and a sample take, and how much memory."""
        return rough_cost(setting.domain, int(setting.n), per_pair=9 if self.generator == "gum" else 15)

    def check(self, domain: Domain) -> None:
        """Raise for parameters that cannot be used on these attributes."""
        self._model()
        number("theta", self.theta)
        integer("gamma", self.gamma, 0)
        if self.form not in get_args(Form):
            raise ParameterError(f"form must be one of {get_args(Form)}, not {self.form!r}")
        given = [] if self.cliques is None else list(given_weights(self.cliques, domain)[0])
        if given and self.generator == "pgm":
            _check_model([*one_ways(domain), *given], domain, self._options())

    def stages(self, setting: Setting) -> Stages:
        """Split the budget between 1-ways, scores and the chosen cliques; given cliques need no scores."""
        first, second, third = parts_of(setting.rho, self.shares)
        if self.cliques is not None:
            given, weights = given_weights(self.cliques, setting.domain)
            stage = marginal_stage(setting, second + third, given, weights=weights, merged=True)
            return Stages.of(one_way_stage(setting, first), stage)
        if not (number := len(setting.domain) * (len(setting.domain) - 1) // 2):
            return Stages.of(one_way_stage(setting, first), selected_stage(setting, second + third))
        return Stages.of(one_way_stage(setting, first), score_stage(second, number), selected_stage(setting, third))

    def run(self, desk: Desk) -> Model:
        """Measure 1-ways, choose cliques by the scores of pairs unless they are given, and measure them."""
        stages = self.stages(Setting.at(desk))
        desk.measure_one_ways(rho=stages.rho("1-way"))
        merged = desk.merged(merge_rare(desk.one_ways(), desk.domain, theta=self.theta))
        if self.cliques is None:
            # With nothing worth a marginal, the rest of the budget makes the 1-ways better.
            chosen, weights = self._select(merged, stages) or one_ways(desk.domain), None
        else:
            chosen, weights = given_weights(self.cliques, desk.domain)
        merged.measure(chosen, rho=stages.rho("marginal"), shares=weights)
        return self.learn(self._model(), merged)

    def parameters(self, domain: Domain) -> dict[str, Any]:
        """Return the parameters as plain data."""
        plain = super().parameters(domain)
        if isinstance(self.cliques, Mapping):
            plain["cliques"] = Workload(self.cliques).to_plain(domain)
        return plain

    def _select(self, desk: Desk, stages: Stages) -> list[Clique]:
        """Choose cliques by released scores of all pairs."""
        if not (candidates := pairs(desk.domain)):
            return []
        rho = stages.rho("selection")
        if self.form == "published":
            scores = desk.dependence(candidates, rho=rho)
        else:
            scores = desk.score(candidates, desk.independence(), rho=rho)
        chosen = dense_marg(
            scores,
            desk.domain,
            rho=stages.rho("marginal"),
            l2_sensitivity=desk.k,
            allow_unprotected=not desk.protected,
        )
        if self.generator == "pgm":
            return _within(_MODEL, chosen, desk.domain)
        return combine(chosen, desk.domain, gamma=self.gamma)

    def _options(self) -> dict[str, Any]:
        """Return the options of the generator."""
        if self.generator not in _DEFAULTS:
            raise ParameterError(f"generator must be 'gum', 'descent', 'mcf' or 'pgm', not {self.generator!r}")
        options = _DEFAULTS[self.generator] if self.options is None else self.options
        check_options(KERNELS.get(self.generator, pgm), self.generator, options)
        return dict(options)

    def _model(self) -> Model:
        options = self._options()
        if self.generator == "pgm":
            # A maximum-likelihood model needs neither consistent tables nor help with the easy parts.
            return GraphicalModel(**options)
        return ComposedModel(kernel=self.generator, options=options, separate=self.separate, append=self.append)


def _check_model(cliques: Sequence[Clique], domain: Domain, options: Mapping[str, Any]) -> None:
    """Raise for cliques that no graphical model can hold, before anything is spent."""
    limit = memory_bytes(options.get("memory_limit", MEMORY_LIMIT))
    if (size := model_bytes(cliques, domain)) > limit:
        raise InfeasibleError(
            f"a graphical model of these {len(cliques)} cliques takes {size:.3g} bytes, above the limit of "
            f"{limit:.3g}; give fewer cliques, take generator='gum' or 'descent', or raise the memory_limit in options"
        )


def _within(size: int, chosen: Sequence[Clique], domain: Domain) -> list[Clique]:
    """Return the cliques, taken in order, with which the junction tree takes at most `size` bytes."""
    kept: list[Clique] = []
    for clique in chosen:
        if jt_size([*kept, clique], domain) <= size:
            kept.append(clique)
    return kept
