"""The scores of the NIST 2020 challenge, against loops over rows and values computed by hand."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import Records
from chicle.errors import ChicleError
from chicle.evaluation.nist2020 import alike, individuals, segments

DOMAIN = {"area": 3, "year": 2, "a": 3, "b": 4, "c": 2}


def table(seed: int, rows: int) -> Records:
    rng = np.random.default_rng(seed)
    return Records({name: rng.integers(0, size, rows) for name, size in DOMAIN.items()}, DOMAIN)


def loop(real: Records, made: Records, by: tuple[str, ...], cliques: list[tuple[str, ...]]) -> list[float]:
    """Return the distances of the segments, a row at a time."""
    found = []
    for cell in np.ndindex(*(DOMAIN[name] for name in by)):
        inside = [
            [i for i in range(len(t)) if all(t[n][i] == v for n, v in zip(by, cell, strict=True))] for t in (real, made)
        ]
        numbers = [len(rows) for rows in inside]
        if not any(numbers):
            continue
        if not all(numbers) or abs(numbers[0] - numbers[1]) >= 250:
            found.append(2.0)
            continue
        means = []
        for clique in cliques:
            shares: list[dict[Any, float]] = [{}, {}]
            for share, t, rows in zip(shares, (real, made), inside, strict=True):
                for i in rows:
                    key = tuple(int(t[name][i]) for name in clique)
                    share[key] = share.get(key, 0.0) + 1 / len(rows)
            keys = shares[0].keys() | shares[1].keys()
            means.append(sum(abs(shares[0].get(key, 0.0) - shares[1].get(key, 0.0)) for key in keys))
        found.append(float(np.mean(means)))
    return found


@given(seed=st.integers(0, 2**32), rows=st.sampled_from([1, 3, 40]))
def test_segments_equal_a_loop(seed: int, rows: int) -> None:
    real, made = table(seed, 40), table(seed + 1, rows)
    cliques = [("a", "b"), ("b", "c"), ("c",)]
    for by in (("area",), ("area", "year")):
        np.testing.assert_allclose(segments(real, made, by, cliques), loop(real, made, by, cliques))


def test_sizes_that_differ_by_250() -> None:
    domain = {"area": 1, "a": 2}

    def even(rows: int) -> Records:
        return Records({"area": np.zeros(rows, int), "a": np.arange(rows) % 2}, domain)

    assert segments(even(1000), even(752), ("area",), [("a",)])[0] == 0
    assert segments(even(1000), even(750), ("area",), [("a",)])[0] == 2
    assert segments(even(1000), even(1250), ("area",), [("a",)])[0] == 2


def test_scores_of_an_evaluation() -> None:
    real = table(0, 900)
    asked: dict[str, Any] = {"segment": ["area", "year"], "trip": ("a", "b"), "individual": ("b", "area", "year")}
    same = chicle.evaluate(real, real, **asked)
    keys = ("nist2020", "nist2020_trips", "nist2020_alike")
    assert [same[key].value for key in keys] == [1000.0] * 3
    assert "6 segments by area, year" in same["nist2020"].note
    assert not {*keys} & {*chicle.evaluate(real, real).keys()}
    moved = Records({**{name: real[name] for name in DOMAIN}, "a": (real["a"] + 1) % 3}, DOMAIN)
    found = chicle.evaluate(real, moved, **asked)
    assert 300 < (found["nist2020"].value or 0) < 999
    assert found["nist2020_alike"].value == 1000, "a is not among its columns"
    a, b = (t.count([("a", "b")])[0] / 900 for t in (real, moved))
    assert found["nist2020_trips"].value == pytest.approx(1000 * (2 - np.abs(a - b).sum()) / 2)


@given(seed=st.integers(0, 2**32))
def test_individuals_equal_a_loop(seed: int) -> None:
    real = table(seed, 60)
    expected = []
    for who in range(DOMAIN["b"]):
        rows = [i for i in range(60) if real["b"][i] == who]
        if rows:
            expected.append([sum(real[n][i] == v for i in rows) for n in ("area", "c") for v in range(DOMAIN[n])])
    assert individuals(real, "b", ("area", "c")).tolist() == expected


def test_individuals_alike_by_hand() -> None:
    """Half of the real individuals have 1,000 rows, half none; no synthetic one has any. Limits are at most 50."""
    real, made = np.array([[1000], [0]]), np.array([[0], [0], [0]])
    # Whichever is drawn: half of the real ones are alike; of the synthetic ones all or none. So the shares are 1/2 off.
    assert alike(real, made, np.random.default_rng(0)) == 0.5
    assert alike(real, np.array([[1005], [4]]), np.random.default_rng(0)) == 1, "5 rows are within every limit"
    assert alike(real, np.array([[1051], [51]]), np.random.default_rng(0)) == 0.5, "51 rows are beyond every limit"


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        ({"segment": "area"}, "one or more columns"),
        ({"segment": []}, "one or more columns"),
        ({"segment": ["nowhere"]}, "'nowhere' is not an attribute"),
        ({"segment": list(DOMAIN)}, "no column to compare"),
        ({"trip": ("a",)}, "two columns"),
        ({"trip": ("a", "b", "c")}, "two columns"),
        ({"individual": ("a",)}, "the column of individuals"),
        ({"individual": "a"}, "the column of individuals"),
    ],
    ids=str,
)
def test_columns_that_do_not_do(asked: dict[str, Any], what: str) -> None:
    with pytest.raises(ChicleError, match=what):
        chicle.evaluate(table(0, 9), table(1, 9), **asked)


def test_tables_of_counts_that_are_too_large() -> None:
    domain = {"area": 60_000, "a": 60_000, "b": 60_000}
    real = Records({name: [0, 1] for name in domain}, domain)
    asked: dict[str, Any]
    for asked in ({"segment": ["area"]}, {"individual": ("area", "a")}):
        with pytest.raises(ChicleError, match="above the limit"):
            chicle.evaluate(real, real, pairs=1, triples=1, **asked)
