"""How quick `chicle ui` is: opening a table, painting a column, and answering while it works.

    python benches/page.py            # 20,000 rows of 100 columns, then 1,000,000 rows of 20

Requests go to the application itself, without a browser or a network.
"""

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
from starlette.testclient import TestClient

from chicle.ui.app import make_app
from chicle.ui.session import Session

HOST, TOKEN = "127.0.0.1:1", "bench"
TABLES = ((20_000, 100), (1_000_000, 20))


def table(rows: int, columns: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    made = (rng.integers(0, 30, rows) if i % 2 else rng.choice(["a", "b", "c", "d"], rows) for i in range(columns))
    return pd.DataFrame({f"c{i}": values for i, values in enumerate(made)})


def seconds(client: TestClient, address: str) -> float:
    start = time.perf_counter()
    client.get(address).raise_for_status()
    return time.perf_counter() - start


def busy(session: Session, client: TestClient) -> tuple[float, list[float]]:
    """Ask how far the job is until it ends; return how long it took, and each answer."""
    start, answers = time.perf_counter(), [0.0]
    while session.running:
        answers.append(seconds(client, "/job/state"))
        time.sleep(0.1)
    if session.job is None or session.job.state != "done":
        raise RuntimeError("the job failed" if session.job is None else session.job.error)
    return time.perf_counter() - start, answers


def main() -> None:
    say = sys.stdout.write
    say(f"{'rows':>9} {'columns':>7}  {'open':>6} {'column':>7} {'budget':>7} {'make':>6}   answers while busy\n")
    for rows, columns in TABLES:
        with tempfile.TemporaryDirectory() as folder:
            table(rows, columns).to_csv(f"{folder}/people.csv", index=False)
            session = Session(Path(folder))
            app = make_app(session, TOKEN, [HOST])
            client = TestClient(app, base_url=f"http://{HOST}/{TOKEN}", client=("127.0.0.1", 1))
            session.open("people.csv")
            opened, answers = busy(session, client)
            paint = max(seconds(client, f"/review/{i}") for i in (0, columns // 2, columns - 1))
            drafted = [] if session.table is None else list(session.table.schema.columns.values())
            for i, column in enumerate(drafted):
                session.declare(i, {**column.to_dict(), "source": "the bench"})
            session.save_schema()
            busy(session, client)
            budget = seconds(client, "/budget")
            session.run(session.permit())
            made, more = busy(session, client)
            answers += more
            say(
                f"{rows:9,} {columns:7}  {opened:5.1f}s {paint:6.3f}s {budget:6.2f}s {made:5.1f}s   "
                f"median {median(answers):.3f} s, at most {max(answers):.2f} s\n"
            )
            session.close()


if __name__ == "__main__":
    main()
