"""What is audited: every kind of release by itself, by a probe, and every mechanism as a whole.

Each case is a pair of neighbouring tables and a way to fit them. A mechanism that users register is audited like
ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from chicle.analyses import Analysis, Linear
from chicle.audit.pairs import Pair, Table, coded_pair, cross
from chicle.audit.probes import PROBES, Probe
from chicle.counting.records import Records
from chicle.discovery import Discovery
from chicle.errors import ParameterError
from chicle.mechanisms import Independent, Prism, PrismOptions
from chicle.mechanisms.base import BY_NAME, Mechanism
from chicle.mechanisms.variants import mechanism_names, named_mechanism
from chicle.partition import Partition
from chicle.partition.declared import Way
from chicle.releases.release import Release
from chicle.schema import Schema

__all__ = ["Case", "case_names", "case_of", "mechanism_cases", "release_cases"]

_MU = 2.0  # spent by every fit: loss that some hundred runs can see, and not so much that every test is right
_DELTA = 1e-6
_SMALL = {"a": 2, "b": 3, "c": 4}
_FLAGS = {"a": 2, "b": 2, "c": 2, "d": 2}


@dataclass(frozen=True, eq=False)
class Case:
    """A mechanism and two neighbouring tables.

    Attributes
    ----------
    name, about
        The name on the command line, and what it audits.
    pair
        The tables.
    make
        Makes the mechanism.
    fit
        What else a fit gets.
    """

    name: str
    about: str
    pair: Pair
    make: Callable[[], Mechanism]
    fit: Mapping[str, Any] = field(default_factory=dict)

    def release(self, *, with_canary: bool) -> Release:
        """Return the release of a new fit to one of the tables."""
        return self.make().fit(self.pair.source(with_canary=with_canary), self.pair.schema, **self.fit).release_


def release_cases() -> dict[str, Case]:
    """Return the case of each kind of release."""
    cases = [
        _probe("tables", "tables of several shares, k = 3", k=3),
        _probe("groups", "groups of rows that overlap", k=1, domain=_FLAGS),
        _probe("answers", "buckets and functionals, k = 2", k=2),
        _probe("scores", "distances from a public table, k = 3", k=3),
        _probe("independence", "InDif: distances from released 1-ways, k = 3", k=3),
        _probe("dependence", "distances from exact 1-ways, as published", k=1),
        _probe("choice", "the exponential mechanism over tables, k = 2", k=2),
        _probe("largest", "the exponential mechanism by the largest cell", k=1),
        _probe("cells", "the exponential mechanism over cells and signs", k=2),
        _labels(),
        _bins(),
        _persons(),
        _bounds(),
        _constraints(),
        _analyses(),
        _partitions("independent", "partitions paid once, a person with rows in two of them, k = 2"),
        _partitions("pooled", "partitions that share a model, a person with rows in two of them, k = 2"),
    ]
    return {case.name: case for case in cases}


def mechanism_cases() -> dict[str, Case]:
    """Return the case of each mechanism, with persons of one row and of three."""
    made = {}
    for name in (*mechanism_names(), *(name for name, one in BY_NAME.items() if one.public_data == "needed")):
        for k in (1, 3):
            case = _mechanism(name, k)
            made[case.name] = case
    two_stages = Case(
        "prism-two-stages",
        "Prism with a second stage, k = 1",
        coded_pair(_SMALL, k=1),
        lambda: Prism(mu=_MU, allow_weak=True, threads=1, options=PrismOptions(first_stage=0.5)),
    )
    return made | {two_stages.name: two_stages}


def case_names() -> list[str]:
    """Return the names of all cases."""
    return [*release_cases(), *mechanism_cases()]


def case_of(name: str) -> Case:
    """Return a case by its name."""
    cases = release_cases() | mechanism_cases()
    if name not in cases:
        raise ParameterError(f"there is no audit of {name!r}; there are {', '.join(cases)}")
    return cases[name]


def _probe(name: str, about: str, *, k: int, domain: Mapping[str, int] = _SMALL) -> Case:
    assert name in PROBES  # noqa: S101 - each case has its probe
    return Case(name, about, coded_pair(domain, k=k), lambda: Probe(mu=_MU, allow_weak=True, threads=1, probe=name))


def _partitions(way: Way, about: str) -> Case:
    """Return partitions of which the last two have a row of the canary each."""
    whole = coded_pair({"g": 6, "a": 2, "b": 2}, k=2)
    pair = replace(whole, canary={**whole.canary, "g": [4, 5]})
    fit = {"partition": Partition(("g",), way=way)}
    return Case(f"partitions-{way}", about, pair, lambda: Independent(mu=_MU, allow_weak=True, threads=1), fit)


_QUICK: Mapping[str, Mapping[str, Any]] = {
    "fem": {"rounds": 4, "samples": 6},
    "dualquery": {"rounds": 4, "samples": 4},
    "gem": {"rounds": 3, "components": 10},
    "rap": {"rounds": 2, "components": 10},
    "pep": {"rounds": 3},
    "mwem": {"rounds": 3},
    "pmwpub": {"rounds": 3},
    "privsyn": {"options": {"passes": 3}},
}
"""Parameters that make fits quick; they change what is spent on what, not what is promised."""


def _mechanism(name: str, k: int) -> Case:
    kind = BY_NAME.get(name)
    make = kind if kind is not None else named_mechanism(name)
    pair = coded_pair(_SMALL, k=k)
    public = Records(cross(_SMALL, 60), pair.schema.domain)
    needed = kind is not None and kind.public_data == "needed"
    return Case(
        name if k == 1 else f"{name}-k{k}",
        f"{name}, k = {k}" + (", public data" if needed else ""),
        pair,
        lambda: make(mu=_MU, allow_weak=True, threads=1, **_QUICK.get(name, {})),
        {"public": public} if needed else {},
    )


def _independent() -> Mechanism:
    return Independent(mu=_MU, allow_weak=True, threads=1, discovery=Discovery(share=0.9, delta=_DELTA))


def _table_case(
    name: str,
    about: str,
    declared: Mapping[str, Any],
    others: Table,
    canary: Table,
    **given: Any,  # noqa: ANN401 - as a Schema or a fit takes it
) -> Case:
    more: dict[str, Any] = {key: given.pop(key) for key in ("analyses", "analysis_share") if key in given}
    return Case(name, about, Pair(Schema(declared, **given), others, canary, coded=False), _independent, more)


def _labels() -> Case:
    """Return a label that only the canary has, for all of its k rows."""
    return _table_case(
        "labels",
        "values of an open column, one of which only the canary has, k = 2",
        {"job": {"type": "open", "most": 5}, "sex": {"type": "boolean"}},
        {"job": ["clerk", "nurse"] * 60, "sex": [True, False] * 60},
        {"job": ["queen"] * 2, "sex": [True] * 2},
        max_records_per_person=2,
    )


def _bins() -> Case:
    """Return a canary far from everybody else, in the range that bins divide."""
    return _table_case(
        "bins",
        "private bins, k = 2",
        {"age": {"type": "integer", "min": 0, "max": 99, "bins": {"private": 5}}, "sex": {"type": "boolean"}},
        {"age": [i % 20 for i in range(60)], "sex": [True, False] * 30},
        {"age": [97] * 2, "sex": [True] * 2},
        max_records_per_person=2,
    )


def _persons() -> Case:
    """Return a person with twenty rows, of which two may be kept."""
    return _table_case(
        "persons",
        "a person of 20 rows, of which k = 2 are kept",
        {"id": {"type": "identifier"}, "ill": {"type": "boolean"}},
        {"id": [i // 2 for i in range(40)], "ill": [i % 3 == 0 for i in range(40)]},
        {"id": [99] * 20, "ill": [True] * 20},
        person="id",
        max_records_per_person=2,
    )


def _bounds() -> Case:
    """Return a canary beyond everybody else, inside declared bounds."""
    return _table_case(
        "bounds",
        "declared bounds, an outlier inside them",
        {"age": {"type": "integer", "min": 0, "max": 99, "bins": 5}, "sex": {"type": "boolean"}},
        {"age": [i % 20 for i in range(40)], "sex": [True, False] * 20},
        {"age": [97], "sex": [True]},
    )


def _constraints() -> Case:
    """Return a canary that breaks a rule and is kept."""
    return _table_case(
        "constraints",
        "a forbidden combination, kept, k = 2",
        {"age": {"type": "integer", "min": 0, "max": 9}, "wed": {"type": "boolean"}},
        {"age": [i % 9 for i in range(40)], "wed": [i % 9 > 5 for i in range(40)]},
        {"age": [1] * 2, "wed": [True] * 2},
        max_records_per_person=2,
        constraints=[{"forbid": {"age": {"below": 5}, "wed": True}, "violations": "keep"}],
    )


def _analyses() -> Case:
    """Return a canary at the corner of the features of a regression."""
    asked: list[Analysis] = [Linear("pay ~ age")]
    return _table_case(
        "analyses",
        "a declared regression, k = 2",
        {"age": {"type": "integer", "min": 0, "max": 9}, "pay": {"type": "integer", "min": 0, "max": 9}},
        {"age": [i % 9 for i in range(40)], "pay": [i % 7 for i in range(40)]},
        {"age": [9] * 2, "pay": [9] * 2},
        max_records_per_person=2,
        analyses=asked,
        analysis_share=0.8,
    )
