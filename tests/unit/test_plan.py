"""Plans: what noise does is told before it is drawn, by every mechanism."""

import json

import numpy as np
import pytest

import chicle
from chicle import Domain, PrivacyError, Schema
from chicle.mechanisms.best_response import BestResponse
from chicle.plans import noise_errors, pair_errors, rough_cost
from chicle.privacy import calibrate
from tests.contract.test_mechanisms import BUDGET, MECHANISMS, Make

DOMAIN = {"age": 90, "sex": 2, "job": 25, "region": 9, "constant": 1}


@pytest.fixture(params=MECHANISMS, scope="module")
def make(request: pytest.FixtureRequest) -> Make:
    return MECHANISMS[request.param]


def test_every_mechanism_plans_for_a_number_of_records(make: Make) -> None:
    schema = Schema.from_cardinalities(DOMAIN)
    few, many = (make(**BUDGET).plan(schema, n) for n in (1_000, 10**7))
    # MWEM and Gaussian measure what a workload names: by default no 1-ways. DPSyn has one line for all Laplace noise.
    assert [step.of for step in few.one_ways] in (list(DOMAIN), [], [f"{len(DOMAIN)} columns, Laplace noise"])
    for small, large in zip(few.one_ways, many.one_ways, strict=True):
        assert small.error is not None
        assert large.error is not None
        assert 1 >= small.error > large.error > 0
    assert few.cost.seconds < many.cost.seconds
    assert few.cost.memory < many.cost.memory
    told = json.loads(few.to_json())
    assert told["records"] == 1_000
    assert told["cost"]["seconds"] == few.cost.seconds
    assert "assuming 1,000 records" in str(few)


def test_nobody_is_a_number_of_records_too(make: Make) -> None:
    plan = make(**BUDGET).plan(Schema.from_cardinalities(DOMAIN), 0)
    assert all(step.error == 1 for step in plan.one_ways)
    with pytest.raises(chicle.ParameterError, match="n must be"):
        make(**BUDGET).plan(Schema.from_cardinalities(DOMAIN), -1)


def test_a_sweep_leaves_the_mechanism_as_it_was(make: Make) -> None:
    synth = make(**BUDGET)
    before = repr(synth)
    sweep = synth.sweep(Schema.from_cardinalities(DOMAIN), [0.5, 5], 10_000)
    assert repr(synth) == before
    assert [plan.budget.epsilon for plan in sweep.plans] == [0.5, 5]
    worst = [max(step.error or 0 for step in plan.steps) for plan in sweep.plans]
    assert worst[0] > worst[1] or isinstance(synth, BestResponse), "which measure nothing, so nothing has an error"
    assert len(str(sweep).splitlines()) == 4
    for wrong in ([], [1, 0]):
        with pytest.raises(PrivacyError):
            synth.sweep(Schema.from_cardinalities(DOMAIN), wrong)
    with pytest.raises(PrivacyError, match="epsilon= and delta="):
        make(rho=0.1).sweep(Schema.from_cardinalities(DOMAIN), [1])


@pytest.mark.parametrize("size", [2, 30, 500])
@pytest.mark.parametrize("n", [2_000, 100_000])
def test_the_error_of_noise_is_about_what_noise_does(size: int, n: int) -> None:
    """On evenly spread counts, with negative ones cut off: never more than told, and at least half of it."""
    rng = np.random.default_rng(size)
    sigma = calibrate(0.002)
    exact = np.full(size, n / size)
    noisy = np.maximum(exact + rng.normal(0, sigma, (400, size)), 0)
    noisy *= n / noisy.sum(axis=1, keepdims=True)
    seen = float(np.abs(noisy - exact).sum(axis=1).mean() / (2 * n))
    (told,) = noise_errors([size], [sigma], n)
    assert 0.5 * seen < told < 1.5 * seen


def test_errors_of_pairs() -> None:
    assert pair_errors(Domain({"a": 5}), 0.01, 1, 100) is None
    small, large = pair_errors(Domain(DOMAIN), 0.01, 1, 10_000) or (0, 0)
    assert 0 < small < large < 1
    worse = pair_errors(Domain(DOMAIN), 0.01, 3, 10_000) or (0, 0)
    assert worse[0] > small
    assert worse[1] > large


def test_wide_tables_cost_more_with_pairs() -> None:
    wide = Domain({f"a{i}": 4 for i in range(40)})
    assert rough_cost(wide, 10**6, per_pair=20).seconds > 2 * rough_cost(wide, 10**6, per_pair=0).seconds
