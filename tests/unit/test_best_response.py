"""DualQuery, FEM and their oracle: records against an integer program, rounds and costs against the paper."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import optimize, sparse

import chicle
from chicle import Budget, Domain, Ledger
from chicle.mechanisms.stages import Setting
from chicle.models.responses import best_responses
from chicle.privacy import ExponentialEvent, TestNoise

DOMAIN = Domain({"a": 9, "b": 2, "c": 16, "d": 5, "e": 7, "f": 3, "g": 42})

Cells = list[dict[str, int]]


def gain(record: Any, cells: Cells, weights: list[float]) -> float:
    return sum(w for cell, w in zip(cells, weights, strict=True) if all(record[a] == code for a, code in cell.items()))


def optimum(cells: Cells, weights: list[float]) -> float:
    """Return the gain of the best record, by HiGHS: a 0-1 variable for each code, and one for each query."""
    begins = dict(zip(DOMAIN, np.concatenate([[0], np.cumsum(list(DOMAIN.values()))]).tolist(), strict=False))
    codes = sum(DOMAIN.values())
    rules: list[tuple[Any, float, float]] = []
    size = codes + len(cells)
    for name, begin in begins.items():
        row = np.zeros(size)
        row[begin : begin + DOMAIN[name]] = 1
        rules.append((row, 1, 1))
    for i, (cell, weight) in enumerate(zip(cells, weights, strict=True)):
        if weight < 0:  # the query holds if all its codes do
            row = np.zeros(size)
            row[[begins[name] + code for name, code in cell.items()]], row[codes + i] = 1, -1
            rules.append((row, -np.inf, len(cell) - 1))
            continue
        for name, code in cell.items():  # it holds only if each of its codes does
            row = np.zeros(size)
            row[codes + i], row[begins[name] + code] = 1, -1
            rules.append((row, -np.inf, 0))
    rows, least, most = (list(part) for part in zip(*rules, strict=True))
    found = optimize.milp(
        np.concatenate([np.zeros(codes), -np.array(weights)]),
        constraints=optimize.LinearConstraint(sparse.csr_matrix(np.array(rows)), least, most),
        integrality=np.ones(size),
        bounds=optimize.Bounds(0, 1),
    )
    assert found.success
    return float(-found.fun)


@pytest.mark.parametrize("seed", range(8))
def test_records_are_as_good_as_those_of_an_integer_program(seed: int) -> None:
    """On queries as rounds draw them: some values are frequent, so queries share codes."""
    rng = np.random.default_rng(seed)
    cliques = list(combinations(DOMAIN, 3))
    drawn = (cliques[i] for i in rng.integers(len(cliques), size=40))
    cells = [{name: int(rng.random() ** 2 * DOMAIN[name]) for name in clique} for clique in drawn]
    weights = rng.choice([1.0, 1.0, -1.0], len(cells)).tolist()
    found = best_responses(cells, weights, DOMAIN, seed=seed)
    record = {name: int(found[name][0]) for name in DOMAIN}
    assert gain(record, cells, weights) == pytest.approx(optimum(cells, weights))


def test_costs_decide_where_no_query_does() -> None:
    """Without queries the cheapest code of each attribute is best, so records are even."""
    found = best_responses([], [], DOMAIN, number_of_records=6_000, scale=0.5, starts=1)
    for name, size in DOMAIN.items():
        counts = np.bincount(found[name], minlength=size)
        assert ((counts - 6_000 / size) ** 2 / (6_000 / size)).sum() < size + 6 * math.sqrt(2 * size)
    (same,) = {tuple(best_responses([{"a": 3}], [1.0], DOMAIN, number_of_records=4)["a"].tolist())}
    assert same == (3, 3, 3, 3)


def fitted(synth: Any, k: int = 1) -> tuple[Any, list[ExponentialEvent]]:
    census = chicle.datasets.census(4_000, d=4)
    schema = chicle.Schema.from_cardinalities(census.domain, max_records_per_person=k)
    synth.fit(census, schema, ledger=Ledger(synth.budget, noise=TestNoise(3)))
    return synth, [event for event in synth.ledger_.events if isinstance(event, ExponentialEvent)]


@pytest.mark.parametrize("k", [1, 2])
def test_a_round_of_dual_query_costs_what_the_paper_says(k: int) -> None:
    """Round t draws s queries at epsilon 2 eta t k / n, with eta raised so that the budget ends with a round."""
    synth, events = fitted(chicle.DualQuery(rho=0.02, eta=2.0, samples=7, workload=[("SEX", "AGE")]), k)
    n = synth.release_.total
    turns = len(events) // 7
    assert len(events) == 7 * turns
    assert turns > 5
    epsilons = np.array([event.epsilon for event in events]).reshape(turns, 7)
    etas = epsilons * n / (2 * k * np.arange(1, turns + 1)[:, None])
    assert etas.min() == pytest.approx(etas.max())
    assert 2.0 <= etas.min() < 2.0 * ((turns + 1) / turns) ** 1.6
    paid = sum(7 * (2 * etas.min() * t * k / n) ** 2 / 8 for t in range(1, turns + 1))
    assert paid == pytest.approx(0.02 * 0.98)
    assert {event.values for event in events} == {2 * 2 * 116}, "every cell of the workload, and its negation"
    assert len(synth.release_.model.state()["weights"]) <= turns + 1


def test_fem_pays_for_a_choice_less_than_it_has_rounds() -> None:
    synth, events = fitted(chicle.FEM(rho=0.02, rounds=6, samples=10, workload=[("SEX", "AGE")]))
    assert [event.rho("zcdp") for event in events] == pytest.approx([0.02 * 0.98 / 5] * 5)
    assert synth.ledger_.spent == pytest.approx(0.02)
    paper, events = fitted(chicle.FEM(rho=0.02, rounds=6, samples=10, published=True))
    assert [event.rho("zcdp") for event in events] == pytest.approx([0.02 * 0.98 / 20] * 5)
    assert paper.ledger_.spent == pytest.approx(0.02 * (0.02 + 0.98 / 4))


def test_the_rounds_of_fem_are_those_of_the_paper() -> None:
    """Or somewhat more, by an exact conversion: T rounds of (c sqrt(epsilon))^2 / 2 each, at delta 1 / n^2."""
    for epsilon, n in ((0.1, 43_944), (1.0, 43_944)):
        delta = 1 / n**2
        synth = chicle.FEM(epsilon=epsilon, delta=delta)
        one, rounds = (0.008**2 * epsilon) / 2, 0
        while (rounds + 1) * one + 2 * math.sqrt((rounds + 1) * one * math.log(1 / delta)) <= epsilon:
            rounds += 1
        setting = Setting(DOMAIN, synth.budget.rho, 1, n)
        spent, _ = synth.spread(setting, setting.rho)
        assert len(spent) + 1 == pytest.approx(rounds, rel=0.3)


def test_records_follow_the_workload() -> None:
    """Both come nearer to the answers than even records are."""
    census = chicle.datasets.census(20_000, d=4)
    workload = [("SEX", "RACE"), ("RACE", "AGE")]
    even = 1 / (8 * 116)
    shares = [table / len(census) for table in census.count(workload)]
    for synth in (
        chicle.DualQuery(epsilon=5, delta=1e-9, workload=workload, samples=20, rounds=100),
        chicle.FEM(epsilon=5, delta=1e-9, workload=workload, rounds=60),
    ):
        answers = synth.fit(census, ledger=Ledger(synth.budget, noise=TestNoise(4))).answers_
        assert list(answers) == [("SEX", "RACE"), ("AGE", "RACE")]
        (first, second) = answers.values()
        assert np.abs(first - shares[0]).max() < 0.5 * np.abs(1 / 16 - shares[0]).max()
        apart = np.abs(second - shares[1].T).sum()
        assert apart < 0.8 * np.abs(even - shares[1]).sum()
        assert synth.ledger_.budget.accounting == "zcdp"
        assert synth.ledger_.spent == pytest.approx(Budget(epsilon=5, delta=1e-9, accounting="zcdp").rho)


def test_budgets_of_another_accounting_and_of_another_size() -> None:
    census = chicle.datasets.census(300, d=4)
    budgets: list[dict[str, Any]] = [{"mu": 0.4}, {"rho": 1e-9}, {"epsilon": 50.0, "delta": 1e-9}]
    for given in budgets:
        for make in (chicle.DualQuery, chicle.FEM):
            synth = make(**given, workload=[("SEX", "RACE")], rounds=3, allow_weak=True).fit(census)
            assert synth.ledger_.spent == pytest.approx(synth.budget.rho)
