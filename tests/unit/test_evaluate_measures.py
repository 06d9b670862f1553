"""The measures of the papers, each against values computed by hand or by brute force."""

import importlib
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import chicle
from chicle import Records, Schema
from chicle.errors import DomainError, ParameterError
from chicle.evaluation import queries as asked
from chicle.evaluation.answers import AnswerErrors, answer_errors
from chicle.evaluation.contest import Contest
from chicle.evaluation.gini import amounts, gini, nist_gini
from chicle.evaluation.subsample import Subsampling, mean_deviation

BITS = {"a": 2, "b": 2, "c": 2}


def rows(*told: str) -> Records:
    return Records({name: [int(row[i]) for row in told] for i, name in enumerate("abc")}, BITS)


def correlated(n: int, seed: int) -> Records:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 6, n)
    return Records(
        {"a": a, "b": (a + rng.integers(0, 2, n)) % 6, "c": (a > 2) ^ (rng.random(n) < 0.1)}, {"a": 6, "b": 6, "c": 2}
    )


def test_scores_by_hand() -> None:
    """Two of four real rows are 000, two 111; the synthetic rows are 000 and 001."""
    found = chicle.evaluate(rows("000", "000", "111", "111"), rows("000", "001"))
    # 1-way: a and b lose half of their ones, c nothing.
    np.testing.assert_allclose(found.errors[1].tvd, [0.5, 0.5, 0])
    # Pairs: ab (00: 1/2 -> 1), ac and bc (00, 11 -> 00, 01).
    np.testing.assert_allclose(found.errors[2].tvd, [0.5, 0.5, 0.5])
    assert found["l1_2"].value == pytest.approx(1.0)
    # The triple: 000 and 111 at a half each against 000 and 001.
    assert found["nist_density"].value == pytest.approx(5e5)
    assert found["max_3"].value == pytest.approx(0.5)
    assert found["workload"].value == pytest.approx(1.0)
    assert found["matches"].value == pytest.approx(0.5)
    assert found["unique_matches"].value == 0
    assert found["distinct_rows"].value == 1
    assert found["distinct_rows"].also == {"real table": 0.5}


def test_errors_of_a_workload_by_hand() -> None:
    """The pair ab: 00 1/2 -> 1, 11 1/2 -> 0, the other two are empty in both. And c: 1/2, 1/2 in both."""
    workload = [("b", "a"), ("c",)]
    found = chicle.evaluate(rows("000", "000", "111", "111"), rows("000", "001"), workload=workload)
    assert found["workload_max"].value == pytest.approx(0.5)
    assert found["workload_mean"].value == pytest.approx(1 / 6)
    assert found["workload_median"].value == 0
    assert "(6 cells)" in found["workload_max"].title
    assert "workload_max" not in chicle.evaluate(rows("000"), rows("000"))


@given(seed=st.integers(0, 2**32))
def test_errors_of_a_workload_equal_those_of_all_cells_at_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    real, other = correlated(60, seed), correlated(50, seed + 1)
    cliques = [("a", "b"), ("c",), ("a", "c")]
    errors = [np.abs(x / 60 - y / 50).ravel() for x, y in zip(real.count(cliques), other.count(cliques), strict=True)]
    every = np.concatenate(errors)
    found = AnswerErrors.empty(1)
    for off in errors:
        kept = rng.random(off.size) < 0.5
        found.add(0, off[kept | (off > 0)], off.size)
    assert found.largest[0] == every.max()
    assert found.mean[0] == pytest.approx(every.mean())
    median = np.sort(every)[(every.size + 1) // 2 - 1]
    assert found.median[0] <= median * (1 + 1e-6)
    assert found.median[0] >= median * (1 - 2**-10)
    answers = {clique: table / 50 for clique, table in zip(cliques, other.count(cliques), strict=True)}
    assert answer_errors(real, answers)["mean"] == pytest.approx(every.mean())


def test_nist_range_by_hand() -> None:
    # One query is halved, the other has no synthetic row: d = ln 1/2 and ln(1e-6 / 0.1).
    rms = math.sqrt((math.log(2) ** 2 + math.log(1e5) ** 2) / 2)
    found = asked.nist_range(np.array([0.5, 0.1]), np.array([0.25, 0.0]))
    assert found == pytest.approx(1e6 * max(0, 1 - rms / math.log(1000)))
    assert asked.nist_range(np.array([0.5]), np.array([0.25])) == pytest.approx(1e6 * (1 - math.log(2) / math.log(1e3)))
    assert asked.nist_range(np.array([0.5]), np.array([0.0])) == 0


def test_a_perfect_table_has_perfect_scores() -> None:
    real = correlated(500, 0)
    found = chicle.evaluate(real, real, gini=("a", "c", "b"))
    assert {found[key].value for key in ("l1_2", "max_3", "range_3", "workload")} == {0}
    assert {found[key].value for key in ("nist_density", "nist_range", "nist_gini")} == {1e6}
    assert found["subsampling"].value == math.inf
    assert found["subsampling"].to_dict()["value"] is None
    assert found["matches"].value == 1


@given(seed=st.integers(0, 2**32), many=st.integers(1, 70))
def test_queries_equal_a_loop(seed: int, many: int) -> None:
    rng = np.random.default_rng(seed)
    domain = {"a": 4, "b": 3, "c": 1}
    records = Records({name: rng.integers(0, size, 40) for name, size in domain.items()}, domain)
    drawn = [{name: rng.random(size) < 0.5 for name, size in domain.items() if rng.random() < 0.7} for _ in range(many)]
    expected = [
        np.mean([all(query[name][records[name][row]] for name in query) for row in range(40)]) for query in drawn
    ]
    np.testing.assert_allclose(asked.shares(records, drawn), expected)


@pytest.mark.parametrize("ordinal", [[], ["a"]])
def test_conditions_are_drawn_evenly(ordinal: list[str]) -> None:
    """Among all conditions that hold for a code, each is as likely as when conditions are drawn and refused."""
    schema = Schema.from_cardinalities({"a": 3}, ordinal=ordinal)
    rng = np.random.default_rng(0)
    free = [tuple(asked._condition(schema, "a", None, rng).tolist()) for _ in range(12_000)]
    kept = [condition for condition in free if condition[1]]
    held = [tuple(asked._condition(schema, "a", 1, rng).tolist()) for _ in range(6_000)]
    assert set(held) == set(kept)
    if ordinal:  # intervals drawn by two ends favour wide ones; those that must hold a code are all as likely
        assert all(abs(held.count(condition) / 6_000 - 1 / len(set(held))) < 0.03 for condition in set(held))
    else:
        assert all(abs(held.count(c) / len(held) - kept.count(c) / len(kept)) < 0.03 for c in set(held))


def test_range_queries_find_real_rows() -> None:
    real = correlated(300, 0)
    contest = Contest.between(real, correlated(200, 1), Schema(real.domain, ["a"]), budget=None, seed=3, threads=None)
    (score,) = asked.nist_range_scores(contest, 50)
    assert 0 < (score.value or 0) < 1e6
    (score,) = asked.range_scores(contest, 50)
    assert 0 < (score.value or 0) < 0.2


def test_the_mean_deviation_is_that_of_the_binomial() -> None:
    for draws in (1, 2, 7, 40, 1000):
        shares = np.concatenate([[0, 1, 0.5, 1e-9], np.random.default_rng(draws).random(20)])
        k = np.arange(draws + 1)
        expected = [(binom.pmf(k, draws, p) * np.abs(k / draws - p)).sum() for p in shares]
        np.testing.assert_allclose(mean_deviation(shares, draws), expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("fraction", [0.05, 0.4, 1.5])
def test_the_subsampling_fraction_agrees_with_simulation(fraction: float) -> None:
    real = correlated(2_000, 0)
    workload = {("a", "b"): 2.0, ("c",): 1.0, ("a", "c"): 0.5}
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(40):
        drawn = rng.integers(0, 2_000, round(fraction * 2_000))
        sample = Records({name: real[name][drawn] for name in real}, real.domain)
        errors.append(
            np.mean(
                [
                    weight * np.abs(a / 2_000 - b / len(sample)).sum()
                    for weight, a, b in zip(
                        workload.values(), chicle.count(real, workload), chicle.count(sample, workload), strict=True
                    )
                ]
            )
        )
    subsampling = Subsampling(2_000, list(workload.values()))
    from chicle.evaluation.marginals import observe

    observe([real], list(workload), None, subsampling)
    assert subsampling.error(round(fraction * 2_000)) == pytest.approx(np.mean(errors), rel=0.05)
    assert subsampling.fraction(float(np.mean(errors))) == pytest.approx(fraction, rel=0.12)
    found = chicle.evaluate(real, sample, workload=workload)
    assert found["workload"].value == pytest.approx(errors[-1])


def test_fractions_at_the_ends() -> None:
    real = rows("000", "111", "111")
    found = chicle.evaluate(real, rows("001"))
    assert found["subsampling"].value == pytest.approx(1 / 3)
    assert chicle.evaluate(rows("000"), rows("000"))["subsampling"].value == math.inf


def test_gini_by_hand() -> None:
    rng = np.random.default_rng(0)
    values, counts = rng.random(6) * 10, rng.integers(0, 5, 6)
    everyone = np.repeat(values, counts)
    expected = np.abs(everyone[:, None] - everyone).mean() / (2 * everyone.mean())
    assert gini(counts, values) == pytest.approx(expected)
    assert gini(np.array([3, 0]), np.array([0.0, 1.0])) == 0
    # Two groups, classes of one row each; wages 1 and 2 against 2 and 1: gaps -1 and 1/2 change places.
    wages = np.array([1.0, 2.0])
    real = np.array([[[1, 0], [0, 1]], [[0, 1], [1, 0]]])
    assert nist_gini(real, real, wages) == 1e6
    assert nist_gini(real, real[::-1], wages) == pytest.approx(5e5)
    # A group that is gone: its index is off by 1, so the first part is 1 - sqrt(1/2); no gap ranks it between.
    gone = real * np.array([1, 0])[:, None, None]
    assert nist_gini(real, gone, wages) == pytest.approx(5e5 * (1 - math.sqrt(0.5)) + 5e5)


def test_amounts_are_values_or_the_middle_of_bins() -> None:
    schema = Schema(
        {
            "each": {"type": "integer", "min": 5, "max": 7, "missing": True},
            "bins": {"type": "integer", "min": 0, "max": 9, "bins": 2},
            "number": {"type": "number", "min": 0, "max": 1, "bins": 2},
            "coded": 3,
            "text": {"type": "categorical", "values": ["x", "y"]},
        }
    )
    assert amounts(schema, "each").tolist() == [5, 6, 7]
    assert amounts(schema, "bins").tolist() == [2, 7]
    assert amounts(schema, "number").tolist() == [0.25, 0.75]
    assert amounts(schema, "coded").tolist() == [0, 1, 2]
    with pytest.raises(ParameterError, match="'text', the amount, must be a column of numbers"):
        amounts(schema, "text")


def test_an_svm_learns_what_there_is() -> None:
    real, made = correlated(3_000, 0), correlated(3_000, 1)
    score = chicle.evaluate(real, made, label="c")["misclassification"]
    assert score.value == pytest.approx(0.1, abs=0.03)
    assert score.floor == pytest.approx(0.1, abs=0.03)
    assert score.also["majority"] == pytest.approx(0.5, abs=0.05)
    assert (score.independent or 0) > 0.3
    constant = Records({"a": [0] * 9, "b": [0] * 9, "c": [1] * 9}, real.domain)
    score = chicle.evaluate(real, constant, label="c")["misclassification"]
    assert score.value == pytest.approx(0.5, abs=0.05)


def test_without_scikit_learn_it_is_skipped_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = importlib.import_module

    def fails(name: str, *rest: Any) -> Any:
        if name.startswith("sklearn"):
            raise ImportError(name)
        return real_import(name, *rest)

    monkeypatch.setattr(importlib, "import_module", fails)
    found = chicle.evaluate(correlated(50, 0), correlated(50, 1), label="c")
    assert found["misclassification"].value is None
    assert "pip install 'chicle[evaluate]'" in str(found)


def test_matches_equal_sets() -> None:
    real, made = correlated(60, 0), correlated(50, 1)
    known = [tuple(int(real[name][i]) for name in real) for i in range(60)]
    new = [tuple(int(made[name][i]) for name in made) for i in range(50)]
    found = chicle.evaluate(real, made)
    assert found["matches"].value == pytest.approx(np.mean([row in known for row in new]))
    alone = [row for row in known if known.count(row) == 1]
    assert found["unique_matches"].value == pytest.approx(np.mean([row in new for row in alone]))
    assert found["distinct_rows"].value == len(set(new)) / 50
    beyond = found["excess_matches"]
    assert beyond.value == pytest.approx(found["matches"].value - found["matches"].independent)  # type: ignore[operator]
    assert "never a privacy guarantee" in beyond.note


def test_violations_are_counted() -> None:
    schema = Schema(
        {"age": {"type": "integer", "min": 0, "max": 19}, "job": {"type": "categorical", "values": ["none", "cook"]}},
        constraints=[
            {"if": {"age": {"below": 15}}, "then": {"job": "none"}, "violations": "keep"},
            {"forbid": {"age": 19, "job": "none"}},
        ],
    )
    real = {"age": [3, 16, 17, 14], "job": ["none", "cook", "none", "cook"]}
    made = {"age": [3, 4, 19, 16, 5], "job": ["cook", "none", "none", "cook", "cook"]}
    score = chicle.evaluate(real, made, schema)["violations"]
    assert score.value == pytest.approx(3 / 5)
    assert score.also == {"real table": 0.25}
    assert score.note == "most often the constraint `if` on 'age' and 'job'"
    synth = chicle.Independent(epsilon=9, delta=1e-6).fit(real, schema)
    assert chicle.evaluate(real, synth.sample(50, seed=0), schema)["violations"].value == 0
    assert "violations" not in chicle.evaluate(correlated(9, 0), correlated(9, 1))


@pytest.mark.parametrize("workload", ["abc", [], {("a",): -1.0}, {("a",): math.nan}, 3])
def test_workloads_that_are_none(workload: Any) -> None:
    with pytest.raises(ParameterError, match="workload"):
        chicle.evaluate(correlated(9, 0), correlated(9, 1), workload=workload)


def test_attributes_that_are_none() -> None:
    real = correlated(9, 0)
    with pytest.raises(DomainError, match="'x' is not an attribute"):
        chicle.evaluate(real, real, label="x")
    with pytest.raises(DomainError, match="'x' is not an attribute"):
        chicle.evaluate(real, real, workload=[("a", "x")])
    with pytest.raises(ParameterError, match="'b', the class, must have two values, not 6"):
        chicle.evaluate(real, real, gini=("a", "b", "c"))
