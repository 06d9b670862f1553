"""The result of an evaluation: scores with their baselines, and where the table is wrong.

Everything here is computed exactly from the real table: it is NOT PRIVATE, and its first line says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from chicle._text import aligned
from chicle.domain import Clique, Domain
from chicle.errors import ParameterError

__all__ = ["Association", "AttributeErrors", "CliqueErrors", "Evaluation", "Score"]

NOT_PRIVATE = "NOT PRIVATE: these numbers compare with the real table; do not publish them."

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Score:
    """One number about the synthetic table, with its baselines.

    Attributes
    ----------
    key
        Its stable name, for programs: ``"tvd_2"``.
    title
        Its name, for people.
    value
        The number; None where it could not be computed, and `note` says why.
    floor
        The same number for a bootstrap of the real table with as many rows as the synthetic one: sampling error
        alone.
    independent
        The same number for the Independent mechanism at the same budget, which learns no dependence.
    better
        ``"low"`` or ``"high"``: which is better; ``"none"`` if neither is.
    unit
        How to print it: ``"error"`` (a small fraction), ``"share"`` (a percentage), ``"score"`` (out of a million) or
        ``"ratio"`` (times).
    source
        The paper and section it is from; empty for our own.
    note
        What was sampled, left out or skipped.
    also
        Further figures to compare with, by name, if the measure has any.
    """

    key: str
    title: str
    value: float | None
    floor: float | None = None
    independent: float | None = None
    better: Literal["low", "high", "none"] = "low"
    unit: Literal["error", "share", "score", "ratio"] = "error"
    source: str = ""
    note: str = ""
    also: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the score as plain data."""
        fields = dict(vars(self))
        fields.update({name: _plain(fields[name]) for name in ("value", "floor", "independent")})
        return {**fields, "also": {name: _plain(value) for name, value in self.also.items()}}

    def shown(self, value: float | None) -> str:
        """Return a number of this score's kind as text."""
        if value is None or not math.isfinite(value):
            return "-" if value is None or math.isnan(value) else "inf"
        if self.unit == "share":
            return f"{value:.2%}"
        return {"error": f"{value:.4f}", "score": f"{value:,.0f}", "ratio": f"{value:.3g}"}[self.unit]

    def remark(self) -> str:
        """Return the further figures and the note as text."""
        also = [f"{name} {self.shown(value)}" for name, value in self.also.items()]
        return "; ".join([*also, *([self.note] if self.note else [])])


@dataclass(frozen=True, kw_only=True, eq=False)
class CliqueErrors:
    """Total variation distance of every clique of one size; all arrays have one number for each clique.

    Attributes
    ----------
    cliques
        The cliques, in domain order.
    tvd
        Half the L1 distance between the shares of the real and of the synthetic rows in each cell: 0 to 1.
    largest
        The largest difference of the shares of one cell.
    floor, independent
        `tvd` of the two baselines.
    of
        How many cliques of this size the domain has. If `cliques` has fewer, they are a random sample.
    """

    cliques: tuple[Clique, ...]
    tvd: Floats
    largest: Floats
    floor: Floats
    independent: Floats
    of: int

    def worst(self, k: int = 10) -> list[int]:
        """Return the positions of the `k` cliques of largest distance, worst first."""
        return [int(i) for i in np.argsort(-self.tvd, kind="stable")[:k]]

    def __len__(self) -> int:
        return len(self.cliques)

    def to_dict(self) -> dict[str, Any]:
        """Return the errors as plain data."""
        numbers = {name: getattr(self, name).tolist() for name in ("tvd", "largest", "floor", "independent")}
        return {"of": self.of, "cliques": [list(clique) for clique in self.cliques], **numbers}


@dataclass(frozen=True, kw_only=True)
class AttributeErrors:
    """How well one attribute came out.

    Attributes
    ----------
    name
        The attribute.
    tvd, floor, independent
        Total variation distance of its 1-way marginal, and those of the baselines.
    pairs_tvd
        The mean over all pairs that it is in; None where it is the only attribute.
    worst_with
        The other attribute of its worst pair.
    """

    name: str
    tvd: float
    floor: float
    independent: float
    pairs_tvd: float | None
    worst_with: str | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Association:
    """How strongly attributes depend on each other, real and synthetic; arrays have one number for each pair.

    Attributes
    ----------
    pairs
        All pairs of attributes, in domain order: those of the 2-way errors.
    cramers_v, cramers_v_synthetic
        Cramér's V, 0 to 1; NaN where an attribute has one value only.
    pearson, pearson_synthetic
        Pearson's correlation of the codes, -1 to 1, without missing; NaN unless both attributes are ordinal.
    """

    pairs: tuple[Clique, ...]
    cramers_v: Floats
    cramers_v_synthetic: Floats
    pearson: Floats
    pearson_synthetic: Floats

    def to_dict(self) -> dict[str, Any]:
        """Return the associations as plain data."""
        names = ("cramers_v", "cramers_v_synthetic", "pearson", "pearson_synthetic")
        numbers = {name: [_plain(value) for value in getattr(self, name).tolist()] for name in names}
        return {"pairs": [list(pair) for pair in self.pairs], **numbers}


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """How good a synthetic table is. NOT PRIVATE: it is compared with the real one. Prints as a table.

    Attributes
    ----------
    scores
        Every number with its baselines, in reading order; ``evaluation["tvd_2"]`` gives one by its key.
    errors
        The distances of every clique, by size: ``errors[1]``, ``errors[2]`` and ``errors[3]``, up to the number
        of attributes.
    attributes
        How well each attribute came out, in domain order.
    association
        Cramér's V and Pearson's correlation of every pair, real and synthetic.
    domain
        The attributes that were compared.
    rows, synthetic_rows
        How many rows the real and the synthetic table have.
    seed
        The seed of everything that was drawn.
    budget
        The budget of the Independent baseline, in words.
    notes
        Remarks for the reader.
    """

    scores: tuple[Score, ...]
    errors: Mapping[int, CliqueErrors]
    attributes: tuple[AttributeErrors, ...]
    association: Association
    domain: Domain
    rows: int
    synthetic_rows: int
    seed: int
    budget: str
    notes: tuple[str, ...] = ()

    def __getitem__(self, key: str) -> Score:
        for score in self.scores:
            if score.key == key:
                return score
        raise ParameterError(f"there is no score {key!r}; the scores are {', '.join(self.keys())}")

    def __contains__(self, key: str) -> bool:
        return key in self.keys()

    def __iter__(self) -> Iterator[Score]:
        return iter(self.scores)

    def keys(self) -> list[str]:
        """Return the names of the scores."""
        return [score.key for score in self.scores]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, for JSON; NaN and infinite numbers become None."""
        return {
            "warning": NOT_PRIVATE,
            "rows": self.rows,
            "synthetic_rows": self.synthetic_rows,
            "seed": self.seed,
            "budget": self.budget,
            "notes": list(self.notes),
            "domain": dict(self.domain),
            "scores": [score.to_dict() for score in self.scores],
            "attributes": [vars(attribute) for attribute in self.attributes],
            "errors": {str(size): errors.to_dict() for size, errors in self.errors.items()},
            "association": self.association.to_dict(),
        }

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False)

    def __str__(self) -> str:
        head = ("measure", "this table", "floor", "Independent", "better", "from")
        rows = [
            (
                s.title,
                *(s.shown(v) for v in (s.value, s.floor, s.independent)),
                "" if s.better == "none" else s.better,
                s.source,
            )
            for s in self.scores
        ]
        lines = [
            NOT_PRIVATE,
            f"{self.synthetic_rows:,} synthetic rows, {self.rows:,} real ones, seed {self.seed}",
            "",
            *aligned([head, *rows]),
            "",
            f"floor: a bootstrap of the real table with as many rows. Independent: no dependence, {self.budget}.",
        ]
        return "\n".join([*lines, *self._remarks(), *self._largest_errors(), *self.notes])

    __repr__ = __str__

    def _remarks(self) -> list[str]:
        """Return the remarks on scores; scores with the same remark share a line."""
        titles: dict[str, list[str]] = {}
        for score in self.scores:
            titles.setdefault(score.remark(), []).append(score.title)
        return [f"{'; '.join(of)}: {remark}" for remark, of in titles.items() if remark]

    def _largest_errors(self) -> list[str]:
        size = min(2, len(self.domain))
        errors = self.errors[size]
        rows: list[tuple[str, ...]] = [
            ("worst pairs" if size == 2 else "worst attributes", "distance", "floor", "Independent")
        ]
        rows += [
            (" x ".join(errors.cliques[i]), *(f"{v[i]:.4f}" for v in (errors.tvd, errors.floor, errors.independent)))
            for i in errors.worst(5)
        ]
        return ["", *aligned(rows)]


def _plain(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
