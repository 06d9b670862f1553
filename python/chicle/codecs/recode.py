"""From the columns of a schema to the attributes that mechanisms see, and back: coarse groups and combined columns.

Both are declared, so the maps are public constants. Each record is recoded by itself: a person's k records stay at most
k, and no sensitivity changes. A coarse group is split again by the fine 1-way of the column, which is released as well.
Cost: a look-up for each record and column that changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np
import numpy.typing as npt

from chicle.codes import Codes, code_dtype, look_up
from chicle.columns import Column
from chicle.counting.records import Records
from chicle.denoising.tails import steady_tails
from chicle.domain import Domain
from chicle.measurements.measurement import Measurement
from chicle.measurements.merges import merge_groups
from chicle.query import Maps
from chicle.schema.combine import Combined, groups_of

__all__ = ["Attributes"]


class Attributes:
    """The attributes that mechanisms see, and the maps between them and the columns of a schema.

    Parameters
    ----------
    columns
        The modelled columns.
    combined
        Columns that become one attribute, by its name; it takes the place of the first of them.

    Attributes
    ----------
    groups
        The group of each code of each coarse column.
    columns
        The columns of each attribute.
    original, domain
        The domains of the columns and of the attributes.
    base
        The domain of encoding and counting: the columns, then an attribute for each group of combined columns.
    maps
        For each attribute, its source in `base`, and the new code of each code, or None if codes stay.
    """

    def __init__(self, columns: Mapping[str, Column], combined: Mapping[str, Combined]) -> None:
        self._held = dict(columns)
        self.groups = groups_of(columns)
        self.combined = dict(combined)
        home = {column: name for name, one in combined.items() for column in one.columns}
        self.columns = {
            name: combined[name].columns if name in combined else (name,)
            for name in dict.fromkeys(home.get(column, column) for column in columns)
        }
        self.original = Domain({name: column.cardinality for name, column in columns.items()})
        self.base = Domain({**self.original, **{name: len(one.cells) for name, one in combined.items()}})
        self.maps: Maps = {
            name: (name, self._group_codes(name) if name in self.groups else None) for name in self.columns
        }
        sizes = {name: int(groups.max()) + 1 for name, groups in self.groups.items()}
        self.domain = Domain({name: sizes.get(name, self.base[name]) for name in self.columns})

    @property
    def changes(self) -> bool:
        """Whether attributes differ from the columns."""
        return bool(self.groups or self.combined)

    def needed(self, names: Sequence[str]) -> list[str]:
        """Return the columns from which attributes of `base` are encoded."""
        return list(dict.fromkeys(column for name in names for column in self._made_of(name)))

    def settle(self, codes: Mapping[str, Codes]) -> tuple[dict[str, Codes], list[str]]:
        """Return codes of columns, with `others` for combinations that are not listed; or problems without `others`."""
        made, problems = dict(codes), []
        for name, one in self.combined.items():
            if not set(one.columns) <= set(codes):
                continue
            settled = _settled(one, codes)
            if settled is None:
                problems.append(
                    f"combine {name!r}: the table has a combination of {_and(one.columns)} that is not listed; "
                    "add it to `combinations`, or give such rows a combination in `others`"
                )
            else:
                made.update(settled)
        return made, problems

    def combine(self, name: str, codes: Mapping[str, Codes]) -> Codes:
        """Return the codes of combined columns; combinations that are not listed get the code of `others`."""
        one = self.combined[name]
        settled = _settled(one, codes) or {column: codes[column] for column in one.columns}
        for column in one.columns:
            if column in self.groups:
                settled[column] = look_up(self._group_codes(column), settled[column])
        return one.encode(settled)

    def split(self, records: Records, fine: Sequence[Measurement], seed: int) -> Records:
        """Return records over the columns; coarse groups are split by fine 1-ways, or evenly without one."""
        codes: dict[str, Codes] = {}
        for name in records:
            if name not in self.combined:
                codes[name] = records[name]
                continue
            one = self.combined[name]
            for column, part in zip(one.columns, one.parts(), strict=True):
                codes[column] = part[records[name]]
        if self.groups:
            domain = Domain({name: self.original[name] for name in self.groups})
            released = {one.clique[0]: self._steadied(one) for one in fine}
            even = {name: Measurement((name,), np.ones(size), 1.0) for name, size in domain.items()}
            merged = merge_groups(list({**even, **released}.values()), domain, self.groups)
            drawn = merged.split(Records({name: codes[name] for name in domain}, merged.domain), seed)
            codes.update({name: drawn[name] for name in domain})
        return Records(codes, self.original)

    def over_columns(self, measurement: Measurement) -> Measurement | None:
        """Return a measurement of attributes as one of columns, in buckets where columns are coarse.

        Combinations without a code become cells of 0. Buckets of combined columns are not buckets of each column, so a
        measurement in such buckets has no form over columns: None. Neither have those of groups and functionals.
        """
        if not measurement.whole:
            return None
        values = measurement.values
        clique: list[str] = []
        seen: dict[str, npt.NDArray[np.uint32]] = {}
        for name in measurement.clique:
            if name in self.combined:
                if name in measurement.buckets:
                    return None
                one = self.combined[name]
                moved = np.moveaxis(values, len(clique), 0)
                spread = np.zeros((prod(one.shape), *moved.shape[1:]), dtype=values.dtype)
                spread[one.cells] = moved
                axes = range(len(clique), len(clique) + len(one.shape))
                values = np.moveaxis(spread.reshape(*one.shape, *moved.shape[1:]), range(len(one.shape)), axes)
            for column in self.columns[name]:
                clique.append(column)
                buckets = measurement.buckets.get(column)
                if column in self.groups:
                    groups = self.groups[column]
                    seen[column] = (groups if buckets is None else np.asarray(buckets)[groups]).astype(np.uint32)
                elif buckets is not None:
                    seen[column] = buckets
        return replace(measurement, clique=tuple(clique), values=values, buckets=seen)

    def _steadied(self, one_way: Measurement) -> Measurement:
        """Return a fine 1-way with less noise: steady tails where values have an order, else shrunk group by group."""
        (name,) = one_way.clique
        column = self._held[name]
        if not column.ordered:
            return _steadied(one_way, self.groups[name])
        starts = np.arange(column.size + 1) if column.starts is None else np.asarray(column.starts)
        values = one_way.values.astype(np.float64)
        known = values[: column.size]
        variances = np.full(column.size, one_way.sigma**2)
        steady = steady_tails(known, variances, starts.astype(np.float64), max(float(known.sum()), 1.0))
        return replace(one_way, values=np.append(steady, values[column.size :]))

    def _made_of(self, name: str) -> tuple[str, ...]:
        return self.combined[name].columns if name in self.combined else (name,)

    def _group_codes(self, name: str) -> Codes:
        groups = self.groups[name]
        return groups.astype(code_dtype(int(groups.max()) + 1))


def _settled(one: Combined, codes: Mapping[str, Codes]) -> dict[str, Codes] | None:
    """Return the codes of combined columns, with `others` in rows that are not listed; None if it is not given."""
    own = {column: codes[column] for column in one.columns}
    if one.listed is None or (there := one.listed.holds(codes)).all():
        return own
    if one.others is None:
        return None
    return {
        column: np.where(there, own[column], own[column].dtype.type(code))
        for column, code in zip(one.columns, one.others, strict=True)
    }


def _steadied(one_way: Measurement, groups: npt.NDArray[np.int64]) -> Measurement:
    """Return a fine 1-way shrunk towards the mean of each group, as far as noise explains the differences.

    This is the positive-part James-Stein estimator: for four or more codes its mean squared error is smaller.
    """
    values = one_way.values.astype(np.float64)
    sizes = np.bincount(groups)
    means = np.bincount(groups, weights=values) / sizes
    uneven = np.bincount(groups, weights=(values - means[groups]) ** 2)
    noise = np.maximum(sizes - 3, 0) * one_way.sigma**2
    # Groups of three codes at most stay as they are; those of one code are even, with no noise to explain it.
    shrunk = np.divide(noise, np.maximum(uneven, noise), out=np.zeros_like(uneven), where=noise > 0)
    kept = 1 - shrunk
    return replace(one_way, values=means[groups] + kept[groups] * (values - means[groups]))


def _and(names: Sequence[str]) -> str:
    return " and ".join(repr(name) for name in names)
