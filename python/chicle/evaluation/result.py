"""The result of an evaluation: scores with their baselines, and where the table is wrong.

Everything here is computed exactly from the real table: it is NOT PRIVATE, and its first line says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from chicle._html import card
from chicle._pandas import data_frame
from chicle._text import aligned
from chicle.domain import Clique, Domain
from chicle.errors import ParameterError

__all__ = [
    "AmountSummary",
    "Amounts",
    "Association",
    "AttributeErrors",
    "CliqueErrors",
    "Evaluation",
    "PartitionErrors",
    "Score",
]

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
        How to print it: ``"error"`` (a small fraction), ``"share"`` (a percentage), ``"score"`` (out of a million, or
        of a thousand) or ``"ratio"`` (times).
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

    def to_pandas(self) -> Any:  # noqa: ANN401 - pandas is no dependency
        """Return the errors as a pandas data frame: a row for each clique. NOT PRIVATE."""
        fields = zip(self.tvd, self.largest, self.floor, self.independent, strict=True)
        names = ("tvd", "largest", "floor", "independent")
        return data_frame(
            {"clique": clique, **dict(zip(names, map(float, row), strict=True))}
            for clique, row in zip(self.cliques, fields, strict=True)
        )

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


@dataclass(frozen=True, kw_only=True)
class AmountSummary:
    """An ordered column of one table in a few figures.

    Attributes
    ----------
    mean, sd, median, q90, q99
        Mean, standard deviation and quantiles, of the middles of bins.
    zeros
        The share of rows with 0.
    emd
        Earth mover's distance to the real table, in standard deviations of the real column.
    """

    mean: float
    sd: float
    median: float
    q90: float
    q99: float
    zeros: float
    emd: float


@dataclass(frozen=True)
class Amounts:
    """How an ordered column came out: the figures of four tables.

    Attributes
    ----------
    name
        The column.
    coded
        Whether figures are positions of codes (dates and ordered labels), not numbers.
    positive
        Whether no value is negative; errors of means are then relative to the mean.
    real, made, floor, independent
        The real table, the synthetic one, and the baselines.
    """

    name: str
    coded: bool
    positive: bool
    real: AmountSummary
    made: AmountSummary
    floor: AmountSummary
    independent: AmountSummary

    def errors(self, table: str = "made") -> tuple[float, float]:
        """Return the relative errors of the mean and of the SD of one of the tables."""
        other: AmountSummary = getattr(self, table)
        scale = max(self.real.mean if self.positive else self.real.sd, 1e-12)
        return (
            abs(other.mean - self.real.mean) / scale,
            abs(other.sd - self.real.sd) / max(self.real.sd, 1e-12),
        )

    def row(self) -> list[str]:
        """Return the figures as text, real beside synthetic: for a table of them."""
        both = [f"{getattr(self.real, key):.4g} / {getattr(self.made, key):.4g}" for key in ("mean", "sd", "median")]
        both += [f"{getattr(self.real, key):.4g} / {getattr(self.made, key):.4g}" for key in ("q90", "q99")]
        zeros = "-" if self.coded else f"{self.real.zeros:.1%} / {self.made.zeros:.1%}"
        return [self.name, *both, zeros, f"{self.made.emd:.3f}", f"{self.floor.emd:.3f}"]


AMOUNT_HEAD = ("column (real / synthetic)", "mean", "SD", "median", "90 %", "99 %", "zeros", "moved by", "floor")


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

    def to_pandas(self) -> Any:  # noqa: ANN401 - pandas is no dependency
        """Return the associations as a pandas data frame: a row for each pair. NOT PRIVATE."""
        columns = {"pair": self.pairs, **{name: values for name, values in vars(self).items() if name != "pairs"}}
        return data_frame(dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return the associations as plain data."""
        names = ("cramers_v", "cramers_v_synthetic", "pearson", "pearson_synthetic")
        numbers = {name: [_plain(value) for value in getattr(self, name).tolist()] for name in names}
        return {"pairs": [list(pair) for pair in self.pairs], **numbers}


@dataclass(frozen=True, kw_only=True, eq=False)
class PartitionErrors:
    """How far both tables are in each partition; all arrays have one number for each partition.

    Attributes
    ----------
    by
        The columns that form partitions.
    values
        The values of these columns in each partition, as text.
    rows, synthetic_rows
        How many rows of each table are in it.
    tvd
        The mean distance of its 1-ways, pairs and triples, by that number, each table as shares of its own rows; 1
        where one table has no row there, NaN where neither has.
    """

    by: Clique
    values: tuple[tuple[str, ...], ...]
    rows: npt.NDArray[np.int64]
    synthetic_rows: npt.NDArray[np.int64]
    tvd: Mapping[int, Floats]

    @property
    def _main(self) -> Floats:
        return self.tvd[min(2, max(self.tvd))]

    def worst(self, k: int = 10) -> list[int]:
        """Return the positions of the `k` partitions of largest distance of pairs, worst first."""
        order = np.argsort(-np.nan_to_num(self._main, nan=-1.0), kind="stable")
        return [int(i) for i in order[:k] if np.isfinite(self._main[i])]

    def best(self, k: int = 10) -> list[int]:
        """Return the positions of the `k` partitions of least distance of pairs, best first."""
        order = np.argsort(np.nan_to_num(self._main, nan=2.0), kind="stable")
        return [int(i) for i in order[:k] if np.isfinite(self._main[i])]

    def mean(self, size: int = 2) -> float:
        """Return the mean distance over partitions that have rows."""
        found = self.tvd[size]
        return float(np.nanmean(found)) if np.isfinite(found).any() else math.nan

    def table(self, k: int = 5) -> list[tuple[str, ...]]:
        """Return the worst and the best partitions as the rows of a table, the head first."""
        names = {1: "1-ways", 2: "pairs", 3: "triples"}
        head = (" x ".join(self.by), "rows", "synthetic", *(names[size] for size in self.tvd))
        worst = self.worst(k)
        found = {"worst": worst, "best": [i for i in self.best(k) if i not in worst][::-1]}
        lines = [
            (
                f"{which}: {', '.join(self.values[i])}",
                f"{self.rows[i]:,}",
                f"{self.synthetic_rows[i]:,}",
                *(f"{tvd[i]:.4f}" for tvd in self.tvd.values()),
            )
            for which, places in found.items()
            for i in places
        ]
        mean = ("mean", f"{self.rows.mean():,.0f}", f"{self.synthetic_rows.mean():,.0f}")
        return [head, *lines, (*mean, *(f"{self.mean(size):.4f}" for size in self.tvd))]

    def to_pandas(self) -> Any:  # noqa: ANN401 - pandas is no dependency
        """Return the distances as a pandas data frame: a row for each partition. NOT PRIVATE."""
        return data_frame(
            {
                **dict(zip(self.by, value, strict=True)),
                "rows": int(self.rows[i]),
                "synthetic_rows": int(self.synthetic_rows[i]),
                **{f"tvd_{size}": float(tvd[i]) for size, tvd in self.tvd.items()},
            }
            for i, value in enumerate(self.values)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the distances as plain data."""
        return {
            "by": list(self.by),
            "values": [list(value) for value in self.values],
            "rows": self.rows.tolist(),
            "synthetic_rows": self.synthetic_rows.tolist(),
            "tvd": {str(size): [_plain(one) for one in tvd.tolist()] for size, tvd in self.tvd.items()},
        }


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
    amounts
        Mean, SD, quantiles, share of zeros and earth mover's distance of each ordered column.
    partitions
        The distances inside each partition, where `by` names columns.
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
    amounts: tuple[Amounts, ...] = ()
    partitions: PartitionErrors | None = None

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
            "amounts": [_plain_all(asdict(one)) for one in self.amounts],
            **({} if self.partitions is None else {"partitions": self.partitions.to_dict()}),
        }

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False)

    def to_pandas(self) -> Any:  # noqa: ANN401 - pandas is no dependency
        """Return the scores as a pandas data frame: a row for each, with its baselines. NOT PRIVATE."""
        return data_frame(score.to_dict() for score in self.scores)

    def _rows(self) -> list[tuple[str, ...]]:
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
        return [head, *rows]

    @property
    def _of(self) -> str:
        return f"{self.synthetic_rows:,} synthetic rows, {self.rows:,} real ones, seed {self.seed}"

    @property
    def _legend(self) -> str:
        return f"floor: a bootstrap of the real table with as many rows. Independent: no dependence, {self.budget}."

    def __str__(self) -> str:
        lines = [NOT_PRIVATE, self._of, "", *aligned(self._rows()), "", self._legend]
        largest = ["", *aligned(self._largest_errors())]
        inside = [] if self.partitions is None else ["", *aligned(self.partitions.table())]
        return "\n".join([*lines, *self._remarks(), *largest, *inside, *self._amounts(), *self.notes])

    def __repr__(self) -> str:
        return f"{NOT_PRIVATE} Evaluation of {self._of}: {len(self.scores)} scores; print(evaluation) lists them"

    def _repr_html_(self) -> str:
        remarks = "\n".join([self._legend, *self._remarks(), *self.notes])
        return card(f"Evaluation: {self._of}", self._rows(), self._largest_errors(), remarks, warning=NOT_PRIVATE)

    def _remarks(self) -> list[str]:
        """Return the remarks on scores; scores with the same remark share a line."""
        titles: dict[str, list[str]] = {}
        for score in self.scores:
            titles.setdefault(score.remark(), []).append(score.title)
        return [f"{'; '.join(of)}: {remark}" for remark, of in titles.items() if remark]

    def _largest_errors(self) -> list[tuple[str, ...]]:
        size = min(2, len(self.domain))
        errors = self.errors[size]
        rows: list[tuple[str, ...]] = [
            ("worst pairs" if size == 2 else "worst attributes", "distance", "floor", "Independent")
        ]
        rows += [
            (" x ".join(errors.cliques[i]), *(f"{v[i]:.4f}" for v in (errors.tvd, errors.floor, errors.independent)))
            for i in errors.worst(5)
        ]
        return rows

    def _amounts(self) -> list[str]:
        rows = [one.row() for one in self.amounts if not one.coded]
        return ["", *aligned([AMOUNT_HEAD, *rows]), AMOUNT_NOTE] if rows else []


AMOUNT_NOTE = "Of the middles of bins. Moved by: earth mover's distance, in standard deviations of the real column."


def _plain_all(data: dict[str, Any]) -> dict[str, Any]:
    """Return nested data with None for numbers that are not finite."""
    return {
        key: _plain_all(value) if isinstance(value, dict) else _plain(value) if isinstance(value, float) else value
        for key, value in data.items()
    }


def _plain(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
