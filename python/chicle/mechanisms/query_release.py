"""Query release ([G]): answer a declared workload of marginals as exactly as the budget allows, cell by cell.

Most mechanisms here share a round (`query_rounds`): choose what the model gets most wrong, measure it, refit. DualQuery
and FEM (`best_response`) choose and measure nothing.

[G] replaces a person and takes n as public. chicle adds or removes one and buys n with a part of the budget.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from chicle.domain import Clique, Domain
from chicle.errors import InfeasibleError, ParameterError
from chicle.measurements.cells import MOST_CELLS
from chicle.mechanisms.base import Mechanism, PublicUse
from chicle.privacy.budget import Accounting, Budget
from chicle.privacy.ledger import Ledger
from chicle.workload import Workload

__all__ = ["COUNTING", "Per", "QueryRelease", "default_workload"]

Per: TypeAlias = Literal["table", "query"]

COUNTING = 0.02
"""The share of rho for the number of records: every answer is a share of it."""

_LARGE = 2**20  # cells of a clique that is left out of a workload that nobody gave
_GDP_OF_A_CHOICE = math.pi / 2  # the cost of a choice of small epsilon in Gaussian DP, for a cost of 1 in zCDP


@dataclass(kw_only=True, eq=False, repr=False)
class QueryRelease(Mechanism):
    """Base of the mechanisms that answer a workload of marginals.

    Parameters
    ----------
    workload
        Cliques, or cliques with weights: the marginals to answer. By default all of three attributes that have at most
        2^20 cells, and smaller ones of attributes that are in no such clique.
    rounds
        How many rounds, T. It is fixed before any data are seen.
    per
        What a round chooses and measures: ``"table"``, a whole marginal, or ``"query"``, a single cell of one. By
        default whole tables; single cells with `published`.
    published
        Whether to follow the paper in every detail.
    """

    public_data: ClassVar[PublicUse] = "refused"

    workload: Workload | Mapping[Clique, float] | Iterable[Iterable[str]] | None = None
    rounds: int | None = None
    per: Per | None = None
    published: bool = False

    def __post_init__(self) -> None:
        # A plan and a fit both read it.
        if isinstance(self.workload, Iterator):
            self.workload = list(self.workload)

    @property
    @abstractmethod
    def choosing(self) -> float:
        """The share of the budget, after the number of records, that is spent on choices."""

    @property
    def unit(self) -> Per:
        """What a round chooses and measures."""
        if self.per is None:
            return "query" if self.published else "table"
        if self.per not in get_args(Per):
            raise ParameterError(f"per must be one of {get_args(Per)}, not {self.per!r}")
        if self.published and self.per == "table":
            raise ParameterError("published=True measures single queries; leave out per='table', or published")
        return self.per

    def check(self, domain: Domain) -> None:
        """Raise for parameters that cannot be used, and for a workload of too many cells."""
        if not isinstance(self.published, (bool, np.bool_)):
            raise ParameterError(f"published must be True or False, not {self.published!r}")
        _ = self.unit, self.choosing
        cells = sum(domain.cells(clique) for clique in self.cliques(domain))
        if cells > MOST_CELLS:
            raise InfeasibleError(
                f"the workload has {cells:.3g} cells; at most {MOST_CELLS:,} can be answered. Give a workload of fewer "
                "or smaller cliques, or merge values of large attributes by coarse groups"
            )

    def workload_over(self, domain: Domain) -> Workload:
        """Return the workload with every clique in domain order."""
        return default_workload(domain) if self.workload is None else Workload.of(self.workload).over(domain)

    def cliques(self, domain: Domain) -> list[Clique]:
        """Return the cliques of the workload that have a weight above 0."""
        return [clique for clique, weight in self.workload_over(domain).items() if weight > 0]

    def parameters(self, domain: Domain) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return {**super().parameters(domain), "workload": self.workload_over(domain).to_plain(domain)}

    @property
    def budget(self) -> Budget:
        """What a fit may spend; if `accounting` is None, in the accounting that leaves less noise.

        A choice costs pi/2 times as much in Gaussian DP as in zCDP, but (epsilon, delta) is converted without loss. The
        accounting follows from the parameters alone, before any data.
        """
        if self.accounting is not None or self.epsilon is None:
            return super().budget
        exact, zcdp = self.budget_in("gdp"), self.budget_in("zcdp")
        dearer = 1 + self.choosing * (_GDP_OF_A_CHOICE - 1)
        return exact if exact.rho >= dearer * zcdp.rho else zcdp

    def budget_on(self, ledger: Ledger | None) -> Budget:
        """Return what a fit may spend; a ledger that is given decides on the accounting, unless `accounting` does."""
        if isinstance(ledger, Ledger) and self.accounting is None and self.epsilon is not None:
            how: Accounting = ledger.budget.accounting
            return self.budget_in(how)
        return self.budget

    @property
    def answers_(self) -> dict[Clique, npt.NDArray[np.float64]]:
        """The answers of the model to the workload, as shares of all records: before any record is drawn."""
        release = self._fitted()
        cliques = self.cliques(release.model.domain)
        tables = release.model.expect(cliques, threads=self.threads)
        return {clique: table / release.model.total for clique, table in zip(cliques, tables, strict=True)}


def default_workload(domain: Domain) -> Workload:
    """Return all triples of at most 2^20 cells; of what they leave out, the pairs, and the single attributes."""
    found: list[Clique] = []
    for size in range(min(3, len(domain)), 0, -1):
        held = {part for clique in found for part in combinations(clique, size)}
        every = (clique for clique in combinations(domain, size) if clique not in held)
        found += [clique for clique in every if size == 1 or domain.cells(clique) <= _LARGE]
    return Workload(found)
