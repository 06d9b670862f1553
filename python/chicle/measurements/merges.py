"""Filter and combine values of low count ([P] section 5.3), and undo it after generation.

From released 1-ways alone: a value whose noisy count is below theta * sigma cannot be told from an empty one, and would
only add noise to every marginal it is in. Such values become one *rare* value if their noisy counts add up to more than
theta * sigma; else they vanish. Everything here is computed from measurements, so the maps are public constants: each
record is encoded by itself, a person's k records stay at most k, and no sensitivity changes.

What the paper leaves open, and what is done here:

- A private record may hold a value that vanished. It must count somewhere; it goes to the attribute's most frequent
  value, which by the released counts concerns about theta * sigma records at most. Nothing is decoded to a vanished
  value.
- Where nothing is left of an attribute, its most frequent value stays.
- The rare value's noisy count is a sum of m cells and has a standard deviation of sqrt(m) sigma, while a `Measurement`
  has one sigma. It is set to the root mean square over the new cells, so that cells * sigma^2 is still the variance of
  the table's total, by which measurements are weighed against each other. The cells that were kept are then trusted
  too little rather than the rare one too much.
- Neighbours of an *ordinal* attribute belong together: from the lowest value on they are merged until their sum stands
  out, theta * sigma * sqrt(m) for m of them; none vanishes, and a group stays an interval.
- The noisy counts of vanished values are dropped, as published, so the totals of the new 1-ways may lose about
  theta * sigma each. Estimate the number of records from the original 1-ways.

Cost: O(values), and for encoding and decoding one look-up for each record and attribute that changes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from chicle._checks import number
from chicle.counting.records import Codes, Records, Rows, code_dtype
from chicle.denoising.consistency import onto_simplex
from chicle.domain import Domain
from chicle.errors import DomainError
from chicle.measurements.measurement import Measurement, best_one_ways

__all__ = ["Compression", "compress", "grouped", "over_compressed", "over_original"]


def compress(
    one_ways: Sequence[Measurement],
    domain: Mapping[str, int],
    *,
    theta: float = 3.0,
    ordinal: Collection[str] = (),
    vanish: bool = True,
) -> Compression:
    """Merge the values of low count of every attribute, by released 1-ways.

    Parameters
    ----------
    one_ways
        At least one measurement of each single attribute; the most precise one is used.
    domain
        The attributes.
    theta
        How many sigmas a noisy count must reach for its value to be kept; 0 keeps all that are not negative.
    ordinal
        Attributes whose values have an order: neighbours are merged.
    vanish
        Whether values that do not stand out even together vanish; else two and more of them become a rare value.

    Examples
    --------
    >>> import numpy as np
    >>> ages = Measurement(("age",), np.array([900, 7, 450, -3, 25, 20]), sigma=10.0)
    >>> compression = compress([ages], {"age": 6})
    >>> compression
    Compression of Domain(age: 6) to Domain(age: 3)
    >>> compression.one_ways[0].values.tolist()
    [900, 450, 49]
    >>> compression.encode(Records({"age": [0, 1, 2, 3]}, {"age": 6}))["age"].tolist()
    [0, 2, 1, 2]
    """
    domain = domain if isinstance(domain, Domain) else Domain(domain)
    theta = number("theta", theta)
    changes = {
        name: _merge_neighbours(one_way, theta) if name in ordinal else _merge_rare(one_way, theta, vanish=vanish)
        for name, one_way in best_one_ways(one_ways, domain).items()
    }
    return Compression(domain, changes)


def grouped(
    one_ways: Sequence[Measurement], domain: Mapping[str, int], groups: Mapping[str, npt.NDArray[np.int64]]
) -> Compression:
    """Merge the values of every attribute by given groups; released 1-ways say how they are split again.

    Parameters
    ----------
    one_ways
        A measurement of each single attribute.
    domain
        The attributes.
    groups
        For each attribute the group of each of its values, from 0 on.

    Examples
    --------
    >>> import numpy as np
    >>> ages = Measurement(("age",), np.array([90, 10, 50, -3]), sigma=10.0)
    >>> grouped([ages], {"age": 4}, {"age": np.array([0, 0, 1, 1])}).one_ways[0].values.tolist()
    [100, 47]
    """
    domain = domain if isinstance(domain, Domain) else Domain(domain)
    return Compression(
        domain, {name: _merged(one_way, groups[name]) for name, one_way in best_one_ways(one_ways, domain).items()}
    )


@dataclass(frozen=True, eq=False)
class _Change:
    """What becomes of one attribute's values."""

    one_way: Measurement
    """The released counts of the new values."""
    codes: Codes | None = None
    """For each old value its new one; ``None`` where nothing changes."""
    shares: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    """For each old value, which part of its new one is decoded to it."""


class Compression:
    """Maps from the values of each attribute to fewer, and back; made by `compress`."""

    def __init__(self, original: Domain, changes: Mapping[str, _Change]) -> None:
        self._original = original
        self._changes = dict(changes)
        self._domain = Domain({name: change.one_way.values.size for name, change in changes.items()})

    @property
    def original(self) -> Domain:
        """The attributes as they were."""
        return self._original

    @property
    def domain(self) -> Domain:
        """The attributes with fewer values, in their old order; a rare value comes last."""
        return self._domain

    @property
    def one_ways(self) -> list[Measurement]:
        """The released 1-ways of the new domain; the module's header tells what their sigma is."""
        return [change.one_way for change in self._changes.values()]

    def codes(self, name: str) -> npt.NDArray[np.int64]:
        """Return the new code of each old code of an attribute."""
        self._original.check((name,))
        codes = self._changes[name].codes
        return np.arange(self._original[name]) if codes is None else codes.astype(np.int64)

    def encode(self, records: Rows) -> Rows:
        """Return records over the new domain; they are as private as those given, with the same k."""
        if records.domain != self._original:
            raise DomainError("only records over the domain that was compressed can be encoded")
        columns = {name: (name, change.codes) for name, change in self._changes.items()}
        return cast("Rows", records.recode(columns, self._domain))

    def decode(self, records: Records, seed: int | None = None) -> Records:
        """Return synthetic records over the original domain; rare values are split by the noisy 1-way counts.

        Parameters
        ----------
        records
            Records over the new domain.
        seed
            Fixes which of the records with a rare value gets which of the values merged into it.
        """
        if records.domain != self._domain:
            raise DomainError("only records over the compressed domain can be decoded")
        rng = np.random.default_rng(seed)
        columns = {
            name: records[name] if change.codes is None else _decode(records[name], change, self._original[name], rng)
            for name, change in self._changes.items()
        }
        return Records(columns, self._original, max_records_per_person=records.max_records_per_person)

    def __repr__(self) -> str:
        return f"Compression of {self._original!r} to {self._domain!r}"


def over_original(table: Measurement, compression: Compression) -> Measurement:
    """Return a table over the compressed domain as one over the original, in buckets where values were merged."""
    seen: dict[str, npt.ArrayLike] = {}
    for name in table.clique:
        codes = compression.codes(name)
        buckets = table.coarsening.get(name)
        if buckets is not None or compression.domain[name] != compression.original[name]:
            seen[name] = codes if buckets is None else np.asarray(buckets)[codes]
    return replace(table, coarsening=seen)


def over_compressed(table: Measurement, compression: Compression) -> Measurement:
    """Return a table over the original domain as one over the compressed: what `over_original` was given."""
    seen: dict[str, npt.ArrayLike] = {}
    for name in compression.original.check(table.clique):
        codes, size = compression.codes(name), compression.domain[name]
        buckets = table.coarsening.get(name)
        old = np.arange(codes.size) if buckets is None else np.asarray(buckets)
        new = np.zeros(size, dtype=np.uint32)
        new[codes] = old
        if old.shape != codes.shape or (new[codes] != old).any():
            raise DomainError(f"the measurement of {table.clique!r} tells values of {name!r} apart that are one")
        if not np.array_equal(new, np.arange(size)):
            seen[name] = new
    return replace(table, coarsening=seen)


def _merge_rare(one_way: Measurement, theta: float, *, vanish: bool) -> _Change:
    values, threshold = one_way.values, theta * one_way.sigma
    low = values < threshold
    if not low.any() or (not vanish and low.sum() == 1):
        return _Change(one_way)
    kept, merged = np.flatnonzero(~low), np.flatnonzero(low)
    rare = values[merged].sum()
    if vanish and rare <= threshold:
        if not kept.size:
            kept = np.array([values.argmax()])
        codes = np.full(values.size, np.searchsorted(kept, kept[values[kept].argmax()]))
        codes[kept] = np.arange(kept.size)
        shares = np.zeros(values.size)
        shares[kept] = 1.0
        return _Change(replace(one_way, values=values[kept]), codes.astype(code_dtype(kept.size)), shares)
    codes = np.full(values.size, kept.size)
    codes[kept] = np.arange(kept.size)
    return _merged(one_way, codes)


def _merge_neighbours(one_way: Measurement, theta: float) -> _Change:
    values, sigma = one_way.values, one_way.sigma
    codes = np.empty(values.size, dtype=np.int64)
    group, total, length = 0, 0.0, 0
    for code, value in enumerate(values.tolist()):
        codes[code] = group
        total, length = total + value, length + 1
        if total >= theta * sigma * math.sqrt(length):
            group, total, length = group + 1, 0.0, 0
    # What is left over at the end joins the last group.
    codes = np.minimum(codes, max(group - 1, 0))
    return _Change(one_way) if codes[-1] == values.size - 1 else _merged(one_way, codes)


def _merged(one_way: Measurement, codes: npt.NDArray[np.int64]) -> _Change:
    """Return the change that gives each old value the new one in `codes`."""
    values, cells = one_way.values, int(codes.max()) + 1
    sums = np.bincount(codes, weights=values, minlength=cells)
    shares = np.ones(values.size)
    several = np.flatnonzero(np.bincount(codes, minlength=cells) > 1)
    for total, group in zip(sums[several], _places(codes, several), strict=True):
        weights = onto_simplex(values[group], max(float(total), 1.0))
        shares[group] = weights / weights.sum()
    sigma = one_way.sigma * math.sqrt(values.size / cells)
    counts: npt.NDArray[Any] = sums.astype(values.dtype)
    new = replace(one_way, values=counts, sigma=sigma)
    return _Change(new, codes.astype(code_dtype(cells)), shares)


def _decode(codes: Codes, change: _Change, cardinality: int, rng: np.random.Generator) -> Codes:
    assert change.codes is not None  # noqa: S101 - the caller's case
    members = np.bincount(change.codes[change.shares > 0])
    back = np.zeros(members.size, dtype=code_dtype(cardinality))
    back[change.codes[change.shares > 0]] = np.flatnonzero(change.shares > 0)
    old = back[codes]
    several = np.flatnonzero(members > 1)
    held = np.flatnonzero(change.shares > 0)
    for rows, group in zip(
        _places(codes, several), (held[at] for at in _places(change.codes[held], several)), strict=True
    ):
        old[rows] = rng.permutation(np.repeat(group, _apportion(change.shares[group], rows.size, rng)))
    return old


def _places(codes: npt.NDArray[Any], wanted: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """Return where each wanted code stands, by sorting once."""
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=int(wanted.max(initial=0)) + 1))
    return [order[ends[code - 1] if code else 0 : ends[code]] for code in wanted]


def _apportion(expected: npt.NDArray[np.float64], total: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Scale to integers that add up to `total`, each right on average (systematic sampling)."""
    if total == 0:
        return np.zeros(expected.size, dtype=np.int64)
    edges = np.concatenate([[0.0], np.cumsum(expected)])
    marks = np.floor(edges * (total / edges[-1]) + rng.random()).astype(np.int64)
    marks[-1] = marks[0] + total
    counts: npt.NDArray[np.int64] = np.diff(np.minimum(marks, marks[-1]))
    return counts
