"""Several analyses over the same columns buy the products of their features once.

Products depend on neither the outcome nor the family, so one purchase over the union of the features serves every
analysis of a group, for the sum of what each would have paid. Noise on the product of features of blocks a and b is
``1 / (w_a w_b sqrt(rho))``; a block that c analyses have weighs ``w^2 ~ sqrt(c)``. More blocks mean smaller weights, so
analyses join where the noise falls in the geometric mean over the group. A row counts only if no column of the formula
is missing, so the columns that may be missing must be the same. Cost: a design for each pair of groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from chicle.analyses.design import Design, Key
from chicle.analyses.families import Floats
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
        mine = self._places[place]
        cell = np.zeros((self.whole.size,) * 2, dtype=np.int64)
        cell[np.triu_indices(self.whole.size)] = np.arange(bought.values.size)
        cell = np.maximum(cell, cell.T)[np.ix_(mine, mine)]
        kept = cell[np.triu_indices(len(mine))]
        found = (bought.values[kept], bought.sigma, bought.at[kept], bought.units[kept])
        return RowSums(self.titles[place], bought.kind, *found, bought.protected)

    @cached_property
    def weights(self) -> Floats:
        """The weight of each feature of the whole: larger where more analyses have it."""
        shared = np.zeros(self.whole.blocks)
        for blocks in self._blocks:
            shared[blocks] += 1
        weights = np.sqrt(np.sqrt(shared) / np.sqrt(shared).sum())
        return np.asarray(weights[self.whole.block])

    @cached_property
    def _places(self) -> list[npt.NDArray[np.int64]]:
        """Which features of the whole each analysis has, in its own order."""
        number = {key: i for i, key in enumerate(self.whole.keys)}
        return [np.array([number[key] for key in design.keys]) for design in self.designs]

    @property
    def _blocks(self) -> list[npt.NDArray[np.int64]]:
        return [np.unique(self.whole.block[places]) for places in self._places]

    @property
    def _noise(self) -> float:
        """The logarithm of the noise on a product, summed over the analyses; each brings the same rho."""
        squares = np.bincount(self.whole.block, self.weights**2) / np.bincount(self.whole.block)
        return sum(math.log((1 / squares[blocks]).mean() / math.sqrt(len(self.titles))) for blocks in self._blocks)


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
