"""Replicates of a release, pooled estimates, answers from measurements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import chicle
from chicle import Measurement, Query
from chicle.errors import DomainError, ParameterError, SchemaError
from chicle.measurements.transcript import Transcript
from chicle.query import Functional
from chicle.releases.answers import Answer, Count, Mean, Quantile, Question, answer
from chicle.releases.draws import replicate, student_half

MECHANISMS = [
    chicle.Prism(epsilon=2, delta=1e-9),
    chicle.AIM(epsilon=2, delta=1e-9),
    chicle.PrivSyn(epsilon=2, delta=1e-9),
    chicle.MST(epsilon=2, delta=1e-9),
    chicle.Independent(epsilon=2, delta=1e-9),
    chicle.Gaussian(epsilon=2, delta=1e-9),
]


@pytest.fixture(scope="module")
def census() -> chicle.Records:
    return chicle.datasets.census(3_000, d=5)


@pytest.mark.parametrize("synth", MECHANISMS, ids=lambda synth: type(synth).__name__)
def test_draws_are_free_and_keep_choices(synth: chicle.Mechanism, census: chicle.Records) -> None:
    release = synth.fit(census).release_
    ledger = synth.ledger_
    spent, events = ledger.spent, len(ledger.events)
    draws = release.draws(m=2, seed=4)
    tables = list(draws)
    assert len(draws) == len(tables) == 3
    assert (ledger.spent, len(ledger.events)) == (spent, events)
    again = list(release.draws(m=2, seed=4))
    for one, other in zip(tables, again, strict=True):
        assert all((one[name] == other[name]).all() for name in one)
    assert any(not np.array_equal(tables[1][name], tables[2][name]) for name in census)
    rng = np.random.default_rng(0)
    remade = replicate(release, release.draw(None, 0).records, rng)
    for old, new in zip(release.transcript.entries, remade.transcript.entries, strict=True):
        if isinstance(old, Measurement):
            assert isinstance(new, Measurement)
            assert old.query.key == new.query.key
            assert old.sigma == new.sigma
            assert not np.array_equal(old.values, new.values) or old.values.size < 3
        else:
            assert old is new


def test_a_replicate_measures_the_table_it_is_given(census: chicle.Records) -> None:
    release = chicle.Prism(epsilon=100, delta=1e-3, allow_weak=True).fit(census).release_
    records = release.draw(None, 0).records
    remade = replicate(release, records, np.random.default_rng(0))
    for one in remade.measurements:
        (exact,) = records.count([one.query])
        spread = np.sqrt(one.sigma**2 + exact.clip(1))
        assert (np.abs(one.values - exact) < 6 * spread).all()


def test_draws_are_a_sequence(census: chicle.Records) -> None:
    draws = chicle.Independent(epsilon=1, delta=1e-9).fit(census).release_.draws(m=3, seed=0)
    assert repr(draws) == "Draws: a table and 3 replicates of it"
    assert (draws.table["AGE"] == draws[0]["AGE"]).all()
    assert len(list(draws.replicates)) == len(draws[1:]) == 3
    assert (draws[-1]["AGE"] == draws[3]["AGE"]).all()
    with pytest.raises(IndexError, match="3 replicates"):
        draws[4]
    with pytest.raises(ParameterError, match="m must be"):
        chicle.Independent(epsilon=1, delta=1e-9).fit(census).release_.draws(m=1)


def test_draws_know_which_columns_were_measured_together(exact: chicle.Release) -> None:
    draws = exact.draws(m=2, seed=0)
    assert draws.covers("AGE")
    assert draws.covers("AGE", "SEX")
    assert not draws.covers("AGE", "RACE")
    assert not draws.covers("AGE", "SEX", "RACE")
    with pytest.raises(SchemaError, match="did you mean 'AGE'"):
        draws.covers("AGEE")


def test_pool_centres_on_the_table_less_half_the_bias() -> None:
    replicates = [5.0, 7.0, 6.0]
    pooled = chicle.pool(replicates, table=4.0)
    assert pooled.estimate == 3.0  # 4 - (6 - 4) / 2
    assert pooled.standard_error == pytest.approx(np.sqrt(1.0 + 1.0))
    assert pooled.degrees == 2
    low, high = pooled.interval(0.95)
    assert high - low == pytest.approx(2 * 4.302653 * np.sqrt(2))
    assert chicle.pool([4.0, *replicates]).interval() == pooled.interval()
    assert "not covered: coefficients" in repr(pooled)


def test_pool_uses_variances_as_a_floor() -> None:
    assert chicle.pool([4.0, 4.1, 3.9], [9.0, 1.0, 1.0]).standard_error == pytest.approx(3.0)
    assert chicle.pool([4.1, 3.9], [9.0, 4.0], table=4.0).standard_error == pytest.approx(2.0)
    several = chicle.pool([[1.0, 2.0], [1.5, 2.0], [0.5, 2.5]])
    low, high = several.interval(0.9)
    assert low.shape == high.shape == (2,)


@pytest.mark.parametrize(
    ("estimates", "variances", "said"),
    [
        ([1.0, 2.0], None, "at least 2 replicates"),
        (1.0, None, "must be a list"),
        ([1.0, np.nan, 2.0, 3.0], None, "finite"),
        ([1.0, 2.0, 3.0], [1.0, 2.0], "variances"),
        ([1.0, 2.0, 3.0], [1.0, -2.0, 1.0], "variances"),
    ],
)
def test_pool_refuses_what_it_cannot_use(estimates: list[float], variances: list[float] | None, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        chicle.pool(estimates, variances)


@pytest.fixture(scope="module")
def exact(census: chicle.Records) -> chicle.Release:
    """A release whose measurements are exact, with small sigmas."""
    release = (
        chicle.Gaussian(epsilon=5, delta=1e-9, workload=[("SEX", "AGE"), ("AGE",), ("SEX", "RACE")])
        .fit(census)
        .release_
    )
    tables = [replace(one, values=census.count([one.query])[0]) for one in release.measurements]

    return replace(release, transcript=Transcript([*tables]))


def test_answers_are_exact_where_measurements_are(exact: chicle.Release, census: chicle.Records) -> None:
    age, men = census["AGE"].astype(float), census["SEX"] == 1
    assert answer(exact, Count(where={"SEX": 1})).estimate == pytest.approx(men.sum())
    assert answer(exact, Count(where={"SEX": 1, "AGE": range(20, 40)})).estimate == pytest.approx(
        (men & (age >= 20) & (age < 40)).sum()
    )
    assert answer(exact, Mean("AGE")).estimate == pytest.approx(age.mean())
    of_men = answer(exact, Mean("AGE", where={"SEX": 1}))
    assert of_men.estimate == pytest.approx(age[men].mean())
    assert of_men.tables == (("SEX", "AGE"),)
    assert abs(answer(exact, Quantile("AGE", 0.5)).estimate - np.quantile(age, 0.5)) <= 1
    n = len(age)
    assert of_men.standard_error is not None
    assert of_men.noise_error is not None
    sampling = np.sqrt(of_men.standard_error**2 - of_men.noise_error**2)
    assert sampling == pytest.approx(age[men].std() / np.sqrt(men.sum()), rel=1e-6)
    of_all = answer(exact, Mean("AGE")).standard_error
    assert of_all is not None
    assert of_all > age.std() / np.sqrt(n)


def test_queries_are_answered_by_every_table_that_is_as_fine(exact: chicle.Release, census: chicle.Records) -> None:
    decades = {"AGE": np.arange(census.domain["AGE"]) // 10}
    difference = Functional(np.array([[1, -1]]))
    queries = [
        Query(("SEX",)),
        Query(("AGE", "SEX")),
        Query(("SEX", "AGE"), decades),
        Query(("AGE",), where={"SEX": 1}),
        Query(("SEX",), functional=difference),
        Query(()),
    ]
    for query in queries:
        found = exact.answer(query)
        (counts,) = census.count([query])
        np.testing.assert_allclose(found.estimate, counts, err_msg=str(query))
        low, high = found.interval(0.95)
        assert low.shape == high.shape == np.shape(counts)
    count = exact.answer(Count(where={"SEX": 1}))
    table = exact.answer(Query(("SEX",)))
    assert table.tables == count.tables
    assert table.noise_error[1] == pytest.approx(count.noise_error)
    assert table.standard_error[1] == pytest.approx(count.standard_error, rel=0.01)
    apart = exact.answer(queries[4])
    assert apart.noise_error[0] == pytest.approx(np.sqrt((table.noise_error**2).sum()))
    unmeasured = exact.answer(Query(("AGE", "RACE")))
    assert unmeasured.standard_error is None
    assert unmeasured.estimate.shape == census.domain.shape(("AGE", "RACE"))


def test_a_bucket_across_a_group_or_another_bucket_is_too_coarse(census: chicle.Records) -> None:
    release = chicle.Gaussian(epsilon=5, delta=1e-9, workload=[("SEX", "AGE")]).fit(census).release_
    fives = {"AGE": np.arange(census.domain["AGE"]) // 5}
    (counts,) = census.count([Query(("SEX", "AGE"), fives)])
    coarse = replace(release, transcript=Transcript([Measurement(("SEX", "AGE"), counts, 2.0, buckets=fives)]))
    tens, sixes = ({"AGE": np.arange(census.domain["AGE"]) // width} for width in (10, 6))
    (wanted,) = census.count([Query(("AGE",), tens)])
    found = coarse.answer(Query(("AGE",), tens))
    np.testing.assert_allclose(found.estimate, wanted)
    assert found.noise_error[0] == pytest.approx(2.0 * 2)  # two sexes, two buckets of five
    for query in (Query(("AGE",), sixes), Query(("AGE",)), Query(("SEX",), where={"AGE": 3})):
        assert coarse.answer(query).standard_error is None
    with pytest.raises(DomainError, match="'AGEE'"):
        coarse.answer(Query(("AGEE",)))


def test_contrasts_answer_their_marginals(census: chicle.Records) -> None:
    release = chicle.Residual(epsilon=5, delta=1e-9, workload=[("SEX", "RACE")]).fit(census).release_
    found = release.answer(Query(("SEX", "RACE")))
    one = release.answer(Count(where={"SEX": 1, "RACE": 0}))
    assert found.estimate[1, 0] == pytest.approx(one.estimate)
    assert found.noise_error[1, 0] == pytest.approx(one.noise_error)


def test_noise_errors_are_those_of_repeated_noise(exact: chicle.Release) -> None:
    rng = np.random.default_rng(1)
    questions: list[Question] = [
        Count(where={"SEX": 1, "AGE": range(20, 40)}),
        Mean("AGE", where={"SEX": 1}),
        Quantile("AGE", 0.5),
    ]

    found = []
    for _ in range(300):
        noisy = [
            replace(one, values=one.floats + rng.normal(0, one.sigma, one.values.shape)) for one in exact.measurements
        ]
        release = replace(exact, transcript=Transcript([*noisy]))
        found.append([answer(release, question).estimate for question in questions])
    for question, spread in zip(questions, np.std(found, axis=0), strict=True):
        said = answer(exact, question).noise_error
        assert said is not None
        assert 0.7 * spread < said < 1.5 * spread, question


def test_what_no_table_holds_has_no_error(exact: chicle.Release) -> None:
    unmeasured = exact.answer(Count(where={"RACE": 0, "AGE": 40}))
    assert unmeasured == Answer(unmeasured.estimate, None, None, ())
    with pytest.raises(ParameterError, match="no measured table"):
        unmeasured.interval()
    with pytest.raises(SchemaError, match="no column 'AGEE'; did you mean 'AGE'"):
        exact.answer(Mean("AGEE"))
    with pytest.raises(ParameterError, match="both"):
        exact.answer(Mean("AGE", where={"AGE": 3}))
    with pytest.raises(ParameterError, match="share"):
        exact.answer(Quantile("AGE", 1.5))
    with pytest.raises(ParameterError, match="a Count, a Mean or a Quantile"):
        exact.answer("mean age")  # type: ignore[arg-type]


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 8, 19, 40, 99])
@pytest.mark.parametrize("confidence", [0.1, 0.5, 0.9, 0.95, 0.999])
def test_students_quantiles_are_those_of_scipy(degrees: int, confidence: float) -> None:
    assert student_half(confidence, degrees) == pytest.approx(stats.t.ppf((1 + confidence) / 2, degrees), rel=1e-9)
