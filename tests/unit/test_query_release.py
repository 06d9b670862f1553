"""What the mechanisms of query release share: the round of the paper, the accounting, the workload, the answers."""

import math
from typing import Any

import numpy as np
import pytest

import chicle
from chicle import Budget, Desk, InfeasibleError, Ledger, ParameterError
from chicle.mechanisms.query_release import default_workload
from chicle.mechanisms.query_rounds import QueryRounds
from chicle.mechanisms.stages import Setting
from chicle.models import IndependentModel
from chicle.privacy import ExponentialEvent, GaussianEvent
from chicle.query import as_query


class Marginals(QueryRounds[IndependentModel]):
    """Learns from 1-ways alone: the rounds are what is tested here."""

    one_way_share = {"table": 0.1, "query": 0.1}  # noqa: RUF012

    def refit(self, desk: Desk, before: IndependentModel | None, *, final: bool = False) -> IndependentModel:
        return before if before is not None and not final else self.learn(IndependentModel(), desk)


CENSUS = chicle.datasets.census(3_000, d=5)
PAIRS = chicle.pairs(CENSUS.domain)


@pytest.mark.parametrize(("alpha", "rounds"), [(0.67, 7), (0.5, 3), (0.2, 1)])
def test_a_round_is_that_of_the_paper(alpha: float, rounds: int) -> None:
    """Pr ~ exp(alpha eps0 |count - expected|) and sigma = 1 / ((1 - alpha) eps0), with the rho that rounds get."""
    synth = Marginals(rho=0.3, workload=PAIRS, rounds=rounds, per="query", alpha=alpha).fit(CENSUS)
    stages = synth.stages(Setting(CENSUS.domain, 0.3, 1))
    rho = stages.rho("selection") + stages.rho("marginal")
    assert rho == pytest.approx(0.3 * 0.88)
    eps0 = math.sqrt(2 * rho / (rounds * (alpha**2 + (1 - alpha) ** 2)))
    choices = [event for event in synth.ledger_.events if isinstance(event, ExponentialEvent)]
    cells = [event for event in synth.ledger_.events if isinstance(event, GaussianEvent) and event.clique == ()]
    assert [len(choices), len(cells)] == [rounds, rounds + 1]
    assert [event.epsilon for event in choices] == pytest.approx([2 * alpha * eps0] * rounds)
    assert [event.sigma for event in cells[1:]] == pytest.approx([1 / ((1 - alpha) * eps0)] * rounds)
    among = [event.values for event in choices]
    assert among == [among[0] - i for i in range(rounds)], "what was chosen is no candidate again"
    measured = [one for one in synth.release_.measurements if one.where]
    assert [dict(one.where) for one in measured] == [
        dict(as_query(one.query).where) for one in synth.release_.transcript.choices
    ]


def test_whole_tables_are_the_default_and_each_is_measured_once() -> None:
    synth = Marginals(epsilon=1, delta=1e-9, workload=PAIRS).fit(CENSUS)
    chosen = [choice.clique for choice in synth.release_.transcript.choices]
    assert sorted(chosen) == sorted(PAIRS)
    assert [one.clique for one in synth.release_.measurements[-len(PAIRS) :]] == chosen
    assert Marginals(rho=1, published=True).unit == "query"


@pytest.mark.parametrize(
    ("alpha", "epsilon", "accounting"),
    [(0.67, 1.0, "zcdp"), (0.5, 1.0, "zcdp"), (0.28, 1.0, "gdp"), (0.4, 1.0, "zcdp"), (0.28, 0.1, "gdp")],
)
def test_the_plan_picks_the_accounting_that_leaves_less_noise(alpha: float, epsilon: float, accounting: str) -> None:
    given: dict[str, Any] = {"epsilon": epsilon, "delta": 1e-9, "rounds": 9, "alpha": alpha, "per": "query"}
    synth = Marginals(**given)
    assert synth.plan(CENSUS.domain).budget.accounting == accounting
    noise = {}
    for how in ("gdp", "zcdp"):
        # The epsilon of choices and the sigma of cells at the same ratio: as much noise as each accounting allows.
        rho, share = Budget(epsilon=epsilon, delta=1e-9, accounting=how).rho, synth.choosing
        dearer = math.pi / 2 if how == "gdp" else 1.0
        noise[how] = (dearer * share + 1 - share) / rho
    assert min(noise, key=lambda how: noise[how]) == accounting
    assert synth.fit(CENSUS).ledger_.budget.accounting == accounting
    assert synth.ledger_.epsilon() <= epsilon
    ways: list[tuple[Any, Any]] = [("gdp", "zcdp"), ("zcdp", "gdp")]
    for how, another in ways:
        asked = Marginals(**given, accounting=how)
        assert asked.budget.accounting == how
        other = Ledger(Budget(epsilon=5, delta=1e-9, accounting=another))
        with pytest.raises(chicle.PrivacyError, match="same accounting"):
            asked.fit(CENSUS, ledger=other)
        ledger = Ledger(Budget(epsilon=epsilon, delta=1e-9, accounting=how))
        assert Marginals(**given).fit(CENSUS, ledger=ledger).ledger_ is ledger
        assert ledger.spent == pytest.approx(ledger.budget.rho)


def test_answers_are_shares_of_the_model() -> None:
    workload = [PAIRS[0], PAIRS[3][::-1]]
    synth = Marginals(epsilon=1, delta=1e-9, workload=workload, rounds=1).fit(CENSUS)
    assert list(synth.answers_) == [PAIRS[0], PAIRS[3]]
    for clique, table in synth.answers_.items():
        (expected,) = synth.release_.model.expect([clique])
        np.testing.assert_allclose(table, expected / synth.release_.model.total)
        assert table.sum() == pytest.approx(1)
    with pytest.raises(chicle.NotFittedError):
        _ = Marginals(rho=1).answers_


def test_the_workload_of_nobody_leaves_large_cliques_out() -> None:
    domain = chicle.Domain({"a": 2, "b": 100_000, "c": 3, "d": 2, "e": 2_000_000})
    assert list(default_workload(domain)) == [
        ("a", "b", "c"), ("a", "b", "d"), ("a", "c", "d"), ("b", "c", "d"), ("e",),
    ]  # fmt: skip
    assert list(default_workload(chicle.Domain({"a": 2, "b": 3}))) == [("a", "b")]


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"per": "cell"}, "per must be one of"),
        ({"per": "table", "published": True}, "published=True measures single queries"),
        ({"published": "yes"}, "published must be True or False"),
        ({"rounds": 0}, "rounds must be"),
        ({"alpha": 0.0}, "alpha must lie between 0 and 1"),
        ({"alpha": 1.0}, "alpha must lie between 0 and 1"),
        ({"workload": [("nobody",)]}, "'nobody' is not an attribute"),
    ],
)
def test_wrong_parameters_are_named_before_anything_is_spent(given: dict[str, Any], rule: str) -> None:
    ledger = Ledger(Budget(rho=1))
    with pytest.raises(chicle.ChicleError, match=rule):
        Marginals(rho=1, **given).fit(CENSUS, ledger=ledger)
    with pytest.raises(chicle.ChicleError, match=rule):
        Marginals(rho=1, **given).plan(CENSUS.domain)
    assert not ledger.events


def test_a_workload_of_too_many_cells_is_refused() -> None:
    with pytest.raises(InfeasibleError, match="at most 134,217,728 can be answered"):
        Marginals(rho=1, workload=[("a", "b")]).plan({"a": 2**15, "b": 2**15})
    with pytest.raises(ParameterError):
        Marginals(rho=1, workload=[]).plan({"a": 2})
