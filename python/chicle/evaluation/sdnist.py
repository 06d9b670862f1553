"""NIST's SDNist 2.x: the files that it reads, and its own k-marginal score of them.

SDNist compares pairs of columns, inside each PUMA where there is a column of that name: 500 (2 - mean L1 distance of
shares). It runs as it is, here or in an environment of its own, as ``sdnist@PYTHON``; none of its code is in chicle.

It knows three target tables by name and reads whole numbers, ``N`` for missing, and a text for PUMA. So tables are
written in the place of its national excerpt. A value that is a whole number stays what it is; other values and bins are
written as their codes, which the data dictionary explains. SDNist cuts AGEP, POVPIP, PINCP, PWGTP and WGTP into twenty
bins of equal share itself, and leaves INDP out of the pairs.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc

from chicle._elsewhere import ElsewhereError, python_at, run_elsewhere
from chicle.columns.base import Column
from chicle.counting.records import Records
from chicle.errors import ParameterError
from chicle.evaluation.contest import Contest
from chicle.evaluation.result import Score
from chicle.evaluation.tables import read_both, schema_of
from chicle.schema import Schema
from chicle.schema.linked import LinkedSchema

__all__ = ["check_scorer", "export_sdnist", "sdnist_score"]

_RUNNER = Path(__file__).with_name("sdnist_runner.py")
_TARGET = Path("national") / "national2019"  # one of the three names that SDNist knows
_GROUP, _DENSITY, _MISSING = "PUMA", "DENSITY", "N"
_MOST_DENSITY = 100_000  # SDNist's bins of density need a maximum above about 9,000
_INSTALL = (
    "with Python 3.10 or 3.11: python3.10 -m venv envs/sdnist && envs/sdnist/bin/pip install sdnist, "
    "then scorer='sdnist@envs/sdnist/bin/python'"
)


def export_sdnist(
    real: Any,  # noqa: ANN401 - any table, or the path of one
    synthetic: Any,  # noqa: ANN401
    schema: Schema | Mapping[str, int] | str | PathLike[str] | None,
    folder: str | PathLike[str],
) -> Path:
    """Write both tables and their data dictionary as SDNist 2.x reads them. NOT PRIVATE: the real table is among them.

    ``python -m sdnist.report FOLDER/synthetic.csv NATIONAL --data-root FOLDER`` reports on them.

    Parameters
    ----------
    real, synthetic, schema
        The tables and what their columns are, as for `evaluate`.
    folder
        Where the files go. It is made if it is not there.

    Returns
    -------
    Path
        The file of the synthetic table.
    """
    declared = schema_of(real, schema, None)
    if isinstance(declared, LinkedSchema):
        raise ParameterError("SDNist reads one table; export each alone, by `schema.tables`")
    truth, made = read_both(real, synthetic, declared)
    _write(Path(folder), declared, truth, {"synthetic.csv": made})
    return Path(folder) / "synthetic.csv"


def check_scorer(scorer: str | None) -> None:
    """Raise unless the scorer is SDNist, and its environment can be run."""
    if scorer is not None:
        _python(scorer)


def sdnist_score(contest: Contest, scorer: str) -> Score:
    """Return SDNist's k-marginal score. The tables are in a folder of this user's only as long as SDNist runs."""
    files = dict(zip(("synthetic.csv", "floor.csv", "independent.csv"), contest.others, strict=True))
    with TemporaryDirectory(prefix="chicle-sdnist-") as folder:
        _write(Path(folder), contest.schema, contest.real, files)
        try:
            written = run_elsewhere(_python(scorer), _RUNNER, [folder, *files])
        except ElsewhereError as error:
            hint = f"; it is not installed there: {_INSTALL}" if "ModuleNotFound" in str(error) else ""
            raise ParameterError(f"SDNist failed with {error}{hint}") from None
    found = json.loads(written)
    if found["left_out"]:
        raise ParameterError(f"SDNist left out {', '.join(found['left_out'])}: it does not take such names or values")
    return contest.score(
        "sdnist",
        "SDNist k-marginal",
        found["scores"],
        better="high",
        unit="score",
        source="NIST",
        note=f"SDNist {found['version']}, {'pairs in each PUMA' if _GROUP in contest.real.domain else 'pairs'}",
    )


def _python(scorer: str) -> str:
    name, _, python = scorer.partition("@")
    if name != "sdnist":
        raise ParameterError(f"there is no scorer {scorer!r}; it is 'sdnist', or 'sdnist@PYTHON'")
    if python:
        return python_at(python, scorer)
    if importlib.util.find_spec("sdnist") is None:
        raise ParameterError(f"SDNist is not installed here, and its pins fit few others; {_INSTALL}")
    return sys.executable


def _write(folder: Path, schema: Schema, real: Records, others: dict[str, Records]) -> None:
    texts = {name: _texts(name, schema.columns[name]) for name in real.domain}
    kinds = {name: _kind(known) for name, known in texts.items()}
    words: dict[str, dict[str, Any]] = {
        name: {"description": name, "values": dict(zip(known, schema.columns[name].texts, strict=True))}
        for name, known in texts.items()
    }
    (folder / _TARGET.parent).mkdir(parents=True, exist_ok=True)
    target = _table(real, texts)
    if _GROUP in texts and _DENSITY not in texts:  # SDNist describes PUMAs by their density, so the target has one
        target = target.append_column(_DENSITY, pa.array(["1"] * len(real)))
        kinds[_DENSITY] = {"dtype": "float64", "min": 1, "max": _MOST_DENSITY}
    if _DENSITY in kinds:
        words[_DENSITY] = {"description": "population density", "values": {"min": 0, "max": _MOST_DENSITY}}
    areas = {area: {"name": name} for area, name in words.get(_GROUP, {"values": {}})["values"].items()}
    jsons = {
        _TARGET.with_suffix(".json"): {"schema": kinds},
        Path("config.json"): {"k_marginal": {"group_features": [_GROUP]}},
        Path("mappings.json"): {_GROUP: areas},
        Path("data_dictionary.json"): words,
    }
    for name, held in jsons.items():
        (folder / name).write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
    pc.write_csv(target, folder / _TARGET.with_suffix(".csv"), pc.WriteOptions(quoting_style="needed"))
    for file, records in others.items():
        pc.write_csv(_table(records, texts), folder / file, pc.WriteOptions(quoting_style="needed"))


def _table(records: Records, texts: dict[str, list[str]]) -> pa.Table:
    return pa.table({name: pa.array(known).take(pa.array(records[name])) for name, known in texts.items()})


def _texts(name: str, column: Column) -> list[str]:
    """Return what is written for each code."""
    values, missing = column.texts[: column.size], [_MISSING] * bool(column.missing)
    if name == _GROUP:  # a text, that cannot be read as a number
        return [
            *(text if any(letter.isalpha() for letter in text) or "-" in text else f"P{text}" for text in values),
            *missing,
        ]
    numbers = [str(int(text)) if text.isdecimal() and text.isascii() else "" for text in values]
    plain = "" not in numbers and len(set(numbers)) == len(numbers)
    return [*(numbers if plain else map(str, range(column.size))), *missing]


def _kind(texts: Sequence[str]) -> dict[str, Any]:
    """Return what SDNist's schema says about a column."""
    numbers = all(text.isdecimal() for text in texts)
    null = {"has_null": True, "null_value": _MISSING} if _MISSING in texts else {}
    values = [int(text) for text in texts] if numbers else list(texts)
    return {"dtype": "int64" if numbers else "object", "values": values, **null}
