from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chicle
from chicle import Budget, Domain, DomainError, Ledger, Measurement, ParameterError, Records
from chicle.measurements.merges import compress, over_compressed, over_original
from tests.strategies import records


def one_way(values: Any, sigma: float = 10.0, name: str = "a") -> Measurement:
    return Measurement((name,), np.array(values), sigma)


@st.composite
def released(draw: st.DrawFn, domain: Domain) -> list[Measurement]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = draw(st.sampled_from([5, 40, 400]))
    return [
        Measurement((name,), np.rint(rng.exponential(scale, size) - scale / 4).astype(np.int64), 10.0)
        for name, size in domain.items()
    ]


@given(st.data(), records(), st.sampled_from([0.0, 1.0, 3.0]))
def test_what_becomes_of_each_value(data: st.DataObject, table: Records, theta: float) -> None:
    one_ways = data.draw(released(table.domain))
    compression = compress(one_ways, table.domain, theta=theta)
    encoded = compression.encode(table)
    decoded = compression.decode(encoded, seed=1)
    assert encoded.domain == compression.domain
    assert decoded.domain == table.domain
    for measurement, new in zip(one_ways, compression.one_ways, strict=True):
        (name,) = measurement.clique
        values, threshold = measurement.values, theta * measurement.sigma
        codes = compression.codes(name)
        kept = np.flatnonzero(values >= threshold).tolist()
        low = np.flatnonzero(values < threshold).tolist()
        rare = int(values[low].sum())
        if low and rare > threshold:
            assert codes[kept].tolist() == list(range(len(kept)))
            assert set(codes[low]) == {len(kept)}
            assert new.values.tolist() == [*values[kept].tolist(), rare]
            possible = set(range(values.size))
        else:
            kept = kept or [int(values.argmax())]
            assert codes[kept].tolist() == list(range(len(kept)))
            most = int(np.argmax(values[kept]))
            assert set(np.delete(codes, kept)) <= {most}
            assert new.values.tolist() == values[kept].tolist()
            possible = set(kept)
        assert new.clique == (name,)
        assert compression.domain[name] == new.values.size
        np.testing.assert_array_equal(encoded[name], codes[table[name]])
        assert set(decoded[name].tolist()) <= possible
        np.testing.assert_array_equal(codes[decoded[name]], encoded[name], "decoding undoes encoding up to the merge")


def test_the_rare_value_is_split_by_the_noisy_counts() -> None:
    compression = compress([one_way([1000, 20, -8, 10, 25])], {"a": 5})
    assert compression.domain == Domain({"a": 2})
    synthetic = Records({"a": np.repeat([0, 1], [500, 4_700])}, compression.domain)
    counts = np.bincount(compression.decode(synthetic, seed=0)["a"], minlength=5)
    # Norm-sub of 20, -8, 10, 25 to their sum of 47 takes 8 / 3 off the three that stay above zero.
    expected = 100 * np.array([5, 20 - 8 / 3, 0, 10 - 8 / 3, 25 - 8 / 3])
    assert np.abs(counts - expected).max() <= 1
    again = compression.decode(synthetic, seed=0)["a"]
    np.testing.assert_array_equal(again, compression.decode(synthetic, seed=0)["a"])
    assert (again != compression.decode(synthetic, seed=1)["a"]).any()


@pytest.mark.parametrize(
    ("values", "new", "codes"),
    [
        ([100, 50], [100, 50], [0, 1]),
        ([100, 29, 50], [100, 50], [0, 0, 1]),
        ([50, 29, 100], [50, 100], [0, 1, 1]),
        ([100, 30], [100, 30], [0, 1]),
        ([100, 15, 15], [100], [0, 0, 0]),
        ([100, 15, 16], [100, 31], [0, 1, 1]),
        ([20, 20, 20], [60], [0, 0, 0]),
        ([-5, 9, 3], [9], [0, 0, 0]),
        ([5], [5], [0]),
        ([-5], [-5], [0]),
    ],
)
def test_by_example(values: list[int], new: list[int], codes: list[int]) -> None:
    compression = compress([one_way(values)], {"a": len(values)})
    assert compression.one_ways[0].values.tolist() == new
    assert compression.codes("a").tolist() == codes


def test_nothing_is_decoded_to_a_vanished_value() -> None:
    compression = compress([one_way([-5, 9, 3])], {"a": 3})
    assert compression.decode(Records({"a": [0, 0]}, {"a": 1}))["a"].tolist() == [1, 1]


def test_sigma_keeps_the_variance_of_the_total() -> None:
    merged, vanished, alone = (
        compress([one_way(values, 2.0)], {"a": 5}).one_ways[0]
        for values in ([100, 5, 5, 5, 90], [100, 50, 70, 0, 90], [2, 3, 4, 5, 1])
    )
    assert merged.values.size * merged.sigma**2 == pytest.approx(5 * 4)
    assert vanished.sigma == 2.0
    assert alone.values.tolist() == [15]
    assert alone.sigma == pytest.approx(2 * 5**0.5)


def test_unchanged_columns_are_not_copied() -> None:
    codes = np.array([0, 1, 1], dtype=np.uint8)
    table = Records({"a": codes, "b": [0, 0, 1]}, {"a": 2, "b": 2}, max_records_per_person=3)
    compression = compress([one_way([50, 50]), one_way([50, 5], name="b")], table.domain)
    encoded = compression.encode(table)
    assert np.shares_memory(encoded["a"], codes)
    assert encoded.max_records_per_person == 3
    assert compression.decode(encoded).max_records_per_person == 3


def test_a_large_attribute_shrinks_its_type() -> None:
    values = np.zeros(70_000, dtype=np.int64)
    values[[3, 69_999]] = 500
    values[10] = 25
    values[20] = 20
    compression = compress([one_way(values)], {"a": 70_000})
    encoded = compression.encode(Records({"a": [69_999, 10, 3, 4]}, {"a": 70_000}))
    assert encoded["a"].dtype == np.uint8
    assert encoded["a"].tolist() == [1, 2, 0, 2]
    assert set(compression.decode(encoded)["a"][[1, 3]].tolist()) <= {10, 20}


def test_the_most_precise_1_way_decides_and_others_do_not_matter() -> None:
    pair = Measurement(("a", "b"), np.zeros((2, 1), dtype=np.int64), 1.0)
    measurements = [one_way([500, 500], 100.0), one_way([500, 29]), pair, one_way([100], name="b")]
    assert compress(measurements, {"a": 2, "b": 1}).domain == Domain({"a": 1, "b": 1})


def test_encoding_looks_at_each_record_alone() -> None:
    """So a person's k rows stay k rows, and every sensitivity is what it was."""
    census = chicle.datasets.census(4_000, d=12)
    one_ways = chicle.measure(census, [(name,) for name in census], 20.0, Ledger(Budget(rho=1)))
    compression = compress(one_ways, census.domain)
    encoded = compression.encode(census)
    parts = [
        compression.encode(Records({name: census[name][rows] for name in census}, census.domain))
        for rows in (slice(1_000), slice(1_000, None))
    ]
    assert compression.domain != census.domain
    for name in census:
        np.testing.assert_array_equal(encoded[name], np.concatenate([part[name] for part in parts]))


@pytest.mark.parametrize(
    ("one_ways", "arguments", "error", "rule"),
    [
        ([], {}, DomainError, "'a' has no 1-way measurement"),
        ([one_way([1, 2, 3])], {}, DomainError, "'a' has another number of cells"),
        ([one_way([1.0, np.inf])], {}, DomainError, "not finite"),
        ([one_way([1, 2], 0.0)], {}, DomainError, "sigma"),
        ([one_way([1, 2], np.nan)], {}, DomainError, "sigma"),
        ([one_way([1, 2])], {"theta": -1}, ParameterError, "theta"),
        ([one_way([1, 2])], {"theta": np.nan}, ParameterError, "theta"),
    ],
)
def test_bad_measurements_are_refused(
    one_ways: list[Measurement], arguments: Any, error: type[Exception], rule: str
) -> None:
    with pytest.raises(error, match=rule):
        compress(one_ways, {"a": 2}, **arguments)


def test_records_of_another_domain_are_refused() -> None:
    compression = compress([one_way([100, 5])], {"a": 2})
    with pytest.raises(DomainError, match="can be encoded"):
        compression.encode(Records({"a": [0]}, {"a": 3}))
    with pytest.raises(DomainError, match="can be decoded"):
        compression.decode(Records({"a": [0]}, {"a": 2}))
    with pytest.raises(DomainError, match="'z' is not an attribute"):
        compression.codes("z")


def test_real_values_and_empty_tables() -> None:
    compression = compress([one_way([99.5, 20.25, 15.5])], {"a": 3})
    assert compression.one_ways[0].values.tolist() == [99.5, 35.75]
    nobody = Records({"a": []}, {"a": 3})
    assert len(compression.decode(compression.encode(nobody))) == 0


# --- Neighbours of an ordinal attribute ------------------------------------------------------------------------------


def stands_out(values: Any, theta: float, sigma: float = 10.0) -> int | None:
    """Return with which value the sum from the first one on stands out first."""
    total = 0
    for last, value in enumerate(values.tolist()):
        total += value
        if total >= theta * sigma * (last + 1) ** 0.5:
            return last
    return None


@settings(max_examples=12)
@given(st.data(), records(), st.sampled_from([0.0, 1.0, 3.0]))
def test_ordinal_groups_are_intervals_that_stand_out(data: st.DataObject, table: Records, theta: float) -> None:
    one_ways = data.draw(released(table.domain))
    compression = compress(one_ways, table.domain, theta=theta, ordinal=table.domain)
    encoded = compression.encode(table)
    decoded = compression.decode(encoded, seed=1)
    for measurement, new in zip(one_ways, compression.one_ways, strict=True):
        (name,) = measurement.clique
        values, codes = measurement.values, compression.codes(name)
        assert codes[0] == 0
        assert set(np.diff(codes)) <= {0, 1}, "neighbours, and none left out"
        ends = [*np.flatnonzero(np.diff(codes)).tolist(), values.size - 1]
        start = 0
        for group, end in enumerate(ends):
            assert new.values[group] == values[start : end + 1].sum()
            first = stands_out(values[start : end + 1], theta)
            if group < len(ends) - 1:
                assert first == end - start, "with its last value, not before"
            elif first is None:
                assert group == 0, "nothing stands out at all"
            else:
                assert stands_out(values[start + first + 1 : end + 1], theta) is None, "the last one takes what is left"
            start = end + 1
        assert new.values.size * new.sigma**2 == pytest.approx(values.size * 100)
        np.testing.assert_array_equal(encoded[name], codes[table[name]])
        np.testing.assert_array_equal(codes[decoded[name]], encoded[name], "each record stays in its group")


def test_ordinal_and_nominal_attributes_side_by_side() -> None:
    values = [40, 5, 10, 40, 2, 3]
    compression = compress([one_way(values), one_way(values, name="b")], {"a": 6, "b": 6}, ordinal=["a"])
    # 5 + 10 + 40 is above 30 sqrt 3, and the last two join it.
    assert compression.codes("a").tolist() == [0, 1, 1, 1, 1, 1]
    assert compression.codes("b").tolist() == [0, 0, 0, 1, 0, 0]
    made = compression.decode(
        Records({"a": np.ones(6_000, dtype=int), "b": np.ones(6_000, dtype=int)}, {"a": 2, "b": 2})
    )
    assert np.abs(np.bincount(made["a"], minlength=6) - [0, 500, 1_000, 4_000, 200, 300]).max() <= 1
    assert set(made["b"]) == {3}


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ([50, 40, 30], [0, 1, 2]),
        ([50, 2, 3], [0, 0, 0]),
        ([-5, 2, 90], [0, 0, 0]),
        ([-5, 2, 90, 31, -7], [0, 0, 0, 1, 1]),
        ([0, 0, 0], [0, 0, 0]),
        ([7], [0]),
    ],
)
def test_ordinal_by_example(values: list[int], codes: list[int]) -> None:
    compression = compress([one_way(values)], {"a": len(values)}, ordinal=["a"])
    assert compression.codes("a").tolist() == codes
    assert compression.one_ways[0].values.sum() == sum(values)


# --- Nothing vanishes ------------------------------------------------------------------------------------------------


@given(st.data(), records(), st.sampled_from([0.0, 1.0, 3.0]))
def test_without_vanishing_low_values_are_one_value(data: st.DataObject, table: Records, theta: float) -> None:
    one_ways = data.draw(released(table.domain))
    compression = compress(one_ways, table.domain, theta=theta, vanish=False)
    encoded = compression.encode(table)
    decoded = compression.decode(encoded, seed=1)
    for measurement, new in zip(one_ways, compression.one_ways, strict=True):
        (name,) = measurement.clique
        values, codes = measurement.values, compression.codes(name)
        low = np.flatnonzero(values < theta * measurement.sigma)
        if low.size < 2:
            assert codes.tolist() == list(range(values.size)), "one alone stays as it is"
        else:
            kept = np.setdiff1d(np.arange(values.size), low)
            assert codes[kept].tolist() == list(range(kept.size))
            assert set(codes[low]) == {kept.size}, "no record moves to a value that it does not share a fate with"
        assert new.values.sum() == values.sum(), "no count is lost"
        assert new.values.size * new.sigma**2 == pytest.approx(values.size * 100)
        np.testing.assert_array_equal(codes[decoded[name]], encoded[name])


@given(st.data(), records(), st.booleans(), st.booleans())
def test_tables_go_from_one_domain_to_the_other_and_back(
    data: st.DataObject, table: Records, vanish: bool, ordered: bool
) -> None:
    one_ways = data.draw(released(table.domain))
    ordinal = list(table.domain) if ordered else []
    compression = compress(one_ways, table.domain, ordinal=ordinal, vanish=vanish)
    coarse = {name: np.arange(size, dtype=np.uint32) // 2 for name, size in compression.domain.items() if size > 1}
    for name, coarsening in product(table.domain, ({}, coarse)):
        seen = {name: coarsening[name]} if name in coarsening else {}
        cells = int(seen[name].max()) + 1 if seen else compression.domain[name]
        counted = Measurement((name,), np.zeros(cells), 1.0, coarsening=seen)
        shown = over_original(counted, compression)
        assert all(np.shape(buckets) == (table.domain[name],) for buckets in shown.coarsening.values())
        again = over_compressed(shown, compression)
        assert set(again.coarsening) == set(seen)
        for buckets in seen.values():
            np.testing.assert_array_equal(again.coarsening[name], buckets)


def test_a_table_that_tells_merged_values_apart_is_refused() -> None:
    compression = compress([one_way([900, 7, 450, -3, 25, 20])], {"a": 6})
    with pytest.raises(DomainError, match="tells values of 'a' apart"):
        over_compressed(one_way([1, 2, 3, 4, 5, 6]), compression)
