"""Public data: what is read of them, what is refused, and that they cost nothing."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import chicle
from chicle import Budget, ChicleError, Domain, Ledger, ParameterError, PublicData, Records, Schema, SchemaError
from chicle.codecs import Codec
from chicle.measurements.public_rows import PublicRows

SCHEMA = Schema(
    {
        "age": {"type": "integer", "min": 0, "max": 99, "coarse": 10},
        "job": {"type": "categorical", "values": ["cook", "smith"], "missing": True},
        "left": {"type": "boolean"},
        "right": {"type": "boolean"},
        "note": {"type": "drop"},
    },
    combine={"sides": ["left", "right"]},
    constraints=[{"if": {"age": {"below": 15}}, "then": {"job": [None]}}],
)
TABLE = {
    "age": [3, 31, 44, 77],
    "job": [None, "cook", "smith", None],
    "left": [True, False, True, True],
    "right": [False, False, True, True],
}


def rows_of(table: Any, schema: Schema = SCHEMA, **given: Any) -> Records:
    return PublicData(table, **given).rows(Codec(schema)).records


def test_rows_are_encoded_as_the_private_table_is() -> None:
    private = chicle.sources.read_records(TABLE | {"note": ["x"] * 4}, SCHEMA)
    expected = Codec(SCHEMA).recode(private)
    for kind in (dict, pd.DataFrame, pl.DataFrame, pa.table):
        rows = rows_of(kind(TABLE))
        assert rows.domain == Codec(SCHEMA).domain
        assert all(np.array_equal(rows[name], expected[name]) for name in rows.domain)
    rows = rows_of(private)
    assert all(np.array_equal(rows[name], expected[name]) for name in rows.domain)


def test_files_and_batches_are_read(tmp_path: Path) -> None:
    frame = pd.DataFrame(TABLE | {"note": ["x"] * 4, "extra": 1.5})
    frame.to_csv(tmp_path / "p.csv", index=False)
    frame.to_parquet(tmp_path / "p.parquet")
    for table in (tmp_path / "p.csv", str(tmp_path / "*.parquet"), [frame[:2], frame[2:]]):
        rows = rows_of(table, columns=["job", "age"])
        assert dict(rows.domain) == {"age": 10, "job": 3}, "in the order of the schema"
        assert rows["age"].tolist() == [0, 3, 4, 7]


@pytest.mark.parametrize("kind", [dict, pd.DataFrame])
def test_columns_may_be_missing(kind: Any) -> None:
    """An attribute that is combined comes whole or not at all; constraints on missing columns are not checked."""
    rows = rows_of(kind({"job": ["cook", "smith"], "left": [True, False]}))
    assert dict(rows.domain) == {"job": 3}
    rows = rows_of(kind({"right": [True, False], "left": [True, False]}))
    assert dict(rows.domain) == {"sides": 4}
    records = Records({"age": [3, 99]}, {"age": 100})
    assert rows_of(records)["age"].tolist() == [0, 9]


WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (TABLE | {"job": [1, 2, 3, 4]}, {}, "column 'job'"),
    (TABLE | {"job": ["cook", "clown", "smith", "cook"]}, {}, "column 'job' has a text that is not one of"),
    (TABLE | {"age": [31, 31, 44, 101]}, {}, "column 'age' has a number outside its bounds"),
    (TABLE | {"age": [31, 31, 44, None]}, {}, "column 'age' has missing values"),
    (TABLE | {"job": ["cook"] * 4}, {}, "violates the constraint `if` on 'age' and 'job'"),
    ({name: [] for name in TABLE}, {}, "has no rows; give at least one"),
    (TABLE | {"extra": [1] * 4}, {}, "column 'extra' is not in the schema; drop it, or name those to use"),
    ({"extra": [1], "note": ["a"]}, {"columns": []}, "no modelled column"),
    ({"left": [True]}, {}, "no whole attribute"),
    (TABLE, {"columns": ["wage"]}, "the schema has no modelled column 'wage'; it has 'age', 'job'"),
    ({"age": [20]}, {"columns": ["job"]}, "the table has no column 'job'; it has 'age'"),
    (Records({"age": [1]}, {"age": 7}), {}, "column 'age' has 7 codes, in the schema 100"),
    (Records({"pet": [1]}, {"pet": 7}), {}, "column 'pet' is not in the schema"),
    (3.5, {}, "a table is a pandas"),
    ("no-such-file.csv", {}, "no-such-file.csv"),
    (iter([TABLE]), {}, "read once"),
]


@pytest.mark.parametrize(("table", "given", "rule"), WRONG)
def test_a_table_that_does_not_fit_is_refused_before_anything_is_spent(
    table: Any, given: dict[str, Any], rule: str
) -> None:
    ledger = Ledger(Budget(epsilon=1, delta=1e-9))
    synth = chicle.PMWPub(epsilon=1, delta=1e-9)
    with pytest.raises(ChicleError, match=rule) as refused:
        synth.fit(TABLE, SCHEMA, public=PublicData(table, **given), ledger=ledger)
    assert str(refused.value).startswith("public data: ")
    assert "\n" not in str(refused.value)
    assert not ledger.events


def test_columns_that_are_yet_to_be_discovered_need_values() -> None:
    schema = Schema({"job": {"type": "open"}, "smoker": {"type": "boolean"}})
    with pytest.raises(SchemaError, match=r"public data: column 'job' is yet to be discovered.*declare its values"):
        rows_of({"job": ["a"], "smoker": [True]}, schema)
    assert dict(rows_of({"smoker": [True]}, schema).domain) == {"smoker": 2}


def test_roles_and_columns_are_checked() -> None:
    with pytest.raises(ParameterError, match="the role of public data must be one of"):
        PublicData(TABLE, role="magic")  # type: ignore[arg-type]
    for name in ("", "two\nlines", 3):
        with pytest.raises(ParameterError, match="name of public data must be a text of one line"):
            PublicData(TABLE, name=name)  # type: ignore[arg-type]
    for columns in ("age", [1]):
        with pytest.raises(ParameterError, match="must be a list of names"):
            PublicData(TABLE, columns=columns)  # type: ignore[arg-type]


def test_who_takes_public_data_and_who_does_not() -> None:
    census = chicle.datasets.census(600, d=4)
    explicit = functools.partial(chicle.MWEM, model="explicit")
    for make in (explicit, chicle.PEP, chicle.DualQuery, chicle.FEM):
        ledger = Ledger(Budget(epsilon=1, delta=1e-9))
        with pytest.raises(ParameterError, match=r"cannot use public data: .*leave out `public`, or use .*PMWPub"):
            make(epsilon=1, delta=1e-9).fit(census, public=census, ledger=ledger)
        with pytest.raises(ParameterError, match="cannot use public data"):
            make(epsilon=1, delta=1e-9).plan(census.domain, public=census)
        assert not ledger.events
    with pytest.raises(ParameterError, match="PMWPub begins with public data; give a table"):
        chicle.PMWPub(epsilon=1, delta=1e-9).fit(census)
    part = Records({name: census[name] for name in list(census.domain)[:2]}, dict(list(census.domain.items())[:2]))
    with pytest.raises(ParameterError, match="the public data have no 'COUNTY'; add it"):
        chicle.PMWPub(epsilon=1, delta=1e-9).fit(census, public=part)


def test_public_data_cost_nothing_and_are_named() -> None:
    here, there = chicle.datasets.census(2_000, d=4, seed=0), chicle.datasets.census(321, d=4, seed=1)
    digest = PublicRows(there, "trusted").digest
    note = f"public data are used as trusted: a table (digest {digest}), 321 rows of 'SEX', 'AGE', 'COUNTY', 'RACE'"
    synth = chicle.PMWPub(epsilon=1, delta=1e-9, rounds=2)
    plan = synth.plan(here.domain, 2_000, public=PublicData(there, role="trusted"))
    assert plan.notes == (note,)
    assert note in str(plan)
    assert note in plan.to_json()
    assert sum(step.rho for step in plan.steps) == pytest.approx(plan.budget.rho)
    synth.fit(here, public=PublicData(there, role="trusted"))
    assert note in synth.release_.notes
    assert [event.purpose for event in synth.ledger_.events[:1]] == ["number of records"]
    assert synth.ledger_.spent == pytest.approx(synth.budget.rho)
    made, rows = synth.sample(seed=0), {tuple(int(there[name][i]) for name in there) for i in range(len(there))}
    assert {tuple(int(made[name][i]) for name in made) for i in range(len(made))} <= rows, "rows that are public"


def test_tables_have_names_and_digests(tmp_path: Path) -> None:
    pd.DataFrame(TABLE).to_csv(tmp_path / "p.csv", index=False)
    codec = Codec(SCHEMA)
    rows = [PublicData(table).rows(codec) for table in (TABLE, tmp_path / "p.csv", str(tmp_path / "p.csv"))]
    assert [one.name for one in rows] == ["a table", "p.csv", "p.csv"]
    assert len({one.digest for one in rows}) == 1
    assert PublicData(TABLE, name="census 1990").rows(codec).name == "census 1990"
    other = PublicData(TABLE | {"left": [True, True, True, True]}).rows(codec)
    assert other.digest != rows[0].digest
    many = Domain({f"x{i}": 2 for i in range(20)})
    wide = PublicRows(Records({name: [0] for name in many}, many), "evidence")
    assert "'x11', and 8 more columns" in wide.note
