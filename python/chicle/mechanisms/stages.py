"""Stages: how a mechanism splits its budget, for both `plan` and `fit`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from chicle.domain import Clique, Domain
from chicle.measurements.desk import Desk
from chicle.plans import Step, noise_errors, pair_errors
from chicle.privacy.budget import budget_shares, calibrate
from chicle.query import one_ways

__all__ = [
    "Setting",
    "Stage",
    "Stages",
    "count_stage",
    "marginal_stage",
    "one_way_stage",
    "score_stage",
    "selected_stage",
]


@dataclass(frozen=True)
class Setting:
    """What a mechanism knows when it splits its budget; all of it public.

    Attributes
    ----------
    domain
        The attributes.
    rho
        What may be spent.
    k
        How many rows one person may have.
    n
        About how many records there are: assumed in a plan, released in a fit where a stage needs it.
    """

    domain: Domain
    rho: float
    k: int
    n: float = 1_000.0

    @classmethod
    def at(cls, desk: Desk) -> Setting:
        """Return the setting of a desk, with what may be spent there; the number of records is not known."""
        return cls(desk.domain, desk.left, desk.k)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A named share of the budget.

    Attributes
    ----------
    name
        What is released, in a word: ``"1-way"``, ``"selection"``, ``"marginal"``.
    rho
        What it costs in all.
    cliques
        What is measured, with the share of rho of each, where that is known beforehand.
    of
        What is released, for the plan, where the cliques are not known.
    values
        How many numbers are released, where that is known.
    errors
        The least and the largest error that noise is expected to add to a table, where cliques are not known.
    merged
        Whether rare values may be merged before the cliques are measured, so that noise is less than planned.
    """

    name: str
    rho: float
    cliques: Mapping[Clique, float] | None = None
    of: str = ""
    values: int | None = None
    errors: tuple[float, float] | None = None
    merged: bool = False

    def steps(self, setting: Setting) -> list[Step]:
        """Return the releases of this stage, for a plan."""
        if self.cliques is None:
            least, most = self.errors or (None, None)
            return [
                Step(release=self.name, of=self.of, values=self.values, rho=self.rho, error=most, least_error=least)
            ]
        return [self._step(clique, share, setting) for clique, share in self.cliques.items()]

    def _step(self, clique: Clique, share: float, setting: Setting) -> Step:
        cells, part = setting.domain.cells(clique), self.rho * share
        sigma = calibrate(part, l2_sensitivity=setting.k)
        if not clique:
            return Step(release="records", of="their number", values=1, rho=part, sigma=sigma)
        (error,) = noise_errors([float(cells)], [sigma], int(setting.n))
        of, name = " x ".join(clique), "1-way" if self.name == "marginal" and len(clique) == 1 else self.name
        if self.merged:
            return Step(release=name, of=of, rho=part, error=error)
        return Step(release=name, of=of, values=cells, rho=part, sigma=sigma, error=error)


@dataclass(frozen=True)
class Stages:
    """The stages of a mechanism, in order."""

    all: tuple[Stage, ...] = field(default_factory=tuple)

    @classmethod
    def of(cls, *stages: Stage | None) -> Stages:
        """Return the given stages, without those that cost nothing."""
        return cls(tuple(stage for stage in stages if stage is not None and stage.rho > 0))

    def rho(self, name: str) -> float:
        """Return what the stage of a name may spend; 0 if there is none."""
        return sum(stage.rho for stage in self.all if stage.name == name)

    def __getitem__(self, name: str) -> Stage:
        return next(stage for stage in self.all if stage.name == name)

    def __contains__(self, name: str) -> bool:
        return any(stage.name == name for stage in self.all)

    def steps(self, setting: Setting) -> list[Step]:
        """Return the releases of all stages, for a plan."""
        return [step for stage in self.all for step in stage.steps(setting)]


def count_stage(rho: float) -> Stage:
    """Return the release of the number of records."""
    return Stage(name="records", rho=rho, cliques={(): 1.0})


def one_way_stage(setting: Setting, rho: float) -> Stage:
    """Return the release of all 1-ways, with shares ~ cells^(2/3)."""
    return marginal_stage(setting, rho, one_ways(setting.domain), name="1-way")


def marginal_stage(
    setting: Setting,
    rho: float,
    cliques: Iterable[Clique],
    *,
    name: str = "marginal",
    weights: Sequence[float] | None = None,
    merged: bool = False,
) -> Stage:
    """Return the release of known cliques, with given shares, or with shares ~ cells^(2/3)."""
    named = list(cliques)
    shares = budget_shares([setting.domain.cells(one) for one in named]).tolist() if weights is None else weights
    return Stage(name=name, rho=rho, cliques=dict(zip(named, shares, strict=True)), merged=merged)


def score_stage(rho: float, number: int, what: str = "pairs") -> Stage:
    """Return the release of scores, or of choices, by which cliques are selected."""
    return Stage(name="selection", rho=rho, of=f"{number:,} {what}", values=number)


def selected_stage(
    setting: Setting, rho: float, of: str = "the chosen cliques", errors: tuple[float, float] | None = None
) -> Stage:
    """Return the release of cliques that are chosen by released values; errors are those of all pairs by default."""
    if errors is None and rho > 0:
        errors = pair_errors(setting.domain, rho, setting.k, int(setting.n))
    return Stage(name="marginal", rho=rho, of=of, errors=errors)
