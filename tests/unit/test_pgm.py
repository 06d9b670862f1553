import os
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chicle
from chicle import Clique, DomainError, InfeasibleError, Measurement, ParameterError, Records
from chicle.models.descent import Descent
from chicle.models.pgm import Pgm, jt_size, model_bytes, pgm
from tests.interrupt import interrupt

Floats = npt.NDArray[np.float64]

# Cliques of every shape, over attributes a to e.
SHAPES: dict[str, list[str]] = {
    "tree": ["ab", "bc", "bd", "de"],
    "cycle": ["ab", "bc", "cd", "de", "ea"],
    "clique": ["".join(pair) for pair in combinations("abcde", 2)],
    "triples": ["abc", "cde", "b", "ea"],
    "disconnected": ["ab", "cd", "e"],
    "permuted and repeated": ["ba", "ab", "dca", "acd", "d"],
    "unmeasured": ["ac", ""],
}


def noisy(shape: str, seed: int, sigma: float = 15.0) -> tuple[list[Measurement], dict[str, int]]:
    rng = np.random.default_rng(seed)
    sizes = dict(zip("abcde", rng.integers(1, 5, 5).tolist(), strict=True))
    joint = rng.multinomial(2_000, rng.dirichlet(np.full(np.prod(list(sizes.values())), 0.2)))
    joint = joint.reshape(tuple(sizes.values()))
    measured = []
    for clique in SHAPES[shape]:
        scale = sigma * rng.uniform(0.5, 2)
        values = margin(joint, sizes, tuple(clique))
        measured.append(Measurement(tuple(clique), values + rng.normal(0, scale, values.shape), scale))
    return measured, sizes


def margin(joint: npt.NDArray[Any], sizes: dict[str, int], clique: Clique) -> npt.NDArray[Any]:
    names = list(sizes)
    summed = joint.sum(axis=tuple(i for i, name in enumerate(names) if name not in clique))
    kept = [name for name in names if name in clique]
    return np.transpose(summed, [kept.index(name) for name in clique])


def smallest_loss(measured: list[Measurement], sizes: dict[str, int], total: float) -> float:
    """Non-negative least squares over the whole joint distribution: another optimiser, which knows no graph."""
    optimize = pytest.importorskip("scipy.optimize")
    cells = np.indices(tuple(sizes.values())).reshape(len(sizes), -1)
    rows, right = [], []
    for measurement in measured:
        places = np.zeros(cells.shape[1], dtype=int)
        for name in measurement.clique:
            places = places * sizes[name] + cells[list(sizes).index(name)]
        block = np.zeros((measurement.values.size, cells.shape[1]))
        block[places, np.arange(cells.shape[1])] = 1 / measurement.sigma
        rows.append(block)
        right.append(measurement.values.ravel() / measurement.sigma)
    heavy = 1e4
    matrix = np.vstack([*rows, np.full((1, cells.shape[1]), heavy)])
    found, _ = optimize.nnls(matrix, np.concatenate([*right, [heavy * total]]), maxiter=100_000)
    return float(sum((((r @ found) - b) ** 2).sum() for r, b in zip(rows, right, strict=True)) / 2)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shape", SHAPES)
def test_the_loss_is_that_of_another_optimiser(shape: str, seed: int) -> None:
    measured, sizes = noisy(shape, seed)
    model = Pgm(measured, sizes)
    model.step(5_000)
    best = smallest_loss(measured, sizes, model.total)
    assert model.loss == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert (np.diff(model.trace) <= 0).all()


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=8)
@given(seed=st.integers(0, 10**6))
def test_marginals_agree_with_each_other_and_with_the_loss(shape: str, seed: int) -> None:
    measured, sizes = noisy(shape, seed)
    model = Pgm(measured, sizes).fit(60)
    whole = model.marginal(tuple(sizes))
    assert whole.sum() == pytest.approx(model.total)
    assert whole.min() >= 0
    cliques: list[Clique] = [c for k in range(4) for c in combinations("dbeac", k)]
    for clique, table in zip(cliques, model.marginals(cliques), strict=True):
        np.testing.assert_allclose(table, margin(whole, sizes, clique), atol=1e-6)
    off = [(margin(whole, sizes, m.clique) - m.values) / m.sigma for m in measured]
    assert model.loss == pytest.approx(sum((o**2).sum() for o in off) / 2)


def test_what_nobody_measured_is_even_and_independent() -> None:
    measured = [Measurement(("a", "b"), np.array([[30.0, 10.0], [0.0, 60.0]]), 1.0)]
    model = Pgm(measured, {"c": 4, "a": 2, "b": 2}).fit(tolerance=1e-9)
    np.testing.assert_allclose(model.marginal(("c",)), 25, rtol=1e-9)
    np.testing.assert_allclose(model.marginal(("a", "c", "b"))[:, 1], model.marginal(("a", "b")) / 4, atol=1e-9)


def test_weights_decide_between_contradictions() -> None:
    measured = [Measurement(("a",), np.array([90, 10]), 1.0), Measurement(("a",), np.array([10, 90]), 3.0)]
    model = Pgm(measured, {"a": 2}).fit(tolerance=1e-12)
    np.testing.assert_allclose(model.marginal(("a",)), [82, 18], rtol=1e-5)


def test_buckets_are_fitted_as_buckets() -> None:
    decade = np.arange(20) // 10
    fine = Measurement(("age",), np.arange(20), 1.0)
    coarse = Measurement(("sex", "age"), np.array([[40, 100], [5, 45]]), 1.0, buckets={"age": decade})
    model = Pgm([fine, coarse], {"age": 20, "sex": 2}).fit(tolerance=1e-12)
    table = model.marginal(("sex", "age"))
    np.testing.assert_allclose(table.reshape(2, 2, 10).sum(axis=2), coarse.values, atol=0.01)
    np.testing.assert_allclose(table.sum(axis=0), fine.values, atol=0.01)
    # Inside a bucket nothing is known but the 1-way.
    np.testing.assert_allclose(table[0, 10:] / table[0, 10:].sum(), fine.values[10:] / 145, atol=1e-4)


def test_structural_zeros_stay_empty() -> None:
    measured, sizes = noisy("cycle", seed=2)
    rng = np.random.default_rng(0)
    zeros: dict[Clique, npt.NDArray[np.bool_]] = {
        ("a", "b"): rng.random((sizes["a"], sizes["b"])) < 0.3,
        ("c", "a"): rng.random((sizes["c"], sizes["a"])) < 0.3,
    }
    model = Pgm(measured, sizes, zeros=zeros).fit()
    records = pgm(measured, sizes, 5_000, zeros=zeros, seed=0)
    for (a, b), forbidden in zeros.items():
        assert model.marginal((a, b))[forbidden].sum() == 0
        assert not forbidden[records[a], records[b]].any()
    with pytest.raises(DomainError, match=r"\('a', 'b'\).*truth values"):
        Pgm(measured, sizes, zeros={("a", "b"): np.zeros(2, dtype=bool)})
    with pytest.raises(DomainError, match="leave no cell"):
        Pgm(measured, sizes, zeros={("a",): np.ones(sizes["a"], dtype=bool)})
    contradiction = {
        ("a",): np.arange(sizes["a"]) > 0,
        ("a", "c"): np.arange(sizes["a"])[:, None] + np.zeros(sizes["c"]) < 1,
    }
    if sizes["a"] > 1:
        with pytest.raises(ParameterError, match="every combination"):
            Pgm(measured, sizes, zeros=contradiction)


def test_records_follow_the_model_and_the_seed() -> None:
    table = chicle.datasets.census(20_000, d=8)
    cliques = list(zip(table.domain, list(table.domain)[1:], strict=False))
    cliques = [clique for clique in cliques if table.domain.cells(clique) < 20_000]
    targets = [Measurement(c, v, 1.0) for c, v in zip(cliques, chicle.count(table, cliques), strict=True)]
    model = Pgm(targets, table.domain).fit()
    drawn = [model.records(20_000, seed=seed) for seed in (1, 1, 2)]
    assert all((drawn[0][name] == drawn[1][name]).all() for name in table.domain)
    assert any((drawn[0][name] != drawn[2][name]).any() for name in table.domain)
    off = [np.abs(m - c).sum() for m, c in zip(model.marginals(cliques), chicle.count(drawn[0], cliques), strict=True)]
    assert np.mean(off) / 20_000 < 0.03
    # Descent goes on from there, and has little left to do.
    descent = Descent(targets, table.domain, start=drawn[0])
    assert descent.trace[0] < 0.04
    assert descent.sweep() < descent.trace[0]


@pytest.mark.parametrize("threads", [2, 8])
def test_threads_change_nothing(threads: int) -> None:
    measured, sizes = noisy("clique", seed=1)
    one, more = (Pgm(measured, sizes, threads=t).fit(40) for t in (1, threads))
    assert one.trace == more.trace
    assert (one.marginal(("a", "d", "e")) == more.marginal(("a", "d", "e"))).all()
    assert all((one.records(500, 1)[name] == more.records(500, 1)[name]).all() for name in sizes)


def test_a_warm_start_keeps_what_was_learned() -> None:
    measured, sizes = noisy("cycle", seed=5)
    first = Pgm(measured[:-1], sizes).fit()
    warm, cold = Pgm(measured, sizes, start=first), Pgm(measured, sizes)
    assert warm.loss < cold.loss / 2
    again = Pgm(measured[:-1], sizes, start=first)
    assert again.loss == pytest.approx(first.loss)
    with pytest.raises(DomainError, match="same domain"):
        Pgm(measured, {**sizes, "f": 2}, start=first)


def test_steps_can_be_taken_one_by_one() -> None:
    measured, sizes = noisy("tree", seed=1)
    seen: list[tuple[int, float]] = []
    model = Pgm(measured, sizes)
    assert model.step() == model.loss == model.trace[1]
    model.fit(20, progress=lambda number, loss: seen.append((number, loss)))
    assert seen[-1] == (len(model.trace) - 2, model.loss)
    assert "measurements" in repr(model)


def test_a_model_too_dense_is_refused_with_its_size() -> None:
    domain = dict.fromkeys("abcdefgh", 100)
    measured = [Measurement(pair, np.ones((100, 100)), 1.0) for pair in combinations(domain, 2)]
    assert jt_size(combinations(domain, 2), domain) == 8 * 100**8
    with pytest.raises(InfeasibleError, match="10000000000000000 cells"):
        pgm(measured, domain)
    tree = [(a, b) for a, b in zip(domain, list(domain)[1:], strict=False)]
    assert jt_size(tree, domain) == 8 * 7 * 100**2
    with pytest.raises(InfeasibleError, match="memory_limit"):
        Pgm(measured[:7], domain, memory_limit=100_000)
    model = Pgm([Measurement(pair, np.ones((100, 100)), 1.0) for pair in tree], domain)
    with pytest.raises(InfeasibleError):
        model.marginal(tuple(domain))
    inside, far, whole = model.marginals_within(10**8, [("a", "b"), ("h", "a"), tuple(domain)])
    assert inside is not None
    assert far is not None
    np.testing.assert_allclose(far, model.marginal(("h", "a")))
    assert whole is None
    assert model.marginals_within(100, [("a", "h")]) == [None]
    with pytest.raises(ParameterError, match="cells"):
        model.marginals_within(-1, [("a",)])


def test_the_memory_is_known_beforehand() -> None:
    measured, sizes = noisy("triples", seed=1)
    needed = model_bytes([measurement.clique for measurement in measured], chicle.Domain(sizes))
    assert Pgm(measured, sizes, memory_limit=needed).size < needed
    with pytest.raises(InfeasibleError, match=f"{needed} bytes"):
        Pgm(measured, sizes, memory_limit=needed - 1)


def test_privsyn_refuses_what_no_model_can_hold() -> None:
    table = chicle.datasets.census(3_000, d=8)
    synth = chicle.PrivSyn(epsilon=1, delta=1e-9, generator="pgm", cliques=chicle.pairs(table.domain), theta=0)
    synth.options = {"memory_limit": 100_000}
    ledger = chicle.Ledger(chicle.Budget(epsilon=1, delta=1e-9))
    with pytest.raises(InfeasibleError, match="'gum' or 'descent'"):
        synth.fit(table, ledger=ledger)
    assert ledger.spent == 0


@pytest.mark.parametrize(
    ("options", "kind", "rule"),
    [
        ({"iterations": -1}, ParameterError, "iterations"),
        ({"tolerance": 1.0}, ParameterError, "tolerance"),
        ({"threads": 0}, ParameterError, "threads"),
        ({"memory_limit": 0}, ParameterError, "memory_limit"),
        ({"n": -1}, ParameterError, "n must be"),
        ({"zeros": {("z",): np.zeros(2, dtype=bool)}}, DomainError, "'z'"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], kind: type[Exception], rule: str) -> None:
    with pytest.raises(kind, match=rule):
        pgm([Measurement(("a",), np.ones(2), 1.0)], {"a": 2}, **options)


@pytest.mark.parametrize("n", [0, 1, None])
def test_tiny_tables(n: int | None) -> None:
    targets = [Measurement(("a", "b"), np.array([[-2, 0, 1]]), 1.0), Measurement((), np.array(2), 1.0)]
    made = pgm(targets, {"a": 1, "b": 3, "c": 70_000}, n)
    assert isinstance(made, Records)
    assert len(made) == (1 if n is None else n)
    only_n = replace(targets[1], values=np.array(7))
    assert len(pgm([only_n], {"a": 3})) == 7


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
def test_ctrl_c_stops_a_step(tmp_path: Path) -> None:
    prepare = """
        import chicle, numpy as np
        from chicle.models.pgm import Pgm
        domain = {name: 120 for name in "abcd"}
        measured = [chicle.Measurement(c, np.random.default_rng(0).random((120,) * 3), 1.0)
                    for c in (("a", "b", "c"), ("b", "c", "d"))]
        model = Pgm(measured, domain)
    """
    assert interrupt(tmp_path, prepare, "model.step(1000)", "'stopped', model.loss >= 0") == "stopped True\n"
