"""Contenders in other environments, runs that are stopped with all that they started, and the held-out rule."""

import sys
import time
from pathlib import Path

import pytest

import chicle
from chicle import ParameterError
from chicle.comparison.contenders import contender
from chicle.comparison.held_out import role_of

PEERS = """\
import os, sys, time
import numpy as np

def columns_again(columns, domain, *, epsilon, delta, seed):
    assert "chicle" not in sys.modules
    print("noise on the standard output harms nothing")
    order = np.random.default_rng(seed).permutation(len(next(iter(columns.values()))))
    return {name: codes[order] for name, codes in columns.items()}

def told(columns, domain, *, epsilon, delta, seed, workload=None, public=None, max_records_per_person=1, secret=0):
    assert (workload, secret, max_records_per_person) == ([[["AGE", "SEX"], 1.0]], 7, 3)
    assert list(public) == ["SEX", "AGE"] and public["SEX"].dtype == np.uint8
    return columns_again(columns, domain, epsilon=epsilon, delta=delta, seed=seed)

def fails(columns, domain, **given):
    raise ValueError(f"a private value: {columns}")

def sleeps(columns, domain, **given):
    open("begun", "w").close()
    time.sleep(20)
    open("survived", "w").close()
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "peers_elsewhere.py").write_text(PEERS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def name(function: str) -> str:
    return f"peers_elsewhere:{function}@{sys.executable}"


@pytest.mark.usefixtures("here")
def test_a_function_of_another_environment_gets_and_gives_codes() -> None:
    census = chicle.datasets.census(200, d=3)
    made = contender(name("columns_again"))(
        census, chicle.Schema(census.domain), epsilon=1.0, delta=1e-9, seed=3, threads=1
    )
    assert made.domain == census.domain
    for mine, theirs in zip(made.count([("SEX", "AGE")]), census.count([("SEX", "AGE")]), strict=True):
        assert (mine == theirs).all()


@pytest.mark.usefixtures("here")
def test_it_gets_what_it_has_parameters_for() -> None:
    census = chicle.datasets.census(100, d=3)
    several = chicle.Records({name: census[name] for name in census}, census.domain, max_records_per_person=3)
    public = chicle.PublicData(census, columns=["SEX", "AGE"]).coded(chicle.Schema(census.domain))
    given = {"epsilon": 1.0, "delta": 1e-9, "seed": 3, "threads": 1}
    more = {"workload": chicle.Workload([("AGE", "SEX")]), "public": public, "secret": 7}
    made = contender(name("told"))(several, chicle.Schema(census.domain), **given, **more)  # type: ignore[arg-type]
    assert len(made) == 100
    with pytest.raises(ParameterError, match=r"would protect rows, not persons"):
        contender(name("columns_again"))(several, chicle.Schema(census.domain), **given)  # type: ignore[arg-type]


@pytest.mark.usefixtures("here")
def test_what_goes_wrong_there_is_said_without_values() -> None:
    census = chicle.datasets.census(50, d=3)
    with pytest.raises(ParameterError, match=r"failed in its environment: ValueError$"):
        contender(name("fails"))(census, chicle.Schema(census.domain), epsilon=1.0, delta=1e-9, seed=0, threads=1)
    with pytest.raises(ParameterError, match="no Python 'nowhere'"):
        contender("peers:mst@nowhere")
    with pytest.raises(ParameterError, match="module:function@PYTHON"):
        contender(f"peers@{sys.executable}")


def test_a_run_that_is_stopped_leaves_nothing_behind(here: Path) -> None:
    """Twenty seconds of sleep are cut after the run has begun; nothing is left that could wake up."""
    census = chicle.datasets.census(50, d=3)
    runs = chicle.compare(census, mechanisms=[name("sleeps")], epsilons=[1], seeds=1, timeout=8)
    assert runs.rows[0]["error"] == "stopped after 8 seconds"
    if (here / "begun").exists():  # a very busy machine may not have come so far
        stopped = time.monotonic()
        while time.monotonic() - stopped < 1:
            assert not (here / "survived").exists()
            time.sleep(0.2)
        status = Path("/proc").glob("[0-9]*/cmdline")
        assert not any(b"peers_elsewhere\0sleeps" in _read(one) for one in status)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_the_role_of_a_table_follows_from_its_name() -> None:
    assert role_of("Fire") == role_of(" fire") == "develop"
    assert role_of("MSNBC") == "judge"
    roles = [role_of(f"table {i}") for i in range(1_000)]
    assert 400 < roles.count("judge") < 600  # fixed by the names
