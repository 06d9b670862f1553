from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chicle import Domain, pairs
from chicle.selection.levels import Level, levels
from chicle.selection.sets import Packing, as_queries, choose_sets

TOTAL = 20_000.0


def resolutions_of(domain: Domain) -> list[list[Level]]:
    return [levels(np.full(size, TOTAL / size), ordinal=False) for size in domain.values()]


@pytest.mark.parametrize("budget", [1e-4, 0.01, 1.0])
@pytest.mark.parametrize("number", [8, 40])
@pytest.mark.parametrize("distance", [0.02, 0.2])
def test_binary_attributes_ask_for_about_the_budget(budget: float, number: int, distance: float) -> None:
    """Prices at which packing jumps from nearly no triples to nearly all must not be believed."""
    domain = Domain({f"a{i}": 2 for i in range(number)})
    every = pairs(domain)
    spread = np.random.default_rng(0).random(len(every))
    sets = choose_sets(distance * TOTAL * spread, every, resolutions_of(domain), domain, total=TOTAL, budget=budget)
    spent = sum(chosen.precision for chosen in sets)
    assert 0.4 * budget < spent < 1.6 * budget


@settings(max_examples=30)
@given(st.lists(st.integers(2, 30), min_size=2, max_size=7), st.integers(0, 2**32 - 1), st.sampled_from([2, 3, 4]))
def test_sets_are_sets_of_the_domain(sizes: list[int], seed: int, order: int) -> None:
    domain = Domain({f"a{i}": size for i, size in enumerate(sizes)})
    every = pairs(domain)
    rng = np.random.default_rng(seed)
    resolutions = resolutions_of(domain)
    distances = TOTAL * rng.random(len(every))
    sets = choose_sets(
        distances,
        every,
        resolutions,
        domain,
        total=TOTAL,
        budget=0.05,
        packing=Packing(order=order),
        threads=1,
    )
    queries = as_queries(sets, domain, resolutions)
    cliques = [query.clique for query in queries]
    assert len(set(cliques)) == len(cliques)
    for query, chosen in zip(queries, sets, strict=True):
        clique, coarse = query.clique, query.buckets
        assert 2 <= len(clique) <= order
        assert chosen.precision > 0
        assert all(name in clique for name in coarse)
        if len(clique) > 2:
            assert max(domain.shape(clique)) <= 4
            assert domain.cells(clique) <= 64
            assert not coarse
    # What a set tells of a pair is not bought twice by a set inside it.
    for a, b in combinations(map(set, cliques), 2):
        assert not a < b
        assert not b < a


def test_nothing_is_bought_where_nothing_is_to_be_gained() -> None:
    domain = Domain({"a": 20, "b": 20, "c": 2})
    every = pairs(domain)
    assert not choose_sets(np.zeros(3), every, resolutions_of(domain), domain, total=TOTAL, budget=1e-6)
