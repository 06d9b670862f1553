"""Groups and functionals, from the desk to the file: they are no whole tables, and nothing takes them for one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chicle
from chicle import Budget, Desk, DomainError, Ledger, Measurement, PrivacyError, Query, Records, Schema
from chicle.counting.countable import View
from chicle.measurements.measurement import best_margins
from chicle.measurements.merges import merge_rare
from chicle.mechanisms.base import Mechanism
from chicle.mechanisms.stages import Setting, Stages, one_way_stage
from chicle.models import DescentModel, GraphicalModel, IndependentModel
from chicle.query import Functional

DOMAIN = {"a": 6, "b": 4, "c": 3}
BUDGET: dict[str, Any] = {"epsilon": 5.0, "delta": 1e-6}


class Groups(Mechanism):
    """1-ways, a group, a functional, and scores in buckets."""

    def stages(self, setting: Setting) -> Stages:
        return Stages.of(one_way_stage(setting, setting.rho))

    def run(self, desk: Desk) -> IndependentModel:
        part = desk.left / 4
        one_ways = desk.measure_one_ways(rho=part)
        weights = np.arange(2 * 24).reshape(2, 6, 4)
        desk.measure([Query(("b",), where={"a": 3}), Query(("a", "b"), functional=Functional(weights))], rho=part)
        coarse = Query(("a", "b"), {"a": np.array([0, 0, 1, 1, 2, 2])})
        scores = desk.score([coarse, ("b", "c")], desk.independence(), rho=part)
        assert [len(clique) for clique in scores.cliques] == [2, 2]
        choice = desk.choose([coarse], desk.independence(), rho=desk.left)
        assert choice.clique == ("a", "b")
        del one_ways
        return self.learn(IndependentModel(), desk)


@pytest.fixture
def release() -> chicle.Release:
    rng = np.random.default_rng(0)
    table = Records({name: rng.integers(size, size=5_000) for name, size in DOMAIN.items()}, DOMAIN)
    constraints = [{"forbid": {"a": 0, "b": 0}, "violations": "keep"}]
    schema = Schema(
        {"a": {"type": "coded", "values": 6, "ordinal": True}, "b": 4, "c": 3},
        constraints=constraints,
    )
    return Groups(**BUDGET).fit(table, schema).release_


def test_a_release_with_groups_is_kept(release: chicle.Release, tmp_path: Path) -> None:
    release.save(tmp_path / "r.chicle")
    loaded = chicle.load(tmp_path / "r.chicle")
    for mine, theirs in zip(release.measurements, loaded.measurements, strict=True):
        assert mine.query.key == theirs.query.key
        np.testing.assert_array_equal(mine.values, theirs.values)
    (scores,), (again,) = release.transcript.scores, loaded.transcript.scores
    assert [one if isinstance(one, tuple) else one.key for one in scores.queries] == [
        one if isinstance(one, tuple) else one.key for one in again.queries
    ]
    assert scores.reference == again.reference == "released"
    assert loaded.transcript.choices[0].clique == ("a", "b")
    loaded.save(tmp_path / "s.chicle")
    assert (tmp_path / "r.chicle").read_bytes() == (tmp_path / "s.chicle").read_bytes()


def test_groups_are_no_marginals(release: chicle.Release) -> None:
    table = release.marginals()
    assert set(table["marginal"].to_pylist()) == {0, 1, 2}
    again = chicle.Release.from_marginals(table, release.schema, claim="by us")
    assert again.total == release.total
    assert [bound.supports for bound in release.error_bounds([("a",), ("b",), ("a", "b")])] == [1, 1, 0]


def test_a_merge_refuses_groups() -> None:
    one_ways = [
        Measurement(("a",), np.array([900, 900, 5, -3, 2, 1]), 10.0),
        Measurement(("b",), np.ones(4) * 500, 10.0),
    ]
    domain = chicle.Domain({"a": 6, "b": 4})
    merge = merge_rare(one_ways, domain)
    assert merge.changes
    group = Measurement(("b",), np.array([0, 0, 0, 50]), 10.0, where={"a": 1})
    for model in (GraphicalModel(), DescentModel()):
        with pytest.raises(DomainError, match="group or a functional"):
            model.fit([*one_ways, group], domain, merge=merge)
    with pytest.raises(DomainError, match="no margins"):
        group.margin(("b",))
    assert ("b",) not in best_margins([group], domain, 1)


def test_a_group_of_a_view_is_a_group_of_records() -> None:
    rng = np.random.default_rng(1)
    table = Records({name: rng.integers(size, size=500) for name, size in DOMAIN.items()}, DOMAIN)
    codes = np.array([0, 0, 1, 1, 2, 2], dtype=np.uint8)
    maps, seen = {"x": ("a", codes), "b": ("b", None)}, chicle.Domain({"x": 3, "b": 4})
    queries = [
        Query(("b",), where={"x": 1}),
        Query(("x",), where={"b": 2}, functional=Functional(np.array([[1, 2, 3]]))),
    ]
    for mine, theirs in zip(table.view(maps, seen).count(queries), View(table, maps, seen).count(queries), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_the_table_of_many_groups_is_counted_once() -> None:
    """Each group alone would take the memory of the whole table."""
    rng = np.random.default_rng(2)
    table = Records({"z": rng.integers(20_000, size=100), "y": rng.integers(500, size=100)}, {"z": 20_000, "y": 500})
    groups = [Query(("y",), where={"z": int(code)}) for code in table["z"]]
    found = table.count(groups, memory_limit=2 * 8 * 20_000 * 500)
    assert [int(one.sum()) for one in found] == [int((table["z"] == code).sum()) for code in table["z"]]


def test_shares_add_up_to_one_at_most() -> None:
    table = Records({name: [0] for name in DOMAIN}, DOMAIN)
    ledger = Ledger(Budget(rho=1.0))
    for shares in ([0.9, 0.9], [1.2, -0.2]):
        with pytest.raises(PrivacyError, match="shares of rho"):
            Desk(table, ledger).measure([("a",), ("b",)], rho=0.3, shares=shares)
    with pytest.raises(PrivacyError):
        Desk(table, ledger, rho=float("nan"))
    assert not ledger.events


def test_a_mean_is_protected_if_all_of_it_is() -> None:
    one, other = (Measurement(("a",), np.ones(6), 1.0, protected) for protected in (True, False))
    assert not Measurement.mean([one, other]).protected
    assert not Measurement.mean([other, one]).protected
    assert Measurement.mean([one, one]).protected
