"""Every mechanism, replayed on neighbours: a person moves each release by no more than its event says.

One table is fitted and all that leaves it is noted. Its neighbour then gets the same released values, one after
another: its noise is whatever would have turned its own counts into them, and sensitivity is how far that noise is off.
What follows from released values alone is the same in both, so any other look at private rows shows: in the events, in
the transcript, in the model, or in the records made.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import chicle
from chicle import Desk, Ledger, Measurement, Model, PrismOptions, PublicData, Records, Release, Schema
from chicle.analyses import Analysis
from chicle.counting.countable import UNITS
from chicle.measurements.contrasts import CONTRASTS, Contrasts, contrast_sensitivity
from chicle.measurements.measurement import best_one_ways
from chicle.measurements.merges import merge_rare
from chicle.measurements.row_sums import RowSums
from chicle.measurements.scores import Choice, Scores
from chicle.measurements.transcript import Entry
from chicle.mechanisms.base import BY_NAME, Mechanism
from chicle.models.independent import IndependentModel
from chicle.privacy import TestNoise
from chicle.privacy import primitives as door
from chicle.privacy.events import ExponentialEvent, GaussianEvent, PureEvent
from chicle.query import as_query
from tests.public_tables import public_records

Make = Callable[..., Mechanism]
MECHANISMS: dict[str, Make] = {
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
    "PrivMRF": lambda **given: chicle.PrivMRF(rounds=4, theta=0.5, **given),
    "Gaussian": chicle.Gaussian,
    "Residual": lambda **given: chicle.Residual(workload=[("a", "b", "c"), ("d", "e"), ("b", "f")], **given),
    "AIM": chicle.AIM,
    "AIM-rounds": lambda **given: chicle.AIM(rounds=3, workload=[("a", "b", "c"), ("d", "e"), ("b", "f")], **given),
    "AIM-published": lambda **given: chicle.AIM(published=True, **given),
    "MWEM-explicit": lambda **given: chicle.MWEM(model="explicit", rounds=4, **given),
    "MWEM-of-the-paper": lambda **given: chicle.MWEM(model="explicit", published=True, rounds=4, **given),
    "PEP": lambda **given: chicle.PEP(rounds=3, **given),
    "PEP-query": lambda **given: chicle.PEP(per="query", rounds=4, **given),
    "PMWPub": lambda **given: chicle.PMWPub(rounds=3, **given),
    "PMWPub-query": lambda **given: chicle.PMWPub(per="query", rounds=4, **given),
    "DualQuery": lambda **given: chicle.DualQuery(rounds=5, samples=4, **given),
    "FEM": lambda **given: chicle.FEM(rounds=5, samples=6, **given),
    "GEM": lambda **given: chicle.GEM(rounds=3, components=20, **given),
    "GEM-query": lambda **given: chicle.GEM(per="query", rounds=3, components=20, **given),
    "GEM-of-the-paper": lambda **given: chicle.GEM(published=True, rounds=2, components=6, **given),
    "RAP": lambda **given: chicle.RAP(per="query", rounds=2, queries=3, components=20, **given),
    "DPSyn": lambda **given: chicle.DPSyn(rare=0, passes=2, **given),
    "DPSyn-gaussian": lambda **given: chicle.DPSyn(noise="gaussian", rare=0, passes=2, **given),
    "DPSyn-fields": lambda **given: chicle.DPSyn(
        marginals={("a", "b"): 2.0, ("b", "c"): 1.0}, mapped={"e": "c"}, rare=0, passes=2, partition="d", **given
    ),
    "Prism": chicle.Prism,
    "Prism-pairs": lambda **given: chicle.Prism(options=PrismOptions(order=2, sizes=(3, 2)), **given),
    "Prism-two-stages": lambda **given: chicle.Prism(options=PrismOptions(first_stage=0.5), **given),
    "Prism-contrasts": lambda **given: chicle.Prism(options=PrismOptions(contrasts=True), **given),
    "Prism-plain": lambda **given: chicle.Prism(
        options=PrismOptions(sizes=(), absorb=False, low_rank=False, pull=0.0, theta=0), **given
    ),
}


class NoNoise(TestNoise):
    """Whoever draws noise past the one door is found out."""

    def rounded_gaussian(self, *_: Any) -> Any:
        raise AssertionError("noise was drawn past the door")

    def discrete_laplace(self, *_: Any) -> Any:
        raise AssertionError("noise was drawn past the door")

    def choose(self, *_: Any) -> Any:
        raise AssertionError("noise was drawn past the door")


@dataclass
class Tape:
    """What went through the door: the events, the exact values, and what was released instead of them."""

    replayed: "Tape | None" = None
    events: list[Any] = field(default_factory=list)
    exact: list[Any] = field(default_factory=list)
    released: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)
    """Of the noise of each value, in units of the event's sigma."""
    sensitivities: list[int] = field(default_factory=list)
    """Of the scores of choices, one for each."""

    def release(
        self,
        values: Sequence[Any],
        events: Sequence[GaussianEvent],
        ledger: Ledger,
        *,
        weights: Sequence[Any] | None = None,
    ) -> list[Any]:
        start = len(self.events)
        self.events += events
        self.exact += values
        self.weights += [1.0] * len(values) if weights is None else weights
        if self.replayed is None:
            noisy = door.release_gaussian(values, events, ledger, weights=weights)
        else:
            assert self.replayed.events[start : len(self.events)] == list(events), "another question than before"
            ledger.debit(events)
            noisy = self.replayed.released[start : len(self.events)]
        self.released += noisy
        return noisy

    def release_pure(self, values: Any, event: PureEvent, ledger: Ledger) -> Any:
        at = len(self.events)
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

    def choose(self, scores: Any, sensitivity: int, event: ExponentialEvent, ledger: Ledger, keeps: Any = None) -> int:
        at, choice = len(self.events), len(self.sensitivities)
        self.events.append(event)
        self.exact.append(scores)
        self.weights.append(1.0)
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
    make: Make,
    rows: Any,
    schema: Schema,
    budget: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    *,
    replayed: Tape | None = None,
    analyses: Sequence[Analysis] = (),
    public: Any = None,
) -> tuple[Tape, Records, Release]:
    tape = Tape(replayed)
    monkeypatch.setattr("chicle.analyses.sums.release_gaussian", tape.release)
    monkeypatch.setattr("chicle.measurements.desk.release_gaussian", tape.release)
    monkeypatch.setattr("chicle.measurements.desk.release_pure", tape.release_pure)
    monkeypatch.setattr("chicle.measurements.desk.release_choice", tape.choose)
    k = schema.max_records_per_person
    records = Records(dict(zip(schema.domain, rows.T, strict=True)), schema.domain, max_records_per_person=k)
    noise = TestNoise(11) if replayed is None else NoNoise(11)
    synth = make(**budget)
    if public is None and synth.public_data == "needed":
        public = public_records(schema)
    ledger = Ledger(synth.budget, noise=noise)
    synth.fit(records, schema, public=public, ledger=ledger, analyses=analyses)
    assert list(synth.ledger_.events) == tape.events, "nothing is paid for past the door"
    return tape, synth.sample(200, seed=5), synth.release_


def said(entry: Entry) -> Any:
    """All that an entry of a transcript says, as plain data that can be compared."""
    if isinstance(entry, Measurement):
        return "measurement", entry.query.key, entry.values.tolist(), entry.sigma, entry.protected
    if isinstance(entry, Scores):
        return "scores", entry.cliques, entry.values.tolist(), entry.sigma, entry.protected
    if isinstance(entry, Choice):
        return "choice", as_query(entry.query).key, entry.epsilon, entry.among, dict(entry.context), entry.sign
    if isinstance(entry, Contrasts):
        return "contrasts", entry.clique, entry.values.tolist(), entry.sigma, entry.protected
    if isinstance(entry, RowSums):
        arrays = {name: getattr(entry, name).tolist() for name in ("values", "at", "units")}
        return "row sums", entry.of, entry.kind, entry.sigma, entry.protected, arrays
    arrays = {name: array.tolist() for name, array in entry.to_arrays().items()}
    return "merge", list(entry.original.items()), list(entry.domain.items()), arrays


def check_same(mine: tuple[Tape, Records, Release], theirs: tuple[Tape, Records, Release]) -> None:
    """Check that nothing but what was released is in what two fits leave."""
    (first, made, release), (second, again, replayed) = mine, theirs
    assert len(first.events) == len(second.events)
    entries, others = release.transcript.entries, replayed.transcript.entries
    assert [type(entry) for entry in entries] == [type(entry) for entry in others]
    for entry, other in zip(entries, others, strict=True):
        assert said(entry) == said(other), "a transcript follows from what was released"
    assert release.notes == replayed.notes
    assert release.total == replayed.total
    assert [one.to_dict() for one in release.analyses] == [one.to_dict() for one in replayed.analyses]
    assert [said(split) for split in release.fine_one_ways] == [said(split) for split in replayed.fine_one_ways]
    state, same = release.model.state(), replayed.model.state()
    assert state.keys() == same.keys()
    for name, array in state.items():
        np.testing.assert_array_equal(array, same[name], "a model follows from what was released")
    for name in made.domain:
        np.testing.assert_array_equal(made[name], again[name], "records follow from what was released")


def test_every_mechanism_is_replayed() -> None:
    ours = {one for one in BY_NAME.values() if one.__module__.startswith("chicle.")}
    assert len(ours) > 7
    assert ours == {type(make(rho=1.0)) for make in MECHANISMS.values()}


DOMAIN = {"a": 2, "b": 3, "c": 30, "d": 4, "e": 12, "f": 2, "g": 1}


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    ("k", "rows", "budget"),
    [
        (1, 3_000, {"epsilon": 1.0, "delta": 1e-9}),
        (1, 400, {"epsilon": 20.0, "delta": 1e-9, "allow_weak": True}),
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
    fitted = run(make, table, schema, budget, monkeypatch)
    everybody, _, release = fitted
    chooses = mechanism.startswith(("MWEM", "PEP", "PMWPub", "DualQuery", "FEM", "GEM", "RAP")) or (
        mechanism == "AIM-published" and rows > 2
    )
    if mechanism != "PrivMRF":  # it chooses where a pair stands out
        assert bool(everybody.sensitivities) is chooses
    transcript = release.transcript
    assert len(transcript.choices) == len(everybody.sensitivities)
    paid = [*transcript.measurements, *transcript.contrasts, *transcript.scores, *transcript.choices]
    assert len(paid) == len(everybody.events), "each release is written once"
    if mechanism.startswith(("Prism", "AIM")) and rows > 2:
        assert any(len(event.clique or ()) > 1 for event in everybody.events), "or there is little to replay"
    newcomer = np.repeat([[size - 1 for size in DOMAIN.values()]], k, axis=0)
    odd = np.array([[i % 2 * (size - 1) for i, size in enumerate(DOMAIN.values())]] * k)
    neighbours = [table[k:], table[:-1], np.concatenate([table, newcomer]), np.concatenate([odd, table])]
    for neighbour in neighbours:
        replayed = run(make, neighbour, schema, budget, monkeypatch, replayed=everybody)
        check_same(fitted, replayed)
        tape, _, _ = replayed
        sensitivities = iter(everybody.sensitivities)
        for event, weights, mine, theirs in zip(
            everybody.events, everybody.weights, everybody.exact, tape.exact, strict=True
        ):
            if isinstance(event, ExponentialEvent):
                assert np.abs(mine - theirs).max() <= next(sensitivities)
                continue
            moved = np.abs(mine.astype(float) - theirs) / weights
            if isinstance(event, PureEvent):
                assert moved.sum() <= event.l1_sensitivity == k
                assert moved.sum() == abs(len(neighbour) - len(table)), "each row is in one cell"
                continue
            assert np.linalg.norm(moved.ravel()) <= event.l2_sensitivity * (1 + 1e-12)
            if event.purpose.startswith(CONTRASTS):
                assert event.l2_sensitivity == contrast_sensitivity([DOMAIN[name] for name in event.clique], k)
            elif event.clique is None:
                assert moved.max() <= scores_move * k * UNITS
                assert event.l2_sensitivity >= scores_move * k * UNITS * event.values**0.5
            else:
                assert event.l2_sensitivity == k
                of_a_cell = event.clique == () and event.purpose == "marginal"
                assert of_a_cell or moved.sum() == abs(len(neighbour) - len(table)), "each row is in one cell"


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
    fitted = run(MECHANISMS[mechanism], table, schema, budget, monkeypatch)
    everybody, _, _ = fitted
    assert [event.clique for event in everybody.events[:2]] == [("c",), ("e",)]
    assert [event.values for event in everybody.events[:2]] == [30, 12], "fine 1-ways"
    odd = np.array([[0, 0, 29, 0, 11, 1, 0]] * k)  # a combination that is not listed, and a violation
    for neighbour in (table[k:], np.concatenate([odd, table])):
        replayed = run(MECHANISMS[mechanism], neighbour, schema, budget, monkeypatch, replayed=everybody)
        check_same(fitted, replayed)
        tape, again, _ = replayed
        for event, weights, mine, theirs in zip(
            everybody.events, everybody.weights, everybody.exact, tape.exact, strict=True
        ):
            moved = np.abs(mine.astype(float) - theirs) / weights
            assert np.linalg.norm(moved.ravel()) <= event.l2_sensitivity * (1 + 1e-12)
            if event.clique is not None and not event.purpose.startswith(CONTRASTS):
                assert event.l2_sensitivity == k
                assert moved.sum() == k, "each row is in one cell"
        assert not ((again["b"] == 0) & (again["c"] >= 20)).any()
        assert (((again["a"] == 0) & (again["d"] > 0)) | ((again["a"] == 1) & (again["d"] == 0))).all()


BESIDE = [name for name, make in MECHANISMS.items() if make(rho=1.0).public_data == "weighed" and "MWEM-" not in name]


@pytest.mark.parametrize("mechanism", BESIDE)
@pytest.mark.parametrize("role", ["evidence", "trusted"])
def test_public_data_change_no_question_and_follow_from_releases(
    mechanism: str, role: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person moves each release by no more than without them; model, notes and records follow from releases."""
    k = 2
    schema = Schema.from_cardinalities(DOMAIN, ordinal=["c", "e"], max_records_per_person=k)
    table, make = table_of(5, 1_500, DOMAIN), MECHANISMS[mechanism]
    columns = dict(zip(DOMAIN, table_of(6, 800, DOMAIN).T, strict=True))
    some = {name: DOMAIN[name] for name in list(DOMAIN)[:5]}
    public = PublicData(Records({name: columns[name] for name in some}, some), role)
    budget = {"epsilon": 4.0, "delta": 1e-9}
    fitted = run(make, table, schema, budget, monkeypatch, public=public)
    newcomer = np.repeat([[size - 1 for size in DOMAIN.values()]], k, axis=0)
    for neighbour in (table[k:], np.concatenate([newcomer, table])):
        replayed = run(make, neighbour, schema, budget, monkeypatch, replayed=fitted[0], public=public)
        check_same(fitted, replayed)
        for event, weights, mine, theirs in zip(
            fitted[0].events, fitted[0].weights, fitted[0].exact, replayed[0].exact, strict=True
        ):
            if isinstance(event, GaussianEvent):
                moved = np.ravel((mine - theirs) / weights)
                assert np.linalg.norm(moved) <= event.l2_sensitivity * (1 + 1e-12)


ANALYSES = (
    chicle.Logit("a ~ c + C(b) + d"),
    chicle.Linear("e ~ c * f + I(c ** 2)"),
    chicle.Poisson("d ~ c + C(b)"),
)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("k", "rows"), [(1, 1_500), (3, 600)])
def test_a_person_moves_declared_analyses_by_no_more(
    mechanism: str, k: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The products and the scores that they buy, whose questions follow from what was released before."""
    schema = Schema.from_cardinalities(DOMAIN, ordinal=["c", "e"], max_records_per_person=k)
    table = table_of(rows + k, rows, DOMAIN)
    budget = {"epsilon": 3.0, "delta": 1e-9}
    fitted = run(MECHANISMS[mechanism], table, schema, budget, monkeypatch, analyses=ANALYSES)
    everybody, _, release = fitted
    bought = release.transcript.row_sums
    assert [one.kind for one in bought] == ["products"] * 2 + ["score"] * 6
    assert len(release.analyses) == 3
    newcomer = np.repeat([[size - 1 for size in DOMAIN.values()]], k, axis=0)
    for neighbour in (table[k:], np.concatenate([newcomer, table])):
        replayed = run(
            MECHANISMS[mechanism], neighbour, schema, budget, monkeypatch, replayed=everybody, analyses=ANALYSES
        )
        check_same(fitted, replayed)
        tape, _, _ = replayed
        moves = []
        for event, mine, theirs in list(zip(everybody.events, everybody.exact, tape.exact, strict=True))[
            -len(bought) :
        ]:
            moves.append(float(np.linalg.norm((mine - theirs).astype(float))))
            assert moves[-1] <= event.l2_sensitivity
        assert max(moves) > 0.2 * everybody.events[-1].l2_sensitivity, "or there is little to replay"


# --- Mechanisms that get at the rows all the same ---------------------------------------------------------------------


def peek(desk: Desk) -> int:
    """Return the exact number of records. The desk has no way to it; only the mangled name of its own field has."""
    (number,) = desk._Desk__rows.count([()])  # type: ignore[attr-defined]
    return int(number)


class AsksMore(chicle.Prism):
    """Splits its budget by the exact number of records."""

    def run(self, desk: Desk) -> Model:
        self.options = PrismOptions(selection=0.02 + 0.01 * (peek(desk) % 2))
        return super().run(desk)


class ChoosesAmongOthers(chicle.MWEM):
    """Chooses among other cliques, by the exact number of records."""

    def run(self, desk: Desk) -> Model:
        self.workload = [("a", "b"), ("c", "d"), ("e", "f")][: 2 + peek(desk) % 2]
        return super().run(desk)


class MergesByRows(chicle.Independent):
    """Merges values by the exact number of records, after all is paid for."""

    def run(self, desk: Desk) -> IndependentModel:
        model = super().run(desk)
        one_ways = list(best_one_ways(desk.transcript.measurements, desk.domain).values())
        desk.merged(merge_rare(one_ways, desk.domain, theta=3.0 + 30 * (peek(desk) % 2)))
        return model


class WritesDown(chicle.MWEM):
    """Keeps the exact number of records with its choices."""

    def run(self, desk: Desk) -> Model:
        model = super().run(desk)
        for i, entry in enumerate(desk.transcript.entries):
            if isinstance(entry, Choice):
                number = float(peek(desk))
                desk.transcript.entries[i] = Choice(entry.clique, entry.epsilon, entry.among, {"n": number})
        return model


class Tells(chicle.Independent):
    """Says the exact number of records in a note."""

    def run(self, desk: Desk) -> IndependentModel:
        desk.note(f"There are {peek(desk)} records.")
        return super().run(desk)


class Learns(chicle.Independent):
    """Fits its model to exact counts."""

    def run(self, desk: Desk) -> IndependentModel:
        model = super().run(desk)
        exact = desk._Desk__rows.count([("b",)])[0]  # type: ignore[attr-defined]
        targets = [one if one.clique != ("b",) else Measurement(("b",), exact, one.sigma) for one in desk.targets]
        return type(model)().fit(targets, desk.domain)


@pytest.mark.parametrize(
    ("mechanism", "caught"),
    [
        (AsksMore, "another question"),
        (ChoosesAmongOthers, "another question"),
        (MergesByRows, "a transcript follows"),
        (WritesDown, "a transcript follows"),
        (Tells, "There are"),
        (Learns, "a model follows"),
    ],
)
def test_a_mechanism_that_peeks_is_caught(mechanism: Make, caught: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = Schema.from_cardinalities(DOMAIN)
    table = table_of(0, 3_000, DOMAIN)
    budget = {"epsilon": 1.0, "delta": 1e-9}
    fitted = run(mechanism, table, schema, budget, monkeypatch)
    check_same(fitted, run(mechanism, table, schema, budget, monkeypatch, replayed=fitted[0]))  # on the same rows
    with pytest.raises(AssertionError, match=caught):
        check_same(fitted, run(mechanism, table[1:], schema, budget, monkeypatch, replayed=fitted[0]))


def test_noise_past_the_door_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    class Draws(chicle.Independent):
        def run(self, desk: Desk) -> IndependentModel:
            door.gaussian([peek(desk)], l2_sensitivity=1, sigma=50.0, ledger=desk._purse.ledger)
            return super().run(desk)

    schema = Schema.from_cardinalities(DOMAIN)
    with pytest.raises(AssertionError, match="past the door"):
        run(Draws, table_of(0, 300, DOMAIN), schema, {"rho": 1.0}, monkeypatch)
