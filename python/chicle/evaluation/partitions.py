"""How good a synthetic table is inside each partition. NOT PRIVATE: it compares with the real one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from chicle.codecs.labels import value_labels
from chicle.counting.records import Records
from chicle.domain import Clique, Domain
from chicle.errors import ParameterError
from chicle.evaluation.marginals import DENSE, cliques_of
from chicle.evaluation.result import PartitionErrors
from chicle.schema import Schema

__all__ = ["check_by", "errors_by", "partition_errors"]

Floats = npt.NDArray[np.float64]

_PAIRS, _TRIPLES = 300, 150
_MOST = 100_000


def check_by(by: Sequence[str] | str | None, domain: Domain) -> Clique:
    """Return the columns that form partitions; those that cannot are an error. Empty if there are none."""
    if by is None:
        return ()
    names = domain.check((by,) if isinstance(by, str) else tuple(by))
    if len(names) == len(domain):
        raise ParameterError("by: no column is left to compare; name fewer columns")
    if (cells := domain.cells(names)) > _MOST:
        raise ParameterError(f"by: {cells:,} joint values are too many partitions; at most {_MOST:,} are allowed")
    return names


def partition_errors(
    real: Records,
    synthetic: Records,
    schema: Schema,
    by: Clique,
    *,
    rng: np.random.Generator,
    threads: int | None,
) -> PartitionErrors:
    """Return how far both tables are in each partition, over 1-ways, pairs and triples of the other columns.

    Parameters
    ----------
    real, synthetic
        Both tables, over the columns of the schema.
    schema
        What the columns are.
    by
        The columns that form partitions.
    rng
        Draws the pairs and triples, where there are many.
    threads
        How many threads to use; all there are, if ``None``.
    """
    rest = Domain({name: size for name, size in real.domain.items() if name not in by})
    cliques = {
        size: [one for one in cliques_of(rest, size, most, rng) if rest.cells(one) <= DENSE]
        for size, most in ((1, None), (2, _PAIRS), (3, _TRIPLES))
        if size <= len(rest)
    }
    rows, made, tvd = errors_by(real, synthetic, by, cliques, threads)
    labels = [value_labels(schema, name) for name in by]
    places = np.unravel_index(np.arange(len(rows)), real.domain.shape(by))
    values = tuple(
        zip(*([column[i] for i in place] for column, place in zip(labels, places, strict=True)), strict=True)
    )
    return PartitionErrors(by=by, values=values, rows=rows, synthetic_rows=made, tvd=tvd)


def errors_by(
    real: Records, synthetic: Records, by: Clique, cliques: Mapping[int, Sequence[Clique]], threads: int | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], dict[int, Floats]]:
    """Return for each partition its rows in both tables, and the mean distance of cliques by their size.

    A partition that is empty in one table only is at distance 1; one that is empty in both is not a number.
    """
    mine, theirs = real.parts(by), synthetic.parts(by)
    tvd = {size: np.full(len(mine), np.nan) for size in cliques}
    for place, (here, there) in enumerate(zip(mine, theirs, strict=True)):
        if not len(here) and not len(there):
            continue
        for size, some in cliques.items():
            tvd[size][place] = 1.0 if not len(here) or not len(there) else _mean_distance(here, there, some, threads)
    rows, made = (np.array([len(part) for part in parts], dtype=np.int64) for parts in (mine, theirs))
    return rows, made, tvd


def _mean_distance(one: Records, other: Records, cliques: Sequence[Clique], threads: int | None) -> float:
    total, at_once = 0.0, 100
    for start in range(0, len(cliques), at_once):
        some = cliques[start : start + at_once]
        for a, b in zip(one.count(some, threads=threads), other.count(some, threads=threads), strict=True):
            total += float(np.abs(a / len(one) - b / len(other)).sum()) / 2
    return total / max(len(cliques), 1)
