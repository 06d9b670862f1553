"""Declared analyses: regressions that a fit answers with valid intervals, beside the synthetic table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chicle.analyses.design import Design
from chicle.analyses.families import IDENTITY, LOG, LOGIT, Family
from chicle.analyses.formula import Formula, parse
from chicle.errors import ParameterError, SchemaError
from chicle.schema import Schema

__all__ = ["Analysis", "Linear", "Logit", "Poisson", "analysis_of"]


@dataclass(frozen=True)
class Analysis:
    """Base of declared analyses.

    Parameters
    ----------
    formula
        ``outcome ~ term + term``; see `chicle.analyses.formula`.
    """

    formula: str
    family: ClassVar[Family]

    def __post_init__(self) -> None:
        object.__setattr__(self, "formula", self.parsed.text)

    @property
    def parsed(self) -> Formula:
        """The parts of the formula."""
        return parse(self.formula)

    @property
    def title(self) -> str:
        """The analysis in words, as ledgers and reports name it."""
        return f"{self.family.name}: {self.formula}"

    def design(self, schema: Schema) -> Design:
        """Return the design over a schema; a column without public bounds or levels is an error."""
        made = Design(self.parsed, schema, self.family)
        low, high = made.outcome_span
        if low == high:
            raise SchemaError(f"formula {self.formula!r}: the outcome has only one value")
        if self.family is LOG and low < 0:
            raise SchemaError(
                f"formula {self.formula!r}: a poisson outcome counts something; its min is {low:g}, below 0"
            )
        return made


class Linear(Analysis):
    """A linear regression; with a single factor, the differences of group means.

    Examples
    --------
    >>> Linear("hours ~ age + sex").title
    'linear: hours ~ age + sex'
    """

    family = IDENTITY


class Logit(Analysis):
    """A logistic regression of an outcome of two values; with a single factor, the log odds ratio of a 2x2 table.

    Examples
    --------
    >>> Logit("readmitted ~ age + C(payer)").title
    'logit: readmitted ~ age + C(payer)'
    """

    family = LOGIT


class Poisson(Analysis):
    """A Poisson regression of counts, with a log link.

    Examples
    --------
    >>> Poisson("visits ~ age").title
    'poisson: visits ~ age'
    """

    family = LOG


_KINDS = {kind.family.name: kind for kind in (Linear, Logit, Poisson)}


def analysis_of(text: str) -> Analysis:
    """Return the analysis of a text such as ``logit: y ~ a + b``.

    Examples
    --------
    >>> analysis_of("linear: hours ~ age")
    Linear(formula='hours ~ age')
    """
    kind, colon, formula = text.partition(":")
    made = _KINDS.get(kind.strip().lower())
    if not colon or made is None:
        raise ParameterError(
            f"the analysis {text!r} must begin with its kind, one of {', '.join(f'{name}:' for name in _KINDS)}; "
            'write for example "logit: outcome ~ age + sex"'
        )
    return made(formula)
