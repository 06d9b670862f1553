import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given

import chicle
from chicle import Domain, DomainError, ParameterError, Records
from tests.strategies import records

DOMAIN = Domain({"a": 3, "b": 300, "c": 70_000})
CODES = {"a": [0, 2, 1], "b": [299, 0, 5], "c": [69_999, 1, 2]}


def test_codes_take_the_smallest_type() -> None:
    table = Records(CODES, DOMAIN)
    assert [table[name].dtype for name in table] == [np.uint8, np.uint16, np.uint32]
    assert len(table) == 3
    assert table.domain is DOMAIN
    assert table.max_records_per_person == 1


def test_a_fitting_array_is_not_copied() -> None:
    codes = np.array([0, 2, 1], dtype=np.uint8)
    table = Records({"a": codes}, {"a": 3})
    assert np.shares_memory(table["a"], codes)
    assert not table["a"].flags.writeable
    assert codes.flags.writeable, "the caller's own array is left alone"


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table], ids=lambda make: make.__module__)
def test_any_kind_of_frame_will_do(make: Any) -> None:
    table = Records(make(CODES), DOMAIN)
    assert {name: table[name].tolist() for name in table} == CODES


@given(records())
def test_records_are_what_was_put_in(table: Records) -> None:
    again = Records({name: table[name].astype(np.int64)[::-1] for name in table}, dict(table.domain))
    assert len(again) == len(table)
    for name in table:
        assert again[name].dtype == table[name].dtype
        np.testing.assert_array_equal(again[name][::-1], table[name])


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        ({"a": [0, 3]}, r"column 'a' has a code outside its domain 0\.\.2"),
        ({"a": [0, -1]}, r"column 'a' has a code outside its domain 0\.\.2"),
        ({"a": np.array([0, 255], dtype=np.uint8)}, r"column 'a' has a code outside its domain 0\.\.2"),
        ({"a": [0.0, 1.0]}, "column 'a' holds floats.*integers"),
        ({"a": ["x", "y"]}, "column .a. holds text.*integers"),
        ({"a": [[0, 1], [0]]}, "column 'a' is not an array of codes"),
        ({"a": [1, None]}, "column 'a' holds objects.*integers"),
        ({"a": np.zeros((2, 2), dtype=np.uint8)}, "column 'a' has 2 dimensions"),
        ({"a": np.ma.masked_array([0, 1], mask=[True, False])}, "column 'a' has masked values"),
        ({}, "no column for attribute 'a'"),
        ({"a": [0], "z": [0]}, "column 'z' is not in the domain"),
        ([[0, 1]], "mapping from name to codes or a data frame, not a list"),
        (pd.DataFrame([[0, 1]], columns=["a", "a"]), "column 'a' occurs twice"),
    ],
)
def test_bad_columns_are_refused(columns: Any, rule: str) -> None:
    with pytest.raises(DomainError, match=rule):
        Records(columns, {"a": 3})


def test_unequal_lengths_are_refused_without_saying_them() -> None:
    with pytest.raises(DomainError, match="columns 'a' and 'b' differ in length") as refusal:
        Records({"a": [0] * 777, "b": [0] * 778}, {"a": 3, "b": 3})
    assert "77" not in str(refusal.value)


@pytest.mark.parametrize("k", [0, -1, 1.5, True, None])
def test_k_is_a_positive_integer(k: Any) -> None:
    with pytest.raises(ParameterError, match="max_records_per_person"):
        Records({"a": [0]}, {"a": 3}, max_records_per_person=k)


def test_an_unknown_name_is_named() -> None:
    with pytest.raises(DomainError, match="'z' is not an attribute"):
        Records(CODES, DOMAIN)["z"]


def test_odd_arrays_are_taken() -> None:
    shifted = np.frombuffer(b"\0" + np.array([299, 0, 5], dtype=np.uint16).tobytes(), dtype=np.uint16, offset=1)
    swapped = np.array([69_999, 1, 2], dtype=">u4")
    table = Records({"a": np.array([False, True, True]), "b": shifted, "c": swapped}, DOMAIN)
    assert {name: table[name].tolist() for name in table} == {**CODES, "a": [0, 1, 1]}
    chicle.count(table, [("a",), ("b",), ("c",)])


def test_pickled_records_stay_read_only() -> None:
    table = pickle.loads(pickle.dumps(Records(CODES, DOMAIN, max_records_per_person=3)))  # noqa: S301
    assert table.max_records_per_person == 3
    assert table["b"].tolist() == CODES["b"]
    assert not table["b"].flags.writeable


def test_a_column_may_be_called_anything() -> None:
    frame = pd.DataFrame({"column_names": [1, 1], "columns": [0, 1]})
    table = Records(frame, {"column_names": 2, "columns": 2})
    assert table["columns"].tolist() == [0, 1]


def test_private_values_show_nowhere() -> None:
    secret, rows = 61_357, 4_321
    table = Records({"c": np.full(rows, secret)}, {"c": 70_000})
    assert str(secret) not in repr(table)
    assert str(rows) not in repr(table), "the number of rows is private too"
    with pytest.raises(DomainError) as refusal:
        Records({"c": np.full(rows, secret)}, {"c": 1_000})
    assert str(secret) not in str(refusal.value)
    assert str(rows) not in str(refusal.value)
    ragged = [[0]] * 4_320 + [[0, 1]]
    for column in (ragged, ["x" * rows], np.array([b"y" * rows])):
        with pytest.raises(DomainError) as refusal:
            Records({"c": column}, {"c": 5})
        assert str(rows) not in str(refusal.value)
        assert refusal.value.__suppress_context__ or refusal.value.__context__ is None
