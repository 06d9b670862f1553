"""Several analyses over the same columns buy the products of their features once.

Products depend on neither the outcome nor the family, so one purchase over the union of the features serves every
analysis of a group, for the sum of what each would have paid. Noise on a product grows with the number of blocks B of
the features, and falls with the root of rho, so analyses join where ``B / sqrt(rho)`` falls in the geometric mean over
the group. A row counts only if no column of the formula is missing, so the columns that may be missing must be the
same. Cost: a design for each pair of groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chicle.analyses.design import Design, Key
from chicle.analyses.formula import Formula, Term
from chicle.errors import ParameterError
from chicle.measurements.row_sums import RowSums
from chicle.schema import Schema

__all__ = ["Group", "groups_of"]


@dataclass(frozen=True, eq=False)
class Group:
    """Analyses that buy the products of their features together.

    Attributes
    ----------
    titles, formulas, designs
        Of each analysis.
    whole
        The design over all their features.
    """

    titles: tuple[str, ...]
    formulas: tuple[Formula, ...]
    designs: tuple[Design, ...]
    whole: Design

    @property
    def title(self) -> str:
        """What ledgers name it."""
        return "; ".join(self.titles)

    def joined(self, other: Group, schema: Schema) -> Group | None:
        """Return both groups as one; None if they may not or should not join."""
        formulas = (*self.formulas, *other.formulas)
        if len({_may_be_missing(one, schema) for one in formulas}) > 1:
            return None
        designs = (*self.designs, *other.designs)
        terms: dict[frozenset[Key], Term] = {}
        for formula, design in zip(formulas, designs, strict=True):
            keys = list(zip(design.keys, design.block.tolist(), strict=True))
            for block, term in enumerate(formula.terms, 1):
                terms.setdefault(frozenset(key for key, of in keys if of == block), term)
        # Which outcome it has does not matter.
        union = Formula(self.title, formulas[0].outcome, tuple(sorted(terms.values(), key=len)))
        try:
            whole = Design(union, schema, self.whole.family)
        except ParameterError:  # too many coefficients, or one that two formulas write in different ways
            return None
        made = Group(self.titles + other.titles, formulas, designs, whole)
        return made if made._noise < self._noise + other._noise else None

    def of(self, place: int, bought: RowSums) -> RowSums:
        """Return the products of the features of one analysis, from those of all."""
        number = {key: i for i, key in enumerate(self.whole.keys)}
        mine = np.array([number[key] for key in self.designs[place].keys])
        cell = np.zeros((self.whole.size,) * 2, dtype=np.int64)
        cell[np.triu_indices(self.whole.size)] = np.arange(bought.values.size)
        cell = np.maximum(cell, cell.T)[np.ix_(mine, mine)]
        kept = cell[np.triu_indices(len(mine))]
        found = (bought.values[kept], bought.sigma, bought.at[kept], bought.units[kept])
        return RowSums(self.titles[place], bought.kind, *found, bought.protected)

    @property
    def _noise(self) -> float:
        """The logarithm of the noise on a product, summed over the analyses; each brings the same rho."""
        number = len(self.titles)
        return number * math.log(self.whole.blocks / math.sqrt(number))


def groups_of(
    titles: Sequence[str], formulas: Sequence[Formula], designs: Sequence[Design], schema: Schema
) -> list[Group]:
    """Return analyses in groups: each joins the first one that it gains from.

    Parameters
    ----------
    titles, formulas, designs
        Of each analysis.
    schema
        The schema of the table.
    """
    found: list[Group] = []
    for title, formula, design in zip(titles, formulas, designs, strict=True):
        alone = Group((title,), (formula,), (design,), design)
        for i, group in enumerate(found):
            joined = group.joined(alone, schema)
            if joined is not None:
                found[i] = joined
                break
        else:
            found.append(alone)
    return found


def _may_be_missing(formula: Formula, schema: Schema) -> frozenset[str]:
    return frozenset(name for name in formula.columns if schema.columns[name].missing)
