"""Every mechanism beside public data: the same promises, whatever the public table is."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chicle
from chicle import Budget, Domain, Ledger, ParameterError, PublicData, Records, Schema
from chicle.mechanisms.base import Mechanism
from chicle.models import EvidenceModel
from chicle.privacy import TestNoise
from tests.contract.test_mechanisms import MECHANISMS, constrained, violations
from tests.public_tables import columns_of, public_records

BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-9}
EXPLICIT = ("MWEM-explicit", "MWEM-of-the-paper")  # which have no use for public data
PUBLIC = {
    name: make for name, make in MECHANISMS.items() if make(**BUDGET).public_data == "weighed" and name not in EXPLICIT
}


@pytest.fixture(params=PUBLIC, scope="module")
def make(request: pytest.FixtureRequest) -> Callable[..., Mechanism]:
    return PUBLIC[request.param]


def same(one: Records, other: Records) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one.domain)


@pytest.mark.parametrize("role", ["evidence", "trusted"])
def test_public_data_cost_nothing_and_are_not_needed_again(
    make: Callable[..., Mechanism], role: Any, tmp_path: Path
) -> None:
    here, there = chicle.datasets.census(3_000, d=5, seed=1), chicle.datasets.census(2_000, d=5, seed=2)
    public = PublicData(there, role=role, name="the other table")
    synth = make(**BUDGET)
    assert "the other table" in str(synth.plan(here.domain, 3_000, public=public))
    synth.fit(here, public=public)
    assert synth.budget.rho * (1 - 1e-9) <= synth.ledger_.spent <= synth.budget.rho
    release = synth.release_
    assert any("the other table" in note for note in release.notes)
    assert sum(note.startswith("public data: ") for note in release.notes) == 1
    if role == "trusted":
        assert isinstance(release.model, EvidenceModel)
        assert release.model.belief.trusted
    made = release.sample(700, seed=0)
    assert made.domain == here.domain
    assert len(made) == 700
    assert same(made, release.sample(700, seed=0, threads=2))
    release.save(tmp_path / "r.chicle")
    for again in (chicle.load(tmp_path / "r.chicle"), pickle.loads(pickle.dumps(release))):  # noqa: S301 - our own
        assert same(made, again.sample(700, seed=0))
        assert again.notes == release.notes
        assert len(again.error_bounds(threads=1)) == 15, "of each attribute and pair"
    assert len(release.draws(m=2, seed=0)[1]) > 0


@pytest.mark.parametrize("make_used", [chicle.GEM, chicle.RAP])
def test_mixtures_begin_with_public_answers(make_used: Callable[..., Mechanism]) -> None:
    here, there = chicle.datasets.census(3_000, d=4, seed=1), chicle.datasets.census(2_000, d=3, seed=2)
    synth = make_used(**BUDGET, rounds=2, components=50, workload=chicle.pairs(here.domain))
    assert len(synth.fit(here, public=there).sample(500, seed=0)) == 500
    assert "as evidence" in synth.release_.notes[0]
    one = Records({"SEX": [0, 1]}, {"SEX": 2})
    with pytest.raises(ParameterError, match="no clique of the workload has all its attributes in the public data"):
        synth.fit(here, public=one)


@pytest.mark.parametrize("rows", [0, 1, 60])
@pytest.mark.parametrize(
    "domain",
    [{"a": 5}, {"a": 1, "b": 1}, {"a": 2, "b": 20_000}, {"a": 3, "b": 4, "c": 1, "d": 300}],
    ids=lambda domain: "x".join(map(str, domain.values())),
)
def test_any_two_tables_will_do(make: Callable[..., Mechanism], rows: int, domain: dict[str, int]) -> None:
    rng = np.random.default_rng(rows)
    table, public = (
        Records({name: rng.integers(size, size=n) for name, size in domain.items()}, domain) for n in (rows, 7)
    )
    synth = make(**BUDGET).fit(table, public=PublicData(public, role="trusted" if rows == 1 else "evidence"))
    for n in (0, 1, 30):
        assert len(synth.sample(n, seed=1)) == n
    assert synth.sample(seed=1).domain == Domain(domain)


def hostile(kind: str, domain: Domain) -> Records:
    rng = np.random.default_rng(3)
    if kind == "all rows equal":
        return Records({name: np.full(500, size - 1) for name, size in domain.items()}, domain)
    if kind == "one row":
        return Records({name: np.zeros(1, dtype=int) for name in domain}, domain)
    if kind == "sorted":
        return Records({name: np.sort(rng.integers(size, size=5_000)) for name, size in domain.items()}, domain)
    even = Records({name: rng.integers(size, size=5_000) for name, size in domain.items()}, domain)
    return even if kind == "uniform" else columns_of(even, list(domain)[1:3])


@pytest.mark.parametrize("role", ["evidence", "trusted"])
@pytest.mark.parametrize("kind", ["all rows equal", "one row", "sorted", "uniform", "two columns"])
def test_hostile_tables_break_nothing(kind: str, role: Any) -> None:
    """One mechanism for each family of models: what they do with public data is the same step."""
    census = chicle.datasets.census(4_000, d=5, seed=1)
    for name in ("Prism", "PrivSyn-gum", "MST", "Gaussian", "MWEM", "Independent"):
        public = PublicData(hostile(kind, census.domain), role=role)
        synth = MECHANISMS[name](**BUDGET).fit(census, public=public)
        assert len(synth.sample(800, seed=0)) == 800


def test_constraints_coarse_and_combined_columns(make: Callable[..., Mechanism], tmp_path: Path) -> None:
    frame, schema = constrained()
    public = PublicData(public_records(schema), role="trusted")
    release = make(**BUDGET).fit(frame, schema, public=public).release_
    release.save(tmp_path / "r.chicle")
    made = chicle.load(tmp_path / "r.chicle").sample(900, seed=0)
    assert violations(made) == 0
    assert made.equals(release.sample(900, seed=0))


@pytest.mark.filterwarnings("ignore:a table drawn from this release has about")
@pytest.mark.parametrize("kind", ["all rows equal", "sorted", "two columns"])
def test_partitions_beside_tables_that_have_partitions(make: Callable[..., Mechanism], kind: str) -> None:
    domain = {"part": 10, "a": 3, "b": 5, "c": 4}
    rng = np.random.default_rng(1)
    here = Records({name: rng.integers(size, size=900) for name, size in domain.items()}, domain)
    role: Any = "trusted" if kind in ("sorted", "one row") else "evidence"
    public = PublicData(hostile(kind, Domain(domain)), role=role)
    synth = make(**BUDGET)
    given: Any = {"partition": chicle.Partition(("part",), way="pooled"), "public": public}
    assert synth.plan(here.domain, 900, **given).budget.rho == pytest.approx(synth.budget.rho)
    release = synth.fit(here, **given).release_
    assert synth.budget.rho * (1 - 1e-6) <= synth.ledger_.spent <= synth.budget.rho
    assert len(release.sample(300, seed=0)) == 300
    assert set(release.sample(20, seed=0, where={"part": 7})["part"].tolist()) == {7}


@pytest.mark.parametrize("way", ["pooled", "independent", "attribute"])
def test_partitioned_tables_use_them_for_the_whole(way: Any, tmp_path: Path) -> None:
    here, there = chicle.datasets.census(4_000, d=5, seed=1), chicle.datasets.census(3_000, d=5, seed=2)
    partition = chicle.Partition(("SEX",), way=way)
    release = chicle.Prism(**BUDGET).fit(here, partition=partition, public=there).release_
    told = [note for note in release.notes if note.startswith("public data: ") or "without public data" in note]
    assert len(told) == 1
    assert ("without" in told[0]) is (way == "independent")
    release.save(tmp_path / "r.chicle")
    assert same(release.sample(500, seed=0), chicle.load(tmp_path / "r.chicle").sample(500, seed=0))


def test_typed_columns_settle_at_what_was_estimated() -> None:
    """Ordered columns keep the better 1-ways: the noisy ones alone would undo them. The noise is that of a seed."""
    rng = np.random.default_rng(0)
    schema = Schema({"age": {"type": "integer", "min": 0, "max": 99, "bins": 50}, "sex": 2, "ill": 2})

    def table(n: int) -> dict[str, Any]:
        age = np.minimum(rng.gamma(4.0, 8.0, n).astype(int), 99)
        return {"age": age, "sex": rng.integers(2, size=n), "ill": (rng.random(n) * 100 < age).astype(int)}

    here, there = table(3_000), table(100_000)
    errors = []
    for public in (None, PublicData(there, role="trusted")):
        ledger = Ledger(Budget(epsilon=0.2, delta=1e-9), noise=TestNoise(4))
        made = chicle.Prism(epsilon=0.2, delta=1e-9).fit(here, schema, public=public, ledger=ledger).sample(seed=0)
        shares = [np.bincount(np.asarray(one["age"]) // 2, minlength=50) / len(one["age"]) for one in (here, made)]
        errors.append(np.abs(shares[0] - shares[1]).sum() / 2)
    assert errors[1] < 0.7 * errors[0], "about .042 against .094"
