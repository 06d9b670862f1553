"""Other packages as contenders: small modules stand for them; where one is installed, it runs itself.

CHICLE_PEERS names a folder with an environment for each package; without it, these runs are skipped.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

import chicle
from chicle import ParameterError, Records, Schema
from chicle.comparison.adapters import ADAPTERS, PACKAGES, _rho
from chicle.comparison.contenders import contender
from tests.peers import peer

CENSUS = chicle.datasets.census(300, d=4)

FAKE = {
    "snsynth/__init__.py": """
class Synthesizer:
    @classmethod
    def create(cls, name, *, epsilon, delta):
        assert name in ("mst", "aim") and epsilon == 1 and delta == 1e-9
        return cls()
    def fit(self, data, *, transformer):
        assert transformer.values.max().tolist() >= data.max().tolist()
        self.data = data
    def sample(self, rows):
        return [tuple(row) for row in self.data.head(rows).to_numpy()]
""",
    "snsynth/transform.py": """
class LabelTransformer:
    def __init__(self, nullable):
        assert not nullable
class TableTransformer:
    def __init__(self, transformers):
        self.transformers = transformers
    def fit(self, values):
        assert len(self.transformers) == len(values.columns)
        self.values = values
""",
    "dpmm/__init__.py": "",
    "dpmm/models/__init__.py": "",
    "dpmm/models/mst.py": """
class _Model:
    def __init__(self, epsilon, delta):
        assert epsilon == 1 and delta == 1e-9
    def set_random_state(self, state):
        state.rand()
    def set_domain(self, domain):
        self.domain = domain
    def fit(self, data):
        assert set(self.domain) == set(data)
        self.data = data
    def generate(self, n_records):
        return self.data.head(n_records)
MSTGM = _Model
""",
    "dpmm/models/aim.py": "from dpmm.models.mst import _Model as AIMGM",
    "dpmm/models/priv_bayes.py": "from dpmm.models.mst import _Model as PrivBayesGM",
    "jax.py": """
class config:
    @staticmethod
    def update(name, value):
        assert name == "jax_enable_x64" and value
""",
    "mbi.py": """
import itertools
import numpy as np
class Domain:
    def __init__(self, names, sizes):
        self.names, self.sizes = names, sizes
class LinearMeasurement:
    def __init__(self, values, clique, stddev):
        self.values, self.clique, self.stddev = values, clique, stddev
class _Factor:
    def __init__(self, cells, total):
        self.cells, self.total = cells, total
    def datavector(self):
        return np.full(self.cells, self.total / self.cells)
class _Model:
    def __init__(self, domain, measured, total):
        self.domain, self.measured, self.total = domain, measured, total
    def project(self, clique):
        size = dict(zip(self.domain.names, self.domain.sizes))
        return _Factor(int(np.prod([size[name] for name in clique])), self.total)
    def synthetic_data(self, rows):
        edges = [one.clique for one in self.measured if len(one.clique) == 2]
        parts = {name: {name} for name in self.domain.names}
        for a, b in edges:
            assert parts[a] is not parts[b], "a tree has no cycle"
            parts[a] |= parts[b]
            parts.update(dict.fromkeys(parts[a], parts[a]))
        assert len(edges) == len(self.domain.names) - 1
        self.rows = rows
        return self
    def to_dict(self):
        return {n: np.arange(self.rows) % s for n, s in zip(self.domain.names, self.domain.sizes)}
class estimation:
    class MirrorDescent:
        def estimate(self, domain, measured, total):
            return _Model(domain, measured, total)
""",
}


def made(name: str, python: str, table: Records = CENSUS) -> Records:
    found: Records = contender(f"{name}@{python}")(
        table, Schema(table.domain), epsilon=1.0, delta=1e-9, seed=0, threads=1
    )
    return found


@pytest.mark.parametrize("name", ADAPTERS)
def test_each_adapter_gives_its_package_what_it_wants(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file, text in FAKE.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    monkeypatch.chdir(tmp_path)
    table = made(name, sys.executable)
    assert table.domain == CENSUS.domain
    assert len(table) == len(CENSUS)


@pytest.mark.parametrize("name", ADAPTERS)
def test_each_package_makes_a_table(name: str) -> None:
    """Two attributes only, so that it takes seconds; the first is mostly right at epsilon 1 and 300 rows."""
    python = peer(name.partition("-")[0])
    few = Records({column: CENSUS[column] for column in ("SEX", "AGE")}, {c: CENSUS.domain[c] for c in ("SEX", "AGE")})
    table = made(name, python, few)
    assert len(table) == len(few)
    one, other = (np.bincount(each["SEX"], minlength=2) / len(each) for each in (few, table))
    assert np.abs(one - other).sum() < 0.5


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(ParameterError, match=r"smartnoise-mst, .*mbi-mst and @PYTHON"):
        contender(f"smartnoise-magic@{sys.executable}")
    with pytest.raises(ParameterError, match="no Python 'nowhere'"):
        contender("dpmm-aim@nowhere")
    with pytest.raises(
        ParameterError, match=r"dpmm-aim failed in its environment: ModuleNotFoundError; pip install dpmm"
    ):
        made("dpmm-aim", sys.executable)
    assert {name.partition("-")[0] for name in ADAPTERS} == set(PACKAGES)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-9), (10.0, 1e-5)])
def test_rho_gives_delta(epsilon: float, delta: float) -> None:
    """The smallest delta of rho-zCDP over all orders is the delta asked for."""
    rho = _rho(epsilon, delta)
    alpha = 1 + np.geomspace(1e-4, 1e7, 200_000)
    log = (alpha - 1) * (alpha * rho - epsilon) - np.log(alpha - 1) + alpha * np.log1p(-1 / alpha)
    assert np.exp(log.min()) == pytest.approx(delta, rel=1e-3)
