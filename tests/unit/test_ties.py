from itertools import permutations

import numpy as np
import pytest

import chicle
from chicle import Clique, Domain
from chicle.models.ties import ranks, tied_first

NAMES = "abcde"
DOMAIN = Domain(dict.fromkeys(NAMES, 2))


def pair(tie: float) -> np.ndarray:
    """Two even coins that far, in total variation, from independent."""
    return 1_000 * np.array([[0.25 + tie / 2, 0.25 - tie / 2], [0.25 - tie / 2, 0.25 + tie / 2]])


@pytest.mark.parametrize("seed", range(20))
def test_the_most_ties_that_a_rewritten_attribute_has_are_the_least_of_any_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ties = {p: float(rng.random() ** 3 / 2) for p in chicle.pairs(DOMAIN)}
    worst = {
        order: max(sum(t for p, t in ties.items() if min(p, key=order.index) == name) for name in NAMES)
        for order in permutations(NAMES)
    }
    found = ranks([(p, pair(t)) for p, t in ties.items()], DOMAIN)
    assert worst[tuple(sorted(NAMES, key=lambda name: found[DOMAIN.position(name)]))] == min(worst.values())


def test_ties_inside_larger_cliques_count_once() -> None:
    cube = np.einsum("ab,c->abc", pair(0.4), [0.5, 0.5])
    assert ranks([(("a", "b", "c"), cube), (("b", "a"), pair(0.4)), (("c", "d"), pair(0.3))], DOMAIN) == [3, 4, 1, 2, 0]


def test_visits_start_with_the_attributes_that_give_way_last() -> None:
    cliques: list[Clique] = [("a", "b"), ("c",), ("b", "c"), ("a", "c", "e"), ("d", "e"), ()]
    assert [cliques[i] for i in tied_first(cliques, [0, 1, 2, 3, 4], DOMAIN)] == [
        (), ("d", "e"), ("c",), ("b", "c"), ("a", "c", "e"), ("a", "b"),
    ]  # fmt: skip
