"""The whole way by requests, and what goes wrong on it: nothing half done is left, and nothing spent is forgotten."""

import errno
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pandas as pd
import pytest
from starlette.testclient import TestClient

import chicle
from chicle import Budget, Ledger, Schema
from chicle.cli import main
from chicle.errors import ArtefactError, ParameterError
from chicle.sources import table_files
from chicle.ui import session as session_module
from chicle.ui.job import Job
from chicle.ui.session import Choice, Session
from tests.ui.conftest import CANARY, TOKEN, people, permit_of, reviewed, settled

Waited = Callable[[], None]
CHOICE = {"at": "5", "total": "1", "delta": "1e-9", "records": "400", "mechanism": "prism", "ending": ".csv"}


def to(answer: Any) -> str:
    """Where an answer leads."""
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"]).removeprefix(f"/{TOKEN}/")


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "people-chicle").glob("*"))


def test_from_a_file_to_a_table(  # noqa: PLR0915 - one way
    client: TestClient, folder: Path, waited: Waited, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    asked: list[str] = []
    client.event_hooks["request"].append(lambda request: asked.append(str(request.url)))
    assert to(client.get("/")) == "open"
    assert "people.csv" in client.get("/open").text
    assert to(client.post("/open", data={"given": "people.csv"})) == "job"
    waited()
    assert to(client.get("/")) == "review"
    assert to(client.get("/review")) == "review/0"
    page = client.get("/review/2").text
    assert "NOT PRIVATE" in page
    assert "rare: 5 rows or fewer have" in page
    assert CANARY in page
    answer = client.post(
        "/review/0", data={"type": "integer", "min": "0", "max": "120", "outside": "clamp", "source": "all"}
    )
    assert to(answer) == "review/1"
    assert (
        to(client.post("/review/1", data={"type": "categorical", "values": "F\r\nM", "source": "form 1"})) == "review/2"
    )
    values = {"type": "categorical", "values": "Lyon\nNice\nParis", "other": "elsewhere", "source": "the register"}
    assert to(client.post("/review/2", data=values)) == "review/0"
    assert to(client.post("/save")) == "job"
    waited()
    assert "Go on" in client.get("/job/state").text
    saved = Schema.load(folder / "people-chicle" / "schema.yaml")
    assert saved.reviewed
    assert saved.columns["age"].to_dict()["max"] == 120
    page = client.get("/budget").text
    assert page.count('class="buys"') == 11
    assert "no data was counted" in page
    assert to(client.post("/budget", data={**CHOICE, "then": "spend"})) == "spend"
    page = client.get("/spend").text
    assert "ledger before" in page
    assert "Spent: epsilon 0 of 1 before, 1 after" in page
    assert not (folder / "people-chicle" / "table.ledger").exists()
    permit = permit_of(page)
    assert to(client.post("/run", data={"permit": permit})) == "job"
    waited()
    assert files(folder) == [
        "dossier-1",
        "release-1.chicle",
        "report-1.html",
        "schema.yaml",
        "synthetic-1.csv",
        "table.ledger",
    ]
    page = client.get("/results").text
    assert "spent rho" in page
    assert "--epsilon 1 --delta 1e-09" in page
    for what in ("table", "release", "report", "dossier", "schema", "ledger", "commands", "python"):
        answer = client.get(f"/download/1/{what}")
        assert answer.status_code == 200
        assert "attachment" in answer.headers["content-disposition"]
        assert CANARY.encode() not in answer.content
    framed = client.get("/report/1")
    assert "frame-ancestors 'self'" in framed.headers["Content-Security-Policy"]
    assert "script" not in framed.headers["Content-Security-Policy"]
    table = pd.read_csv(folder / "people-chicle" / "synthetic-1.csv")
    assert list(table) == list(people())
    kept = folder / "kept.ledger"
    kept.write_text(client.get("/download/1/ledger").text, encoding="utf-8")
    ledger = Ledger.open(kept)
    assert ledger.spent == pytest.approx(Budget(epsilon=1, delta=1e-9, discovery=1e-10).rho, rel=1e-6)
    # The permit is used up, and so is the budget.
    answer = client.post("/run", data={"permit": permit})
    assert answer.status_code == 422
    assert "costs more than the ledger has left" in answer.text
    assert not any(CANARY in url or "Lyon" in url or "max" in url for url in asked)
    ours = [record for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]
    assert not any(CANARY in record.getMessage() for record in ours)


def test_the_script_does_it_again(
    client: TestClient, session: Session, folder: Path, waited: Waited, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands run in the folder of the page; `sample` draws the very table of the page."""
    reviewed(session, waited)
    session.choose(Choice(records=400))
    session.run(session.permit())
    waited()
    monkeypatch.chdir(folder)
    made = (folder / "people-chicle" / "synthetic-1.csv").read_bytes()
    (folder / "people-chicle" / "synthetic-1.csv").unlink()
    commands = client.get("/download/1/commands").text.replace("\\\n", "")
    told = [line.split()[1:] for line in commands.splitlines() if line.startswith("chicle ")]
    assert [words[0] for words in told] == ["schema", "plan", "synth", "sample", "report", "dossier"]
    assert main(told[0]) == main(told[1]) == main(told[3]) == 0
    assert (folder / "people-chicle" / "synthetic-1.csv").read_bytes() == made
    assert main([*told[2], "--force"]) == 0
    code = client.get("/download/1/python").text
    exec(compile(code, "what-the-page-did.py", "exec"), {})  # noqa: S102 - our own script


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nobody.csv", "there is no file"),
        ("nobody-*.csv", "no file matches"),
        ("people.doc", "unknown ending"),
        (".", "is a folder"),
        ("", "is a folder"),
    ],
)
def test_a_wrong_path(client: TestClient, session: Session, given: str, said: str) -> None:
    answer = client.post("/open", data={"given": given})
    assert answer.status_code == 422
    assert said in answer.text
    assert 'role="alert"' in answer.text
    assert session.table is None


@pytest.mark.parametrize("content", [b"", b"age,sex\n1,F\n2\n", b"PAR1 not at all", "\xe9".encode("latin-1")])
def test_a_wrong_file(client: TestClient, session: Session, folder: Path, content: bytes) -> None:
    (folder / "people.csv").write_bytes(content)
    assert to(client.post("/open", data={"given": "people.csv"})) == "job"
    settled(session)
    page = client.get("/job/state")
    assert page.headers["X-State"] == "failed"
    assert "Traceback" not in page.text
    assert session.table is None
    assert not (folder / "people-chicle").exists()


def test_a_wrong_declaration_stays_in_its_form(client: TestClient, session: Session, waited: Waited) -> None:
    session.open("people.csv")
    waited()
    answer = client.post("/review/0", data={"type": "integer", "min": "90", "max": "0", "source": "my < source"})
    assert answer.status_code == 422
    assert "min 90 is above max 0" in answer.text
    assert 'value="my &lt; source"' in answer.text
    assert session.table is not None
    assert not session.table.confirmed
    answer = client.post("/review/0", data={"type": "nothing"})
    assert answer.status_code == 422
    assert client.post("/review/99", data={"type": "drop"}).status_code == 422
    assert client.post("/review/0/text", data={"text": "[1"}).status_code == 422
    assert client.post("/review/0/text", data={"text": "{type: integer, min: 0, max: 99}"}).status_code == 303
    assert session.table.schema.columns["age"].to_dict()["max"] == 99


def test_a_column_from_the_data_alone_cannot_be_saved(session: Session, waited: Waited) -> None:
    """`source: data` says that only the table knows: the schema refuses to be reviewed."""
    session.open("people.csv")
    waited()
    with pytest.raises(ParameterError, match="'age' is not confirmed yet, and 2 others"):
        session.save_schema()
    assert session.table is not None
    for i, column in enumerate(list(session.table.schema.columns.values())):
        session.declare(i, column.to_dict())
    with pytest.raises(chicle.SchemaError, match="no public source"):
        session.save_schema()
    assert not session.schema_path.exists()


def test_a_table_that_does_not_fit(client: TestClient, session: Session, waited: Waited) -> None:
    session.open("people.csv")
    waited()
    for i, values in enumerate(("{type: integer, min: 0, max: 30}", "[F, M]", "[Lyon]")):
        text = values if values.startswith("{") else f"{{type: categorical, values: {values}, source: form}}"
        client.post(f"/review/{i}/text", data={"text": text.replace("30}", "30, source: form}")})
    session.save_schema()
    waited()
    assert session.job is not None
    assert session.job.then == "review"
    page = client.get("/review/0").text
    assert "does not fit this schema yet" in page
    assert "column &#x27;age&#x27;" in page
    assert to(client.get("/budget")) == "review"
    assert session.ledger is None


def test_a_schema_that_is_there(client: TestClient, session: Session, folder: Path, waited: Waited) -> None:
    """One that is given must be of this table; every column of a reviewed one is confirmed."""
    columns: dict[str, Any] = {"age": {"type": "integer", "min": 0, "max": 120}, "sex": {"type": "drop"}}
    Schema(columns).save(folder / "other.yaml")
    session.open("people.csv", folder / "other.yaml")
    settled(session)
    assert "declares other columns than the table has" in client.get("/job").text
    assert session.table is None
    Schema({**columns, "city": {"type": "drop"}}).save(folder / "mine.yaml")
    session.open("people.csv", folder / "mine.yaml")
    waited()
    assert session.table is not None
    assert session.table.confirmed == {"age", "sex", "city"}
    with pytest.raises(chicle.SchemaError):
        session.open("people.csv", folder / "nobody.yaml")


def test_persons(client: TestClient, session: Session, folder: Path, waited: Waited) -> None:
    frame = people(300)
    frame.insert(0, "patient", [f"P{i // 3:04}" for i in range(300)])
    frame.to_csv(folder / "people.csv", index=False)
    session.open("people.csv")
    waited()
    assert session.table is not None
    assert to(client.post("/persons", data={"person": "patient", "most": "2"})).startswith("review/")
    assert session.table.schema.person == "patient"
    assert session.table.schema.max_records_per_person == 2
    assert "protected with all of them" in client.get("/review/0").text
    client.post("/persons", data={"person": "", "most": "1"})
    assert session.table.schema.person is None
    assert "patient" not in session.table.confirmed
    assert client.post("/persons", data={"person": "patient", "most": "none"}).status_code == 422


def test_two_tabs_cannot_spend_twice(client: TestClient, session: Session, waited: Waited) -> None:
    """Each question voids the one before it, and an answer counts once."""
    reviewed(session, waited)
    session.choose(Choice(epsilon=0.5, total=2.0, records=400))
    first = permit_of(client.get("/spend").text)
    second = permit_of(client.get("/spend").text)
    answer = client.post("/run", data={"permit": first})
    assert answer.status_code == 422
    assert session.ledger is None
    assert client.post("/run", data={"permit": second}).status_code == 422, "the answer asked again"
    second = permit_of(client.get("/spend").text)
    answers = [client.post("/run", data={"permit": second}).status_code for _ in range(3)]
    assert answers == [303, 422, 422]
    waited()
    assert len(session.results) == 1
    assert session.balance() == pytest.approx((0.5, 2.0), rel=1e-3)


def test_what_is_left(client: TestClient, session: Session, folder: Path, waited: Waited) -> None:
    """A second run spends what is left; a session that comes later knows what was spent; then there is nothing left."""
    reviewed(session, waited)
    for at in ("4", "3"):
        assert to(client.post("/budget", data={**CHOICE, "at": at, "then": "spend"})) == "spend"
        session.run(session.permit())
        waited()
    spent, total = session.balance()
    assert 0.8 * total < spent < total
    client.post("/budget", data={**CHOICE, "at": "4", "then": "spend"})
    page = client.get("/spend").text
    assert "costs more than the ledger has left" in page
    assert "permit" not in page
    later = Session(folder, threads=1)
    later.open("people.csv")
    settled(later)
    assert later.table is not None
    assert later.table.schema.reviewed
    assert later.table.confirmed == set(people())
    assert later.ledger is not None
    assert later.balance_kept == session.balance_kept
    later.close()


@pytest.mark.parametrize("at", ["-1", "99", "x"])
def test_wrong_budgets(client: TestClient, session: Session, waited: Waited, at: str) -> None:
    reviewed(session, waited)
    assert client.post("/budget", data={**CHOICE, "at": at}).status_code == 422
    for field, wrong in (
        ("total", "much"),
        ("delta", "2"),
        ("records", "-1"),
        ("mechanism", "magic"),
        ("ending", ".doc"),
    ):
        answer = client.post("/budget", data={**CHOICE, field: wrong})
        assert answer.status_code == 422, field
    answer = client.post("/budget", data={**CHOICE, "at": "9"})
    assert "more than this table may cost in all" in answer.text
    assert session.ledger is None


def hold(monkeypatch: pytest.MonkeyPatch, name: str) -> tuple[threading.Event, threading.Event]:
    """Hold the job where it begins a step, until it is let go."""
    reached, let = threading.Event(), threading.Event()
    step = Job.step

    def held(self: Job, what: str) -> None:
        if what.startswith(name):
            reached.set()
            assert let.wait(30)
        step(self, what)

    monkeypatch.setattr(Job, "step", held)
    return reached, let


@pytest.mark.parametrize(("at", "paid"), [("Reading", False), ("Selecting", False), ("Making records", True)])
def test_cancel(  # noqa: PLR0917 - fixtures
    client: TestClient,
    session: Session,
    folder: Path,
    waited: Waited,
    monkeypatch: pytest.MonkeyPatch,
    at: str,
    paid: bool,
) -> None:
    """What was not paid for leaves nothing; what was is in the ledger, and its release can be drawn from."""
    reviewed(session, waited)
    session.choose(Choice(records=400))
    reached, let = hold(monkeypatch, at)
    session.run(session.permit())
    assert reached.wait(30)
    page = client.get("/job/state").text
    assert "Cancel" in page
    assert client.post("/open", data={"given": "people.csv"}).status_code == 422, "one job at a time"
    assert to(client.post("/cancel")) == "job"
    assert "Ending after this step" in client.get("/job/state").text
    let.set()
    settled(session)
    assert session.job is not None
    assert session.job.state == "cancelled"
    assert bool(Ledger.open(folder / "people-chicle" / "table.ledger").events) == paid
    assert bool(files(folder)) and not any(name.startswith(".") for name in files(folder))  # noqa: PT018
    assert ("release-1.chicle" in files(folder)) == paid
    assert "synthetic-1.csv" not in files(folder)
    if paid:
        monkeypatch.undo()
        assert "at no cost" in client.get("/job").text
        spent = session.balance()
        assert to(client.post("/again")) == "job"
        waited()
        assert "synthetic-1.csv" in files(folder)
        assert session.balance() == spent


class Full:
    """A disk that fills up while a file of some name is written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.on = True
        real = table_files.write_explained

        def write(table: Iterator[Any], beside: Path, output: Path) -> int:
            if self.on and name in output.name:
                beside.write_bytes(b"half")
                raise ArtefactError(f"{output} cannot be written: {os.strerror(errno.ENOSPC)}; make room")
            return real(table, beside, output)

        monkeypatch.setattr(session_module, "write_explained", write)


def test_a_full_disk_while_the_table_is_written(
    client: TestClient, session: Session, folder: Path, waited: Waited, monkeypatch: pytest.MonkeyPatch
) -> None:
    reviewed(session, waited)
    session.choose(Choice(records=400))
    full = Full(monkeypatch, "synthetic")
    session.run(session.permit())
    settled(session)
    page = client.get("/job").text
    assert "No space left on device; make room" in page
    assert "Write the files again, at no cost" in page
    assert "synthetic-1.csv" not in files(folder)
    assert not any(name.startswith(".") for name in files(folder))
    full.on = False
    client.post("/again")
    waited()
    assert {"synthetic-1.csv", "report-1.html"} <= set(files(folder))


def test_a_full_disk_before_anything_is_spent(
    session: Session, folder: Path, waited: Waited, monkeypatch: pytest.MonkeyPatch
) -> None:
    reviewed(session, waited)
    session.choose(Choice(records=400))

    def full(_: Path, __: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ArtefactError, match="Nothing was spent"):
        session.run(session.permit())
    assert session.ledger is None
    assert files(folder) == ["schema.yaml"]


def test_the_ledger_of_an_earlier_version_counts(session: Session, folder: Path) -> None:
    (folder / "people-chicle").mkdir()
    (folder / "people-chicle" / "ledger.json").write_text("{}", encoding="utf-8")
    session.open("people.csv")
    settled(session)
    assert session.job is not None
    assert "an earlier version of chicle, and what it spent counts" in str(session.job.error)


def send(client: TestClient, body: bytes, name: str, size: int | None = None) -> Any:
    headers = {"X-Name": name, "X-Size": str(len(body) if size is None else size)}
    return client.post("/upload", content=body, headers=headers)


def test_a_file_that_is_dropped(client: TestClient, session: Session, folder: Path, waited: Waited) -> None:
    body = (folder / "people.csv").read_bytes()
    answer = send(client, body, "dropped%20here.csv")
    assert (answer.status_code, answer.text) == (200, f"/{TOKEN}/job")
    waited()
    assert session.table is not None
    place = Path(session.table.given)
    assert place.read_bytes() == body
    assert place.parent.stat().st_mode & 0o077 == 0
    assert session.results_folder == folder / "dropped here-chicle"
    session.close()
    assert not place.parent.exists()


@pytest.mark.parametrize(
    ("name", "size", "said"),
    [
        ("half.csv", 10**6, "did not arrive whole"),
        ("no-size.csv", -1, "did not arrive whole"),
        ("..%2Fescape.csv", None, "no plain file name"),
        (".hidden.csv", None, "no plain file name"),
        ("people.doc", None, "unknown ending"),
    ],
)
def test_a_file_that_did_not_arrive(
    client: TestClient, session: Session, name: str, size: int | None, said: str
) -> None:
    answer = send(client, b"age,sex\n1,F\n", name, size)
    assert answer.status_code == 422
    assert said in answer.text
    assert session.table is None
    assert session._uploads is None or list(session._uploads.iterdir()) == []


def test_an_unforeseen_error_says_nothing_private(
    session: Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from chicle.ui.app import make_app
    from tests.ui.conftest import HOST

    def fails(_: Session) -> list[Path]:
        raise KeyError(CANARY)

    monkeypatch.setattr(Session, "tables", fails)
    client = TestClient(
        make_app(session, TOKEN, [HOST]),
        base_url=f"http://{HOST}/{TOKEN}",
        client=("127.0.0.1", 1),
        raise_server_exceptions=False,
    )
    answer = client.get("/open")
    assert answer.status_code == 500
    assert "KeyError" in answer.text
    assert CANARY not in answer.text + caplog.text


def test_a_wide_table_paints_at_once(client: TestClient, session: Session, folder: Path, waited: Waited) -> None:
    """A hundred columns: every page is small, and none looks at the private table again."""
    rng = np.random.default_rng(0)
    wide = pd.DataFrame({f"column {i}": rng.integers(0, 20, 500) for i in range(100)})
    wide.to_csv(folder / "people.csv", index=False)
    session.open("people.csv")
    waited()
    (folder / "people.csv").unlink()
    for index in (0, 50, 99):
        page = client.get(f"/review/{index}")
        assert page.status_code == 200
        assert len(page.text) < 60_000
        assert page.text.count("<li>") >= 100


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("when", ["idle", "working"])
def test_ctrl_c_ends_it(folder: Path, when: str) -> None:
    """Ctrl-C ends the process, its page and its uploads; a job leaves whole files or none."""
    if when == "working":
        people(200_000).to_csv(folder / "people.csv", index=False)
    code = "import sys; from chicle.cli import main; sys.exit(main(sys.argv[1:]))"
    told = [
        "ui",
        *(["people.csv"] if when == "working" else []),
        "--no-browser",
        "--folder",
        str(folder),
        "--threads",
        "1",
    ]
    environment = {**os.environ, "PYTHONPATH": str(Path(chicle.__file__).parents[1]), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", code, *told], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    address = process.stdout.readline().split()[-1]
    assert address.startswith("http://127.0.0.1:")
    deadline = time.monotonic() + 20
    while True:
        try:
            with urlopen(address, timeout=5) as answer:  # noqa: S310 - our own page
                assert answer.status == 200
            break
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode in (0, 130)
    assert "Traceback" not in err
    assert CANARY not in out + err
    assert [path.name for path in folder.iterdir()] == ["people.csv"]


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in [name for name in sys.modules if name.startswith(("chicle.ui", "starlette", "uvicorn"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["ui", "--no-browser"]) == 2
    assert "pip install 'chicle[ui]'" in capsys.readouterr().err
    assert main(["ui", "--folder", "no-such-folder"]) == 2
