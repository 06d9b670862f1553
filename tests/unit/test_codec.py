"""A codec encodes batch by batch what it encodes at once, and travels to wherever the rows are."""

import pickle
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import Budget, Domain, Ledger, Query, Records, Schema, SchemaError
from chicle.codecs import Codec
from chicle.counting.counter import Counter
from chicle.counting.counts import Counts
from chicle.counting.digest import Digest
from chicle.counting.passes import Passes
from chicle.discovery.resolution import Tallies
from chicle.privacy import TestNoise
from chicle.sources import Source, Task, open_source, read_records
from chicle.sources.frames import Form
from chicle.sources.local import LocalSource
from chicle.sources.tasks import CheckTable, Collect, Columns, Count, FirstPass
from tests.schemas import joint

AGE = {"type": "integer", "min": 0, "max": 99, "coarse": 5}
SIDES: dict[str, Any] = {"columns": ["left", "right"], "combinations": [[0, 0], [0, 1], [1, 2]], "others": [0, 0]}
SCHEMA = Schema({"age": AGE, "left": 2, "wed": {"type": "boolean"}, "right": 3}, combine={"sides": SIDES})
LATE: dict[str, Any] = {"forbid": {"age": {"below": 15}, "wed": True}}
BUDGET: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-6}

_Task = TypeVar("_Task", bound=Task[Any])


def people(rows: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(15, 100, rows)
    return pa.table({"age": age, "left": rng.integers(0, 2, rows), "wed": age > 40, "right": rng.integers(0, 3, rows)})


def batch_of(table: pa.Table) -> Columns:
    return {name: table[name] for name in table.column_names}


def test_attributes_are_columns_groups_and_combinations() -> None:
    codec = Codec(SCHEMA)
    assert codec.domain == Domain({"age": 5, "sides": 3, "wed": 2})
    assert codec.base == Domain({**SCHEMA.domain, "sides": 3})
    assert {name: old for name, (old, _) in codec.maps.items()} == {"age": "age", "sides": "sides", "wed": "wed"}
    assert codec.ordinal == {"age"}
    assert codec.coarse == ("age",)
    assert codec.needed(["wed", "sides", "left"]) == ["wed", "left", "right"]
    assert "Codec of" in repr(codec)


def test_codes_of_combined_columns_are_those_of_a_loop() -> None:
    table, codec = people(300), Codec(SCHEMA)
    listed = {(0, 0): 0, (0, 1): 1, (1, 2): 2}
    pairs = zip(table["left"].to_pylist(), table["right"].to_pylist(), strict=True)
    expected = [listed.get(pair, 0) for pair in pairs]
    assert codec.codes(batch_of(table), ["sides"])["sides"].tolist() == expected
    records = read_records(table, SCHEMA)
    assert codec.extend(records)["sides"].tolist() == expected
    seen = codec.recode(records)
    assert seen["sides"].tolist() == expected
    assert seen["age"].tolist() == [codec.attributes.groups["age"][code] for code in records["age"]]
    assert records["left"].tolist() == table["left"].to_pylist(), "the columns themselves stay as they are"


@given(drawn=joint(), border=st.integers(0, 20))
def test_batches_and_a_copy_encode_alike(drawn: Any, border: int) -> None:
    schema, rows, _ = drawn
    codec = Codec(schema)
    copy: Codec = pickle.loads(pickle.dumps(codec))  # noqa: S301 - our own
    assert (copy.domain, copy.base, copy.schema) == (codec.domain, codec.base, schema)
    batch = batch_of(pa.table({name: pa.array(values) for name, values in rows.items()}))
    whole = codec.codes(batch, list(codec.base))
    parts = [
        copy.codes({name: values.slice(*cut) for name, values in batch.items()}, list(codec.base))
        for cut in ((0, border), (border,))
    ]
    for name in codec.base:
        np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), whole[name])
        assert whole[name].max(initial=0) < codec.base[name]


def test_a_combination_that_is_not_listed_is_refused_without_others() -> None:
    strict = Schema(dict(SCHEMA.columns), combine={"sides": {**SIDES, "others": None}})
    codec = Codec(strict)
    codes = codec.codes(batch_of(people(50)), list(strict.domain))
    with pytest.raises(SchemaError, match="a combination of 'left' and 'right' that is not listed"):
        codec.check_codes(codes)
    Codec(SCHEMA).check_codes(codes)


class Scattered(Source):
    """Rows in several places: each has a copy of the task, and what the copies found out is merged."""

    def __init__(self, parts: Sequence[pa.Table], schema: Schema, room: float) -> None:
        super().__init__(schema, room=room)
        self._parts = [LocalSource(part, schema) for part in parts]

    @property
    def form(self) -> Form:
        return self._parts[0].form

    def reduce(self, task: _Task, columns: Sequence[str]) -> _Task:
        copies = [pickle.loads(pickle.dumps(task)) for _ in self._parts]  # noqa: S301 - our own
        first, *rest = [part.reduce(copy, columns) for part, copy in zip(self._parts, copies, strict=True)]
        for other in rest:
            first.merge(pickle.loads(pickle.dumps(other)))  # noqa: S301 - our own
        done: _Task = first
        return done


@pytest.mark.parametrize("room", [0, 3_000, 2**28])
def test_a_source_that_only_says_how_to_reduce_is_fitted_like_any_other(room: float) -> None:
    columns: dict[str, Any] = {**SCHEMA.columns, "pay": {"type": "integer", "min": 0, "max": 9_999, "bins": "private"}}
    schema = Schema({**columns, "job": {"type": "open"}}, combine={"sides": SIDES}, constraints=[LATE])
    rng = np.random.default_rng(1)
    more = {"pay": rng.integers(0, 9_999, 2_000), "job": rng.choice(["nurse", "cook", "clerk"], 2_000)}
    table = people(2_000)
    for name, values in more.items():
        table = table.append_column(name, pa.array(values))
    scattered = Scattered([table.slice(0, 700), table.slice(700, 0), table.slice(700)], schema, room)
    released = []
    for given_table in (table, scattered):
        ledger = Ledger(Budget(**BUDGET, discovery=1e-7), noise=TestNoise(5))
        released.append(chicle.Prism(**BUDGET).fit(given_table, schema, ledger=ledger).release_)
    one, other = released
    assert one.schema == other.schema
    cliques = [[entry.event.clique for entry in release.ledger.entries] for release in released]
    assert cliques[0] == cliques[1]
    for mine, theirs in zip(
        (*one.measurements, *one.fine_one_ways), (*other.measurements, *other.fine_one_ways), strict=True
    ):
        np.testing.assert_array_equal(mine.values, theirs.values)


def test_a_scattered_table_that_violates_a_constraint_is_refused() -> None:
    schema = Schema(dict(SCHEMA.columns), constraints=[LATE])
    late = pa.table({"age": [3], "left": [0], "wed": [True], "right": [0]})
    with pytest.raises(SchemaError, match="a row that violates the constraint `forbid` on 'age' and 'wed'"):
        Scattered([people(30), late], schema, 0).countable(Codec(schema))


def test_passes_hold_for_combined_columns_and_know_their_one_ways() -> None:
    table, codec = people(900), Codec(SCHEMA)
    readings = 0

    def give() -> list[pa.RecordBatch]:
        nonlocal readings
        readings += 1
        return list(table.to_batches(max_chunksize=100))

    rows = open_source(give, SCHEMA, in_memory=0).countable(codec)
    assert isinstance(rows, Passes)
    seen, direct = rows.view(codec.maps, codec.domain), codec.recode(read_records(table, SCHEMA))
    assert seen.domain == direct.domain == codec.domain
    cliques = [(), ("sides",), ("age",), ("age", "sides"), ("sides", "wed")]
    for mine, theirs in zip(chicle.count(seen, cliques), chicle.count(direct, cliques), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    before = readings
    chicle.count(seen, [(name,) for name in codec.domain])
    assert readings == before, "a 1-way takes no pass of its own"


def counter(codec: Codec) -> Counter:
    groups = codec.maps["age"][1]
    assert groups is not None
    return Counter({"age": 100, "sides": 3}, [Query(("age", "sides"), {"age": groups.astype(np.uint32)})])


TASKS: dict[str, Any] = {
    "collect": lambda codec: Collect(codec, ["age", "sides"]),
    "first pass": lambda codec: FirstPass(codec, 2**28),
    "first pass, little room": lambda codec: FirstPass(codec, 200),
    "count": lambda codec: Count(codec, Counts(counter(codec), Digest(key=bytes(16)))),
    "check": CheckTable,
}


def outcome(task: Any) -> list[Any]:
    if isinstance(task, Count):
        counts = task.counts
        return [counts.digest, *(table.tolist() for table in counts.counter.result())]
    if isinstance(task, CheckTable):
        return list(task.problems)
    rows = task.records() if isinstance(task, Collect) else task.countable(None)
    cliques = [(name,) for name in rows.domain]
    return [isinstance(rows, Records), *(table.tolist() for table in chicle.count(rows, cliques))]


@pytest.mark.parametrize("name", TASKS)
def test_tasks_merge(name: str) -> None:
    table, codec = people(300), Codec(SCHEMA)
    if name == "check":
        table = table.set_column(0, "age", pa.array([*range(15, 99), *[700] * 216]))
    cuts = [(0, 0), (0, 120), (120, 1), (121, 179)]
    whole = TASKS[name](codec)
    whole.add(whole.prepare(batch_of(table)))
    copies = [pickle.loads(pickle.dumps(TASKS[name](codec))) for _ in range(3)]  # noqa: S301 - our own
    for i, cut in enumerate(cuts):
        one = copies[i % 3]
        one.add(one.prepare(batch_of(table.slice(*cut))))
    first, *rest = copies
    for other in rest:
        first.merge(other)
    assert outcome(first) == outcome(whole)


def test_tallies_merge() -> None:
    schema = Schema({"job": {"type": "open"}, "x": {"type": "integer", "min": 0, "max": 999, "bins": "private"}})
    table = pa.table({"job": ["cook", "nurse", "cook"] * 40, "x": list(range(120))})
    whole = Tallies(Codec(schema))
    whole.add(whole.prepare(batch_of(table)))
    halves = [pickle.loads(pickle.dumps(Tallies(Codec(schema)))) for _ in range(2)]  # noqa: S301 - our own
    for half, cut in zip(halves, ((0, 50), (50, 70)), strict=True):
        half.add(half.prepare(batch_of(table.slice(*cut))))
    halves[0].merge(halves[1])
    assert halves[0].take("job").equals(whole.take("job"))
    np.testing.assert_array_equal(halves[0].take("x").counts, whole.take("x").counts)
