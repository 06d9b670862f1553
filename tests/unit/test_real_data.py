"""Real tables, where they are at hand."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import chicle
from chicle import Budget, Counter, Ledger, Records
from chicle.privacy import calibrate


def load(folder: Path) -> Records:
    domain = json.loads((folder / "domain.json").read_text(encoding="utf-8"))
    return Records(pq.read_table(folder / "data.parquet"), domain)


@pytest.mark.parametrize("name", ["adult", "titanic", "fire", "acs2018_income", "acs2024_ny"])
def test_pairs_of_real_tables_agree_with_numpy(shared_data: Path, name: str) -> None:
    table = load(shared_data / name)
    pairs = chicle.pairs(table.domain)
    counts = dict(zip(pairs, chicle.count(table, pairs), strict=True))
    rng = np.random.default_rng(0)
    for a, b in (pairs[i] for i in rng.choice(len(pairs), 30)):
        expected, _, _ = np.histogram2d(
            table[a], table[b], bins=[np.arange(table.domain[a] + 1), np.arange(table.domain[b] + 1)]
        )
        np.testing.assert_array_equal(counts[a, b], expected)


def test_parquet_is_counted_batch_by_batch(shared_data: Path) -> None:
    path = shared_data / "msnbc" / "data.parquet"
    domain = json.loads((path.parent / "domain.json").read_text(encoding="utf-8"))
    counter = Counter(domain, chicle.pairs(domain))
    for batch in pq.ParquetFile(path).iter_batches(batch_size=50_000):
        counter.update(Records(dict(zip(batch.schema.names, batch.columns, strict=True)), domain))
    whole = load(path.parent)
    for streamed, at_once in zip(counter.result(), chicle.count(whole, chicle.pairs(domain)), strict=True):
        np.testing.assert_array_equal(streamed, at_once)


def test_an_analyst_finds_the_one_ways_of_adult(shared_data: Path) -> None:
    table = load(shared_data / "adult")
    ledger = Ledger(Budget(epsilon=1, delta=1e-9))
    cliques = [(name,) for name in table.domain]
    sigma = calibrate(ledger.remaining / len(cliques))
    synthetic = chicle.independent(chicle.measure(table, cliques, sigma, ledger), table.domain, seed=0)
    assert abs(len(synthetic) - len(table)) < 0.02 * len(table)
    errors = [
        np.abs(real / len(table) - made / len(synthetic)).sum() / 2
        for real, made in zip(chicle.count(table, cliques), chicle.count(synthetic, cliques), strict=True)
    ]
    assert np.mean(errors) < 0.015
    assert ledger.epsilon() <= 1
