"""Prism by contrasts: when they pay, what is measured, and what becomes of it."""

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chicle
from chicle import Domain, ParameterError, Prism, PrismOptions, Records
from chicle.denoising.mixture import posterior_means
from chicle.mechanisms import contrast_stages
from chicle.models import ContrastModel
from chicle.selection.second_share import contrasts_pay
from tests.unit.test_second_stage import even, parity, triple_error

Floats = npt.NDArray[np.float64]
BUDGET: dict[str, Any] = {"epsilon": 5.0, "delta": 1e-9}
STAGES = ["weighted contrasts, first stage", "weighted contrasts, second stage"]


# --- When they pay ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [2 * 0.0007, 2 * 0.34])
def test_they_pay_for_small_domains_at_any_budget(budget: float) -> None:
    assert contrasts_pay(even(2, 14), 20_000, budget)
    assert not contrasts_pay(even(60, 14), 20_000, budget)


@pytest.mark.parametrize(
    ("one_ways", "total", "budget"),
    [([], 100, 1), (even(2, 2), 100, 1), (even(1, 9), 100, 1), (even(2, 9), 0, 1), (even(2, 9), 100, 0)],
)
def test_they_do_not_where_there_is_nothing_to_tell(one_ways: list[Floats], total: float, budget: float) -> None:
    assert not contrasts_pay(one_ways, total, budget)


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ParameterError, match="leave out contrasts or first_stage"):
        PrismOptions(contrasts=True, first_stage=0.5)
    with pytest.raises(ParameterError, match="contrasts must be true, false or None"):
        PrismOptions(contrasts=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [0.2, 5.0])
def test_the_plan_says_before_data_that_they_are_likely(epsilon: float) -> None:
    plan = Prism(epsilon=epsilon, delta=1e-9).plan(dict.fromkeys("abcdefgh", 2), n=20_000)
    assert [step.release for step in plan.steps][-2:] == STAGES
    assert plan.steps[-1].of == "56 triples"
    assert math.fsum(step.rho for step in plan.steps) == pytest.approx(plan.budget.rho)
    assert not any("contrasts" in step.release for step in Prism(**BUDGET).plan(dict.fromkeys("abc", 90)).steps)


# --- What is measured ------------------------------------------------------------------------------------------------


def test_the_budget_is_spent_in_two_stages_that_the_ledger_shows() -> None:
    synth = Prism(**BUDGET).fit(parity())
    assert synth.ledger_.epsilon() == pytest.approx(5, rel=1e-9)
    assert synth.ledger_.epsilon() <= 5
    purposes = [event.purpose for event in synth.ledger_.events]
    assert purposes[-56 - 36 :] == STAGES[:1] * 36 + STAGES[1:] * 56
    made = synth.release_.transcript.contrasts
    assert [len(one.clique) for one in made] == [1] * 8 + [2] * 28 + [3] * 56
    assert not synth.release_.transcript.scores
    assert isinstance(synth.release_.model, ContrastModel)


def test_they_find_what_no_pair_can_tell() -> None:
    real = parity()
    one, two = (
        triple_error(real, Prism(**BUDGET, options=options).fit(real).sample(seed=1))
        for options in (PrismOptions(first_stage=1.0), None)
    )
    assert two < 0.15 * one


def test_of_too_many_triples_those_of_the_strongest_pairs_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contrast_stages, "_MOST_TRIPLES", 3)
    rng = np.random.default_rng(0)
    columns = {name: rng.integers(2, size=20_000) for name in "abcdef"}
    columns["d"] = np.where(rng.random(20_000) < 0.1, 1 - columns["c"], columns["c"])
    columns["e"] = np.where(rng.random(20_000) < 0.1, 1 - columns["c"], columns["c"])
    release = Prism(**BUDGET).fit(Records(columns, dict.fromkeys(columns, 2))).release_
    triples = [one.clique for one in release.transcript.contrasts if len(one.clique) == 3]
    assert len(triples) == 3
    assert ("c", "d", "e") in triples
    assert release.sample(100, seed=0)["a"].size == 100


def test_records_of_many_rows_get_fewer_triples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contrast_stages, "_FEW_TRIPLES", 10)
    domain = Domain(dict.fromkeys("abcdefgh", 2))
    assert len(contrast_stages._candidates(domain, 1e3, {})) == 56
    assert len(contrast_stages._candidates(domain, 1e7, {})) == 16
    assert len(contrast_stages._candidates(domain, 1e12, {})) == 10


def test_bounds_of_pairs_and_triples_hold() -> None:
    real = parity()
    release = Prism(epsilon=2, delta=1e-9, options=PrismOptions(contrasts=True)).fit(real).release_
    made = release.sample(len(real), seed=0)
    cliques = [*combinations(real.domain, 2), *combinations(real.domain, 3), ("a3", "a0")]
    for bound in release.error_bounds(cliques, synthetic=made):
        (a,), (b,) = real.count([bound.clique]), made.count([bound.clique])
        assert bound.table_error is not None
        assert np.abs(a / len(real) - b / len(made)).sum() / 2 <= bound.table_error


def test_a_workload_and_a_first_stage_keep_sets() -> None:
    real = parity()
    for options in (PrismOptions(first_stage=1.0), PrismOptions(contrasts=False)):
        assert not Prism(**BUDGET, options=options).fit(real).release_.transcript.contrasts


def test_values_are_not_merged() -> None:
    rng = np.random.default_rng(0)
    rows: dict[str, Any] = {
        "a": (rng.random(5_000) < 0.001).astype(np.uint8),
        **{x: rng.integers(3, size=5_000) for x in "bcd"},
    }
    rows["b"][:3] = 3
    real = Records(rows, {"a": 2, "b": 4, "c": 3, "d": 3})
    release = Prism(epsilon=1, delta=1e-9, options=PrismOptions(contrasts=True)).fit(real).release_
    assert not release.model.merge.changes
    assert len(release.sample(50, seed=0)) == 50


def test_a_loaded_release_makes_the_same_records(tmp_path: Path) -> None:
    release = Prism(**BUDGET).fit(parity(3_000)).release_
    release.save(tmp_path / "r.chicle")
    first, second = (one.sample(500, seed=3) for one in (release, chicle.load(tmp_path / "r.chicle")))
    assert all(np.array_equal(first[name], second[name]) for name in first)


# --- Effects together ------------------------------------------------------------------------------------------------

numbers = st.floats(-1e4, 1e4)


@given(values=st.lists(numbers, max_size=40), noise=st.floats(0, 1e3))
@settings(max_examples=80, deadline=None)
def test_estimates_lie_between_nothing_and_what_was_seen(values: list[float], noise: float) -> None:
    seen = np.array(values)
    found = posterior_means(seen, np.full(seen.shape, noise))
    assert np.isfinite(found).all()
    assert (np.abs(found) <= np.abs(seen) + 1e-9).all()
    assert (found * seen >= 0).all()
    if noise == 0:
        assert np.array_equal(found, seen)


def test_a_few_large_effects_are_kept_and_small_ones_are_not() -> None:
    rng = np.random.default_rng(2)
    truth = np.where(np.arange(5_000) % 50 == 0, 20.0, 0.0)
    seen = truth + rng.standard_normal(truth.size)
    found = posterior_means(seen, np.ones(truth.size))
    linear = seen * max(1 - 1 / float((seen**2).mean()), 0)
    assert np.abs(found - truth).mean() < 0.25 * np.abs(linear - truth).mean()


def test_values_beyond_the_fitted_sample_are_estimated_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    seen = rng.normal(0, 2, 4_000)
    whole = posterior_means(seen, np.ones(seen.size))
    monkeypatch.setattr("chicle.denoising.mixture._MOST", 700)
    assert np.abs(posterior_means(seen, np.ones(seen.size)) - whole).max() < 0.3
