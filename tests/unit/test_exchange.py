"""Marginals out and in again: what a release tells as tables, and releases made of tables from elsewhere."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import ArtefactError, ChicleError, DomainError, Measurement, Release, Schema, SchemaError
from chicle.codecs.labels import bucket_labels, value_labels
from chicle.privacy import Claim
from chicle.sources import check_table, read_records
from tests.contract.test_mechanisms import BUDGET, MECHANISMS, Make

CLAIM = "(1, 1e-6)-DP for one person, by the bureau"
SCHEMA = Schema(
    {
        "sex": {"type": "categorical", "values": ["f", "m"], "missing": True},
        "age": {"type": "integer", "min": 0, "max": 99, "bins": 4},
        "smoker": {"type": "boolean"},
    }
)


@pytest.fixture(params=MECHANISMS, scope="module")
def make(request: pytest.FixtureRequest) -> Make:
    return MECHANISMS[request.param]


def table(clique: tuple[str, ...], counts: Any, sigma: float = 4.0, *, kind: Any = pa.table) -> Any:
    """Counts with a row for each cell, labelled by a value of each."""
    values: dict[str, list[Any]] = {"sex": ["f", "m", None], "age": [3, 30, 60, 99], "smoker": [False, True]}
    places = np.unravel_index(np.arange(counts.size), counts.shape)
    labels = {name: [values[name][i] for i in at] for name, at in zip(clique, places, strict=True)}
    return kind({**labels, "value": counts.reshape(-1), "sigma": [sigma] * counts.size})


def counts_of(release: Release, clique: tuple[str, ...], n: int = 4_000) -> Any:
    records = read_records(release.sample(n, seed=0), release.schema)
    (found,) = chicle.count(records, [clique])
    return found


# --- Out -------------------------------------------------------------------------------------------------------------


def test_every_measurement_is_told_and_read_again(make: Make, tmp_path: Path) -> None:
    census = chicle.datasets.census(6_000, d=5)
    schema = Schema.from_cardinalities(census.domain, ordinal=["AGE"])
    release = make(**BUDGET).fit(census, schema).release_
    whole = [measurement for measurement in release.tables if measurement.whole]
    pq.write_table(release.marginals(), tmp_path / "marginals.parquet")
    told = pq.read_table(tmp_path / "marginals.parquet")
    assert told.num_rows == sum(measurement.values.size for measurement in whole)
    held = {name for measurement in whole for name in measurement.clique if name not in measurement.buckets}
    if held != set(schema.domain):  # cells were measured, or other tables than those of all attributes
        with pytest.raises(DomainError, match="no marginal has the single values of"):
            Release.from_marginals(told, schema, claim=CLAIM)
        return
    again = Release.from_marginals(told, schema, claim=CLAIM)
    for mine, theirs in zip(release.tables, again.measurements, strict=True):
        assert (mine.clique, mine.sigma) == (theirs.clique, theirs.sigma)
        np.testing.assert_array_equal(mine.values, theirs.values)
        assert set(mine.buckets) == set(theirs.buckets)
        for name, buckets in mine.buckets.items():
            np.testing.assert_array_equal(buckets, theirs.buckets[name])
    assert again.sample(50, seed=1).num_rows == 50


@given(st.data())
def test_rows_of_marginals_may_come_in_any_order(data: st.DataObject) -> None:
    buckets = data.draw(st.permutations([0, 0, 1, 2]))
    coarse = Measurement(("sex", "age"), np.arange(9).reshape(3, 3), 2.0, buckets={"age": np.array(buckets)})
    others = [Measurement((name,), np.arange(size) * 10, 1.5) for name, size in SCHEMA.domain.items()]
    release = Release.from_marginals([*others, coarse], SCHEMA, claim=CLAIM)
    order = data.draw(st.permutations(range(release.marginals().num_rows)))
    again = Release.from_marginals(release.marginals().take(order), SCHEMA, claim=CLAIM)
    read = again.measurements[-1]
    new = np.asarray(read.buckets["age"])
    for code in range(4):
        np.testing.assert_array_equal(read.values[:, new[code]], coarse.values[:, buckets[code]])


def test_cells_are_told_in_words() -> None:
    buckets = np.array([0, 0, 1, 1], dtype=np.uint32)
    coarse = Measurement(("sex", "age"), np.zeros((3, 2)), 2.0, buckets={"age": buckets})
    others = [Measurement((name,), np.ones(size), 1.0) for name, size in SCHEMA.domain.items()]
    told = Release.from_marginals([*others, coarse], SCHEMA, claim=CLAIM).marginals().to_pylist()
    assert [row["cell"] for row in told[:3]] == [["f"], ["m"], ["missing"]]
    assert told[3]["cell"] == ["0 to 24"]
    assert told[-1]["cell"] == ["missing", "50 to 74 ... 75 to 99"]
    assert told[-1]["codes"] == [[2], [2, 3]]
    assert told[-1]["clique"] == ["sex", "age"]


def test_every_kind_of_value_has_words() -> None:
    schema = Schema(
        {
            "number": {"type": "number", "min": 0, "max": 1, "bins": 2, "missing": True},
            "day": {"type": "date", "min": "2024-01-01", "max": "2024-02-29", "bins": "month"},
            "time": {"type": "datetime", "min": "2024-01-01", "max": "2024-01-01T01:59:59", "bins": "1 hour"},
            "each": {"type": "integer", "min": 5, "max": 6},
            "code": 2,
        }
    )
    assert value_labels(schema, "number") == ["0 to 0.5", "0.5 to 1", "missing"]
    assert value_labels(schema, "day") == ["2024-01-01 to 2024-01-31", "2024-02-01 to 2024-02-29"]
    assert len(value_labels(schema, "time")) == 2
    assert value_labels(schema, "each") == ["5", "6"]
    assert value_labels(schema, "code") == ["0", "1"]
    labels = list("abcde")
    assert bucket_labels(labels, np.array([0, 1, 1, 1, 1], dtype=np.uint32), ordered=False) == ["a", "b, c, d, 1 more"]


def test_what_mechanisms_see_has_words_and_is_read_again(tmp_path: Path) -> None:
    """Coarse columns in their groups and once fine, combined ones by their combinations."""
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {
        "age": {"type": "integer", "min": 0, "max": 99, "coarse": 4},
        "sex": {"type": "categorical", "values": ["f", "m"]},
        "job": {"type": "categorical", "values": ["cook", "smith"], "missing": True},
    }
    schema = Schema(columns, combine={"who": ["sex", "job"]})
    ages, jobs = rng.integers(0, 100, 900), ["cook", None, "smith"] * 300
    frame = pa.table({"age": ages, "sex": ["f", "m", "m"] * 300, "job": jobs})
    release = chicle.Prism(epsilon=5, delta=1e-9).fit(frame, schema).release_
    told = release.marginals()
    cells = {(tuple(row["clique"]), *row["cell"]) for row in told.to_pylist()}
    assert {(("age",), "0 ... 24"), (("age",), "37"), (("who",), "m & missing"), (("who",), "f & cook")} <= cells
    again = Release.from_marginals(told, schema, claim=CLAIM)
    assert again.marginals().equals(told)
    again.save(tmp_path / "r.chicle")
    made = chicle.load(tmp_path / "r.chicle").sample(200, seed=0)
    assert check_table(made, schema).fits
    assert len(set(made["age"].to_pylist())) > 50, "inside groups the fine 1-way tells"
    without = Release.from_marginals(told.slice(0, told.num_rows - 100), schema, claim=CLAIM)
    assert without.fine_one_ways == ()
    assert check_table(without.sample(200, seed=0), schema).fits


def test_tables_over_coarse_columns_may_be_fine_or_in_groups() -> None:
    schema = Schema({"age": {"type": "integer", "min": 0, "max": 9, "coarse": 2}, "smoker": {"type": "boolean"}})
    fine = {"age": list(range(10)), "value": [20] * 10, "sigma": [1.0] * 10}
    pair = {"age": [2, 2, 7, 7], "smoker": [False, True] * 2, "value": [90, 10, 10, 90], "sigma": [1.0] * 4}
    release = Release.from_marginals([fine, pair], schema, claim=CLAIM)
    assert [one.clique for one in release.measurements] == [("age", "smoker")]
    assert [one.values.shape for one in release.fine_one_ways] == [(10,)]
    assert release.sample(seed=0).num_rows == 200


# --- In --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("generator", ["prism", "descent"])
@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_records_fit_tables_from_elsewhere(kind: Any, generator: Any) -> None:
    rng = np.random.default_rng(0)
    pair = rng.integers(50, 600, (3, 4)).astype(float)
    other = rng.integers(50, 600, (4, 2)).astype(float)
    other *= pair.sum(axis=0)[:, None] / other.sum(axis=1, keepdims=True)
    tables = [table(("sex", "age"), pair, kind=kind), table(("age", "smoker"), other, kind=kind)]
    release = Release.from_marginals(tables, SCHEMA, claim=CLAIM, generator=generator)
    assert release.total == pytest.approx(pair.sum(), abs=2)
    made = release.sample(seed=3)
    assert check_table(made, SCHEMA).fits
    for clique, wanted in ((("sex", "age"), pair), (("age", "smoker"), other)):
        assert np.abs(counts_of(release, clique) / 4_000 - wanted / wanted.sum()).sum() < 0.03


def test_a_release_from_elsewhere_is_kept(tmp_path: Path) -> None:
    counts = np.array([[40, 30, 20, 10], [10, 20, 30, 40], [0, 3, -2, 1]])
    smokers = Measurement(("smoker",), np.array([120, 80]), 3.0)
    release = Release.from_marginals(
        [table(("sex", "age"), counts), table(("smoker",), smokers.values)], SCHEMA, claim=CLAIM
    )
    release.save(tmp_path / "r.chicle")
    loaded = chicle.load(tmp_path / "r.chicle")
    assert loaded.sample(500, seed=2).equals(release.sample(500, seed=2))
    assert isinstance(loaded.ledger, Claim)
    assert repr(loaded.ledger) == f"claimed by others, not verified by chicle: {CLAIM}"
    assert CLAIM in repr(loaded)
    assert loaded.marginals().equals(release.marginals())


def test_a_claim_is_not_taken_for_a_ledger(tmp_path: Path) -> None:
    release = Release.from_marginals(
        [table(("sex", "age"), np.ones((3, 4))), table(("smoker",), np.array([1, 2]))], SCHEMA, claim=CLAIM
    )
    bought = chicle.Independent(**BUDGET).fit(release.sample(100, seed=0), SCHEMA).release_
    replace(release, ledger=bought.ledger).save(tmp_path / "r.chicle")
    with pytest.raises(ArtefactError, match="claim instead of"):
        chicle.load(tmp_path / "r.chicle")


FULL = np.arange(12).reshape(3, 4)
WRONG: dict[str, tuple[Any, str]] = {
    "nothing": ([], "no marginals"),
    "no table": (3, "not a int"),
    "tables of no kind": ([3], "not a int"),
    "no value": ([{"sex": ["f"]}], "'value' and 'sigma'"),
    "another attribute": ([{"size": [1], "value": [1], "sigma": [1]}], "'size' is not an attribute"),
    "another value": ([{"sex": ["x"], "value": [1], "sigma": [1]}], "column 'sex' has a text that is not one of"),
    "a cell less": ([{"sex": ["f", "m"], "value": [1, 2], "sigma": [1, 1]}], "each of its 3 cells once"),
    "a cell twice": ([{"sex": ["f", "f", None], "value": [1, 2, 3], "sigma": [1, 1, 1]}], "a cell twice"),
    "two sigmas": ([{"sex": ["f", "m", None], "value": [1, 2, 3], "sigma": [1, 2, 1]}], "several sigmas"),
    "no sigma": ([{"sex": ["f", "m", None], "value": [1, 2, 3], "sigma": [0, 0, 0]}], "above 0"),
    "no numbers": ([{"sex": ["f", "m", None], "value": ["a", "b", "c"], "sigma": [1, 1, 1]}], "must be numbers"),
    "no value of a cell": ([{"sex": ["f", "m", None], "value": [1, None, 3], "sigma": [1, 1, 1]}], "without a value"),
    "not finite": ([Measurement(("sex",), np.array([1, np.nan, 2]), 1.0)], "no finite count"),
    "another shape": ([Measurement(("sex",), np.array([1, 2]), 1.0)], "another number of cells"),
    "test noise": ([Measurement((), np.array(9), 1.0, protected=False)], "test noise"),
    "an attribute left out": ([table(("sex", "age"), FULL)], "'smoker'; give its 1-way"),
    "not tidy": ({"value": [1], "sigma": [1]}, "needs a column 'marginal'"),
    "a 1-way in buckets": (
        [
            *(Measurement((name,), np.ones(size), 1.0) for name, size in SCHEMA.domain.items()),
            Measurement(("age",), np.ones(2), 1.0, buckets={"age": np.array([0, 0, 1, 1])}),
        ],
        "choose 'descent'",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_marginal_is_refused(wrong: str) -> None:
    marginals, said = WRONG[wrong]
    with pytest.raises(ChicleError, match=said):
        Release.from_marginals(marginals, SCHEMA, claim=CLAIM)


def test_drafts_and_other_generators_are_refused() -> None:
    tables = [Measurement((name,), np.ones(size), 1.0) for name, size in SCHEMA.domain.items()]
    with pytest.raises(SchemaError, match="draft"):
        Release.from_marginals(tables, chicle.draft_schema({"a": [1, 2]}), claim=CLAIM)
    with pytest.raises(SchemaError, match="schema must be"):
        Release.from_marginals(tables, {"a": 2}, claim=CLAIM)  # type: ignore[arg-type]
    with pytest.raises(chicle.ParameterError, match="'prism' or 'descent'"):
        Release.from_marginals(tables, SCHEMA, claim=CLAIM, generator="magic")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"codes": [[[0]], [[0]], [[2]]]}, "each of the 3 codes"),
        ({"codes": [[[0]], [[1, 2]], [[2]]]}, "each of the 3 codes"),
        ({"codes": [[[0]], [[1]], [[]]]}, "each of the 3 codes"),
        ({"codes": [[[0]], [[1]], [[7]]]}, "each of the 3 codes"),
        ({"codes": [[[0]], [[1]], [[2], [0]]]}, "do not all have its attributes"),
        ({"clique": [["sex"], ["age"], ["sex"]]}, "do not all have its attributes"),
        ({"marginal": [0, 0, 1]}, "codes of 'sex' once"),
    ],
)
def test_a_tidy_table_that_does_not_add_up_is_refused(edit: dict[str, Any], said: str) -> None:
    told = {
        "marginal": [0, 0, 0],
        "clique": [["sex"]] * 3,
        "codes": [[[0]], [[1]], [[2]]],
        "value": [1.0, 2.0, 3.0],
        "sigma": [1.0] * 3,
    }
    with pytest.raises(DomainError, match=said):
        Release.from_marginals(pa.table({**told, **edit}), SCHEMA, claim=CLAIM)
