"""A ledger in a file: kept, shared, refused when damaged; and true after a kill at any point of a fit."""

import errno
import json
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import chicle
from chicle import ArtefactError, Budget, BudgetExceeded, Ledger, PrivacyError
from chicle.privacy import ExponentialEvent, LaplaceEvent
from chicle.privacy import log as log_module
from chicle.privacy.store import read_kept
from tests.privacy.test_events import event

BUDGET = Budget(epsilon=3, delta=1e-9)
EVENTS = [
    event(20.0),
    ExponentialEvent(purpose="choice", epsilon=0.01, values=3),
    LaplaceEvent(purpose="total", clique=(), l1_sensitivity=1, scale=200.0, values=1),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.ledger"


def spend(path: Path, times: int = 1) -> Ledger:
    ledger = Ledger.open(path, BUDGET)
    for _ in range(times):
        ledger.debit(EVENTS)
    return ledger


# --- It keeps what was spent -----------------------------------------------------------------------------------------


def test_what_is_spent_is_there_when_it_is_opened_again(path: Path) -> None:
    ledger = spend(path, 3)
    again = Ledger.open(path)
    assert again.events == ledger.events == tuple(EVENTS * 3)
    assert (again.spent, again.remaining, again.budget) == (ledger.spent, ledger.remaining, ledger.budget)
    assert again.protected
    assert again.to_json() == ledger.to_json()


def test_the_budget_is_fixed_when_it_is_opened_first(path: Path) -> None:
    assert Ledger.open(path, BUDGET).budget == Budget(epsilon=3, delta=1e-9, discovery=1e-9 * 0.1)
    assert Ledger.open(path, BUDGET).budget == Ledger.open(path).budget
    for other in (Budget(epsilon=4, delta=1e-9), Budget(rho=1), Budget(epsilon=3, delta=1e-9, discovery=2e-10)):
        with pytest.raises(PrivacyError, match="is fixed before its first release"):
            Ledger.open(path, other)
    with pytest.raises(PrivacyError, match="Budget, not a float"):
        Ledger.open(path, 1.0)  # type: ignore[arg-type]


def test_there_must_be_a_file_or_a_budget(path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ArtefactError, match="there is no ledger"):
            Ledger.open(path)
        assert not path.exists()
    with pytest.raises(ArtefactError, match="make the folder"):
        Ledger.open(path.parent / "none" / "a.ledger", BUDGET)
    path.touch()
    with pytest.raises(ArtefactError, match="is empty"):
        Ledger.open(path)


@pytest.mark.parametrize("content", [b"a,b", b"{}", b"PAR1\0\0", b"0123 not a checksum", b"a,b\n1,2\n", b"\n"])
def test_another_file_is_refused_and_left_as_it_is(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for budget in (BUDGET, None):
        with pytest.raises(ArtefactError, match=r"no ledger|damaged"):
            Ledger.open(path, budget)
    assert path.read_bytes() == content


def test_what_is_set_aside_on_the_way_is_kept(path: Path) -> None:
    """A fit that pays in pure epsilon splits the promise, and others then see what is left of either part."""
    census = chicle.datasets.census(1_000, d=3)
    ledger = Ledger.open(path, Budget(epsilon=2, delta=1e-9))
    chicle.DPSyn(epsilon=1, delta=1e-9, noise="laplace", rare=0).fit(census, ledger=ledger)
    again = Ledger.open(path)
    assert (again.pure, again.spent, again.budget) == (ledger.pure, ledger.spent, ledger.budget)
    assert Ledger.open(path, Budget(epsilon=2, delta=1e-9)).budget == again.budget, "the promise is the same"
    assert again.pure > 0.001
    assert again.epsilon() <= 1 + 1e-9
    assert again.reserved == 0
    with pytest.raises(PrivacyError, match="already"):
        again.set_aside(0.001)
    chicle.Independent(epsilon=0.5, delta=1e-9).fit(census, ledger=again)
    assert 1 < Ledger.open(path).epsilon() <= 2


def test_two_openings_see_each_other(path: Path) -> None:
    one, two = Ledger.open(path, Budget(rho=1.0)), Ledger.open(path)
    for ledger in (one, two, one, two):
        ledger.debit([event(1.5)])
    with pytest.raises(BudgetExceeded):
        one.debit([event(1.5)])
    assert one.spent == pytest.approx(4 / 4.5)
    with two.reserve(Budget(rho=0.1), title="a fit"), pytest.raises(BudgetExceeded, match=r"have reserved 0\.1"):
        one.reserve(Budget(rho=0.1), title="another").__enter__()
    with one.reserve(Budget(rho=0.1), title="another") as held:
        held.debit([event(5.0)])
    assert [(session.title, session.how, len(session.paid)) for session in Ledger.open(path).sessions] == [  # type: ignore[attr-defined]
        ("releases without a fit", "done", 4),
        ("a fit", "done", 0),
        ("another", "done", 1),
    ]
    assert list(path.parent.iterdir()) == [path], "locks of fits are gone"


def test_threads_and_openings_cannot_overspend_together(path: Path) -> None:
    ledgers = [Ledger.open(path, Budget(rho=1.0)) for _ in range(4)]

    def one(number: int) -> int:
        try:
            ledgers[number % 4].debit([event(2.0)])
        except BudgetExceeded:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(one, range(40))) == 7  # rho 1 is 8 times 1/8, but costs are rounded up
    assert len(Ledger.open(path).events) == 7


def test_only_a_look_needs_no_right_to_write(path: Path) -> None:
    spend(path)
    looked = read_kept(path)
    assert looked.events == tuple(EVENTS)
    with pytest.raises(PrivacyError, match="read only"):
        looked.debit(EVENTS)


# --- What is damaged -------------------------------------------------------------------------------------------------


def test_a_line_that_was_being_written_does_not_count(path: Path) -> None:
    """A kill in the middle of a write, at every byte: nobody acted on it, and the next run goes on."""
    spend(path, 1)
    before = path.read_bytes()
    spend(path, 1)
    whole = path.read_bytes()
    for cut in [*range(len(before), len(whole), 7), len(whole) - 1]:
        path.write_bytes(whole[:cut])
        kept = len(EVENTS) * (2 if cut == len(whole) - 1 else 1)  # but for its end, the last line is whole
        assert len(read_kept(path).events) == len(EVENTS), "a reader leaves it out"
        ledger = Ledger.open(path)
        assert len(ledger.events) == kept
        ledger.debit(EVENTS)
        assert len(Ledger.open(path).events) == kept + len(EVENTS)


def test_a_ledger_that_was_being_begun_is_begun_again(path: Path) -> None:
    spend(path, 0)
    whole = path.read_bytes()
    for cut in range(0, len(whole) - 1, 13):
        path.write_bytes(whole[:cut])
        with pytest.raises(ArtefactError, match="is empty"):
            Ledger.open(path)
        path.write_bytes(whole[:cut])
        assert len(spend(path).events) == len(EVENTS)


def test_every_changed_byte_is_found(path: Path) -> None:
    spend(path, 2)
    whole = path.read_bytes()
    lines = whole.count(b"\n")
    for place in range(0, len(whole) - 1, 11):
        changed = bytearray(whole)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(ArtefactError, match="damaged or was changed"):
            Ledger.open(path)
    for gone in range(lines - 1):
        path.write_bytes(b"\n".join(line for i, line in enumerate(whole.split(b"\n")) if i != gone))
        with pytest.raises(ArtefactError, match="damaged or was changed"):
            Ledger.open(path)


def test_a_file_that_is_swapped_or_cut_while_it_is_open_is_refused(path: Path) -> None:
    ledger = spend(path, 2)
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    with pytest.raises(ArtefactError, match="replaced or cut short"):
        ledger.debit(EVENTS)
    copy = path.with_suffix(".copy")
    copy.write_bytes(whole)
    copy.replace(path)
    with pytest.raises(ArtefactError, match="replaced or cut short"):
        ledger.debit(EVENTS)
    path.unlink()
    with pytest.raises(ArtefactError, match="there is no ledger"):
        ledger.debit(EVENTS)
    path.write_bytes(whole)
    assert len(Ledger.open(path).events) == 6


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.update(record="secret"),
        lambda record: record.update(events=[{"kind": "secret"}]),
        lambda record: record.pop("events"),
        lambda record: record.update(fit="no such fit"),
        lambda record: record["events"][0].update(sigma=-1),
    ],
)
def test_records_of_another_kind_are_refused(path: Path, change: Any) -> None:
    spend(path)
    first, second, _ = path.read_text(encoding="utf-8").split("\n")
    record = json.loads(second[65:])
    change(record)
    text = json.dumps(record)
    path.write_text(f"{first}\n{log_module._link(first[:64], text)} {text}\n", encoding="utf-8")
    with pytest.raises(ArtefactError, match="cannot be read: the record at byte"):
        Ledger.open(path)


@pytest.mark.parametrize("failing", ["write", "fsync"])
def test_a_full_disk_spends_nothing(path: Path, failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = spend(path)
    kept, real = path.read_bytes(), getattr(os, failing)

    def full(file: int, *data: bytes) -> int:
        if failing == "write":
            real(file, data[0][:50])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, full)
        with pytest.raises(ArtefactError, match=r"No space left.*make room. No noise was drawn"):
            ledger.debit(EVENTS)
        with pytest.raises(ArtefactError):
            ledger.reserve(Budget(mu=0.1), title="a fit").__enter__()
    assert path.read_bytes() == kept
    assert list(path.parent.iterdir()) == [path]
    ledger.debit(EVENTS)
    assert len(Ledger.open(path).events) == len(ledger.events) == 6


def test_a_process_that_holds_the_lock_makes_others_wait_then_refuses(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = spend(path), Ledger.open(path)
    monkeypatch.setattr(log_module, "_WAIT", 0.05)
    with one._current(), pytest.raises(PrivacyError, match="in use by another process"):
        two.debit(EVENTS)
    two.debit(EVENTS)
    assert len(read_kept(path).events) == 6


# --- Kills -----------------------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path
import chicle
from chicle.privacy import log, noise

at, point, ledger, drawn = int(sys.argv[1]), sys.argv[2], sys.argv[3], Path(sys.argv[4])
real = {name: getattr(os, name) for name in ("write", "fsync")}
seen = {"write": 0, "fsync": 0, "noise": 0}

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def write(file, data):
    seen["write"] += 1
    if seen["write"] == at and point == "half":
        real["write"](file, data[: len(data) // 2])
        die()
    return real["write"](file, data)

def fsync(file):
    real["fsync"](file)
    seen["fsync"] += 1
    if seen["fsync"] == at and point == "synced":
        die()

def counted(draw):
    def counts(self, *args):
        seen["noise"] += 1
        with drawn.open("a") as file:
            file.write("x")
            file.flush()
        if seen["noise"] == at and point == "noise":
            die()
        return draw(self, *args)
    return counts

log.os = type("os", (), {**vars(os), "write": staticmethod(write)})
log.sync = fsync
for name in ("rounded_gaussian", "choose", "discrete_laplace"):
    setattr(noise.SystemNoise, name, counted(getattr(noise.SystemNoise, name)))

kept = chicle.Ledger.open(ledger)
seen.update(write=0, fsync=0)
census = chicle.datasets.census(400, d=3)
chicle.MST(epsilon=1, delta=1e-9).fit(census, ledger=kept)
print(seen["write"], seen["noise"])
"""


def test_kill_9_at_every_debit(path: Path, tmp_path: Path) -> None:
    """Before, in the middle of, and after each write of a fit, and after each draw of noise.

    No noise is drawn that was not paid for on the disk, no debit vanishes, nothing is spent twice, and the next fit
    finds all that was not drawn. The hook is in the child's own copies of `os.write` and of the noise: chicle has none.
    """
    script = tmp_path / "killed.py"
    script.write_text(textwrap.dedent(KILLED), encoding="utf-8")
    Ledger.open(path, Budget(epsilon=9, delta=1e-9))

    def run(at: int, point: str) -> tuple[int, int, subprocess.CompletedProcess[str]]:
        drawn = tmp_path / "drawn"
        drawn.write_text("", encoding="utf-8")
        before = path.read_bytes()
        command = [sys.executable, str(script), str(at), point, str(path), str(drawn)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        now = path.read_bytes()
        assert now.startswith(before[: before.rfind(b"\n") + 1]), "nothing that was there is gone"
        paid = sum(b'"record": "debit"' in line for line in now[len(before) :].split(b"\n")[:-1])
        return paid, len(drawn.read_text(encoding="utf-8")), done

    _, _, whole = run(0, "never")
    writes, draws = map(int, whole.stdout.split())
    assert writes == draws + 2, "a fit writes its begin, each release and its end"
    for point, most in (("half", writes), ("synced", writes), ("noise", draws)):
        for at in range(1, most + 1):
            paid, drawn, done = run(at, point)
            assert done.returncode == -9, done.stderr
            assert paid >= drawn, "noise that was not paid for"
            assert paid <= drawn + 1
            ledger = Ledger.open(path)
            assert ledger.reserved == 0, "what was not drawn is free again"
            assert not list(tmp_path.glob(".people*"))
    how = [session.how for session in Ledger.open(path).sessions]  # type: ignore[attr-defined]
    assert how[0] == "done"
    assert "killed" in how
    fitted = chicle.Independent(epsilon=1, delta=1e-9).fit(chicle.datasets.census(400, d=3), ledger=Ledger.open(path))
    assert fitted.ledger_.epsilon() <= 9
