"""Explicit and weighted-row models, and the mechanisms over them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chicle
from chicle import Budget, Domain, InfeasibleError, Ledger, Measurement, Records, Schema
from chicle.errors import DomainError
from chicle.evaluation.answers import answer_errors
from chicle.models import ExplicitModel, WeightedRowsModel
from chicle.privacy import TestNoise

DOMAIN = Domain({"a": 4, "b": 3, "c": 5})
RNG = np.random.default_rng(4)
ROWS = Records({name: (RNG.random(900) ** 2 * size).astype(int) for name, size in DOMAIN.items()}, DOMAIN)
NUMBER = Measurement((), np.array(900), 1.0)


def cell(value: float, **codes: int) -> Measurement:
    return Measurement((), np.array(value), 1.0, where=codes)


CELLS = [cell(410.0, a=0, b=0), cell(60.0, c=4), cell(25.0, a=3, b=1, c=0)]


def test_mwem_is_what_the_paper_says() -> None:
    """A(x) *= exp(q(x) (a - q(A)) / 2): the newest cell, then past ones of at least half its error."""
    weights = np.full(DOMAIN.shape(tuple(DOMAIN)), 1 / 60)
    where: list[Any] = [np.s_[0, 0, :], np.s_[:, :, 4], np.s_[3, 1, 0]]
    for t in range(3):
        errors = [float(CELLS[i].values) / 900 - weights[where[i]].sum() for i in range(t + 1)]
        for i in range(t + 1):
            if i == t or abs(errors[i]) >= abs(errors[t]) / 2:
                weights[where[i]] *= np.exp(errors[i] / 2)
        weights /= weights.sum()
        model = ExplicitModel(update="mwem").fit([NUMBER, *CELLS[: t + 1]], DOMAIN)
        np.testing.assert_allclose(model.expect([("a", "b", "c")])[0], 900 * weights, rtol=1e-9)


def test_a_projection_meets_its_cell() -> None:
    for make in (ExplicitModel, lambda: WeightedRowsModel(rows=ROWS)):
        model = make().fit([NUMBER, CELLS[0]], DOMAIN)
        assert model.expect([CELLS[0].query])[0] == pytest.approx(410, rel=1e-6)
        both = make().fit([NUMBER, *CELLS], DOMAIN)
        for one in CELLS:
            assert both.expect([one.query])[0] == pytest.approx(float(one.values), abs=8)


@pytest.mark.parametrize("update", ["pep", "mwem"])
@pytest.mark.parametrize("kind", ["explicit", "rows"])
def test_a_round_goes_on_where_the_last_one_ended(update: Any, kind: str) -> None:
    """Cell by cell from the model before, or all at once: the same to the last bit."""

    def make() -> Any:
        return ExplicitModel(update=update) if kind == "explicit" else WeightedRowsModel(rows=ROWS, update=update)

    once = make().fit([NUMBER, *CELLS], DOMAIN)
    model: Any = None
    for t in range(4):
        before = None if model is None else model.state()
        following = make().fit([NUMBER, *CELLS[:t]], DOMAIN, start=model)
        if before is not None:
            np.testing.assert_array_equal(model.state()["weights"], before["weights"], "the model before stays")
        model = following
    np.testing.assert_allclose(model.state()["weights"], once.state()["weights"], rtol=1e-12)


def test_rows_begin_with_how_often_they_occur() -> None:
    model = WeightedRowsModel(rows=ROWS).fit([NUMBER], DOMAIN)
    for clique in (("a", "c"), ("b",)):
        np.testing.assert_allclose(model.expect([clique])[0], ROWS.count([clique])[0])
    assert len(model.state()["weights"]) == len({tuple(int(ROWS[n][i]) for n in DOMAIN) for i in range(900)})
    with pytest.raises(DomainError, match="weighted rows need `rows=`"):
        WeightedRowsModel().fit([NUMBER], DOMAIN)
    with pytest.raises(DomainError, match="at least one row"):
        WeightedRowsModel(rows=Records({name: [] for name in DOMAIN}, DOMAIN)).fit([NUMBER], DOMAIN)


def test_what_noise_explains_is_left_alone() -> None:
    """Cells within two sigmas stay; others move to two sigmas of what was measured, and no further."""
    (counts,) = ROWS.count([("a",)])
    off = np.array([30.0, -10.0, 19.0, -39.0])
    measured = Measurement(("a",), counts + off, 10.0)
    model = WeightedRowsModel(rows=ROWS, sweeps=1).fit([Measurement((), np.array(900), 1e-3), measured], DOMAIN)
    moved = model.expect([("a",)])[0]
    wanted = counts + np.array([10.0, 0.0, 0.0, -19.0])
    np.testing.assert_allclose(moved, 900 * wanted / wanted.sum(), rtol=1e-9)
    (whole,) = ROWS.count([tuple(DOMAIN)])
    assert model.sigmas(measured) == 2
    assert model.sigmas(Measurement(tuple(DOMAIN), whole, 10.0)) == pytest.approx(0.8 * np.sqrt(2 * np.log(60)))


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_threads_change_nothing(threads: int) -> None:
    tables = [Measurement(c, t + RNG.normal(0, 5, t.shape), 5.0) for c, t in zip(PAIRS, ROWS.count(PAIRS), strict=True)]
    for make in (ExplicitModel, lambda: WeightedRowsModel(rows=ROWS)):
        one, other = (make().fit([*tables, *CELLS], DOMAIN, threads=number) for number in (1, threads))
        np.testing.assert_array_equal(one.state()["weights"], other.state()["weights"])


PAIRS = [("a", "b"), ("c", "b")]


def test_groups_and_functionals_are_refused() -> None:
    for one in (
        Measurement(("a",), np.zeros(4), 1.0, where={"b": 1}),
        Measurement(("a",), np.zeros(1), 1.0, functional=chicle.query.Functional(np.ones((1, 4), dtype=int))),
    ):
        with pytest.raises(DomainError, match="takes whole tables, and single cells"):
            ExplicitModel().fit([NUMBER, one], DOMAIN)


# --- Mechanisms ------------------------------------------------------------------------------------------------------

LARGE = Domain({"a": 3_000, "b": 3_000, "c": 3})
EXPLICIT: list[Any] = [
    chicle.PEP,
    lambda **given: chicle.PEP(published=True, **given),
    lambda **given: chicle.MWEM(model="explicit", **given),
]


@pytest.mark.parametrize("make", EXPLICIT)
def test_a_domain_that_is_too_large_is_refused_by_size_before_anything_is_spent(make: Any) -> None:
    table = Records({name: [0, 1] for name in LARGE}, LARGE)
    ledger = Ledger(Budget(epsilon=1, delta=1e-9))
    rule = r"27,000,000 joint values; an explicit model takes at most 16,777,216.* use GEM, or MWEM\(model="
    with pytest.raises(InfeasibleError, match=rule):
        make(epsilon=1, delta=1e-9).fit(table, ledger=ledger)
    with pytest.raises(InfeasibleError, match=rule):
        make(epsilon=1, delta=1e-9).plan(Schema(LARGE))
    assert not ledger.events


@pytest.mark.parametrize("make", EXPLICIT)
def test_answers_are_near_and_a_load_fits_nothing(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    census = chicle.datasets.census(20_000, d=4)
    workload = [("SEX", "RACE"), ("RACE", "AGE"), ("SEX", "AGE")]
    synth = make(epsilon=2, delta=1e-9, workload=workload)
    synth.fit(census, ledger=Ledger(synth.budget, noise=TestNoise(5)))
    errors = answer_errors(census, synth.answers_)
    assert errors["max"] < 0.1
    synth.release_.save(tmp_path / "r.chicle")
    monkeypatch.setattr("chicle.models.reweighted.ReweightedModel.fit_tables", None)
    with pytest.warns(UserWarning, match="NOT PRIVATE"):
        loaded = chicle.load(tmp_path / "r.chicle")
    for clique, table in synth.answers_.items():
        np.testing.assert_allclose(loaded.model.expect([clique])[0] / loaded.model.total, table, rtol=1e-9)
    mine, again = synth.sample(500, seed=2), loaded.sample(500, seed=2)
    assert all(np.array_equal(mine[name], again[name]) for name in mine)


def test_public_rows_of_the_same_kind_are_better_than_none() -> None:
    here, there = chicle.datasets.census(20_000, d=5, seed=1), chicle.datasets.census(20_000, d=5, seed=2)
    workload = chicle.pairs(here.domain)[:6]
    given: dict[str, Any] = {"epsilon": 1, "delta": 1e-9, "workload": workload}
    for form in ({}, {"per": "query"}, {"published": True, "rounds": 20}, {"update": "mwem", "per": "query"}):
        synth = chicle.PMWPub(**given, **form)
        synth.fit(here, public=there, ledger=Ledger(synth.budget, noise=TestNoise(6)))
        assert answer_errors(here, synth.answers_)["max"] < 0.02
        assert synth.release_.notes[0].startswith("public data are used as evidence: a table (digest")
        assert "20,000 rows of" in synth.release_.notes[0]
    assert chicle.PMWPub(**given, published=True).updating == "mwem"
    assert chicle.PMWPub(**given, per="query").updating == "pep"
