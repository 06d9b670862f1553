"""Columns that come after others, sums of others, and maps of several: no synthetic row breaks them."""

import datetime as dt
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import chicle
from chicle import Schema, SchemaError
from chicle.sources import check_table

STAYS: dict[str, Any] = {
    "admission": {"type": "date", "min": "2020-01-01", "max": "2021-12-31", "bins": "month"},
    "discharge": {"type": "date", "after": "admission", "by": {"min": 0, "max": 60}},
    "days": {"type": "integer", "min": 0, "max": 9},
    "due": {"derived": "admission + days"},
    "low": {"type": "number", "min": 0, "max": 100, "bins": 10},
    "high": {"type": "number", "after": "low", "by": {"min": 0, "max": 50, "bins": 10}},
    "sex": {"type": "categorical", "values": ["f", "m"]},
    "old": {"type": "boolean"},
    "name": {
        "determined_by": ["sex", "old"],
        "map": [[["f", False], "girl"], [["f", True], "woman"], [["m", False], "boy"], [["m", True], "man"]],
    },
}


def stays(n: int = 2_000, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    admission = np.datetime64("2020-01-01") + rng.integers(0, 700, n)
    days = rng.integers(0, 10, n)
    low = rng.uniform(0, 100, n).round(2)
    sex, old = rng.choice(["f", "m"], n), rng.random(n) < 0.5
    return {
        "admission": pa.array(admission),
        "discharge": pa.array(admission + rng.geometric(0.2, n).clip(0, 60)),
        "days": days,
        "due": pa.array(admission + days),
        "low": low,
        "high": low + rng.exponential(5, n).clip(0, 50),
        "sex": sex,
        "old": old,
        "name": np.where(sex == "f", np.where(old, "woman", "girl"), np.where(old, "man", "boy")),
    }


@pytest.mark.parametrize("order", [list(STAYS), sorted(STAYS, reverse=True)], ids=["as written", "backwards"])
@pytest.mark.parametrize("texts", [False, True])
def test_no_row_breaks_the_order(order: list[str], *, texts: bool) -> None:
    table = pa.table(stays())
    if texts:
        dates = ["admission", "discharge", "due"]
        table = pa.table({name: table[name].cast(pa.string()) if name in dates else table[name] for name in order})
    schema = Schema({name: STAYS[name] for name in order})
    assert Schema.from_dict(schema.to_dict()) == schema
    made = chicle.MST(epsilon=3, delta=1e-9).fit(table, schema).sample(seed=0)
    assert made.schema.types == [table.schema.field(name).type for name in made.column_names]
    rows = made.to_pylist()
    for row in rows:
        admission, discharge, due = (
            dt.date.fromisoformat(str(row[name])) for name in ("admission", "discharge", "due")
        )
        assert dt.timedelta(0) <= discharge - admission <= dt.timedelta(60)
        assert due == admission + dt.timedelta(row["days"])
        assert row["low"] <= row["high"] <= row["low"] + 50
        assert row["name"] == {"f": ["girl", "woman"], "m": ["boy", "man"]}[row["sex"]][row["old"]]
    gaps = [
        (dt.date.fromisoformat(str(row["discharge"])) - dt.date.fromisoformat(str(row["admission"]))).days
        for row in rows
    ]
    assert np.mean(gaps) == pytest.approx(5, abs=0.4)
    assert check_table(table, schema).fits
    assert check_table(made, schema, synthetic=True).fits


def test_a_table_that_breaks_the_order_is_refused() -> None:
    good = stays(50)
    schema = Schema(STAYS)
    for name, wrong, said in [
        (
            "discharge",
            pa.array(np.array(good["admission"]) - np.timedelta64(1, "D")),
            "not from 0 to 60 after 'admission'",
        ),
        ("high", good["low"] - 1, "not from 0.0 to 50.0 after 'low'"),
        ("due", good["admission"].take(pa.array(np.arange(50)[::-1])), "is not admission \\+ days in every row"),
        ("name", np.full(50, "girl"), "its map does not give for 'sex' and 'old'"),
    ]:
        found = check_table({**good, name: wrong}, schema)
        assert len(found.problems) == 1
        assert re.search(said, found.problems[0])
    with pytest.raises(SchemaError, match="column 'discharge' has a value that is not from 0 to 60 after 'admission'"):
        chicle.Independent(epsilon=1, delta=1e-9).fit(
            {**good, "discharge": pa.array(np.array(good["admission"]) - np.timedelta64(9, "D"))}, schema
        )


def test_missing_values_and_datetimes() -> None:
    schema = Schema(
        {
            "begin": {"type": "datetime", "min": "2020-01-01", "max": "2020-12-31", "bins": "month", "missing": True},
            "end": {
                "type": "datetime",
                "after": "begin",
                "by": {"min": 0, "max": 48, "bins": 12, "unit": "hours"},
                "missing": True,
            },
        }
    )
    rng = np.random.default_rng(0)
    begin = np.datetime64("2020-01-01T00:00", "us") + rng.integers(0, 300 * 86_400, 900) * np.timedelta64(1, "s")
    end = begin + rng.integers(0, 48 * 3_600, 900) * np.timedelta64(1, "s")
    table = pa.table({"begin": pa.array(begin, mask=rng.random(900) < 0.2), "end": pa.array(end)})
    made = chicle.Independent(epsilon=5, delta=1e-9).fit(table, schema).sample(seed=0)
    pairs = [(row["begin"], row["end"]) for row in made.to_pylist()]
    assert any(first is None for first, _ in pairs)
    for first, last in pairs:
        assert last is None or dt.timedelta(0) <= last - first < dt.timedelta(hours=49)
        assert first is not None or last is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"discharge": {"type": "date", "after": "nothing", "by": {"min": 0, "max": 9}}}, "not a modelled column"),
        ({"discharge": {"type": "date", "after": "admission", "by": 60}}, "by must be a mapping"),
        ({"discharge": {"type": "boolean", "after": "admission", "by": {"min": 0, "max": 9}}}, "`after` is for date"),
        ({"discharge": {"type": "date", "after": "admission", "by": {"min": 0, "maxi": 9}}}, "by has no 'maxi'"),
        ({"discharge": {"type": "date", "after": "admission", "by": {"min": 0, "max": 10**7}}}, "write `bins: 60`"),
        ({"discharge": {"type": "date", "after": "discharge", "by": {"min": 0, "max": 9}}}, "goes in a circle"),
        ({"due": {"derived": "admission * days"}}, "not a modelled column"),
        ({"due": {"derived": "3 + days"}}, "begins with a column"),
        ({"name": {"determined_by": ["sex", "age"], "map": [[["f", 1], "x"]]}}, "'age', which is not a modelled"),
        ({"name": {"determined_by": ["sex", "old"], "map": {"f": "x"}}}, "each with 2 values"),
        ({"name": {"determined_by": ["sex", "old"], "map": [[["x", True], "x"]]}}, "not a value of 'sex'"),
    ],
)
def test_declarations_that_do_not_fit(change: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        Schema({**STAYS, **change})
