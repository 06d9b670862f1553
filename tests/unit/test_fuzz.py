"""Mutated schemas, releases, ledgers, tables and dates are refused in one line, or read; benches/fuzz is the long form.

The mutations are drawn from a fixed seed, so every run tries the same ones. What fuzzing finds gets a test of its own
here.
"""

import importlib
import random
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benches" / "fuzz"))
parsers = importlib.import_module("parsers")

TRIES = {"schema": 250, "artefact": 120, "ledger": 1_500, "csv": 60, "date": 500}


@pytest.mark.parametrize("target", parsers.TARGETS)
def test_mutated_files_are_refused_or_read(target: str) -> None:
    rng = random.Random(20261118)
    for seed in parsers.seeds()[target]:
        parsers.TARGETS[target](seed)
        for _, data in zip(
            range(TRIES[target] // len(parsers.seeds()[target])), parsers.mutations(seed, rng), strict=False
        ):
            parsers.TARGETS[target](data)


def test_the_seeds_are_accepted() -> None:
    """Or mutations of them would hardly get past the first check."""
    accepted = [parsers.refused(lambda: parsers.Ledger.from_json(parsers.seeds()["ledger"][0].decode()))]
    place = Path(parsers._FOLDER.name) / "accepted.json"
    place.write_bytes(parsers.seeds()["schema"][0][1:])
    accepted.append(parsers.refused(lambda: parsers.Schema.load(place)))
    place = place.with_name("accepted.csv")
    place.write_bytes(parsers.HEAD + parsers.seeds()["csv"][0][2:])
    accepted.append(parsers.refused(lambda: parsers.read_records(str(place), parsers.Schema(parsers.DECLARED))))
    assert accepted == [False] * 3
