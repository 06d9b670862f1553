from itertools import combinations
from math import inf, pi, prod, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import optimize

import chicle
from chicle import Clique, Domain, DomainError, ParameterError, PrivacyError
from chicle.measurements.scores import Scores
from chicle.privacy.budget import budget_shares
from chicle.selection.combine import combine, given_cliques
from chicle.selection.dense_marg import dense_marg
from chicle.selection.exact_scores import exact_indif

# --- DenseMarg -------------------------------------------------------------------------------------------------------


def scores_of(values: dict[Clique, float]) -> Scores:
    return Scores(tuple(values), np.array(list(values.values()), dtype=np.float64), 1.0, protected=True)


def error_of(chosen: list[Clique], scores: Scores, domain: Domain, rho: float) -> float:
    """Line 5 of Algorithm 1, as it stands there: allocate, then add the errors up."""
    cells = {pair: domain.cells(pair) for pair in scores.cliques}
    whole = sum(cells[pair] ** (2 / 3) for pair in chosen)
    noise = [cells[pair] * sqrt(1 / (pi * (rho * cells[pair] ** (2 / 3) / whole))) for pair in chosen]
    rest = [score for pair, score in zip(scores.cliques, scores.values, strict=True) if pair not in chosen]
    return float(sum(noise) + sum(rest))


def literal(scores: Scores, domain: Domain, rho: float) -> tuple[list[Clique], float]:
    """Algorithm 1 with every error computed anew; also by how little a decision was ever made."""
    chosen: list[Clique] = []
    error, closest = error_of(chosen, scores, domain, rho), inf
    while len(chosen) < len(scores.cliques):
        errors = {pair: error_of([*chosen, pair], scores, domain, rho) for pair in scores.cliques if pair not in chosen}
        best, *others = sorted(errors, key=errors.__getitem__)
        closest = min(closest, abs(errors[best] - error), *(errors[pair] - errors[best] for pair in others[:1]))
        if errors[best] >= error:
            break
        chosen.append(best)
        error = errors[best]
    return chosen, closest


@given(st.data(), st.floats(1e-4, 10))
def test_dense_marg_is_the_literal_algorithm(data: st.DataObject, rho: float) -> None:
    sizes = data.draw(st.lists(st.integers(1, 30), min_size=2, max_size=6))
    domain = Domain({f"a{i}": size for i, size in enumerate(sizes)})
    score = st.one_of(st.floats(-100, 5000), st.floats(0, 50))
    scores = scores_of({pair: data.draw(score) for pair in chicle.pairs(domain)})
    expected, closest = literal(scores, domain, rho)
    assume(closest > 1e-7)  # Closer calls may go either way by the rounding of sums.
    assert dense_marg(scores, domain, rho=rho) == expected


def test_ties_go_to_the_first_pair() -> None:
    domain = Domain(dict.fromkeys("abcd", 3) | {"e": 9, "f": 1})
    pairs = [*chicle.pairs(dict.fromkeys("dcba", 3)), ("e", "f")]
    assert dense_marg(scores_of(dict.fromkeys(pairs, 1000.0)), domain, rho=0.1) == pairs


def test_more_budget_chooses_more_and_more_people_per_person_fewer() -> None:
    census = chicle.datasets.census(5_000, d=30)
    scores = exact_indif(census)

    def chosen(rho: float, k: int = 1) -> int:
        return len(dense_marg(scores, census.domain, rho=rho, l2_sensitivity=k, allow_unprotected=True))

    assert 0 < chosen(0.01) < chosen(0.1) < chosen(10)
    assert chosen(10, k=10) == chosen(0.1)


def test_only_scores_above_their_noise_are_chosen() -> None:
    domain = Domain({"a": 10, "b": 10, "c": 10})
    noise = 100 / sqrt(pi * 0.5)
    just = scores_of({("a", "b"): noise * 0.999, ("a", "c"): noise * 1.001, ("b", "c"): -5.0})
    assert dense_marg(just, domain, rho=0.5) == [("a", "c")]
    assert dense_marg(scores_of({}), domain, rho=0.5) == []


@pytest.mark.parametrize(
    ("values", "arguments", "error", "rule"),
    [
        ({("a", "b"): np.nan}, {}, DomainError, r"\('a', 'b'\) is not finite"),
        ({("a", "b"): np.inf}, {}, DomainError, r"\('a', 'b'\) is not finite"),
        ({("a", "z"): 1.0}, {}, DomainError, "'z' is not an attribute"),
        ({("a", "b"): 1.0}, {"rho": 0}, PrivacyError, "rho must be"),
        ({("a", "b"): 1.0}, {"rho": np.nan}, PrivacyError, "rho must be"),
        ({("a", "b"): 1.0}, {"l2_sensitivity": 0}, PrivacyError, "l2_sensitivity"),
    ],
)
def test_bad_scores_are_refused(values: Any, arguments: Any, error: type[Exception], rule: str) -> None:
    with pytest.raises(error, match=rule):
        dense_marg(scores_of(values), {"a": 2, "b": 2}, **{"rho": 1.0, **arguments})


# --- Equation 1 ------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=6))
def test_equation_1_no_other_split_has_less_noise(cells: list[int]) -> None:
    shares = budget_shares(cells)
    size = np.array(cells, dtype=np.float64)

    def noise(shares: Any) -> float:
        return float((size / np.sqrt(pi * shares)).sum())

    assert shares.sum() == pytest.approx(1)
    assert noise(shares) == pytest.approx((size ** (2 / 3)).sum() ** 1.5 / sqrt(pi)), "the closed form of DenseMarg"
    # The oracle minimises over logits of shares.
    found = optimize.minimize(lambda x: noise(np.exp(x) / np.exp(x).sum()), np.zeros(len(cells)))
    assert noise(shares) <= found.fun * (1 + 1e-9)
    assert found.fun == pytest.approx(noise(shares), rel=1e-4)


def test_shares_of_nothing() -> None:
    assert budget_shares([]).tolist() == []
    assert budget_shares([1]).tolist() == [1.0]


def test_shares_of_cliques_too_large_for_floats() -> None:
    large, small = budget_shares([(2**32 - 1) ** 40, 2**32 - 1])
    assert large == 1.0
    assert 0 < small < 1e-200


# --- Combine ---------------------------------------------------------------------------------------------------------


def welcome(pairs: list[Clique], domain: Domain, gamma: int, held: set[str], size: int) -> bool:
    """Whether the graph has a clique of this size that Algorithm 2 would take, by looking at all of them."""
    edges = {frozenset(pair) for pair in pairs}
    return any(
        len(held.intersection(clique)) <= 2
        and prod(domain[name] for name in clique) <= gamma
        and all(frozenset(edge) in edges for edge in combinations(clique, 2))
        for clique in combinations(domain, size)
    )


@given(st.data(), st.sampled_from([0, 30, 200, 5000]), st.floats(0.3, 1))
def test_combine_takes_a_largest_welcome_clique_at_every_step(data: st.DataObject, gamma: int, density: float) -> None:
    sizes = data.draw(st.lists(st.integers(1, 7), min_size=2, max_size=9))
    domain = Domain({f"a{i}": size for i, size in enumerate(sizes)})
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    pairs = [pair for pair in chicle.pairs(domain) if rng.random() < density]
    cliques = combine(pairs, domain, gamma=gamma)
    merged = [clique for clique in cliques if len(clique) > 2]
    held: set[str] = set()
    for clique in merged:
        assert domain.clique(clique) == clique
        assert domain.cells(clique) <= gamma
        assert len(held.intersection(clique)) <= 2
        assert set(combinations(clique, 2)) <= set(pairs)
        assert not any(welcome(pairs, domain, gamma, held, size) for size in range(len(clique) + 1, len(domain) + 1))
        held.update(clique)
    assert not any(welcome(pairs, domain, gamma, held, size) for size in range(3, len(domain) + 1))
    rest = [pair for pair in pairs if not any(set(pair) <= set(clique) for clique in merged)]
    assert cliques == merged + rest


def covered(cliques: list[Clique]) -> set[Clique]:
    return {pair for clique in cliques for pair in combinations(clique, 2)}


@pytest.mark.parametrize("density", [0.2, 0.5, 0.9, 0.97, 1.0])
def test_dense_graphs_end_and_lose_no_pair(density: float) -> None:
    """97 attributes; a graph of density 0.9 has billions of cliques."""
    domain = chicle.datasets.census(10, d=97).domain
    rng = np.random.default_rng(5)
    pairs = [pair for pair in chicle.pairs(domain) if rng.random() < density]
    cliques = combine(pairs, domain, effort=1000)
    assert covered(cliques) == set(pairs)
    assert all(domain.cells(clique) <= 5000 for clique in cliques if len(clique) > 2)
    assert max(map(len, cliques)) >= 4


def test_a_complete_graph_of_binary_attributes_fills_gamma() -> None:
    domain = Domain({f"a{i}": 2 for i in range(97)})
    cliques = combine(chicle.pairs(domain), domain)
    lengths = [len(clique) for clique in cliques]
    assert lengths[0] == 12, "4,096 cells"
    # Each further one holds two old attributes and ten new: (97 - 12) / 10 = 8.5, and a rest of 5 new ones.
    assert [length for length in lengths if length > 2] == [12] * 9 + [7]
    assert covered(cliques) == set(chicle.pairs(domain))


def test_without_effort_what_is_found_first_is_taken() -> None:
    domain = Domain({f"a{i}": 2 for i in range(20)})
    lazy = combine(chicle.pairs(domain), domain, effort=0)
    assert len(lazy[0]) >= 3
    assert covered(lazy) == set(chicle.pairs(domain))


def test_many_constant_attributes_are_no_trouble() -> None:
    domain = Domain({f"a{i}": 1 for i in range(60)})
    cliques = combine(chicle.pairs(domain), domain)
    assert len(cliques[0]) == 32
    assert covered(cliques) == set(chicle.pairs(domain))


def test_pairs_given_twice_or_turned_are_one() -> None:
    domain = {"a": 2, "b": 3, "c": 4}
    assert combine([("b", "a"), ("a", "b")], domain) == [("a", "b")]
    assert combine([], domain) == []
    assert combine([("a", "b"), ("b", "c"), ("a", "c")], domain, gamma=23) == [("a", "b"), ("b", "c"), ("a", "c")]


@pytest.mark.parametrize(
    ("pairs", "arguments", "error", "rule"),
    [
        ("ab", {}, DomainError, "not a string"),
        ([("a",)], {}, DomainError, "1 attributes"),
        ([("a", "b", "c")], {}, DomainError, "3 attributes"),
        ([("a", "z")], {}, DomainError, "'z' is not an attribute"),
        ([], {"gamma": -1}, ParameterError, "gamma"),
        ([], {"gamma": 2.5}, ParameterError, "gamma"),
        ([], {"effort": True}, ParameterError, "effort"),
    ],
)
def test_bad_pairs_are_refused(pairs: Any, arguments: Any, error: type[Exception], rule: str) -> None:
    with pytest.raises(error, match=rule):
        combine(pairs, {"a": 2, "b": 3, "c": 4}, **arguments)


def test_given_cliques_bypass_selection() -> None:
    domain = {"a": 2, "b": 3, "c": 4}
    assert given_cliques([("c", "a", "b"), ("b",), ["b"]], domain) == [("a", "b", "c"), ("b",)]
    for cliques, rule in [([], "no cliques"), ([()], "empty clique"), ("ab", "string"), ([("z",)], "'z'")]:
        with pytest.raises(DomainError, match=rule):
            given_cliques(cliques, domain)
