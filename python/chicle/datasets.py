"""Built-in data: a simulated census of any size, for the demo, tests and benchmarks."""

from __future__ import annotations

from chicle import _core
from chicle._checks import integer, threads_or_all
from chicle.counting.records import Records

__all__ = ["census"]


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
