"""Records that answer weighted queries best: the oracle of DualQuery and FEM ([G] section 3).

The kernel is `rust/core/src/response`: coordinate ascent from several starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from chicle import _core
from chicle._checks import check_seed, integer, number, threads_or_all
from chicle.counting.records import Records
from chicle.domain import Domain

__all__ = ["best_responses"]

STARTS = 20
"""Coordinate ascents for each record: enough to match an integer program on the queries of real rounds."""


def best_responses(
    cells: Sequence[Mapping[str, int]],
    weights: Sequence[float],
    domain: Domain,
    *,
    number_of_records: int = 1,
    scale: float = 0.0,
    starts: int = STARTS,
    seed: int = 0,
    threads: int | None = None,
) -> Records:
    """Return records that gain most: the weights of the cells that they lie in, less random costs of their codes.

    Parameters
    ----------
    cells
        For each query the codes of some attributes.
    weights
        The weight of each query; negative where a record should not lie in the cell.
    domain
        The attributes.
    number_of_records
        How many records, each with costs of its own.
    scale
        The mean of the cost of each code of each attribute, drawn from an exponential distribution; 0 for no costs.
    starts
        How many coordinate ascents are tried for each record.
    seed
        Fixes starts and costs.
    threads
        How many threads to use; all there are, if ``None``. The records do not depend on it.

    Examples
    --------
    >>> domain = Domain({"age": 3, "sex": 2})
    >>> found = best_responses([{"age": 2}, {"age": 2, "sex": 1}, {"sex": 1}], [1, 2, -1], domain)
    >>> {name: found[name].tolist() for name in domain}
    {'age': [2], 'sex': [1]}
    """
    places = [[(domain.position(name), code) for name, code in cell.items()] for cell in cells]
    columns = _core.best_responses(
        list(domain),
        list(domain.values()),
        places,
        np.asarray(weights, dtype=np.float64),
        integer("number_of_records", number_of_records, 0),
        integer("starts", starts, 1),
        number("scale", scale),
        check_seed(seed),
        threads_or_all(threads),
    )
    return Records(dict(zip(domain, columns, strict=True)), domain)


def joined(parts: Sequence[Records], domain: Domain) -> Records:
    """Return the records of several parts as one."""
    return Records({name: np.concatenate([part[name] for part in parts]) for name in domain}, domain)
