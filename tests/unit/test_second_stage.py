"""The second stage of Prism over sets: when it pays, what it measures, and what becomes of its tables."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chicle import Domain, Measurement, ParameterError, Prism, PrismOptions, Records
from chicle.denoising.interactions import high_order, interactions, pair_margins
from chicle.mechanisms import second_stage
from chicle.models import DenoisedModel, InteractionModel
from chicle.query import one_ways
from chicle.selection.second_sets import candidates, choose_second_sets, expected_distances
from chicle.selection.second_share import MAX_CELLS, first_share

Floats = npt.NDArray[np.float64]
BUDGET: dict[str, Any] = {"epsilon": 5.0, "delta": 1e-9}
SETS = PrismOptions(contrasts=False)


def parity(rows: int = 20_000, attributes: int = 8, seed: int = 0) -> Records:
    """Binary attributes; each third one is the parity of the two before it, which no pair can tell."""
    rng = np.random.default_rng(seed)
    columns = {f"a{i}": rng.integers(2, size=rows) for i in range(attributes)}
    for i in range(2, attributes, 3):
        flipped = rng.random(rows) < 0.05
        columns[f"a{i}"] = columns[f"a{i - 2}"] ^ columns[f"a{i - 1}"] ^ flipped
    return Records(columns, dict.fromkeys(columns, 2))


def triple_error(real: Records, made: Records) -> float:
    triples = list(combinations(real.domain, 3))
    pairs = zip(real.count(triples), made.count(triples), strict=True)
    return float(np.mean([np.abs(a / len(real) - b / len(made)).sum() / 2 for a, b in pairs]))


# --- When it pays ----------------------------------------------------------------------------------------------------


def even(size: int, number: int) -> list[Floats]:
    return [np.full(size, 1 / size)] * number


def test_it_pays_for_small_domains_and_large_budgets_only() -> None:
    assert first_share(even(2, 14), 20_000, 2 * 0.34) < 1
    assert first_share(even(2, 14), 20_000, 2 * 0.0007) == 1
    assert first_share(even(60, 14), 20_000, 2 * 0.34) == 1


@pytest.mark.parametrize(
    ("one_ways", "total", "budget"),
    [([], 100, 1), (even(2, 2), 100, 1), (even(1, 9), 100, 1), (even(2, 9), 0, 1), (even(2, 9), 100, 0)],
)
def test_there_is_none_where_there_is_nothing_to_tell(one_ways: list[Floats], total: float, budget: float) -> None:
    assert first_share(one_ways, total, budget) == 1


def test_huge_attributes_are_no_obstacle() -> None:
    assert first_share([np.full(100_000, 1e-5)] * 3 + even(2, 3), 50_000, 1.0) in (1.0, 0.85, 0.7, 0.5)


@pytest.mark.parametrize("share", [0, -1, 1.5, math.nan])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(ParameterError, match="first_stage must be a share"):
        PrismOptions(first_stage=share)


def test_the_plan_says_whether_a_second_stage_is_likely() -> None:
    small = dict.fromkeys("abcdefgh", 2)
    steps = {step.release for step in Prism(**BUDGET, options=SETS).plan(small, n=20_000).steps}
    assert {"second selection", "second marginal"} <= steps
    assert not any("second" in step.release for step in Prism(**BUDGET).plan(dict.fromkeys("abc", 90)).steps)
    plan = Prism(**BUDGET, options=SETS).plan(small, n=20_000)
    assert math.fsum(step.rho for step in plan.steps) == pytest.approx(plan.budget.rho)


# --- What it measures ------------------------------------------------------------------------------------------------


def test_it_spends_exactly_the_budget_in_two_stages() -> None:
    synth = Prism(**BUDGET, options=SETS).fit(parity())
    assert synth.ledger_.epsilon() == pytest.approx(5, rel=1e-9)
    assert synth.ledger_.epsilon() <= 5
    transcript = synth.release_.transcript
    first, second = transcript.scores
    assert {len(clique) for clique in first.cliques} == {2}
    assert {len(clique) for clique in second.cliques} == {2, 3}
    model = synth.release_.model
    assert isinstance(model, InteractionModel)
    tables = [one for one in transcript.measurements if len(one.clique) > 1]
    later = tables[model.first :]
    assert later
    assert transcript.entries.index(second) < min(transcript.entries.index(one) for one in later)
    assert all(synth.release_.domain.cells(one.clique) <= MAX_CELLS and len(one.clique) <= 4 for one in later)
    assert [event.purpose for event in synth.ledger_.events[-len(later) :]] == ["second marginal"] * len(later)


def test_it_finds_what_no_pair_can_tell() -> None:
    real = parity()
    options = (PrismOptions(first_stage=1.0), SETS)
    one, two = (triple_error(real, Prism(**BUDGET, options=each).fit(real).sample(seed=1)) for each in options)
    assert two < 0.25 * one


def test_where_no_set_is_worth_its_price_the_first_tables_are_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_stage, "choose_second_sets", lambda *_: [])
    synth = Prism(**BUDGET, options=PrismOptions(first_stage=0.5)).fit(parity())
    tables = [one.clique for one in synth.release_.measurements if len(one.clique) > 1]
    half = len(tables) // 2
    assert tables[:half] == tables[half:]
    assert synth.ledger_.epsilon() == pytest.approx(5, rel=1e-9)
    assert len(synth.sample(100, seed=0)) == 100


def test_bounds_of_unmeasured_triples_hold() -> None:
    """They need the model by which the second stage was chosen again, as it was."""
    real = parity(attributes=11)
    release = Prism(epsilon=2, delta=1e-9, options=PrismOptions(first_stage=0.5)).fit(real).release_
    scored = [clique for clique in release.transcript.scores[1].cliques if len(clique) == 3]
    made = release.sample(len(real), seed=0)
    bounds = {bound.clique: bound for bound in release.error_bounds(scored, synthetic=made)}
    assert len(bounds) == len(scored)
    for clique in scored:
        (a,), (b,) = real.count([clique]), made.count([clique])
        bound = bounds[clique].table_error
        assert bound is not None
        assert np.abs(a / len(real) - b / len(made)).sum() / 2 <= bound


def test_the_first_model_is_learnt_again_from_the_first_tables() -> None:
    release = Prism(**BUDGET, options=SETS).fit(parity()).release_
    (_, _, _), (_, before, merge) = release.transcript.before_scores()
    models = [InteractionModel(**release.model.params()).fit(before, release.domain, merge=merge) for _ in range(2)]
    some = [("a0", "a1", "a2"), ("a3", "a7")]
    for one, other in zip(*(model.expect(some, merged=True) for model in models), strict=True):
        assert np.array_equal(one, other)
    denoised = DenoisedModel().fit(before, release.domain, merge=merge)
    assert all(
        np.array_equal(one.values, other.values)
        for one, other in zip(models[0]._targets, denoised._targets, strict=True)
    )


# --- Candidates and sets ---------------------------------------------------------------------------------------------


DOMAIN = Domain({"a": 2, "b": 3, "c": 1, "d": 2, "e": 80, "f": 60})


def uniform(cliques: Any) -> list[Floats]:
    return [np.full(DOMAIN.shape(clique), 6_000 / DOMAIN.cells(clique)) for clique in cliques]


def test_candidates_are_small_and_of_several_values() -> None:
    found = candidates(DOMAIN, uniform, {}, budget=2.0)
    assert all("c" not in clique and DOMAIN.cells(clique) <= MAX_CELLS for clique in found.cliques)
    assert ("a", "b", "d") in found.cliques
    assert ("e", "f") not in found.cliques
    assert found.noise_errors.shape == (len(found.cliques), found.sigmas.size)
    drowned = candidates(DOMAIN, uniform, {}, budget=1e-7)
    assert {len(clique) for clique in drowned.cliques} == {2}


def test_expected_distances_follow_the_sampling_distance_where_noise_is_all() -> None:
    sizes = Domain({f"a{i}": 2 + i % 4 for i in range(12)})

    def expect(cliques: Any) -> list[Floats]:
        return [np.full(sizes.shape(clique), 9_000 / sizes.cells(clique)) for clique in cliques]

    asked = candidates(sizes, expect, {}, budget=2.0)
    rng = np.random.default_rng(0)
    truth = 1.4 * asked.sampling
    noisy = expected_distances(truth + rng.normal(0, 300, truth.shape), 300.0, asked)
    assert np.abs(noisy - truth).mean() < 0.3 * 300 * math.sqrt(2 / math.pi)
    clear = truth * rng.uniform(0.8, 3, truth.shape)
    assert np.abs(expected_distances(clear, 1e-6, asked) / clear - 1).max() < 0.01


def test_chosen_sets_cost_about_the_budget() -> None:
    domain = Domain(dict.fromkeys("abcdefgh", 2))

    def expect(cliques: Any) -> list[Floats]:
        return [np.full(domain.shape(clique), 20_000 / domain.cells(clique)) for clique in cliques]

    asked = candidates(domain, expect, {}, budget=0.3)
    chosen = choose_second_sets(3 * asked.sampling, asked, domain, 0.3)
    assert sum(one.precision for one in chosen) == pytest.approx(0.3, rel=0.3)
    assert {one.clique for one in chosen if len(one.clique) == 4}
    assert choose_second_sets(0 * asked.sampling, asked, domain, 0.3) == []


# --- What becomes of its tables --------------------------------------------------------------------------------------


shapes = st.lists(st.integers(1, 4), min_size=3, max_size=4).map(tuple)


@given(shape=shapes, seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_high_order_is_the_residual_of_a_regression_on_all_pairs(shape: tuple[int, ...], seed: int) -> None:
    """The naive way: least squares on the indicators of every cell of every pair."""
    values: Floats = np.random.default_rng(seed).normal(size=shape)
    cells = np.indices(shape).reshape(len(shape), -1)
    columns = [np.ones(cells.shape[1])]
    for i, j in combinations(range(len(shape)), 2):
        columns += [(cells[i] == a) & (cells[j] == b) for a in range(shape[i]) for b in range(shape[j])]
    design = np.stack(columns, axis=1).astype(float)
    fitted = design @ np.linalg.lstsq(design, values.ravel(), rcond=1e-10)[0]
    assert np.allclose(high_order(values).ravel(), values.ravel() - fitted, atol=1e-8)


def test_pair_margins_are_the_best_means() -> None:
    """Of two noisy tables that share a pair: unbiased, with the variance that they state."""
    rng = np.random.default_rng(0)
    truth = {clique: rng.uniform(50, 90, (2, 3, size)) for clique, size in ((("a", "b", "c"), 2), (("a", "b", "d"), 5))}
    margin = truth["a", "b", "c"].sum(axis=2)
    truth["a", "b", "d"] *= (margin / truth["a", "b", "d"].sum(axis=2))[:, :, None]
    off = []
    for _ in range(4_000):
        tables = [
            Measurement(clique, values + rng.normal(0, sigma, values.shape), sigma)
            for (clique, values), sigma in zip(truth.items(), (3.0, 2.0), strict=True)
        ]
        (pair,) = [one for one in pair_margins(tables) if one.clique == ("a", "b")]
        off.append((np.asarray(pair.values, dtype=float) - margin) / pair.sigma)
    assert pair.sigma == pytest.approx((1 / (2 * 9) + 1 / (5 * 4)) ** -0.5)
    assert np.abs(np.mean(off, axis=0)).max() < 0.08
    assert np.std(off) == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("pull", [0.0, 0.5, 1.0])
def test_interactions_keep_the_expected_pairs(pull: float) -> None:
    rng = np.random.default_rng(1)
    expected = rng.uniform(20, 80, (2, 3, 4))
    table = Measurement(("a", "b", "c"), expected + rng.normal(0, 10, expected.shape), 10.0)
    found = np.asarray(interactions(table, expected, pull=pull).values)
    own, raw = found - expected, high_order(np.asarray(table.values, dtype=np.float64) - expected)
    if pull == 0:
        assert np.allclose(own, raw)
        assert all(np.allclose(own.sum(axis=axis), 0) for axis in range(3))
    assert (own**2).sum() <= (raw**2).sum() + 1e-9
    exact = interactions(Measurement(("a", "b", "c"), expected, 10.0), expected, pull=pull)
    assert np.allclose(exact.values, expected)


def test_records_follow_a_table_of_three() -> None:
    domain = Domain(dict.fromkeys("abc", 2))
    rows = parity(8_000, 3)
    real = Records({name: rows[f"a{i}"] for i, name in enumerate("abc")}, domain)
    cliques = [*one_ways(domain), ("a", "b"), ("a", "b", "c")]
    measured = [Measurement(clique, counts, 1.0) for clique, counts in zip(cliques, real.count(cliques), strict=True)]
    model = InteractionModel(first=1).fit(measured, domain)
    (want,) = real.count([("a", "b", "c")])
    (have,) = model.records(len(real), 0).count([("a", "b", "c")])
    assert np.abs(have - want).max() < 60
    (without,) = DenoisedModel().fit(measured[:-1], domain).records(len(real), 0).count([("a", "b", "c")])
    assert np.abs(without - want).max() > 500
