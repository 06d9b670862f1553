"""Linked tables on the command line: named when they are read, in a folder when they are written.

A folder has a file for each table, of its name: ``made/patients.csv`` and ``made/visits.csv``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from chicle._write import replacing, trying
from chicle.cli.arguments import Parser, tables
from chicle.cli.ledger import opened_ledger
from chicle.cli.output import check_output, estimated_rows
from chicle.cli.terminal import Progress, say, warn
from chicle.codecs import Codec
from chicle.counting.records import Records
from chicle.errors import ParameterError, SchemaError
from chicle.linked.remarks import remarks
from chicle.releases.release import Release
from chicle.schema import Schema
from chicle.schema.linked import LinkedSchema
from chicle.sources import decode_table
from chicle.sources.frames import Form
from chicle.sources.linked import LinkedSource
from chicle.sources.table_files import check_ending, write_explained

__all__ = ["add_ending", "add_tables", "check_tables", "in_folder", "named", "run_linked", "sample_linked"]

_ENDINGS = ("csv", "parquet", "arrow")
_RELEASE = "release.chicle"


def add_tables(parser: Parser) -> None:
    """Add the linked tables, and the kind of files in which they are written."""
    parser.add_argument(
        "--table",
        metavar="NAME=FILE",
        action="append",
        default=[],
        help="one of several linked tables, instead of DATA: its name in the schema, and a file or a pattern",
    )


def add_ending(parser: Parser) -> None:
    """Add the kind of files in which linked tables are written."""
    parser.add_argument(
        "--ending", choices=_ENDINGS, help="the kind of files of linked tables in the folder OUT (default csv)"
    )


def check_tables(arguments: argparse.Namespace) -> bool:
    """Return whether linked tables are named; an error if no table is, or both kinds are."""
    if bool(arguments.table) == bool(arguments.data):
        raise ParameterError("name a table: DATA, or several linked ones, each with --table NAME=FILE; not both")
    if arguments.table and arguments.engine == "spark":
        raise ParameterError("linked tables are read on this machine; leave --engine out")
    if arguments.ending is not None and not arguments.table:
        raise ParameterError("--ending is for linked tables; one table is written by the ending of OUT")
    return bool(arguments.table)


def run_linked(
    arguments: argparse.Namespace,
    mechanism: Callable[[argparse.Namespace], tuple[Schema, Any, dict[str, Any]]],
    made: Callable[[Release, argparse.Namespace, Callable[[], int]], int],
) -> int:
    """Fit linked tables, and write the synthetic ones into a folder; return the exit code.

    Parameters
    ----------
    arguments
        Those of the command.
    mechanism
        Returns the schema, the mechanism, and the analyses that are asked of a fit.
    made
        Saves a release, writes, and never loses the release.
    """
    schema, synth, asked = mechanism(arguments)
    if not isinstance(schema, LinkedSchema):
        raise SchemaError(f"{arguments.schema} declares one table; for linked ones write `tables:` with each of them")
    given = named(arguments)
    if arguments.release is None and not arguments.no_release:
        arguments.release = str(Path(arguments.output, _RELEASE))
    kept = [] if arguments.ledger is None else [arguments.ledger]
    folder = _folder(arguments, schema, [*kept, *(path for paths in given.values() for path in paths)])
    if arguments.release is not None:
        check_output(arguments.release, arguments.force, inputs=[arguments.schema, *kept])
    with Progress(quiet=arguments.quiet) as progress:
        progress.say("reading the tables")
        source = LinkedSource(given, schema, threads=arguments.threads)
        _rehearse(schema, source.form, folder, arguments.ending)
        if not (arguments.quiet or arguments.json):
            for one in remarks(schema.layout, source.joined()[1]):
                warn(f"NOT PRIVATE: {one}")
        release = synth.fit(source, schema, ledger=opened_ledger(arguments, synth), **asked).release_
        rows: dict[str, int] = {}

        def write() -> int:
            rows.update(_write(release, arguments, folder, progress))
            return sum(rows.values())

        made(release, arguments, write)
    _say(release, rows, arguments, kept=arguments.release, paid=True)
    return 0


def sample_linked(
    release: Release, schema: LinkedSchema, arguments: argparse.Namespace, where: Mapping[str, Any] | None
) -> int:
    """Draw linked tables from a release into a folder; return the exit code.

    Parameters
    ----------
    release, schema, arguments
        What to draw from, and how.
    where
        Values of columns of the parents, as for `Release.sample`.
    """
    given = [] if arguments.given is None else [arguments.given]
    folder = _folder(arguments, schema, [arguments.release, *given])
    with Progress(quiet=arguments.quiet) as progress:
        rows = _write(release, arguments, folder, progress, where=where, given=arguments.given)
    _say(release, rows, arguments, kept=None, paid=False)
    return 0


def in_folder(folder: str, schema: LinkedSchema) -> dict[str, Path]:
    """Return the file of each table in a folder: the one of its name."""
    if not Path(folder).is_dir():
        raise ParameterError(f"{folder} is not a folder; linked tables are in a folder, with a file for each of them")
    found = {}
    for name in schema.tables:
        files = [
            path for path in sorted(Path(folder).iterdir()) if path.name.startswith(f"{name}.") and _is_table(path)
        ]
        if len(files) != 1:
            many = "no file" if not files else f"{len(files)} files"
            raise ParameterError(f"{folder} has {many} of table {name!r}; it needs one, such as {name}.csv")
        found[name] = files[0]
    return found


def _is_table(path: Path) -> bool:
    try:
        check_ending(path)
    except ParameterError:
        return False
    return True


def named(arguments: argparse.Namespace) -> dict[str, list[Path]]:
    """Return the files of each table of `--table NAME=FILE`."""
    found: dict[str, list[Path]] = {}
    for text in arguments.table:
        name, equals, pattern = text.partition("=")
        if not (name and equals and pattern):
            raise ParameterError(f"--table takes NAME=FILE, such as patients=patients.csv, not {text!r}")
        found.setdefault(name, []).extend(tables(arguments, pattern))
    return found


def _paths(folder: Path, schema: LinkedSchema, ending: str | None) -> dict[str, Path]:
    return {name: folder / f"{name}.{ending or 'csv'}" for name in schema.tables}


def _folder(arguments: argparse.Namespace, schema: LinkedSchema, inputs: list[Any]) -> Path:
    """Return the folder of the output, which is made if it is missing; its files must not exist without --force."""
    folder = Path(arguments.output)
    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"{folder} is a file; linked tables are written into a folder, so name one")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise ParameterError(f"{folder} cannot be made: {error.strerror}; choose another place") from None
    for path in _paths(folder, schema, arguments.ending).values():
        check_output(str(path), arguments.force, inputs=inputs)
    return folder


def _rehearse(schema: LinkedSchema, form: Form, folder: Path, ending: str | None) -> None:
    """Write empty tables of these types, to find out before the fit whether the format can hold them."""
    none = Records(dict.fromkeys(schema.domain, ()), schema.domain)
    plain = Form("tables", tables={name: Form("pyarrow", one.types) for name, one in form.tables.items()})
    made = decode_table(none, Codec(schema), plain)
    for name, path in _paths(folder, schema, ending).items():
        with trying(path) as beside:
            write_explained(made[name], beside, path)


def _write(
    release: Release,
    arguments: argparse.Namespace,
    folder: Path,
    progress: Progress,
    *,
    where: Mapping[str, Any] | None = None,
    given: str | None = None,
) -> dict[str, int]:
    """Draw the tables, write each, and return how many rows it has."""
    schema = release.schema
    assert isinstance(schema, LinkedSchema)  # noqa: S101 - the callers' case
    progress.say("making records")
    rows = arguments.n
    if rows is None and where is None and given is None:
        rows = estimated_rows(release)
    made: Mapping[str, Any] = release.sample(
        rows, arguments.seed, where=where, given=given, threads=arguments.threads, progress=progress.note
    )
    found = {}
    for name, path in _paths(folder, schema, arguments.ending).items():
        table = made[name] if isinstance(made[name], pa.Table) else pa.table(made[name])
        with replacing(path) as beside:
            write_explained(table, beside, path)
        found[name] = len(table)
    return found


def _say(
    release: Release, rows: Mapping[str, int], arguments: argparse.Namespace, *, kept: str | None, paid: bool
) -> None:
    if arguments.json:
        facts = {"output": arguments.output, "rows": dict(rows), "release": kept, "mechanism": release.mechanism}
        say(json.dumps({**facts, "notes": release.notes, "privacy": release.ledger.figures()}, indent=1))
    elif not arguments.quiet:
        written = ", ".join(f"{number:,} rows of {name}" for name, number in rows.items())
        more = [] if kept is None else [f"Kept the release in {kept}: `chicle sample {kept} -o OUT` costs nothing."]
        weak = [f"WEAK: {one}." for one in release.weakness]
        cost = (
            release.ledger.summary() if paid else "This draw cost nothing: the release was paid for when it was made."
        )
        say("\n".join([f"Wrote {written} to {arguments.output}.", *more, *release.notes, *weak, cost]))
