"""Coarse columns, combined columns and constraints: what declarations mean, and that no row made ever violates them."""

from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import Desk, Domain, Measurement, Query, Records, Schema, SchemaError
from chicle.codecs import Codec
from chicle.codecs.recode import Attributes
from chicle.codecs.repair import draw, mend, repair, swap
from chicle.codecs.zeros import without_zeros
from chicle.columns import Column, Integer, column_from_dict
from chicle.columns.coarse import coarse_groups
from chicle.columns.selector import Selector
from chicle.schema.connected import connected
from chicle.schema.constraints import constraints_from
from chicle.sources import check_table, decode_table, read_records
from tests.schemas import Rule, coarse, columns, constraints, joint, read, selections, table_of

AGE = {"type": "integer", "min": 0, "max": 99}
MARITAL = {"type": "categorical", "values": ["never", "married", "widowed"], "missing": True}
BASIC: dict[str, Any] = {"age": AGE, "marital": MARITAL, "band": {**AGE, "bins": 10}, "smoker": {"type": "boolean"}}


def violating(records: Records, rules: list[Rule]) -> list[int]:
    """Return which rows violate a rule, by looking at one after the other."""
    return [
        i
        for i in range(len(records))
        if not all(allowed(tuple(int(records[name][i]) for name in names)) for names, allowed in rules)
    ]


def random_records(domain: Domain, rows: int, seed: int) -> Records:
    rng = np.random.default_rng(seed)
    return Records({name: rng.integers(size, size=rows) for name, size in domain.items()}, domain)


@st.composite
def chosen(draw: st.DrawFn) -> tuple[Column, Any, set[int]]:
    told, _ = draw(columns(0).filter(lambda drawn: drawn[0]["type"] != "datetime"))
    column = column_from_dict("c", told)
    return column, *draw(selections(column))


@given(chosen())
def test_a_declaration_names_the_codes_that_it_means(drawn: tuple[Column, Any, set[int]]) -> None:
    column, said, meant = drawn
    assert set(np.flatnonzero(Selector(column)(said)).tolist()) == meant


@given(st.data())
def test_coarse_groups_are_those_declared(data: st.DataObject) -> None:
    told = data.draw(columns(0).map(lambda drawn: drawn[0]).flatmap(coarse))
    if "coarse" not in told:
        return
    column = column_from_dict("c", told)
    groups = coarse_groups(column)
    assert groups.shape == (column.cardinality,)
    assert set(groups.tolist()) == set(range(groups.max() + 1)), "no group is empty"
    if column.missing:
        assert (groups == groups[-1]).sum() == 1
    if isinstance(told["coarse"], int):
        sizes = np.bincount(groups[: column.size])
        assert len(sizes) == told["coarse"]
        assert sizes.max() - sizes.min() <= 1
        assert (np.diff(groups) >= 0).all()
    else:
        for number, values in enumerate(told["coarse"].values()):
            assert {column.labels[code] for code in np.flatnonzero(groups == number)} == set(values)  # type: ignore[index]


@pytest.mark.parametrize(
    ("told", "groups"),
    [
        ({"type": "integer", "bins": [0, 0, 5, 10, 20], "coarse": [0, 0, 10, 20]}, [0, 1, 1, 2]),
        ({"type": "integer", "min": 0, "max": 5, "coarse": [0, 3, 5]}, [0, 0, 0, 1, 1, 1]),
        ({"type": "number", "min": 0, "max": 1, "bins": 4, "coarse": [0, 0.5, 1], "missing": True}, [0, 0, 1, 1, 2]),
        ({"type": "date", "min": "2020-11-15", "max": "2021-02-03", "bins": "month", "coarse": "year"}, [0, 0, 1, 1]),
        ({"type": "date", "min": "2020-01-01", "max": "2020-01-04", "bins": "day", "coarse": "2 days"}, [0, 0, 1, 1]),
        ({"type": "ordinal", "values": list("abc"), "coarse": {"low": ["a", "b"], "high": "c"}}, [0, 0, 1]),
        ({**AGE, "max": 3, "coarse": {"child": {"below": 2}, "adult": {"from": 2}}}, [0, 0, 1, 1]),
    ],
)
def test_ways_to_say_coarse(told: dict[str, Any], groups: list[int]) -> None:
    assert coarse_groups(column_from_dict("c", told)).tolist() == groups
    assert Codec(Schema({"c": told})).domain == Domain({"c": max(groups) + 1})


@pytest.mark.parametrize(
    ("column", "rule"),
    [
        ({**AGE, "coarse": 101}, "column 'c': coarse must be .* 100.*or a list of edges"),
        ({**AGE, "coarse": True}, "column 'c': coarse must be"),
        ({**AGE, "coarse": "month"}, "a number of groups, a list of edges or named groups, not 'month'"),
        ({**AGE, "coarse": [0, 50]}, "first and the last edge of coarse must be the bounds"),
        ({**AGE, "coarse": [0]}, "at least two edges"),
        ({**AGE, "coarse": [0, 50, 20, 99]}, "rising order"),
        (
            {**AGE, "bins": 10, "coarse": [0, 15, 99]},
            "coarse cuts a bin in two at 15; its edges must be edges of `bins`",
        ),
        ({**MARITAL, "coarse": 2}, r"coarse needs groups of values, such as `coarse: \{north"),
        ({**MARITAL, "coarse": ["never", "widowed"]}, "its values have no order; name groups"),
        ({**MARITAL, "coarse": {1: ["never"]}}, "the name of a coarse group must be a text, not 1; quote it"),
        ({**MARITAL, "coarse": {"a": ["never"]}}, "coarse leaves out 'married'; put every value into a group"),
        (
            {**MARITAL, "coarse": {"a": {"not": "x"}}},
            "'x' is not one of its values; it has 'never', 'married', 'widowed'",
        ),
        ({**MARITAL, "coarse": {"a": ["never", None], "b": ["married", "widowed"]}}, "'a' has missing"),
        ({**MARITAL, "coarse": {"a": ["never"], "b": {"not": [None]}}}, "'b' has a value that another group has"),
        ({"type": "ordinal", "values": list("abc"), "coarse": {"x": ["a", "c"], "y": "b"}}, "must be neighbours"),
        (
            {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "bins": "month", "coarse": "week"},
            "coarse cuts a bin in two at 2020-01-06",
        ),
        ({"type": "drop", "coarse": 3}, "drop has no 'coarse'"),
    ],
)
def test_a_bad_coarse_is_refused(column: dict[str, Any], rule: str) -> None:
    with pytest.raises(SchemaError, match=rule) as refusal:
        Schema({"x": {"type": "boolean"}, "c": column})
    assert "column 'c'" in str(refusal.value)


@pytest.mark.parametrize(
    ("constraint", "rule"),
    [
        ([], "constraints must be a list|it must be a mapping with `forbid`"),
        ({"forbit": {}}, "constraint 1: it has no 'forbit'; did you mean 'forbid'"),
        ({"forbid": {"age": 5}}, r"about 1 column; a constraint is about two or three \(declare the values"),
        ({"forbid": {"age": 5, "maritl": "never"}}, "'maritl' is not a modelled column; did you mean 'marital'"),
        (
            {"forbid": {"age": 5, "marital": "single"}},
            "column 'marital': 'single' is not one of its values; it has 'never'",
        ),
        ({"forbid": {"age": 5, "smoker": 1}}, "column 'smoker': 1 is not one of its values; it has False, True"),
        ({"forbid": {"age": {"below": 0}, "smoker": True}}, "column 'age': .* names none of its values"),
        ({"forbid": {"age": {"under": 5}, "smoker": True}}, r"a range is \{from: ..., to: ...\} \(both included\)"),
        ({"forbid": {"marital": {"below": "married"}, "smoker": True}}, "its values have no order"),
        ({"forbid": {"smoker": [True, None], "age": 5}}, "column 'smoker': it has no missing values"),
        (
            {"forbid": {"band": {"below": 15}, "smoker": True}},
            "column 'band': `below: 15` cuts a bin in two; write `below:` 10 or 20, where bins begin, or add an edge",
        ),
        ({"forbid": {"band": {"above": 10}, "smoker": True}}, "`above: 10` cuts a bin in two; write `from:` 10 or 20"),
        ({"forbid": {"band": 15, "smoker": True}}, "cuts a bin in two"),
        ({"forbid": {"region": "north", "smoker": True}}, "'region' is determined by 'age'; constrain 'age' instead"),
        ({"if": {"age": 5}}, "it has 'if'; a constraint has `forbid`, `if` and `then`"),
        ({"if": {"age": 5}, "then": {"age": 6}}, "names a column twice"),
        ({"if": {}, "then": {"age": 5, "smoker": True}}, "must map columns to values"),
        ({"if": "age < 15", "then": {"smoker": False}}, "must map columns to values, such as .age: .below: 15"),
        ({"allow": ["age", "smoker"]}, "it has 'allow'; a constraint has"),
        ({"allow": ["age", "smoker"], "combinations": []}, "it lists none"),
        ({"allow": ["age", "smoker"], "combinations": [[1]]}, "a value of 'age' and of 'smoker', not"),
        ({"allow": ["age", "smoker", "marital"], "combinations": {1: True}}, "a mapping is for two columns"),
        ({"forbid": {"age": 5, "smoker": True}, "violations": "drop"}, 'violations must be "refuse" or "keep"'),
    ],
)
def test_a_bad_constraint_is_refused(constraint: Any, rule: str) -> None:
    region = {"determined_by": "age", "map": dict.fromkeys(range(100), "north")}
    with pytest.raises(SchemaError, match=rule):
        Schema({**BASIC, "region": region}, constraints=[constraint])


@pytest.mark.parametrize(
    ("combine", "rule"),
    [
        ([], "combine must be a mapping"),
        ({"age": ["age", "smoker"]}, "combine 'age': a column has this name"),
        ({"x": ["age"]}, "combine 'x': columns must list two columns or more"),
        ({"x": ["age", "age"]}, "lists a column twice"),
        ({"x": ["age", "smokr"]}, "'smokr' is not a modelled column; did you mean 'smoker'"),
        ({"x": ["age", "smoker"], "y": ["age", "marital"]}, "combine 'y': column 'age' is in 'x' already"),
        ({"x": {"columns": ["age", "smoker"], "combos": []}}, "combine 'x': it has no 'combos'"),
        ({"x": {"columns": ["age", "smoker"], "others": [5, True]}}, "list some in `combinations`"),
        ({"x": {"columns": ["age", "smoker"], "combinations": [[5, True]], "others": [6, True]}}, "others is not one"),
        (
            {"x": {"columns": ["age", "smoker"], "combinations": [[5, True]], "others": [[5, 6], True]}},
            "names one value",
        ),
        ({"x": ["age", "band", "marital", "wide"]}, "has .* combinations, more than 16,777,216; make columns `coarse`"),
    ],
)
def test_a_bad_combination_is_refused(combine: Any, rule: str) -> None:
    with pytest.raises(SchemaError, match=rule):
        Schema({**BASIC, "wide": {"type": "integer", "min": 0, "max": 9_999}}, combine=combine)


def test_constraints_that_leave_nothing_are_refused() -> None:
    married = {"if": {"age": {"below": 50}}, "then": {"marital": "married"}}
    single = {"if": {"marital": "married"}, "then": {"smoker": True}}
    never = {"forbid": {"age": {"below": 50}, "smoker": True}}
    old = {"forbid": {"age": {"from": 50}, "smoker": [True, False]}}
    Schema(BASIC, constraints=[married, single, never])
    with pytest.raises(SchemaError, match="no row satisfies all constraints on 'age' and 'marital' and 'smoker'"):
        Schema(BASIC, constraints=[married, single, never, old])
    listed = {"columns": ["age", "marital"], "combinations": [[{"below": 50}, "never"]]}
    with pytest.raises(SchemaError, match="combine 'x': no combination is left"):
        Schema(BASIC, combine={"x": listed}, constraints=[married])


@given(joint())
def test_what_is_said_of_several_columns_is_saved(tmp_path_factory: pytest.TempPathFactory, drawn: Any) -> None:
    schema, _, _ = drawn
    folder = tmp_path_factory.mktemp("schema")
    for name in ("s.yaml", "s.json"):
        schema.save(folder / name)
        again = Schema.load(folder / name)
        assert again == schema
        assert (Codec(again).domain, Codec(again).ordinal) == (Codec(schema).domain, Codec(schema).ordinal)
    assert schema.mark_reviewed() == schema


@given(joint(), st.integers(0, 2**32))
def test_a_table_that_fits_comes_back_in_the_same_codes(drawn: Any, seed: int) -> None:
    schema, rows, rules = drawn
    declared = {name: column.to_dict() for name, column in schema.columns.items()}
    table = table_of(declared, rows)
    assert check_table(table, schema).fits
    records, form = read(table, schema)
    assert not violating(records, rules)
    seen = Codec(schema).recode(records)
    assert seen.domain == Codec(schema).domain
    restored = Codec(schema).restore(seen, (), np.random.default_rng(seed))
    assert not violating(restored, rules)
    if not Codec(schema).coarse or not rules:  # else what was drawn inside groups may have to be mended
        again = Codec(schema).recode(restored)
        for name in schema.domain:
            if name not in Codec(schema).coarse:
                np.testing.assert_array_equal(restored[name], records[name])
        for name in seen:
            np.testing.assert_array_equal(again[name], seen[name], "a group is split into what is in it")
    made = decode_table(restored, Codec(schema), form, rng=np.random.default_rng(seed))
    assert made.schema == table.schema, "names, order and types are kept"
    codes = read_records(made, schema)
    for name in schema.domain:
        np.testing.assert_array_equal(codes[name], restored[name])
    assert check_table(made, schema).fits


@given(joint(), st.integers(0, 200), st.integers(0, 2**32))
def test_no_row_violates_a_constraint_whatever_was_generated(drawn: Any, rows: int, seed: int) -> None:
    schema, _, rules = drawn
    seen = random_records(Codec(schema).domain, rows, seed)
    restored = Codec(schema).restore(seen, (), np.random.default_rng(seed))
    assert not violating(restored, rules)
    twice = Codec(schema).restore(seen, (), np.random.default_rng(seed))
    for name in schema.domain:
        np.testing.assert_array_equal(twice[name], restored[name], "the seed fixes it")
    assert not violating(Codec(schema).restore(Codec(schema).recode(restored), (), np.random.default_rng(0)), rules)


@st.composite
def small(draw: st.DrawFn) -> tuple[dict[str, Column], list[Any], list[Rule]]:
    """Draw a few columns of codes, and constraints on them."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=5))
    made = {chr(ord("a") + i): column_from_dict("c", {"type": "coded", "values": size}) for i, size in enumerate(sizes)}
    drawn = draw(st.lists(constraints(made), min_size=1, max_size=4))
    return made, [said for said, _ in drawn], [rule for _, rule in drawn]


@given(small())
def test_what_can_be_satisfied_is_told_as_by_trying_all(drawn: Any) -> None:
    made, said, rules = drawn
    domain = Domain({name: column.cardinality for name, column in made.items()})
    every = list(product(*(range(size) for size in domain.values())))
    table = Records(dict(zip(domain, np.array(every).T, strict=True)), domain)
    compiled = constraints_from(said, made)
    bad = violating(table, rules)
    held = np.ones(len(every), dtype=bool)
    for one in compiled:
        held &= one.holds({name: table[name] for name in table})
    assert np.flatnonzero(~held).tolist() == bad
    if len(bad) < len(every):
        connected(compiled, domain)
    else:
        with pytest.raises(SchemaError, match="no row satisfies"):
            connected(compiled, domain)


@given(small(), st.integers(0, 60), st.integers(0, 2**32))
def test_mending_leaves_what_conforms(drawn: Any, rows: int, seed: int) -> None:
    made, said, rules = drawn
    domain = Domain({name: column.cardinality for name, column in made.items()})
    try:
        parts = connected(constraints_from(said, made), domain)
    except SchemaError:
        return
    before = random_records(domain, rows, seed)
    after = mend(before, parts, np.random.default_rng(seed))
    assert not violating(after, rules)
    assert not violating(repair(before, parts, np.random.default_rng(seed)), rules)
    bad = violating(before, rules)
    about = {name for names, _ in rules for name in names}
    for name in domain:
        changed = np.flatnonzero(before[name] != after[name])
        assert set(changed.tolist()) <= set(bad)
        assert name in about or not len(changed)


@given(small(), st.integers(0, 60), st.integers(0, 2**32), st.data())
def test_swaps_keep_groups_and_values(drawn: Any, rows: int, seed: int, data: st.DataObject) -> None:
    made, said, rules = drawn
    domain = Domain({name: column.cardinality for name, column in made.items()})
    try:
        parts = connected(constraints_from(said, made), domain)
    except SchemaError:
        return
    groups = {name: np.array([data.draw(st.integers(0, 1)) for _ in range(size)]) for name, size in domain.items()}
    before = random_records(domain, rows, seed)
    after = swap(before, parts, np.random.default_rng(seed), groups)
    assert set(violating(after, rules)) <= set(violating(before, rules))
    for name in domain:
        np.testing.assert_array_equal(np.bincount(after[name]), np.bincount(before[name]))
        np.testing.assert_array_equal(groups[name][after[name]], groups[name][before[name]])


def test_draw_is_by_weight() -> None:
    groups, weights = np.array([3, 1, 3, 1, 3]), np.array([1, 5, 3, 0, 0])
    picked, found = draw(groups, weights, np.repeat([1, 2, 3], 4_000), np.random.default_rng(0))
    assert found.tolist() == [True] * 4_000 + [False] * 4_000 + [True] * 4_000
    assert set(picked[:4_000]) == {1}
    counts = np.bincount(picked[8_000:], minlength=5)
    assert counts[[1, 3, 4]].tolist() == [0, 0, 0]
    assert abs(counts[2] / 4_000 - 0.75) < 0.03


@given(small(), st.integers(0, 2**32), st.data())
def test_zeros_are_where_no_allowed_row_can_be(drawn: Any, seed: int, data: st.DataObject) -> None:
    made, said, _ = drawn
    told = {name: {"type": "coded", "values": c.size, "ordinal": True} for name, c in made.items()}
    for name, column in told.items():
        if data.draw(st.booleans()):
            column["coarse"] = data.draw(st.integers(1, made[name].size))
    names = data.draw(st.lists(st.sampled_from(sorted(told)), min_size=2, max_size=2, unique=True))
    combine = {"both": names} if data.draw(st.booleans()) else {}
    try:
        schema = Schema(told, combine=combine, constraints=said)
    except SchemaError as error:
        assert "no row satisfies" in str(error) or "no combination is left" in str(error)  # noqa: PT017
        return
    domain = Codec(schema).domain
    size = data.draw(st.integers(1, min(3, len(domain))))
    clique = tuple(data.draw(st.permutations(list(domain)))[:size])
    buckets = {
        # Every bucket has a value.
        name: np.unique([data.draw(st.integers(0, 1)) for _ in range(domain[name])], return_inverse=True)[1].astype(
            np.uint32
        )
        for name in clique
        if data.draw(st.booleans())
    }
    shape = [int(buckets[name].max()) + 1 if name in buckets else domain[name] for name in clique]
    measured = Measurement(clique, np.random.default_rng(seed).integers(1, 9, shape), 1.0, buckets=buckets)
    (kept,) = Codec(schema).without_zeros([measured])
    # Every row there is, one after the other.
    every = np.array(list(product(*(range(column.cardinality) for column in schema.columns.values()))))
    rows = Records(dict(zip(schema.domain, every.T, strict=True)), schema.domain)
    for both in Codec(schema).attributes.combined.values():  # combinations that constraints rule out have no code
        coarse_codes = [Codec(schema).attributes.groups.get(n, np.arange(99))[rows[n]] for n in both.columns]
        every = every[np.isin(np.ravel_multi_index(coarse_codes, both.shape), both.cells)]
    rows = Records(dict(zip(schema.domain, every.T, strict=True)), schema.domain)
    for one in schema.constraints:
        attributes = {a for a, columns in Codec(schema).attributes.columns.items() if set(columns) & set(one.columns)}
        if len(attributes) < 2 or not attributes <= set(clique):
            continue
        held = np.flatnonzero(one.holds({name: rows[name] for name in rows}))
        seen = Codec(schema).recode(Records({name: rows[name][held] for name in rows}, schema.domain))
        there = np.zeros(shape, dtype=bool)
        there[tuple(buckets[a][seen[a]] if a in buckets else seen[a] for a in clique)] = True
        measured = Measurement(clique, np.where(there, measured.values, 0), 1.0, buckets=buckets)
    np.testing.assert_array_equal(kept.values, measured.values)


@given(joint(), st.integers(0, 2**32), st.data())
def test_tables_of_attributes_tell_of_columns(drawn: Any, seed: int, data: st.DataObject) -> None:
    schema, _, _ = drawn
    restored = Codec(schema).restore(random_records(Codec(schema).domain, 50, seed), (), np.random.default_rng(seed))
    seen = Codec(schema).recode(restored)
    clique = tuple(data.draw(st.permutations(list(seen.domain)))[:2])
    buckets = {
        name: np.array([data.draw(st.integers(0, 1)) for _ in range(seen.domain[name])])
        for name in clique
        if name in schema.domain and seen.domain[name] < 9 and data.draw(st.booleans())
    }
    if (
        seen.domain.cells(clique) > 10**5
        or prod(schema.domain[n] for a in clique for n in Codec(schema).attributes.columns[a]) > 10**6
    ):
        return
    ledger = chicle.Ledger(chicle.Budget(rho=1e12))
    (told,) = Desk(seen, ledger).measure([Query(clique, buckets)], sigma=1e-3)
    (column,) = Codec(schema).over_columns([told])
    (naive,) = Desk(restored, ledger).measure([column.query], sigma=1e-3)
    np.testing.assert_array_equal(column.values, naive.values)


def test_rows_of_others_are_counted_as_told() -> None:
    told = {"columns": ["marital", "smoker"], "combinations": [["never", False], ["married", [False, True]]]}
    columns: dict[str, Any] = {"marital": MARITAL, "smoker": {"type": "boolean"}, "age": AGE}
    table = pd.DataFrame({"marital": ["never", "never", None], "smoker": [False, True, False], "age": [1, 2, 3]})
    strict = Schema(columns, combine={"both": told})
    assert Codec(strict).domain == Domain({"both": 3, "age": 100})
    rule = "combine 'both': the table has a combination of 'marital' and 'smoker' that is not listed; add it to `comb"
    with pytest.raises(SchemaError, match=rule):
        chicle.Independent(epsilon=1, delta=1e-9).fit(table, strict)
    assert [problem.partition(";")[0] for problem in check_table(table, strict).problems] == [rule.partition(";")[0]]
    lenient = Schema(columns, combine={"both": {**told, "others": ["married", True]}})
    assert check_table(table, lenient).fits
    seen = Codec(lenient).recode(read_records(table, lenient))
    assert seen["both"].tolist() == [0, 2, 2]
    restored = Codec(lenient).restore(seen, (), np.random.default_rng(0))
    assert restored["marital"].tolist() == [0, 1, 1]
    assert restored["smoker"].tolist() == [0, 1, 1]


def test_rows_that_violate_are_refused_or_kept() -> None:
    constraint = {"forbid": {"age": {"below": 15}, "marital": ["married", "widowed"]}}
    table = pd.DataFrame({"age": [3] * 400 + [40] * 400, "marital": ["married"] * 800})
    columns: dict[str, Any] = {"age": AGE, "marital": MARITAL}
    strict = Schema(columns, constraints=[constraint])
    ledger = chicle.Ledger(chicle.Budget(epsilon=1, delta=1e-9))
    rule = "the table has a row that violates the constraint `forbid` on 'age' and 'marital'; correct the table or"
    with pytest.raises(SchemaError, match=rule):
        chicle.Prism(epsilon=1, delta=1e-9).fit(table, strict, ledger=ledger)
    assert ledger.spent == 0
    assert not check_table(table, strict).fits
    lenient = Schema(columns, constraints=[{**constraint, "violations": "keep"}])
    assert check_table(table, lenient).fits
    made = chicle.Prism(epsilon=5, delta=1e-9).fit(table, lenient).sample(seed=0)
    assert abs(len(made) - 800) < 50, "the rows are counted"
    assert not ((made["age"] < 15) & (made["marital"] != "never") & made["marital"].notna()).any()


def test_swaps_make_fine_values_fit_what_else_is_known() -> None:
    """Half of the coarse group is below the constraint's bound; its rows get the ages, and ages keep their shares."""
    rng = np.random.default_rng(0)
    age = rng.integers(10, 20, 20_000)
    table = pd.DataFrame({"age": age, "pay": np.where(age < 15, "none", "some")})
    schema = Schema(
        {"age": {**AGE, "coarse": 10}, "pay": {"type": "categorical", "values": ["none", "some"]}},
        constraints=[{"if": {"age": {"below": 15}}, "then": {"pay": "none"}}],
    )
    made = chicle.Prism(epsilon=5, delta=1e-9).fit(table, schema).sample(seed=0)
    assert not ((made["age"] < 15) & (made["pay"] == "some")).any()
    shares = made["age"].value_counts(normalize=True)
    assert abs(made["age"].lt(15).mean() - table["age"].lt(15).mean()) < 0.02
    assert shares[list(range(10, 20))].between(0.08, 0.12).all()


def test_fine_values_follow_the_fine_1_way() -> None:
    schema = Schema({"age": {**AGE, "coarse": [0, 10, 99]}, "x": {"type": "boolean"}})
    fine = np.zeros(100)
    fine[[3, 4, 20, 50]] = [30, 10, 5, 15]
    fine[60] = -0.02
    groups = Records({"age": np.repeat([0, 1], 4_000), "x": np.zeros(8_000, int)}, Codec(schema).domain)
    made = Codec(schema).restore(groups, [Measurement(("age",), fine, 0.01)], np.random.default_rng(0))
    counts = np.bincount(made["age"], minlength=100)
    assert min(counts[3] + counts[4], counts[20] + counts[50]) >= 3_990
    assert abs(counts[3] - 3_000) <= 10
    assert abs(counts[50] / 4_000 - 0.9) < 0.2


def test_fine_values_are_even_where_all_is_noise() -> None:
    schema = Schema({"age": {**AGE, "coarse": 2}, "x": {"type": "boolean"}})
    rng = np.random.default_rng(0)
    truth = np.repeat([20.0, 0.0], 50)
    truth[60] = 1_000
    fine = Measurement(("age",), truth + rng.normal(0, 30, 100), 30.0)
    groups = Records({"age": np.repeat([0, 1], 50_000), "x": np.zeros(100_000, int)}, Codec(schema).domain)
    made = Codec(schema).restore(groups, [fine], np.random.default_rng(0))
    shares = np.bincount(made["age"], minlength=100) / 50_000
    noisy = np.maximum(fine.values[:50], 0) / np.maximum(fine.values[:50], 0).sum()
    assert np.abs(shares[:50] - 0.02).sum() < 0.5 * np.abs(noisy - 0.02).sum()
    assert shares[60] > 0.8, "what stands out stays"


def test_a_bin_without_values_of_the_type_is_refused() -> None:
    columns: dict[str, Any] = {"x": {"type": "number", "bins": [0, 0.2, 0.8, 5]}, "y": {"type": "boolean"}}
    schema = Schema(columns, constraints=[{"forbid": {"x": {"below": 0.2}, "y": True}}])
    whole = pa.table({"x": pa.array([1, 2, 3]), "y": [True, False, True]})
    with pytest.raises(
        SchemaError, match=r"column 'x' has a bin without any value of type int64.*declare it as integer"
    ):
        chicle.Independent(epsilon=1, delta=1e-9).fit(whole, schema)
    chicle.Independent(epsilon=1, delta=1e-9).fit(pa.table({"x": [1.0, 2, 3], "y": whole["y"]}), schema)


def test_a_determined_column_follows_a_combined_one() -> None:
    cities = ["Lyon", "Nice", "Bonn"]
    schema = Schema(
        {
            "city": {"type": "categorical", "values": cities},
            "age": {**AGE, "coarse": 4},
            "state": {"determined_by": "city", "map": {"Lyon": "F", "Nice": "F", "Bonn": "D"}},
        },
        combine={"who": ["city", "age"]},
    )
    assert Codec(schema).domain == Domain({"who": 12})
    rng = np.random.default_rng(0)
    city = rng.choice(cities, 500)
    table = pd.DataFrame({"city": city, "age": rng.integers(0, 99, 500), "state": np.where(city == "Bonn", "D", "F")})
    made = chicle.Prism(epsilon=1, delta=1e-9).fit(table, schema).sample(300, seed=0)
    assert list(made) == list(table)
    assert (made.dtypes == table.dtypes).all()
    assert ((made["state"] == "D") == (made["city"] == "Bonn")).all()


def test_many_combinations_and_rows_take_little_time() -> None:
    rng = np.random.default_rng(0)
    counties = {f"state {s}": [f"county {s}.{c}" for c in range(60)] for s in range(50)}
    schema = Schema(
        {
            "state": {"type": "categorical", "values": list(counties)},
            "county": {"type": "categorical", "values": [county for each in counties.values() for county in each]},
            "age": AGE,
            "marital": MARITAL,
        },
        constraints=[
            {"allow": ["state", "county"], "combinations": counties},
            {"if": {"age": {"below": 15}}, "then": {"marital": ["never", None]}},
        ],
    )
    made = Codec(schema).restore(random_records(schema.domain, 200_000, 0), (), rng)
    assert (made["county"] // 60 == made["state"]).all()
    assert not ((made["age"] < 15) & (made["marital"] % 3 > 0)).any()


def test_a_file_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        """
        columns:
          age: {type: integer, min: 0, max: 99, coarse: [0, 15, 65, 99]}
          marital: {type: categorical, values: [never, married, widowed], missing: true}
          state: {type: categorical, values: [NY, NJ]}
          county: {type: categorical, values: [Kings, Queens, Essex]}
          cars: {type: integer, min: 0, max: 3}
        combine:
          place: {columns: [state, county], combinations: {NY: [Kings, Queens], NJ: Essex}, others: [NJ, Essex]}
        constraints:
          - forbid: {age: {below: 15}, marital: [married, widowed]}
          - if: {age: {below: 15}}
            then: {cars: 0}
          - allow: [marital, cars]
            combinations: [[[never, null], {to: 1}], [married, {from: 0}], [widowed, 0]]
        """,
        encoding="utf-8",
    )
    schema = Schema.load(path)
    assert Codec(schema).domain == Domain({"age": 3, "marital": 4, "place": 3, "cars": 4})
    assert [one.columns for one in schema.constraints] == [("age", "marital"), ("age", "cars"), ("marital", "cars")]
    assert Schema.from_dict(schema.to_dict()) == schema
    shown = repr(schema)
    assert "place: combines state, county" in shown
    assert "never violated: the constraint `allow` on 'marital' and 'cars'" in shown


def test_a_recoding_keeps_the_rows_a_person_has() -> None:
    schema = Schema({"a": 4, "b": 3}, max_records_per_person=5, combine={"both": ["a", "b"]})
    records = read_records({"a": [0, 3], "b": [1, 2]}, schema)
    assert Codec(schema).recode(records).max_records_per_person == 5
    assert Codec(schema).max_records_per_person == 5
    attributes = Attributes({"a": Integer(min=0, max=3)}, {})
    assert not attributes.changes
    assert without_zeros([Measurement(("a",), np.ones(4), 1.0)], (), attributes)[0].values.tolist() == [1] * 4
