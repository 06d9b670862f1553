"""Any schema and any table drawn from it: codes are those of the oracle, and decoding lands in the same code."""

import datetime as dt
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chicle import Schema, SchemaError
from chicle.codecs import Codec
from chicle.codes import code_dtype
from chicle.columns import (
    Boolean,
    Categorical,
    Coded,
    Column,
    Date,
    DateTime,
    Determined,
    Integer,
    Number,
    Open,
    column_from_dict,
)
from chicle.columns.base import refuse
from chicle.sources import decode_table, read_records
from tests.oracles.schema import naive_code, naive_size
from tests.schemas import read, table_of, tables


@given(tables())
def test_codes_are_those_of_the_oracle(drawn: tuple[dict[str, Any], dict[str, list[Any]]]) -> None:
    declared, rows = drawn
    schema = Schema(declared)
    records = read_records(table_of(declared, rows), schema)
    for name, told in declared.items():
        assert schema.domain[name] == naive_size(told) + told.get("missing", False)
        assert records[name].dtype == code_dtype(schema.domain[name])
        assert records[name].tolist() == [naive_code(told, value) for value in rows[name]], told


@given(tables(), st.integers(0, 2**32), st.sampled_from(["pyarrow", "polars", "batch", "chunks"]))
def test_decoding_lands_in_the_same_code(drawn: Any, seed: int, kind: str) -> None:
    declared, rows = drawn
    schema = Schema(declared)
    table = table_of(declared, rows)
    frame: Any = table
    if kind == "polars":
        frame = pl.DataFrame(table)
    elif kind == "batch":
        frame = pa.RecordBatch.from_arrays([c.combine_chunks() for c in table.columns], table.column_names)
    elif kind == "chunks":
        frame = pa.concat_tables([table.slice(0, 2), table.slice(2)])
    records, form = read(frame, schema)
    again = decode_table(records, Codec(schema), form, rng=np.random.default_rng(seed))
    assert type(again) is type(frame)
    assert again.schema == frame.schema, "names, order and types are kept"
    codes = read_records(again, schema)
    for name in schema.domain:
        np.testing.assert_array_equal(codes[name], records[name])


@given(tables(), st.integers(0, 2**32))
def test_pandas_lands_in_the_same_code(drawn: Any, seed: int) -> None:
    declared, rows = drawn
    # Integers of pandas with missing values among them are floats, which hold no more than 53 bits.
    large = {name for name in declared if any(type(v) is int and abs(v) >= 2**53 for v in rows[name])}
    assume(not any(None in rows[name] for name in large))
    schema = Schema(declared)
    frame = table_of(declared, rows).to_pandas()
    records, form = read(frame, schema)
    again = decode_table(records, Codec(schema), form, rng=np.random.default_rng(seed))
    assert list(again) == list(frame)
    codes = read_records(again, schema)
    for name, told in declared.items():
        np.testing.assert_array_equal(codes[name], records[name])
        if not told.get("missing") and len(frame):
            assert again[name].dtype == frame[name].dtype


@given(tables())
def test_every_code_has_values_inside_the_bounds(drawn: Any) -> None:
    declared, _ = drawn
    for name, told in declared.items():
        column = column_from_dict(name, told)
        codes = np.arange(min(column.size, 5_000)).astype(code_dtype(column.cardinality))
        for dtype in (None, pa.float32() if told["type"] == "number" else None):
            made = column.decode(codes, dtype, np.random.default_rng(0)).to_pylist()
            bounds = told.get("bins") if isinstance(told.get("bins"), list) else [told.get("min"), told.get("max")]
            if told["type"] in ("integer", "number") and bounds is not None:
                assert all(bounds[0] <= value <= bounds[-1] for value in made) or dtype is not None
            if dtype is None and not isinstance(made[0], dt.datetime):
                assert [naive_code(told, value) for value in made] == codes.tolist()


@pytest.mark.parametrize("dtype", [pa.float32(), pa.float16()])
def test_narrow_floats_stay_in_their_bin(dtype: pa.DataType) -> None:
    column = Number(min=0, max=0.7, bins=7)
    codes = np.repeat(np.arange(7), 2_000).astype(np.uint8)
    made = column.decode(codes, dtype, np.random.default_rng(0))
    assert made.type == dtype
    again = column.encode(pa.chunked_array([made]), refuse("x"))
    np.testing.assert_array_equal(again, codes)


def test_numbers_are_uniform_inside_their_bin() -> None:
    codes = np.zeros(40_000, np.uint8)
    rng = np.random.default_rng(0)
    made = Number(bins=[2, 4, 5]).decode(codes, None, rng).to_numpy()
    counts, _ = np.histogram(made, bins=20, range=(2, 4))
    assert ((counts - 2_000) ** 2 / 2_000).sum() < 50  # 19 degrees of freedom
    made = Integer(bins=[2, 7, 9]).decode(codes, None, rng).to_numpy()
    values, counts = np.unique(made, return_counts=True)
    assert values.tolist() == [2, 3, 4, 5, 6]
    assert ((counts - 8_000) ** 2 / 8_000).sum() < 25
    days = Date(min="2024-02-01", max="2024-12-31", bins="month").decode(codes, None, rng).to_pylist()
    assert set(days) == {dt.date(2024, 2, day) for day in range(1, 30)}


def test_bins_of_a_count_are_of_nearly_equal_width() -> None:
    for bins in (1, 2, 7, 99, 100):
        codes = Integer(min=1, max=100, bins=bins).encode(pa.chunked_array([pa.array(range(1, 101))]), refuse("x"))
        widths = np.bincount(codes)
        assert len(widths) == bins
        assert widths.max() - widths.min() <= 1
        assert (np.diff(codes.astype(int)) >= 0).all()


def test_integers_may_be_declared_as_numbers() -> None:
    schema = Schema({"x": {"type": "number", "min": 0, "max": 100, "bins": 7}})
    frame = pd.DataFrame({"x": np.arange(101, dtype=np.int16)})
    records, form = read(frame, schema)
    again = decode_table(records, Codec(schema), form)
    assert again["x"].dtype == np.int16
    np.testing.assert_array_equal(read_records(again, schema)["x"], records["x"])


def test_a_type_too_narrow_for_the_bounds_is_widened() -> None:
    schema = Schema(
        {"x": {"type": "integer", "min": 0, "max": 1_000}, "y": {"type": "categorical", "values": [1, 300]}}
    )
    _, form = read({"x": np.array([5], np.int8), "y": np.array([1], np.int8)}, schema)
    made = decode_table(read_records({"x": [999], "y": [300]}, Schema(schema.columns)), Codec(schema), form)
    assert made.to_pylist() == [{"x": 999, "y": 300}]


@pytest.mark.parametrize("dtype", [pa.uint64(), pa.int8(), pa.float64(), pa.decimal128(7, 1), pa.float32()])
def test_integers_come_in_any_type(dtype: pa.DataType) -> None:
    schema = Schema({"x": {"type": "integer", "min": 0, "max": 99, "bins": 10, "outside": "clamp", "missing": True}})
    table = pa.table({"x": pa.array([0, 99, 101, None, 17], pa.int16()).cast(dtype)})
    records, form = read(table, schema)
    assert records["x"].tolist() == [0, 9, 9, 10, 1]
    again = decode_table(records, Codec(schema), form)
    assert again.schema == table.schema
    assert read_records(again, schema)["x"].tolist() == records["x"].tolist()


@given(st.floats(-1e6, 1e6), st.floats(1, 1e9), st.integers(1, 200), st.integers(0, 2**32))
def test_numbers_in_bins_of_equal_width(low: float, width: float, bins: int, seed: int) -> None:
    high = low + width
    schema = Schema({"x": {"type": "number", "min": low, "max": high, "bins": bins}})
    rng = np.random.default_rng(seed)
    values = np.clip(np.append(low + (high - low) * rng.random(50), [low, high]), low, high)
    records, form = read({"x": values}, schema)
    exact = np.minimum((values - low) / (high - low) * bins, bins - 1)
    assert (np.abs(records["x"] - np.floor(exact)) <= (np.abs(exact - np.round(exact)) < 1e-4)).all()
    assert records["x"][-2:].tolist() == [0, bins - 1]
    again = decode_table(records, Codec(schema), form, rng=rng)
    np.testing.assert_array_equal(read_records(again, schema)["x"], records["x"])


def test_extremes_are_clamped() -> None:
    low, high = -(2**63), 2**63 - 2
    schema = Schema({"x": {"type": "integer", "min": low, "max": high, "bins": 2, "outside": "clamp"}})
    assert read_records({"x": np.array([2**64 - 1, 0], np.uint64)}, schema)["x"].tolist() == [1, 1]
    assert read_records({"x": np.array([np.inf, -np.inf, -2.0])}, schema)["x"].tolist() == [1, 0, 0]
    numbers = Schema({"x": {"type": "number", "min": 0, "max": 1, "bins": 2, "outside": "clamp"}})
    assert read_records({"x": [np.inf, -np.inf, 0.5]}, numbers)["x"].tolist() == [1, 0, 1]


@given(st.integers(-200, 200), st.integers(0, 300), st.sampled_from([np.int8, np.uint8, np.int16, np.uint64, np.int64]))
def test_integers_of_any_width_are_clamped(low: int, width: int, dtype: Any) -> None:
    limits = np.iinfo(dtype)
    inner = [value for value in range(-600, 700) if limits.min <= value <= limits.max]
    values = np.array([*inner, limits.min, limits.max], dtype)
    schema = Schema({"x": {"type": "integer", "min": low, "max": low + width, "outside": "clamp"}})
    expected = [min(max(int(value), low), low + width) - low for value in values]
    assert read_records({"x": values}, schema)["x"].tolist() == expected


def test_bounds_are_those_of_the_width_of_the_table() -> None:
    schema = Schema({"x": {"type": "number", "min": -0.1, "max": 0.1, "bins": 2}})
    assert read_records({"x": np.array([-0.1, 0.1], np.float32)}, schema)["x"].tolist() == [0, 1]
    with pytest.raises(SchemaError, match="outside its bounds"):
        read_records({"x": np.array([0.1000001], np.float32)}, schema)
    wide = Schema({"x": {"type": "number", "min": 0, "max": 1e300, "bins": 2}})
    records, form = read(pa.table({"x": pa.array([1.0], pa.float32())}), wide)
    assert np.isfinite(decode_table(records, Codec(wide), form)["x"].to_numpy()).all()


@given(
    st.sets(st.decimals(-9_999, 9_999, places=3).map(float), min_size=2, max_size=6).map(sorted),
    st.integers(1, 30),
    st.integers(0, 20),
    st.sampled_from([pa.decimal128, pa.decimal256]),
    st.integers(0, 2**32),
)
def test_decimals_hold_the_bounds_or_are_not_used(
    edges: list[float], precision: int, scale: int, make: Any, seed: int
) -> None:
    assume(scale <= precision)
    dtype = make(precision, scale)
    whole = Integer(min=int(edges[0]) - 1, max=int(edges[-1]) + 1, bins=2)
    for column in (Number(bins=edges), Number(min=edges[0], max=edges[-1], bins=3), whole):
        codes = np.repeat(np.arange(column.cardinality), 20).astype(np.uint8)
        made = column.decode(codes, dtype, np.random.default_rng(seed))
        low, high = column.low, column.high
        fits = Fraction(max(-low, high)) < 10 ** (precision - scale) and _some_decimal(low, high, scale)
        assert made.type == (dtype if fits else pa.int64() if column is whole else pa.float64())
        assert all(low <= float(value) <= high for value in made.to_pylist())
        again = column.encode(pa.chunked_array([made]), refuse("x"))
        if isinstance(column, Integer) or not fits:
            np.testing.assert_array_equal(again, codes)
        else:
            bounds = zip(column.edges, np.nextafter(column.edges[1:], -np.inf), strict=False)
            wide = np.repeat([_some_decimal(*bound, min(scale, 10)) for bound in bounds], 20)
            np.testing.assert_array_equal(again[wide], codes[wide])


def _some_decimal(low: float, high: float, scale: int) -> bool:
    """Whether a decimal of so many digits is, as a float, from low to high."""
    first = math.floor(Fraction(low) * 10**scale)
    return any(low <= float(Fraction(units, 10**scale)) <= high for units in (first, first + 1, first + 2))


def test_decimals_may_be_missing() -> None:
    column = Number(min=-5, max=5, bins=2, missing=True)
    made = column.decode(np.array([0, 2, 1] * 9, np.uint8), pa.decimal128(5, 2), np.random.default_rng(0))
    again = column.encode(pa.chunked_array([made]), refuse("x"))
    assert made.null_count == 9
    assert again.tolist() == [0, 2, 1] * 9


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.7), (0, 1e19), (-1e300, 1e300 / 2)])
def test_numbers_without_integers_of_64_bits_are_floats(low: float, high: float) -> None:
    column = Number(min=low, max=high, bins=4)
    codes = np.arange(4, dtype=np.uint8)
    made = column.decode(codes, pa.int64(), np.random.default_rng(0))
    assert made.type == pa.float64()
    np.testing.assert_array_equal(column.encode(pa.chunked_array([made]), refuse("x")), codes)


def test_integers_that_a_float_can_not_hold_have_a_wider_one() -> None:
    column = Integer(min=0, max=2**25 + 1, bins=2)
    codes = np.array([0, 1] * 500, np.uint8)
    assert column.decode(codes, pa.float32(), np.random.default_rng(0)).type == pa.float64()
    column = Integer(min=0, max=2**11, bins=2)
    assert column.decode(codes, pa.float16(), np.random.default_rng(0)).type == pa.float16()


@pytest.mark.parametrize("told", ["date", "datetime"])
@pytest.mark.parametrize(("low", "high"), [("0001-01-01", "2024-12-31"), ("2024-01-01", "9999-12-31")])
def test_nanoseconds_that_do_not_reach_far_enough_are_microseconds(told: str, low: str, high: str) -> None:
    column = column_from_dict("x", {"type": told, "min": low, "max": high, "bins": "year"})
    codes = np.arange(column.size).astype(code_dtype(column.cardinality))
    for dtype in (pa.timestamp("ns"), pa.dictionary(pa.int32(), pa.timestamp("ns"))):
        made = column.decode(codes, dtype, np.random.default_rng(0))
        assert getattr(made.type, "value_type", made.type) == pa.timestamp("us")
        np.testing.assert_array_equal(column.encode(pa.chunked_array([made]), refuse("x")), codes)


@pytest.mark.parametrize("dtype", [pa.date32(), pa.date64()])
def test_dates_have_no_bins_finer_than_a_day(dtype: pa.DataType) -> None:
    values = pa.chunked_array([pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 2)], dtype)])
    for low, bins in (("2024-01-01", "6 hours"), ("2024-01-01T12:00", "day")):
        column = DateTime(min=low, max="2024-01-31", bins=bins, outside="clamp")
        with pytest.raises(SchemaError, match=r"bins begin at other times than midnight; declare it as `date`"):
            column.encode(values, refuse("x"))
    column = DateTime(min="2024-01-01", max="2024-01-31", bins="day")
    codes = column.encode(values, refuse("x"))
    made = column.decode(codes, dtype, np.random.default_rng(0))
    assert made.to_pylist() == values.to_pylist()


def test_both_zeros_are_one_value() -> None:
    column = column_from_dict("x", {"type": "categorical", "values": [0.0, 1.0]})
    assert column.encode(pa.chunked_array([[-0.0, 0.0, 1.0]]), refuse("x")).tolist() == [0, 0, 1]
    column = column_from_dict("x", {"type": "categorical", "values": [-0.0, 1.0]})
    assert column.encode(pa.chunked_array([[-0.0, 0.0, 1.0]]), refuse("x")).tolist() == [0, 0, 1]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_what_is_infinite_is_outside_of_any_bounds(dtype: Any) -> None:
    column = Number(min=-1e200, max=1e200, bins=2)
    for value in (np.inf, -np.inf):
        with pytest.raises(SchemaError, match="outside its bounds"):
            column.encode(pa.chunked_array([pa.array(np.array([1, value], dtype))]), refuse("x"))
    assert column.encode(pa.chunked_array([pa.array(np.array([1, -1], dtype))]), refuse("x")).tolist() == [1, 0]


def test_nan_is_missing_in_every_frame() -> None:
    schema = Schema({"x": {"type": "number", "min": 0, "max": 1, "bins": 2, "missing": True}})
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        assert read_records(make({"x": [np.nan, 0.7]}), schema)["x"].tolist() == [2, 1]


@pytest.mark.parametrize("dtype", [pa.float64(), pa.float32(), pa.float16()])
def test_nan_in_a_dictionary_is_missing(dtype: pa.DataType) -> None:
    dictionary = pa.array(np.array([np.nan, 0.75], dtype.to_pandas_dtype()))
    values = pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0]), dictionary)])
    told: list[dict[str, Any]] = [
        {"type": "number", "min": 0, "max": 1, "bins": 2},
        {"type": "categorical", "values": [0.5, 0.75]},
    ]
    for declared in told:
        with pytest.raises(SchemaError, match="has missing values"):
            column_from_dict("x", declared).encode(values, refuse("x"))
        assert column_from_dict("x", {**declared, "missing": True}).encode(values, refuse("x")).tolist() == [2, 1, 2, 2]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_texts_of_dates_stay_texts(make: Any) -> None:
    schema = Schema(
        {
            "day": {"type": "date", "min": "2024-01-01", "max": "2024-12-31", "bins": "month"},
            "at": {"type": "datetime", "min": "2024-01-01", "max": "2024-12-31", "bins": "6 hours"},
        }
    )
    frame = make({"day": ["2024-02-29"], "at": ["2024-03-01T13:30"]})
    records, form = read(frame, schema)
    again = decode_table(records, Codec(schema), form)
    assert list(again.dtypes) == list(frame.dtypes)
    assert again["day"][0].startswith("2024-02-")
    assert again["at"][0].startswith("2024-03-01 1")
    assert read_records(again, schema)["at"].tolist() == records["at"].tolist()


def test_a_day_of_25_hours_has_25_bins() -> None:
    autumn = DateTime(min="2024-10-27", max="2024-10-27", bins="1 hour", timezone="Europe/Paris")
    assert autumn.cardinality == 25
    week = DateTime(min="2024-10-21", max="2024-11-03", bins="day", timezone="Europe/Paris")
    hours = np.diff(week.edges) / 3.6e9
    assert hours.round(6).tolist() == [24.0] * 6 + [25.0] + [24.0] * 7


def test_timestamps_are_dates_where_so_declared() -> None:
    schema = Schema({"day": {"type": "date", "min": "1960-01-01", "max": "2024-12-31", "bins": "day"}})
    for unit in ("s", "ms", "us", "ns"):
        frame = pd.DataFrame({"day": pd.to_datetime(["1969-12-31 23:00", "2024-12-31 00:00"]).as_unit(unit)})
        records, form = read(frame, schema)
        again = decode_table(records, Codec(schema), form)
        assert again["day"].dtype == frame["day"].dtype
        assert again["day"].dt.strftime("%F").tolist() == ["1969-12-31", "2024-12-31"]


def test_a_determined_column_follows_its_map() -> None:
    told: dict[str, Any] = {
        "city": {"type": "categorical", "values": ["Lyon", "Bonn", "Nice"], "missing": True},
        "state": {"determined_by": "city", "map": {"Lyon": "France", "Nice": "France", "Bonn": "Germany"}},
        "old": {"type": "boolean"},
        "tax": {"determined_by": "old", "map": [[True, 5], [False, 7.5]]},
    }
    schema = Schema(told)
    assert list(schema.domain) == ["city", "old"]
    frame = pd.DataFrame(
        {
            "state": pd.Categorical(["?", "?", "?", "?"]),
            "city": ["Bonn", "Lyon", None, "Nice"],
            "old": [True, False, True, False],
        }
    )
    records, form = read(frame, schema)
    again = decode_table(records, Codec(schema), form)
    assert list(again) == ["state", "city", "old", "tax"]
    assert again["state"].astype(object).where(again["state"].notna(), None).tolist() == [
        "Germany",
        "France",
        None,
        "France",
    ]
    assert again["state"].cat.categories.tolist() == ["France", "Germany"]
    assert again["tax"].tolist() == [5, 7.5, 5, 7.5]
    assert Schema.from_dict(schema.to_dict()) == schema
    assert isinstance(schema.columns["tax"], Determined)


def test_identifiers_are_fresh_and_dropped_columns_are_gone() -> None:
    schema = Schema(
        {
            "id": {"type": "identifier"},
            "key": {"type": "identifier"},
            "note": {"type": "drop"},
            "x": {"type": "boolean"},
        }
    )
    frame = pl.DataFrame({"key": [77] * 12, "note": ["n"] * 12, "id": ["secret"] * 12, "x": [True] * 12})
    records, form = read(frame, schema)
    again = decode_table(records, Codec(schema), form)
    assert again.columns == ["key", "id", "x"]
    assert again["key"].to_list() == list(range(1, 13))
    assert again["id"].to_list() == [f"{i}" for i in range(101, 113)], "of one length, and no leading zeros"


def test_unused_categories_need_not_be_declared() -> None:
    schema = Schema({"x": {"type": "categorical", "values": ["b", "a"]}})
    frame = pd.DataFrame({"x": pd.Categorical(["a", "b", "a"], categories=["q", "a", "b"], ordered=True)})
    records, form = read(frame, schema)
    assert records["x"].tolist() == [1, 0, 1]
    again = decode_table(records, Codec(schema), form)
    assert again["x"].cat.categories.tolist() == ["b", "a"]
    assert again["x"].cat.ordered
    with pytest.raises(SchemaError, match="not one of the 2 declared values"):
        read_records(pd.DataFrame({"x": pd.Categorical(["a", "q"])}), schema)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Asia/Kolkata"])
def test_datetimes_come_in_any_unit(unit: str, zone: str | None) -> None:
    told = {"type": "datetime", "min": "1969-12-31T23:59:30.5", "max": "1970-01-01T00:00:40", "bins": "2 seconds"}
    column = column_from_dict("at", told if zone is None else {**told, "timezone": zone})
    start = 0 if zone is None else -19_800  # India is five and a half hours ahead
    seconds = np.arange(-29, 41)
    table = pa.chunked_array([pa.array(seconds + start).cast(pa.timestamp("s", zone)).cast(pa.timestamp(unit, zone))])
    codes = column.encode(table, refuse("at"))
    assert codes.tolist() == [int((second + 29.5) // 2) for second in seconds.tolist()]
    made = column.decode(codes, table.type, np.random.default_rng(0))
    assert made.type == table.type
    np.testing.assert_array_equal(column.encode(pa.chunked_array([made]), refuse("at")), codes)


@pytest.mark.parametrize(
    ("column", "values", "span", "numbers"),
    [
        (Integer(min=0, max=99, bins=5, outside="clamp"), [3, 250, -4], (0, 99), [3, 99, 0]),
        (Integer(min=0, max=9, missing=True), [3, None], (0, 9), [3, np.nan]),
        (Number(min=-1, max=1, bins=2), [0.25, -1.0], (-1, 1), [0.25, -1]),
        (Number(min=0, max=1, bins=2, missing=True, outside="clamp"), [None, 7.0], (0, 1), [np.nan, 1]),
        (Boolean(missing=True), [True, None, False], (0, 1), [1, np.nan, 0]),
        (Categorical(values=[5, 2, 9]), [9, 5], (2, 9), [9, 5]),
        (Coded(values=4), [3, 0], (0, 3), [3, 0]),
    ],
)
def test_numbers_are_the_values_themselves_not_their_bins(
    column: Column, values: list[Any], span: tuple[float, float], numbers: list[float]
) -> None:
    assert column.span == span
    for table in (pa.array(values), pa.array(values).dictionary_encode()):
        np.testing.assert_array_equal(column.numbers(pa.chunked_array([table]), refuse("a")), numbers)
    assert column.numbers(pa.chunked_array([], pa.array(values).type), refuse("a")).size == 0


@pytest.mark.parametrize(
    "column", [Categorical(values=["a", "b"]), Date(min="2020-01-01", max="2020-12-31", bins="month"), Open()]
)
def test_what_is_no_number_has_no_span(column: Column) -> None:
    assert column.span is None
