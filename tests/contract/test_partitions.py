"""One suite over every mechanism and both ways to fit partitions: what holds for a whole table holds for them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chicle
from chicle import Records, Schema
from chicle.partition import Partition, PartitionedModel
from chicle.partition.declared import Way
from chicle.privacy import ParallelEvent
from tests.contract.test_mechanisms import MECHANISMS, Make
from tests.public_tables import PMWPubOfSomebody

BUDGET: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-9}


@pytest.fixture(params=MECHANISMS, scope="module")
def make(request: pytest.FixtureRequest) -> Make:
    return MECHANISMS[request.param]


@pytest.mark.parametrize("way", ["pooled", "independent", "attribute"])
@pytest.mark.filterwarnings("ignore:a table drawn from this release has about")
def test_a_partitioned_fit(make: Make, way: Way, tmp_path: Path) -> None:
    synth = make(**BUDGET)
    domain = {"SEX": 2, "RACE": 8, "MARST": 3, "EDUC": 6}
    rng = np.random.default_rng(0)
    rows = Records({name: rng.integers(size, size=600) for name, size in domain.items()}, domain)
    synth.fit(rows, Schema(domain), partition=Partition(("SEX",), way=way))
    release = synth.release_
    assert isinstance(release.model, PartitionedModel) == (way != "attribute")
    assert release.partition == ("SEX",)
    budget = release.ledger.budget
    assert budget is not None
    spent = synth.ledger_.spent
    assert budget.rho * (1 - 1e-6) <= spent <= budget.rho, "the whole budget is spent, and no more"
    assert sum(isinstance(event, ParallelEvent) for event in synth.ledger_.events) == (way == "independent")
    if issubclass(type(synth), chicle.Prism):
        release.error_bounds()
    table = synth.sample(200, seed=0)
    assert table.domain == rows.domain
    release.save(tmp_path / "parts.chicle")
    again = chicle.load(tmp_path / "parts.chicle").sample(200, seed=0)
    for name in table:
        np.testing.assert_array_equal(table[name], again[name])
    if way != "attribute":  # then rows are filtered, and a mechanism that learns little may have none
        assert set(release.sample(20, seed=0, where={"SEX": 1})["SEX"].tolist()) == {1}


def test_every_mechanism_plans_partitions(make: Make) -> None:
    if issubclass(make(**BUDGET).__class__, (chicle.PMWPub, PMWPubOfSomebody)):
        pytest.skip("it plans with a public table")
    synth = make(**BUDGET)
    for way in ("pooled", "independent", "attribute"):
        plan = synth.plan(Schema({"p": 3, "a": 4, "b": 5, "c": 2}), n=900, partition=Partition(("p",), way=way))
        assert sum(step.rho for step in plan.steps) <= plan.budget.rho * (1 + 1e-9)
