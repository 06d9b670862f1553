"""Residual: answers are consistent, unbiased, with exact standard errors, and optimal among unbiased ones."""

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chicle
from chicle import Budget, Domain, InfeasibleError, Ledger, Measurement, ParameterError, Schema, Workload
from chicle.measurements.contrasts import Contrasts, TablesOfContrasts, contrast_weights, contrasts_of
from chicle.privacy import TestNoise
from chicle.releases.answers import Count
from chicle.selection.residual_shares import residual_shares

DOMAIN = Domain({"a": 2, "b": 3, "c": 5, "d": 1})
TRIPLE = ("a", "b", "c")
CLOSURE = [part for size in (1, 2, 3) for part in combinations(TRIPLE, size)]


def tables(noise: Any, truth: Any) -> TablesOfContrasts:
    """Tables of the contrasts of a truth over `TRIPLE` plus given noise: the total's, then an array for each clique."""
    made: list[Contrasts] = []
    for clique, added in zip(CLOSURE, noise[1:], strict=True):
        lost = tuple(i for i, name in enumerate(TRIPLE) if name not in clique)
        made.append(Contrasts(clique, contrasts_of(truth.sum(axis=lost)) + added, 3.0 + len(made)))
    return TablesOfContrasts(made, Measurement((), truth.sum() + noise[0], 2.0), DOMAIN)


def no_noise() -> list[Any]:
    return [0, *(np.zeros([DOMAIN[name] - 1 for name in clique], dtype=np.int64) for clique in CLOSURE)]


def covariance(clique: Any) -> Any:
    """The oracle: the covariance of all cells of a table, by pushing the noise of each contrast through."""
    truth = np.zeros(DOMAIN.shape(TRIPLE), dtype=np.int64)
    columns = [np.full(DOMAIN.cells(clique), 2.0 / DOMAIN.cells(clique))]
    for i, part in enumerate(CLOSURE, start=1):
        weights = contrast_weights([DOMAIN[name] for name in part])
        for place in np.ndindex(weights.shape):
            noise = no_noise()
            noise[i][place] = 10**6
            scale = (3.0 + i - 1) * weights[place] / 10**6
            columns.append(tables(noise, truth).values(clique).ravel() * scale)
    return sum(np.outer(column, column) for column in columns)


def test_without_noise_every_table_is_the_true_one() -> None:
    truth = np.random.default_rng(0).integers(0, 100, DOMAIN.shape(TRIPLE))
    made = tables(no_noise(), truth)
    for clique in CLOSURE:
        lost = tuple(i for i, name in enumerate(TRIPLE) if name not in clique)
        np.testing.assert_allclose(made.values(clique), truth.sum(axis=lost), atol=1e-8)
    np.testing.assert_allclose(made.values(("b", "d")), truth.sum(axis=(0, 2))[:, None], atol=1e-8)


@pytest.mark.parametrize("clique", CLOSURE, ids=str)
def test_variances_are_exact_in_cells_blocks_and_directions(clique: Any) -> None:
    known, made = covariance(clique), tables(no_noise(), np.zeros(DOMAIN.shape(TRIPLE), dtype=np.int64))
    np.testing.assert_allclose(np.diag(known), made.variance(clique), rtol=1e-9)
    assert made.steepest(clique) ** 2 == pytest.approx(np.linalg.eigvalsh(known).max(), rel=1e-9)
    block = np.zeros(DOMAIN.shape(clique))
    sizes = {name: max(1, DOMAIN[name] - 1) for name in clique}
    block[tuple(slice(sizes[name]) for name in clique)] = 1
    assert made.variance(clique, sizes) == pytest.approx(block.ravel() @ known @ block.ravel(), rel=1e-9)


def test_targets_say_what_the_contrasts_say() -> None:
    """Taken as independent cells, they know each residual with the precision that was measured, or more from above."""
    shares = residual_shares({TRIPLE: 1.0, ("a", "b"): 3.0}, DOMAIN, minimise="variance").shares
    made = []
    for clique in CLOSURE:
        shape = [DOMAIN[name] for name in clique]
        cost = math.prod(1 - 1 / size for size in shape)
        made.append(Contrasts(clique, np.zeros([s - 1 for s in shape], np.int64), math.sqrt(cost / shares[clique])))
    found = TablesOfContrasts(made, Measurement((), np.array(50), 2.0), DOMAIN).targets()
    assert {("a",), ("b",), ("c",), ("d",)} <= {one.clique for one in found}
    for one in made:
        given = sum(
            DOMAIN.cells(one.clique) / (target.values.size * target.sigma**2)
            for target in found
            if set(one.clique) <= set(target.clique)
        )
        assert given >= (1 - 2e-3) / one.variance
        if len(one.clique) > 1 and one.clique in {target.clique for target in found}:
            assert given == pytest.approx(1 / one.variance)


def test_answers_agree_and_errors_are_as_large_as_they_say() -> None:
    """1,260 standardised errors in 30 fits: their mean square is within 0.5 of 1, far outside of what luck does."""
    records = chicle.datasets.census(3_000, d=5)
    workload = Workload.all_kway(records.domain, 3)
    shares = []
    for seed in range(30):
        ledger = Ledger(Budget(rho=0.5), noise=TestNoise(seed))
        synth = chicle.Residual(rho=0.5, workload=workload, max_cells=10**7).fit(records, ledger=ledger)
        answers = synth.answers_
        assert list(answers) == list(workload)
        margins: dict[Any, Any] = {}
        for clique, answer in answers.items():
            (exact,) = records.count([clique])
            shares.append(float(np.mean((answer.values - exact) ** 2)) / answer.standard_error**2)
            for i, name in enumerate(clique):
                margin = answer.values.sum(axis=tuple(j for j in range(len(clique)) if j != i))
                np.testing.assert_allclose(margin, margins.setdefault(name, margin), atol=1e-6)
    assert len(shares) == 300
    assert abs(np.mean(shares) - 1) < 0.2  # deterministic: test noise
    low, high = answer.interval(0.9)
    assert np.allclose(high - low, 2 * 1.6448536 * answer.standard_error)


@pytest.mark.parametrize("minimise", ["variance", "error", "max"])
def test_no_other_shares_are_better(minimise: Any) -> None:
    domain = Domain({"a": 2, "b": 3, "c": 8, "d": 20})
    weights = {("a", "b"): 1.0, ("b", "c"): 2.0, ("a", "c", "d"): 0.5, ("d",): 4.0}
    found = residual_shares(weights, domain, minimise=minimise)
    assert math.fsum(found.shares.values()) == pytest.approx(1)

    def loss(shares: Any) -> float:
        deviations = {}
        for clique in weights:
            variance = 0.0
            for size in range(len(clique) + 1):
                for part in combinations(clique, size):
                    inside = math.prod((1 - 1 / domain[name]) ** 2 for name in part)
                    outside = math.prod(domain[name] ** 2 for name in clique if name not in part)
                    variance += inside / outside / 2 / shares[part]
            deviations[clique] = math.sqrt(variance)
        if minimise == "max":
            return max(weights[clique] * s for clique, s in deviations.items())
        power = 1 if minimise == "error" else 2
        return sum(weights[clique] * domain.cells(clique) * s**power for clique, s in deviations.items())

    best = loss(found.shares)
    rng = np.random.default_rng(0)
    for scale in (0.01, 0.1, 1.0):
        for _ in range(200):
            moved = {clique: share * math.exp(scale * rng.normal()) for clique, share in found.shares.items()}
            total = math.fsum(moved.values())
            assert loss({clique: share / total for clique, share in moved.items()}) >= best * (1 - 1e-3)
    for clique, variance in found.tables.items():
        assert variance > 0, clique


def test_it_is_never_worse_than_the_same_tables_with_independent_noise() -> None:
    domain = Domain({f"x{i}": 2 for i in range(12)})
    for order, gain in ((2, 5.74), (3, 10.4)):
        weights = dict.fromkeys(Workload.all_kway(domain, order), 1.0)
        (variance, *_) = residual_shares(weights, domain).tables.values()
        alone = len(weights) / 2  # each table for an equal part of the budget
        assert math.sqrt(alone) == pytest.approx(gain, rel=0.01)
        assert variance < alone / 4


def test_bounds_come_with_the_release(tmp_path: Path) -> None:
    """The bound holds: noise of the seed is fixed. And it is not more than a few times the true error."""
    records = chicle.datasets.census(20_000, d=4)
    workload = [("SEX", "AGE"), ("SEX", "RACE")]
    ledger = Ledger(Budget(epsilon=1, delta=1e-9), noise=TestNoise(1))
    synth = chicle.Residual(epsilon=1, delta=1e-9, workload=workload).fit(records, ledger=ledger)
    synth.release_.save(tmp_path / "kept.chicle")
    with pytest.warns(UserWarning, match="NOT PRIVATE"):
        again = chicle.load(tmp_path / "kept.chicle")
    for release in (synth.release_, again):
        for bound in release.error_bounds([*workload, ("AGE",)]):
            (exact,) = records.count([bound.clique])
            assert bound.estimate is not None
            error = float(np.abs(bound.estimate - exact).sum())
            assert error <= bound.estimate_error <= 4 * error
        (unknown,) = release.error_bounds([("AGE", "RACE")])
        assert not unknown.known
    replicates = synth.release_.draws(m=2, seed=0)
    assert len(replicates[1]) > 19_000


@pytest.mark.parametrize("model", ["descent", "graphical", "composed"])
def test_any_model_makes_its_records(model: str) -> None:
    records = chicle.datasets.census(5_000, d=4)
    workload = [("SEX", "RACE"), ("SEX", "AGE"), ("COUNTY",)]
    synth = chicle.Residual(rho=0.5, workload=workload, model=model).fit(records)
    assert synth.release_.model.family == model
    made = synth.sample(seed=0)
    (real,), (mine,) = records.count([("SEX", "RACE")]), made.count([("SEX", "RACE")])
    assert np.abs(real / len(records) - mine / len(made)).sum() / 2 < 0.05


def test_what_cannot_be_done_is_said_before_anything_is_spent() -> None:
    domain = {"a": 3, "b": 4}
    schema = Schema.from_cardinalities(domain)
    for wrong, error in (
        ({"minimise": "magic"}, ParameterError),
        ({"model": "magic"}, ParameterError),
        ({"max_cells": 5}, InfeasibleError),
        ({"workload": [("nobody", "a")]}, chicle.DomainError),
    ):
        with pytest.raises(error):
            chicle.Residual(epsilon=1, delta=1e-9, **wrong).plan(schema)


def test_what_no_model_holds_costs_nothing() -> None:
    """All pairs of many attributes are one clique of a graph; a denoised model needs 1-ways of all attributes."""
    census = chicle.datasets.census(300, d=12)
    for model, workload, error in (
        ("graphical", None, InfeasibleError),
        ("denoised", [("SEX",)], chicle.DomainError),
    ):
        ledger = Ledger(Budget(epsilon=1, delta=1e-9))
        synth = chicle.Residual(epsilon=1, delta=1e-9, workload=workload, model=model)
        with pytest.raises(error):
            synth.fit(census, ledger=ledger)
        assert not ledger.events


def test_attributes_outside_of_the_workload_are_noted() -> None:
    synth = chicle.Residual(rho=0.5, workload=[("SEX",)]).fit(chicle.datasets.census(500, d=3))
    assert sum("no clique of the workload" in note for note in synth.release_.notes) == 2
    plan = synth.plan(synth.release_.schema)
    assert [step.release for step in plan.steps] == ["records", "contrasts"]


def test_the_report_has_the_answers_with_their_errors(tmp_path: Path) -> None:
    release = chicle.Residual(rho=0.5, workload=[("SEX", "RACE")]).fit(chicle.datasets.census(2_000, d=4)).release_
    tables = release.transcript.tables_of_contrasts(release.domain)
    assert tables is not None
    text = chicle.report(tmp_path / "residual.html", release).read_text()
    assert "Answers to the workload" in text
    assert f"{math.sqrt(tables.variance(('SEX', 'RACE'))):.4g}" in text
    other = chicle.Independent(rho=0.5).fit(chicle.datasets.census(500, d=3)).release_
    assert "Answers to the workload" not in chicle.report(tmp_path / "other.html", other).read_text()


def test_a_release_answers_counts_with_the_error_of_their_block() -> None:
    records = chicle.datasets.census(5_000, d=4)
    ledger = Ledger(Budget(rho=0.5), noise=TestNoise(4))
    release = chicle.Residual(rho=0.5, workload=[("SEX", "RACE")]).fit(records, ledger=ledger).release_
    tables = release.transcript.tables_of_contrasts(release.domain)
    assert tables is not None
    answer = release.answer(Count(where={"SEX": 0, "RACE": [0, 1, 2]}))
    (counts,) = records.count([("SEX", "RACE")])
    assert answer.noise_error == pytest.approx(math.sqrt(tables.variance(("SEX", "RACE"), {"RACE": 3})))
    assert answer.noise_error is not None
    assert abs(answer.estimate - counts[0, :3].sum()) < 4 * answer.noise_error  # the noise is fixed
    assert release.answer(Count(where={"AGE": 3})).standard_error is None
