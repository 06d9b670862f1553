"""Declared analyses: the sensitivity of sums over rows by enumerating neighbours, their cost, and whose rows count."""

import math
import pickle
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import Budget, BudgetExceeded, Ledger, ParameterError, Schema, SchemaError
from chicle.analyses.declared import analysis_of
from chicle.analyses.design import Design
from chicle.analyses.sums import Products, Question, RowSumsTask, Score, release_sums
from chicle.privacy import TestNoise
from chicle.privacy.events import GaussianEvent
from chicle.sources import open_source

SCHEMA = Schema(
    {
        "x": {"type": "number", "min": -1, "max": 3, "bins": 2},
        "g": {"type": "categorical", "values": ["u", "v", "w"]},
        "h": {"type": "boolean", "missing": True},
        "y": {"type": "integer", "min": 0, "max": 4, "outside": "clamp"},
    }
)
ROWS = list(product((-1.0, 0.9, 3.0), ("u", "w"), (True, None), (0, 4)))
ANALYSES = [
    "logit: y == 4 ~ x + g",
    "linear: y ~ x * h",
    "poisson: y ~ C(g) + h",
    "linear: y ~ x + I(x ** 2) + x:g + g",
]


def design_of(text: str) -> Design:
    return analysis_of(text).design(SCHEMA)


def table_of(rows: Any) -> dict[str, pa.ChunkedArray]:
    columns = list(zip(*rows, strict=True)) if rows else [()] * 4
    types = (pa.float64(), pa.string(), pa.bool_(), pa.int64())
    return {
        name: pa.chunked_array([pa.array(values, kind)])
        for name, values, kind in zip("xghy", columns, types, strict=True)
    }


def questions(text: str) -> list[Question]:
    """Several public places, with residuals that reach and exceed the reach, and weights that use all of the bound."""
    design = design_of(text)
    rng = np.random.default_rng(0)
    found: list[Question] = []
    for scale in (0.0, 1.0, 10.0):
        parts = rng.dirichlet(np.ones(design.blocks)) ** 0.5
        weights = parts[design.block]
        place = scale * rng.normal(size=design.size)
        found.append(Score(of=text, design=design, weights=weights, place=place, reach=0.4 if scale else 1.0))
        found.append(Products(of=text, design=design, weights=weights))
    return found


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("text", ANALYSES)
def test_no_person_moves_sums_by_more_than_k_rows_may(text: str, k: int) -> None:
    """Every person of at most k rows, at every table of one row more: sums are integers, so moves are exact."""
    rows = ROWS if k == 1 else ROWS[::3]
    for question in questions(text):
        each = [question.sums(table_of([row])) for row in rows]
        largest = 0
        for base in ([], [ROWS[-1], ROWS[5]]):
            before = question.sums(table_of(base))
            for size in range(1, k + 1):
                for person in combinations_with_replacement(range(len(rows)), size):
                    after = question.sums(table_of([*base, *(rows[i] for i in person)]))
                    move = after - before
                    np.testing.assert_array_equal(move, sum(each[i] for i in person))
                    largest = max(largest, int((move.astype(object) ** 2).sum()))
        assert largest <= (k * question.row_sensitivity) ** 2


@pytest.mark.parametrize("text", ANALYSES[:1])
def test_the_sensitivity_is_attained(text: str) -> None:
    """A row with the longest features and a residual at the reach moves the score by nearly all of the bound."""
    reached = [
        max(float(np.linalg.norm(one.sums(table_of([row])).astype(float))) for row in ROWS) / one.row_sensitivity
        for one in questions(text)
    ]
    assert max(reached[::2]) > 0.99
    assert max(reached[1::2]) > 0.7, "of products, only the upper triangle is released"


@pytest.mark.parametrize("text", ANALYSES)
@given(seed=st.integers(0, 2**32), scale=st.sampled_from([1.0, 1e3, 1e9, 1e300]))
def test_the_bound_does_not_rest_on_floating_point(text: str, seed: int, scale: float) -> None:
    """Absurd coefficients overflow on the way; the integers that come out are bounded all the same."""
    design = design_of(text)
    rng = np.random.default_rng(seed)
    weights = np.full(design.size, design.blocks**-0.5)
    score = Score(of=text, design=design, weights=weights, place=scale * rng.normal(size=design.size), reach=1e-3)
    with np.errstate(all="ignore"):
        for row in (ROWS[0], ROWS[9], ROWS[-1]):
            assert (score.sums(table_of([row])).astype(object) ** 2).sum() <= score.row_sensitivity**2


def test_features_of_a_block_are_at_most_one_long() -> None:
    for text in ANALYSES:
        design = design_of(text)
        features, _ = design.rows(table_of(ROWS))
        for block in range(design.blocks):
            assert (np.linalg.norm(features[:, design.block == block], axis=1) <= 1 + 1e-12).all()


def test_weights_that_break_the_bound_are_refused() -> None:
    design = design_of(ANALYSES[0])
    for weights in (np.ones(design.size), np.linspace(0.1, 0.2, design.size)):
        with pytest.raises(ValueError, match="weights"):
            Products(of="x", design=design, weights=weights)


def test_sums_merge_and_travel() -> None:
    asked = questions(ANALYSES[1])
    whole = RowSumsTask(asked)
    whole.add(whole.prepare(table_of(ROWS)))
    first, second = (pickle.loads(pickle.dumps(RowSumsTask(asked))) for _ in range(2))  # noqa: S301 - our own
    first.add(first.prepare(table_of(ROWS[:5])))
    second.add(second.prepare(table_of(ROWS[5:])))
    first.merge(second)
    for mine, theirs in zip(whole.sums, first.sums, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("k", [1, 4])
def test_what_is_bought_costs_what_was_planned(k: int) -> None:
    schema = Schema(SCHEMA.columns, max_records_per_person=k)
    ledger = Ledger(Budget(rho=0.5))
    asked = questions(ANALYSES[0])[:2]
    found = release_sums([(one, 0.1) for one in asked], open_source(table_of(ROWS), schema), k, ledger)
    for one, event, question in zip(found, ledger.events, asked, strict=True):
        assert isinstance(event, GaussianEvent)
        assert event.l2_sensitivity == k * question.row_sensitivity
        assert event.sigma == one.sigma
        assert event.rho("gdp") == pytest.approx(0.1)
        assert one.protected
    with pytest.raises(BudgetExceeded):
        release_sums([(one, 0.2) for one in asked], open_source(table_of(ROWS), schema), k, ledger)
    assert len(ledger.events) == 2


def people(rows: int, k: int) -> tuple[dict[str, Any], Schema]:
    rng = np.random.default_rng(3)
    table = {
        "id": rng.integers(0, rows // 5, rows),
        "x": rng.integers(0, 10, rows),
        "y": rng.random(rows) < 0.4,
    }
    columns: dict[str, Any] = {"x": {"type": "integer", "min": 0, "max": 9}, "y": {"type": "boolean"}}
    return table, Schema(columns, person="id", max_records_per_person=k)


def test_only_k_rows_of_a_person_are_summed() -> None:
    """The analyses read raw rows again, through the same door that limits persons."""
    table, schema = people(400, 2)
    design = chicle.Logit("y ~ x").design(schema)
    question = Products(of="x", design=design, weights=np.full(2, 0.5**0.5))
    seen: dict[int, int] = {}
    kept = []
    for i, one in enumerate(table["id"].tolist()):
        seen[one] = seen.get(one, 0) + 1
        if seen[one] <= 2:
            kept.append(i)
    assert len(kept) < 300
    task = open_source(table, schema).reduce(RowSumsTask([question]), ["x", "y"])
    alone = question.sums({name: pa.chunked_array([pa.array(table[name][kept])]) for name in ("x", "y")})
    np.testing.assert_array_equal(task.sums[0], alone)


def test_a_fit_with_analyses_spends_its_budget_and_no_more() -> None:
    table, schema = people(2_000, 3)
    synth = chicle.Prism(epsilon=1, delta=1e-9).fit(table, schema, analyses=chicle.Logit("y ~ x"), analysis_share=0.25)
    ledger = synth.ledger_
    bought = [cost for event, cost, _ in ledger.entries if event.purpose.endswith("logit: y ~ x")]
    assert len(bought) == 3
    assert 0.24 < math.fsum(bought) / ledger.budget.rho <= 0.25, "a little is spent before it is shared"
    assert ledger.spent <= ledger.budget.rho


def test_what_test_noise_made_is_marked() -> None:
    table, schema = people(500, 1)
    ledger = Ledger(Budget(rho=1), noise=TestNoise(0))
    release = chicle.Independent(rho=1).fit(table, schema, ledger=ledger, analyses=[chicle.Logit("y ~ x")]).release_
    assert not any(one.protected for one in release.transcript.row_sums)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"analyses": [chicle.Linear("x ~ z")]}, SchemaError, "'z' is not in the schema"),
        ({"analyses": [chicle.Linear("x ~ id")]}, SchemaError, "'id'"),
        ({"analyses": ["y ~ x"]}, ParameterError, "chicle.Linear"),
        ({"analyses": [chicle.Linear("x ~ y")] * 2}, ParameterError, "twice"),
        ({"analyses": [chicle.Logit("x ~ y")]}, SchemaError, "not just two values"),
        ({"analyses": [chicle.Linear("x ~ y")], "analysis_share": 1.0}, ParameterError, "analysis_share"),
        ({"analyses": [chicle.Linear("x ~ y")], "analysis_share": True}, ParameterError, "analysis_share"),
    ],
)
def test_bad_analyses_are_errors_before_anything_is_spent(options: Any, error: type[Exception], said: str) -> None:
    table, schema = people(300, 1)
    ledger = Ledger(Budget(epsilon=1, delta=1e-9))
    with pytest.raises(error, match=said):
        chicle.Prism(epsilon=1, delta=1e-9).fit(table, schema, ledger=ledger, **options)
    assert ledger.events == ()


def test_batches_that_are_read_once_are_refused_before_anything_is_spent() -> None:
    _, schema = people(10, 1)
    columns = pa.table({"id": [1, 2], "x": [1, 2], "y": [True, False]})
    ledger = Ledger(Budget(epsilon=1, delta=1e-9))
    with pytest.raises(SchemaError, match="function that opens"):
        chicle.Prism(epsilon=1, delta=1e-9).fit(
            columns.to_reader(), schema, ledger=ledger, analyses=[chicle.Logit("y ~ x")]
        )
    assert ledger.events == ()


def test_bounds_that_overflow_disclose_nobody() -> None:
    """Features are then not finite; the row counts as 0 and does not pass as short."""
    schema = Schema({"x": {"type": "number", "min": 1e308, "max": 1.7e308, "bins": 2, "missing": True}, "y": 2})
    rows = {"x": pa.chunked_array([pa.array([1.2e308, None])]), "y": pa.chunked_array([pa.array([1, 0])])}
    design = analysis_of("linear: y ~ x").design(schema)
    for question in (
        Products(of="a", design=design, weights=np.full(design.size, 0.5)),
        Score(of="a", design=design, weights=np.full(design.size, 0.5), place=np.zeros(design.size), reach=1.0),
    ):
        with np.errstate(all="ignore"):
            assert np.linalg.norm(question.sums(rows).astype(float)) <= question.row_sensitivity
