"""Private bins: what a person moves on each level of the tree, and that edges come from noisy counts alone."""

import datetime as dt
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import chicle
from chicle import Budget, BudgetExceeded, Discovery, Ledger, Schema, SchemaError
from chicle.columns import Integer
from chicle.columns.discovery import Histogram
from chicle.discovery import purchase_of, resolve
from chicle.privacy import GaussianEvent, TestNoise
from chicle.sources import check_table, open_source
from tests.privacy.test_replay import Tape


def bins_of(rows: Sequence[int], k: int, monkeypatch: pytest.MonkeyPatch, replayed: Tape | None, seed: int) -> Any:
    column = Integer(min=0, max=9_999, bins={"private": 4})
    tape = Tape(replayed)
    monkeypatch.setattr("chicle.discovery.edges.release_gaussian", tape.release)
    ledger = Ledger(Budget(rho=1000), noise=TestNoise(seed))
    bought = purchase_of("x", column, rows=k, rho=500.0)
    found, _ = bought.buy(Histogram.of(np.array(rows, dtype=np.int64)), ledger)
    assert ledger.spent <= bought.rho
    return tape, found


@pytest.mark.parametrize("k", [1, 2])
def test_every_neighbour_of_tiny_tables(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each level's counts move by k at most, and the same noisy counts give the same questions and the same bins."""
    most = 0.0
    places = [0, 7, 4_711, 9_999]
    for size in (0, 1, 3):
        for rows in itertools.combinations_with_replacement(places, size):
            everybody, column = bins_of(rows, k, monkeypatch, None, size)
            for person in (p for j in range(1, k + 1) for p in itertools.combinations_with_replacement(places, j)):
                neighbour, same = bins_of([*rows, *person], k, monkeypatch, everybody, size)
                assert same == column
                assert len(neighbour.events) == len(everybody.events)
                for event, mine, theirs in zip(everybody.events, everybody.exact, neighbour.exact, strict=True):
                    moved = float(np.linalg.norm(mine - theirs))
                    assert moved <= event.l2_sensitivity == k
                    assert abs(mine - theirs).sum() <= k
                    most = max(most, moved)
    assert most == k, "and it can be as much"


def table_of(n: int = 5_000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    income = np.where(rng.random(n) < 0.4, 0, np.exp(rng.normal(10, 1, n))).astype(int)
    since = np.datetime64("2000-01-01") + (rng.random(n) ** 3 * 8_000).astype(int)
    seen = np.datetime64("2024-01-01T00:00:00") + (rng.random(n) * 86_400 * 30).astype(int)
    return pd.DataFrame(
        {
            "income": np.minimum(income, 10**7),
            "rate": np.round(rng.random(n) ** 4, 3),
            "since": since.astype("M8[s]"),
            "seen": seen,
            "left": rng.random(n) < 0.3,
        }
    )


SCHEMA = Schema(
    {
        "income": {"type": "integer", "min": 0, "max": 10**7, "bins": "private"},
        "rate": {"type": "number", "min": 0, "max": 1, "bins": {"private": 10}},
        "since": {"type": "date", "min": "1990-01-01", "max": "2029-12-31", "bins": {"private": 12}},
        "seen": {"type": "datetime", "min": "2024-01-01", "max": "2024-01-31", "bins": {"private": 8}},
        "left": {"type": "boolean"},
    }
)
BUDGETS: list[dict[str, Any]] = [
    {"epsilon": 1.0, "delta": 1e-9},
    {"epsilon": 0.01, "delta": 1e-12},
    {"epsilon": 30.0, "delta": 1e-3, "accounting": "zcdp", "allow_weak": True},
    {"rho": 0.1},
    {"mu": 1.0, "discovery": Discovery(share=0.6)},
]


@pytest.mark.parametrize("make", [chicle.Independent, chicle.Prism, chicle.PrivSyn, chicle.MST])
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("n", [0, 1, 5_000])
def test_a_fit_keeps_to_its_budget(make: Any, budget: dict[str, Any], n: int, tmp_path: Path) -> None:
    synth = make(**budget)
    frame = table_of().iloc[:n]
    plan = synth.plan(SCHEMA)
    steps = [step for step in plan.steps if step.release == "bins"]
    assert list(plan.steps[:4]) == steps
    assert sum(step.rho for step in plan.steps) == pytest.approx(plan.budget.rho)
    assert plan.budget == synth.budget, "bins take no delta"
    release = synth.fit(frame, SCHEMA).release_
    ledger = release.ledger
    assert ledger.discovered == 0
    assert 0.99 * ledger.budget.rho < ledger.spent <= ledger.budget.rho, "what bins leave goes to the rest"
    for step in steps:
        bought = [event for event in ledger.events if event.purpose == "bins" and event.clique == (step.of,)]
        assert bought
        assert all(isinstance(event, GaussianEvent) and event.sigma == step.sigma for event in bought)
        assert sum(event.rho("gdp") for event in bought) <= step.rho
    for name in SCHEMA.undiscovered:
        assert 1 <= release.schema.columns[name].size <= SCHEMA.columns[name].size
        assert f"In {name!r}, {release.schema.columns[name].size} bins were discovered." in release.notes
    release.save(tmp_path / "r.chicle")
    again = chicle.load(tmp_path / "r.chicle")
    assert again.schema == release.schema
    made = again.sample(50, seed=1)
    pd.testing.assert_frame_equal(made, release.sample(50, seed=1))
    assert made.dtypes.equals(frame.dtypes)
    if n:
        assert check_table(made, SCHEMA).fits


def test_a_rare_number_makes_no_edge(tmp_path: Path) -> None:
    frame = {"x": [0] * 3_000 + [471_147]}
    schema = Schema({"x": {"type": "integer", "min": 0, "max": 10**6, "bins": "private"}})
    release = chicle.Independent(epsilon=1, delta=1e-9).fit(frame, schema).release_
    release.save(tmp_path / "r.chicle")
    bins = release.schema.columns["x"].to_dict()["bins"]
    assert 0 in bins
    assert 1 in bins, "what is frequent has a bin of its own"
    assert 471_147 not in bins
    assert 471_148 not in bins
    assert b"471147" not in (tmp_path / "r.chicle").read_bytes()


@pytest.mark.parametrize(
    ("told", "values", "rule"),
    [
        ({"type": "integer", "min": 0, "max": 99}, [1, 4711], "outside its bounds"),
        ({"type": "integer", "min": 0, "max": 99}, [1, 47.11], "with a fraction"),
        ({"type": "number", "min": 0, "max": 99}, [0.5, 4711], "outside its bounds"),
        ({"type": "number", "min": 0, "max": 99}, [0.5, None, 4.711], "missing values"),
        ({"type": "number", "min": 0, "max": 99}, ["many"], "holds text"),
        ({"type": "date", "min": "2020-01-01", "max": "2020-12-31"}, [dt.date(4711, 1, 1)], "outside its bounds"),
        ({"type": "datetime", "min": "2020-01-01", "max": "2020-12-31"}, ["4711"], "not of the form"),
    ],
)
def test_what_does_not_fit_costs_nothing(told: dict[str, Any], values: list[Any], rule: str) -> None:
    schema = Schema({"x": {**told, "bins": "private"}})
    ledger = Ledger(Budget(epsilon=1, delta=1e-9))
    with pytest.raises(SchemaError, match=rule) as refusal:
        chicle.Independent(epsilon=1, delta=1e-9).fit({"x": values}, schema, ledger=ledger)
    assert "4711" not in str(refusal.value)
    assert ledger.events == ()
    assert rule in str(check_table({"x": values}, schema))


def test_a_spent_ledger_refuses() -> None:
    ledger = Ledger(Budget(rho=1e-6))
    with pytest.raises(BudgetExceeded):
        chicle.Independent(rho=0.1).fit(table_of(), SCHEMA, ledger=ledger)
    assert ledger.events == ()


def test_only_the_first_rows_of_a_person_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    tape = Tape()
    monkeypatch.setattr("chicle.discovery.edges.release_gaussian", tape.release)
    frame = {"who": [1, 1, 1, 2, 1, 3], "x": [5, 5, 900, 7, 900, 5]}
    told = {"x": {"type": "integer", "min": 0, "max": 999, "bins": {"private": 5}}}
    schema = Schema(told, person="who", max_records_per_person=2)
    chicle.Independent(epsilon=1, delta=1e-9).fit(frame, schema)
    assert tape.exact[0].tolist() == [4, *[0] * 9]
    assert tape.events[0].l2_sensitivity == 2


def test_batches_add_up() -> None:
    frame = table_of()[list(SCHEMA.undiscovered)]
    schema = Schema({name: SCHEMA.columns[name] for name in SCHEMA.undiscovered})
    bought = [purchase_of(name, schema.columns[name], rows=1, rho=0.1) for name in schema.undiscovered]
    found = []
    for size in (5_000, 700):
        parts = open_source([frame.iloc[i : i + size] for i in range(0, 5_000, size)], schema)
        found.append(resolve(schema, parts, bought, Ledger(Budget(rho=1), noise=TestNoise(3)))[0])
    assert found[0] == found[1]
    assert found[0].columns["income"].size > 10


def test_rows_of_no_value_count_for_nothing() -> None:
    schema = Schema({"x": {"type": "number", "min": 0, "max": 1, "bins": "private", "missing": True}})
    frame = {"x": pa.array([None] * 2_000 + [0.25] * 2_000, pa.float64())}
    column = chicle.Independent(epsilon=5, delta=1e-9).fit(frame, schema).release_.schema.columns["x"]
    assert column.missing
    assert 0.25 in column.to_dict()["bins"]
