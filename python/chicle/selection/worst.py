"""What a model gets most wrong: distances of private counts from public tables, as a noisy vector or as one choice.

The distance of a clique r is ``|M_r - R_r|_1`` between its counts and what a model that was made from releases alone
expects. It is an integer, in units of ``1 / INDIF_UNITS`` of a record, with the reference in fixed point. The reference
is a constant as far as the private records go, so for neighbours, who differ by at most k rows,

    | |u M - R|_1 - |u M' - R|_1 |  <=  u |M - M'|_1  <=  u k        (u units to a record),

and k rows in a cell that already exceeds R attain it: the sensitivity is exactly k records. That is so whatever the
model is and however it came about, as long as it was made from releases alone.

- `distances` releases all K of them with Gaussian noise, as one vector of L2 sensitivity sqrt(K) k.
- `choose_worst` releases which clique to measure next, by the exponential mechanism with the quality score of [A]
  equation 1, ``w_r (distance - penalty_r)``. Weights w_r are integers in ``1..WEIGHTS``, so scores are integers too,
  and one person moves any of them by at most ``max w_r k``.

Cost: that of counting the cliques; each is scored while its table is at hand (`rust/core/src/select/apart.rs`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from chicle.counting.counter import MEMORY_LIMIT, score_cliques
from chicle.counting.records import Countable
from chicle.domain import Clique
from chicle.errors import ParameterError
from chicle.privacy.budget import calibrate
from chicle.privacy.ledger import ExponentialEvent, GaussianEvent, Ledger
from chicle.privacy.mechanisms import release_choice, release_gaussian
from chicle.selection.indif import INDIF_UNITS, Scores, vector_sensitivity

__all__ = ["WEIGHTS", "Expect", "choose_worst", "distances"]

Expect: TypeAlias = Callable[[Sequence[Clique]], Sequence[npt.NDArray[np.float64]]]
"""What a public model expects of cliques: a table of counts for each, none of them negative."""

WEIGHTS = 256
"""The weight of the clique that matters most."""

_AT_ONCE = 2**24  # cells that are expected and compared at a time
_MOST = 2.0**53  # units: more than any distance; penalties are cut there, which moves no score by more


def distances(
    records: Countable,
    cliques: Sequence[Clique],
    expect: Expect,
    ledger: Ledger,
    *,
    rho: float,
    threads: int | None = None,
    memory_limit: int = MEMORY_LIMIT,
) -> Scores:
    """Release how far the counts of cliques are from public tables, with exactly rounded Gaussian noise.

    Neighbours: add or remove one person, who has at most ``k = records.max_records_per_person`` rows.
    Sensitivity: each of K distances moves by at most k records, the vector by sqrt(K) times that in L2.

    Parameters
    ----------
    records
        The private records.
    cliques
        What to compare.
    expect
        Gives for some of the cliques the tables to compare with, made from releases alone.
    ledger
        What pays.
    rho
        The cost of the whole vector.
    threads, memory_limit
        As for `chicle.count`; the limit is for each clique alone.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(2_000, d=4)
    >>> ledger = chicle.Ledger(chicle.Budget(epsilon=1, delta=1e-9))
    >>> def even(cliques):
    ...     return [np.full(census.domain.shape(clique), 2_000 / census.domain.cells(clique)) for clique in cliques]
    >>> distances(census, [("AGE", "SEX", "RACE"), ("AGE",)], even, ledger, rho=ledger.remaining / 10)
    Scores of 2 cliques, sigma 24.58 records
    """
    if not cliques:
        return Scores((), np.empty(0), 0.0, ledger.private)
    sensitivity = vector_sensitivity(records.max_records_per_person, len(cliques))
    sigma = calibrate(rho, l2_sensitivity=sensitivity)
    event = GaussianEvent(
        purpose=f"distances, 1/{INDIF_UNITS} records", l2_sensitivity=sensitivity, sigma=sigma, values=len(cliques)
    )
    ledger.check([event])
    exact = _exact(records, cliques, expect, threads, memory_limit)
    (noisy,) = release_gaussian([exact], [event], ledger)
    return Scores(tuple(cliques), noisy / INDIF_UNITS, sigma / INDIF_UNITS, ledger.private)


def choose_worst(
    records: Countable,
    cliques: Sequence[Clique],
    expect: Expect,
    ledger: Ledger,
    *,
    epsilon: float,
    weights: Sequence[float],
    penalties: Sequence[float],
    fit: Callable[[Sequence[Clique]], Sequence[bool]] | None = None,
    threads: int | None = None,
    memory_limit: int = MEMORY_LIMIT,
) -> int:
    """Release the position of a clique that is far from its table, by the exponential mechanism.

    Neighbours: add or remove one person, who has at most ``k = records.max_records_per_person`` rows.
    Sensitivity: a distance moves by at most k records, its score by at most k times the largest weight.

    Parameters
    ----------
    records, cliques, expect, ledger, threads, memory_limit
        As for `distances`.
    epsilon
        That of the exponential mechanism.
    weights
        How much each clique matters: in any unit, not negative.
    penalties
        What is taken off each distance, in records: the error that its noisy table would have.
    fit
        A public rule for what may be chosen, dear to ask of all cliques: one of them at least must keep it.
    """
    if not cliques or not len(cliques) == len(weights) == len(penalties):
        raise ParameterError("a choice needs at least one clique, and a weight and a penalty for each")
    if not (np.isfinite(weights).all() and np.isfinite(penalties).all()):
        raise ParameterError("weights and penalties of a choice must be finite numbers")
    event = ExponentialEvent(purpose="choice of a marginal", epsilon=epsilon, values=len(cliques))
    ledger.check([event])
    whole = whole_weights(weights)
    exact = _exact(records, cliques, expect, threads, memory_limit)
    cost = np.minimum(np.asarray(penalties, dtype=np.float64) * INDIF_UNITS, _MOST).astype(np.int64)
    sensitivity = int(whole.max()) * records.max_records_per_person * INDIF_UNITS
    keeps = None if fit is None else lambda places: fit([cliques[place] for place in places])
    return release_choice(whole * (exact - cost), sensitivity, event, ledger, keeps)


def _exact(
    records: Countable, cliques: Sequence[Clique], expect: Expect, threads: int | None, memory_limit: int
) -> npt.NDArray[np.int64]:
    """Return the exact distances, in units; the expected tables of all cliques never exist at once."""
    scores = []
    batch: list[Clique] = []
    cells = 0
    for i, clique in enumerate(cliques):
        batch.append(clique)
        cells += records.domain.cells(clique)
        if cells >= _AT_ONCE or i + 1 == len(cliques):
            scores.append(score_cliques(records, batch, expect(batch), threads, memory_limit=memory_limit))
            batch, cells = [], 0
    return np.concatenate(scores)


def whole_weights(weights: Sequence[float]) -> npt.NDArray[np.int64]:
    """Return weights as integers in ``1..WEIGHTS``, the largest as `WEIGHTS`.

    Examples
    --------
    >>> whole_weights([3.0, 1.5, 0.0])
    array([256, 128,   1])
    """
    given = np.asarray(weights, dtype=np.float64)
    most = max(float(given.max()), np.finfo(float).tiny)
    return np.maximum(np.rint(given / most * WEIGHTS), 1).astype(np.int64)
