"""Records of one partition, from a pool of records of the whole table. Everything here is free.

The pool's rows get weights with which its 1-ways are those of the partition: raking, which is the distribution nearest
to the pool's, in relative entropy, that has them. Rows are drawn systematically by these weights, and descend towards
the 1-ways and the weighted pairs, so that they vary less than a random sample of rows would.

Cost: for each partition a few passes over a slice of the pool for each attribute, one for each pair, and three sweeps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from chicle.counting.records import Records
from chicle.domain import Clique, Domain
from chicle.measurements.measurement import Measurement
from chicle.models.descent import Descent

__all__ = ["Pool", "rake", "systematic"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_RAKING = 12  # rounds
_CLOSE = 2e-3  # total variation at which raking ends
_FACTORS = (1e-3, 1e3)
_LEAST = 1e-7  # share of a value that no row of a partition may seem to have
_SWEEPS = 3
_PAIRS = 400  # most pairs that records descend on, and the most cells of each
_CELLS = 20_000
_SIGMA_PAIRS = 3.0  # of 1-ways' noise: weighted pairs are estimates, the 1-ways were measured
_THRESHOLD = 0.3

_SLICE, _TIMES = 20_000, 6  # rows of the pool that one partition sees: at least, and for each of its own


def rake(codes: Mapping[str, Ints], shares: Mapping[str, Floats]) -> Floats:
    """Return weights, adding up to 1, with which rows have the given shares, as nearly as rounds of raking get.

    Parameters
    ----------
    codes
        The codes of each attribute.
    shares
        The wanted shares of its values. Values that no row has stay without weight.
    """
    rows = len(next(iter(codes.values())))
    weights = np.full(rows, 1 / rows)
    for _ in range(_RAKING):
        worst = 0.0
        for name, column in codes.items():
            wanted = shares[name]
            now = np.bincount(column, weights, minlength=wanted.size)
            worst = max(worst, float(np.abs(now - wanted).sum()))
            factor = np.divide(wanted, now, out=np.ones(wanted.size), where=now > 0)
            weights *= np.clip(factor, *_FACTORS)[column]
        weights /= weights.sum()
        if worst < 2 * _CLOSE:
            break
    return weights


def systematic(weights: Floats, n: int, rng: np.random.Generator) -> Ints:
    """Return `n` row numbers, each row as often as its weight says, but for rounding; in random order.

    Examples
    --------
    >>> systematic(np.array([0.5, 0.25, 0.25]), 4, np.random.default_rng(0)).tolist()
    [2, 1, 0, 0]
    """
    marks = np.floor(np.cumsum(weights) * (n / weights.sum()) + rng.random()).astype(np.int64)
    marks = np.minimum(marks, n)
    marks[-1:] = n
    return rng.permutation(np.repeat(np.arange(len(weights)), np.diff(marks, prepend=0)))


@dataclass(frozen=True, eq=False)
class Pool:
    """Records of the whole table, without the attributes of the partition.

    Attributes
    ----------
    records
        The records, in random order.
    pairs
        The pairs that records of partitions descend on.
    """

    records: Records
    pairs: tuple[Clique, ...]

    @classmethod
    def of(cls, records: Records, threads: int | None) -> Pool:
        """Return a pool with its pairs: those that depend most, where there are many."""
        domain = records.domain
        pairs = [pair for pair in combinations(domain, 2) if domain.cells(pair) <= _CELLS]
        if len(pairs) > _PAIRS:
            depends = dict(zip(pairs, records.dependence(pairs, threads=threads).tolist(), strict=True))
            pairs = sorted(sorted(pairs, key=lambda pair: -depends[pair])[:_PAIRS], key=pairs.index)
        return cls(records, tuple(pairs))

    def make(self, shares: Mapping[str, Floats], n: int, seed: Sequence[int]) -> Records:
        """Return `n` records with given 1-ways, which are otherwise like the pool.

        Parameters
        ----------
        shares
            The shares of the values of each attribute.
        n
            How many records.
        seed
            Fixes what is drawn.
        """
        rng = np.random.default_rng(list(seed))
        rows = len(self.records)
        seen = min(rows, max(_SLICE, _TIMES * n))
        begin = int(rng.integers(rows - seen + 1))
        codes = {name: self.records[name][begin : begin + seen].astype(np.int64) for name in self.records}
        wanted = {name: np.maximum(share, _LEAST) for name, share in shares.items()}
        wanted = {name: share / share.sum() for name, share in wanted.items()}
        weights = rake(codes, wanted)
        drawn = systematic(weights, n, rng)
        start = Records({name: column[drawn] for name, column in codes.items()}, self.records.domain)
        targets = [Measurement((name,), share * n, 1.0) for name, share in wanted.items()]
        targets += _pair_targets(codes, weights, self.pairs, self.records.domain, n)
        descent = Descent(
            targets,
            self.records.domain,
            start=start,
            threshold=_THRESHOLD,
            seed=int(rng.integers(2**31)),
            threads=1,
        )
        last = descent.loss
        for _ in range(_SWEEPS):
            descent.sweep()
            if descent.loss > 0.9 * last:
                break
            last = descent.loss
        return descent.finish()


def _pair_targets(
    codes: Mapping[str, Ints], weights: Floats, pairs: Sequence[Clique], domain: Domain, n: int
) -> list[Measurement]:
    """Return the weighted pairs of the pool, for `n` records."""
    counts = weights * n
    made = []
    for one, other in pairs:
        width = domain[other]
        table = np.bincount(codes[one] * width + codes[other], counts, minlength=domain[one] * width)
        made.append(Measurement((one, other), table.reshape(domain[one], width), _SIGMA_PAIRS))
    return made
