"""Cells that no allowed row can be in: whatever was measured there is noise, and is taken out before records are made.

Post-processing of measurements by declarations. It does not make records conform, for tables are noisy and see
attributes in buckets; it keeps generators from drawing what `repair` would have to mend.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from chicle.domain import Clique
from chicle.measurements.measurement import Measurement
from chicle.schema.constraints import MOST_CELLS, Constraint
from chicle.schema.recode import Recoding, any_over

__all__ = ["forbidden_cells", "without_zeros"]


def without_zeros(
    measurements: Iterable[Measurement], constraints: Sequence[Constraint], recoding: Recoding
) -> tuple[Measurement, ...]:
    """Return measurements whose impossible cells are 0; 1-ways stay as they are.

    Parameters
    ----------
    measurements
        Over the attributes that mechanisms see.
    constraints
        What no row may violate.
    recoding
        How columns became attributes.
    """
    home = {column: name for name, columns in recoding.attributes.items() for column in columns}
    made = []
    for measurement in measurements:
        values = measurement.values
        for one in constraints:
            scope = {home[column] for column in one.columns}
            if len(scope) > 1 and scope <= set(measurement.clique) and values.size <= MOST_CELLS:
                values = np.where(_possible(one, measurement, recoding), values, 0)
        made.append(measurement if values is measurement.values else replace(measurement, values=values))
    return tuple(made)


def forbidden_cells(constraints: Sequence[Constraint], recoding: Recoding) -> dict[Clique, npt.NDArray[np.bool_]]:
    """Return for cliques that mechanisms see which of their cells no allowed row is in: structural zeros.

    Parameters
    ----------
    constraints, recoding
        As for `without_zeros`.
    """
    domain = recoding.domain
    home = {column: name for name, columns in recoding.attributes.items() for column in columns}
    found: dict[Clique, npt.NDArray[np.bool_]] = {}
    for one in constraints:
        clique = domain.clique({home[column] for column in one.columns})
        if len(clique) < 2 or domain.cells(clique) > MOST_CELLS:
            continue
        empty = np.zeros(domain.shape(clique), dtype=np.bool_)
        cells = ~_possible(one, Measurement(clique, empty.astype(np.int64), 1.0), recoding)
        found[clique] = found.get(clique, empty) | cells
    return {clique: cells for clique, cells in found.items() if cells.any() and not cells.all()}


def _possible(constraint: Constraint, measurement: Measurement, recoding: Recoding) -> npt.NDArray[np.bool_]:
    """Return in which cells of a measurement a constraint lets rows be; its other attributes have one cell each."""
    buckets = {name: np.asarray(given, dtype=np.int64) for name, given in measurement.coarsening.items()}
    table = constraint.allowed
    axes: list[str] = list(constraint.columns)
    for column, classes in zip(constraint.columns, constraint.classes, strict=True):
        axis = axes.index(column)
        table = np.take(table, classes, axis=axis)
        groups = recoding.groups.get(column, np.arange(len(classes)))
        if column in buckets:  # a column that is an attribute of its own
            groups = buckets[column][groups]
        if column in recoding.groups or column in buckets:
            table = any_over(table, groups, axis)
    for name, one in recoding.combined.items():
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
