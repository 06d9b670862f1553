"""The design of a declared analysis: from the columns of a table to features of bounded length. All of it is public.

Levels, bounds and centres come from the schema. Each term is a block of features, and no row's block is longer than 1:

- a number x in [low, high] is (x - centre) / radius, in [-1, 1];
- a factor of L levels is its L - 1 dummies, minus the centre of the smallest ball around 0 and the unit vectors, over
  the radius of that ball;
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
        outcome = self._outcome.read(table)[:, 0]
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
                variable = self._variables[atom]
                features[:, j] *= (read[atom][:, level] - variable.centre) / variable.radius
        return features

    def _scale(self) -> Floats:
        """Return the matrix whose column j holds raw column j in terms of features: expand every product of sums."""
        place = {tuple(sorted(parts, key=str)): j for j, parts in enumerate(self._parts)}
        scale = np.zeros((self.size, self.size))
        for j, parts in enumerate(self._parts):
            for kept in product((False, True), repeat=len(parts)):
                inside = [part for part, keep in zip(parts, kept, strict=True) if keep]
                weight = 1.0
                for (atom, _), keep in zip(parts, kept, strict=True):
                    variable = self._variables[atom]
                    weight *= variable.radius if keep else variable.centre
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
        """Return the column, the kind and the code of a level."""
        return self.name, self.kind, self._levels[level] if self.kind == "factor" else self.code

    @property
    def centre(self) -> float:
        low, high = self.span
        # Of several dummies: the point from which all unit vectors are equally far, and 0 is no farther.
        return (low + high) / 2 if self.width == 1 else 1 / self.width

    @property
    def radius(self) -> float:
        low, high = self.span
        if self.width == 1:
            return (high - low) / 2
        return float(np.sqrt(max(1 / self.width, 1 - 1 / self.width)))

    def read(self, table: Mapping[str, pa.ChunkedArray]) -> Floats:
        """Return a column, or one for each dummy; NaN where missing."""
        values, report = table[self.name], refuse(self.name)
        if self.kind == "number":
            return self.column.numbers(values, report)[:, None]
        codes = self.column.encode(values, report)
        missing = codes >= self.column.size
        wanted = np.array(self._levels)
        return np.where(missing[:, None], np.nan, codes[:, None] == wanted[None, :])

    def draw(self, rows: int, rng: np.random.Generator) -> Floats:
        if self.kind == "number":
            return rng.uniform(*self.span, size=(rows, 1))
        codes: npt.NDArray[Any] = rng.integers(0, self.column.size, rows)
        return np.asarray(codes[:, None] == np.array(self._levels)[None, :], dtype=np.float64)

    @property
    def _levels(self) -> list[int]:
        if self.kind == "is":
            return [self.code]
        return [code for code in range(self.column.size) if code != self.code]
