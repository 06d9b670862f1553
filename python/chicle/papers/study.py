"""A study as data: a table or figure of a paper that is no end-to-end comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from chicle.counting.records import Records
from chicle.errors import ParameterError
from chicle.schema import Schema

if TYPE_CHECKING:
    from chicle.papers.paper import Table

__all__ = ["Case", "Row", "Study"]

Row: TypeAlias = Mapping[str, str | int | float | None]
"""Plain values by name."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """One run of a study.

    Attributes
    ----------
    table
        The table with its schema; None for a study of formulas.
    epsilon
        The budget; 0 for a study without budgets.
    seed
        The number of the repetition; it fixes what is drawn, but not the noise of a ledger.
    quick
        Whether it is the quick form.
    threads
        How many threads it may use; all there are, if ``None``.
    """

    table: tuple[Records, Schema] | None = None
    epsilon: float = 0.0
    seed: int = 0
    quick: bool = False
    threads: int | None = None

    @property
    def records(self) -> Records:
        """The rows of the table."""
        return self._given[0]

    @property
    def schema(self) -> Schema:
        """The schema of the table."""
        return self._given[1]

    @property
    def _given(self) -> tuple[Records, Schema]:
        if self.table is None:
            raise ParameterError("this case of a study has no table; give the study `tables`")
        return self.table


@dataclass(frozen=True, kw_only=True)
class Study:
    """A table or figure of a paper, and how it is made again. NOT PRIVATE.

    Attributes
    ----------
    name, title
        Its name on the command line, and its title.
    about
        Which table or figure of the paper it is, and how this run differs.
    run
        Returns rows for one case; every row has the keys of `by` and `values`, but for ``epsilon``, which is added.
        ``seed`` and ``failed`` are no keys of its own.
    by
        What names a row on the page, with titles.
    values
        Numbers on the page, with titles: means over repetitions.
    tables
        The tables that it runs on; none for a study of formulas.
    epsilons, quick_epsilons, seeds, quick_seeds
        The budgets of the whole and of the quick form, and how often each is run; none for a study without budgets.
    quick_tables
        How many of the tables at hand the quick form takes.
    published
        Figures of the paper, by the name of the table and the values of `by`.
    """

    name: str
    title: str
    about: str
    run: Callable[[Case], Iterable[Row]]
    by: Mapping[str, str]
    values: Mapping[str, str]
    tables: Sequence[Table] = ()
    epsilons: Sequence[float] = ()
    quick_epsilons: Sequence[float] = ()
    seeds: int = 1
    quick_seeds: int = 1
    quick_tables: int = 2
    published: Mapping[tuple[str | float, ...], Mapping[str, float]] = field(default_factory=dict)
