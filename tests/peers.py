"""Environments of other packages: those of the folder CHICLE_PEERS, each under the name of its package."""

import os
from pathlib import Path

import pytest

__all__ = ["peer"]


def peer(name: str) -> str:
    """Return the Python of a package's environment, or skip the test."""
    folder = os.environ.get("CHICLE_PEERS")
    python = None if folder is None else Path(folder) / name / "bin" / "python"
    if python is None or not python.exists():
        pytest.skip(f"CHICLE_PEERS names no folder with an environment {name}")
    return str(python)
