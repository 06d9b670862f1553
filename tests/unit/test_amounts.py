"""Amounts of an evaluation: against naive figures of the rows; and the verdict listens to them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import Records, Schema
from chicle.evaluation.amounts import summary
from chicle.evaluation.result import Amounts
from chicle.reports.headline import verdict

codes = st.lists(st.integers(0, 6), min_size=12, max_size=12)


@given(real=codes, made=codes)
def test_figures_are_those_of_the_rows(real: list[int], made: list[int]) -> None:
    places = np.array([-1.0, 0, 1, 2, 5, 10, 100])
    counts = [np.bincount(each, minlength=7) for each in (made, real)]
    found = summary(counts[0], places, counts[1])
    truth, rows = np.sort(places[real]), np.sort(places[made])
    assert found.mean == pytest.approx(rows.mean())
    assert found.sd == pytest.approx(rows.std())
    assert found.zeros == pytest.approx((rows == 0).mean())
    assert [found.median, found.q90, found.q99] == [rows[5], rows[10], rows[11]]
    if truth.std() > 0:  # of tables of equal length: the mean way from each row to the one of the same rank
        assert found.emd == pytest.approx(np.abs(rows - truth).mean() / truth.std())


@pytest.fixture(scope="module")
def found() -> chicle.evaluation.Evaluation:
    rng = np.random.default_rng(0)
    schema = Schema(
        {
            "visits": {"type": "integer", "min": 0, "max": 20, "missing": True},
            "grade": {"type": "ordinal", "values": ["low", "mid", "high"]},
            "seen": {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "bins": "month"},
            "sex": 2,
        }
    )
    sizes = schema.domain
    real = Records({name: rng.integers(0, size, 3_000) for name, size in sizes.items()}, sizes)
    made = Records({name: rng.permutation(real[name]) for name in sizes}, sizes)
    return chicle.evaluate(real, made, schema, epsilon=1, delta=1e-9)


def test_missing_and_labels(found: chicle.evaluation.Evaluation) -> None:
    visits = found.amounts[0]
    assert [one.name for one in found.amounts] == ["visits", "grade", "seen"]
    assert [one.coded for one in found.amounts] == [False, True, True]
    assert visits.real == visits.made  # the same values, in another order
    assert visits.made.emd == 0
    assert visits.real.mean == pytest.approx(10, abs=0.5)
    assert found["emd"].value == 0
    assert found["mean_error"].value == 0
    assert "visits" in str(found)
    assert "grade" not in str(found).split("column (real / synthetic)")[1]
    assert found.to_dict()["amounts"][1]["coded"]


@pytest.mark.parametrize(
    ("mean", "sd", "word"),
    [(1.04, 1.09, "Very good"), (1.06, 1.0, "Good"), (1.0, 1.2, "Good"), (1.2, 1.0, "Fair"), (0.46, 1.0, "Weak")],
)
def test_a_mean_far_off_is_no_good_table(
    found: chicle.evaluation.Evaluation, mean: float, sd: float, word: str
) -> None:
    score = replace(found["tvd_2"], value=0.01, floor=0.01, independent=0.11)
    visits = found.amounts[0]
    same = replace(visits.real, emd=0.0)
    off = replace(same, mean=same.mean * mean, sd=same.sd * sd)
    one = Amounts("visits", False, True, same, off, same, same)
    said = verdict(replace(found, scores=(score,), amounts=(one,)))
    assert said[0] == word
    assert ("'visits' is off" in said[1]) == (word != "Very good")
    assert verdict(replace(found, scores=(score,), amounts=(replace(one, coded=True),)))[0] == "Very good"
    assert verdict(replace(found, scores=(score,), amounts=(replace(one, floor=off),)))[0] == "Very good"
