"""Every mechanism, replayed on neighbours: a person moves each release by no more than its event says.

One table is fitted and all that leaves it is noted. Its neighbour then gets the same released values, one after
another: its noise is whatever would have turned its own counts into them, and sensitivity is how far that noise is off.
Choices made from released values alone are the same in both, so any other look at private records shows, in the events
or in the records made.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import chicle
from chicle import Budget, Ledger, PrismOptions, Records, Schema
from chicle.counting.records import Countable
from chicle.mechanisms.base import Mechanism
from chicle.privacy import TestNoise
from chicle.privacy import mechanisms as door
from chicle.privacy.ledger import ExponentialEvent, GaussianEvent
from chicle.selection.indif import INDIF_UNITS

MECHANISMS: dict[str, Callable[..., Mechanism]] = {
    "Independent": chicle.Independent,
    "PrivSyn": lambda **given: chicle.PrivSyn(options={"passes": 3}, **given),
    "PrivSyn-published": lambda **given: chicle.PrivSyn(form="published", options={"passes": 3}, **given),
    "PrivSyn-pgm": lambda **given: chicle.PrivSyn(generator="pgm", **given),
    "MST": chicle.MST,
    "MWEM": chicle.MWEM,
    "MWEM-pairs": lambda **given: chicle.MWEM(
        workload=[("a", "b"), ("c", "e"), ("b", "d", "f")], rounds=3, alpha=0.5, **given
    ),
    "PrivBayes": chicle.PrivBayes,
    "Gaussian": chicle.Gaussian,
    "AIM": chicle.AIM,
    "AIM-rounds": lambda **given: chicle.AIM(rounds=3, workload=[("a", "b", "c"), ("d", "e"), ("b", "f")], **given),
    "AIM-pgm": lambda **given: chicle.AIM(generator="pgm", **given),
    "Prism": chicle.Prism,
    "Prism-pairs": lambda **given: chicle.Prism(options=PrismOptions(order=2, sizes=(3, 2)), **given),
    "Prism-plain": lambda **given: chicle.Prism(
        options=PrismOptions(sizes=(), absorb=False, low_rank=False, pull=0.0, theta=0), **given
    ),
}


class NoNoise(TestNoise):
    """Whoever draws noise past the one door is found out."""

    def rounded_gaussian(self, *_: Any) -> Any:
        raise AssertionError("noise was drawn elsewhere")

    def discrete_laplace(self, *_: Any) -> Any:
        raise AssertionError("noise was drawn elsewhere")

    def choose(self, *_: Any) -> Any:
        raise AssertionError("noise was drawn elsewhere")


@dataclass
class Tape:
    """What went through the door: the events, the exact values, and what was released instead of them."""

    replayed: "Tape | None" = None
    events: list[Any] = field(default_factory=list)
    exact: list[Any] = field(default_factory=list)
    released: list[Any] = field(default_factory=list)
    sensitivities: list[int] = field(default_factory=list)
    """Of the scores of choices, one for each."""

    def release(self, values: Sequence[Any], events: Sequence[GaussianEvent], ledger: Ledger) -> list[Any]:
        start = len(self.events)
        self.events += events
        self.exact += values
        if self.replayed is None:
            noisy = door.release_gaussian(values, events, ledger)
        else:
            assert self.replayed.events[start : len(self.events)] == list(events), "another question than before"
            ledger.debit(events)
            noisy = self.replayed.released[start : len(self.events)]
        self.released += noisy
        return noisy

    def choose(self, scores: Any, sensitivity: int, event: ExponentialEvent, ledger: Ledger, keeps: Any) -> int:
        at, choice = len(self.events), len(self.sensitivities)
        self.events.append(event)
        self.exact.append(scores)
        self.sensitivities.append(sensitivity)
        if self.replayed is None:
            chosen = door.release_choice(scores, sensitivity, event, ledger, keeps)
        else:
            assert self.replayed.events[at] == event, "another question than before"
            assert self.replayed.sensitivities[choice] == sensitivity, "another question than before"
            ledger.debit([event])
            chosen = int(self.replayed.released[at])
        self.released.append(chosen)
        return chosen


def table_of(seed: int, rows: int, domain: dict[str, int]) -> Any:
    """Attributes that depend on each other, so that something is chosen; as one row for each record."""
    rng = np.random.default_rng(seed)
    common = rng.random(rows)
    return np.stack(
        [
            np.minimum((np.abs(common - rng.normal(0, 0.15, rows)) * size).astype(int), size - 1)
            for size in domain.values()
        ],
        axis=1,
    )


def run(
    make: Callable[..., Mechanism],
    rows: Any,
    schema: Schema,
    budget: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    *,
    replayed: Tape | None = None,
) -> tuple[Tape, Records, tuple[str, ...]]:
    tape = Tape(replayed)
    # By the modules' names: those of the package are functions.
    for module in ("chicle.measurements.measurement", "chicle.selection.indif", "chicle.selection.worst"):
        monkeypatch.setattr(sys.modules[module], "release_gaussian", tape.release)
    monkeypatch.setattr(sys.modules["chicle.selection.worst"], "release_choice", tape.choose)
    k = schema.max_records_per_person
    records = Records(dict(zip(schema.domain, rows.T, strict=True)), schema.domain, max_records_per_person=k)
    noise = TestNoise(11) if replayed is None else NoNoise(11)
    synth = make(**budget).fit(records, schema, ledger=Ledger(Budget(**budget), noise=noise))
    assert list(synth.ledger_.events) == tape.events, "nothing is paid for elsewhere"
    return tape, synth.sample(200, seed=5), synth.release_.notes


DOMAIN = {"a": 2, "b": 3, "c": 30, "d": 4, "e": 12, "f": 2, "g": 1}


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    ("k", "rows", "budget"),
    [
        (1, 3_000, {"epsilon": 1.0, "delta": 1e-9}),
        (1, 400, {"epsilon": 20.0, "delta": 1e-9}),
        (3, 2_000, {"epsilon": 5.0, "delta": 1e-6}),
        (2, 2, {"rho": 0.5}),
        (1, 1, {"mu": 0.3}),
    ],
    ids=str,
)
def test_a_person_moves_every_release_by_no_more_than_its_event_says(
    mechanism: str, k: int, rows: int, budget: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = Schema.from_cardinalities(DOMAIN, ordinal=["c", "e"], max_records_per_person=k)
    table = table_of(rows + k, rows, DOMAIN)
    make = MECHANISMS[mechanism]
    scores_move = 4 if mechanism == "PrivSyn-published" else 1
    everybody, made, notes = run(make, table, schema, budget, monkeypatch)
    chooses = mechanism.startswith("MWEM") or (mechanism == "AIM-pgm" and rows > 2)
    assert bool(everybody.sensitivities) is chooses
    if mechanism.startswith(("Prism", "AIM")) and rows > 2:
        assert any(len(event.clique or ()) > 1 for event in everybody.events), "or there is little to replay"
    newcomer = np.repeat([[size - 1 for size in DOMAIN.values()]], k, axis=0)
    odd = np.array([[i % 2 * (size - 1) for i, size in enumerate(DOMAIN.values())]] * k)
    neighbours = [table[k:], table[:-1], np.concatenate([table, newcomer]), np.concatenate([odd, table])]
    for neighbour in neighbours:
        tape, again, same_notes = run(make, neighbour, schema, budget, monkeypatch, replayed=everybody)
        assert len(tape.events) == len(everybody.events)
        sensitivities = iter(everybody.sensitivities)
        for event, mine, theirs in zip(everybody.events, everybody.exact, tape.exact, strict=True):
            if isinstance(event, ExponentialEvent):
                assert np.abs(mine - theirs).max() <= next(sensitivities)
                continue
            moved = np.abs(mine.astype(float) - theirs)
            assert np.linalg.norm(moved.ravel()) <= event.l2_sensitivity * (1 + 1e-12)
            if event.clique is None:
                assert moved.max() <= scores_move * k * INDIF_UNITS
                assert event.l2_sensitivity >= scores_move * k * INDIF_UNITS * event.values**0.5
            else:
                assert event.l2_sensitivity == k
                assert moved.sum() == abs(len(neighbour) - len(table)), "each row is in one cell"
        assert notes == same_notes
        for name in DOMAIN:
            np.testing.assert_array_equal(made[name], again[name], "nothing but what was released is used")


@pytest.mark.parametrize("mechanism", ["Independent", "PrivSyn", "Prism", "AIM"])
@pytest.mark.parametrize("k", [1, 3])
def test_coarse_and_combined_columns_move_by_no_more(mechanism: str, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fine 1-ways too; and rows that get the combination of `others`, or violate a constraint and are kept."""
    told: dict[str, Any] = {name: {"type": "coded", "values": size} for name, size in DOMAIN.items()}
    told["c"] = {**told["c"], "ordinal": True, "coarse": 5}
    told["e"] = {**told["e"], "coarse": {"low": {"below": 7}, "high": {"from": 7}}}
    schema = Schema(
        told,
        max_records_per_person=k,
        combine={"both": {"columns": ["a", "d"], "combinations": [[0, {"from": 1}], [1, 0]], "others": [1, 0]}},
        constraints=[{"forbid": {"b": 0, "c": {"from": 20}}, "violations": "keep"}],
    )
    budget = {"epsilon": 3.0, "delta": 1e-9}
    table = table_of(k, 1_500, DOMAIN)
    everybody, made, _ = run(MECHANISMS[mechanism], table, schema, budget, monkeypatch)
    assert [event.clique for event in everybody.events[:2]] == [("c",), ("e",)]
    assert [event.values for event in everybody.events[:2]] == [30, 12], "fine 1-ways"
    odd = np.array([[0, 0, 29, 0, 11, 1, 0]] * k)  # a combination that is not listed, and a violation
    for neighbour in (table[k:], np.concatenate([odd, table])):
        tape, again, _ = run(MECHANISMS[mechanism], neighbour, schema, budget, monkeypatch, replayed=everybody)
        for event, mine, theirs in zip(everybody.events, everybody.exact, tape.exact, strict=True):
            moved = np.abs(mine.astype(float) - theirs)
            assert np.linalg.norm(moved.ravel()) <= event.l2_sensitivity * (1 + 1e-12)
            if event.clique is not None:
                assert event.l2_sensitivity == k
                assert moved.sum() == k, "each row is in one cell"
        for name in DOMAIN:
            np.testing.assert_array_equal(made[name], again[name], "nothing but what was released is used")
        assert not ((again["b"] == 0) & (again["c"] >= 20)).any()
        assert (((again["a"] == 0) & (again["d"] > 0)) | ((again["a"] == 1) & (again["d"] == 0))).all()


def test_a_mechanism_that_peeks_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    class Peeks(chicle.Prism):
        def _fit(self, records: Countable, *arguments: Any) -> Any:
            (number,) = chicle.count(records, [()])
            self.options = PrismOptions(selection=0.02 + 0.01 * int(number % 2))
            return super()._fit(records, *arguments)

    schema = Schema.from_cardinalities(DOMAIN)
    table = table_of(0, 3_000, DOMAIN)
    budget = {"epsilon": 1.0, "delta": 1e-9}
    tape, _, _ = run(Peeks, table, schema, budget, monkeypatch)
    with pytest.raises(AssertionError, match="another question"):
        run(Peeks, table[1:], schema, budget, monkeypatch, replayed=tape)


def test_a_choice_that_peeks_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    class Peeks(chicle.MWEM):
        def _fit(self, records: Countable, *arguments: Any) -> Any:
            (number,) = chicle.count(records, [()])
            self.workload = [("a", "b"), ("c", "d"), ("e", "f")][: 2 + int(number % 2)]
            return super()._fit(records, *arguments)

    schema = Schema.from_cardinalities(DOMAIN)
    table = table_of(0, 3_000, DOMAIN)
    budget = {"epsilon": 1.0, "delta": 1e-9}
    tape, _, _ = run(Peeks, table, schema, budget, monkeypatch)
    with pytest.raises(AssertionError, match="another question"):
        run(Peeks, table[1:], schema, budget, monkeypatch, replayed=tape)
