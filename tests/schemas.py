"""Declarations of columns, and values that fit them, for property tests."""

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

Drawn = tuple[dict[str, Any], list[Any]]

texts = st.text("abcÄ 01?'#:{}\n\"", max_size=5) | st.sampled_from(
    ["no", "null", "~", "06", "1e5", "2020-01-01", "true"]
)
outside = st.sampled_from(["refuse", "clamp"])
ZONES = ["UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe"]


@st.composite
def listed(draw: st.DrawFn, kind: str) -> tuple[dict[str, Any], st.SearchStrategy[Any]]:
    items: st.SearchStrategy[Any] = draw(st.sampled_from([texts, st.integers(-(2**63), 2**63 - 1), st.just(True)]))
    values = draw(st.lists(items, min_size=1, max_size=8, unique=True))
    return {"type": kind, "values": values}, st.sampled_from(values)


@st.composite
def integers(draw: st.DrawFn) -> tuple[dict[str, Any], st.SearchStrategy[Any]]:
    low = draw(st.integers(-1000, 1000) | st.integers(-(2**62), 2**62))
    width = draw(st.integers(0, 300) | st.integers(70_000, 10**6))
    told: dict[str, Any] = {"type": "integer", "min": low, "max": low + width, "outside": draw(outside)}
    how = draw(st.sampled_from(["each", "count", "edges"]))
    if how == "count" or width > 300:
        told["bins"] = draw(st.integers(1, min(width + 1, 300)))
    if how == "edges" and width:
        edges = sorted(draw(st.sets(st.integers(low, low + width), min_size=2, max_size=6)))
        told = {"type": "integer", "bins": [*edges, *edges[-1:]], "outside": told["outside"]}
        low, width = edges[0], edges[-1] - edges[0]
    wider = 0 if told["outside"] == "refuse" else 2**30
    return told, st.integers(low - wider, low + width + wider) | st.integers(low, low + width)


@st.composite
def numbers(draw: st.DrawFn) -> tuple[dict[str, Any], st.SearchStrategy[Any]]:
    rule = draw(outside)
    points = st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda x: round(x, 3))
    edges = sorted(draw(st.sets(points, min_size=2, max_size=6)))
    twice = draw(st.sets(st.sampled_from(edges)))
    told = {"type": "number", "bins": sorted([*edges, *twice]), "outside": rule}
    wider = {} if rule == "clamp" else {"min_value": edges[0], "max_value": edges[-1]}
    values = st.floats(**wider, allow_nan=False) | st.sampled_from(edges)  # type: ignore[arg-type]
    return told, values


@st.composite
def dates(draw: st.DrawFn) -> tuple[dict[str, Any], st.SearchStrategy[Any]]:
    low = draw(st.dates(dt.date(1900, 1, 1), dt.date(2050, 1, 1)))
    high = low + dt.timedelta(days=draw(st.integers(0, 3_000)))
    bins = draw(st.sampled_from(["1 days", "7 days", "100 days", "day", "week", "month", "quarter", "year"]))
    rule = draw(outside)
    told = {"type": "date", "min": str(low), "max": str(high), "bins": bins, "outside": rule}
    values = st.dates(low, high) if rule == "refuse" else st.dates(dt.date(1800, 1, 1), dt.date(2200, 1, 1))
    return told, values


@st.composite
def datetimes(draw: st.DrawFn) -> tuple[dict[str, Any], st.SearchStrategy[Any]]:
    low = draw(st.datetimes(dt.datetime(1975, 1, 1), dt.datetime(2030, 1, 1)))  # noqa: DTZ001
    high = low + dt.timedelta(seconds=draw(st.integers(1, 10**7)))
    bins = draw(st.sampled_from(["30 minutes", "6 hours", "1 days", "day", "week", "month", "quarter", "year"]))
    told = {"type": "datetime", "min": low.isoformat(), "max": high.isoformat(), "bins": bins, "outside": "clamp"}
    values = st.datetimes(low - dt.timedelta(days=1), high + dt.timedelta(days=1))
    zone = draw(st.none() | st.sampled_from(ZONES))
    if zone is None:
        return told, values
    # As an instant and back: a time that clocks skip has no instant of its own.
    there = ZoneInfo(zone)
    real = values.map(lambda v: v.replace(tzinfo=there).astimezone(dt.timezone.utc).astimezone(there))
    return {**told, "timezone": zone}, real


@st.composite
def columns(draw: st.DrawFn, rows: int) -> Drawn:
    """Draw a declaration and as many values that fit it."""
    told, values = draw(
        st.one_of(
            listed("categorical"),
            listed("ordinal"),
            st.just(({"type": "boolean"}, st.booleans())),
            st.integers(1, 300).map(lambda k: ({"type": "coded", "values": k}, st.integers(0, k - 1))),
            integers(),
            numbers(),
            dates(),
            datetimes(),
        )
    )
    if draw(st.booleans()):
        told, values = {**told, "missing": True}, values | st.none()
    return told, draw(st.lists(values, min_size=rows, max_size=rows))


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Draw declarations of columns by name, and values of a table that fits them."""
    rows = draw(st.integers(0, 8))
    names = draw(st.lists(texts.filter(bool), min_size=1, max_size=4, unique=True))
    drawn = {name: draw(columns(rows)) for name in names}
    return {name: told for name, (told, _) in drawn.items()}, {name: values for name, (_, values) in drawn.items()}
