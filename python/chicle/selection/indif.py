"""InDif: how far each pair of attributes is from independence ([P] section 4.1), released as one noisy vector.

The score of a pair is the L1 distance between its counts ``M`` and what independence would give. Scores are integers,
in units of ``1 / INDIF_UNITS`` of a record, so the exact integer noise serves. Neighbours differ by one person, who has
at most k rows. Two forms:

**released** (ours, the default). The reference ``R`` is the product of 1-ways that were released before, times the
released number of records, rounded to units: a constant as far as the private records go. Hence for neighbours D, D'

    | |u M - R|_1 - |u M' - R|_1 |  <=  u |M - M'|_1  <=  u k        (u units to a record),

and k rows in a cell that already exceeds R attain it: the sensitivity is exactly k records.

**published**. The reference is ``a_i b_j / n`` with the exact margins a, b of the pair and the exact n. Adding a person
with margins v, w (adding up to k) to n records moves M by k in L1, and the reference by

    (a + v)(b + w) / (n + k) - a b / n  =  (a w + v b + v w - k a b / n) / (n + k),

of L1 norm at most ``k (3 n + k) / (n + k)``; together ``k (4 n + 2 k) / (n + k)``, below 4k. (From n = 0 the score
goes from 0 to at most 2k.) This is Lemma 4 of [P] for k = 1; k equal rows away from n equal ones attain
``4 k n / (n + k)``, so 4k cannot be improved.
The fixed point is ``floor(u score)``; because 4k u is an integer, ``x <= y + 4ku`` implies
``floor(x) <= floor(y) + 4ku``: rounding costs nothing.

A person may move each of K scores by that much, so the vector's L2 sensitivity is sqrt(K) times it: with the published
form the noise has variance 8 K k^2 / rho, which is Theorem 5 of [P]. The released form needs a sixteenth of the budget.

Cost: that of counting the pairs; each is scored while its table is at hand (`rust/core/src/select`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from chicle import _core
from chicle.counting.counter import MEMORY_LIMIT, Shares, score_pairs
from chicle.counting.records import Countable
from chicle.denoising.consistency import onto_simplex
from chicle.domain import Clique, Domain
from chicle.domain import pairs as all_pairs
from chicle.errors import DomainError, ParameterError
from chicle.measurements.measurement import Measurement, best_one_ways, estimate_total
from chicle.privacy.budget import calibrate
from chicle.privacy.ledger import GaussianEvent, Ledger
from chicle.privacy.mechanisms import release_gaussian

__all__ = ["INDIF_UNITS", "Form", "Scores", "exact_indif", "expected_pair", "indif", "vector_sensitivity"]

Form: TypeAlias = Literal["released", "published"]

INDIF_UNITS: int = _core.INDIF_UNITS
"""Units to a record."""

# By how many records a person's one row moves a score.
_ROW_SENSITIVITY: dict[Form, int] = {"released": 1, "published": 4}

# The kernel's sums are exact up to here.
_MAX_TOTAL = 2.0**35


@dataclass(frozen=True, eq=False)
class Scores:
    """How far pairs of attributes are from independence, or any cliques from what is expected of them.

    Attributes
    ----------
    cliques
        The cliques, in the order of `values`.
    values
        For each clique the L1 distance in records, from 0 to twice their number, plus noise; it may be negative.
    sigma
        Standard deviation of the noise, in records; 0 where there is none.
    private
        Whether a ledger has paid for them with real noise. Selection refuses scores that are not private unless told.
    """

    cliques: tuple[Clique, ...]
    values: npt.NDArray[np.float64]
    sigma: float
    private: bool

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.cliques),):
            raise ParameterError(
                f"{len(self.cliques)} cliques need as many scores, not an array of {self.values.shape}"
            )
        self.values.flags.writeable = False

    def __repr__(self) -> str:
        if self.private:
            return f"Scores of {len(self.cliques):,} cliques, sigma {self.sigma:.4g} records"
        return f"NOT PRIVATE: scores of {len(self.cliques):,} cliques, sigma {self.sigma:.4g} records"


def indif(
    records: Countable,
    ledger: Ledger,
    *,
    rho: float,
    one_ways: Sequence[Measurement] | None = None,
    pairs: Iterable[Iterable[str]] | None = None,
    form: Form = "released",
    threads: int | None = None,
    memory_limit: int = MEMORY_LIMIT,
) -> Scores:
    """Release the InDif scores of pairs with exactly rounded Gaussian noise, all for rho together.

    Neighbours: add or remove one person, who has at most ``k = records.max_records_per_person`` rows.
    Sensitivity: each of K scores moves by at most k records (4k in the published form), the vector by sqrt(K) times
    that in L2; the module's header proves it.

    Parameters
    ----------
    records
        The private records.
    ledger
        What pays.
    rho
        The cost of the whole vector.
    one_ways
        Released 1-ways of every attribute, which the released form compares with; the published form does without.
    pairs
        Pairs to score, by default all.
    form
        ``"released"``: against the product of `one_ways`. ``"published"``: against the exact margins, as in [P], at 16
        times the cost.
    threads
        As for `chicle.count`.
    memory_limit
        Most bytes that the counts of one pair may take; they are not kept.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(2_000, d=4)
    >>> ledger = chicle.Ledger(chicle.Budget(epsilon=1, delta=1e-9))
    >>> one_ways = chicle.measure(census, [(name,) for name in census], 40.0, ledger)
    >>> indif(census, ledger, rho=ledger.remaining / 10, one_ways=one_ways)
    Scores of 6 cliques, sigma 44.27 records
    """
    if form not in get_args(Form):
        raise ParameterError(f"form must be one of {get_args(Form)}, not {form!r}")
    named = _check_pairs(records.domain, pairs)
    reference = _reference(one_ways, records.domain) if form == "released" else None
    if not named:
        return Scores((), np.empty(0), 0.0, ledger.private)
    sensitivity = vector_sensitivity(_ROW_SENSITIVITY[form] * records.max_records_per_person, len(named))
    sigma = calibrate(rho, l2_sensitivity=sensitivity)
    event = GaussianEvent(
        purpose=f"InDif, 1/{INDIF_UNITS} records",
        l2_sensitivity=sensitivity,
        sigma=sigma,
        values=len(named),
    )
    ledger.check([event])
    exact = score_pairs(records, named, reference, threads, memory_limit=memory_limit)
    (noisy,) = release_gaussian([exact], [event], ledger)
    return Scores(tuple(named), noisy / INDIF_UNITS, sigma / INDIF_UNITS, ledger.private)


def exact_indif(
    records: Countable,
    *,
    pairs: Iterable[Iterable[str]] | None = None,
    threads: int | None = None,
    memory_limit: int = MEMORY_LIMIT,
) -> Scores:
    """NOT PRIVATE: return the exact published InDif scores, for experiments on what selection loses to noise.

    Examples
    --------
    >>> import chicle
    >>> exact_indif(chicle.datasets.census(2_000, d=4))
    NOT PRIVATE: scores of 6 cliques, sigma 0 records
    """
    named = _check_pairs(records.domain, pairs)
    exact = score_pairs(records, named, None, threads, memory_limit=memory_limit)
    return Scores(tuple(named), exact / INDIF_UNITS, 0.0, private=False)


def expected_pair(pair: Clique, one_ways: Sequence[Measurement], domain: Domain) -> npt.NDArray[np.float64]:
    """Return what the released form of `indif` compares a pair with: the product of its released 1-ways."""
    shares, total = _reference(one_ways, domain)
    first, second = pair
    return total * np.multiply.outer(shares[first], shares[second])


def _reference(one_ways: Sequence[Measurement] | None, domain: Domain) -> tuple[Shares, float]:
    """Return what independence would give, as far as is public: a share for each value, and the number of records."""
    if not one_ways:
        raise ParameterError("form 'released' compares with released 1-ways; measure them and give one_ways=")
    best = best_one_ways(one_ways, domain)
    total = float(estimate_total(list(best.values())))
    if total > _MAX_TOTAL:
        raise ParameterError("the 1-ways tell of more than 2^35 records; InDif is exact up to there")
    shares = {}
    for name, measurement in best.items():
        # norm-sub to any total gives shares; to the released one, unless noise has left nothing of it.
        positive = onto_simplex(measurement.values, max(total, 1.0))
        shares[name] = np.minimum(positive / positive.sum(), 1.0)
    return shares, total


def vector_sensitivity(records: int, scores: int) -> int:
    """Return the L2 norm of `scores` numbers of `records` records each, in units, rounded up by exact arithmetic."""
    square = scores * (records * INDIF_UNITS) ** 2
    return math.isqrt(square - 1) + 1


def _check_pairs(domain: Domain, pairs: Iterable[Iterable[str]] | None) -> list[Clique]:
    if pairs is None:
        return all_pairs(domain)
    if isinstance(pairs, str):
        raise DomainError("pairs must be a list of pairs of attribute names, not a string")
    named = [domain.clique(pair) for pair in pairs]
    for pair in named:
        if len(pair) != 2:
            raise DomainError(f"InDif is a score of pairs; {pair!r} has {len(pair)} attributes")
    if len(set(named)) < len(named):
        twice = next(pair for pair in named if named.count(pair) > 1)
        raise DomainError(f"pair {twice!r} is there twice; each is scored, and paid for, once")
    return named
