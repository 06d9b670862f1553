"""The budget of discovery: known before any data is seen, and zero if everything is declared.

Every column with something to discover gets the same share of rho, and every open column the same share of the delta
that is set aside. Both are spent through the ledger, before any other release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from chicle.columns import BinEdges, Column, FrequentValues
from chicle.discovery.edges import BinsPurchase
from chicle.discovery.purchase import Purchase
from chicle.discovery.values import ValuesPurchase
from chicle.errors import ParameterError, PrivacyError
from chicle.privacy.budget import Budget, real
from chicle.schema import Schema

__all__ = ["Discovery", "purchase_of", "purchases"]

# The purchase for each request of a column.
_KINDS: dict[type, type[Purchase]] = {FrequentValues: ValuesPurchase, BinEdges: BinsPurchase}

# The default share of rho of one column, and the maximum of all columns.
_SHARE, _MOST = 0.05, 0.2
_DELTA = 0.1  # share of the budget's delta: the rest allows 99.4 % of rho at epsilon 1 and delta 1e-9
_SLACK = 1 - 1e-12  # so that the parts of a delta never add up to more than the whole


@dataclass(frozen=True, kw_only=True)
class Discovery:
    """The part of a mechanism's budget that discovery may spend.

    Parameters
    ----------
    share
        The share of rho for all columns; by default 0.05 for each, and 0.2 at most.
    delta
        The delta that is set aside for open columns; by default a tenth of the budget's delta. A budget in rho or mu
        has no delta, so it must be given: the guarantee then fails with at most this probability.

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
    an attacker's odds about one person change by at most a factor of 2.7, except with probability 4.1e-08
    """

    share: float | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        if self.share is not None and not 0 < real("share", self.share) < 1:
            raise ParameterError(f"share must be a share of the budget between 0 and 1, not {self.share!r}")

    def budget(self, schema: Schema, budget: Budget) -> Budget:
        """Return the budget, with delta set aside if the schema has open columns."""
        names = [name for name in schema.undiscovered if _kind(schema.columns[name]).takes_delta]
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


def purchase_of(name: str, column: Column, *, rows: int, rho: float, delta: float = 0.0) -> Purchase:
    """Return the purchase for a column with something to discover.

    Parameters
    ----------
    name, column
        The column.
    rows
        The maximum number of rows of a person.
    rho, delta
        The maximum cost; delta is for purchases that take it.
    """
    kind = _kind(column)
    return kind(name=name, rows=rows, rho=rho, delta=delta if kind.takes_delta else 0.0, wanted=column.discovery)


def purchases(schema: Schema, budget: Budget, discovery: Discovery, *, delta: float | None = None) -> list[Purchase]:
    """Return the purchase for each column with something to discover, in the order of the schema.

    Parameters
    ----------
    schema
        The schema.
    budget
        The budget, as `Discovery.budget` returns it.
    discovery
        The part of it that may be spent.
    delta
        What a ledger holds of delta for all of them; that of the budget by default.
    """
    names = schema.undiscovered
    if not names:
        return []
    share = min(_SHARE * len(names), _MOST) if discovery.share is None else discovery.share
    rho = share * budget.rho / len(names)
    taking = sum(_kind(schema.columns[name]).takes_delta for name in names)
    aside = (budget.discovery or 0.0) if delta is None else delta
    each = math.nextafter(aside * _SLACK / taking, 0.0) if aside and taking else 0.0
    rows = schema.max_records_per_person
    return [purchase_of(name, schema.columns[name], rows=rows, rho=rho, delta=each) for name in names]


def _kind(column: Column) -> type[Purchase]:
    return _KINDS[type(column.discovery)]
