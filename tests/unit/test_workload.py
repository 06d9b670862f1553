"""Workloads against their definitions."""

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import ChicleError, DomainError, ParameterError, Workload
from chicle.domain import Domain

NAMES = "abcdef"
DOMAIN = Domain({name: 2 + i for i, name in enumerate(NAMES)})

cliques = st.sets(st.sampled_from(NAMES), min_size=1, max_size=4).map(lambda chosen: tuple(sorted(chosen)))
workloads = st.dictionaries(cliques, st.floats(0, 9), min_size=1, max_size=12).filter(lambda w: any(w.values()))


@given(workloads)
def test_closure_and_relevance_are_those_of_the_paper(weights: dict[tuple[str, ...], float]) -> None:
    workload = Workload(weights)
    subsets = {
        part
        for clique, weight in weights.items()
        if weight > 0
        for size in range(1, len(clique) + 1)
        for part in combinations(clique, size)
    }
    closure = workload.closure()
    assert set(closure) == subsets
    assert len(closure) == len(subsets)
    assert [len(clique) for clique in closure] == sorted(len(clique) for clique in closure)
    for clique in closure:
        overlap = sum(weight * len(set(clique) & set(other)) for other, weight in weights.items())
        assert workload.relevance(clique) == pytest.approx(overlap)


@given(workloads)
def test_json_keeps_all(weights: dict[tuple[str, ...], float]) -> None:
    workload = Workload(weights)
    assert dict(Workload.from_json(workload.to_json())) == dict(workload)


def test_the_three_of_the_paper() -> None:
    every = Workload.all_kway(DOMAIN, 3)
    assert list(every) == list(combinations(NAMES, 3))
    assert set(every.values()) == {1.0}
    target = Workload.target(DOMAIN, "d", 3)
    assert set(target) == {clique for clique in combinations(NAMES, 3) if "d" in clique}
    skewed = Workload.skewed(DOMAIN, seed=4)
    assert sum(skewed.values()) == 256
    assert set(skewed) <= set(every)
    assert dict(skewed) == dict(Workload.skewed(DOMAIN, seed=4)) != dict(Workload.skewed(DOMAIN, seed=5))
    shares = [sum(w for clique, w in skewed.items() if name in clique) for name in NAMES]
    assert max(shares) > 3 * min(shares)
    assert len(Workload.all_kway({"a": 2, "b": 2}, 3)) == 1, "no more attributes than there are"
    assert len(Workload.target({"a": 2}, "a", 3)) == 1


def test_cliques_are_put_in_domain_order() -> None:
    workload = Workload([("c", "a"), ("b",)]).over(DOMAIN)
    assert list(workload) == [("a", "c"), ("b",)]
    with pytest.raises(DomainError, match="'nobody' is not an attribute"):
        Workload([("a", "nobody")]).over(DOMAIN)
    with pytest.raises(ParameterError, match="twice"):
        Workload([("a", "c"), ("c", "a")])
    assert Workload.of(workload) is workload


@pytest.mark.parametrize(
    "make",
    [
        lambda: Workload([]),
        lambda: Workload({("a",): 0.0}),
        lambda: Workload({("a",): -1.0}),
        lambda: Workload({("a",): math.nan}),
        lambda: Workload({("a",): "2"}),
        lambda: Workload({("a",): 1e308, ("a", "b"): 1e308}),
        lambda: Workload([tuple(f"x{i}" for i in range(60))]),
        lambda: Workload.from_json("[" * 100_000),
        lambda: Workload.from_json(5),  # type: ignore[arg-type]
        lambda: Workload("ab"),
        lambda: Workload(["ab"]),
        lambda: Workload([()]),
        lambda: Workload([("a", "a")]),
        lambda: Workload([("a",), ("a",)]),
        lambda: Workload([(1, 2)]),  # type: ignore[list-item]
        lambda: Workload(7),  # type: ignore[arg-type]
        lambda: Workload.all_kway(DOMAIN, 0),
        lambda: Workload.target(DOMAIN, "z"),
        lambda: Workload.skewed(DOMAIN, number=0),
        lambda: Workload.all_kway({f"x{i}": 2 for i in range(500)}, 4),
        lambda: Workload.from_json("{"),
        lambda: Workload.from_json("[]"),
        lambda: Workload.from_json('{"workload": [7]}'),
        lambda: Workload.from_json('{"workload": [{"clique": "ab"}]}'),
        lambda: Workload.from_json('{"workload": [{"clique": ["a"], "wieght": 2}]}'),
        lambda: Workload.from_json('{"workload": [["a"], ["a"]]}'),
    ],
)
def test_what_is_no_workload_is_refused(make: Any) -> None:
    with pytest.raises(ChicleError):
        make()


def test_files(tmp_path: Path) -> None:
    workload = Workload({("a", "b"): 2.0, ("c",): 1.0})
    path = tmp_path / "w.json"
    path.write_text(workload.to_json(), encoding="utf-8")
    assert dict(Workload.load(path)) == dict(workload)
    with pytest.raises(ParameterError, match="cannot be read"):
        Workload.load(tmp_path / "none.json")
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(ParameterError, match=r"w\.json: the key 'workload'"):
        Workload.load(path)


def test_evaluation_takes_a_workload() -> None:
    census = chicle.datasets.census(800, d=5)
    schema = chicle.Schema(census.domain)
    workload = Workload.target(census.domain, "AGE", 2)
    found = chicle.evaluate(census, census, schema, workload=workload)
    assert "4 cliques" in str(found)
