"""Mechanisms from elsewhere, as contenders of `chicle compare`: for benchmarks only.

Their dependencies are pinned against everybody else's, so give them an environment of their own:

python -m venv peers && peers/bin/pip install '.[peers]'
cd benches && ../peers/bin/chicle compare TABLE -s SCHEMA --mechanisms prism,peers:dpmm_mst,peers:dpmm_aim --timeout 600

They are told the exact number of records, which chicle's mechanisms have to estimate.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from chicle import Records, Schema


def dpmm_mst(records: Records, schema: Schema, **told: Any) -> Records:  # noqa: ANN401
    """MST of dpmm."""
    return _dpmm("mst", "MSTGM", records, schema, **told)


def dpmm_aim(records: Records, schema: Schema, **told: Any) -> Records:  # noqa: ANN401
    """AIM of dpmm."""
    return _dpmm("aim", "AIMGM", records, schema, **told)


def _dpmm(
    module: str,
    name: str,
    records: Records,
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    seed: int,
    threads: int | None,
) -> Records:
    pandas = importlib.import_module("pandas")
    model = getattr(importlib.import_module(f"dpmm.models.{module}"), name)
    made = model(epsilon=epsilon, delta=delta, n_jobs=-1 if threads is None else threads)
    made.set_random_state(np.random.RandomState(seed))
    made.set_domain(dict(schema.domain))
    made.fit(pandas.DataFrame({column: records[column].astype(np.int64) for column in records}))
    drawn = made.generate(n_records=len(records))
    return Records({column: drawn[column].to_numpy(dtype=np.int64) for column in records}, records.domain)
