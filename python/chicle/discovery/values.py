"""Private discovery of the frequent values of a column, for rho and delta."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from chicle.columns import Column, FrequentValues
from chicle.discovery.purchase import Purchase
from chicle.plans import Step
from chicle.privacy.accounting import discovery_threshold
from chicle.privacy.budget import calibrate
from chicle.privacy.events import DiscoveryEvent, Event
from chicle.privacy.ledger import Ledger
from chicle.privacy.primitives import release_frequent

__all__ = ["ValuesPurchase"]


@dataclass(frozen=True, kw_only=True)
class ValuesPurchase(Purchase):
    """The frequent values of one column."""

    takes_delta = True

    wanted: FrequentValues

    @property
    def event(self) -> DiscoveryEvent:
        """The event of discovering all values at once."""
        sigma = calibrate(self.rho, l2_sensitivity=self.rows)
        threshold = discovery_threshold(sigma=sigma, delta=self.delta, rows=self.rows)
        return DiscoveryEvent(
            purpose="discovery",
            clique=(self.name,),
            values=self.wanted.most,
            l2_sensitivity=self.rows,
            sigma=sigma,
            threshold=threshold,
        )

    def events(self) -> list[Event]:
        """Return that event."""
        return [self.event]

    def step(self) -> Step:
        """Return the purchase as a step of a plan."""
        event = self.event
        return Step(release=event.purpose, of=self.name, values=event.values, rho=self.rho, sigma=event.sigma)

    def buy(self, counts: pa.Table, ledger: Ledger) -> tuple[Column, str]:
        """Return the column with its frequent values declared, and a note on their number."""
        kept = release_frequent(counts["count"].to_numpy().astype(np.int64), self.event, ledger)
        found = self.wanted.declare(counts["value"].take(kept).to_pylist())
        return found, (
            f"In {self.name!r}, {len(kept)} values were discovered (at most {self.wanted.most} were asked for); "
            f"all others are {self.wanted.other!r}."
        )
