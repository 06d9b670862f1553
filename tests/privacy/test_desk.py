"""The desk is a mechanism's only door to private counts: it leads to no rows, and its transcript to no exact count."""

import copy
import pickle
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import combinations_with_replacement, product
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import pytest

import chicle
from chicle import Budget, BudgetExceeded, Desk, DomainError, Ledger, Measurement, PrivacyError, Query, Records
from chicle.counting.countable import UNITS, Cached, Countable, View
from chicle.measurements.merges import Change, Merge, merge_rare
from chicle.measurements.scores import Choice, Scores
from chicle.measurements.transcript import Transcript
from chicle.mechanisms.base import Mechanism
from chicle.privacy import GaussianEvent, TestNoise
from chicle.query import Functional, QueryLike

DOMAIN = {"a": 5, "b": 3, "c": 2}
TINY = 0.01


def table_of(rows: int = 60, k: int = 1) -> Records:
    rng = np.random.default_rng(7)
    return Records(
        {name: rng.integers(size, size=rows) for name, size in DOMAIN.items()}, DOMAIN, max_records_per_person=k
    )


def merge_of(*, vanish: bool = False) -> Merge:
    """The values 1, 3 and 4 of `a` are one, or 1 and 3 vanished; `b` and `c` are as they were."""
    codes = np.array([0, 0, 1, 0, 2] if vanish else [0, 2, 1, 2, 2], dtype=np.uint8)
    shares = np.array([1, 0, 1, 0, 1] if vanish else [1, 0.5, 1, 0.25, 0.25], dtype=np.float64)
    return Merge(chicle.Domain(DOMAIN), {"a": Change(codes, shares, vanish=vanish)})


def merged_rows(table: Records, merge: Merge) -> Records:
    return Records(
        {name: merge.codes(name)[table[name]] for name in table},
        merge.domain,
        max_records_per_person=table.max_records_per_person,
    )


# --- No way to rows ---------------------------------------------------------------------------------------------------

PLAIN = (str, bytes, int, float, complex, type, ModuleType, np.ndarray, np.generic, np.dtype)
CALLED = (FunctionType, BuiltinFunctionType, MethodType)


def reachable(start: object, depth: int = 8) -> list[object]:
    """All objects to which public attributes, items and methods without arguments that are free lead."""
    found: list[object] = []
    seen: set[int] = set()
    layer = [start]
    for _ in range(depth):
        following: list[object] = []
        for thing in layer:
            if id(thing) in seen or isinstance(thing, (*PLAIN, *CALLED)) or thing is None:
                continue
            seen.add(id(thing))
            found.append(thing)  # which keeps it, so that no other object gets its id
            if isinstance(thing, Mapping):
                following += [*thing.keys(), *thing.values()]
            elif isinstance(thing, Iterable):
                following += list(thing)
            for name in dir(thing):
                if not name.startswith("_"):
                    following.append(getattr(thing, name))
            if isinstance(thing, Desk):
                with suppress(DomainError):  # where not all 1-ways were measured
                    following += [thing.one_ways(), thing.independence()]
        layer = following
    return found


@pytest.mark.parametrize("rows", [table_of(), View(table_of(), merge_of().maps, merge_of().domain), Cached(table_of())])
def test_no_attribute_of_a_desk_leads_to_rows(rows: Countable) -> None:
    desk = Desk(rows, Ledger(Budget(rho=100)), ordinal=["b"], zeros={("b", "c"): np.zeros((3, 2), dtype=bool)})
    desk.measure([(name,) for name in desk.domain], rho=1)
    desk.choose([("a", "b"), ("b", "c")], desk.independence(), rho=1)
    desk.score([("a", "b")], desk.independence(), rho=1)
    merged = desk.merged(merge_rare(desk.one_ways(), desk.domain))
    merged.choose([("a", "b")], merged.independence(), rho=1)
    for one in (desk, merged):
        found = reachable(one)
        kinds = {type(thing) for thing in found}
        assert {Transcript, Measurement, Scores, Choice, Merge, Query} <= kinds, "or the walk has gone nowhere"
        assert not [thing for thing in found if isinstance(thing, Countable)]


def test_the_walk_would_find_rows() -> None:
    desk = Desk(table_of(), Ledger(Budget(rho=100)))
    desk.measure([(name,) for name in DOMAIN], rho=1)
    for hidden in ([table_of()], {"x": (table_of(),)}, View(table_of(), merge_of().maps, merge_of().domain)):
        desk.zeros = {("a",): hidden}  # type: ignore[dict-item]
        assert any(isinstance(thing, Countable) for thing in reachable(desk))


MECHANISMS: dict[str, Callable[..., Mechanism]] = {
    **{one.__name__: one for one in (chicle.Prism, chicle.PrivSyn, chicle.MST, chicle.MWEM, chicle.PrivBayes)},
    "AIM": chicle.AIM,
    "AIM-published": lambda **given: chicle.AIM(published=True, **given),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_what_a_mechanism_gets_leads_to_no_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither before its first release, nor after its last, nor in what it leaves."""
    synth = MECHANISMS[name](epsilon=5, delta=1e-9)
    run, desks = type(synth).run, list[Desk]()

    def watched(mechanism: Mechanism, desk: Desk) -> Any:
        desks.append(desk)
        assert not [value for key, value in vars(desk).items() if "__" not in key and isinstance(value, Countable)]
        return run(mechanism, desk)

    monkeypatch.setattr(type(synth), "run", watched)
    synth.fit(chicle.datasets.census(2_000, d=5))
    (desk,) = desks
    assert len(desk.transcript) > 5
    for thing in (*reachable(desk), *reachable(synth.release_)):
        assert not isinstance(thing, Countable)


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_desk_is_neither_pickled_nor_copied(copied: Callable[[object], object]) -> None:
    desk = Desk(table_of(), Ledger(Budget(rho=1)))
    for one in (desk, desk.merged(merge_of())):
        with pytest.raises(PrivacyError, match="leads to private rows"):
            copied(one)
        with pytest.raises(PrivacyError, match="leads to private rows"):
            copied({"mine": [one]}) if copied is not copy.copy else copied(one)


def test_a_desk_shows_nothing_of_its_rows() -> None:
    table = Records({"a": [1] * 4711}, {"a": 3})
    desk = Desk(table, Ledger(Budget(rho=1), noise=TestNoise(0)))
    desk.measure([(), ("a",)], rho=0.01)
    assert "4711" not in repr(desk) + str(desk) + repr(desk.transcript) + repr(vars(desk))


# --- The transcript ---------------------------------------------------------------------------------------------------


def test_a_transcript_holds_no_exact_count() -> None:
    """4,711 rows in one cell, 815 in another: noise that is never 0 hides both everywhere."""
    table = Records({"a": [0] * 4711 + [2] * 815, "b": [1] * 4711 + [0] * 815}, {"a": 3, "b": 2})
    exact = {4711, 815, 4711 + 815}
    desk = Desk(table, Ledger(Budget(rho=1e3), noise=TestNoise(4)))
    desk.measure([(), ("a",), ("b",), Query(("a",), where={"b": 1})], sigma=40.0)
    desk.measure([Query(("b",), functional=Functional(np.array([[1, 1], [0, 1]])))], sigma=40.0)
    desk.score([("a", "b")], desk.independence(), rho=0.1)
    desk.dependence([("a", "b")], rho=0.1)
    desk.choose([("a",), ("a", "b")], desk.independence(), rho=0.1, penalties=[1.0, 2.0], context={"sigma": 3.0})
    merged = desk.merged(merge_rare(desk.one_ways(), desk.domain))
    merged.measure([("a", "b")], sigma=40.0)
    kinds = [type(entry) for entry in desk.transcript.entries]
    assert kinds == [*[Measurement] * 5, Scores, Scores, Choice, Merge, Measurement]
    numbers: set[float] = set()
    for entry in desk.transcript.entries:
        if isinstance(entry, (Measurement, Scores)):
            numbers |= set(np.asarray(entry.values, dtype=np.float64).ravel().tolist())
        elif isinstance(entry, Choice):
            assert entry.context == {"sigma": 3.0}
            numbers |= {entry.epsilon, float(entry.among)}
        else:
            assert isinstance(entry, Merge)
            numbers |= {float(x) for array in entry.to_arrays().values() for x in array.ravel()}
    assert len(numbers) > 15
    assert not numbers & exact
    (exact_score,) = table.distances([("a", "b")], desk.independence())
    assert exact_score / UNITS not in numbers
    stored = pickle.dumps(desk.transcript)
    for count in exact:
        for form in ("<i8", "<f8", ">i8"):
            assert np.array(count, dtype=form).tobytes() not in stored


def test_everything_that_was_paid_for_is_written_once_and_in_order() -> None:
    ledger = Ledger(Budget(rho=100))
    desk = Desk(table_of(), ledger)
    one_ways = desk.measure([(name,) for name in DOMAIN], rho=1, purpose="1-way")
    scores = desk.score([("a", "b"), ("b", "c")], desk.independence(), rho=1)
    choice = desk.choose([("a", "b"), ("b", "c")], desk.independence(), rho=1)
    published = desk.dependence([("a", "b")], rho=1)
    (pair,) = desk.measure([choice.clique], rho=1)
    assert desk.transcript.entries == [*one_ways, scores, choice, published, pair]
    assert len(ledger.events) == len(desk.transcript)
    assert [event.kind for event in ledger.events] == [*["gaussian"] * 4, "exponential", *["gaussian"] * 2]
    assert desk.spent == ledger.spent == pytest.approx(5)
    assert desk.left == pytest.approx(95)


# --- What may be spent ------------------------------------------------------------------------------------------------


def test_a_desk_spends_no_more_than_it_may_though_the_ledger_has_more() -> None:
    ledger = Ledger(Budget(rho=100))
    Desk(table_of(), ledger).measure([("a",)], rho=7)
    desk = Desk(table_of(), ledger, rho=2)
    desk.measure([(name,) for name in DOMAIN], rho=1.5)
    events = ledger.events
    expect = desk.independence()
    spend: list[Callable[[Desk], object]] = [
        lambda one: one.measure([("a",)], rho=0.6),
        lambda one: one.measure([("a",)], sigma=0.5),
        lambda one: one.score([("b", "c")], expect, rho=0.6),
        lambda one: one.dependence([("b", "c")], rho=0.6),
        lambda one: one.choose([("b", "c")], expect, rho=0.6),
    ]
    for one in (desk, desk.merged(Merge(desk.domain))):
        for release in spend:
            with pytest.raises(BudgetExceeded, match=r"only 0\.5 of the 2 for this desk is left"):
                release(one)
    assert ledger.events == events
    desk.measure([("a",)], rho=desk.left)
    assert desk.left == pytest.approx(0, abs=1e-9)
    assert ledger.remaining == pytest.approx(91)


# --- Merged values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vanish", [False, True])
@pytest.mark.parametrize("viewed", [False, True])
def test_a_merged_desk_counts_merged_rows_and_writes_original_attributes(*, vanish: bool, viewed: bool) -> None:
    table, merge = table_of(), merge_of(vanish=vanish)
    rows: Countable = View(table, {name: (name, None) for name in DOMAIN}, table.domain) if viewed else table
    ledger = Ledger(Budget(rho=1e9), noise=TestNoise(0))
    desk = Desk(rows, ledger)
    merged = desk.merged(merge)
    assert merged.merge is merge
    assert dict(merged.domain) == {"a": 3, "b": 3, "c": 2}
    queries = [
        Query(("b",)),
        Query(("a",)),
        Query(("c", "a")),
        Query(("a", "b"), {"a": np.array([1, 0, 1]), "b": np.array([0, 1, 0])}),
        Query(("a",), where={"b": 2}),
        Query(("a",), {"a": np.array([0, 1, 1])}, {"c": 1}, Functional(np.array([[1, -1], [2, 0]]))),
        Query((), where={"c": 0}),
    ]
    found = merged.measure(queries, sigma=TINY)
    expected = merged_rows(table, merge).count(queries)
    written = desk.transcript.entries
    assert written[0] is merge
    assert len(written) == 1 + len(queries)
    for query, answer, exact, entry, event in zip(queries, found, expected, written[1:], ledger.events, strict=True):
        np.testing.assert_array_equal(answer.values, exact)
        assert answer.query.key == query.checked(merged.domain).key
        # The transcript asks the same of the original attributes: in buckets wherever values are one.
        assert isinstance(entry, Measurement)
        np.testing.assert_array_equal(entry.values, answer.values)
        assert (entry.clique, entry.sigma, entry.protected) == (query.clique, TINY, False)
        np.testing.assert_array_equal(table.count([entry.query])[0], exact)
        assert entry.query.key == merge.behind(query).checked(table.domain).key
        assert ("a" in entry.buckets) is ("a" in query.clique)
        assert isinstance(event, GaussianEvent)
        assert (event.clique, event.values, event.l2_sensitivity) == (
            query.clique,
            exact.size,
            query.l2_sensitivity(1),
        )


def test_both_desks_spend_from_one_ledger_into_one_transcript() -> None:
    ledger = Ledger(Budget(rho=10))
    desk = Desk(table_of(), ledger, rho=4)
    desk.measure([(name,) for name in DOMAIN], rho=1)
    merged = desk.merged(merge_of())
    assert merged.transcript is desk.transcript
    assert ledger.spent == pytest.approx(1), "a merge is free"
    merged.measure([("a", "b")], rho=0.5)
    merged.score([("a", "b")], merged.independence(), rho=0.25)
    merged.choose([("a", "b"), ("b", "c")], merged.independence(), rho=0.25)
    desk.measure([("b", "c")], rho=0.5)
    for one in (desk, merged):
        assert one.left == pytest.approx(1.5)
        assert one.spent == pytest.approx(2.5)
        assert one.protected
    assert ledger.spent == pytest.approx(2.5)
    kinds = [type(entry) for entry in desk.transcript.entries]
    assert kinds == [*[Measurement] * 3, Merge, Measurement, Scores, Choice, Measurement]
    merged.note("said once")
    assert desk.transcript.notes == ["said once"]
    for measurement in desk.transcript.measurements:
        measurement.checked(desk.domain)
    # The 1-ways of a merged desk are those that were measured, summed: nothing is counted again.
    assert [one.values.tolist() for one in merged.one_ways()] == [
        merge_of().over(one).values.tolist() for one in desk.one_ways()
    ]


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("vanish", [False, True])
def test_a_person_moves_merged_counts_by_exactly_k(k: int, *, vanish: bool) -> None:
    domain = {"a": 5, "b": 2}
    codes = merge_of(vanish=vanish).changes["a"]
    merge = Merge(chicle.Domain(domain), {"a": codes})
    cells = list(product(range(5), range(2)))
    queries: list[QueryLike] = [
        ("a",),
        ("b", "a"),
        Query(("a",), where={"b": 1}),
        Query(("a",), {"a": np.array([0, 1, 0])}),
    ]
    exact, events = {}, set()
    for size in range(k + 2):
        for rows in combinations_with_replacement(cells, size):
            columns = np.array(rows, dtype=np.int64).reshape(size, 2).T
            table = Records(dict(zip(domain, columns, strict=True)), domain, max_records_per_person=k)
            ledger = Ledger(Budget(rho=1e9), noise=TestNoise(0))
            exact[rows] = [one.values for one in Desk(table, ledger).merged(merge).measure(queries, sigma=TINY)]
            events |= {event.l2_sensitivity for event in ledger.events if isinstance(event, GaussianEvent)}
    most = np.zeros(len(queries))
    for rows, larger in exact.items():
        for size in range(1, min(k, len(rows)) + 1):
            smaller = exact[rows[size:]]
            moved = [np.linalg.norm((x - y).ravel()) for x, y in zip(larger, smaller, strict=True)]
            most = np.maximum(most, moved)
    assert most.tolist() == [k] * len(queries)
    assert events == {k}


def test_merges_that_do_not_fit_are_refused() -> None:
    """A map of fewer codes than there are would read past its end."""
    ledger = Ledger(Budget(rho=1))
    desk = Desk(table_of(), ledger)
    for wrong in ({**DOMAIN, "a": 4}, {"a": 5, "b": 3}, {"b": 3, "a": 5, "c": 2}):
        with pytest.raises(DomainError, match="merge is of other attributes"):
            desk.merged(Merge(chicle.Domain(wrong)))
    with pytest.raises(DomainError, match="a new code for each of its 5 values"):
        Merge(chicle.Domain(DOMAIN), {"a": Change(np.array([0, 1, 1], dtype=np.uint8), np.ones(3))})
    with pytest.raises(DomainError, match="merged once"):
        desk.merged(merge_of()).merged(Merge(merge_of().domain))
    assert desk.transcript.merge is not None
    with pytest.raises(DomainError, match="the values of 'a' are merged"):
        desk.merged(merge_of()).measure([Query(("b",), where={"a": 1})], rho=0.1)
    assert ledger.events == ()
