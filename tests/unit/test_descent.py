import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chicle
from chicle import Clique, DomainError, InfeasibleError, Measurement, ParameterError, Records
from chicle.measurements.measurement import estimate_total
from chicle.models.descent import Descent
from chicle.models.draws import draw_independent, draw_tree
from tests.interrupt import interrupt
from tests.strategies import cliques_of, records
from tests.unit.test_real_data import load


def exact(table: Records, cliques: list[Clique], sigma: float = 1.0) -> list[Measurement]:
    counted = zip(cliques, chicle.count(table, cliques), strict=True)
    return [Measurement(clique, counts, sigma) for clique, counts in counted]


def error(table: Records, targets: list[Measurement]) -> float:
    counts = chicle.count(table, [target.clique for target in targets])
    off = [np.abs(have - target.values).sum() for have, target in zip(counts, targets, strict=True)]
    return float(np.mean(off)) / max(len(table), 1)


def loss(table: Records, targets: list[Measurement]) -> float:
    counts = chicle.count(table, [target.clique for target in targets])
    finest = min(target.sigma for target in targets)
    squares = [((have - target.values) ** 2).sum() for have, target in zip(counts, targets, strict=True)]
    return float(sum((finest / t.sigma) ** 2 * s for t, s in zip(targets, squares, strict=True)))


def same(a: Records, b: Records) -> bool:
    return all(np.array_equal(a[name], b[name]) for name in a)


@settings(max_examples=20)
@given(st.data(), records(max_rows=100), st.sampled_from([None, "independent", "tree", "mixed"]), st.integers(0, 99))
def test_the_trace_is_true_and_the_loss_falls(data: st.DataObject, table: Records, start: Any, seed: int) -> None:
    cliques = [clique for clique in data.draw(cliques_of(table.domain)) if clique]
    if not cliques:
        return
    rng = np.random.default_rng(seed)
    targets = [
        Measurement(m.clique, m.values + rng.integers(-3, 4, m.values.shape).astype(float), float(rng.uniform(1, 4)))
        for m in exact(table, cliques)
    ]
    first = draw_tree(targets, table.domain, len(table), seed=seed)
    scale = len(first) / total if (total := estimate_total(targets)) and len(first) else 1.0
    scaled = [Measurement(m.clique, (m.values * scale).astype(np.float64), m.sigma) for m in targets]
    descent = Descent(targets, table.domain, start=first, seed=seed)
    # The kernel rounds targets to 1/256.
    rounding = max(m.values.size for m in targets) / 500
    before = descent.loss
    for number in range(3):
        assert descent.trace[number] == pytest.approx(
            error(descent.records, scaled), rel=1e-4, abs=rounding / max(len(first), 1)
        )
        assert descent.sweep() == descent.trace[-1]
        assert descent.loss <= before
        before = descent.loss
        assert before == pytest.approx(loss(descent.records, scaled), rel=0.02, abs=rounding)
    assert len(Descent(targets, table.domain, len(table), start=start, seed=seed).records) == len(table)


def test_exact_pairs_are_fitted() -> None:
    table = chicle.datasets.census(30_000, d=12)
    targets = exact(table, chicle.pairs(table.domain))
    seen: list[tuple[int, float]] = []
    fitted = chicle.descend(targets, table.domain, seed=0, progress=lambda number, off: seen.append((number, off)))
    assert len(fitted) == len(table)
    assert [number for number, _ in seen] == list(range(1, len(seen) + 1))
    assert seen[-1][1] == pytest.approx(error(fitted, targets))
    start = draw_independent(targets, table.domain, seed=0)
    assert error(fitted, targets) < 0.03
    assert error(fitted, targets) < error(start, targets) / 8


def test_adult(shared_data: Path) -> None:
    table = load(shared_data / "adult")
    targets = exact(table, chicle.pairs(table.domain))
    assert error(chicle.descend(targets, table.domain, seed=0, sweeps=12, tolerance=0.01), targets) < 0.008


@pytest.mark.parametrize("d", [6, 30])
def test_threads_change_nothing_and_the_seed_does(d: int) -> None:
    table = chicle.datasets.census(6_000, d=d)
    targets = exact(table, chicle.pairs(table.domain)[:: d // 5])
    one, two, eight, other = (
        chicle.descend(targets, table.domain, seed=seed, sweeps=3, threads=threads)
        for seed, threads in [(1, 1), (1, 2), (1, 8), (2, 2)]
    )
    assert same(one, two)
    assert same(one, eight)
    assert not same(one, other)


def test_triples_are_fitted_together_with_pairs() -> None:
    table = chicle.datasets.census(20_000, d=9)
    names = list(table.domain)
    triples: list[Clique] = [(names[i], names[(i + 3) % 9], names[(i + 4) % 9]) for i in range(9)]
    small = [clique for clique in triples if table.domain.cells(clique) < 50_000]
    targets = exact(table, [*small, ("AGE",)])
    start = draw_tree(targets, table.domain, seed=0)
    assert error(chicle.descend(targets, table.domain, start=start), targets) < error(start, targets) / 5


def test_weights_decide_between_contradictions() -> None:
    sure, vague = np.array([90, 10]), np.array([10, 90])
    targets = [Measurement(("a",), sure, 1.0), Measurement(("a",), vague, 10.0)]
    counts = np.bincount(chicle.descend(targets, {"a": 2}, 100, seed=0)["a"], minlength=2)
    np.testing.assert_allclose(counts, sure, atol=3)


def test_what_does_not_stand_out_from_noise_is_left_alone() -> None:
    census = chicle.datasets.census(20_000, d=8)
    pairs = chicle.pairs(census.domain)
    rng = np.random.default_rng(0)
    noisy = [
        Measurement(m.clique, m.values + 60 * rng.standard_normal(m.values.shape), 60.0) for m in exact(census, pairs)
    ]
    truth = exact(census, pairs)
    errors = [
        error(chicle.descend(noisy, census.domain, start="independent", significance=significance, seed=0), truth)
        for significance in (0.0, 1.0)
    ]
    assert errors[1] < 0.9 * errors[0]


def test_a_coarse_measurement_is_fitted_in_its_buckets() -> None:
    rng = np.random.default_rng(0)
    table = Records({"age": rng.integers(100, size=5_000), "sex": rng.integers(2, size=5_000)}, {"age": 100, "sex": 2})
    decade = np.arange(100) // 10
    values = np.zeros((10, 2), dtype=np.int64)
    np.add.at(values, (rng.permutation(decade[table["age"]]) // 2, table["sex"]), 1)
    targets = [*exact(table, [("age",)]), Measurement(("age", "sex"), values, 1.0)]
    with pytest.raises(DomainError, match="'age'"):
        chicle.descend(targets, table.domain)
    targets[1] = replace(targets[1], buckets={"age": decade})
    fitted = chicle.descend(targets, table.domain, seed=0, sweeps=20)
    got: npt.NDArray[Any] = np.zeros((10, 2), dtype=np.int64)
    np.add.at(got, (decade[fitted["age"]], fitted["sex"]), 1)
    # The two contradict each other on decades: the start follows the 1-way, the fit comes between.
    start = draw_independent(targets[:1], table.domain, seed=0)
    first: npt.NDArray[Any] = np.zeros((10, 2), dtype=np.int64)
    np.add.at(first, (decade[start["age"]], start["sex"]), 1)
    assert np.abs(got - values).sum() < 0.8 * np.abs(first - values).sum()


def test_given_records_are_a_warm_start_and_stay_as_they_are() -> None:
    table = chicle.datasets.census(5_000, d=6)
    targets = exact(table, chicle.pairs(table.domain))
    assert same(chicle.descend(targets, table.domain, start=table), table), "nothing to gain"
    first = draw_independent(targets, table.domain, seed=0)
    copy = {name: first[name].copy() for name in first}
    chicle.descend(targets, table.domain, start=first)
    assert same(first, Records(copy, table.domain))


def test_another_number_of_records_scales_the_targets() -> None:
    targets = [Measurement(("a",), np.array([10, 30]), 1.0)]
    assert np.bincount(chicle.descend(targets, {"a": 2}, 400, seed=0)["a"]).tolist() == [100, 300]


@pytest.mark.parametrize("n", [0, 1, None])
def test_tiny_tables(n: int | None) -> None:
    targets = [Measurement(("a", "b"), np.array([[-2, 0, 1]]), 1.0), Measurement((), np.array(2), 1.0)]
    made = chicle.descend(targets, {"a": 1, "b": 3, "c": 70_000}, n)
    assert len(made) == (n if n is not None else estimate_total(targets))
    only_n = [Measurement((), np.array(7), 1.0)]
    assert len(chicle.descend(only_n, {"a": 3})) == 7


@pytest.mark.parametrize(
    ("buckets", "rule"),
    [
        ({"b": [0, 0]}, "no such attribute"),
        ({"a": [0]}, "one integer"),
        ({"a": [0, 2]}, r"bucket outside 0\.\.1"),
    ],
)
def test_buckets_that_do_not_fit_are_refused(buckets: dict[str, Any], rule: str) -> None:
    with pytest.raises(DomainError, match=rule):
        chicle.descend([Measurement(("a",), np.array([3, 4]), 1.0, buckets=buckets)], {"a": 2, "b": 2})


@pytest.mark.parametrize(
    ("options", "kind", "rule"),
    [
        ({"start": "best"}, ParameterError, "start must be"),
        ({"sweeps": -1}, ParameterError, "sweeps"),
        ({"tolerance": 1.0}, ParameterError, "tolerance"),
        ({"threshold": float("nan")}, ParameterError, "threshold"),
        ({"significance": -1.0}, ParameterError, "significance"),
        ({"threads": 0}, ParameterError, "threads"),
        ({"memory_limit": 0}, ParameterError, "memory_limit"),
        ({"start": Records({"a": [0]}, {"a": 3})}, DomainError, "same domain"),
        ({"start": Records({"a": [0]}, {"a": 2}), "n": 2}, ParameterError, "leave n out"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], kind: type[Exception], rule: str) -> None:
    with pytest.raises(kind, match=rule):
        chicle.descend([Measurement(("a",), np.ones(2), 1.0)], {"a": 2}, **options)


def test_a_huge_table_is_refused_with_its_size() -> None:
    domain = {"a": 5_000, "b": 3_000}
    target = Measurement(("a", "b"), np.ones((5_000, 3_000)), 1.0)
    with pytest.raises(InfeasibleError, match=r"\(a, b\).*15000000 cells"):
        chicle.descend([target], domain, 10, start="independent", memory_limit=1_000_000)


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
def test_ctrl_c_stops_a_sweep(tmp_path: Path) -> None:
    prepare = """
        import chicle
        from chicle.models.descent import Descent
        table = chicle.datasets.census(300_000, d=40)
        pairs = chicle.pairs(table.domain)[::2]
        targets = [chicle.Measurement(p, c, 1.0) for p, c in zip(pairs, chicle.count(table, pairs))]
        descent = Descent(targets, table.domain, start="independent")
    """
    assert interrupt(tmp_path, prepare, "descent.sweep()", "'stopped', len(descent.records)") == "stopped 300000\n"


def test_records_are_handed_over_in_the_end() -> None:
    measured = [Measurement(("a", "b"), np.array([[30, 0], [5, 30]]), 1.0)]
    descent = Descent(measured, {"a": 2, "b": 2}, start="independent", seed=1)
    descent.sweep()
    records, last = descent.records, descent.finish()
    for name in records:
        np.testing.assert_array_equal(records[name], last[name])
    with pytest.raises(ParameterError, match="its records were returned"):
        descent.finish()
