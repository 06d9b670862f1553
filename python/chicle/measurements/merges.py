"""Merges: map several values of an attribute to one, and split them again ([P] section 5.3).

A value whose noisy count is below theta * sigma cannot be distinguished from an empty one, and would only add noise to
every marginal it is in. Such values become one *rare* value if their noisy counts add up to more than theta * sigma;
else they vanish. A merge is made from measurements alone, so its maps are public constants: each record is recoded by
itself, a person's k records stay at most k, and no sensitivity changes. A merge is made once and kept with the release.

The paper leaves these points open; chicle decides:

- A private record may hold a value that vanished. It is counted as the attribute's most frequent value; by the released
  counts this concerns about theta * sigma records at most. Nothing is split back into a vanished value.
- Where all values of an attribute would vanish, the most frequent one stays.
- The rare value's noisy count is a sum of m cells and has a standard deviation of sqrt(m) sigma, while a `Measurement`
  has one sigma. It is set to the root mean square over the new cells, so that cells * sigma^2 is still the variance of
  the table's total, by which measurements are weighed against each other.
- Values of an *ordinal* attribute are merged with their neighbours: from the lowest value on, until the sum of m of
  them reaches theta * sigma * sqrt(m). None vanishes, and every group is an interval.
- The noisy counts of vanished values are dropped, as published, so the totals of merged 1-ways may lose about
  theta * sigma each. Estimate the number of records from the 1-ways as they were measured.

Cost: O(values), and one look-up for each record and attribute that changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle._checks import number
from chicle.codes import Codes, code_dtype
from chicle.counting.countable import Expect
from chicle.counting.records import Records
from chicle.domain import Domain
from chicle.errors import DomainError
from chicle.measurements.measurement import Measurement, best_one_ways, onto_simplex
from chicle.query import Maps, Query, QueryLike, as_query

__all__ = ["Change", "Merge", "merge_groups", "merge_rare", "sum_along"]

Floats = npt.NDArray[np.float64]

_MOST_SEEN = 4_096  # arrays of buckets that a merge remembers


@dataclass(frozen=True, eq=False)
class Change:
    """The new codes of one attribute's values.

    Attributes
    ----------
    codes
        For each old value its new one.
    shares
        For each old value, the share of its new one that is split back into it.
    vanish
        Whether values without a share vanished: their noisy counts are then dropped.
    """

    codes: Codes
    shares: Floats
    vanish: bool = False

    @property
    def size(self) -> int:
        """How many values are left."""
        return int(self.codes.max()) + 1


class Merge:
    """Maps from the values of each attribute to fewer, and back.

    Parameters
    ----------
    original
        The attributes as they were.
    changes
        The attributes that change, with their new codes.

    Examples
    --------
    >>> ages = Measurement(("age",), np.array([900, 7, 450, -3, 25, 20]), sigma=10.0)
    >>> merge = merge_rare([ages], {"age": 6})
    >>> merge
    Merge of Domain(age: 6) to Domain(age: 3)
    >>> merge.over(ages).values.tolist()
    [900, 450, 49]
    >>> Records({"age": [0, 1, 2, 3]}, {"age": 6}).view(merge.maps, merge.domain)["age"].tolist()
    [0, 2, 1, 2]
    """

    def __init__(self, original: Domain, changes: Mapping[str, Change] | None = None) -> None:
        self._original = original
        self._changes = dict(changes or {})
        # Arrays of buckets and those made from them, by the identity of the first: tables share them.
        self._seen: dict[tuple[str, str, int], tuple[Any, Any]] = {}
        for name, change in self._changes.items():
            if change.codes.shape != (original[name],):
                raise DomainError(f"the merge of {name!r} needs a new code for each of its {original[name]} values")
        self._domain = Domain(
            {name: self._changes[name].size if name in self._changes else size for name, size in original.items()}
        )

    @property
    def original(self) -> Domain:
        """The attributes as they were."""
        return self._original

    @property
    def domain(self) -> Domain:
        """The attributes with fewer values, in their old order; a rare value comes last."""
        return self._domain

    @property
    def changes(self) -> Mapping[str, Change]:
        """The attributes that change, with their new codes."""
        return self._changes

    @property
    def maps(self) -> Maps:
        """The maps of a view of records with merged values, for `Countable.view`."""
        return {name: (name, self._changes[name].codes if name in self._changes else None) for name in self._original}

    def codes(self, name: str) -> npt.NDArray[np.int64]:
        """Return the new code of each old code of an attribute."""
        self._original.check((name,))
        if name not in self._changes:
            return np.arange(self._original[name])
        return self._changes[name].codes.astype(np.int64)

    def sizes(self, name: str) -> npt.NDArray[np.int64]:
        """Return how many old values each new one of an attribute stands for."""
        return np.bincount(self.codes(name), minlength=self._domain[name])

    def over(self, measurement: Measurement) -> Measurement:
        """Return a measurement over the original attributes as one over the merged ones.

        Counts of merged values are summed; buckets become buckets of the merged values.
        """
        if not self._changes:
            return measurement
        if not measurement.whole:
            raise DomainError(
                f"the measurement of {measurement.clique!r} is of a group or a functional; its values cannot be merged "
                "afterwards; leave it out"
            )
        values, sigma = measurement.values, measurement.sigma
        buckets: dict[str, Any] = {}
        for axis, name in enumerate(self._original.check(measurement.clique)):
            seen = measurement.buckets.get(name)
            change = self._changes.get(name)
            if seen is not None:
                behind = self._factor(name, seen)
                if behind is None:
                    raise DomainError(
                        f"the measurement of {measurement.clique!r} distinguishes values of {name!r} that are merged"
                    )
                if not np.array_equal(behind, np.arange(self._domain[name])):
                    buckets[name] = behind
            elif change is not None:
                before = values.shape[axis]
                values = _summed(values, change, axis)
                sigma = sigma if change.vanish else sigma * math.sqrt(before / change.size)
        return Measurement(measurement.clique, values, sigma, measurement.protected, buckets)

    def behind(self, asked: QueryLike) -> Query:
        """Return a query of the merged attributes as one of the original ones: merged values become buckets."""
        query = as_query(asked)
        for name in query.where:
            if name in self._changes:
                raise DomainError(
                    f"the values of {name!r} are merged; a group must be a code of an attribute that is not"
                )
        buckets = {}
        for name in query.clique:
            given = query.buckets.get(name)
            if name not in self._changes:
                if given is not None:
                    buckets[name] = given
            else:
                buckets[name] = self._behind(name, given)
        return Query(query.clique, buckets, query.where, query.functional)

    def expect(self, expect: Expect) -> Expect:
        """Return the expectation over the original attributes, given the one over the merged attributes.

        The count of a merged value is split by the shares of its old values. Queries have no functional.
        """

        def expected(queries: Sequence[QueryLike]) -> list[Floats]:
            # A group is a code of an original attribute: its slice is taken at the end.
            asked = [as_query(one) for one in queries]
            whole = [Query((*query.where, *query.clique), query.buckets) for query in asked]
            tables = zip(asked, whole, expect([self._inner(query) for query in whole]), strict=True)
            return [self._split_table(table, full)[tuple(query.where.values())] for query, full, table in tables]

        return expected

    def amounts(self, amounts: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the number that each merged value stands for: the mean of those of its values, by their shares."""
        means = dict(amounts)
        for name in amounts.keys() & self._changes.keys():
            codes, shares = self._changes[name].codes, self._changes[name].shares
            known = np.where(np.isfinite(amounts[name]), shares, 0.0)
            sums = np.bincount(codes, known * np.nan_to_num(amounts[name]))
            masses = np.bincount(codes, known)
            means[name] = np.divide(sums, masses, out=np.full(sums.size, np.nan), where=masses > 0)
        return means

    def split(self, records: Records, seed: int | None = None) -> Records:
        """Return synthetic records over the original domain; merged values are split by their shares.

        Parameters
        ----------
        records
            Records over the merged domain.
        seed
            Fixes which of the records with a merged value gets which of its values.
        """
        if records.domain != self._domain:
            raise DomainError("only records over the merged domain can be split")
        rng = np.random.default_rng(seed)
        columns = {
            name: _split(records[name], self._changes[name], size, rng) if name in self._changes else records[name]
            for name, size in self._original.items()
        }
        return Records(columns, self._original, max_records_per_person=records.max_records_per_person)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the merge as arrays, for a file."""
        arrays: dict[str, npt.NDArray[Any]] = {}
        for name, change in self._changes.items():
            place = self._original.position(name)
            arrays[f"merge-{place}-codes"] = change.codes.astype(np.uint32)
            arrays[f"merge-{place}-shares"] = change.shares
            arrays[f"merge-{place}-vanish"] = np.array(change.vanish, dtype=np.uint8)
        return arrays

    @classmethod
    def from_arrays(cls, original: Domain, arrays: Mapping[str, npt.NDArray[Any]]) -> Merge:
        """Return the merge that `to_arrays` wrote; arrays that are no merge of the domain are an error."""
        changes = {}
        for place, (name, size) in enumerate(original.items()):
            if f"merge-{place}-codes" not in arrays:
                continue
            codes, shares, vanish = (arrays[f"merge-{place}-{part}"] for part in ("codes", "shares", "vanish"))
            new = int(codes.max(initial=0)) + 1
            fits = codes.shape == shares.shape == (size,) and new <= size and np.isfinite(shares).all()
            if not fits or (shares < 0).any() or (np.abs(np.bincount(codes, shares, minlength=new) - 1) > 1e-6).any():
                raise DomainError(f"the merge of {name!r} does not fit its values")
            changes[name] = Change(codes.astype(code_dtype(new)), shares.astype(np.float64), bool(vanish))
        return cls(original, changes)

    def _behind(self, name: str, given: npt.NDArray[np.uint32] | None) -> npt.NDArray[np.uint32]:
        """Return the bucket of each original value, given that of each merged one."""
        codes = self._changes[name].codes
        if given is None:
            return np.asarray(self._kept("codes", name, codes, lambda array: array.astype(np.uint32)))
        return np.asarray(self._kept("behind", name, given, lambda array: np.asarray(array, np.uint32)[codes]))

    def _factor(self, name: str, seen: npt.NDArray[Any]) -> npt.NDArray[np.uint32] | None:
        """Return the bucket of each merged value; None where a bucket cuts one in two."""

        def factor(array: npt.NDArray[Any]) -> npt.NDArray[np.uint32] | None:
            codes = self.codes(name)
            behind = np.zeros(self._domain[name], dtype=np.uint32)
            behind[codes] = array
            return behind if array.shape == codes.shape and (behind[codes] == array).all() else None

        found: npt.NDArray[np.uint32] | None = self._kept("factor", name, seen, factor)
        return found

    def _kept(self, what: str, name: str, array: Any, make: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - arrays
        """Return `make(array)`, computed once for each array."""
        key = what, name, id(array)
        if key not in self._seen:
            if len(self._seen) >= _MOST_SEEN:
                self._seen.clear()
            self._seen[key] = array, make(array)  # the array is held, so that its identity stays its own
        return self._seen[key][1]

    def _inner(self, query: Query) -> QueryLike:
        """Return the query of the merged attributes to ask: in buckets where they are unions of merged values."""
        seen = {name: self._factor(name, np.asarray(codes)) for name, codes in query.buckets.items()}
        buckets = {name: behind for name, behind in seen.items() if behind is not None}
        return Query(query.clique, buckets) if buckets else query.clique

    def _split_table(self, table: Floats, query: Query) -> Floats:
        """Return the answer to a query of the original attributes, given that to `_inner` of it."""
        for axis, name in enumerate(query.clique):
            seen = query.buckets.get(name)
            if name not in self._changes or (seen is not None and self._factor(name, np.asarray(seen)) is not None):
                continue
            change = self._changes[name]
            shape = [-1 if i == axis else 1 for i in range(table.ndim)]
            table = np.take(table, change.codes, axis=axis) * change.shares.reshape(shape)
            if seen is not None:
                table = sum_along(table, np.asarray(seen), axis)
        return table

    def __reduce__(self) -> tuple[type[Merge], tuple[object, ...]]:
        return Merge, (self._original, self._changes)

    def __repr__(self) -> str:
        return f"Merge of {self._original!r} to {self._domain!r}"


def merge_rare(
    one_ways: Sequence[Measurement],
    domain: Mapping[str, int],
    *,
    theta: float = 3.0,
    least: float = 0.0,
    ordinal: Collection[str] = (),
    vanish: bool = True,
    apart: Mapping[str, int] | None = None,
) -> Merge:
    """Merge the rare values of every attribute, by released 1-ways.

    Parameters
    ----------
    one_ways
        At least one measurement of each single attribute; the most precise one is used.
    domain
        The attributes.
    theta
        Values with a noisy count of at least this many sigmas are kept; 0 keeps all that are not negative.
    least
        And of at least so many records, where values are not merged with their neighbours.
    ordinal
        Attributes whose values have an order: neighbours are merged.
    vanish
        Whether low values vanish where their sum is low too; else two or more of them become a rare value.
    apart
        How many last values of an attribute are never merged, whatever their counts.
    """
    domain = Domain.of(domain)
    theta, least = number("theta", theta), number("least", least)

    def change(one_way: Measurement) -> Change | None:
        if one_way.clique[0] in ordinal:
            return _merge_neighbours(one_way, theta)
        return _merge_rare(one_way, max(theta * one_way.sigma, least), vanish=vanish)

    kept = {} if apart is None else apart
    changes = {
        name: _but_for_last(one_way, kept[name], change) if kept.get(name) else change(one_way)
        for name, one_way in best_one_ways(one_ways, domain).items()
    }
    return Merge(domain, {name: change for name, change in changes.items() if change is not None})


def merge_groups(
    one_ways: Sequence[Measurement], domain: Mapping[str, int], groups: Mapping[str, npt.NDArray[np.int64]]
) -> Merge:
    """Merge the values of every attribute by given groups; they are split again in the ratios of released 1-ways.

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
    >>> ages = Measurement(("age",), np.array([90, 10, 50, -3]), sigma=10.0)
    >>> merge_groups([ages], {"age": 4}, {"age": np.array([0, 0, 1, 1])}).over(ages).values.tolist()
    [100, 47]
    """
    domain = Domain.of(domain)
    best = best_one_ways(one_ways, domain)
    return Merge(domain, {name: _as_one(one_way, groups[name]) for name, one_way in best.items()})


def _but_for_last(one_way: Measurement, number: int, change: Callable[[Measurement], Change | None]) -> Change | None:
    """Return the change of an attribute whose last values stay as they are."""
    values = one_way.values.size - number
    made = change(replace(one_way, values=one_way.values[:values])) if values > 0 else None
    if made is None:
        return None
    codes = np.append(made.codes.astype(np.int64), made.size + np.arange(number))
    return Change(codes.astype(code_dtype(made.size + number)), np.append(made.shares, np.ones(number)), made.vanish)


def _merge_rare(one_way: Measurement, threshold: float, *, vanish: bool) -> Change | None:
    values = one_way.values
    low = values < threshold
    if not low.any() or (not vanish and low.sum() == 1):
        return None
    kept, merged = np.flatnonzero(~low), np.flatnonzero(low)
    if vanish and values[merged].sum() <= threshold:
        if not kept.size:
            kept = np.array([values.argmax()])
        codes = np.full(values.size, np.searchsorted(kept, kept[values[kept].argmax()]))
        codes[kept] = np.arange(kept.size)
        shares = np.zeros(values.size)
        shares[kept] = 1.0
        return Change(codes.astype(code_dtype(kept.size)), shares, vanish=True)
    codes = np.full(values.size, kept.size)
    codes[kept] = np.arange(kept.size)
    return _as_one(one_way, codes)


def _merge_neighbours(one_way: Measurement, theta: float) -> Change | None:
    values, sigma = one_way.values, one_way.sigma
    codes = np.empty(values.size, dtype=np.int64)
    group, total, length = 0, 0.0, 0
    for code, value in enumerate(values.tolist()):
        codes[code] = group
        total, length = total + value, length + 1
        if total >= theta * sigma * math.sqrt(length):
            group, total, length = group + 1, 0.0, 0
    # The values left over at the end join the last group.
    codes = np.minimum(codes, max(group - 1, 0))
    return None if codes[-1] == values.size - 1 else _as_one(one_way, codes)


def _as_one(one_way: Measurement, codes: npt.NDArray[np.int64]) -> Change:
    """Return the change to these new codes; values are split again in the ratios of their noisy counts."""
    values, cells = one_way.values, int(codes.max()) + 1
    sums = np.bincount(codes, weights=values, minlength=cells)
    shares = np.ones(values.size)
    several = np.flatnonzero(np.bincount(codes, minlength=cells) > 1)
    for total, group in zip(sums[several], _places(codes, several), strict=True):
        weights = onto_simplex(values[group], max(float(total), 1.0))
        shares[group] = weights / weights.sum()
    return Change(codes.astype(code_dtype(cells)), shares)


def _summed(values: npt.NDArray[Any], change: Change, axis: int) -> npt.NDArray[Any]:
    """Return a table with the cells of merged values summed along an axis."""
    if change.vanish:
        kept = np.flatnonzero(change.shares > 0)
        return np.take(values, kept, axis=axis)
    return sum_along(values, change.codes, axis)


def sum_along(values: npt.NDArray[Any], codes: npt.NDArray[Any], axis: int) -> npt.NDArray[Any]:
    """Sum the cells of a table that have the same new code along an axis."""
    moved = np.moveaxis(values, axis, 0)
    summed = np.zeros((int(codes.max()) + 1, *moved.shape[1:]), dtype=values.dtype)
    np.add.at(summed, codes, moved)
    return np.ascontiguousarray(np.moveaxis(summed, 0, axis))


def _split(codes: Codes, change: Change, cardinality: int, rng: np.random.Generator) -> Codes:
    held = np.flatnonzero(change.shares > 0)
    members = np.bincount(change.codes[held])
    back = np.zeros(members.size, dtype=code_dtype(cardinality))
    back[change.codes[held]] = held
    old = back[codes]
    several = np.flatnonzero(members > 1)
    groups = (held[at] for at in _places(change.codes[held], several))
    for rows, group in zip(_places(codes, several), groups, strict=True):
        old[rows] = rng.permutation(np.repeat(group, _apportion(change.shares[group], rows.size, rng)))
    return old


def _places(codes: npt.NDArray[Any], wanted: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """Return the positions of each wanted code, by sorting once."""
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=int(wanted.max(initial=0)) + 1))
    return [order[ends[code - 1] if code else 0 : ends[code]] for code in wanted]


def _apportion(expected: Floats, total: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Scale to integers that add up to `total`, each unbiased (systematic sampling)."""
    if total == 0:
        return np.zeros(expected.size, dtype=np.int64)
    edges = np.concatenate([[0.0], np.cumsum(expected)])
    marks = np.floor(edges * (total / edges[-1]) + rng.random()).astype(np.int64)
    marks[-1] = marks[0] + total
    counts: npt.NDArray[np.int64] = np.diff(np.minimum(marks, marks[-1]))
    return counts
