"""The audit from outside: its bounds against exact formulas, and it finds what is planted and nothing else.

Luck: a bound on errors fails with probability `LUCK`, 1e-9; some forty are judged here, so a test of correct code fails
by luck less than once in 10^7 runs. Whether a planted bug is found depends on noise, too: `RUNS` is such that
`chance_to_miss` is below 1e-8 for each.
"""

import json
from collections.abc import Callable
from math import exp
from statistics import NormalDist

import numpy as np
import pytest

import chicle
from chicle import Budget, Ledger, ParameterError
from chicle.audit import Finding, audit, find, find_bugs
from chicle.audit.attacks import train
from chicle.audit.bounds import Errors, Promise, at_most, one_run_epsilon
from chicle.audit.cases import case_names, case_of, mechanism_cases, release_cases
from chicle.audit.evidence import Evidence, Notebook
from chicle.audit.finding import LUCK
from chicle.audit.one_run import find_in_one_run
from chicle.audit.planted import BUGS
from chicle.audit.run import judge
from chicle.cli import main
from chicle.mechanisms.base import BY_NAME

scipy_stats = pytest.importorskip("scipy.stats")
NORMAL = NormalDist()

# --- Bounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("luck", [0.05, 1e-9])
@pytest.mark.parametrize(("wrong", "runs"), [(0, 1), (0, 500), (1, 7), (37, 500), (499, 500), (2_000, 50_000)])
def test_at_most_is_clopper_pearson(wrong: int, runs: int, luck: float) -> None:
    expected = scipy_stats.beta.isf(luck, wrong + 1, runs - wrong)
    assert at_most(wrong, runs, luck) == pytest.approx(expected, rel=1e-9)
    assert scipy_stats.binom.cdf(wrong, runs, at_most(wrong, runs, luck)) <= luck * (1 + 1e-6)


def test_everything_wrong_proves_nothing() -> None:
    assert at_most(500, 500, LUCK) == 1
    assert Errors(1.0, 0.0).mu() == Errors(1.0, 1.0).epsilon(0.0) == 0


@pytest.mark.parametrize("mu", [0.3, 1.0, 4.0])
def test_the_errors_of_gaussian_noise_give_back_its_mu(mu: float) -> None:
    for threshold in (-0.5, 0.0, mu / 2, mu):
        errors = Errors(1 - NORMAL.cdf(threshold), NORMAL.cdf(threshold - mu))
        assert errors.mu() == pytest.approx(mu, rel=1e-9)
        assert Promise(True, mu**2 / 2 * (1 + 1e-9)).allows(errors)
        assert not Promise(True, mu**2 / 2 * 0.98).allows(errors)
        for delta in (0.0, 1e-3, 0.1):
            assert errors.epsilon(delta) <= Promise(True, mu**2 / 2).epsilon(delta or 1e-12)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_the_errors_of_a_pure_mechanism_give_back_its_epsilon(epsilon: float) -> None:
    wrong = 1 / (1 + exp(epsilon))
    assert Errors(wrong, wrong).epsilon(0.0) == pytest.approx(epsilon)
    assert Promise(False, epsilon**2 / 2).allows(Errors(wrong, wrong))  # epsilon^2 / 2 of zCDP


def test_zcdp_is_refuted_where_gaussian_noise_is_too_small() -> None:
    mu = 3.0
    errors = Errors(1 - NORMAL.cdf(mu / 2), NORMAL.cdf(-mu / 2))
    assert Promise(False, mu**2 / 2).allows(errors), "Gaussian noise of this cost keeps it"
    assert not Promise(False, mu**2 / 8).allows(errors), "half the noise does not"


def test_what_discovery_takes_of_delta_excuses_as_much() -> None:
    errors = Errors(0.0, 0.98)
    assert not Promise(True, 1e-6, 0.0).allows(errors)
    assert Promise(True, 1e-6, 0.021).allows(errors)


def test_one_run_bounds_what_guesses_can_be_right() -> None:
    # Without delta it is the binomial bound, which coin tosses of that bias attain.
    for epsilon in (0.5, 2.0):
        p = exp(epsilon) / (1 + exp(epsilon))
        right = int(scipy_stats.binom.isf(1e-6, 1_000, p))
        assert one_run_epsilon(right, 1_000, 5_000, delta=0.0, luck=1e-6) == pytest.approx(epsilon, abs=0.02)
    loose = one_run_epsilon(950, 1_000, 5_000, delta=1e-6, luck=1e-3)
    assert 0 < loose < one_run_epsilon(950, 1_000, 5_000, delta=1e-12, luck=1e-3)


# --- Attacks ----------------------------------------------------------------------------------------------------------


def made(ratios: np.ndarray, **numbers: np.ndarray) -> Evidence:
    fits = ratios.size
    return Evidence(ratios, dict(numbers), {}, np.full(fits, 2.0), np.zeros(fits), True)


def test_noise_that_cancels_between_two_numbers_is_found() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 50, (2, 800))
    sides = [made(np.zeros(800), one=noise[i] + i, two=noise[i] + rng.normal(0, 1e-3, 800)) for i in (0, 1)]
    (first, second), (third, fourth) = ([side.part(half) for side in sides] for half in (slice(400), slice(400, None)))
    test = train(first, second, LUCK)
    errors = test.errors(third, fourth, LUCK)
    assert test.name == "numbers"
    assert errors.mu() > 2.5


def test_numbers_that_tell_nothing_prove_nothing() -> None:
    rng = np.random.default_rng(1)
    sides = [made(rng.normal(size=1_000), **{f"n{i}": rng.normal(size=1_000) for i in range(30)}) for _ in range(2)]
    found = judge("tables", *sides)
    assert found.least_mu < 0.2
    assert not found.broken


def test_evidence_is_the_same_in_parts() -> None:
    notebooks = [Notebook(case_of("mwem").pair) for _ in range(2)]
    for i in range(6):
        notebooks[i % 2].note(case_of("mwem").release(with_canary=i > 2))
    parts = [one.evidence() for one in notebooks]
    whole = Evidence.joined(parts)
    assert whole.fits == 6
    assert any(name.startswith("choice") for name in whole.words)
    for name, values in whole.numbers.items():
        rebuilt = np.concatenate([part.numbers.get(name, np.full(part.fits, np.nan)) for part in parts])
        np.testing.assert_array_equal(values, rebuilt)


def test_the_auditors_counts_are_those_of_the_library() -> None:
    pair = case_of("tables").pair
    release = case_of("prism-k3").release(with_canary=True)
    for one in release.measurements:
        (exact,) = pair.source(with_canary=True).count([one.query])
        mine = pair.counts(one.query, pair.others) + pair.counts(one.query, pair.canary)
        np.testing.assert_array_equal(mine, exact)


# --- What is found ----------------------------------------------------------------------------------------------------

ALL = 12.0
"""A mu at which tests are practically never wrong: the bug shows in every fit."""

LOSS = {
    "row-sensitivity": 6.0,  # three times 2
    "seeded-noise": ALL,
    "free-score": 1.9,  # 1.98: the score has 0.98 of mu^2 = 4
    "data-bounds": ALL,
    "exact-n": ALL,
    "rare-label": ALL,
    "whole-share": 4.3,  # 5.6 is there to be learned, the root of 8 tables times 2; 4.8 and more were
    "noise-reused": ALL,
    "exact-reference": 4.3,  # 6.2: the score moves by 10.7 instead of 3
    "no-person-limit": ALL,  # 20, ten times 2
    "parallel-overlap": 4.3,  # 4.8: the root of 6 groups times 2
    "half-sensitivity": 3.63,  # odds of e^3.33 both ways
}
"""The mu that a test proves each bug to lose, at least."""

RUNS = {
    "free-score": 600,
    "whole-share": 800,
    "exact-reference": 800,
    "row-sensitivity": 500,
    "half-sensitivity": 1_200,
    "parallel-overlap": 800,
}
_RUNS = 300


def chance_to_miss(loss: float, promised: float, half: int) -> float:
    """The probability that a bug of this loss passes a test on so many fits of each table, by exact binomials."""
    wrong = NORMAL.cdf(-loss / 2)
    most = int(scipy_stats.binom.isf(1e-13, half, wrong)) + 1
    chances = scipy_stats.binom.pmf(np.arange(most + 1), half, wrong)
    right = np.array([NORMAL.inv_cdf(1 - at_most(i, half, LUCK / 2)) for i in range(most + 1)])
    missed = right[:, None] + right[None, :] <= promised
    return float((np.outer(chances, chances) * missed).sum()) + 2e-13


@pytest.mark.parametrize("bug", BUGS)
def test_every_planted_bug_is_found(bug: str) -> None:
    runs = RUNS.get(bug, _RUNS)
    (found,) = find_bugs([bug], runs=runs)
    assert chance_to_miss(LOSS[bug], found.mu, runs // 2) < 1e-8
    assert found.broken, found
    assert found.bug == bug
    assert found.least_mu > found.mu


def test_nothing_is_left_of_a_bug() -> None:
    for bug in BUGS.values():
        with bug.planted():
            assert not Ledger(Budget(rho=1)).protected
    assert Ledger(Budget(rho=1)).protected
    (found,) = audit(["choice"], runs=300)
    assert not found.broken


@pytest.mark.parametrize("case", release_cases())
def test_nothing_is_found_in_a_kind_of_release(case: str) -> None:
    found = find(case, runs=60)
    assert not found.broken, found
    assert found.mu == pytest.approx(2, rel=1e-6)


def test_every_mechanism_is_audited_for_persons_of_several_rows() -> None:
    cases = mechanism_cases()
    for name in BY_NAME:
        if BY_NAME[name].__module__.startswith("chicle."):
            assert {name, f"{name}-k3"} <= cases.keys()
            assert cases[f"{name}-k3"].pair.schema.max_records_per_person == 3


@pytest.mark.parametrize("case", mechanism_cases())
def test_nothing_is_found_in_a_mechanism(case: str) -> None:
    """A short form; benches/audit.py is the long one."""
    found = find(case, runs=10)
    assert not found.broken, found
    assert found.mu <= 2 * (1 + 1e-6)


def test_a_bug_in_a_mechanism_is_found_in_the_mechanism() -> None:
    found = find("prism-k3", runs=500, bug="row-sensitivity")
    assert found.broken, found


def test_one_run_is_a_lower_bound() -> None:
    found = find_in_one_run()
    assert not found.broken
    assert 1.5 < found.least_epsilon < found.epsilon


def test_processes_find_the_same_kind_of_thing() -> None:
    found = find("labels", runs=300, jobs=2, bug="rare-label")
    assert found.broken
    assert found.fits == 600


# --- The command ------------------------------------------------------------------------------------------------------


def test_the_command_lists_and_finds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--list"]) == 0
    listed = capsys.readouterr().out
    for name in (*case_names(), *BUGS):
        assert f"{name} " in listed
    assert main(["audit", "choice", "--runs", "60", "--jobs", "1"]) == 0
    told = capsys.readouterr().out
    assert "Nothing was found, which is no proof." in told
    assert main(["audit", "--planted", "data-bounds", "--runs", "300", "--jobs", "1", "--json"]) == 0
    (finding,) = json.loads(capsys.readouterr().out)
    assert Finding(**finding).broken


def test_a_bug_that_is_missed_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--planted", "data-bounds", "--runs", "8", "--jobs", "1"]) == 1
    assert "0 of 1 planted bugs were found." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["prismo"], "there is no audit of 'prismo'"),
        (["--planted", "typo"], "there is no bug 'typo'"),
        (["--runs", "1"], "--runs must be an integer of at least 4"),
        (["--jobs", "0"], "--jobs must be an integer of at least 1"),
    ],
)
def test_wrong_arguments(given: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", *given]) == 2
    assert said in capsys.readouterr().err


def test_names_are_checked_before_anything_runs() -> None:
    looks: list[Callable[[list[str]], list[Finding]]] = [audit, find_bugs]
    for look in looks:
        with pytest.raises(ParameterError, match="there is no"):
            look(["nothing"])
    assert chicle.__version__
