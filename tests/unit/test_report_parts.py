"""Parts of the report: axes that add up, colours that rise, words that follow their rule."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import Schema
from chicle.evaluation.result import Evaluation
from chicle.reports.axes import Labels
from chicle.reports.charts import STEPS, differing, rising
from chicle.reports.headline import verdict


@given(st.integers(1, 400), st.integers(2, 60), st.booleans(), st.booleans(), st.integers(0, 2**32))
def test_groups_of_an_axis_add_up(size: int, most: int, ordinal: bool, missing: bool, seed: int) -> None:
    schema = Schema({"a": {"type": "coded", "values": size, "ordinal": ordinal, "missing": missing}})
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 50, schema.domain["a"])
    axis = Labels(schema).axis("a", weights, most)
    assert 1 <= len(axis) <= max(most, 1 + missing)
    assert set(axis.into.tolist()) == set(range(len(axis)))
    naive = np.zeros(len(axis))
    for code, group in enumerate(axis.into.tolist()):
        naive[group] += weights[code]
    np.testing.assert_array_equal(axis.grouped(weights), naive)
    table = rng.integers(0, 9, (2, weights.size))
    np.testing.assert_array_equal(axis.grouped(table, axis=1).sum(axis=1), table.sum(axis=1))
    if ordinal:
        values = axis.into[:size]
        assert (np.diff(values) >= 0).all()
        assert not axis.rest
        sizes = np.bincount(values)
        assert (sizes[:-1] == sizes[0]).all(), "a larger group would be a peak that is none"
    elif axis.rest:
        assert weights[axis.into < most - 1].min() >= weights[axis.into == most - 1].max(initial=0)
    if missing and (ordinal or size < most):
        assert axis.labels[axis.into[size]] == "missing"


def test_groups_in_words() -> None:
    schema = Schema(
        {
            "age": {"type": "integer", "min": 0, "max": 99, "missing": True},
            "job": {"type": "categorical", "values": ["cook", "nurse", "clerk", "smith"]},
        }
    )
    labels = Labels(schema)
    assert labels.axis("age", np.ones(101), 6).labels == (
        "0 … 19",
        "20 … 39",
        "40 … 59",
        "60 … 79",
        "80 … 99",
        "missing",
    )
    assert labels.axis("age", np.ones(101), 6).ends == ("0", "missing")
    job = labels.axis("job", np.array([1, 5, 2, 7]), 3)
    assert (job.labels, job.rest, job.named) == (("smith", "nurse", "2 others"), True, 2)
    buckets = np.array([0, 1, 1, 0])
    assert labels.axis("job", np.array([8, 7]), 3, buckets).labels == ("cook + 1", "nurse + 1")
    assert labels.axis("age", np.ones(3), 3, np.repeat([0, 1, 2], [50, 50, 1])).labels == (
        "0 … 49",
        "50 … 99",
        "missing",
    )


@given(st.lists(st.floats(0, 1e6) | st.just(math.nan), min_size=1), st.floats(0, 1e6))
def test_colours_rise_with_values(values: list[float], top: float) -> None:
    given_values = np.array(values)
    steps = rising(given_values, top)
    assert ((steps == -1) == np.isnan(given_values)).all()
    known = given_values[~np.isnan(given_values)]
    assert steps.max() < STEPS
    assert (np.diff(rising(np.sort(known), top)) >= 0).all()
    off = differing(np.concatenate([known, -known]), top)
    assert np.abs(off).max(initial=0) <= STEPS // 2
    assert (off[: known.size] == -off[known.size :]).all()


@pytest.fixture(scope="module")
def found() -> Evaluation:
    census = chicle.datasets.census(500, d=3)
    return chicle.evaluate(census, census)


@pytest.mark.parametrize(
    ("value", "independent", "word"),
    [
        (0.01, 0.11, "Very good"),
        (0.019, 0.11, "Very good"),
        (0.03, 0.11, "Good"),
        (0.05, 0.11, "Fair"),
        (0.08, 0.11, "Weak"),
        (0.12, 0.11, "Poor"),
        (0.005, 0.11, "Very good"),
        (0.02, 0.02, "Very good"),
        (0.03, 0.02, "Fair"),
        (0.09, None, "Weak"),
        (None, 0.11, "Not known"),
    ],
)
def test_the_verdict_follows_its_rule(
    found: Evaluation, value: float | None, independent: float | None, word: str
) -> None:
    score = replace(found["tvd_2"], value=value, floor=0.01, independent=independent)
    others = [other for other in found.scores if other.key != "tvd_2"]
    assert verdict(replace(found, scores=(score, *others)))[0] == word
