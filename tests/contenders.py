"""Contenders for the tests of comparisons: what a peer may do, and what it should not."""

import os
import time
from typing import Any

import numpy as np

from chicle import Records, Schema


def resample(records: Records, schema: Schema, *, seed: int, **_: Any) -> Records:
    print("a peer may print")  # noqa: T201
    rows = np.random.default_rng(seed).integers(0, len(records), len(records))
    return Records({name: records[name][rows] for name in schema.domain}, records.domain)


def fails(records: Records, schema: Schema, **_: Any) -> Records:
    raise RuntimeError(f"the first value is {records[next(iter(schema.domain))][0]}")


def dies(*_: Any, **__: Any) -> Records:
    os._exit(9)


def sleeps(*_: Any, **__: Any) -> Records:
    time.sleep(60)
    raise AssertionError


def greedy(records: Records, schema: Schema, *, seed: int, **_: Any) -> Records:
    wasted = np.ones(40_000_000)
    assert wasted.sum() > 0
    return resample(records, schema, seed=seed)


def other_domain(*_: Any, **__: Any) -> Records:
    return Records({"x": [0]}, {"x": 2})
