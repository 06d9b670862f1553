"""What the page does: open a table, review its draft, choose a budget, make a synthetic table. No browser in here.

There is one session for a process; every tab shows it. Only one job runs at a time. What was read from the private
table (the draft and the pictures) is in memory and ends with the process; what is written goes to one folder beside
the table's name: the schema, the ledger, and the release, table and report of each run. Files are written whole or not
at all, and the ledger before any noise is drawn.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from chicle._checks import integer
from chicle._write import replacing, trying
from chicle.dossier import write_dossier
from chicle.errors import ArtefactError, ChicleError, ParameterError, SchemaError
from chicle.mechanisms.base import Mechanism
from chicle.mechanisms.variants import named_mechanism
from chicle.plans import Plan
from chicle.privacy import Budget, Ledger
from chicle.privacy.ledger import with_aside
from chicle.releases.release import Release
from chicle.reports import report
from chicle.schema import Schema
from chicle.schema.flags import Flags
from chicle.sources import check_table, open_source
from chicle.sources.draft import draft_schema
from chicle.sources.files import find_files
from chicle.sources.frames import arrow_columns
from chicle.sources.table_files import check_ending, read_table, write_explained
from chicle.ui.balance import NAME, found
from chicle.ui.job import Job
from chicle.ui.pictures import Bars, Offer, bars_of

__all__ = ["EPSILONS", "MECHANISMS", "Choice", "Results", "Session", "Table"]

EPSILONS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
"""What the slider offers."""

MECHANISMS = ("prism", "privsyn", "aim", "mst", "independent")
"""What may be chosen; others are on the command line."""


@dataclass
class Table:
    """The private table that is open, and what was read of it: NOT PRIVATE, never written.

    Attributes
    ----------
    given
        The file, or the pattern of files, as the user gave it.
    schema
        The draft, or what the user made of it.
    pictures
        The distribution of each column when it was drafted.
    flags
        What to look at in each column.
    confirmed
        The columns that the user said are public.
    saved
        Whether the reviewed schema is in its file, and the table fits it.
    problems
        What of the table did not fit the schema that was saved last.
    """

    given: str
    schema: Schema
    pictures: Mapping[str, Bars | None]
    flags: Mapping[str, Flags]
    confirmed: set[str] = field(default_factory=set)
    saved: bool = False
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Choice:
    """What a run will spend, and how."""

    epsilon: float = 1.0
    total: float = 1.0
    delta: float = 1e-9
    records: int = 100_000
    mechanism: str = "prism"
    ending: str = ".csv"


@dataclass(frozen=True)
class Results:
    """The files of a run, and the release itself, in case a file could not be written."""

    number: int
    choice: Choice
    seed: int
    release: Release
    release_path: Path
    table_path: Path
    report_path: Path
    dossier_folder: Path

    @property
    def dossier_path(self) -> Path:
        """The page of the dossier; the same as text and its manifest are beside it."""
        return self.dossier_folder / "dossier.html"

    @property
    def complete(self) -> bool:
        """Whether all files are there."""
        return all(path.exists() for path in (self.release_path, self.table_path, self.report_path, self.dossier_path))


class Session:
    """Everything that the page shows and does.

    Parameters
    ----------
    folder
        Where tables are looked for, and where results go.
    threads
        How many threads to use; all there are, if ``None``.
    """

    def __init__(self, folder: Path, threads: int | None = None) -> None:
        self.folder = folder.resolve()
        self.threads = threads
        self.table: Table | None = None
        self.choice = Choice()
        self.ledger: Ledger | None = None
        self.results: list[Results] = []
        self.job: Job | None = None
        self._permit: str | None = None
        self._lock = threading.RLock()
        self._uploads: Path | None = None
        self._plans: dict[tuple[object, ...], Plan] = {}
        self._plans_of: Schema | None = None

    # Opening a table.

    def tables(self) -> list[Path]:
        """Return the tables in the folder."""
        return [path for path in sorted(self.folder.iterdir()) if path.is_file() and _is_table(path)]

    def open(self, given: str, schema: Path | None = None) -> None:
        """Read a table, draft its schema and its pictures: a job. What was open stays open until that is done."""
        paths = find_files(self._path(given))
        for path in paths:
            check_ending(path)
            if not path.exists():
                raise ArtefactError(f"there is no file {path}; is the path right?")

        asked = None if schema is None else Schema.load(schema)

        def work(job: Job) -> None:
            job.step("Reading the table")
            parts = [read_table(path) for path in paths]
            job.step("Drafting a schema")
            drafted = draft_schema(parts[0] if len(parts) == 1 else paths)
            known = _saved(self._results_of(given) / "schema.yaml", drafted) if schema is None else asked
            if known is not None and set(known.columns) != set(drafted.columns):
                raise SchemaError(f"{schema} declares other columns than the table has; give the schema of this table")
            job.step("Drawing each column")
            pictures: dict[str, Bars | None] = {}
            for name in drafted.columns:
                values = [arrow_columns(part.select([name]))[name] for part in parts]
                joined = _joined(values)
                pictures[name] = None if joined is None else bars_of(name, drafted.columns[name], joined)
                job.share(len(pictures) / len(drafted.columns))
            made = Table(given, drafted if known is None else known, pictures, dict(drafted.flags))
            if known is not None and known.reviewed:
                made.confirmed = set(known.columns)
            with self._lock:
                self.table, self.results = made, []
                self.ledger = found(self.ledger_path)
                if self.ledger is not None:
                    kept = self.ledger.budget
                    self.choice = replace(self.choice, total=kept.epsilon or 1.0, delta=kept.delta or 1e-9)

        self._start("Opening the table", work, then="review", back="open")

    def upload(self, name: str) -> Path:
        """Return where to put a file that the browser sends: a folder that ends with the session."""
        check_ending(name)
        if Path(name).name != name or name.startswith("."):
            raise ParameterError(f"{name!r} is no plain file name; rename the file")
        if self._uploads is None:
            self._uploads = Path(tempfile.mkdtemp(prefix="chicle-ui-"))
        return self._uploads / name

    # Reviewing the draft.

    def declare(self, index: int, declaration: Mapping[str, Any]) -> None:
        """Declare one column anew and confirm that the declaration is public."""
        with self._lock:
            table = self._opened()
            self._idle()
            name = list(table.schema.columns)[index]
            declared = table.schema.to_dict()
            declared["columns"] = {**declared["columns"], name: dict(declaration)}
            declared["reviewed"] = False
            table.schema = Schema.from_dict(declared)
            table.confirmed.add(name)
            table.saved, table.problems = False, ()

    def persons(self, person: str | None, most: int) -> None:
        """Declare which column identifies persons, and how many rows a person may have."""
        with self._lock:
            table = self._opened()
            self._idle()
            declared = table.schema.to_dict()
            declared["reviewed"] = False
            for key, value in (("person", person), ("max_records", integer("rows of a person", most, 1))):
                declared.pop(key, None)
                if value is not None:
                    declared[key] = value
            if person is not None:
                declared["columns"][person] = {"type": "drop"}
                table.confirmed.add(person)
            elif table.schema.person is not None:
                table.confirmed.discard(table.schema.person)
            table.schema = Schema.from_dict(declared)
            table.saved, table.problems = False, ()

    def save_schema(self) -> None:
        """Save the schema as reviewed, and check the table against it: a job. All columns must be confirmed."""
        with self._lock:
            table = self._opened()
            left = [name for name in table.schema.columns if name not in table.confirmed]
            if left:
                raise ParameterError(f"column {left[0]!r} is not confirmed yet, and {len(left) - 1} others")
            reviewed = table.schema.mark_reviewed()

        def work(job: Job) -> None:
            job.step("Saving the schema")
            self.results_folder.mkdir(parents=True, exist_ok=True)
            with replacing(self.schema_path) as beside:
                reviewed.save(beside)
            job.step("Checking that the table fits")
            check = check_table(find_files(self._path(table.given)), reviewed)
            with self._lock:
                table.schema, table.problems, table.saved = reviewed, check.problems, check.fits
                job.then = "budget" if check.fits else "review"

        self._start("Saving the schema", work, then="budget", back="review")

    # Choosing a budget.

    def choose(self, choice: Choice) -> None:
        """Choose what the next run spends; nothing is spent by that."""
        with self._lock:
            self._idle()
            if choice.mechanism not in MECHANISMS:
                raise ParameterError(f"the mechanism must be one of {', '.join(MECHANISMS)}")
            check_ending(f"table{choice.ending}")
            if self.ledger is not None:
                kept = self.ledger.budget
                choice = replace(choice, total=kept.epsilon or choice.total, delta=kept.delta or choice.delta)
            if choice.epsilon > choice.total:
                raise ParameterError(
                    f"a run of epsilon {choice.epsilon:g} is more than this table may cost in all, {choice.total:g}"
                )
            self._mechanism(choice).plan(self._reviewed(), integer("rows", choice.records, 0))
            self.choice = choice

    def offers(self) -> list[Offer]:
        """Return what each epsilon would buy with the chosen mechanism, before any data is counted."""
        return [self.offer(epsilon) for epsilon in EPSILONS]

    def offer(self, epsilon: float) -> Offer:
        """Return what one epsilon would buy; a plan of many columns takes a while, so it is kept."""
        choice, schema = self.choice, self._reviewed()
        key = (choice.mechanism, choice.delta, choice.records, epsilon)
        if self._plans_of is not schema:
            self._plans_of, self._plans = schema, {}
        if key not in self._plans:
            self._plans[key] = self._mechanism(replace(choice, epsilon=epsilon)).plan(schema, choice.records)
        plan = self._plans[key]
        singles = [step for step in plan.one_ways if step.error is not None]
        sigmas = [step.sigma for step in plan.one_ways if step.sigma is not None]
        rho, room = with_aside(plan.budget).rho, self._budget(choice.total).rho * (1 + 1e-9)
        affordable = epsilon <= choice.total * (1 + 1e-12) and self.balance_kept + rho <= room
        return Offer(epsilon, rho, _range(singles), _range(plan.pairs), max(sigmas, default=None), affordable)

    @property
    def balance_kept(self) -> float:
        """The rho that the ledger of this table says is spent."""
        return 0.0 if self.ledger is None else self.ledger.spent

    def balance(self, more: float = 0.0) -> tuple[float, float]:
        """Return the epsilon that is spent once `more` rho is, and the epsilon that may be spent in all."""
        total = self._budget(self.choice.total) if self.ledger is None else self.ledger.budget
        spent = self.balance_kept + more
        at = total.delta or self.choice.delta
        spent = min(spent, total.rho)
        # What is set aside for discovery counts as spent: it buys nothing else.
        return (total.epsilon_at(at, spent) if spent else 0.0), total.epsilon or self.choice.total

    def permit(self) -> str:
        """Return a permit to spend once; an earlier one is void, so that two tabs cannot spend twice."""
        with self._lock:
            self._permit = secrets.token_urlsafe(16)
            return self._permit

    # Making the table.

    def run(self, permit: str) -> None:
        """Spend the chosen budget and make the table: a job."""
        with self._lock:
            self._idle()
            table, schema, choice = self._opened(), self._reviewed(), self.choice
            if not table.saved:
                raise ParameterError("save the reviewed schema first")
            if self._permit is None or not secrets.compare_digest(permit, self._permit):
                raise ParameterError("this page was shown before something was spent; look at the balance again")
            self._permit = None
            synth = self._mechanism(choice)
            paths = find_files(self._path(table.given))
            self.results_folder.mkdir(parents=True, exist_ok=True)
            results = self._next_results(choice)
            for path in (*results[1:4], self.ledger_path):
                _check_room(path)
            if self.ledger is None:
                self.ledger = Ledger.open(self.ledger_path, self._budget(choice.total))
            ledger = self.ledger

        def work(job: Job) -> None:
            job.step("Reading the table")
            source = open_source(paths, schema, threads=self.threads, progress=job.share)
            job.step("Selecting and measuring: the budget is spent here")
            synth.progress = job.note
            release = synth.fit(source, schema, ledger=ledger).release_
            del source
            number, *written = results
            made = Results(number, choice, secrets.randbits(32), release, *written)
            with self._lock:
                self.results.append(made)
            self._write(made, job)

        self._start("Making the synthetic table", work, then="results", back="budget")

    def write_again(self) -> None:
        """Write the files of the last run that are missing, at no cost: a job."""
        with self._lock:
            self._idle()
            if not self.results:
                raise ParameterError("there is no run yet")
            made = self.results[-1]
        self._start("Writing the files again", lambda job: self._write(made, job), then="results", back="budget")

    def _write(self, made: Results, job: Job) -> None:
        """Write what was paid for: the release first, for all else can be made from it."""
        if not made.release_path.exists():
            made.release.save(made.release_path)
        if not made.table_path.exists():
            job.step("Making records")
            rows = made.release.total
            parts = made.release.sample_parts(rows, made.seed, threads=self.threads, progress=job.note)
            with replacing(made.table_path) as beside:
                write_explained(_told(parts, rows, job), beside, made.table_path)
        if not made.report_path.exists():
            job.step("Writing the report")
            report(made.report_path, made.release, seed=made.seed % 2**31, threads=self.threads)
        if not made.dossier_path.exists():
            job.step("Writing the dossier")
            write_dossier(made.release_path, made.dossier_folder, force=True)

    # Everything else.

    @property
    def results_folder(self) -> Path:
        """Where the files of this table go."""
        return self._results_of(self._opened().given)

    @property
    def schema_path(self) -> Path:
        """The file of the reviewed schema."""
        return self.results_folder / "schema.yaml"

    @property
    def running(self) -> bool:
        """Whether a job is running."""
        return self.job is not None and self.job.state == "running"

    def cancel(self) -> None:
        """Ask the running job to end."""
        if self.job is not None and self.running:
            self.job.cancel()

    def close(self) -> None:
        """End the session: wait until the job has removed what was half written, and forget uploaded tables."""
        self.cancel()
        if self.job is not None:
            self.job.join()
        if self._uploads is not None:
            shutil.rmtree(self._uploads, ignore_errors=True)

    def _start(self, title: str, work: Callable[[Job], None], *, then: str, back: str) -> None:
        with self._lock:
            self._idle()
            self.job = Job(title, work, then, back)
            self.job.start()

    def _idle(self) -> None:
        if self.running:
            raise ParameterError("wait until what is running has ended, or cancel it")

    def _opened(self) -> Table:
        if self.table is None:
            raise ParameterError("open a table first")
        return self.table

    def _reviewed(self) -> Schema:
        table = self._opened()
        if not table.saved:
            raise ParameterError("review every column and save the schema first")
        return table.schema

    def _mechanism(self, choice: Choice) -> Mechanism:
        make = named_mechanism(choice.mechanism)
        return make(epsilon=choice.epsilon, delta=choice.delta, threads=self.threads)

    def _budget(self, epsilon: float) -> Budget:
        return with_aside(Budget(epsilon=epsilon, delta=self.choice.delta))

    def _path(self, given: str) -> str:
        """Return a path as the user means it: from the folder of the session."""
        return str(self.folder / Path(given).expanduser())

    def _results_of(self, given: str) -> Path:
        stem = Path(given).name.split(".")[0].strip("*?[]-_ ") or "table"
        return self.folder / f"{stem}-chicle"

    @property
    def ledger_path(self) -> Path:
        """The file of the ledger."""
        return self.results_folder / NAME

    def _next_results(self, choice: Choice) -> tuple[int, Path, Path, Path, Path]:
        folder, number = self.results_folder, 1
        while any(folder.glob(f"*-{number}.*")):
            number += 1
        names = (f"release-{number}.chicle", f"synthetic-{number}{choice.ending}", f"report-{number}.html")
        first, second, third = (folder / name for name in names)
        return number, first, second, third, folder / f"dossier-{number}"


def _is_table(path: Path) -> bool:
    try:
        check_ending(path)
    except ParameterError:
        return False
    return not path.name.startswith(".")


def _saved(path: Path, drafted: Schema) -> Schema | None:
    """Return a schema that was saved for this table before, if it still names the same columns."""
    if not path.exists():
        return None
    try:
        known = Schema.load(path)
    except ChicleError:
        return None
    return known if set(known.columns) == set(drafted.columns) else None


def _joined(values: list[Any]) -> Any:  # noqa: ANN401 - Arrow has no types
    """Return a column of several files as one; None where their types differ."""
    if len({value.type for value in values}) > 1:
        return None
    return pa.chunked_array([chunk for value in values for chunk in value.chunks], values[0].type)


def _check_room(path: Path) -> None:
    """Raise if a file cannot be written, before anything is spent."""
    try:
        with trying(path) as beside:
            beside.write_bytes(b"\0" * 4096)
    except OSError as error:
        raise ArtefactError(f"{path} cannot be written: {error.strerror}; make room. Nothing was spent") from None


def _told(parts: Iterator[Any], rows: int, job: Job) -> Iterator[Any]:
    done = 0
    for part in parts:
        if not done:
            job.step("Writing the table")
        yield part
        done += len(part)
        job.share(done / max(rows, 1))


def _range(steps: list[Any]) -> tuple[float, float] | None:
    """Return the least and the largest error of some steps of a plan."""
    if not steps:
        return None
    return (
        min(step.error if step.least_error is None else step.least_error for step in steps),
        max(step.error for step in steps),
    )
