"""The scores of the NIST 2020 challenge, out of a thousand: each segment of a table by itself, trips and individuals.

- `nist2020` (sprint 2): rows fall into segments, such as areas. In each, 50 random pairs of the other columns are
  compared: the mean L1 distance of their shares, from 0 to 2. A segment counts 2 where either table has no row in it,
  or where their numbers of rows differ by 250 or more. The score is 1000 (2 - mean over segments) / 2.
- `nist2020_trips` (sprint 3): the same for one pair, where a trip begins and where it ends, over the whole table.
- `nist2020_alike` (sprint 3): each individual is a vector, the number of his rows with each value of some columns. A
  real one is drawn, and a limit from 5 to 50 for each number. The share of individuals who are within all limits is
  compared, 50 times. The score is 1000 (1 - mean absolute difference).

Segments count as in the challenge: all those in which either table has rows. The challenge drew other pairs for each of
its runs; ours follow from the seed of the evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from chicle.counting.records import Records, count
from chicle.domain import Clique, Domain
from chicle.errors import ParameterError
from chicle.evaluation.contest import Contest
from chicle.evaluation.result import Score

__all__ = ["alike", "alike_score", "check_nist2020", "segment_score", "segments", "trip_score"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_PAIRS = 50
_SIZE_OFF = 250  # rows by which a segment may not be off
_WORST = 2.0  # the largest L1 distance of shares

_ARCHETYPES = 50
_LIMITS = (5, 50)
_MOST_CELLS = 2**27  # of the counts of a pair in all segments, and of the vectors of individuals
_AT_ONCE = 2**24


def segment_score(contest: Contest, by: Sequence[str]) -> Score:
    """Return the score of sprint 2: random pairs in each segment, a joint value of the columns `by`."""
    rng = contest.rng("NIST 2020 pairs")
    by = tuple(by)
    names = [name for name in contest.real if name not in by]
    drawn = [tuple(names[i] for i in rng.choice(len(names), min(2, len(names)), replace=False)) for _ in range(_PAIRS)]
    values = [segments(contest.real, other, by, drawn, contest.threads) for other in contest.others]
    scores = [1000 * (_WORST - float(each.mean())) / 2 for each in values]
    note = f"{_PAIRS} random pairs in each of {values[0].size:,} segments by {', '.join(by)}"
    return contest.score(
        "nist2020", "NIST 2020, pairs in segments", scores, better="high", unit="score", source="[D20]", note=note
    )


def trip_score(contest: Contest, trip: Sequence[str]) -> Score:
    """Return the score of sprint 3 for where trips begin and end, a pair of columns."""
    pair = tuple(trip)
    real, *others = (count(table, [pair], contest.threads)[0] for table in (contest.real, *contest.others))
    scores = [1000 * (_WORST - _distance(real, other)) / 2 for other in others]
    title = f"NIST 2020, {pair[0]} to {pair[1]}"
    return contest.score("nist2020_trips", title, scores, better="high", unit="score", source="sprint 3")


def alike_score(contest: Contest, individual: str, columns: Sequence[str]) -> Score:
    """Return the score of sprint 3 for similar individuals, by how often they have each value of some columns."""
    vectors = [individuals(table, individual, columns) for table in (contest.real, *contest.others)]
    real, *others = vectors
    scores = [1000 * alike(real, other, contest.rng("NIST 2020 individuals")) for other in others]
    title = f"NIST 2020, individuals alike in {', '.join(columns)}"
    return contest.score("nist2020_alike", title, scores, better="high", unit="score", source="sprint 3")


def check_nist2020(
    domain: Domain,
    segment: Sequence[str] | None,
    trip: Sequence[str] | None,
    individual: Sequence[str] | None,
) -> None:
    """Check the columns of the scores before any work."""
    for name, given, least in (("segment", segment, 1), ("trip", trip, 2), ("individual", individual, 2)):
        if given is None:
            continue
        if isinstance(given, str) or len(given) < least or (name == "trip" and len(given) != least):
            many = {"segment": "one or more columns", "trip": "two columns: where a trip begins and where it ends"}
            raise ParameterError(
                f"{name} names {many.get(name, 'the column of individuals, then one or more others')}, not {given!r}"
            )
        domain.check(tuple(given))
    if segment is not None:
        widest = sorted((domain[name] for name in domain if name not in segment), reverse=True)[:2]
        if not widest:
            raise ParameterError("segment leaves no column to compare; name fewer")
        _check_size("segment", domain.cells(tuple(segment)) * int(np.prod(widest)))
    if individual is not None:
        _check_size("individual", domain[individual[0]] * sum(domain[name] for name in individual[1:]))


def segments(real: Records, made: Records, by: Clique, cliques: Sequence[Clique], threads: int | None = None) -> Floats:
    """Return the mean L1 distance over cliques in each segment in which either table has rows.

    Examples
    --------
    >>> rows = {"area": [0] * 300 + [1] * 10, "a": [0, 1] * 155}
    >>> real = Records(rows, {"area": 3, "a": 2})
    >>> segments(real, Records({"area": [0] * 300, "a": [0] * 300}, real.domain), ("area",), [("a",)]).tolist()
    [1.0, 2.0]
    """
    sizes = [count(table, [by], threads)[0].reshape(-1) for table in (real, made)]
    there = (sizes[0] > 0) | (sizes[1] > 0)
    lost = (sizes[0] == 0) | (sizes[1] == 0) | (np.abs(sizes[0] - sizes[1]) >= _SIZE_OFF)
    total = np.zeros(there.size)
    for clique in cliques:
        shares = [
            count(table, [(*by, *clique)], threads)[0].reshape(there.size, -1) / np.maximum(size, 1)[:, None]
            for table, size in zip((real, made), sizes, strict=True)
        ]
        total += np.abs(shares[0] - shares[1]).sum(axis=1)
    means = np.where(lost, _WORST, total / max(len(cliques), 1))
    found: Floats = means[there]
    return found


def individuals(records: Records, individual: str, columns: Sequence[str]) -> Ints:
    """Return how often each individual has each value: a row for each who has any row.

    Examples
    --------
    >>> trips = Records({"taxi": [2, 2, 0], "shift": [0, 1, 1]}, {"taxi": 3, "shift": 2})
    >>> individuals(trips, "taxi", ["shift"]).tolist()
    [[0, 1], [1, 1]]
    """
    tables = records.count([(individual, name) for name in columns])
    vectors: Ints = np.concatenate(tables, axis=1)
    return vectors[vectors.any(axis=1)]


def alike(real: Ints, made: Ints, rng: np.random.Generator) -> float:
    """Return 1 minus the mean difference of the shares of individuals who are like a real one that is drawn."""
    off = 0.0
    for _ in range(_ARCHETYPES):
        one = real[rng.integers(len(real))]
        limits = rng.integers(_LIMITS[0], _LIMITS[1] + 1, size=one.size)
        off += abs(_share_alike(real, one, limits) - _share_alike(made, one, limits))
    return 1 - off / _ARCHETYPES


def _share_alike(vectors: Ints, one: Ints, limits: Ints) -> float:
    rows = max(1, _AT_ONCE // max(one.size, 1))
    parts = (vectors[start : start + rows] for start in range(0, len(vectors), rows))
    return sum(int((np.abs(part - one) <= limits).all(axis=1).sum()) for part in parts) / max(len(vectors), 1)


def _distance(real: Ints, made: Ints) -> float:
    if not (real.sum() and made.sum()):
        return _WORST
    return float(np.abs(real / real.sum() - made / made.sum()).sum())


def _check_size(name: str, cells: int) -> None:
    if cells > _MOST_CELLS:
        raise ParameterError(
            f"{name}: its counts take {cells:,} cells, above the limit of {_MOST_CELLS:,}; name columns of fewer values"
        )
