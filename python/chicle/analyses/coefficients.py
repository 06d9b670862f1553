"""The answer to a declared analysis: a table of coefficients with errors that count both sampling and noise."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from chicle._checks import number
from chicle._text import aligned
from chicle.analyses.families import Floats
from chicle.errors import ArtefactError, ParameterError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Coefficients"]


@dataclass(frozen=True, eq=False)
class Coefficients:
    """A declared analysis, answered.

    Intervals count the sampling of persons and the noise of privacy, whatever else is true of the synthetic table.

    Attributes
    ----------
    title
        The analysis, such as ``"logit: readmitted ~ age + sex"``.
    names
        The coefficients, the intercept first.
    estimate
        Their estimates, in the units of the columns.
    sampling, noise
        Their covariances: by the sampling of persons (robust), and by the noise of privacy.
    """

    title: str
    names: tuple[str, ...]
    estimate: Floats
    sampling: Floats
    noise: Floats

    @property
    def covariance(self) -> Floats:
        """The covariance of the estimates: of sampling and noise together."""
        return self.sampling + self.noise

    @property
    def standard_error(self) -> Floats:
        """The standard error of each coefficient."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def p(self) -> Floats:
        """The p value of each coefficient: that it is 0, against that it is not."""
        distances = np.abs(self.estimate) / self.standard_error
        return np.array([math.erfc(distance / math.sqrt(2)) for distance in distances.tolist()])

    @property
    def widening(self) -> Floats:
        """How much wider each interval is than sampling alone would make it: the price of privacy."""
        return np.asarray(self.standard_error / np.sqrt(np.diag(self.sampling)))

    def interval(self, confidence: float = 0.95) -> Floats:
        """Return an interval for each coefficient: one row of (low, high) each, the intercept first.

        Parameters
        ----------
        confidence
            The probability, over the sampling of persons and over the noise, with which each interval holds.
        """
        if not 0 < number("confidence", confidence) < 1:
            raise ParameterError(f"confidence must lie between 0 and 1, not {confidence!r}")
        half = NormalDist().inv_cdf((1 + confidence) / 2) * self.standard_error
        return np.column_stack([self.estimate - half, self.estimate + half])

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data."""
        return {
            "title": self.title,
            "names": list(self.names),
            **{name: getattr(self, name).tolist() for name in ("estimate", "sampling", "noise")},
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Coefficients:
        """Return the answer that `to_dict` wrote."""
        names = tuple(saved["names"])
        arrays = {name: np.array(saved[name], dtype=np.float64) for name in ("estimate", "sampling", "noise")}
        shapes = [array.shape for array in arrays.values()]
        if shapes != [(len(names),), *[(len(names),) * 2] * 2] or not all(
            np.isfinite(a).all() for a in arrays.values()
        ):
            raise ArtefactError("an answer has other numbers than its coefficients need")
        if not all(isinstance(text, str) for text in (saved["title"], *names)):
            raise ArtefactError("the names of an answer are not texts")
        return cls(saved["title"], names, **arrays)

    def to_records(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """Return the table as plain data: a mapping for each coefficient."""
        columns = self._columns(confidence)
        return [
            {"analysis": self.title, "coefficient": name, **{key: float(column[i]) for key, column in columns.items()}}
            for i, name in enumerate(self.names)
        ]

    def to_pandas(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return the answer as a pandas table, with a row for each coefficient."""
        import pandas as pd  # noqa: PLC0415 - only where it is asked for

        return pd.DataFrame(self._columns(confidence), index=pd.Index(self.names, name=self.title))

    def _columns(self, confidence: float) -> dict[str, Floats]:
        low, high = self.interval(confidence).T
        return {
            "estimate": self.estimate,
            "standard error": self.standard_error,
            "low": low,
            "high": high,
            "p": self.p,
            "widening": self.widening,
        }

    def rows(self, confidence: float = 0.95) -> list[tuple[str, ...]]:
        """Return the table as texts, the head first."""
        head = ("coefficient", "estimate", "std. error", f"{100 * confidence:g} % interval", "p", "widening")
        found: list[tuple[str, ...]] = [head]
        for name, value, error, (low, high), p, wider in zip(
            self.names,
            self.estimate,
            self.standard_error,
            self.interval(confidence),
            self.p,
            self.widening,
            strict=True,
        ):
            said = (f"{value:.4g}", f"{error:.3g}", f"{low:.4g} to {high:.4g}", _p(p), f"{wider:.2f}")
            found.append((name, *said))
        return found

    def __repr__(self) -> str:
        return "\n".join([self.title, *aligned(self.rows()), _CAPTION])

    def _repr_html_(self) -> str:
        head, *body = self.rows()
        return (
            f"<table><caption>{html.escape(self.title)}</caption>{_html_row('th', head)}"
            f"{''.join(_html_row('td', row) for row in body)}</table><p>{_CAPTION}</p>"
        )


_CAPTION = "intervals count the sampling of persons and the noise of privacy; widening: by noise, 1 is none"


def _html_row(kind: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in cells) + "</tr>"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
