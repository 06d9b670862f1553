"""Chaos: command lines that are killed, starved of disk, interrupted, and given sources that change.

`benches/chaos.py` runs hundreds of rounds, `tests/cli/test_chaos.py` a few. See there for what is checked.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import chicle
from chicle.privacy import Event
from chicle.privacy.store import read_kept
from chicle.sources.table_files import read_table

STRIKES = ("kill", "kill at write", "stop", "full", "changed", "cut", "race")
ENDINGS = ("csv", "parquet", "csv.gz")
TOTAL = 9.0  # epsilon of each ledger
LEAST = 0.05  # epsilon of each run


class Broken(AssertionError):  # noqa: N818 - it names what it finds
    """A promise that did not hold."""


# A server that imports once, has no threads, and forks a process for each command line.
_PROCESSES: Any = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
multiprocessing.set_forkserver_preload(["tests.chaos", "chicle.cli.entry", "chicle.mechanisms", "pyarrow.parquet"])


def _child(folder: Path, argv: list[str], at: int, limit: int | None, said: str) -> None:
    """Run a command line as a process of its own does."""
    import resource

    from chicle.cli import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    file = os.open(said, os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    if limit is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    if at:
        real, left = os.fsync, [at]

        def fsync(file: Any) -> None:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            real(file)

        os.fsync = fsync  # type: ignore[assignment]
    code = 130
    try:
        code = main(argv)
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = 130  # between two statements of `main`
    os._exit(code)


class Run:
    """A command line that runs."""

    number = 0

    def __init__(self, folder: Path, argv: list[str], at: int, limit: int | None) -> None:
        Run.number += 1
        self._said = folder / f"said-{Run.number}"
        self._process = _PROCESSES.Process(target=_child, args=(folder, argv, at, limit, str(self._said)))
        self._process.start()

    def send(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self._process.is_alive() and self._process.pid is not None:
            os.kill(self._process.pid, number)

    def wait(self) -> int:
        """Return the exit code."""
        self._process.join(120)
        if self._process.exitcode is None:
            self._process.kill()
            raise Broken("a run hung for two minutes")
        return int(self._process.exitcode)

    def said(self) -> str:
        """Return what it printed, once."""
        text = self._said.read_text(encoding="utf-8") if self._said.exists() else ""
        self._said.unlink(missing_ok=True)
        return text


class Chaos:
    """A folder with tables, a schema and a ledger that outlives all rounds."""

    def __init__(self, folder: Path, seed: int, rows: int = 3_000) -> None:
        self.folder, self.rng = folder, random.Random(seed)
        census = chicle.datasets.census(rows, d=4)
        columns = {name: census[name] for name in census.domain}
        chicle.Schema.from_cardinalities(census.domain, ordinal=["AGE"]).save(folder / "people.yaml")
        turned = {name: values[::-1] if name == "SEX" else values for name, values in columns.items()}
        for name, table in (("one", columns), ("other", turned)):
            pq.write_table(pa.table(table), folder / f"{name}.parquet", row_group_size=500)
        self.ledgers, self.number = 0, 0
        self.seconds = 1.0

    @property
    def ledger(self) -> Path:
        """The ledger that is in use; when it is nearly spent, another one begins."""
        return self.folder / f"people-{self.ledgers}.ledger"

    def command(self, out: str, table: str = "people.parquet", mechanism: str = "prism") -> list[str]:
        """Return the arguments of a fit on the ledger."""
        argv = ["synth", table, "-s", "people.yaml", "-o", out, "--epsilon", str(LEAST), "--delta", "1e-9"]
        return [*argv, "--mechanism", mechanism, "--ledger", self.ledger.name, "--total-epsilon", str(TOTAL), "--force"]

    def run(self, argv: list[str], *, at: int = 0, limit: int | None = None) -> Run:
        """Start a command line; at its so-manieth sync it is killed, and no file grows beyond the limit."""
        return Run(self.folder, argv, at, limit)

    def round(self, strike: str | None = None) -> str:
        """Strike once, by default in any way; check what is left; return what happened."""
        self.number += 1
        if self.number > 1 and read_kept(self.ledger).epsilon() > 0.7 * TOTAL:
            self.ledgers += 1
        shutil.copy(self.folder / "one.parquet", self.folder / "people.parquet")
        strike = strike or self.rng.choice(STRIKES)
        out = f"made.{self.rng.choice(ENDINGS)}"
        mechanism = self.rng.choice(["prism", "mst", "independent"])
        before = self.ledger.read_bytes() if self.ledger.exists() else b""
        spent = read_kept(self.ledger).spent if before else 0.0
        whole = out if (self.folder / out).exists() else None
        old = (self.folder / out).read_bytes() if whole else None
        runs = self._strike(strike, self.command(out, mechanism=mechanism))
        codes = []
        for run in runs:
            codes.append(run.wait())
            self._check_said(run.said(), codes[-1])
        if strike == "race" and codes != [0, 0]:
            raise Broken(f"two runs at once ended with {codes}")
        self._check_ledger(before, spent, codes)
        self._check_output(self.folder / out, old)
        # The next run works, in turn on the same ledger, and sweeps what was left.
        shutil.copy(self.folder / "one.parquet", self.folder / "people.parquet")
        begun = time.monotonic()
        after = self.run(self.command(out, mechanism=mechanism))
        if after.wait():
            raise Broken(f"the next run failed: {after.said()}")
        self.seconds = 0.7 * self.seconds + 0.3 * (time.monotonic() - begun)
        ledger = chicle.Ledger.open(self.ledger)
        if ledger.reserved or ledger.spent > ledger.budget.rho:
            raise Broken(f"rho {ledger.reserved} is still reserved")
        release = chicle.load(self.folder / "made.chicle")
        made = Counter[Event](entry.event for entry in release.ledger.entries)
        if made - Counter[Event](ledger.events):
            raise Broken("a release is not in the ledger")
        left = [one.name for one in self.folder.iterdir() if one.name.startswith(".") and f".{out}" in one.name]
        left += [one.name for one in self.folder.glob(".people-*")]
        if left:
            raise Broken(f"left behind: {left}")
        ended = "stopped" if codes[0] else "finished"
        return f"{strike}, {ended}"

    def _strike(self, strike: str, argv: list[str]) -> list[Run]:
        if strike == "kill at write":
            return [self.run(argv, at=self.rng.randint(1, 14))]
        if strike == "full":
            size = self.ledger.stat().st_size if self.ledger.exists() else 0
            return [self.run(argv, limit=size + int(10 ** self.rng.uniform(1, 5.5)))]
        run = self.run(argv)
        wait = self.rng.uniform(0.05, 0.95) * self.seconds
        if strike == "race":
            return [run, self.run(self.command("second.csv"))]
        time.sleep(wait)
        table = self.folder / "people.parquet"
        if strike == "kill":
            run.send(signal.SIGKILL)
        elif strike == "stop":
            run.send(signal.SIGINT)
        elif strike == "changed":
            shutil.copy(self.folder / "other.parquet", table)
        else:
            os.truncate(table, self.rng.randrange(table.stat().st_size))
        return [run]

    def _check_said(self, said: str, code: int) -> None:
        if "Traceback" in said:
            raise Broken(f"a traceback: {said}")
        if code not in (0, 2, 130, 1, -signal.SIGKILL, -signal.SIGINT):
            raise Broken(f"exit code {code}: {said}")

    def _check_ledger(self, before: bytes, spent: float, codes: list[int]) -> None:
        if not self.ledger.exists():
            if 0 in codes:
                raise Broken("a run that was done kept no ledger")
            return
        now = self.ledger.read_bytes()
        if not now.startswith(before[: before.rfind(b"\n") + 1]):
            raise Broken("something of the ledger is gone")
        if not now.count(b"\n"):
            return  # killed while the ledger was begun
        kept = read_kept(self.ledger)
        rho = chicle.Budget(epsilon=LEAST, delta=1e-9).rho
        if not spent <= kept.spent <= spent + len(codes) * rho * (1 + 1e-9):
            raise Broken(f"one run spent {kept.spent - spent}, and may spend {rho}")
        if codes == [0] and kept.spent < spent + 0.99 * rho:
            raise Broken("a run that was done is not in the ledger")

    def _check_output(self, path: Path, old: bytes | None) -> None:
        """The table is the old one, or a whole new one."""
        if path.exists() and path.read_bytes() != old:
            read_table(path)
        release = self.folder / "made.chicle"
        if release.exists():
            chicle.load(release)
