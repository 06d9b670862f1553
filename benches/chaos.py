"""Chaos: fits through the command line that are killed, starved of disk, interrupted, and given sources that change.

    python benches/chaos.py [ROUNDS] [SEED]

Each round runs `chicle synth --ledger` on a census and strikes once, at a random moment:

- kill: SIGKILL, after a random time or at a random write of the ledger or of the outputs;
- stop: SIGINT, after a random time;
- full: no file may grow beyond a random size, as on a full disk;
- changed: the table is replaced by another one of equal length while it is read;
- cut: the table is cut short while it is read, or before;
- race: two runs at once on one ledger.

After each round: the ledger is whole, what was there is still there, as much was paid as the releases on the disk say,
no half-written output and no lock is left once the next run is over, no traceback was printed, and the next run works.
Writes a record of what happened into benches/records, beside runs of other seeds on the same day. Half a second of CPU
a round.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

import machine

import chicle

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.chaos import Broken, Chaos

EVERY = 25


def main(rounds: int = 500, seed: int = 23) -> None:
    begun, happened = time.monotonic(), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        chaos = Chaos(Path(folder), seed)
        for number in range(1, rounds + 1):
            try:
                happened[chaos.round()] += 1
            except Broken as error:
                print(f"round {number} of seed {seed}: {error}", flush=True)
                happened["BROKEN"] += 1
            if number % EVERY == 0 or number == rounds:
                keep(number, seed, time.monotonic() - begun, happened)


def keep(rounds: int, seed: int, seconds: float, happened: Counter[str]) -> None:
    """Write what happened so far into the record of today, beside runs of other seeds."""
    today = datetime.now(timezone.utc).date().isoformat()
    record = Path(__file__).parent / "records" / f"{today}-chaos.json"
    runs = json.loads(record.read_text(encoding="utf-8"))["runs"] if record.exists() else []
    now = {"seed": seed, "rounds": rounds, "seconds": round(seconds), "broken promises": happened["BROKEN"]}
    ends = dict(sorted((end, times) for end, times in happened.items() if end != "BROKEN"))
    runs = [run for run in runs if run["seed"] != seed] + [{**now, "rounds by strike and end": ends}]
    told = {
        "what": "benches/chaos.py",
        "machine": machine.describe(),
        "chicle": chicle.__version__,
        "rounds": sum(run["rounds"] for run in runs),
        "broken promises": sum(run["broken promises"] for run in runs),
        "runs": runs,
    }
    record.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    print(rounds, ends, flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
