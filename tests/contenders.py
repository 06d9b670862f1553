"""Contenders for the tests of comparisons: what a peer may do, and what it should not."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from chicle import PublicData, Records, Schema, Workload


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


def told(
    records: Records, schema: Schema, *, workload: Workload, public: PublicData, secret: int, seed: int, **_: Any
) -> Records:
    """Makes its table of the public rows if all that it was promised arrives."""
    assert secret == 7
    assert list(workload) == [("SEX", "AGE")], "in the order of the domain"
    assert public.role == "trusted"
    assert isinstance(public.table, Records)
    assert records.max_records_per_person == schema.max_records_per_person == 4
    return resample(public.table, schema, seed=seed)


def beats(*_: Any, **__: Any) -> Records:
    """Lives for two minutes, and so does a process that it starts; each shows that in a file of its own."""
    code = "import pathlib, time\nfor i in range(1200): pathlib.Path('its').write_text(str(i)); time.sleep(0.1)"
    with subprocess.Popen([sys.executable, "-c", code]):
        for i in range(1200):
            Path("own").write_text(str(i), encoding="ascii")
            time.sleep(0.1)
    raise AssertionError
