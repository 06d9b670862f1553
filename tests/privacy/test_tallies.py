"""Exact counts for discovery: parts of a table that are tallied apart and merged are counted as one table is."""

import itertools
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chicle import Budget, Ledger, Schema, SchemaError
from chicle.codecs import Codec
from chicle.discovery import Tallies, purchase_of, resolve
from chicle.privacy import TestNoise
from chicle.sources import Source, open_source
from chicle.sources.frames import Form

CANARY = "4711"
SCHEMA = Schema(
    {
        "job": {"type": "open", "missing": True},
        "zip": {"type": "open", "other": 0},
        "wage": {"type": "integer", "min": 0, "max": 10**6, "bins": "private", "missing": True},
        "rate": {"type": "number", "min": 0, "max": 1, "bins": {"private": 9}},
        "since": {"type": "date", "min": "1990-01-01", "max": "2029-12-31", "bins": {"private": 9}},
        "left": {"type": "boolean"},
        "note": {"type": "drop"},
    }
)


def table_of(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    job = [None if i == 0 else f"job {i}" for i in rng.integers(0, 30, n)]
    wage = [None if i == 0 else int(i) for i in rng.integers(0, 500, n)]
    return pa.table(
        {
            "job": pa.array(job, pa.string()),
            "zip": pa.array(rng.integers(0, 40, n)),
            "wage": pa.array(wage, pa.int64()),
            "rate": pa.array(np.round(rng.random(n), 2)),
            "since": pa.array(np.datetime64("2000-01-01") + rng.integers(0, 900, n)),
            "left": pa.array(rng.random(n) < 0.5),
        }
    )


def tallied(table: pa.Table, size: int) -> Tallies:
    tallies = Tallies(Codec(SCHEMA))
    for row in range(0, len(table), size):
        tallies.add(tallies.prepare(dict(zip(table.column_names, table.slice(row, size).columns, strict=True))))
    return tallies


def counts_of(tallies: Tallies) -> dict[str, Any]:
    tables = {name: tallies.take(name) for name in SCHEMA.undiscovered}
    return {
        name: (counts["value"].to_pylist(), counts["count"].to_pylist())
        if isinstance(counts, pa.Table)
        else (counts.cells.tolist(), counts.counts.tolist())
        for name, counts in tables.items()
    }


@given(
    n=st.integers(0, 300),
    cuts=st.lists(st.integers(0, 300), max_size=3),
    size=st.integers(1, 300),
    pending=st.sampled_from([1, 20, 2**20]),
    seed=st.integers(0, 9),
)
def test_parts_add_up_in_any_order(n: int, cuts: list[int], size: int, pending: int, seed: int) -> None:
    table = table_of(n, seed)
    whole = counts_of(tallied(table, 300))
    assert sum(whole["zip"][1]) == sum(value != 0 for value in table["zip"].to_pylist())
    assert sum(whole["wage"][1]) == n - table["wage"].null_count
    bounds = sorted({0, n, *(min(cut, n) for cut in cuts)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("chicle.columns.discovery._PENDING", pending)
        # Each part comes back from another process, the last one first.
        merged = pickle.loads(pickle.dumps(Tallies(Codec(SCHEMA))))  # noqa: S301 - our own
        for low, high in list(itertools.pairwise(bounds))[::-1]:
            part = tallied(table.slice(low, high - low), size)
            merged.merge(pickle.loads(pickle.dumps(part)))  # noqa: S301
    assert counts_of(merged) == whole


class Apart(Source):
    """A table whose parts are worked on apart, each by a copy of the task, and merged, the last one first."""

    def __init__(self, parts: list[pa.Table], size: int) -> None:
        super().__init__(SCHEMA)
        self._parts, self._size = parts, size

    @property
    def form(self) -> Form:
        return Form("records")

    def reduce(self, task: Any, columns: Sequence[str]) -> Any:
        fresh, whole = pickle.dumps(task), task
        for part in self._parts[::-1]:
            copy = pickle.loads(fresh)  # noqa: S301 - our own
            for row in range(0, len(part), self._size):
                batch = part.slice(row, self._size)
                copy.add(copy.prepare({name: batch[name] for name in columns}))
            whole.merge(pickle.loads(pickle.dumps(copy)))  # noqa: S301
        return whole


def test_merged_tallies_buy_the_same_schema() -> None:
    table = table_of(4_000, 1)
    bought = [
        purchase_of(name, SCHEMA.columns[name], rows=1, rho=0.1, delta=1e-6 if name in ("job", "zip") else 0.0)
        for name in SCHEMA.undiscovered
    ]
    halves = [table.slice(0, 2_500), table.slice(2_500)]
    found = []
    for source in (open_source(table, SCHEMA), Apart([table], 4_000), Apart(halves, 99)):
        ledger = Ledger(Budget(rho=1, discovery=1e-5), noise=TestNoise(3))
        found.append(resolve(SCHEMA, source, bought, ledger))
    assert found[0] == found[1] == found[2]
    assert found[0][0].undiscovered == ()
    assert len(found[0][0].columns["job"].labels or ()) > 10


def test_what_is_merged_is_not_changed() -> None:
    mine, theirs = tallied(table_of(50, 0), 50), tallied(table_of(50, 1), 50)
    mine.merge(theirs)
    assert counts_of(theirs) == counts_of(tallied(table_of(50, 1), 50))


def test_what_is_only_prepared_is_not_counted() -> None:
    tallies, more = tallied(table_of(50, 0), 50), table_of(50, 1)
    tallies.prepare({name: more[name] for name in more.column_names})
    assert counts_of(tallies) == counts_of(tallied(table_of(50, 0), 50))


def test_nothing_private_is_shown() -> None:
    schema = Schema({"job": {"type": "open"}, "wage": {"type": "integer", "min": 0, "max": 10**6, "bins": "private"}})
    tallies = Tallies(Codec(schema))
    tallies.add(tallies.prepare({"job": pa.chunked_array([[CANARY]]), "wage": pa.chunked_array([[4711]])}))
    shown = [repr(tallies), *map(repr, tallies._tallies.values()), repr(tallies._tallies["wage"].counts())]
    assert not any(CANARY in text for text in shown)
    with pytest.raises(SchemaError, match="column 'wage' has a number outside its bounds") as refusal:
        tallies.prepare({"job": pa.chunked_array([[CANARY]]), "wage": pa.chunked_array([[47_114_711]])})
    assert CANARY not in str(refusal.value)
