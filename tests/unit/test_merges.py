from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chicle
from chicle import Budget, Desk, Domain, DomainError, Ledger, Measurement, ParameterError, Records
from chicle.measurements.merges import Merge, merge_rare
from chicle.query import Query, one_ways
from tests.strategies import records


def one_way(values: Any, sigma: float = 10.0, name: str = "a") -> Measurement:
    return Measurement((name,), np.array(values), sigma)


def merged_view(table: Records, merge: Merge) -> Records:
    return table.view(merge.maps, merge.domain)


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
    merge = merge_rare(one_ways, table.domain, theta=theta)
    encoded = merged_view(table, merge)
    decoded = merge.split(encoded, seed=1)
    assert encoded.domain == merge.domain
    assert decoded.domain == table.domain
    for measurement, new in zip(one_ways, map(merge.over, one_ways), strict=True):
        (name,) = measurement.clique
        values, threshold = measurement.values, theta * measurement.sigma
        codes = merge.codes(name)
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
        assert merge.domain[name] == new.values.size
        np.testing.assert_array_equal(encoded[name], codes[table[name]])
        assert set(decoded[name].tolist()) <= possible
        np.testing.assert_array_equal(codes[decoded[name]], encoded[name], "decoding undoes encoding up to the merge")


def test_the_rare_value_is_split_by_the_noisy_counts() -> None:
    merge = merge_rare([one_way([1000, 20, -8, 10, 25])], {"a": 5})
    assert merge.domain == Domain({"a": 2})
    synthetic = Records({"a": np.repeat([0, 1], [500, 4_700])}, merge.domain)
    counts = np.bincount(merge.split(synthetic, seed=0)["a"], minlength=5)
    # Norm-sub of 20, -8, 10, 25 to their sum of 47 takes 8 / 3 off the three that stay above zero.
    expected = 100 * np.array([5, 20 - 8 / 3, 0, 10 - 8 / 3, 25 - 8 / 3])
    assert np.abs(counts - expected).max() <= 1
    again = merge.split(synthetic, seed=0)["a"]
    np.testing.assert_array_equal(again, merge.split(synthetic, seed=0)["a"])
    assert (again != merge.split(synthetic, seed=1)["a"]).any()


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
    merge = merge_rare([one_way(values)], {"a": len(values)})
    assert merge.over(one_way(values)).values.tolist() == new
    assert merge.codes("a").tolist() == codes


def test_nothing_is_decoded_to_a_vanished_value() -> None:
    merge = merge_rare([one_way([-5, 9, 3])], {"a": 3})
    assert merge.split(Records({"a": [0, 0]}, {"a": 1}))["a"].tolist() == [1, 1]


def test_sigma_keeps_the_variance_of_the_total() -> None:
    merged, vanished, alone = (
        merge_rare([one_way(values, 2.0)], {"a": 5}).over(one_way(values, 2.0))
        for values in ([100, 5, 5, 5, 90], [100, 50, 70, 0, 90], [2, 3, 4, 5, 1])
    )
    assert merged.values.size * merged.sigma**2 == pytest.approx(5 * 4)
    assert vanished.sigma == 2.0
    assert alone.values.tolist() == [15]
    assert alone.sigma == pytest.approx(2 * 5**0.5)


def test_unchanged_columns_are_not_copied() -> None:
    codes = np.array([0, 1, 1], dtype=np.uint8)
    table = Records({"a": codes, "b": [0, 0, 1]}, {"a": 2, "b": 2}, max_records_per_person=3)
    merge = merge_rare([one_way([50, 50]), one_way([50, 5], name="b")], table.domain)
    encoded = merged_view(table, merge)
    assert np.shares_memory(encoded["a"], codes)
    assert encoded.max_records_per_person == 3
    assert merge.split(encoded).max_records_per_person == 3


def test_a_large_attribute_shrinks_its_type() -> None:
    values = np.zeros(70_000, dtype=np.int64)
    values[[3, 69_999]] = 500
    values[10] = 25
    values[20] = 20
    merge = merge_rare([one_way(values)], {"a": 70_000})
    encoded = merged_view(Records({"a": [69_999, 10, 3, 4]}, {"a": 70_000}), merge)
    assert encoded["a"].dtype == np.uint8
    assert encoded["a"].tolist() == [1, 2, 0, 2]
    assert set(merge.split(encoded)["a"][[1, 3]].tolist()) <= {10, 20}


def test_the_most_precise_1_way_decides_and_others_do_not_matter() -> None:
    pair = Measurement(("a", "b"), np.zeros((2, 1), dtype=np.int64), 1.0)
    measurements = [one_way([500, 500], 100.0), one_way([500, 29]), pair, one_way([100], name="b")]
    assert merge_rare(measurements, {"a": 2, "b": 1}).domain == Domain({"a": 1, "b": 1})


def test_encoding_looks_at_each_record_alone() -> None:
    """So a person's k rows stay k rows, and every sensitivity is what it was."""
    census = chicle.datasets.census(4_000, d=12)
    one_ways = Desk(census, Ledger(Budget(rho=1))).measure([(name,) for name in census], sigma=20.0)
    merge = merge_rare(one_ways, census.domain)
    encoded = merged_view(census, merge)
    parts = [
        merged_view(Records({name: census[name][rows] for name in census}, census.domain), merge)
        for rows in (slice(1_000), slice(1_000, None))
    ]
    assert merge.domain != census.domain
    for name in census:
        np.testing.assert_array_equal(encoded[name], np.concatenate([part[name] for part in parts]))


@pytest.mark.parametrize(
    ("one_ways", "arguments", "error", "rule"),
    [
        ([], {}, DomainError, "'a' has no 1-way measurement"),
        ([one_way([1, 2, 3])], {}, DomainError, "another number of cells.*3 along 'a'"),
        ([one_way([1.0, np.inf])], {}, DomainError, "no finite count"),
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
        merge_rare(one_ways, {"a": 2}, **arguments)


def test_records_of_another_domain_are_refused() -> None:
    merge = merge_rare([one_way([100, 5])], {"a": 2})
    with pytest.raises(DomainError, match="merged domain can be split"):
        merge.split(Records({"a": [0]}, {"a": 2}))
    with pytest.raises(DomainError, match="'z' is not an attribute"):
        merge.codes("z")


def test_real_values_and_empty_tables() -> None:
    merge = merge_rare([one_way([99.5, 20.25, 15.5])], {"a": 3})
    assert merge.over(one_way([99.5, 20.25, 15.5])).values.tolist() == [99.5, 35.75]
    nobody = Records({"a": []}, {"a": 3})
    assert len(merge.split(merged_view(nobody, merge))) == 0


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
    merge = merge_rare(one_ways, table.domain, theta=theta, ordinal=table.domain)
    encoded = merged_view(table, merge)
    decoded = merge.split(encoded, seed=1)
    for measurement, new in zip(one_ways, map(merge.over, one_ways), strict=True):
        (name,) = measurement.clique
        values, codes = measurement.values, merge.codes(name)
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
    merge = merge_rare([one_way(values), one_way(values, name="b")], {"a": 6, "b": 6}, ordinal=["a"])
    # 5 + 10 + 40 is above 30 sqrt 3, and the last two join it.
    assert merge.codes("a").tolist() == [0, 1, 1, 1, 1, 1]
    assert merge.codes("b").tolist() == [0, 0, 0, 1, 0, 0]
    made = merge.split(Records({"a": np.ones(6_000, dtype=int), "b": np.ones(6_000, dtype=int)}, {"a": 2, "b": 2}))
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
    merge = merge_rare([one_way(values)], {"a": len(values)}, ordinal=["a"])
    assert merge.codes("a").tolist() == codes
    assert merge.over(one_way(values)).values.sum() == sum(values)


# --- Nothing vanishes ------------------------------------------------------------------------------------------------


@given(st.data(), records(), st.sampled_from([0.0, 1.0, 3.0]))
def test_without_vanishing_low_values_are_one_value(data: st.DataObject, table: Records, theta: float) -> None:
    one_ways = data.draw(released(table.domain))
    merge = merge_rare(one_ways, table.domain, theta=theta, vanish=False)
    encoded = merged_view(table, merge)
    decoded = merge.split(encoded, seed=1)
    for measurement, new in zip(one_ways, map(merge.over, one_ways), strict=True):
        (name,) = measurement.clique
        values, codes = measurement.values, merge.codes(name)
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
    merge = merge_rare(one_ways, table.domain, ordinal=ordinal, vanish=vanish)
    coarse = {name: np.arange(size, dtype=np.uint32) // 2 for name, size in merge.domain.items() if size > 1}
    for name, buckets in product(table.domain, ({}, coarse)):
        seen = {name: buckets[name]} if name in buckets else {}
        cells = int(seen[name].max()) + 1 if seen else merge.domain[name]
        behind = merge.behind(Query((name,), seen))
        assert all(np.shape(codes) == (table.domain[name],) for codes in behind.buckets.values())
        again = merge.over(Measurement((name,), np.zeros(cells), 1.0, buckets=behind.buckets))
        assert again.values.shape == (cells,)
        assert again.sigma == 1.0
        assert set(again.buckets) == set(seen)
        for codes in seen.values():
            np.testing.assert_array_equal(again.buckets[name], codes)


def test_a_table_that_tells_merged_values_apart_is_refused() -> None:
    merge = merge_rare([one_way([900, 7, 450, -3, 25, 20])], {"a": 6})
    with pytest.raises(DomainError, match="distinguishes values of 'a' that are merged"):
        merge.over(Measurement(("a",), np.arange(3), 1.0, buckets={"a": np.array([0, 0, 1, 1, 2, 2])}))


# --- Merged tables ---------------------------------------------------------------------------------------------------


@st.composite
def merges(draw: st.DrawFn) -> Merge:
    """A merge of a few attributes, by noisy 1-ways."""
    domain = Domain({name: draw(st.integers(1, 9)) for name in ("a", "b", "c")})
    ordinal = draw(st.sets(st.sampled_from(list(domain))))
    return merge_rare(draw(released(domain)), domain, ordinal=ordinal, vanish=draw(st.booleans()))


@st.composite
def queries_of(draw: st.DrawFn, domain: Domain) -> Query:
    """A query of any attributes, in any buckets, of any group."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    clique = tuple(draw(st.lists(st.sampled_from(list(domain)), max_size=3, unique=True)))
    buckets = {name: rng.integers(3, size=domain[name]) for name in clique if draw(st.booleans())}
    rest = [name for name in domain if name not in clique]
    where = {name: int(rng.integers(domain[name])) for name in rest if draw(st.booleans())}
    return Query(clique, buckets, where)


@given(merges(), st.data())
def test_a_table_over_merged_values_has_their_sums(merge: Merge, data: st.DataObject) -> None:
    """Counts of values that vanished count nowhere."""
    clique = tuple(data.draw(st.lists(st.sampled_from(list(merge.original)), unique=True)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    table = rng.integers(-9, 99, merge.original.shape(clique))
    merged = merge.over(Measurement(clique, table, 2.0))
    naive = np.zeros(merge.domain.shape(clique), dtype=np.int64)
    for codes in product(*map(range, table.shape)):
        named = list(zip(clique, codes, strict=True))
        changes = [(merge.changes[name], code) for name, code in named if name in merge.changes]
        if not any(change.vanish and change.shares[code] == 0 for change, code in changes):
            naive[tuple(int(merge.codes(name)[code]) for name, code in named)] += table[codes]
    np.testing.assert_array_equal(merged.values, naive)
    assert not merged.buckets
    if not any(change.vanish for name, change in merge.changes.items() if name in clique):
        assert merged.values.sum() == table.sum()
        assert merged.values.size * merged.sigma**2 == pytest.approx(table.size * 4.0)


@given(merges(), st.data())
def test_what_is_asked_behind_a_merge_is_what_was_asked_of_it(merge: Merge, data: st.DataObject) -> None:
    query = data.draw(queries_of(merge.domain))
    query = Query(query.clique, query.buckets)
    behind = merge.behind(query).checked(merge.original)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    rows = {name: rng.integers(size, size=50) for name, size in merge.original.items()}
    table = Records(rows, merge.original)
    (mine,), (theirs,) = table.count([behind]), merged_view(table, merge).count([query])
    np.testing.assert_array_equal(mine, theirs[tuple(slice(size) for size in mine.shape)])
    counted = Measurement(behind.clique, mine, 3.0, buckets=behind.buckets)
    again = merge.over(counted)
    np.testing.assert_array_equal(again.values, mine)
    assert again.sigma == 3.0
    assert {name: again.buckets.get(name, np.arange(merge.domain[name])).tolist() for name in query.clique} == {
        name: np.asarray(query.buckets.get(name, np.arange(merge.domain[name]))).tolist() for name in query.clique
    }


@given(merges(), st.data())
def test_expectations_are_split_by_shares_and_add_up_again(merge: Merge, data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    joint = rng.exponential(10, tuple(merge.domain.values()))
    names = list(merge.original)

    def inner(queries: Any) -> list[Any]:
        tables = []
        for asked in queries:
            query = asked if isinstance(asked, Query) else Query(asked)
            query.checked(merge.domain)
            assert not query.where
            tables.append(answer(joint, names, query))
        return tables

    whole = joint
    for axis, name in enumerate(names):
        change = merge.changes.get(name)
        if change is not None:
            whole = np.take(whole, change.codes, axis=axis)
            whole = whole * change.shares.reshape([-1 if i == axis else 1 for i in range(3)])
    assert whole.sum() == pytest.approx(joint.sum())
    asked = [data.draw(queries_of(merge.original)) for _ in range(3)]
    for query, table in zip(asked, merge.expect(inner)(asked), strict=True):
        np.testing.assert_allclose(table, answer(whole, names, query), atol=1e-9)
    # Split values add up to the merged table, unless some vanished: they have nothing.
    (split,) = merge.expect(inner)([("a", "c")])
    merged = merge.over(Measurement(("a", "c"), split, 1.0)).values
    np.testing.assert_allclose(merged, joint.sum(axis=1), atol=1e-9)


def answer(joint: Any, names: list[str], query: Query) -> Any:
    """Return what a query asks of a joint table, by a loop over its cells."""
    shape = [
        int(np.max(query.buckets[n])) + 1 if n in query.buckets else joint.shape[names.index(n)] for n in query.clique
    ]
    table = np.zeros(shape)
    for cell in product(*map(range, joint.shape)):
        codes = dict(zip(names, cell, strict=True))
        if all(codes[name] == code for name, code in query.where.items()):
            at = tuple(int(query.buckets[n][codes[n]]) if n in query.buckets else codes[n] for n in query.clique)
            table[at] += joint[cell]
    return table


@given(merges())
def test_a_merge_as_arrays_and_back(merge: Merge) -> None:
    arrays = merge.to_arrays()
    assert all(array.dtype in (np.uint32, np.float64, np.uint8) for array in arrays.values()), "what a file takes"
    again = Merge.from_arrays(merge.original, {**arrays, "others": np.zeros(3)})
    assert (again.original, again.domain, list(again.changes)) == (merge.original, merge.domain, list(merge.changes))
    for name, change in merge.changes.items():
        np.testing.assert_array_equal(again.changes[name].codes, change.codes)
        np.testing.assert_array_equal(again.changes[name].shares, change.shares)
        assert again.changes[name].vanish is change.vanish
        assert again.changes[name].codes.dtype == change.codes.dtype


@pytest.mark.parametrize(
    "damage",
    [
        {"merge-0-codes": np.array([0, 1, 1], dtype=np.uint32)},
        {"merge-0-codes": np.array([0, 1, 9, 2], dtype=np.uint32)},
        {"merge-0-codes": np.array([0, 2, 2, 2], dtype=np.uint32)},
        {"merge-0-codes": np.array([0, 1, 1, 2], dtype=np.uint32)},
        {"merge-0-codes": np.array([0, 1, 1, -1])},
        {"merge-0-codes": np.array([[0, 1, 1, 1]], dtype=np.uint32)},
        {"merge-0-shares": np.array([1.0, 0.5, 0.5])},
        {"merge-0-shares": np.array([1.0, 0.5, 0.5, 0.5])},
        {"merge-0-shares": np.array([1.0, 1.5, 0.0, -0.5])},
        {"merge-0-shares": np.array([1.0, 0.5, 0.5, np.nan])},
        {"merge-0-shares": np.zeros(4)},
    ],
    ids=str,
)
def test_damaged_arrays_of_a_merge_are_refused(damage: dict[str, Any]) -> None:
    """With one of the errors that the reader of a file turns into a message."""
    merge = merge_rare([one_way([900, 8, 9, 20])], {"a": 4}, vanish=False)
    arrays = merge.to_arrays()
    assert Merge.from_arrays(Domain({"a": 4}), arrays).codes("a").tolist() == [0, 1, 1, 1]
    with pytest.raises((DomainError, ValueError)):
        Merge.from_arrays(Domain({"a": 4}), {**arrays, **damage})
    with pytest.raises(LookupError):
        Merge.from_arrays(Domain({"a": 4}), {name: array for name, array in arrays.items() if "shares" not in name})


RELEASED: dict[str, Any] = {
    "PrivSyn-gum": chicle.PrivSyn,
    "PrivSyn-pgm": lambda **given: chicle.PrivSyn(generator="pgm", **given),
    "MST": chicle.MST,
    "PrivBayes": chicle.PrivBayes,
    "Prism": chicle.Prism,
    "AIM": lambda **given: chicle.AIM(rounds=2, **given),
}


@pytest.mark.parametrize("mechanism", RELEASED)
def test_a_release_is_fitted_again_to_other_values_with_the_merge_it_has(mechanism: str, tmp_path: Path) -> None:
    """Merges are kept, not made again: other noise, which would have merged other values, is no contradiction."""
    census = chicle.datasets.census(8_000, d=7)
    schema = chicle.Schema.from_cardinalities(census.domain, ordinal=["AGE"])
    RELEASED[mechanism](epsilon=1, delta=1e-9).fit(census, schema).release_.save(tmp_path / "r.chicle")
    release = chicle.load(tmp_path / "r.chicle")
    merge = release.transcript.merge
    assert merge is not None
    assert merge.changes, "or the test says nothing"
    assert any(one.buckets for one in release.measurements)
    rng = np.random.default_rng(0)
    others = [
        replace(one, values=one.values + rng.normal(0, 9 * one.sigma, one.values.shape)) for one in release.measurements
    ]
    fresh = merge_rare(others, release.domain, ordinal=["AGE"])
    assert any((fresh.codes(name) != merge.codes(name)).any() for name in merge.changes)
    model = type(release.model)(**release.model.params()).fit(others, release.domain, merge=merge)
    made = model.records(500, seed=1)
    assert (len(made), made.domain) == (500, release.domain)
    for single, table in zip(one_ways(release.domain), model.expect(one_ways(release.domain)), strict=True):
        assert table.shape == release.domain.shape(single)
        assert table.sum() == pytest.approx(model.total)
