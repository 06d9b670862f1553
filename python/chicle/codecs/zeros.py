"""Structural zeros: cells that no allowed row can occupy. Their measured values are noise, and are set to 0.

This is post-processing of measurements by declarations. It does not make all records conform, because tables are noisy
and see attributes in buckets; it leaves less for `repair` to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from chicle.codecs.recode import Attributes
from chicle.domain import Clique
from chicle.measurements.measurement import Measurement
from chicle.schema.combine import any_over
from chicle.schema.constraints import MOST_CELLS, Constraint

__all__ = ["forbidden_cells", "without_zeros"]


def without_zeros(
    measurements: Iterable[Measurement], constraints: Sequence[Constraint], attributes: Attributes
) -> tuple[Measurement, ...]:
    """Return measurements with 0 in structural zeros; 1-ways stay as they are.

    Parameters
    ----------
    measurements
        Measurements over the attributes that mechanisms see.
    constraints
        The constraints of the schema.
    attributes
        The attributes, and their maps to columns.
    """
    home = {column: name for name, columns in attributes.columns.items() for column in columns}
    made = []
    for measurement in measurements:
        values = measurement.values
        for one in _of_few(constraints) if measurement.whole else ():
            scope = {home[column] for column in one.columns}
            if len(scope) > 1 and scope <= set(measurement.clique) and values.size <= MOST_CELLS:
                values = np.where(_possible(one, measurement, attributes), values, 0)
        made.append(measurement if values is measurement.values else replace(measurement, values=values))
    return tuple(made)


def forbidden_cells(constraints: Sequence[Constraint], attributes: Attributes) -> dict[Clique, npt.NDArray[np.bool_]]:
    """Return the structural zeros of cliques of attributes.

    Parameters
    ----------
    constraints, attributes
        As for `without_zeros`.
    """
    domain = attributes.domain
    home = {column: name for name, columns in attributes.columns.items() for column in columns}
    found: dict[Clique, npt.NDArray[np.bool_]] = {}
    for one in _of_few(constraints):
        clique = domain.clique({home[column] for column in one.columns})
        if len(clique) < 2 or domain.cells(clique) > MOST_CELLS:
            continue
        empty = np.zeros(domain.shape(clique), dtype=np.bool_)
        cells = ~_possible(one, Measurement(clique, empty.astype(np.int64), 1.0), attributes)
        found[clique] = found.get(clique, empty) | cells
    return {clique: cells for clique, cells in found.items() if cells.any() and not cells.all()}


def _of_few(constraints: Sequence[Constraint]) -> list[Constraint]:
    """Return the constraints of few columns, and those that follow from the others."""
    return [few for one in constraints for few in (one.implied if len(one.columns) > 3 else (one,))]


def _possible(constraint: Constraint, measurement: Measurement, attributes: Attributes) -> npt.NDArray[np.bool_]:
    """Return the cells of a measurement that a constraint allows; its other attributes have one cell each."""
    buckets = {name: np.asarray(given, dtype=np.int64) for name, given in measurement.buckets.items()}
    table = constraint.allowed
    axes: list[str] = list(constraint.columns)
    for column, classes in zip(constraint.columns, constraint.classes, strict=True):
        axis = axes.index(column)
        table = np.take(table, classes, axis=axis)
        groups = attributes.groups.get(column, np.arange(len(classes)))
        if column in buckets:  # a column that is an attribute of its own
            groups = buckets[column][groups]
        if column in attributes.groups or column in buckets:
            table = any_over(table, groups, axis)
    for name, one in attributes.combined.items():
        inside = [column for column in one.columns if column in axes]
        if not inside:
            continue
        table = np.moveaxis(table, [axes.index(column) for column in inside], range(len(inside)))
        parts = dict(zip(one.columns, one.parts(), strict=True))
        table = table[tuple(parts[column] for column in inside)]
        axes = [name, *(column for column in axes if column not in inside)]
        if name in buckets:
            table = any_over(table, buckets[name], 0)
    there = [name for name in measurement.clique if name in axes]
    table = np.transpose(table, [axes.index(name) for name in there])
    shape = [
        size if name in axes else 1 for name, size in zip(measurement.clique, measurement.values.shape, strict=True)
    ]
    return table.reshape(shape)
