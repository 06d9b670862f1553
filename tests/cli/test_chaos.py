"""A short form of `benches/chaos.py`: each kind of strike, at moments that a seed fixes."""

import sys
from pathlib import Path

import pytest

from tests.chaos import STRIKES, Chaos


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to send here")
def test_whatever_strikes_the_ledger_is_true_and_the_next_run_works(tmp_path: Path) -> None:
    chaos = Chaos(tmp_path, seed=5, rows=600)
    for strike in STRIKES:
        chaos.round(strike)
