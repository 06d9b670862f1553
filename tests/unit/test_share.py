import pytest
from hypothesis import given
from hypothesis import strategies as st

from chicle.selection.share import one_way_share

domains = st.lists(st.integers(1, 2_000), min_size=2, max_size=12).map(
    lambda sizes: {f"a{i}": size for i, size in enumerate(sizes)}
)
numbers = st.floats(-1e4, 1e7)


def literal(domain: dict[str, int], n: float, mu: float) -> float:
    """The formula of the header."""
    sizes = list(domain.values())
    singles, cells, pairs = 0.0, 0, 0
    for i, size in enumerate(sizes):
        if size > 4:
            singles += size ** (2 / 3)
        for other in sizes[i + 1 :]:
            cells, pairs = cells + size * other, pairs + 1
    useful = max(min(cells, n * mu), 1)
    share = 5 * singles / (5 * singles + pairs ** (1 / 3) * useful ** (2 / 3))
    return 0.08 if share < 0.08 else min(share, 0.5)


@given(domains, numbers, st.floats(1e-3, 20))
def test_it_is_the_formula(domain: dict[str, int], n: float, mu: float) -> None:
    assert one_way_share(domain, n, mu) == pytest.approx(literal(domain, n, mu))


@given(domains, numbers, st.floats(1e-3, 20), st.floats(1, 100))
def test_what_pairs_can_use_is_not_given_to_1_ways(domain: dict[str, int], n: float, mu: float, more: float) -> None:
    """More records, or a larger budget, tell more cells of pairs from noise."""
    share = one_way_share(domain, n, mu)
    assert 0.08 <= share <= 0.5
    assert one_way_share(domain, abs(n) * more, mu) <= one_way_share(domain, abs(n), mu)
    assert one_way_share(domain, abs(n), mu * more) <= one_way_share(domain, abs(n), mu)
    assert one_way_share(dict(reversed(domain.items())), n, mu) == pytest.approx(share)


def test_a_case_between_the_limits() -> None:
    # Plenty of records: Z1 = 4 * 8^(2/3) = 16, Zp = 6^(1/3) 384^(2/3).
    expected = 80 / (80 + 6 ** (1 / 3) * 384 ** (2 / 3))
    assert 0.08 < expected < 0.5
    assert one_way_share(dict.fromkeys("abcd", 8), 1e6, 1.0) == pytest.approx(expected)


@pytest.mark.parametrize("n", [-50.0, 0.0, 1e9])
def test_edges(n: float) -> None:
    assert one_way_share({"a": 9}, n, 0.1) == 1.0
    assert one_way_share({"a": 2, "b": 4, "c": 1}, n, 0.1) == 0.08
    assert one_way_share({"a": 100_000, "b": 100_000}, min(n, 0), 0.1) == 0.5
