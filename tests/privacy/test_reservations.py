"""A fit reserves its budget: fits on one ledger do not disturb each other, and a failed one gives back the rest."""

import os
import threading
from typing import Any

import pytest

import chicle
from chicle import Budget, BudgetExceeded, Ledger, PrivacyError, Schema
from chicle.privacy import GaussianEvent, calibrate
from tests.privacy.test_events import event

CENSUS = chicle.datasets.census(2_000, d=4)
ONE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-9}
RHO = Budget(epsilon=1, delta=1e-9).rho


def two(**more: Any) -> Ledger:
    """A ledger for two fits at epsilon 1."""
    return Ledger(Budget(mu=2 * RHO**0.5, **more))


def test_what_is_reserved_is_not_free() -> None:
    ledger = Ledger(Budget(rho=1.0))
    with ledger.reserve(Budget(rho=0.75), title="one") as held:
        assert ledger.reserved == pytest.approx(0.75)
        assert ledger.remaining == pytest.approx(0.25)
        with pytest.raises(BudgetExceeded, match=r"fits that run have reserved 0\.75"):
            ledger.reserve(Budget(rho=0.5), title="two").__enter__()
        with pytest.raises(BudgetExceeded, match="nothing was spent"):
            ledger.debit([event(1.2)])
        held.debit([event(1.0)])
        assert (ledger.spent, held.spent, held.remaining) == pytest.approx((0.5, 0.5, 0.25))
        with pytest.raises(BudgetExceeded):
            held.debit([event(1.0)])
        ledger.debit([event(2.0)])
        assert held.spent == pytest.approx(0.5), "what others spend does not count here"
    assert ledger.reserved == 0
    assert ledger.remaining == pytest.approx(1 - 0.5 - 0.125)
    with pytest.raises(PrivacyError, match="this fit is over"):
        held.debit([event(9.0)])


def test_all_of_a_budget_can_be_reserved_and_spent() -> None:
    for parts in (1, 3, 7, 1_000):
        ledger = Ledger(Budget(epsilon=1, delta=1e-9))
        whole = ledger.remaining
        for _ in range(parts):
            with ledger.reserve(Budget(mu=(2 * whole / parts) ** 0.5), title="part") as held:
                held.debit([event(calibrate(whole / parts / 2))] * 2)
        assert whole * (1 - 1e-10) <= ledger.spent <= ledger.budget.rho


def test_a_fit_prices_its_releases_as_the_ledger_does() -> None:
    """A choice costs more in Gaussian DP than in zCDP, so such a fit would spend more of this ledger than it says."""
    ledger = Ledger(Budget(epsilon=1, delta=1e-9))
    with pytest.raises(PrivacyError, match="accounts in 'gdp', the mechanism in 'zcdp'; give both the same"):
        ledger.reserve(Budget(rho=0.01), title="a fit").__enter__()
    assert ledger.reserved == 0


def test_two_fits_one_after_the_other() -> None:
    ledger = two()
    for count in (1, 2):
        release = chicle.Prism(mu=(2 * RHO) ** 0.5).fit(CENSUS, ledger=ledger).release_
        assert ledger.spent == pytest.approx(count * RHO, rel=1e-9)
    assert any("earlier releases" in note for note in release.notes)
    with pytest.raises(BudgetExceeded, match="nothing was spent"):
        chicle.Prism(mu=0.01).fit(CENSUS, ledger=ledger)


def test_two_fits_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both begin, then both spend; each gets all that it was promised."""
    ledger = two()
    meet = threading.Barrier(2, timeout=60)
    run = chicle.Prism.run

    def together(self: chicle.Prism, desk: chicle.Desk) -> Any:
        meet.wait()
        return run(self, desk)

    monkeypatch.setattr(chicle.Prism, "run", together)
    fits = [chicle.Prism(mu=(2 * RHO) ** 0.5) for _ in range(2)]
    threads = [threading.Thread(target=fit.fit, args=(CENSUS,), kwargs={"ledger": ledger}) for fit in fits]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(len(fit.sample(50)) == 50 for fit in fits)
    assert 2 * RHO * (1 - 1e-9) <= ledger.spent <= 2 * RHO * (1 + 1e-9)
    assert ledger.reserved == 0


def test_a_fit_that_fails_gives_back_what_it_did_not_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(Budget(**ONE))

    def fails(_: chicle.Prism, desk: chicle.Desk) -> Any:
        desk.measure([("AGE",)], rho=RHO / 4)
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(chicle.Prism, "run", fails)
        with pytest.raises(MemoryError):
            chicle.Prism(**ONE).fit(CENSUS, ledger=ledger)
    assert ledger.spent == pytest.approx(RHO / 4)
    assert ledger.remaining == pytest.approx(RHO * 3 / 4)
    chicle.Prism(rho=None, mu=(1.4 * RHO) ** 0.5).fit(CENSUS, ledger=ledger)
    assert ledger.spent == pytest.approx(RHO * (1 / 4 + 0.7))


SCHEMA = Schema({"job": {"type": "open"}, "left": {"type": "boolean"}})
TABLE = {"job": [f"job {i % 3}" for i in range(3_000)], "left": [True, False] * 1_500}


@pytest.mark.parametrize("opened", [True, False], ids=["in a file", "in memory"])
def test_every_fit_on_one_ledger_can_discover(opened: bool, tmp_path: Any) -> None:
    """Without planning `discovery=`: each fit takes half of the delta that is left, the last one all of it."""
    budget = Budget(epsilon=3, delta=1e-9)
    ledger = Ledger.open(tmp_path / "jobs.ledger", budget) if opened else Ledger(budget)
    taken = []
    for _ in range(4):
        before = ledger.discovered
        synth = chicle.Independent(**ONE).fit(TABLE, SCHEMA, ledger=ledger)
        assert {"job 0", "job 1", "job 2"} <= set(synth.release_.schema.columns["job"].labels or ())
        taken.append(ledger.discovered - before)
    assert all(delta > 0 for delta in taken)
    assert ledger.budget.discovery == pytest.approx(1e-10)
    assert ledger.discovered <= 1e-10
    assert ledger.epsilon() <= 3


def test_delta_is_set_aside_before_the_first_release_only() -> None:
    """PRIVACY.md: which part of delta is for discovery must not depend on what was released."""
    ledger = Ledger(Budget(epsilon=3, delta=1e-9))
    ledger.debit([GaussianEvent(purpose="total", clique=(), l2_sensitivity=1, sigma=99.0, values=1)])
    with pytest.raises(BudgetExceeded, match="0 aside"):
        chicle.Independent(**ONE).fit(TABLE, SCHEMA, ledger=ledger)
    assert ledger.reserved == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("opened", [True, False], ids=["in a file", "in memory"])
def test_a_forked_process_cannot_spend(opened: bool, tmp_path: Any) -> None:
    budget = Budget(rho=1.0)
    ledger = Ledger.open(tmp_path / "a.ledger", budget) if opened else Ledger(budget)
    ledger.debit([event(2.0)])
    with ledger.reserve(Budget(rho=0.5), title="a fit") as held:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for spend in (ledger.debit, held.debit, ledger.check):
                    with pytest.raises(PrivacyError, match="forked process"):
                        spend([event(2.0)])
                assert ledger.spent == pytest.approx(0.125), "it can be read"
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        held.debit([event(2.0)])
    assert ledger.spent == pytest.approx(0.25)
    if opened:
        assert len(Ledger.open(tmp_path / "a.ledger").events) == 2
