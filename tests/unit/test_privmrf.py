"""PrivMRF: the graph keeps its limit, candidates lie inside it and are useful, and what depends is found."""

from itertools import combinations

import numpy as np
import pytest

import chicle
from chicle import Domain, Measurement, Records
from chicle.measurements.scores import Scores
from chicle.mechanisms.privmrf import PrivMRF, graph
from chicle.models.pgm import jt_size

DOMAIN = Domain({"a": 3, "b": 4, "c": 5, "d": 6})


def scores(values: dict[tuple[str, str], float], sigma: float = 1.0) -> Scores:
    return Scores(tuple(values), np.array(list(values.values())), sigma, protected=True)


def ones(sigma: float) -> list[Measurement]:
    return [Measurement((name,), np.full(size, 100), sigma) for name, size in DOMAIN.items()]


def test_the_graph_takes_strong_pairs_that_fit() -> None:
    strong = {("a", "b"): 500.0, ("b", "c"): 400.0, ("a", "c"): 300.0, ("c", "d"): 200.0, ("a", "d"): 1.0}
    edges = graph(scores(strong), ones(0.1), DOMAIN, 10**6)
    assert edges == [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")]
    for limit in (jt_size([("a", "b"), ("b", "c")], DOMAIN), jt_size([("a", "b"), ("c", "d")], DOMAIN)):
        kept = graph(scores(strong), ones(0.1), DOMAIN, limit)
        assert kept
        assert kept[0] == ("a", "b")
        assert jt_size(kept, DOMAIN) <= limit
    assert graph(scores(strong), ones(1_000.0), DOMAIN, 10**6) == [], "noise in the 1-ways explains these scores"


def test_candidates_are_cliques_of_the_graph_that_are_useful() -> None:
    edges = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")]
    found = PrivMRF(rho=1.0)._candidates(edges, DOMAIN, 60)
    assert found == [*edges, ("a", "b", "c")]
    assert PrivMRF(rho=1.0)._candidates(edges, DOMAIN, 20) == [("a", "b"), ("b", "c"), ("a", "c")]
    assert PrivMRF(rho=1.0, order=2)._candidates(edges, DOMAIN, 60) == edges
    complete = list(combinations(DOMAIN, 2))
    sizes = [len(clique) for clique in PrivMRF(rho=1.0)._candidates(complete, DOMAIN, 10**6)]
    assert [sizes.count(size) for size in (2, 3, 4)] == [6, 4, 1]


def test_a_copy_is_found() -> None:
    """Rounds measure an attribute with its copy: at this budget noise cannot hide it (hundreds of sigmas)."""
    rng = np.random.default_rng(0)
    codes = {name: rng.integers(size, size=20_000) for name, size in DOMAIN.items()}
    records = Records({**codes, "copy": codes["d"]}, {**DOMAIN, "copy": 6})
    synth = chicle.PrivMRF(rho=1.0).fit(records)
    assert any({"d", "copy"} <= set(one.clique) for one in synth.release_.measurements)
    made = synth.sample(seed=0)
    assert (made["d"] == made["copy"]).mean() > 0.97
    assert synth.ledger_.spent == pytest.approx(1.0)


def test_nothing_to_choose_is_noted_and_the_budget_is_spent() -> None:
    rng = np.random.default_rng(1)
    records = Records({name: rng.integers(size, size=40) for name, size in DOMAIN.items()}, DOMAIN)
    synth = chicle.PrivMRF(epsilon=0.01, delta=1e-9).fit(records)
    assert any("attributes are independent" in note for note in synth.release_.notes)
    assert synth.ledger_.spent == pytest.approx(synth.budget.rho)
