"""`chicle` without a command, on a terminal: the next step for the files in this folder. It reads no table."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator
from pathlib import Path

from chicle.cli.terminal import say
from chicle.errors import ChicleError, ParameterError
from chicle.releases.release import load
from chicle.schema import Schema
from chicle.sources.table_files import check_ending

__all__ = ["offer_next_step"]

_MOST_FILES = 2_000  # looked at; in a larger folder a guess would be of little use
_MOST_BYTES = 2**20  # of a file that may be a schema
_BUDGET = "--epsilon 1 --delta 1e-9"
_LAST = "`chicle --help` shows the whole way, `chicle ui` opens a page to work in."


def offer_next_step(folder: Path) -> int:
    """Print the next step and its command; return the exit code."""
    say("\n".join([*_steps(folder), "", _LAST]))
    return 0


def _steps(folder: Path) -> list[str]:
    files = [path for path, _ in zip(sorted(folder.iterdir()), range(_MOST_FILES), strict=False) if path.is_file()]
    releases = [path for path in files if path.suffix == ".chicle"]
    made = {path.stem for path in releases}  # a table of the same name is synthetic
    tables = [path for path in files if _is_table(path) and _stem(path) not in made]
    schemas = dict(_schemas(files))
    reports = {path.stem for path in files if path.suffix in (".html", ".htm")}
    lines: list[str] = []
    for path in releases:
        if path.stem in reports:
            lines += [f"{path.name} has a report. More tables cost nothing:", _sample(path)]
        else:
            lines += [f"{path.name} is a release without a report:", _report(path)]
    for path, schema in schemas.items():
        if not schema.reviewed:
            lines += [
                (
                    f"{path.name} is a draft that nobody has reviewed. Replace what was read from the data by public "
                    "knowledge, then set `reviewed: true`:"
                ),
                *(["  chicle ui " + _quoted(_table_of(path, tables))] if tables else [f"  edit {_quoted(path)}"]),
            ]
        elif tables and not any(_is_of(release, schema) for release in releases):
            table = _quoted(_table_of(path, tables))
            lines += [
                f"{path.name} is reviewed. See what a budget buys, then make a table:",
                f"  chicle plan {_quoted(path)} {_BUDGET}",
                (
                    f"  chicle synth {table} -s {_quoted(path)} -o synthetic.csv {_BUDGET} "
                    f"--release {_quoted(path.with_suffix('.chicle'))}"
                ),
            ]
    if not lines and tables:
        path = tables[0]
        lines = [
            f"{path.name} is a table without a schema. Draft one, which reads the table and is NOT PRIVATE:",
            f"  chicle schema draft {_quoted(path)} -o {_quoted(path.with_name(f'{_stem(path)}.yaml'))}",
            "or do all of it in a page in your browser, which nothing leaves:",
            f"  chicle ui {_quoted(path)}",
        ]
    return lines or ["There is no table, schema or release in this folder. See the whole way on built-in data:", _DEMO]


_DEMO = "  chicle demo"


def _report(path: Path) -> str:
    return f"  chicle report {_quoted(path)} -o {_quoted(path.with_suffix('.html'))}"


def _sample(path: Path) -> str:
    return f"  chicle sample {_quoted(path)} -o more.csv"


def _is_table(path: Path) -> bool:
    try:
        check_ending(path)
    except ParameterError:
        return False
    return True


def _schemas(files: list[Path]) -> Iterator[tuple[Path, Schema]]:
    for path in files:
        if path.suffix.lower() in (".yaml", ".yml", ".json") and path.stat().st_size <= _MOST_BYTES:
            try:
                yield path, Schema.load(path)
            except ChicleError:
                continue  # another file, or a schema with a mistake, which `chicle schema check` explains


def _is_of(path: Path, schema: Schema) -> bool:
    """Return whether a release is of a table with these columns."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return list(load(path).schema.columns) == list(schema.columns)
    except ChicleError:
        return False


def _table_of(schema: Path, tables: list[Path]) -> Path:
    """Return the table of the same name as a schema, or the first one."""
    return next((table for table in tables if _stem(table) == schema.stem), tables[0])


def _stem(path: Path) -> str:
    return path.name.split(".")[0]


def _quoted(path: Path) -> str:
    return shlex.quote(path.name)
