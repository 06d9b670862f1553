"""AIM: what is chosen, what is spent, and what it says of what it did not measure."""

import json
import math
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chicle
from chicle import AIM, Budget, InfeasibleError, Ledger, Measurement, ParameterError, Query, Records, Schema, Workload
from chicle.mechanisms.aim_candidates import penalty
from chicle.mechanisms.aim_model import ModelRun
from chicle.mechanisms.aim_records import candidates
from chicle.models.pgm import GraphicalModel, Pgm, jt_size, jt_sizes
from chicle.privacy import ExponentialEvent, GaussianEvent, TestNoise
from chicle.releases.bounds import count_in_buckets
from chicle.selection.expected_error import NoiseClasses, noise_error

DOMAIN = {"a": 2, "b": 3, "c": 4, "d": 2, "e": 3, "f": 5}


def dependent(rows: int, seed: int = 0) -> Records:
    """Records in which d is the exclusive or of a and of b > 0, so that no pair of the three tells it; e follows c."""
    rng = np.random.default_rng(seed)
    a, b, c, f = (rng.integers(DOMAIN[name], size=rows) for name in "abcf")
    d = np.where(rng.random(rows) < 0.95, a ^ (b > 0), 1 - (a ^ (b > 0)))
    e = np.where(rng.random(rows) < 0.7, c % 3, rng.integers(3, size=rows))
    return Records({"a": a, "b": b, "c": c, "d": d, "e": e, "f": f}, DOMAIN)


def error(real: Records, made: Records, clique: tuple[str, ...]) -> float:
    (a,), (b,) = chicle.count(real, [clique]), chicle.count(made, [clique])
    return float(np.abs(a / len(real) - b / len(made)).sum() / 2)


@pytest.mark.parametrize("published", [False, True])
def test_what_no_pair_tells_is_found_in_triples(published: bool) -> None:
    real = dependent(20_000)
    workload = Workload.all_kway(DOMAIN, 3)
    synth = AIM(epsilon=5, delta=1e-9, workload=workload, published=published).fit(real)
    assert any({"a", "b", "d"} <= set(one.clique) for one in synth.release_.measurements)
    made = synth.sample(seed=0)
    assert error(real, made, ("a", "b", "d")) < 0.03
    pairs = AIM(epsilon=5, delta=1e-9, workload=Workload.all_kway(DOMAIN, 2), published=published).fit(real)
    largest = max(len(one.clique) for one in pairs.release_.measurements)
    assert largest == 2 if published else largest <= 4, "of the workload's closure, or packed"


@pytest.mark.parametrize("published", [False, True])
def test_only_what_the_workload_needs_is_measured(published: bool) -> None:
    real = dependent(20_000)
    workload = Workload([("c", "e")])
    synth = AIM(epsilon=2, delta=1e-9, workload=workload, published=published).fit(real)
    larger = {one.clique for one in synth.release_.measurements if len(one.clique) > 1}
    assert larger == {("c", "e")}
    assert error(real, synth.sample(seed=1), ("c", "e")) < 0.02
    assert error(real, synth.sample(seed=1), ("f",)) < 0.05, "attributes that nobody asked for are not made up"


def test_a_target_is_served_better_by_its_own_workload() -> None:
    real = chicle.datasets.census(20_000, d=10)
    target = Workload.target(real.domain, "AGE", 2)
    errors = {}
    for name, workload in (("target", target), ("all", Workload.all_kway(real.domain, 2))):
        runs = [AIM(epsilon=0.5, delta=1e-9, workload=workload).fit(real).sample(seed=seed) for seed in range(3)]
        errors[name] = np.mean([error(real, made, clique) for made in runs for clique in target])
    assert errors["target"] < errors["all"]


@settings(max_examples=12, deadline=None)
@given(
    rounds=st.integers(6, 300),
    rows=st.integers(0, 3_000),
    epsilon=st.sampled_from([0.05, 1.0, 8.0]),
    alpha=st.sampled_from([0.5, 0.9, 0.99]),
    accounting=st.sampled_from(["gdp", "zcdp"]),
)
def test_the_spend_ends_on_the_budget_for_any_data_and_any_number_of_rounds(
    rounds: int, rows: int, epsilon: float, alpha: float, accounting: Any
) -> None:
    budget: dict[str, Any] = {"epsilon": epsilon, "delta": 1e-9, "accounting": accounting}
    synth = AIM(published=True, rounds=rounds, alpha=alpha, iterations=10, **budget).fit(dependent(rows))
    whole = Budget(**budget).rho
    assert whole * (1 - 1e-9) <= synth.ledger_.spent <= whole
    assert synth.ledger_.epsilon() <= epsilon


@pytest.mark.parametrize("rounds", [None, 1, 2, 4])
@pytest.mark.parametrize("rows", [0, 50, 5_000])
def test_records_end_on_the_budget_too(rounds: int | None, rows: int) -> None:
    synth = AIM(epsilon=3, delta=1e-9, rounds=rounds).fit(dependent(rows))
    whole = Budget(epsilon=3, delta=1e-9).rho
    assert whole * (1 - 1e-9) <= synth.ledger_.spent <= whole
    assert all(isinstance(event, GaussianEvent) for event in synth.ledger_.events), "exactly Gaussian DP"


def test_rounds_of_a_model_are_those_of_the_paper() -> None:
    real, rho, alpha, planned = dependent(4_000), 0.02, 0.9, 16 * len(DOMAIN)
    ledger = Ledger(Budget(rho=rho))
    AIM(rho=rho, published=True).fit(real, ledger=ledger)
    singles, rest = ledger.events[: len(DOMAIN)], ledger.events[len(DOMAIN) :]
    first = math.sqrt(planned / (2 * alpha * rho))
    assert all(isinstance(one, GaussianEvent) and one.sigma == pytest.approx(first) for one in singles)
    left, share = rho - len(DOMAIN) * alpha * rho / planned, rho / planned
    assert len(rest) % 2 == 0
    for choice, table in zip(rest[::2], rest[1::2], strict=True):
        assert isinstance(choice, ExponentialEvent)
        assert isinstance(table, GaussianEvent)
        cost = choice.rho("zcdp") + table.rho("zcdp")
        assert choice.rho("zcdp") / cost == pytest.approx(1 - alpha)
        last = left <= 2 * share * (1 + 1e-6) or table is rest[-1]
        assert cost == pytest.approx(left if last and table is rest[-1] else share, rel=1e-6) or (
            cost == pytest.approx(4 * share, rel=1e-6)
        ), "as before, four times as much, or all that is left"
        share, left = cost, left - cost
    assert left == pytest.approx(0, abs=1e-9 * rho)


def test_progress_is_heard_and_rounds_do_not_depend_on_what_a_ledger_has_paid_before() -> None:
    real = dependent(4_000)
    budget: dict[str, Any] = {"rho": 0.05}
    shared = Ledger(Budget(rho=0.5))
    heard: list[tuple[int, float]] = []
    AIM(published=True, **budget).fit(real, ledger=shared)
    second = AIM(published=True, progress=lambda *note: heard.append(note), **budget).fit(real, ledger=shared)
    choices = second.release_.transcript.choices
    rounds, steps = heard[: len(choices) - 1], heard[len(choices) - 1 :]
    assert [number for number, _ in rounds] == list(range(1, len(choices)))
    assert all(0 <= moved <= 2 for _, moved in rounds)
    assert steps, "and then the steps of the last model's fit"
    assert [number for number, _ in steps] == sorted({number for number, _ in steps})
    first_part = (len(DOMAIN) * 0.9 + 1) / (16 * len(DOMAIN))
    assert choices[0].context["part"] == pytest.approx(first_part, rel=1e-6), "[A] line 13: of this fit's own budget"
    assert choices[-1].context["part"] == 1


def test_candidates_fit_their_share_of_the_model_and_are_worth_their_noise() -> None:
    domain = chicle.Domain({"a": 30, "b": 30, "c": 30, "d": 2})
    run = ModelRun(domain, Workload.all_kway(domain, 3), max_size=8 * 3_000, iterations=5)
    ones = [Measurement((name,), np.full(size, 9_000 / size), 5.0) for name, size in domain.items()]
    found = run.openings().after(ones, 1.0, 1.0).cliques
    assert ("a", "b", "d") in found
    assert ("a", "b", "c") not in found, "27,000 cells"
    assert ("a", "b", "d") not in run.openings().after(ones, 1.0, 0.5).cliques, "not yet"
    for clique in run.openings().after(ones, 50.0, 1.0).cliques:
        assert penalty(clique, 50.0, domain) <= 2 * 9_000
    tree = [*ones, Measurement(("a", "b"), np.full((30, 30), 10.0), 5.0)]
    assert ("a", "b") in run.openings().after(tree, 1.0, 1e-9).cliques, "what is in the model already costs nothing"
    assert run.openings().after(ones, 1e9, 1.0).cliques == [("d",)]


@pytest.mark.parametrize("seed", range(60))
def test_what_the_model_holds_stays_open_where_it_has_no_room(seed: int) -> None:
    """Also where greedy orders find a smaller tree for more cliques, so that old sizes are above the new one."""
    rng = np.random.default_rng(seed)
    domain = chicle.Domain({f"x{i}": int(rng.integers(2, 9)) for i in range(9)})
    zeros = {tuple(sorted(rng.choice(list(domain), 4, replace=False))): np.zeros(1, dtype=bool) for _ in range(2)}
    run = ModelRun(domain, Workload.all_kway(domain, 3), max_size=1, iterations=5, zeros=zeros)
    measured = [Measurement((name,), np.full(size, 9_000 / size), 5.0) for name, size in domain.items()]
    openings, singles = run.openings(), [(name,) for name in domain]
    for _ in range(12):
        open_to = openings.after(measured, 1.0, 0.5)
        assert set(singles) <= set(open_to.cliques)
        assert all(open_to.fit(singles))
        clique = domain.clique(rng.choice(list(domain), 2, replace=False))
        measured.append(Measurement(clique, np.full(domain.shape(clique), 9_000 / domain.cells(clique)), 5.0))


def test_sizes_are_not_worked_out_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is open and fits is what [A] line 13 asks for, but where greedy orders happen to shrink a tree."""
    domain = chicle.Domain({f"x{i}": 2 + i % 5 for i in range(12)})
    run = ModelRun(domain, Workload.all_kway(domain, 3), max_size=8 * 20_000, iterations=5)
    measured = [Measurement((name,), np.full(size, 9_000 / size), 5.0) for name, size in domain.items()]
    asked: list[int] = []

    def counting(cliques: list[chicle.Clique], *rest: Any, **more: Any) -> list[int]:
        asked.append(len(cliques))
        return jt_sizes(cliques, *rest, **more)

    monkeypatch.setattr(sys.modules["chicle.mechanisms.aim_candidates"], "jt_sizes", counting)
    openings, rng = run.openings(), np.random.default_rng(0)
    all_cliques = run.workload.closure()
    looked = 0
    for _ in range(25):
        asked.clear()
        part = len(measured) / (len(domain) + 25)
        open_to = openings.after(measured, 1.0, part)
        looked += any(asked)
        held = {one.clique for one in measured}
        sizes = jt_sizes(all_cliques, domain, held=held)
        limit = max(part * run.max_size, jt_size(held, domain))
        fitting = {c for c, size in zip(all_cliques, sizes, strict=True) if size <= limit}
        found = {c for c, fits in zip(open_to.cliques, open_to.fit(open_to.cliques), strict=True) if fits}
        assert found <= fitting
        assert len(found) >= 0.9 * len(fitting)
        assert len(found) >= 0.6 * len(open_to.cliques), "sizes have become old"
        clique = sorted(found)[rng.integers(len(found))]
        measured.append(Measurement(clique, np.full(domain.shape(clique), 9_000 / domain.cells(clique)), 5.0))
    assert looked < 18
    assert jt_size([one.clique for one in measured], domain) > run.max_size / 4, "the limit was felt"


def test_structural_zeros_stay_empty_and_do_no_harm() -> None:
    rng = np.random.default_rng(0)
    rows = 8_000
    age = rng.integers(0, 10, rows)
    wed = np.where(age < 3, 0, rng.integers(0, 3, rows))
    job = np.where(age < 2, 0, rng.integers(0, 4, rows))
    frame = {"age": age, "wed": wed, "job": job}
    told = {name: {"type": "coded", "values": size} for name, size in (("age", 10), ("wed", 3), ("job", 4))}
    forbidden = [
        {"forbid": {"age": {"below": 3}, "wed": {"from": 1}}},
        {"forbid": {"age": {"below": 2}, "job": {"from": 1}}},
    ]
    errors: dict[bool, list[float]] = {True: [], False: []}
    for zeros in (True, False):
        schema = Schema(told, constraints=forbidden if zeros else None)
        for seed in range(5):
            ledger = Ledger(Budget(epsilon=0.3, delta=1e-9), noise=TestNoise(seed))
            synth = AIM(epsilon=0.3, delta=1e-9, published=True).fit(frame, schema, ledger=ledger)
            assert isinstance(synth.release_.model, GraphicalModel)
            (table,) = synth.release_.model.expect([("age", "wed")])
            if zeros:
                assert table[:3, 1:].sum() == 0
            made = synth.sample(rows, seed=seed)
            if zeros:
                assert not ((made["age"] < 3) & (made["wed"] > 0)).any()
            real = Records(frame, {"age": 10, "wed": 3, "job": 4})
            same = Records({name: np.asarray(made[name]) for name in frame}, real.domain)
            errors[zeros].append(error(real, same, ("age", "wed", "job")))
    assert np.mean(errors[True]) <= np.mean(errors[False]) * 1.02


def test_a_budget_too_small_for_tables_goes_to_the_1_ways() -> None:
    real = dependent(40)
    for published in (False, True):
        # Noise decides whether it is too small: once in some tens of fits, 40 records look like many thousands.
        ledger = Ledger(Budget(epsilon=0.01, delta=1e-9), noise=TestNoise(0))
        synth = AIM(epsilon=0.01, delta=1e-9, published=published).fit(real, ledger=ledger)
        assert all(len(one.clique) <= 1 for one in synth.release_.measurements)
        assert any("attributes are independent" in note for note in synth.release_.notes)
        assert synth.ledger_.spent >= 0.999 * synth.ledger_.budget.rho


def test_what_no_model_can_hold_is_refused_before_anything_is_spent() -> None:
    ledger = Ledger(Budget(epsilon=1, delta=1e-9))
    with pytest.raises(InfeasibleError, match="max_size"):
        AIM(epsilon=1, delta=1e-9, published=True, max_size=100).fit(dependent(10), ledger=ledger)
    with pytest.raises(ParameterError, match="at least 6"):
        AIM(epsilon=1, delta=1e-9, published=True, rounds=5).fit(dependent(10), ledger=ledger)
    assert not ledger.events
    # A cap that holds little more than the 1-ways is kept to.
    cap = 8 * (sum(DOMAIN.values()) + 6)
    synth = AIM(epsilon=5, delta=1e-9, published=True, max_size=cap).fit(dependent(3_000))
    held = [one.clique for one in synth.release_.measurements]
    assert 8 * sum(DOMAIN.values()) <= jt_size(held, DOMAIN) <= cap


@pytest.mark.parametrize("published", [False, True])
def test_a_loaded_release_makes_the_same_records_and_bounds(published: bool, tmp_path: Path) -> None:
    real = dependent(10_000)
    synth = AIM(epsilon=4, delta=1e-9, published=published, workload=Workload.target(DOMAIN, "d")).fit(real)
    synth.release_.save(tmp_path / "r.chicle")
    again = chicle.load(tmp_path / "r.chicle")
    made, loaded = synth.sample(2_000, seed=3), again.sample(2_000, seed=3)
    assert all((made[name] == loaded[name]).all() for name in DOMAIN)
    cliques = list(combinations(DOMAIN, 3))
    for one, two in zip(
        synth.release_.error_bounds(cliques, synthetic=made), again.error_bounds(cliques, synthetic=made), strict=True
    ):
        assert (one.supports, one.known) == (two.supports, two.known)
        assert one.distance == pytest.approx(two.distance, nan_ok=True)
    assert json.dumps(dict(synth.release_.parameters)), "plain data"


def coverage(published: bool, rounds: int | None, runs: int, epsilon: float) -> tuple[list[bool], list[bool]]:
    """Whether the bound held, for cliques with and without support, over many releases."""
    held: tuple[list[bool], list[bool]] = ([], [])
    cliques = [*combinations(DOMAIN, 2), *combinations(DOMAIN, 3)]
    real = dependent(1_500)
    for seed in range(runs):
        ledger = Ledger(Budget(epsilon=epsilon, delta=1e-6), noise=TestNoise(1_000 * seed))
        synth = AIM(epsilon=epsilon, delta=1e-6, published=published, rounds=rounds).fit(real, ledger=ledger)
        made = synth.sample(seed=seed)
        for bound in synth.release_.error_bounds(cliques, synthetic=made):
            if not bound.known:
                continue
            seen = [Query(bound.clique, bound.buckets)]
            (a,), (b,) = (list(count_in_buckets(table, seen)) for table in (real, made))
            true = float(np.abs(a / len(real) - b / len(made)).sum() / 2)
            held[0 if bound.supported else 1].append(true <= bound.distance)
    return held


@pytest.mark.parametrize(("published", "rounds"), [(False, 2), (True, None)])
def test_bounds_hold_as_often_as_they_say(published: bool, rounds: int | None) -> None:
    supported, alone = coverage(published, rounds, 100, 2.0)
    assert len(supported) > 300
    assert len(alone) > 300
    assert np.mean(supported) >= 0.95
    assert np.mean(alone) >= 0.95


def test_distances_by_scores_are_not_idle() -> None:
    """A clique's own score bounds it: far below what is trivial, and above the truth."""
    real = chicle.datasets.census(20_000, d=9)
    ledger = Ledger(Budget(epsilon=5, delta=1e-9), noise=TestNoise(0))
    synth = AIM(epsilon=5, delta=1e-9, rounds=2).fit(real, ledger=ledger)
    made = synth.sample(seed=0)
    triples = [triple for triple in combinations(real.domain, 3) if real.domain.cells(triple) < 5_000]
    alone = [bound for bound in synth.release_.error_bounds(triples, synthetic=made) if not bound.supported]
    assert alone
    for bound in alone:
        assert bound.known
        seen = [Query(bound.clique, bound.buckets)]
        (a,), (b,) = (list(count_in_buckets(table, seen)) for table in (real, made))
        assert np.abs(a / len(real) - b / len(made)).sum() / 2 <= bound.distance < 0.3
        assert "table: distance at most" in repr(bound)


@pytest.mark.parametrize("published", [False, True])
def test_a_clique_may_be_asked_for_twice(published: bool) -> None:
    release = AIM(epsilon=1, delta=1e-9, published=published).fit(chicle.datasets.census(4_000, d=7)).release_
    pairs = list(combinations(release.schema.domain, 2))
    once, twice = release.error_bounds(pairs), release.error_bounds([*pairs, *pairs])
    assert [bound.known for bound in twice] == 2 * [bound.known for bound in once]
    assert not all(bound.supported for bound in once)


def test_scores_that_were_paid_for_are_kept_though_nothing_was_chosen() -> None:
    rng = np.random.default_rng(0)
    real = Records({name: rng.integers(size, size=20_000) for name, size in (("a", 30), ("b", 40))}, {"a": 30, "b": 40})
    release = AIM(epsilon=0.3, delta=1e-9).fit(real).release_
    assert all(len(one.clique) < 2 for one in release.measurements)
    (bound,) = release.error_bounds([("a", "b")], synthetic=release.sample(seed=0))
    assert bound.known
    assert not bound.supported


def test_a_workload_of_1_ways_says_so() -> None:
    for published in (False, True):
        synth = AIM(epsilon=5, delta=1e-9, workload=[("a",), ("b",)], published=published).fit(dependent(2_000))
        assert "the workload asks for 1-ways alone" in synth.release_.notes[0]


def test_the_same_clique_in_another_order() -> None:
    real = dependent(5_000)
    release = AIM(epsilon=3, delta=1e-9, published=True).fit(real).release_
    for bound, turned in zip(
        release.error_bounds(list(combinations(DOMAIN, 2))),
        release.error_bounds([(b, a) for a, b in combinations(DOMAIN, 2)]),
        strict=True,
    ):
        assert bound.known == turned.known
        if bound.estimate is not None and turned.estimate is not None:
            np.testing.assert_allclose(bound.estimate, turned.estimate.T)
            assert bound.estimate_error == pytest.approx(turned.estimate_error)


def test_theorem_4_is_what_the_bound_computes() -> None:
    """By hand, for one round and one clique that was not chosen."""
    real = dependent(3_000)
    synth = AIM(rho=0.3, published=True, rounds=6, alpha=0.9).fit(real)
    release, domain = synth.release_, real.domain
    choices = release.transcript.choices
    run = ModelRun(domain, Workload.all_kway(domain, 3), 80 * 2**20, 100)
    t = len(choices) - 1
    before = release.measurements[: len(domain) + t]
    table, epsilon = release.measurements[len(domain) + t], choices[t].epsilon
    openings = run.openings()
    for end, (one, choice) in enumerate(zip(release.measurements[len(domain) :], choices, strict=True), len(domain)):
        assert choice.clique == one.clique
        open_to = openings.after(release.measurements[:end], one.sigma, choice.context["part"]).cliques
    chosen = {one.clique for one in release.measurements}
    clique = next(c for c in open_to if not any(set(c) <= set(other) for other in chosen))
    model = Pgm(before[: len(domain)], domain).fit(100, tolerance=1e-3)
    for end in range(len(domain) + 1, len(before) + 1):
        model = Pgm(before[:end], domain, start=model).fit(100, tolerance=1e-3)
    weight = {c: round(256 * len(c) / 3) for c in (clique, table.clique)}  # all attributes matter alike
    most = max(round(256 * len(c) / 3) for c in open_to)
    risk = 0.05 * 0.8
    noise = math.sqrt(2 / math.pi) * table.sigma
    b_r = (
        weight[table.clique] * np.abs(model.marginal(table.clique) - table.values).sum()
        + noise * (weight[clique] * domain.cells(clique) - weight[table.clique] * domain.cells(table.clique))
        + 2 * most / epsilon * math.log(len(open_to))
    )
    first, second = math.sqrt(2 * math.log(2 / risk)), math.log(2 / risk)
    spread = weight[table.clique] * first * table.sigma * math.sqrt(domain.cells(table.clique))
    expected = (b_r + spread + second * 2 * most / epsilon) / weight[clique]
    (bound,) = release.error_bounds([clique])
    assert bound.estimate_error == pytest.approx(expected, rel=1e-6)


def test_candidates_of_later_rounds() -> None:
    domain = chicle.Domain({"a": 1, "b": 3, "c": 200, "d": 200})
    found = candidates(domain, Workload.all_kway(domain, 3))
    assert found == [("b", "c"), ("b", "d")], "one value tells nothing, and tables have at most 20,000 cells"


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30), st.floats(0.5, 1e4))
def test_errors_by_classes_are_nearly_those_of_the_cells(counts: list[float], sigma: float) -> None:
    values = np.array(counts)
    found = float(NoiseClasses(np.array([sigma])).errors(values)[0])
    exact = 0.7 * noise_error(values[values > 0.5], sigma)
    assert found == pytest.approx(exact, rel=0.12, abs=0.7 * len(counts))
