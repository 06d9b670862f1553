"""Declarations: what is understood, what is refused and how, files, people, drafts and checks."""

import json
import time
from pathlib import Path
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
from chicle.columns import Categorical, Integer
from chicle.sources import check_table, decode_table, read_records
from tests.schemas import read, table_again, tables

AGE = {"type": "integer", "min": 0, "max": 99}


@given(tables(), st.sampled_from(["s.yaml", "s.yml", "s.json"]), st.integers(1, 9), st.booleans())
def test_what_is_saved_is_loaded(
    tmp_path_factory: pytest.TempPathFactory, drawn: Any, name: str, k: int, reviewed: bool
) -> None:
    declared, _ = drawn
    schema = Schema(
        {**declared, "person id": {"type": "identifier"}},
        max_records_per_person=k,
        person="person id",
        reviewed=reviewed,
        comments=dict.fromkeys(declared, "read from the data: bounds " * 9),
    )
    path = tmp_path_factory.mktemp("schema") / name
    schema.save(path)
    again = Schema.load(path)
    assert again == schema
    assert again.to_dict() == schema.to_dict() == json.loads(json.dumps(schema.to_dict()))
    assert list(again.columns) == list(schema.columns), "order is kept"
    assert (again.domain, again.ordinal, again.reviewed) == (schema.domain, schema.ordinal, reviewed)
    for column, other in zip(again.columns.values(), schema.columns.values(), strict=True):
        assert column == other


def test_a_file_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        """
        person: pid
        max_records: 3
        columns:
          country: {type: categorical, values: [no, se, "06", 07]}   # Norway is no boolean
          age:
            type: integer
            min: 0
            max: 99
            bins: 10
          when: {type: date, min: 2020-01-01, max: 2020-12-31, bins: month}
          wage: {type: number, min: 0, max: 1e6, bins: [0, 0, 1e3, 1e6], missing: true}
        """,
        encoding="utf-8",
    )
    schema = Schema.load(path)
    assert schema.columns["country"].labels == ("no", "se", "06", "07")
    assert dict(schema.domain) == {"country": 4, "age": 10, "when": 12, "wage": 4}
    assert schema.ordinal == {"age", "when", "wage"}
    assert (schema.person, schema.max_records_per_person) == ("pid", 3)


@pytest.mark.parametrize(
    ("column", "rule"),
    [
        ({"type": "integr", "min": 0, "max": 1}, "column 'c': there is no type 'integr'; did you mean 'integer'"),
        ({"type": "string"}, "no type 'string'; did you mean 'categorical'"),
        ({"type": "complex"}, "no type 'complex'; use one of categorical, ordinal"),
        ({"min": 0}, "column 'c': it has no type; write `type:`"),
        (5.5, "column 'c': a declaration is a mapping"),
        ({**AGE, "mim": 3}, "column 'c': integer has no 'mim'; did you mean 'min'"),
        ({"type": "drop", "missing": True}, "drop has no 'missing'"),
        ({"type": "integer", "min": 0}, "column 'c': max is not declared.*write `max"),
        ({"type": "integer", "min": 5, "max": 1}, "min 5 is above max 1; swap"),
        ({"type": "integer", "min": "a", "max": 1}, "min must be an integer, not 'a'"),
        ({"type": "integer", "min": True, "max": 1}, "min must be an integer"),
        ({**AGE, "bins": 101}, "bins must be from 1 to 100"),
        ({**AGE, "bins": "some"}, 'bins must be "each", a number of bins or a list'),
        ({**AGE, "bins": [0, 5]}, "max is 99 but the edges of bins give 5; leave max out"),
        ({"type": "integer", "bins": [3]}, "at least two edges"),
        ({"type": "integer", "bins": [3, 2]}, "rising order"),
        ({"type": "integer", "bins": [3, 3, 3]}, "rising order"),
        ({"type": "integer", "bins": [3, 3, 4, 9]}, "a bin without any integer"),
        ({**AGE, "outside": "drop"}, 'outside must be "refuse" or "clamp"'),
        ({**AGE, "missing": "yes"}, "missing must be true, false or a list of marks"),
        ({"type": "integer", "min": 0, "max": 2**33}, "too many codes"),
        ({"type": "number", "min": 0, "max": 1}, "bins must be a number of bins"),
        ({"type": "number", "min": 1, "max": 1, "bins": 3}, "must be below max"),
        ({"type": "number", "min": 0, "max": float("inf"), "bins": 3}, "max must be finite"),
        ({"type": "number", "min": -(10**400), "max": 1, "bins": 3}, "min must be finite"),
        ({"type": "number", "min": 1, "max": np.nextafter(1, 2), "bins": 3}, "too many for these bounds"),
        ({"type": "categorical"}, "categorical needs 'values'"),
        ({"type": "categorical", "values": "abc"}, "values must be a list"),
        ({"type": "categorical", "values": []}, "values is empty"),
        ({"type": "categorical", "values": ["a", "a"]}, "lists 'a' twice"),
        ({"type": "categorical", "values": ["a", 1]}, "mixes numbers and text; quote"),
        ({"type": "categorical", "values": ["a", None]}, "missing: true"),
        ({"type": "coded", "values": 0}, "values must be from 1"),
        ({"type": "coded", "values": ["a"]}, "list values as `categorical`"),
        ({"type": "date", "min": "2020-01-01", "max": "2020-13-01", "bins": "day"}, "max must be a date such as"),
        ({"type": "date", "min": "2020-01-01", "max": "2019-01-01", "bins": "day"}, "is after max"),
        ({"type": "date", "min": "2020-01-01", "max": "2021-01-01", "bins": "6 hours"}, "whole days"),
        ({"type": "date", "min": "2020-01-01", "max": "2021-01-01", "bins": "fortnight"}, "width or a calendar unit"),
        ({"type": "date", "min": "2020-01-01", "max": "2021-01-01", "bins": 12}, "width or a calendar unit"),
        ({"type": "datetime", "min": "2020", "max": "2021-01-01", "bins": "day"}, "min must be a datetime such as"),
        (
            {"type": "datetime", "min": "2020-01-01T00:00+00:00", "max": "2021-01-01", "bins": "day"},
            "leave its offset out",
        ),
        ({"type": "datetime", "min": "1900-01-01", "max": "2021-01-01", "bins": "1 second"}, "make them wider"),
        (
            {"type": "datetime", "min": "2020-01-01", "max": "2021-01-01", "bins": "day", "timezone": "Mars/Base"},
            "timezone must be a name such as",
        ),
        ({"determined_by": "nobody", "map": {"a": 1}}, "names 'nobody', which is not a modelled column"),
        ({"determined_by": "x", "map": {"a": 1}}, "map lacks (True|False) of 'x'; add it"),
        ({"determined_by": "x", "map": [[True, 1], [False, 2], ["z", 3]]}, "map has 'z', which is not a value of 'x'"),
        ({"determined_by": "x", "map": [[True, 1], [True, 2]]}, "map has a value twice"),
        ({"determined_by": "x", "map": 5}, "map must be a mapping"),
    ],
)
def test_a_bad_declaration_is_refused_by_name(column: Any, rule: str) -> None:
    with pytest.raises(SchemaError, match=rule) as refusal:
        Schema({"x": {"type": "boolean"}, "c": column})
    assert "column 'c'" in str(refusal.value)


@pytest.mark.parametrize(
    ("declaration", "rule"),
    [
        ([], "a schema is a mapping"),
        ({"colums": {}}, "a schema has no 'colums'; did you mean 'columns'"),
        ({"reviewed": True}, "declares no columns"),
        ({"columns": {}}, "no column is modelled"),
        ({"columns": {"a": {"type": "drop"}}}, "no column is modelled"),
        ({"columns": {1: AGE}}, "name must be a text, not 1; quote it"),
        ({"columns": [AGE]}, "columns must be a mapping"),
        ({"chicle": 2, "columns": {"a": AGE}}, "version"),
        ({"max_records": 0, "columns": {"a": AGE}}, "max_records must be an integer of at least 1"),
        ({"person": "a", "columns": {"a": AGE}}, "column 'a': it is the person column, which is never modelled"),
        ({"person": 3, "columns": {"a": AGE}}, "person must be the name"),
        ({"reviewed": "yes", "columns": {"a": AGE}}, "reviewed must be true or false"),
    ],
)
def test_a_bad_schema_is_refused(declaration: Any, rule: str) -> None:
    with pytest.raises(SchemaError, match=rule):
        Schema.from_dict(declaration)


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("s.yaml", "columns: {a: {type: boolean}, a: {type: drop}}", "s.yaml: line 1: 'a' occurs twice"),
        ("s.json", '{"columns": {"a": {}, "a": {}}}', "'a' occurs twice"),
        ("s.yaml", "columns: [", "not valid YAML: line"),
        ("s.json", "{", "not valid JSON: line 1"),
        ("s.yaml", "columns: !!python/object/apply:os.getcwd []", "not valid YAML"),
        ("s.yaml", "? [a, b]\n: 1", "must be a plain word"),
        ("s.yaml", "? !!set {a}\n: 1", "line 1: a key must be a plain word"),
        ("s.yaml", "a: &a {min: 1}\nb: {<<: *a, min: 2}", "line 2: `<<` is not supported"),
        ("s.json", "[" * 100_000, "cannot be read as a schema"),
        ("s.yaml", "", "a schema is a mapping"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, name: str, text: str, rule: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(SchemaError, match=rule):
        Schema.load(tmp_path / name)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="is the path right"):
        Schema.load(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"\xff\xfe\xe9")
    with pytest.raises(SchemaError, match="UTF-8"):
        Schema.load(tmp_path / "latin.yaml")


def test_columns_may_be_given_in_python() -> None:
    coarse = Schema({"c": {"type": "coded", "values": 6, "coarse": 2}}, ordinal=["c"])
    assert dict(Codec(coarse).domain) == {"c": 2}
    schema = Schema({"a": Integer(min=0, max=9), "b": Categorical(values=("x",)), "c": 4}, ordinal=["c"])
    assert schema == Schema.from_dict(schema.to_dict())
    assert schema.ordinal == {"a", "c"}
    with pytest.raises(SchemaError, match="ordinal names 'b', which is not coded"):
        Schema(schema.columns, ordinal=["b"])
    with pytest.raises(TypeError):
        schema.columns["a"] = Integer(min=0, max=1)  # type: ignore[index]


PEOPLE = {"pid": ["a", "b", "a", "a", "b", "c"], "x": [0, 1, 2, 3, 4, 5]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize(("k", "kept"), [(1, [0, 1, 5]), (2, [0, 1, 2, 4, 5]), (3, [0, 1, 2, 3, 4, 5])])
def test_the_first_rows_of_each_person_are_kept(make: Any, k: int, kept: list[int]) -> None:
    schema = Schema({"x": 6}, person="pid", max_records_per_person=k)
    records, form = read(make(PEOPLE), schema)
    assert records["x"].tolist() == kept
    assert records.max_records_per_person == k
    again = decode_table(records, Codec(schema), form)
    ids = again["pid"].to_pylist() if isinstance(again, pa.Table) else again["pid"].to_list()
    assert ids == [str(10 + i) for i in range(1, len(kept) + 1)], "fresh ids, nobody's"
    hidden = Schema({"x": 6, "pid": {"type": "drop"}}, person="pid")
    assert "pid" not in str(table_again(make(PEOPLE), hidden))


def test_every_row_needs_its_person() -> None:
    schema = Schema({"x": 6}, person="pid")
    with pytest.raises(SchemaError, match="column 'pid' is declared but not in the table"):
        read_records({"x": [1]}, schema)
    for ids in (["a", None], [1.0, np.nan]):
        with pytest.raises(SchemaError, match="column 'pid' has missing values; every row needs its person"):
            read_records({"x": [1, 2], "pid": ids}, schema)


def test_a_person_is_a_plain_value() -> None:
    schema = Schema({"x": AGE}, person="pid")
    for ids in ([{"a": 1}], [[1]]):
        with pytest.raises(SchemaError, match="column 'pid' holds no plain values"):
            read_records({"x": [1], "pid": ids}, schema)
        assert not check_table({"x": [1], "pid": ids}, schema).fits


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_both_zeros_are_one_person(dtype: Any) -> None:
    table = {"x": [1, 2, 3], "pid": np.array([0.0, -0.0, 1.0], dtype)}
    assert read_records(table, Schema({"x": AGE}, person="pid"))["x"].tolist() == [1, 3]


@pytest.mark.parametrize("name", ["\x85q", "q\x85", "a\x85b", "\u2028", "a\r", "\ufeff", "<<", "\x00"])
@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_odd_letters_are_saved(tmp_path: Path, name: str, suffix: str) -> None:
    schema = Schema({name: {"type": "categorical", "values": [name, "b"]}})
    schema.save(tmp_path / f"schema.{suffix}")
    assert Schema.load(tmp_path / f"schema.{suffix}") == schema


def test_half_a_letter_is_refused() -> None:
    with pytest.raises(SchemaError, match="name must be Unicode"):
        Schema({"\ud800": AGE})
    with pytest.raises(SchemaError, match="values must be Unicode"):
        Schema({"x": {"type": "categorical", "values": ["\ud800"]}})


@pytest.mark.parametrize(
    "values",
    [
        [-1e308, 1e308, 0.5],
        [0.0, 1.75e308, 0.5],
        [0.0, 5e-324],
        [1.5, np.inf],
        [1.5],
        pa.array([4_000_000], pa.int32()).cast(pa.date32()),
        pa.array([-4_000_000, 5], pa.int32()).cast(pa.date32()),
        pa.array([2**60]).cast(pa.timestamp("s")),
        pa.array([2**30, 2**30 + 5]).cast(pa.timestamp("s", "+01:00")),
        pa.array([2**30 - 3 * 3600 * k for k in range(9)]).cast(pa.timestamp("ns", "-11:30")),
    ],
)
def test_extremes_have_a_draft_that_fits(values: Any) -> None:
    frame = pa.table({"x": values, "y": pa.array([True] * len(values))})
    schema = chicle.draft_schema(frame)
    assert check_table(frame, schema).fits
    records, form = read(frame, schema)
    assert decode_table(records, Codec(schema), form).schema.field("y") == frame.schema.field("y")


def test_names_are_checked() -> None:
    schema = Schema({"x": AGE, "y": {"type": "boolean"}})
    with pytest.raises(SchemaError, match="column 'y' is declared but not in the table"):
        read_records(pd.DataFrame({"x": [1]}), schema)
    with pytest.raises(SchemaError, match=r"column 'z' is not declared; declare it, or write `z: \{type: drop\}`"):
        read_records(pd.DataFrame({"x": [1], "y": [True], "z": [1]}), schema)
    with pytest.raises(SchemaError, match="'x' occurs twice"):
        read_records(pd.DataFrame([[0, 1]], columns=["x", "x"]), schema)
    with pytest.raises(SchemaError, match="name must be text"):
        read_records(pd.DataFrame([[0, 1]]), schema)
    for source in (pd.Series([1]), pl.Series([1]), [1], None):
        with pytest.raises(SchemaError, match="a table is a pandas, polars or pyarrow frame, not a "):
            read_records(source, schema)
    with pytest.raises(SchemaError, match="differ in length"):
        read_records({"x": [1], "y": [True, False]}, schema)


def test_a_repeated_name_or_value_is_found_in_no_time() -> None:
    many = [str(i) for i in range(100_000)]
    many.append(many[-1])
    start = time.process_time()
    with pytest.raises(SchemaError, match="lists '99999' twice"):
        Schema({"x": {"type": "categorical", "values": many}})
    names = many[50_000:]
    with pytest.raises(SchemaError, match="column '99999' occurs twice"):
        chicle.draft_schema(pa.Table.from_arrays([pa.array([1])] * len(names), names))
    assert time.process_time() - start < 5


class Strange:
    """A value that no column can hold."""


def test_nothing_in_a_dropped_column_can_fail() -> None:
    schema = Schema({"x": AGE, "note": {"type": "drop"}, "gone": {"type": "drop"}})
    for source in (pl.Series([1]), pd.Series([1]), None):
        with pytest.raises(SchemaError, match="a table is a pandas, polars or pyarrow frame, not a "):
            read_records(source, schema)
    notes = [Strange(), 1]
    mapping = {"x": [1, 2], "note": notes}
    frames = [mapping, pd.DataFrame(mapping), pl.DataFrame({"x": [1, 2], "note": pl.Series(notes, dtype=pl.Object)})]
    for frame in frames:
        assert check_table(frame, schema).fits
        records, form = read(frame, schema)
        assert records["x"].tolist() == [1, 2]
        again = decode_table(records, Codec(schema), form)
        assert type(again) is (pa.Table if frame is mapping else type(frame))
        assert list(getattr(again, "column_names", again.columns)) == ["x"]


FRAME = {
    "age": [31, None, 177],
    "sex": ["f", "m", "x"],
    "when": ["2020-01-01", "never", "2020-01-02"],
    "half": [0.5, 1.0, 2.0],
    "flag": [0, 1, 2],
    "state": ["A", "B", "A"],
    "city": ["a", "b", "b"],
    "extra": [1, 2, 3],
}


def test_a_check_lists_all_that_does_not_fit() -> None:
    schema = Schema(
        {
            "age": AGE,
            "sex": {"type": "categorical", "values": ["f", "m"]},
            "when": {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "bins": "day"},
            "half": AGE,
            "flag": {"type": "boolean"},
            "city": {"type": "categorical", "values": ["a", "b"]},
            "state": {"determined_by": "city", "map": {"a": "A", "b": "B"}},
            "gone": AGE,
        }
    )
    check = check_table(pd.DataFrame(FRAME), schema)
    assert not check.fits
    told = [problem.partition(";")[0] for problem in check.problems]
    assert sorted(told) == sorted(
        [
            "column 'gone' is declared but not in the table",
            "column 'extra' is not declared",
            "column 'age' has missing values",
            "column 'age' has a number outside its bounds",
            "column 'sex' has a text that is not one of the 2 declared values",
            "column 'when' has a text that is not of the form 2024-12-31",
            "column 'half' has a number with a fraction",
            "column 'flag' has a number other than 0 and 1",
            "column 'state' has a value that its map does not give for 'city'",
        ]
    )
    for value in ("177", "never", "'x'", "0.5"):
        assert value not in str(check)


@given(tables())
def test_a_table_that_fits_passes_the_check(drawn: Any) -> None:
    declared, rows = drawn
    schema = Schema({name: {**told, "missing": True} for name, told in declared.items()})
    made = decode_table(read_records(rows, schema), Codec(schema))
    check = check_table(made, schema)
    assert check.fits
    assert str(check) == "The table fits the schema."


def a_table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "id": np.arange(1_000, 1_500),
            "name": [f"name {i}" for i in range(500)],
            "age": rng.integers(17, 91, 500),
            "wage": np.where(rng.random(500) < 0.4, 0, rng.integers(1, 10**6, 500)),
            "share": np.where(rng.random(500) < 0.4, 0.0, rng.random(500)),
            "job": rng.choice(["cook", "smith", "?"], 500),
            "married": rng.random(500) < 0.5,
            "cars": np.where(rng.random(500) < 0.3, np.nan, rng.integers(0, 4, 500)),
            "born": pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 15_000, 500), "D"),
            "seen": (pd.Timestamp("2024-01-01", tz="Europe/Paris") + pd.to_timedelta(rng.integers(0, 10**7, 500), "s")),
            "text": pd.Series([f"2024-01-{1 + i % 28:02}T0{i % 10}:{i % 60:02}" for i in range(500)]),
            "empty": [None] * 500,
            "constant": 3.25,
        }
    )


def test_a_draft_fits_its_table_and_is_loud(tmp_path: Path) -> None:
    frame = a_table()
    draft = chicle.draft_schema(frame)
    types = {name: column.type for name, column in draft.columns.items()}
    assert types == {
        "id": "identifier",
        "name": "identifier",
        "age": "integer",
        "wage": "integer",
        "share": "number",
        "job": "categorical",
        "married": "boolean",
        "cars": "integer",
        "born": "datetime",
        "seen": "datetime",
        "text": "datetime",
        "empty": "drop",
        "constant": "number",
    }
    assert check_table(frame, draft).fits
    assert not draft.reviewed
    assert repr(draft).startswith("DRAFT, NOT PRIVATE")
    draft.save(tmp_path / "draft.yaml")
    text = (tmp_path / "draft.yaml").read_text(encoding="utf-8")
    assert text.startswith("# DRAFT, NOT PRIVATE")
    assert text.count("# read from the data: ") == len(frame.columns)
    assert "'?' looks like a mark of missing values" in text
    assert Schema.load(tmp_path / "draft.yaml") == draft
    text = text.replace("reviewed: false", "reviewed: true")
    (tmp_path / "draft.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(SchemaError, match=r"columns 'age', 'wage', .* and 5 more have no public source for what"):
        Schema.load(tmp_path / "draft.yaml")
    (tmp_path / "draft.yaml").write_text(text.replace("source: data", "source: the census form"), encoding="utf-8")
    assert Schema.load(tmp_path / "draft.yaml") == draft.mark_reviewed("the census form")
    (tmp_path / "draft.yaml").write_text(text.replace(", source: data", ""), encoding="utf-8")
    with pytest.raises(SchemaError, match="no public source"):
        Schema.load(tmp_path / "draft.yaml")


def test_zeros_of_a_draft_stay_zeros() -> None:
    frame = a_table()
    draft = chicle.draft_schema(frame)
    again = table_again(frame, draft)
    assert (again.dtypes == frame.dtypes[list(again)]).all()
    for name in ("wage", "share"):
        np.testing.assert_array_equal(again[name] == 0, frame[name] == 0)
        assert abs(again[name].mean() / frame[name].mean() - 1) < 0.1


def test_fit_refuses_a_draft() -> None:
    frame = a_table()
    draft = chicle.draft_schema(frame)
    synth = chicle.Independent(epsilon=1, delta=1e-9)
    with pytest.raises(SchemaError, match=r"a draft that was read from the data.*reviewed: true"):
        synth.fit(frame, draft)
    assert not hasattr(synth, "release_")
    made = synth.fit(frame, draft.mark_reviewed("the census form")).sample(seed=0)
    assert list(made) == [name for name in frame if name != "empty"]
    assert (made.dtypes == frame.dtypes[list(made)]).all()
    assert check_table(made.assign(empty=None), draft).fits
    pd.testing.assert_frame_equal(made, synth.sample(seed=0))
    assert not made.equals(synth.sample(seed=1))


@pytest.mark.parametrize("frame", [{}, {"a": [None]}, {"a": []}, {"a": [[1], [2]]}])
def test_a_table_without_anything_to_model_has_no_draft(frame: Any) -> None:
    with pytest.raises(SchemaError, match=r"no column|no rows"):
        chicle.draft_schema(frame)
