from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chicle import Measurement
from chicle.denoising.absorb import absorb
from chicle.denoising.low_rank import Deviation, low_rank
from chicle.denoising.shrink import MIN_CLASS, shrink

# --- Absorb ----------------------------------------------------------------------------------------------------------


def posterior(values: Any, variances: Any, bucket: Any, margin: Any, noise: float) -> tuple[Any, Any]:
    """The normal distribution with these means and variances, given noisy sums over buckets: dense linear algebra."""
    sums = (bucket[None, :] == np.arange(margin.size)[:, None]).astype(float)
    prior = np.diag(variances)
    gain = prior @ sums.T @ np.linalg.inv(sums @ prior @ sums.T + noise * np.eye(margin.size))
    return values + gain @ (margin - sums @ values), prior - gain @ sums @ prior


@st.composite
def attributes(draw: st.DrawFn) -> tuple[Any, Any, np.random.Generator]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size = draw(st.integers(1, 12))
    return rng.normal(100, 60, size), rng.uniform(0.5, 400, size), rng


@given(attributes(), st.integers(1, 5), st.integers(0, 2), st.floats(0.1, 50))
def test_one_table_in_buckets_is_heard_as_bayes_says(
    attribute: tuple[Any, Any, np.random.Generator], most: int, axis: int, sigma: float
) -> None:
    values, variances, rng = attribute
    bucket = np.unique(rng.integers(most, size=values.size), return_inverse=True)[1]
    shape = [2, 3]
    shape.insert(axis, int(bucket.max()) + 1)
    clique = ["b", "c"]
    clique.insert(axis, "a")
    table = Measurement(
        tuple(clique), rng.normal(40, 30, shape), sigma, buckets={"a": bucket, "b": np.array([0, 1, 1])}
    )
    before = values.copy(), variances.copy()
    mean, kept = absorb("a", values, variances, [table])
    margin = np.moveaxis(table.values, axis, 0).reshape(shape[axis], -1).sum(axis=1)
    expected, covariance = posterior(values, variances, bucket, margin, 6 * sigma**2)
    np.testing.assert_allclose(mean, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(kept, np.diag(covariance), rtol=1e-6)
    np.testing.assert_array_equal((values, variances), before, "what was given is left alone")


@given(attributes(), st.lists(st.tuples(st.integers(1, 6), st.floats(0.5, 40)), max_size=5))
def test_tables_at_full_resolution_are_an_inverse_variance_mean(
    attribute: tuple[Any, Any, np.random.Generator], others: list[tuple[int, float]]
) -> None:
    values, variances, rng = attribute
    tables = [Measurement(("a", "b"), rng.normal(40, 30, (values.size, size)), sigma) for size, sigma in others]
    stranger = Measurement(("b", "c"), rng.normal(40, 30, (2, 2)), 0.1)
    mean, kept = absorb("a", values, variances, [*tables, stranger])
    precision = 1 / variances + sum(1 / (size * sigma**2) for size, sigma in others)
    weighted = values / variances
    for table, (size, sigma) in zip(tables, others, strict=True):
        weighted = weighted + table.values.sum(axis=1) / (size * sigma**2)
    np.testing.assert_allclose(mean, weighted / precision, rtol=1e-9)
    np.testing.assert_allclose(kept, 1 / precision, rtol=1e-9)


@given(attributes(), st.integers(0, 2**32))
def test_several_tables_in_the_same_buckets_are_never_trusted_too_much(
    attribute: tuple[Any, Any, np.random.Generator], seed: int
) -> None:
    values, variances, _ = attribute
    rng = np.random.default_rng(seed)
    bucket = np.unique(rng.integers(3, size=values.size), return_inverse=True)[1]
    cells = int(bucket.max()) + 1
    tables = [Measurement(("a",), rng.normal(100, 9, cells), 9.0, buckets={"a": bucket}) for _ in range(3)]
    _, kept = absorb("a", values, variances, tables)
    sums = (bucket[None, :] == np.arange(cells)[:, None]).astype(float)
    exact = np.linalg.inv(np.diag(1 / variances) + 3 / 81 * sums.T @ sums)
    assert (kept <= variances).all()
    assert (sums @ kept >= np.diag(sums @ exact @ sums.T) * (1 - 1e-9)).all()


# --- Shrink ----------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32), st.integers(1, 80), st.floats(0.01, 1e4), st.floats(0.01, 1e4), st.booleans())
def test_every_cell_stays_between_its_value_and_what_is_expected(
    seed: int, size: int, sigma: float, spread: float, keyed: bool
) -> None:
    rng = np.random.default_rng(seed)
    expected = rng.exponential(100, (size, 3)) * rng.integers(0, 2, (size, 3))
    values = expected + rng.normal(0, np.hypot(sigma, spread), (size, 3))
    key = rng.exponential(50, (size, 3)) if keyed else None
    kept = shrink(values, expected, sigma**2, key=key)
    slack = 1e-9 * (1 + np.abs(values) + expected)
    assert kept.shape == values.shape
    assert (kept >= np.minimum(values, expected) - slack).all()
    assert (kept <= np.maximum(values, expected) + slack).all()


@given(st.integers(0, 2**32), st.integers(1, 60), st.floats(0.5, 50))
def test_one_class_is_the_formula(seed: int, size: int, sigma: float) -> None:
    """Also a table of fewer cells than a class should have."""
    rng = np.random.default_rng(seed)
    values = 50 + rng.normal(0, 20, size)
    square = float(np.mean((values - 50) ** 2))
    part = max(square - sigma**2, 0.0) / (max(square - sigma**2, 0.0) + sigma**2)
    np.testing.assert_allclose(shrink(values, np.full(size, 50.0), sigma**2), 50 + part * (values - 50))


@given(st.integers(0, 2**32), st.lists(st.integers(0, 40), min_size=1, max_size=8), st.floats(0.5, 50))
def test_classes_are_octaves_joined_until_they_are_large_enough(seed: int, cells: list[int], sigma: float) -> None:
    rng = np.random.default_rng(seed)
    octaves = np.repeat(np.arange(len(cells)), cells)
    if octaves.size == 0:
        return
    expected = 2.0**octaves * rng.uniform(1, 1.999, octaves.size)
    values = expected + rng.normal(0, 30, octaves.size)
    # From the largest octave down; what is left over at the end joins the last class.
    classes: list[list[int]] = [[]]
    for octave in range(len(cells) - 1, -1, -1):
        if len(classes[-1]) >= MIN_CLASS:
            classes.append([])
        classes[-1] += np.flatnonzero(octaves == octave).tolist()
    if len(classes) > 1 and len(classes[-1]) < MIN_CLASS:
        left_over = classes.pop()
        classes[-1] += left_over
    naive = np.empty(octaves.size)
    for rows in classes:
        excess = max(float(np.mean((values - expected)[rows] ** 2)) - sigma**2, 0.0)
        naive[rows] = expected[rows] + excess / (excess + sigma**2) * (values - expected)[rows]
    turn = rng.permutation(octaves.size)
    np.testing.assert_allclose(shrink(values[turn], expected[turn], sigma**2), naive[turn], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("spread", [0.0, 3.0, 10.0, 30.0, 300.0])
@pytest.mark.parametrize("shape", [(40, 25), (1000,), (5, 2, 4, 10)])
def test_it_comes_nearer_to_the_truth(spread: float, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(int(spread))
    expected = rng.exponential(400, shape)
    truth = expected + rng.normal(0, 1, shape) * spread
    values = truth + rng.normal(0, 10, shape)
    raw = float(np.mean((values - truth) ** 2))
    error = float(np.mean((shrink(values, expected, 100.0) - truth) ** 2))
    best = 100 * spread**2 / (spread**2 + 100)
    assert error < 1.01 * raw, "never worse than the noise"
    assert error == pytest.approx(best, rel=0.25, abs=6)


def test_classes_are_judged_apart() -> None:
    """Large cells deviate and are kept, small ones do not and are drawn in."""
    rng = np.random.default_rng(0)
    expected = np.repeat([1000.0, 2.0], 500)
    truth = expected + np.repeat([200.0, 0.0], 500) * rng.standard_normal(1000)
    kept = shrink(truth + 10 * rng.standard_normal(1000), expected, 100.0)
    assert np.abs(kept - truth)[:500].mean() == pytest.approx(8, abs=1)
    assert np.abs(kept - truth)[500:].mean() < 3


@pytest.mark.parametrize("sigma", [1e-3, 1e-6, 1e-12])
def test_without_noise_the_data_stays(sigma: float) -> None:
    rng = np.random.default_rng(1)
    expected = rng.exponential(100, (30, 30))
    values = rng.poisson(expected).astype(float)
    np.testing.assert_allclose(shrink(values, expected, sigma**2), values, atol=100 * sigma)


# --- Low rank --------------------------------------------------------------------------------------------------------


def centred(table: Any) -> Any:
    return table - table.mean(axis=0, keepdims=True) - table.mean(axis=1, keepdims=True) + table.mean()


def error_of(found: list[Any], truth: list[Any]) -> float:
    return float(sum(((x - y) ** 2).sum() for x, y in zip(found, truth, strict=True)))


@pytest.mark.parametrize("seed", range(4))
def test_a_planted_signal_is_found_better_than_it_was_measured(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names, sizes = "abcd", [30, 20, 12, 40]
    directions = {name: rng.standard_normal((2, size)) for name, size in zip(names, sizes, strict=True)}
    truth, tables = [], []
    for i in range(4):
        for j in range(i + 1, 4):
            a, b = names[i], names[j]
            truth.append(centred(directions[a].T @ rng.normal(0, 20, (2, 2)) @ directions[b]))
            sigma = float(rng.uniform(15, 30))
            noisy = centred(truth[-1] + sigma * rng.standard_normal(truth[-1].shape))
            tables.append(Deviation((a, b), noisy, sigma))
    found = low_rank(tables)
    assert error_of(found, truth) < 0.35 * error_of([table.values for table in tables], truth)
    for each in found:
        np.testing.assert_allclose(each.sum(axis=0), 0, atol=1e-6)
        np.testing.assert_allclose(each.sum(axis=1), 0, atol=1e-6)


def test_tables_of_one_attribute_help_each_other() -> None:
    """A direction too weak to be seen in any one table is seen in all of them together."""
    rng = np.random.default_rng(5)
    direction = centred(rng.standard_normal((20, 1)) * np.array([[1.0, -1.0]]))[:, 0]
    truth = [np.outer(direction, centred(rng.standard_normal((2, 6)))[0]) * 2.5 for _ in range(25)]
    tables = [
        Deviation(("a", f"b{i}"), centred(t + 3 * rng.standard_normal(t.shape)), 3.0) for i, t in enumerate(truth)
    ]
    alone = [low_rank([table])[0] for table in tables]
    together = low_rank(tables)
    assert error_of(together, truth) < 0.7 * error_of(alone, truth)
    apart = low_rank([Deviation((f"a{i}", f"b{i}"), table.values, 3.0) for i, table in enumerate(tables)])
    for x, y in zip(alone, apart, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shapes", [[(10, 10)], [(40, 3), (40, 5)], [(2, 2)] * 8, [(5, 60), (5, 20), (5, 4)]])
def test_noise_alone_leaves_hardly_anything(seed: int, shapes: list[tuple[int, int]]) -> None:
    rng = np.random.default_rng(seed)
    tables = [Deviation(("a", f"b{i}"), centred(7 * rng.standard_normal(shape)), 7.0) for i, shape in enumerate(shapes)]
    kept, noise = (sum(float((x**2).sum()) for x in each) for each in (low_rank(tables), [t.values for t in tables]))
    assert kept < 0.1 * noise


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 1)])
def test_a_line_deviates_from_nothing(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    line = Deviation(("a", "b"), centred(rng.standard_normal(shape)), 1.0)
    other = Deviation(("a", "c"), centred(9 * rng.standard_normal((shape[0], 5))), 1.0)
    found = low_rank([line, other])
    assert found[0].shape == shape
    np.testing.assert_allclose(found[0], 0, atol=1e-12)
    assert low_rank([]) == []


@given(st.integers(0, 2**32), st.integers(2, 30), st.integers(2, 30))
def test_a_turned_table_gives_the_turned_result(seed: int, rows: int, columns: int) -> None:
    rng = np.random.default_rng(seed)
    signal = centred(np.outer(rng.normal(0, 8, rows), rng.normal(0, 3, columns)))
    noisy = centred(signal + rng.standard_normal(signal.shape))
    other = centred(rng.normal(0, 6, (columns, 4)))
    (found, _) = low_rank([Deviation(("a", "b"), noisy, 1.0), Deviation(("b", "c"), other, 1.0)])
    (turned, _) = low_rank([Deviation(("b", "a"), noisy.T, 1.0), Deviation(("c", "b"), other.T, 1.0)])
    np.testing.assert_allclose(found, turned.T, atol=1e-6)


@pytest.mark.parametrize("shape", [(6, 40), (40, 6), (9, 9)])
def test_without_noise_the_signal_stays(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    signal = centred(rng.standard_normal(shape))
    (found,) = low_rank([Deviation(("a", "b"), signal, 1e-5)])
    np.testing.assert_allclose(found, signal, atol=1e-3)


def test_an_attribute_of_thousands_of_values_is_no_trouble() -> None:
    """A square of its values would take minutes."""
    rng = np.random.default_rng(4)
    signal = centred(np.outer(rng.standard_normal(6_000), [3.0, 0.0, -3.0]))
    noisy = centred(signal + rng.standard_normal(signal.shape))
    (found,) = low_rank([Deviation(("a", "b"), noisy, 1.0)])
    assert error_of([found], [signal]) < 0.9 * error_of([noisy], [signal])
