from itertools import permutations

import numpy as np
import pytest

import chicle
from chicle import Clique, Domain, Measurement
from chicle.models.rewriting import rewriting_ranks, strongest_first

NAMES = "abcde"
DOMAIN = Domain(dict.fromkeys(NAMES, 2))


def table(dependence: float) -> np.ndarray:
    """Two even coins that far, in total variation, from independent."""
    off = dependence / 2
    return 1_000 * np.array([[0.25 + off, 0.25 - off], [0.25 - off, 0.25 + off]])


def ranks(tables: dict[Clique, np.ndarray]) -> list[int]:
    return rewriting_ranks([Measurement(clique, values, 1.0) for clique, values in tables.items()], DOMAIN)


@pytest.mark.parametrize("seed", range(20))
def test_a_rewritten_attribute_depends_on_as_few_later_ones_as_any_order_allows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    depends = {p: float(rng.random() ** 3 / 2) for p in chicle.pairs(DOMAIN)}
    most = {
        order: max(sum(d for p, d in depends.items() if min(p, key=order.index) == name) for name in NAMES)
        for order in permutations(NAMES)
    }
    found = ranks({p: table(d) for p, d in depends.items()})
    assert most[tuple(sorted(NAMES, key=lambda name: found[DOMAIN.position(name)]))] == min(most.values())


def test_pairs_inside_larger_cliques_count_once() -> None:
    cube = np.einsum("ab,c->abc", table(0.4), [0.5, 0.5])
    assert ranks({("a", "b", "c"): cube, ("b", "a"): table(0.4), ("c", "d"): table(0.3)}) == [3, 4, 1, 2, 0]


def test_visits_start_with_the_attributes_that_give_way_last() -> None:
    cliques: list[Clique] = [("a", "b"), ("c",), ("b", "c"), ("a", "c", "e"), ("d", "e"), ()]
    assert [cliques[i] for i in strongest_first(cliques, [0, 1, 2, 3, 4], DOMAIN)] == [
        (), ("d", "e"), ("c",), ("b", "c"), ("a", "c", "e"), ("a", "b"),
    ]  # fmt: skip
