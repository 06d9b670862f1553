"""Linked tables: neighbours are a parent with all its children; one of them is one wide row, and nothing else moves."""

import zipfile
from collections import Counter
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import Ledger, Schema
from chicle.codecs import Codec
from chicle.counting.countable import UNITS
from chicle.linked.join import join
from chicle.linked.wide import widen
from chicle.privacy import TestNoise
from chicle.privacy.events import GaussianEvent
from chicle.schema.linked import LinkedSchema
from chicle.sources.linked import LinkedSource
from tests.linked_tables import DECLARED, hospital
from tests.privacy.test_replay import NoNoise, Tape, check_same, said


def tiny(most: int, wide: int | None = None) -> LinkedSchema:
    limit = {"max_per_parent": most, **({} if wide is None else {"wide": wide})}
    schema = Schema.from_dict(
        {
            "tables": {
                "p": {"key": "id", "columns": {"x": 2}},
                "c": {
                    "parent": "p",
                    "key": "id",
                    "order": "at",
                    **limit,
                    "columns": {"y": 2, "at": {"type": "identifier"}},
                },
            }
        }
    )
    assert isinstance(schema, LinkedSchema)
    return schema


def rows_of(schema: LinkedSchema, parents: list[int], children: list[tuple[int, int, int]], lot: int) -> list[Any]:
    """The wide rows of parents (their x; the key is the place) and children (parent, order, y)."""
    own, at, y = (np.array([one[i] for one in children], dtype=np.int64) for i in range(3))
    joined = join(pa.chunked_array([np.arange(len(parents))]), pa.chunked_array([own]), at)
    wide = widen(schema, {"x": np.array(parents, dtype=np.uint8)}, {"y": y.astype(np.uint8)}, joined, lot)
    return list(zip(*(wide[name].tolist() for name in wide.domain), strict=True))


FAMILIES: list[tuple[int, tuple[tuple[int, int], ...]]] = [
    (x, children)
    for x in range(2)
    for number in range(4)
    for children in product(product(range(2), range(2)), repeat=number)
    if number < 3 or children[0] != children[1]
]


@pytest.mark.parametrize(("most", "wide"), [(1, None), (2, None), (3, None), (3, 1)])
def test_adding_any_family_adds_one_wide_row(most: int, wide: int | None) -> None:
    """Every family of up to three children, beside every family of up to one, with ties in the order and an orphan."""
    schema = tiny(most, wide)
    small = [one for one in FAMILIES if len(one[1]) < 2]
    for (other, theirs), (x, mine) in product(small, FAMILIES):
        children = [(0, at, y) for at, y in theirs] + [(7, 0, 1)]
        before = rows_of(schema, [other], children, lot=3)
        # The new children stand among the old ones.
        more = [(1, at, y) for at, y in mine]
        mixed = more[:1] + children + more[1:]
        after = rows_of(schema, [other, x], mixed, lot=3)
        assert sum((Counter(after) - Counter(before)).values()) == 1
        assert not Counter(before) - Counter(after)
        assert after[0] == before[0], "the other family is as it was"


@given(st.data())
def test_leaving_out_any_family_leaves_the_others_as_they_were(data: st.DataObject) -> None:
    parents = data.draw(st.lists(st.integers(0, 1), min_size=1, max_size=6))
    child = st.tuples(st.integers(0, 7), st.integers(0, 3), st.integers(0, 1))
    children = data.draw(st.lists(child, max_size=25))
    gone = data.draw(st.integers(0, len(parents) - 1))
    schema = tiny(3)
    whole = rows_of(schema, parents, children, lot=0)
    rest = [(one - (one > gone), at, y) for one, at, y in children if one != gone and one < len(parents)]
    assert rows_of(schema, parents[:gone] + parents[gone + 1 :], rest, lot=0) == whole[:gone] + whole[gone + 1 :]


def test_the_lot_of_a_family_depends_on_its_own_children_only() -> None:
    """Each of the later children has the same chance, whoever else is there: 3 sigma bounds on fixed lots."""
    schema = tiny(6, 1)
    family = [(0, at, at % 2) for at in range(5)]
    others = [(1, at, 0) for at in range(6)]
    place = schema.domain.position("c[later].y")
    found = []
    for children in (family, family + others):
        parents = [0] * (1 + (len(children) > 5))
        found.append(np.mean([rows_of(schema, parents, children, lot)[0][place] for lot in range(400)]))
    for share in found:
        assert abs(share - 0.5) < 3 * (0.25 / 400) ** 0.5
    assert found[0] == found[1], "the same lots draw the same children, whoever comes after"


# --- Replay ----------------------------------------------------------------------------------------------------------

CODED = {
    "tables": {
        "p": {"key": "id", "columns": {"a": 2, "b": 7}},
        "c": {
            "parent": "p",
            "key": "id",
            "order": "at",
            "max_per_parent": 4,
            "wide": 2,
            "columns": {
                "u": 3,
                "v": {"type": "integer", "min": 0, "max": 24},
                "at": {"type": "identifier"},
            },
        },
    }
}


def pair(n: int) -> dict[str, Any]:
    rng = np.random.default_rng(n)
    a, b, number = rng.integers(2, size=n), rng.integers(7, size=n), rng.integers(6, size=n)
    of = np.repeat(np.arange(n), number)
    u = (a[of] + rng.integers(2, size=len(of))) % 3
    v = np.minimum(b[of] * 3 + rng.integers(7, size=len(of)), 24)
    return {"p": {"id": np.arange(n), "a": a, "b": b}, "c": {"id": of, "at": np.arange(len(of)), "u": u, "v": v}}


def without(tables: dict[str, Any], key: int) -> dict[str, Any]:
    """The neighbour: one parent less, with all its children."""
    return {name: {column: values[one["id"] != key] for column, values in one.items()} for name, one in tables.items()}


def run(make: Any, tables: Any, monkeypatch: pytest.MonkeyPatch, replayed: Tape | None = None) -> Any:
    tape = Tape(replayed)
    monkeypatch.setattr("chicle.measurements.desk.release_gaussian", tape.release)
    monkeypatch.setattr("chicle.measurements.desk.release_choice", tape.choose)
    monkeypatch.setattr("chicle.linked.wide.secrets.randbits", lambda _: 17)
    synth = make(epsilon=3.0, delta=1e-6)
    ledger = Ledger(synth.budget, noise=TestNoise(11) if replayed is None else NoNoise(11))
    synth.fit(tables, Schema.from_dict(CODED), ledger=ledger)
    assert list(synth.ledger_.events) == tape.events, "nothing is paid for past the door"
    return tape, synth.release_.draw(200, seed=5).records, synth.release_


@pytest.mark.parametrize("mechanism", ["Prism", "AIM", "PrivSyn", "MST", "Independent"])
@pytest.mark.parametrize("n", [1, 900])
def test_a_family_moves_every_release_by_no_more_than_its_event_says(
    mechanism: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, tables = getattr(chicle, mechanism), pair(n)
    fitted = run(make, tables, monkeypatch)
    everybody, _, release = fitted
    if n > 1 and mechanism in ("Prism", "AIM"):
        assert any(len(event.clique or ()) > 1 for event in everybody.events), "or there is little to replay"
    assert all(event.l2_sensitivity == 1 for event in everybody.events if event.clique is not None)
    replayed = run(make, without(tables, n - 1), monkeypatch, everybody)  # the last, so that the others' lots stay
    check_same(fitted, replayed)
    for event, mine, theirs in zip(everybody.events, everybody.exact, replayed[0].exact, strict=True):
        if not isinstance(event, GaussianEvent):
            continue
        moved = np.abs(mine.astype(float) - theirs)
        assert np.linalg.norm(moved.ravel()) <= event.l2_sensitivity * (1 + 1e-12)
        if event.clique is None:
            assert moved.max() <= (4 if mechanism == "PrivSyn-published" else 1) * UNITS
        else:
            assert moved.sum() == 1, "each family is in one cell"
    again = replayed[2]
    assert [said(one) for one in release.transcript.entries] == [said(one) for one in again.transcript.entries]


def test_no_release_is_of_other_children_than_are_kept() -> None:
    """More children than the limit, orphans, and another order of rows: no wide row changes."""
    schema = Schema.from_dict(CODED)
    assert isinstance(schema, LinkedSchema)
    tables = pair(50)
    tables["c"] = {name: values[tables["c"]["at"] < 10**6] for name, values in tables["c"].items()}
    first = LinkedSource(tables, schema).records(Codec(schema))
    rng = np.random.default_rng(0)
    mixed = rng.permutation(len(tables["c"]["id"]))
    more = {name: np.concatenate([values[mixed], values[:3]]) for name, values in tables["c"].items()}
    more["id"][-3:] = 10**6  # of nobody
    second = LinkedSource({**tables, "c": more}, schema).records(Codec(schema))
    for name in first.domain:
        if "before" not in name and "later" not in name:  # these are drawn by lot
            np.testing.assert_array_equal(first[name], second[name])


# --- What is written -------------------------------------------------------------------------------------------------


def test_nothing_private_is_in_the_file(tmp_path: Path) -> None:
    tables = hospital(431)
    for table, key in (("patients", "pid"), ("visits", "patient")):
        tables[table][key] = "canary" + tables[table][key].astype(str)
    schema = Schema.from_dict(DECLARED)
    release = chicle.Prism(epsilon=1, delta=1e-9).fit(tables, schema).release_
    release.save(tmp_path / "r.chicle")
    with zipfile.ZipFile(tmp_path / "r.chicle") as file:
        parts = [file.read(name) for name in file.namelist()]
    for part in (*parts, repr(release).encode(), str(release.marginals().to_pylist()).encode()):
        assert b"canary" not in part
        assert b"secret" not in part
    made = release.sample(seed=0)
    assert made["patients"]["pid"].str.fullmatch("[0-9]+").all(), "keys are fresh"
    assert made["visits"]["patient"].isin(made["patients"]["pid"]).all()


def test_kinds_of_pairs_are_all_paid_for() -> None:
    synth = chicle.Prism(epsilon=3, delta=1e-6).fit(pd_pair(900), Schema.from_dict(CODED))
    release = synth.release_
    told = {frozenset(one.clique) for one in release.measurements if len(one.clique) == 2}
    assert told <= {frozenset(one) for one in combinations(release.domain, 2)}
    assert synth.ledger_.spent <= synth.budget.rho * (1 + 1e-12)


def pd_pair(n: int) -> dict[str, pd.DataFrame]:
    return {name: pd.DataFrame(one) for name, one in pair(n).items()}
