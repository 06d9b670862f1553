"""The tables of an evaluation: the real one, the synthetic one and the two baselines."""

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
    """The real table, and the tables compared with it, in the order of a score's figures.

    Each family of measures has its own random stream, so the queries drawn do not depend on what else is measured.
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
        """Return the synthetic table with its floor and the Independent baseline, all of the same length."""
        n = len(synthetic)
        floor = bootstrap(real, n, np.random.default_rng([seed, 0]))
        independent = independent_at(real, n, budget, schema, seed)
        return cls(real, (synthetic, floor, independent), schema, seed, threads)

    @property
    def synthetic(self) -> Records:
        """The synthetic table."""
        return self.others[0]

    def rng(self, purpose: str) -> np.random.Generator:
        """Return the random stream of one family of measures."""
        return np.random.default_rng([self.seed, *purpose.encode()])

    def score(self, key: str, title: str, values: Sequence[float], **fields: Any) -> Score:  # noqa: ANN401 - Score's own
        """Return a score from the figures of the three tables, in order."""
        value, floor, independent = (float(number) for number in values)
        return Score(key=key, title=title, value=value, floor=floor, independent=independent, **fields)
