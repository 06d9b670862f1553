"""What the code of a value is, one value at a time, from the declaration alone."""

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

SECONDS = {"minutes": 60, "hours": 3_600, "days": 86_400}


def naive_code(told: dict[str, Any], value: Any) -> int:
    if value is None:
        return naive_size(told)
    code = {
        "categorical": _listed,
        "ordinal": _listed,
        "boolean": _itself,
        "coded": _itself,
        "integer": _integer,
        "number": _binned,
        "date": _date,
        "datetime": _datetime,
    }[told["type"]]
    return int(code(told, value))  # type: ignore[operator]


def naive_size(told: dict[str, Any]) -> int:
    kind, bins = told["type"], told.get("bins")
    if kind == "date":
        return _date(told, dt.date.fromisoformat(told["max"])) + 1
    if kind == "datetime":
        return _datetime(told, _clock(told, dt.datetime.fromisoformat(told["max"]))) + 1
    if kind in ("integer", "number"):
        return len(bins) - 1 if isinstance(bins, list) else bins or told["max"] - told["min"] + 1
    values = told.get("values", 2)
    return len(values) if isinstance(values, list) else values


def _itself(_: dict[str, Any], value: Any) -> int:
    return int(value)


def _listed(told: dict[str, Any], value: Any) -> int:
    return int(told["values"].index(value))


def _integer(told: dict[str, Any], value: int) -> int:
    bins = told.get("bins", "each")
    if isinstance(bins, list):
        return _binned(told, value)
    low, high = told["min"], told["max"]
    value = min(max(value, low), high)
    if bins == "each":
        return int(value - low)
    values = high - low + 1
    return next(i for i in range(bins) if low + (i + 1) * values // bins > value)


def _binned(told: dict[str, Any], value: float) -> int:
    bins = told["bins"]
    if isinstance(bins, list):
        value = min(max(value, bins[0]), bins[-1])
        if value in bins and bins.count(value) == 2:
            return int(bins.index(value))
        last = len(bins) - 2
        return next(i for i in range(last, -1, -1) if bins[i] <= value and (bins[i] != bins[i + 1] or i == last))
    low, high = told["min"], told["max"]
    edges = [low + (high - low) * i / bins for i in range(1, bins)]
    return sum(value >= edge for edge in edges)


def _date(told: dict[str, Any], value: dt.date) -> int:
    low, high = dt.date.fromisoformat(told["min"]), dt.date.fromisoformat(told["max"])
    value = min(max(value, low), high)
    number, _, unit = told["bins"].partition(" ")
    if unit:
        return (value - low).days // int(number)
    return _unit(number, value) - _unit(number, low)


def _datetime(told: dict[str, Any], value: dt.datetime) -> int:
    low, high = (_clock(told, dt.datetime.fromisoformat(told[name])) for name in ("min", "max"))
    if value.tzinfo is None:
        value = min(max(value, low), high)
    else:  # instants: datetimes of one zone compare by the wall
        value = min(max(value, low, key=dt.datetime.timestamp), high, key=dt.datetime.timestamp)
    number, _, unit = told["bins"].partition(" ")
    if unit:
        elapsed = _instant(value) - _instant(low)
        return elapsed // (dt.timedelta(seconds=SECONDS[unit]) * int(number))
    return _unit(number, value.date()) - _unit(number, low.date())


def _clock(told: dict[str, Any], moment: dt.datetime) -> dt.datetime:
    return moment.replace(tzinfo=ZoneInfo(told["timezone"])) if "timezone" in told else moment


def _instant(moment: dt.datetime) -> dt.datetime:
    return moment if moment.tzinfo is None else moment.astimezone(dt.timezone.utc)


def _unit(unit: str, day: dt.date) -> int:
    return {
        "day": day.toordinal(),
        "week": (day.toordinal() - 1) // 7,
        "month": day.year * 12 + day.month,
        "quarter": day.year * 4 + (day.month - 1) // 3,
        "year": day.year,
    }[unit]
