"""SDNist as a scorer: the files that it reads, its score against our own measures, and what is said where it is absent.

A small module with the same classes stands for SDNist; where the real one is installed, it gets the same files and has
to give the same score.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import chicle
from chicle import ParameterError, Records, Schema
from chicle.cli.entry import main
from chicle.evaluation import export_sdnist
from tests.linked_tables import DECLARED
from tests.peers import peer

FAKE = {
    "__init__.py": "",
    "version.py": "__version__ = 'fake'",
    "utils.py": "class SimpleLogger:\n    pass",
    "load.py": "import enum\nclass TestDatasetName(enum.Enum):\n    national2019 = 9",
    "metrics/__init__.py": "",
    "metrics/kmarginal.py": """
import itertools
class KMarginal:
    def __init__(self, target_data, deidentified_data, group_features=None):
        self.tables, self.groups = (target_data, deidentified_data), list(group_features or [])
    def compute_score(self):
        names = sorted(set(self.tables[0].columns) - {'PUMA', 'INDP'})
        far = []
        for pair in itertools.combinations(names, 2):
            one, other = (t.groupby(self.groups + list(pair)).size() / len(t) for t in self.tables)
            far.append(one.subtract(other, fill_value=0).abs().sum())
        return 500 * (2 - sum(far) / len(far))
""",
    "report/__init__.py": "",
    "report/dataset/__init__.py": """
import json
import pandas as pd
class Dataset:
    def __init__(self, synthetic_filepath, log, test, data_root, download=True):
        assert not download
        place = data_root / 'national' / test.name
        schema = json.loads(place.with_suffix('.json').read_text())['schema']
        kinds = {name: kind['dtype'] for name, kind in schema.items()}
        target = pd.read_csv(place.with_suffix('.csv'), dtype=kinds, keep_default_na=False)
        made = pd.read_csv(synthetic_filepath, keep_default_na=False)
        words = json.loads((data_root / 'data_dictionary.json').read_text())
        self.features = [name for name in made if name in target and not name.startswith('IND_')]
        if 'PUMA' in target:
            assert 'DENSITY' in target
            named = json.loads((data_root / 'mappings.json').read_text())['PUMA']
            assert all(named[area]['name'] for area in target['PUMA'])
        for name in self.features:
            for table in (target, made):
                assert set(table[name].astype(str)) <= set(words[name]['values'])
        self.config = json.loads((data_root / 'config.json').read_text())
        group = self.config['k_marginal']['group_features']
        self.config['k_marginal']['group_features'] = [name for name in group if name in made]
        self.d_target_data = target[self.features].astype(str)
        self.d_synthetic_data = made[self.features].astype(str)
""",
}
COLUMNS: dict[str, dict[str, Any]] = {
    "PUMA": {"type": "categorical", "values": ["01-00100", "02-00200", "36"]},
    "colour": {"type": "categorical", "values": ["red", "green", "blue, dark"]},
    "rooms": {"type": "categorical", "values": [1, 2, 4], "missing": True},
    "age": {"type": "integer", "min": 0, "max": 99, "bins": 5},
}


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FAKE.items():
        (tmp_path / "fake" / "sdnist" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "fake" / "sdnist" / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path / "fake")
    return tmp_path


def table(seed: int, schema: Schema) -> Records:
    rng = np.random.default_rng(seed)
    return Records({name: rng.integers(0, size, 300) for name, size in schema.domain.items()}, schema.domain)


def ours(real: Records, made: Records, schema: Schema) -> float:
    """The score of chicle's own measures: all pairs, in each PUMA where there are some."""
    cliques = [
        (a, b) if "PUMA" not in real.domain else ("PUMA", a, b)
        for a, b in chicle.pairs({name: size for name, size in real.domain.items() if name != "PUMA"})
    ]
    found = chicle.evaluate(real, made, schema, workload=cliques, queries=1)["workload"].value
    assert found is not None
    return 500 * (2 - found)


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize("names", [tuple(COLUMNS), ("colour", "rooms", "age")])
def test_the_score_is_that_of_our_own_measures(names: tuple[str, ...]) -> None:
    schema = Schema({name: COLUMNS[name] for name in names})
    real, made = table(0, schema), table(1, schema)
    found = chicle.evaluate(real, made, schema, scorer="sdnist", queries=1)["sdnist"]
    assert found.value == pytest.approx(ours(real, made, schema), abs=1e-9)
    assert found.better == "high"
    assert "SDNist fake" in found.note
    assert chicle.evaluate(real, real, schema, scorer="sdnist", queries=1)["sdnist"].value == 1000
    assert "sdnist" not in chicle.evaluate(real, made, schema, queries=1)


@pytest.mark.parametrize("names", [tuple(COLUMNS), ("colour", "rooms", "age")])
def test_sdnist_itself_gives_the_same(names: tuple[str, ...]) -> None:
    scorer = f"sdnist@{peer('sdnist')}"
    schema = Schema({name: COLUMNS[name] for name in names})
    real, made = table(0, schema), table(1, schema)
    found = chicle.evaluate(real, made, schema, scorer=scorer, queries=1)["sdnist"]
    assert found.value == pytest.approx(ours(real, made, schema), abs=1e-9)


def test_the_files_hold_values_where_these_are_whole_numbers(tmp_path: Path) -> None:
    schema = Schema(COLUMNS)
    real, made = table(0, schema), table(1, schema)
    assert export_sdnist(real, made, schema, tmp_path) == tmp_path / "synthetic.csv"
    written = pd.read_csv(tmp_path / "synthetic.csv", keep_default_na=False)
    assert list(written) == list(COLUMNS)
    assert set(written["PUMA"]) == {"01-00100", "02-00200", "P36"}
    assert set(written["rooms"]) == {"1", "2", "4", "N"}
    assert set(written["colour"]) == {0, 1, 2}
    words = json.loads((tmp_path / "data_dictionary.json").read_text())
    assert words["colour"]["values"] == {"0": "red", "1": "green", "2": "blue, dark"}
    assert words["rooms"]["values"]["N"] == "missing"
    assert words["age"]["values"]["4"] == "80 to 99"
    kinds = json.loads((tmp_path / "national" / "national2019.json").read_text())["schema"]
    assert kinds["rooms"] == {"dtype": "object", "values": ["1", "2", "4", "N"], "has_null": True, "null_value": "N"}
    assert set(pd.read_csv(tmp_path / "national" / "national2019.csv")) == {*COLUMNS, "DENSITY"}


def test_the_command(fake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, rows in {"real": ["0,1", "1,1", "1,0"], "made": ["0,1", "1,1", "0,0"]}.items():
        (fake / f"{name}.csv").write_text("\n".join(["a,b", *rows]) + "\n")
    (fake / "s.yaml").write_text(
        "columns: {a: {type: coded, values: 2}, b: {type: coded, values: 2}}\nreviewed: true\n"
    )
    asked = ["evaluate", str(fake / "real.csv"), str(fake / "made.csv"), "-s", str(fake / "s.yaml"), "--json"]
    assert main([*asked, "--scorer", "sdnist", "--sdnist-files", str(fake / "out")]) == 0
    scores = {score["key"]: score["value"] for score in json.loads(capsys.readouterr().out)["scores"]}
    assert scores["sdnist"] == pytest.approx(1000 * 2 / 3)
    assert pd.read_csv(fake / "out" / "synthetic.csv").to_numpy().tolist() == [[0, 1], [1, 1], [0, 0]]


def test_a_comparison_scores_by_it(fake: Path) -> None:
    census = chicle.datasets.census(200, d=3)
    runs = chicle.compare(census, mechanisms=["independent"], epsilons=[1], seeds=1, scorer="sdnist", queries=1)
    assert not runs.rows[0]["error"], fake
    assert runs.rows[0]["sdnist"] > 0


def test_what_is_wrong_is_said(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = Schema({"a": 2, "b": 2, "IND_x": 2})
    real = table(0, schema)
    with pytest.raises(ParameterError, match="there is no scorer 'magic'"):
        chicle.evaluate(real, real, schema, scorer="magic")
    with pytest.raises(ParameterError, match="no Python 'nowhere'"):
        chicle.evaluate(real, real, schema, scorer="sdnist@nowhere")
    with pytest.raises(ParameterError, match="SDNist left out IND_x"):
        chicle.evaluate(real, real, schema, scorer="sdnist")
    families = Schema.from_dict(DECLARED)
    with pytest.raises(ParameterError, match="SDNist reads one table"):
        export_sdnist({}, {}, families, fake)
    (fake / "fake" / "sdnist" / "load.py").write_text("raise ValueError('a private value')")
    with pytest.raises(ParameterError, match=r"SDNist failed with ValueError$"):
        chicle.evaluate(real, real, schema, scorer="sdnist")
    monkeypatch.undo()
    with pytest.raises(ParameterError, match=r"not installed here.*pip install sdnist"):
        chicle.evaluate(real, real, schema, scorer="sdnist")
