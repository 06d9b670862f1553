"""DPSyn pays in epsilon for Laplace noise and in rho for Gaussian: neighbours, replays, and the sum of both."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

import chicle
from chicle import Budget, Desk, Ledger, PublicData, Query, Records, Schema
from chicle.errors import BudgetExceeded, ChicleError, ParameterError, PrivacyError
from chicle.measurements.merges import Change, Merge
from chicle.privacy import GaussianEvent, PureEvent
from chicle.privacy import primitives as door
from chicle.privacy.accounting import gdp_delta, gdp_epsilon
from tests.privacy.test_replay import check_same, run, table_of

PROMISE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}


def gaussian(sigma: float) -> GaussianEvent:
    return GaussianEvent(purpose="x", l2_sensitivity=1, sigma=sigma, values=1)


def pure(epsilon: float) -> PureEvent:
    return PureEvent(purpose="x", l1_sensitivity=1, scale=1 / epsilon * (1 + 1e-12), values=1)


# --- Sensitivity ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2])
def test_a_person_moves_laplace_counts_by_k_in_l1(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every neighbour of every tiny table: plain, in buckets, of a group, and merged."""
    domain = {"a": 2, "b": 3}
    merge = Merge(chicle.Domain(domain), {"b": Change(np.array([0, 1, 1], np.uint8), np.array([1.0, 0.5, 0.5]))})
    queries = [
        Query(("a", "b")),
        Query(("a", "b"), {"b": np.array([0, 1, 1])}),
        Query(("b",), where={"a": 1}),
        Query(()),
    ]
    exact: list[Any] = []

    def note(values: Any, event: PureEvent, ledger: Ledger) -> Any:
        exact.append(values)
        assert event.l1_sensitivity == k
        return door.release_pure(values, event, ledger)

    monkeypatch.setattr("chicle.measurements.desk.release_pure", note)

    def counts(rows: tuple[tuple[int, int], ...]) -> list[Any]:
        records = Records(
            {"a": [row[0] for row in rows], "b": [row[1] for row in rows]}, domain, max_records_per_person=k
        )
        exact.clear()
        desk = Desk(records, Ledger(Budget(**PROMISE, pure=0.9)))
        for query in queries:
            desk.measure_pure(query, epsilon=0.1)
        desk.merged(merge).measure_pure(("b",), epsilon=0.1)
        assert desk.transcript.measurements[-1].buckets["b"].tolist() == [0, 1, 1]
        return [np.array(values, dtype=float) for values in exact]

    cells = list(itertools.product(range(2), range(3)))
    farthest = 0.0
    for size in range(2):
        for rows in itertools.combinations_with_replacement(cells, size):
            before = counts(rows)
            for person in itertools.combinations_with_replacement(cells, k):
                moved = [np.abs(x - y).sum() for x, y in zip(before, counts((*rows, *person)), strict=True)]
                assert max(moved) <= k
                farthest = max(farthest, *moved)
    assert farthest == k


def test_laplace_needs_a_whole_table() -> None:
    desk = Desk(chicle.datasets.census(100, d=3), Ledger(Budget(**PROMISE, pure=0.5)))
    functional = chicle.query.Functional(np.array([[1, -1]]))
    with pytest.raises(ChicleError, match="functional"):
        desk.measure_pure(Query(("SEX",), functional=functional), epsilon=0.1)
    assert not desk.transcript.entries


# --- The ledger -------------------------------------------------------------------------------------------------------


def test_epsilon_is_set_aside_until_something_costs_rho() -> None:
    ledger = Ledger(Budget(**PROMISE))
    ledger.set_aside(0.25)
    ledger.debit([pure(0.25)])
    with pytest.raises(BudgetExceeded, match="pure releases"):
        ledger.debit([pure(0.01)])
    with pytest.raises(PrivacyError, match="already"):
        ledger.set_aside(0.2)
    ledger.set_aside(0.5)
    ledger.debit([pure(0.25)])
    assert ledger.spent == 0
    assert ledger.budget.rho == Budget(epsilon=math.nextafter(0.5, 0), delta=1e-6).rho
    ledger.debit([gaussian((0.5 / ledger.budget.rho) ** 0.5 * (1 + 1e-9))])
    assert ledger.epsilon() <= 1
    assert ledger.epsilon() == pytest.approx(1, rel=1e-6)
    with pytest.raises(PrivacyError, match="in rho already"):
        ledger.set_aside(0.6)
    again = Ledger.from_json(ledger.to_json())
    assert again.to_dict() == ledger.to_dict()
    assert again.pure == ledger.pure
    assert sum(entry.share for entry in ledger.entries) == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("wrong", [1.5, 0.0, -1.0, math.nan, "half"])
def test_parts_that_are_none(wrong: Any) -> None:
    ledger = Ledger(Budget(**PROMISE))
    with pytest.raises(PrivacyError):
        ledger.set_aside(wrong)
    assert ledger.budget.pure is None
    for other in (Budget(rho=0.1), Budget(mu=0.1)):
        with pytest.raises(PrivacyError, match="part of epsilon"):
            Ledger(other).set_aside(0.05)


def test_a_fit_of_laplace_noise_alone_is_pure() -> None:
    census = chicle.datasets.census(2_000, d=4)
    synth = chicle.DPSyn(epsilon=1, delta=1e-9, noise="laplace", rare=0).fit(census)
    ledger = synth.ledger_
    assert {event.kind for event in ledger.events} == {"pure"}
    assert ledger.budget.rho == 0
    assert ledger.spent == 0
    assert 1 - 1e-9 < ledger.pure <= 1
    assert "all of it pure: delta is 0" in ledger.summary()
    assert "except with probability" not in ledger.summary()
    terms = ledger.terms(1)
    assert "pure" in dict(terms.facts)["Promised"]
    assert terms.condition == ""
    for delta in (1e-300, 0.5):
        assert ledger.epsilon(delta) <= 1
    with pytest.raises(BudgetExceeded):
        ledger.debit([gaussian(1e9)])


def test_two_pure_fits_on_one_ledger() -> None:
    census, ledger = chicle.datasets.census(1_000, d=3), Ledger(Budget(epsilon=2, delta=1e-9))
    synth = chicle.DPSyn(epsilon=1, delta=1e-9, noise="laplace", rare=0)
    synth.fit(census, ledger=ledger)
    once = ledger.pure
    synth.fit(census, ledger=ledger)
    assert ledger.pure == pytest.approx(2 * once)
    with pytest.raises(BudgetExceeded):
        synth.fit(census, ledger=ledger)


def test_laplace_that_cannot_be_paid_in_epsilon_costs_nothing() -> None:
    census = chicle.datasets.census(1_000, d=3)
    with pytest.raises(ParameterError, match="in epsilon and delta"):
        chicle.DPSyn(rho=0.1, noise="laplace").fit(census)
    ledger = Ledger(Budget(epsilon=5, delta=1e-9))
    ledger.debit([gaussian(1e6)])
    before = len(ledger.events)
    with pytest.raises(ParameterError, match="a ledger of its own"):
        chicle.DPSyn(epsilon=1, delta=1e-9, noise="laplace").fit(census, ledger=ledger)
    assert len(ledger.events) == before
    chicle.DPSyn(epsilon=1, delta=1e-9, rare=0).fit(census, ledger=ledger)
    assert {event.kind for event in ledger.events} == {"gaussian"}, "its noise is Gaussian then"


def test_persons_of_several_rows_leave_laplace_noise_pure() -> None:
    """How many rows persons have would cost rho first; it is not bought."""
    rng = np.random.default_rng(0)
    table = {"home": np.repeat(np.arange(400), 3), "a": rng.integers(0, 3, 1_200), "b": rng.integers(0, 2, 1_200)}
    columns = {name: {"type": "coded", "values": size} for name, size in (("a", 3), ("b", 2))}
    schema = Schema.from_dict({"person": "home", "max_records": 2, "columns": columns})
    synth = chicle.DPSyn(epsilon=1, delta=1e-6, noise="laplace", rare=0).fit(table, schema)
    assert {event.kind for event in synth.ledger_.events} == {"pure"}
    assert {event.sensitivity for event in synth.ledger_.events} == {2}
    assert len(synth.sample(50, seed=0)["a"]) == 50
    assert "rows a person" not in str(synth.plan(schema))


# --- The sum of epsilons, against quadrature --------------------------------------------------------------------------


def delta_of(losses: list[tuple[float, float, float]], epsilon: float) -> float:
    """Return delta at epsilon of a pure step, then a Gaussian one: (loss, probability, mu of the Gaussian step) each.

    The loss of a Gaussian step of mu is normal with mean mu^2 / 2 and variance mu^2. delta is the mean of
    (1 - exp(epsilon - loss))+.
    """

    def part(loss: float, mu: float) -> float:
        if not mu:
            return max(0.0, -math.expm1(epsilon - loss))
        norm = stats.norm(loc=loss + mu * mu / 2, scale=mu)
        top = max(epsilon, norm.mean()) + 40 * mu
        value, _ = integrate.quad(
            lambda x: -math.expm1(epsilon - x) * norm.pdf(x), epsilon, top, epsabs=1e-16, limit=500
        )
        return float(value)

    return sum(probability * part(loss, mu) for loss, probability, mu in losses)


@pytest.mark.parametrize("first", [0.05, 0.4])
@pytest.mark.parametrize("splits", [(0.0, 0.0), (0.3, 0.0), (0.0, 0.3), (0.1, 0.5)])
def test_epsilons_add_also_where_the_split_follows_from_laplace(first: float, splits: tuple[float, float]) -> None:
    """Randomised response is the worst pure step: its loss is epsilon or minus that. Each answer goes on its own way.

    Either way spends more pure epsilon (again as randomised response), and a Gaussian step with the mu that is left.
    """
    total, delta = 1.0, 1e-4
    losses = []
    for sign, second in zip((1, -1), splits, strict=True):
        chance = 1 / (1 + math.exp(-sign * first))
        mu = math.sqrt(2 * Budget(epsilon=total, delta=delta, pure=first + second).rho)
        assert gdp_delta(epsilon=total - first - second, mu=mu) <= delta * (1 + 1e-9)
        for other in (1, -1):
            more = 1 / (1 + math.exp(-other * second)) if second else 0.5
            losses.append((sign * first + other * second, chance * more, mu))
    assert sum(chance for _, chance, _ in losses) == pytest.approx(1)
    assert 0 < delta_of(losses, total) <= delta


def test_a_split_that_follows_from_gaussian_noise_would_break_the_promise() -> None:
    """Why `set_aside` is refused then: choose pure epsilon where the loss so far is large, Gaussian noise elsewhere."""
    total, delta, mu = 1.0, 1e-2, 0.4
    rest = total - gdp_epsilon(mu=mu, delta=delta)
    more = math.sqrt(2 * Budget(epsilon=total, delta=delta).rho - mu * mu)
    losses = np.linspace(mu * mu / 2 - 9 * mu, mu * mu / 2 + 9 * mu, 20_001)
    left = total - losses
    # delta at what is left, of a Gaussian step and of randomised response.
    by_gauss = stats.norm.cdf(-left / more + more / 2) - np.exp(left) * stats.norm.cdf(-left / more - more / 2)
    chance = 1 / (1 + math.exp(-rest))
    by_pure = chance * np.maximum(0, 1 - np.exp(left - rest)) + (1 - chance) * np.maximum(0, 1 - np.exp(left + rest))
    density = stats.norm.pdf(losses, loc=mu * mu / 2, scale=mu)
    one, other, both = (
        float(np.trapezoid(density * x, losses)) for x in (by_gauss, by_pure, np.maximum(by_gauss, by_pure))
    )
    assert max(one, other) <= delta * (1 + 1e-6)
    assert both > 1.001 * delta


# --- Replays beside public data ---------------------------------------------------------------------------------------

DOMAIN = {"area": 4, "a": 2, "b": 3, "c": 6, "d": 2, "e": 2}


@pytest.mark.parametrize("regime", ["auto", "public", "one-way", "two-way"])
@pytest.mark.parametrize(("k", "budget"), [(1, {"epsilon": 1.0, "delta": 1e-9}), (3, {"rho": 0.05})], ids=str)
def test_every_regime_is_replayed(regime: Any, k: int, budget: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    schema = Schema.from_cardinalities(DOMAIN, max_records_per_person=k)
    private, open_rows = table_of(1, 3_000, DOMAIN), table_of(2, 500, DOMAIN)
    public = PublicData(
        Records(dict(zip(DOMAIN, open_rows.T, strict=True)), DOMAIN),
        role="trusted",
        columns=[name for name in DOMAIN if name != "area"],
    )

    def make(**given: Any) -> chicle.DPSyn:
        return chicle.DPSyn(
            partition="area", regime=regime, joint=[["d", "e"]], passes=2, floor=20, round_to=10, **given
        )

    fitted = run(make, private, schema, budget, monkeypatch, public=public)
    everybody, made, release = fitted
    kinds = {event.kind for event in everybody.events}
    if "rho" in budget:
        assert kinds == {"gaussian"}
    else:
        assert kinds == ({"pure"} if regime in ("public", "one-way", "auto") else {"pure", "gaussian"})
    assert any(event.clique == ("area",) for event in everybody.events)
    assert release.ledger.protected is False
    newcomer = np.repeat([[size - 1 for size in DOMAIN.values()]], k, axis=0)
    for neighbour in (private[k:], np.concatenate([newcomer, private])):
        replayed = run(make, neighbour, schema, budget, monkeypatch, replayed=everybody, public=public)
        check_same(fitted, replayed)
        for event, mine, theirs in zip(everybody.events, everybody.exact, replayed[0].exact, strict=True):
            assert np.abs(mine - theirs).sum() == k
            assert event.sensitivity == k
    assert len(made) == 200
