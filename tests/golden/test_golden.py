"""Every mechanism on fixed tables under test noise: a change of shape changes no release and no table.

`releases.json` holds fingerprints. What was measured must be the same; the 1-ways of sampled tables may differ a little
between processors, whose sums of floats differ in the last digit. CHICLE_GOLDEN=exact asks for the very same tables,
which holds on the machine that wrote the file; CHICLE_GOLDEN=write writes it anew.
"""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chicle
from chicle import Budget, Ledger, Records, Schema
from chicle.privacy import TestNoise

FILE = Path(__file__).with_name("releases.json")
HOW = os.environ.get("CHICLE_GOLDEN", "near")

MECHANISMS: dict[str, Callable[..., Any]] = {
    "Independent": chicle.Independent,
    "PrivSyn-gum": chicle.PrivSyn,
    "PrivSyn-descent": lambda **given: chicle.PrivSyn(generator="descent", **given),
    "PrivSyn-mcf": lambda **given: chicle.PrivSyn(generator="mcf", options={"passes": 2}, **given),
    "PrivSyn-pgm": lambda **given: chicle.PrivSyn(generator="pgm", **given),
    "PrivSyn-published": lambda **given: chicle.PrivSyn(form="published", options={"passes": 8}, **given),
    "MST": chicle.MST,
    "AIM-records": chicle.AIM,
    "AIM-rounds": lambda **given: chicle.AIM(rounds=3, **given),
    "AIM-pgm": lambda **given: chicle.AIM(published=True, **given),
    "MWEM": chicle.MWEM,
    "PrivBayes": chicle.PrivBayes,
    "Gaussian": chicle.Gaussian,
    "Prism": chicle.Prism,
    "Prism-replicated": lambda **given: chicle.Prism(options=chicle.PrismOptions(replicate=3), **given),
    "Prism-two-stages": lambda **given: chicle.Prism(options=chicle.PrismOptions(first_stage=0.5), **given),
    "Prism-contrasts": lambda **given: chicle.Prism(options=chicle.PrismOptions(contrasts=True), **given),
}
DOMAIN = {"a": 2, "b": 3, "c": 30, "d": 4, "e": 12, "f": 2, "g": 1}


def coded() -> tuple[Records, Schema]:
    """Attributes that depend on each other."""
    rng = np.random.default_rng(1)
    common = rng.random(3_000)
    rows = {
        name: np.minimum((np.abs(common - rng.normal(0, 0.15, 3_000)) * size).astype(int), size - 1)
        for name, size in DOMAIN.items()
    }
    return Records(rows, DOMAIN), Schema.from_cardinalities(DOMAIN, ordinal=["c", "e"])


def census() -> tuple[Records, Schema]:
    records = chicle.datasets.census(6_000, d=8)
    return records, Schema.from_cardinalities(records.domain, ordinal=["AGE"])


def recoded() -> tuple[Records, Schema]:
    """Coarse columns, columns combined, and a constraint."""
    records, _ = coded()
    told: dict[str, Any] = {name: {"type": "coded", "values": size} for name, size in DOMAIN.items()}
    told["c"] = {**told["c"], "ordinal": True, "coarse": 5}
    told["e"] = {**told["e"], "coarse": {"low": {"below": 7}, "high": {"from": 7}}}
    schema = Schema(
        told,
        max_records_per_person=2,
        combine={"both": {"columns": ["a", "d"], "combinations": [[0, {"from": 1}], [1, 0]], "others": [1, 0]}},
        constraints=[{"forbid": {"b": 0, "c": {"from": 20}}, "violations": "keep"}],
    )
    return records, schema


TABLES = {"coded": coded, "census": census, "recoded": recoded}


def fingerprint(mechanism: str, table: str, epsilon: float) -> dict[str, Any]:
    records, schema = TABLES[table]()
    budget: dict[str, Any] = {"epsilon": epsilon, "delta": 1e-9}
    ledger = Ledger(Budget(**budget), noise=TestNoise(7))
    release = MECHANISMS[mechanism](**budget, allow_weak=True).fit(records, schema, ledger=ledger).release_
    sample = release.sample(2_000, seed=5)
    exact = hashlib.sha256(b"".join(sample[name].tobytes() for name in sample)).hexdigest()
    return {
        "measured": [_table(one.clique, one.values, one.sigma) for one in release.measurements],
        "events": [[event.purpose, event.values, event.rho("gdp")] for event in ledger.events],
        "notes": list(release.notes),
        "counts": {name: np.bincount(sample[name], minlength=DOMAIN.get(name, 0)).tolist() for name in sample},
        "exact": exact[:16],
    }


def _table(clique: Any, values: Any, sigma: float) -> list[Any]:
    flat = values.ravel().astype(float)
    return [list(clique), list(values.shape), sigma, flat.sum(), float(flat @ (np.arange(flat.size) % 97))]


CASES = [
    (mechanism, table, epsilon)
    for mechanism in MECHANISMS
    for table, epsilon in (("coded", 1.0), ("coded", 20.0), ("census", 1.0), ("recoded", 3.0))
]


@pytest.mark.skipif(HOW == "write", reason="the file is being written")
@pytest.mark.parametrize(("mechanism", "table", "epsilon"), CASES, ids=str)
def test_the_release_and_the_table_are_as_they_were(mechanism: str, table: str, epsilon: float) -> None:
    golden = json.loads(FILE.read_text())[f"{mechanism} {table} {epsilon:g}"]
    made = fingerprint(mechanism, table, epsilon)
    assert [one[:2] for one in made["measured"]] == [one[:2] for one in golden["measured"]]
    np.testing.assert_allclose(
        [one[2:] for one in made["measured"]], [one[2:] for one in golden["measured"]], rtol=1e-9, atol=1e-6
    )
    assert [one[:2] for one in made["events"]] == [one[:2] for one in golden["events"]]
    np.testing.assert_allclose([one[2] for one in made["events"]], [one[2] for one in golden["events"]], rtol=1e-9)
    for name, counts in golden["counts"].items():
        assert np.abs(np.subtract(made["counts"][name], counts)).sum() <= 40, name
    if HOW == "exact":
        assert made["notes"] == golden["notes"]
        assert made["exact"] == golden["exact"]


@pytest.mark.skipif(HOW != "write", reason="CHICLE_GOLDEN=write writes the file")
def test_write() -> None:
    made = {f"{case[0]} {case[1]} {case[2]:g}": fingerprint(*case) for case in CASES}
    FILE.write_text(json.dumps(made, separators=(",", ":")).replace('},"', '},\n"') + "\n")
