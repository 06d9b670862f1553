"""Pure releases beside Gaussian ones: epsilons add up, against the exact curve and dp-accounting."""

import itertools
import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant

from chicle import Budget, BudgetExceeded, Desk, Domain, Ledger, PrivacyError, Records
from chicle.privacy import PureEvent, TestNoise, accounting
from chicle.privacy import primitives as door

DELTAS = (1e-9, 1e-6, 1e-3)


def exact_delta(epsilon: float, pure: float, mu: float) -> float:
    """The delta of discrete Laplace noise of an integer that moves by 1, with Gaussian DP beside it.

    Its privacy loss is `pure` or `-pure`: the first where the noise is at most 0, which has probability 1 / (1 + q).
    """
    q = math.exp(-pure)
    losses = ((pure, 1 / (1 + q)), (-pure, q / (1 + q)))
    return math.fsum(p * accounting.gdp_delta(epsilon=max(epsilon - loss, 0.0), mu=mu) for loss, p in losses)


@pytest.mark.parametrize(("pure", "mu"), [(0.05, 0.05), (0.5, 0.18), (1.0, 0.5), (0.01, 1.0)])
def test_the_sum_of_both_holds_and_is_nearly_reached(pure: float, mu: float) -> None:
    for delta in DELTAS:
        rest = accounting.gdp_epsilon(mu=mu, delta=delta)
        assert exact_delta(pure + rest, pure, mu) <= delta * (1 + 1e-9)
        # The loss is +pure with probability above one half: a smaller sum would break the promise, but for log 2.
        assert exact_delta(pure + accounting.gdp_epsilon(mu=mu, delta=3 * delta), pure, mu) > delta


@pytest.mark.parametrize(("pure", "sigma"), [(0.2, 6.0), (1.0, 3.0)])
def test_dp_accounting_says_the_same(pure: float, sigma: float) -> None:
    accountant = PLDAccountant(value_discretization_interval=1e-3)
    accountant.compose(dp_accounting.LaplaceDpEvent(1 / pure))
    accountant.compose(dp_accounting.GaussianDpEvent(sigma))
    for delta in DELTAS:
        ours = pure + accounting.gdp_epsilon(mu=1 / sigma, delta=delta)
        theirs = accountant.get_epsilon(delta)
        assert theirs <= ours + 2e-3, "theirs rounds up, by two steps of its grid"
        assert theirs >= ours - 0.2 * ours


@pytest.mark.parametrize("how", ["gdp", "zcdp"])
def test_a_budget_sets_epsilon_aside(how: str) -> None:
    budget = Budget(epsilon=1, delta=1e-9, pure=0.25, accounting=how)  # type: ignore[arg-type]
    assert budget.rho <= Budget(epsilon=0.75, delta=1e-9, accounting=how).rho  # type: ignore[arg-type]
    assert budget.rho == pytest.approx(Budget(epsilon=0.75, delta=1e-9, accounting=how).rho, rel=1e-9)  # type: ignore[arg-type]
    assert budget.epsilon_at(1e-9) * (1 + 1e-9) >= 1
    assert budget.epsilon_at(1e-9) == pytest.approx(1)
    assert Budget(**budget.promise()) == budget
    for wrong in ({"epsilon": 1, "delta": 1e-9, "pure": 1.1}, {"rho": 1.0, "pure": 0.1}, {"mu": 1.0, "pure": 0.1}):
        with pytest.raises(PrivacyError, match="pure"):
            Budget(**wrong)  # type: ignore[arg-type]
    with pytest.raises(PrivacyError, match="pure"):
        Budget(epsilon=1, delta=1e-9, pure=-0.1)


def test_the_ledger_adds_pure_epsilon_up_apart() -> None:
    ledger = Ledger(Budget(epsilon=1, delta=1e-9, pure=0.3))
    event = PureEvent(purpose="sizes", clique=("a",), l1_sensitivity=2, scale=10.0, values=3)
    ledger.debit([event])
    assert ledger.spent == 0
    assert 0.2 <= ledger.pure <= 0.2 * (1 + 1e-12)
    assert ledger.epsilon() == pytest.approx(0.2)
    assert ledger.remaining == pytest.approx(ledger.budget.rho)
    with pytest.raises(BudgetExceeded, match="nothing was spent"):
        ledger.debit([event])
    with pytest.raises(BudgetExceeded, match="pure=") as refused:
        Ledger(Budget(epsilon=1, delta=1e-9)).debit([event])
    assert "\n" not in str(refused.value)
    again = Ledger.from_json(ledger.to_json())
    assert again.events == ledger.events
    assert again.pure == ledger.pure
    assert "epsilon 0.2 of 0.3" in ledger.summary()
    assert any("pure" in head for head, _ in ledger.terms(1).facts)


def test_words_allow_for_the_pure_part() -> None:
    from chicle.privacy.strength import in_words

    with_part, without = (
        float(in_words(budget).rsplit(" ", 1)[1])
        for budget in (Budget(epsilon=1, delta=1e-9, pure=0.3), Budget(epsilon=0.7, delta=1e-9))
    )
    assert with_part == pytest.approx(without, rel=0.2), "the loss beyond epsilon is the Gaussian one beyond the rest"


@pytest.mark.parametrize("k", [1, 3])
def test_a_person_moves_sizes_by_k_in_all(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every person of k rows, with the sensitivity that the event states; the noise is exact discrete Laplace."""
    domain = Domain({"p": 3, "a": 2})
    seen: list[tuple[np.ndarray, PureEvent]] = []

    def release(values: np.ndarray, event: PureEvent, ledger: Ledger) -> np.ndarray:
        seen.append((values, event))
        return door.release_pure(values, event, ledger)

    monkeypatch.setattr("chicle.measurements.desk.release_pure", release)
    base = np.random.default_rng(k).integers([3, 2], size=(9, 2))
    cells = list(itertools.product(range(3), range(2)))
    most = 0.0
    for person in [(), *itertools.combinations_with_replacement(cells, k)]:
        rows = np.concatenate([base, np.array(person, dtype=np.int64).reshape(-1, 2)])
        records = Records(dict(zip(domain, rows.T, strict=True)), domain, max_records_per_person=k)
        ledger = Ledger(Budget(epsilon=1, delta=1e-9, pure=0.5), noise=TestNoise(0))
        measured = Desk(records, ledger).measure_pure(("p",), epsilon=0.4)
        assert measured.sigma == pytest.approx(math.sqrt(2) * k / 0.4, rel=0.02)
        (first, event), (here, _) = seen[0], seen[-1]
        assert event.l1_sensitivity == k
        assert 0.4 * (1 - 1e-9) <= event.epsilon <= 0.4
        moved = float(np.abs(here - first).sum())
        assert moved <= k
        most = max(most, moved)
    assert most == k
