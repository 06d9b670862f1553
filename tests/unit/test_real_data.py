"""Real tables, where they are at hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import chicle
from chicle import Budget, Counter, Desk, Ledger, Records, Schema
from chicle.codecs import Codec
from chicle.columns.base import refuse
from chicle.models.independent import IndependentModel
from chicle.privacy import calibrate
from chicle.sources import check_table, decode_table, open_source, read_records


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
    measured = Desk(table, ledger).measure(cliques, sigma=sigma)
    model = IndependentModel().fit(measured, table.domain)
    synthetic = model.records(model.total, seed=0)
    assert abs(len(synthetic) - len(table)) < 0.02 * len(table)
    errors = [
        np.abs(real / len(table) - made / len(synthetic)).sum() / 2
        for real, made in zip(chicle.count(table, cliques), chicle.count(synthetic, cliques), strict=True)
    ]
    assert np.mean(errors) < 0.015
    assert ledger.epsilon() <= 1


def adult_schema(frame: pd.DataFrame) -> Schema:
    """Review the draft of Adult as its steward would: the name of an education follows from its number."""
    told = chicle.draft_schema(frame).to_dict()
    grades = ["Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college"]
    grades += ["Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate"]
    told["columns"]["education"] = {
        "determined_by": "educational-num",
        "map": [[i + 1, grade] for i, grade in enumerate(grades)],
    }
    return Schema.from_dict(told).mark_reviewed("the page of the data at UCI")


def test_adult_from_strings_and_numbers_to_a_synthetic_table(shared_data: Path) -> None:
    frame = pd.read_csv(shared_data / "adult_raw" / "data.csv.gz")
    schema = adult_schema(frame)
    assert check_table(frame, schema).fits
    made = chicle.PrivSyn(epsilon=1, delta=1e-9, generator="descent").fit(frame, schema).sample(seed=0)
    assert list(made) == list(frame)
    assert (made.dtypes == frame.dtypes).all()
    assert check_table(made, schema).fits, "labels, bounds and the map hold on every row"
    assert abs(len(made) - len(frame)) < 0.02 * len(frame)
    for name in ("age", "fnlwgt", "educational-num", "hours-per-week"):
        assert abs(made[name].mean() / frame[name].mean() - 1) < 0.05, name
        assert abs(made[name].std() / frame[name].std() - 1) < 0.15, name
    for name in ("capital-gain", "capital-loss"):
        assert abs((made[name] == 0).mean() - (frame[name] == 0).mean()) < 0.02, "those without any keep none"
    rich = [(table["income"] == ">50K").groupby(table["education"]).mean() for table in (frame, made)]
    for level in ("HS-grad", "Some-college", "Bachelors", "Masters"):
        assert abs(rich[0][level] - rich[1][level]) < 0.1


@pytest.mark.parametrize("make", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas], ids=["pd", "pl", "pa"])
def test_the_income_survey_comes_back_in_its_codes(shared_data: Path, make: Any) -> None:
    read = pd.read_csv(shared_data / "acs2018_income" / "raw.csv.gz", nrows=20_000)
    frame = make(read)
    draft = chicle.draft_schema(frame)
    listed = {
        name: {"type": "categorical", "values": sorted(read[name].dropna().unique()), "missing": True}
        for name in draft.undiscovered
    }
    assert listed, "the draft leaves texts of many values to be discovered"
    schema = chicle.Schema({**draft.columns, **listed}, reviewed=False).mark_reviewed("the questionnaire")
    source = open_source(frame, schema)
    records = source.records(Codec(schema))
    again = decode_table(records, Codec(schema), source.form, rng=np.random.default_rng(0))
    codes = read_records(again, schema)
    for name in schema.domain:
        np.testing.assert_array_equal(codes[name], records[name])
    table, back = (pd.DataFrame(x) if isinstance(x, pd.DataFrame) else x.to_pandas() for x in (frame, again))
    for name in ("Income", "Vehicle occupancy", "Travel time to work", "Race"):
        assert back[name].dtype == table[name].dtype
        np.testing.assert_array_equal(back[name].isna(), table[name].isna())


def test_a_tiny_coded_table_needs_no_more_than_a_draft(shared_data: Path) -> None:
    frame = pd.read_parquet(shared_data / "titanic" / "data.parquet")
    schema = chicle.draft_schema(frame).mark_reviewed("the page of the data")
    made = chicle.Independent(epsilon=1, delta=1e-9).fit(frame, schema).sample(seed=0)
    assert (made.dtypes == frame.dtypes).all()
    assert check_table(made, schema).fits


def test_what_is_discovered_in_adult_can_be_trusted(shared_data: Path) -> None:
    table = pd.read_csv(shared_data / "adult_raw" / "data.csv.gz")
    names = ["occupation", "native-country", "fnlwgt", "capital-gain", "income"]
    told: dict[str, Any] = {
        "occupation": {"type": "open"},
        "native-country": {"type": "open"},
        "fnlwgt": {"type": "integer", "min": 0, "max": 2_000_000, "bins": "private"},
        "capital-gain": {"type": "integer", "min": 0, "max": 100_000, "bins": "private"},
        "income": {"type": "categorical", "values": sorted(table["income"].unique())},
    }
    synth = chicle.Prism(epsilon=3, delta=1e-9).fit(table[names], Schema(told))
    found = synth.release_.schema.columns
    for name in ("occupation", "native-country"):
        counts = table[name].value_counts()
        labels = found[name].labels or ()
        assert counts[labels[0]] > counts.max() - 300
        assert set(counts.index[counts > 400]) <= set(labels), "what is frequent is found"
        assert not set(counts.index[counts < 10]) & set(labels), "what is rare is not"
    gains = found["capital-gain"].to_dict()["bins"]
    assert gains[:2] == [0, 1], "92 % have none"
    assert any(90_000 <= edge < 100_000 for edge in gains), "and 244 have 99,999"
    codes = found["fnlwgt"].encode(pa.chunked_array([table["fnlwgt"]]), refuse("fnlwgt"))
    shares = np.bincount(codes, minlength=found["fnlwgt"].size) / len(table)
    assert found["fnlwgt"].size == 32
    assert shares.max() < 0.1
    made = synth.sample(seed=0)
    for name in ("fnlwgt", "capital-gain"):
        edges = np.unique(np.quantile(table[name], np.linspace(0, 1, 21)))
        real, synthetic = (np.bincount(np.searchsorted(edges, t[name], "right"), minlength=22) for t in (table, made))
        assert abs(real / len(table) - synthetic / len(made)).sum() / 2 < 0.05
