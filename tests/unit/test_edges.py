"""Rulers, the cells of values, and what becomes of parts: against what anybody can check by hand."""

import datetime as dt
import itertools
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chicle import Budget, Ledger, Schema, SchemaError
from chicle.columns import Date, DateTime, Integer, Number, column_from_dict
from chicle.columns.base import refuse
from chicle.columns.discovery import Histogram
from chicle.columns.private_bins import Binned
from chicle.columns.ruler import MOST_CELLS, CalendarRuler, DecimalRuler, Ruler
from chicle.discovery import purchase_of
from chicle.discovery.edges import merge_parts
from chicle.privacy import TestNoise
from chicle.sources import read_records

ZONES = [None, "UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe"]


@st.composite
def binned(draw: st.DrawFn) -> tuple[Binned, list[Any]]:
    """Draw a column of private bins, and values that fit it."""
    kind = draw(st.sampled_from(["integer", "number", "date", "datetime"]))
    if kind == "integer":
        low = draw(st.integers(-1000, 1000) | st.integers(-(2**61), 2**61))
        high = low + draw(st.integers(50, 10**4) | st.integers(10**8, 2**61))
        column: Binned = Integer(min=low, max=high, bins={"private": 9})
        values: st.SearchStrategy[Any] = st.integers(low, high) | st.integers(low, min(high, low + 30))
    elif kind == "number":
        least = draw(st.sampled_from([0.0, -1.0, 0.1, -1e6, 1e-7, 123456.789]))
        most = least + draw(st.sampled_from([1e-6, 0.3, 1.0, 1e7, 2e15]))
        column = Number(min=least, max=most, bins="private")
        tidy = st.integers(0, 1000).map(lambda i: round(least + (most - least) * i / 1000, 3))
        values = st.floats(least, most) | tidy.filter(lambda x: least <= x <= most)
    elif kind == "date":
        first = draw(st.dates(dt.date(1900, 1, 1), dt.date(2050, 1, 1)))
        last = first + dt.timedelta(days=draw(st.integers(60, 40_000)))
        column = Date(min=first, max=last, bins="private")
        values = st.dates(first, last)
    else:
        zone = draw(st.sampled_from(ZONES))
        start = draw(st.datetimes(dt.datetime(1975, 1, 1), dt.datetime(2030, 1, 1)))  # noqa: DTZ001
        end = start + dt.timedelta(seconds=draw(st.integers(600, 10**5) | st.integers(10**6, 10**9)))
        column = DateTime(min=start, max=end, bins="private", outside="clamp", timezone=zone)
        values = st.datetimes(start, end)
        if zone is not None:
            there = ZoneInfo(zone)
            values = values.map(lambda v: v.replace(tzinfo=there).astimezone(dt.timezone.utc))
    return column, draw(st.lists(values, min_size=1, max_size=30))


def arrow(column: Binned, values: list[Any]) -> pa.ChunkedArray:
    dtype = pa.timestamp("us", "UTC" if column.timezone else None) if isinstance(column, DateTime) else None
    return pa.chunked_array([pa.array(values, dtype)])


def all_starts(ruler: Ruler, rng: np.random.Generator) -> Any:
    """Divide at random as discovery may: the parts of a level only inside a part of the level before."""
    starts = np.array([ruler.low])
    for level in range(ruler.levels):
        ends = np.append(starts[1:], ruler.end)
        chosen = rng.choice(len(starts), min(3, len(starts)), replace=False)
        cuts = [ruler.cuts(level, int(starts[i]), int(ends[i])) for i in chosen]
        for i, inner in zip(chosen, cuts, strict=True):
            assert ((inner > starts[i]) & (inner < ends[i])).all()
            assert (np.diff(inner) > 0).all()
        starts = np.unique(np.concatenate([starts, *(c[:200] for c in cuts)]))
    return starts


@given(binned(), st.integers(0, 2**32))
def test_bins_are_what_the_cells_say(drawn: tuple[Binned, list[Any]], seed: int) -> None:
    """The discovered column puts every value into the bin in which its cell was counted."""
    column, values = drawn
    table = arrow(column, values)
    ruler = column.ruler
    cells = column.cells(table, refuse("x"))
    assert ruler.end - ruler.low <= 2 * MOST_CELLS + 4 or isinstance(column, DateTime)
    rng = np.random.default_rng(seed)
    starts = all_starts(ruler, rng)
    starts = merge_parts(starts, rng.random(len(starts)), ruler, 40)
    starts = starts[np.unique(column.places(starts), return_index=True)[1]]
    made = column.discovered(starts)
    assert not made.undiscovered
    assert made.size == len(starts)
    counted = np.searchsorted(column.places(starts), cells, side="right") - 1
    codes = made.encode(table, refuse("x"))
    if isinstance(column, DateTime):
        # The first cell may begin a fraction of a second before `min`, and cells are cut to whole hours at the longest.
        counted = np.maximum(counted, 0)
    np.testing.assert_array_equal(codes, counted)
    again = column_from_dict("x", made.to_dict())
    assert again == made
    decoded = made.decode(codes, table.type, np.random.default_rng(1))
    np.testing.assert_array_equal(made.encode(pa.chunked_array([decoded]), refuse("x")), codes)


@given(st.integers(-(10**9), 10**9), st.integers(20, 10**7), st.sampled_from([1, 2]))
def test_the_last_level_tells_all_cells_apart(low: int, width: int, cells: int) -> None:
    ruler = DecimalRuler(low, low + width, cells)
    parts = width // ruler.widths[0]
    assert parts >= 8 or ruler.levels <= 2
    assert parts < 110
    start = ruler.low
    for level in range(ruler.levels):
        cuts = ruler.cuts(level, start, min(start + 10 * ruler.widths[level], ruler.end))
        start = int(cuts[-1]) if len(cuts) else start
    assert ruler.widths[-1] == 1


def test_a_calendar_begins_where_there_is_something_to_divide() -> None:
    day = CalendarRuler(0, 86_400, "s", ("Y", "M", "D", "h", "m", "s"))
    assert day.levels == 3
    assert len(day.cuts(0, 0, 86_400)) == 23
    assert CalendarRuler(0, 3, "D", ("Y", "M", "D")).levels == 1
    years = CalendarRuler(0, 36_525, "D", ("Y", "M", "D"))
    assert years.cuts(1, 365, 730).tolist() == list(
        itertools.accumulate([365 + 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30])
    )


def cost(starts: tuple[int, ...], masses: Any, ends: int) -> float:
    widths = np.diff([*starts, ends])
    return float(sum(masses[a:b].sum() * w**0.25 for a, b, w in zip(starts, [*starts[1:], ends], widths, strict=True)))


@given(st.lists(st.sampled_from([0, 1, 2, 5, 50, 400]), min_size=4, max_size=9), st.integers(1, 4))
def test_merging_is_nearly_the_best_there_is(masses: list[int], most: int) -> None:
    size = len(masses)
    rows = np.array(masses, dtype=np.float64)
    found = merge_parts(np.arange(size), rows.copy(), DecimalRuler(0, size), most)
    assert found[0] == 0
    assert len(found) <= most
    best = min(cost((0, *cuts), rows, size) for j in range(most) for cuts in itertools.combinations(range(1, size), j))
    got = cost(tuple(found.tolist()), rows, size)
    assert best - 1e-9 <= got <= 1.6 * best + 1e-9 or got - best <= 0.35 * rows.sum()


def bins_of(column: Binned, values: Any, rho: float = 10.0, seed: int = 0) -> Any:
    ledger = Ledger(Budget(rho=1e6), noise=TestNoise(seed))
    histogram = Histogram.of(column.cells(pa.chunked_array([pa.array(values)]), refuse("x")))
    return purchase_of("x", column, rows=1, rho=rho).buy(histogram, ledger)[0]


def test_smooth_data_get_quantiles() -> None:
    column = Integer(min=0, max=999_999, bins={"private": 10})
    values = np.random.default_rng(0).normal(500_000, 100_000, 50_000).astype(int).clip(0, 999_999)
    made = bins_of(column, values)
    shares = np.bincount(made.encode(pa.chunked_array([values]), refuse("x")), minlength=made.size) / len(values)
    assert made.size == 10
    assert shares.max() < 0.2
    assert sorted(shares)[2] > 0.04, "but for the empty ends"


@pytest.mark.parametrize("seed", range(3))
def test_skewed_data_get_good_edges(seed: int) -> None:
    rng = np.random.default_rng(seed)
    wages = np.where(rng.random(40_000) < 0.3, 0, np.exp(rng.normal(10.5, 0.8, 40_000))).astype(int)
    wages[:4_000] = 30_000
    made = bins_of(Integer(min=0, max=10**7, bins="private"), wages, rho=0.01, seed=seed)
    edges = list(made.bins)
    for alone in (0, 30_000):
        assert {alone, alone + 1} <= set(edges), "a frequent value has a bin of its own"
    shares = np.bincount(made.encode(pa.chunked_array([wages]), refuse("x")), minlength=made.size) / len(wages)
    assert sorted(shares)[-3] < 0.1, "and nothing else is crowded"
    decoded = made.decode(made.encode(pa.chunked_array([wages]), refuse("x")), None, rng).to_numpy()
    assert abs(decoded.mean() - wages.mean()) < 0.15 * wages.mean(), "what is far out is kept apart"


def test_numbers_alone_are_found_in_floats() -> None:
    rng = np.random.default_rng(0)
    rates = np.where(rng.random(20_000) < 0.5, 0.0, np.where(rng.random(20_000) < 0.3, 0.175, rng.random(20_000)))
    made = bins_of(Number(min=0, max=1, bins={"private": 20}), rates, rho=0.01)
    assert made.bins[:2] == (0.0, 0.0)
    assert made.bins.count(0.175) == 2


def test_little_data_get_few_bins() -> None:
    column = Integer(min=0, max=10**6, bins="private")
    many, few = (bins_of(column, np.arange(0, 10**6, step), rho=0.001).size for step in (20, 5_000))
    assert many == column.size
    assert few < 8


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        ({"bins": {"private": 1}}, "the number of private bins must be from 2 to 256, not 1"),
        ({"bins": {"private": "x"}}, "the number of private bins"),
        ({"bins": {"private": True}}, "the number of private bins"),
        ({"bins": {"count": 5}}, "bins has no 'count'; write `bins: {private: 20}`"),
        ({"bins": "privat"}, 'bins must be "each", a number of bins or a list of edges, or "private"'),
        ({"max": None, "bins": "private"}, ".*bounds must be public knowledge"),
    ],
)
def test_bad_declarations_are_refused(told: dict[str, Any], rule: str) -> None:
    with pytest.raises(SchemaError, match=f"column 'x': {rule}"):
        Schema({"x": {"type": "integer", "min": 0, "max": 10**6, **told}})


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        (["2020-01-01", "2020-12-31"], None),
        (["2020-01-01", "2020-03-01", "2020-12-31"], None),
        (["2020-01-01", "2020-01-01", "2020-12-31"], ".*in rising order"),
        (["2020-03-01", "2020-12-31"], ".*must list edges from min"),
        (["2020-01-01"], ".*must list edges from min"),
        (["2020-01-01", "x", "2020-12-31"], "an edge of bins must be"),
        (7, "bins must be a width"),
    ],
)
@pytest.mark.parametrize("kind", ["date", "datetime"])
def test_edges_of_dates(kind: str, told: Any, rule: str | None) -> None:
    declared = {"type": kind, "min": "2020-01-01", "max": "2020-12-31", "bins": told}
    if rule is not None:
        with pytest.raises(SchemaError, match=f"column 'x': {rule}"):
            Schema({"x": declared})
        return
    schema = Schema({"x": declared})
    assert schema.columns["x"].size == len(told) - 1
    assert Schema.from_dict(schema.to_dict()) == schema
    codes = read_records({"x": ["2020-01-01", "2020-02-29", "2020-12-31"]}, schema)["x"]
    assert codes.tolist() == [0, 0, len(told) - 2]
