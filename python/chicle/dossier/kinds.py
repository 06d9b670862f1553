"""Every kind of release in a ledger: how far a person moves it, why that is private, and where it is tested."""

from __future__ import annotations

from dataclasses import dataclass

from chicle.measurements.contrasts import CONTRASTS
from chicle.measurements.persons import PERSONS
from chicle.privacy.events import DiscoveryEvent, Event, ExponentialEvent, GaussianEvent, ParallelEvent, PureEvent

__all__ = ["KINDS", "Kind", "kind_of"]


@dataclass(frozen=True)
class Kind:
    """A kind of release.

    Attributes
    ----------
    name
        What it is called in a dossier.
    sensitivity, argument
        How far one person moves it, and why what is released is private, in words.
    test
        The file of the test, in the project's sources.
    """

    name: str
    sensitivity: str
    argument: str
    test: str


_GAUSSIAN = "Exactly rounded Gaussian noise: post-processing of the Gaussian mechanism, of cost s² / (2 sigma²)."
_EXPONENTIAL = (
    "The exponential mechanism in integer arithmetic: probabilities are exactly proportional to "
    "exp(epsilon score / (2 sensitivity))."
)

_TABLE = Kind(
    "noisy tables of counts",
    "k in L2: all k rows of a person may lie in one cell; more for weighted sums of cells, by their weights",
    _GAUSSIAN,
    "tests/privacy/test_desk_measure.py",
)
_CONTRASTS = Kind(
    "noisy contrasts of tables: what they say beyond their margins",
    "k times the root of the product of 2 (1 - 1/m) in L2, for attributes of m values, of contrasts divided by their "
    "weights",
    f"{_GAUSSIAN} Contrasts of counts are integers; the noise of each is in proportion to its weight.",
    "tests/privacy/test_contrasts.py",
)
_SCORES = Kind(
    "scores of cliques",
    "k records for each distance from a table that was released before (4k from exact margins), the root of their "
    "number times that for all together",
    f"{_GAUSSIAN} Scores are integers in units of 1/65536 record.",
    "tests/privacy/test_scores.py",
)
_CHOICE = Kind(
    "choices of what to measure",
    "k times the largest weight for each score; it is part of epsilon",
    _EXPONENTIAL,
    "tests/privacy/test_choices.py",
)
_CELL = Kind(
    "choices of single cells", "k for each score; it is part of epsilon", _EXPONENTIAL, "tests/privacy/test_cells.py"
)
_VALUES = Kind(
    "discovered values",
    "k in L2 for values that others have too",
    "Only values whose noisy count reaches a threshold are released; a value that one person alone has reaches it with "
    "probability delta at most.",
    "tests/privacy/test_discovery.py",
)
_BINS = Kind(
    "counts of parts of a range, to find bins",
    "k in L2 for each level: parts of a level do not overlap",
    _GAUSSIAN,
    "tests/privacy/test_private_bins.py",
)
_PERSONS = Kind(
    "how many persons have how many rows",
    "1 in L2: each person is in exactly one cell",
    _GAUSSIAN,
    "tests/privacy/test_persons.py",
)
_SUMS = Kind(
    "sums for declared analyses",
    "k times the longest vector that a row can give, in integer units; rows that would be longer count as 0",
    _GAUSSIAN,
    "tests/privacy/test_analyses.py",
)
_LAPLACE = Kind(
    "values with Laplace noise",
    "stated by the caller, in L1",
    "The discrete Laplace mechanism: (sensitivity / scale)-DP.",
    "tests/privacy/test_primitives.py",
)
_PURE = Kind(
    "tables of counts with Laplace noise",
    "k in L1: each row of a person is in one cell",
    "The discrete Laplace mechanism; its epsilon is added to that of everything else.",
    "tests/privacy/test_pure.py",
)
_GROUPS = Kind(
    "partitions that share no row, paid once",
    "as in each partition: k rows in all",
    "What is released of a partition moves in proportion to the rows that a person has there, so all partitions "
    "together cost what one may.",
    "tests/privacy/test_replay_partitions.py",
)
_GIVEN = Kind(
    "values of a caller of chicle.privacy",
    "stated by the caller, in L2: chicle cannot check it",
    _GAUSSIAN,
    "tests/privacy/test_primitives.py",
)

KINDS = (
    *(_TABLE, _SCORES, _CHOICE, _CELL, _VALUES, _BINS, _PERSONS, _SUMS, _LAPLACE, _PURE, _GROUPS, _GIVEN),
    _CONTRASTS,
)
"""Every kind."""


def kind_of(event: Event) -> Kind:
    """Return the kind of an event."""
    if isinstance(event, GaussianEvent):
        return _of_gaussian(event)
    if isinstance(event, ExponentialEvent):
        return _CELL if event.purpose == "choice of a cell" else _CHOICE
    if isinstance(event, ParallelEvent):
        return _GROUPS
    if isinstance(event, PureEvent):
        return _PURE
    return _VALUES if isinstance(event, DiscoveryEvent) else _LAPLACE


def _of_gaussian(event: GaussianEvent) -> Kind:
    if event.clique is not None:
        if event.purpose.startswith(CONTRASTS):
            return _CONTRASTS
        return _BINS if event.purpose == "bins" else _TABLE
    if event.purpose == PERSONS:
        return _PERSONS
    if event.purpose.endswith(" records"):
        return _SCORES
    return _SUMS if event.purpose.startswith(("score of ", "products of ")) else _GIVEN
