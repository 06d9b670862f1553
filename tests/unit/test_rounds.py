"""The driver of rounds: choose, measure, refit, until the budget ends."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import chicle
from chicle import Budget, Clique, Desk, Domain, Ledger, Query, Records
from chicle.measurements.measurement import Measurement
from chicle.measurements.merges import merge_groups
from chicle.mechanisms.aim_candidates import penalty
from chicle.mechanisms.aim_model import AnnealedRounds
from chicle.mechanisms.aim_records import UnequalRounds
from chicle.mechanisms.rounds import Chooser, EqualRounds, Pick, Round, Schedule, rounds
from chicle.models import IndependentModel
from chicle.privacy import TestNoise
from chicle.query import QueryLike, one_ways

DOMAIN = Domain({"a": 6, "b": 3, "c": 2})
RHO = 0.5


def desk_of(rho: float = RHO, k: int = 1, **given: Any) -> Desk:
    rng = np.random.default_rng(0)
    rows = {name: rng.integers(size, size=400) for name, size in DOMAIN.items()}
    ledger = Ledger(Budget(rho=rho), noise=TestNoise(1))
    return Desk(Records(rows, DOMAIN, max_records_per_person=k), ledger, **given)


@dataclass
class Listed(Chooser[Any]):
    """Picks what a list says, round by round, and pays for a choice; notes what it was given."""

    picks: list[list[Pick]]
    pays: bool = True
    heard: list[tuple[Round, Any]] = field(default_factory=list)

    def choose(self, desk: Desk, model: Any, now: Round) -> list[Pick]:
        self.heard.append((now, model))
        chosen = self.picks[now.number - 1]
        if self.pays and now.choosing > 0:
            desk.choose([("a",), ("b",)], lambda _: [np.zeros(6), np.zeros(3)], rho=now.choosing)
        return chosen


@dataclass
class Named:
    """A model that expects a number, everywhere; it only knows its name."""

    number: float
    asked: list[tuple[list[QueryLike], bool]] = field(default_factory=list)
    total: int = 400

    def expect(self, queries: Sequence[QueryLike], *, merged: bool = False, threads: int | None = None) -> list[Any]:  # noqa: ARG002
        self.asked.append((list(queries), merged))
        return [np.full(2, self.number) for _ in queries]


@dataclass
class Refit:
    """Makes the next model, and notes what it came from."""

    came_from: list[float] = field(default_factory=list)

    def __call__(self, before: Any) -> Any:
        self.came_from.append(before.number)
        return Named(before.number + 10)


@dataclass
class Listening(Schedule):
    """Equal rounds that note how far the model has moved."""

    number: int
    rho: float
    heard: list[tuple[list[QueryLike], float]] = field(default_factory=list)
    done: int = 0

    def next(self, desk: Desk) -> Round:
        del desk
        self.done += 1
        return Round(self.done, 0.0, self.rho / self.number, last=self.done == self.number)

    def moved(self, picks: Sequence[Pick], distance: float) -> None:
        self.heard.append(([pick.query for pick in picks], distance))


def drive(desk: Desk, first: Any, chooser: Listed, schedule: Schedule, refit: Any) -> int:
    return rounds(desk, first, chooser, schedule, refit)


@pytest.mark.parametrize("number", [1, 2, 7])
def test_the_budget_ends_with_the_last_round(number: int) -> None:
    desk, refit = desk_of(), Refit()
    chooser = Listed([[Pick(("a", "b"), 0.7), Pick(("c",), 0.3)]] * number)
    assert drive(desk, Named(0), chooser, EqualRounds(number, 0.1, RHO - 0.1), refit) == number
    ledger = desk._purse.ledger
    assert ledger.spent == pytest.approx(RHO, rel=1e-9)
    assert [one.clique for one in desk.transcript.measurements] == [("a", "b"), ("c",)] * number
    assert len(desk.transcript.choices) == number
    tables = [event.rho("zcdp") for event in ledger.events if event.purpose == "marginal"]
    assert tables == pytest.approx([part * (RHO - 0.1) / number for part in (0.7, 0.3)] * number)
    assert refit.came_from == [10 * i for i in range(number - 1)], "between rounds, but not after the last"
    assert [model.number for _, model in chooser.heard] == [10 * i for i in range(number)]
    assert [now.number for now, _ in chooser.heard] == list(range(1, number + 1))
    assert [now.last for now, _ in chooser.heard] == [False] * (number - 1) + [True]


def test_nothing_picked_ends_the_rounds() -> None:
    desk, refit = desk_of(), Refit()
    chooser = Listed([[Pick(("a",))], [], [Pick(("b",))]])
    assert drive(desk, Named(0), chooser, EqualRounds(3, 0.03, RHO - 0.03), refit) == 1
    assert [one.clique for one in desk.transcript.measurements] == [("a",)]
    assert refit.came_from == [0]
    assert desk.left == pytest.approx(RHO - (RHO - 0.03) / 3 - 0.02, rel=1e-9), (
        "what is left is the mechanism's to spend"
    )
    assert drive(desk_of(), Named(0), Listed([[]]), EqualRounds(1, 0.03, RHO - 0.03), refit) == 0


def test_a_schedule_hears_by_how_much_the_model_has_moved() -> None:
    desk, schedule = desk_of(), Listening(4, RHO)
    picks: list[list[Pick]] = [[Pick(("a",)), Pick(("b",))], [Pick(("c",))], [Pick(("b", "c"))], [Pick(("a",))]]
    picks = [[Pick(pick.query, 1 / len(some)) for pick in some] for some in picks]
    drive(desk, Named(0), Listed(picks), schedule, Refit())
    queries: list[list[QueryLike]] = [[pick.query for pick in some] for some in picks]
    # Each model expects 10 more than the one before, in both cells of each query.
    assert schedule.heard == [(queries[0], 40.0), (queries[1], 20.0), (queries[2], 20.0)]
    assert desk.left == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("progress", [False, True])
def test_progress_is_called_between_rounds_and_models_are_asked_only_where_somebody_listens(progress: bool) -> None:
    heard: list[tuple[int, float]] = []
    desk = desk_of(progress=(lambda *note: heard.append(note)) if progress else None)
    first = Named(0)
    drive(desk, first, Listed([[Pick(("a",))]] * 3), EqualRounds(3, 0.03, 0.4), Refit())
    assert heard == ([(1, 20 / 400), (2, 20 / 400)] if progress else [])
    assert len(first.asked) == int(progress)


def test_at_a_desk_of_merged_values_the_model_is_asked_of_merged_values() -> None:
    """Queries of the desk speak of its values, and so must what is expected of them."""
    desk, first = desk_of(), Named(0)
    singles = desk.measure(one_ways(DOMAIN), rho=0.1)
    merge = merge_groups(singles, DOMAIN, {"a": np.arange(6) // 2, "b": np.arange(3), "c": np.arange(2)})
    halves = Query(("a", "b"), {"a": np.array([0, 0, 1], dtype=np.uint32)})
    schedule = Listening(2, 0.4)
    drive(desk.merged(merge), first, Listed([[Pick(halves)]] * 2), schedule, Refit())
    assert first.asked == [([halves], True)]
    heard: list[tuple[int, float]] = []
    desk = desk_of(progress=lambda *note: heard.append(note))
    desk.measure(one_ways(DOMAIN), rho=0.1)
    merged = desk.merged(merge)
    rounds(
        merged,
        IndependentModel().fit(desk.targets, DOMAIN, merge=merge),
        Listed([[Pick(halves)]] * 2),
        EqualRounds(2, 0.0, 0.4),
        lambda _: IndependentModel().fit(desk.targets, DOMAIN, merge=merge),
    )
    assert [number for number, _ in heard] == [1]
    assert desk.left == pytest.approx(0, abs=1e-9)


def test_aim_over_records_can_show_its_progress() -> None:
    """Also where its rounds measure buckets of merged values."""
    rng = np.random.default_rng(0)
    common = rng.random(20_000) ** 3
    sizes = {"a": 150, "b": 150, "c": 3}
    rows = {name: np.clip((common + rng.normal(0, 0.03, 20_000)) * size, 0, size - 1) for name, size in sizes.items()}
    table = Records({name: codes.astype(int) for name, codes in rows.items()}, sizes)
    schema = chicle.Schema.from_cardinalities(sizes, ordinal=["a", "b"])
    budget: dict[str, Any] = {"epsilon": 1, "delta": 1e-9}
    heard: list[tuple[int, float]] = []
    synth = chicle.AIM(rounds=3, progress=lambda *note: heard.append(note), **budget)
    release = synth.fit(table, schema, ledger=Ledger(Budget(**budget), noise=TestNoise(3))).release_
    merge = release.transcript.merge
    assert merge is not None
    (pair, *_) = (one for one in release.measurements if one.clique == ("a", "b"))
    assert max(pair.values.shape) < min(merge.domain["a"], merge.domain["b"]) < 150, "or the test says nothing"
    assert [number for number, _ in heard] == [1, 2]
    assert all(moved >= 0 for _, moved in heard)
    assert synth.ledger_.spent == pytest.approx(synth.ledger_.budget.rho, rel=1e-9)


# --- Schedules -------------------------------------------------------------------------------------------------------


def test_unequal_rounds() -> None:
    schedule, desk = UnequalRounds(2.0, [0.7, 0.2, 0.1], 0.25), desk_of()
    found = [schedule.next(desk) for _ in range(3)]
    assert [now.choosing for now in found] == pytest.approx([0.35, 0.1, 0.05])
    assert [now.measuring for now in found] == pytest.approx([1.05, 0.3, 0.15])
    assert [now.last for now in found] == [False, False, True]


@dataclass
class Drifting:
    """A model that moves by so much in each round."""

    steps: list[float]
    at: int = 0
    total: int = 400

    def expect(self, queries: Sequence[QueryLike], *, merged: bool = False, threads: int | None = None) -> list[Any]:  # noqa: ARG002
        assert not merged
        return [np.array([sum(self.steps[: self.at])]) for _ in queries]


@pytest.mark.parametrize("moves", [True, False])
@pytest.mark.parametrize("share", [RHO / 7.3, RHO / 99.7, RHO])
@pytest.mark.parametrize("k", [1, 3])
def test_annealed_rounds_spend_all_that_is_left_in_the_last(moves: bool, share: float, k: int) -> None:
    desk, alpha = desk_of(k=k), 0.9
    schedule = AnnealedRounds(share, alpha, DOMAIN, k)
    chooser = Listed([[Pick(("a", "b"))]] * 200)
    steps = [1e9 if moves else 0.0] * 200
    done = drive(desk, Drifting(steps), chooser, schedule, lambda before: Drifting(steps, before.at + 1))
    ledger = desk._purse.ledger
    assert ledger.spent == pytest.approx(RHO, rel=1e-9)
    assert desk.left == pytest.approx(0, abs=1e-9)
    spent = [now.choosing + now.measuring for now, _ in chooser.heard]
    assert len(spent) == done
    assert all(now.measuring == pytest.approx(alpha * (now.choosing + now.measuring)) for now, _ in chooser.heard)
    assert [now.last for now, _ in chooser.heard] == [False] * (done - 1) + [True]
    left = RHO
    for number, each in enumerate(spent):
        planned = share if moves else share * 4**number
        assert each == pytest.approx(left if number == done - 1 else planned, rel=1e-9)
        if number < done - 1:
            assert left > 2 * planned, "else this would have been the last"
        left -= each


def test_annealing_begins_where_noise_explains_the_move() -> None:
    """[A] Algorithm 3: the L1 distance is compared with what noise alone is expected to add."""
    cliques: list[Clique] = [("a",), ("a", "b")]
    for clique in cliques:
        for k in (1, 2):
            sigma = k / np.sqrt(2 * 0.9 * 0.01)
            limit = np.sqrt(2 / np.pi) * sigma * DOMAIN.cells(clique)
            assert penalty(clique, sigma, DOMAIN) == pytest.approx(limit)
            for distance, factor in ((limit * 0.999, 4), (limit * 1.001, 1)):
                schedule = AnnealedRounds(0.01, 0.9, DOMAIN, k)
                schedule.moved([Pick(clique)], distance)
                assert schedule.share == pytest.approx(0.01 * factor)


def test_what_a_round_measures_is_paid_for_once() -> None:
    desk = desk_of()
    rounds(
        desk,
        IndependentModel().fit([Measurement(c, np.ones(DOMAIN.shape(c)), 1.0) for c in one_ways(DOMAIN)], DOMAIN),
        Listed([[Pick(("a",))]] * 2, pays=False),
        EqualRounds(2, 0.0, RHO),
        lambda before: before,
    )
    events = desk._purse.ledger.events
    assert [event.clique for event in events] == [("a",), ("a",)]
    with pytest.raises(chicle.BudgetExceeded):
        desk.measure([("a",)], rho=0.01)
