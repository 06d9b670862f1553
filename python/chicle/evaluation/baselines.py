"""Two baseline tables, shown beside every number so that 0.03 means something.

- **floor**: a bootstrap of the real table with as many rows as the synthetic one. A table that
  scores like it is as good as a fresh sample of the same size.
- **independent**: the Independent mechanism at the same budget, with as many rows. A table that
  scores worse has learnt no dependence worth its noise.

Both are computed from the real table for the evaluation alone and must not be published. The Independent baseline has
its own ledger and spends nothing of the release's budget. Its noise repeats with the seed, so it is not private.
"""

from __future__ import annotations

import numpy as np

from chicle.counting.records import Records
from chicle.mechanisms.independent import Independent
from chicle.privacy.budget import Budget
from chicle.privacy.ledger import Ledger
from chicle.privacy.noise import TestNoise
from chicle.schema import Schema

__all__ = ["bootstrap", "independent_at"]


def bootstrap(real: Records, n: int, rng: np.random.Generator) -> Records:
    """Draw `n` rows of the real table, with replacement."""
    rows = rng.integers(0, len(real), n)
    return Records({name: real[name][rows] for name in real}, real.domain)


def independent_at(real: Records, n: int, budget: Budget | None, schema: Schema, seed: int) -> Records:
    """Return `n` rows of the Independent mechanism at a budget, or from the exact 1-ways if there is none."""
    if budget is None:
        rng = np.random.default_rng([seed, 1])
        columns = {name: real[name][rng.integers(0, len(real), n)] for name in real}
        return Records(columns, real.domain)
    coded = Schema.from_cardinalities(
        real.domain,
        ordinal=[name for name in schema.domain if name in schema.ordinal and not schema.columns[name].missing],
        max_records_per_person=schema.max_records_per_person,
    )
    records = Records({name: real[name] for name in real}, real.domain)
    rho = budget.undivided.rho  # of all of epsilon, if some was set aside for Laplace noise
    ledger = Ledger(Budget(rho=rho), noise=TestNoise(seed))
    made: Records = Independent(rho=rho, allow_weak=True).fit(records, coded, ledger=ledger).sample(n, seed)
    return made
