"""From a private table to a synthetic one in one call."""

from __future__ import annotations

from typing import Any

from chicle.mechanisms.prism import Prism
from chicle.schema import Schema

__all__ = ["synthesize"]


def synthesize(
    source: Any,  # noqa: ANN401 - any table that fits the schema
    schema: Schema | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    n: int | None = None,
    seed: int | None = None,
    **options: Any,  # noqa: ANN401 - those of Prism
) -> Any:  # noqa: ANN401 - the kind of table that was given
    """Make a synthetic table by `Prism`, the default mechanism.

    Each call spends a new budget. To keep the release and sample again at no cost, use ``Prism(...).fit(...)``.

    Parameters
    ----------
    source, schema
        The private table and what is public about it, as for ``Prism.fit``.
    epsilon, delta
        The budget; ``rho=`` or ``mu=`` instead are passed on.
    n, seed
        Number of rows, by default the private estimate, and the seed of the draw (not of the noise).
    **options
        Other parameters of `Prism`.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(5_000, d=6)
    >>> table = synthesize(census, epsilon=1, delta=1e-9, n=1_000, seed=0)
    >>> len(table), table.domain == census.domain
    (1000, True)
    """
    return Prism(epsilon=epsilon, delta=delta, **options).fit(source, schema).sample(n, seed)
