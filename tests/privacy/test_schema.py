"""Nothing of a private table in errors, forms or releases; rows of a person cut by a look at no one else's."""

import datetime as dt
import gc
import pickle
from decimal import Decimal
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import Schema, SchemaError
from chicle.codecs import Codec
from chicle.privacy import GaussianEvent
from chicle.sources import check_table, decode_table, read_records
from chicle.sources.people import first_rows
from tests.schemas import read

DIGITS = "47114711"  # of both, and too many to stand in a digest or a random number by chance
CANARY = f"canary-{DIGITS}"
NUMBER = 47_114_711_471_147
FRAMES = [pd.DataFrame, pl.DataFrame, pa.table, dict]


@pytest.mark.parametrize("make", FRAMES, ids=["pandas", "polars", "pyarrow", "mapping"])
@pytest.mark.parametrize(
    ("told", "values"),
    [
        ({"type": "categorical", "values": ["a"]}, ["a", CANARY]),
        ({"type": "categorical", "values": [1]}, ["a", CANARY]),
        ({"type": "categorical", "values": [1]}, [1, NUMBER]),
        ({"type": "boolean"}, ["a", CANARY]),
        ({"type": "boolean"}, [1, NUMBER]),
        ({"type": "integer", "min": 0, "max": 9}, [1, NUMBER]),
        ({"type": "integer", "min": 0, "max": 9}, [1.0, NUMBER + 0.5]),
        ({"type": "integer", "min": 0, "max": 9}, ["1", CANARY]),
        ({"type": "number", "min": 0, "max": 9, "bins": 3}, [0.5, NUMBER + 0.5]),
        ({"type": "number", "min": 0, "max": 9, "bins": 3}, ["1", CANARY]),
        ({"type": "date", "min": "2020-01-01", "max": "2020-01-02", "bins": "day"}, ["2020-01-01", CANARY]),
        ({"type": "date", "min": "2020-01-01", "max": "2020-01-02", "bins": "day"}, [1, NUMBER]),
        ({"type": "datetime", "min": "2020-01-01", "max": "2020-01-02", "bins": "day"}, ["2020-01-01", CANARY]),
        (
            {"type": "datetime", "min": "2020-01-01", "max": "2020-01-02", "bins": "day", "timezone": "UTC"},
            ["2020-01-01T00:00Z", CANARY],
        ),
        ({"type": "coded", "values": 3, "missing": True}, [1, NUMBER]),
    ],
)
def test_errors_quote_no_value(make: Any, told: dict[str, Any], values: list[Any]) -> None:
    schema = Schema({"c": told})
    frame = make({"c": values})
    with pytest.raises(SchemaError, match=r"column 'c' (has|holds) ") as refusal:
        read_records(frame, schema)
    assert DIGITS not in str(refusal.value)
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None
    check = check_table(frame, schema)
    assert not check.fits
    assert DIGITS not in str(check)


def test_mixed_objects_quote_no_value() -> None:
    schema = Schema({"c": {"type": "integer", "min": 0, "max": 9}})
    for values in ([1, CANARY], [CANARY, 1], [{"a": 1}, CANARY], [object(), CANARY]):
        with pytest.raises(SchemaError, match="column 'c'") as refusal:
            read_records(pd.DataFrame({"c": pd.Series(values, dtype=object)}), schema)
        assert DIGITS not in str(refusal.value)
        assert refusal.value.__suppress_context__ or refusal.value.__context__ is None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=40), st.integers(1, 4), st.integers(0, 5))
def test_a_person_moves_only_own_rows(rows: list[tuple[int, int]], k: int, who: int) -> None:
    schema = Schema({"x": 4}, person="pid", max_records_per_person=k)

    def kept(rows: list[tuple[int, int]]) -> list[tuple[int, int]]:
        table = pa.table(
            {"pid": pa.array([p for p, _ in rows], pa.int64()), "x": pa.array([x for _, x in rows], pa.int64())}
        )
        mask = first_rows("pid", table["pid"], k)
        chosen = [row for i, row in enumerate(rows) if mask is None or mask[i].as_py()]
        assert read_records(table, schema)["x"].tolist() == [x for _, x in chosen]
        return chosen

    met: dict[int, int] = {}
    oracle = []
    for person, x in rows:
        met[person] = met.get(person, 0) + 1
        if met[person] <= k:
            oracle.append((person, x))
    assert kept(rows) == oracle
    without = kept([row for row in rows if row[0] != who])
    assert without == [row for row in oracle if row[0] != who]
    assert len(oracle) - len(without) <= k


def test_the_sensitivity_follows_from_the_rows_a_person() -> None:
    frame = pd.DataFrame({"pid": np.repeat(np.arange(3_000), 6), "x": np.arange(18_000) % 2 == 0})
    told = {"x": {"type": "boolean"}}
    sigmas = []
    for k in (1, 3):
        schema = Schema(told, person="pid", max_records_per_person=k)
        synth = chicle.Independent(epsilon=1, delta=1e-9).fit(frame, schema)
        (persons, event, *_) = synth.ledger_.events
        assert isinstance(persons, GaussianEvent)
        assert isinstance(event, GaussianEvent)
        assert persons.l2_sensitivity == 1
        assert event.l2_sensitivity == k
        sigmas.append(event.sigma)
        assert abs(synth.release_.total - 3_000 * k) < 200
        kept = "at most one row was kept." if k == 1 else "at most 3 rows were kept."
        assert f"of each value of 'pid' {kept}" in repr(synth.release_)
        of_each = synth.sample(300)["pid"].value_counts()
        assert of_each.max() <= k
        assert of_each.mean() > 0.8 * k, "every person had six rows"
    assert sigmas[1] == pytest.approx(3 * sigmas[0])
    assumed = chicle.Independent(epsilon=1, delta=1e-9).fit(frame[["x"]], Schema(told))
    assert "an assumption" in repr(assumed.release_)


def test_records_do_not_tell_whose_rows_were_kept() -> None:
    coded = Schema({"x": {"type": "boolean"}})
    records = read_records({"x": [True] * 6}, coded)
    schema = Schema(coded.columns, person="pid")
    notes = chicle.Independent(epsilon=1, delta=1e-9).fit(records, schema).release_.notes
    assert notes[-1] == (
        "Protects a person with one row at most: an assumption, for records do not tell whose row it is."
    )


@pytest.mark.parametrize("make", FRAMES, ids=["pandas", "polars", "pyarrow", "mapping"])
def test_no_value_is_left_on_a_fitted_mechanism(make: Any) -> None:
    rows = {
        "id": [CANARY] * 50,
        "note": [CANARY] * 50,
        "person": [f"{CANARY}-{i}" for i in range(50)],
        "wage": [NUMBER] * 50,
        "job": ["cook"] * 50,
    }
    frame = make(rows)
    if isinstance(frame, pd.DataFrame):
        frame = frame.assign(job=pd.Categorical(rows["job"], categories=["cook", CANARY])).set_index("note", drop=False)
    elif isinstance(frame, pl.DataFrame):
        frame = frame.with_columns(pl.col("job").cast(pl.Enum(["cook", CANARY])))
    elif isinstance(frame, pa.Table):
        frame = frame.replace_schema_metadata({"note": CANARY})
    schema = Schema(
        {
            "id": {"type": "identifier"},
            "note": {"type": "drop"},
            "wage": {"type": "integer", "min": 0, "max": 10**14, "bins": 10},
            "job": {"type": "categorical", "values": ["cook", "smith"]},
        },
        person="person",
    )
    synth = chicle.Independent(epsilon=1, delta=1e-9).fit(frame, schema)
    form = synth.release_.form
    assert form is not None
    for thing in _reachable(synth.release_):
        assert not (isinstance(thing, (str, bytes)) and DIGITS in str(thing))
        assert not isinstance(thing, (pd.DataFrame, pl.DataFrame, pa.Table, pa.Array, pa.ChunkedArray))
    assert DIGITS.encode() not in pickle.dumps((form, schema))
    assert DIGITS not in repr(synth.release_) + repr(form)
    made = synth.sample(100, seed=0)
    assert DIGITS not in str(pl.DataFrame(made).rows() if not isinstance(made, pd.DataFrame) else made.to_csv())


NUMBERS = {"type": "number", "min": 0, "max": 9, "bins": 3, "missing": True}
DAYS = {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "bins": "month", "missing": True}
NEIGHBOURS: list[tuple[dict[str, Any], list[Any], Any]] = [
    (NUMBERS, [1, 2, 3], 3.5),
    (NUMBERS, [Decimal("1.5")], Decimal("1.255")),
    (NUMBERS, [None], 2),
    ({"type": "integer", "min": 0, "max": 9}, [1, 2], 3.0),
    ({"type": "categorical", "values": [1, 2.5]}, [1], 2.5),
    ({"type": "categorical", "values": ["a"], "missing": True}, [None], "a"),
    ({"type": "boolean", "missing": True}, [None], True),
    (DAYS, [None], "2020-03-01"),
    (DAYS, [None], dt.date(2020, 3, 1)),
    ({"type": "identifier"}, [None], "a"),
]


@pytest.mark.parametrize("make", [pd.Series, pd.Categorical, np.array, list, tuple, pl.Series])
@pytest.mark.parametrize("framed", [False, True], ids=["mapping", "pandas"])
@pytest.mark.parametrize(("told", "values", "more"), NEIGHBOURS)
def test_no_row_changes_the_form(make: Any, framed: bool, told: dict[str, Any], values: list[Any], more: Any) -> None:
    schema = Schema({"y": {"type": "boolean"}, "x": told})
    forms = []
    for rows in (values, [*values, more]):
        column: Any = list(rows)
        if make in (pd.Series, np.array):
            column = make(column, dtype=object)
        elif make is pd.Categorical:
            column = make(column, categories=pd.Index(dict.fromkeys(v for v in rows if v is not None), dtype=object))
        elif make is pl.Series:
            column = make(column, strict=False)
        else:
            column = make(column)
        table: Any = {"x": column, "y": np.array([True] * len(rows))}
        if framed:
            table = pd.DataFrame({**table, "x": pd.Series(column, dtype=None if make is pd.Categorical else object)})
        records, form = read(table, schema)
        forms.append(form)
        again = decode_table(records, Codec(schema), form)
        assert list(again if framed else again.column_names) == ["x", "y"], "the order is that of the table"
        np.testing.assert_array_equal(read_records(again, schema)["y"], records["y"])
    assert forms[0] == forms[1]


def test_the_width_of_indices_does_not_tell_the_categories() -> None:
    schema = Schema({"x": {"type": "integer", "min": 0, "max": 999, "bins": 5}})
    for make in (dict, pd.DataFrame, pa.table):
        few, many = (make({"x": pa.array(np.arange(n)).dictionary_encode()}) for n in (127, 128))
        if make is not pa.table:
            few, many = (make({"x": pd.Categorical(np.arange(n))}) for n in (127, 129))
        else:
            few = pa.table({"x": few["x"].cast(pa.dictionary(pa.int8(), pa.int64()))})
        assert read(few, schema)[1] == read(many, schema)[1]


def _reachable(root: object) -> list[object]:
    seen: dict[int, object] = {}
    queue = [root]
    while queue:
        thing = queue.pop()
        if id(thing) in seen or isinstance(thing, (ModuleType, type)) or callable(thing):
            continue
        seen[id(thing)] = thing
        queue += gc.get_referents(thing)
    return list(seen.values())
