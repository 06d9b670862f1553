"""The result of a comparison: one row for each run, saved as CSV or JSON, printed by mechanism and epsilon."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

from chicle._html import card
from chicle._pandas import data_frame
from chicle._text import aligned
from chicle._write import replacing
from chicle.errors import ArtefactError, ParameterError
from chicle.evaluation.result import NOT_PRIVATE

__all__ = ["FLOOR", "Comparison", "Row"]

Row: TypeAlias = dict[str, Any]
"""A run: mechanism, epsilon, delta, seed, rows, seconds, peak_mb, error, and a number for each score."""

FLOOR = "floor"
"""The mechanism of the row that holds the scores of a bootstrap of the real table."""

_FIRST = f"# {NOT_PRIVATE} Comparison "
_TEXTS = ("mechanism", "error")
_WHOLE = ("seed", "rows")
_RUN = ("mechanism", "epsilon", "delta", "seed", "rows", "seconds", "peak_mb", "error")
_SHOWN = ("tvd_1", "tvd_2", "tvd_3", "emd", "mean_error", "sd_error")


@dataclass(frozen=True, eq=False)
class Comparison:
    """Runs of mechanisms on one table, evaluated with the same measures: NOT PRIVATE. Prints as a table of means.

    Attributes
    ----------
    rows
        One mapping for each run. The last may be the floor, which has neither epsilon nor seed.
    of
        A digest of the table, the schema and the settings: only runs with the same digest can be compared.
    """

    rows: tuple[Row, ...]
    of: str

    @property
    def columns(self) -> list[str]:
        """The names of the fields of a run, scores last."""
        scores = dict.fromkeys(key for row in self.rows for key in row if key not in _RUN)
        return [*_RUN, *scores]

    def finished(self, run: Mapping[str, Any]) -> bool:
        """Whether a run with the same mechanism, epsilon, delta and seed is there and did not fail."""
        keys = ("mechanism", "epsilon", "delta", "seed")
        return any(not row.get("error") and all(row[key] == run[key] for key in keys) for row in self.rows)

    def with_row(self, new: Row) -> Comparison:
        """Return the comparison with one more run, which replaces an earlier one with the same settings."""
        keys = ("mechanism", "epsilon", "delta", "seed")
        others = [row for row in self.rows if any(row[key] != new[key] for key in keys)]
        return Comparison((*others, new), self.of)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the runs: JSON if the name ends in ``.json``, else CSV whose first line is a comment."""
        text = self.to_json() if str(path).endswith(".json") else self.to_csv()
        with replacing(Path(path)) as beside:
            beside.write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Comparison:
        """Return the runs that `save` wrote."""
        try:
            text = Path(path).read_text(encoding="utf-8")
            rows, of = _from_json(text) if str(path).endswith(".json") else _from_csv(text)
        except (OSError, ValueError, KeyError, TypeError):
            raise ArtefactError(f"{path} is no comparison of chicle; give another name, or remove it") from None
        return cls(tuple(rows), of)

    def to_csv(self) -> str:
        """Return the runs as CSV; the first line is a comment that says what they are."""
        text = io.StringIO()
        text.write(f"{_FIRST}{self.of}\n")
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()

    def to_json(self) -> str:
        """Return the runs as JSON."""
        return json.dumps({"warning": NOT_PRIVATE, "of": self.of, "runs": self.rows}, indent=1) + "\n"

    def means(self, key: str) -> dict[tuple[str, float | None], list[float]]:
        """Return the numbers of one column, by mechanism and epsilon, for all seeds that did not fail."""
        if key not in self.columns:
            raise ParameterError(f"there is no column {key!r}; there are {', '.join(self.columns)}")
        found: dict[tuple[str, float | None], list[float]] = {}
        for row in self.rows:
            values = found.setdefault((row["mechanism"], row["epsilon"]), [])
            if row.get(key) is not None:
                values.append(row[key])
        return found

    def to_pandas(self) -> Any:  # noqa: ANN401 - pandas is no dependency
        """Return the runs as a pandas data frame. NOT PRIVATE."""
        return data_frame(self.rows, self.columns)

    def __str__(self) -> str:
        return "\n".join([NOT_PRIVATE, *aligned(self._means()), *self._failed()])

    def __repr__(self) -> str:
        return f"{NOT_PRIVATE} Comparison of {len(self.rows)} runs; print(comparison) shows their means"

    def _repr_html_(self) -> str:
        return card(f"Comparison of {len(self.rows)} runs", self._means(), *self._failed(), warning=NOT_PRIVATE)

    def _means(self) -> list[tuple[str, ...]]:
        shown = [key for key in _SHOWN if key in self.columns]
        numbers = {key: self.means(key) for key in (*shown, "seconds", "peak_mb")}
        table: list[tuple[str, ...]] = [("mechanism", "epsilon", *shown, "seconds", "peak MB", "runs")]
        for mechanism, epsilon in dict.fromkeys((row["mechanism"], row["epsilon"]) for row in self.rows):
            here = {key: values[mechanism, epsilon] for key, values in numbers.items()}
            table.append(
                (
                    mechanism,
                    "" if epsilon is None else f"{epsilon:g}",
                    *(_mean(here[key], ".4f") for key in shown),
                    _mean(here["seconds"], ".2f"),
                    _mean(here["peak_mb"], ",.0f"),
                    "" if mechanism == FLOOR else f"{len(here['seconds'])}",
                )
            )
        return table

    def _failed(self) -> list[str]:
        return [
            f"{row['mechanism']} at epsilon {row['epsilon']:g}, seed {row['seed']}: {row['error']}"
            for row in self.rows
            if row.get("error")
        ]


def _from_json(text: str) -> tuple[list[Row], str]:
    data = json.loads(text)
    return list(data["runs"]), str(data["of"])


def _from_csv(text: str) -> tuple[list[Row], str]:
    first, _, rest = text.partition("\n")
    before, said, of = first.partition(_FIRST)
    if before or not said:
        raise ValueError(first)
    runs = csv.DictReader(io.StringIO(rest), strict=True)
    return [{name: _value(name, value) for name, value in run.items()} for run in runs], of


def _value(name: str, text: str) -> str | int | float | None:
    if name in _TEXTS:
        return text
    if text == "":
        return None
    return int(text) if name in _WHOLE else float(text)


def _mean(values: Sequence[float], form: str) -> str:
    return f"{fmean(values):{form}}" if values else "-"
