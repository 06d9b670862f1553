"""The design of a declared analysis: from the columns of a table to features of bounded length. All of it is public.

Levels, bounds and centres come from the schema. Each term is a block of features, and no row's block is longer than 1:

- a number x in [low, high] is (x - centre) / radius, in [-1, 1];
- a factor of L levels is a corner of the regular simplex around 0 whose L corners are 1 away from it, in L - 1
  coordinates. So noise harms all levels alike, also the reference, whatever it is;
- an interaction or a power is the product of the features of its parts.

Main effects of interactions are always there, so products of centred columns span the same models as products of raw
ones: coefficients of features are a public, invertible linear map of the coefficients that are reported.
Rows in which a column of the formula is missing are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from chicle.analyses.families import IDENTITY, LOGIT, Family, Floats
from chicle.analyses.formula import Atom, Formula
from chicle.columns import Column
from chicle.columns.base import refuse
from chicle.errors import ParameterError, SchemaError
from chicle.schema import Schema

__all__ = ["Design", "Key"]

Key: TypeAlias = tuple[tuple[str, str, int], ...]
"""What a feature is made of: for each factor of the product the column, the kind, and the code of its value."""

_MOST_COEFFICIENTS = 250


class Design:
    """A formula over the columns of a schema.

    Parameters
    ----------
    formula
        The formula.
    schema
        The schema, which declares levels and bounds.
    family
        The family. The outcome of a logit is one of two values: the second of a column, or the one that it is
        compared with.

    Attributes
    ----------
    names
        The coefficients, the intercept first.
    block
        The block of each coefficient: 0 for the intercept, then the terms.
    unscale
        The matrix that turns coefficients of features into those of the columns themselves.
    outcome_span
        The least and the greatest outcome.
    middle, radius
        The outcome of a linear model is (outcome - middle) / radius, so it lies between -1 and 1; others stay as they
        are.
    """

    def __init__(self, formula: Formula, schema: Schema, family: Family) -> None:
        self._text, self.family = formula.text, family
        self._variables = {atom: self._variable(atom, schema) for atom in formula.atoms}
        outcome = formula.outcome
        if family is LOGIT and outcome.use == "plain":
            outcome = self._second(outcome, schema)
        self._outcome = self._variable(outcome, schema)
        if self._outcome.kind == "factor":
            raise self._error(
                outcome.name,
                "is the outcome but has no numbers",
                f"compare it with a value, as in `{outcome.name} == ...`",
            )
        low, high = self.outcome_span = self._outcome.span
        self.middle, self.radius = (0.0, 1.0) if family is not IDENTITY else ((low + high) / 2, (high - low) / 2)
        self.columns = formula.columns
        for atom in (atom for term in formula.terms for atom in term if term.count(atom) > 1):
            if self._variables[atom].kind != "number":
                raise self._error(atom.name, "has no numbers, so it has no powers", "leave the power out")
        self._parts: list[tuple[tuple[Atom, int], ...]] = [()]
        block = [0]
        for number, term in enumerate(formula.terms, 1):
            for levels in product(*(range(self._variables[atom].width) for atom in dict.fromkeys(term))):
                level = dict(zip(dict.fromkeys(term), levels, strict=True))
                self._parts.append(tuple((atom, level[atom]) for atom in term))
                block.append(number)
        self.block = np.array(block)
        self.names = [self._name(parts) for parts in self._parts]
        if len(self.names) > _MOST_COEFFICIENTS:
            raise ParameterError(
                f"formula {self._text!r} has {len(self.names)} coefficients; at most {_MOST_COEFFICIENTS} make sense. "
                "Leave factors of many levels or interactions out"
            )
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise ParameterError(f"formula {self._text!r} has {twice!r} twice; leave one of the terms out")
        self.unscale = np.linalg.inv(self._scale())

    @property
    def size(self) -> int:
        """The number of coefficients."""
        return len(self.names)

    @property
    def blocks(self) -> int:
        """The number of blocks; no row of features is longer than its square root."""
        return int(self.block[-1]) + 1

    @property
    def keys(self) -> list[Key]:
        """What each feature is made of: equal keys are equal features, also in designs of other formulas."""
        return [tuple(sorted(self._variables[atom].key(level) for atom, level in parts)) for parts in self._parts]

    def rows(self, table: Mapping[str, pa.ChunkedArray]) -> tuple[Floats, Floats]:
        """Return the features and the scaled outcome of the complete rows of a table."""
        read = {atom: variable.read(table) for atom, variable in self._variables.items()}
        outcome = self._outcome.outcome(table)
        complete = np.isfinite(outcome)
        for values in read.values():
            complete &= np.isfinite(values[:, 0])
        features = self._products({atom: values[complete] for atom, values in read.items()}, int(complete.sum()))
        return features, (outcome[complete] - self.middle) / self.radius

    def spread(self, rows: int, rng: np.random.Generator) -> Floats:
        """Return features of rows whose columns are spread evenly and independently, for plans."""
        return self._products({atom: one.draw(rows, rng) for atom, one in self._variables.items()}, rows)

    def _products(self, read: Mapping[Atom, Floats], rows: int) -> Floats:
        features: Floats = np.ones((rows, self.size))
        for j, parts in enumerate(self._parts):
            for atom, level in parts:
                features[:, j] *= read[atom][:, level]
        return features

    def _scale(self) -> Floats:
        """Return the matrix whose column j holds raw column j in terms of features: expand every product of sums."""
        place = {tuple(sorted(parts, key=str)): j for j, parts in enumerate(self._parts)}
        scale = np.zeros((self.size, self.size))
        for j, parts in enumerate(self._parts):
            sums = [self._variables[atom].expansion(level) for atom, level in parts]
            for chosen in product(*(range(-1, len(own)) for _, own in sums)):
                inside, weight = [], 1.0
                for (atom, _), feature, (constant, own) in zip(parts, chosen, sums, strict=True):
                    weight *= constant if feature < 0 else own[feature]
                    inside += [] if feature < 0 else [(atom, feature)]
                scale[place[tuple(sorted(inside, key=str))], j] += weight
        return scale

    def _name(self, parts: tuple[tuple[Atom, int], ...]) -> str:
        if not parts:
            return "Intercept"
        said = []
        for atom, level in dict.fromkeys(parts):
            times = parts.count((atom, level))
            said.append(self._variables[atom].names[level] + (f"^{times}" if times > 1 else ""))
        return ":".join(said)

    def _variable(self, atom: Atom, schema: Schema) -> _Variable:
        column = schema.columns.get(atom.name)
        if column is None or not column.modelled:
            known = ", ".join(schema.domain)
            what = "is not in the schema" if column is None else "is not modelled, so it has no values to analyse"
            raise self._error(atom.name, what, f"its columns are {known}")
        if column.beside:
            raise self._error(
                atom.name,
                "is declared by its distance from another column (`after`)",
                "add a column of that distance to the table, and use it instead",
            )
        if column.undiscovered and (atom.use != "plain" or column.span is None):
            raise self._error(
                atom.name,
                "is yet to be discovered, and an analysis needs public levels",
                "declare its values or bins, or use it as a plain number",
            )
        if atom.use == "is":
            return _Variable(atom.name, column, "is", code=self._code(atom, column))
        if atom.use == "plain" and column.span is not None:
            low, high = column.span
            if low == high:
                raise self._error(atom.name, "has only one value", "leave it out of the formula")
            return _Variable(atom.name, column, "number")
        if atom.use == "plain" and column.labels is None:
            raise self._error(atom.name, "has bins but no numbers", f"write C({atom.name})")
        if column.size < 2:
            raise self._error(atom.name, "has only one value", "leave it out of the formula")
        return _Variable(atom.name, column, "factor", code=0 if atom.value is None else self._code(atom, column))

    def _second(self, atom: Atom, schema: Schema) -> Atom:
        """Return the comparison with the second of two values."""
        column = schema.columns.get(atom.name)
        if column is None or not column.modelled:
            return atom
        if column.undiscovered or column.size != 2:
            raise self._error(
                atom.name, "is the outcome but has not just two values", f"compare it with one, `{atom.name} == ...`"
            )
        return Atom(atom.name, "is", column.texts[1])

    def _code(self, atom: Atom, column: Column) -> int:
        """Return the code of a value."""
        texts = column.texts[: column.size]
        for said in (str(atom.value), str(atom.value).capitalize()):  # false is False
            if said in texts:
                return texts.index(said)
        known = ", ".join(texts[:8]) + (", ..." if len(texts) > 8 else "")
        raise self._error(atom.name, f"has no value {atom.value!r}", f"its values are {known}")

    def _error(self, name: str, rule: str, fix: str) -> SchemaError:
        return SchemaError(f"formula {self._text!r}: column {name!r} {rule}; {fix}")

    def __repr__(self) -> str:
        return f"Design of {self._text!r}: {', '.join(self.names)}"


@dataclass(frozen=True)
class _Variable:
    """One column as numbers: itself, its dummies, or 1 for one of its values."""

    name: str
    column: Column
    kind: str
    code: int = 0

    @property
    def width(self) -> int:
        return self.column.size - 1 if self.kind == "factor" else 1

    @property
    def span(self) -> tuple[float, float]:
        return self.column.span or (0.0, 1.0) if self.kind == "number" else (0.0, 1.0)

    @property
    def names(self) -> list[str]:
        if self.kind == "number":
            return [self.name]
        texts = self.column.texts[: self.column.size]
        if self.kind == "is":
            return [f"{self.name} == {texts[self.code]}"]
        return [f"{self.name}[{texts[code]}]" for code in self._levels]

    def key(self, level: int) -> tuple[str, str, int]:
        """Return the column, the kind, and the feature or the code; features of a factor do not know its reference."""
        return self.name, self.kind, level if self.kind == "factor" else self.code

    def expansion(self, level: int) -> tuple[float, Floats]:
        """Return a raw column as a constant and a multiple of each feature."""
        if self.kind == "factor":
            corners = self._corners
            return 1 / len(corners), (1 - 1 / len(corners)) * corners[self._levels[level]]
        low, high = self.span
        return (low + high) / 2, np.array([(high - low) / 2])

    def read(self, table: Mapping[str, pa.ChunkedArray]) -> Floats:
        """Return the features; NaN where missing."""
        return self._features(self.outcome(table))

    def outcome(self, table: Mapping[str, pa.ChunkedArray]) -> Floats:
        """Return the values as they are: numbers, 1 for one value and 0 for others, or codes; NaN where missing."""
        values, report = table[self.name], refuse(self.name)
        if self.kind == "number":
            return np.asarray(self.column.numbers(values, report), dtype=np.float64)
        codes = self.column.encode(values, report)
        return np.where(codes >= self.column.size, np.nan, codes == self.code if self.kind == "is" else codes)

    def draw(self, rows: int, rng: np.random.Generator) -> Floats:
        """Return features of values that are spread evenly."""
        if self.kind == "number":
            return self._features(rng.uniform(*self.span, size=rows))
        codes: npt.NDArray[Any] = rng.integers(0, self.column.size, rows)
        return self._features(np.asarray(codes == self.code if self.kind == "is" else codes, dtype=np.float64))

    def _features(self, values: Floats) -> Floats:
        if self.kind == "factor":
            corners = np.vstack([self._corners, np.full(self.width, np.nan)])
            return np.asarray(corners[np.nan_to_num(values, nan=len(corners) - 1).astype(np.int64)])
        low, high = self.span
        return ((values - (low + high) / 2) / ((high - low) / 2))[:, None]

    @property
    def _corners(self) -> Floats:
        """The features of each level: the corners of a simplex, by the contrasts of Helmert."""
        size = self.column.size
        corners = np.zeros((size, size - 1))
        for k in range(1, size):
            corners[:k, k - 1], corners[k, k - 1] = 1, -k
            corners[:, k - 1] /= np.sqrt(k * (k + 1) * (1 - 1 / size))
        return corners

    @property
    def _levels(self) -> list[int]:
        if self.kind == "is":
            return [self.code]
        return [code for code in range(self.column.size) if code != self.code]
