from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import Domain, DomainError, InfeasibleError, Measurement, ParameterError
from tests.oracles import consistency as oracle
from tests.oracles.consistency import Table

LOOPS = ["norm-sub", "norm-cut", "norm-mul", "base-pos"]


@st.composite
def problems(draw: st.DrawFn) -> tuple[Domain, list[Measurement]]:
    """Noisy margins of one table: cliques of any order, nested, repeated and in any order of attributes."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    domain = Domain(zip("abcd", sizes, strict=False))
    clique = st.lists(st.sampled_from(list(domain)), max_size=3, unique=True).map(tuple)
    cliques = draw(st.lists(clique, min_size=1, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    joint = rng.dirichlet(np.full(np.prod(sizes), 0.3)).reshape(sizes) * draw(st.sampled_from([3.0, 50.0, 1000.0]))
    measured = []
    for names in cliques:
        sigma = float(rng.uniform(0.5, 5))
        exact = oracle.margin(tuple(domain), joint, frozenset(names)).transpose([sorted(names).index(n) for n in names])
        measured.append(Measurement(names, np.asarray(exact + rng.normal(0, sigma, exact.shape)), sigma))
    return domain, measured


def values(measured: list[Measurement]) -> list[Table]:
    return [np.asarray(m.values, dtype=np.float64) for m in measured]


def stacked(measured: list[Measurement]) -> Table:
    return np.concatenate([m.values.reshape(-1) for m in measured]).astype(np.float64)


def disagreement(measured: list[Measurement]) -> float:
    """The worst sum of absolute differences between two margins on a shared set."""
    worst = 0.0
    for a, b in combinations(measured, 2):
        for kept in oracle.shared_sets([a.clique, b.clique]):
            differ = oracle.margin(a.clique, values([a])[0], kept) - oracle.margin(b.clique, values([b])[0], kept)
            worst = max(worst, float(np.abs(differ).sum()))
    return worst


@given(problems())
def test_agreement_is_dense_weighted_least_squares(problem: tuple[Domain, list[Measurement]]) -> None:
    """One sweep of averaging in order of size is the exact solution, not an approximation."""
    domain, measured = problem
    sweeps: list[float] = []
    found = chicle.project(measured, domain, nonnegativity="none", progress=lambda _, error: sweeps.append(error))
    assert len(sweeps) == 1
    differences, _ = oracle.incidence([m.clique for m in measured], dict(domain))
    variances = np.concatenate([np.full(m.values.size, m.sigma**2) for m in measured])
    noisy = stacked(measured)
    # The nearest point with differences @ x = 0 in the norm of the inverse variances.
    gram = differences @ (variances[:, None] * differences.T)
    expected = noisy - variances * (differences.T @ (np.linalg.pinv(gram, rcond=1e-10) @ (differences @ noisy)))
    np.testing.assert_allclose(stacked(found), expected, atol=1e-7)


@given(problems())
def test_the_default_is_the_nearest_valid_point(problem: tuple[Domain, list[Measurement]]) -> None:
    domain, measured = problem
    total = max(1.0, oracle.Sharing(measured).total(values(measured)))
    found = chicle.project(measured, domain, total=total, tolerance=1e-9, max_sweeps=50_000)
    differences, first = oracle.incidence([m.clique for m in measured], dict(domain))
    sums = np.zeros((len(measured), first.size))
    starts = np.cumsum([0, *(m.values.size for m in measured)])
    for i in range(len(measured)):
        sums[i, starts[i] : starts[i + 1]] = 1
    precise = np.concatenate([np.full(m.values.size, 1 / m.sigma) for m in measured])
    heavy = 1e4
    rows = np.vstack([np.diag(precise), heavy * differences, heavy * sums])
    goal = np.concatenate(
        [precise * stacked(measured), np.zeros(len(differences)), np.full(len(measured), heavy * total)]
    )
    expected, _ = scipy.optimize.nnls(rows, goal, maxiter=10_000)
    np.testing.assert_allclose(stacked(found), expected, atol=1e-4 * total)


@given(problems())
def test_loops_match_plain_numpy(problem: tuple[Domain, list[Measurement]]) -> None:
    domain, measured = problem
    for rule in ("norm-sub", "least-squares"):
        expected, sweeps = oracle.project(measured, rule=rule, tolerance=1e-4)
        errors: list[float] = []
        found = chicle.project(
            measured,
            domain,
            nonnegativity=rule,
            tolerance=1e-4,
            progress=lambda _, error, errors=errors: errors.append(error),  # type: ignore[misc]
        )
        assert abs(len(errors) - sweeps) <= 1, "rounding may decide the last one"
        if len(errors) == sweeps:
            for mine, theirs in zip(found, expected, strict=True):
                np.testing.assert_allclose(mine.values, theirs, atol=1e-6)


@given(problems(), st.sampled_from(["least-squares", "norm-sub", "norm-mul", "base-pos"]))
def test_the_fixed_point(problem: tuple[Domain, list[Measurement]], rule: Any) -> None:
    domain, measured = problem
    tolerance = 1e-5
    total = max(0.0, oracle.Sharing(measured).total(values(measured)))
    found = chicle.project(measured, domain, nonnegativity=rule, tolerance=tolerance, max_sweeps=20_000)
    slack = tolerance * max(total, 1.0)
    assert [m.clique for m in found] == [m.clique for m in measured]
    assert [m.sigma for m in found] == [m.sigma for m in measured]
    assert all(m.values.dtype == np.float64 and not m.values.flags.writeable for m in found)
    assert all((m.values >= 0).all() for m in found)
    assert disagreement(found) <= 2.01 * slack
    for m in found:
        assert m.values.sum() == pytest.approx(total, abs=1.01 * slack if rule == "base-pos" else 1e-9 * max(total, 1))


def test_weights_are_inverse_variances() -> None:
    """Three estimates of one margin: of 1, 2 and 6 cells a value, at sigmas 1, 2 and 0.5 ([P] 4.3: rho/g)."""
    domain = Domain({"a": 2, "b": 2, "c": 3})
    measured = [
        Measurement(("a",), np.array([10.0, 20.0]), 1.0),
        Measurement(("a", "b"), np.array([[6.0, 6.0], [9.0, 9.0]]), 2.0),
        Measurement(("c", "a", "b"), np.full((3, 2, 2), 2.5), 0.5),
    ]
    weights = np.array([1 / 1, 1 / (2 * 4), 1 / (6 * 0.25)])
    expected = weights @ np.array([[10, 20], [12, 18], [15, 15]]) / weights.sum()
    # (a, b) is shared too, but there (a, b) and (c, a, b) agree on everything that a does not tell.
    found = chicle.project(measured, domain, nonnegativity="none")
    np.testing.assert_allclose(found[0].values, expected)
    np.testing.assert_allclose(found[1].values, np.repeat(expected / 2, 2).reshape(2, 2))
    np.testing.assert_allclose(found[2].values, np.broadcast_to(expected[:, None] / 6, (3, 2, 2)))


def test_a_clique_measured_twice() -> None:
    domain = Domain({"a": 2, "b": 2})
    rng = np.random.default_rng(1)
    one, two = rng.uniform(50, 60, (2, 2)), rng.uniform(50, 60, (2, 2))
    measured = [Measurement(("a", "b"), one, 1.0), Measurement(("b", "a"), two.T.copy(), 3.0)]
    found = chicle.project(measured, domain)
    np.testing.assert_allclose(found[0].values, 0.9 * one + 0.1 * two)
    np.testing.assert_allclose(found[1].values, found[0].values.T)


def test_intersections_of_intersections() -> None:
    """Pairwise intersections meet in {a}, which no pair of these cliques shares alone."""
    domain = Domain(dict.fromkeys("abcdefg", 2))
    cliques = [("a", "b", "c", "d"), ("a", "b", "e", "f"), ("a", "c", "e", "g")]
    assert frozenset("a") in oracle.shared_sets(cliques)
    rng = np.random.default_rng(2)
    measured = [Measurement(clique, rng.normal(6, 5, (2, 2, 2, 2)), 5.0) for clique in cliques]
    assert disagreement(chicle.project(measured, domain, nonnegativity="none")) < 1e-10
    assert disagreement(chicle.project(measured, domain, tolerance=1e-9)) < 1e-6


def test_norm_cut_and_the_others_by_hand() -> None:
    measured = [Measurement(("a",), np.array([8.0, 3.0, 1.0, -2.0]), 1.0)]
    expected: dict[str, list[float]] = {
        "least-squares": [7.333, 2.333, 0.333, 0],
        "norm-sub": [7.333, 2.333, 0.333, 0],
        "norm-cut": [8, 2, 0, 0],
        "norm-mul": [8 / 1.2, 3 / 1.2, 1 / 1.2, 0],
        "none": [8, 3, 1, -2],
    }
    for rule, answer in expected.items():
        (found,) = chicle.project(measured, {"a": 4}, nonnegativity=rule)  # type: ignore[arg-type]
        np.testing.assert_allclose(found.values, answer, atol=1e-3)


def test_a_given_total() -> None:
    domain = Domain({"a": 3, "b": 2})
    measured = [Measurement(("a",), np.array([5, 6, 7]), 1.0), Measurement(("b",), np.array([9, 5]), 1.0)]
    for rule in ("least-squares", "norm-sub", "none"):
        found = chicle.project(measured, domain, total=30, nonnegativity=rule)
        np.testing.assert_allclose(found[0].values, [9, 10, 11])
        np.testing.assert_allclose(found[1].values, [17, 13])
    nothing = chicle.project(measured, domain, total=0)
    assert not any(m.values.any() for m in nothing)


@pytest.fixture(scope="module")
def census() -> tuple[Domain, list[npt.NDArray[np.int64]], list[Measurement]]:
    people = chicle.datasets.census(20_000, 20)
    pairs = chicle.pairs(people.domain)[::4]
    rng = np.random.default_rng(0)
    exact = chicle.count(people, pairs)
    noisy = [np.rint(table + rng.normal(0, 20, table.shape)).astype(np.int64) for table in exact]
    return people.domain, exact, [Measurement(pair, table, 20.0) for pair, table in zip(pairs, noisy, strict=True)]


def test_projection_helps_and_threads_do_not_matter(census: Any) -> None:
    domain, exact, measured = census
    results = [chicle.project(measured, domain, tolerance=1e-4, threads=threads) for threads in (1, 2, 8)]
    for one, two, eight in zip(*results, strict=True):
        assert (one.values == two.values).all()
        assert (one.values == eight.values).all()

    def error(tables: list[Measurement]) -> float:
        return float(np.mean([np.abs(t.values - e).sum() / 20_000 for t, e in zip(tables, exact, strict=True)]))

    assert error(results[0]) < 0.3 * error(measured)
    assert error(results[0]) < error(chicle.project(measured, domain, nonnegativity="none"))


def test_valid_tables_stay_as_they_are(census: Any) -> None:
    domain, exact, measured = census
    valid = [Measurement(m.clique, table, m.sigma) for m, table in zip(measured, exact, strict=True)]
    for before, after in zip(valid, chicle.project(valid, domain), strict=True):
        np.testing.assert_allclose(after.values, before.values, atol=1e-6)


@pytest.mark.parametrize("rule", ["least-squares", *LOOPS, "none"])
def test_extreme_domains(rule: Any) -> None:
    domain = Domain({"constant": 1, "large": 70_000, "small": 3})
    cliques = [(), ("constant",), ("large",), ("small", "large"), ("large", "constant"), ("constant", "small")]
    rng = np.random.default_rng(3)
    noisy = [np.asarray(70_000 / domain.cells(c) + rng.normal(0, 0.1, domain.shape(c))) for c in cliques]
    measured = [Measurement(clique, table, 0.1) for clique, table in zip(cliques, noisy, strict=True)]
    found = chicle.project(measured, domain, nonnegativity=rule, tolerance=1e-3)
    assert [m.values.shape for m in found] == [domain.shape(c) for c in cliques]
    assert disagreement(found) < 2.1 * 1e-3 * 70_000
    (alone,) = chicle.project([Measurement((), np.array(-4), 1.0)], domain, nonnegativity=rule)
    assert alone.values.item() == (-4 if rule == "none" else 0)


def test_a_large_table_is_worked_on_in_parts() -> None:
    domain = Domain({"a": 9, "b": 300, "c": 100})
    rng = np.random.default_rng(4)
    cliques = [("c", "a", "b"), ("b", "a"), ("c",), ("a", "c")]
    measured = [Measurement(c, rng.normal(1e6 / domain.cells(c), 5, domain.shape(c)), 5.0) for c in cliques]
    expected, sweeps = oracle.project(measured, rule="least-squares", tolerance=1e-3)
    found = chicle.project(measured, domain, tolerance=1e-3, max_sweeps=sweeps)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine.values, theirs, atol=1e-6)


def test_tables_that_cannot_agree_in_time_are_said_to(census: Any) -> None:
    domain, _, measured = census
    with pytest.warns(RuntimeWarning, match="after 2 sweeps tables still disagree"):
        chicle.project(measured, domain, max_sweeps=2)


def test_progress_may_stop_it(census: Any) -> None:
    domain, _, measured = census
    seen: list[tuple[int, float]] = []

    def stop(sweep: int, error: float) -> None:
        seen.append((sweep, error))
        if sweep == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        chicle.project(measured, domain, progress=stop)
    assert [sweep for sweep, _ in seen] == [1, 2, 3]
    assert seen[0][1] > seen[2][1]


A = Measurement(("a",), np.array([1.0, 2.0]), 1.0)


@pytest.mark.parametrize(
    ("measured", "options", "kind", "rule"),
    [
        ([], {}, DomainError, "no measurements .* at least one"),
        ([Measurement(("z",), np.ones(2), 1.0)], {}, DomainError, "'z' is not an attribute"),
        ([Measurement(("a", "a"), np.ones((2, 2)), 1.0)], {}, DomainError, "names an attribute twice"),
        (
            [Measurement(("a",), np.ones(3), 1.0)],
            {},
            DomainError,
            r"\('a',\) has another number .* 3 along 'a', which has 2",
        ),
        (
            [Measurement(("a",), np.array([1, np.nan]), 1.0)],
            {},
            DomainError,
            r"\('a',\) has a value that is no finite count",
        ),
        ([Measurement(("a",), np.array([1, np.inf]), 1.0)], {}, DomainError, "no finite count"),
        ([Measurement(("a",), np.array([1, 1e300]), 1.0)], {}, DomainError, "no finite count"),
        ([Measurement(("a",), np.array(["x", "y"]), 1.0)], {}, DomainError, "has dtype .*counts plus noise"),
        ([Measurement(("a",), np.ones(2), 0.0)], {}, DomainError, r"\('a',\) has sigma 0.0; it must be above 0"),
        ([Measurement(("a",), np.ones(2), -1.0)], {}, DomainError, "must be above 0"),
        ([Measurement(("a",), np.ones(2), float("nan"))], {}, DomainError, "must be above 0"),
        ([A], {"total": -1}, ParameterError, "total must be"),
        ([A], {"total": float("nan")}, ParameterError, "total must be"),
        ([A], {"nonnegativity": "clip"}, ParameterError, "must be one of 'least-squares', 'norm-sub'"),
        ([A], {"tolerance": 0}, ParameterError, "tolerance must be"),
        ([A], {"max_sweeps": 0}, ParameterError, "max_sweeps must be"),
        ([A], {"threads": 0}, ParameterError, "threads must be"),
        ([A], {"memory_limit": 0}, ParameterError, "memory_limit must be"),
        ([A], {"memory_limit": 47}, InfeasibleError, r"clique \(a\): .* 2 cells .* limit of 47"),
    ],
)
def test_bad_input_is_named(measured: Any, options: Any, kind: type[Exception], rule: str) -> None:
    with pytest.raises(kind, match=rule):
        chicle.project(measured, Domain({"a": 2}), **options)
