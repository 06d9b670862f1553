"""The values of an attribute as an axis of a drawing: labelled, and grouped so that they fit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle._html import cut
from chicle.codecs.labels import value_labels
from chicle.schema import Schema

__all__ = ["Axis", "Labels"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_LONGEST = 300  # letters of a label, in full


@dataclass(frozen=True, eq=False)
class Axis:
    """Groups of codes, in the order in which they are drawn.

    Attributes
    ----------
    name
        The attribute.
    into
        The group of each code, or of each bucket where the attribute is seen in buckets.
    labels
        Each group in words.
    ordered
        Whether neighbouring groups are neighbouring values.
    ends
        The first and the last value in words.
    rest
        Whether the last group holds all values for which there was no room; it may be larger than any single value.
    """

    name: str
    into: Ints
    labels: tuple[str, ...]
    ordered: bool
    ends: tuple[str, str]
    rest: bool

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def named(self) -> int:
        """How many groups there are without the rest."""
        return len(self) - self.rest

    def grouped(self, values: npt.NDArray[Any], axis: int = 0) -> Floats:
        """Return values added up by group along an axis."""
        moved = np.moveaxis(np.asarray(values, dtype=np.float64), axis, 0)
        sums = np.zeros((len(self), *moved.shape[1:]))
        np.add.at(sums, self.into, moved)
        return np.moveaxis(sums, 0, axis)


class Labels:
    """What the codes of a schema's attributes stand for, in words."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._texts: dict[str, list[str]] = {}

    def axis(self, name: str, weights: npt.NDArray[Any], most: int, buckets: npt.NDArray[Any] | None = None) -> Axis:
        """Return an axis of at most so many groups.

        Neighbouring values of an ordered attribute are merged, except the missing value. Of an unordered attribute the
        most frequent values are kept, and the rest becomes one group.

        Parameters
        ----------
        name
            The attribute.
        weights
            How often each code, or each bucket, occurs.
        most
            How many groups there may be.
        buckets
            The bucket of each code, where the attribute is seen in buckets.
        """
        cardinality = self._schema.domain[name]
        codes_of = np.arange(cardinality) if buckets is None else np.asarray(buckets, dtype=np.int64)
        first, last = _ends(codes_of, len(weights))
        missing = self._missing(name)
        lone = int(codes_of[missing]) if missing is not None and (codes_of == codes_of[missing]).sum() == 1 else None
        ordered = name in self._schema.ordinal
        into = _neighbours(len(weights), most, lone) if ordered else _heaviest(weights, most)
        sizes = np.bincount(into[codes_of], minlength=int(into.max()) + 1)
        labels = []
        for group, size in enumerate(sizes.tolist()):
            members = np.flatnonzero(into == group)
            if ordered:
                labels.append(self._span(name, int(first[members].min()), int(last[members].max())))
            elif len(members) > 1:
                labels.append(f"{size} others")
            else:
                more = "" if size == 1 else f" + {size - 1}"
                labels.append(self.text(name, int(first[members[0]])) + more)
        ends = (self.text(name, 0), self.text(name, cardinality - 1))
        return Axis(name, into, tuple(labels), ordered, ends, rest=not ordered and len(weights) > most)

    def text(self, name: str, code: int) -> str:
        """Return what a code stands for."""
        if name not in self._texts:
            self._texts[name] = value_labels(self._schema, name)
        return cut(self._texts[name][code], _LONGEST)

    def _span(self, name: str, first: int, last: int) -> str:
        return self.text(name, first) if first == last else f"{self.text(name, first)} … {self.text(name, last)}"

    def _missing(self, name: str) -> int | None:
        column = self._schema.columns.get(name)
        return column.size if column is not None and column.modelled and column.missing else None


def _ends(codes_of: Ints, buckets: int) -> tuple[Ints, Ints]:
    """Return the first and the last code of each bucket; 0 if it has none."""
    first, last = np.zeros(buckets, dtype=np.int64), np.zeros(buckets, dtype=np.int64)
    codes = np.arange(codes_of.size)
    last[codes_of] = codes
    first[codes_of[::-1]] = codes[::-1]
    return first, last


def _neighbours(units: int, most: int, lone: int | None) -> Ints:
    """Merge neighbours into groups of equal size, since a larger group would look like a peak; `lone` stays alone."""
    others = units if lone is None else units - 1
    into = np.arange(others) // max(math.ceil(others / max(most - (lone is not None), 1)), 1)
    return into if lone is None else np.insert(into, lone, into.max(initial=-1) + 1)


def _heaviest(weights: npt.NDArray[Any], most: int) -> Ints:
    """Keep the most frequent values, in their own order if all fit, else by weight; the rest is the last group."""
    if len(weights) <= most:
        return np.arange(len(weights))
    order = np.argsort(-np.asarray(weights, dtype=np.float64), kind="stable")
    into = np.full(len(weights), most - 1)
    into[order[: most - 1]] = np.arange(most - 1)
    return into
