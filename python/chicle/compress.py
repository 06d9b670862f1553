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
- The noisy counts of vanished values are dropped, as published, so the totals of the new 1-ways may lose about
  theta * sigma each. Estimate the number of records from the original 1-ways.

Cost: O(values), and for encoding and decoding one look-up for each record and attribute that changes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from chicle.domain import Domain
from chicle.errors import DomainError, ParameterError
from chicle.generate.targets import apportion, onto_simplex
from chicle.measure import Measurement, best_one_ways
from chicle.records import Codes, Records, code_dtype

__all__ = ["Compression", "compress"]


def compress(one_ways: Sequence[Measurement], domain: Mapping[str, int], *, theta: float = 3.0) -> Compression:
    """Merge the values of low count of every attribute, by released 1-ways.

    Parameters
    ----------
    one_ways
        At least one measurement of each single attribute; the most precise one is used.
    domain
        The attributes.
    theta
        How many sigmas a noisy count must reach for its value to be kept; 0 keeps all that are not negative.

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
    if not 0 <= theta < math.inf:
        raise ParameterError(f"theta must be finite and at least 0, not {theta!r}")
    changes = {name: _change(one_way, theta) for name, one_way in best_one_ways(one_ways, domain).items()}
    return Compression(domain, changes)


@dataclass(frozen=True, eq=False)
class _Change:
    """What becomes of one attribute's values."""

    one_way: Measurement
    """The released counts of the new values."""
    codes: Codes | None
    """For each old value its new one; ``None`` where nothing changes."""
    kept: npt.NDArray[np.int64]
    """The old values of the new ones, but for the rare one, which is last."""
    merged: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """The old values that became the rare one."""
    shares: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    """How much of the rare value belongs to each of them."""


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
        """The attributes with fewer values: the kept ones in their old order, then the rare one if there is any."""
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

    def encode(self, records: Records) -> Records:
        """Return records over the new domain; they are as private as those given, with the same k."""
        if records.domain != self._original:
            raise DomainError("only records over the domain that was compressed can be encoded")
        columns = {
            name: records[name] if change.codes is None else change.codes[records[name]]
            for name, change in self._changes.items()
        }
        return Records(columns, self._domain, max_records_per_person=records.max_records_per_person)

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


def _change(one_way: Measurement, theta: float) -> _Change:
    values, sigma = one_way.values, one_way.sigma
    threshold = theta * sigma
    low = values < threshold
    if not low.any():
        return _Change(one_way, None, np.arange(values.size))
    kept, merged = np.flatnonzero(~low), np.flatnonzero(low)
    rare = values[merged].sum()
    if rare <= threshold:
        if not kept.size:
            kept = np.array([values.argmax()])
        codes = np.full(values.size, np.searchsorted(kept, kept[values[kept].argmax()]))
        codes[kept] = np.arange(kept.size)
        new = replace(one_way, values=values[kept])
        return _Change(new, codes.astype(code_dtype(kept.size)), kept)
    cells = kept.size + 1
    codes = np.full(values.size, kept.size)
    codes[kept] = np.arange(kept.size)
    new = replace(one_way, values=np.append(values[kept], rare), sigma=sigma * math.sqrt(values.size / cells))
    shares = onto_simplex(values[merged], float(rare))
    return _Change(new, codes.astype(code_dtype(cells)), kept, merged, shares / shares.sum())


def _decode(codes: Codes, change: _Change, cardinality: int, rng: np.random.Generator) -> Codes:
    back = np.append(change.kept, 0) if change.merged.size else change.kept
    old = back.astype(code_dtype(cardinality))[codes]
    if change.merged.size:
        rows = np.flatnonzero(codes == change.kept.size)
        split = np.repeat(change.merged, apportion(change.shares, rows.size, rng))
        old[rows] = rng.permutation(split)
    return old
