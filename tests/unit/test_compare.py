"""Comparisons of mechanisms: tidy, resumable, and unharmed by what a contender does."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import chicle
from chicle.comparison import Comparison, plot, run
from chicle.comparison.contenders import contender
from chicle.errors import ArtefactError, DomainError, ParameterError, PrivacyError, SchemaError
from chicle.mechanisms.variants import mechanism_names

CENSUS = chicle.datasets.census(1_500, d=4)
PEER = "tests.contenders:"
QUICK: dict[str, Any] = {"triples": 2, "queries": 5}


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The jobs that ran, in this process and without being judged."""
    jobs = []

    def runs(job: Any, _: Any) -> dict[str, Any]:
        jobs.append((job.mechanism, job.epsilon, job.seed))
        error = 0.5 / job.epsilon
        return {"rows": 9, "seconds": 1.0, "peak_mb": 7.0, "scores": {"tvd_2": error}, "floor": {"tvd_2": 0.01}}

    monkeypatch.setattr(run, "_in_a_process", runs)
    return jobs


def test_runs_have_a_process_each() -> None:
    found = chicle.compare(CENSUS, mechanisms=["independent", f"{PEER}resample"], epsilons=[1], seeds=1, **QUICK)
    ours, peer, floor = found.rows
    assert [row["mechanism"] for row in found.rows] == ["independent", f"{PEER}resample", "floor"]
    assert not ours["error"]
    assert peer["rows"] == 1_500
    assert 0 < peer["tvd_3"] < ours["tvd_3"]
    assert peer["tvd_2"] == pytest.approx(floor["tvd_2"], rel=0.5)
    assert ours["seconds"] > 0
    assert 20 < ours["peak_mb"] < 2_000
    assert str(found).startswith("NOT PRIVATE")


def test_memory_is_that_of_the_run_and_failures_are_rows() -> None:
    names = [f"{PEER}{name}" for name in ("resample", "greedy", "fails", "dies", "other_domain")]
    found = chicle.compare(CENSUS, mechanisms=names, epsilons=[1], seeds=1, **QUICK)
    told = {row["mechanism"].partition(":")[2]: row for row in found.rows}
    assert told["greedy"]["peak_mb"] - told["resample"]["peak_mb"] == pytest.approx(305, rel=0.1)
    assert told["fails"]["error"] == "RuntimeError", "what a peer says may quote a value"
    assert told["dies"]["error"] == "the process ended with code 9"
    assert told["other_domain"]["error"].startswith("DomainError: the synthetic table")
    assert "tests.contenders:dies at epsilon 1, seed 0: the process ended with code 9" in str(found)


def test_a_run_may_not_take_for_ever() -> None:
    (row,) = chicle.compare(CENSUS, mechanisms=[f"{PEER}sleeps"], epsilons=[1], seeds=1, timeout=0.5).rows
    assert row["error"] == "stopped after 0.5 seconds"


@pytest.mark.parametrize("name", ["r.csv", "r.json"])
def test_it_goes_on_where_it_stopped(tmp_path: Path, started: list[Any], name: str) -> None:
    output = tmp_path / name
    first = chicle.compare(CENSUS, mechanisms=["prism"], epsilons=[1, 0.2], seeds=2, output=output)
    assert started == [("prism", 1.0, 0), ("prism", 1.0, 1), ("prism", 0.2, 0), ("prism", 0.2, 1)]
    again = chicle.compare(CENSUS, mechanisms=["prism"], epsilons=[1, 0.2], seeds=2, output=output)
    assert len(started) == 4
    assert list(again.rows) == list(first.rows)
    more = chicle.compare(CENSUS, mechanisms=["independent", "prism"], epsilons=[1], seeds=3, output=output)
    assert started[4:] == [("independent", 1.0, 0), ("independent", 1.0, 1), ("independent", 1.0, 2), ("prism", 1.0, 2)]
    assert [row["mechanism"] for row in more.rows].count("floor") == 1
    assert list(Comparison.load(output).rows) == list(more.rows)


def test_failed_runs_are_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[Any]) -> None:
    good = run._in_a_process
    monkeypatch.setattr(run, "_in_a_process", lambda *_: {"error": "MemoryError"})
    output = tmp_path / "r.csv"
    chicle.compare(CENSUS, mechanisms=["prism"], epsilons=[1], seeds=1, output=output)
    assert Comparison.load(output).rows[0]["error"] == "MemoryError"
    monkeypatch.setattr(run, "_in_a_process", good)
    found = chicle.compare(CENSUS, mechanisms=["prism"], epsilons=[1], seeds=1, output=output)
    assert len(started) == 1
    assert [row["error"] for row in found.rows] == ["", ""]


def test_a_file_is_of_one_comparison(tmp_path: Path, started: list[Any]) -> None:
    output = tmp_path / "r.csv"
    chicle.compare(CENSUS, mechanisms=["prism"], epsilons=[1], seeds=1, output=output)
    others: list[tuple[Any, dict[str, Any]]] = [(chicle.datasets.census(1_501, d=4), {}), (CENSUS, {"triples": 3})]
    for real, options in others:
        with pytest.raises(ParameterError, match="another table, schema or version"):
            chicle.compare(real, mechanisms=["prism"], epsilons=[1], seeds=1, output=output, **options)
    (tmp_path / "s.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    (tmp_path / "s.json").write_text("{}", encoding="utf-8")
    for name in ("s.csv", "s.json"):
        with pytest.raises(ArtefactError, match="is no comparison"):
            chicle.compare(CENSUS, mechanisms=["prism"], epsilons=[1], seeds=1, output=tmp_path / name)
    assert len(started) == 1


def test_the_table_is_tidy(tmp_path: Path, started: list[Any]) -> None:
    output = tmp_path / "r.csv"
    found = chicle.compare(CENSUS, mechanisms=["prism"], epsilons=[1, 2], seeds=2, output=output)
    first, *rest = output.read_text(encoding="utf-8").splitlines()
    assert first.startswith("# NOT PRIVATE")
    rows = list(csv.DictReader(rest))
    assert [(row["mechanism"], row["epsilon"], row["seed"]) for row in rows[:2]] == [
        ("prism", "1.0", "0"),
        ("prism", "1.0", "1"),
    ]
    assert json.loads(found.to_json())["warning"].startswith("NOT PRIVATE")
    assert found.means("tvd_2")["prism", 2.0] == [0.25, 0.25]
    with pytest.raises(ParameterError, match="no column 'x'"):
        found.means("x")
    assert len(started) == 4


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_it_is_drawn(tmp_path: Path, started: list[Any], ending: str) -> None:
    found = chicle.compare(CENSUS, epsilons=[0.2, 1, 5], seeds=2)
    assert len(started) == 18
    plot(found, tmp_path / f"p.{ending}")
    drawn = (tmp_path / f"p.{ending}").read_bytes()
    assert drawn[:4] in (b"<?xm", b"\x89PNG")
    with pytest.raises(ParameterError, match=r"a picture is \*.svg or \*.png"):
        plot(found, tmp_path / "p.gif")


def test_every_name_is_a_contender() -> None:
    assert {"aim", "aim-published", "privsyn-pgm", "privsyn-descent"} <= set(mechanism_names())
    few = chicle.datasets.census(200, d=2)
    for name in mechanism_names():
        made = contender(name)(few, chicle.Schema(few.domain), epsilon=1, delta=1e-9, seed=0, threads=1)
        assert made.domain == few.domain


def test_what_can_not_run_is_refused_first(started: list[Any]) -> None:
    for name in ("prsm", "nowhere:mst", f"{PEER}nobody", ":", "json:"):
        with pytest.raises(ParameterError, match="mechanism"):
            chicle.compare(CENSUS, mechanisms=["prism", name])
    with pytest.raises(PrivacyError, match="epsilon"):
        chicle.compare(CENSUS, epsilons=[1, -1])
    with pytest.raises(PrivacyError, match="delta"):
        chicle.compare(CENSUS, delta=2)
    with pytest.raises(ParameterError, match="seeds"):
        chicle.compare(CENSUS, seeds=0)
    with pytest.raises(DomainError, match="'x' is not an attribute"):
        chicle.compare(CENSUS, label="x")
    with pytest.raises(TypeError, match="lable"):
        chicle.compare(CENSUS, lable="SEX")
    with pytest.raises(SchemaError, match="draft"):
        chicle.compare(CENSUS, chicle.Schema(CENSUS.domain, reviewed=False))
    assert started == []


def test_contenders_get_what_they_have_parameters_for() -> None:
    several = chicle.Records({name: CENSUS[name] for name in CENSUS}, CENSUS.domain, max_records_per_person=4)
    given: dict[str, Any] = {"workload": [("AGE", "SEX")], "parameters": {f"{PEER}told": {"secret": 7}}}
    there = chicle.PublicData(chicle.datasets.census(900, d=4, seed=5), role="trusted")
    names = [f"{PEER}told", f"{PEER}resample", "pmwpub", "aim", "prism", "prism-alone"]
    found = chicle.compare(several, mechanisms=names, epsilons=[1], seeds=1, public=there, **given, **QUICK)
    assert [row["error"] for row in found.rows] == [""] * 7
    rows = {row["mechanism"]: row for row in found.rows}
    assert rows[f"{PEER}told"]["rows"] == 900
    assert rows["aim"]["workload"] > 0


def test_a_mechanism_takes_what_it_can_use(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Any, Any]] = []
    fit = chicle.Mechanism.fit

    def noted(self: Any, source: Any, schema: Any, *, public: Any = None, **more: Any) -> Any:
        seen.append((getattr(self, "workload", None), public))
        return fit(self, source, schema, public=public, **more)

    monkeypatch.setattr(chicle.Mechanism, "fit", noted)
    workload, public = chicle.Workload([("AGE", "SEX")]), chicle.PublicData(CENSUS)
    for name in ("aim", "aim-published-alone", "prism", "prism-alone", "dualquery", "mst"):
        given = {"workload": workload, "public": public}
        contender(name)(CENSUS, chicle.Schema(CENSUS.domain), epsilon=1.0, delta=1e-9, seed=0, threads=1, **given)
    none = None
    assert seen == [
        *((workload, public), (workload, none), (none, public), (none, none)),
        *((workload, none), (none, public)),
    ], "DualQuery has no tables that public rows could improve"


def test_what_is_given_is_checked_before_any_run(started: list[Any]) -> None:
    def refused(why: str, **given: Any) -> None:
        with pytest.raises((ParameterError, SchemaError, DomainError), match=why):
            chicle.compare(CENSUS, epsilons=[1], seeds=1, **given)

    half = chicle.Records({"SEX": [0, 1]}, {"SEX": CENSUS.domain["SEX"]})
    refused("pmwpub begins with public data", mechanisms=["pmwpub"])
    refused("pmwpub: PMWPub weights whole public rows", mechanisms=["pmwpub"], public=half)
    refused("public data: column 'SEX' has 9 codes", public=chicle.Records({"SEX": [0]}, {"SEX": 9}))
    refused("'x' is not an attribute", workload=[("x", "SEX")])
    refused("aim has no parameter 'magic' to set; it has", mechanisms=["aim"], parameters={"aim": {"magic": 1}})
    refused("epsilon is given to all contenders", mechanisms=["aim"], parameters={"aim": {"epsilon": 1}})
    refused("given for 'aim', which does not run", mechanisms=["mst"], parameters={"aim": {}})
    refused("dpsyn: .*rare", mechanisms=["dpsyn"], parameters={"dpsyn": {"rare": -1}})
    refused("one_ways", mechanisms=["dpsyn"], parameters={"dpsyn": {"one_ways": 3}})
    refused("'x' is not an attribute", by=["x"])
    assert started == []


def test_a_kept_file_is_of_what_was_given(tmp_path: Path, started: list[Any]) -> None:
    output = tmp_path / "r.csv"
    same: dict[str, Any] = {"mechanisms": ["aim"], "epsilons": [1], "seeds": 1, "output": output}
    there = chicle.datasets.census(50, d=4, seed=5)
    first: dict[str, Any] = {"public": there, "workload": [("AGE", "SEX")], "parameters": {"aim": {"published": True}}}
    chicle.compare(CENSUS, **same, **first)
    chicle.compare(CENSUS, **same, **first)
    several = chicle.Records({name: CENSUS[name] for name in CENSUS}, CENSUS.domain, max_records_per_person=4)
    others: list[tuple[Any, dict[str, Any]]] = [
        (CENSUS, {"public": None}),
        (CENSUS, {"public": chicle.PublicData(there, role="trusted")}),
        (CENSUS, {"public": chicle.datasets.census(50, d=4, seed=6)}),
        (CENSUS, {"workload": [("AGE", "RACE")]}),
        (CENSUS, {"workload": {("AGE", "SEX"): 2.0}}),
        (CENSUS, {"parameters": {"aim": {"published": False}}}),
        (several, {}),
    ]
    for real, other in others:
        with pytest.raises(ParameterError, match="or with other settings"):
            chicle.compare(real, **same, **{**first, **other})
    assert len(started) == 1


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="a run has no group of processes there")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_ends_with_the_process_that_started_it(tmp_path: Path, how: signal.Signals) -> None:
    """However that process ends, and with all that the run has started."""
    code = (
        "import chicle\n"
        "chicle.compare(chicle.datasets.census(50, d=3), mechanisms=['tests.contenders:beats'],"
        " epsilons=[1], seeds=1)"
    )
    path = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}
    ) as started:
        try:
            assert _until(lambda: _beat(tmp_path) and _goes_on(tmp_path)), "both processes of the run are alive"
            started.send_signal(how)
        finally:
            started.kill()
    assert _until(lambda: not _goes_on(tmp_path))


def _until(holds: Callable[[], object], seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _beat(folder: Path) -> list[str]:
    files = [folder / name for name in ("own", "its")]
    return [file.read_text(encoding="ascii") for file in files] if all(file.exists() for file in files) else []


def _goes_on(folder: Path) -> bool:
    """Whether either process beats; one that ended may stay listed where nobody asks for its code."""
    before = _beat(folder)
    time.sleep(1)
    return _beat(folder) != before
