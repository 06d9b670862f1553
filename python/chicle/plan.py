"""What a mechanism will release and what that will cost, known before it sees any data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from chicle.privacy.budget import Budget
from chicle.privacy.ledger import aligned, percent

__all__ = ["Plan", "Step"]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One kind of release. What depends on the data (which cliques are chosen, say) is None.

    `error` is the total variation distance that noise alone is expected to add, at most, if there are as many records
    as the mechanism was told to assume.
    """

    release: str
    of: str
    rho: float
    sigma: float | None = None
    values: int | None = None
    error: float | None = None


@dataclass(frozen=True)
class Plan:
    """The releases of a fit, in order; prints as a table."""

    mechanism: str
    budget: Budget
    steps: Sequence[Step]

    def to_json(self) -> str:
        """Return the plan as JSON."""
        steps = [asdict(step) for step in self.steps]
        budget = {**self.budget.promise(), "rho": self.budget.rho}
        return json.dumps({"mechanism": self.mechanism, "budget": budget, "steps": steps}, indent=1)

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [("release", "of", "values", "sigma", "rho", "share")]
        rows += [
            (
                step.release,
                step.of,
                "by the data" if step.values is None else f"{step.values:,}",
                "by the data" if step.sigma is None else f"{step.sigma:.4g}",
                f"{step.rho:.4g}",
                percent(step.rho / self.budget.rho),
            )
            for step in self.steps
        ]
        if any(step.error is not None for step in self.steps):
            errors = ["" if step.error is None else f"{step.error:.2g}" for step in self.steps]
            rows = [(*row, error) for row, error in zip(rows, ["error up to", *errors], strict=True)]
        return "\n".join([f"{self.mechanism}, {self.budget}", *aligned(rows)])
