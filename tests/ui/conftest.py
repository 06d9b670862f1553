"""A session on a small table, and a client that asks as the page itself does."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from starlette.testclient import TestClient

from chicle.ui.app import make_app
from chicle.ui.session import Session

TOKEN = "a-token-of-a-test"  # noqa: S105
HOST = "127.0.0.1:8123"
CANARY = "Canary-471147"


def people(rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "sex": rng.choice(["F", "M"], rows),
            "city": np.where(np.arange(rows) == 7, CANARY, rng.choice(["Lyon", "Nice", "Paris"], rows)),
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    people().to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


@pytest.fixture
def session(folder: Path) -> Iterator[Session]:
    made = Session(folder, threads=1)
    yield made
    made.close()


@pytest.fixture
def client(session: Session) -> TestClient:
    app = make_app(session, TOKEN, [HOST])
    headers = {"Origin": f"http://{HOST}"}
    return TestClient(
        app, base_url=f"http://{HOST}/{TOKEN}", headers=headers, client=("127.0.0.1", 5000), follow_redirects=False
    )


@pytest.fixture
def waited(session: Session) -> Callable[[], None]:
    """Wait until the job ended well."""

    def wait() -> None:
        assert session.job is not None
        assert session.job.join(60)
        assert session.job.state == "done", session.job.error

    return wait


def reviewed(session: Session, wait: Callable[[], None]) -> None:
    """Open the table and confirm every column, as a steward would who knows all from the code book."""
    session.open("people.csv")
    wait()
    assert session.table is not None
    for i, column in enumerate(list(session.table.schema.columns.values())):
        session.declare(i, {**column.to_dict(), "source": "the code book"})
    session.save_schema()
    wait()
    assert session.table.saved, session.table.problems


def permit_of(page: str) -> str:
    found = re.search(r'name="permit" value="([\w-]+)"', page)
    assert found is not None, page
    return found[1]


def settled(session: Session) -> None:
    """Wait until a job ended, however it did."""
    assert session.job is not None
    deadline = time.monotonic() + 60
    while session.running and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not session.running
