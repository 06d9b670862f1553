"""PEP ([G] section 5): a probability for every joint value of the attributes, projected on what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chicle.domain import Domain
from chicle.measurements.desk import Desk
from chicle.mechanisms.base import register_mechanism
from chicle.mechanisms.query_rounds import QueryRounds
from chicle.models.reweighted import ExplicitModel, Update, check_cells

__all__ = ["PEP", "ExplicitRounds"]

_FINAL_SWEEPS = 200  # over whole tables, for the model that is released


@dataclass(kw_only=True, eq=False, repr=False)
class ExplicitRounds(QueryRounds[ExplicitModel]):
    """Base of the mechanisms over an explicit model: rounds on a domain that is small enough."""

    update: ClassVar[Update] = "pep"
    """How single cells are fitted."""

    def check(self, domain: Domain) -> None:
        """Raise for parameters that cannot be used, and for a domain that is too large."""
        super().check(domain)
        check_cells(domain)

    def refit(self, desk: Desk, before: ExplicitModel | None, *, final: bool = False) -> ExplicitModel:
        """Return the model of all measurements so far, continued from the round before."""
        model = ExplicitModel(update=self.update, **({"sweeps": _FINAL_SWEEPS} if final else {}))
        return model.fit(desk.targets, desk.original, start=before, threads=desk.threads)


@register_mechanism
@dataclass(kw_only=True, eq=False, repr=False)
class PEP(ExplicitRounds):
    """Private entropy projection: the distribution of largest entropy among those that agree with what was measured.

    With ``per="query"`` each round measures a cell and then projects, up to ``min(25, 2 t)`` times after t rounds, on
    the cell whose answer is farthest from its measurement. By default it measures whole tables, to which the
    distribution is fitted by iterative proportional fitting, as far as noise does not explain a difference.

    It keeps a number for each joint value of all attributes, at most 2^24.

    Parameters
    ----------
    epsilon, delta, rho, mu, accounting, discovery, threads, progress
        As for every mechanism.
    workload, rounds, per, published, alpha
        As for every mechanism of query release; see `chicle.GEM`.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(5_000, d=4)
    >>> synth = chicle.PEP(epsilon=1, delta=1e-9, workload=chicle.pairs(census.domain)).fit(census)
    >>> table = synth.sample(seed=0)
    """

    default_rounds = {"table": 80, "query": 60}  # noqa: RUF012 - as the base has it
