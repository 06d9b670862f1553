"""Drafts: what they recognise in a column, what they flag for the reviewer, and what a review must replace."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import Schema, SchemaError
from chicle.columns import Integer, Number
from chicle.columns.base import refuse
from chicle.columns.drafted_edges import drafted_edges, geometric_edges
from chicle.schema.flags import Flags, Rare

RNG = np.random.default_rng(0)
ROWS = 2_000


def drafted(name: str, values: Any) -> tuple[dict[str, Any], Flags]:
    """The draft of a column beside one that can always be modelled."""
    schema = chicle.draft_schema(pd.DataFrame({name: values, "other": [True, False] * (len(values) // 2)}))
    return schema.columns[name].to_dict(), schema.flags[name]


@pytest.mark.parametrize(
    "ids",
    [
        RNG.choice(10**8, ROWS, replace=False),
        np.arange(ROWS),
        np.arange(ROWS).astype(float),
        [f"{i:07d}" for i in RNG.choice(10**6, ROWS, replace=False)],
        [f"P{i}" for i in range(ROWS)],
    ],
    ids=["far apart", "row numbers", "floats", "leading zeros", "texts"],
)
def test_unique_integers_and_texts_are_identifiers(ids: Any) -> None:
    told, flags = drafted("x", ids)
    assert told == {"type": "identifier"}
    assert flags.identifier
    assert flags.person is None


@pytest.mark.parametrize("name", ["patient_nbr", "x"])
def test_ids_that_repeat_are_proposed_as_the_person(name: str) -> None:
    ids = RNG.choice(10**8, 600, replace=False)
    frame = pd.DataFrame(
        {name: ids[np.r_[np.arange(600), RNG.integers(0, 600, 1_398), 0, 0]], "y": [True, False] * 1_000}
    )
    schema = chicle.draft_schema(frame)
    found = schema.flags[name].person
    assert schema.person == name
    assert found is not None
    each = frame[name].value_counts()
    assert (found.persons, found.median, found.most) == (600, each.median(), each.max())
    kept = [np.minimum(each, k).sum() / len(frame) for k in range(1, each.max() + 1)]
    assert schema.max_records_per_person == found.max_records == 1 + int(np.argmax(np.array(kept) >= 0.9))
    assert found.kept == pytest.approx(kept[found.max_records - 1])


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("wage", np.round(np.exp(RNG.normal(10, 1, ROWS)), -1)),
        ("age", RNG.integers(0, 100, ROWS)),
        ("fnlwgt", np.repeat(RNG.choice(10**6, ROWS // 2, replace=False), 2)),
        ("lab", RNG.poisson(500, ROWS)),
        ("zip", [f"{i:05d}" for i in RNG.integers(0, 1_000, ROWS)]),
        ("diagnosis", [f"E{i:02}.{i % 10}" for i in RNG.integers(0, 100, ROWS)]),
    ],
)
def test_what_is_measured_is_nobodys_id(name: str, values: Any) -> None:
    told, flags = drafted(name, values)
    assert told["type"] != "identifier"
    assert flags.person is None


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("x", ["?", "up", "down", "up"], {"values": ["down", "up"], "missing": ["?"]}),
        ("x", ["None", "up", "down", "NA"], {"values": ["down", "up"], "missing": True}),
        ("x", ["31", "?", " 4 ", "-9"], {"min": 4, "max": 31, "missing": ["?", -9]}),
        ("x", [31, -9, 4, 4], {"min": 4, "max": 31, "missing": [-9]}),
        ("x", [1, 2, 3, 99], {"type": "categorical", "values": [1, 2, 3], "missing": [99]}),
        ("admission_type_id", [1, 2, 3, 6], {"type": "categorical", "values": [1, 2, 3, 6]}),
        ("visits", [1, 2, 3, 6], {"type": "integer", "min": 1, "max": 6}),
        (
            "x",
            ["[0-10)", "[90-100)", "[10-20)", "[0-10)"],
            {"type": "ordinal", "values": ["[0-10)", "[10-20)", "[90-100)"]},
        ),
        ("x", ["18-24", "<18", "65+", "25 to 64"], {"type": "ordinal", "values": ["<18", "18-24", "25 to 64", "65+"]}),
        ("x", ["007", "008", "007", "012"], {"type": "categorical", "values": ["007", "008", "012"]}),
        ("x", ["true", "false", "true", "?"], {"type": "boolean", "missing": ["?"]}),
        ("x", ["31/12/2020", "01/02/2021", "44000", "2020-05-06"], {"format": ["DD/MM/YYYY", "YYYY-MM-DD", "excel"]}),
        ("x", ["12/31/2020", "01/02/2021", "?", "01/02/2021"], {"format": "MM/DD/YYYY", "missing": ["?"]}),
        ("when_date", [44000, 44001, 43000, 42000], {"type": "date", "format": "excel"}),
        ("x", ["31.12.2020 08:30", "01.02.2021 23:59"] * 2, {"type": "datetime", "format": "DD.MM.YYYY hh:mm"}),
        ("x", [36.6, 37.1, 40.2, 36.6], {"type": "number", "decimals": 1}),
    ],
    ids=str,
)
def test_values_are_recognised(name: str, values: list[Any], told: dict[str, Any]) -> None:
    found, _ = drafted(name, values)
    assert {key: found.get(key) for key in told} == told


def test_dates_that_fit_two_formats_are_said_to_be_ambiguous() -> None:
    _, flags = drafted("x", ["01/02/2021", "03/04/2021"])
    assert "every date fits both DD/MM/YYYY and MM/DD/YYYY" in flags.ambiguous
    _, flags = drafted("x", ["31/12/2020", "12/31/2020"])
    assert "those that fit both" in flags.ambiguous
    _, flags = drafted("x", ["31/12/2020", "01/02/2021"])
    assert flags.ambiguous == ""


def test_rare_labels_and_extremes_are_flagged() -> None:
    _, flags = drafted("x", ["a"] * 94 + ["b"] * 5 + ["c"])
    assert flags.rare == (Rare("values", "b"), Rare("values", "c"))
    _, flags = drafted("age", [17] * 50 + [40] * 49 + [103])
    assert flags.rare == (Rare("max", 103),)


def test_labels_of_few_persons_are_rare_however_many_rows_they_have() -> None:
    who = np.r_[np.repeat(np.arange(30), 10), np.repeat(30, 40)]
    frame = pd.DataFrame(
        {"patient": who * 7_919, "x": np.where(who == 30, "a", "b"), "y": np.where(who == 30, 9, who % 3)}
    )
    assert chicle.draft_schema(frame).flags["x"].rare == (Rare("values", "a"),)
    assert chicle.draft_schema(frame).flags["y"].rare == (Rare("max", 9),)


def test_sentences_are_dropped() -> None:
    told, flags = drafted("note", [f"Seen by doctor {i} in the morning" for i in range(ROWS)])
    assert told == {"type": "drop"}
    assert flags.free_text


def test_counts_have_zero_alone_and_bins_that_grow() -> None:
    told, flags = drafted("emergencies", np.where(RNG.random(ROWS) < 0.9, 0, RNG.negative_binomial(1, 0.3, ROWS) + 1))
    assert told["bins"][:5] == [0, 1, 2, 3, 4]
    assert (np.diff(told["bins"])[:-1] <= np.diff(told["bins"])[1:] + 1).all()
    assert any("count" in remark for remark in flags.remarks)
    assert geometric_edges(1000)[-1] == 1000


@pytest.mark.parametrize(("low", "span", "digits"), [(135, 72, 1), (0, 1, 3), (36, 5, 1), (1e6, 1e3, 0)])
def test_edges_follow_the_spread(low: float, span: float, digits: int) -> None:
    values = np.round(np.clip(RNG.normal(low + span / 2, span / 7, ROWS), low, low + span), digits).astype(np.float64)
    edges = drafted_edges(values, 0.0)
    assert len(edges) > 20, "the spread, not the magnitude"
    assert all(len(repr(edge)) <= 10 for edge in edges), "no float dust"


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8), min_size=1, unique=True)
)
def test_other_readers_of_yaml_see_the_same_labels(tmp_path_factory: pytest.TempPathFactory, labels: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "labels.yaml"
    always = ["No", "Yes", "on", "012", "1e5", "2024-12-31", "12:30", "y", "0x1F", "1_000", "~", "="]
    labels = list(dict.fromkeys([*always, *labels]))
    Schema({"no": {"type": "categorical", "values": labels}}).save(path)
    assert yaml.safe_load(path.read_text(encoding="utf-8"))["columns"]["no"]["values"] == labels
    assert Schema.load(path).columns["no"].labels == tuple(labels)


def test_a_review_names_public_sources(tmp_path: Path) -> None:
    draft = chicle.draft_schema(pd.DataFrame({"age": [1, 2, 3], "smoker": [True, False, True]}))
    assert {name: column.source for name, column in draft.columns.items()} == {"age": "data", "smoker": None}
    assert draft.flags["age"].needs_source
    with pytest.raises(SchemaError, match=r"column 'age' has no public source .* replace `source: data` by where it"):
        draft.mark_reviewed()
    with pytest.raises(SchemaError, match=r"source names 'aged', which is not a column; did you mean 'age'\?"):
        draft.mark_reviewed({"aged": "form"})
    reviewed = draft.mark_reviewed({"age": "form 3, item 1"})
    reviewed.save(tmp_path / "a.yaml")
    assert Schema.load(tmp_path / "a.yaml").columns["age"].source == "form 3, item 1"
    assert Schema.load(tmp_path / "a.yaml").data == reviewed.data
    assert Schema({"age": {"type": "integer", "min": 0, "max": 9}}).reviewed, "a schema by hand needs no sources"


def test_nothing_of_a_drafts_comments_is_in_a_reviewed_schema_or_a_release(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    title = np.where(rng.random(400) < 0.5, "Mr", "Ms").astype(object)
    title[0] = "Bishop of Elbonia"
    table = pd.DataFrame({"title": title, "well": rng.random(400) < 0.5})
    draft = chicle.draft_schema(table)
    draft.save(tmp_path / "draft.yaml")
    assert "5 rows or fewer" in (tmp_path / "draft.yaml").read_text(encoding="utf-8"), "or the test says nothing"
    reviewed = draft.mark_reviewed(source="the code book")
    reviewed.save(tmp_path / "reviewed.yaml")
    assert "5 rows or fewer" not in (tmp_path / "reviewed.yaml").read_text(encoding="utf-8")
    release = chicle.Independent(epsilon=1, delta=1e-9).fit(table, reviewed).release_
    assert b"5 rows or fewer" not in pickle.dumps(release)


def test_a_second_id_of_persons_is_dropped() -> None:
    """As an identifier it would be another one in each row of a synthetic person."""
    rng = np.random.default_rng(0)
    who = rng.permutation(np.repeat(np.arange(5_000), 3))
    draft = chicle.draft_schema(
        pd.DataFrame(
            {"patient_nbr": 700_000 + who, "insurance": [f"K{i * 7919 % 99_991:06d}" for i in who], "x": who % 2}
        )
    )
    assert draft.person == "patient_nbr"
    assert draft.columns["insurance"].type == "drop"
    assert "as an identifier, each row would get a new one" in draft.flags["insurance"].comment


@pytest.mark.parametrize("frequent", [[0, 1], [0, 1, 2, 3], [7, 9, 10], [4_999, 5_000], [0]])
def test_frequent_neighbours_have_a_bin_each(frequent: list[int]) -> None:
    """Zero-heavy amounts: a draft with an empty bin between 0 and 1 was an error."""
    rng = np.random.default_rng(1)
    values = np.concatenate([np.repeat(frequent, 300), rng.integers(0, 5_001, 500)])
    (column,) = chicle.draft_schema({"days": values}).columns.values()
    assert isinstance(column, Integer)
    starts = column.starts.tolist()
    for value in frequent:
        assert {value, value + 1} <= set(starts)


def test_edges_have_no_more_decimals_than_the_numbers() -> None:
    """Temperatures such as 36.6: no edge at 35.094 between 35.0 and 35.1."""
    rng = np.random.default_rng(0)
    values = rng.normal(36.6, 0.5, 2_000).round(1)
    (column,) = chicle.draft_schema({"temperature": values}).columns.values()
    assert isinstance(column, Number)
    edges = np.array(column.bins)
    np.testing.assert_array_equal(edges, edges.round(1))
    assert column.decimals == 1
    assert len(edges) < 40
    codes = column.encode(pa.chunked_array([values]), refuse("temperature"))
    made = column.decode(codes, pa.float64(), rng).to_numpy()
    assert (column.encode(pa.chunked_array([made]), refuse("temperature")) == codes).all()
    assert made.mean() == pytest.approx(values.mean(), abs=0.02)
