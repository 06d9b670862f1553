"""What is declared of several columns: those combined into one attribute, those that are coarse, and constraints.

All of it is public. Rows are recoded one by one before anything is counted, so no sensitivity changes; that constraints
hold is made so afterwards, on what was released.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from chicle.columns import Column
from chicle.counting.records import Codes, Records, Rows, code_dtype
from chicle.domain import Clique
from chicle.errors import SchemaError
from chicle.measurements.measurement import Measurement
from chicle.schema.constraints import Constraint, constraints_from
from chicle.schema.recode import Recoding, combined_from
from chicle.schema.repair import connected, repair
from chicle.schema.zeros import forbidden_cells, without_zeros
from chicle.sources.frames import Form

__all__ = ["Joint"]


class Joint:
    """What holds of several columns of a schema.

    Parameters
    ----------
    columns
        The declared columns.
    combine, constraints
        As for `Schema`.

    Attributes
    ----------
    constraints
        Which combinations of values no row has.
    recoding
        The maps between the columns and what mechanisms see.
    """

    def __init__(
        self,
        columns: Mapping[str, Column],
        combine: Mapping[str, Any] | None = None,
        constraints: Iterable[Mapping[str, Any]] | None = None,
    ) -> None:
        modelled = {name: column for name, column in columns.items() if column.modelled}
        self.constraints: tuple[Constraint, ...] = constraints_from([] if constraints is None else constraints, columns)
        combined = combined_from({} if combine is None else combine, columns)
        self.recoding = Recoding(modelled, combined, self.constraints)
        listed = [one.listed for one in combined.values() if one.listed is not None]
        self._parts = connected([*self.constraints, *listed], self.recoding.original)
        self._columns = {name: columns[name] for part in self._parts for name in part.kinds}

    def to_dict(self) -> dict[str, Any]:
        """Return what is declared, as plain data."""
        combine = {name: dict(one.told) for name, one in self.recoding.combined.items()}
        constraints = [dict(one.told) for one in self.constraints]
        said = {"combine": combine, "constraints": constraints}
        return {key: value for key, value in said.items() if value}

    @property
    def constrained(self) -> frozenset[str]:
        """The columns whose values cannot be told row by row without each other."""
        return frozenset(self._columns)

    def violations(self, codes: Mapping[str, Codes]) -> list[str]:
        """Return what is declared, and violated by a row with these codes of columns.

        Rows of combinations that are not listed are no violation where `others` says what they get, nor are rows that
        violate a constraint which says ``violations: keep``. What is said of columns that are not given is passed over.
        """
        settled, problems = self.recoding.settle(codes)
        for one in self.constraints:
            if not one.keep and set(one.columns) <= set(settled) and not one.holds(settled).all():
                problems.append(
                    f"the table has a row that violates {one}; correct the table or the constraint, or write "
                    "`violations: keep` to count such rows as they are"
                )
        return problems

    def check_form(self, form: Form) -> None:
        """Raise unless every bin of a column under a constraint has values of the type that the table will have."""
        if form.kind == "records":
            return
        for name, column in sorted(self._columns.items()):
            dtype = form.types.get(name)
            codes = np.arange(column.cardinality, dtype=code_dtype(column.cardinality))
            made = column.decode(codes, dtype, np.random.default_rng(0))
            if (column.encode(pa.chunked_array([made]), lambda _rule, _fix: None) != codes).any():
                raise SchemaError(
                    f"column {name!r} has a bin without any value of type {dtype}, so no constraint on it could be "
                    "kept; declare it as integer, or give it wider `bins`"
                )

    def recode(self, records: Rows) -> Rows:
        """Return records over the columns as records over what mechanisms see: each row by itself.

        Rows of combinations that are not listed get that of `others`.
        """
        return self.recoding.over(records) if self.recoding.changes else records

    def restore(self, records: Records, fine: Sequence[Measurement], rng: np.random.Generator) -> Records:
        """Return synthetic records over what mechanisms see as records over the columns that violate no constraint.

        Parameters
        ----------
        records
            Synthetic records over ``recoding.domain``.
        fine
            The fine 1-ways of coarse columns.
        rng
            Draws what coarse groups hide, and mends rows.
        """
        if self.recoding.changes:
            records = self.recoding.decode(records, fine, int(rng.integers(2**63)))
        return repair(records, self._parts, rng, self.recoding.groups) if self._parts else records

    def without_zeros(self, measurements: Iterable[Measurement]) -> tuple[Measurement, ...]:
        """Return measurements of what mechanisms see, 0 in cells that constraints leave to no row."""
        return without_zeros(measurements, self.constraints, self.recoding)

    @cached_property
    def zeros(self) -> dict[Clique, npt.NDArray[np.bool_]]:
        """Which cells of what mechanisms see no allowed row is in, for each clique that a constraint speaks of."""
        return forbidden_cells(self.constraints, self.recoding)

    def over_columns(self, measurements: Iterable[Measurement]) -> list[Measurement]:
        """Return measurements of what mechanisms see as measurements over the columns, those that can be.

        Examples
        --------
        >>> from chicle.columns import Coded, Integer
        >>> columns = {"age": Integer(min=0, max=3, coarse=2), "left": Coded(values=2), "right": Coded(values=2)}
        >>> joint = Joint(columns, combine={"sides": ["left", "right"]})
        >>> (seen,) = joint.over_columns([Measurement(("age", "sides"), np.ones((2, 4)), 1.0)])
        >>> seen.clique, seen.values.shape, seen.coarsening["age"].tolist()
        (('age', 'left', 'right'), (2, 2, 2), [0, 0, 1, 1])
        """
        seen = [self.recoding.over_columns(one) for one in measurements]
        return [one for one in seen if one is not None]
