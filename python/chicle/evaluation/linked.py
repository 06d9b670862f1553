"""Compare synthetic linked tables with the real ones: each table by itself, and what links them.

Only the children that a fit would keep are compared. What links them: parents with their children, how many children a
parent has, and each child with the next. Baselines: a bootstrap of whole families, and the real tables joined at
random.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from chicle._text import aligned
from chicle.counting.records import Records
from chicle.errors import ChicleError, ParameterError
from chicle.evaluation.result import NOT_PRIVATE, Evaluation, Score
from chicle.schema import Schema
from chicle.schema.linked import LinkedSchema
from chicle.sources.linked import LinkedSource

__all__ = ["LinkedEvaluation", "families_of", "link_scores", "table_schema"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LinkedEvaluation:
    """How good synthetic linked tables are. NOT PRIVATE.

    Attributes
    ----------
    tables
        The evaluation of each table by itself.
    links
        The scores of what links them; ``independent`` is the real tables joined at random.
    notes
        What was left out.
    """

    tables: Mapping[str, Evaluation]
    links: tuple[Score, ...]
    notes: tuple[str, ...] = ()

    def __getitem__(self, key: str) -> Score:
        """Return the score of a link by its key."""
        for one in self.links:
            if one.key == key:
                return one
        raise ParameterError(f"there is no score {key!r}; there are {', '.join(one.key for one in self.links)}")

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        tables = {name: one.to_dict() for name, one in self.tables.items()}
        return {"links": [one.to_dict() for one in self.links], "tables": tables, "notes": list(self.notes)}

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(self.to_dict(), indent=1)

    def __str__(self) -> str:
        head = ("links between tables", "value", "floor", "at random")
        rows = [
            (one.title, *(one.shown(each) for each in (one.value, one.floor, one.independent))) for one in self.links
        ]
        lines = [NOT_PRIVATE, *aligned([head, *rows]), *self.notes]
        for name, one in self.tables.items():
            lines += ["", f"{name}:", str(one)]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class _Pair:
    """Both tables as records; `parent` is the row of each child's parent. Children stand in order."""

    parents: Records
    children: Records
    parent: Integers

    @property
    def number(self) -> Integers:
        return np.bincount(self.parent, minlength=len(self.parents))

    def taken(self, families: Integers) -> _Pair:
        """Return these families, which may occur several times."""
        number = self.number
        begins, sizes = np.cumsum(number) - number, number[families]
        parent = np.repeat(np.arange(len(families)), sizes)
        rows = begins[families][parent] + np.arange(len(parent)) - (np.cumsum(sizes) - sizes)[parent]
        return _Pair(_rows(self.parents, families), _rows(self.children, rows), parent)

    def shuffled(self, rng: np.random.Generator) -> _Pair:
        """Return the same tables with each child at a random parent."""
        parent = np.sort(rng.integers(max(len(self.parents), 1), size=len(self.children)))
        return _Pair(self.parents, _rows(self.children, rng.permutation(len(self.children))), parent)


def families_of(which: str, given: Any, schema: LinkedSchema) -> tuple[_Pair, str]:  # noqa: ANN401 - tables by name
    """Return linked tables as records, with the children that a fit would keep, and what was left out."""
    try:
        tables, joined = LinkedSource(given, schema).joined()
    except ChicleError as error:
        raise type(error)(f"the {which} tables: {error}") from None
    layout = schema.layout
    kept = joined.place < layout.most
    children = tables[layout.child]
    beyond, nobodys = (count / max(len(children), 1) for count in ((~kept).sum(), joined.orphans))
    note = (
        f"The {which} tables: {beyond:.2%} of the rows of {layout.child!r} are beyond the first {layout.most}, "
        f"{nobodys:.2%} have no row of {layout.parent!r}; they are left out."
    )
    pair = _Pair(tables[layout.parent], _rows(children, joined.rows[kept]), joined.parent[kept])
    if not len(pair.parents) or not len(pair.children):
        raise ParameterError(f"the {which} tables have no rows that belong together; there is nothing to compare")
    return pair, note


def table_schema(schema: LinkedSchema, name: str) -> Schema:
    """Return the schema by which one table is compared; of the children, each parent has several rows."""
    one = schema.tables[name]
    most = schema.layout.most if name == schema.layout.child else 1
    declared = one.to_dict()
    return Schema(declared["columns"], max_records_per_person=most, constraints=declared.get("constraints"))


def link_scores(real: _Pair, made: _Pair, schema: LinkedSchema, seed: int) -> tuple[Score, ...]:
    """Return the scores of what links both tables."""
    rng = np.random.default_rng(seed)
    floor = real.taken(rng.integers(len(real.parents), size=len(made.parents)))
    others = (made, floor, real.shuffled(rng))
    most = schema.layout.most

    def score(key: str, title: str, values: list[float]) -> Score:
        return Score(key=key, title=title, value=values[0], floor=values[1], independent=values[2])

    numbers = [_distance([np.minimum(real.number, most)], [np.minimum(one.number, most)]) for one in others]
    across = [_across(real, one) for one in others]
    following = [_consecutive(real, one) for one in others]
    found = [
        score("children", "children per parent", numbers),
        score("across", "parent x child pairs", across),
    ]
    if all(one is not None for one in following):
        found.append(score("consecutive", "each child with the next", [one for one in following if one is not None]))
    if schema.rules:
        found.append(
            Score(
                key="violations",
                title="families that break a rule",
                value=_violations(schema, made),
                floor=_violations(schema, floor),
                independent=_violations(schema, others[2]),
                unit="share",
            )
        )
    return tuple(found)


def _across(real: _Pair, made: _Pair) -> float:
    return float(
        np.mean(
            [
                _distance(
                    [real.parents[a][real.parent], real.children[b]], [made.parents[a][made.parent], made.children[b]]
                )
                for a, b in product(real.parents, real.children)
            ]
        )
    )


def _consecutive(real: _Pair, made: _Pair) -> float | None:
    """Return the mean distance of pairs of a child and the next; None if no real parent has two children."""
    first, second = (np.flatnonzero(one.parent[1:] == one.parent[:-1]) for one in (real, made))
    if not len(first):
        return None
    return float(
        np.mean(
            [
                _distance(
                    [real.children[a][first], real.children[b][first + 1]],
                    [made.children[a][second], made.children[b][second + 1]],
                )
                for a, b in product(real.children, real.children)
            ]
        )
    )


def _violations(schema: LinkedSchema, pair: _Pair) -> float:
    codes, found = {name: pair.children[name] for name in pair.children}, np.zeros(len(pair.parents), dtype=np.bool_)
    for rule in schema.rules:
        found |= rule.broken(codes, pair.parent, len(found))
    return float(found.mean())


def _distance(real: list[Any], made: list[Any]) -> float:
    """Return the total variation distance of the joint distributions of some columns."""
    n, m = len(real[0]), len(made[0])
    if not m:
        return 1.0
    keys = np.zeros(n + m, dtype=np.int64)
    for one, other in zip(real, made, strict=True):
        codes = np.concatenate([one, other]).astype(np.int64)
        keys = keys * (int(codes.max(initial=0)) + 1) + codes
    _, cells = np.unique(keys, return_inverse=True)
    size = int(cells.max(initial=0)) + 1
    shares = [np.bincount(cells[part], minlength=size) for part in (slice(n), slice(n, None))]
    return float(np.abs(shares[0] / n - shares[1] / m).sum() / 2)


def _rows(records: Records, rows: Integers) -> Records:
    return Records({name: records[name][rows] for name in records}, records.domain)
