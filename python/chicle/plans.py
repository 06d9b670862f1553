"""Plans: what a mechanism will release, what that costs and how much error the noise adds, before it sees any data.

Errors are the total variation distance that noise alone adds, if the table has as many records as assumed and they are
spread evenly. Where they are not, noise on nearly empty cells matters less. Errors from sampling, from buckets and
between attributes that are not in one measured table depend on the data, and are not in a plan.

Time and memory are rough, right to a factor of two or so: a linear formula, fitted by hand to runs on simulated
censuses of 30,000 to 1,000,000 people and 12 to 97 attributes on two cores. They cover one fit and one sample of as
many rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from chicle._html import card
from chicle._memory import memory_limit
from chicle._pandas import data_frame
from chicle._text import aligned, percent
from chicle.domain import Domain
from chicle.errors import InfeasibleError
from chicle.privacy.budget import Budget
from chicle.privacy.strength import in_words, weakness
from chicle.selection.expected_error import noise_error

__all__ = [
    "SHARD_ROWS",
    "Cost",
    "Expected",
    "Plan",
    "Step",
    "Sweep",
    "check_codes",
    "noise_errors",
    "pair_errors",
    "rough_cost",
    "shards",
]


SHARD_ROWS = 2**20
"""Most rows of a shard by default: few enough for the memory of an executor, enough to be as accurate as one draw."""


def shards(n: int, rows: int = SHARD_ROWS) -> int:
    """Return the number of shards in which a table of `n` rows is made: at least one."""
    return max(-(-n // rows), 1)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One kind of release. Fields that depend on the data, such as which cliques are chosen, are None.

    `error` is the largest total variation distance that noise alone is expected to add, if there are as many records as
    the plan assumes. A step of many tables also has `least_error`, that of the table that noise harms least.
    """

    release: str
    of: str
    rho: float
    sigma: float | None = None
    values: int | None = None
    error: float | None = None
    least_error: float | None = None


@dataclass(frozen=True)
class Cost:
    """Rough time and memory of a fit and a sample on two cores, right to a factor of two."""

    seconds: float
    memory: int


@dataclass(frozen=True)
class Expected:
    """The standard errors to expect of a declared analysis, if rows are spread evenly over their declared values.

    Attributes
    ----------
    title, names
        The analysis and its coefficients.
    standard_error
        By sampling and noise together.
    sampling
        By sampling alone.
    """

    title: str
    names: Sequence[str]
    standard_error: Sequence[float]
    sampling: Sequence[float]

    def lines(self) -> list[str]:
        """Return the expected 95 % intervals as the lines of a table."""
        rows: list[tuple[str, ...]] = [(self.title, "95 % interval", "by sampling alone")]
        for name, error, alone in zip(self.names, self.standard_error, self.sampling, strict=True):
            rows.append((f"  {name}", f"+- {1.96 * error:.3g}", f"+- {1.96 * alone:.3g}"))
        return aligned(rows)


@dataclass(frozen=True)
class Plan:
    """The releases of a fit, in order; prints as a table.

    Examples
    --------
    >>> import chicle
    >>> print(chicle.Independent(epsilon=1, delta=1e-9).plan({"age": 100, "sex": 2}, n=20_000))
    Independent, Budget(epsilon=1, delta=1e-09, accounting='gdp') of rho 0.01656, assuming 20,000 records
    release  of   values  sigma  rho       share   error up to
    1-way    age  100     5.694  0.01542   93.1 %  0.011
    1-way    sex  2       20.98  0.001136  6.9 %   0.00084
    about 0.1 s and 0.1 GB, roughly, beside reading and writing the table
    an attacker's odds about one person change by at most a factor of 2.7, except with probability 4.5e-08
    """

    mechanism: str
    budget: Budget
    steps: Sequence[Step]
    n: int
    cost: Cost
    expected: Sequence[Expected] = ()
    notes: Sequence[str] = ()

    @property
    def one_ways(self) -> list[Step]:
        """The steps that release a single attribute."""
        return [step for step in self.steps if step.release == "1-way"]

    @property
    def pairs(self) -> list[Step]:
        """The steps that say what error to expect in tables of several attributes."""
        return [step for step in self.steps if step.release != "1-way" and step.error is not None]

    def to_json(self) -> str:
        """Return the plan as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    def to_dict(self) -> dict[str, object]:
        """Return the plan as plain data."""
        return {
            "mechanism": self.mechanism,
            "budget": {**self.budget.promise(), "rho": self.budget.rho},
            "records": self.n,
            "steps": [asdict(step) for step in self.steps],
            "cost": asdict(self.cost),
            **({"analyses": [asdict(one) for one in self.expected]} if self.expected else {}),
            **({"notes": list(self.notes)} if self.notes else {}),
        }

    def to_pandas(self) -> Any:  # noqa: ANN401 - pandas is no dependency
        """Return the steps as a pandas data frame."""
        return data_frame(asdict(step) for step in self.steps)

    def __str__(self) -> str:
        return "\n".join([self._head, *aligned(self._rows()), *self._told()])

    def __repr__(self) -> str:
        return f"{self._head}: {len(self.steps)} steps; print(plan) lists them"

    def _repr_html_(self) -> str:
        return card(f"Plan: {self._head}", self._rows(), "\n".join(self._told()))

    def _told(self) -> list[str]:
        """Return what stands below the steps."""
        answers = [line for one in self.expected for line in one.lines()]
        spread = ["expected answers, if columns are spread evenly over their declared values:"] if answers else []
        weak = [f"WEAK: {one}" for one in weakness(self.budget, self.n)]
        return [*spread, *answers, *self.notes, _cost_text(self.cost, self.n), in_words(self.budget), *weak]

    @property
    def _head(self) -> str:
        return f"{self.mechanism}, {self.budget}, assuming {self.n:,} records"

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [("release", "of", "values", "sigma", "rho", "share", "error up to")]
        rows += [
            (
                step.release,
                step.of,
                "by the data" if step.values is None else f"{step.values:,}",
                "by the data" if step.sigma is None else f"{step.sigma:.4g}",
                f"{step.rho:.4g}",
                percent(step.rho / self.budget.rho),
                _range(step.least_error, step.error),
            )
            for step in self.steps
        ]
        return rows


@dataclass(frozen=True)
class Sweep:
    """Plans at several budgets; prints as a table.

    Examples
    --------
    >>> import chicle
    >>> synth = chicle.Prism(epsilon=1, delta=1e-9)
    >>> print(synth.sweep({"age": 100, "sex": 2, "job": 30}, [0.2, 1, 5], n=20_000))
    Prism, delta 1e-09, assuming 20,000 records
    epsilon  rho        sigma of 1-ways  error of 1-ways    error of pairs
    0.2      0.0007533  45 to 166        0.0065 to 0.078    0.14 to 0.46
    1        0.01656    11.8 to 43.5     0.0017 to 0.023    0.031 to 0.25
    5        0.3405     2.6 to 9.59      0.00038 to 0.0051  0.0072 to 0.085
    """

    plans: Sequence[Plan]

    def to_json(self) -> str:
        """Return the plans as JSON."""
        return json.dumps([plan.to_dict() for plan in self.plans], indent=1)

    def to_pandas(self) -> Any:  # noqa: ANN401 - pandas is no dependency
        """Return the steps of all plans as a pandas data frame, with the epsilon of each."""
        return data_frame(
            {"epsilon": plan.budget.epsilon, **asdict(step)} for plan in self.plans for step in plan.steps
        )

    def __str__(self) -> str:
        return "\n".join([self._head, *aligned(self._rows())])

    def __repr__(self) -> str:
        return f"{self._head}: plans at {len(self.plans)} epsilons; print(sweep) compares them"

    def _repr_html_(self) -> str:
        return card(f"Plans: {self._head}", self._rows())

    @property
    def _head(self) -> str:
        first = self.plans[0]
        return f"{first.mechanism}, delta {first.budget.delta:g}, assuming {first.n:,} records"

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [("epsilon", "rho", "sigma of 1-ways", "error of 1-ways", "error of pairs")]
        for plan in self.plans:
            sigmas = [step.sigma for step in plan.one_ways if step.sigma is not None]
            errors = [step.error for step in plan.one_ways if step.error is not None]
            rows.append(
                (
                    f"{plan.budget.epsilon:g}",
                    f"{plan.budget.rho:.4g}",
                    _range(min(sigmas, default=None), max(sigmas, default=None), digits=3) or "not measured",
                    _range(min(errors, default=None), max(errors, default=None)) or "not measured",
                    _range(_least(plan.pairs), _most(plan.pairs)) or "not measured",
                )
            )
        return rows


def pair_errors(domain: Domain, rho: float, k: int, n: int) -> tuple[float, float] | None:
    """Return the least and largest error of a pair if all pairs are measured at rho, with shares ~ cells^(2/3).

    A mechanism that chooses pairs measures fewer, with less noise each, or coarser ones, where that is better.

    Examples
    --------
    >>> low, high = pair_errors(Domain({"age": 100, "sex": 2, "job": 30}), 0.01, k=1, n=20_000)
    >>> round(low, 3), round(high, 3)
    (0.033, 0.258)
    """
    if len(domain) < 2:
        return None
    cells = np.array([a * b for a, b in combinations(domain.values(), 2)], dtype=float)
    shares = cells ** (2 / 3) / (cells ** (2 / 3)).sum()
    errors = noise_errors(cells.tolist(), (k / np.sqrt(2 * rho * shares)).tolist(), n)
    return min(errors), max(errors)


def noise_errors(cells: Sequence[float], sigmas: Sequence[float], n: int) -> list[float]:
    """Return the total variation distance that noise is expected to add to tables of `n` records spread evenly."""
    if n == 0:
        return [1.0] * len(cells)
    each = [size * noise_error(np.array([n / size]), sigma) for size, sigma in zip(cells, sigmas, strict=True)]
    return [min(error / (2 * n), 1.0) for error in each]


def rough_cost(domain: Domain, n: int, *, per_pair: float) -> Cost:
    """Return the rough time and memory of a fit and a sample.

    Parameters
    ----------
    domain, n
        The table.
    per_pair
        Nanoseconds to make one record, for each pair of attributes; 0 if only 1-ways are measured.
    """
    d = len(domain)
    pairs = d * (d - 1) // 2 if per_pair else 0
    seconds = 0.1 + _PER_TABLE * pairs + n * (_PER_VALUE * d + per_pair * (pairs + _AS_PAIRS * d)) * 1e-9
    cells = min(sum(a * b for a, b in combinations(domain.values(), 2)), _CELLS_A_PAIR * pairs)
    return Cost(seconds, int(_FIXED + _BYTES_A_VALUE * n * d + 8 * _COPIES * cells + _BYTES_A_CODE * _codes(domain)))


def check_codes(*domains: Domain) -> None:
    """Raise if the 1-ways alone take more memory than there is: exact, noisy, merged and in the model.

    Examples
    --------
    >>> check_codes(Domain({"id": 10**9, "age": 100}))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    chicle.errors.InfeasibleError: column 'id' has 1,000,000,000 codes: a fit would take about 100.1 GB, ...
    """
    domain = max(domains, key=_codes)
    peak, limit = _FIXED + _BYTES_A_CODE * _codes(domain), memory_limit()
    if peak > limit:
        name = max(domain, key=lambda one: domain[one])
        raise InfeasibleError(
            f"column {name!r} has {domain[name]:,} codes: a fit would take about {peak / 1e9:.1f} GB, and may take "
            f"{limit / 1e9:.1f} GB here; make its bins coarser, declare fewer values, or drop it. Nothing was spent"
        )


def _codes(domain: Domain) -> int:
    return sum(domain.values())


# Fitted by hand, see above. Time: seconds for each pair; nanoseconds to encode, count and decode a value; the work on
# an attribute, in pairs. Memory: bytes of the process and of a value (real and synthetic); copies of tables, most cells
# of a pair.
_PER_TABLE, _PER_VALUE, _AS_PAIRS = 4e-4, 30.0, 12
_FIXED, _BYTES_A_VALUE, _COPIES, _CELLS_A_PAIR = 100 << 20, 8, 3, 2_000

_BYTES_A_CODE = 100
"""Peak bytes of a fit for each code of each attribute: 68 (Independent) to 118 (Prism) at two million codes."""


def _least(steps: Sequence[Step]) -> float | None:
    known = [step.error if step.least_error is None else step.least_error for step in steps]
    return min((error for error in known if error is not None), default=None)


def _most(steps: Sequence[Step]) -> float | None:
    return max((step.error for step in steps if step.error is not None), default=None)


def _range(low: float | None, high: float | None, digits: int = 2) -> str:
    if high is None:
        return ""
    least, most = ("" if bound is None else f"{bound:.{digits}g}" for bound in (low, high))
    return most if least in ("", most) else f"{least} to {most}"


def _cost_text(cost: Cost, n: int) -> str:
    seconds = cost.seconds
    time = f"{seconds:.1g} s" if seconds < 10 else f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    said = f"about {time} and {max(cost.memory / 1e9, 0.1):.1f} GB, roughly, beside reading and writing the table"
    if (number := shards(n)) == 1:
        return said
    return f"{said}\non Spark, `sample_spark` makes the rows in {number:,} shards of at most {SHARD_ROWS:,}"
