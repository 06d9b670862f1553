"""Every measure of an evaluation equals an independent computation; odd tables are refused or judged sanely."""

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import chicle
from chicle import Records
from chicle.errors import ParameterError, SchemaError
from chicle.evaluation import marginals
from chicle.evaluation.distance import Distances
from chicle.sources import read_records

DOMAIN = {"a": 3, "b": 4, "c": 2, "d": 5}


def table(n: int, seed: int, domain: dict[str, int] = DOMAIN) -> Records:
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 2, n)
    return Records({name: (rng.integers(0, size, n) * base) % size for name, size in domain.items()}, domain)


def histogram(records: Records, clique: tuple[str, ...]) -> Any:
    counts, _ = np.histogramdd(
        np.stack([records[name] for name in clique], axis=1),
        bins=[np.arange(records.domain[name] + 1) for name in clique],
    )
    return counts / len(records)


@pytest.mark.parametrize("dense", [marginals.DENSE, 0, 11])
def test_distances_equal_numpy(dense: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marginals, "DENSE", dense)
    real, made = table(300, 1), table(200, 2)
    found = chicle.evaluate(real, made)
    for size in (1, 2, 3):
        errors = found.errors[size]
        assert errors.cliques == tuple(combinations(DOMAIN, size))
        off = [np.abs(histogram(real, clique) - histogram(made, clique)) for clique in errors.cliques]
        np.testing.assert_allclose(errors.tvd, [o.sum() / 2 for o in off], atol=1e-12)
        np.testing.assert_allclose(errors.largest, [o.max() for o in off], atol=1e-12)
        assert found[f"tvd_{size}"].value == pytest.approx(np.mean([o.sum() / 2 for o in off]))
        assert found[f"tvd_{size}"].note == ""


def test_cells_beyond_any_integer() -> None:
    domain = {"a": 2**32 - 1, "b": 2**32 - 1, "c": 7}
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2**32 - 1, (3, 20))
    real, made = (
        Records({"a": rows[0, chosen], "b": rows[1, chosen], "c": rows[2, chosen] % 7}, domain)
        for chosen in (rng.integers(0, 20, 50), rng.integers(0, 20, 30))
    )
    found = Distances.empty(1, 1)
    marginals.observe([real, made], [("a", "b", "c")], None, found)
    shares = [Counter(zip(*(records[name].tolist() for name in domain), strict=True)) for records in (real, made)]
    expected = sum(abs(shares[0][cell] / 50 - shares[1][cell] / 30) for cell in {*shares[0], *shares[1]}) / 2
    assert found.tvd[0, 0] == pytest.approx(expected)


def test_association_equals_pandas() -> None:
    from scipy.stats.contingency import association

    real, made = table(400, 3), table(300, 4)
    schema = chicle.Schema.from_cardinalities(DOMAIN, ordinal=["a", "b"])
    found = chicle.evaluate(real, made, schema).association
    for i, (a, b) in enumerate(found.pairs):
        for records, v, r in (
            (real, found.cramers_v, found.pearson),
            (made, found.cramers_v_synthetic, found.pearson_synthetic),
        ):
            cross = pd.crosstab(records[a], records[b])
            assert v[i] == pytest.approx(association(cross.to_numpy(), method="cramer"))
            if {a, b} == {"a", "b"}:
                assert r[i] == pytest.approx(np.corrcoef(records[a], records[b])[0, 1])
            else:
                assert np.isnan(r[i])


def test_missing_is_no_number() -> None:
    schema = chicle.Schema(
        {name: {"type": "integer", "min": 0, "max": 9, "missing": True} for name in ("x", "y")},
    )
    frame = pd.DataFrame({"x": [1.0, 2, 3, None, 5], "y": [2.0, 4, None, 8, 9]})
    found = chicle.evaluate(frame, frame, schema).association
    assert found.pearson[0] == pytest.approx(frame.corr().iloc[0, 1])


def test_a_table_is_as_good_as_itself() -> None:
    real = table(300, 1)
    found = chicle.evaluate(real, real)
    for key in ("tvd_1", "tvd_2", "tvd_3", "cramers_v"):
        assert found[key].value == 0
        assert (found[key].floor or 0) > 0
    assert all(attribute.tvd == 0 for attribute in found.attributes)


def test_the_seed_fixes_everything_and_threads_nothing() -> None:
    real, made = table(300, 1), table(200, 2)
    first, again, other = (
        chicle.evaluate(real, made, epsilon=1, delta=1e-6, triples=2, seed=seed, threads=threads).to_json()
        for seed, threads in ((5, 1), (5, 2), (6, 1))
    )
    assert first == again != other


def test_it_prints_what_it_is_and_where_it_is_wrong() -> None:
    real = table(300, 1)
    broken = Records({**{name: real[name] for name in DOMAIN}, "d": np.full(300, 4)}, DOMAIN)
    found = chicle.evaluate(real, broken)
    assert str(found).startswith("NOT PRIVATE")
    assert json.loads(found.to_json())["warning"].startswith("NOT PRIVATE")
    assert max(found.attributes, key=lambda a: a.tvd).name == "d"
    assert {found.attributes[i].worst_with for i in range(3)} == {"d"}
    assert all("d" in found.errors[2].cliques[i] for i in found.errors[2].worst(3))


def test_cliques_are_drawn_without_repetition() -> None:
    wide = dict.fromkeys(map(str, range(12)), 2)
    real = table(50, 1, wide)
    for triples in (5, 100, 219):
        errors = chicle.evaluate(real, real, triples=triples).errors[3]
        assert len(set(errors.cliques)) == triples < errors.of == 220
        assert all(clique == real.domain.clique(clique) for clique in errors.cliques)


@pytest.mark.parametrize("domain", [{"a": 3}, {"a": 1}, {"a": 3, "b": 1}, {"a": 300, "b": 100_000, "c": 100_000}])
@pytest.mark.parametrize("rows", [1, 7])
def test_small_and_wide_tables(domain: dict[str, int], rows: int) -> None:
    found = chicle.evaluate(table(rows, 1, domain), table(2 * rows, 2, domain), epsilon=1, delta=1e-6, queries=9)
    assert set(found.errors) == set(range(1, len(domain) + 1))
    json.loads(found.to_json())
    assert "NOT PRIVATE" in str(found)


def test_tables_of_any_kind(tmp_path: Path) -> None:
    schema = chicle.Schema({"age": {"type": "integer", "min": 0, "max": 99, "bins": 5}, "left": {"type": "boolean"}})
    schema.save(tmp_path / "s.yaml")
    frame = pd.DataFrame({"age": [3, 44, 99, 20], "left": [True, False, True, True]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    tvd = chicle.evaluate(frame, frame.iloc[:2], schema).errors[1].tvd
    assert tvd[1] == pytest.approx(0.25)
    batches = [frame.iloc[:3], frame.iloc[3:]]
    for real in (read_records(frame, schema), tmp_path / "t.csv", str(tmp_path / "*.csv"), batches):
        np.testing.assert_array_equal(chicle.evaluate(real, frame.iloc[:2], tmp_path / "s.yaml").errors[1].tvd, tvd)


def test_errors_say_which_table() -> None:
    schema = chicle.Schema({"age": {"type": "integer", "min": 0, "max": 99}, "left": {"type": "boolean"}})
    frame = pd.DataFrame({"age": [3, 44], "left": [True, False]})
    with pytest.raises(SchemaError, match="the synthetic table: column 'left' is declared but not in the table"):
        chicle.evaluate(frame, frame[["age"]], schema)
    with pytest.raises(ParameterError, match="the synthetic table has no rows"):
        chicle.evaluate(frame, frame.iloc[:0], schema)
    with pytest.raises(ParameterError, match="the real table has no rows"):
        chicle.evaluate(frame.iloc[:0], frame, schema)
    with pytest.raises(SchemaError, match="needs a schema"):
        chicle.evaluate(frame, frame)
    with pytest.raises(ParameterError, match="no score 'x'"):
        chicle.evaluate(frame, frame, schema)["x"]
    with pytest.raises(ParameterError, match="triples"):
        chicle.evaluate(frame, frame, schema, triples=0)


def test_the_budget_of_the_release_is_not_touched() -> None:
    census = chicle.datasets.census(2_000, d=4)
    synth = chicle.Independent(epsilon=1, delta=1e-9).fit(census)
    spent = synth.ledger_.spent
    found = chicle.evaluate(census, synth.sample(seed=0), release=synth.release_)
    assert synth.ledger_.spent == spent
    assert "epsilon=1" in found.budget
    assert found["tvd_1"].independent == pytest.approx(found["tvd_1"].value, rel=0.9)


def test_columns_that_were_discovered_are_known_by_the_release() -> None:
    frame = pd.DataFrame({"town": ["x"] * 400 + ["y"] * 300, "left": [True, False] * 350})
    schema = chicle.Schema({"town": {"type": "open", "most": 5}, "left": {"type": "boolean"}})
    synth = chicle.Independent(epsilon=5, delta=1e-6).fit(frame, schema)
    found = chicle.evaluate(frame, synth.sample(seed=0), schema, release=synth.release_)
    assert found["tvd_1"].value < 0.1  # type: ignore[operator]
    with pytest.raises(SchemaError, match="'town' is yet to be discovered; give the release"):
        chicle.evaluate(frame, frame, schema)


def test_a_release_from_elsewhere_has_no_budget() -> None:
    real = table(300, 1)
    release = chicle.Independent(epsilon=1, delta=1e-6).fit(real).release_
    stated = chicle.Release.from_marginals(release.measurements, release.schema, claim="by the bureau")
    assert "no budget was given" in chicle.evaluate(real, stated.sample(seed=0), release=stated).budget


def test_distances_of_a_real_table_equal_numpy(shared_data: Path) -> None:
    folder = shared_data / "acs2024_nj"
    domain = json.loads((folder / "domain.json").read_text(encoding="utf-8"))
    frame = pq.read_table(folder / "data.parquet")
    real, made = (Records(part, domain) for part in (frame[:9_000], frame[9_000:15_000]))
    found = chicle.evaluate(real, made, triples=40, queries=10)
    rng = np.random.default_rng(0)
    for size in (1, 2, 3):
        errors = found.errors[size]
        for i in rng.choice(len(errors), 15, replace=False):
            counts = []
            for records in (real, made):
                keys = np.ravel_multi_index(
                    [records[name].astype(np.int64) for name in errors.cliques[i]],
                    [domain[name] for name in errors.cliques[i]],
                )
                counts.append(np.bincount(keys, minlength=records.domain.cells(errors.cliques[i])) / len(records))
            assert errors.tvd[i] == pytest.approx(np.abs(counts[0] - counts[1]).sum() / 2, abs=1e-12)
