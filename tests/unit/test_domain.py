import numpy as np
import pytest

import chicle
from chicle import Domain, DomainError


def test_a_domain_is_an_ordered_mapping() -> None:
    domain = Domain([("sex", 2), ("age", np.int16(100))])  # type: ignore[list-item]
    assert list(domain.items()) == [("sex", 2), ("age", 100)]
    assert domain == Domain({"sex": 2, "age": 100})
    assert domain != Domain({"age": 100, "sex": 2})
    assert hash(domain) == hash(Domain({"sex": 2, "age": 100}))
    assert type(domain["age"]) is int


def test_cliques_are_put_in_domain_order() -> None:
    domain = Domain({"a": 2, "b": 3, "c": 4})
    assert domain.clique(["c", "a"]) == ("a", "c")
    assert domain.check(("c", "a")) == ("c", "a")
    assert domain.shape(("c", "a")) == (4, 2)
    assert domain.cells(()) == 1
    assert chicle.pairs(domain) == [("a", "b"), ("a", "c"), ("b", "c")]


@pytest.mark.parametrize(
    ("attributes", "rule"),
    [
        ({}, "at least one attribute"),
        ({"a": 0}, "attribute 'a'.*from 1 to"),
        ({"a": -3}, "attribute 'a'.*from 1 to"),
        ({"a": 2**32}, "attribute 'a'.*from 1 to"),
        ({"a": 2.0}, "attribute 'a'.*float"),
        ({"a": True}, "attribute 'a'.*bool"),
        ({"a": None}, "attribute 'a'.*NoneType"),
        ({"": 2}, "non-empty string"),
        ({3: 2}, "non-empty string"),
        ([("a", 2), ("a", 2)], "'a' occurs twice"),
    ],
)
def test_bad_domains_are_refused(attributes: dict[str, int], rule: str) -> None:
    with pytest.raises(DomainError, match=rule):
        Domain(attributes)


@pytest.mark.parametrize(
    ("clique", "rule"),
    [("ab", r"write \('ab',\)"), (("a", "x"), "'x' is not an attribute"), (("a", "a"), "names an attribute twice")],
)
def test_bad_cliques_are_refused(clique: tuple[str, ...], rule: str) -> None:
    with pytest.raises(DomainError, match=rule):
        Domain({"a": 2, "b": 3}).clique(clique)


def test_a_long_domain_is_shown_short() -> None:
    assert len(repr(Domain({f"attribute_{i}": 2 for i in range(500)}))) < 300
