"""An audit in one fit: thousands of canaries at once, each in the table or not by the toss of a coin.

A canary is one person in a cell of his or her own. Noisy counts far from one half let an auditor guess who is there.
(epsilon, delta)-DP bounds how many guesses can be right, whatever the mechanism (Steinke, Nasr and Jagielski 2023).
"""

from __future__ import annotations

import secrets

import numpy as np

from chicle.audit.bounds import Promise, one_run_epsilon
from chicle.audit.finding import LUCK, Finding
from chicle.counting.records import Records
from chicle.mechanisms import Independent
from chicle.privacy import accounting
from chicle.schema import Schema

__all__ = ["ONE_RUN", "find_in_one_run"]

ONE_RUN = "one-run"

_MU = 2.0
_CANARIES = 10_000
_DELTA = 1e-15  # far below LUCK over the number of canaries, or the bound says nothing
_SURE = (-1, 2)  # counts up to the first, and from the second, are guessed


def find_in_one_run(canaries: int = _CANARIES) -> Finding:
    """Fit once to a table of which each of so many persons is a part with probability one half, and guess who is."""
    there = np.frombuffer(secrets.token_bytes(canaries), dtype=np.uint8) % 2 == 1
    schema = Schema.from_cardinalities({"person": canaries})
    records = Records({"person": np.flatnonzero(there)}, schema.domain)
    release = Independent(mu=_MU, allow_weak=True, threads=1).fit(records, schema).release_
    counts = next(one.values for one in release.measurements if one.clique == ("person",))
    absent, present = counts <= _SURE[0], counts >= _SURE[1]
    right, guesses = int((absent & ~there).sum() + (present & there).sum()), int((absent | present).sum())
    least = one_run_epsilon(right, guesses, canaries, delta=_DELTA, luck=LUCK)
    promise = Promise(gaussian=True, rho=_MU**2 / 2)
    return Finding(
        case=ONE_RUN,
        about=f"one fit with {canaries:,} canaries, epsilon at delta {_DELTA:g}",
        bug=None,
        fits=1,
        mu=promise.mu,
        epsilon=promise.epsilon(_DELTA),
        least_mu=accounting.gdp_mu(epsilon=least, delta=_DELTA) if least > 0 else 0.0,
        least_epsilon=least,
        by="guesses",
        broken=least > promise.epsilon(_DELTA),
    )
