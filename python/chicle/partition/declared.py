"""What is declared about a partition: the attributes that form it, and how its tables are made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from chicle._checks import number
from chicle.domain import Clique, Domain
from chicle.errors import ParameterError, SchemaError
from chicle.schema import Schema

__all__ = ["Partition", "Way", "chosen_partition"]

Way: TypeAlias = Literal["auto", "pooled", "independent", "attribute"]

MOST = 100_000
"""The most partitions of a table."""


@dataclass(frozen=True)
class Partition:
    """The attributes that form partitions, and how the tables of partitions are made.

    The list of partitions is what the schema declares: every joint value of these attributes, whether rows have it or
    not.

    Parameters
    ----------
    names
        The attributes, the coarsest first. With two of them, such as state and county, counties are drawn towards their
        state where they have too few rows to speak for themselves.
    way
        ``"independent"`` fits each partition by itself, all for the price of one. ``"pooled"`` fits the whole table,
        and how partitions differ from it. ``"attribute"`` fits the whole table with the partition as one more
        attribute. By default noisy sizes and the budget decide.
    share
        The share of the budget that the pooled way gives to how partitions differ; by default it follows from the
        sizes and the budget.
    pure
        The share of epsilon that buys the sizes of partitions with Laplace noise, outside Gaussian DP; 0 for Gaussian
        noise. By default it follows from the declared number of rows.

    Examples
    --------
    >>> import chicle
    >>> census = chicle.datasets.census(6_000, d=6)
    >>> synth = chicle.Prism(epsilon=1, delta=1e-9).fit(census, partition=chicle.Partition(["MARST"], way="pooled"))
    >>> bool((synth.release_.sample(500, seed=0, where={"MARST": 5})["MARST"] == 5).all())
    True
    """

    names: Clique
    way: Way = "auto"
    share: float | None = None
    pure: float | None = None

    def __post_init__(self) -> None:
        names = [self.names] if isinstance(self.names, str) else list(self.names)
        if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise ParameterError('partition must name columns, each once, such as partition=["state"]')
        object.__setattr__(self, "names", tuple(names))
        if self.way not in get_args(Way):
            raise ParameterError(f"way must be one of {get_args(Way)}, not {self.way!r}")
        for name, most in (("share", 0.95), ("pure", 0.9)):
            value = getattr(self, name)
            if value is not None and not 0 <= number(name, value) <= most:
                raise ParameterError(f"{name} of a partition must be between 0 and {most}, not {value!r}")

    def rest(self, domain: Domain) -> Domain:
        """Return the attributes that do not form the partition."""
        return Domain({name: size for name, size in domain.items() if name not in self.names})

    def check(self, domain: Domain, columns: Domain) -> None:
        """Raise unless these attributes can form partitions, before anything is spent.

        Parameters
        ----------
        domain
            The attributes that mechanisms see.
        columns
            The modelled columns of the schema.
        """
        for name in self.names:
            if name not in columns:
                known = ", ".join(map(repr, columns))
                raise SchemaError(f"partition: the schema models no column {name!r}; it models {known}")
            if domain.get(name) != columns[name]:
                raise SchemaError(
                    f"partition: column {name!r} is coarse or combined with others; declare it as a column of its own"
                )
        if len(domain) == len(self.names):
            raise SchemaError("partition: no column is left to model; name fewer columns")
        if (cells := domain.cells(self.names)) > MOST:
            raise SchemaError(
                f"partition: {cells:,} joint values are too many partitions; at most {MOST:,} are allowed"
            )


def chosen_partition(given: Any, schema: Schema, domain: Domain) -> Partition | None:  # noqa: ANN401 - names, or a Partition
    """Return the partition of a fit, checked; None if there is none.

    Parameters
    ----------
    given
        What a fit was given: a partition, names of columns, or None for what the schema declares.
    schema
        The schema.
    domain
        The attributes that mechanisms see.
    """
    asked = schema.partition if given is None else given
    if not isinstance(asked, Partition):
        if not isinstance(asked, Iterable):
            raise ParameterError(f'partition must name columns, such as partition=["state"], not {asked!r}')
        names = (asked,) if isinstance(asked, str) else tuple(asked)
        if not names:
            return None
        asked = Partition(names)
    if schema.presence is not None:
        raise ParameterError("linked tables have no partition yet; leave it out, or fit each part with its own tables")
    asked.check(domain, schema.domain)
    return asked
