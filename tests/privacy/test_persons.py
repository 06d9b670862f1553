"""Rows a person: the histogram moves by 1 with a person; random rows depend on that person alone; what is released."""

from collections import Counter
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import Budget, Ledger, Schema, SchemaError
from chicle.measurements.persons import PersonRows, cells_of
from chicle.privacy import TestNoise
from chicle.sources import open_source
from chicle.sources.people import People

rows_of_people = st.lists(st.integers(0, 6), max_size=60)


def tally(ids: list[int], cells: np.ndarray, k: int = 1, persons: int = 10**6) -> list[int]:
    batches = [pa.chunked_array([pa.array(ids[at : at + 7], pa.int64())]) for at in range(0, len(ids), 7)]
    found: list[int] = People("pid", k, persons).tally(lambda: batches, cells).tolist()
    return found


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_sensitivity_is_one_by_enumeration(k: int) -> None:
    """Every table of up to four persons with up to seven rows each, and every person who may leave it."""
    cells = cells_of(k)
    for numbers in combinations_with_replacement(range(1, 8), 4):
        ids = [who for who, number in enumerate(numbers) for _ in range(number)]
        whole = np.array(tally(ids, cells))
        assert whole.sum() == 4
        for gone in range(4):
            moved = whole - tally([who for who in ids if who != gone], cells)
            assert np.abs(moved).sum() == np.sqrt((moved**2).sum()) == 1


@given(ids=rows_of_people, k=st.integers(1, 4), persons=st.sampled_from([20, 1_000]))
def test_the_histogram_is_that_of_the_rows(ids: list[int], k: int, persons: int) -> None:
    cells = cells_of(k)
    expected = np.zeros(len(cells), dtype=int)
    for number in Counter(ids).values():
        expected[np.flatnonzero(cells <= number)[-1]] += 1
    assert tally(ids, cells, k, persons) == expected.tolist()


@given(ids=rows_of_people, k=st.integers(1, 4), who=st.integers(0, 6), persons=st.sampled_from([20, 1_000]))
def test_random_rows_of_a_person_depend_on_nobody_else(ids: list[int], k: int, who: int, persons: int) -> None:
    people = People("pid", k, persons, keep="random")

    def kept(ids: list[int]) -> list[bool]:
        batches = [pa.chunked_array([pa.array(ids[at : at + 5], pa.int64())]) for at in range(0, len(ids), 5)]
        keep, end = people.kept(lambda: batches).again()
        found = [one for batch in batches for one in keep(batch).to_pylist()]
        end()
        return found

    here = kept(ids)
    for person, number in Counter(ids).items():
        assert sum(one for one, of in zip(here, ids, strict=True) if of == person) == min(number, k)
    others = [one for one, of in zip(here, ids, strict=True) if of != who]
    assert kept([of for of in ids if of != who]) == others


def test_every_row_of_a_person_is_as_likely_as_another() -> None:
    counts = np.zeros(6)
    ids = pa.chunked_array([pa.array(np.repeat(np.arange(3_000), 6))])
    keep, _ = People("pid", 2, keep="random").kept(lambda: [ids]).again()
    counts = keep(ids).to_numpy(zero_copy_only=False).reshape(-1, 6).sum(axis=0)
    assert counts.sum() == 6_000
    assert np.abs(counts - 1_000).max() < 5 * np.sqrt(1_000)


def hospital(n: int = 6_000) -> dict[str, Any]:
    """Most patients come once; the first visit is never a return."""
    rng = np.random.default_rng(0)
    number = np.minimum(rng.geometric(0.5, n), 12)
    patient = np.repeat(rng.permutation(n) + 10**6, number)
    again = np.concatenate([np.arange(each) > 0 for each in number]).astype(int)
    return {"patient": patient, "again": again, "sex": patient % 2}


def fitted(table: Any, schema: Schema) -> chicle.Prism:
    ledger = Ledger(Budget(epsilon=1, delta=1e-9), noise=TestNoise(0))
    return chicle.Prism(epsilon=1, delta=1e-9).fit(table, schema, ledger=ledger)


def test_a_release_knows_how_many_rows_persons_have(tmp_path: Path) -> None:
    table = hospital(30_000)
    rows = Counter(Counter(table["patient"].tolist()).values())
    out = sum(max(number - 3, 0) * of for number, of in rows.items()) / len(table["again"])
    schema = Schema({"again": 2, "sex": 2}, person="patient", max_records_per_person=3)
    plan = chicle.Prism(epsilon=1, delta=1e-9).plan(schema)
    assert plan.steps[0].release == "rows a person"
    synth = fitted(table, schema)
    release = synth.release_
    assert release.persons is not None
    assert synth.ledger_.spent <= synth.budget.rho
    assert release.persons.left_out == pytest.approx(out, abs=0.04)
    assert any("were left out, because their persons had more than 3" in note for note in release.notes)
    made = release.sample(seed=1)
    assert made["patient"].type == pa.int64()
    per_person = Counter(Counter(np.asarray(made["patient"]).tolist()).values())
    assert max(per_person) == 3
    persons, patients = sum(per_person.values()), 30_000
    assert persons == pytest.approx(patients, rel=0.1)
    assert per_person[1] / persons == pytest.approx(rows[1] / patients, abs=0.05)
    release.save(tmp_path / "a.chicle")
    with pytest.warns(UserWarning, match="NOT PRIVATE"):
        again = chicle.load(tmp_path / "a.chicle")
    assert again.persons is not None
    assert again.persons.values.tolist() == release.persons.values.tolist()
    assert (np.asarray(again.sample(seed=1)["patient"]) == np.asarray(made["patient"])).all()
    parts = pa.concat_tables(release.sample_parts(seed=1, rows=1_000))
    assert parts["patient"].to_pylist() == np.asarray(made["patient"]).tolist()


def test_random_rows_are_like_the_table_and_the_first_are_not() -> None:
    table = hospital()
    truth = table["again"].mean()
    shares = {}
    for keep in ("first", "random"):
        schema = Schema({"again": 2, "sex": 2}, person="patient", keep=keep)
        assert Schema.from_dict(schema.to_dict()) == schema
        made = fitted(table, schema).sample(seed=0)
        shares[keep] = np.asarray(made["again"]).mean()
        assert len(set(np.asarray(made["patient"]).tolist())) == len(made["patient"])
    assert shares["first"] < 0.05 < truth - 0.2
    assert shares["random"] > shares["first"] + 0.1


def test_batches_that_can_be_read_once() -> None:
    table = pa.table(hospital(500))
    schema = Schema({"again": 2, "sex": 2}, person="patient", keep="random")
    with pytest.raises(SchemaError, match=r"`keep: random`, which reads the table twice"):
        open_source(iter([table]), schema)
    first = Schema({"again": 2, "sex": 2}, person="patient")
    release = chicle.Independent(epsilon=1, delta=1e-9).fit(iter([table]), first).release_
    assert release.persons is None
    for wrong in ({"most": 2, "keep": "last"}, {"keep": "first"}, {"most": 0}):
        with pytest.raises(SchemaError, match=r"keep must be|max_records must be"):
            Schema.from_dict({"person": "patient", "max_records": wrong, "columns": {"sex": 2}})


def test_noise_alone_makes_no_persons_of_many_rows() -> None:
    rng = np.random.default_rng(0)
    values = np.rint(rng.normal(0, 50, len(cells_of(40)))).astype(int)
    values[0] += 20_000
    found = PersonRows(values, 50.0, 40, protected=True)
    assert found.left_out < 0.05
    assert f"between 0% and {found.left_out + 2 * found.left_out_error:.0%})" in found.note()
    assert found.kept[0] > 0.98
    assert found.assign(0, rng).tolist() == []
    assert len(found.assign(1_000, rng)) == 1_000


def test_an_evaluation_says_what_the_limit_leaves_out() -> None:
    table = hospital(2_000)
    schema = Schema({"again": 2, "sex": 2}, person="patient")
    made = {"patient": np.arange(500), "again": np.zeros(500, int), "sex": np.arange(500) % 2}
    found = chicle.evaluate(table, made, schema)
    number = np.array(list(Counter(table["patient"].tolist()).values()))
    first, second = found.notes
    assert f"{(number - 1).sum() / number.sum():.1%} of the rows are left out" in first
    assert f"{np.maximum(number - 3, 0).sum() / number.sum():.1%} at 3" in second
    assert first in str(found)
    assert chicle.evaluate(made, made, Schema({"patient": 500, "again": 2, "sex": 2})).notes == ()
