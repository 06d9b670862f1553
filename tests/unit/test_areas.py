"""How public partitions tell how private ones differ."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import chicle
from chicle import PublicData, Records, Schema
from chicle.domain import Domain
from chicle.measurements.public_rows import PublicRows
from chicle.partition.areas import PublicAreas, by_partition
from chicle.partition.shrink import shrunk_shares
from chicle.privacy import TestNoise

SIZES = {"area": 60, "a": 6, "b": 5, "c": 4, "d": 3}
REST = {name: size for name, size in SIZES.items() if name != "area"}


def areas(seed: int, rows: int = 600, loud: float = 2.0) -> Records:
    """Rows of 60 areas that differ in one direction: where `a` is high, so are `b` and `c`; `d` is alike everywhere."""
    rng = np.random.default_rng(seed)
    area = np.repeat(np.arange(SIZES["area"]), rows)
    level = rng.normal(0, loud, SIZES["area"])[area]
    columns: dict[str, npt.NDArray[Any]] = {"area": area}
    for name, size in REST.items():
        weights = np.arange(size) * level[:, None] * (name != "d") / size
        share = np.exp(weights) / np.exp(weights).sum(axis=1, keepdims=True)
        columns[name] = (rng.random(len(area))[:, None] > np.cumsum(share, axis=1)).sum(axis=1).clip(0, size - 1)
    return Records(columns, SIZES)


def shares_of(records: Records) -> dict[str, npt.NDArray[np.float64]]:
    tables = records.count([("area", name) for name in REST])
    return {name: table / table.sum(axis=1, keepdims=True) for name, table in zip(REST, tables, strict=True)}


def columns(records: Records) -> dict[str, npt.NDArray[Any]]:
    return {name: records[name] for name in records}


def permuted(records: Records) -> Records:
    """The same rows with areas at random."""
    area = np.random.default_rng(0).permutation(records["area"])
    return Records({**{name: records[name] for name in REST}, "area": area}, SIZES)


def guessed(public: Records, sigma: float = 30.0) -> tuple[float, float, float]:
    """Return the errors of all shares without and with public areas where `a` and `d` are measured, and the belief."""
    real = areas(1)
    true, rng = shares_of(real), np.random.default_rng(2)
    sizes = np.full(SIZES["area"], 600.0)
    tables = {name: 600 * true[name] + rng.normal(0, sigma, true[name].shape) for name in ("a", "d")}
    whole = {name: table.mean(axis=0) for name, table in true.items()}
    given: Any = (tables, dict.fromkeys(tables, sigma), sizes, whole)
    off = []
    for seen in (None, PublicAreas.of(public, ("area",))):
        found, scale = shrunk_shares(*given, parents=np.zeros(SIZES["area"], dtype=np.int64), areas=seen)
        assert all(np.allclose(found[name].sum(axis=1), 1) and (found[name] >= 0).all() for name in REST)
        off.append(sum(float(np.abs(found[name] - true[name]).sum()) for name in REST))
    return off[0], off[1], scale


def test_one_direction_is_found() -> None:
    found = PublicAreas.of(areas(0), ("area",))
    assert found is not None
    assert found.number == SIZES["area"]
    assert found.variances[0] > 20 * found.variances[1:].sum()
    assert np.abs(found.directions["d"]).max() < 0.1
    assert all(found.rests[name].shape == (size,) for name, size in REST.items())


def test_like_areas_tell_even_of_attributes_that_were_not_measured() -> None:
    """Fixed seeds, so this cannot fail by luck."""
    without, beside, scale = guessed(areas(0))
    assert scale > 0
    assert beside < 0.7 * without, (beside, without)


@pytest.mark.parametrize("kind", ["permuted", "other directions"])
def test_unlike_areas_do_no_harm(kind: str) -> None:
    public = areas(0)
    if kind == "permuted":
        public = permuted(public)
    else:  # only `d` differs, where private areas are alike
        rng = np.random.default_rng(3)
        d = (rng.random(len(public)) < rng.random(SIZES["area"])[public["area"]]).astype(np.uint8)
        public = Records({**columns(permuted(public)), "d": d, "area": public["area"]}, SIZES)
    without, beside, _ = guessed(public)
    assert beside < 1.03 * without, (beside, without)


def test_tables_of_no_use() -> None:
    assert PublicAreas.of(permuted(areas(0)), ("area",)) is None
    assert PublicAreas.of(Records({"a": [0, 1]}, {"a": 2}), ("area",)) is None
    area = areas(0)["area"] % 5
    assert PublicAreas.of(Records({**columns(areas(0)), "area": area}, SIZES), ("area",)) is None


def test_trusted_areas_say_which_tables_are_worth_their_price() -> None:
    found, rest = PublicAreas.of(areas(0), ("area",)), Domain(REST)
    assert found is not None
    rows = {role: PublicRows(areas(0), role) for role in ("evidence", "trusted")}
    given: Any = {"size": 600.0, "k": 1}
    assert by_partition(rest, found, rows["evidence"], rho=1e-4, **given) == list(REST)
    chosen = by_partition(rest, found, rows["trusted"], rho=1e-4, **given)
    assert chosen
    assert "d" not in chosen
    assert len(by_partition(rest, found, rows["trusted"], rho=10.0, **given)) >= len(chosen)


@pytest.mark.parametrize("role", ["evidence", "trusted"])
def test_a_fit_beside_public_areas(role: Any, tmp_path: Any) -> None:
    """The same noise with and without; partitions come out nearer to the truth, and plan, notes and file agree."""
    real, public = areas(1), areas(0)
    schema = Schema.from_cardinalities(SIZES)
    off = {}
    for name, given in (("without", None), ("beside", PublicData(public, role=role))):
        ledger = chicle.Ledger(chicle.Budget(epsilon=0.2, delta=1e-9), noise=TestNoise(4))
        synth = chicle.Prism(epsilon=0.2, delta=1e-9, threads=1)
        partition = chicle.Partition(("area",), way="pooled")
        synth.fit(real, schema, partition=partition, public=given, ledger=ledger)
        made = shares_of(synth.sample(seed=0))
        off[name] = sum(float(np.abs(made[one] - shares_of(real)[one]).sum()) for one in REST)
    assert off["beside"] < 0.9 * off["without"], off
    assert any("60 public partitions differ in" in note and "bear them out" in note for note in synth.release_.notes)
    measured = [
        one.clique for one in synth.release_.measurements if one.clique[:1] == ("area",) and len(one.clique) == 2
    ]
    planned = synth.plan(schema, len(real), partition=partition, public=given)
    assert len([step for step in planned.steps if step.release == "by partition"]) == len(measured)
    assert (len(measured) < len(REST)) is (role == "trusted")
    synth.release_.save(tmp_path / "r.chicle")
    with pytest.warns(UserWarning, match="NOT PRIVATE"):
        loaded = chicle.load(tmp_path / "r.chicle")
    again = loaded.sample(500, seed=1)
    assert all(np.array_equal(again[one], synth.sample(500, seed=1)[one]) for one in SIZES)
