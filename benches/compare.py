"""Side by side with other tools, in one run: `python benches/compare.py [--quick] [--only PART] [--records N]`.

Every way to do a job runs in turns with the others, its answer is checked, and its best time counts. The tables are
printed, and kept with a description of the machine in `benches/records`.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from time import perf_counter

import machine
from accounting import ACCOUNTING
from counting import COUNTING, GROWTH
from noise import NOISE
from side_by_side import Part, Settings, Table, show

PARTS: dict[str, tuple[Callable[[Settings], Part], ...]] = {
    "counting": COUNTING,
    "growth": GROWTH,
    "noise": NOISE,
    "accounting": ACCOUNTING,
}
BUSY = 0.1
RECORDS = Path(__file__).parent / "records"


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare chicle with other tools, side by side.")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and sizes: half a minute")
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--records", type=int, default=Settings.records, help="people in the census")
    arguments = parser.parse_args()
    settings = Settings(arguments.records, arguments.quick)
    facts: dict[str, Mapping[str, object]] = {"machine": machine.describe(), "versions": machine.versions()}
    for subject, values in facts.items():
        print(f"{subject}: {', '.join(f'{name} {value}' for name, value in values.items())}")

    start, others = perf_counter(), machine.seconds_of_others()
    done: list[Part] = []
    for comparison in PARTS[arguments.only] if arguments.only else sum(PARTS.values(), ()):
        done.append(comparison(settings))
        for table in done[-1].tables:
            show(table)
    goals = [goal.row() for part in done for goal in part.goals]
    if goals:
        show(Table("Goals", goals))
    seconds = perf_counter() - start
    share = (machine.seconds_of_others() - others) / seconds / (os.cpu_count() or 1)
    if share > BUSY:
        print(f"\nOthers took {share:.0%} of the machine meanwhile: trust the ratios of one-thread rows only.")

    date = datetime.now(timezone.utc).date().isoformat()
    record = {
        "date": date,
        **facts,
        "settings": asdict(settings) | {"only": arguments.only},
        "run": {"seconds": round(seconds), "share_of_others": round(share, 3)},
        "tables": [asdict(table) for part in done for table in part.tables],
        "goals": goals,
    }
    marks = (date, machine.slug(), "quick" if settings.quick else None, arguments.only)
    path = RECORDS / f"{'-'.join(filter(None, marks))}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")
    print(f"\n{seconds:.0f} s; kept in benches/records/{path.name}")


if __name__ == "__main__":
    main()
