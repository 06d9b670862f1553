"""Who is compared with whom: the real table, the synthetic one, and the two baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chicle.counting.records import Records
from chicle.evaluation.baselines import bootstrap, independent_at
from chicle.evaluation.result import Score
from chicle.privacy.budget import Budget
from chicle.schema import Schema

__all__ = ["Contest"]


@dataclass(frozen=True, eq=False)
class Contest:
    """The real table, and those that every measure is computed for, in the order of a score's figures.

    Each family of measures has a random stream of its own: which queries are drawn does not depend on what else is
    measured.
    """

    real: Records
    others: tuple[Records, Records, Records]
    schema: Schema
    seed: int
    threads: int | None

    @classmethod
    def between(
        cls,
        real: Records,
        synthetic: Records,
        schema: Schema,
        *,
        budget: Budget | None,
        seed: int,
        threads: int | None,
    ) -> Contest:
        """Return the synthetic table beside its floor and the Independent baseline, all of the same length."""
        n = len(synthetic)
        floor = bootstrap(real, n, np.random.default_rng([seed, 0]))
        independent = independent_at(real, n, budget, schema, seed)
        return cls(real, (synthetic, floor, independent), schema, seed, threads)

    @property
    def synthetic(self) -> Records:
        """The table that is judged."""
        return self.others[0]

    def rng(self, purpose: str) -> np.random.Generator:
        """Return the random stream of one family of measures."""
        return np.random.default_rng([self.seed, *purpose.encode()])

    def score(self, key: str, title: str, values: Sequence[float], **told: Any) -> Score:  # noqa: ANN401 - Score's own
        """Return a score whose figures are those of the three tables, in order."""
        value, floor, independent = (float(number) for number in values)
        return Score(key=key, title=title, value=value, floor=floor, independent=independent, **told)
