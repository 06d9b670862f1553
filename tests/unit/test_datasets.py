from typing import Any

import numpy as np
import pytest

import chicle
from chicle import InfeasibleError, ParameterError
from chicle.datasets import census, households


def test_the_census_has_the_size_of_the_real_one() -> None:
    domain = census(0).domain
    assert len(domain) == 97
    assert len(census(0)) == 0
    assert 55 < np.mean(list(domain.values())) < 80
    assert sum(domain.cells(pair) for pair in chicle.pairs(domain)) == pytest.approx(21.4e6, rel=0.05)
    assert sum(200 <= size <= 1_200 for size in domain.values()) >= 4


def test_a_person_is_the_same_in_any_table() -> None:
    wide, narrow = census(40_000, d=120, seed=5, threads=1), census(33_333, d=9, seed=5, threads=8)
    for name in narrow:
        np.testing.assert_array_equal(wide[name][:33_333], narrow[name])
    other = census(33_333, d=9, seed=6)
    assert any((other[name] != narrow[name]).any() for name in narrow)


def test_the_census_has_structure_worth_modelling() -> None:
    people = census(100_000)
    # Children neither work nor marry; a detailed code determines its general one.
    child = people["AGE"] < 14
    assert child.mean() > 0.1
    for name in ("OCC", "INCWAGE"):
        assert not people[name][child].any(), name
    educ_of: dict[int, int] = {}
    for detailed, general in zip(people["EDUCD"].tolist(), people["EDUC"].tolist(), strict=True):
        assert educ_of.setdefault(detailed, general) == general
    one_ways = chicle.count(people, [(name,) for name in people.domain])
    heaviest = sorted(float(table.max()) / len(people) for table in one_ways)
    assert heaviest[0] < 0.3
    assert heaviest[-1] > 0.9


@pytest.mark.parametrize(
    "arguments", [{"n": -1}, {"n": 2.5}, {"n": 5, "d": 0}, {"n": 5, "seed": -1}, {"n": True}, {"n": 2**64}]
)
def test_bad_sizes_are_refused(arguments: Any) -> None:
    with pytest.raises(ParameterError, match="must be"):
        census(**arguments)


def test_a_population_beyond_memory_is_refused() -> None:
    with pytest.raises(InfeasibleError, match="bytes of memory"):
        census(10**14, d=2)


def test_households_keep_what_is_known_of_families() -> None:
    pair = households(3_000, seed=4)
    whose, line, relation, sex, age = (
        pair["people"][name].to_numpy().astype(int) for name in ("household", "line", "RELATE", "SEX", "AGE")
    )
    assert pair["households"]["household"].to_pylist() == list(range(3_000))
    assert set(whose) == set(range(3_000))
    assert line.min() == 1
    assert line.max() == 12
    assert ((relation == 0) == (line == 1)).all(), "one head, who is first"
    assert set(line[relation == 1]) == {2}
    assert (np.diff(relation)[np.diff(whose) == 0] >= 0).all()
    mother = np.full(3_000, 999)
    for one in (relation == 0, relation == 1):
        mother[whose[one & (sex == 1)]] = age[one & (sex == 1)]
    own = relation == 2
    assert (mother[whose[own]] - age[own]).min() >= 14


def test_a_household_is_the_same_in_any_number() -> None:
    few, many = households(70, seed=2, threads=1), households(500, seed=2, threads=8)
    assert many["households"].slice(0, 70).equals(few["households"])
    assert many["people"].slice(0, len(few["people"])).equals(few["people"])
    assert {len(table) for table in households(0).values()} == {0}
