"""The long form of `chicle audit`: every release, every mechanism, every planted bug; a record in benches/records.

    python benches/audit.py                 # about an hour of CPU time
    python benches/audit.py --runs 400 --no-record      # a quick look
    python benches/audit.py prism-k3 exact-n      # some of them; what they find replaces theirs in today's record

For each planted bug it says how many fits it took: the least on a ladder from which the bug is found at every step,
each time with a test that the first half of the fits trained.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import machine

from chicle.audit import Finding, find
from chicle.audit.cases import mechanism_cases, release_cases
from chicle.audit.finding import DELTA, LUCK
from chicle.audit.one_run import ONE_RUN
from chicle.audit.planted import BUGS
from chicle.audit.run import judge, worlds

RECORDS = Path(__file__).parent / "records"
LADDER = (100, 150, 200, 250, 300, 400, 500, 600, 800, 1_000, 1_250, 1_500, 2_000, 3_000, 5_000)


def caught(name: str, runs: int, jobs: int) -> tuple[Finding, int | None]:
    """Return what is found with all fits, and after how many fits of both tables the bug is found from there on."""
    case = BUGS[name].case
    without, with_canary = worlds(case, runs=runs, jobs=jobs, bug=name)
    first = None
    for fits in sorted({*(step for step in LADDER if step < runs), runs}, reverse=True):
        found = judge(case, without.part(slice(fits)), with_canary.part(slice(fits)), bug=name)
        if not found.broken:
            break
        first = 2 * fits
    return judge(case, without, with_canary, bug=name), first


def main() -> int:
    told = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    told.add_argument("names", nargs="*", metavar="NAME", help="cases and bugs (default: all)")
    told.add_argument("--runs", type=int, default=5_000, help="fits of each table (default 5000)")
    told.add_argument("--planted-runs", type=int, help="fits of each table with a bug (default as --runs)")
    told.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: all cores)")
    told.add_argument("--no-record", action="store_true", help="print only")
    arguments = told.parse_args()
    rows = []
    wanted = set(arguments.names)
    for name in [bug for bug in BUGS if not wanted or bug in wanted]:
        found, fits = caught(name, arguments.planted_runs or arguments.runs, arguments.jobs)
        rows.append({**found.to_dict(), "caught_at_fits": fits})
        shown(found, f"planted: {BUGS[name].what}; found from {fits} fits on")
    for name in [case for case in (ONE_RUN, *release_cases(), *mechanism_cases()) if not wanted or case in wanted]:
        found = find(name, runs=arguments.runs, jobs=arguments.jobs)
        rows.append(found.to_dict())
        shown(found, "BROKEN" if found.broken else "")
    if not arguments.no_record:
        keep(rows)
    wrong = [row for row in rows if row["broken"] is (row["bug"] is None)]
    return 1 if wrong else 0


def keep(rows: list[dict[str, Any]]) -> None:
    """Write the findings to the record of today and of this machine, in place of earlier ones of the same cases."""
    place = RECORDS / f"audit-{time.strftime('%Y-%m-%d')}-{machine.slug()}.json"
    before = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {"findings": [], "commands": []}
    again = {(row["case"], row["bug"]) for row in rows}
    record = {
        "machine": machine.describe(),
        "versions": machine.versions(),
        "delta": DELTA,
        "luck": LUCK,
        "commands": [*before["commands"], " ".join(["python benches/audit.py", *sys.argv[1:]])],
        "findings": [row for row in before["findings"] if (row["case"], row["bug"]) not in again] + rows,
    }
    place.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def shown(found: Finding, more: str) -> None:
    print(
        f"{found.bug or found.case:20} mu {found.mu:5.2f} >= {found.least_mu:5.2f}  epsilon {found.epsilon:6.2f} >= "
        f"{found.least_epsilon:5.2f}  by {found.by:8} {found.fits:6} fits  {more}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
