"""Analyses over the same columns buy the products of their features once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

import chicle
from chicle import Linear, Logit, Poisson, Schema
from chicle.analyses import Analysis
from chicle.analyses.run import AnalysisPlan
from chicle.analyses.shared import Group, groups_of
from chicle.analyses.sums import Products
from chicle.measurements.row_sums import RowSums

SCHEMA = Schema(
    {
        "y": {"type": "boolean"},
        "z": {"type": "integer", "min": 0, "max": 20},
        "a": {"type": "integer", "min": 0, "max": 9},
        "b": {"type": "categorical", "values": ["u", "v", "w"]},
        "c": {"type": "boolean"},
        "m": {"type": "integer", "min": 0, "max": 9, "missing": True},
    }
)


def groups(asked: Sequence[Analysis]) -> list[Group]:
    designs = [one.design(SCHEMA) for one in asked]
    return groups_of([one.title for one in asked], [one.parsed for one in asked], designs, SCHEMA)


@pytest.mark.parametrize(
    ("asked", "sizes"),
    [
        ([Logit("y ~ a + b + c"), Linear("z ~ a + b")], [2]),
        ([Logit("y ~ a + b"), Linear("z ~ a")], [2]),
        ([Logit("y ~ z + a + C(b)"), Linear("z ~ a + c")], [2]),  # two blocks of five
        ([Logit("y ~ z + a"), Linear("z ~ a")], [2]),  # an outcome that another one has as a feature
        ([Logit("y ~ a * c + b"), Linear("z ~ C(b) + c * a"), Poisson("z ~ a + I(a ** 2)")], [2, 1]),
        ([Logit("y ~ a + b"), Linear("z ~ c")], [1, 1]),  # nothing in common
        ([Logit("y ~ a"), Linear("z ~ a + m")], [1, 1]),  # other rows are complete
        ([Logit("y ~ a + m"), Linear("z ~ a + m")], [2]),
        ([Logit("y ~ a + C(b, ref=v)"), Linear("z ~ a + b")], [2]),  # features do not know the reference
    ],
)
def test_analyses_join_where_it_pays(asked: list[Analysis], sizes: list[int]) -> None:
    assert [len(group.titles) for group in groups(asked)] == sizes


def test_each_gets_the_products_of_its_own_features() -> None:
    asked = [Logit("y ~ a * c + b"), Linear("z ~ b + c * a"), Linear("z ~ C(b, ref=w) + a")]
    (group,) = groups(asked)
    rng = np.random.default_rng(0)
    table = {
        "y": pa.chunked_array([rng.random(500) < 0.5]),
        "z": pa.chunked_array([rng.integers(0, 21, 500)]),
        "a": pa.chunked_array([rng.integers(0, 10, 500)]),
        "b": pa.chunked_array([rng.choice(["u", "v", "w"], 500)]),
        "c": pa.chunked_array([rng.random(500) < 0.3]),
    }
    question = Products(of="", design=group.whole, weights=group.weights)
    sums = RowSums("", "products", question.sums(table), 1.0, question.at, question.units)
    for place, one in enumerate(asked):
        features, _ = one.design(SCHEMA).rows(table)
        mine = group.of(place, sums)
        wanted = (features.T @ features)[np.triu_indices(features.shape[1])]
        assert mine.of == one.title
        np.testing.assert_allclose(mine.estimates, wanted, atol=0.5, err_msg=one.title)


def test_together_they_pay_as_much_and_get_less_noise() -> None:
    asked = (Logit("y ~ a + b + c"), Linear("z ~ a + b"))
    steps = AnalysisPlan.of(asked, SCHEMA, rho=1.0, share=0.5).steps()
    alone = [AnalysisPlan.of([one], SCHEMA, rho=1.0, share=0.25).steps() for one in asked]
    assert [step.release for step in steps] == ["products", *["first score", "last score"] * 2]
    assert math.fsum(step.rho for step in steps) == pytest.approx(0.5)
    together, apart = steps[0].sigma, alone[0][0].sigma
    assert together is not None
    assert apart is not None
    assert together == pytest.approx(apart / 2**0.5)


def test_the_ledger_shows_the_purchase_once() -> None:
    rng = np.random.default_rng(1)
    table = {
        "y": rng.random(2_000) < 0.5,
        "z": rng.integers(0, 21, 2_000),
        "a": rng.integers(0, 10, 2_000),
        "b": rng.choice(["u", "v", "w"], 2_000),
        "c": rng.random(2_000) < 0.3,
        "m": rng.integers(0, 10, 2_000),
    }
    asked = [Logit("y ~ a + b"), Linear("z ~ a + b + c")]
    synth = chicle.Independent(epsilon=1, delta=1e-9).fit(table, SCHEMA, analyses=asked, analysis_share=0.25)
    said = [event.purpose for event in synth.ledger_.events if " of l" in event.purpose]
    first, second = (one.title for one in asked)
    assert said == [f"products of {first}; {second}", *[f"score of {first}", f"score of {second}"] * 2]
    planned = [step for step in synth.plan(SCHEMA, n=2_000, analyses=asked, analysis_share=0.25).steps if step.of]
    assert len([step for step in planned if "~" in step.of]) == len(said)
    assert [len(answer.names) for answer in synth.release_.analyses] == [4, 5]
