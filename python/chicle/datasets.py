"""Built-in data: a simulated census of any size, for the demo, tests and benchmarks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from chicle import _core
from chicle._checks import integer, threads_or_all
from chicle.counting.records import Records

__all__ = ["census", "households"]

_OF_HOUSEHOLDS = ("COUNTY", "URBAN", "FARM", "OWNERSHP", "ROOMS", "RADIO")
_OF_PEOPLE = ("RELATE", "SEX", "AGE", "MARST", "NATIVITY", "EDUC", "EMPSTAT", "OCCGROUP")
_HEAD = 0  # the RELATE of the first person of a household
_INSTITUTION = 2  # the least GQTYPE of an institution
_BLOCK = 64  # rows of the census; no household crosses the end of a block


def census(n: int, d: int = 97, seed: int = 0, *, threads: int | None = None) -> Records:
    """Simulate a population census: `n` people with `d` attributes, the same for the same seed.

    The people live in households and have the kind of structure that a real census has; the header of
    `rust/census` describes it. Person i is the same for any `n` and `d`. Nobody in it is real.

    Parameters
    ----------
    n
        Number of people, up to 10^8 or what memory holds (about 110 bytes each for 97 attributes).
    d
        Number of attributes: 97 are named after census questions; further ones are survey items.
    seed
        The seed of the population.
    threads
        How many threads to use; all there are, if ``None``.

    Examples
    --------
    >>> people = census(1_000, d=4)
    >>> list(people.domain), len(people)
    (['SEX', 'AGE', 'COUNTY', 'RACE'], 1000)
    """
    rows, attributes = integer("n", n, 0, 2**48), integer("d", d, 1, 10_000)
    names, cardinalities, columns = _core.census(rows, attributes, integer("seed", seed, 0), threads_or_all(threads))
    return Records(dict(zip(names, columns, strict=True)), dict(zip(names, cardinalities, strict=True)))


def households(n: int, seed: int = 0, *, threads: int | None = None) -> dict[str, pa.Table]:
    """Return the first households of the simulated census and their people, as linked tables of codes.

    Institutions are left out. The truth about families is known: the head is the first person and the only head, a wife
    is the second, relations stand in the order of their codes, and own children are at least 14 years younger than
    their mother.

    Parameters
    ----------
    n
        Number of households; each has 1 to 12 people, 3.5 on average.
    seed
        The seed of the population. Household i is the same for any `n`.
    threads
        How many threads to use; all there are, if ``None``.

    Examples
    --------
    >>> pair = households(100)
    >>> {name: table.column_names[:3] for name, table in pair.items()}
    {'households': ['household', 'COUNTY', 'URBAN'], 'people': ['household', 'line', 'RELATE']}
    """
    wanted, rows = integer("n", n, 0, 2**40), _BLOCK
    while True:
        rows = max(2 * rows, 4 * wanted // _BLOCK * _BLOCK)
        people = census(rows, seed=seed, threads=threads)
        starts = (people["RELATE"] == _HEAD) | (np.arange(rows) % _BLOCK == 0)
        first = np.flatnonzero(starts)
        private = people["GQTYPE"][first] < _INSTITUTION
        if private.sum() >= wanted:
            break
    kept = np.flatnonzero(private)[:wanted]
    number = np.full(len(first), -1)
    number[kept] = np.arange(wanted)
    household = number[np.cumsum(starts) - 1]
    own = np.flatnonzero(household >= 0)
    line = own - first[kept][household[own]] + 1
    columns = {name: pa.array(people[name][first[kept]]) for name in _OF_HOUSEHOLDS}
    theirs = {name: pa.array(people[name][own]) for name in _OF_PEOPLE}
    return {
        "households": pa.table({"household": np.arange(wanted), **columns}),
        "people": pa.table({"household": household[own], "line": line, **theirs}),
    }
