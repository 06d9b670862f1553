"""How much of a budget discovery takes: known before any data is seen, and nothing where all is declared.

Every column that leaves something to be discovered gets the same share of rho, and every open column the same share of
the delta that is set aside: both are spent through the ledger, before anything else is released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from chicle.columns import Open
from chicle.columns.private_bins import Binned
from chicle.errors import ParameterError, PrivacyError
from chicle.plans import Step
from chicle.privacy.accounting import discovery_threshold
from chicle.privacy.budget import Budget, calibrate, real
from chicle.privacy.ledger import DiscoveryEvent, Event, GaussianEvent
from chicle.schema import Schema

__all__ = ["Discovery", "Purchase", "purchases"]

# A column's share of rho unless another is asked for, and the most that all columns take together.
_SHARE, _MOST = 0.05, 0.2
_DELTA = 0.1  # of the budget's delta: what is left of it allows 99.4 % of rho at epsilon 1 and delta 1e-9
_SLACK = 1 - 1e-12  # parts of a delta never add up to more than the whole


@dataclass(frozen=True, kw_only=True)
class Discovery:
    """What discovery may take of a mechanism's budget.

    Parameters
    ----------
    share
        The share of rho that goes to all columns together; by default 0.05 for each, and 0.2 at most.
    delta
        The delta that is set aside for open columns; by default a tenth of the budget's. A budget in rho or mu has
        none, so it must be given there: the promise then holds but for an event of this probability.

    Examples
    --------
    >>> import chicle
    >>> schema = chicle.Schema({"job": {"type": "open", "most": 40}, "sex": {"type": "boolean"}})
    >>> synth = chicle.Independent(epsilon=1, delta=1e-9, discovery=chicle.Discovery(share=0.1))
    >>> print(synth.plan(schema, n=20_000))  # doctest: +ELLIPSIS
    Independent, Budget(epsilon=1, delta=1e-09, discovery=1e-10, accounting='gdp') of rho 0.01645, ...
    release    of   values  sigma  rho       share   error up to
    discovery  job  40      17.43  0.001645  10.0 %
    1-way      job  41      6.187  0.01306   79.4 %  0.005
    1-way      sex  2       16.93  0.001744  10.6 %  0.00067
    about 0.1 s and 0.1 GB, roughly, beside reading and writing the table
    """

    share: float | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        if self.share is not None and not 0 < real("share", self.share) < 1:
            raise ParameterError(f"share must be a share of the budget between 0 and 1, not {self.share!r}")

    def budget(self, schema: Schema, budget: Budget) -> Budget:
        """Return a budget that sets delta aside if a schema has open columns, and the same budget if it has none."""
        names = [name for name in schema.undiscovered if isinstance(schema.columns[name], Open)]
        if not names:
            return budget
        delta = self.delta
        if delta is None:
            if budget.delta is None:
                raise PrivacyError(
                    f"column {names[0]!r} is open, and discovering its values takes a delta, which this budget does "
                    "not have; give discovery=chicle.Discovery(delta=1e-10), or list its values"
                )
            delta = _DELTA * budget.delta
        return Budget(**{**budget.promise(), "discovery": delta})


@dataclass(frozen=True, kw_only=True)
class Purchase:
    """What is bought for one column: its values, for rho and delta, or its bins, for rho.

    Attributes
    ----------
    name
        The column.
    rows
        How many rows of a person there may be.
    rho, delta
        What it may cost.
    """

    name: str
    rows: int
    rho: float
    delta: float = 0.0

    def events(self, schema: Schema) -> list[Event]:
        """Return all that it may take to make the purchase."""
        column = schema.columns[self.name]
        if isinstance(column, Binned):
            return [self.level(column)] * column.ruler.levels
        return [self.event(column.size - 1)]

    def level(self, column: Binned) -> GaussianEvent:
        """Return the counting of parts on one level of a column's ruler."""
        sigma = calibrate(self.rho / column.ruler.levels, l2_sensitivity=self.rows)
        return GaussianEvent(
            purpose="bins", clique=(self.name,), values=column.size, l2_sensitivity=self.rows, sigma=sigma
        )

    def event(self, most: int) -> DiscoveryEvent:
        """Return the discovery of at most so many values."""
        sigma = calibrate(self.rho, l2_sensitivity=self.rows)
        threshold = discovery_threshold(sigma=sigma, delta=self.delta, rows=self.rows)
        return DiscoveryEvent(
            purpose="discovery",
            clique=(self.name,),
            values=most,
            l2_sensitivity=self.rows,
            sigma=sigma,
            threshold=threshold,
        )

    def step(self, schema: Schema) -> Step:
        """Return the purchase as a step of a plan."""
        column = schema.columns[self.name]
        if isinstance(column, Binned):
            return Step(release="bins", of=self.name, rho=self.rho, sigma=self.level(column).sigma)
        event = self.event(column.size - 1)
        return Step(release=event.purpose, of=self.name, values=event.values, rho=self.rho, sigma=event.sigma)


def purchases(schema: Schema, budget: Budget, discovery: Discovery) -> list[Purchase]:
    """Return what is to be bought for each column that leaves something to be discovered, in the order of the schema.

    Parameters
    ----------
    schema
        What is declared.
    budget
        As `Discovery.budget` returns it.
    discovery
        How much of it may be spent.
    """
    names = schema.undiscovered
    if not names:
        return []
    share = min(_SHARE * len(names), _MOST) if discovery.share is None else discovery.share
    rho = share * budget.rho / len(names)
    opened = sum(isinstance(schema.columns[name], Open) for name in names)
    delta = math.nextafter(budget.discovery * _SLACK / opened, 0.0) if budget.discovery is not None and opened else 0.0
    return [
        Purchase(
            name=name,
            rows=schema.max_records_per_person,
            rho=rho,
            delta=delta if isinstance(schema.columns[name], Open) else 0.0,
        )
        for name in names
    ]
