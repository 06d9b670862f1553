"""The papers: every declaration runs on small tables, resumes, and says what is missing."""

import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import chicle
from chicle import ParameterError
from chicle.cli.entry import main
from chicle.cli.papers import _NAMES
from chicle.comparison import Comparison
from chicle.comparison.contenders import contender
from chicle.comparison.job import run_job
from chicle.mechanisms.variants import mechanism_names
from chicle.papers import BY_NAME, Ratio, System, run_paper
from chicle.papers.page import page, ratio, save
from chicle.papers.picture import picture
from chicle.papers.sources import ADULT, FIRE, PUMA, TITANIC
from chicle.papers.tables import digest_of, find, find_public

COLUMNS = {"age": 5, "sex": 2, "income>50K": 2, "race": 3}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tables of a few rows under the names of the papers' tables; runs without processes of their own, to be quick."""
    monkeypatch.setattr("chicle.comparison.run._in_a_process", lambda job, _: run_job(job))
    rng = np.random.default_rng(0)
    common = rng.random(300)
    rows = {name: (np.abs(common - rng.normal(0, 0.1, 300)) * size).astype(np.uint8) for name, size in COLUMNS.items()}
    rows = {name: np.minimum(codes, COLUMNS[name] - 1) for name, codes in rows.items()}
    areas = {
        **rows,
        "HOUSEHOLD": np.arange(300) // 10,
        "PUMA": np.arange(300) // 100,
        "SEX": rows["sex"],
        "MAR": rows["race"],
    }
    areas["AGEP"] = rows["age"]
    for name in ("adult", "fire", "adult_queries", "acs2024_ny_pa_puma", "acs2024_il_oh_puma"):
        (tmp_path / "data" / name).mkdir(parents=True)
        of_areas = name.endswith("puma")
        sizes = {**COLUMNS, "PUMA": 3, "SEX": 2, "MAR": 3, "AGEP": 5} if of_areas else COLUMNS
        for file in ("private.parquet", "public.parquet") if name == "adult_queries" else ("data.parquet",):
            pq.write_table(pa.table(areas if of_areas else rows), tmp_path / "data" / name / file)
        (tmp_path / "data" / name / "domain.json").write_text(json.dumps(sizes))
    return tmp_path


def test_every_declaration_is_whole() -> None:
    assert tuple(BY_NAME) == _NAMES
    for paper in BY_NAME.values():
        names = [system.name for system in paper.systems]
        assert len(set(names)) == len(names)
        told = [*names, *(table.name for table in paper.tables), *paper.workloads]
        assert not any("," in name for name in told), "--only, --tables and --workload split names at commas"
        assert len({table.name for table in paper.tables}) == len(paper.tables)
        assert set(paper.quick_epsilons) <= {*paper.epsilons, *paper.quick_epsilons}
        assert {name for asked in paper.ratios for name in (asked.system, asked.to)} <= set(names)
        for system in paper.systems:
            if system.run in mechanism_names() or ":" in system.run:
                assert callable(contender(system.run))
            else:
                assert system.note or system.run, f"{system.name} is missing, and nothing says why"


@pytest.mark.parametrize("name", _NAMES)
def test_each_paper_runs_and_names_what_is_missing(name: str, folder: Path) -> None:
    first = next(one.name for one in BY_NAME[name].systems if one.run.startswith("independent"))
    done = main(
        [
            *("papers", name, "--data", str(folder / "data"), "-o", str(folder / "out")),
            *("--quick", "--quiet", "--only", first, "--studies", "none", "--threads", "1", "--epsilon", "20,50"),
        ]
    )
    assert done == 0
    stem = BY_NAME[name].file or name
    text = (folder / "out" / f"{stem}.md").read_text()
    assert "NOT PRIVATE" in text.splitlines()[2]
    assert "Quick form" in text
    for table in BY_NAME[name].tables:
        if not table.folder:
            assert f"## {table.name}\n\nNot at hand" in text
            assert table.source in text
    record = json.loads((folder / "out" / f"{stem}.json").read_text())
    runs = [row for one in record["tables"] if one["runs"] for row in one["runs"]]
    assert not any(row["error"] for row in runs)
    key = next(iter(BY_NAME[name].measures))
    assert all(row[key] is not None for row in runs)
    assert record["paper"] == name


def test_runs_are_resumed_and_told(folder: Path) -> None:
    said: list[str] = []
    given = {"data": folder / "data", "output": folder / "out", "quick": True, "only": ["Independent"], "threads": 1}
    first = run_paper("dpsyn18", progress=said.append, **given)  # type: ignore[arg-type]
    assert len(said) == 2
    assert said[0].startswith("Fire: run 1 of 2")
    assert said[1].endswith("left at most")
    again = run_paper("dpsyn18", progress=said.append, **given)  # type: ignore[arg-type]
    assert len(said) == 2, "runs that are there are not repeated"
    assert first.to_json().split('"tables"')[1] == again.to_json().split('"tables"')[1]
    assert [one.table.name for one in again.tables] == ["Fire", "Colorado"]
    assert save(again, folder / "out").exists()


def test_a_part_can_be_run(folder: Path) -> None:
    given = {"tables": ["adult"], "epsilons": [2.0, 3.0], "seeds": 1, "only": ["independent"], "role": "judge"}
    given |= {"workloads": ["TARGET"], "studies": []}
    outcome = run_paper("aim", data=folder / "data", output=folder / "out", threads=1, **given)  # type: ignore[arg-type]
    (one,) = outcome.tables
    assert one.runs is not None
    assert [row["epsilon"] for row in one.runs.rows] == [2.0, 3.0, None]
    assert "| epsilon | 2 | 3 |" in page(outcome)
    assert '`chicle papers aim --data FOLDER --seeds 1 --tables "Adult"`' in page(outcome)
    none = run_paper("aim", data=folder / "data", output=folder / "out", tables=["adult"], role="develop", studies=[])
    assert not none.tables


def test_other_systems_join(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "mine.py").write_text("def same(columns, domain, **told):\n    return columns\n")
    monkeypatch.chdir(folder)
    asked = [
        "--quick",
        "--quiet",
        "--only",
        "Mine,Independent",
        "--studies",
        "none",
        "--also",
        f"Mine=mine:same@{sys.executable}",
    ]
    told = ["papers", "chicle", "--data", str(folder / "data"), "-o", str(folder / "out"), "--threads", "1", "--quick"]
    assert main([*told, *asked, "--quiet"]) == 0
    text = (folder / "out" / "how-good.md").read_text()
    assert "- Mine: not a system of the paper." in text
    assert "| Mine | 0.0000 | 0.0000 | 0.0000 |" in text
    for wrong, what in (("mine:same", "write NAME=RUN"), ("Mine=magic", "no mechanism 'magic'")):
        with pytest.raises(ParameterError, match=what):
            run_paper("chicle", data=folder / "data", output=folder, also=[wrong])


def test_missing_mechanisms_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    magic = replace(BY_NAME["gem"], systems=(System("Magic", "", "nobody has it"),), ratios=(Ratio("Magic", "Magic"),))
    monkeypatch.setitem(BY_NAME, "gem", magic)
    outcome = run_paper("gem", data=folder / "data", output=folder / "out", quick=True)
    assert [one.name for one in outcome.missing] == ["Magic"]
    assert "Magic is missing: nobody has it" in page(outcome)
    assert "not run" in page(outcome)


def test_each_table_is_compared_by_each_workload(folder: Path) -> None:
    given = {"data": folder / "data", "output": folder / "out", "quick": True, "threads": 1, "tables": ["adult"]}
    outcome = run_paper("aim", only=["AIM", "Prism"], epsilons=[1.0], **given)  # type: ignore[arg-type]
    assert [(one.table.name, one.workload) for one in outcome.tables] == [
        ("Adult", name) for name in ("ALL-3WAY", "TARGET", "SKEWED")
    ]
    text = page(outcome)
    assert "Not asked for in this run: PrivMRF, MST, " in text
    assert text.index("## ALL-3WAY: Adult") < text.index("## TARGET: Adult") < text.index("## SKEWED: Adult")
    for name, published in (("ALL-3WAY", "1.3"), ("TARGET", "1.4"), ("SKEWED", "2")):
        assert f"**{name}**" in text
        assert f"| PrivMRF | AIM | {published} | not run | - |" in text
    found = [ratio(outcome, Ratio("Prism", "AIM", workload=name)) for name in ("ALL-3WAY", "TARGET", "SKEWED")]
    assert [one and one[2] for one in found] == [1, 1, 1]
    files = sorted(path.name for path in (folder / "out").glob("*.csv"))
    assert files == [f"aim-quick-adult-{name}.csv" for name in ("all-3way", "skewed", "target")]
    one = run_paper("aim", workloads=["target"], only=["AIM"], epsilons=[1.0], **given)  # type: ignore[arg-type]
    assert [made.workload for made in one.tables] == ["TARGET"]
    assert "## TARGET: Adult" in page(one)
    assert "**SKEWED**" not in page(one)
    assert sorted(path.name for path in (folder / "out").glob("*.csv")) == files
    with pytest.raises(ParameterError, match="no workload 'magic'; it has all-3way, target, skewed"):
        run_paper("aim", workloads=["magic"], **given)  # type: ignore[arg-type]


def test_the_workloads_of_aim_are_those_of_the_paper() -> None:
    """[A] 6.1: all triples; those with the attribute to predict; 256 drawn, some attributes far more often."""
    asks, domain = BY_NAME["aim"].workloads, chicle.Domain({"income>50K": 2, **dict.fromkeys("abcdefgh", 3)})
    assert len(asks["ALL-3WAY"](domain, ADULT)) == 84
    target = asks["TARGET"](domain, ADULT)
    assert len(target) == 28
    assert all("income>50K" in clique for clique in target)
    drawn = asks["TARGET"](domain, FIRE)
    assert drawn.closure() == asks["TARGET"](domain, FIRE).closure()
    assert len({name for name in domain if all(name in clique for clique in drawn)}) == 1
    skewed = asks["SKEWED"](domain, ADULT)
    assert sum(skewed.values()) == 256
    assert dict(skewed) == dict(asks["SKEWED"](domain, ADULT)), "the same whatever is compared"
    often = sorted(sum(weight for clique, weight in skewed.items() if name in clique) for name in domain)
    assert often[-1] > 4 * often[0]


def test_systems_get_the_public_table(folder: Path) -> None:
    given = {"data": folder / "data", "output": folder / "out", "threads": 1, "epsilons": [2.0], "seeds": 1}
    only = ["GEM-pub", "PMW-pub", "FEM", "Independent"]
    tables = ["Adult (reduced)", "Adult (reduced) beside public rows without one race"]
    outcome = run_paper("gem", only=only, tables=tables, **given)  # type: ignore[arg-type]
    runs = [[] if one.runs is None else one.runs.rows for one in outcome.tables]
    assert [[row["mechanism"] for row in some][:-1] for some in runs] == [
        ["fem", "independent-alone"],
        ["gem", "pmwpub", "independent-alone"],
    ]
    assert not any(row["error"] for some in runs for row in some)
    narrow = find_public(outcome.tables[1].table, folder / "data", chicle.Domain({"race": 3, "sex": 2}))
    assert narrow is not None
    assert 0 < len(narrow.table) < 300
    assert 2 not in narrow.table["race"]


def test_persons_and_areas_of_the_challenge(folder: Path) -> None:
    found = find(PUMA, folder / "data")
    assert found is not None
    records, schema = found
    assert len(records) == 210, "7 of the 10 rows of each household"
    assert records.max_records_per_person == schema.max_records_per_person == 7
    assert schema.partition == ("PUMA",)
    assert records.domain["AGEP"] == 1, "five years to a group"
    given = {"data": folder / "data", "output": folder / "out", "threads": 1, "epsilons": [50.0], "seeds": 1}
    outcome = run_paper("dpsyn20", only=["DPSyn", "Prism", "Independent alone"], **given)  # type: ignore[arg-type]
    rows = outcome.tables[0].runs.rows if outcome.tables[0].runs else []
    assert [row["error"] for row in rows] == [""] * 4
    assert all(0 <= row["nist2020"] <= 1000 for row in rows)
    (folder / "data" / "acs2024_il_oh_puma" / "data.parquet").unlink()
    alone = run_paper("dpsyn20", only=["DPSyn"], **given)  # type: ignore[arg-type]
    assert all(one.runs is None for one in alone.tables), "a table is not at hand without its public one"


def test_what_is_wrong_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHICLE_DATA", raising=False)
    with pytest.raises(ParameterError, match="no paper 'magic'"):
        run_paper("magic", data=folder, output=folder)
    with pytest.raises(ParameterError, match="name their folder"):
        run_paper("aim", output=folder)
    with pytest.raises(ParameterError, match="no folder"):
        run_paper("aim", data=folder / "nowhere", output=folder)
    for wrong in ({"only": ["magic"]}, {"tables": ["magic"]}):
        with pytest.raises(ParameterError, match=r"has no (system|table) 'magic'"):
            run_paper("aim", data=folder / "data", output=folder, **wrong)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="seeds"):
        run_paper("aim", data=folder / "data", output=folder, seeds=0)


def test_a_ratio_is_the_geometric_mean(folder: Path) -> None:
    outcome = run_paper("dpsyn18", data=folder / "data", output=folder / "out", quick=True, only=["Independent"])
    key = next(iter(outcome.paper.measures))
    rows = [
        {"mechanism": run, "epsilon": epsilon, "delta": 0.1, "seed": 0, "error": "", key: value}
        for run, values in (("mst", (0.4, 0.1)), ("prism", (0.1, 0.2)))
        for epsilon, value in zip(outcome.paper.epsilons, values, strict=True)
    ]
    systems = tuple(one for one in BY_NAME["dpsyn18"].systems if one.run in ("mst", "prism"))
    tables = tuple(replace(one, runs=one.runs and Comparison(tuple(rows), "")) for one in outcome.tables)
    made = replace(outcome, systems=systems, tables=tables)
    found = ratio(made, Ratio("MST", "Prism"))
    assert found is not None
    assert found[0] == pytest.approx(math.sqrt(4 * 0.5))
    assert found[1:] == (1, 2)
    assert ratio(made, Ratio("DPSyn", "Prism")) is None


def test_the_page_lists_where_our_own_system_loses(folder: Path) -> None:
    asked = {"tables": ["adult"], "epsilons": [1.0, 2.0], "seeds": 1, "only": ["Prism", "Independent", "AIM"]}
    asked["studies"] = []
    outcome = run_paper("chicle", data=folder / "data", output=folder / "out", threads=1, **asked)  # type: ignore[arg-type]
    rows = [
        {"mechanism": run, "epsilon": epsilon, "delta": 0.1, "seed": 0, "error": "", "tvd_3": value, "tvd_2": 0.1}
        for run, values in (("prism", (0.2, 0.3)), ("independent", (0.1, 0.4)), ("aim-published", (0.05, 0.5)))
        for epsilon, value in zip((1.0, 2.0), values, strict=True)
    ]
    (one,) = outcome.tables
    shown = page(replace(outcome, tables=(replace(one, runs=Comparison(tuple(rows), "")),)))
    assert "In 1 of 4 cells" in shown
    assert "| Adult | 1 | mean 3-way distance | 0.2000 | AIM 0.0500, Independent 0.1000 |" in shown
    none = [{**row, "tvd_3": row["tvd_3"] if row["mechanism"] == "prism" else 1} for row in rows]
    assert "Nowhere in 4 cells" in page(replace(outcome, tables=(replace(one, runs=Comparison(tuple(none), "")),)))


def test_slow_systems_are_left_out_of_large_tables(folder: Path) -> None:
    outcome = run_paper(
        "chicle",
        data=folder / "data",
        output=folder / "out",
        tables=["fire"],
        epsilons=[1.0],
        seeds=1,
        only=["AIM", "Independent"],
        studies=[],
    )
    (one,) = outcome.tables
    assert one.runs is not None
    assert {row["mechanism"] for row in one.runs.rows} == {"independent", "floor"}
    assert "Not run here, because a run takes more than 60 s: AIM." in page(outcome)


def test_the_quick_form_is_small_and_keeps_the_label(folder: Path) -> None:
    table = BY_NAME["privsyn"].tables[0]
    whole, quick = find(table, folder / "data"), find(table, folder / "data", quick=True)
    assert whole is not None
    assert quick is not None
    assert len(whole[0]) == 300
    assert "income>50K" in quick[0].domain
    assert digest_of(whole[0]) == digest_of(whole[0])
    assert digest_of(whole[0]) != digest_of(chicle.Records({"a": [0]}, {"a": 2}))
    first = find(replace(table, rows=10), folder / "data")
    assert first is not None
    assert len(first[0]) == 10
    halves = find(replace(table, binary=True), folder / "data")
    assert halves is not None
    assert set(halves[0].domain.values()) == {2}


def test_a_picture_has_a_line_for_each_system() -> None:
    drawn = picture("error & more", {"A": [(0.1, 2.0), (1.0, 0.5)], "B": [(0.1, 0.0)]})
    assert drawn.startswith("<svg")
    assert "error &amp; more" in drawn
    assert drawn.count("<circle") == 2
    assert picture("nothing", {"A": []}) == ""


def test_the_tables_at_hand_are_those_of_the_pages(shared_data: Path) -> None:
    for table in (ADULT, TITANIC):
        found = find(table, shared_data)
        assert found is not None
        assert digest_of(found[0]) == table.digest


def test_privsyn_as_published_is_that_in_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr("chicle.papers.systems._made", lambda synth, *_: seen.append(synth))
    census = chicle.datasets.census(100, d=3)
    contender("chicle.papers.systems:privsyn_published")(
        census, chicle.Schema(census.domain), epsilon=1.0, delta=1e-9, seed=0, threads=1
    )
    (synth,) = seen
    assert (synth.form, synth.accounting, synth.generator) == ("published", "zcdp-basic", "gum")
    assert synth.options == {"variant": "published", "passes": 100}
    assert synth.budget.rho == pytest.approx(0.01178, abs=1e-5)
