"""Partitions: what is declared, how budgets are shared, how records are made, and that releases keep them."""

import itertools
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chicle
from chicle import Budget, Domain, Ledger, Measurement, Records, Schema
from chicle.counting.countable import Countable
from chicle.evaluation.partitions import errors_by
from chicle.partition import Partition
from chicle.partition.declared import Way
from chicle.partition.model import PartitionedModel
from chicle.partition.pool import Pool, rake, systematic
from chicle.partition.rule import choose, forecast, share_of_partitions
from chicle.partition.shrink import mean_sizes, shrunk_shares, steady_sizes
from chicle.partition.sizes import SizesBudget, sizes_budget
from chicle.privacy import TestNoise
from chicle.query import QueryLike
from tests.countables import KINDS

BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-9}
few = pytest.mark.filterwarnings("ignore:a table drawn from this release has about")
WAYS: tuple[Way, ...] = ("pooled", "independent")


def table(rows: int = 3_000, partitions: int = 5, seed: int = 0) -> Records:
    """Rows whose 1-ways and dependences differ a little between partitions; the last partition is empty."""
    rng = np.random.default_rng(seed)
    part = rng.integers(max(partitions - 1, 1), size=rows)
    a = (rng.random(rows) < 0.2 + 0.5 * part / partitions).astype(int)
    b = np.minimum((rng.random(rows) * 3 + a).astype(int), 3)
    c = np.minimum(rng.poisson(2 + part, rows), 9)
    return Records({"a": a, "part": part, "b": b, "c": c}, {"a": 2, "part": partitions, "b": 4, "c": 10})


# --- Rows of partitions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", [("b",), ("c", "a")])
def test_parts_are_the_rows_of_each_value(kind: str, names: tuple[str, ...]) -> None:
    rng = np.random.default_rng(1)
    domain = Domain({"a": 3, "b": 4, "c": 2, "d": 5})
    rows = Records(
        {name: rng.integers(size, size=60) for name, size in domain.items()}, domain, max_records_per_person=3
    )
    whole: Countable = KINDS[kind](rows)
    parts = whole.parts(names)
    rest = [name for name in domain if name not in names]
    queries: list[QueryLike] = [(), (rest[0],), tuple(rest[::-1]), chicle.Query((rest[0],), where={rest[1]: 1})]
    for codes, part in zip(itertools.product(*(range(domain[name]) for name in names)), parts, strict=True):
        inside = np.all([rows[name] == code for name, code in zip(names, codes, strict=True)], axis=0)
        alone = Records({name: rows[name][inside] for name in rest}, {name: domain[name] for name in rest})
        assert list(part.domain) == rest
        assert part.max_records_per_person == 3
        for mine, theirs in zip(part.count(queries), alone.count(queries), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(part.dependence([tuple(rest[:2])]), alone.dependence([tuple(rest[:2])]))


# --- Declared -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partition", "rule"),
    [
        (["nobody"], "the schema models no column 'nobody'"),
        (["part", "part"], "each once"),
        ([3], "must name columns"),
        (7, "must name columns"),
        (["a", "part", "b", "c"], "no column is left"),
    ],
)
def test_partitions_that_cannot_be_are_refused_before_anything_is_spent(partition: Any, rule: str) -> None:
    ledger = Ledger(Budget(**BUDGET))
    with pytest.raises(chicle.ChicleError, match=rule) as refused:
        chicle.Prism(**BUDGET).fit(table(100), partition=partition, ledger=ledger)
    assert "\n" not in str(refused.value)
    assert not ledger.events
    with pytest.raises(chicle.ChicleError, match=rule):
        chicle.Prism(**BUDGET).plan(Schema(table(10).domain), partition=partition)


def test_coarse_combined_and_too_many_partitions_are_refused() -> None:
    columns: dict[str, Any] = {
        "a": 2,
        "b": {"type": "coded", "values": 30, "ordinal": True, "coarse": 5},
        "c": 3,
        "d": 2,
    }
    schema = Schema(columns, combine={"both": ["c", "d"]})
    for name in ("b", "c"):
        with pytest.raises(chicle.SchemaError, match="column of its own"):
            chicle.Independent(**BUDGET).plan(schema, partition=[name])
    with pytest.raises(chicle.SchemaError, match="at most 100,000"):
        chicle.Independent(**BUDGET).plan({"a": 400, "b": 400, "c": 2}, partition=["a", "b"])
    for wrong in ({"way": "best"}, {"share": 1.0}, {"share": -0.1}, {"pure": 0.95}, {"share": "half"}):
        with pytest.raises(chicle.ParameterError):
            Partition(("a",), **wrong)


def test_a_schema_declares_its_partition(tmp_path: Path) -> None:
    schema = Schema(table(10).domain, partition=["part"])
    schema.save(tmp_path / "schema.yaml")
    assert Schema.load(tmp_path / "schema.yaml") == schema
    assert schema.partition == ("part",)
    assert schema.mark_reviewed().partition == ("part",)
    assert chicle.Prism(**BUDGET).fit(table(500), schema).release_.partition == ("part",)
    whole = chicle.Prism(**BUDGET).fit(table(500), schema, partition=[])
    assert whole.release_.partition == ()
    for wrong, rule in ((["nobody"], "'nobody'"), (["a", "a"], "twice"), (5, "must be a list")):
        with pytest.raises(chicle.SchemaError, match=rule):
            Schema({"a": 2, "b": 3}, partition=wrong)  # type: ignore[arg-type]


# --- The rule -------------------------------------------------------------------------------------------------------


def test_the_rule_goes_by_rows_in_units_of_noise() -> None:
    domain = Domain({"age": 20, "sex": 2, "job": 30})
    few = Measurement(("p",), np.full(50, 400), 20.0)
    many = Measurement(("p",), np.full(50, 400_000), 20.0)
    asked = Partition(("p",))
    assert choose(domain, asked, few, k=1, rho=0.016).way == "pooled"
    assert choose(domain, asked, many, k=1, rho=0.016).way == "independent"
    assert choose(domain, asked, many, k=1_000, rho=0.016).way == "pooled"
    assert choose(domain, Partition(("p",), way="independent"), few, k=1, rho=0.016).way == "independent"
    assert choose(domain, Partition(("p",), share=0.33), few, k=1, rho=0.016).share == 0.33
    noisy = Measurement(("p",), np.full(4, 100), 20.0)
    assert choose(domain, asked, noisy, k=1, rho=0.016).way == "attribute", "few, and hidden by noise"
    assert choose(domain, asked, noisy, k=1, rho=0.016, whole=False).way == "pooled"
    nothing = Measurement(("p",), np.array([-3, 4, -8]), 20.0)
    assert choose(domain, asked, nothing, k=1, rho=0.016).way == "attribute"
    assert forecast(Domain({"one": 5}), np.array([0.0])) == 1.0
    shares = [share_of_partitions(x) for x in (0.0, 1.0, 50, 100, 200, 1e9)]
    assert shares == sorted(shares)
    assert 0 < shares[0] <= shares[-1] < 1


def test_laplace_buys_sizes_only_where_it_leaves_more() -> None:
    domain, asked = Domain({"p": 239, "age": 20, "sex": 2, "job": 30}), Partition(("p",))
    small, large = Budget(epsilon=0.1, delta=1e-10), Budget(epsilon=5, delta=1e-10)
    bought = sizes_budget(asked, domain, small, k=7, rows=344_000)
    assert 0 < bought.pure <= 0.07
    assert bought.share == 0
    assert bought.apply(small).pure == bought.pure
    assert sizes_budget(asked, domain, large, k=7, rows=344_000).pure == 0
    assert sizes_budget(asked, domain, small, k=7, rows=None) == SizesBudget(), "what is private decides nothing"
    assert sizes_budget(asked, domain, Budget(rho=1.0), k=7, rows=10) == SizesBudget()
    assert sizes_budget(asked, domain, small, k=7, rows=344_000, pure_left=0.0) == SizesBudget()
    assert sizes_budget(asked, domain, large, k=7, rows=344_000, pure_left=0.3).pure == 0.3
    assert sizes_budget(Partition(("p",), pure=0.5), domain, large, k=1, rows=None).pure == 2.5
    assert sizes_budget(Partition(("p",), pure=0.0), domain, small, k=7, rows=344_000).pure == 0
    for epsilon in (0.05, 0.1, 0.3, 1.0, 3.0):
        for rows in (10_000, 300_000, 10_000_000):
            budget = Budget(epsilon=epsilon, delta=1e-9)
            one = sizes_budget(asked, domain, budget, k=3, rows=rows)
            left = one.apply(budget).rho * (1 - one.share)
            assert left >= 0.05 * budget.rho, "something is left for the tables"


def test_a_plan_shows_what_a_fit_pays() -> None:
    schema = Schema(table(10).domain)
    synth = chicle.Prism(**BUDGET)
    for way in WAYS:
        plan = synth.plan(schema, n=3_000, partition=Partition(("part",), way=way))
        assert math.fsum(step.rho for step in plan.steps) == pytest.approx(synth.budget.rho, rel=1e-6)
        assert plan.steps[0].release == "sizes"
        assert "part" in str(plan)
    weak = chicle.Prism(epsilon=0.1, delta=1e-9).plan(
        Schema({"p": 200, "a": 5, "b": 5}, data={"rows": 20_000}), n=20_000, partition=["p"]
    )
    assert weak.steps[0].rho == 0
    assert weak.budget.pure is not None


# --- Sizes and shares -------------------------------------------------------------------------------------------------


@given(st.integers(1, 40), st.floats(0.1, 500), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_steady_sizes_are_no_sizes_below_zero_and_keep_their_sum(number: int, sigma: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.gamma(0.5, 400, number) + rng.normal(0, sigma, number)
    parents = np.arange(number) // 7
    steady = steady_sizes(sizes, sigma, parents)
    assert (steady >= 0).all()
    assert steady.sum() == pytest.approx(max(sizes.sum(), 0), abs=1e-6)


def test_sizes_are_averaged_by_precision() -> None:
    sizes, sigma = mean_sizes(np.array([100.0, 10.0]), 4.0, [np.array([[40.0, 44.0], [9.0, 5.0]])], [2.0])
    weights = 1 / 16, 1 / 8
    np.testing.assert_allclose(
        sizes, (weights[0] * np.array([100, 10]) + weights[1] * np.array([84, 14])) / sum(weights)
    )
    assert sigma == pytest.approx(sum(weights) ** -0.5)


def test_shrunk_shares_beat_both_the_noisy_ones_and_the_whole() -> None:
    """Over 40 partitions of 500 rows with real differences: fixed seeds, so this cannot fail by luck."""
    rng = np.random.default_rng(5)
    whole = rng.dirichlet(np.ones(12))
    true = np.stack([rng.dirichlet(40 * whole + 1e-3) for _ in range(40)])
    sizes, sigma = np.full(40, 500.0), 25.0
    noisy = true * 500 + rng.normal(0, sigma, true.shape)
    found = shrunk_shares({"a": noisy}, {"a": sigma}, sizes, {"a": whole}, parents=np.zeros(40, dtype=np.int64))[0]["a"]
    assert np.allclose(found.sum(axis=1), 1)
    assert (found >= 0).all()
    off = [np.abs(one - true).sum() for one in (found, np.maximum(noisy, 0) / 500, np.tile(whole, (40, 1)))]
    assert off[0] < 0.95 * min(off[1:]), off


def test_partitions_shrink_to_their_parent() -> None:
    """Parents differ, their children do not: with two levels the children come out nearer the truth."""
    rng = np.random.default_rng(6)
    whole = rng.dirichlet(np.ones(8))
    parents = np.arange(60) // 10
    above = np.stack([rng.dirichlet(8 * whole + 1e-3) for _ in range(6)])
    true, sizes, sigma = above[parents], np.full(60, 150.0), 40.0
    noisy = true * 150 + rng.normal(0, sigma, true.shape)
    given: Any = ({"a": noisy}, {"a": sigma}, sizes, {"a": whole})
    one = shrunk_shares(*given, parents=np.zeros(60, dtype=np.int64))[0]["a"]
    two = shrunk_shares(*given, parents=parents)[0]["a"]
    assert np.abs(two - true).sum() < np.abs(one - true).sum()


def test_nothing_is_learnt_from_noise_alone() -> None:
    rng = np.random.default_rng(7)
    whole = rng.dirichlet(np.ones(10))
    noisy = np.tile(whole * 300, (80, 1)) + rng.normal(0, 60.0, (80, 10))
    given: Any = ({"a": noisy}, {"a": 60.0}, np.full(80, 300.0), {"a": whole})
    found = shrunk_shares(*given, parents=np.zeros(80, dtype=np.int64))[0]["a"]
    assert np.abs(found - whole).sum(axis=1).mean() < 0.05


# --- The pool ---------------------------------------------------------------------------------------------------------


def naive_rake(
    codes: dict[str, npt.NDArray[Any]], shares: dict[str, npt.NDArray[Any]], rounds: int
) -> npt.NDArray[Any]:
    weights = [1.0] * len(next(iter(codes.values())))
    for _ in range(rounds):
        for name, column in codes.items():
            now = [0.0] * len(shares[name])
            for row, code in enumerate(column):
                now[code] += weights[row]
            total = sum(weights)
            weights = [w * shares[name][code] * total / now[code] for w, code in zip(weights, column, strict=True)]
    return np.array(weights) / sum(weights)


def test_raking_agrees_with_proportional_fitting() -> None:
    rng = np.random.default_rng(8)
    codes = {"a": rng.integers(3, size=400), "b": rng.integers(4, size=400)}
    shares = {"a": rng.dirichlet(np.ones(3) * 5), "b": rng.dirichlet(np.ones(4) * 5)}
    weights = rake(codes, shares)
    for name, column in codes.items():
        assert np.abs(np.bincount(column, weights) - shares[name]).sum() < 0.01
    np.testing.assert_allclose(weights, naive_rake(codes, shares, 30), rtol=0.05, atol=1e-5)


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=40).filter(lambda some: sum(some) > 1e-3), st.integers(0, 300))
@settings(max_examples=100, deadline=None)
def test_systematic_draws_are_the_weights_rounded(weights: list[float], n: int) -> None:
    array = np.array(weights)
    drawn = systematic(array, n, np.random.default_rng(0))
    assert len(drawn) == n
    times = np.bincount(drawn, minlength=len(array))
    assert (np.abs(times - array / array.sum() * n) < 1 + 1e-6).all()


def test_a_pool_gives_records_with_the_wanted_one_ways() -> None:
    whole = table(5_000)
    rest = Records(
        {name: whole[name] for name in ("a", "b", "c")}, {name: whole.domain[name] for name in ("a", "b", "c")}
    )
    shares = {"a": np.array([0.2, 0.8]), "b": np.array([0.1, 0.2, 0.3, 0.4]), "c": np.full(10, 0.1)}
    made = Pool.of(rest, None).make(shares, 800, [1, 2])
    for name, wanted in shares.items():
        got = np.bincount(made[name], minlength=wanted.size) / 800
        assert np.abs(got - wanted).sum() / 2 < 0.02
    again = Pool.of(rest, None).make(shares, 800, [1, 2])
    assert all((made[name] == again[name]).all() for name in made)
    assert len(Pool.of(rest, None).make(shares, 1, [3, 4])) == 1


# --- Releases ---------------------------------------------------------------------------------------------------------


@few
@pytest.mark.parametrize("way", WAYS)
def test_a_partition_is_drawn_alone(way: Any, tmp_path: Path) -> None:
    release = chicle.Prism(**BUDGET).fit(table(), partition=Partition(("part",), way=way)).release_
    drawn = release.sample(200, seed=1, where={"part": 3})
    assert len(drawn) == 200
    assert set(drawn["part"].tolist()) == {3}
    both = release.sample(300, seed=1, where={"part": [1, 2]})
    assert set(both["part"].tolist()) == {1, 2}
    some = release.sample(50, seed=1, where={"part": 3, "a": 1})
    assert set(some["part"].tolist()) == {3}
    assert set(some["a"].tolist()) == {1}
    release.save(tmp_path / "parts.chicle")
    again = chicle.load(tmp_path / "parts.chicle")
    assert again.partition == ("part",)
    for one in (again, pickle.loads(pickle.dumps(release))):  # noqa: S301 - its own
        for name in drawn:
            np.testing.assert_array_equal(one.sample(200, seed=1, where={"part": 3})[name], drawn[name])
            np.testing.assert_array_equal(one.sample(seed=2)[name], release.sample(seed=2)[name])


@pytest.mark.parametrize("way", WAYS)
def test_threads_do_not_matter(way: Any) -> None:
    release = chicle.Prism(**BUDGET).fit(table(), partition=Partition(("part",), way=way)).release_
    first, *others = (release.sample(900, seed=4, threads=threads) for threads in (1, 2, 8))
    for other in others:
        for name in first:
            np.testing.assert_array_equal(first[name], other[name])


@few
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rows", [0, 1, 40])
def test_empty_and_tiny_partitions(way: Any, rows: int) -> None:
    synth = chicle.Prism(**BUDGET).fit(table(rows), partition=Partition(("part",), way=way))
    assert synth.ledger_.spent <= synth.budget.rho
    assert len(synth.sample(30, seed=0)) == 30
    assert len(synth.sample(0)) == 0
    for place in range(5):
        assert set(synth.release_.sample(5, seed=0, where={"part": place})["part"].tolist()) == {place}


def test_ten_thousand_partitions() -> None:
    rng = np.random.default_rng(0)
    domain = {"part": 10_000, "a": 3, "b": 4}
    rows = Records({name: rng.integers(size, size=30_000) for name, size in domain.items()}, domain)
    synth = chicle.Independent(**BUDGET).fit(rows, partition=["part"])
    assert "10,000 partitions" in synth.release_.notes[0]
    made = synth.release_.sample(seed=0, where={"part": list(range(40))})
    assert set(made["part"].tolist()) <= set(range(40))


@few
def test_few_partitions_at_a_small_budget_are_an_attribute() -> None:
    release = chicle.Prism(**BUDGET).fit(table(900), partition=["part"]).release_
    assert release.partition == ("part",)
    assert not isinstance(release.model, PartitionedModel)
    assert "as one more attribute" in release.notes[0]
    assert set(release.sample(20, seed=0, where={"part": 1})["part"].tolist()) == {1}


@few
def test_two_levels() -> None:
    rng = np.random.default_rng(0)
    domain = {"state": 3, "county": 4, "a": 5, "b": 2}
    rows = Records({name: rng.integers(size, size=4_000) for name, size in domain.items()}, domain)
    for way in WAYS:
        release = chicle.Prism(**BUDGET).fit(rows, partition=Partition(("state", "county"), way=way)).release_
        assert isinstance(release.model, PartitionedModel)
        assert release.model.sizes.shape == (12,)
        one = release.sample(60, seed=0, where={"state": 1, "county": 2})
        assert (set(one["state"].tolist()), set(one["county"].tolist())) == ({1}, {2})
        state = release.sample(60, seed=0, where={"state": 2})
        assert set(state["state"].tolist()) == {2}
        assert len(set(state["county"].tolist())) > 1


@pytest.mark.parametrize("way", WAYS)
def test_partitions_come_out_different(way: Any) -> None:
    """At a budget that hides nothing, each partition gets its own 1-ways."""
    real = table(8_000)
    synth = chicle.Prism(rho=500.0, allow_weak=True).fit(real, partition=Partition(("part",), way=way))
    made = synth.sample(8_000, seed=0)
    rows, there, tvd = errors_by(real, made, ("part",), {1: [("a",), ("b",), ("c",)]}, None)
    assert np.abs(rows - there).max() <= 2
    assert tvd[1][:4].max() < 0.05, "where shares of the whole would be off by .2"


def test_what_a_partitioned_release_cannot_do_is_said() -> None:
    release = chicle.Prism(**BUDGET).fit(table(500), partition=Partition(("part",), way="pooled")).release_
    with pytest.raises(chicle.ParameterError, match="draws of a release with partitions"):
        release.draws(2, seed=0)[0]
    assert release.error_bounds()
    assert release.marginals().num_rows > 0
    assert "partitions by 'part'" in repr(release)


def test_a_file_whose_partitions_were_not_paid_for_is_refused(tmp_path: Path) -> None:
    from dataclasses import replace

    release = chicle.Independent(**BUDGET).fit(table(500), partition=Partition(("part",), way="independent")).release_
    transcript = release.transcript
    last = transcript.measurements[-1]
    again = replace(transcript, entries=[*transcript.entries, replace(last)])
    replace(release, transcript=again).save(tmp_path / "twice.chicle")
    with pytest.raises(chicle.ArtefactError, match="not in its ledger"):
        chicle.load(tmp_path / "twice.chicle")


@few
def test_typed_tables_and_the_command_line(tmp_path: Path) -> None:
    from chicle.cli import main

    rng = np.random.default_rng(0)
    rows = pa.table(
        {"state": [["ny", "pa", "nj"][i] for i in rng.integers(3, size=900)], "age": rng.integers(90, size=900)}
    )
    pa.csv.write_csv(rows, tmp_path / "people.csv")
    declared = Schema(
        {
            "state": {"type": "categorical", "values": ["ny", "pa", "nj"]},
            "age": {"type": "integer", "min": 0, "max": 89, "bins": 9},
        }
    )
    declared.save(tmp_path / "people.yaml")
    data, schema, made = (str(tmp_path / name) for name in ("people.csv", "people.yaml", "made.csv"))
    budget = ["--epsilon", "1", "--delta", "1e-9", "--quiet"]
    assert main(["synth", data, "-s", schema, "-o", made, "--partition", "state", *budget]) == 0
    release = chicle.load(tmp_path / "made.chicle")
    assert release.partition == ("state",)
    assert set(release.sample(20, seed=0, where={"state": "pa"})["state"].to_pylist()) == {"pa"}
    assert main(["evaluate", data, made, "-s", schema, "--by", "state"]) == 0


# --- Evaluation -------------------------------------------------------------------------------------------------------


def test_errors_by_partition_are_those_of_its_rows() -> None:
    real, made = table(700, seed=1), table(500, partitions=5, seed=2)
    cliques: dict[int, list[tuple[str, ...]]] = {1: [("a",)], 2: [("a", "b"), ("b", "c")]}
    rows, there, tvd = errors_by(real, made, ("part",), cliques, None)
    for place in range(4):
        mine, theirs = (one["part"] == place for one in (real, made))
        assert (rows[place], there[place]) == (mine.sum(), theirs.sum())
        off = 0.0
        for one, other in (tuple(pair) for pair in cliques[2]):
            joint = [
                np.bincount(t[one][kept].astype(int) * 10 + t[other][kept], minlength=100) / kept.sum()
                for t, kept in ((real, mine), (made, theirs))
            ]
            off += np.abs(joint[0] - joint[1]).sum() / 2
        assert tvd[2][place] == pytest.approx(off / 2)


def test_an_evaluation_lists_worst_and_best_partitions() -> None:
    real = table(900)
    found = chicle.evaluate(real, table(800, seed=3), Schema(real.domain), by=["part"])
    assert found.partitions is not None
    worst, best = found.partitions.worst(2), found.partitions.best(2)
    assert found.partitions.tvd[2][worst[0]] >= found.partitions.tvd[2][best[0]]
    assert "worst: " in str(found)
    assert found.to_dict()["partitions"]["tvd"]["2"][4] is None
    assert len(found.partitions.to_pandas()) == 5
    assert chicle.evaluate(real, real, Schema(real.domain)).partitions is None
    for wrong, rule in ((["nobody"], "nobody"), (["a", "part", "b", "c"], "no column is left")):
        with pytest.raises(chicle.ChicleError, match=rule):
            chicle.evaluate(real, real, Schema(real.domain), by=wrong)


def test_a_report_has_a_table_of_partitions(tmp_path: Path) -> None:
    real = table(900)
    synth = chicle.Prism(**BUDGET).fit(real, partition=Partition(("part",), way="pooled"))
    text = chicle.report(tmp_path / "r.html", synth.release_, real=real).read_text(encoding="utf-8")
    assert "Partitions" in text
    assert "worst" in text
    public = chicle.report(tmp_path / "p.html", synth.release_).read_text(encoding="utf-8")
    assert "NOT PRIVATE" not in public
    assert "Partitions" in public


@pytest.mark.parametrize("way", WAYS)
def test_rows_in_passes_are_fitted_as_rows_in_memory(way: Any) -> None:
    """The same test noise gives the same release, whether groups are cut out of tables or of rows."""
    real = table(600)
    columns = {name: real[name].astype(np.int64) for name in real}
    batches = [pa.table({name: codes[at : at + 250] for name, codes in columns.items()}) for at in range(0, 600, 250)]
    schema = Schema({name: {"type": "coded", "values": size} for name, size in real.domain.items()})
    found = []
    for source in (pa.table(columns), lambda: iter(batches)):
        ledger = Ledger(Budget(**BUDGET), noise=TestNoise(3))
        fitted = chicle.Prism(**BUDGET).fit(source, schema, partition=Partition(("part",), way=way), ledger=ledger)
        found.append([(one.query.key, one.values.tolist()) for one in fitted.release_.measurements])
    assert found[0] == found[1]
