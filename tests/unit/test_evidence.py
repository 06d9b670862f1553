"""Public rows beside noisy tables, by the parts: raked rows, deviations, 1-ways, belief, and the model of all."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chicle import Domain, DomainError, Measurement, Model, Query, Records
from chicle.denoising.deviations import PublicDeviations
from chicle.denoising.evidence import LEAST, Seen, believe
from chicle.denoising.prior import posterior_counts
from chicle.models import DenoisedModel, EvidenceModel, GraphicalModel
from chicle.models.raked import RakedRows
from chicle.query import one_ways

DOMAIN = Domain({"a": 4, "b": 3, "c": 2, "d": 6})


def rows(n: int, seed: int, domain: Domain = DOMAIN) -> Records:
    """Attributes that depend on each other through a common number."""
    rng = np.random.default_rng(seed)
    common = rng.random(n)
    noisy = {name: (common + rng.normal(0, 0.2, n)).clip(0, 0.999) * size for name, size in domain.items()}
    return Records({name: values.astype(int) for name, values in noisy.items()}, domain)


def shares_of(records: Records) -> dict[str, Any]:
    return {name: np.bincount(records[name], minlength=size) / len(records) for name, size in records.domain.items()}


# --- Raked rows ------------------------------------------------------------------------------------------------------


def rake(records: Records, shares: dict[str, Any]) -> Any:
    """Iterative proportional fitting, row by row."""
    weights = np.full(len(records), 1 / len(records))
    for _ in range(40):
        for name, wanted in shares.items():
            sums = [
                sum(w for w, code in zip(weights, records[name], strict=True) if code == v) for v in range(len(wanted))
            ]
            weights = np.array([w * wanted[v] / sums[v] for w, v in zip(weights, records[name], strict=True)])
    return weights


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_rows_are_raked_as_by_hand(threads: int) -> None:
    records = rows(60, 1)
    shares = {name: (given + 0.5) / (given + 0.5).sum() for name, given in shares_of(rows(500, 2)).items()}
    raked = RakedRows(records, threads=threads).fit(shares)
    np.testing.assert_allclose(raked.weights, rake(records, shares), rtol=1e-9)
    assert raked.effective == pytest.approx(1 / (raked.weights**2).sum())
    for name, (table,) in ((name, raked.tables([Query((name,))])) for name in DOMAIN):
        np.testing.assert_allclose(table, shares[name], atol=0.01)
    drawn = raked.draw(10_000, 3)
    np.testing.assert_allclose(
        np.bincount(drawn["d"], minlength=6) / 10_000, raked.tables([Query(("d",))])[0], atol=2e-3
    )
    again = RakedRows(records, raked.weights, threads=threads)
    assert all(np.array_equal(drawn[name], again.draw(10_000, 3)[name]) for name in DOMAIN)


def test_values_that_no_row_has_do_no_harm() -> None:
    records = Records({"a": np.zeros(30, dtype=int), "b": np.arange(30) % 3}, {"a": 4, "b": 3})
    raked = RakedRows(records).fit({"a": np.full(4, 0.25), "b": np.array([0.5, 0.5, 0.0])})
    assert np.isfinite(raked.weights).all()
    assert raked.weights.sum() == pytest.approx(1)


# --- What the rows say of dependence ---------------------------------------------------------------------------------


def deviations_of(records: Records, effective: float) -> PublicDeviations:
    raked = RakedRows(records)
    return PublicDeviations(raked.tables, effective, shares_of(records))


def test_many_rows_say_what_they_are() -> None:
    """With hardly any sampling noise nothing is smoothed away; in buckets and in larger sets, too."""
    records = rows(20_000, 1)
    public = deviations_of(records, 1e12)
    buckets = np.array([0, 0, 1, 1, 2, 2], dtype=np.uint32)
    asked = [Query(pair) for pair in combinations(DOMAIN, 2)]
    asked += [Query(("d", "a"), {"d": buckets}), Query(("c", "a", "d"), {"d": buckets}), Query(tuple(DOMAIN))]
    for query, found in zip(asked, public.of(asked), strict=True):
        table = records.count([query])[0] / len(records)
        independent = table.sum()
        for axis in range(table.ndim):
            others = tuple(i for i in range(table.ndim) if i != axis)
            independent = np.multiply.outer(independent, table.sum(axis=others))
        np.testing.assert_allclose(public.independent(query), independent, atol=1e-12)
        np.testing.assert_allclose(found, table - independent, atol=1e-6)


def test_independent_rows_say_nothing() -> None:
    rng = np.random.default_rng(0)
    records = Records({name: rng.integers(size, size=3_000) for name, size in DOMAIN.items()}, DOMAIN)
    found = deviations_of(records, 3_000).of([Query(pair) for pair in combinations(DOMAIN, 2)])
    assert sum(np.abs(table).sum() for table in found) < 0.01


def test_smoothing_brings_few_rows_nearer_to_many() -> None:
    few, many = rows(400, 1), rows(400_000, 2)
    queries = [Query(pair) for pair in combinations(DOMAIN, 2)]
    shares = shares_of(many)
    raked = RakedRows(few).fit(shares)
    smooth = PublicDeviations(raked.tables, raked.effective, shares)
    error = {"raw": 0.0, "smooth": 0.0}
    for query, table, found in zip(queries, raked.tables(queries), smooth.of(queries), strict=True):
        truth = many.count([query])[0] / len(many)
        error["raw"] += np.abs(table - truth).sum()
        error["smooth"] += np.abs(smooth.independent(query) + found - truth).sum()
    assert error["smooth"] < 0.9 * error["raw"]


# --- 1-ways ----------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.floats(-500, 5_000), min_size=1, max_size=40),
    st.floats(1e-3, 1e6),
    st.integers(0, 2**32),
    st.floats(1, 1e6),
)
def test_a_count_is_between_both(noisy: list[float], variance: float, seed: int, total: float) -> None:
    seen = np.random.default_rng(seed).poisson(30, len(noisy))
    counts, variances = posterior_counts(noisy, variance, seen, total)
    expected = total * (seen + 0.5) / (seen + 0.5).sum()
    slack = 1e-9 * (1 + np.abs(noisy) + expected)
    assert (counts >= np.minimum(noisy, expected) - slack).all()
    assert (counts <= np.maximum(noisy, expected) + slack).all()
    assert (variances > 0).all()
    assert (variances <= variance * (1 + 1e-9)).all()


def test_good_public_counts_help_and_bad_ones_do_no_harm() -> None:
    rng = np.random.default_rng(0)
    truth, sigma = rng.integers(20, 2_000, 40).astype(float), 60.0
    noisy = truth + rng.normal(0, sigma, 40)
    good, bad = rng.poisson(truth / 3), rng.poisson(rng.permutation(truth) / 3)
    before, better, worse = (
        np.abs(counts - truth).sum()
        for counts in (noisy, *(posterior_counts(noisy, sigma**2, seen, truth.sum())[0] for seen in (good, bad)))
    )
    assert better < 0.8 * before
    assert worse < 1.03 * before


# --- Belief ----------------------------------------------------------------------------------------------------------


def tables_of(slopes: dict[tuple[str, str], float], sigma: float = 30.0, n: float = 20_000.0) -> list[Seen]:
    """Noisy tables of pairs whose truth deviates from independence by a multiple of what public rows say."""
    rng, records = np.random.default_rng(7), rows(50_000, 3)
    public = deviations_of(records, 50_000)
    found = []
    for pair, slope in slopes.items():
        independent, (deviation,) = n * public.independent(Query(pair)), public.of([Query(pair)])
        truth = independent + slope * n * deviation
        noisy = truth + rng.normal(0, sigma, truth.shape)
        found.append(Seen(pair, noisy, sigma**2, noisy, independent, n * deviation))
    return found


def test_right_data_are_believed_and_wrong_data_are_not() -> None:
    pairs = list(combinations(DOMAIN, 2))
    for slope in (1.0, 0.6, 0.0, -1.0):
        belief, estimates = believe(tables_of(dict.fromkeys(pairs, slope)), trusted=False)
        assert belief.slope == pytest.approx(slope, abs=0.05)
        assert belief.used is (slope > LEAST)
        assert len(estimates) == (6 if belief.used else 0)
        assert ("so it is used" in str(belief)) is belief.used
        trusted, estimates = believe(tables_of(dict.fromkeys(pairs, slope)), trusted=True)
        assert trusted.used
        assert trusted.weight(("a", "b")) == 1
        assert len(estimates) == 6


def test_slopes_that_differ_between_tables_are_no_certainty() -> None:
    pairs = list(combinations(DOMAIN, 2))
    mixed = dict(zip(pairs, (2.0, -1.0, 2.0, -1.0, 2.0, -1.0), strict=True))
    belief, _ = believe(tables_of(mixed), trusted=False)
    alike, _ = believe(tables_of(dict.fromkeys(pairs, 1.0)), trusted=False)
    assert belief.error > 10 * alike.error
    assert not belief.used


def test_one_bad_column_is_believed_for_nothing() -> None:
    slopes = {pair: 0.0 if "d" in pair else 1.0 for pair in combinations(DOMAIN, 2) if pair != ("a", "b")}
    belief, _ = believe(tables_of(slopes), trusted=False)
    assert abs(belief.of_attribute["d"][0]) < 0.1
    assert belief.weight(("a", "d")) == 0
    assert belief.weight(("a", "nobody")) == 0, "nothing was measured of it"


def test_estimates_are_better_than_noise() -> None:
    pairs = list(combinations(DOMAIN, 2))
    exact = tables_of(dict.fromkeys(pairs, 1.0), sigma=1e-6)
    _, estimates = believe(tables_of(dict.fromkeys(pairs, 1.0), sigma=60.0), trusted=False)
    for one, noisy, estimate in zip(exact, tables_of(dict.fromkeys(pairs, 1.0), sigma=60.0), estimates, strict=True):
        assert np.abs(estimate.values - one.noisy).sum() < 0.8 * np.abs(noisy.noisy - one.noisy).sum()
        assert estimate.sigma < 60


def test_nothing_released_is_nothing_to_judge_by() -> None:
    belief, estimates = believe([], trusted=False)
    assert (belief.used, estimates) == (False, [])
    assert str(belief).startswith("no table of several attributes was released")
    trusted, _ = believe([], trusted=True, sampling=3.0)
    np.testing.assert_array_equal(trusted.variance(np.array([0.0, 10.0])), [1.0, 31.0])


# --- The model -------------------------------------------------------------------------------------------------------


def measured(records: Records, cliques: list[tuple[str, ...]], sigma: float, seed: int = 0) -> list[Measurement]:
    rng = np.random.default_rng(seed)
    every = [*one_ways(records.domain), *cliques]
    return [
        Measurement(clique, table + np.rint(rng.normal(0, sigma, table.shape)).astype(int), sigma)
        for clique, table in zip(every, records.count(every), strict=True)
    ]


def error(model: Model, truth: Records) -> float:
    made = model.records(len(truth), seed=0)
    triples = list(combinations(DOMAIN, 3))
    counts = zip(truth.count(triples), made.count(triples), strict=True)
    return float(sum(np.abs(a / len(truth) - b / len(made)).sum() for a, b in counts))


@pytest.mark.parametrize("own", [DenoisedModel(), GraphicalModel(iterations=200)])
def test_good_public_rows_help_every_model(own: Any) -> None:
    truth, public = rows(4_000, 1), rows(3_000, 2)
    noisy = measured(truth, [("a", "b"), ("c", "d"), ("b", "c")], 40.0)
    own = own.fit(noisy, DOMAIN)
    model = EvidenceModel(own=own.family, parameters=own.params(), public=public).fit(noisy, DOMAIN, start=own)
    assert model.belief.used
    assert error(model, truth) < 0.8 * error(own, truth)


def test_public_rows_of_some_columns_help() -> None:
    truth, public = rows(4_000, 1), rows(3_000, 2)
    part = Records({name: public[name] for name in ("a", "b", "d")}, {name: DOMAIN[name] for name in ("a", "b", "d")})
    noisy = measured(truth, [("a", "b"), ("c", "d"), ("b", "d")], 40.0)
    model = EvidenceModel(public=part).fit(noisy, DOMAIN)
    assert model.belief.tables == 2
    assert error(model, truth) < error(DenoisedModel().fit(noisy, DOMAIN), truth)


@pytest.mark.parametrize("n", [0, 1, 777])
def test_threads_change_nothing(n: int) -> None:
    noisy = measured(rows(3_000, 1), [("a", "b"), ("b", "c", "d")], 20.0)
    made = [
        EvidenceModel(public=rows(900, 2)).fit(noisy, DOMAIN, threads=threads).records(n, seed=4, threads=threads)
        for threads in (1, 2, 8)
    ]
    assert all(np.array_equal(made[0][name], other[name]) for other in made[1:] for name in DOMAIN)


def test_intervals_and_bounds_rest_on_releases_alone() -> None:
    model = EvidenceModel(public=rows(900, 2), own="graphical", parameters={"iterations": 50})
    assert isinstance(model.unaided(), GraphicalModel)
    assert isinstance(model.less_smoothed(), GraphicalModel)
    with pytest.raises(DomainError, match="an evidence model needs `public=`"):
        EvidenceModel().fit(measured(rows(100, 1), [], 5.0), DOMAIN)
