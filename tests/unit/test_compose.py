from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import Clique, Domain, Measurement, Records
from chicle.measurements.merges import merge_rare
from chicle.models.compose import compose

SIZES = {"a": 3, "b": 4, "c": 2, "d": 5, "e": 2, "f": 300}


class Kernel:
    """Independent records; remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[Clique, list[Clique]]] = []

    def __call__(self, targets: Sequence[Measurement], domain: Domain, n: int, seed: int) -> Records:
        self.asked.append((tuple(domain), [target.clique for target in targets]))
        rng = np.random.default_rng(seed)
        return Records({name: rng.integers(size, size=n) for name, size in domain.items()}, domain)


def exact(cliques: Sequence[Clique], rows: int = 20_000) -> list[Measurement]:
    """Return the marginals of a table in which neighbours in the alphabet depend on each other."""
    rng = np.random.default_rng(0)
    codes: dict[str, Any] = {}
    hidden = rng.random(rows)
    for name, size in SIZES.items():
        hidden = np.clip(hidden + rng.normal(0, 0.2, rows), 0, 0.999)
        codes[name] = (hidden * size).astype(int)
    table = Records(codes, SIZES)
    return [Measurement(c, t, 1.0) for c, t in zip(cliques, chicle.count(table, cliques), strict=True)]


def errors(made: Records, targets: Sequence[Measurement]) -> list[float]:
    counts = chicle.count(made, [target.clique for target in targets])
    return [
        float(np.abs(x / len(made) - t.values / t.values.sum()).sum()) for x, t in zip(counts, targets, strict=True)
    ]


def test_a_tree_needs_no_kernel() -> None:
    domain = Domain(SIZES)
    targets = exact([("a", "b"), ("b", "c"), ("b", "d"), ("d", "e", "f")])
    kernel = Kernel()
    made = compose(kernel, targets, domain, 20_000, 1)
    assert kernel.asked == [], "every attribute is appended in turn"
    assert max(errors(made, targets)) < 0.03


def test_a_cycle_goes_to_the_kernel_and_the_rest_is_appended() -> None:
    kernel = Kernel()
    cliques: list[Clique] = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("e", "f")]
    targets = exact(cliques)
    made = compose(kernel, targets, Domain(SIZES), 20_000, 1)
    assert kernel.asked == [(("a", "b", "c"), cliques[:3])]
    assert errors(made, targets)[4] < 0.02


def test_both_can_be_switched_off() -> None:
    kernel = Kernel()
    targets = exact([("a", "b"), ("c", "d"), ("e",), ("f",)])
    compose(kernel, targets, Domain(SIZES), 10, 1, separate=False, append=False)
    assert kernel.asked == [(tuple(SIZES), [target.clique for target in targets])]
    kernel = Kernel()
    compose(kernel, targets, Domain(SIZES), 10, 1, append=False)
    assert [domain for domain, _ in kernel.asked] == [("a", "b"), ("c", "d")], "single attributes need none"


def test_what_a_removed_clique_says_of_the_others_is_kept() -> None:
    kernel = Kernel()
    targets = exact([("a", "b", "e"), ("a", "c"), ("b", "c")])
    compose(kernel, [*targets, *exact([("d",), ("f",)])], Domain(SIZES), 100, 1)
    asked = dict(kernel.asked)
    assert set(asked["a", "b", "c"]) == {("a", "c"), ("b", "c"), ("a", "b")}


def test_components_are_independent() -> None:
    targets = exact([("a", "b"), ("c", "d"), ("e",), ("f",)])
    made = compose(Kernel(), targets, Domain(SIZES), 50_000, 3)
    (joint,) = chicle.count(made, [("a", "d")])
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0)) / 50_000
    assert np.abs(joint - product).sum() / 50_000 < 0.02


@given(st.integers(0, 3), st.integers(0, 2**32), st.data())
def test_any_targets_give_a_table(n: int, seed: int, data: st.DataObject) -> None:
    clique = st.lists(st.sampled_from(list(SIZES)), min_size=1, max_size=3, unique=True).map(tuple)
    cliques = data.draw(st.lists(clique.filter(lambda c: Domain(SIZES).cells(c) < 10_000), max_size=6))
    rng = np.random.default_rng(seed)
    targets = [Measurement(c, rng.integers(-5, 5, Domain(SIZES).shape(c)), 2.0) for c in cliques]
    made = compose(Kernel(), targets, Domain(SIZES), n, seed)
    again = compose(Kernel(), targets, Domain(SIZES), n, seed)
    assert len(made) == n
    assert all((made[name] == again[name]).all() for name in SIZES)


@pytest.mark.parametrize("values", [np.zeros((3, 4), dtype=np.int64), np.full((3, 4), -7)])
def test_a_target_without_mass_is_uniform(values: Any) -> None:
    made = compose(Kernel(), [Measurement(("a", "b"), values, 1.0)], Domain({"a": 3, "b": 4}), 1200, 0)
    np.testing.assert_array_equal(chicle.count(made, [("a", "b")])[0], np.full((3, 4), 100))


def test_the_mark_of_test_noise_survives_post_processing() -> None:
    """What was made with a test's seed stays marked, whatever is made of it."""
    marked = [
        Measurement(("a", "b"), np.arange(12).reshape(3, 4), 1.0, protected=False),
        Measurement(("a",), np.array([900, 2, 5]), 10.0, protected=False),
        Measurement(("b",), np.array([300, 300, 25, 25]), 10.0, protected=False),
    ]
    domain = {"a": 3, "b": 4}
    merge = merge_rare(marked[1:], domain)
    made = [*chicle.project(marked, domain), *(merge.over(one) for one in marked[1:])]
    assert len(made) == 5
    assert not any(measurement.protected for measurement in made)
