"""Partitioned fits, replayed on neighbours: every mechanism, both ways, persons whose rows are in several partitions.

As in `test_replay`, a neighbour gets the same released values. What a person costs is added up from how far each
release moved: over all groups together it must not exceed what the ledger debited.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import chicle
from chicle import Ledger, PublicData, Records, Release, Schema
from chicle.partition import Partition
from chicle.partition.declared import Way
from chicle.privacy import PureEvent, TestNoise, accounting
from chicle.privacy import primitives as door
from chicle.privacy.events import ExponentialEvent, GaussianEvent, ParallelEvent
from chicle.privacy.ledger import Reservation
from tests.privacy.test_replay import MECHANISMS, Make, NoNoise, Tape, check_same, table_of
from tests.public_tables import public_records

DOMAIN = {"a": 2, "part": 3, "b": 3, "c": 12, "d": 4, "e": 3, "f": 2}
SLOW = {"AIM-published", "GEM-of-the-paper", "MWEM-of-the-paper", "PrivSyn-pgm"}


@dataclass
class Tapes(Tape):
    """A tape that also knows who paid, and holds pure releases."""

    payers: list[Ledger] = field(default_factory=list)

    def release(
        self,
        values: Sequence[Any],
        events: Sequence[GaussianEvent],
        ledger: Ledger,
        *,
        weights: Sequence[Any] | None = None,
    ) -> list[Any]:
        self.payers += [ledger] * len(events)
        return super().release(values, events, ledger, weights=weights)

    def choose(self, scores: Any, sensitivity: int, event: ExponentialEvent, ledger: Ledger, keeps: Any = None) -> int:
        self.payers.append(ledger)
        return super().choose(scores, sensitivity, event, ledger, keeps)

    def pure(self, values: Any, event: PureEvent, ledger: Ledger) -> Any:
        at = len(self.events)
        self.payers.append(ledger)
        self.events.append(event)
        self.exact.append(values)
        self.weights.append(1.0)
        if self.replayed is None:
            noisy = door.release_pure(values, event, ledger)
        else:
            assert self.replayed.events[at] == event, "another question than before"
            ledger.debit([event])
            noisy = self.replayed.released[at]
        self.released.append(noisy)
        return noisy


def run(
    make: Make,
    rows: Any,
    schema: Schema,
    budget: dict[str, Any],
    asked: Partition,
    *,
    monkeypatch: pytest.MonkeyPatch,
    replayed: Tapes | None = None,
    public: PublicData | None = None,
) -> tuple[Tapes, Records, Release]:
    tape = Tapes(replayed)
    monkeypatch.setattr("chicle.measurements.desk.release_gaussian", tape.release)
    monkeypatch.setattr("chicle.measurements.desk.release_choice", tape.choose)
    monkeypatch.setattr("chicle.measurements.desk.release_pure", tape.pure)
    k = schema.max_records_per_person
    records = Records(dict(zip(schema.domain, rows.T, strict=True)), schema.domain, max_records_per_person=k)
    noise = TestNoise(11) if replayed is None else NoNoise(11)
    synth = make(**budget)
    if synth.public_data == "needed":
        public = PublicData(public_records(schema))
    pure = None if asked.pure is None else asked.pure * budget["epsilon"]
    ledger = Ledger(
        chicle.Budget(**{**synth.budget.promise(), **({} if pure is None else {"pure": pure})}), noise=noise
    )
    synth.fit(records, schema, public=public, ledger=ledger, partition=asked)
    # A fit pays from what it has reserved of the ledger; groups pay from ledgers of their own.
    own = [event for event, payer in zip(tape.events, tape.payers, strict=True) if isinstance(payer, Reservation)]
    assert [event for event in ledger.events if not isinstance(event, ParallelEvent)] == own, "nothing past the door"
    return tape, synth.sample(60, seed=5), synth.release_


def cost(event: Any, mine: Any, theirs: Any, sensitivity: int | None, how: str) -> float:
    """What a release costs this person: the rho of its noise, for as far as the person moves it."""
    moved = np.abs(np.asarray(mine, dtype=float) - theirs)
    if isinstance(event, ExponentialEvent):
        assert sensitivity is not None
        epsilon = event.epsilon * float(moved.max()) / sensitivity
        if not epsilon:
            return 0.0
        return float(accounting.choice_mu(epsilon=epsilon) ** 2 / 2 if how == "gdp" else epsilon**2 / 8)
    return float(np.linalg.norm(moved.ravel()) ** 2 / (2 * event.sigma**2))


@pytest.mark.parametrize("way", ["independent", "pooled", "attribute"])
@pytest.mark.parametrize("mechanism", [name for name in MECHANISMS if name not in SLOW])
def test_a_person_costs_no_more_than_the_ledger_says(mechanism: str, way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    k = 3
    schema = Schema.from_cardinalities(DOMAIN, ordinal=["c"], max_records_per_person=k)
    table = table_of(7, 400, DOMAIN)
    budget = {"epsilon": 4.0, "delta": 1e-6}
    make, asked = MECHANISMS[mechanism], Partition(("part",), way=way)
    fitted = run(make, table, schema, budget, asked, monkeypatch=monkeypatch)
    everybody, _, release = fitted
    assert release.model.params().get("way", "attribute") == way
    how = release.ledger.budget.accounting if release.ledger.budget else "gdp"
    spread = np.array([[1, place, 2, 11, 3, 2, 1] for place in range(3)])  # a row in each partition
    twice = np.array([[0, 2, 0, 0, 0, 0, 0], [0, 2, 0, 0, 0, 0, 0], [1, 0, 2, 5, 1, 1, 1]])
    most = 0.0
    for neighbour in (table[k:], np.concatenate([spread, table]), np.concatenate([table, twice])):
        replayed = run(make, neighbour, schema, budget, asked, monkeypatch=monkeypatch, replayed=everybody)
        check_same(fitted, replayed)
        tape, _, _ = replayed
        sensitivities, rho = iter(everybody.sensitivities), 0.0
        for event, weights, mine, theirs in zip(
            everybody.events, everybody.weights, everybody.exact, tape.exact, strict=True
        ):
            sensitivity = next(sensitivities) if isinstance(event, ExponentialEvent) else None
            rho += cost(event, mine / weights, theirs / weights, sensitivity, how)
        assert rho <= release.ledger.entries[0].rho + math.fsum(entry.rho for entry in release.ledger.entries[1:])
        most = max(most, rho)
    assert most > 0, "or there is nothing to replay"
    if way == "independent":
        assert sum(isinstance(entry.event, ParallelEvent) for entry in release.ledger.entries) == 1


@pytest.mark.parametrize("role", ["evidence", "trusted"])
@pytest.mark.parametrize("mechanism", ["Prism", "PrivSyn", "Independent"])
def test_public_partitions_change_what_is_asked_by_releases_only(
    mechanism: str, role: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Public rows with partitions that differ: which tables are bought, and all that is made of them, is replayed."""
    k, domain = 2, {"part": 12, "a": 3, "b": 4, "c": 12}
    schema = Schema.from_cardinalities(domain, max_records_per_person=k)
    table, rng = table_of(7, 600, domain), np.random.default_rng(3)
    part = rng.integers(12, size=6_000)
    like = [np.where(rng.random(6_000) < 0.7, part % size, rng.integers(size, size=6_000)) for size in (3, 4)]
    columns = {"part": part, "a": like[0], "b": like[1], "c": rng.integers(12, size=6_000)}
    public = PublicData(Records(columns, domain), role=role)
    asked = Partition(("part",), way="pooled", pure=0.2)
    given: Any = (schema, {"epsilon": 4.0, "delta": 1e-6}, asked)
    fitted = run(MECHANISMS[mechanism], table, *given, monkeypatch=monkeypatch, public=public)
    assert any("12 public partitions differ" in note for note in fitted[2].notes)
    assert fitted[2].ledger.epsilon() <= 4.0 * (1 + 1e-9)  # type: ignore[attr-defined]
    alike = np.repeat([[11, 2, 3, 11]], k, axis=0)
    for neighbour in (table[k:], np.concatenate([alike, table])):
        replayed = run(
            MECHANISMS[mechanism], neighbour, *given, monkeypatch=monkeypatch, replayed=fitted[0], public=public
        )
        check_same(fitted, replayed)


@pytest.mark.parametrize("way", ["independent", "pooled"])
def test_one_partition_of_all_rows_of_a_person_costs_all_of_it(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is reached by a person whose k rows are alike, and sizes bought with Laplace noise move by k in L1."""
    k = 3
    schema = Schema.from_cardinalities(DOMAIN, ordinal=["c"], max_records_per_person=k)
    table = table_of(7, 300, DOMAIN)
    budget = {"epsilon": 4.0, "delta": 1e-6}
    asked = Partition(("part",), way=way, pure=0.2)
    fitted = run(MECHANISMS["Independent"], table, schema, budget, asked, monkeypatch=monkeypatch)
    alike = np.repeat([[1, 2, 2, 11, 3, 0, 1]], k, axis=0)
    replayed = run(
        MECHANISMS["Independent"],
        np.concatenate([alike, table]),
        schema,
        budget,
        asked,
        monkeypatch=monkeypatch,
        replayed=fitted[0],
    )
    check_same(fitted, replayed)
    rho = 0.0
    for event, mine, theirs in zip(fitted[0].events, fitted[0].exact, replayed[0].exact, strict=True):
        if isinstance(event, PureEvent):
            assert np.abs(mine - theirs).sum() == k == event.l1_sensitivity
        else:
            rho += cost(event, mine, theirs, None, "gdp")
    spent = math.fsum(entry.rho for entry in fitted[2].ledger.entries)
    assert rho == pytest.approx(spent, rel=1e-6)
    assert rho <= spent * (1 + 1e-12)
    assert fitted[2].ledger.epsilon() <= 4.0 * (1 + 1e-9)  # type: ignore[attr-defined]


class Peeks(chicle.Independent):
    """Splits its budget by the exact number of records of a partition."""

    def run(self, desk: chicle.Desk) -> Any:
        (number,) = desk._Desk__rows.count([()])  # type: ignore[attr-defined]
        desk.measure_one_ways(rho=desk.left * (0.4 + 0.1 * (number % 2)))
        return super().run(desk)


@pytest.mark.parametrize("way", ["independent", "pooled"])
def test_a_mechanism_that_peeks_into_a_partition_is_caught(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = Schema.from_cardinalities(DOMAIN)
    table = table_of(0, 300, DOMAIN)
    asked = Partition(("part",), way=way)
    fitted = run(Peeks, table, schema, {"rho": 1.0}, asked, monkeypatch=monkeypatch)
    with pytest.raises(AssertionError, match="another question"):
        run(Peeks, table[1:], schema, {"rho": 1.0}, asked, monkeypatch=monkeypatch, replayed=fitted[0])
