"""Rows with given values: conditions, completed tables, frozen columns."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import chicle
from chicle import Measurement, Records, Schema
from chicle.errors import DomainError, InfeasibleError, ParameterError, SchemaError
from chicle.releases.answers import Count

DECLARED: dict[str, dict[str, Any]] = {
    "age": {"type": "integer", "min": 0, "max": 99, "bins": 10},
    "sex": {"type": "categorical", "values": ["f", "m"]},
    "child": {"type": "boolean"},
    "wed": {"type": "boolean"},
    "region": {"type": "categorical", "values": ["n", "e", "s", "w"], "missing": True},
    "zip": {"type": "integer", "min": 0, "max": 39, "coarse": 4},
}
CONSTRAINTS = [{"forbid": {"child": True, "wed": True}}]


def table(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, n)
    child = age < 18
    region = rng.integers(0, 5, n)
    return pd.DataFrame(
        {
            "age": age,
            "sex": np.where(rng.random(n) < 0.3 + 0.4 * (age > 50), "f", "m"),
            "child": child,
            "wed": ~child & (rng.random(n) < 0.6),
            "region": pd.Series(np.array(["n", "e", "s", "w", None], dtype=object)[region]),
            "zip": np.minimum(10 * np.minimum(region, 3) + rng.integers(0, 10, n), 39),
        }
    )


@pytest.fixture(scope="module", params=["plain", "combined"])
def release(request: pytest.FixtureRequest) -> chicle.Release:
    combine = {"family": ["child", "wed"]} if request.param == "combined" else None
    schema = Schema(DECLARED, constraints=CONSTRAINTS, combine=combine)
    return chicle.Prism(epsilon=5, delta=1e-9).fit(table(4_000), schema).release_


def test_rows_satisfy_a_condition(release: chicle.Release) -> None:
    made = release.sample(700, seed=3, where={"sex": "f", "region": ["n", None], "age": [61, 62, 95]})
    assert len(made) == 700
    assert set(made["sex"]) == {"f"}
    assert set(made["region"].fillna("-")) == {"n", "-"}
    assert set(made["age"]) == {61, 62, 95}
    assert not (made["child"] & made["wed"]).any()
    pd.testing.assert_frame_equal(
        made, release.sample(700, seed=3, where={"sex": "f", "region": ["n", None], "age": [61, 62, 95]})
    )


def test_a_condition_without_n_filters_one_draw(release: chicle.Release) -> None:
    made = release.sample(seed=3, where={"sex": "f"})
    assert abs(len(made) / release.total - 0.5) < 0.1


@pytest.mark.filterwarnings("error")
def test_few_matching_rows_are_a_warning(release: chicle.Release) -> None:
    with pytest.warns(UserWarning, match="'sex' and 'age' and 'region'"):
        release.sample(50, seed=0, where={"sex": "f", "age": 3, "region": "n"})


@pytest.mark.parametrize(
    ("where", "error", "said"),
    [
        ({"sexx": "f"}, SchemaError, "did you mean 'sex'"),
        ({"sex": "x"}, SchemaError, "column 'sex'"),
        ({"age": 200}, SchemaError, "column 'age'"),
        ({"sex": None}, SchemaError, "column 'sex'"),
        ({"sex": []}, ParameterError, "'sex' has no value"),
        ({"age": ["a", 3]}, (ParameterError, SchemaError), "'age'"),
        ({}, ParameterError, "mapping of columns"),
        ({"child": True, "wed": True}, InfeasibleError, "'child' and 'wed'"),
    ],
)
def test_a_wrong_condition_names_the_column(
    release: chicle.Release, where: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        release.sample(10, seed=0, where=where)


def test_given_rows_are_kept_and_completed(release: chicle.Release) -> None:
    given = table(3_000, seed=9)[["wed", "age", "zip"]]
    made = release.sample(given=given, seed=1)
    assert list(made["age"]) == list(given["age"])  # the values, not only their bins
    assert list(made["zip"]) == list(given["zip"])
    assert list(made["wed"]) == list(given["wed"])
    assert not (made["child"] & made["wed"]).any()
    assert set(made.columns) == set(DECLARED)
    pd.testing.assert_frame_equal(made, release.sample(given=given, seed=1))
    # What depends on the given columns does so in the completed rows too.
    old = made["age"] > 50
    assert (made["sex"] == "f")[old].mean() - (made["sex"] == "f")[~old].mean() > 0.25
    assert made["child"][made["age"] < 10].mean() > 0.9


def test_another_population_is_weighted(release: chicle.Release) -> None:
    old = table(4_000, seed=9).query("age > 60")
    made = release.sample(given=old[["age"]], seed=1)
    assert abs((made["sex"] == "f").mean() - 0.7) < 0.07
    assert made["child"].mean() < 0.05


@pytest.mark.parametrize("rows", [0, 1])
def test_few_given_rows(release: chicle.Release, rows: int) -> None:
    made = release.sample(given=table(5)[["age", "sex"]][:rows], seed=1)
    assert len(made) == rows


def test_all_columns_given_come_back(release: chicle.Release) -> None:
    given = table(50, seed=2)
    pd.testing.assert_frame_equal(release.sample(given=given, seed=1), given, check_dtype=False)


def test_wrong_given_tables_name_the_column(release: chicle.Release) -> None:
    with pytest.raises(SchemaError, match="no column 'agee'; did you mean 'age'"):
        release.sample(given={"agee": [3]})
    with pytest.raises(SchemaError, match="column 'age' has a number outside"):
        release.sample(given={"age": [3, 300]})
    with pytest.raises(SchemaError, match="violates"):
        release.sample(given={"child": [True], "wed": [True]})
    with pytest.raises(SchemaError, match="at least one column"):
        release.sample(given={})
    with pytest.raises(ParameterError, match="leave n and where out"):
        release.sample(3, given={"age": [3]})
    with pytest.raises(SchemaError, match="not a int"):
        release.sample(given=3)


def test_files_are_given_too(release: chicle.Release, tmp_path: Path) -> None:
    table(20, seed=2)[["age", "sex"]].to_csv(tmp_path / "part.csv", index=False)
    made = release.sample(given=tmp_path / "part.csv", seed=1)
    assert list(made["sex"]) == list(table(20, seed=2)["sex"])


def test_frozen_attributes_stay() -> None:
    domain = {"a": 3, "b": 4, "c": 2}
    rng = np.random.default_rng(0)
    start = Records({name: rng.integers(0, size, 500) for name, size in domain.items()}, domain)
    wanted = [Measurement(("a", "b"), np.diag(np.bincount(start["a"])) @ np.eye(3, 4), 1.0)]
    made = chicle.descend(wanted, domain, start=start, frozen=["a"], seed=0)
    assert (made["a"] == start["a"]).all()
    assert (made["b"] != start["b"]).any()
    # Each record can only follow its own a.
    assert (made["b"] == made["a"]).mean() > 0.9
    with pytest.raises(ParameterError, match="records to start from"):
        chicle.descend(wanted, domain, frozen=["a"])
    with pytest.raises(DomainError, match="'x' is not an attribute"):
        chicle.descend(wanted, domain, start=start, frozen=["x"])


def test_what_is_made_from_given_values_follows_them() -> None:
    """Order and sums hold for rows with given values too."""
    rng = np.random.default_rng(0)
    days = np.datetime64("2016-01-01") + rng.integers(0, 365, 3_000)
    stay = rng.poisson(4, 3_000)
    table = pd.DataFrame(
        {
            "came": pd.Series(days).dt.strftime("%d/%m/%Y"),
            "left": pd.Series(days + stay).dt.strftime("%d/%m/%Y").where(rng.random(3_000) > 0.1, "?"),
            "beds": rng.integers(1, 5, 3_000),
        }
    )
    written = {"type": "date", "format": "DD/MM/YYYY"}
    schema = chicle.Schema(
        {
            "came": {**written, "min": "2016-01-01", "max": "2016-12-31", "bins": "month"},
            "left": {**written, "after": "came", "by": {"min": 0, "max": 60, "outside": "clamp"}, "missing": ["?"]},
            "beds": {"type": "integer", "min": 1, "max": 4},
        }
    )
    synth = chicle.Independent(epsilon=1, delta=1e-9).fit(table, schema)
    assert chicle.evaluate(table, synth.sample(seed=0), schema) is not None, "its own dates are read again"
    for made in (
        synth.release_.sample(400, seed=1, where={"came": "05/03/2016"}),
        synth.release_.sample(given=table[["came"]][:400], seed=1),
    ):
        came, left = (
            pd.to_datetime(made[name].astype(str), errors="coerce", format="mixed") for name in ("came", "left")
        )
        apart = (left - came).dt.days.dropna()
        assert 250 < len(apart) < 400
        assert apart.between(0, 60).all()
        assert apart.median() < 10


def test_persons_of_several_rows_widen_intervals() -> None:
    table = pd.DataFrame({"who": np.repeat(np.arange(1_000), 4), "x": np.repeat(np.arange(1_000) % 2, 4)})
    schema = chicle.Schema({"x": 2}, person="who", max_records_per_person=4)
    release = chicle.Independent(epsilon=10, delta=1e-9).fit(table, schema).release_
    answer = release.answer(Count(where={"x": 1}))
    assert answer.standard_error == pytest.approx(2 * math.sqrt(4_000 / 4), rel=0.1)
    pooled = chicle.pool([float((draw["x"] == 1).sum()) for draw in release.draws(m=40, seed=0)])
    assert 1.2 * math.sqrt(4_000 / 4) < pooled.standard_error < 3.4 * math.sqrt(4_000 / 4)
