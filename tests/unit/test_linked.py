"""Linked tables: declared, joined, made wide, fitted, taken apart, saved, evaluated."""

import copy
import math
import pickle
import re
from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chicle
from chicle import ParameterError, Records, Schema, SchemaError
from chicle.codecs import Codec
from chicle.linked.deck import donors
from chicle.linked.join import join, sortable
from chicle.linked.narrow import narrow
from chicle.linked.remarks import remarks
from chicle.linked.wide import widen
from chicle.measurements.measurement import Measurement
from chicle.measurements.merges import merge_rare
from chicle.presence import Presence
from chicle.privacy import TestNoise
from chicle.schema.layout import Layout
from chicle.schema.linked import LinkedSchema
from chicle.selection.levels import levels
from chicle.sources import check_table, decode_table, limit_remarks
from chicle.sources.frames import Form
from chicle.sources.linked import LinkedSource
from tests.linked_tables import DECLARED, RULES, TABLES, hospital

BUDGET: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-6}


def declared(change: Callable[[dict[str, Any]], Any] | None = None) -> LinkedSchema:
    told = copy.deepcopy(DECLARED)
    if change is not None:
        change(told)
    schema = Schema.from_dict(told)
    assert isinstance(schema, LinkedSchema)
    return schema


def check_families(patients: Any, visits: Any, most: int = 3) -> None:
    """Everything that is promised of synthetic tables, from the values alone."""
    assert patients["pid"].is_unique
    assert visits["patient"].isin(patients["pid"]).all(), "keys match"
    by = visits.groupby("patient", sort=False)
    assert not len(visits) or by.size().max() <= most
    assert (visits["patient"].to_numpy() == np.repeat(by.size().index, by.size())).all(), "a family stands together"
    assert all(one.is_monotonic_increasing for _, one in by["day"]), "order is kept"
    later = visits.duplicated("patient", keep="last")
    assert not (visits["end"] == "dead")[later].any(), "nobody comes back"
    assert by["ward"].apply(lambda wards: (wards != "D").any()).all()
    assert (visits["cost"][visits["ward"] == "D"] >= 200).all()
    assert "note" not in visits


# --- Declarations ----------------------------------------------------------------------------------------------------


def test_the_wide_row_is_one_schema() -> None:
    schema = declared()
    assert list(schema.domain)[:4] == ["sex", "born", "number of visits", "visits[1].day"]
    assert schema.domain["number of visits"] == 4
    assert schema.domain["visits[2].ward"] == 6, "four wards, missing, nobody"
    assert schema.max_records_per_person == 1
    assert schema.person is None
    assert schema.assumption is None
    assert "never violated" in str(schema)
    assert len(schema.notes) == 1


@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_a_declaration_survives_its_file(ending: str, tmp_path: Path) -> None:
    schema = declared(lambda told: told["tables"]["visits"].update(max_per_parent=9, wide=2, min_per_parent=1))
    schema.save(tmp_path / f"s.{ending}")
    again = Schema.load(tmp_path / f"s.{ending}")
    assert again == schema
    assert again.domain == schema.domain
    assert Schema.from_dict(schema.to_dict()).constraints[0].columns == schema.constraints[0].columns


def visit(told: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = told["tables"]["visits"]
    return found


WRONG: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "no key": (lambda t: t["tables"]["patients"].pop("key"), "table 'patients': write `key:`"),
    "no key of the child": (lambda t: visit(t).pop("key"), "table 'visits': write `key:`.*of 'patients'"),
    "unknown parent": (
        lambda t: visit(t).update(parent="people"),
        "table 'visits': its parent 'people' is not declared",
    ),
    "cycle": (
        lambda t: t["tables"]["patients"].update(parent="visits"),
        "'patients' -> 'visits' -> 'patients' is a cycle",
    ),
    "own parent": (lambda t: visit(t).update(parent="visits"), "'visits' -> 'visits' is a cycle"),
    "chain": (
        lambda t: t["tables"].update(drugs={"parent": "visits", "key": "no", "max_per_parent": 2, "columns": {"d": 2}}),
        "table 'drugs': 'drugs' -> 'visits' -> 'patients' is a chain of 3 tables",
    ),
    "two children": (
        lambda t: t["tables"].update(
            drugs={"parent": "patients", "key": "p", "max_per_parent": 2, "columns": {"d": 2}}
        ),
        "linked tables are one parent and one child",
    ),
    "one table": (lambda t: t["tables"].pop("visits"), "linked tables are one parent and one child"),
    "no limit": (lambda t: visit(t).pop("max_per_parent"), "table 'visits': write `max_per_parent:`"),
    "no children": (lambda t: visit(t).update(max_per_parent=0), "max_per_parent must be an integer from 1 to 250"),
    "more than the most": (
        lambda t: visit(t).update(min_per_parent=4),
        "min_per_parent must be an integer from 0 to 3",
    ),
    "wider than the most": (lambda t: visit(t).update(wide=4), "wide must be an integer from 1 to 3"),
    "unknown key": (lambda t: visit(t).update(maximum=4), "table 'visits' has no 'maximum'"),
    "a person": (lambda t: t["tables"]["patients"].update(person="pid"), "table 'patients' has no 'person'"),
    "unknown top key": (lambda t: t.update(columns={}), "a schema of linked tables has no 'columns'"),
    "no columns": (lambda t: visit(t).update(columns={}), "table 'visits' declares no columns"),
    "modelled key": (lambda t: visit(t).update(key="ward"), "table 'visits', column 'ward': it is the key"),
    "dropped key": (lambda t: visit(t).update(key="note"), "table 'visits', column 'note': it is the key"),
    "unknown order": (
        lambda t: visit(t).update(order="date"),
        "table 'visits', column 'date': it is the `order`, but not",
    ),
    "order without one": (lambda t: visit(t).update(order="ward"), "table 'visits', column 'ward': .* has none"),
    "dropped order": (lambda t: visit(t).update(order="note"), "table 'visits', column 'note': .* has none"),
    "open column": (
        lambda t: visit(t)["columns"].update(drug={"type": "open"}),
        "table 'visits', column 'drug': linked tables have no values or bins that are discovered",
    ),
    "coarse child": (
        lambda t: visit(t)["columns"]["cost"].update(coarse=2),
        "table 'visits', column 'cost': `coarse` is for tables without a parent",
    ),
    "wrong column": (lambda t: visit(t)["columns"].update(x={"type": "intger"}), "table 'visits': column 'x'"),
    "wrong constraint": (
        lambda t: visit(t).update(constraints=[{"forbid": {"wrd": "A", "end": "dead"}}]),
        "table 'visits': constraint 1: 'wrd' is not a modelled column",
    ),
    "rule of the parent": (
        lambda t: t.update(constraints=[{"some": {"patients": {"sex": "f"}}}]),
        "constraint 1: some must name the child table 'visits'",
    ),
    "rule of an unknown column": (
        lambda t: t.update(constraints=[{"last": {"visits": {"edn": "dead"}}}]),
        "constraint 1: 'edn' is not a modelled column of 'visits'; .*end",
    ),
    "rule of a plain table": (
        lambda t: t.update(constraints=[{"forbid": {"sex": "f"}}]),
        "constraint 1: a rule across linked tables is `last` or `some`",
    ),
    "rule without a value": (
        lambda t: t.update(constraints=[{"last": {"visits": {"end": ["home", "dead"]}}}]),
        "constraint 1: last names none of the values of 'visits', or all of them",
    ),
    "name of a file": (
        lambda t: t["tables"].update({"../x": t["tables"].pop("patients")}),
        "a table's name must be a plain word",
    ),
    "name of the wide row": (
        lambda t: t["tables"]["patients"]["columns"].update({"number of visits": 3}),
        "table 'patients', column 'number of visits': this name is needed",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_declarations_name_table_and_column(case: str) -> None:
    change, message = WRONG[case]
    with pytest.raises(SchemaError, match=message) as refusal:
        declared(change)
    assert "\n" not in str(refusal.value)


def change_of(name: str, change: Callable[[Any], Any]) -> dict[str, Any]:
    tables = hospital()
    return {**tables, name: change(tables[name])}


GIVEN: dict[str, tuple[Any, str]] = {
    "a frame": (hospital()["visits"], "linked tables are given by name"),
    "one is missing": ({"patients": hospital()["patients"]}, "table 'visits' is declared but not given"),
    "one too many": ({**hospital(), "drugs": hospital()["visits"]}, "table 'drugs' is given but not declared"),
    "a column is missing": (
        change_of("visits", lambda v: v.drop(columns="ward")),
        "table 'visits': column 'ward' is declared but not in the table",
    ),
    "the key is missing": (
        {**hospital(), "visits": hospital()["visits"].drop(columns="patient")},
        "table 'visits': column 'patient' is the `key`, but not in the table",
    ),
    "the key is not unique": (
        change_of("patients", lambda p: pd.concat([p, p.head(1)])),
        "table 'patients', column 'pid': a key occurs in several rows",
    ),
    "a key is missing in a row": (
        change_of("visits", lambda v: v.assign(patient=v["patient"].where(v["patient"] > 5))),
        "table 'visits', column 'patient' has missing values",
    ),
    "keys of two types": (
        change_of("visits", lambda v: v.assign(patient=v["patient"].astype(str))),
        "table 'visits', column 'patient' holds text, but the key 'pid' of 'patients' holds integers",
    ),
    "a value outside": (
        change_of("visits", lambda v: v.assign(cost=-7_654_321.0)),
        "table 'visits': column 'cost' has a number outside its bounds",
    ),
    "a rule is broken": (
        change_of("visits", lambda v: v.assign(end="dead")),
        "table 'visits' has rows that violate the constraint `last` on 'end'",
    ),
}


@pytest.mark.parametrize("case", GIVEN)
def test_tables_that_do_not_fit_cost_nothing(case: str) -> None:
    given, message = GIVEN[case]
    ledger = chicle.Ledger(chicle.Budget(**BUDGET))
    with pytest.raises(SchemaError, match=message) as refusal:
        chicle.Prism(**BUDGET).fit(given, declared(), ledger=ledger)
    assert not ledger.events
    assert "7654321" not in str(refusal.value).replace("_", "")


def test_a_parent_with_too_few_children_is_refused() -> None:
    schema = declared(lambda told: visit(told).update(min_per_parent=1))
    with pytest.raises(SchemaError, match="table 'patients' has a row with fewer than 1 rows of 'visits'"):
        LinkedSource(hospital(), schema).records(Codec(schema))


def test_tables_are_checked_each_and_together() -> None:
    schema, tables = declared(), hospital()
    assert check_table(tables, schema).fits
    assert check_table(tables["visits"], schema.tables["visits"]).fits
    assert len(limit_remarks(tables, schema)) == 2
    wrong = {"patients": tables["patients"].assign(sex="x"), "visits": tables["visits"].assign(cost=-7_654_321.0)}
    found = check_table(wrong, schema)
    assert [text.split(" has")[0] for text in found.problems] == [
        "table 'patients': column 'sex'",
        "table 'visits': column 'cost'",
    ]
    assert "7654321" not in str(found)
    assert list(check_table(wrong, schema, show=1).values) == ["patients.sex", "visits.cost"]
    for case in ("the key is not unique", "a rule is broken", "keys of two types", "the key is missing"):
        given, message = GIVEN[case]
        (problem,) = check_table(given, schema).problems
        assert re.search(message, problem), case
    with pytest.raises(SchemaError, match="linked tables are given by name"):
        check_table(tables["visits"], schema)


def test_analyses_public_data_and_parts_are_refused() -> None:
    schema, tables = declared(), hospital()
    with pytest.raises(SchemaError, match="declared analyses are of one table"):
        chicle.Prism(**BUDGET).fit(tables, schema, analyses=chicle.Linear("born ~ sex"))
    with pytest.raises(ParameterError, match="leave `public` out"):
        chicle.PMWPub(**BUDGET).fit(tables, schema, public=tables)
    synth = chicle.Independent(**BUDGET).fit(tables, schema)
    with pytest.raises(ParameterError, match="not made in parts"):
        list(synth.release_.sample_parts(10, seed=0))
    with pytest.raises(ParameterError, match="made on this machine"):
        synth.release_.sample_spark(None, 10)
    with pytest.raises(ParameterError, match="linked tables have no partition yet"):
        chicle.Prism(**BUDGET).fit(tables, schema, partition=["sex"])
    with pytest.raises(ParameterError, match="label is measured of one table"):
        chicle.evaluate(tables, tables, schema, label="sex")
    with pytest.raises(SchemaError, match="column of children has no values of its own"):
        synth.release_.sample(where={"visits[1].ward": "A"})


def test_columns_of_parents_can_be_given() -> None:
    tables = hospital()
    release = chicle.Prism(**BUDGET).fit(tables, declared()).release_
    women = release.sample(150, seed=0, where={"sex": "f"})
    assert set(women["patients"]["sex"]) == {"f"}
    check_families(women["patients"], women["visits"])
    known = tables["patients"][["born", "sex"]]
    made = release.sample(given=known, seed=0)
    assert made["patients"]["sex"].tolist() == known["sex"].tolist()
    assert made["patients"]["born"].astype("Int64").equals(known["born"].astype("Int64").reset_index(drop=True))
    check_families(made["patients"], made["visits"])


def test_a_release_is_pickled_and_drawn_again() -> None:
    release = chicle.Prism(**BUDGET).fit(hospital(), declared()).release_
    first = release.sample(seed=0)
    again = pickle.loads(pickle.dumps(release)).sample(seed=0)  # noqa: S301 - our own
    assert all(again[name].equals(first[name]) for name in first)
    assert len(list(release.draws(m=2, seed=0))) == 3
    assert release.error_bounds()


# --- Joins -----------------------------------------------------------------------------------------------------------


@given(st.data())
def test_children_are_joined_as_by_a_loop(data: st.DataObject) -> None:
    keys = data.draw(st.lists(st.integers(-5, 20), unique=True, max_size=8))
    rows = data.draw(st.lists(st.tuples(st.integers(-5, 20), st.integers(0, 3)), max_size=30))
    joined = join(
        pa.chunked_array([pa.array(keys, pa.int32())]),
        pa.chunked_array([pa.array([key for key, _ in rows], pa.int64())]),
        np.array([order for _, order in rows], dtype=np.int64),
    )
    found = []
    for place, key in enumerate(keys):
        own = sorted((order, row) for row, (one, order) in enumerate(rows) if one == key)
        found += [(row, place, at) for at, (_, row) in enumerate(own)]
        assert joined.numbers[place] == len(own)
    assert list(zip(joined.rows.tolist(), joined.parent.tolist(), joined.place.tolist(), strict=True)) == found
    assert joined.orphans == sum(key not in keys for key, _ in rows)


@pytest.mark.parametrize(
    "values",
    [[3, 1, 2], ["b", "a", None], [2.5, None, -1.0], [None, None, None], [True, False, None], []],
    ids=str,
)
def test_values_are_sorted_with_missing_last(values: list[Any]) -> None:
    found = sortable(pa.chunked_array([pa.array(values)]))
    order = sorted(
        range(len(values)), key=lambda i: (values[i] is None, values[i]) if values[i] is not None else (True, 0)
    )
    assert np.argsort(found, kind="stable").tolist() == order


def naive_wide(schema: LinkedSchema, tables: dict[str, Any]) -> list[tuple[int, ...]]:
    """The wide rows by a loop over patients, without later slots."""
    own, theirs = schema.tables["patients"], schema.tables["visits"]
    parents = Codec(own).codes(
        {n: pa.chunked_array([pa.array(tables["patients"][n])]) for n in own.domain}, [*own.domain]
    )
    children = Codec(theirs).codes(
        {n: pa.chunked_array([pa.array(tables["visits"][n], from_pandas=True)]) for n in theirs.domain},
        [*theirs.domain],
    )
    visits = tables["visits"].reset_index(drop=True)
    rows = []
    for i, key in enumerate(tables["patients"]["pid"]):
        mine = visits[visits["patient"] == key].sort_values("day", kind="stable").index[: schema.layout.most]
        row = [int(parents[name][i]) for name in own.domain] + [len(mine)]
        for place, name in product(range(schema.layout.wide), theirs.domain):
            row.append(int(children[name][mine[place]]) if place < len(mine) else theirs.domain[name])
        rows.append(tuple(row))
    return rows


@pytest.mark.parametrize("most", [1, 3])
def test_wide_rows_are_those_of_a_loop(most: int) -> None:
    schema, tables = declared(lambda told: visit(told).update(max_per_parent=most)), hospital(80)
    wide = LinkedSource(tables, schema).records(Codec(schema))
    rows = list(zip(*(wide[name].tolist() for name in wide.domain), strict=True))
    assert rows == naive_wide(schema, tables)


def test_a_later_child_is_drawn_with_the_one_before_it() -> None:
    schema = declared(lambda told: (visit(told).update(max_per_parent=6, wide=2), told.pop("constraints")))
    assert schema.layout.slots == {"1": 0, "2": 1, "before": 2, "later": 2}
    number = np.array([0, 2, 3, 6])
    of = np.repeat(np.arange(4), number)
    columns: dict[str, Any] = {"day": of * 0, "ward": of * 0, "cost": of * 0, "end": of * 0}
    columns["day"] = np.concatenate([np.arange(one) for one in number])  # tells the place
    parents: dict[str, Any] = {"sex": np.zeros(4, int), "born": np.zeros(4, int)}
    joined = join(pa.chunked_array([np.arange(4)]), pa.chunked_array([of]))
    met = []
    for lot in range(60):
        wide = widen(schema, parents, columns, joined, lot)
        before, later = wide["visits[before].day"].astype(int), wide["visits[later].day"].astype(int)
        nobody = schema.domain["visits[later].day"] - 1
        assert before[:2].tolist() == later[:2].tolist() == [nobody, nobody]
        assert (before[2], later[2]) == (1, 2)
        assert later[3] - before[3] == 1
        met.append(int(later[3]))
    # Each of four places has chance 1/4: one is never drawn in 60 with probability 4 * .75^60 = 1.3e-7, but the lots
    # are fixed, so this does not vary.
    assert set(met) == {2, 3, 4, 5}


def test_remarks_say_what_is_left_out() -> None:
    schema = declared()
    first, second = remarks(schema.layout, LinkedSource(hospital(), schema).joined()[1])
    assert first.startswith("5 rows of 'visits' have no row of 'patients'")
    assert "the first 3 of 'visits' are kept" in second


# --- Presence --------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(0, 1), st.integers(1, 4))
def test_what_is_expected_given_presence_is_a_sum_over_everything(seed: int, least: int, most: int) -> None:
    """Against the joint distribution of all attributes, written out."""
    rng = np.random.default_rng(seed)
    layout = Layout(
        "p", "c", ("x",), ("a", "b"), least=least, most=max(most, least, 1), wide=min(2, max(most, least, 1))
    )
    presence = layout.presence
    sizes = {"x": 2, layout.number: layout.most - least + 1}
    sizes.update({name: 2 + presence.optional(name) for name in presence.thresholds})
    raw = {name: rng.dirichlet(np.ones(size)) for name, size in sizes.items()}
    shares = presence.consistent(raw)
    for name, one in shares.items():
        assert math.isclose(one.sum(), 1), name
        if presence.optional(name):
            there = shares[layout.number][least + np.arange(sizes[layout.number]) > presence.thresholds[name]].sum()
            assert math.isclose(1 - one[-1], there, abs_tol=1e-9)
    names = list(sizes)
    clique = tuple(sorted(rng.choice(names, size=rng.integers(1, 4), replace=False), key=names.index))
    table = np.zeros([sizes[name] for name in clique])
    for cell in product(*(range(sizes[name]) for name in clique)):
        for code, mass in enumerate(shares[layout.number]):
            chance = mass
            for name, value in zip(clique, cell, strict=True):
                if name == layout.number:
                    chance *= value == code
                elif not presence.optional(name):
                    chance *= shares[name][value]
                elif least + code > presence.thresholds[name]:
                    values = shares[name][:-1] / shares[name][:-1].sum() if shares[name][:-1].sum() > 0 else [0.5, 0.5]
                    chance *= 0.0 if value == 2 else values[value]
                else:
                    chance *= value == 2
            table[cell] += chance
    np.testing.assert_allclose(presence.expected(clique, shares, 50.0), 50 * table, atol=1e-9)
    buckets = {clique[0]: np.minimum(np.arange(sizes[clique[0]]), 1)}
    merged = np.stack([table[:1].sum(axis=0), table[1:].sum(axis=0)])[: int(buckets[clique[0]].max()) + 1]
    np.testing.assert_allclose(presence.expected(clique, shares, 50.0, buckets), 50 * merged, atol=1e-9)


def test_impossible_cells_are_those_that_constraints_forbid() -> None:
    schema = declared(lambda told: (told.pop("constraints"), visit(told).pop("constraints")))
    zeros = Codec(schema).zeros
    for pair in combinations([schema.layout.number, *schema.layout.slot("1"), *schema.layout.slot("3")], 2):
        expected = schema.presence.impossible(pair, schema.domain)
        found = zeros.get(pair, np.zeros(schema.domain.shape(pair), dtype=bool))
        np.testing.assert_array_equal(found, expected, str(pair))


def test_no_wide_row_is_in_an_impossible_cell() -> None:
    schema = declared()
    wide = LinkedSource(hospital(), schema).records(Codec(schema))
    for clique, cells in Codec(schema).zeros.items():
        (counts,) = wide.count([clique])
        assert not counts[cells].any(), clique


@given(st.lists(st.integers(-30, 400), min_size=2, max_size=40), st.integers(1, 3), st.booleans(), st.booleans())
def test_nobody_is_never_joined_with_a_value(counts: list[int], apart: int, ordinal: bool, vanish: bool) -> None:
    apart = min(apart, len(counts) - 1)
    one_way = Measurement(("a",), np.array(counts), 20.0)
    merge = merge_rare(
        [one_way], {"a": len(counts)}, ordinal=["a"] if ordinal else [], vanish=vanish, apart={"a": apart}
    )
    codes = merge.codes("a")
    last = codes[len(codes) - apart :].tolist()
    assert last == list(range(merge.domain["a"] - apart, merge.domain["a"])), "they stay, and stay last"
    assert not set(codes[: len(codes) - apart]) & set(last)
    seen = np.maximum(merge.over(one_way).values.astype(float), 0)
    for level in levels(seen, ordinal=ordinal, sizes=(20, 10, 5, 3), apart=apart):
        if level.buckets is not None:
            assert len(set(level.buckets.tolist())) == level.size == int(level.buckets.max()) + 1
            assert not set(level.buckets[: len(seen) - apart].tolist()) & set(
                level.buckets[len(seen) - apart :].tolist()
            )
            assert level.size <= 20


# --- Taking wide rows apart ------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.sampled_from([(3, 3, 0), (3, 3, 1), (6, 2, 0), (1, 1, 0)]))
@settings(max_examples=25)
def test_any_wide_rows_become_families(seed: int, rows: int, limits: tuple[int, int, int]) -> None:
    """Even if every cell is drawn evenly, whoever is there."""
    most, wide, least = limits
    schema = declared(lambda told: visit(told).update(max_per_parent=most, wide=wide, min_per_parent=least))
    rng = np.random.default_rng(seed)
    table = Records({name: rng.integers(size, size=rows) for name, size in schema.domain.items()}, schema.domain)
    families = narrow(schema, table, np.random.default_rng(seed))
    number = np.bincount(families.parent, minlength=rows)
    assert (np.diff(families.parent) >= 0).all()
    assert not rows or (number.max() <= most and number.min() >= least)
    if not families.parent.size or rows < 10:
        return
    form = Form("tables", tables={name: Form("pandas") for name in schema.tables})
    made = decode_table(table, Codec(schema), form, rng=np.random.default_rng(seed))
    check_families(made["patients"], made["visits"].astype({"ward": object}), most)


def test_wide_rows_that_were_made_of_families_come_back() -> None:
    schema, tables = declared(), hospital(200)
    source = LinkedSource(tables, schema)
    wide = source.records(Codec(schema))
    families = narrow(schema, wide, np.random.default_rng(0))
    records, joined = source.joined()
    kept = joined.place < 3
    for name in records["patients"]:
        np.testing.assert_array_equal(families.parents[name], records["patients"][name])
    np.testing.assert_array_equal(families.parent, joined.parent[kept])
    for name in records["visits"]:
        np.testing.assert_array_equal(families.children[name], records["visits"][name][joined.rows[kept]])


def test_the_chain_follows_the_child_before() -> None:
    """With a deterministic next child, all later ones are as they must be."""
    told = {
        "tables": {
            "p": {"key": "id", "columns": {"x": 2}},
            "c": {
                "parent": "p",
                "key": "id",
                "order": "at",
                "max_per_parent": 12,
                "wide": 2,
                "columns": {"y": 5, "at": {"type": "identifier"}},
            },
        }
    }
    schema = Schema.from_dict(told)
    assert isinstance(schema, LinkedSchema)
    number = np.random.default_rng(0).integers(0, 13, 4_000)
    of = np.repeat(np.arange(4_000), number)
    at = np.concatenate([np.arange(one) for one in number])
    tables = {
        "p": {"id": np.arange(4_000), "x": np.arange(4_000) % 2},
        "c": {"id": of, "at": at, "y": (of + at * (1 + of % 2)) % 5},
    }
    wide = LinkedSource(tables, schema).records(Codec(schema))
    families = narrow(schema, wide, np.random.default_rng(1))
    np.testing.assert_array_equal(families.parent, of)
    np.testing.assert_array_equal(families.children["y"], tables["c"]["y"])


def test_gaps_are_filled_from_rows_that_are_alike() -> None:
    """A fifth of the slots say nobody although N says otherwise; what follows from the child before still does."""
    told = {
        "tables": {
            "p": {"key": "id", "columns": {"x": 2}},
            "c": {"parent": "p", "key": "id", "max_per_parent": 9, "wide": 2, "columns": {"y": 5, "z": 5}},
        }
    }
    schema = Schema.from_dict(told)
    assert isinstance(schema, LinkedSchema)
    rng = np.random.default_rng(0)
    number = rng.integers(0, 10, 5_000)
    of = np.repeat(np.arange(5_000), number)
    at = np.concatenate([np.arange(one) for one in number])
    y = (rng.integers(0, 5, 5_000)[of] + at) % 5
    tables = {"p": {"id": np.arange(5_000), "x": np.arange(5_000) % 2}, "c": {"id": of, "y": y, "z": (2 * y) % 5}}
    wide = LinkedSource(tables, schema).records(Codec(schema))
    codes = {name: wide[name].copy() for name in wide}
    for label in schema.layout.slots:
        gone = rng.random(5_000) < 0.2
        for name in schema.layout.slot(label):
            codes[name][gone] = schema.domain[name] - 1
    families = narrow(schema, Records(codes, schema.domain), np.random.default_rng(1))
    np.testing.assert_array_equal(families.parent, of)
    made = families.children
    assert (made["z"] == (2 * made["y"].astype(int)) % 5).all(), "a whole child is taken from one row"
    inside = families.parent[1:] == families.parent[:-1]
    follows = made["y"][1:] == (made["y"][:-1].astype(int) + 1) % 5
    # Of two children a fifth lost the first: the second, which was kept, follows it by luck. Later ones always follow.
    place = np.arange(len(of)) - (np.cumsum(number) - number)[of]
    assert follows[inside & (place[:-1] > 0)].mean() > 0.99


def test_records_agree_on_who_is_there() -> None:
    """The model knows what follows from the number, whichever tables were measured."""
    synth = chicle.Prism(epsilon=2, delta=1e-6)
    synth.fit(hospital(3_000), declared(), ledger=chicle.Ledger(synth.budget, noise=TestNoise(3)))
    release = synth.release_
    wide = release.model.records(3_000, seed=0)
    presence = declared().presence
    for name, threshold in presence.thresholds.items():
        there = wide[presence.number] > threshold
        assert np.mean((wide[name] < release.domain[name] - 1) != there) < 0.02, name


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.lists(st.integers(0, 3), min_size=1, max_size=20))
def test_donors_agree_as_far_as_any_does(wanted: list[int], known: list[int]) -> None:
    first, second = np.array(wanted), np.array(known)
    found = donors([first // 2, first % 2], [second // 2, second % 2], np.random.default_rng(0))
    for one, row in zip(wanted, found.tolist(), strict=True):
        if one in known:
            assert known[row] == one
        elif any(other // 2 == one // 2 for other in known):
            assert known[row] // 2 == one // 2


# --- All the way -----------------------------------------------------------------------------------------------------

FRAMES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.from_pandas(
        frame.assign(born=frame["born"].astype("Int64")) if "born" in frame else frame
    ),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_pair_goes_all_the_way(kind: str, tmp_path: Path) -> None:
    tables, schema = {name: FRAMES[kind](one) for name, one in hospital().items()}, declared()
    synth = chicle.Prism(**BUDGET).fit(tables, schema)
    assert synth.ledger_.epsilon() <= 4
    made = synth.sample(seed=0)
    for name, one in made.items():
        assert type(one) is type(tables[name])
    synth.release_.save(tmp_path / "r.chicle")
    again = chicle.load(tmp_path / "r.chicle").sample(seed=0)
    plain = {
        name: pd.DataFrame(one.to_dict(as_series=False)) if kind == "polars" else one for name, one in made.items()
    }
    plain = {name: one.to_pandas() if kind == "pyarrow" else one for name, one in plain.items()}
    assert all(again[name].equals(made[name]) for name in made)
    check_families(plain["patients"], plain["visits"])
    found: Any = chicle.evaluate(tables, made, release=synth.release_)
    assert {one.key for one in found.links} == {"children", "across", "consecutive", "violations"}
    assert found["violations"].value == 0
    assert "NOT PRIVATE" in str(found).splitlines()[0]
    assert found.to_json()


def test_tables_of_files_go_all_the_way(tmp_path: Path) -> None:
    tables, schema = hospital(), declared()
    tables["patients"].to_csv(tmp_path / "patients.csv", index=False)
    for part in range(2):
        visits = pa.Table.from_pandas(tables["visits"].iloc[part::2], preserve_index=False)
        pa.parquet.write_table(visits, tmp_path / f"visits-{part}.parquet")
    given = {"patients": tmp_path / "patients.csv", "visits": str(tmp_path / "visits-*.parquet")}
    made = chicle.AIM(**BUDGET).fit(given, schema).sample(100, seed=3)
    assert len(made["patients"]) == 100
    check_families(made["patients"].to_pandas(), made["visits"].to_pandas())


@pytest.mark.parametrize("mechanism", ["Prism", "AIM", "PrivSyn", "MST", "Independent", "MWEM", "PrivBayes"])
def test_every_mechanism_of_records_makes_families(mechanism: str) -> None:
    synth = getattr(chicle, mechanism)(epsilon=8.0, delta=1e-6)
    made = synth.fit(hospital(300), declared()).sample(seed=1)
    check_families(made["patients"], made["visits"])


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_rows_can_be_drawn(n: int) -> None:
    synth = chicle.Prism(**BUDGET).fit(hospital(300), declared())
    for seed in range(5):
        made = synth.sample(n, seed=seed)
        assert len(made["patients"]) == n


def test_no_rows_can_be_fitted() -> None:
    tables = {name: table.head(0) for name, table in hospital().items()}
    made = chicle.Prism(**BUDGET).fit(tables, declared()).sample(20, seed=0)
    assert len(made["patients"]) == 20


def test_threads_change_nothing() -> None:
    release = chicle.Prism(**BUDGET).fit(hospital(), declared()).release_
    first = release.sample(seed=2, threads=1)
    for threads in (2, 8):
        again = release.sample(seed=2, threads=threads)
        assert all(again[name].equals(first[name]) for name in first)


def test_what_is_learnt_is_near_the_truth() -> None:
    """At a large budget; a wrong join would be far off."""
    tables, schema = hospital(4_000), declared(lambda told: visit(told).update(max_per_parent=6))
    synth = chicle.Prism(epsilon=60, delta=1e-6, allow_weak=True)
    synth.fit(tables, schema, ledger=chicle.Ledger(synth.budget, noise=TestNoise(1)))
    found: Any = chicle.evaluate(tables, synth.sample(seed=0), release=synth.release_)
    for key in ("children", "across", "consecutive"):
        score = found[key]
        assert score.value < 0.5 * score.independent, key


def test_evaluation_of_the_real_tables_is_zero() -> None:
    found: Any = chicle.evaluate(hospital(), hospital(), declared())
    assert all(one.value == 0 for one in found.links)
    assert found["consecutive"].independent > 0.02


def test_a_plan_says_how_the_tables_share_the_budget() -> None:
    schema = declared()
    for mechanism in (chicle.Prism, chicle.AIM):
        plan = mechanism(**BUDGET).plan(schema, n=10_000)
        assert "every release has sensitivity 1" in str(plan)
        assert "weights of pairs take its place: 2 inside 'patients'" in str(plan)
        mine = [step.rho for step in plan.one_ways if step.of in ("sex", "born", schema.layout.number)]
        told = re.search(r"1-ways of 'patients' .* get (\S+) % of the budget, those of 'visits' (\S+) %", str(plan))
        assert told is not None
        assert abs(float(told[1]) / 100 - sum(mine) / plan.budget.rho) < 6e-4
        weights = [float(one) for one in re.findall(r"([\d.]+) % (?=of all weight|inside|between)", plan.notes[1])]
        assert abs(sum(weights) - 100) < 0.3
        inside = sum(schema.workload[pair] for pair in combinations(("sex", "born", schema.layout.number), 2))
        assert abs(weights[0] / 100 - inside / sum(schema.workload.values())) < 6e-4


def test_a_plan_speaks_of_weights_only_where_they_count() -> None:
    asked = chicle.AIM(**BUDGET, workload=[("sex", "born")])
    for synth in (chicle.PrivSyn(**BUDGET), chicle.Independent(**BUDGET), asked):
        plan = str(synth.plan(declared(), n=10_000))
        assert "no fixed split between both tables" in plan
        assert "weights of pairs" not in plan
    assert not chicle.Prism(**BUDGET).plan({"a": 2, "b": 3}).notes


def test_aim_gets_the_workload_of_the_schema() -> None:
    schema = declared()
    synth = chicle.AIM(**BUDGET).fit(hospital(), schema)
    assert synth.workload is None, "parameters stay as they were given"
    stored = chicle.Workload.from_plain(synth.release_.parameters["workload"], synth.release_.domain)
    assert set(stored) == set(schema.workload)


def test_a_report_shows_the_wide_rows(tmp_path: Path) -> None:
    synth = chicle.Independent(**BUDGET).fit(hospital(300), declared())
    public = chicle.report(tmp_path / "public.html", synth.release_).read_text(encoding="utf-8")
    assert "Safe to publish" in public
    assert "visits[1].ward" in public
    private = chicle.report(tmp_path / "private.html", synth.release_, real=hospital(300)).read_text(encoding="utf-8")
    assert "NOT PRIVATE" in private


def test_weights_fall_from_slot_to_slot() -> None:
    workload = Layout("p", "c", ("x",), ("a", "b"), least=0, most=9, wide=2).workload()
    own = {label: workload[f"c[{label}].a", f"c[{label}].b"] for label in ("1", "2", "later")}
    assert math.isclose(0.7 * own["1"], own["2"])
    assert math.isclose(own["later"], own["2"] * 0.7 / (1 - 0.7)), "all later ones together"
    assert ("c[1].a", "c[later].a") not in workload
    assert workload["c[before].a", "c[later].a"] > 0


def test_names_of_rules_and_tables_are_those_declared() -> None:
    assert TABLES["visits"]["parent"] == "patients"
    assert [str(rule) for rule in declared().rules] == [
        f"the constraint `{kind}` on {column!r}" for kind, column in (("last", "end"), ("some", "ward"))
    ]
    assert len(RULES) == 2
    assert Presence.from_plain(declared().presence.to_plain()).thresholds == declared().presence.thresholds
