"""Stages: one description of how a budget is split, for the plan and for the fit."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chicle
from chicle import Budget, Domain, Ledger, Mechanism, PrismOptions, Records, Schema
from chicle.codecs import Codec
from chicle.mechanisms.stages import (
    Setting,
    Stage,
    Stages,
    count_stage,
    marginal_stage,
    one_way_stage,
    score_stage,
    selected_stage,
)
from chicle.privacy import TestNoise

DOMAIN = Domain({"a": 2, "b": 3, "c": 30, "d": 4, "e": 12, "f": 2})
EPSILON: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-9}

MECHANISMS: dict[str, Callable[..., Mechanism]] = {
    "Independent": chicle.Independent,
    "PrivSyn": chicle.PrivSyn,
    "PrivSyn-published": lambda **given: chicle.PrivSyn(form="published", **given),
    "PrivSyn-cliques": lambda **given: chicle.PrivSyn(cliques=[("a", "b"), ("c", "d", "f")], **given),
    "PrivSyn-weights": lambda **given: chicle.PrivSyn(cliques={("b", "a"): 3.0, ("c", "d", "f"): 1.0}, **given),
    "PrivSyn-shares": lambda **given: chicle.PrivSyn(shares=(5, 1, 2), **given),
    "PrivSyn-pgm": lambda **given: chicle.PrivSyn(generator="pgm", **given),
    "MST": chicle.MST,
    "MST-shares": lambda **given: chicle.MST(shares=(1, 2, 3), **given),
    "MWEM": chicle.MWEM,
    "MWEM-alpha": lambda **given: chicle.MWEM(alpha=0.4, rounds=3, **given),
    "PrivBayes": chicle.PrivBayes,
    "Gaussian": chicle.Gaussian,
    "Gaussian-workload": lambda **given: chicle.Gaussian(workload={("a",): 2.0, ("b", "c"): 1.0}, **given),
    "AIM": chicle.AIM,
    "AIM-rounds": lambda **given: chicle.AIM(rounds=3, **given),
    "AIM-published": lambda **given: chicle.AIM(published=True, **given),
    "AIM-alpha": lambda **given: chicle.AIM(published=True, alpha=0.6, rounds=20, **given),
    "Prism": lambda **given: chicle.Prism(options=PrismOptions(first_stage=1.0), **given),
    "Prism-options": lambda **given: chicle.Prism(
        options=PrismOptions(one_ways=0.3, counting=0.05, selection=0.2, first_stage=1.0), **given
    ),
    "Prism-two-stages": lambda **given: chicle.Prism(options=PrismOptions(first_stage=0.6), **given),
}

NAMES = {
    "number of records": "records",
    "1-way": "1-way",
    "marginal": "marginal",
    "second marginal": "second marginal",
    "choice of a marginal": "selection",
}


def records_of(k: int = 1) -> Records:
    """Attributes that depend on each other, so that something is chosen."""
    rng = np.random.default_rng(1)
    common = rng.random(6_000)
    rows = {
        name: np.minimum((np.abs(common - rng.normal(0, 0.15, 6_000)) * size).astype(int), size - 1)
        for name, size in DOMAIN.items()
    }
    return Records(rows, DOMAIN, max_records_per_person=k)


def stage_of(purpose: str, name: str = "") -> str:
    """Return the stage that an event belongs to."""
    if name == "Prism-two-stages" and purpose.startswith("distances"):
        return "second selection"
    return "selection" if purpose.endswith("records") and "1/" in purpose else NAMES[purpose]


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("accounting", ["gdp", "zcdp"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_events_cost_what_stages_say(name: str, accounting: Any, k: int) -> None:
    synth = MECHANISMS[name](**EPSILON, accounting=accounting)
    ledger = Ledger(Budget(**EPSILON, accounting=accounting), noise=TestNoise(3))
    release = synth.fit(records_of(k), ledger=ledger).release_
    spent: dict[str, float] = {}
    for event in ledger.events:
        of = stage_of(event.purpose, name)
        spent[of] = spent.get(of, 0.0) + event.rho(accounting)
    # Prism, and AIM over records, split their budget by the number of records that was released.
    n = float(release.measurements[0].values) if release.measurements[0].clique == () else 1_000.0
    stages = synth.stages(Setting(DOMAIN, ledger.budget.rho, k, n))
    planned = {stage.name: stages.rho(stage.name) for stage in stages.all}
    assert sum(planned.values()) == pytest.approx(ledger.budget.rho, rel=1e-9)
    assert spent == pytest.approx(planned, rel=1e-6)
    # Where cliques are known beforehand, each costs its own share.
    for stage in stages.all:
        if stage.cliques is not None and not stage.merged:
            assert sum(stage.cliques.values()) == pytest.approx(1)
            costs = {e.clique: e.rho(accounting) for e in ledger.events if stage_of(e.purpose) == stage.name}
            assert costs == pytest.approx({c: stage.rho * share for c, share in stage.cliques.items()}, rel=1e-6)


def test_given_cliques_get_the_budget_that_their_weights_say() -> None:
    cliques = {("b", "a"): 3.0, ("c", "d", "f"): 1.0, ("e", "f"): 0.0}
    synth = chicle.PrivSyn(rho=0.2, shares=(1, 1, 2), cliques=cliques).fit(records_of())
    costs = {event.clique: event.rho("zcdp") for event in synth.ledger_.events if len(event.clique or ()) > 1}
    assert costs == pytest.approx({("a", "b"): 0.15 * 3 / 4, ("c", "d", "f"): 0.15 / 4})
    assert synth.release_.parameters["cliques"]
    even = chicle.PrivSyn(rho=0.2, shares=(1, 1, 2), cliques=[("a", "b"), ("c", "d", "f")]).fit(records_of())
    assert [event.rho("zcdp") for event in even.ledger_.events] != list(costs.values())


@pytest.mark.parametrize(
    ("cliques", "what"),
    [
        ({("a", "b"): -1.0}, "weight"),
        ({("a", "b"): "much"}, "weight"),
        ({("a", "b"): 0.0}, "no cliques"),
        ({("a", "b"): 1.0, ("b", "a"): 2.0}, "twice"),
        ({("a", "x"): 1.0}, "not an attribute"),
    ],
    ids=str,
)
def test_weights_that_are_none_cost_nothing(cliques: Any, what: str) -> None:
    ledger = Ledger(Budget(rho=1.0))
    with pytest.raises(chicle.ChicleError, match=what):
        chicle.PrivSyn(rho=1.0, cliques=cliques).fit(records_of(), ledger=ledger)
    assert not ledger.events


NAMES_ATTRIBUTES = ("PrivSyn-cliques", "PrivSyn-weights", "Gaussian-workload")

TABLES: dict[str, Schema] = {
    "coded": Schema.from_cardinalities(DOMAIN),
    "one attribute": Schema.from_cardinalities({"a": 7}),
    "one value each": Schema.from_cardinalities({"a": 1, "b": 1}),
    "many rows": Schema.from_cardinalities(DOMAIN, max_records_per_person=5),
    "coarse": Schema(
        {
            "a": {"type": "coded", "values": 30, "ordinal": True, "coarse": 5},
            "b": {"type": "coded", "values": 4},
            "c": {"type": "open"},
        }
    ),
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("n", [0, 1, 10_000, 10**9])
@pytest.mark.parametrize("name", [name for name in MECHANISMS if name not in NAMES_ATTRIBUTES])
def test_the_steps_of_a_plan_add_up_to_the_budget(name: str, n: int, table: str) -> None:
    schema = TABLES[table]
    synth = MECHANISMS[name](**EPSILON)
    plan = synth.plan(schema, n)
    assert sum(step.rho for step in plan.steps) == pytest.approx(plan.budget.rho, rel=1e-9)
    assert plan.budget.rho <= Budget(**EPSILON).rho * (1 + 1e-12)
    assert all(step.rho > 0 for step in plan.steps)
    if table == "coded":
        stages = synth.stages(Setting(DOMAIN, plan.budget.rho, 1, n))
        assert [step.rho for step in plan.steps] == pytest.approx(
            [s.rho for s in stages.steps(Setting(DOMAIN, 1, 1, n))]
        )


@pytest.mark.parametrize("rho", [1e-6, 0.3, 1_000.0])
@pytest.mark.parametrize("name", MECHANISMS)
def test_stages_scale_with_the_budget(name: str, rho: float) -> None:
    """They add up to whatever may be spent, and none is empty."""
    stages = MECHANISMS[name](rho=rho).stages(Setting(DOMAIN, rho, 2, 5_000))
    assert sum(stage.rho for stage in stages.all) == pytest.approx(rho, rel=1e-9)
    assert all(stage.rho > 0 for stage in stages.all)
    assert len({stage.name for stage in stages.all}) == len(stages.all)
    assert {stage.name for stage in stages.all} <= {*NAMES.values(), "second selection"}


# --- The parts -------------------------------------------------------------------------------------------------------


def test_stages_are_found_by_name() -> None:
    table = Setting(DOMAIN, 1.0, 2, 1_000)
    stages = Stages.of(
        count_stage(0.1), None, one_way_stage(table, 0.4), score_stage(0.0, 15), selected_stage(table, 0.5)
    )
    assert [stage.name for stage in stages.all] == ["records", "1-way", "marginal"], "what costs nothing is no stage"
    assert (stages.rho("1-way"), stages.rho("selection")) == (0.4, 0)
    assert "marginal" in stages
    assert "selection" not in stages
    assert stages["records"].cliques == {(): 1.0}
    with pytest.raises(StopIteration):
        stages["selection"]


def test_steps_of_known_cliques_have_their_noise() -> None:
    table = Setting(DOMAIN, 1.0, 3, 1_000)
    size, first, *_ = [*count_stage(0.02).steps(table), *one_way_stage(table, 0.5).steps(table)]
    assert (size.release, size.values, size.rho) == ("records", 1, 0.02)
    assert size.sigma == pytest.approx(3 / np.sqrt(2 * 0.02))
    cells = np.array(list(DOMAIN.values()), dtype=float) ** (2 / 3)
    assert (first.release, first.of, first.values) == ("1-way", "a", 2)
    assert first.rho == pytest.approx(0.5 * cells[0] / cells.sum())
    assert first.sigma == pytest.approx(3 / np.sqrt(2 * first.rho))
    pair, single = marginal_stage(table, 0.5, [("b", "c"), ("a",)]).steps(table)
    assert (pair.release, pair.of, pair.values) == ("marginal", "b x c", 90)
    assert (single.release, single.values) == ("1-way", 2)
    merged, _ = marginal_stage(table, 0.5, [("b", "c"), ("a",)], merged=True).steps(table)
    assert (merged.values, merged.sigma, merged.rho) == (None, None, pair.rho), "fewer cells than planned, perhaps"


def test_steps_of_what_is_chosen_later() -> None:
    table = Setting(DOMAIN, 1.0, 1, 1_000)
    (scores,) = score_stage(0.1, 15).steps(table)
    assert (scores.release, scores.of, scores.values, scores.rho) == ("selection", "15 pairs", 15, 0.1)
    (tables,) = selected_stage(table, 0.5, "some").steps(table)
    assert (tables.release, tables.of, tables.values) == ("marginal", "some", None)
    assert tables.least_error is not None
    assert tables.error is not None
    assert 0 < tables.least_error <= tables.error
    assert Stage(name="selection", rho=0.1).steps(table)[0].error is None


def test_a_table_at_a_desk_knows_no_number_of_records() -> None:
    desk = chicle.Desk(records_of(2), Ledger(Budget(rho=0.7)))
    desk.measure([("a",)], rho=0.2)
    table = Setting.at(desk)
    assert (table.domain, table.k) == (DOMAIN, 2)
    assert table.rho == pytest.approx(0.5)
    assert table.n == 1_000


def test_fine_1_ways_are_planned_and_paid_before_the_stages() -> None:
    schema = TABLES["coarse"]
    frame = {"a": [1, 2, 29] * 200, "b": [0, 1, 3] * 200, "c": ["x", "y", "x"] * 200}
    synth = chicle.MST(**EPSILON)
    synth.fit(frame, schema)
    release = synth.release_
    fine = [e.rho("gdp") for e in synth.ledger_.events if e.purpose == "fine 1-way"]
    found = [
        e.rho("gdp") for e in synth.ledger_.events if e.purpose not in (*NAMES, "fine 1-way") and "1/" not in e.purpose
    ]
    rest = synth.ledger_.budget.rho - sum(fine) - sum(found)
    stages = synth.stages(Setting(Codec(release.schema).domain, rest, 1))
    for name in ("1-way", "selection", "marginal"):
        paid = sum(
            e.rho("gdp") for e in synth.ledger_.events if e.purpose != "fine 1-way" and stage_is(e.purpose, name)
        )
        assert paid == pytest.approx(stages.rho(name), rel=1e-6)


def stage_is(purpose: str, name: str) -> bool:
    return (purpose in NAMES or "1/" in purpose) and stage_of(purpose) == name
