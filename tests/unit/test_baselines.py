"""What is special to MWEM, PrivBayes and the Gaussian baseline; the contract of all mechanisms is tested elsewhere."""

import math
from typing import Any

import numpy as np
import pytest

import chicle
from chicle import Budget, Clique, Domain, Ledger, Records, Workload
from chicle.mechanisms.gaussian import _allocation
from chicle.mechanisms.privbayes import network
from chicle.models.pgm import jt_size
from chicle.privacy import GaussianEvent
from chicle.privacy.budget import budget_shares
from chicle.privacy.events import ExponentialEvent

RICH: dict[str, Any] = {"epsilon": 50.0, "delta": 1e-9, "allow_weak": True}


def distance(real: Records, made: Records, clique: tuple[str, ...]) -> float:
    mine, theirs = (chicle.count(table, [clique])[0] / max(len(table), 1) for table in (real, made))
    return float(np.abs(mine - theirs).sum() / 2)


@pytest.fixture(scope="module")
def triple() -> Records:
    """Five fair coins, the third of which says whether the first two differ: no pair tells anything."""
    rng = np.random.default_rng(0)
    coins = {name: rng.integers(2, size=20_000) for name in "abcde"}
    coins["c"] = coins["a"] ^ coins["b"]
    return Records(coins, dict.fromkeys("abcde", 2))


@pytest.fixture(scope="module")
def chain() -> Records:
    """a -> b -> c, each a noisy copy of the one before, and d alone."""
    rng = np.random.default_rng(1)
    columns = {"c": np.empty(0), "a": rng.integers(4, size=30_000)}
    for before, name in (("a", "b"), ("b", "c")):
        columns[name] = np.where(rng.random(30_000) < 0.7, columns[before], rng.integers(4, size=30_000))
    columns["d"] = rng.integers(3, size=30_000)
    return Records(columns, {"c": 4, "a": 4, "b": 4, "d": 3})


# --- MWEM ------------------------------------------------------------------------------------------------------------


def test_mwem_measures_cliques_of_the_workload_only() -> None:
    census = chicle.datasets.census(3_000, d=7)
    names = list(census.domain)
    workload = Workload({(names[1], names[0]): 1.0, tuple(names[2:5]): 3.0, (names[6],): 1.0, (names[5],): 0.0})
    synth = chicle.MWEM(**RICH, workload=workload, rounds=6).fit(census)
    size, *tables = synth.release_.measurements
    assert size.clique == ()
    assert len(tables) == 6
    allowed = {clique for clique, weight in workload.over(census.domain).items() if weight > 0}
    assert {table.clique for table in tables} <= allowed
    assert synth.release_.notes[0] == f"{names[5]!r} is in no measured marginal: its values come evenly"


def test_mwem_finds_a_triple_and_is_better_for_more_rounds(triple: Records) -> None:
    errors = []
    for rounds in (1, 4):
        synth = chicle.MWEM(**RICH, rounds=rounds).fit(triple)
        assert synth.release_.measurements[1].clique == ("a", "b", "c")
        errors.append(distance(triple, synth.sample(seed=0), ("a", "b", "c")))
    assert max(errors) < 0.02
    census = chicle.datasets.census(20_000, d=5)
    few, many = (
        np.mean(
            [
                distance(census, chicle.MWEM(**RICH, rounds=rounds).fit(census).sample(seed=0), clique)
                for clique in Workload.all_kway(census.domain, 2)
            ]
        )
        for rounds in (1, 6)
    )
    assert many < few / 2


def test_mwem_pays_for_rounds_alike() -> None:
    """A thousandth for the number of records; of each round the part alpha for its table."""
    ledger = Ledger(Budget(epsilon=1, delta=1e-9))
    census = chicle.datasets.census(1_000, d=5)
    chicle.MWEM(epsilon=1, delta=1e-9, rounds=3, alpha=0.6).fit(census, ledger=ledger)
    size, *rounds = ledger.events
    rho = ledger.budget.rho
    assert size.rho("gdp") == pytest.approx(rho / 1000)
    assert [type(event) for event in rounds] == [ExponentialEvent, GaussianEvent] * 3
    for choice, table in zip(rounds[::2], rounds[1::2], strict=True):
        assert choice.rho("gdp") == pytest.approx(0.4 * 0.999 * rho / 3)
        assert table.rho("gdp") == pytest.approx(0.6 * 0.999 * rho / 3)


def test_mwem_keeps_its_model_small() -> None:
    census = chicle.datasets.census(4_000, d=7)
    limit = 60_000
    synth = chicle.MWEM(**RICH, rounds=12, max_size=limit).fit(census)
    cliques = [table.clique for table in synth.release_.measurements]
    assert jt_size(cliques, census.domain) <= limit
    with pytest.raises(chicle.InfeasibleError, match="raise max_size"):
        chicle.MWEM(**RICH, max_size=1_500).plan(chicle.Schema(census.domain))


def test_mwem_of_nobody_takes_the_smallest_table() -> None:
    domain = {"a": 2, "b": 3, "c": 40}
    nobody = Records({name: np.empty(0, dtype=np.uint8) for name in domain}, domain)
    synth = chicle.MWEM(**RICH, workload=[("a", "c"), ("a", "b"), ("b", "c")], rounds=2).fit(nobody)
    assert {table.clique for table in synth.release_.measurements[1:]} == {("a", "b")}


# --- PrivBayes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parents", [1, 3])
def test_privbayes_recovers_a_chain(chain: Records, parents: int) -> None:
    synth = chicle.PrivBayes(**RICH, parents=parents).fit(chain)
    families = [table.clique for table in synth.release_.measurements[4:]]
    held = [set(family) for family in families]
    assert {"a", "b"} in held or {"a", "b", "c"} in held
    assert any({"b", "c"} <= family for family in held)
    if parents == 1:
        assert [family for family in families if "d" not in family] in (
            [("a", "b"), ("c", "b")],
            [("c", "b"), ("a", "b")],
        )
    made = synth.sample(30_000, seed=0)
    for pair in (("a", "b"), ("b", "c"), ("a", "c"), ("a", "d")):
        assert distance(chain, made, pair) < 0.03


def test_a_network_takes_parents_while_they_are_worth_their_noise() -> None:
    domain = Domain({"a": 2, "b": 2, "c": 2, "d": 2})
    told: dict[Clique, float] = {("a", "b"): 900.0, ("a", "c"): 500.0, ("b", "c"): 400.0, ("c", "d"): 5.0}
    assert network(told, domain, noise=1.0, parents=2) == [("a", "b"), ("a", "b", "c")]
    assert network(told, domain, noise=1.0, parents=1) == [("a", "b"), ("a", "c")]
    assert network(told, domain, noise=0.01, parents=2)[-1] == ("c", "d"), "with less noise"
    assert network({**told, ("b", "c"): 40.0}, domain, noise=10.0, parents=2) == [("a", "b"), ("a", "c")]
    assert network(told, domain, noise=1e4, parents=2) == []
    assert network({}, domain, noise=1.0, parents=2) == []


def test_a_network_may_have_parts() -> None:
    domain = Domain(dict.fromkeys("abcd", 2))
    told: dict[Clique, float] = {("a", "b"): 90.0, ("c", "d"): 80.0, ("a", "c"): -5.0}
    assert network(told, domain, noise=1.0, parents=2) == [("a", "b"), ("c", "d")]


def test_a_network_fits_memory() -> None:
    """Every attribute would like all others as parents; the model would have 40^9 cells."""
    names = "abcdefghi"
    domain = Domain(dict.fromkeys(names, 40))
    families = network({(a, b): 1e9 for i, a in enumerate(names) for b in names[i + 1 :]}, domain, noise=1.0, parents=8)
    assert len(families) == 8
    assert jt_size(families, domain) < 64 * 2**20
    assert max(map(len, families)) > 2


def test_privbayes_of_independent_attributes_is_independent() -> None:
    rng = np.random.default_rng(0)
    domain = {"a": 50, "b": 60, "c": 70}
    table = Records({name: rng.integers(size, size=500) for name, size in domain.items()}, domain)
    synth = chicle.PrivBayes(epsilon=0.05, delta=1e-9).fit(table)
    assert {len(measured.clique) for measured in synth.release_.measurements} == {1}
    assert "attributes are independent" in synth.release_.notes[0]


# --- Gaussian --------------------------------------------------------------------------------------------------------


def test_the_allocation_is_best() -> None:
    """No other split of the budget gives less weighted noise, and a numerical optimum is the same."""
    domain = Domain({"a": 2, "b": 10, "c": 45})
    weights = {("a",): 1.0, ("a", "b"): 7.0, ("b", "c"): 0.2, ("a", "c"): 1.0}
    loads = np.array([weight * domain.cells(clique) for clique, weight in weights.items()])
    shares = _allocation(weights, domain)
    assert shares.sum() == pytest.approx(1)

    def noise(parts: Any) -> Any:
        return (loads / np.sqrt(parts)).sum(axis=-1)

    rng = np.random.default_rng(0)
    assert noise(shares) <= noise(rng.dirichlet(np.ones(4), 10_000)).min()
    found = np.full(4, 0.25)
    for _ in range(2_000):  # descent along the gradient of the logarithm, on the simplex
        slope = loads / np.sqrt(found)
        found = found * np.exp(0.2 * np.log(slope / found) - 0.2 * np.log(slope / found).mean())
        found /= found.sum()
    np.testing.assert_allclose(shares, found, rtol=1e-6)


def test_equal_weights_share_by_cells() -> None:
    domain = Domain({"a": 2, "b": 10, "c": 45})
    cliques = [("a", "b"), ("a", "c"), ("b", "c")]
    np.testing.assert_allclose(
        _allocation(dict.fromkeys(cliques, 3.0), domain), budget_shares([domain.cells(clique) for clique in cliques])
    )


def test_answers_are_the_workload_with_noise() -> None:
    census = chicle.datasets.census(5_000, d=5)
    names = list(census.domain)
    workload = {(names[1], names[0]): 8.0, (names[0], names[2]): 1.0, (names[3],): 0.0}
    synth = chicle.Gaussian(epsilon=1, delta=1e-9, workload=workload).fit(census)
    assert list(synth.answers_) == [(names[0], names[1]), (names[0], names[2])]
    for table in synth.release_.measurements:
        (exact,) = chicle.count(census, [table.clique])
        off = (synth.answers_[table.clique] - exact) / table.sigma
        assert np.abs(off).max() < 7
        assert 0.4 < off.std() < 1.6
    sigmas = {table.clique: table.sigma for table in synth.release_.measurements}
    loads = [weight * census.domain.cells(clique) for clique, weight in list(workload.items())[:2]]
    assert math.log(sigmas[names[0], names[1]] / sigmas[names[0], names[2]]) == pytest.approx(
        math.log(loads[1] / loads[0]) / 3
    )
    with pytest.raises(TypeError):
        synth.answers_[(names[0],)] = np.zeros(2)  # type: ignore[index]
    with pytest.raises(ValueError, match="read-only"):
        synth.answers_[names[0], names[1]][0] = 0
    told = [note for note in synth.release_.notes if "in no clique of the workload" in note]
    assert [note.split("'")[1] for note in told] == names[3:]


def test_gaussian_has_no_answers_before_a_fit_and_no_room_for_everything() -> None:
    with pytest.raises(chicle.NotFittedError):
        _ = chicle.Gaussian(**RICH).answers_
    wide = chicle.Schema.from_cardinalities({"a": 50_000, "b": 50_000})
    with pytest.raises(chicle.InfeasibleError, match="above max_cells 20,000,000; give a workload"):
        chicle.Gaussian(**RICH).plan(wide)
    chicle.Gaussian(**RICH, workload=[("a",), ("b",)]).plan(wide)


def test_records_of_the_gaussian_baseline_fit_its_answers(chain: Records) -> None:
    made = chicle.Gaussian(**RICH).fit(chain).sample(seed=0)
    for pair in chicle.pairs(chain.domain):
        assert distance(chain, made, pair) < 0.02


@pytest.mark.parametrize("make", [chicle.MWEM, chicle.Gaussian])
def test_a_workload_that_can_be_read_once(make: Any) -> None:
    census = chicle.datasets.census(500, d=6)
    synth = make(**RICH, workload=iter([("AGE", "SEX")]))
    synth.plan(chicle.Schema(census.domain))
    assert set(synth.fit(census).release_.measurements[-1].clique) == {"AGE", "SEX"}
