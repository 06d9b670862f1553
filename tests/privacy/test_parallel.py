"""Parallel composition: what some of a person's rows move, and that the groups of one person cost no more than one."""

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chicle import Budget, BudgetExceeded, Desk, Domain, DomainError, Ledger, PrivacyError, Query, Records
from chicle.counting.countable import UNITS, Independence
from chicle.privacy import ParallelEvent, TestNoise, accounting
from chicle.privacy.parallel import parallel_ledgers
from chicle.query import Functional

DOMAIN = Domain({"p": 3, "a": 2, "b": 2})
CELLS = list(itertools.product(*(range(size) for size in DOMAIN.values())))


def records(rows: npt.NDArray[np.int64], k: int) -> Records:
    return Records(dict(zip(DOMAIN, rows.T, strict=True)), DOMAIN, max_records_per_person=k)


def answers(group: Records) -> dict[str, npt.NDArray[Any]]:
    """Everything that a desk computes of rows before it adds noise."""
    expect = Independence({"a": np.array([0.3, 0.7]), "b": np.array([0.6, 0.4])}, 5.0)
    weights = Functional(np.array([[[1, 0], [0, 2]], [[3, 0], [0, -4]]]))
    one, other, held, sums = group.count(
        [("a", "b"), (), Query(("a",), where={"b": 1}), Query(("a", "b"), functional=weights)]
    )
    return {
        "table": one,
        "number": other,
        "group": held,
        "functional": sums,
        "distances": group.distances([("a", "b"), ("a",)], expect),
        "dependence": group.dependence([("a", "b")]),
        "largest": np.abs(one).max(),
    }


@pytest.mark.parametrize("k", [1, 2, 3])
def test_some_rows_move_their_part_of_what_all_move(k: int) -> None:
    """Every person of up to k rows, whichever groups they are in, leaves or joins several tables."""
    rng = np.random.default_rng(k)
    column = math.hypot(2, 4)
    # What one row moves at most, in the norm in which its event states the sensitivity.
    per_row = {
        "table": 1.0,
        "number": 1.0,
        "group": 1.0,
        "functional": column,
        "distances": UNITS,
        "dependence": 4 * UNITS,
    }
    attained = 0.0
    for size in (0, 1, 7):
        base = rng.integers(list(DOMAIN.values()), size=(size, 3))
        before = [answers(part) for part in records(base, k).parts(("p",))]
        for number in range(1, k + 1):
            for person in itertools.combinations_with_replacement(CELLS, number):
                after = [answers(part) for part in records(np.concatenate([base, np.array(person)]), k).parts(("p",))]
                mine = np.bincount([row[0] for row in person], minlength=3)
                for name, most in per_row.items():
                    parts = 0.0
                    for x, old, new in zip(mine, before, after, strict=True):
                        moved = np.abs(np.asarray(new[name], dtype=np.float64) - old[name])
                        far = float(moved.max() if name in ("distances", "dependence") else np.linalg.norm(moved))
                        assert far <= x * most * (1 + 1e-12), name
                        parts += (far / (k * most)) ** 2
                    assert parts <= 1 + 1e-9, "all groups together cost what one costs"
                    attained = max(attained, float(parts))
    assert attained == pytest.approx(1), "or the bound is loose"


@given(st.floats(1e-4, 60), st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_choices_and_pure_releases_of_groups_cost_no_more_either(epsilon: float, rows: list[int]) -> None:
    """Their mu is no multiple of epsilon, but mu(x)^2 / x rises, so parts of a person cost less than the whole."""
    k = sum(rows)
    for mu in (accounting.choice_mu, accounting.pure_mu):
        parts = math.fsum(mu(epsilon=epsilon * x / k) ** 2 for x in rows)
        assert parts <= mu(epsilon=epsilon) ** 2 * (1 + 1e-11)


def test_groups_pay_once_and_cannot_spend_more() -> None:
    ledger = Ledger(Budget(epsilon=1, delta=1e-9))
    groups = parallel_ledgers(ledger, rho=ledger.remaining / 2, groups=4, clique=("p",), purpose="groups")
    (event,) = ledger.events
    assert isinstance(event, ParallelEvent)
    assert event.values == 4
    assert ledger.spent == pytest.approx(ledger.budget.rho / 2)
    for group in groups:
        assert group.budget.accounting == "gdp"
        assert group.remaining <= event.most
        with pytest.raises(BudgetExceeded):
            group.check([ParallelEvent(purpose="", values=1, most=event.most * 1.0001)])
    assert Ledger.from_json(ledger.to_json()).events == ledger.events
    with pytest.raises(BudgetExceeded, match="nothing was spent"):
        parallel_ledgers(ledger, rho=ledger.remaining * 1.01, groups=2, clique=("p",), purpose="groups")
    assert len(ledger.events) == 1
    zcdp = parallel_ledgers(Ledger(Budget(rho=2.0)), rho=1.0, groups=1, clique=("p",), purpose="groups")[0]
    assert zcdp.budget.accounting == "zcdp"
    assert (
        parallel_ledgers(Ledger(Budget(rho=2.0), noise=TestNoise(1)), rho=1.0, groups=1, clique=("p",), purpose="")[
            0
        ].protected
        is False
    )
    with pytest.raises(PrivacyError, match="paid for by"):
        parallel_ledgers("ledger", rho=1.0, groups=1, clique=("p",), purpose="")  # type: ignore[arg-type]


@pytest.mark.parametrize("rho", [1e-9, 0.0031, 0.1, 7.3, 5e4])
@pytest.mark.parametrize("how", ["gdp", "zcdp"])
def test_a_group_never_gets_more_than_was_paid(rho: float, how: str) -> None:
    whole = Budget(mu=math.sqrt(4 * rho)) if how == "gdp" else Budget(rho=2 * rho)
    ledger = Ledger(whole)
    (group,) = parallel_ledgers(ledger, rho=rho, groups=1, clique=("p",), purpose="groups")
    assert rho * (1 - 1e-9) <= group.budget.rho <= ledger.events[0].rho(group.budget.accounting)


def test_desks_of_groups_end_with_their_budget_and_their_fit() -> None:
    rng = np.random.default_rng(0)
    rows = records(rng.integers(list(DOMAIN.values()), size=(50, 3)), 2)
    desk = Desk(rows, ledger := Ledger(Budget(rho=1.0)))
    with pytest.raises(BudgetExceeded):
        desk.groups(("p",), rho=1.5)
    assert not ledger.events
    groups = desk.groups(("p",), rho=desk.left)
    assert [dict(group.domain) for group in groups] == [{"a": 2, "b": 2}] * 3
    assert all(group.k == 2 for group in groups)
    groups[0].measure([("a",)], rho=groups[0].left)
    with pytest.raises(BudgetExceeded):
        groups[0].measure([("a",)], rho=0.5)
    groups[1].measure([("a",)], rho=0.5)
    groups[1].close()
    with pytest.raises(PrivacyError, match="closed"):
        groups[1].measure([("a",)], rho=0.1)
    assert len(ledger.events) == 1, "groups pay from what was paid"
    desk.close()
    with pytest.raises(PrivacyError, match="closed"):
        desk.groups(("p",), rho=0.1)
    with pytest.raises(DomainError, match="q"):
        Desk(rows, Ledger(Budget(rho=1.0))).groups(("q",), rho=0.1)
