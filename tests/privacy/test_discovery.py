"""Values of open columns: what a person moves, how likely a value of one person alone shows, and what is paid."""

import dataclasses
import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import chicle
from chicle import Budget, BudgetExceeded, Discovery, Ledger, PrivacyError, Schema, SchemaError
from chicle.codecs import Codec
from chicle.columns import Open
from chicle.columns.base import refuse
from chicle.columns.open import ValueTally
from chicle.discovery import Tallies, purchase_of, purchases, resolve
from chicle.privacy import DiscoveryEvent, ExponentialEvent, GaussianEvent, TestNoise, accounting
from chicle.privacy import primitives as door
from chicle.sources import check_table, open_source, read_records
from tests.privacy.test_replay import Tape, said

CANARY = "canary-4711"
mp = mpmath.mp.clone()
mp.dps = 60


def tail(x: Any) -> Any:
    return mp.erfc(x / mp.sqrt(2)) / 2


def passes(count: int, sigma: float, threshold: int) -> Any:
    """Return the exact probability that a count plus rounded noise reaches a threshold."""
    return tail((mp.mpf(threshold) - count - mp.mpf("0.5")) / mp.mpf(sigma))


def partitions(rows: int, most: int) -> Iterator[tuple[int, ...]]:
    yield ()
    for first in range(1, min(rows, most) + 1):
        for rest in partitions(rows - first, first):
            yield (first, *rest)


class TestAccounting:
    @given(st.floats(0.3, 1e6), st.integers(1, 8), st.floats(-14, -2).map(lambda x: 10**x))
    def test_no_person_shows_more_often_than_delta(self, sigma: float, rows: int, delta: float) -> None:
        threshold = accounting.discovery_threshold(sigma=sigma, delta=delta, rows=rows)
        bound = accounting.discovery_delta(sigma=sigma, threshold=threshold, rows=rows)
        assert bound <= delta
        worst = max(
            sum((passes(count, sigma, threshold) for count in spread), mp.mpf(0)) for spread in partitions(rows, rows)
        )
        assert worst <= bound <= worst * (1 + 1e-8)

    @given(st.floats(0.3, 1e6), st.integers(1, 8), st.floats(-14, -2).map(lambda x: 10**x))
    def test_the_threshold_is_the_least(self, sigma: float, rows: int, delta: float) -> None:
        threshold = accounting.discovery_threshold(sigma=sigma, delta=delta, rows=rows)
        if threshold > rows + 1:
            assert accounting.discovery_delta(sigma=sigma, threshold=threshold - 1, rows=rows) > delta

    def test_far_tails_do_not_vanish(self) -> None:
        assert 0 < accounting.discovery_delta(sigma=1.0, threshold=10**6, rows=1) < 1e-300
        assert accounting.discovery_delta(sigma=1e6, threshold=2, rows=1) <= 1

    @pytest.mark.parametrize(("threshold", "rows"), [(1, 1), (3, 3), (0, 1), (5, 0)])
    def test_thresholds_within_the_reach_of_a_person_are_refused(self, threshold: int, rows: int) -> None:
        with pytest.raises(PrivacyError, match="threshold must be above"):
            accounting.discovery_delta(sigma=1.0, threshold=threshold, rows=rows)


def event(sigma: float = 10.0, threshold: int = 70, k: int = 1, values: int = 100) -> DiscoveryEvent:
    return DiscoveryEvent(
        purpose="discovery", clique=("job",), values=values, l2_sensitivity=k, sigma=sigma, threshold=threshold
    )


class TestLedger:
    def test_delta_is_added_up_and_refused(self) -> None:
        aside = 2.5 * event().delta
        ledger = Ledger(Budget(epsilon=5, delta=1e-9, discovery=aside))
        ledger.debit([event(), event()])
        assert ledger.discovered == pytest.approx(2 * event().delta)
        assert ledger.spent == pytest.approx(2 / 200)
        with pytest.raises(BudgetExceeded, match="of delta"):
            ledger.debit([event()])
        assert len(ledger.events) == 2

    def test_a_budget_without_open_columns_has_no_delta_for_them(self) -> None:
        for budget in (Budget(epsilon=1, delta=1e-9), Budget(rho=0.5), Budget(mu=1)):
            with pytest.raises(BudgetExceeded, match="sets 0 aside"):
                Ledger(budget).debit([event(100.0, 1000)])
            assert "discovery" not in budget.promise()
            assert "discovery" not in repr(Ledger(budget))

    @pytest.mark.parametrize("how", ["gdp", "zcdp", "zcdp-basic"])
    def test_the_whole_is_the_promise(self, how: Any) -> None:
        budget = Budget(epsilon=1, delta=1e-9, discovery=3e-10, accounting=how)
        assert budget.rho < Budget(epsilon=1, delta=1e-9, accounting=how).rho
        assert budget.rho == pytest.approx(Budget(epsilon=1, delta=7e-10, accounting=how).rho)
        assert budget.epsilon_at(1e-9) == pytest.approx(1, rel=1e-9)
        ledger = Ledger(budget)
        sigma = 1 / math.sqrt(2 * budget.rho) * (1 + 1e-12)
        threshold = accounting.discovery_threshold(sigma=sigma, delta=3e-10 * (1 - 1e-12), rows=1)
        ledger.debit([event(sigma, threshold)])
        assert ledger.epsilon() <= 1
        assert ledger.epsilon() > 0.99
        assert ledger.epsilon(2e-9) < ledger.epsilon()
        with pytest.raises(PrivacyError, match="discovery takes"):
            ledger.epsilon(ledger.discovered)

    def test_rho_and_mu_may_set_delta_aside(self) -> None:
        for budget in (Budget(rho=0.02, discovery=1e-9), Budget(mu=0.2, discovery=1e-9)):
            assert budget.rho == pytest.approx(0.02)
            ledger = Ledger(budget)
            ledger.debit([event()])
            assert ledger.epsilon(1e-6) == budget.epsilon_at(1e-6, ledger.spent, ledger.discovered)
            assert "of delta, discovery took" in repr(ledger)
            assert Ledger.from_json(ledger.to_json()).budget == budget

    def test_json_brings_it_back(self) -> None:
        ledger = Ledger(Budget(epsilon=1, delta=1e-9, discovery=1e-10))
        ledger.debit([event()])
        again = Ledger.from_json(ledger.to_json())
        assert again.events == ledger.events
        assert (again.discovered, again.spent, again.epsilon()) == (
            ledger.discovered,
            ledger.spent,
            ledger.epsilon(),
        )
        told = json.loads(ledger.to_json())
        told["events"][0]["threshold"] = 20
        with pytest.raises(chicle.ArtefactError, match="of delta"):
            Ledger.from_json(json.dumps(told))

    @pytest.mark.parametrize("aside", [0, -1e-10, 1e-9, 1, math.nan, "1e-10"])
    def test_bad_parts_of_delta_are_refused(self, aside: Any) -> None:
        with pytest.raises(PrivacyError):
            Budget(epsilon=1, delta=1e-9, discovery=aside)


def counts_of(rows: Sequence[str]) -> dict[str, int]:
    tally = ValueTally(Open())
    tally.add(pa.chunked_array([pa.array(rows, pa.string())]), refuse("v"))
    counts = tally.counts()
    return dict(zip(counts["value"].to_pylist(), counts["count"].to_pylist(), strict=True))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_every_neighbour_of_every_tiny_table(k: int) -> None:
    """Values in both tables move by k at most; the others show with a probability of delta at most."""
    sigma, delta = 2.0 * k, 1e-3
    threshold = accounting.discovery_threshold(sigma=sigma, delta=delta, rows=k)
    told = event(sigma, threshold, k)
    moved, shown = 0.0, mp.mpf(0)
    for size in range(3):
        for rows in itertools.combinations_with_replacement("abcdx", size):
            before = counts_of(rows)
            assert before == Counter(rows)
            for person in (p for j in range(1, k + 1) for p in itertools.combinations_with_replacement("abcdx", j)):
                after = counts_of([*rows, *person])
                moved = max(moved, math.dist([before[v] for v in before], [after[v] for v in before]))
                alone = [after[v] for v in after if v not in before]
                none = mp.mpf(1)
                for count in alone:
                    none *= 1 - passes(count, sigma, threshold)
                shown = max(shown, 1 - none)
    assert moved == told.l2_sensitivity == k
    assert shown <= told.delta <= delta
    assert shown > told.delta / 2, "the bound is not far from what can happen"


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0])
@pytest.mark.parametrize(("shared", "alone"), [([3], [1]), ([2, 9], [1]), ([6, 7], [2]), ([5], [1, 1])])
def test_the_two_parts_of_delta_add_up(epsilon: float, shared: list[int], alone: list[int]) -> None:
    """The exact distributions of what is discovered in two neighbours, against (epsilon, delta1 + delta2)."""
    k, sigma = sum(alone), 3.0 * sum(alone)
    threshold = accounting.discovery_threshold(sigma=sigma, delta=0.02, rows=k)
    told = event(sigma, threshold, k)
    mu = math.sqrt(2 * told.rho("gdp"))
    allowed = accounting.gdp_delta(epsilon=epsilon, mu=mu) + told.delta

    def outcomes(counts: list[int]) -> list[float]:
        each = [float(passes(count, sigma, threshold)) if count else 0.0 for count in counts]
        chosen = itertools.product([False, True], repeat=len(counts))
        return [math.prod(p if kept else 1 - p for p, kept in zip(each, sets, strict=True)) for sets in chosen]

    less, more = outcomes([*shared, *(0 for _ in alone)]), outcomes([*shared, *alone])
    for p, q in ((less, more), (more, less)):
        assert sum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(p, q, strict=True)) <= allowed


def table_of(n: int = 4_000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    jobs = np.array([f"job {i}" for i in range(300)])[np.minimum(rng.geometric(0.2, n), 299)]
    return pd.DataFrame({"job": jobs, "zip": 10_000 + rng.geometric(0.5, n), "left": rng.random(n) < 0.3})


SCHEMA = Schema(
    {
        "job": {"type": "open", "other": "another job", "most": 30},
        "zip": {"type": "open", "other": -1},
        "left": {"type": "boolean"},
    }
)
BUDGETS: list[dict[str, Any]] = [
    {"epsilon": 1.0, "delta": 1e-9},
    {"epsilon": 0.05, "delta": 1e-15},
    {"epsilon": 50.0, "delta": 1e-3, "accounting": "zcdp", "allow_weak": True},
    {"rho": 0.1, "discovery": Discovery(delta=1e-9)},
    {"mu": 1.0, "discovery": Discovery(delta=1e-12, share=0.7)},
]
MECHANISMS = [
    chicle.Independent,
    chicle.Prism,
    chicle.PrivSyn,
    chicle.MST,
    chicle.MWEM,
    chicle.PrivBayes,
    chicle.Gaussian,
]


@pytest.mark.parametrize("make", MECHANISMS)
@pytest.mark.parametrize("given", BUDGETS, ids=str)
@pytest.mark.parametrize("n", [0, 1, 4_000])
def test_a_fit_keeps_to_its_budget(make: Any, given: dict[str, Any], n: int, tmp_path: Path) -> None:
    synth = make(**given)
    frame = table_of().iloc[:n]
    plan = synth.plan(SCHEMA)
    assert [step.release for step in plan.steps[:3]] == ["discovery", "discovery", plan.steps[2].release]
    assert sum(step.rho for step in plan.steps) == pytest.approx(plan.budget.rho)
    release = synth.fit(frame, SCHEMA).release_
    ledger = release.ledger
    assert 0 < ledger.discovered <= ledger.budget.discovery
    assert 0.99 * ledger.budget.rho < ledger.spent <= ledger.budget.rho
    bought = [told for told in ledger.events if isinstance(told, DiscoveryEvent)]
    assert [told.sigma for told in bought] == [step.sigma for step in plan.steps[:2]]
    if "epsilon" in given:
        assert ledger.epsilon() <= given["epsilon"]
    assert not release.schema.undiscovered
    assert set(release.schema.columns["job"].labels or ()) <= {*table_of()["job"], "another job"}
    release.save(tmp_path / "r.chicle")
    again = chicle.load(tmp_path / "r.chicle")
    assert again.schema == release.schema
    assert again.ledger.entries == ledger.entries
    made = again.sample(50, seed=1)
    assert made.equals(release.sample(50, seed=1))
    assert set(made["job"]) <= set(release.schema.columns["job"].labels or ())
    assert list(made.columns) == list(frame.columns)
    assert made["zip"].dtype.kind == "i"


def test_what_is_frequent_is_found() -> None:
    synth = chicle.Independent(epsilon=2, delta=1e-9).fit(table_of(20_000), SCHEMA)
    counts = table_of(20_000)["job"].value_counts()
    (bought, *_) = synth.ledger_.events
    assert isinstance(bought, DiscoveryEvent)
    labels = synth.release_.schema.columns["job"].labels or ()
    assert labels[-1] == "another job"
    for job, count in counts.items():
        if abs(count - bought.threshold) > 6 * bought.sigma:
            assert (job in labels) == (count > bought.threshold)
    assert list(labels[:3]) == list(counts.index[:3]), "the most frequent first"
    assert f"In 'job', {len(labels) - 1} values were discovered" in repr(synth.release_)


def test_no_more_than_asked_for() -> None:
    schema = Schema({"job": {"type": "open", "most": 3}})
    synth = chicle.Independent(epsilon=5, delta=1e-9).fit(table_of(20_000)[["job"]], schema)
    labels = synth.release_.schema.columns["job"].labels or ()
    assert list(labels) == ["job 1", "job 2", "job 3", "other"]


class Fixed(TestNoise):
    """Noise that tells apart the values that both neighbours have from those of the newcomer alone."""

    def __init__(self, names: Sequence[Any], shared: dict[Any, int], own: int) -> None:
        super().__init__(0)
        self.names, self.shared, self.own = names, shared, own

    def rounded_gaussian(self, _: Sequence[float], sizes: Sequence[int]) -> Any:
        assert sizes == [len(self.names)]
        return np.array([self.shared.get(name, self.own) for name in self.names])


@given(
    st.lists(st.sampled_from("abcdefg"), max_size=60),
    st.lists(st.sampled_from("abcdefgxyz"), min_size=1, max_size=3),
    st.integers(0, 2**32),
    st.integers(1, 4),
)
def test_replayed_with_the_same_noise(rows: list[str], person: list[str], seed: int, most: int) -> None:
    """As long as no value of the newcomer alone passes, both tables tell the same but for counts k apart."""
    k = 3
    told = event(6.0, accounting.discovery_threshold(sigma=6.0, delta=1e-2, rows=k), k, most)
    rng = np.random.default_rng(seed)
    before, after = counts_of(rows), counts_of([*rows, *person])
    # What turns the newcomer's counts into the same noisy ones: at most k apart in L2, which is what rho pays for.
    noisy = {name: count + int(rng.normal(0, 6)) for name, count in before.items()}
    released = []
    for counts in (before, after):
        noise = Fixed(list(counts), {name: noisy[name] - counts[name] for name in before}, told.threshold - k - 1)
        ledger = Ledger(Budget(rho=10, discovery=0.5), noise=noise)
        kept = door.release_frequent(np.array(list(counts.values()), dtype=np.int64), told, ledger)
        released.append([list(counts)[place] for place in kept])
    assert math.dist([before[v] for v in before], [after[v] for v in before]) <= k
    assert released[0] == released[1]


def test_noise_is_drawn_only_after_the_debit() -> None:
    class Untouchable(TestNoise):
        def rounded_gaussian(self, *_: Any) -> Any:
            raise AssertionError("noise was drawn")

    ledger = Ledger(Budget(rho=0.0001, discovery=1e-3), noise=Untouchable(0))
    with pytest.raises(BudgetExceeded):
        door.release_frequent(np.array([5]), event(), ledger)
    assert ledger.events == ()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_a_rare_value_is_nowhere(frame: Any, tmp_path: Path) -> None:
    rows = {"job": ["cook"] * 3_000 + [CANARY], "age": [31] * 3_001}
    schema = Schema({"job": {"type": "open"}, "age": {"type": "integer", "min": 0, "max": 99}})
    synth = chicle.Prism(epsilon=1, delta=1e-9).fit(frame(rows), schema)
    synth.release_.save(tmp_path / "r.chicle")
    assert synth.release_.schema.columns["job"].labels == ("cook", "other")
    assert CANARY.encode() not in (tmp_path / "r.chicle").read_bytes()
    assert CANARY not in repr(synth.release_) + json.dumps(synth.release_.schema.to_dict())
    assert CANARY not in str(synth.sample(100))


@pytest.mark.parametrize(
    ("told", "values", "rule"),
    [
        ({"type": "open"}, [1, 4711], "holds integers, but its `other` is a text"),
        ({"type": "open", "other": 0}, ["a", CANARY], "holds text, but its `other` is an integer"),
        ({"type": "open", "other": 0}, [1.0, 4711.5], "has a number with a fraction"),
        ({"type": "open"}, ["a", None, CANARY], "has missing values"),
        ({"type": "open"}, [True, False], "holds booleans"),
    ],
)
def test_what_does_not_fit_costs_nothing(told: dict[str, Any], values: list[Any], rule: str) -> None:
    schema = Schema({"ok": {"type": "open", "missing": True}, "job": told})
    ledger = Ledger(Budget(epsilon=1, delta=1e-9, discovery=1e-10))
    frame = {"ok": ["x"] * len(values), "job": values}
    with pytest.raises(SchemaError, match=rule) as refusal:
        chicle.Independent(epsilon=1, delta=1e-9).fit(frame, schema, ledger=ledger)
    assert "4711" not in str(refusal.value)
    assert ledger.events == ()
    assert rule in str(check_table(frame, schema))


def test_texts_of_no_unicode_cost_nothing() -> None:
    rows = 900
    ends = np.arange(0, 2 * rows + 1, 2, dtype=np.int32)
    texts = pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(ends), pa.py_buffer(b"\xff\xfe" * rows)])
    ledger = Ledger(Budget(epsilon=1, delta=1e-6, discovery=1e-7))
    with pytest.raises(SchemaError, match="column 'job' holds text that is not UTF-8"):
        chicle.Independent(epsilon=1, delta=1e-6).fit(
            pa.table({"job": texts}), Schema({"job": {"type": "open"}}), ledger=ledger
        )
    assert not ledger.events


def test_a_later_column_that_does_not_fit_costs_nothing_either() -> None:
    schema = Schema({"job": {"type": "open"}, "age": {"type": "integer", "min": 0, "max": 99}})
    ledger = Ledger(Budget(epsilon=1, delta=1e-9, discovery=1e-10))
    with pytest.raises(SchemaError, match="outside its bounds"):
        chicle.Prism(epsilon=1, delta=1e-9).fit({"job": ["a"], "age": [300]}, schema, ledger=ledger)
    assert ledger.events == ()


def test_a_ledger_without_delta_for_it_refuses() -> None:
    ledger = Ledger(Budget(epsilon=3, delta=1e-9))
    ledger.debit([GaussianEvent(purpose="total", clique=(), l2_sensitivity=1, sigma=99.0, values=1)])
    with pytest.raises(BudgetExceeded, match="Open the ledger with"):
        chicle.Independent(epsilon=1, delta=1e-9).fit(table_of(), SCHEMA, ledger=ledger)
    assert len(ledger.events) == 1
    for budget in ({"rho": 0.1}, {"mu": 0.3}):
        with pytest.raises(PrivacyError, match=r"column 'job' is open.*Discovery\(delta="):
            chicle.Independent(**budget).fit(table_of(), SCHEMA)  # type: ignore[arg-type]
        with pytest.raises(PrivacyError, match="column 'job' is open"):
            chicle.Independent(**budget).plan(SCHEMA)  # type: ignore[arg-type]


def test_several_columns_are_paid_for_together_or_not_at_all() -> None:
    schema = Schema({"job": {"type": "open"}, "town": {"type": "open"}})
    table = {"job": ["cook"] * 500, "town": ["York"] * 500}
    ledger = Ledger(Budget(epsilon=1, delta=1e-6, discovery=6e-8))  # enough for one of them
    asked = chicle.Discovery(delta=1e-7)
    with pytest.raises(BudgetExceeded, match="nothing was spent"):
        chicle.Independent(epsilon=1, delta=1e-6, discovery=asked).fit(table, schema, ledger=ledger)
    assert not ledger.events


def test_a_source_of_other_rows_a_person_is_refused_before_discovery() -> None:
    ledger = Ledger(Budget(epsilon=1, delta=1e-6, discovery=1e-7))
    many, few = (Schema({"job": {"type": "open"}}, person="id", max_records_per_person=k) for k in (900, 1))
    opened = open_source({"job": [CANARY] * 900, "id": ["x"] * 900}, many)
    with pytest.raises(SchemaError, match="another `person` or `max_records`"):
        chicle.Independent(epsilon=1, delta=1e-6).fit(opened, few, ledger=ledger)
    assert not ledger.events


def test_only_the_first_rows_of_a_person_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def spy(counts: Any, told: DiscoveryEvent, ledger: Ledger) -> Any:
        seen.append((counts.tolist(), told.l2_sensitivity))
        return door.release_frequent(counts, told, ledger)

    monkeypatch.setattr("chicle.discovery.values.release_frequent", spy)
    frame = {"who": [1, 1, 1, 2, 1, 3], "job": ["a", "b", "c", "a", "d", "a"]}
    schema = Schema({"job": {"type": "open"}}, person="who", max_records_per_person=2)
    chicle.Independent(epsilon=1, delta=1e-9).fit(frame, schema)
    assert seen == [([3, 1], 2)]


def test_batches_add_up() -> None:
    schema = Schema({"job": {"type": "open"}})
    rows = table_of()["job"].tolist()
    bought = [purchase_of("job", schema.columns["job"], rows=1, rho=0.5, delta=1e-6)]
    found = []
    for size in (len(rows), 700, 19):
        parts = open_source([{"job": rows[i : i + size]} for i in range(0, len(rows), size)], schema)
        ledger = Ledger(Budget(rho=1, discovery=1e-5), noise=TestNoise(3))
        found.append(resolve(schema, parts, bought, ledger)[0])
    assert found[0] == found[1] == found[2]
    assert len(found[0].columns["job"].labels or ()) > 10


def test_batches_that_come_once_cost_nothing() -> None:
    ledger = Ledger(Budget(epsilon=1, delta=1e-9, discovery=1e-10))
    frame = table_of()
    synth = chicle.Independent(epsilon=1, delta=1e-9)
    with pytest.raises(SchemaError, match="column 'job' is yet to be discovered, which needs another pass"):
        synth.fit((part for part in (frame, frame)), SCHEMA, ledger=ledger)
    assert ledger.events == ()
    parts = [frame.iloc[:1_500], frame.iloc[1_500:]]
    for source in (parts, lambda: iter(parts)):
        release = synth.fit(source, SCHEMA).release_
        assert len(release.schema.columns["job"].labels or ()) > 3
        assert abs(release.total - 4_000) < 300


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_are_discovered_as_frames_are(ending: str, tmp_path: Path) -> None:
    frame = table_of().assign(zip=lambda t: t["zip"].astype("Int64"), who=np.arange(4_000) % 3_000)
    frame.loc[:50, "zip"] = None
    for i in range(2):
        part = frame.iloc[2_000 * i : 2_000 * (i + 1)]
        path = tmp_path / f"part-{i}.{ending}"
        if ending == "csv":
            part.to_csv(path, index=False)
        else:
            part.to_parquet(path)
    told: dict[str, Any] = {
        "job": {"type": "open"},
        "zip": {"type": "integer", "min": 0, "max": 99_999, "bins": "private", "missing": True},
        "left": {"type": "boolean"},
    }
    schema = Schema(told, person="who")
    found = []
    for source in (frame, str(tmp_path / f"part-*.{ending}")):
        ledger = Ledger(Budget(epsilon=1, delta=1e-9, discovery=1e-10), noise=TestNoise(1))
        found.append(chicle.Independent(epsilon=1, delta=1e-9).fit(source, schema, ledger=ledger).release_.schema)
    assert found[0] == found[1], "the first row of each person is counted, across files too"


def test_memory_is_that_of_the_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are merged on the way, in any number, none at all among them."""
    monkeypatch.setattr("chicle.columns.discovery._PENDING", 50)
    schema = Schema({"job": {"type": "open"}, "x": {"type": "integer", "min": 0, "max": 10**6, "bins": "private"}})
    rng = np.random.default_rng(0)
    parts = [{"job": rng.integers(0, 99, 40).astype(str), "x": rng.integers(0, 99, 40)} for _ in range(200)]
    none = {"job": pa.array([], pa.string()), "x": pa.array([], pa.int64())}
    for used in (parts, []):
        source = open_source(used or [none], schema)
        tallies = source.reduce(Tallies(Codec(schema)), list(schema.domain))
        for name in schema.domain:
            assert sum(map(len, tallies._tallies[name]._parts)) <= 250
            whole = tallies.take(name)
            counts = whole["count"].to_pylist() if name == "job" else whole.counts.tolist()
            assert sum(counts) == 40 * len(used)
            assert len(counts) == (99 if used else 0)


def test_nothing_to_discover_takes_nothing() -> None:
    schema = Schema({"left": {"type": "boolean"}})
    budget = Budget(epsilon=1, delta=1e-9)
    assert purchases(schema, budget, Discovery()) == []
    assert Discovery().budget(schema, budget) is budget
    assert chicle.Independent(epsilon=1, delta=1e-9).plan(schema).budget == budget
    ledger = chicle.Independent(epsilon=1, delta=1e-9).fit({"left": [True]}, schema).ledger_
    assert ledger.budget == budget
    assert ledger.budget.rho == budget.rho


def test_a_release_declares_everything(tmp_path: Path) -> None:
    release = chicle.Independent(epsilon=1, delta=1e-9).fit(table_of(), SCHEMA).release_
    release.schema.check_discovered()
    dataclasses.replace(release, schema=SCHEMA).save(tmp_path / "r.chicle")
    with pytest.raises(chicle.ArtefactError, match="column 'job' is yet to be discovered"):
        chicle.load(tmp_path / "r.chicle")
    with pytest.raises(SchemaError, match="column 'job' is yet to be discovered"):
        chicle.Release.from_marginals(release.marginals(), SCHEMA, claim="none")


@pytest.mark.parametrize("share", [0, 1, -0.1, 2, math.nan])
def test_bad_shares_are_refused(share: float) -> None:
    with pytest.raises(chicle.ParameterError, match="share must be"):
        Discovery(share=share)
    with pytest.raises(PrivacyError, match="share must be a number"):
        Discovery(share="0.1")  # type: ignore[arg-type]


def test_records_and_encoders_need_declared_values() -> None:
    records = chicle.Records({"job": [0], "zip": [0], "left": [0]}, SCHEMA.domain)
    with pytest.raises(SchemaError, match="records are coded"):
        chicle.Independent(epsilon=1, delta=1e-9).fit(records, SCHEMA)
    with pytest.raises(SchemaError, match="discovered by a fit"):
        read_records(table_of(), SCHEMA)
    with pytest.raises(SchemaError, match="yet to be discovered"):
        Schema({"job": {"type": "open"}, "kind": {"determined_by": "job", "map": {"a": "b"}}})


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        ({"most": 0}, "most must be"),
        ({"most": True}, "most must be"),
        ({"other": None}, "other lists a missing value"),
        ({"other": 1.5}, "other must be a text or an integer"),
        ({"other": True}, "other must be a text or an integer"),
        ({"values": ["a"]}, "open has no 'values'"),
    ],
)
def test_bad_declarations_are_refused(told: dict[str, Any], rule: str) -> None:
    with pytest.raises(SchemaError, match=f"column 'job': {rule}"):
        Schema({"job": {"type": "open", **told}})


class WholeTape(Tape):
    """All that leaves a table in one fit: marginals, scores, choices, counts of parts, and the values discovered."""

    def patch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Stand at every door."""
        monkeypatch.setattr("chicle.measurements.desk.release_gaussian", self.release)
        monkeypatch.setattr("chicle.measurements.desk.release_choice", self.choose)
        monkeypatch.setattr("chicle.discovery.edges.release_gaussian", self.release)
        monkeypatch.setattr("chicle.discovery.values.release_frequent", self.discover)
        counted = ValueTally.counts

        def noted(tally: ValueTally) -> pa.Table:
            table = counted(tally)
            self.values = table["value"].to_pylist()
            return table

        monkeypatch.setattr(ValueTally, "counts", noted)

    def discover(self, counts: Any, told: DiscoveryEvent, ledger: Ledger) -> Any:
        """Release the values that the neighbour released, whatever noise that takes."""
        place = len(self.events)
        self.events.append(told)
        self.weights.append(1.0)
        self.exact.append(dict(zip(self.values, counts.tolist(), strict=True)))
        if self.replayed is None:
            kept = [self.values[i] for i in door.release_frequent(counts, told, ledger)]
        else:
            before: list[Any] = list(self.replayed.events)
            assert before[place] == told, "another question than before"
            ledger.debit([told])
            kept = self.replayed.released[place]
        self.released.append(kept)
        return np.array([self.values.index(value) for value in kept], dtype=np.int64)


@pytest.mark.parametrize("make", MECHANISMS)
@pytest.mark.parametrize("k", [1, 2])
def test_a_whole_fit_replayed_on_neighbours(make: Any, k: int) -> None:
    """Given the same answers so far, neighbours are asked the same, and move no answer by more than was paid for."""
    told: dict[str, Any] = {
        "job": {"type": "open", "most": 12},
        "zip": {"type": "integer", "min": 10_000, "max": 99_999, "bins": {"private": 6}},
        "left": {"type": "boolean"},
    }
    schema = Schema(told, max_records_per_person=k)
    frame = table_of()
    newcomer = pd.DataFrame({"job": [CANARY, "job 1"], "zip": [99_999, 10_001], "left": [True, False]}).iloc[:k]
    budget = Budget(epsilon=3, delta=1e-6, discovery=1e-7)
    first: WholeTape | None = None
    samples, written = [], list[Any]()
    for rows in (frame, frame.iloc[k:], pd.concat([frame, newcomer])):
        tape = WholeTape(first)
        with pytest.MonkeyPatch.context() as patch:
            tape.patch(patch)
            synth = make(epsilon=3, delta=1e-6).fit(rows, schema, ledger=Ledger(budget, noise=TestNoise(5)))
        samples.append(synth.sample(100, seed=1))
        if first is None:
            first = tape
            written = [said(entry) for entry in synth.release_.transcript.entries]
            continue
        assert samples[-1].equals(samples[0]), "nothing but what was released is used"
        assert len(tape.events) == len(first.events)
        assert [said(entry) for entry in synth.release_.transcript.entries] == written
        sensitivities = iter(first.sensitivities)
        for asked, weights, mine, theirs in zip(first.events, first.weights, first.exact, tape.exact, strict=True):
            if isinstance(asked, DiscoveryEvent):
                shared = [(mine[value], theirs[value]) for value in mine if value in theirs]
                assert math.dist(*zip(*shared, strict=True)) <= asked.l2_sensitivity == k
                assert all(counts.get(v, 0) <= k for counts in (mine, theirs) for v in set(mine) ^ set(theirs))
            elif isinstance(asked, ExponentialEvent):
                assert np.abs(mine - theirs).max() <= next(sensitivities)
            else:
                moved = (mine.astype(float) - theirs) / weights
                assert np.linalg.norm(moved.ravel()) <= asked.l2_sensitivity * (1 + 1e-12)
